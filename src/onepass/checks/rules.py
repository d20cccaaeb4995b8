"""`check_rule`: tests whether a rule keeps the promises for every task that it declares. For your own rules; ours are
all tested with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import rules, scheme
from ..errors import InputError, OnepassError, ParameterError
from ..models.linear import LinearModel
from ..models.reference import ReferenceLearner
from ..persistence import store
from ..scheme.rounds import Array, Rule

__all__ = ["check_rule"]

ROUNDS, FEATURES, CLASSES = 120, 7, 4


def check_rule(rule: str | Rule, *, seed: int = 0) -> list[str]:
    """Try a rule in each of its tasks, with each representation and readout; raise AssertionError at the first breach.

    Checked: the native loop agrees with `ReferenceLearner` within 1e-12 (relative); any chunking, and saving and
    loading in the middle, give the same bytes; a NaN is refused and changes nothing. Returns the names of the cells.
    """
    rule = rules.make(rule)
    assert rule.traits.tasks, f"{rule!r} declares no tasks"
    tried = []
    for task in rule.traits.tasks:
        if task not in _STREAMS:
            continue
        for readout in _readouts(rule):
            for shape, present in _REPRESENTATIONS.items():
                if task == "ranking" and shape not in ("rows", "named", "hashed"):
                    continue
                cell = f"{task}, {shape}, {readout}"
                try:
                    _check_cell(rule, task, readout, shape, present, seed)
                except OnepassError as error:
                    raise AssertionError(f"{rule!r} ({cell}): {error}") from error
                tried.append(cell)
    return tried


def _readouts(rule: Rule) -> list[str]:
    """The readouts that the rule supports."""
    admitted = []
    for readout in ("last", "average", "average(kind=post)", "pocket", "voted"):
        try:
            scheme.make_readout(readout, rule)
        except ParameterError:
            continue
        admitted.append(readout)
    return admitted


def _check_cell(rule: Rule, task: str, readout: str, shape: str, present: Callable[..., Any], seed: int) -> None:
    X, y = _STREAMS[task](np.random.default_rng(seed))
    where = f"{rule!r} ({task}, {shape}, {readout})"

    def make() -> LinearModel:
        declared = {"binary": [-1, 1], "multiclass": list(range(CLASSES))}.get(task)
        # 256 columns are few enough for a full covariance, and the hashes of the names do not collide.
        bits = 8 if shape == "hashed" else None
        return LinearModel(
            rule, task, classes=declared, fit_intercept=task != "ranking", readout=readout, hash_bits=bits
        )

    reference = ReferenceLearner(rule, task, classes=CLASSES, fit_intercept=task != "ranking", readout=readout)
    whole, single, resumed = make(), make(), make()
    for row, label in zip(X, y, strict=True):
        reference.learn((row, np.zeros(FEATURES)) if task == "ranking" else row, label)
    _feed(whole, present(X), y, [ROUNDS])
    _feed(single, present(X), y, [1] * ROUNDS)
    half = ROUNDS // 2
    _feed(resumed, present(X)[:half], y[:half], [half])
    resumed = LinearModel.from_state(*store.from_bytes(_bytes(resumed), where)[1:])
    _feed(resumed, present(X)[half:], y[half:], [7] * ROUNDS)

    assert _bytes(whole) == _bytes(single), f"{where}: one call and single rounds end in different bytes"
    assert _bytes(whole) == _bytes(resumed), f"{where}: saving and loading in the middle changes the result"
    scores = np.array([np.atleast_1d(whole.score_one(x)) for x in _singles(present(X))])
    expected = np.array([np.atleast_1d(_score(reference, row, task)) for row in X])
    gap = float(np.max(np.abs(scores - expected)) / max(1.0, float(np.max(np.abs(expected)))))
    assert gap <= 1e-12, f"{where}: the native loop and ReferenceLearner differ by {gap:.3g}"
    before = _bytes(whole)
    broken = np.array(X[:1])
    broken[0, 2] = np.nan
    try:
        _feed(whole, present(broken), y[:1], [1])
    except InputError:
        assert _bytes(whole) == before, f"{where}: a refused NaN changed the model"
    else:
        raise AssertionError(f"{where}: a NaN was learned")


def _score(reference: ReferenceLearner, row: Array, task: str) -> Any:
    return reference.score((row, np.zeros(FEATURES))) if task == "ranking" else reference.score(row)


def _feed(model: LinearModel, X: Any, y: NDArray[Any], sizes: list[int]) -> None:
    start = 0
    for size in sizes:
        rows, labels = X[start : start + size], y[start : start + size]
        if len(labels) == 0:
            return
        if model.task == "ranking":
            for row in _singles(rows):
                model.learn_direction(row)
        elif size == 1:
            model.learn_one(_singles(rows)[0], labels[0].item())
        else:
            model.learn_many(rows, labels)
        start += size


def _singles(rows: Any) -> list[Any]:
    return rows if isinstance(rows, list) else list(rows)


def _bytes(model: LinearModel) -> bytes:
    return store.to_bytes("LinearModel", *model.state())


def _names(X: Array) -> list[dict[str, float]]:
    return [{f"f{j}": float(v) for j, v in enumerate(row) if v != 0.0} for row in X]


_REPRESENTATIONS: dict[str, Callable[[Array], Any]] = {"rows": lambda X: X, "named": _names, "hashed": _names}


def _rows(random: np.random.Generator) -> Array:
    """Rows with zeros, except for the first row: to a rule that forgets, it matters when a feature occurs first."""
    X = random.normal(size=(ROUNDS, FEATURES))
    X[1:] *= random.random((ROUNDS - 1, FEATURES)) < 0.8
    return X


def _binary(random: np.random.Generator) -> tuple[Array, NDArray[Any]]:
    X = _rows(random)
    return X, np.where(X @ random.normal(size=FEATURES) + random.normal(size=ROUNDS) > 0, 1, -1)


def _multiclass(random: np.random.Generator) -> tuple[Array, NDArray[Any]]:
    X = _rows(random)
    return X, np.argmax(X @ random.normal(size=(FEATURES, CLASSES)) + random.normal(size=(ROUNDS, CLASSES)), axis=1)


def _regression(random: np.random.Generator) -> tuple[Array, NDArray[Any]]:
    X = _rows(random)
    return X, X @ random.normal(size=FEATURES) + random.normal(size=ROUNDS)


def _ranking(random: np.random.Generator) -> tuple[Array, NDArray[Any]]:
    # The pairs are separable: with contradicting pairs, weights of some rules (ROMMA) grow without bound.
    X = _rows(random)
    return X * np.where(X @ random.normal(size=FEATURES) < 0, -1.0, 1.0)[:, np.newaxis], np.ones(ROUNDS)


_STREAMS: dict[str, Callable[[np.random.Generator], tuple[Array, NDArray[Any]]]] = {
    "binary": _binary,
    "multiclass": _multiclass,
    "regression": _regression,
    "ranking": _ranking,
}
