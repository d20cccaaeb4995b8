"""`Run`: the result of an evaluation, as numbers, text, pictures and files."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import metrics as metrics_module
from ..charts.text import text_table
from ..errors import InputError, MissingDependencyError, ParameterError
from ..metrics import VIEWS
from ..metrics.meters import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..convex.regret.curves import Regret

__all__ = ["Run"]

FORMAT = "onepass run 1"


@dataclasses.dataclass
class Run:
    """The result of a prequential evaluation. `t`, `throughput` and every curve have one entry for each report.

    `curves[metric][view]`, a view being "cumulative" (all examples so far), "since_last" (since the report before),
    "window" (the last `window_size`) or "fading" (the past forgotten at `fading_factor`). `cumulative`, `since_last`,
    `window` and `fading` are those of the first metric, `value` its value over all examples, `values` those of all.

    `holdout` has the metrics on examples never learned, with their own "t". `at_label`, with a delay, is the same run
    judged when the labels came. `regret` is there when it was asked for. `marks` are (t, text), drawn as lines on the
    curves; `mark` adds one.
    """

    metrics: list[str] = dataclasses.field(default_factory=list)
    every: int = 1000
    window_size: int = 1000
    fading_factor: float = 0.999
    unit: str = "examples"  # or "queries"
    examples: int = 0
    weight: float = 0.0
    unlabelled: int = 0  # predicted, but neither judged nor learned
    dropped: int = 0  # examples that waited too long for their label
    late: int = 0  # labels of those
    seconds: float = 0.0  # spent in the model
    values: dict[str, float] = dataclasses.field(default_factory=dict)
    t: list[int] = dataclasses.field(default_factory=list)
    curves: dict[str, dict[str, list[float]]] = dataclasses.field(default_factory=dict)
    throughput: list[float] = dataclasses.field(default_factory=list)
    per_class: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    calibration: dict[str, Any] | None = None
    holdout: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    at_label: Run | None = None
    regret: Regret | None = None  # with prequential(regret=True)
    marks: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    settings: dict[str, str] = dataclasses.field(default_factory=dict)

    # -- numbers ---------------------------------------------------------------------------------------------------

    @property
    def metric(self) -> str:
        """The first metric."""
        return self.metrics[0] if self.metrics else ""

    @property
    def value(self) -> float:
        """The first metric over all examples so far."""
        return self.values.get(self.metric, math.nan)

    @property
    def cumulative(self) -> list[float]:
        return self._curve("cumulative")

    @property
    def since_last(self) -> list[float]:
        return self._curve("since_last")

    @property
    def window(self) -> list[float]:
        return self._curve("window")

    @property
    def fading(self) -> list[float]:
        return self._curve("fading")

    def _curve(self, view: str) -> list[float]:
        return self.curves.get(self.metric, {}).get(view, [])

    @property
    def speed(self) -> float:
        """Examples per second of the model's time."""
        return self.examples / max(self.seconds, 1e-9)

    def __len__(self) -> int:
        return len(self.t)

    def mark(self, t: int, text: str) -> None:
        """Note what happened after t examples, as a drift that was detected."""
        self.marks.append((whole("t", t, least=0), str(text)))

    def frame(self) -> Any:
        """The curves as a pandas frame, or where pandas is not installed as a dict of arrays.

        Columns: t; `metric` (cumulative), `metric_since_last`, `metric_window`, `metric_fading` for each metric;
        examples_per_second.
        """
        columns: dict[str, Any] = {"t": np.array(self.t, dtype=np.int64)}
        for metric in self.metrics:
            for view in VIEWS:
                name = metric if view == "cumulative" else f"{metric}_{view}"
                columns[name] = np.array(self.curves.get(metric, {}).get(view, []), dtype=np.float64)
        columns["examples_per_second"] = np.array(self.throughput, dtype=np.float64)
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    # -- text ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not self.examples:
            return "Run(no examples)"
        values = ", ".join(f"{metric}={self.show(self.values[metric], metric)}" for metric in self.metrics)
        more = f", {self.unlabelled:,} without label" if self.unlabelled else ""
        return f"Run({values}, {self.examples:,} {self.unit}{more}, {len(self)} reports)"

    def __str__(self) -> str:
        return self.table()

    def show(self, value: float, metric: str | None = None) -> str:
        """A value of a metric (by default the first) as people read it."""
        return metrics_module.make(metric or self.metric).show(value)

    def table(self, rows: int = 20) -> str:
        """The reports as text: at most `rows` of them, evenly spread, the last always there."""
        if not self.t:
            return "no examples: the stream was empty"
        return text_table(self.cells(rows))

    def cells(self, rows: int = 20) -> list[list[str]]:
        """The reports as rows of text under a heading. One metric is shown in all views, several in two."""
        views = VIEWS if len(self.metrics) == 1 else ("cumulative", "window")
        columns = [(metric, view) for metric in self.metrics for view in views]
        cells = [["t", *(self.view_title(*column) for column in columns), f"{self.unit}/s"]]
        for i in spread(len(self), whole("rows", rows)):
            values = [self.show(self.curves[metric][view][i], metric) for metric, view in columns]
            cells.append([f"{self.t[i]:,}", *values, f"{self.throughput[i]:,.0f}"])
        return cells

    def view_title(self, metric: str, view: str) -> str:
        if view == "cumulative":
            return metric
        title = {
            "since_last": "since last",
            "window": f"last {self.window_size:,}",
            "fading": f"fading {self.fading_factor:g}",
        }[view]
        return title if len(self.metrics) == 1 else f"{title} {metric}"

    # -- files and pictures ----------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything as one JSON object; what is not a finite number becomes null."""
        content = dataclasses.asdict(dataclasses.replace(self, regret=None))
        content["regret"] = None if self.regret is None else self.regret.to_dict()
        return json.dumps({"format": FORMAT, **_plain(content)}, allow_nan=False)

    def content(self, *, times: bool = True) -> dict[str, Any]:
        """`to_json` as a dict; without `times`, what a clock said is 0, so that equal runs have equal content."""
        content: dict[str, Any] = json.loads(self.to_json())
        return content if times else {**content, "seconds": 0.0, "throughput": [0.0] * len(self.t)}

    @classmethod
    def from_json(cls, text: str) -> Run:
        """The inverse of `to_json`."""
        try:
            content = json.loads(text)
            if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
                raise InputError(f"this is not a run written by to_json: expected format {FORMAT!r}")
            return _run(content)
        except (TypeError, KeyError, AttributeError, json.JSONDecodeError) as error:
            raise InputError(f"this is not a run written by to_json: {error}") from None

    def _repr_html_(self) -> str:
        from .report import fragment

        return fragment(self)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write a report that needs nothing else: one file, no scripts, light and dark, made to be printed too."""
        from .report import write

        write(path, {title or "": self})

    def plot(
        self, ax: Axes | None = None, *, label: str | None = None, metric: str | None = None, view: str = "window"
    ) -> Axes:
        """A metric in one view and cumulative over t, with matplotlib.

        With a `label`, only the view, under that name: to lay several runs over each other.
        """
        metric = metric or self.metric
        if self.metrics and metric not in self.metrics:
            raise ParameterError(f"metric={metric!r} is not in this run; it has {', '.join(self.metrics)}")
        if view not in VIEWS:
            raise ParameterError(f"view={view!r}: expected one of {', '.join(VIEWS)}")
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise MissingDependencyError(
                    "Run.plot needs matplotlib, which is not installed: pip install onepass[plot]"
                ) from error
            ax = pyplot.figure().add_subplot()
        curves = self.curves.get(metric, {})
        if view != "cumulative" or label is not None:
            title = self.view_title(metric, view) if view != "cumulative" else "cumulative"
            ax.plot(self.t, curves.get(view, []), label=label or title)
        if label is None:
            ax.plot(self.t, curves.get("cumulative", []), label="cumulative")
        for t, text in self.marks:
            ax.axvline(t, color="0.5", linestyle=":", linewidth=1)
            ax.annotate(text, (t, 1), xycoords=("data", "axes fraction"), fontsize="small", rotation=90, va="top")
        ax.set_xlabel(self.unit)
        ax.set_ylabel(metric)
        ax.legend()
        return ax


def _run(content: dict[str, Any]) -> Run:
    def numbers(values: list[Any]) -> list[float]:
        return [math.nan if value is None else float(value) for value in values]

    at_label, regret = content.pop("at_label"), content.pop("regret", None)
    run = Run(**content)
    if regret is not None:
        from ..convex.regret.curves import Regret

        run.regret = Regret.from_dict(regret)
    run.values = {name: math.nan if value is None else value for name, value in run.values.items()}
    run.curves = {name: {view: numbers(v) for view, v in views.items()} for name, views in run.curves.items()}
    run.holdout = {name: v if name == "t" else numbers(v) for name, v in run.holdout.items()}
    run.marks = [(int(t), str(text)) for t, text in run.marks]
    run.at_label = None if at_label is None else _run(at_label)
    return run


def _plain(value: Any) -> Any:
    """As JSON holds it; labels of other kinds become text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | type(None)) else str(value)


def spread(n: int, rows: int) -> list[int]:
    """At most `rows` of 0..n−1, evenly spread, n − 1 among them."""
    return sorted({(n * (i + 1)) // min(n, rows) - 1 for i in range(min(n, rows))})
