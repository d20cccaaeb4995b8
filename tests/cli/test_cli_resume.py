"""`onepass learn` interrupted and resumed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from support.command import onepass, started, write_vw
from test_cli_learn import progressive_error, said

import onepass as op
from onepass import LinearModel
from onepass.models.portfolio import DEFAULT


@pytest.fixture
def vw(tmp_path: Path) -> Path:
    return write_vw(tmp_path / "a.vw", 3000)


# -- interrupted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_resume(number: signal.Signals, vw: Path, tmp_path: Path) -> None:
    onepass("learn", vw, "--save", tmp_path / "whole")
    lines = vw.read_text().splitlines(keepends=True)
    growing = tmp_path / "growing.vw"
    growing.write_text("".join(lines[:1200]))
    process = started(
        "learn", growing, "--follow", "--save", tmp_path / "m", "-p", tmp_path / "p", "--progress", "table"
    )
    assert process.stderr is not None
    for line in process.stderr:  # it has learned at least 1024 when it says so, and then waits
        if " 1024 " in line:
            break
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"onepass learn --resume {tmp_path / 'm'} {growing}" in err and "Traceback" not in err
    growing.write_text("".join(lines))
    resumed = onepass("learn", "--resume", tmp_path / "m", growing, "-p", tmp_path / "p")
    assert resumed.returncode == 0, resumed.stderr
    one, other = (LinearModel.load(tmp_path / name) for name in ("m", "whole"))
    assert one.names == other.names and np.array_equal(one.weights()[0], other.weights()[0])
    assert len((tmp_path / "p").read_text().splitlines()) == 3000


def test_ctrl_c_without_save_says_that_nothing_is_left(vw: Path) -> None:
    process = started("learn", vw, "--follow")
    assert process.stderr is not None
    next(line for line in process.stderr if " 1024 " in line)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "nothing was saved: --save" in err


# -- resume ------------------------------------------------------------------------------------------------------------


def test_another_stream_is_refused_with_the_reason(vw: Path, tmp_path: Path) -> None:
    onepass("learn", vw, "--save", tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    other = write_vw(tmp_path / "b.vw", 3000, seed=1)
    small = write_vw(tmp_path / "c.vw", 10)
    changed = tmp_path / "d.vw"
    text = vw.read_bytes()
    changed.write_bytes(text[:100] + b"X" + text[101:])
    for sources, reason in (
        ([other], "has changed where it was read"),
        ([small], "bytes, of which"),
        ([changed], "has changed where it was read"),
        ([vw, other], "that run read 1 file, these are 2"),
        ([tmp_path / "none.vw"], "No such file"),
    ):
        result = onepass("learn", "--resume", tmp_path / "m", *sources)
        assert result.returncode == 1 and reason in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert (tmp_path / "m").read_bytes() == before


def test_options_of_another_run_are_refused(vw: Path, tmp_path: Path) -> None:
    onepass("learn", vw, "--save", tmp_path / "m", "--passes", 2)
    for flags in (["--passes", 3], ["--rule", "pa"], ["-b", 3], ["--format", "csv"], ["--holdout", 4]):
        result = onepass("learn", "--resume", tmp_path / "m", *flags)
        assert result.returncode == 2, (flags, result.stderr)
        assert flags[0].lstrip("-")[:4] in result.stderr or "hash" in result.stderr
    assert onepass("learn", "--resume", tmp_path / "m", "--passes", 2).returncode == 0


def test_a_finished_run_resumes_to_itself_and_over_what_was_added(vw: Path, tmp_path: Path) -> None:
    lines = vw.read_text().splitlines(keepends=True)
    growing = tmp_path / "g.vw"
    growing.write_text("".join(lines[:2000]))
    onepass("learn", growing, "--save", tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    assert onepass("learn", "--resume", tmp_path / "m").returncode == 0
    assert (tmp_path / "m").read_bytes() == before
    growing.write_text("".join(lines))
    result = onepass("learn", "--resume", tmp_path / "m")
    assert result.returncode == 0 and said(result.stdout, "examples").startswith("3,000")
    error, expected = progressive_error(vw, DEFAULT)
    assert said(result.stdout, "error").startswith(f"{error:.2%}")
    assert np.array_equal(LinearModel.load(tmp_path / "m").weights()[0], expected.weights()[0])


def test_a_model_of_the_library_has_no_run_to_resume(vw: Path, tmp_path: Path) -> None:
    LinearModel("pa").save(tmp_path / "m")
    result = onepass("learn", "--resume", tmp_path / "m", vw)
    assert result.returncode == 2 and "--start-from" in result.stderr


def test_metrics_are_the_same_however_the_stream_is_cut_where_classes_are_only_predicted(tmp_path: Path) -> None:
    """A model that knows more classes than come predicts them, in an order that parts of the stream must not change."""
    g = np.random.default_rng(0)
    rows = [f"{{}} | {' '.join(f'w{n}' for n in g.integers(40, size=6))}\n" for _ in range(600)]
    known, later = tmp_path / "known.vw", tmp_path / "later.vw"
    known.write_text("".join(row.format(g.choice([9, 1, 5, 3, 2])) for row in rows[:300]))
    later.write_text("".join(row.format(g.choice([1, 2])) for row in rows[300:]))
    assert onepass("learn", known, "-f", tmp_path / "model").returncode == 0
    curves = []
    for more in ([], ["--checkpoint-every", "5"]):
        made = onepass(
            "learn", later, "-i", tmp_path / "model", "-m", "error,balanced_accuracy,kappa", "-f", tmp_path / "again",
            "--every", "50", "--json", tmp_path / "run.json", "--quiet", *more,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        curves.append(json.loads((tmp_path / "run.json").read_text())["curves"])
    assert curves[0] == curves[1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_is_read_once_and_waits_for_nobody(tmp_path: Path, vw: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = started("learn", tmp_path / "pipe", "--format", "vw", "-f", tmp_path / "of_pipe", "--rule", "pa1")
    with (tmp_path / "pipe").open("wb") as pipe:
        pipe.write(vw.read_bytes())
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 0, complaint
    assert onepass("learn", vw, "-f", tmp_path / "of_file", "--rule", "pa1").returncode == 0
    piped, filed = (op.load(tmp_path / name)._model for name in ("of_pipe", "of_file"))
    assert piped.t == filed.t == 3000 and np.array_equal(piped.weights()[0], filed.weights()[0])
