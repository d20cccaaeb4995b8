"""Parameters outside their range, unknown names, cells where a rule is not defined: refused, with what was expected."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from support import grid
from support.grid import BinaryOnly, saved, stream

from onepass import ReferenceLearner, rules, scheme
from onepass.errors import LabelError, ParameterError
from onepass.estimators.linear import LinearClassifier, LinearRegressor
from onepass.models.linear import LinearModel
from onepass.scheme import losses, schedules
from onepass.scheme.parameters import Parameters

NAN, INF = float("nan"), float("inf")

# What each parameter must refuse beside NaN and what is no number.
OUTSIDE: dict[str, dict[str, list[Any]]] = {
    "Perceptron": {"rho": [0, -1, INF], "beta": [-0.1, INF], "strict": ["yes", 1, None], "schedule": ["fast", 0.1]},
    "Adaline": {"rho": [0, -0.1, INF], "schedule": ["fast", 7]},
    "NormalizedLMS": {"mu": [0, 2, -1], "eps": [-1e-9, INF], "importance_mode": ["twice"]},
    "PA": {"epsilon": [-0.1, INF], "update_on": ["always", None], "importance_mode": ["twice", 1]},
    "PA1": {"C": [0, -1], "lam": [-1, INF], "epsilon": [-1], "update_on": [""], "importance_mode": ["LOSS"]},
    "PA2": {"C": [0, -1], "lam": [-1, INF], "epsilon": [-1], "update_on": [""], "importance_mode": ["LOSS"]},
    "SGD": {
        "loss": ["cubic", 3, "huber(delta=-1)", "huber(width=1)"],
        "schedule": ["fast", 0.1, "geometric(gamma=1)"],
        "eta": [0, -1, INF],
        "l2": [-1e-9, INF],
        "clock": ["wall", 1],
        "batch_size": [0, 1.5, INF],
        "reduction": ["median", None],
    },
    "NORMA": {
        "lam": [-1, INF, 2],
        "eta": [0, -1, INF],
        "schedule": ["inv_t"],
        "rho": [-1, INF],
        "nu": [-0.1, 1.1, INF],
    },
    "Pegasos": {"lam": [0, -1, INF], "project": ["yes", 0]},
    "Pocket": {"rho": [0, -1, INF], "beta": [-0.1], "strict": [1], "schedule": ["fast"]},
    "MIRA": {"beta": [-1, INF], "cap": [0, -1], "tie_update": ["never", None]},
    "ALMA": {"alpha": [0, 1.1], "B": [0, -1], "C": [0, INF], "normalize": [1], "strict": ["no"], "p": [1.9, 65, INF]},
    "Shifting": {"lam": [-0.1, INF], "decay": ["linear"]},
    "FOBOS": {
        "loss": ["cubic"],
        "schedule": ["fast"],
        "eta": [0],
        "clock": ["wall"],
        "batch_size": [0],
        "reduction": [1],
        "lam1": [-1, INF],
        "lam2": [-1e-9],
    },
    "TruncatedGradient": {
        "loss": ["cubic"],
        "schedule": ["fast"],
        "eta": [0],
        "clock": ["wall"],
        "batch_size": [0],
        "reduction": [1],
        "gravity": [-1],
        "threshold": [0, -1],
        "K": [0, 1.5],
    },
    "RLS": {
        "lam": [0, -1, INF],
        "forgetting": [0, 1.1],
        "forecast": ["sharp"],
        "form": ["abc", "Chol", None],
        "max_gamma": [0, INF],
        "noise_variance": [0, -1],
        "max_dim": [0, 1.5],
    },
    "Kalman": {"q": [-1, INF], "r": [0, INF], "p0": [0], "max_dim": [0]},
    "AROW": {
        "covariance": ["half"],
        "max_dim": [0],
        "sigma0": [0, INF],
        "lam": [0, INF],
        "diag": ["project"],
        "always_update_cov": [1],
    },
    "CW": {
        "covariance": ["half"],
        "max_dim": [0],
        "sigma0": [0],
        "diag": ["exact"],
        "eta": [0.5, 1],
        "form": ["square"],
    },
    "SCW1": {
        "covariance": [1],
        "max_dim": [0],
        "sigma0": [0],
        "diag": ["exact"],
        "C": [0, INF],
        "eta": [0.5, 1],
    },
    "SCW2": {
        "covariance": [1],
        "max_dim": [0],
        "sigma0": [0],
        "diag": ["exact"],
        "C": [0, INF],
        "eta": [0.5, 1],
    },
    "NHERD": {"covariance": ["x"], "max_dim": [0], "sigma0": [0], "C": [0, INF], "diag": ["exact"]},
    "ONS": {"covariance": ["x"], "max_dim": [0], "loss": ["cubic"], "gamma": [0, INF], "eps": [0, INF]},
    "AdaGrad": {"loss": ["cubic"], "eta": [0, INF], "delta": [-1e-9], "eps_inside": [1]},
    "AdaDelta": {"loss": [3], "rho": [0, 1], "eps": [0, INF], "lr": [0], "absent": ["dense"]},
    "RMSProp": {"loss": ["cubic"], "eta": [0], "rho": [0, 1], "eps": [0], "absent": ["never"]},
    "Adam": {"loss": ["cubic"], "eta": [0], "beta1": [-0.1, 1], "beta2": [1], "eps": [0], "absent": ["exact"]},
    "FTRL": {"loss": ["cubic"], "alpha": [0], "beta": [-1, INF], "lam1": [-1], "lam2": [-1e-9]},
    "VW": {
        "loss": ["cubic"],
        "eta": [0, INF],
        "power": [-0.1, 1.1],
        "row_power": [-0.1, 1.1],
        **{name: ["yes", 1, None] for name in ("adaptive", "normalized", "invariant", "clip", "vw_compat")},
    },
    "PAMIR": {"C": [0, -1], "lam": [-1], "epsilon": [-1], "update_on": [""], "importance_mode": ["LOSS"]},
    "MROC": {"beta": [0, -1], "mu": [0], "min_slope": [-0.1, INF]},
    "losses.Perceptron": {"beta": [-1]},
    "EpsInsensitive": {"epsilon": [-0.1, INF]},
    "SquaredEpsInsensitive": {"epsilon": [-0.1]},
    "Quantile": {"tau": [0, 1, -1, 2]},
    "Huber": {"delta": [0, -1, INF]},
    "Tukey": {"eta": [0, -1]},
    "Constant": {"eta": [0, -1, INF]},
    "InvT": {"eta": [0, -1]},
    "InvSqrt": {"eta": [0, -1]},
    "InvScaling": {"eta": [0], "p": [-0.1, INF], "t0": [-1]},
    "Optimal": {"alpha": [0, -1]},
    "Geometric": {"eta": [0], "gamma": [0, 1, 1.5], "eta_min": [-1]},
    "StepDecay": {"eta": [0], "gamma": [0, 1], "every": [0, 1.5, -3]},
    "readouts.Pocket": {"ratchet": ["yes", 1, None]},
    "Voted": {"max_vectors": [0, -1, 1.5]},
    "Average": {"kind": ["mean"], "start": [0, -1, 1.5]},
}
FAMILIES = (rules.RULES, losses.LOSSES, schedules.SCHEDULES, scheme.READOUTS)
CLASSES: dict[str, type[Parameters]] = {
    {losses.Perceptron: "losses.Perceptron", scheme.Pocket: "readouts.Pocket"}.get(kind, kind.__name__): kind
    for family in FAMILIES
    for kind in family.values()
}
CASES = [(kind, name, value) for kind, names in OUTSIDE.items() for name, values in names.items() for value in values]


def test_the_table_holds_every_parameter() -> None:
    fields = {(owner, field.name) for owner, kind in CLASSES.items() for field in dataclasses.fields(kind)}
    assert {(owner, name) for owner, name, _ in CASES} == fields


@pytest.mark.parametrize(("owner", "name", "value"), CASES)
def test_a_value_outside_its_range(owner: str, name: str, value: Any) -> None:
    kind = CLASSES[owner]
    with pytest.raises(ParameterError, match=r"expected|has no parameter"):
        kind(**{name: value})
    made = kind()
    before = made.get_params()
    with pytest.raises(ParameterError, match=r"expected|has no parameter"):
        made.set_params(**{name: value})
    assert made.get_params() == before


@pytest.mark.parametrize("owner", OUTSIDE)
def test_what_is_no_number(owner: str) -> None:
    kind = CLASSES[owner]
    for field in dataclasses.fields(kind):
        if "limits" in field.metadata:
            for value in (NAN, "1", True, 1j, [1.0], b"1", np.ones(2), 10**400):
                with pytest.raises(ParameterError, match=rf"{kind.__name__}\({field.name}=.*expected a"):
                    kind(**{field.name: value})
            if field.default is not None:
                with pytest.raises(ParameterError, match="expected a"):
                    kind(**{field.name: None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pa3", "rule='pa3' is not a rule; expected one of adadelta, .*sgd, .*or a rule object"),
        ("", "rule='' is not a rule"),
        ("pa1(C=1", "is not a rule"),
        (None, "rule=None is not a rule; expected one of"),
        (5, "rule=5 is not a rule"),
        (rules.PA1, "is not a rule; expected .*object"),
        ("pa1:Q=1", r"pa1 has no parameter 'Q'; it has: .*C, lam"),
        ("pa1:1,2,3", "pa1 has no parameter '3'"),
        ("pa1:C=1,C=2", "C is given twice"),
        ("pa1:1,C=2", "C is given twice"),
        ("pa1:C=0", r"PA1\(C=0\): expected a number > 0"),
        ("pa1:C=1,lam=1", "give C or lam, not both"),
        ("pa1:C=__import__('os')", "expected a number > 0, got str"),
        ("sgd:loss=cubic", "loss='cubic' is not a loss; expected one of absolute"),
        ("sgd:loss=hinge(1)", "hinge has no parameter '1'; it has: none"),
        ("sgd:loss=huber(delta=0)", r"Huber\(delta=0\): expected a finite number > 0"),
        ("sgd:schedule=fast", "schedule='fast' is not a schedule; expected one of constant"),
        ("sgd:schedule=optimal,eta=1", "goes with a schedule .* that has an eta"),
        ("perceptron:strict=true", "never starts from w = 0"),
    ],
)
def test_rules_by_text(text: Any, message: str) -> None:
    for use in (
        lambda: LinearModel(text),
        lambda: LinearClassifier(text).fit([[1.0], [2.0]], [0, 1]),
        lambda: LinearClassifier(text).partial_fit([[1.0]], [0], classes=[0, 1]),
        lambda: LinearClassifier(text).learn_one({"a": 1.0}, "b"),
        lambda: ReferenceLearner(text),
    ):
        with pytest.raises(ParameterError, match=message):
            use()


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"readout": "mean"}, "readout='mean' is not a readout; expected one of average, last"),
    ({"readout": None}, "readout=None is not a readout"),
    ({"readout": "average:start=0"}, r"Average\(start=0\): expected a finite whole number >= 1"),
    *(({"hash_bits": bits}, "expected None or a whole number from 1 to 30") for bits in (0, 31, -1, "4", True, 4.0)),
    *(({"fit_intercept": value}, "fit_intercept=.*: expected True or False") for value in ("yes", 1, None)),
    *(({"bias_in_norm": value}, "bias_in_norm=.*: expected True or False") for value in ("yes", 0, None)),
    *(({"intercept_scaling": v}, "expected a finite number > 0") for v in (0, -1.0, NAN, INF, "1", None, True)),
    ({"rule": "pegasos:project=true", "bias_in_norm": False}, "bias_in_norm must be True"),
]
FIT_OPTIONS: list[tuple[dict[str, Any], str]] = [
    *(({"passes": value}, "passes=.*: expected a whole number >= 1") for value in (0, -1, 1.5, True, "2", None)),
    *(({"shuffle": value}, "shuffle=.*: expected False, True or 'random'") for value in ("yes", 1, None)),
    ({"random_state": "today", "shuffle": True}, "random_state='today': expected None, a whole number"),
]
TASK_OPTIONS: list[tuple[dict[str, Any], str]] = [
    *(({"task": t}, "task=.*: expected one of auto, binary, multiclass") for t in ("regression", "ranking", "x", None)),
    *(({"class_weight": w}, "class_weight=.*: expected None, 'balanced'") for w in ("even", [1, 2], 3)),
    *(({"class_weight": {0: w}}, r"class_weight\[0\]=.*: expected a finite number >= 0") for w in (-1, NAN, "2", None)),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS + FIT_OPTIONS + TASK_OPTIONS)
def test_options_of_the_estimators(options: dict[str, Any], message: str) -> None:
    X, y = np.array([[1.0, 0.5], [2.0, 1.0]]), [0, 1]
    if (options, message) not in TASK_OPTIONS:
        if "rule" not in options:
            assert_refused(LinearRegressor(**options), message, lambda e: e.fit(X, y))
        if (options, message) in OPTIONS:
            with pytest.raises(ParameterError, match=message):
                LinearModel(**options)
    classifier = LinearClassifier(**options)
    assert_refused(classifier, message, lambda e: e.fit(X, y))
    if (options, message) not in FIT_OPTIONS:
        assert_refused(classifier, message, lambda e: e.partial_fit(X, y, classes=[0, 1]))
        assert_refused(classifier, message, lambda e: e.learn_one(X[0], 0))
        assert_refused(classifier, message, lambda e: e.learn_many(X, y))


def assert_refused(estimator: Any, message: str, use: Any) -> None:
    before = dict(vars(estimator))
    with pytest.raises(ParameterError) as caught:
        use(estimator)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert vars(estimator) == before


# -- cells -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "task"), grid.UNDEFINED)
def test_a_rule_is_refused_where_it_is_not_defined(rule: str, task: str) -> None:
    reason = f"is not defined for task='{task}'; (it is for|its losses are)"
    made = grid.make_rule(rule)
    s = stream(task)
    with pytest.raises(ParameterError, match=reason):
        LinearModel(made, task)
    with pytest.raises(ParameterError, match=reason):
        ReferenceLearner(made, task, classes=4)
    if task == "regression":
        assert_refused(LinearRegressor(made), reason, lambda e: e.fit(s.X, s.y))
        assert_refused(LinearRegressor(made), reason, lambda e: e.partial_fit(s.X, s.y))
        assert_refused(LinearRegressor(made), reason, lambda e: e.learn_one(s.X[0], 1.0))
    else:
        assert_refused(LinearClassifier(made, task=task), reason, lambda e: e.fit(s.X, s.y))
        assert_refused(LinearClassifier(made, task=task), reason, lambda e: e.learn_one(s.X[0], s.y[0]))


def test_a_rule_for_two_classes_refuses_the_third() -> None:
    reason = "is not defined for task='multiclass'; it is for binary"
    s = stream("multiclass")
    with pytest.raises(ParameterError, match=reason):
        LinearModel(BinaryOnly(), classes=[1, 2, 3])
    assert_refused(LinearClassifier(BinaryOnly()), reason, lambda e: e.fit(s.X, s.y))
    assert_refused(LinearClassifier(BinaryOnly()), reason, lambda e: e.learn_many(s.X, s.y))
    assert_refused(LinearClassifier(BinaryOnly()), reason, lambda e: e.learn_many(grid.dicts(s.X), s.y))
    for X in (s.X, grid.dicts(s.X)):
        learner = LinearClassifier(BinaryOnly())
        learner.learn_many(X[:2], ["a", "b"])
        before = saved(learner)
        with pytest.raises(ParameterError, match=reason):
            learner.learn_one(X[2], "c")
        with pytest.raises(ParameterError, match=rf"y\[1\]: .*{reason}"):
            learner.learn_many(X[2:5], ["a", "c", "b"])
        assert saved(learner) == before


@pytest.mark.parametrize("task", ["ranking", "structured", "oneclass"])
def test_no_intercept_where_it_cancels(task: str) -> None:
    model = LinearModel("pa", task)
    assert model.fit_intercept is False
    if task == "ranking":
        model.learn_direction(np.array([1.0, 2.0]))
        np.testing.assert_allclose(model.weights()[0], [[0.2, 0.4]])  # ‖φ‖² = 5, no constant in it
    with pytest.raises(ParameterError, match=f"is not supported for task='{task}'.*use False or 'auto'"):
        LinearModel("pa", task, fit_intercept=True)
    assert LinearModel("pa", "multilabel").fit_intercept is True


def test_task_binary_refuses_the_third_class() -> None:
    s = stream("multiclass")
    with pytest.raises(LabelError, match="task='binary' takes two classes, got 4; use task='auto' or 'multiclass'"):
        LinearClassifier(task="binary").fit(s.X, s.y)
    learner = LinearClassifier(task="binary")
    learner.learn_many(s.X[:2], ["a", "b"])
    before = saved(learner)
    with pytest.raises(LabelError, match="takes two classes, got 3"):
        learner.learn_one(s.X[0], "c")
    assert saved(learner) == before


def test_classes_are_declared_once_and_distinct() -> None:
    s = stream("binary")
    with pytest.raises(LabelError, match="classes must be distinct"):
        LinearModel(classes=["a", "a"])
    fresh = LinearClassifier()
    with pytest.raises(LabelError, match="classes must be given in the first call of partial_fit"):
        fresh.partial_fit(s.X, s.y)
    assert vars(fresh) == vars(LinearClassifier())
    fresh.partial_fit(s.X, s.y, classes=["no", "yes"])
    before = saved(fresh)
    with pytest.raises(LabelError, match="differ from the first call's"):
        fresh.partial_fit(s.X, s.y, classes=["no", "yes", "maybe"])
    assert saved(fresh) == before
