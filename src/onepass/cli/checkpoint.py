"""Checkpoints: the part of a model file that describes its run: the position in the stream, and the evaluation so far.

It is stored in the model file (`model.extra["learn"]`), so that model and position always belong together, and
`onepass.load` can open the file.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from ..errors import DamagedFileError, InputError
from ..streams import Position
from ..streams.fingerprint import ResumePoint, require_unchanged
from ..streams.formats import COMPRESSED, FORMATS

if TYPE_CHECKING:
    from ..models.linear import LinearModel
    from ..streams.sources import Source

__all__ = ["Checkpoint", "check_sources", "read", "write"]

MODELS = ("LinearModel", "KernelModel", "EnsembleModel")  # the kinds of models that the command can resume
KEY = "learn"


@dataclasses.dataclass
class Checkpoint:
    """The state of a run, without the weights."""

    reading: dict[str, Any]
    options: dict[str, Any]  # options of the command: passes, holdout, metrics, …
    position: dict[str, int] | None
    pass_number: int
    finished: bool
    extents: list[Any]  # for each source the number of bytes read and their checksum; None if nothing was read
    passes: list[dict[str, Any]]  # the results of finished passes
    loop: dict[str, Any]  # the evaluation of the current pass (`Loop.state`)
    counts: dict[str, int]
    lengths: dict[str, int | None]  # bytes of predictions and quarantine; a resumed run truncates the files there
    # Times differ from run to run, so the file of a finished run has none.
    session: dict[str, Any] = dataclasses.field(default_factory=dict)


def write(path: str, model: LinearModel, checkpoint: Checkpoint, arrays: dict[str, Any]) -> None:
    """Write the model and its checkpoint to a file, atomically."""
    model.extra[KEY] = dataclasses.asdict(checkpoint)
    kept = model.extra_arrays
    model.extra_arrays = {**kept, **{f"{KEY}.{name}": array for name, array in arrays.items()}}
    try:
        model.save(path)
    finally:
        model.extra_arrays = kept
        del model.extra[KEY]


def read(path: str, *, resuming: bool = False) -> tuple[LinearModel, Checkpoint | None, dict[str, Any]]:
    """A model and its checkpoint, if it has one. A checkpoint of another version is an error only if `resuming`."""
    from ..persistence import registry

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


# -- the sources of a resumed run --------------------------------------------------------------------------------------


def check_sources(kept: Checkpoint, sources: list[Source], given: list[str]) -> ResumePoint | None:
    """Refuse to resume with other sources than those of the run. A pipe is checked when it is read."""
    if (count := len(kept.extents)) != len(sources):
        raise InputError(
            f"--resume: that run read {count} file{'s' * (count != 1)}, these are {len(sources)} "
            f"({', '.join(given)}); give the same ones, or --start-from to begin anew with its weights"
        )
    at = Position.of(kept.position)
    of_lines = FORMATS[kept.reading["format"]].text
    resume_point = None
    for number, (source, known) in enumerate(zip(sources, kept.extents, strict=True)):
        here = number == at.file
        crc = require_unchanged(source, known, at.offset if here and of_lines else 0)
        if here and of_lines:
            resume_point = ResumePoint(at.offset, known, crc)
    return resume_point


def _plain(name: str) -> bool:
    """Whether this is an uncompressed file that can be read again (not a pipe)."""
    if not os.path.isfile(name):
        return False
    with open(name, "rb") as file:
        return not file.read(4).startswith(tuple(COMPRESSED))
