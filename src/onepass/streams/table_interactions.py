"""Interactions of the rows of tables and of JSON Lines. A row whose products overflow is a malformed line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import _native
from ..errors import InputError
from ..rows.rows import CSR
from .blocks import BadLine, Block

__all__ = ["crossed"]


def crossed(block: Block, stream: Any, table: Any) -> tuple[Any, Any, Any]:
    """The arrays of the rows with their interactions. Rows whose products are not all finite leave the block."""
    bits = -1 if stream.hash_bits is None else stream.hash_bits
    try:
        rows = _expanded(block.chunk.X, stream.expansion, bits, table)
    except InputError:
        _remove(block, _overflowing(block.chunk.X, stream.expansion))
        rows = _expanded(block.chunk.X, stream.expansion, bits, table)
    if table is not None:
        rows.assign_columns(table)
    return rows.starts, rows.index, rows.value


def _expanded(X: CSR, expansion: Any, bits: int, table: Any) -> Any:
    return expansion.rows(X.indptr, X.indices, X.data, X.table, bits, table)


def _overflowing(X: CSR, expansion: Any) -> dict[int, str]:
    """The rows that cannot be expanded, each with the reason."""
    wrong: dict[int, str] = {}
    for row in range(len(X)):
        try:
            _expanded(X[row : row + 1], expansion, -1, _native.Names())
        except InputError as error:
            wrong[row] = str(error).removeprefix("row 0: ").split(". Nothing")[0]
    return wrong


def _remove(block: Block, wrong: dict[int, str]) -> None:
    """Make the rows in `wrong` malformed lines, in order among those that the block has."""
    keep = np.ones(len(block.chunk), dtype=bool)
    keep[list(wrong)] = False
    before = np.concatenate([[0], np.cumsum(~keep)])  # rows removed before each
    bad = [replace(each, row=each.row - int(before[each.row])) for each in block.bad]
    for row, what in wrong.items():
        line, text = block.line_of(row)
        bad.append(BadLine(row - int(before[row]), line, 0, text, what))
    block.chunk = block.chunk.selected(keep)
    block.bad = sorted(bad, key=lambda each: each.line)
