"""Runs an experiment: its cells in parallel on all cores; each result is written to disk at once."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from ..errors import OnepassError, ParameterError
from ..persistence import files
from .framework import Cell, Experiment, Numbers, Result, Results

__all__ = ["FinishedRuns", "chosen", "describe", "load_file", "run"]

Told = Callable[[int, int, str], None]  # the number done, the number of all, the last one done


def load_file(path: str) -> Experiment:
    """The experiment of a Python file: its name `experiment`."""
    spec = importlib.util.spec_from_file_location("onepass_experiment_of_a_file", path)
    if not os.path.isfile(path) or spec is None or spec.loader is None:
        raise ParameterError(f"{path}: expected a Python file with an experiment; there is none")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, "experiment", None)
    if not isinstance(found, Experiment):
        raise ParameterError(f"{path}: expected a line `experiment = …` with an Experiment, found {found!r}")
    return found


def describe(cell: Cell) -> str:
    return ", ".join(f"B = {value}" if key == "B" else str(value) for key, value in cell.items())


def chosen(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """The cells that `only` selects: words of one field are alternatives; words of several fields must all match."""
    wanted: dict[str, set[str]] = {}
    for word in only:
        fields = {key for cell in cells for key, value in cell.items() if str(value).lower() == word.lower()}
        if not fields:
            raise ParameterError(f"--only {word}: no cell has it; there are {_listed(cells)}")
        for field in fields:
            wanted.setdefault(field, set()).add(word.lower())
    return [cell for cell in cells if _fits(cell, wanted, [word.lower() for word in only])]


def _fits(cell: Cell, wanted: dict[str, set[str]], words: Sequence[str]) -> bool:
    """Does the cell match one of the words of each field, and does every word belong to a field?"""
    agrees = all(str(cell[key]).lower() in wanted[key] for key in wanted if key in cell)
    return agrees and all(any(word in wanted[key] for key in wanted if key in cell) for word in words)


def _listed(cells: Sequence[Cell]) -> str:
    """The fields, and the values that each has."""
    known = {key: dict.fromkeys(str(cell[key]) for cell in cells if key in cell) for key in _fields(cells)}
    return "; ".join(f"{key}: {', '.join(values)}" for key, values in known.items())


def _fields(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(key for cell in cells for key in cell))


class FinishedRuns:
    """Finished runs in a folder, a file each. Files of another version of the experiment are ignored."""

    def __init__(self, folder: Path, experiment: Experiment, quick: bool) -> None:
        self.folder, self.experiment, self.quick = folder, experiment, quick

    def key(self, cell: Cell, seed: int) -> dict[str, Any]:
        e = self.experiment
        return {"experiment": e.name, "version": e.version, "quick": self.quick, "cell": dict(cell), "seed": seed}

    def path(self, cell: Cell, seed: int) -> Path:
        text = json.dumps(self.key(cell, seed), sort_keys=True)
        name = re.sub(r"[^\w.+-]+", "_", "_".join(map(str, cell.values())))[:60]
        return self.folder / f"{name}_{seed}_{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"

    def read(self, cell: Cell, seed: int) -> Numbers | None:
        try:
            found = json.loads(self.path(cell, seed).read_text(encoding="utf-8"))
            numbers: Numbers = found["numbers"]
            return numbers if found["key"] == self.key(cell, seed) and isinstance(numbers, dict) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # missing or incomplete: it is computed again

    def write(self, cell: Cell, seed: int, numbers: Numbers) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        files.write(self.path(cell, seed), json.dumps({"key": self.key(cell, seed), "numbers": numbers}))


NOT_RUN = "cells that were not run yet; go on without --done"


def run(
    experiment: Experiment,
    folder: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
    jobs: int | None = None,
    told: Told = lambda done, total, what: None,
    source: str | None = None,
    done_only: bool = False,
) -> Results:
    """All cells under all seeds; what `folder` has is not run again, and with `done_only` nothing else is run at all.
    `source`: the file that holds the experiment."""
    seeds = seeds or (experiment.quick_seeds if quick else experiment.seeds)
    jobs = jobs or (1 if experiment.timed else _cores())
    kept = FinishedRuns(folder, experiment, quick)
    results = Results((Result(cell, {}) for cell in chosen(experiment.cells(quick), only)), quick)
    todo = _to_do(experiment, results, kept, seeds, done_only)
    total = sum(len(result.runs) for result in results) + len(todo)
    done = total - len(todo)
    told(done, total, f"{done} of them from {folder}" if done else "")
    # One seed after the other: a run that is interrupted has a result of every cell.
    todo.sort(key=lambda work: work[1])
    for result, seed, numbers in _all_done(experiment, kept, todo, min(jobs, len(todo)), source):
        result.runs[seed] = numbers
        done += 1
        told(done, total, f"{describe(result.cell)}, seed {seed}")
    return results


def _to_do(
    experiment: Experiment, results: Results, kept: FinishedRuns, seeds: int, done_only: bool
) -> list[tuple[Result, int]]:
    """The runs that are not finished and can be run. Finished runs, and the reasons why others cannot be run, are added
    to the results.
    """
    reasons: dict[Any, str | None] = {}
    todo: list[tuple[Result, int]] = []
    for result in results:
        found = {seed: kept.read(result.cell, seed) for seed in range(seeds)}
        result.runs = {seed: numbers for seed, numbers in found.items() if numbers is not None}
        if len(result.runs) == seeds:
            continue  # it is finished, so its data is not needed
        # A cell without sets can still be unable to run, for a reason of its own.
        sets: tuple[Any, ...] = tuple(experiment.data(result.cell)) or tuple(result.cell.items())
        if sets not in reasons:
            reasons[sets] = experiment.missing(result.cell)
        result.missing = reasons[sets]
        if done_only:
            result.missing = result.missing or (None if result.runs else NOT_RUN)
        elif not result.missing:
            todo += [(result, seed) for seed in found if seed not in result.runs]
    return todo


def _cores() -> int:
    """The cores that this process may use, if the system tells."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _all_done(
    experiment: Experiment, kept: FinishedRuns, todo: list[tuple[Result, int]], jobs: int, source: str | None
) -> Iterator[tuple[Result, int, Numbers]]:
    if jobs <= 1:
        for result, seed in todo:
            yield result, seed, _work(experiment, kept, result.cell, seed)
        return
    waiting = list(reversed(todo))
    running: dict[Future[Numbers], tuple[Result, int]] = {}
    with _workers(jobs) as pool:
        while waiting or running:
            while waiting and len(running) < 2 * jobs:
                result, seed = waiting.pop()
                work = pool.submit(_work_elsewhere, source, experiment.name, kept.folder, kept.quick, result.cell, seed)
                running[work] = (result, seed)
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for work in finished:
                try:
                    yield *running.pop(work), work.result()
                except BrokenProcessPool:
                    raise OnepassError(
                        "a worker process was killed, probably because memory ran out; finished cells are kept: "
                        "run the same command again, with fewer --jobs"
                    ) from None


@contextlib.contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, with one thread each, that end when this process ends, however it does."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    added = {name: value for name, value in threads.items() if name not in os.environ}
    os.environ.update(added)
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_prepare)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)  # without waiting, Python may fail at exit on files that the pool closes
        raise
    finally:
        for name in added:
            os.environ.pop(name, None)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent receives the signal too, and ends this process
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()  # returns when the parent has died, even by kill -9
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@functools.cache
def _experiment(name: str) -> Experiment:
    from . import find

    return find(name)


def _work_elsewhere(source: str | None, name: str, folder: Path, quick: bool, cell: Cell, seed: int) -> Numbers:
    experiment = _experiment(source or name)
    return _work(experiment, FinishedRuns(folder, experiment, quick), cell, seed)


def _work(experiment: Experiment, kept: FinishedRuns, cell: Cell, seed: int) -> Numbers:
    began = time.perf_counter()
    numbers = experiment.run(cell, seed, kept.quick)
    numbers.setdefault("seconds", time.perf_counter() - began)
    kept.write(cell, seed, numbers)
    return numbers
