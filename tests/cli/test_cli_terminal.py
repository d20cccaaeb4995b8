"""What a person sees: the command in a real terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from support.command import environment, line, started, write_vw

from onepass.cli.progress import _eight


def in_terminal(*args: object, interrupt_after: str = "", columns: int = 80) -> tuple[int, str]:
    """The code it ends with, and all it wrote; with a Ctrl-C once it has written `interrupt_after`."""
    pid, terminal = pty.fork()
    if pid == 0:
        command = line(*args)
        about = {name: value for name, value in environment().items() if name not in ("COLUMNS", "LINES")}
        os.execve(command[0], command, {**about, "TERM": "xterm", "LANG": "C.UTF-8"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    out = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        out += part
        if interrupt_after and interrupt_after.encode() in out:
            os.write(terminal, b"\x03")
            interrupt_after = ""
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode()


def screen(text: str) -> list[str]:
    """The lines that stand there at the end: carriage returns and the two escapes we use are obeyed."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[(?:\d+A|J)|\r|\n|[^\x1b\r\n]+", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.startswith("\x1b"):
            if part.endswith("A"):
                row -= int(part[2:-1])
            else:
                del lines[row + 1 :]
                lines[row] = lines[row][:column]
        else:
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [each.rstrip() for each in lines]


@pytest.fixture(scope="module")
def vw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vw(tmp_path_factory.mktemp("stream") / "a.vw", 60_000, words=5000)


def widest(text: str) -> int:
    return max(len(each) for each in re.split(r"[\r\n]|\x1b\[\d*[AJ]", text))


def test_the_bar_fits_and_leaves_no_trace(vw: Path) -> None:
    code, text = in_terminal("learn", vw, "--passes", 12)
    assert code == 0, text
    bars = re.findall(
        r"pass \d+/12  [█░]{12} +\d+%  [\d.]+[kM]? ex  [\d.]+[kM]?/s  error 0\.\d{4}  \d+:\d\d left  \d+ MB", text
    )
    assert len(bars) >= 3
    shown = [int(share) for share in re.findall(r"(\d+)%  ", text)]
    assert shown == sorted(shown)
    assert widest(text) <= 80
    final = screen(text)
    assert not any("left" in each for each in final)
    assert any(each.startswith("examples") for each in final)


def test_a_narrow_terminal_is_not_wrapped(vw: Path) -> None:
    code, text = in_terminal("learn", vw, "--passes", 8, columns=40)
    assert code == 0
    bars = [each for each in re.split(r"[\r\n]", text) if "░" in each or "█" in each]
    assert bars and all(len(each) <= 39 for each in bars)


def test_the_leaderboard_stands_still_and_goes(vw: Path) -> None:
    code, text = in_terminal("compare", vw, "--rules", "pa1,perceptron,pa1:C=0.01,sgd,pegasos,alma,shifting")
    assert code == 0, text
    assert "▇" in text
    assert widest(text) <= 80
    final = screen(text)
    assert not any("▇" in each for each in final)
    assert sum("%" in each for each in final) == 7  # the table at the end, once


def test_ctrl_c_is_one_line(vw: Path, tmp_path: Path) -> None:
    code, text = in_terminal("learn", vw, "--passes", 500, "--save", tmp_path / "m", interrupt_after="█")
    assert code == 130
    last = screen(text.replace("^C", ""))[-2:]
    assert "interrupted after" in "".join(last) and "--resume" in "".join(last), last
    assert "Traceback" not in text


def test_sigterm_while_waiting_for_standard_input(tmp_path: Path) -> None:
    process = started("learn", "-", "--format", "vw", "--save", tmp_path / "m", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("1 | a b\n-1 | c\n")
    process.stdin.flush()
    status = Path(f"/proc/{process.pid}/status")
    for _ in range(600):  # until it listens to the signal
        caught = int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16)  # type: ignore[index]
        if caught >> (signal.SIGTERM - 1) & 1:
            break
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted" in err and "Traceback" not in err


@pytest.mark.parametrize("loss", [0.0, 0.5, 9.99999999, 10.0, 58.682493, -3.25, -123.456, 999_999.7, 1.5e12, -2e300])
def test_a_loss_fits_its_column_of_the_table(loss: float) -> None:
    shown = _eight(loss)
    assert len(shown) <= 8 and float(shown) == pytest.approx(loss, rel=0.5 if abs(loss) > 1e6 else 1e-5)
