"""A run that is killed at any moment resumes from its last checkpoint to the same bytes as one that never stopped.

`ONEPASS_KILLS=200 pytest tests/promises/test_kill.py` makes so many kills (by default eight).
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import environment, onepass, process, started, write_csv, write_queries, write_sets, write_vw

from onepass.cli.checkpoint import read
from onepass.cli.interrupts import Interrupts

KILLS = int(os.environ.get("ONEPASS_KILLS", "8"))
_SKIP = ["--on-error", "skip", "--quarantine", "QUARANTINE"]
# Rows, options: what must come out the same. Small blocks of text would be one chunk, so the files are some megabytes.
RUNS = {
    "names": ("vw", []),
    "hashed": ("vw", ["-b", "12", "--rule", "sgd:loss=logistic", "--metrics", "error,auc,log_loss"]),
    "passes": ("vw", ["--passes", "2", "--holdout", "7", "--readout", "average"]),
    "gaps": ("unlabelled", _SKIP),
    "kernel": ("unlabelled", ["--kernel", "rbf:gamma=0.5", "--budget", "bpann:B=50", *_SKIP]),
    "sets": ("sets", ["--task", "multilabel", *_SKIP]),
    "queries": ("queries", ["--task", "ranking", *_SKIP]),
    "table": ("csv", ["--label", "spam", "--id", "id", "--metrics", "error,kappa,f1"]),
}
SKIPPING = {name for name, (_, options) in RUNS.items() if "skip" in options}


WRITTEN: dict[str, Callable[[Path], Path]] = {
    "vw": lambda folder: write_vw(folder / "a.vw", 25_000, words=3000),
    "unlabelled": lambda folder: _with_malformed(write_vw(folder / "b.vw", 25_000, words=3000, unlabelled=0.3)),
    "csv": lambda folder: write_csv(folder / "c.csv", 60_000),
    "sets": lambda folder: _with_malformed(write_sets(folder / "d.vw", 20_000)),
    "queries": lambda folder: _with_malformed(write_queries(folder / "e.svm", 4_000)),
}


def _with_malformed(path: Path) -> Path:
    lines = path.read_text().splitlines(keepends=True)
    for number in range(0, len(lines), 1013):
        lines[number] = f"abc | malformed{number}\n"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Files by name, written when they are first wanted."""
    folder = tmp_path_factory.mktemp("streams")
    return functools.cache(lambda name: WRITTEN[name](folder))


def command(name: str, stream: Callable[[str], Path], folder: Path) -> list[str]:
    source, options = RUNS[name]
    beside = ["-p", str(folder / "p"), "--checkpoint-every", "2000", "--quiet"]
    return ["learn", str(stream(source)), *(str(folder / "q") if o == "QUARANTINE" else o for o in options), *beside]


def written(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("m", "p", "q") if (folder / name).exists()}


