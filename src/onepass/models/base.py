"""The base classes of learners: a lock, and `save`, `copy` and `nbytes`, which are derived from `state`."""

from __future__ import annotations

import copy
import functools
import os
import types
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from numpy.typing import NDArray

from .. import _native
from ..errors import checked_parts
from ..learner import State
from ..persistence import registry
from .parameter_values import decode_all, encode_all, template

__all__ = ["EstimatorBase", "LearnerBase", "array_bytes", "joined", "locked", "part", "restore", "unlocked"]

F = TypeVar("F", bound=Callable[..., Any])


def locked(verb: F) -> F:
    """Make a method hold its learner's lock. `LearnerBase` does this for all public methods."""
    made = _native.locked(verb)
    functools.update_wrapper(made, verb)
    return made  # type: ignore[no-any-return]


def unlocked(verb: F) -> F:
    """Mark a public method that takes the lock itself."""
    verb.__unlocked__ = True  # type: ignore[attr-defined]
    return verb


class LearnerBase:
    """A lock, and `save` and `copy`, of a learner that has `state` and `from_state`.

    Public methods and properties of a subclass hold the lock while they run, so that what one thread learns, another
    one sees whole or not at all. A learner inside another one has its own lock, which is always taken second.
    """

    __slots__ = ("_lock",)  # not in `__dict__`, which is pickled, and restored when a call is refused
    _lock: _native.Lock
    _state_is_copy: ClassVar[bool] = (
        False  # True if `__getstate__` returns copies, which share nothing with the learner
    )

    def __new__(cls, *_given: Any, **_named: Any) -> Self:
        made = super().__new__(cls)
        made._lock = _native.Lock()
        return made

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        _lock_verbs(cls)

    def _join(self, lock: _native.Lock) -> None:
        """Use the lock of the learner that this learner is part of."""
        self._lock = lock

    @property
    def _risky(self) -> bool:
        """Might an ordinary example be refused, for what the weights have become?"""
        return False

    def state(self) -> State:
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner and all that it has learned; `onepass.load` resumes bit for bit."""
        registry.save(self, path)

    def copy(self) -> Self:
        """An independent learner in the same state."""
        return copy.deepcopy(self)

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned."""
        return array_bytes(self.state()[1])

    def __getstate__(self) -> Any:  # `object.__getstate__` refuses some classes with slots
        return super().__getstate__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with self._lock:
            parts: Any = super().__reduce_ex__(4)
            kind, given, state = parts[:3]
            made: Self = kind(*given)
            memo[id(self)] = made
            _set_state(made, state if self._state_is_copy else copy.deepcopy(state, memo))
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """For pickle, which reads the state after this call: return a copy, which no other thread changes."""
        with self._lock:
            parts: Any = super().__reduce_ex__(protocol)
            kind, given, state, *more = parts
            return kind, given, state if self._state_is_copy else copy.deepcopy(state), *more


del LearnerBase.__slots__  # pickle and scikit-learn would use a method of this name


def _set_state(made: Any, state: Any) -> None:
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state:
        made.__dict__.update(state)


def _lock_verbs(cls: type) -> None:
    """Make the public methods and properties that the class defines hold the lock."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") or name == "traits":  # these depend on the parameters only
            continue
        if isinstance(value, types.FunctionType) and not hasattr(value, "__unlocked__"):
            setattr(cls, name, locked(value))
        elif isinstance(value, property) and value.fget is not None:
            setattr(cls, name, value.getter(locked(value.fget)))


_lock_verbs(LearnerBase)


def restore(owner: Any, before: Mapping[str, Any]) -> None:
    """Restore an object's attributes. At no moment is one missing."""
    now = owner.__dict__
    now.update(before)
    for name in now.keys() - before.keys():
        del now[name]


class EstimatorBase(LearnerBase):
    """A learner with scikit-learn's parameters. Its state: the parameters, the columns of tables, what was learned.

    A subclass defines `_learned_state` (None where nothing was learned) and `_resume`, its inverse.
    """

    def _learned_state(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        raise NotImplementedError

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        raise NotImplementedError

    def _attributes(self) -> dict[str, Any]:
        raise NotImplementedError

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise if a parameter is out of range."""

    def _parameter_state(self) -> dict[str, Any]:
        return encode_all(template(self))

    @classmethod
    def _from_parameters(cls, config: Mapping[str, Any]) -> Self:
        return cls(**decode_all(config))

    def state(self) -> State:
        """Everything, as a configuration that JSON can hold, and arrays; `from_state` resumes bit for bit."""
        learned, arrays = self._learned_state()
        return {"params": self._parameter_state(), "fitted": self._attributes(), "learned": learned}, arrays

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], **given: Any) -> Self:
        """The estimator that `state` described. `given` replaces parameters that no file can hold."""
        with checked_parts(f"the {cls.__name__}"):
            params, fitted, learned = (config[part] for part in ("params", "fitted", "learned"))
            if not isinstance(params, dict) or not isinstance(fitted, dict):
                raise TypeError("params and fitted must be mappings")
            made = cls._from_parameters({name: value for name, value in params.items() if name not in given})
            if missing := sorted(template(made).keys() - params):
                raise TypeError(f"{', '.join(missing)} is missing")
            for name, value in given.items():
                setattr(made, name, value)
            made._check_parameters()
            made._set_attributes(fitted)
            if learned is not None:
                if not isinstance(learned, dict):
                    raise TypeError("learned must be a mapping")
                made._resume(learned, dict(arrays))
            elif arrays:
                raise TypeError("there are arrays, but nothing was learned")
        return made


def read_count(config: Mapping[str, Any], name: str) -> int:
    """A number of a file that counts something."""
    value = config[name]
    if type(value) is not int or not 0 <= value <= 2**53:
        raise TypeError(f"{name} must be a whole number >= 0, not {value!r:.40}")
    return value


def array_bytes(arrays: Mapping[str, NDArray[Any]]) -> int:
    return sum(int(array.nbytes) for array in arrays.values())


def joined(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The arrays of several learners in one mapping: prefix → arrays becomes "prefix" + name → array."""
    return {prefix + name: array for prefix, arrays in parts.items() for name, array in arrays.items()}


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays under a prefix."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
