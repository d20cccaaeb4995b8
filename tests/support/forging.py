"""Model files as a forger writes them: the container is well formed, but numbers, shapes, words or nesting are not."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onepass.checks.streams import streams_for
from onepass.errors import OnepassError
from onepass.persistence import registry, store

JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 2**15, 2**27, 2**31, 2**53 + 1, 2**63, 10**30, 0.5, -0.5, 1e308, 5e-324,
    "", "x", "0", "pa1", "\0", [], [[]], [0], {}, {"a": 1}, {"tuple": [1]}, {"array": [1], "dtype": "O"},
    {"learner": "LinearModel", "params": {}}, {"type": "rule:PA1", "params": {}},
]  # fmt: skip
NUMBERS = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    -1.0,
    0.5,
    1.0,
    2.0,
    1e9,
    2.0**31,
    2.0**53,
    2.0**63,
    1e300,
    -1e300,
    5e-324,
]


def places(config: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a configuration but the whole."""
    inside = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    for key, value in inside:
        yield (*at, key)
        yield from places(value, (*at, key))


def inside(config: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        config = config[key]
    return config


def change_config(rng: np.random.Generator, config: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Another value, a value of another place, a number nearby, a key less or more, an item twice."""
    at = list(places(config))
    place = at[rng.integers(len(at))]
    parent, key, old = inside(config, place[:-1]), place[-1], inside(config, place)
    kind = rng.integers(6)
    if kind == 0 and isinstance(old, (int, float)) and not isinstance(old, bool):
        parent[key] = [old + 1, old - 1, -old, 2 * old, float(old), str(old)][rng.integers(6)]
    elif kind == 1:
        parent[key] = copy.deepcopy(inside(config, at[rng.integers(len(at))]))
    elif kind == 2:
        del parent[key]
    elif kind == 3 and isinstance(parent, list):
        parent.append(copy.deepcopy(old))
    elif kind == 4 and isinstance(old, list):
        rng.shuffle(old)
    else:
        parent[key] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])


def change_array(rng: np.random.Generator, config: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Another number, shape, type or length; an array less, or in the place of another."""
    if not arrays:
        return
    names = sorted(arrays)
    name = names[rng.integers(len(names))]
    array = arrays[name]
    kind = rng.integers(9)
    if kind < 4 and array.size:
        flat, at = array.reshape(-1), rng.integers(array.size)
        with np.errstate(all="ignore"):
            value = np.array([NUMBERS[rng.integers(len(NUMBERS))]]).astype(array.dtype)[0]
        flat[at] = value if kind < 3 else flat[rng.integers(array.size)]
        arrays[name] = flat.reshape(array.shape)
    elif kind == 4:
        del arrays[name]
    elif kind == 5:
        arrays[name] = arrays[names[rng.integers(len(names))]].copy()
    elif kind == 6:
        others = [np.float32, np.int64, np.uint8, np.bool_, np.float64, np.int8]
        with np.errstate(all="ignore"), contextlib.suppress(ValueError):
            arrays[name] = np.nan_to_num(array.astype(np.float64)).astype(others[rng.integers(len(others))])
    elif kind == 7:
        shapes = [(0,), (array.size,), (1, array.size), (array.size, 1), (array.size, 0), (), (1, 1, array.size)]
        shape = shapes[rng.integers(len(shapes))]
        arrays[name] = np.resize(array, shape) if array.size or 0 in shape else np.zeros(shape, array.dtype)
    else:
        longer = array.shape[0] + int(rng.integers(-2, 3)) if array.ndim else 1
        if array.ndim and array.size and longer >= 0:
            arrays[name] = np.resize(array, (longer, *array.shape[1:]))


def change_size(rng: np.random.Generator, config: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Another length wherever an array has one, and wherever a number says so: the parts may still fit together."""
    sizes = sorted({n for array in arrays.values() for n in array.shape if n})
    if not sizes:
        return
    old = sizes[rng.integers(len(sizes))]
    new = [0, 1, old - 1, old + 1, 2 * old, old + 40][rng.integers(6)]
    for name in sorted(arrays):
        array = arrays[name]
        for axis, length in enumerate(array.shape):
            if length == old and rng.random() < 0.9:
                array = np.take(array, np.arange(new) % old, axis=axis)
        if array.dtype.kind == "f" and rng.random() < 0.5:
            array = np.where(array == old, new, array).astype(array.dtype)
        arrays[name] = array
    for place in list(places(config)):
        if type(inside(config, place)) is int and inside(config, place) == old and rng.random() < 0.5:
            inside(config, place[:-1])[place[-1]] = new


CHANGES: list[Callable[..., None]] = [change_config, change_config, change_array, change_array, change_size]


def forged(rng: np.random.Generator, config: dict[str, Any], arrays: dict[str, Any]) -> tuple[Any, Any]:
    """A state with a few changes."""
    config = copy.deepcopy(config)
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(1 + int(rng.integers(3))):
        change = CHANGES[rng.integers(len(CHANGES))]
        if config:
            change(rng, config, arrays)
    return config, arrays


@contextlib.contextmanager
def ours_alone() -> Iterator[None]:
    """Only what we raise on purpose may come out of a learner."""
    try:
        yield
    except OnepassError:
        pass
    except AttributeError as error:  # a forger may take a pipeline's last step
        if "has no model at its end" not in str(error):
            raise


class Forge:
    """A learner that has learned, its state as a file has it, and examples to go on with."""

    def __init__(self, learner: Any, form: int = 0, values: str | None = None) -> None:
        streams = streams_for(dataclasses.replace(learner.traits, values=values or learner.traits.values))
        self.kind = registry.kind_of(learner)
        self.examples = streams[form % len(streams)].examples[:12]
        for x, y in self.examples:
            self._learn(learner, x, y)
        _, self.config, self.arrays = store.from_bytes(store.to_bytes(self.kind, *learner.state()), "state")

    @staticmethod
    def _learn(learner: Any, x: Any, y: Any) -> None:
        learner.learn_one(x, y) if learner.traits.supervised else learner.learn_one(x)

    def file(self, rng: np.random.Generator) -> bytes | None:
        """The bytes of a forged file; None where no container could hold it."""
        try:
            return store.to_bytes(self.kind, *forged(rng, self.config, self.arrays))
        except (OnepassError, ValueError):
            return None

    def use(self, learner: Any) -> None:
        """What one does with a learner that was loaded. Only errors of ours may come of it."""
        for x, y in self.examples[:3] if hasattr(learner, "learn_one") else ():
            for verb in ("predict_one", "score_one", "predict_proba_one", "transform_one"):
                if not callable(getattr(learner, verb, None)):
                    continue
                with ours_alone():
                    getattr(learner, verb)(x)
            with ours_alone():
                self._learn(learner, x, y)
        with contextlib.suppress(OnepassError):
            store.to_bytes(registry.kind_of(learner), *learner.state())

    def stretch(self, learner: Any) -> None:
        """Rows that are wider, narrower or of another form than those learned, and a label that never came."""
        for x, y in self.examples[:2] if hasattr(learner, "learn_one") else ():
            for other in _others(x):
                for verb in ("predict_one", "transform_one"):
                    if callable(getattr(learner, verb, None)):
                        with ours_alone():
                            getattr(learner, verb)(other)
                with ours_alone():
                    self._learn(learner, other, y)
            if isinstance(y, str):
                with ours_alone():
                    self._learn(learner, x, y + "?")


def _others(x: Any) -> list[Any]:
    if isinstance(x, dict):
        named = {**x, **{f"new{j}": 0.5 for j in range(9)}}
        return [named, np.ones(40)]
    row = x.toarray().reshape(-1) if hasattr(x, "toarray") else np.asarray(x)
    return [np.concatenate([row, np.ones(40)]), row[:1].copy(), {"f0": 1.0, "f99": 2.0}]
