"""The summary that `onepass learn` prints at the end of a run."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .kernels import learner_of, support
from .paths import STDOUT
from .progress import peak_memory, short

if TYPE_CHECKING:
    from ..models.kernel import KernelModel
    from ..models.linear import LinearModel
    from .job import Job

__all__ = ["collisions", "learned", "summary"]


def summary(job: Job, seconds: float, given: dict[str, Any]) -> str:
    """The lines: examples, task, metrics, what was learned, time, and the files written."""
    counts, model = job.counts, job.model
    if model is None:
        return f"no labelled example in {', '.join(job.reading.sources)}; nothing was learned"
    rows = [("", ""), *_counts(job, given)]
    why = f" ({job.decided})" if job.decided else ""
    rows.append(("task", f"{job.task_name()}{_classes(model)}{why}"))
    rows.append(("rule", learner_of(model)))
    rows += _values(job)
    if job.distances is not None and (hint := job.distances.hint()):
        rows.append(("hint", hint))
    if job.options.regret:
        measured = job.run.regret
        told = measured.rows() if measured is not None else [("regret", "not measured: the run was resumed")]
        rows += [(name if name == "regret" else f"  {name}", text) for name, text in told]
    rows.append(learned(model, job.spelled))
    speed = (counts["examples"] - job.examples_before) / max(seconds, 1e-9)
    rows.append(("time", f"{seconds:.1f} s, {short(speed)} examples/s, at most {peak_memory() >> 20} MB"))
    for what, name in (("model", "save"), ("report", "report"), ("predictions", "predictions")):
        if given.get(name) not in (None, STDOUT):
            rows.append((what, str(given[name])))
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(f"{name:<{width}}{value}".rstrip() for name, value in rows)


def _counts(job: Job, given: dict[str, Any]) -> list[tuple[str, str]]:
    """The numbers of examples: all, without label, malformed."""
    counts, rows = job.counts, []
    if counts["examples"]:
        each = f", {counts['features'] / counts['examples']:.1f} features each"
    else:
        each = f"; nothing to learn in {', '.join(job.reading.sources)}"
    passes = f" in {job.options.passes} passes" if job.options.passes > 1 else ""
    rows.append(("examples", f"{counts['examples']:,}{passes}{each}"))
    if counts["unlabelled"]:
        rows.append(("without label", f"{counts['unlabelled']:,}, predicted but not learned"))
    if counts["skipped"]:
        where = f", written to {given['quarantine']}" if given.get("quarantine") else ""
        rows.append(("skipped", f"{counts['skipped']:,} malformed line{'s' * (counts['skipped'] != 1)}{where}"))
    return rows


def _values(job: Job) -> list[tuple[str, str]]:
    rows = []
    for number, run in enumerate(job.runs):
        title = "" if len(job.runs) == 1 else f"pass {number + 1} "
        for metric in run.metrics:
            last = run.curves[metric]["window"][-1:] or [math.nan]
            of = f"; last {min(run.window_size, run.examples):,}: {run.show(last[0], metric)}"
            rows.append((f"{title}{metric}", f"{run.show(run.values[metric], metric)}{of}"))
            if run.holdout.get(metric):
                rows.append((f"{title}held out", f"{metric} {run.show(run.holdout[metric][-1], metric)}"))
    if len(job.runs) > 1 and not job.options.holdout:
        rows.append(("", "(later passes know their examples; --holdout N is fair)"))
    return rows


def _classes(model: LinearModel) -> str:
    if model.task in ("regression", "ranking"):
        return ""
    if model.task == "oneclass":
        return f", radius {model.radius:g}"
    classes = [str(label) for label in model.classes]
    names = ", ".join(classes[:6]) + (", …" if len(classes) > 6 else "")
    return f" of {len(classes)} class{'es' * (len(classes) != 1)}: {names}"


def learned(model: LinearModel, spelled: dict[int, list[str]] | None = None) -> tuple[str, str]:
    """The size of a model: weights, or support vectors."""
    if model.traits.by_rule and not model.traits.linear:
        return "support", support(cast("KernelModel", model))
    return "weights", _weights(model, spelled)


def _weights(model: LinearModel, spelled: dict[int, list[str]] | None = None) -> str:
    _, w, _ = model.met_weights()
    used = int(np.count_nonzero(np.any(w != 0.0, axis=0))) if w.size else 0
    if model.hash_bits is None:
        return f"{used:,} of {model.n_features:,} features are not 0"
    if spelled:
        share = sum(len(names) - 1 for names in spelled.values())
        return f"{used:,} of {model.n_features:,} slots used; {share:,} names share one with a name met before"
    share = collisions(used, model.n_features)
    return f"{used:,} of {model.n_features:,} slots used; about {share:,} names share one"


def collisions(used: int, slots: int) -> int:
    """An estimate of the number of names that share a slot, if `used` slots of a hash table are in use (linear
    counting: n names leave a share of (1 − 1/slots)^n empty). Names whose weight is 0 are not counted."""
    if used >= slots:
        return slots
    names = math.log(1.0 - used / slots) / math.log(1.0 - 1.0 / slots) if used else 0.0
    return max(0, round(names - used))


def size_of(path: str) -> str:
    size = os.path.getsize(path)
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size:,} bytes"
