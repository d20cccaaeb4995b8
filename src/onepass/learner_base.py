"""What learners of ours share: files, copies and sizes that follow from `state`."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

from . import registry
from .errors import checked_parts
from .learner import State
from .parameter_values import decode_all, encode_all, template

__all__ = ["EstimatorBase", "LearnerBase", "array_bytes", "joined", "part"]


class LearnerBase:
    """`save` and `copy` of a learner that has `state` and `from_state`."""

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


class EstimatorBase(LearnerBase):
    """A learner with scikit-learn's parameters. Its state: parameters, what tables looked like, what was learned.

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
        """Raise where a parameter is out of range."""

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


def array_bytes(arrays: Mapping[str, NDArray[Any]]) -> int:
    return sum(int(array.nbytes) for array in arrays.values())


def joined(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The arrays of several learners in one mapping: prefix → arrays becomes "prefix" + name → array."""
    return {prefix + name: array for prefix, arrays in parts.items() for name, array in arrays.items()}


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays under a prefix."""
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
