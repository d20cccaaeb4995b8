"""A stream of 100 MB in constant memory, at a constant cost per example (`scripts/long_stream.py` makes 10 GB)."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "long_stream.py"


@pytest.mark.full(most=1)
@pytest.mark.parametrize("how", ["pipe", "file"])
def test_memory_and_cost_are_flat(how: str, tmp_path: Path) -> None:
    more = ["--file", str(tmp_path / "long.vw")] if how == "file" else []
    # Blocks are read ahead of what is learned, and other work on the machine makes processor time noisy. A cost that
    # grows with the examples would be five times as high in the last third as in the first.
    command = [sys.executable, str(SCRIPT), "--size", "100MB", "--slower", "3", *more]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "flat"
    memory = [int(each) for each in re.findall(r"(\d+) MB$", result.stdout, re.MULTILINE)]
    assert len(memory) >= 5 and memory[-1] - memory[1] < 50  # nothing is kept: how many blocks are on their way varies


def test_what_is_not_flat_is_said() -> None:
    command = [sys.executable, str(SCRIPT), "--size", "10MB", "--memory", "1"]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert result.returncode == 1 and "more than 1 MB above the weights" in result.stdout


def test_times_too_short_to_be_measured_are_flat(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("long_stream", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.report([(0.5, 1000 * i, 1 << 20) for i in range(10)], 10, 300, 1.25, 1.0) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "flat"
