"""A new class costs what it adds: no copy of everything that is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onepass as op
from onepass.errors import NumericalError
from onepass.models.lasvm import LasvmModel
from onepass.persistence import store
from onepass.reductions.learners import OnepassLearner, RuleLearner


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("base", ["pa1", op.GaussianNB()], ids=["rule", "own"])
@pytest.mark.parametrize(
    ("reduction", "adds"), [(op.reductions.OneVsAll, lambda k: 1), (op.reductions.OneVsOne, lambda k: k)]
)
def test_a_new_class_of_a_reduction_copies_what_it_adds(
    reduction: Any, adds: Callable[[int], int], base: Any, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {"copy": 0, "snapshot": 0}
    for kind in (RuleLearner, OnepassLearner):
        for name in counted:
            verb = getattr(kind, name)

            def counting(self: Any, name: str = name, verb: Any = verb) -> Any:
                counted[name] += 1
                return verb(self)

            monkeypatch.setattr(kind, name, counting)
    classes = 24
    learner = reduction(base)
    for k in range(classes):
        if many and base == "pa1":
            learner.learn_many([[1.0, k]], [k])
        else:
            learner.learn_one([1.0, float(k)], k)
    assert counted["copy"] == sum(adds(k) for k in range(classes))
    assert counted["snapshot"] <= 2  # of the first row, which says how many columns there are


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_a_new_class_of_lasvm_copies_no_state(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    verb = LasvmModel.__getstate__
    monkeypatch.setattr(LasvmModel, "__getstate__", lambda self: copies.append(1) or verb(self))
    model = LasvmModel(kernel="linear", multiclass=how)
    for k in range(20):
        model.learn_one([1.0, float(k)], k)
    assert len(model.classes) == 20 and len(copies) <= 1  # where one machine of two classes becomes two


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_a_refused_first_row_of_a_class_leaves_lasvm_as_it_was(how: str) -> None:
    model, twin = (LasvmModel(kernel="linear", multiclass=how) for _ in range(2))
    for k in range(6):
        for j in range(3):
            for each in (model, twin):
                each.learn_one([1.0, k + j / 4], k)
        before = store.to_bytes("any", *model.state())
        for rows, labels in (([[1e200, 1e200]], ["new"]), ([[1e200, 0.0], [1.0, 2.0]], ["new", "newer"])):
            with pytest.raises(NumericalError):
                model.learn_many(np.array(rows), labels)
            assert store.to_bytes("any", *model.state()) == before and model.classes == list(range(k + 1))
        with pytest.raises(NumericalError):
            model.learn_many(np.array([[1.0, k], [1e200, 0.0]]), [k, "new"])
        twin.learn_one([1.0, float(k)], k)
        assert store.to_bytes("any", *model.state()) == store.to_bytes("any", *twin.state())
