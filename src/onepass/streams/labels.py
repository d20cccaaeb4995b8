"""The kind of the labels of a stream: numbers, strings or truth values, never mixed."""

from __future__ import annotations

from typing import Any

from .chunk import LABELS

__all__ = ["LabelKind"]

NUMBERS, STRINGS, TRUTH_VALUES = LABELS


class LabelKind:
    """The kind of the first label of the stream, which all later labels must have."""

    def __init__(self, before: str) -> None:
        """`before`: the kind of the earlier labels, if the stream is resumed; otherwise the empty text."""
        self.kind = before
        self.where = "in the rows before"

    def take(self, kind: str, where: str = "") -> bool:
        """Have all earlier labels this kind?"""
        if not self.kind:
            self.kind, self.where = kind, where or self.where
        return self.kind == kind


def kind_of(label: Any) -> str:
    """The kind of a number, string or truth value."""
    return STRINGS if isinstance(label, str) else TRUTH_VALUES if isinstance(label, bool) else NUMBERS


def kind_of_column(type: Any) -> str | None:
    """The kind of the labels in an Arrow column; None if it cannot hold labels, the empty text if all are missing."""
    from pyarrow import types

    if types.is_dictionary(type):
        type = type.value_type
    if types.is_null(type):
        return ""
    if types.is_integer(type) or types.is_floating(type):
        return NUMBERS
    if types.is_string(type) or types.is_large_string(type):
        return STRINGS
    return TRUTH_VALUES if types.is_boolean(type) else None
