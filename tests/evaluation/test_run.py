"""What a `Run` shows: tables, HTML, JSON, frames, plots."""

from __future__ import annotations

import builtins
import json
import sys
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra
from test_evaluate import Perceptron

from onepass.datasets import SEA
from onepass.errors import InputError, MissingDependencyError, OnepassError, ParameterError
from onepass.evaluation import Run, prequential


def test_the_table_reads_well() -> None:
    run = prequential(Perceptron(), SEA(1234), every=500)
    lines = run.table().splitlines()
    assert lines[0].split() == ["t", "error", "since", "last", "last", "1,000", "fading", "0.999", "examples/s"]
    assert [line.split()[0] for line in lines[1:]] == ["500", "1,000", "1,234"]
    assert f"{run.value:.2%}" in lines[-1]
    assert len({len(line) for line in lines}) == 1
    assert str(run) == run.table()
    assert repr(run) == f"Run(error={run.value:.2%}, 1,234 examples, 3 reports)"

    long = prequential(Perceptron(), SEA(1000), every=1)
    assert len(long.table(rows=7).splitlines()) == 8
    assert long.table().splitlines()[-1].split()[0] == "1,000"
    with pytest.raises(ParameterError, match="rows"):
        long.table(rows=0)


def test_html_and_json() -> None:
    run = prequential(Perceptron(), SEA(1000), ["error", "kappa"], every=300)
    run.mark(600, "drift")
    page = run._repr_html_()
    assert page.count("<tr>") == 5 and f"<td>{run.window[-1]:.2%}</td>" in page
    content = json.loads(run.to_json())
    assert content["t"] == [300, 600, 900, 1000] and content["curves"]["error"]["window"] == run.window
    again = Run.from_json(run.to_json())
    assert again == run and again.marks == [(600, "drift")]
    for bad in ("", "[]", "{}", run.to_json()[:-5], run.to_json().replace("run 1", "run 9")):
        with pytest.raises(InputError, match="not a run"):
            Run.from_json(bad)


def test_a_run_as_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    run = prequential(Perceptron(), SEA(1000), ["error", "f1:average=macro"], every=300)
    frame = run.frame()
    assert frame["t"].tolist() == run.t
    assert frame["f1:average=macro_since_last"].tolist() == run.curves["f1:average=macro"]["since_last"]
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    plain = run.frame()
    assert list(plain) == list(frame.columns) and isinstance(plain, dict)
    np.testing.assert_array_equal(plain["error"], run.cumulative)


def test_plot() -> None:
    figure = require_extra("matplotlib.figure")
    run = prequential(Perceptron(), SEA(1000), every=300)
    ax = figure.Figure().add_subplot()
    assert run.plot(ax) is ax
    assert [line.get_ydata().tolist() for line in ax.get_lines()] == [run.window, run.cumulative]
    one = run.plot(figure.Figure().add_subplot(), label="mine")
    assert [line.get_label() for line in one.get_lines()] == ["mine"]


def test_plot_makes_its_own_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra("matplotlib").use("Agg")
    from matplotlib import pyplot

    ax = prequential(Perceptron(), SEA(100), every=30).plot()
    assert len(ax.get_lines()) == 2
    pyplot.close(ax.figure)


def test_plot_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *args, **kwargs)

    run = prequential(Perceptron(), SEA(100))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install onepass\[plot\]") as caught:
        run.plot()
    assert isinstance(caught.value, OnepassError) and isinstance(caught.value, ImportError)
