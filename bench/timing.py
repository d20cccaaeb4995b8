"""Helpers of the benchmarks: timing in turns, and a description of the machine and the versions."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def once(work: Callable[[], Any], clock: str = "wall") -> float:
    """Seconds for one run, with the garbage collector switched off."""
    now = CLOCKS[clock]
    gc.collect()
    gc.disable()
    try:
        start = now()
        work()
        return now() - start
    finally:
        gc.enable()


def in_turn(
    sides: Sequence[tuple[Callable[[], Any], Callable[[Any], Any]]], repeats: int, clock: str = "wall"
) -> tuple[list[float], list[Any]]:
    """Each side is (make, learn); learning alone is timed. A, B, A, B, …: so that noise affects both. Returns each
    side's best seconds (noise only adds time) and the last model that it learned.
    """
    best = [float("inf")] * len(sides)
    models: list[Any] = [None] * len(sides)
    for _ in range(repeats):
        for i, (make, learn) in enumerate(sides):
            model = models[i] = make()
            best[i] = min(best[i], once(lambda model=model, learn=learn: learn(model), clock))
    return best, models


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """The machine and the versions with which the figures were measured."""
    import onepass
    from onepass import _native

    versions = {"python": platform.python_version(), "onepass": onepass.__version__}
    for name in ("numpy", "scipy", "scikit-learn", "river"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "none"
    return {"cpu": processor(), "cores": os.cpu_count(), "isa": _native.isa(), "versions": versions}


def header(about: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return f"{about['cpu']}, {about['cores']} cores; {versions}; onepass isa {about['isa']}"


@dataclasses.dataclass
class Asked:
    """The options of a benchmark's command line."""

    groups: list[str]
    scale: float  # of the rows
    repeats: int
    clock: str
    file: str | None

    def keep(self, about: dict[str, Any], **figures: Any) -> None:
        """Write the figures where --json says."""
        if self.file:
            figures = {"machine": about, "clock": self.clock, "repeats": self.repeats, **figures}
            Path(self.file).write_text(json.dumps(figures, indent=1), encoding="utf-8")


def ask(description: str | None, groups: Sequence[str]) -> tuple[Asked, dict[str, Any]]:
    """Read the command line and print where and how the benchmark runs; also return the machine."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows, two turns: under 30 s")
    parser.add_argument("--only", help=f"groups to run, by commas: {','.join(groups)}")
    parser.add_argument("--repeats", type=int, help="turns for each side (5; quick 2); the best counts")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="cpu on a shared machine")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    given = parser.parse_args()
    chosen = given.only.split(",") if given.only else list(groups)
    unknown = set(chosen) - set(groups)
    if unknown:
        parser.error(f"--only {','.join(sorted(unknown))}: expected some of {','.join(groups)}")
    warnings.filterwarnings("ignore")  # FutureWarnings of a peer
    repeats = given.repeats or (2 if given.quick else 5)
    about = machine()
    print(header(about))
    print(f"{given.clock} clock, best of {repeats} turns each (ours, peer, ours, peer, …), all checks on")
    return Asked(chosen, 0.2 if given.quick else 1.0, repeats, given.clock, given.json), about
