"""Reductions as files hold them: parameters, damage, forgery."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support.reduction_grid import (
    LABELS,
    NAN,
    REDUCTIONS,
    STREAM,
    Counts,
    saved,
)
from test_reductions_promises import learned

import onepass as op
from onepass import LinearClassifier, LinearModel, rules
from onepass.errors import (
    DamagedFileError,
    ForeignFileError,
    OnepassError,
    ParameterError,
)
from onepass.persistence import store
from onepass.reductions import (
    CostSensitive,
    ErrorCorrectingOutputCodes,
    FilterTree,
    ImportanceSampling,
    OneVsAll,
    OneVsOne,
)

# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        OneVsAll(rules.PA1(C=0.25)),
        OneVsOne("pa1:C=0.25", classes=["x", "y", "z"]),
        OneVsAll(LinearModel("pa1", readout="average", fit_intercept=False, hash_bits=6)),
        OneVsAll(LinearClassifier(rules.SGD(loss="logistic"), readout="average", hash_bits=6)),
        ErrorCorrectingOutputCodes(code=[[1, 1], [1, -1], [-1, 1]], classes=["x", "y", "z"], decoding="hamming"),
        ErrorCorrectingOutputCodes(code="random", bits=3, classes=("x", "y", "z"), seed=9),
        FilterTree(ImportanceSampling(rules.PA1(), c_max=2.0), classes=np.array(["x", "y", "z"])),
        CostSensitive(OneVsAll(LinearClassifier("pa2")), method="expansion"),
        ImportanceSampling(OneVsOne(), c_max=3, samples=2),
    ],
    ids=lambda model: re.sub(r"\s+", " ", re.sub(" at 0x.*", "", repr(model)))[:60],
)
def test_files_hold_the_parameters(model: Any, tmp_path: Path) -> None:
    x = [{"a": 1.0}, {"b": 1.0}, {"c": 1.0, "a": -1.0}]
    for _ in range(4):
        model.learn_many(x, ["x", "y", "z"])
    model.save(tmp_path / "r.onepass")
    again = op.load(tmp_path / "r.onepass")
    assert (type(again) is type(model) and repr(again.base) == repr(model.base)) or isinstance(model.base, LinearModel)
    assert [again.predict_one(each) for each in x] == [model.predict_one(each) for each in x]
    for each in (model, again):
        each.learn_many(x, ["z", "y", "x"])
    assert saved(again) == saved(model)
    again.save(tmp_path / "s.onepass")
    model.save(tmp_path / "r.onepass")
    if not isinstance(getattr(model, "classes", None), (tuple, np.ndarray)):
        assert (tmp_path / "r.onepass").read_bytes() == (tmp_path / "s.onepass").read_bytes()


def test_what_scikit_learn_adds_survives_a_file(tmp_path: Path) -> None:
    X, y = load_iris(as_frame=True, return_X_y=True)
    model = OneVsAll().fit(X, y)
    model.save(tmp_path / "r.onepass")
    again = op.load(tmp_path / "r.onepass")
    assert again.n_features_in_ == 4 and list(again.feature_names_in_) == list(X.columns)
    assert again.classes_.dtype == y.to_numpy().dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    row = X.iloc[0].to_dict()
    assert again.predict_one(row) == model.predict_one(row) == model.predict_one(X.iloc[0].to_numpy())


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "r.onepass"
    model = learned("ovo")
    model.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFileError):
        op.load(path)
    for kind, message in (("reduction", "unreleased version"), ("Popen", "kind 'Popen'")):
        with pytest.raises(ForeignFileError, match=message):
            op.load(written(path, kind, *model.state()))
    with pytest.raises(DamagedFileError):
        op.load(written(path, "OneVsAll", *model.state()))  # one base for each pair of labels
    with pytest.raises(ParameterError, match=r"cannot hold .*Counts"):
        OneVsAll(Counts()).fit(STREAM.X, STREAM.y).save(path)


def test_a_reduction_that_has_learned_nothing_is_saved(tmp_path: Path) -> None:
    model = OneVsAll("pa2:C=0.5", classes=LABELS)
    model.save(tmp_path / "r.onepass")
    again = op.load(tmp_path / "r.onepass")
    for each in (model, again):
        each.learn_many(STREAM.X, STREAM.y)
    assert saved(again) == saved(model)


def changed(config: dict[str, Any], keys: list[Any], value: Any) -> dict[str, Any]:
    out = json.loads(json.dumps(config))
    at = out
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return out


@pytest.mark.parametrize("name", REDUCTIONS)
def test_forged_files_do_not_load(name: str, tmp_path: Path) -> None:
    """A checksum detects damage, not a forger: parts that do not fit together are refused too."""
    path = tmp_path / "r.onepass"
    learned(name).save(path)
    kind, config, arrays = store.read(path)
    forgeries: list[tuple[list[Any], Any]] = [
        (["learned", "labels"], [10, 20, 30]),
        (["learned", "labels"], [10, 20, 30, 30]),
        (["learned", "labels"], 7),
        (["learned", "declared"], False),
        (["learned", "t"], -1),
        (["learned", "t"], "many"),
        (["learned", "columns"], "few"),
        (["learned", "names"], ["a"]),
        (["learned", "bases"], config["learned"]["bases"][:-1]),
        (["learned", "bases"], [*config["learned"]["bases"], config["learned"]["bases"][0]]),
        (["learned", "bases", 0, "task"], "ranking"),
        (["learned", "bases", 0], {}),
        (["learned"], None),
        (["params", "base"], {"learner": "Popen", "params": {}}),
        (["params", "base"], {"learner": "StandardScaler", "params": {}}),
        (["params", "base"], {"type": "rule:Evil", "params": {}}),
        (["params", "colour"], "red"),
        (["params"], {}),
        (["fitted"], 3),
    ]
    for keys, value in forgeries:
        if keys[-1] == "task" and "bases" in config["learned"]["bases"][0]:
            continue
        if keys[-1] == "labels" and value == [10, 20, 30] and name in ("sampled", "expansion", "expansion-ova"):
            value = [10, 20, 30, 50]
        forged = changed(config, keys, value)
        assert forged != config
        with pytest.raises(OnepassError):
            op.load(written(path, kind, forged, arrays))
    for other in ("LinearClassifier", "LinearModel", "Pipeline", "StandardScaler", "Popen"):
        with pytest.raises(OnepassError):
            op.load(written(path, other, config, arrays))
    first = next(key for key in arrays if key.endswith("/v"))
    for key, array in ((first, arrays[first][:-1]), (first, arrays[first] * NAN), ("999/v", arrays[first])):
        with pytest.raises(OnepassError):
            op.load(written(path, kind, config, {**arrays, key: array}))
    with pytest.raises(OnepassError):
        op.load(written(path, kind, config, {key: value for key, value in arrays.items() if key != first}))
    op.load(written(path, kind, config, arrays))


def written(path: Path, kind: str, config: Any, arrays: Any) -> Path:
    store.write(path, kind, config, arrays)
    return path
