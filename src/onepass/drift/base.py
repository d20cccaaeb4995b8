"""The base of drift detectors: parameters, a few numbers of state, and an answer for each input."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, InputError, NumericalError
from ..scheme.parameters import Parameters

__all__ = ["Detector"]

LARGEST = 1e100  # the largest |x|: squares, summed over a long stream, do not overflow


@dataclasses.dataclass(repr=False)
class Detector(Parameters):
    """Monitors a stream of numbers, such as the losses of a learner, for changes of its distribution.

    `update(x)` returns True if a change is detected at x; `drift` and `warning` are the last answers. After
    a change a detector starts again with the next number. `n` counts the numbers since then, `seen` all of them, and
    `alarms` the changes. The state depends on the numbers alone, however they are chunked.

    A subclass names the attributes of its state in `slots` and sets them in `begin`. Its `watch(x)` returns whether x
    is a change, and may set `warning`.
    """

    family: ClassVar[str] = "detector"
    name: ClassVar[str] = ""
    slots: ClassVar[tuple[str, ...]] = ()
    unit_interval: ClassVar[bool] = False  # the test is valid only for numbers in [0, 1]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reset()

    def reset(self) -> None:
        """Forget all numbers."""
        self.n = self.seen = self.alarms = 0
        self.drift = self.warning = False
        self.begin()

    def update(self, x: float) -> bool:
        """Learn one number; return True if a change is detected."""
        return self._take(self._number(x))

    def _number(self, x: Any) -> float:
        try:
            value = math.nan if isinstance(x, str | bytes) else float(x)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value) or (self.unit_interval and not 0.0 <= value <= 1.0):
            wanted = "a number from 0 to 1, such as a 0/1 error" if self.unit_interval else "a finite number"
            raise InputError(f"{type(self).__name__}.update({x!r:.60}): expected {wanted}; nothing was counted")
        if abs(value) > LARGEST:
            raise NumericalError(
                f"row 0: {type(self).__name__}.update({x!r:.60}): a number above {LARGEST:g} in size, whose squares "
                "overflow; scale the numbers down"
            )
        return value

    def _take(self, value: float) -> bool:
        if self.drift:
            self.after_drift()
        self.warning = False
        self.n += 1
        self.seen += 1
        self.drift = self.watch(value)
        self.alarms += self.drift
        return self.drift

    def update_many(self, xs: Iterable[float]) -> NDArray[np.intp]:
        """Learn many numbers; return the positions at which changes were detected."""
        values: list[float] = []
        large: NumericalError | None = None
        for row, x in enumerate(xs):  # all or none, except that the numbers before one that is too large are learned
            try:
                value = self._number(x)
            except NumericalError as error:
                large = large or error.at(row)
                continue
            if large is None:
                values.append(value)
        found = np.array([i for i, value in enumerate(values) if self._take(value)], dtype=np.intp)
        if large is not None:
            raise large
        return found

    def after_drift(self) -> None:
        """Forget what was learned before a change: by default everything."""
        self.n = 0
        self.begin()

    def begin(self) -> None:
        """Set the initial state."""
        raise NotImplementedError(f"{type(self).__name__} must define begin()")

    def watch(self, x: float) -> bool:
        raise NotImplementedError(f"{type(self).__name__} must define watch(x)")

    # -- copies and files ------------------------------------------------------------------------------------------

    def fresh(self) -> Self:
        """A new detector with the same parameters."""
        return type(self)(**self.get_params())

    def state(self) -> dict[str, Any]:
        """The state without the parameters, as JSON; an infinity becomes None."""
        counts = {name: getattr(self, name) for name in ("n", "seen", "alarms", "drift", "warning")}
        return {**counts, "own": {name: _saved(getattr(self, name)) for name in self.slots}}

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Restore a state that `state` returned."""
        kinds = {"n": int, "seen": int, "alarms": int, "drift": bool, "warning": bool}
        own = state.get("own")
        if not isinstance(own, Mapping) or set(own) != set(self.slots):
            raise DamagedFileError(f"the state of {self!r} does not have {', '.join(self.slots)}")
        for name, kind in kinds.items():
            if type(state.get(name)) is not kind or state[name] < 0:
                raise DamagedFileError(f"the state of {self!r} has {name}={state.get(name)!r:.40}")
            setattr(self, name, state[name])
        self.begin()
        for name, value in own.items():
            setattr(self, name, _restored(self, name, value, getattr(self, name)))
        return self


def _saved(value: Any) -> Any:
    if isinstance(value, list):
        return [_saved(item) for item in value]
    return None if isinstance(value, float) and math.isinf(value) else value


def _restored(detector: Detector, name: str, value: Any, example: Any) -> Any:
    """The value of a slot, checked to be of the type that `begin` sets; None stands for infinity."""
    if isinstance(example, list) and isinstance(value, list):
        if all(_is_number(item) or (isinstance(item, list) and all(map(_is_number, item))) for item in value):
            return value
    elif value is None and isinstance(example, float) and math.isinf(example):
        return example
    elif _is_number(value) and not isinstance(example, list):
        return value if isinstance(example, int) and isinstance(value, int) else float(value)
    raise DamagedFileError(f"the state of {detector!r} has {name}={value!r:.40}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
