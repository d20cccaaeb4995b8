"""`onepass reproduce`: cells are kept and resumed, missing data is named, the files say what the runs gave."""

from __future__ import annotations

import json
import re
import signal
import time
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from support.command import onepass, process, started

from onepass import budgets, datasets, kernels, rules
from onepass.cli import main
from onepass.errors import ParameterError
from onepass.estimators.kernel import KernelClassifier
from onepass.reproduce import (
    Check,
    Experiment,
    NotRun,
    Report,
    Result,
    Results,
    Spread,
    cross_validation,
    experiments,
    find,
    learners,
    mnist_lasvm,
    run,
    sets,
    table1,
)
from onepass.reproduce.pages import write
from onepass.reproduce.runner import FinishedRuns, chosen

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/reproduce.md"
EXPERIMENTS = experiments()

# Every run leaves a line in calls.txt: how often a cell was computed can be counted.
SLOW = """
import os, time
from pathlib import Path
from onepass.reproduce import Experiment, Report

HERE = Path(__file__).parent

class Slow(Experiment):
    name, title, protocol, seeds = "slow", "a test", "Wait, then count.", 2

    def cells(self, quick):
        return [{"letter": letter, "size": size} for letter in "ab" for size in (1, 2, 3)]

    def run(self, cell, seed, quick):
        with open(HERE / "calls.txt", "a") as file:
            file.write(f"{cell['letter']}{cell['size']} {seed} {os.getpid()}\\n")
        time.sleep(float(os.environ.get("SLOW", 0)))
        return {"value": cell["size"] + 10 * seed}

    def report(self, results):
        return Report(str(sum(len(r.runs) for r in results)) + " runs")

experiment = Slow()
"""


def slow(folder: Path) -> Path:
    path = folder / "slow.py"
    path.write_text(SLOW)
    return path


def calls(folder: Path) -> list[list[str]]:
    path = folder / "calls.txt"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


# -- cells ---------------------------------------------------------------------------------------------------------


