"""The role of each column of a table: label, weight, id, time, text, feature, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError, ParameterError

__all__ = ["Roles", "words"]

USUAL_LABELS = ("label", "target", "class", "y")
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Roles:
    """The columns that the user named; `resolve` finds them in a table."""

    label: Any = None  # None: the one of USUAL_LABELS that the table has; False: none
    weight: str | None = None
    id: str | None = None
    time: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    ngram: int = 1

    @classmethod
    def of(cls, stream: Any) -> Roles:
        for name in ("label", "weight", "id", "time"):
            value = getattr(stream, name)
            if not (value is None or isinstance(value, str) or (name == "label" and value is False)):
                raise ParameterError(f"{name}={value!r}: expected the name of a column")
        lists = {name: _names(name, getattr(stream, name)) for name in ("features", "drop", "text", "categorical")}
        return cls(
            stream.label, stream.weight, stream.id, stream.time, lists["features"], lists["drop"] or (),
            lists["text"] or (), lists["categorical"] or (), stream.ngram,
        )  # fmt: skip

    def resolve(self, columns: list[str], where: str) -> Roles:
        """The roles with the name of the label. Raises for columns that are missing, or that occur twice."""
        if len(set(columns)) != len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise InputError(
                f"{where}: two columns are called {twice!r}; rename one of them, or for CSV give names with header=[…]"
            )
        label = self.label
        if label is None:
            usual = [name for name in columns if name.lower() in USUAL_LABELS]
            if len(usual) != 1:
                raise InputError(
                    f"{where}: which column is the label? Say label= one of {', '.join(columns[:20])}; "
                    "or label=False where there is none"
                )
            label = usual[0]
        asked = [label or None, self.weight, self.id, self.time, *(self.features or ())]
        for name in (*asked, *self.drop, *self.text, *self.categorical):
            if name is not None and name not in columns:
                raise InputError(f"{where} has no column {name!r}; its columns are {', '.join(columns[:20])}")
        return replace(self, label=label)

    def is_feature(self, name: str) -> bool:
        """Does the column become features (of words, for a text column)?"""
        if name in (self.label, self.weight, self.id, self.time):
            return False
        if self.features is not None and name not in self.features and name not in self.text:
            return False
        return name not in self.drop


def words(name: str, text: str, ngram: int) -> list[str]:
    """Runs of 1 to `ngram` words of a text, each as the feature name=run."""
    found = WORD.findall(text.lower())
    return [f"{name}={' '.join(found[at : at + n])}" for n in range(1, ngram + 1) for at in range(len(found) - n + 1)]


def _names(option: str, given: Iterable[str] | str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{option}={given!r}: expected names of columns")
    return names
