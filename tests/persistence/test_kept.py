"""Files of rules that keep planes: only the features that were met; no weights where they follow from the planes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass import datasets
from onepass.errors import DamagedFileError
from onepass.models.linear import LinearModel


@pytest.mark.parametrize("rule", ["ftrl:lam1=0.5", "ftrl", "adagrad", "vw", "adadelta:absent=exact"])
@pytest.mark.parametrize("readout", ["last", "average"])
def test_what_was_never_met_is_not_stored(rule: str, readout: str, tmp_path: Path) -> None:
    model = LinearModel(rule, hash_bits=16, readout=readout)
    empty = LinearModel.from_state(*model.state())
    rows = list(datasets.SparseText(60))
    met = {int(model._engine.find(name)) for x, _ in rows for name in x}
    for x, y in rows:
        model.learn_one(x, y)
        empty.learn_one(x, y)
    _, arrays = model.state()
    assert arrays["kept"].astype(int).tolist() == sorted(met) and len(met) < 2**16 / 10
    assert ("v" in arrays) == (not rule.startswith("ftrl:lam1"))
    model.save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 8 * 7 * len(met)
    again = LinearModel.load(tmp_path / "m")
    whole, others = model._engine.state(), [again._engine.state(), empty._engine.state()]
    assert all(np.array_equal(whole[name], other[name]) for other in others for name in whole)


def test_weights_that_are_zero_are_none_of_the_named_weights() -> None:
    model = LinearModel("ftrl:lam1=0.1")
    for x, y in datasets.SparseText(200):
        model.learn_one(x, y)
    assert 0 < len(model.named_weights()) < model.n_features
    assert np.count_nonzero(model.weights()[0]) == len(model.named_weights())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("kept", lambda a: a[::-1], "not places of the table"),
        ("kept", lambda a: a + 2**16, "not places of the table"),
        ("kept", lambda a: a + 0.5, "not places of the table"),
        ("kept", lambda a: a - 2**16, "not places of the table"),
        ("kept", lambda a: a * 1e300, "not places of the table"),
        ("planes", lambda a: a[1:], "array 'planes' has shape"),
        ("planes", lambda a: a[:, :1], "array 'planes' has shape"),
        ("planes", lambda a: a * np.inf, "not finite"),
        ("v", lambda a: a[1:], "array 'v' has shape"),
        ("bias_planes", lambda a: a[:, 1:], "array 'bias_planes' has shape"),
    ],
)
def test_parts_that_do_not_fit(name: str, change: object, message: str) -> None:
    model = LinearModel("vw", hash_bits=16)
    for x, y in datasets.SparseText(20):
        model.learn_one(x, y)
    config, arrays = model.state()
    changed = {**arrays, name: change(arrays[name])}  # type: ignore[operator]
    with pytest.raises(DamagedFileError, match=message):
        LinearModel.from_state(config, changed)
    with pytest.raises(DamagedFileError, match="do not fit together"):
        LinearModel.from_state(config, {key: value for key, value in arrays.items() if key != name})


@pytest.mark.parametrize(
    "name", ["LinearRegressor", "OneClass", "KernelClassifier", "ExpertEnsemble", "MultilabelClassifier"]
)
def test_saving_what_was_loaded_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    """Also where rows were learned that scikit-learn was never told of."""
    learner = getattr(op, name)()
    for x in np.random.default_rng(0).normal(size=(20, 3)):
        y = int(x[0] > 0)
        learner.learn_one(x, [y] if name == "MultilabelClassifier" else y)
    learner.save(tmp_path / "once")
    op.load(tmp_path / "once").save(tmp_path / "twice")
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "once").read_bytes()
