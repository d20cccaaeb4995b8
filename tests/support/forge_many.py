"""Many forged model files, in workers: one that crashes, hangs or takes much memory is told, and the rest goes on.

By hand, in the folder tests: python -W ignore -m support.forge_many 200000 [first seed] [part of a name]
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import onepass as op
from onepass.errors import ModelFileError, UnknownTypeError
from onepass.persistence import registry
from support.kernel_grid import BUDGETS, KERNEL_RULES, make_rule

from .forging import Forge
from .learners import LEARNERS, NESTED

BATCH = 100  # files of a worker
SECONDS = 20  # of the processor that one file may take
MEMORY = 2**30  # bytes that one file may take, in tables and besides
COUNTS = ("files", "refused", "used", "unwritten")
KERNELS = ["linear", "rbf:gamma=0.5", "polynomial:degree=3", "laplacian", "sigmoid", "intersection", "chi2", "chi2_exp"]


def kernel_learners() -> Iterator[tuple[str, Callable[[], Any]]]:
    """A learner of each budget and rule of the grid, and of each kernel."""
    for budget, (_, rules, tasks) in BUDGETS.items():
        for rule in rules or ["pa1"]:
            for task in (task for task in tasks if task in KERNEL_RULES[rule]):
                kind = op.KernelRegressor if task == "regression" else op.KernelClassifier
                options = {} if task == "regression" else {"task": task}
                yield (
                    f"{budget}/{rule}/{task}",
                    lambda k=kind, r=rule, b=BUDGETS[budget][0], o=options: k(
                        make_rule(r), budget=b, kernel="rbf:gamma=0.1", **o
                    ),
                )
    for kernel in KERNELS:
        yield f"kernel {kernel}", lambda kernel=kernel: op.KernelClassifier("pa1", kernel=kernel, budget="oldest:B=6")
        yield f"LASVM {kernel}", lambda kernel=kernel: op.LaSVMClassifier(kernel=kernel)
    costs = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    yield "kernel costs", lambda: op.KernelModel("mira", classes=["a", "b", "c"], costs=costs)
    yield "linear costs", lambda: op.LinearModel("mira", classes=["a", "b", "c"], costs=costs)


def cases() -> dict[str, Callable[[], Any]]:
    return {**LEARNERS, **NESTED, **dict(kernel_learners())}


class Board:
    """What a worker says of itself, in memory that outlives it."""

    def __init__(self) -> None:
        self.room = mmap.mmap(-1, 8 * (1 + len(COUNTS)))

    def read(self) -> list[int]:
        return list(struct.unpack_from(f"{1 + len(COUNTS)}q", self.room))

    def write(self, numbers: list[int]) -> None:
        struct.pack_into(f"{len(numbers)}q", self.room, 0, *numbers)


def one(forge: Forge, seed: int, number: int, path: Path) -> str:
    """What becomes of one file; raises what is no error of ours."""
    rng = np.random.default_rng([seed, number])
    data = forge.file(rng)
    if data is None:
        return "unwritten"
    path.write_bytes(data)
    try:
        learner = registry.load(path)
    except (ModelFileError, UnknownTypeError):
        return "refused"
    forge.use(learner)
    forge.stretch(learner)
    return "used"


def work(board: Board, forge: Forge, number: int, seeds: range, path: Path) -> None:
    """The worker: some files of one learner."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        now = board.read()
        board.write([seed, now[1] + 1, *now[2:]])
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = one(forge, seed, number, path)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__)[-3:])
            print(f"RAW {number} seed {seed}: {type(error).__name__}: {error}\n{where}", flush=True)
            found = "used"
        signal.setitimer(signal.ITIMER_PROF, 0)
        now = board.read()
        now[1 + COUNTS.index(found)] += 1
        board.write(now)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if (most - before) * 1024 > MEMORY:
            print(f"MEMORY {number} seed {seed}: {(most - before) // 1024} MiB", flush=True)
            before = most


def forge_many(count: int, first: int = 0, part: str = "") -> dict[str, int]:
    """So many files, spread over the learners."""
    board, path = Board(), Path(f"/dev/shm/forged-{os.getpid()}")
    every = [(number, name, make) for number, (name, make) in enumerate(cases().items()) if part in name]
    forges: dict[int, Forge] = {}
    began = told = time.monotonic()
    round_ = 0
    while board.read()[1] < count:
        for number, name, make in every:
            key = 3 * number + round_ % 3
            if key not in forges:
                forges[key] = Forge(make(), round_, "counts" if "chi2" in name or "intersection" in name else None)
            seeds = range(first + round_ * BATCH, first + (round_ + 1) * BATCH)
            while seeds:
                worker = os.fork()
                if worker == 0:
                    try:
                        work(board, forges[key], number, seeds, path)
                        os._exit(0)
                    finally:
                        os._exit(3)
                status = os.waitpid(worker, 0)[1]
                seeds = range(board.read()[0] + 1, seeds.stop)
                if status != 0:
                    print(f"CRASH {name} (number {number}, form {round_}) seed {seeds.start - 1}: {status}", flush=True)
                if status == 0:
                    break
            if board.read()[1] >= count:
                break
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{told - began:.0f} s, round {round_}: {board.read()[1:]}", flush=True)
        round_ += 1
    path.unlink(missing_ok=True)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return dict(zip(COUNTS, board.read()[1:], strict=True))


if __name__ == "__main__":
    os.environ.setdefault("ONEPASS_MAX_MEMORY", "500M")
    print(forge_many(int(sys.argv[1]), *map(int, sys.argv[2:3]), *sys.argv[3:4]))
