"""What a saved model remembers of the run that made it: where in the stream it is, and the evaluation so far.

It lies inside the model file (`model.extra["learn"]`), so a model and its place can never be of different moments, and
`onepass.load` opens the file as any other.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DamagedFileError, InputError
from ..streams.reading import LATER
from .reading import Reading

if TYPE_CHECKING:
    from ..evaluate import Run
    from ..evaluate.keeping import Keeper
    from ..metrics import Labels
    from ..model import LinearModel
    from ..streams import Position

__all__ = ["Checkpoint", "check_sources", "keeper_from", "keeper_state", "read", "seen_of", "write"]

MODELS = ("LinearModel", "KernelModel", "EnsembleModel")  # what the command can go on with
KEY = "learn"
HEAD, TAIL = 1 << 16, 1 << 12  # bytes compared at the beginning of what was read, and at its end
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclasses.dataclass
class Checkpoint:
    """Everything but the weights."""

    reading: dict[str, Any]
    options: dict[str, Any]  # of the verb: passes, holdout, metrics, …
    position: dict[str, int] | None
    pass_number: int
    finished: bool
    seen: list[Any]  # of each source, a print of what was read
    passes: list[dict[str, Any]]  # runs of the passes that are done
    keepers: dict[str, Any]  # the current pass: evaluation, hold-out
    counts: dict[str, int]
    lengths: dict[str, int | None]  # bytes of the files written beside: what is behind them is written again
    # What is not the same from run to run, and so is not in the file of a finished run.
    passing: dict[str, Any] = dataclasses.field(default_factory=dict)


def write(path: str, model: LinearModel, checkpoint: Checkpoint, arrays: dict[str, Any]) -> None:
    """The model with the checkpoint inside, atomically."""
    model.extra[KEY] = dataclasses.asdict(checkpoint)
    kept = model.extra_arrays
    model.extra_arrays = {**kept, **{f"{KEY}.{name}": array for name, array in arrays.items()}}
    try:
        model.save(path)
    finally:
        model.extra_arrays = kept
        del model.extra[KEY]


def read(path: str, *, resuming: bool = False) -> tuple[LinearModel, Checkpoint | None, dict[str, Any]]:
    """A model, and the run it remembers, if any; a run of another version is only an error when it is `resuming`."""
    from .. import registry

    model, _ = registry.load_model(path, *MODELS)
    kept = model.extra.pop(KEY, None)
    mine = {name: model.extra_arrays.pop(name) for name in list(model.extra_arrays) if name.startswith(f"{KEY}.")}
    if kept is None:
        return model, None, {}
    try:
        return model, Checkpoint(**kept), {name.removeprefix(f"{KEY}."): array for name, array in mine.items()}
    except TypeError as error:
        if not resuming:
            return model, None, {}
        raise DamagedFileError(
            f"{path}: its run cannot be read ({error}); --start-from takes the model alone"
        ) from None


# -- the evaluation so far -------------------------------------------------------------------------------------------


def keeper_state(keeper: Keeper, name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    from ..metrics.saving import save
    from ..metrics.tables import BINS

    config, mine = save(keeper.recorder)
    arrays.update({f"{name}.{key}": array for key, array in mine.items()})
    return {
        "recorder": config,
        "run": without_times(keeper.run),
        "metrics": keeper.run.metrics,
        "calibrates": BINS in keeper.recorder.extra,
    }


def keeper_from(kept: dict[str, Any], name: str, arrays: dict[str, Any], labels: Labels | None = None) -> Keeper:
    """`labels`: those of another keeper, which this one shares."""
    from .. import metrics
    from ..evaluate.keeping import Keeper
    from ..evaluate.run import Run
    from ..metrics.saving import restore

    run = Run.from_json(json.dumps(kept["run"]))
    before = run.values, run.curves
    keeper = Keeper(run, [metrics.make(metric) for metric in kept["metrics"]], calibrate=kept["calibrates"])
    run.values, run.curves = before
    if labels is not None:
        keeper.recorder.labels = labels
    prefix = f"{name}."
    restore(
        keeper.recorder,
        kept["recorder"],
        {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)},
    )
    return keeper


def without_times(run: Run) -> dict[str, Any]:
    """A run as JSON, without what a clock said."""
    content: dict[str, Any] = json.loads(run.to_json())
    return {**content, "seconds": 0.0, "throughput": [0.0] * len(run.t)}


# -- is it the same stream? ------------------------------------------------------------------------------------------


def seen_of(reading: Reading, names: list[str], position: Position, all_read: bool) -> list[Any]:
    """For each source how much of it was read, and a digest of that: None where nothing was, or nothing can be read
    twice (a pipe)."""
    out: list[Any] = []
    for number, name in enumerate(names):
        if not os.path.isfile(name) or (number > position.file and not all_read):
            out.append(None)
            continue
        size = os.path.getsize(name)
        upto = size
        if number == position.file and not all_read and reading.format not in ("parquet", "arrow") and _plain(name):
            upto = _end_of_rows(name, position)
        out.append([upto, _digest(name, upto)])
    return out


def check_sources(seen: list[Any], names: list[str], given: list[str]) -> None:
    """Refuse to go on with another stream than the one that was begun."""
    if len(seen) != len(names):
        raise InputError(
            f"--resume: that run read {len(seen)} file{'s' * (len(seen) != 1)}, these are {len(names)} "
            f"({', '.join(given)}); give the same ones, or --start-from to begin anew with its weights"
        )
    for name, known in zip(names, seen, strict=True):
        if known is None or name in ("-", "<stdin>"):
            continue
        upto, digest = known
        try:
            size = os.path.getsize(name)
            same = size >= upto and _digest(name, upto) == digest
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}") from error
        if not same:
            what = (
                f"has {size:,} bytes, of which {upto:,} were read" if size < upto else "has changed where it was read"
            )
            raise InputError(
                f"--resume: {name} is not the stream that run read: it {what}; give the same stream, or "
                "--start-from to begin anew with its weights"
            )


def _end_of_rows(name: str, position: Position) -> int:
    """A byte before which everything was read: rows have a line at least."""
    with open(name, "rb") as file:
        file.seek(position.offset)
        block = file.read(LATER)
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == 10)[: position.skip]
    return position.offset + (int(ends[-1]) + 1 if len(ends) else 0)


def _plain(name: str) -> bool:
    """A file whose bytes are the text's own, and can be read again: not a pipe."""
    if not os.path.isfile(name):
        return False
    with open(name, "rb") as file:
        return not file.read(4).startswith(COMPRESSED)


def _digest(name: str, upto: int) -> str:
    with open(name, "rb") as file:
        head = file.read(min(HEAD, upto))
        file.seek(max(0, upto - TAIL))
        tail = file.read(min(TAIL, upto))
    import hashlib

    return hashlib.sha256(head + tail).hexdigest()
