"""The progress of a run: a bar on a terminal, otherwise Vowpal Wabbit's table with lines at powers of two."""

from __future__ import annotations

import dataclasses
import os
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics import Labels, scores
from ..metrics.statistics import MeanLoss

if TYPE_CHECKING:
    from ..metrics import Metric, Outcomes

__all__ = ["Bar", "Display", "Losses", "Table", "display", "memory", "memory_note", "short"]


@dataclasses.dataclass
class Losses:
    """The metric so far, and since the last line."""

    loss: Any
    name: str
    metric: Metric | None = (
        None  # the function from the mean loss to the value, such as the root for rmse; None: the mean is the value
    )
    total: float = 0.0
    weight: float = 0.0
    examples: int = 0

    @classmethod
    def of(cls, metric: Metric) -> Losses:
        """The losses of the metric if it is a mean over examples, otherwise of the error or of |y − ŷ|."""
        statistic = metric.statistic()
        mean = isinstance(statistic, MeanLoss) and statistic.option is None and not metric.higher_is_better
        if mean and metric.kind != "sets":  # hamming divides by the number of labels, which is known only at the end
            assert isinstance(statistic, MeanLoss)
            return cls(statistic.loss, metric.name, metric)
        return cls(*USUAL[metric.kind])

    def each(self, outcomes: Outcomes) -> Any:
        losses = self.loss(outcomes) * outcomes.weight
        return np.where(np.isnan(losses), 0.0, losses)

    @property
    def so_far(self) -> float:
        return self.value(self.total, self.weight)

    def value(self, total: float, weight: float) -> float:
        """The value for a sum of losses; NaN without examples."""
        if self.metric is not None:
            return self.metric.value((total, weight), Labels())
        return total / weight if weight > 0 else float("nan")


def _below_ideal(outcomes: Outcomes) -> Any:
    return 1.0 - scores.query_ndcg(outcomes, np.inf)


# The loss to show where the first metric is not a mean over examples.
USUAL = {
    "classes": (scores.zero_one, "error"),
    "numbers": (scores.absolute, "mae"),
    "sets": (scores.set_unequal, "set err"),
    "rankings": (_below_ideal, "1-ndcg"),
}


class Display:
    """Shows nothing. `starts`: the offsets of the rows' features; `fraction`: the part of the source read, if known."""

    def __init__(self) -> None:
        self.losses: Losses | None = None

    def begin(self, losses: Losses) -> None:
        self.losses = losses

    def state(self) -> dict[str, Any]:
        """The state with which a resumed run continues the display."""
        if self.losses is None:
            return {}
        return {"total": self.losses.total, "weight": self.losses.weight, "examples": self.losses.examples}

    def restore(self, state: dict[str, Any]) -> None:
        if self.losses is not None and state:
            self.losses.total, self.losses.weight = state["total"], state["weight"]
            self.losses.examples = int(state["examples"])

    def add(self, outcomes: Outcomes, starts: Any, fraction: float | None, title: str) -> None:
        pass

    def note(self, text: str) -> None:
        """Show a line of text before the run."""

    def end(self) -> None:
        pass


