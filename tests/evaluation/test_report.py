"""Reports and charts: self-contained, escaped, true to the numbers, whatever the numbers are."""

from __future__ import annotations

import html.parser
import math
import re
from pathlib import Path
from typing import Any

import pytest

from onepass import LinearClassifier, Run, prequential
from onepass.charts.lines import Line, calibration_chart, compact, line_chart, nice_ticks
from onepass.datasets import SEA
from onepass.errors import ParameterError
from onepass.evaluation import report


class Checker(html.parser.HTMLParser):
    """Every tag that is opened is closed; nothing comes from elsewhere."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            assert name not in ("src", "href") and not name.startswith("on"), (tag, name)
            assert name == "xmlns" or "//" not in (value or ""), (tag, name, value)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == [] and "script" not in checker.tags and "nan" not in re.sub(r"[a-z]*nan[a-z]+", "", page)
    return checker


def a_run(**options: Any) -> Run:
    model = LinearClassifier("sgd:loss=logistic")
    return prequential(model, SEA(3000), ["error", "log_loss"], every=500, **options)


def test_a_report_has_everything_and_needs_nothing(tmp_path: Path) -> None:
    run = a_run(holdout=10)
    run.mark(1500, "drift <here>")
    run.to_html(tmp_path / "report.html", title="Tea & <cake>")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    checker = checked(page)
    text = " ".join(checker.text)
    for wanted in ("Tea & <cake>", "drift <here>", "held out", "Calibration", "Classes", "Settings", "SEA", "log_loss"):
        assert wanted in text, wanted
    for value in (f"{run.values['error']:.2%}", f"{run.values['log_loss']:.4g}", f"{run.per_class[0]['f1']:.2%}"):
        assert value in text
    assert checker.tags.count("svg") >= 4
    assert "prefers-color-scheme: dark" in page and "@media print" in page and "url(" not in page
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert len(page) < 400_000


def test_marks_do_not_cover_each_other() -> None:
    """Words that would lie on others are left out; beyond twenty, the marks are short and counted."""
    curve = [Line("", list(range(101)), [float(t) for t in range(101)])]
    few = line_chart(curve, title="", marks=[(50, "drift"), (10, "drift"), (11, "drift"), (99, "drift")])
    assert few.count('class="mark"') == 4 and few.count(">drift</text>") == 3
    many = line_chart(curve, title="", marks=[(t, "drift") for t in range(30)] + [(101, "later")])
    assert many.count('class="mark many"') == 30 and many.count('class="marked"') == 1 and ">drift × 30</text>" in many


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    run = a_run()
    monkeypatch.setattr(report.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        run.to_html(path)
    assert path.read_text() == "old" and [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        run.to_html(tmp_path / "nowhere" / "report.html")


def test_several_runs_are_compared_best_first() -> None:
    stream = SEA(3000)
    runs = {rule: prequential(LinearClassifier(rule), stream, every=500) for rule in ("perceptron", "pa1:C=0.01")}
    checker = checked(report.page(runs))
    text = "\n".join(checker.text)
    best, worst = sorted(runs, key=lambda rule: runs[rule].value)
    assert text.index(best) < text.index(worst)
    with pytest.raises(ParameterError, match="at least one"):
        report.page({})


def test_what_a_notebook_shows() -> None:
    checked(a_run()._repr_html_())
    assert "no examples" in Run()._repr_html_()
    checked(report.page({"": Run()}))


@pytest.mark.parametrize(
    "values",
    [
        [0.5],
        [0.3, 0.3, 0.3],
        [0.0, 0.0],
        [math.nan, 0.2, math.nan, 0.4, 0.5],
        [1e-12, 1e12],
        [-5.0, 3.0],
        [math.inf, 1.0],
    ],
)
def test_curves_of_any_shape(values: list[float]) -> None:
    chart = line_chart([Line("a", range(1, len(values) + 1), values)], title="t")
    checked(chart)
    points = [
        float(y)
        for path in re.findall(r' d="M([^"]+)"', chart.split("</div>")[1])
        for y in re.findall(r" ([\d.]+)", path)
    ]
    assert points and all(0 <= y <= 280 for y in points)


def test_a_curve_without_numbers_says_so() -> None:
    assert "nothing to draw" in line_chart([Line("a", [1, 2], [math.nan, math.nan])], title="t")
    assert "nothing to draw" in line_chart([], title="t")


def test_the_values_are_under_the_pointer() -> None:
    chart = line_chart([Line("mine", [10, 20], [0.25, 0.5])], title="t", show=lambda value: f"{value:.0%}")
    assert "mine 25%" in chart and "mine 50%" in chart and "20 examples" in chart


def test_long_curves_are_thinned_but_keep_their_end() -> None:
    chart = line_chart([Line("", list(range(1, 5001)), [1.0] * 5000)], title="t")
    assert chart.count('class="place"') == 160 and "5,000 examples" in chart


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.13, 0.17), (3.0, 3.0), (-2.0, 9.0), (1e-9, 2e-9), (0.0, 0.0)])
def test_ticks_are_round_and_cover(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low + 1e-12 and ticks[-1] >= high - 1e-12 and 2 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))


def test_numbers_for_people() -> None:
    assert [compact(v) for v in (0, 999, 1500, 2e6, 3e9)] == ["0", "999", "1.5k", "2M", "3G"]
    checked(calibration_chart([0.1, 0.9], [0.2, 0.8], [5, 10], title="t", across="p"))
