"""Learners that react to drift, or forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.estimator_checks import NOT_ONLINE, assert_checks_pass
from support.extras import require_extra
from support.grid import csr, dicts

import onepass
from onepass import GaussianNB, LinearClassifier, LinearRegressor, datasets
from onepass.drift import (
    DDM,
    HDDMW,
    Detector,
    DriftAdapt,
    DriftFade,
    DriftReset,
    DriftWindow,
    make_detector,
)
from onepass.errors import DamagedFileError, InputError, NumericalError

# -- learners that listen ----------------------------------------------------------------------------------------------


def jumping(n: int = 1600, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """The labels turn around in the middle."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n, d))
    y = (X @ np.arange(1.0, d + 1) > 0) ^ (np.arange(n) >= n // 2)
    return X, y.astype(np.int64)


LEARNERS = {
    "reset": lambda **more: DriftReset(LinearClassifier("pa1:C=0.1", readout="average"), **more),
    "reset, ddm, average": lambda **more: DriftReset(
        LinearClassifier("perceptron", readout="average"), detector="ddm", **more
    ),
    "adapt": lambda **more: DriftAdapt(LinearClassifier("pa1:C=0.01", readout="average"), **more),
    "adapt, hddmw": lambda **more: DriftAdapt(
        LinearClassifier("perceptron", readout="average"), detector=HDDMW(), warning=None, grace=20, **more
    ),
}
FORGETTING = {
    "window": lambda **more: DriftWindow(LinearClassifier("pa1:C=0.1", readout="average"), window=300, **more),
    "window of four": lambda **more: DriftWindow(GaussianNB(), window=250, learners=4, **more),
    "fade": lambda **more: DriftFade(LinearClassifier("pa1:C=0.1", readout="average"), horizon=150, **more),
}


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("name", [*LEARNERS, *FORGETTING])
@pytest.mark.parametrize("form", ["dense", "csr", "named"])
def test_the_same_bytes_however_the_data_arrives(name: str, form: str, tmp_path: Path) -> None:
    make: Any = {**LEARNERS, **FORGETTING}[name]
    X, y = jumping()
    shape: Any = {"dense": X, "csr": csr(X), "named": dicts(X)}[form]
    n = len(y)

    def feed(model: Any, start: int, stop: int) -> None:
        model.learn_many(shape[start:stop], y[start:stop])

    ways = {}
    ways["whole"] = make()
    feed(ways["whole"], 0, n)
    ways["singly"] = make()
    for i in range(n):
        ways["singly"].learn_one(shape[i], int(y[i]))
    ways["chunks, saved between"] = model = make()
    for start in range(0, n, 233):
        feed(model, start, min(start + 233, n))
        model.save(tmp_path / "m")
        model = ways["chunks, saved between"] = onepass.load(tmp_path / "m")
    written = {}
    for way, each in ways.items():
        each.save(tmp_path / way)
        written[way] = (tmp_path / way).read_bytes()
    assert len(set(written.values())) == 1
    if name in LEARNERS:
        drifts = ways["whole"].drifts_
        assert any(n // 2 <= t < n // 2 + 250 for t in drifts) and len(drifts) == ways["whole"].n_drifts_
    assert np.mean(ways["whole"].predict_many(shape[-200:]) == y[-200:]) > 0.8


@pytest.mark.parametrize("name", [*LEARNERS, "window", "fade"])
def test_scikit_learns_checks(name: str) -> None:
    make: Any = {**LEARNERS, **FORGETTING}[name]
    # Its short steps lead to the same labels either way, all that the check compares.
    assert_checks_pass(make(), () if name == "adapt" else NOT_ONLINE)


def test_a_watched_learner_recovers_where_a_static_one_does_not() -> None:
    X, y = jumping(4000)
    base = LinearClassifier("perceptron", readout="average")
    late = {}
    for name, model in {"static": base, "reset": DriftReset(base), "adapt": DriftAdapt(base)}.items():
        run = onepass.prequential(model, [(X, y)], every=500)
        late[name] = run.since_last[-1]
    assert late["static"] > 0.3
    assert late["reset"] < 0.1 and late["adapt"] < 0.1


@pytest.mark.parametrize(("window", "learners"), [(100, 2), (90, 4), (7, 3), (1, 2)])
def test_a_window_is_a_learner_of_the_last_examples(window: int, learners: int) -> None:
    """Its answers are those of a fresh learner that saw the last `memory_` examples, which lie within the promise."""
    X, y = jumping(400)
    model = DriftWindow("pa1", window=window, learners=learners)
    step = -(-window // (learners - 1))
    for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        model.learn_one(x, label)
        assert min(i + 1, window) <= model.memory_ <= step * learners
        if i % 41 == 0:
            fresh = LinearClassifier("pa1")
            for at in range(i + 1 - model.memory_, i + 1):
                fresh.learn_one(X[at], int(y[at]))
            assert np.array_equal(model.predict_many(X[:50]), fresh.predict_many(X[:50]))
    assert model.memory_ < 250


def test_fading_learners_have_the_ages_that_are_promised() -> None:
    """An example a old is known to a part e^(-a/horizon) of the learners; their answer is a vote, or a mean."""
    X, y = jumping(3000)
    model = DriftFade("perceptron", horizon=200, learners=60, seed=3)
    model.partial_fit(X, y, classes=[0, 1])
    ages = np.array(model.ages_)
    for a in (100, 200, 400):
        part = np.exp(-a / 200)
        assert abs(np.mean(ages > a) - part) < 4 * np.sqrt(part * (1 - part) / 60)
    votes = np.array([learner.predict_many(X[:100]) for learner in model.learners_])
    assert np.array_equal(model.predict(X[:100]), (votes.mean(axis=0) > 0.5).astype(int))
    numbers = DriftFade(LinearRegressor("sgd:loss=squared,eta=0.01"), horizon=200, learners=5)
    numbers.partial_fit(X, X @ [1.0, 2.0, 3.0, 4.0])
    means = np.mean([learner.predict_many(X[:9]) for learner in numbers.learners_], axis=0)
    np.testing.assert_allclose(numbers.predict(X[:9]), means)


def test_learners_that_forget_recover() -> None:
    X, y = jumping(4000)
    base = LinearClassifier("perceptron", readout="average")
    for model in (DriftWindow(base, window=300), DriftFade(base, horizon=300)):
        assert onepass.prequential(model, [(X, y)], every=500).since_last[-1] < 0.1


@pytest.mark.parametrize("make", [lambda: DriftWindow("pa1", window=100), lambda: DriftFade("pa1", horizon=100)])
def test_bad_input_and_forged_files_of_learners_that_forget(make: Any, tmp_path: Path) -> None:
    X, y = jumping()
    model = make()
    model.partial_fit(X[:950], y[:950], classes=[0, 1])
    model.save(tmp_path / "before")
    broken = X[900:1100].copy()
    broken[177, 1] = np.inf
    with pytest.raises(InputError):
        model.partial_fit(broken, y[900:1100])
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    large = X[900:1100].copy()
    large[177] = 1e200  # too large to square: the rows before it are learned
    with pytest.raises(NumericalError) as told:
        model.partial_fit(large, y[900:1100])
    assert told.value.row == 177 and model.t_ == 950 + 177
    kind, config, arrays = onepass.persistence.store.read(tmp_path / "before")  # type: ignore[attr-defined]
    for since in ([], "x", [0, -1], [0] * 30, [10**6] * len(config["learned"]["since"])):
        forged = {**config, "learned": {**config["learned"], "since": since}}
        onepass.persistence.store.write(tmp_path / "forged", kind, forged, arrays)  # type: ignore[attr-defined]
        with pytest.raises(DamagedFileError):
            onepass.load(tmp_path / "forged")


def test_regression_and_a_river_base() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = np.where(np.arange(1200) < 600, 1.0, -1.0) * (X @ [1.0, 2.0, 3.0])
    model = DriftReset(LinearRegressor("sgd:loss=squared,eta=0.01", readout="average"))
    model.partial_fit(X, y)
    assert any(600 <= t < 750 for t in model.drifts_)
    linear = require_extra("river.linear_model")
    X, y = jumping()
    watched = DriftReset(linear.Perceptron(), detector="ddm")
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        watched.learn_one(x, bool(label))
    assert isinstance(watched.learners_[0], linear.Perceptron)


def test_bad_input_leaves_a_watched_learner_as_it_was(tmp_path: Path) -> None:
    X, y = jumping()
    model = DriftAdapt("perceptron")
    model.partial_fit(X[:900], y[:900], classes=[0, 1])
    model.save(tmp_path / "before")
    broken = X[900:1000].copy()
    broken[77, 1] = np.nan
    with pytest.raises(InputError):
        model.partial_fit(broken, y[900:1000])
    with pytest.raises(InputError):
        model.learn_one(broken[77], 0)
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_detector_state_in_files_is_checked(tmp_path: Path) -> None:
    model = DriftReset("pa1", detector=DDM(warm=7))
    X, y = jumping()
    model.partial_fit(X, y, classes=[0, 1])
    model.save(tmp_path / "m")
    again = onepass.load(tmp_path / "m")
    assert again.detector == DDM(warm=7) and again.drifts_ == model.drifts_
    assert again.detector_.state() == model.detector_.state()
    kind, config, arrays = onepass.persistence.store.read(tmp_path / "m")  # type: ignore[attr-defined]
    for key, value in (("background", 2), ("drifts", [-1]), ("changes", "x"), ("detectors", [])):
        forged = {**config, "learned": {**config["learned"], key: value}}
        onepass.persistence.store.write(tmp_path / "forged", kind, forged, arrays)  # type: ignore[attr-defined]
        with pytest.raises(DamagedFileError):
            onepass.load(tmp_path / "forged")


def test_drifts_are_marked_on_a_run() -> None:
    stream = datasets.Switch(
        datasets.SEA(4000, thresholds=(3,), noise=0), datasets.SEA(4000, thresholds=(14,), noise=0)
    )
    model = DriftReset("perceptron", detector="hddma")
    run = onepass.prequential(model, stream, every=500)
    assert [t for t, text in run.marks if text == "drift"] == [t + 1 for t in model.drifts_]
    assert any(2000 <= t < 2200 for t, _ in run.marks)
    # A detector beside any learner, on its errors.
    run = onepass.prequential(LinearClassifier("perceptron", readout="average"), stream, every=500, drift="hddma")
    assert any(2000 <= t < 2300 for t, _ in run.marks)
    one_by_one = onepass.prequential(
        LinearClassifier("perceptron", readout="average"), list(stream), every=500, drift="hddma"
    )
    assert one_by_one.marks == run.marks
    assert isinstance(make_detector("hddma"), Detector)
