"""Tables as text."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["text_table"]


def text_table(cells: Sequence[Sequence[str]], *, left: int = 0) -> str:
    """Columns of text under their headings; the first `left` columns are aligned left, the others right."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        columns = zip(row, widths, strict=True)
        line = (cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(columns))
        lines.append("  ".join(line).rstrip())
    return "\n".join(lines)
