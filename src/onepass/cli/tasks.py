"""The task of a stream, which --task, the rule or the first labels decide, and its metrics and model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LabelError, ParameterError

if TYPE_CHECKING:
    from ..scheme.rounds import Rule

__all__ = ["FEW", "as_labels", "decide", "new_model", "usual_metrics"]

FEW = 20  # the most different whole numbers in the first chunk that are taken for classes
METRICS = {
    "regression": ["mae", "rmse"],
    "oneclass": ["excess", "above"],
    "multilabel": ["hamming", "set_error"],
    "ranking": ["ndcg"],
}


def decide(y: NDArray[Any], rule: Rule) -> tuple[str, str]:
    """The task for `LinearModel`, and the reason. "auto" is classification with classes that grow."""
    admitted = rule.traits.tasks
    classifies, regresses = "binary" in admitted, "regression" in admitted
    if not classifies or not regresses:
        if not classifies and not regresses:
            raise LabelError(f"{rule!r} is for {', '.join(admitted)}, which this command does not learn")
        return ("auto" if classifies else "regression"), f"{rule.name} is for nothing else"
    if y.dtype.kind not in "iuf":
        return "auto", "the labels are words"
    distinct = np.unique(y, return_index=True)[0]  # return_index avoids the import of numpy.ma
    if len(distinct) <= 2:
        return "auto", "two different labels" if len(distinct) == 2 else "one label so far"
    if len(distinct) <= FEW and bool(np.all(distinct == np.floor(distinct))):
        return "auto", f"{len(distinct)} different whole numbers"
    return "regression", f"{len(distinct):,} different numbers"


def as_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Labels of classes. 1.0 becomes 1 even if other labels are not numbers, so that chunks do not matter."""
    if y.dtype.kind not in "fO":
        return y
    if y.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            integers = y.astype(np.int64)
        if bool(np.all(integers == y)) and bool(np.all(np.abs(y) < 2**53)):
            return integers
    out = np.empty(len(y), dtype=object)
    out[:] = [int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 2**53 else v for v in y.tolist()]
    return out


def usual_metrics(task: str) -> list[str]:
    """The default of --metrics."""
    return METRICS.get(task, ["error"])


def new_model(rule: Any, task: str, **options: Any) -> Any:
    """A model with a rule, or with several ("auto"). The default threshold is calibrated if the rule supports it."""
    from ..models.linear import LinearModel

    if rule == "auto":
        from ..models.ensemble import EnsembleModel

        return EnsembleModel(task=task, **options)
    if task == "multilabel" and "threshold" not in options:
        try:
            return LinearModel(rule, task, threshold="calibrated", **options)
        except ParameterError:
            pass
    return LinearModel(rule, task, **options)
