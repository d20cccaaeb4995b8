"""Learn a stream of any length: memory must not grow, and an example must cost the same at the end as at the start.

python scripts/long_stream.py [--size 10GB] [--file PATH] [--bits 20] [--memory 300]

The stream is generated and piped into `onepass learn -`; with --file it is written to that file first. It is
VW text of numbers and words. After some megabytes the rows are repeated, each with a new word, so that there are always
new names; -b limits the weights to 2^BITS. For each tenth of the stream it prints the processor time of an example and
the memory; it fails if memory exceeds the weights by more than --memory MB, or if the last tenths cost more than
--slower times the first.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
ROWS = 2000  # lines of a block
DISTINCT = 50  # blocks drawn


def blocks(size: int) -> Iterator[bytes]:
    """About `size` bytes of VW text, in blocks of whole lines."""
    drawn: list[bytes] = []
    made = turn = 0
    while made < size:
        if len(drawn) < DISTINCT:
            drawn.append(draw(len(drawn)))
        block = drawn[turn % DISTINCT].replace(b"new", b"new%d_" % (turn // DISTINCT))
        turn += 1
        made += len(block)
        yield block


def draw(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    w = np.random.default_rng(1 << 20).normal(size=100_000)
    words = (100_000 * rng.random((ROWS, 20)) ** 3).astype(int)  # the frequent ones often
    values = np.round(rng.normal(size=(ROWS, 5)), 3)
    y = np.where(w[words].sum(axis=1) + values[:, 0] > 0, 1, -1)
    lines = []
    for number, (label, row, met) in enumerate(zip(y.tolist(), values.tolist(), words.tolist(), strict=True)):
        numbers = " ".join(f"x{j}:{value}" for j, value in enumerate(row))
        lines.append(f"{label} |n {numbers} |w {' '.join(f'w{j}' for j in met)} new{seed}.{number}\n")
    return "".join(lines).encode()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def whole_number(pattern: str, text: str) -> int:
    """The group of a pattern that must be found."""
    match = re.search(pattern, text)
    assert match is not None, f"{pattern} is not in: {text[-300:]}"
    return int(match[1])


def peak_memory(pid: int) -> int:
    """The peak memory of a process so far, in bytes."""
    return whole_number(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()) * 1024


class Watch:
    """A running `onepass learn`, measured at each tenth of its stream."""

    def __init__(self, source: str, bits: int) -> None:
        command = [sys.executable, "-m", "onepass", "learn", source, "--format", "vw", "-b", str(bits), "--quiet"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE if source == "-" else None)
        self.marks: list[tuple[float, int, int]] = []  # processor seconds, examples, peak memory

    def mark(self, examples: int) -> None:
        pid = self.process.pid
        self.marks.append((processor_seconds(pid), examples, peak_memory(pid)))

    def feed(self, size: int) -> None:
        """Generate the stream and pipe it. What is in the pipe at a measurement is small compared with a tenth."""
        assert self.process.stdin is not None
        sent = examples = 0
        for block in blocks(size):
            if not self.marks and examples:
                self.mark(examples)  # from here on: the start of the process is not part of the cost of an example
            self.process.stdin.write(block)
            sent += len(block)
            examples += ROWS
            if sent >= size * (len(self.marks) + (not self.marks)) / 10 and len(self.marks) < 10:
                self.mark(examples)
        self.mark(examples)
        self.process.stdin.close()

    def follow(self, path: Path, size: int, examples: int) -> None:
        """Follow a process that reads a file; /proc tells its position."""
        while self.process.poll() is None and len(self.marks) <= 10:
            place = self._place(path)
            if place is not None and place >= size * len(self.marks) / 10:
                self.mark(round(examples * place / size))
            time.sleep(0.01)

    def _place(self, path: Path) -> int | None:
        try:
            for each in Path(f"/proc/{self.process.pid}/fd").iterdir():
                if os.path.realpath(each) == str(path.resolve()):
                    text = Path(f"/proc/{self.process.pid}/fdinfo/{each.name}").read_text()
                    return whole_number(r"pos:\s+(\d+)", text)
        except OSError:
            pass
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="10GB", help="bytes of the stream: 100MB, 10GB, …")
    parser.add_argument("--file", type=Path, help="write the stream here and learn from the file")
    parser.add_argument("--bits", type=int, default=20, help="weights: 2^BITS")
    parser.add_argument("--memory", type=int, default=300, help="megabytes allowed above the weights")
    parser.add_argument("--slower", type=float, default=1.25, help="what the last tenths may cost beside the first")
    given = parser.parse_args()
    match = re.fullmatch(r"([\d.]+)([KMGT]B)", given.size)
    if match is None:
        parser.error(f"--size {given.size}: expected a number and KB, MB, GB or TB")
    size = int(float(match[1]) * UNITS[match[2]])
    began = time.monotonic()
    if given.file is None:
        watch = Watch("-", given.bits)
        watch.feed(size)
    else:
        written = examples = 0
        with given.file.open("wb") as file:
            for block in blocks(size):
                file.write(block)
                written, examples = written + len(block), examples + ROWS
        watch = Watch(str(given.file), given.bits)
        watch.follow(given.file, written, examples)
    code = watch.process.wait()
    if code:
        return code
    return report(watch.marks, given.bits, given.memory, given.slower, time.monotonic() - began)


def report(marks: list[tuple[float, int, int]], bits: int, memory: int, slower: float, seconds: float) -> int:
    def cost(begin: int, end: int) -> float:
        return 1e6 * (marks[end][0] - marks[begin][0]) / (marks[end][1] - marks[begin][1])

    marks = marks[:1] + [later for mark, later in itertools.pairwise(marks) if later[1] > mark[1]]
    print("examples        µs of processor each    memory at most")
    for i in range(1, len(marks)):
        print(f"{marks[i][1]:>12,}    {cost(i - 1, i):>12.2f}            {marks[i][2] / 1e6:>10.0f} MB")
    weights = 8 << bits
    above = marks[-1][2] - weights
    third = max(1, len(marks) // 3)  # several tenths together: a tenth of a short stream is only a few blocks
    tick = 1e6 / os.sysconf("SC_CLK_TCK") / (marks[third][1] - marks[0][1])  # shorter times are too short to measure
    ratio = cost(-1 - third, -1) / max(cost(0, third), tick)
    room = f"{above / 1e6:.0f} MB above the weights ({weights / 1e6:.0f} MB)"
    print(f"{marks[-1][1]:,} examples in {seconds:.0f} s; {room}; the last tenths cost {ratio:.2f} of the first")
    wrong = [f"more than {memory} MB above the weights"] * (above > memory * 1e6)
    wrong += [f"the last tenths cost more than {slower} of the first"] * (ratio > slower)
    print("\n".join(wrong) or "flat")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