@pytest.mark.full(most=4)
@pytest.mark.parametrize("name", sorted(RUNS))
def test_kills_lose_nothing(name: str, stream: Callable[[str], Path], tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    code = 3 if name in SKIPPING else 0
    began = time.monotonic()
    result = process(*command(name, stream, whole), "--save", whole / "m", timeout=900)
    took = time.monotonic() - began
    assert result.returncode == code, result.stderr
    expected = written(whole)

    rng = random.Random(name)
    wanted = -(-KILLS // len(RUNS))
    begin = [*command(name, stream, broken), "--save", str(broken / "m")]
    kills = 0
    while kills < wanted:
        for path in broken.iterdir():
            path.unlink()
        while True:
            resuming = (broken / "m").exists()
            child = started(*(_resumed(name, broken) if resuming else begin))
            try:
                # A run takes as long as a process takes to start, and then its work: kill anywhere in it.
                _, err = child.communicate(timeout=rng.uniform(0.15, 1.0) * took)
            except subprocess.TimeoutExpired:
                number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
                child.send_signal(number)
                # It ends at once; but on a loaded machine a process may wait for its turn, or be stopped, for minutes.
                _, err = child.communicate(timeout=900)
                kills += 1
                assert child.returncode in (-number, 130, code), err
                if (broken / "m").exists():
                    read(str(broken / "m"))  # whatever the moment, the file is whole
                if child.returncode != code:
                    continue
            assert child.returncode == code, err
            break
        for part, content in expected.items():
            assert (broken / part).read_bytes() == content, f"{part} differs after {kills} kills"
    leftovers = {path.name for path in broken.iterdir()} - {"m", "p", "q"}
    assert all(each.startswith(".onepass-") for each in leftovers), leftovers  # of saves that were cut short


def _resumed(name: str, folder: Path) -> list[str]:
    more = ["--on-error", "skip", "--quarantine", str(folder / "q")] if name in SKIPPING else []
    return [
        "learn",
        "--resume",
        str(folder / "m"),
        "-p",
        str(folder / "p"),
        "--checkpoint-every",
        "2000",
        "--quiet",
        *more,
    ]


SIGNALLED = """
import os, signal, sys
from onepass.cli import main
from onepass.cli.job import Job

at_the_end = sys.argv.pop(1) == "at the end"

def then_a_signal(method):
    def both(self, *args, **named):
        out = method(self, *args, **named)
        if bool(args or named) == at_the_end:
            os.kill(os.getpid(), signal.SIGTERM)
        return out
    return both

Job._end_pass = then_a_signal(Job._end_pass)  # called with last=True at the end
main()
"""


@pytest.mark.parametrize(("when", "expected"), [("between passes", 130), ("at the end", 0)])
def test_a_signal_where_a_pass_ends(when: str, expected: int, stream: Callable[[str], Path], tmp_path: Path) -> None:
    """A pass is over or it is not: between the two, nothing is saved that would be counted twice."""
    learn = ["learn", str(stream("vw")), "--passes", "2", "--quiet", "--save"]
    assert onepass(*learn, tmp_path / "whole").returncode == 0
    script = [sys.executable, "-c", SIGNALLED, when, *learn, str(tmp_path / "broken")]
    result = subprocess.run(script, env=environment(), text=True, capture_output=True, timeout=120)
    assert result.returncode == expected, result.stderr
    if expected:
        assert onepass("learn", "--resume", tmp_path / "broken", "--quiet").returncode == 0
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()


# -- a disk that does not take it ------------------------------------------------------------------------------------


def test_no_permission_to_save_is_said_and_the_old_model_stays(stream: Callable[[str], Path], tmp_path: Path) -> None:
    if os.geteuid() == 0:  # to whom only the kernel says no
        result = onepass("learn", stream("vw"), "--save", "/sys/model", "--quiet")
        assert result.returncode == 1 and "/sys/model: saving the model failed: Permission denied" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        return
    onepass("learn", stream("vw"), "--save", tmp_path / "m", "--quiet")
    before = (tmp_path / "m").read_bytes()
    tmp_path.chmod(0o555)
    try:
        result = onepass("learn", stream("vw"), "--save", tmp_path / "m", "--rule", "pa", "--quiet")
    finally:
        tmp_path.chmod(0o755)
    assert result.returncode == 1 and "saving the model failed" in result.stderr
    assert (tmp_path / "m").read_bytes() == before


def test_a_full_disk_leaves_the_last_checkpoint(stream: Callable[[str], Path], tmp_path: Path) -> None:
    """A limit on the size of files is as a full disk, and needs no rights: the model grows past it."""
    onepass("learn", stream("vw"), "--save", tmp_path / "whole", "--quiet")
    size = (tmp_path / "whole").stat().st_size

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error when writing, not the end of the process
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 512, size - 512))

    result = process(
        "learn", stream("vw"), "--save", tmp_path / "m", "--checkpoint-every", 2000, "--quiet", preexec_fn=limit
    )
    assert result.returncode == 1, result.stderr
    assert "saving the model failed" in result.stderr and "free some space" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.glob(".onepass-*"))  # nothing half-written stays
    if (tmp_path / "m").exists():  # the last that fitted is whole, and goes on to the same end
        resumed = onepass("learn", "--resume", tmp_path / "m", "--quiet")
        assert resumed.returncode == 0, resumed.stderr
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_real_full_disk(stream: Callable[[str], Path], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if made.returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        result = onepass("learn", stream("vw"), "--save", disk / "m", "--quiet")
        assert result.returncode == 1, result.stderr
        assert "No space left on device" in result.stderr and "free some space" in result.stderr
        assert list(disk.iterdir()) == []
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", disk], check=True)


# -- signals at awkward moments --------------------------------------------------------------------------------------


def test_a_signal_is_raised_only_where_it_is_caught() -> None:
    """While handlers are set and taken off again, it waits: a run would end with a traceback."""
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupts.Interruption):
            interrupts.listen()
        os.kill(os.getpid(), signal.SIGTERM)  # while the first is dealt with
        interrupts.hold()
        os.kill(os.getpid(), signal.SIGTERM)
    with Interrupts() as interrupts:
        interrupts.listen()
        with pytest.raises(Interrupts.Interruption):
            os.kill(os.getpid(), signal.SIGTERM)
