"""Ctrl-C ends every verb with one line and 130, however early it comes: at any import on the way."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from support.command import environment, onepass, started, write_vw

from onepass.cli import VERBS

CALLS = {
    "learn": "learn d.vw --save n",
    "predict": "predict m d.vw -o p",
    "compare": "compare d.vw --rules pa1,perceptron --report r",
    "models": "models pa1",
    "inspect": "inspect m",
    "convert": "convert d.vw d.jsonl",
    "demo": "demo --examples 1000 --quiet",
    "play": "play --rounds 2 --svg p.svg",
    "bench": "bench --examples 200 --repeats 1 --no-peers",
    "reproduce": "reproduce",
    "completion": "completion bash",
}
# Children are forked, which is much faster than to start an interpreter for each.
SCRIPT = """
import json, os, signal, sys
import onepass.__main__ as command  # the handler stands from `start` on

def child(args, at, dropped):
    count = 0
    def hook(event, more):
        nonlocal count
        if event != "import":
            return
        count += 1
        if count == at and dropped:  # where Python ignores exceptions
            class Noisy:
                def __del__(self):
                    os.kill(os.getpid(), signal.SIGINT)
            Noisy()
        elif count == at:
            os.kill(os.getpid(), signal.SIGINT)
    sys.argv = ["onepass", *args]
    sys.addaudithook(hook)
    try:
        command.start()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        code = 99
    sys.stderr.flush()
    os._exit(code if count >= at else 77)

for args, at, dropped in json.loads(sys.argv[1]):
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(theirs, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        child(args, at, dropped)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps([args, at, dropped, code, said]), flush=True)
"""


def interrupted(cases: list[tuple[list[str], int, bool]], folder: Path) -> int:
    """How many of the cases were interrupted; each has to end well. Verbs that import less just end."""
    command = [sys.executable, "-c", SCRIPT, json.dumps(cases)]
    result = subprocess.run(command, env=environment(), cwd=folder, text=True, capture_output=True, timeout=600)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == len(cases), result.stderr
    reached = 0
    for args, at, dropped, code, said in lines:
        if code == 77:
            continue
        reached += 1
        words = said.strip()
        assert code == 130, (args, at, dropped, code, said)
        assert words.startswith("onepass: interrupted") and "\n" not in words, (args, at, dropped, said)
    return reached


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_at_any_import(verb: str, dropped: bool, grids_are_whole: bool, tmp_path: Path) -> None:
    write_vw(tmp_path / "d.vw", 30)
    assert onepass("learn", "d.vw", "--save", "m", "--quiet", cwd=tmp_path).returncode == 0
    before = sorted(path.name for path in tmp_path.iterdir())
    points = range(1, 600, 3) if grids_are_whole else (1, 7, 60) if dropped else (1, 5, 30, 90, 200)
    assert interrupted([(CALLS[verb].split(), at, dropped) for at in points], tmp_path) >= 2
    left = {path.name for path in tmp_path.iterdir()} - set(before)
    assert not {name for name in left if name.startswith(".onepass")}


def test_every_verb_is_called() -> None:
    assert set(CALLS) == set(VERBS)


def unread(pipe: Any) -> int:
    """Bytes that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4), sys.byteorder)


def test_ctrl_c_while_a_stream_is_awaited(tmp_path: Path) -> None:
    """Verbs that read wait for their input: it is there that people interrupt them."""
    write_vw(tmp_path / "d.vw", 30)
    assert onepass("learn", "d.vw", "--save", "m", "--quiet", cwd=tmp_path).returncode == 0
    children = []
    for args in (["learn", "-"], ["predict", "m", "-"], ["compare", "-"], ["convert", "-", "o.jsonl"]):
        child = started(*args, "--format", "vw", cwd=tmp_path, stdin=subprocess.PIPE)
        assert child.stdin is not None
        child.stdin.write("1 | a\n")
        child.stdin.flush()
        children.append(child)
    for child in children:
        while child.poll() is None and unread(child.stdin):  # read: it has started
            time.sleep(0.02)
        child.send_signal(2)
    for child in children:
        said = child.communicate(timeout=60)[1].strip()
        assert child.returncode == 130, said
        assert said.startswith("onepass: interrupted") and "\n" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.vw", "m"]
