"""The progress of a run shows the metric that its column names."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from support.command import onepass, write_regression

from onepass import metrics
from onepass.cli.progress import Bar, Losses
from onepass.metrics import Labels, Outcomes

ROWS = 1024


@pytest.mark.parametrize(("metric", "power"), [("rmse", 2), ("mae", 1)])
def test_the_table_holds_the_metric_of_its_heading(metric: str, power: int, tmp_path: Path) -> None:
    stream = write_regression(tmp_path / "a.svm", ROWS)
    result = onepass("learn", stream, "--task", "regression", "--metrics", metric, "-p", tmp_path / "p")
    assert result.returncode == 0, result.stderr
    truth = np.array([float(line.split()[0]) for line in stream.read_text().splitlines()])
    losses = np.abs(truth - np.loadtxt(tmp_path / "p")) ** power
    lines = result.stderr.splitlines()
    heading = next(number for number, line in enumerate(lines) if line.startswith("average")) + 1
    assert lines[heading].split()[0] == metric
    average, since, counter = lines[heading + 11].split()[:3]
    assert int(counter) == ROWS
    assert float(average) == pytest.approx(np.mean(losses) ** (1 / power), abs=2e-5)
    assert float(since) == pytest.approx(np.mean(losses[ROWS // 2 :]) ** (1 / power), abs=2e-5)
    shown = next(line.split()[1] for line in result.stdout.splitlines() if line.startswith(metric))
    assert float(shown.rstrip(";")) == pytest.approx(float(average), abs=1e-4)  # the summary agrees


def test_the_bar_shows_the_root_of_the_mean_square() -> None:
    bar = Bar(io.StringIO())
    bar.begin(Losses.of(metrics.make("rmse")))
    truth = np.array([1.0, 2.0, 3.0])
    outcomes = Outcomes("numbers", truth, truth + np.array([3.0, 0.0, -3.0]), np.ones(3), labels=Labels())
    bar.add(outcomes, None, None, "")
    assert f"rmse {np.sqrt(6.0):.4f}" in bar._text(bar.began + 1.0, None, "")
