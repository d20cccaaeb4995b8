"""River's own estimator checks, through an adapter of a few lines; and River's evaluation run on our learners."""

from __future__ import annotations

import pytest
from river import base, checks, datasets, evaluate, metrics, preprocessing

from onepass import LinearClassifier, LinearRegressor


class OursAsRiver:
    """What River's base classes ask beside `learn_one` and `predict_one`."""

    def __init__(self, rule: str = "pa1", readout: str = "last"):
        self.rule = rule
        self.readout = readout
        self._ours = self.kind(rule, readout=readout)

    @classmethod
    def _unit_test_params(cls):
        yield {"rule": "pa1"}
        yield {"rule": cls.other_rule, "readout": "average"}

    def learn_one(self, x, y):
        self._ours.learn_one(x, y)

    def predict_one(self, x):
        return self._ours.predict_one(x)


class Classifier(OursAsRiver, base.Classifier):
    """Our classifier under River's contract."""

    kind, other_rule = LinearClassifier, "sgd:loss=logistic"

    @property
    def _multiclass(self):
        return True

    def predict_proba_one(self, x):
        if "logistic" not in self.rule:
            raise NotImplementedError
        return self._ours.predict_proba_one(x)

    def predict_one(self, x):
        return self._ours.predict_one(x)


class Regressor(OursAsRiver, base.Regressor):
    """Our regressor under River's contract."""

    kind, other_rule = LinearRegressor, "nlms"


# About this adapter, not about the learners: River wants an example in the docstring of every class.
ABOUT_DOCSTRINGS = {"check_doc"}


def all_checks():
    for kind in (Classifier, Regressor):
        for params in kind._unit_test_params():
            for check in checks.yield_checks(kind(**params)):
                if check.__name__ in ABOUT_DOCSTRINGS:
                    continue
                yield kind, params["rule"], check.__name__, check


@pytest.mark.full(strength=1)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("kind", "rule", "name"), sorted({each[:3] for each in all_checks()}, key=str))
def test_river_checks(kind, rule, name):
    """A check may be there several times, for several sets of data."""
    found = [each for each in all_checks() if each[:3] == (kind, rule, name)]
    for _, _, _, check in found:
        (params,) = (params for params in kind._unit_test_params() if params["rule"] == rule)
        check(kind(**params))


@pytest.mark.filterwarnings("default")
def test_progressive_validation_in_river():
    model = preprocessing.StandardScaler() | Classifier("pa1")
    assert evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.85