class Table(Display):
    """One line at 1, 2, 4, 8, … examples, with the columns of VW; or every N examples."""

    def __init__(self, out: Any, every: int | None = None) -> None:
        super().__init__()
        self.out, self.every = out, every
        self.last = (0.0, 0.0)
        self.next = every or 1

    def note(self, text: str) -> None:
        print(text, file=self.out)

    def begin(self, losses: Losses) -> None:
        super().begin(losses)
        print(f"{'average':<9}{'since':<10}{'example':>12}{'example':>13}{'current':>12}{'current':>12}{'current':>9}",
              file=self.out)  # fmt: skip
        print(f"{losses.name:<9}{'last':<10}{'counter':>12}{'weight':>13}{'label':>12}{'predict':>12}{'features':>9}",
              file=self.out)  # fmt: skip

    def state(self) -> dict[str, Any]:
        return {**super().state(), "next": self.next, "last": list(self.last)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if "next" in state:
            self.next, self.last = int(state["next"]), (state["last"][0], state["last"][1])

    def add(self, outcomes: Outcomes, starts: Any, fraction: float | None, title: str) -> None:
        assert self.losses is not None
        losses = self.losses
        each = losses.each(outcomes)
        start = 0
        while start < len(outcomes):
            stop = min(len(outcomes), start + self.next - losses.examples)
            losses.total += float(np.sum(each[start:stop]))
            losses.weight += float(np.sum(outcomes.weight[start:stop]))
            losses.examples += stop - start
            start = stop
            if losses.examples == self.next:
                self._line(outcomes, int(starts[stop] - starts[stop - 1]), stop - 1)
                self.next = self.next + self.every if self.every else 2 * self.next

    def _line(self, outcomes: Outcomes, features: int, row: int) -> None:
        assert self.losses is not None
        losses, (total, weight) = self.losses, self.last
        self.last = (losses.total, losses.weight)
        since = losses.value(losses.total - total, losses.weight - weight) if losses.weight > weight else 0.0
        truth, said = (_format_value(outcomes, column[row]) for column in (outcomes.truth, outcomes.predicted))
        print(f"{_eight(losses.so_far):<9}{_eight(since):<10}{losses.examples:>12}{losses.weight:>13.1f}{truth:>12}{said:>12}"
              f"{features:>9}", file=self.out, flush=True)  # fmt: skip


def _eight(loss: float) -> str:
    """A loss in at most eight characters: six decimals as in VW, or as many digits as fit."""
    if abs(loss) < 9.9999:
        return f"{loss:.6f}"[:8]
    return f"{loss:.6g}" if abs(loss) < 999_999 else f"{loss:.0e}"


def _format_value(outcomes: Outcomes, value: Any) -> str:
    """A label or number in at most eleven characters."""
    if outcomes.kind == "numbers":
        return f"{value:.4f}"
    if outcomes.kind == "sets":
        return f"{int(value)} labels"
    if outcomes.kind == "rankings":
        return f"{np.count_nonzero(~np.isnan(value))} rows" if np.ndim(value) else ""
    label = outcomes.labels.values[int(value)]
    return "unknown" if label is None else str(label)[:11]


class Bar(Display):
    """One line, rewritten a few times a second."""

    def __init__(self, out: Any) -> None:
        super().__init__()
        self.out = out
        self.began = self.shown = monotonic()
        self.width = 0
        self.before = 0  # the examples before the run was resumed
        self.from_fraction: float | None = None
        self.letters = "█░" if (getattr(out, "encoding", "") or "").lower().startswith("utf") else "#-"

    def note(self, text: str) -> None:
        print(text, file=self.out)

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.before = 0 if self.losses is None else self.losses.examples

    def add(self, outcomes: Outcomes, starts: Any, fraction: float | None, title: str) -> None:
        assert self.losses is not None
        self.losses.total += float(np.sum(self.losses.each(outcomes)))
        self.losses.weight += float(np.sum(outcomes.weight))
        self.losses.examples += len(outcomes)
        if fraction is not None and self.from_fraction is None:
            self.from_fraction = 0.0 if not self.before else fraction
        now = monotonic()
        if now - self.shown >= 0.1:
            self.shown = now
            self._write(self._text(now, fraction, title))

    def _text(self, now: float, fraction: float | None, title: str) -> str:
        assert self.losses is not None
        took = max(now - self.began, 1e-9)
        speed = (self.losses.examples - self.before) / took
        parts = [title] if title else []
        if fraction is not None:
            filled = round(12 * min(fraction, 1.0))
            parts.append(f"{self.letters[0] * filled}{self.letters[1] * (12 - filled)} {fraction:4.0%}")
        parts += [
            f"{short(self.losses.examples)} ex",
            f"{short(speed)}/s",
            f"{self.losses.name} {self.losses.so_far:.4f}",
        ]
        gone = fraction - (self.from_fraction or 0.0) if fraction is not None else 0.0
        if fraction is not None and gone > 0:
            left = round(took * (1.0 - fraction) / gone)
            parts.append(f"{left // 60}:{left % 60:02} left")
        parts.append(f"{memory() >> 20} MB")
        return "  ".join(parts)

    def _write(self, text: str) -> None:
        import shutil

        # One column is left free: a full last column wraps on some terminals.
        text = text[: max(shutil.get_terminal_size().columns - 1, 20)]
        self.out.write("\r" + text.ljust(self.width))
        self.out.flush()
        self.width = len(text)

    def end(self) -> None:
        if self.width:
            self.out.write("\r" + " " * self.width + "\r")
            self.out.flush()
            self.width = 0


def display(kind: str, out: Any, every: int | None) -> Display:
    """`kind` as --progress gives it; "auto" is a bar on a terminal."""
    if kind == "auto":
        kind = "bar" if sys.stderr.isatty() and sys.stdout.isatty() else "table"
    return Display() if kind == "none" else Bar(out) if kind == "bar" else Table(out, every)


MUCH = 1e9  # the number of bytes of weights from which on a note is printed


def memory_note(model: Any) -> str:
    """A note about the memory of a large model. The system allocates pages of a hash table when features use them."""
    size = sum(each._engine.table_bytes for each in getattr(model, "members", [model]))
    if size < MUCH:
        return ""
    classes = f" × {len(model.classes):,} classes" if len(model.classes) > 2 else ""
    return f"memory: up to {size / 1e9:.1f} GB of weights ({model.n_features:,} features{classes}), as features come"


def memory() -> int:
    """The memory of this process, in bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_memory()


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    import resource  # on Linux it would count what the process had before it became this program, too

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def short(value: float) -> str:
    """1234567 as 1.23M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
