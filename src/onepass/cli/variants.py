"""``--tune``: the variant of each rule that is best on the first examples continues. All in one pass."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from .compare import Entry
    from .source_options import SourceOptions

__all__ = ["Tuning", "as_json"]


class Tuning:
    """The number of examples that decide, and the decision."""

    def __init__(self, text: str, reading: SourceOptions) -> None:
        self.examples = self.left = _examples(text, reading)
        self.over = False
        self.tried: dict[str, dict[str, float]] = {}  # for each rule as given: its variants and their results

    def choose(self, entries: list[Entry], higher: bool) -> list[int]:
        """The index of each rule's best variant (the first of equals; an overflowed one only if all overflowed)."""
        self.over, self.examples = True, max(entry.loop.recording.added for entry in entries)
        best: dict[str, tuple[float, int]] = {}
        for i, entry in enumerate(entries):
            value = entry.so_far()
            self.tried.setdefault(entry.asked, {})[entry.name] = value
            cost = math.inf if value != value else -value if higher else value
            if entry.asked not in best or cost < best[entry.asked][0]:
                best[entry.asked] = (cost, i)
        return [i for _, i in best.values()]

    def words(self) -> str:
        variants = sum(len(each) for each in self.tried.values())
        return f"parameters: of {variants} variants those that did best on the first {self.examples:,}"


def _examples(text: str, reading: SourceOptions) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    if match is None or float(match[1]) <= 0 or (match[2] and float(match[1]) > 100):
        raise click.UsageError(f"--tune {text}: expected a number of examples, or a share such as 10%")
    if not match[2]:
        return max(1, int(float(match[1])))
    if "-" in reading.sources:
        raise click.UsageError("--tune: standard input has no length to take a share of; give a number of examples")
    counted = sum(len(chunk.labelled()) for chunk in reading.stream(on_error="skip").batches())
    return max(1, math.ceil(counted * float(match[1]) / 100))


def as_json(value: float) -> float | None:
    return value if math.isfinite(value) else None
