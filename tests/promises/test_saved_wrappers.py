"""Kernel learners, LASVM and ensembles in pipelines and drift wrappers: what is saved opens and learns on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.reopening import reopened, saved

import onepass as op
from onepass.drift import DriftAdapt, DriftReset
from onepass.transforms import StandardScaler

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

MAKERS = {
    "scaled kernel classifier": lambda: StandardScaler() | op.KernelClassifier(),
    "scaled kernel model": lambda: StandardScaler() | op.KernelModel(),
    "scaled ensemble": lambda: StandardScaler() | op.ExpertEnsemble(),
    "scaled LASVM": lambda: StandardScaler() | op.LaSVMClassifier(),
    "reset kernel classifier": lambda: DriftReset(op.KernelClassifier()),
    "adapted kernel classifier": lambda: DriftAdapt(op.KernelClassifier()),
    "reset LASVM": lambda: DriftReset(op.LaSVMClassifier()),
    "adapted LASVM": lambda: DriftAdapt(op.LaSVMClassifier()),
    "reset ensemble": lambda: DriftReset(op.ExpertEnsemble()),
    "reset pipeline of a kernel classifier": lambda: DriftReset(StandardScaler() | op.KernelClassifier()),
    "pipeline of a reset ensemble": lambda: StandardScaler() | DriftReset(op.ExpertEnsemble()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_saved_opens_and_learns_on(name: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    X = generator.normal(size=(60, 4))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    y[40:] = np.where(y[40:] == "yes", "no", "yes")  # a drift for the wrappers
    model: Any = MAKERS[name]()
    model.learn_many(X[:30], y[:30])
    again = reopened(model, tmp_path)
    for each in (model, again):
        each.learn_many(X[30:], y[30:])
    assert list(again.predict_many(X)) == list(model.predict_many(X))
    assert saved(again, tmp_path) == saved(model, tmp_path)


def test_kinds_are_siblings() -> None:
    for kind in (op.KernelClassifier, op.LaSVMClassifier, op.ExpertEnsemble):
        assert not issubclass(kind, op.LinearClassifier)
    assert not issubclass(op.KernelRegressor, op.LinearRegressor)
    assert not issubclass(op.KernelModel, op.LinearModel)