def test_a_killed_run_leaves_no_workers_and_resumes_where_it_was(tmp_path: Path, monkeypatch: Any) -> None:
    path, kept = slow(tmp_path), tmp_path / "out/cells/slow"
    monkeypatch.setenv("SLOW", "0.4")
    child = started("reproduce", path, "--jobs", 2, "--out", tmp_path / "out")
    limit = time.monotonic() + 60
    while (len(list(kept.glob("*.json"))) < 3 or len(pids(tmp_path)) < 2) and time.monotonic() < limit:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)
    workers = pids(tmp_path)
    assert len(workers) == 2  # they ran side by side
    while any(alive(pid) for pid in workers) and time.monotonic() < limit:
        time.sleep(0.02)
    assert not any(alive(pid) for pid in workers)
    finished = {path.name for path in kept.glob("*.json")}
    assert 3 <= len(finished) < 12

    before = len(calls(tmp_path))
    monkeypatch.setenv("SLOW", "0")
    done = process("reproduce", path, "--jobs", 2, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert len(calls(tmp_path)) - before == 12 - len(finished)
    page = json.loads((tmp_path / "out/slow.json").read_text())
    assert [r["ours"]["value"]["mean"] for r in page["results"]] == [6, 7, 8, 6, 7, 8]
    assert "12 runs" in done.stdout


def pids(folder: Path) -> set[int]:
    return {int(call[2]) for call in calls(folder)}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_interrupted_run_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SLOW", "5")
    child = started("reproduce", slow(tmp_path), "--jobs", 2, "--out", tmp_path / "out")
    limit = time.monotonic() + 60
    while not calls(tmp_path) and time.monotonic() < limit:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, words = child.communicate(timeout=60)
    assert (child.returncode, words) == (130, "0 of 12 runs\nonepass: interrupted\n")


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    experiment = find(str(slow(tmp_path)))
    kept = tmp_path / "cells"
    run(experiment, kept, seeds=1, jobs=1)
    assert len(calls(tmp_path)) == 6
    run(experiment, kept, seeds=2, jobs=1)  # only the new seed
    assert len(calls(tmp_path)) == 12
    files = sorted(kept.glob("*.json"))
    files[0].write_text(files[0].read_text()[:-5])  # cut short
    files[1].write_text(files[2].read_text())  # another cell's
    results = run(experiment, kept, seeds=2, jobs=1)
    assert len(calls(tmp_path)) == 14
    assert [r.values("value") for r in results] == [[1, 11], [2, 12], [3, 13]] * 2
    type(experiment).version = 2  # type: ignore[misc]
    run(experiment, kept, seeds=1, jobs=1)
    assert len(calls(tmp_path)) == 20
    assert not list(kept.glob(".*"))  # nothing half written


def test_a_page_of_what_is_done(tmp_path: Path) -> None:
    experiment, kept = find(str(slow(tmp_path))), tmp_path / "cells"
    run(experiment, kept, seeds=1, jobs=1)
    sorted(kept.glob("*.json"))[0].unlink()
    results = run(experiment, kept, seeds=1, jobs=1, done_only=True)
    assert len(calls(tmp_path)) == 6
    assert sorted((len(r.runs), r.missing is not None) for r in results) == [(0, True), *[(1, False)] * 5]


def test_only_chooses_cells_by_their_values() -> None:
    cells = EXPERIMENTS["table1"].cells(False)
    few = chosen(cells, ["adult", "USPS", "BPA-P", "100"])
    assert [(c["set"], c["learner"], c["B"]) for c in few] == [("Adult", "BPA-P", 100), ("USPS", "BPA-P", 100)]
    assert chosen(cells, []) == cells
    assert not chosen(cells, ["PA", "100"])  # PA has no budget
    mnist = EXPERIMENTS["mnist-lasvm"].cells(False)
    assert chosen(mnist, ["4-9"]) == [{"problem": "pair", "digits": "4-9"}]
    with pytest.raises(ParameterError, match="--only Mars: no cell has it; there are set: Adult, Banana"):
        chosen(cells, ["Mars"])


# -- the command ---------------------------------------------------------------------------------------------------


def test_without_a_name_the_experiments_are_listed() -> None:
    lines = onepass("reproduce").stdout.splitlines()
    for name, experiment in EXPERIMENTS.items():
        assert any(line.startswith(name) and experiment.title in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["table2"], 2, "there is no experiment 'table2'; expected one of averaging, budget, continual"),
        (["none.py"], 2, "none.py: expected a Python file with an experiment"),
        (["table1", "--only", "Mars"], 2, "--only Mars: no cell has it"),
        (["table1", "--only", "PA,100"], 2, "none fits all of them"),
        (["table1", "--seeds", "0"], 2, "--seeds"),
        (["drift", "--quick", "--out", "file"], 2, "file"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "file").write_text("in the way")
    done = onepass("reproduce", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_missing_data_is_named_and_the_rest_is_run(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("ONEPASS_DATA", "ONEPASS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    only = "Adult,Checkerboard,Perceptron"
    done = onepass("reproduce", "table1", "--quick", "--only", only, "--jobs", 1, "--out", tmp_path)
    assert done.returncode == 3
    assert "not run: the set 'adult' is not here" in done.stderr
    page = (tmp_path / "table1-quick.md").read_text()
    assert "Missing data" in page and "the set 'adult' is not here" in page
    row = next(line for line in page.splitlines() if line.startswith("| Perceptron"))
    assert "missing (80.2 ± 0.2)" in row and re.search(r"\d\d\.\d\S* \(96\.3 ± 0\.6\)", row)
    found = {r["cell"]["set"]: r for r in json.loads((tmp_path / "table1-quick.json").read_text())["results"]}
    assert "adult" in found["Adult"]["missing"] and found["Adult"]["runs"] == []
    assert found["Checkerboard"]["missing"] is None and len(found["Checkerboard"]["runs"]) == 1


def test_what_is_kept_needs_its_data_no_more(tmp_path: Path, monkeypatch: Any) -> None:
    experiment = EXPERIMENTS["table1"]
    cell = {"set": "Adult", "learner": "PA", "B": "none"}
    FinishedRuns(tmp_path, experiment, False).write(cell, 0, {"accuracy": 84.0, "support": 9.0})
    for name in ("ONEPASS_DATA", "ONEPASS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    only = ["Adult", "PA"]
    (result,) = run(experiment, tmp_path, seeds=1, only=only, jobs=1)
    assert result.missing is None and result.mean("accuracy") == 84.0
    (result,) = run(experiment, tmp_path, seeds=2, only=only, jobs=1)  # the second cannot be run
    assert result.missing is not None and result.mean("accuracy") == 84.0


def test_the_page_is_true(tmp_path: Path) -> None:
    """It names every experiment and option, and its example runs."""
    text = PAGE.read_text()
    for name in EXPERIMENTS:
        assert f"| `{name}` |" in text and (ROOT / f"docs/reproduce/{name}.md").exists()
    command = main.get_command(click.Context(main), "reproduce")
    assert command is not None
    for option in (o for p in command.params if isinstance(p, click.Option) for o in p.opts):
        assert re.search(rf"`{option}[` ]", text), option
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (PAGE.parent / target).exists(), target
    (tmp_path / "mine.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1])  # type: ignore[index]
    done = onepass("reproduce", "mine.py", "--jobs", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "holds: with noise a small C is better" in done.stdout
    xml.etree.ElementTree.parse(tmp_path / "reproduce/mine-accuracy.svg")


# -- files ---------------------------------------------------------------------------------------------------------


def test_the_json_holds_every_number_and_its_summary(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["table1"]
    cell = {"set": "Checkerboard", "learner": "BPA-P", "B": 100}
    results = Results([Result(cell, {0: {"accuracy": 95.0, "C": 1.0}, 1: {"accuracy": 97.0, "C": 0.3}})])
    paths = write(experiment, results, tmp_path, "onepass reproduce table1")
    assert [path.name for path in paths] == ["table1.md", "table1.json", "table1-accuracy.svg"]
    page = json.loads(paths[1].read_text())
    assert page["format"] == 1 and page["experiment"] == "table1" and page["quick"] is False
    assert {"version", "title", "protocol", "command", "machine", "checks"} <= set(page)
    (row,) = page["results"]
    assert row["cell"] == cell and row["missing"] is None
    assert row["published"] == {"accuracy": {"mean": 95.4, "sd": 0.7, "n": 5}}
    assert row["ours"]["accuracy"] == {"mean": 96.0, "sd": pytest.approx(2**0.5), "n": 2}
    assert row["runs"][1] == {"seed": 1, "accuracy": 97.0, "C": 0.3}
    assert all(check["holds"] is None for check in page["checks"])  # one cell decides nothing
    markdown = paths[0].read_text()
    assert "96.0 ± 1.4 (95.4 ± 0.7)" in markdown and experiment.protocol.strip() in markdown


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_result_in_the_documents_is_a_whole_run(name: str) -> None:
    page = json.loads((ROOT / f"docs/reproduce/{name}.json").read_text())
    experiment = EXPERIMENTS[name]
    assert page["quick"] is False and page["version"] == experiment.version
    assert page["protocol"] == experiment.protocol.strip()
    only = re.search(r"--only (\S+)", page["command"])
    cells = chosen(experiment.cells(False), only[1].split(",") if only else [])
    assert [r["cell"] for r in page["results"]] == [dict(cell) for cell in cells]
    (seeds,) = {len(r["runs"]) for r in page["results"]}
    assert 1 <= seeds <= experiment.seeds
    results = Results(Result(r["cell"], {run["seed"]: run for run in r["runs"]}) for r in page["results"])
    report = experiment.report(results)
    assert report.text.strip() in (ROOT / f"docs/reproduce/{name}.md").read_text()
    for picture, svg in report.pictures.items():
        assert (ROOT / f"docs/reproduce/{name}-{picture}.svg").read_text() == svg
    if seeds == experiment.seeds:
        for check in report.checks:
            assert check.holds, check


# -- the experiments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", learners.LEARNERS)
def test_every_learner_of_the_table_learns_a_board(name: str) -> None:
    data = sets.split("Checkerboard", 0)
    small, effort = data.first(600, 400), {"rows": 600, "every": 3}
    numbers = learners.tune_and_test(name, 40, 0, small, **effort)
    assert numbers["accuracy"] > 60
    assert numbers["support"] <= 40 or not learners.LEARNERS[name].budgeted
    assert numbers == learners.tune_and_test(name, 40, 0, small, **effort)  # of its arguments alone


def smallest(name: str) -> dict[str, Any]:
    """A cell that needs no data, where there is one."""
    experiment = EXPERIMENTS[name]
    return next((c for c in experiment.cells(True) if not experiment.data(c)), experiment.cells(True)[0])


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.data] if EXPERIMENTS[n].data(smallest(n)) else []) for n in EXPERIMENTS],
)
def test_the_smallest_cell_runs_and_is_reported(name: str, tmp_path: Path) -> None:
    experiment, cell = EXPERIMENTS[name], smallest(name)
    results = Results([Result(cell, {0: experiment.run(cell, 0, True)})], quick=True)
    paths = write(experiment, results, tmp_path, "a test")
    assert json.loads(paths[1].read_text())["results"][0]["ours"]
    for path in paths[2:]:
        xml.etree.ElementTree.parse(path)


def test_published_numbers_are_those_of_the_table() -> None:
    assert len(table1.published()) == 25 * 7
    assert table1.six_published("BPA-P-R", 100) == pytest.approx(88.4, abs=0.05)
    assert table1.six_published("BPA-P-R", 200) == pytest.approx(89.4, abs=0.06)


def as_published(**moved: float) -> Results:
    """Results that are the published ones, but for learners that are moved by some points; ours have 80."""
    results = Results()
    for cell in EXPERIMENTS["table1"].cells(False):
        spread = table1.self_published(cell)
        accuracy = 80.0 if spread is None else spread.mean
        learner = str(cell["learner"])
        support = 2600 if cell["set"] == "Checkerboard" else 5900
        results.append(Result(cell, {0: {"accuracy": accuracy + moved.get(learner, 0.0), "support": support}}))
    return results


def failing(results: Results) -> set[str]:
    return {check.claim for check in table1.checks(results) if not check.holds}


def test_the_acceptance_of_the_table_can_fail() -> None:
    ours = {f"B = {B}: ours have a six-set average above the published best" for B in (100, 200)}
    assert failing(as_published()) == ours
    assert failing(as_published(KRLS=10.0)) == set()
    assert any("USPS: PA" in claim for claim in failing(as_published(PA=-3.1)))
    assert any("BPA-S ≥ Stoptron" in claim for claim in failing(as_published(Forgetron=16.0)))
    assert any("BPA-P ≥ BPA-NN" in claim for claim in failing(as_published(**{"BPA-P": -2.9})))
    assert any("ramp ≥ hinge" in claim for claim in failing(as_published(**{"BPA-NN-R": -3.2})))


def test_a_difference_beyond_two_deviations_has_an_arrow_and_a_reason() -> None:
    spread = Spread(95.0, 0.5, 5)
    assert [table1.beyond(Spread(mean), spread) for mean in (96.0, 96.2, 94.0, 93.8)] == ["", "↑", "", "↓"]
    assert table1.beyond(Spread(83.1), Spread(83.0, 0.0, 5)) == ""  # 0.0 is rounded
    text = EXPERIMENTS["table1"].report(as_published(**{"BPA-P": 2.0})).text
    assert re.search(r"- \*\*USPS\*\*, BPA-P at 100 ↑ \+2\.0, BPA-P at 200 ↑ \+2\.0: even against odd", text)


def test_claims_of_forgetting_can_fail() -> None:
    """A run of the quickest cells, then numbers that a cure without effect would give."""
    experiment = EXPERIMENTS["continual"]
    found = experiment.run({"tasks": "split", "weights": "linear", "learner": "replay"}, 0, True)
    assert found["accuracy"] > 0.7 and len(found["first task"]) == 5

    def made(replay: float) -> Results:
        numbers = {"plain": (0.2, 0.95), "EWC": (0.21, 0.95), "A-GEM": (0.5, 0.6), "replay": (0.9, replay)}
        return Results(
            Result(cell, {0: {**found, "accuracy": numbers[name][0], "forgetting": numbers[name][1]}})
            for cell in experiment.cells(False)
            for name in [str(cell["learner"])]
        )

    report = experiment.report(made(0.1))
    assert all(check.holds for check in report.checks) and len(report.checks) == 16
    xml.etree.ElementTree.fromstring(report.pictures["forgetting"])
    wrong = {check.claim for check in experiment.report(made(0.7)).checks if not check.holds}
    assert len(wrong) == 4 and all("replay forgets at most" in claim for claim in wrong)


def test_boards_have_exactly_the_noise_of_the_protocol() -> None:
    clean, noisy = sets.split("Checkerboard", 3), sets.split("NCheckerboard", 3)
    for data, wrong in ((clean, 0), (noisy, 1500)):
        assert data.X.shape == data.held.shape == (10_000, 2) and 0 <= data.X.min() and data.X.max() < 4
        assert np.sum((np.floor(data.X).sum(axis=1) % 2 == 0) != data.y) == wrong
        np.testing.assert_array_equal(np.floor(data.held).sum(axis=1) % 2 == 0, data.truth)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "test", "columns", "majority"),
    [("Adult", 21_000, 16_281, 123, 0.75), ("Banana", 4300, 1000, 2, 0.55), ("Cover", 10_000, 10_000, 54, 0.51),
     ("USPS", 7291, 2007, 256, 0.52), ("Phoneme", 4323, 1081, 5, 0.71)],
)  # fmt: skip
def test_real_sets_are_divided_as_the_protocol_says(
    name: str, train: int, test: int, columns: int, majority: float
) -> None:
    data = sets.split(name, 0)
    assert data.X.shape == (train, columns) and data.held.shape == (test, columns)
    share = float(np.mean(data.y))
    assert max(share, 1 - share) == pytest.approx(majority, abs=0.02)
    if name in ("Banana", "Phoneme"):
        np.testing.assert_allclose(data.X.std(axis=0), 1)
    elif name == "Cover":
        np.testing.assert_allclose(data.X[:, :10].std(axis=0), 1)
        assert set(np.unique(data.X[:, 10:])) == {0.0, 1.0}


def test_the_best_parameters_win_and_those_that_overflow_lose() -> None:
    data = sets.split("Checkerboard", 0)

    def make(gamma: float) -> Any:
        return KernelClassifier(rules.PA1(1.0), kernel=kernels.RBF(gamma), budget=budgets.BPANN(50))

    chosen_, value = cross_validation.choose(make, {"gamma": [1e-4, 8.0, 1e4]}, data.X[:900], data.y[:900])
    assert chosen_ == {"gamma": 8.0} and 80 < value <= 100

    def overflow(scale: float) -> Any:
        return KernelClassifier(rules.Adaline(scale), kernel="linear")

    best, _ = cross_validation.choose(overflow, {"scale": [1e200, 1e-3]}, data.X[:300], data.y[:300])
    assert best == {"scale": 1e-3}

    # Rows far from all others but their copies: C changes no prediction, but a tiny one keeps every copy.
    def unlimited(C: float) -> Any:
        return KernelClassifier(rules.PA1(C), kernel=kernels.RBF(1e4))

    few, X = {"C": [1e-3, 1.0]}, np.repeat(data.X[:100], 3, axis=0)
    y = np.repeat(data.y[:100], 3)
    first, value = cross_validation.choose(unlimited, few, X, y)
    assert first == {"C": 1e-3}
    assert cross_validation.choose(unlimited, few, X, y, fewest=True) == ({"C": 1.0}, round(value, 9))


def test_kernel_values_of_svc_are_rows_times_vectors_of_each_machine() -> None:
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.repeat([0, 1, 2], 30)
    expected = 0
    for a, b in ((0, 1), (0, 2), (1, 2)):
        some = np.isin(y, (a, b))
        expected += 60 * len(SVC(C=10, gamma=1).fit(X[some], y[some]).support_)
    assert mnist_lasvm.least_values(SVC(C=10, gamma=1).fit(X, y), y) == expected


def test_a_claim_about_a_cell_that_was_not_run_is_not_decided() -> None:
    results = Results([Result({"a": 1}, {})])
    check = Check.of("something", lambda: (results.the(a=1).mean("x") > 0, ""))
    assert check.holds is None and check.detail == "1 was not run"
    with pytest.raises(NotRun):
        results.the(a=2)


def test_a_set_is_looked_for_once_for_all_its_cells(tmp_path: Path, monkeypatch: Any) -> None:
    asked = []

    class Two(Experiment):
        name, title, protocol, seeds = "two", "", "", 1

        def cells(self, quick: bool) -> list[Any]:
            return [{"k": k} for k in range(5)]

        def data(self, cell: Any) -> list[tuple[str, str | None]]:
            return [("banana", None)]

        def run(self, cell: Any, seed: int, quick: bool) -> dict[str, Any]:
            return {"x": 1.0}

        def report(self, results: Results) -> Report:
            return Report("")

    monkeypatch.setattr(datasets, "load", lambda *given: asked.append(given))
    results = run(Two(), tmp_path, jobs=1)
    assert asked == [("banana", None)] and all(r.runs for r in results)
    assert FinishedRuns(tmp_path, Two(), False).read({"k": 4}, 0)["x"] == 1.0  # type: ignore[index]
