"""Interactions of the rows of tables and of JSON Lines. A row whose products overflow is a malformed line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from .parts import BadLine

if TYPE_CHECKING:
    from .tables import Coded

__all__ = ["crossed"]


def crossed(coded: Coded, stream: Any, table: Any) -> tuple[Any, Coded]:
    """Rows with their interactions, and the labels of those whose products are all finite."""
    bits = -1 if stream.hash_bits is None else stream.hash_bits
    try:
        rows = _expanded(coded, stream.expansion, bits, table)
    except InputError:
        coded = _without(coded, _overflowing(coded, stream.expansion))
        rows = _expanded(coded, stream.expansion, bits, table)
    if table is not None:
        rows.assign_columns(table)
    return rows, coded


def _expanded(coded: Coded, expansion: Any, bits: int, table: Any) -> Any:
    return expansion.rows(coded.starts, coded.codes, coded.values, coded.names, bits, table)


def _overflowing(coded: Coded, expansion: Any) -> dict[int, str]:
    """The rows that cannot be expanded, each with the reason."""
    wrong: dict[int, str] = {}
    for row in range(len(coded.y)):
        low, high = coded.starts[row : row + 2].tolist()
        starts = np.array([0, high - low], dtype=np.int32)
        try:
            expansion.rows(starts, coded.codes[low:high], coded.values[low:high], coded.names, -1, _native.Names())
        except InputError as error:
            wrong[row] = str(error).removeprefix("row 0: ").split(". Nothing")[0]
    return wrong


def _without(coded: Coded, wrong: dict[int, str]) -> Coded:
    """The other rows; the rows in `wrong` become bad lines, in order among those there already are."""
    keep = np.ones(len(coded.y), dtype=bool)
    keep[list(wrong)] = False
    before = np.concatenate([[0], np.cumsum(~keep)])  # rows left out before each
    bad = [replace(each, row=each.row - int(before[each.row])) for each in coded.bad]
    for row, what in wrong.items():
        line, text = coded.line_of(row)
        bad.append(BadLine(row - int(before[row]), line, 0, text, what))
    counts = np.diff(coded.starts)
    elements = np.repeat(keep, counts)

    def some(column: NDArray[Any] | None) -> Any:
        return None if column is None else column[keep]

    return replace(
        coded,
        starts=np.concatenate([[0], np.cumsum(counts[keep])]).astype(np.int32),
        codes=coded.codes[elements],
        values=coded.values[elements],
        y=some(coded.y),
        weight=some(coded.weight),
        id=some(coded.id),
        time=some(coded.time),
        bad=sorted(bad, key=lambda each: each.line),
    )
