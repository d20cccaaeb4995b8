"""The cells: of each family a pairwise cover of its axes.

What is impossible, the families say; what a learner refuses though it could be tried is a cell whose record is the
error.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

from golden import other_families as other
from golden import scheme_families as scheme
from golden.cover import Choice, cover


@dataclasses.dataclass(frozen=True)
class Cell:
    """One value for each axis; "-" where its family has no such axis."""

    learner: str = "-"
    rule: str = "-"
    task: str = "-"
    form: str = "-"
    readout: str = "-"
    budget: str = "-"
    kernel: str = "-"
    detector: str = "-"
    base: str = "-"
    wrapper: str = "-"
    way: str = "-"
    event: str = "-"
    weights: str = "-"
    option: str = "-"

    @property
    def name(self) -> str:
        return " | ".join(value for value in dataclasses.astuple(self) if value != "-")


FAMILIES: dict[str, tuple[Mapping[str, Sequence[str]], Callable[[Choice], bool]]] = {
    "linear": (scheme.LINEAR, scheme.linear_possible),
    "malformed": (scheme.MALFORMED, scheme.linear_possible),
    "kernel": (scheme.KERNEL, scheme.kernel_possible),
    "lasvm": (scheme.LASVM, scheme.lasvm_possible),
    "ensemble": (scheme.ENSEMBLE, scheme.ensemble_possible),
    "wrapped": (scheme.WRAPPED, scheme.wrapped_possible),
    "stateful": (other.STATEFUL, other.stateful_possible),
    "refused row": (other.REFUSED_ROW, scheme.taught),
    "reduction": (other.REDUCTION, other.reduction_possible),
    "drift": (other.DRIFT, other.drift_possible),
    "transform": (other.TRANSFORM, other.transform_possible),
    "structured": (other.STRUCTURED, scheme.taught),
    "documents": (other.DOCUMENTS, other.documents_possible),
}


PLAIN = {"form": "csr", "way": "many", "event": "none", "weights": "ones"}
# Combinations that the covers leave out, tried once each: what they raise is recorded.
REFUSED = (
    Cell(
        learner="linear model",
        rule="pa1:C=0.1",
        task="binary",
        wrapper="scaled",
        readout="last",
        **{**PLAIN, "way": "then"},
    ),
    Cell(learner="linear", rule="kalman:q=0.05,r=2", task="binary", readout="last", **PLAIN),
    Cell(learner="linear", rule="arow:lam=0.5", task="binary", readout="voted", **PLAIN),
    Cell(learner="linear", rule="fobos:lam1=0.05", task="binary", readout="average", **PLAIN),
    Cell(learner="linear", rule="alma", task="binary", readout="last", option="bias free", **PLAIN),
    Cell(learner="kernel", rule="arow:lam=0.5", task="binary", kernel="rbf", budget="unlimited", **PLAIN),
    Cell(learner="kernel", rule="pa", task="multiclass", kernel="rbf", budget="forgetron:B=6", **PLAIN),
    Cell(learner="kernel", rule="pa", task="binary", kernel="linear", budget="merge:B=6", **PLAIN),
    Cell(
        learner="kernel",
        rule="pa",
        task="binary",
        kernel="own function",
        budget="unlimited",
        **{**PLAIN, "form": "named"},
    ),
    Cell(learner="lasvm", task="binary", kernel="own function", **{**PLAIN, "form": "named"}),
    Cell(learner="DriftReset", task="regression", detector="ddm", base="pa1", **PLAIN),
    Cell(learner="StandardScaler", task="none", **PLAIN),
    Cell(learner="MinMaxScaler", task="none", **PLAIN),
    Cell(learner="PolynomialFeatures", task="none", **PLAIN),
    Cell(learner="OneHotEncoder", task="none", **PLAIN),
)


@functools.cache
def cells() -> dict[str, tuple[Cell, ...]]:
    """Family → its cells."""
    covered = {
        family: tuple(Cell(**choice) for choice in cover(axes, possible))
        for family, (axes, possible) in FAMILIES.items()
    }
    return {**covered, "refused": REFUSED}
