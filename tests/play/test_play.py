"""Rounds drawn: the numbers are the worked ones, the lines lie where w says, every picture can be read."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from onepass import ReferenceLearner, datasets, errors, rules
from onepass.cli import main
from onepass.play import STREAMS, Line, Play, Region, play

SVG = "{http://www.w3.org/2000/svg}"
BINARY = [name for name, kind in rules.RULES.items() if "binary" in kind.tasks]
# (loss, add, w) by round on stream A, from the table of the worked numbers.
WORKED = {
    "pa": [
        (1, 0.2, (0.2, 0.4)),
        (1, 0.2, (-0.2, 0.6)),
        (1.8, 0.9, (0.7, -0.3)),
        (0.6, 0.3, (1, 0)),
        (1, 0.25, (1, 0.5)),
    ],
    "pa1:C=0.1": [
        (1, 0.1, (0.1, 0.2)),
        (1, 0.1, (-0.1, 0.3)),
        (1.4, 0.1, (0, 0.2)),
        (0.8, 0.1, (0.1, 0.3)),
        (0.4, 0.1, (0.1, 0.5)),
    ],
}


@pytest.fixture(scope="module")
def worked() -> Play:
    return play("pa", "A", fit_intercept=False)


def rounds_of(svg: str) -> list[ElementTree.Element]:
    return [group for group in ElementTree.fromstring(svg).iter(f"{SVG}g") if group.get("class") == "round"]


# The rounds


@pytest.mark.parametrize("rule", WORKED)
def test_frames_have_the_worked_numbers(rule: str) -> None:
    frames = play(rule, STREAMS["A"], fit_intercept=False).frames
    assert len(frames) == 5
    for frame, (loss, add, w) in zip(frames, WORKED[rule], strict=True):
        assert frame.loss == pytest.approx(loss)
        assert frame.step.add == pytest.approx(add)
        assert frame.after.w == pytest.approx(w)


def test_text_prints_the_worked_numbers(worked: Play) -> None:
    for frame, (loss, add, w) in zip(worked.frames, WORKED["pa"], strict=True):
        written = worked.text(frame.t)
        assert f"loss = {loss}; w ← w + {add}·y·x = ({w[0]}, {w[1]})\n" in written + "\n"
        assert written.startswith(f"round {frame.t}: ")
    assert "s = w·x = (-0.2)·(-1) + 0.6·1 = 0.8" in worked.text(3)
    assert worked.frames[2].title == "round 3: mistake, loss 1.8, add 0.9"
    assert "5 rounds, 2 mistakes, 5 updates, loss 5.4" in str(worked)


def test_the_rounds_are_those_of_core() -> None:
    played = play("sgd:loss=logistic", seed=3, readout="average")
    learner = ReferenceLearner("sgd:loss=logistic")
    average = ReferenceLearner("sgd:loss=logistic", readout="average")
    for frame in played.frames:
        record = learner.learn(frame.x, frame.y)
        average.learn(frame.x, frame.y)
        assert (frame.score, frame.prediction, frame.loss) == (record.score, record.prediction, record.loss)
        assert np.array_equal(frame.after.w, learner.w) and frame.after.b == learner.intercept
        assert np.array_equal(frame.predicting.w, average.w) and frame.predicting.b == average.intercept
    for earlier, later in itertools.pairwise(played.frames):
        assert later.before is earlier.after
        assert later.points[:-1] == earlier.points


def test_scaled_and_proximal_steps_are_written_as_they_were() -> None:
    romma = play("romma", "A", fit_intercept=False)
    assert "w ← 0.2·y·x = (0.2, 0.4)" in romma.text(1)
    assert "w ← 10·w + 4.5·y·x = (2.5, 1.5)" in romma.text(3)
    assert "w ← soft(w + 0.1·y·x, 0.01) = (0.09, 0.19), b = 0.1" in play("fobos:lam1=0.1", "A").text(1)
    assert "w ← 0.909091·(w + 0.1·y·x) = (0.0909091, 0.181818)" in play("fobos:lam2=1", "A", fit_intercept=False).text(
        1
    )
    # Nothing above the threshold is softened: the formula is not the result, so none is claimed.
    truncated = play("truncated:K=1,gravity=0.1,threshold=0.15", "A", fit_intercept=False).text(1)
    assert "add = 0.1, w ← (0.09, 0.2)" in truncated


def test_the_pocket_rule_shows_what_moves_and_what_predicts() -> None:
    frames = play("pocket", seed=2).frames
    learner = ReferenceLearner("pocket")
    for frame in frames:
        learner.learn(frame.x, frame.y)
        assert np.array_equal(frame.predicting.w, learner.w)
        assert np.array_equal(frame.after.w, learner.records[-1].w)
    assert any(not np.array_equal(frame.predicting.w, frame.after.w) for frame in frames)


def test_multiclass_words_are_those_of_core() -> None:
    frames = play("mira", "M", task="multiclass", multiclass="mira").frames
    learner = ReferenceLearner("mira", "multiclass", classes=3, multiclass="mira")
    for frame in frames:
        learner.learn(frame.x, frame.y)
        assert np.array_equal(frame.after.w, learner.w)


def test_verdicts() -> None:
    stream = [((1, 0), 1), ((0.5, 0), 1), ((2, 0), 1), ((-1, 0), 1)]
    verdicts = [frame.verdict for frame in play("pa", stream, fit_intercept=False).frames]
    assert verdicts == ["mistake", "narrow", "passive", "mistake"]
    assert [f.verdict for f in play("pegasos", [((1, 0), 1)] * 2, fit_intercept=False).frames] == ["mistake", "shrink"]
    overshot = play("adaline", [((3, 0), 1)], w=(1, 0), fit_intercept=False).frames[0]
    assert (overshot.score, overshot.verdict) == (3, "right")
    line = play("pa", [(1, 2), (1, 1), (1, 1.05)], task="regression", fit_intercept=False)
    assert [frame.verdict for frame in line.frames] == ["too low", "too high", "passive"]


def test_default_streams_are_prefixes_and_differ_by_seed() -> None:
    for task in ("binary", "multiclass", "regression"):
        short, long = (play("pa1", task=task, rounds=n).frames[-1].points for n in (7, 13))
        assert long[:7] == short and len(long) == 13
        assert play("pa1", task=task, seed=1, rounds=7).frames[-1].points != short
    labels = [y for _, y in play("pa1", rounds=60).frames[-1].points]
    assert set(labels) == {-1, 1}
    # Separable but for a few: a line through the origin gets most, not all.
    X = np.array([x for x, _ in play("pa1", rounds=60).frames[-1].points])
    wrong = np.sum(np.sign(X @ (np.cos(0.6), np.sin(0.6))) != labels)
    assert 3 <= wrong <= 15


def test_a_generator_is_cut_to_two_features() -> None:
    stream = datasets.SEA(1000, seed=4)
    X, y = next(stream.chunks(9))
    points = play("pa1", stream, rounds=9).frames[-1].points
    assert [x for x, _ in points] == [tuple(row) for row in X[:, :2].tolist()]
    assert [label for _, label in points] == [1 if label else -1 for label in y]
    assert len(play("pa1", datasets.RotatingHyperplane(4, d=2), rounds=9).frames) == 4


def test_an_iterator_is_read_no_further_than_needed() -> None:
    seen = []

    def stream() -> Any:
        for i in itertools.count():
            seen.append(i)
            yield (i, -i), (-1) ** i

    assert len(play("pa1", stream(), rounds=4).frames) == 4
    assert len(seen) == 4


@pytest.mark.parametrize("rule", BINARY)
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_every_rule_runs_and_draws(rule: str, task: str) -> None:
    if task not in rules.make(rule).traits.tasks:
        with pytest.raises(errors.ParameterError, match="is not defined for"):
            play(rule, task=task)
        return
    played = play(rule, rounds=7, task=task, seed=2)
    assert max(map(len, played.text().splitlines())) <= 80
    assert max(map(len, played.text(ascii=True).splitlines())) <= 80
    assert len(rounds_of(played.svg_strip())) == 7


def test_a_rule_that_cannot_leave_zero_starts_elsewhere() -> None:
    played = play("perceptron:strict=true", "A", fit_intercept=False)
    assert played.frames[0].before.w == pytest.approx([1, 0])
    assert "from w = (1, 0)" in played.heading
    assert len(play("perceptron:strict=true", "M", task="multiclass").frames) == 5


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (errors.ParameterError, "rounds=0", {"rounds": 0}),
        (errors.ParameterError, "rounds=True", {"rounds": True}),
        (errors.ParameterError, "seed=-1", {"seed": -1}),
        (errors.ParameterError, "task='ranking'", {"task": "ranking"}),
        (errors.ParameterError, "stream='B'", {"stream": "B"}),
        (errors.ParameterError, "is for task='multiclass'", {"stream": "M"}),
        (errors.ParameterError, "stream=3", {"stream": 3}),
        (errors.ParameterError, "not arrays", {"stream": datasets.SparseText(9, features=50, nnz=3)}),
        (errors.ParameterError, "rule='pa3'", {"rule": "pa3"}),
        (errors.ParameterError, "readout='first'", {"readout": "first"}),
        (errors.ParameterError, "no one boundary", {"readout": "voted"}),
        (errors.ParameterError, "multiclass='best'", {"multiclass": "best", "task": "multiclass"}),
        (errors.ParameterError, "w=", {"w": (1, 2, 3)}),
        (errors.ParameterError, "w=", {"w": (1, np.nan)}),
        (errors.InputError, "empty", {"stream": []}),
        (errors.InputError, "example 2", {"stream": [((1, 2), 1), ((1, np.nan), 1)]}),
        (errors.InputError, "example 1", {"stream": [((1, 2, 3), 1)]}),
        (errors.InputError, "example 1", {"stream": [(("1", "2"), 1)]}),
        (errors.InputError, "example 1", {"stream": [7]}),
        (errors.LabelError, "example 2", {"stream": [((1, 2), 1), ((1, 2), 2)]}),
        (errors.LabelError, "example 1", {"stream": [((1, 2), "1")]}),
        (errors.LabelError, "both -1 and 0", {"stream": [((1, 2), -1), ((1, 2), 0)]}),
        (errors.LabelError, "from 0 to 9", {"stream": [((1, 2), 10)], "task": "multiclass"}),
        (errors.LabelError, "finite", {"stream": [(1, np.inf)], "task": "regression"}),
    ],
)
def test_what_is_wrong_is_said(error: type[Exception], words: str, options: dict[str, Any]) -> None:
    with pytest.raises(error, match=re.escape(words)):
        play(options.pop("rule", "pa1"), options.pop("stream", None), **options)


def test_a_round_that_is_not_there(worked: Play) -> None:
    with pytest.raises(errors.ParameterError, match="from 1 to 5"):
        worked.text(6)


# The geometry


def test_lines_lie_where_the_weights_say() -> None:
    rng = np.random.default_rng(0)
    box = (-2.0, -1.0, 3.0, 4.0)
    crossing = 0
    for a, b, c in rng.normal(0, (1, 1, 2), (200, 3)).tolist():
        segment = Line("after", (a, b, c)).segment(box)
        corners = [a * x + b * y + c for x in (-2, 3) for y in (-1, 4)]
        assert (segment is not None) == (min(corners) < 0 < max(corners))
        for x, y in segment or ():
            assert a * x + b * y + c == pytest.approx(0, abs=1e-12)
            assert -2 - 1e-12 <= x <= 3 + 1e-12 and -1 - 1e-12 <= y <= 4 + 1e-12
            # Cut at the border, not before.
            assert min(abs(x + 2), abs(x - 3), abs(y + 1), abs(y - 4)) < 1e-9
            crossing += 1
    assert crossing > 100
    assert Line("after", (0, 0, 1)).segment(box) is None
    assert Line("after", (1, 0, 9)).segment(box) is None


def area(polygon: list[tuple[float, float]]) -> float:
    x, y = np.array(polygon).T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_regions_tile_the_picture_and_agree_with_predictions(task: str) -> None:
    played = play("pa1", task=task, rounds=9)
    box = played.box()
    rng = np.random.default_rng(1)
    for frame in played.frames:
        polygons = [(region, region.polygon(box)) for region in frame.regions]
        assert sum(area(p) for _, p in polygons if len(p) > 2) == pytest.approx((box[2] - box[0]) * (box[3] - box[1]))
        for x in rng.uniform(box[:2], box[2:], (20, 2)):
            scores = frame.after.rows() @ [*x, 1]
            predicted = int(np.argmax(scores)) if task == "multiclass" else 1 if scores[0] > 0 else -1
            inside = [r.label for r in frame.regions if all(a * x[0] + b * x[1] + c >= 0 for a, b, c in r.within)]
            assert inside == [predicted]


def test_multiclass_boundaries_are_ties_at_the_top() -> None:
    for frame in play("pa1", task="multiclass", rounds=9).frames:
        segments = [line.segment((-5, -5, 5, 5)) for line in frame.lines if line.kind == "after"]
        assert any(segments)
        for x, y in itertools.chain(*filter(None, segments)):
            scores = np.sort(frame.after.rows() @ [x, y, 1])
            assert scores[-1] == pytest.approx(scores[-2], abs=1e-9)


def test_a_region_nobody_reaches_is_empty() -> None:
    assert Region(0, ((0.0, 0.0, -1.0),)).polygon((0, 0, 1, 1)) == []


@pytest.mark.parametrize(
    "stream", [[((0, 0), 1)], [((3, 3), 1)], [((1e-9, 0), 1), ((0, 1e-9), -1)], [((1e9, 1e9), 1), ((1e9, -1e9), 0)]]
)
def test_any_scale_can_be_drawn(stream: list[Any], tmp_path: Path) -> None:
    played = play("pa1", stream)
    assert max(map(len, played.text().splitlines())) <= 80
    assert "nan" not in played.svg_strip() and "inf" not in played.svg_strip()
    played.png(tmp_path / "scale.png", dpi=30)
    flat = play("pa1", [(1e12, 5), (1e12, 5)], task="regression")
    assert "nan" not in flat.svg_strip()


# The command


def run(*args: str) -> Result:
    # click before 8.2 mixes the two outputs unless told not to; later ones know no such option.
    apart = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    return CliRunner(**apart).invoke(main, list(args))  # type: ignore[arg-type]


def test_command_prints_all_rounds_plain(tmp_path: Path) -> None:
    result = run("play", "--rule", "pa", "--stream", "A", "--no-intercept", "--step")
    assert result.exit_code == 0 and not result.stderr
    assert result.stdout == play("pa", "A", fit_intercept=False).text() + "\n"
    assert [int(t) for t in re.findall(r"^round (\d+):", run("play").stdout, re.MULTILINE)] == list(range(1, 13))


def test_the_examples_in_the_help_run(tmp_path: Path) -> None:
    help_text = run("play", "--help").stdout
    examples = [line.split()[1:] for line in help_text.splitlines() if line.startswith("    onepass play")]
    assert len(examples) >= 7
    for args in examples:
        args = [str(tmp_path / arg) if arg.endswith((".svg", ".gif")) else arg for arg in args]
        result = run(*args)
        assert result.exit_code == 0, (args, result.output)
    assert {path.name for path in tmp_path.iterdir()} == {"strip.svg", "play.gif"}
    assert len(rounds_of((tmp_path / "strip.svg").read_text(encoding="utf-8"))) == 24


@pytest.mark.parametrize("rule", BINARY)
def test_command_runs_every_rule(rule: str) -> None:
    result = run("play", "--rule", rule, "--rounds", "3", "--seed", "1", "--ascii")
    assert result.exit_code == 0, result.output
    assert result.stdout.isascii()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--rule", "pa3"], "rule='pa3'"),
        (["--rule", "pa1:C=-1"], "C=-1"),
        (["--rule", "perceptron", "--task", "regression"], "not defined for task='regression'"),
        (["--rule", "perceptron:rho=1e308"], "overflows"),
        (["--rounds", "0"], "--rounds"),
        (["--seed", "x"], "--seed"),
        (["--stream", "B"], "--stream"),
        (["--stream", "M"], "task='multiclass'"),
        (["--readout", "first"], "readout='first'"),
        (["--svg", "strip.gif"], "ending in .svg"),
        (["--gif", "nowhere/play.gif"], "no such folder"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_errors_are_one_line(args: list[str], words: str) -> None:
    result = run("play", *args)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("onepass: ") and result.stderr.count("\n") == 1
    assert words in result.stderr


def environment(**more: str) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if key != "NO_COLOR"},
        "PYTHONIOENCODING": "utf-8",
        **more,
    }


def test_piped_output_is_plain(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "onepass", "play", "--rounds", "3", "--step", "--svg", str(tmp_path / "strip.svg")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment(), timeout=60)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(play("pa1", rounds=3).text())
    assert "\x1b" not in done.stdout and "strip.svg" in done.stdout.splitlines()[-1]
    ascii_only = subprocess.run(
        command[:-2], capture_output=True, env=environment(PYTHONIOENCODING="ascii"), text=True, timeout=60
    )
    assert ascii_only.returncode == 0 and "?" not in ascii_only.stdout
    assert ascii_only.stdout == play("pa1", rounds=3).text(ascii=True) + "\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("keys", "rounds", "code"),
    [
        ([b"q"], 1, 0),
        ([b"\r", b"q"], 2, 0),
        ([b"x ", b"\x1b[C", b"Q"], 3, 0),
        ([b"\r", b"\r\r", b"\n", b" "], 5, 0),
        ([b"\r", b"\x03"], 2, 130),
    ],
    ids=["q", "Enter-q", "other-keys", "to-the-end", "interrupt"],
)
def test_step_waits_for_keys_in_a_terminal(keys: list[bytes], rounds: int, code: int) -> None:
    import pty
    import select
    import termios

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "onepass", "play", "--rule", "pa", "--stream", "A", "--step"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="xterm"), start_new_session=True
    )
    output, waiting, answered, deadline = b"", list(keys), 0, time.monotonic() + 60
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.05)[0]:
                output += os.read(ours, 4096)
            # Keys typed before the command reads single ones are dropped: wait until the terminal is told so.
            raw = not termios.tcgetattr(ours)[3] & termios.ICANON
            if waiting and raw and output.count(b"q: quit") > answered:
                answered += 1
                os.write(ours, waiting.pop(0))
        while select.select([ours], [], [], 0.05)[0]:
            output += os.read(ours, 4096)
        assert process.poll() == code
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)
    text = output.decode()
    assert len(re.findall(r"round \d+:", text)) == rounds
    assert "\x1b[" in text
    assert ("5 rounds" in text) == (rounds == 5)
