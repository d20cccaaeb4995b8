"""Copies of a learner, each tested and trained on its part of a stream."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from test_evaluation import STREAM

from onepass import evaluation
from onepass.errors import ParameterError
from onepass.evaluation import distributed
from onepass.models.linear import LinearModel

# -- distributed ------------------------------------------------------------------------------------------------------


class Witness:
    """Remembers what it was trained and tested on, and how heavily."""

    def __init__(self) -> None:
        self.trained: list[tuple[int, float]] = []
        self.tested: list[int] = []

    def predict_one(self, x: int) -> int:
        self.tested.append(x)
        return 0

    def learn_one(self, x: int, y: int, importance: float = 1.0) -> None:
        self.trained.append((x, importance))


def spies(monkeypatch: pytest.MonkeyPatch) -> list[Witness]:
    made: list[Witness] = []
    real = copy.deepcopy

    def spy(thing: Any, *rest: Any) -> Any:
        out = real(thing, *rest)
        if isinstance(thing, Witness):
            made.append(out)
        return out

    monkeypatch.setattr(evaluation.distributed_run.copy, "deepcopy", spy)
    return made


@pytest.mark.parametrize("scheme", ["cv", "split", "bootstrap"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_who_is_tested_and_who_is_trained(scheme: str, deterministic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made = spies(monkeypatch)
    pairs = [(i, i % 2) for i in range(2000)]
    result = distributed(Witness(), pairs, "error", scheme=scheme, copies=5, deterministic=deterministic, seed=3)
    assert len(made) == 5 and result.examples == 2000
    for witness in made:
        trained = [x for x, _ in witness.trained]
        assert sorted([*trained, *witness.tested]) == list(range(2000))  # each example one or the other
        assert trained == sorted(trained) and witness.tested == sorted(witness.tested)
        share = len(witness.tested) / 2000
        expected = {"cv": 0.2, "split": 0.8, "bootstrap": math.exp(-1)}[scheme]
        assert share == pytest.approx(expected, abs=1e-12 if deterministic and scheme != "bootstrap" else 0.04)
    if scheme == "bootstrap":
        weights = [w for witness in made for _, w in witness.trained]
        assert np.mean(weights) == pytest.approx(1 / (1 - math.exp(-1)), abs=0.05) and max(weights) >= 4
    else:
        tested = sorted(x for witness in made for x in witness.tested)
        times = 1 if scheme == "cv" else 4
        assert tested == sorted(list(range(2000)) * times)


def test_a_copy_is_what_it_would_be_alone() -> None:
    result = distributed(LinearModel("pa1"), STREAM, ["error", "auc"], scheme="cv", copies=4, deterministic=True)
    for j, run in enumerate(result.runs):
        model, wrong, tested = LinearModel("pa1"), 0, 0
        for t, (x, y) in enumerate(STREAM):
            if t % 4 == j:
                wrong, tested = wrong + (model.predict_one(x) != y), tested + 1
            else:
                model.learn_one(x, y)
        assert run.value == wrong / tested
    values = [run.value for run in result.runs]
    assert result.mean["error"] == pytest.approx(np.mean(values))
    assert result.std["error"] == pytest.approx(np.std(values, ddof=1))
    assert "mean" in result.table() and "4 copies" in repr(result)


def test_bootstrap_by_repetition_where_there_are_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        def __init__(self) -> None:
            self.heard: list[int] = []

        def predict_one(self, x: int) -> int:
            return 0

        def learn_one(self, x: int, y: int) -> None:
            self.heard.append(x)

    result = distributed(Plain(), [(i, 0) for i in range(500)], scheme="bootstrap", copies=3)
    assert [run.examples for run in result.runs] != [500] * 3
    made = spies(monkeypatch)
    distributed(Witness(), [(i, 0) for i in range(500)], scheme="bootstrap", copies=2, repeat=True)
    assert {w for witness in made for _, w in witness.trained} == {1.0}
    assert len(made[0].trained) > len({x for x, _ in made[0].trained})


@pytest.mark.parametrize("options", [{"scheme": "loo"}, {"copies": 1}, {"seed": -1}, {"metrics": "nothing"}])
def test_bad_options_of_distributed(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        distributed(LinearModel("pa1"), STREAM, **options)
