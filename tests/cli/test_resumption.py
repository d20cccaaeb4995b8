"""The command that is printed when a run stops gives the same files as the run that never stopped."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import click
import pytest
from support.command import onepass, write_csv, write_queries, write_sets, write_vw

from onepass.cli import main
from onepass.cli.job import Job
from onepass.cli.resumption import FILES

LEARN = main.get_command(click.Context(main), "learn")  # type: ignore[attr-defined]
SKIP = ["--on-error", "skip"]
VW, CSV, SVM, SETS, QUERIES = "d.vw", "t.csv", "s.svm", "sets.vw", "q.svm"
KERNEL = ["--kernel", "rbf:gamma=0.5"]
# Every option of `learn` by the name of its parameter: what is read, and the options of the run. Lines are malformed
# before the place where it is stopped, and behind.
OPTIONS: dict[str, tuple[str, list[str]]] = {
    "rule": (VW, ["--rule", "arow"]),
    "task": (VW, ["--task", "binary"]),
    "radius": (VW, ["--task", "one-class", "--radius", "2"]),
    "kernel": (VW, KERNEL),
    "budget": (VW, [*KERNEL, "--budget", "bpann:B=20"]),
    "format": (VW, ["--format", "vw"]),
    "label": (CSV, ["--label", "spam"]),
    "no_label": (CSV, ["--no-label", "--task", "one-class", "--drop", "city,spam,id"]),
    "weight": (CSV, ["--label", "spam", "--weight", "age"]),
    "id": (CSV, ["--label", "spam", "--id", "id", "-p", "p"]),
    "time": (CSV, ["--label", "spam", "--time", "age"]),
    "features": (CSV, ["--label", "spam", "--features", "age,city"]),
    "drop": (CSV, ["--label", "spam", "--drop", "id"]),
    "text": (CSV, ["--label", "spam", "--text", "city"]),
    "ngram": (VW, ["--ngram", "2"]),
    "interactions": (CSV, ["--label", "spam", "--drop", "id", "-q", "age*city"]),
    "index_base": (SVM, ["--index-base", "1"]),
    "header": (VW, ["--header"]),
    "hash_bits": (VW, ["-b", "12"]),
    "max_classes": (VW, ["--max-classes", "3"]),
    "max_features": (VW, ["--max-features", "1000"]),
    "readout": (VW, ["--readout", "average"]),
    "fit_intercept": (VW, ["--no-intercept"]),
    "intercept_scaling": (VW, ["--intercept-scaling", "0.5"]),
    "bias_in_norm": (VW, ["--rule", "pa1", "--no-bias-in-norm"]),
    "multiclass": (SVM, ["--rule", "pa1", "--multiclass", "uniform"]),
    "threshold": (SETS, ["--task", "multilabel", "--threshold", "uncalibrated", "-p", "p"]),
    "eta": (VW, ["--rule", "auto", "--ensemble-eta", "0.3", "-p", "p"]),
    "alpha": (VW, ["--rule", "auto", "--ensemble-alpha", "0.01"]),
    "checkpoint_every": (VW, ["--checkpoint-every", "40"]),
    "passes": (VW, ["--passes", "2"]),
    "holdout": (VW, ["--holdout", "7"]),
    "test_only": (VW, ["--start-from", "m0", "--test-only", "-p", "p"]),
    "start_from": (VW, ["--start-from", "m0"]),
    "metrics": (VW, ["--rule", "sgd:loss=logistic", "--metrics", "error,log_loss", "--json", "j"]),
    "every": (VW, ["--every", "20", "--json", "j"]),
    "regret": (VW, ["--regret"]),
    "window": (VW, ["--window", "30", "--json", "j"]),
    "report": (VW, ["--report", "r.html"]),
    "json_path": (VW, ["--json", "j"]),
    "predictions": (VW, ["-p", "p"]),
    "audit": (VW, ["--audit"]),
    "invert_hash": (VW, ["--invert_hash", "w", "-b", "5"]),
    "on_error": (VW, SKIP),
    "quarantine": (VW, ["--quarantine", "bad lines"]),
    "cache": (VW, ["--cache"]),
    "cache_file": (VW, ["--cache-file", "c"]),
    "progress": (VW, ["--progress", "none"]),
    "quiet": (VW, ["--quiet"]),
    "data": (VW, ["-d", "e.vw", "-p", "p"]),
    "loss_function": (VW, ["--loss_function", "logistic"]),
    "learning_rate": (VW, ["--loss_function", "logistic", "-l", "0.3"]),
    "power_t": (VW, ["--power_t", "0.3"]),
    "adaptive": (VW, ["--adaptive"]),
    "normalized": (VW, ["--normalized"]),
    "invariant": (VW, ["--invariant"]),
    "sgd": (VW, ["--sgd"]),
    "ftrl": (VW, ["--ftrl"]),
    "ftrl_alpha": (VW, ["--ftrl", "--ftrl_alpha", "0.2"]),
    "ftrl_beta": (VW, ["--ftrl", "--ftrl_beta", "0.2"]),
    "quantile_tau": (SVM, ["--loss_function", "quantile", "--quantile_tau", "0.7"]),
    "l1": (VW, ["--l1", "0.01"]),
    "l2": (VW, ["--l2", "0.01"]),
    "oaa": (SVM, ["--oaa", "4"]),
    # and together
    "all that is written": (VW, ["-p", "p", "--quarantine", "q", "--report", "r", "--json", "j", "--invert_hash", "w"]),
    "sets": (SETS, ["--task", "multilabel", "-p", "p", "--quarantine", "q"]),
    "queries": (QUERIES, ["--task", "ranking", "-p", "p", "--quarantine", "q"]),
    "stdout": (VW, ["-p", "-"]),
    "names of two passes": (VW, ["--invert_hash", "w", "-b", "5", "--passes", "2"]),
}
NOT_HERE = {
    "sources": "in every run",
    "save": "in every run",
    "resume": "in every run",
    "follow": "test_follow_is_followed_again",
}


def test_every_option_is_tried() -> None:
    names = {param.name for param in LEARN.params}
    assert names <= OPTIONS.keys() | NOT_HERE.keys(), names - OPTIONS.keys() - NOT_HERE.keys()
    assert NOT_HERE.keys() <= names and {"sources", "data"} <= FILES


def _with_malformed(path: Path) -> Path:
    lines = path.read_text().splitlines(keepends=True)
    for number in (5, len(lines) - 5):
        lines[number] = f"abc | malformed{number}\n"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    for number, name in enumerate((VW, "e.vw")):
        _with_malformed(write_vw(folder / name, 150, seed=number, words=40))
    write_csv(folder / CSV, 150)
    (folder / SVM).write_text("".join(f"{1 + i % 3} 1:{i % 5} 2:{i % 7}\n" for i in range(150)))
    _with_malformed(write_sets(folder / SETS, 150))
    _with_malformed(write_queries(folder / QUERIES, 40))
    assert onepass("learn", VW, *SKIP, "--save", "m0", "--quiet", cwd=folder).returncode == 3
    return folder


def home(streams: Path, where: Path) -> Path:
    where.mkdir()
    for path in streams.iterdir():
        os.link(path, where / path.name)
        os.utime(where / path.name, (0, 0))  # caches look at the time
    return where


def stopped(run: list[str], where: Path, monkeypatch: pytest.MonkeyPatch, pieces: int = 2) -> Any:
    """The command, with Ctrl-C after so many pieces of 32 rows and more."""
    take, count = Job._take_piece, iter(range(1, 1000))

    def then_a_signal(self: Job, chunk: Any) -> Any:
        taken = take(self, chunk)
        if next(count) == pieces:
            os.kill(os.getpid(), signal.SIGINT)
        return taken

    with monkeypatch.context() as patch:
        patch.setattr(Job, "_take_piece", then_a_signal)
        return onepass(*run, cwd=where)


def written(folder: Path) -> dict[str, Any]:
    """All files, without what a clock said."""
    out: dict[str, Any] = {}
    for path in folder.iterdir():
        out[path.name] = path.read_bytes()
        if path.name in ("j", "r", "r.html"):
            text = path.read_text()
            out[path.name] = _timeless(json.loads(text)) if path.name == "j" else len(re.findall("<svg", text))
    return out


def _timeless(content: Any) -> Any:
    return {name: value for name, value in content.items() if name not in ("seconds", "throughput")}


def printed(stderr: str) -> list[str]:
    return shlex.split(stderr.rpartition("go on with: onepass ")[2])


@pytest.mark.parametrize("name", OPTIONS)
def test_the_printed_command_is_the_same_run(
    name: str, streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, options = OPTIONS[name]
    run = ["learn", source, *(SKIP if "--on-error" not in options else []), *options, "--save", "m"]
    whole, broken = home(streams, tmp_path / "whole"), home(streams, tmp_path / "broken")
    expected = onepass(*run, cwd=whole)
    assert expected.returncode in (0, 3), expected.stderr
    pieces = 5 if "--passes" in options else 2
    result = stopped(run, broken, monkeypatch, pieces)
    assert result.returncode == 130, (result.stdout, result.stderr)
    command = printed(result.stderr)
    shown = re.search("go on with: onepass (.*)", onepass("inspect", "m", cwd=broken).stdout)
    if "auto" not in options:  # of which it shows whom it believes
        assert shown is not None
        assert shlex.split(shown[1]) == [word for word in command if word not in (source, "e.vw")]
    resumed = onepass(*command, cwd=broken)
    assert resumed.returncode == expected.returncode, resumed.stderr
    one, other = written(whole), written(broken)
    assert one.keys() - {"d.vw.cache", "c"} == other.keys() - {"d.vw.cache", "c"}  # caches are of whole runs
    for path in other:
        assert one[path] == other[path], (path, command)
    if name in ("audit", "stdout"):
        lines = [each.stdout.splitlines() for each in (expected, result, resumed)]
        assert [line for line in lines[1] + lines[2] if "time" not in line[:8]][: len(lines[0]) - 20] == lines[0][:-20]


def test_a_run_is_stopped_often(streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the printed command is the next one."""
    run = ["learn", QUERIES, *SKIP, "--task", "ranking", "-p", "p", "--quarantine", "q", "--save", "m"]
    whole, broken = home(streams, tmp_path / "whole"), home(streams, tmp_path / "broken")
    assert onepass(*run, cwd=whole).returncode == 3
    command, stops = run, 0
    while (result := stopped(command, broken, monkeypatch, 1)).returncode == 130 and stops < 50:
        command = printed(result.stderr)
        stops += 1
    assert result.returncode == 3 and stops > 3, (stops, result.stderr)
    assert written(whole) == written(broken)


