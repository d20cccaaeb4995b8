"""The command: what it prints, where, and the codes it ends with."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.command import environment, line, onepass, process
from support.extras import require_extra

from onepass import rules
from onepass.cli import VERBS, demo, main
from onepass.cli.models import LEARNERS
from onepass.cli.sections import SECTIONS
from onepass.datasets import RotatingHyperplane
from onepass.evaluation import Run, prequential
from onepass.persistence.registry import KINDS


class StubModel:
    """A pure Python perceptron with the face of a LinearModel."""

    made: list[Any] = []  # noqa: RUF012

    def __init__(self, rule: Any, task: str = "auto") -> None:
        self.made.append(rule)
        self.task, self.w = task, np.zeros(11)

    def predict_then_learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        predictions = np.empty_like(y)
        for i, x in enumerate(np.c_[X, np.ones(len(X))]):
            predictions[i] = x @ self.w > 0
            self.w += (y[i] - predictions[i]) * x
        return predictions


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> type[StubModel]:
    module = types.ModuleType("onepass.models.linear")
    module.LinearModel = StubModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onepass.models.linear", module)
    monkeypatch.setattr("onepass.models.linear", module, raising=False)
    monkeypatch.setattr(StubModel, "made", [])
    return StubModel


def run(*args: str) -> Result:
    # click before 8.2 mixes the two outputs unless told not to; later ones know no such option.
    apart = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    return CliRunner(**apart).invoke(main, list(args))  # type: ignore[arg-type]


def table(output: str) -> list[list[str]]:
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("rule "))
    body = [line for line in lines[start:] if line][: 1 + sum("%" in line for line in lines[start:])]
    return [re.split(r"\s{2,}", line) for line in body]


# Help, version, models


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_help_teaches_with_examples(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 0
    assert "onepass demo --rule pa1" in result.stdout
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_every_option_too(verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert f"onepass {verb}" in result.stdout.split("Examples:")[1].replace('"$(', "")
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.opts[0] in result.stdout


@pytest.mark.parametrize("verb", ["learn", "predict", "compare", "convert"])
def test_the_help_lists_every_option_once_in_its_section(verb: str) -> None:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    section, listed = "", {}
    for text in run(verb, "--help").stdout.splitlines():
        if text and not text.startswith(" "):
            section = text.rstrip(":")
        if not section.startswith("Usage") and (found := re.match(r"  (--?[a-z0-9_-]+)", text)):
            flag = found[1]
            assert flag not in listed
            listed[flag] = section
    flags = [p.opts[0] for p in command.params if isinstance(p, click.Option)]
    assert len(listed) == len(flags) + 1
    assert [flag for flag, name in listed.items() if name not in SECTIONS] == ["-h"]  # an option needs a section
    assert listed["--label"] == "Input" and listed["--on-error"] == "Input"


def test_the_list_of_verbs_shows_whole_sentences() -> None:
    commands = run("--help").stdout.split("Commands:\n")[1]
    assert commands.strip() and all(line.endswith(".") and "..." not in line for line in commands.splitlines())


def test_the_examples_in_the_help_run(stub: type[StubModel], tmp_path: Path) -> None:
    lines = [line.strip() for line in run("demo", "--help").stdout.splitlines()]
    examples = [re.split(r"\s{2,}", line)[0].split()[1:] for line in lines if line.startswith("onepass ")]
    assert len(examples) >= 3
    for args in examples:
        args = [str(tmp_path / arg) if arg.endswith(".png") else arg for arg in args]
        result = run(*args, *(["--examples", "300"] if args[0] == "demo" else []))
        assert result.exit_code == 0, (args, result.output)


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("onepass ")


def test_models_lists_every_rule_with_its_parameters() -> None:
    result = run("models")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    end = lines.index("Other learners, for Python, as onepass.NAME:")
    assert [line.split()[0] for line in lines[: end - 1] if not line.startswith(" ")] == list(rules.RULES)
    assert [line.split()[0] for line in lines[end + 1 : -2]] == list(LEARNERS)
    for name, kind in rules.RULES.items():
        at = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
        for parameter, default in kind().get_params().items():
            assert f"{parameter}={default}" in lines[at]
        summary = lines[at + 1].strip()
        assert summary and summary == (kind.__doc__ or "").splitlines()[0].strip()


@pytest.mark.parametrize("name", sorted(rules.RULES))
def test_models_of_one_rule_tells_all_of_it(name: str) -> None:
    result = run("models", name)
    assert result.exit_code == 0
    rule = rules.RULES[name]
    flat = " ".join(result.stdout.split())
    for said in (rule.cost, rule.guarantee, rule.paper, *rule().get_params()):
        assert said and " ".join(said.split()) in flat
    assert "-> Step" in result.stdout or "return" in result.stdout  # the formula
    assert all(len(line) <= 124 for line in result.stdout.splitlines())  # code is shown as it stands


def test_models_of_a_learner_tells_its_parameters() -> None:
    models = {entry.model for entry in KINDS.values()}
    alone = {name for name, entry in KINDS.items() if entry.model is None and not entry.wrapper} - models
    transforms = {name for name, entry in KINDS.items() if entry.module == "transforms"}
    assert set(LEARNERS) == (alone - transforms) | {"LaSVMClassifier"}
    result = run("models", "KMeans")
    assert (
        result.exit_code == 0
        and "onepass.prototypes.kmeans.KMeans" in result.stdout
        and "n_clusters : K" in result.stdout
    )


def test_models_prints_where_letters_are_lacking() -> None:
    # Not ascii: click takes that for a mistake in the set-up and writes UTF-8.
    about = {**environment(), "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(line("models"), capture_output=True, env=about, encoding="latin-1")
    assert result.returncode == 0, result.stderr
    assert "pa1" in result.stdout and "?" in result.stdout


# Failures: one line, and the code


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("demo", "--rule", "pa3"), "rule='pa3' is not a rule; expected one of"),
        (("demo", "--rule", "pa1:D=1"), "pa1 has no parameter 'D'"),
        (("demo", "--rule", "pa1:C=-1"), "C=-1"),
        (("demo", "--rule", "sgd:loss=nonsense"), "nonsense"),
        (("demo", "--rule", "sgd:loss=huber"), "not defined for task='binary'"),
        (("demo", "--examples", "0"), "--examples"),
        (("demo", "--examples", "many"), "--examples"),
        (("demo", "--every", "0"), "--every"),
        (("demo", "--seed", "-1"), "--seed"),
        (("demo", "--exampels", "5"), "--exampels"),
        (("demo", "surplus"), "surplus"),
        (("dmeo",), "dmeo"),
        (("--nonsense",), "--nonsense"),
        (("demo", "--plot", "/nowhere/at/all/a.png"), "no such folder"),
        (("demo", "--plot", "a.nonsense"), "expected a name ending in one of"),
    ],
)
def test_a_wrong_option_is_one_line_and_code_2(args: tuple[str, ...], expected: str, stub: type[StubModel]) -> None:
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert expected in result.stderr
    assert result.stderr.startswith("onepass: ") and result.stderr.count("\n") == 1
    assert stub.made == []  # found out before the work began


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, "onepass: interrupted\n"),
        (PermissionError(13, "Permission denied", "a.png"), 1, "onepass: a.png: Permission denied\n"),
    ],
)
def test_other_endings(
    error: BaseException, code: int, expected: str, stub: type[StubModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StubModel, "predict_then_learn", raising(error))
    result = run("demo", "--examples", "100")
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", expected)


def test_bad_input_is_code_1(stub: type[StubModel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StubModel, "predict_then_learn", lambda self, X, y: y[1:])
    result = run("demo", "--examples", "100")
    assert result.exit_code == 1
    assert result.stderr == "onepass: predict_then_learn gave 4 predictions for 5 rows\n"


def test_plot_without_matplotlib_is_code_1(stub: type[StubModel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("demo", "--plot", "a.png")
    assert result.exit_code == 1
    assert "pip install onepass[plot]" in result.stderr and result.stderr.count("\n") == 1
    assert stub.made == []


# The demo


def test_the_table_is_what_prequential_says(stub: type[StubModel]) -> None:
    result = run("demo", "--rule", "pa1", "--rule", "perceptron:beta=1", "--examples", "2000", "--seed", "3")
    assert result.exit_code == 0, result.output
    expected = prequential(StubModel("pa1", "binary"), RotatingHyperplane(2000, seed=3), every=100, window=100)  # type: ignore[arg-type]
    head, first, second = table(result.stdout)
    assert head == ["rule", "first 200", "all 2,000", "last 100", "examples/s"]
    errors = [f"{value:.2%}" for value in (expected.cumulative[1], expected.value, expected.window[-1])]
    assert first[:4] == ["pa1", *errors]
    assert second[:4] == ["perceptron:beta=1", *errors]
    assert "seed=3" in result.stdout
    # Given to the model as rules, in order.
    assert stub.made[:2] == [rules.PA1(), rules.Perceptron(beta=1)]


def test_the_default_compares_several_rules(stub: type[StubModel]) -> None:
    result = run("demo", "--examples", "400")
    assert result.exit_code == 0, result.output
    assert [row[0] for row in table(result.stdout)[1:]] == list(demo.RULES)
    assert len(demo.RULES) >= 4


@pytest.mark.parametrize("examples", [1, 2, 19, 21])
@pytest.mark.parametrize("every", [(), ("--every", "7"), ("--every", "1000000")])
def test_streams_of_awkward_length(examples: int, every: tuple[str, ...], stub: type[StubModel]) -> None:
    result = run("demo", "--rule", "pa1", "--examples", str(examples), *every)
    assert result.exit_code == 0, result.output
    assert f"all {examples:,}" in result.stdout


def test_progress_goes_to_stderr_and_quiet_silences_it(stub: type[StubModel], monkeypatch: pytest.MonkeyPatch) -> None:
    args = ("demo", "--rule", "pa1", "--rule", "pa", "--examples", "500")
    loud, quiet = run(*args), run(*args, "--quiet")
    assert [line.split()[0] for line in loud.stderr.splitlines()] == ["pa1", "pa"]
    assert "100% of all" in loud.stderr.splitlines()[-1]
    assert "\r" not in loud.stderr  # not a terminal
    assert quiet.stderr == ""
    monkeypatch.setattr(demo, "monotonic", itertools.count(step=60).__next__)  # time for lines in between
    loud, quiet = run(*args), run(*args, "--quiet")
    assert len(loud.stderr.splitlines()) > 2 and quiet.stderr == ""
    # The speeds differ.
    assert [row[:4] for row in table(loud.stdout)] == [row[:4] for row in table(quiet.stdout)]


def test_the_live_line_is_one_line_that_fits_and_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "write", written.append)
    monkeypatch.setenv("COLUMNS", "64")
    clock = iter(range(100))
    monkeypatch.setattr(demo, "monotonic", lambda: next(clock))
    line = demo.ProgressLine(total=2000, quiet=False)
    line.start("a rule with quite a long name, longer than the others (1/2)", before=0)
    line(Run(metrics=["error"], examples=500, seconds=0.5, values={"error": 0.25}))
    line.start("b (2/2)", before=1000)
    line(Run(metrics=["error"], examples=500, seconds=0.5, values={"error": 0.125}))
    line.clear()
    assert len(written) == 3
    assert all(text.startswith("\r") and "\n" not in text and len(text) <= 65 for text in written)
    # The longer text before is covered.
    assert len(written[1]) == len(written[0])
    assert re.search(r"75% of all  error 12\.50%  1,000 examples/s  0:0\d left", written[1])
    assert written[2].strip() == "" and written[2].endswith("\r")


def test_the_live_line_is_not_redrawn_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "write", written.append)
    clock = iter(i * 0.01 for i in range(10_000))
    monkeypatch.setattr(demo, "monotonic", lambda: next(clock))
    line = demo.ProgressLine(total=10_000, quiet=False)
    for t in range(1, 1001):  # 10 s of the clock
        line(Run(metrics=["error"], examples=t, seconds=1.0, values={"error": 0.0}))
    assert 50 <= len(written) <= 110


def test_plot_draws_a_file(stub: type[StubModel], tmp_path: Path) -> None:
    require_extra("matplotlib")
    target = tmp_path / "errors.png"
    result = run("demo", "--rule", "pa1", "--examples", "500", "--plot", str(target))
    assert result.exit_code == 0, result.output
    assert target.read_bytes().startswith(b"\x89PNG") and str(target) in result.stdout


# As it is installed


def test_the_command_never_imports_what_it_does_not_need() -> None:
    code = (
        "import sys; sys.argv = ['onepass', 'models']\n"
        "from onepass.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "import onepass.cli.job  # what `learn` needs\n"
        "heavy = {'sklearn', 'scipy', 'pandas', 'matplotlib', 'river', 'onepass.convex', 'onepass.drift'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_closed_pipe_is_not_a_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "onepass", "models"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    process.wait(30)
    assert b"Traceback" not in complaint


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ("models pa1", 0),
        ("learn good.vw --quiet -p -", 0),
        ("learn bad.vw", 1),
        ("demo --rule pa3", 2),
        ("learn bad.vw --on-error skip --quiet", 3),
    ],
)
def test_a_process_says_what_the_call_says(args: str, code: int, tmp_path: Path) -> None:
    """Most tests of the command call it within their own process."""
    (tmp_path / "good.vw").write_text("1 | a b\n-1 | c\n")
    (tmp_path / "bad.vw").write_text("1 | a b\nx | a\n-1 | c d\n")
    called, ran = onepass(*args.split(), cwd=tmp_path), process(*args.split(), cwd=tmp_path)
    assert called.returncode == code
    assert (called.returncode, called.stdout, called.stderr) == (ran.returncode, ran.stdout, ran.stderr)


def test_module_failures_end_with_code_2() -> None:
    result = process("demo", "--rule", "pa3")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("onepass: rule='pa3'") and result.stderr.count("\n") == 1


def test_demo_as_a_command_without_scikit_learn() -> None:
    code = (
        "import sys; sys.argv = ['onepass', 'demo', '--examples', '5000']\n"
        "from onepass.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'sklearn', 'scipy', 'pandas', 'matplotlib', 'river'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert [row[0] for row in table(result.stdout)[1:]] == list(demo.RULES)


def test_the_demo_shows_that_rules_follow_the_drift() -> None:
    result = onepass("demo", "--examples", "40000", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    last = {row[0]: float(row[3].rstrip("%")) for row in table(result.stdout)[1:]}
    assert last["pa1:C=0.01"] < 12 and last["sgd:loss=logistic,schedule=constant"] < 12
    assert last["perceptron"] < 25
    assert last["sgd:loss=logistic"] > 25  # a shrinking step stays behind
    again = onepass("demo", "--examples", "40000", "--quiet")
    assert [row[:4] for row in table(again.stdout)] == [row[:4] for row in table(result.stdout)]


def test_ctrl_c_on_a_terminal_is_one_line_and_code_130() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "onepass", "demo", "--examples", "1000000000"],
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        shown = os.read(ours, 1000)  # waits for the live line
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        while b"interrupted" not in shown:
            shown += os.read(ours, 1000)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert (process.returncode, output) == (130, b"")
    assert shown.startswith(b"\rperceptron (1/") and b"Traceback" not in shown
    assert shown.rpartition(b"\r ")[2].strip().endswith(b"onepass: interrupted")
    assert shown.count(b"\n") == 1
