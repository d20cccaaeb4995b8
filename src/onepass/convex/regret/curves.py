"""Regret: the loss of the learner minus that of the best fixed comparator in hindsight, and its theoretical bound.

`op.regret(run)` of a `prequential(…, regret=True)`, `op.regret(game)` of a `convex.play`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...charts.lines import WIDE, Line, line_chart
from ...errors import InputError, ParameterError
from .hindsight import Comparator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Regret", "regret"]

Array = NDArray[np.float64]


@dataclasses.dataclass(eq=False)
class Regret:
    """Curves over t: `loss`, cumulative, of the learner; `best`, of the comparator; `bound` on their difference.

    The comparator is the best of *all* rounds, fixed: `bound` holds for it at every t, so the two curves can be
    compared. `bound` is None if no bound is known; `reason` says why.
    """

    t: NDArray[np.int64]
    loss: Array
    best: Array
    bound: Array | None = None
    comparator: Comparator | None = None
    constants: dict[str, float] = dataclasses.field(default_factory=dict)
    who: str = ""
    what: str = "loss"  # the losses that are compared, for instance "mistakes against hinge loss"
    against: str = ""
    formula: str = ""
    reason: str = ""

    @classmethod
    def of(cls, t: Any, loss: Any, best: Any, bound: Any, **more: Any) -> Self:
        return cls(np.asarray(t, dtype=np.int64), loss, best, None if bound is None else np.asarray(bound), **more)

    @property
    def regret(self) -> Array:
        """Cumulative regret after t rounds."""
        return np.asarray(self.loss - self.best)

    @property
    def average(self) -> Array:
        """Regret per round: R_t / t."""
        return np.asarray(self.regret / self.t)

    @property
    def per_round(self) -> Array:
        """The regret of each round, or of each period between two reports."""
        return np.diff(self.regret, prepend=0.0)

    @property
    def final(self) -> float:
        return float(self.regret[-1])

    def __len__(self) -> int:
        return len(self.t)

    def holds(self, slack: float = 1e-9) -> bool:
        """Is the regret within the bound at every t? Some bounds are attained, so a small relative error is allowed."""
        if self.bound is None:
            raise ParameterError(f"there is no bound to check: {self.reason or 'none is known here'}")
        return bool(np.all(self.regret <= self.bound + slack * np.maximum(1.0, np.abs(self.bound))))

    def thinned(self, points: int = 400) -> Regret:
        """A subset of at most `points` points that includes the last one."""
        if len(self) <= points:
            return self
        at = np.unique(np.linspace(0, len(self) - 1, points).round().astype(np.int64))
        bound = None if self.bound is None else self.bound[at]
        return dataclasses.replace(self, t=self.t[at], loss=self.loss[at], best=self.best[at], bound=bound)

    # -- text, pictures, files ---------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", bound {self.bound[-1]:.6g}"
        return f"Regret({self.final:.6g} after {int(self.t[-1]):,} rounds{bound})"

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """The results, as (name, text)."""
        out = [("regret", f"{self.final:.6g} = {self.loss[-1]:.6g} − {self.best[-1]:.6g}  ({self.what})")]
        out.append(("average", f"{self.average[-1]:.6g} a round over {int(self.t[-1]):,} rounds"))
        if self.bound is not None:
            out.append(("bound", f"{self.bound[-1]:.6g}" + (f"  {self.formula}" if self.formula else "")))
        else:
            out.append(("bound", f"none: {self.reason or 'none is known here'}"))
        if self.constants:
            out.append(("with", ", ".join(f"{name} = {value:.5g}" for name, value in self.constants.items())))
        if self.comparator is not None:
            c = self.comparator
            sure = "exact to rounding" if c.gap <= 1e-8 * max(1.0, abs(c.value)) else f"duality gap {c.gap:.2g}"
            kept = "" if c.attained else "; only approached, by ever longer u"
            out.append(("comparator", f"best in {c.set} by {c.method}: {sure}{kept}"))
        elif self.against:
            out.append(("comparator", self.against))
        return out

    def svg(self, width: int = WIDE, title: str = "regret") -> str:
        """The regret and its bound over t, as inline SVG (in colours of `charts.STYLE`)."""
        thin = self.thinned()
        lines = [Line("regret", thin.t.tolist(), thin.regret.tolist(), 1)]
        if thin.bound is not None:
            lines.append(Line("bound", thin.t.tolist(), thin.bound.tolist(), 2, thin=True))
        return line_chart(lines, title=title, across="rounds", width=width)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """The same with matplotlib."""
        if ax is None:
            from ...errors import MissingDependencyError

            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise MissingDependencyError(
                    "Regret.plot needs matplotlib, which is not installed: pip install onepass[plot]"
                ) from error
            ax = pyplot.figure().add_subplot()
        (drawn,) = ax.plot(self.t, self.regret, label=label or "regret")
        if self.bound is not None:
            ax.plot(
                self.t, self.bound, "--", color=drawn.get_color(), linewidth=1, label=f"{label or ''} bound".strip()
            )
        ax.set_xlabel("rounds")
        ax.set_ylabel("regret")
        ax.legend()
        return ax

    def to_dict(self) -> dict[str, Any]:
        """The results for JSON: with fewer points, and without the coordinates of the comparator."""
        thin = self.thinned()
        comparator = None
        if self.comparator is not None:
            comparator = {**dataclasses.asdict(self.comparator), "u": None}
        return {
            **{name: getattr(thin, name) for name in ("constants", "who", "what", "against", "formula", "reason")},
            "t": thin.t.tolist(),
            "loss": thin.loss.tolist(),
            "best": thin.best.tolist(),
            "bound": None if thin.bound is None else thin.bound.tolist(),
            "comparator": comparator,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        more = {name: content[name] for name in ("constants", "who", "what", "against", "formula", "reason")}
        comparator = content["comparator"]
        made = None if comparator is None else Comparator(**{**comparator, "u": np.empty(0)})
        loss, best = (np.array([math.nan if v is None else v for v in content[name]]) for name in ("loss", "best"))
        return cls.of(content["t"], loss, best, content["bound"], comparator=made, **more)


def regret(of: Any) -> Regret:
    """The regret of a `Run` made with ``prequential(…, regret=True)``, or of a `convex.Game`.

    >>> import onepass as op
    >>> run = op.prequential(op.LinearClassifier("perceptron"), op.datasets.SEA(500, seed=1), regret=True)
    >>> op.regret(run).holds()
    True
    """
    measured = getattr(of, "regret", of)
    if measured is None:
        raise InputError("this run recorded no regret: evaluate with prequential(…, regret=True)")
    found = measured() if callable(measured) else measured
    if isinstance(found, Regret) and found is not of:
        return found
    raise ParameterError(f"regret({of!r:.60}): expected a Run of prequential(…, regret=True) or a convex.Game")