def test_names_with_blanks_and_dashes(streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = home(streams, tmp_path / "home")
    os.rename(where / VW, where / "-b 5.vw")
    run = ["learn", *SKIP, "--save", "my model", "-p", "it's.txt", "--", "-b 5.vw"]
    result = stopped(run, where, monkeypatch)
    assert result.returncode == 130, result.stderr
    assert printed(result.stderr)[-2:] == ["--", "-b 5.vw"]
    assert onepass(*printed(result.stderr), cwd=where).returncode == 3
    assert len((where / "it's.txt").read_text().splitlines()) == 148


def test_follow_is_followed_again(streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = home(streams, tmp_path / "home")
    result = stopped(["learn", VW, *SKIP, "--follow", "--save", "m"], where, monkeypatch)
    assert result.returncode == 130 and printed(result.stderr)[-1] == "--follow"


def test_malformed_input_says_the_same(streams: Path, tmp_path: Path) -> None:
    whole, broken = home(streams, tmp_path / "whole"), home(streams, tmp_path / "broken")
    run = ["learn", "e.vw", "-p", "p", "--checkpoint-every", "7", "--every", "20", "--save", "m"]
    result = onepass(*run, cwd=broken)
    assert result.returncode == 1 and "What came before is learned" in result.stderr
    assert printed(result.stderr) == ["learn", "--resume", "m", "e.vw", "--checkpoint-every", "7", "--predictions", "p"]
    for folder in (whole, broken):
        text = (folder / "e.vw").read_text()
        (folder / "e.vw").unlink()
        (folder / "e.vw").write_text(re.sub(r"abc \| malformed", "1 | mended", text))
    assert onepass(*run, cwd=whole).returncode == 0
    resumed = onepass(*printed(result.stderr), cwd=broken)
    assert resumed.returncode == 0, resumed.stderr
    assert written(whole) == written(broken)


def test_options_that_would_change_the_run_are_refused(
    streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them: none is left aside without a word."""
    where = home(streams, tmp_path / "home")
    run = ["learn", VW, *SKIP, "--save", "m", "--quiet"]
    assert stopped(run, where, monkeypatch).returncode == 130
    before = (where / "m").read_bytes()
    others = {
        "--metrics": "kappa", "--drop": "a", "--features": "a", "--text": "a", "--id": "a", "--time": "a",
        "--weight": "a", "-q": "ab", "--readout": "average", "--no-intercept": None, "--ftrl_alpha": "0.5",
        "--quantile_tau": "0.5", "--every": "3", "--window": "5", "--ngram": "2", "--oaa": "3", "--sgd": None,
        "--kernel": "rbf", "--no-label": None, "--index-base": "1", "--no-header": None, "--test-only": None,
    }  # fmt: skip
    for flag, value in others.items():
        result = onepass("learn", "--resume", "m", flag, *([] if value is None else [value]), *SKIP, cwd=where)
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, (flag, result.stderr)
    assert (where / "m").read_bytes() == before


def test_predictions_that_are_not_those_of_the_run(
    streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = home(streams, tmp_path / "home")
    run = ["learn", VW, *SKIP, "-p", "p", "--quarantine", "q", "--save", "m"]
    result = stopped(run, where, monkeypatch)
    for name in ("p", "q"):
        there = (where / name).read_bytes()
        (where / name).write_bytes(there[:3])
        refused = onepass(*printed(result.stderr), cwd=where)
        assert refused.returncode == 1 and f"--resume: {name} has" in refused.stderr, refused.stderr
        assert (where / name).read_bytes() == there[:3]
        (where / name).write_bytes(there)
    assert onepass(*printed(result.stderr), cwd=where).returncode == 3


def test_a_signal_before_the_first_row(streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was read, so nothing is saved, and what was there stays."""
    where = home(streams, tmp_path / "home")
    before = written(where)
    go = Job.go

    def late(self: Job) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Job, "_one_pass", lambda *_: os.kill(os.getpid(), signal.SIGINT))
            go(self)

    for options in (["--resume", "m0"], ["--start-from", "m0", "--save", "m"], ["--save", "m"]):
        with monkeypatch.context() as patch:
            patch.setattr(Job, "go", late)
            result = onepass("learn", VW, *SKIP, *options, cwd=where)
        assert result.returncode == 130 and "nothing was learned yet" in result.stderr, result.stderr
        assert written(where) == before
