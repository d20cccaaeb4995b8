"""One run of `onepass learn`: predict, evaluate and learn, chunk by chunk. It can be stopped anywhere; resumed, it
gives the same result as an uninterrupted run."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .. import metrics as metrics_module
from ..errors import InputError, LabelError, NumericalError, ParameterError
from ..evaluation.answers import needs_of
from ..evaluation.model_loop import ModelLoop, kind_of, predictions_of
from ..evaluation.run import Run
from ..metrics import Outcomes
from ..rows.batches import as_base
from ..streams import Position
from ..streams.formats import FORMATS
from . import checkpoint as saved
from . import tasks
from .interrupts import Interrupts
from .kernels import learner_of
from .outputs import merge_names
from .pace import Pace
from .progress import Display, Losses, memory_note
from .radius import Distances
from .rows import check_bases, cut, declare_sides, inside, part_of, rows_of, runs_of_labels, usual_every, whole_queries

if TYPE_CHECKING:
    from ..models.linear import LinearModel
    from ..scheme.rounds import Rule
    from ..streams import Chunk, Stream
    from ..streams.fingerprint import ResumePoint
    from .outputs import Audit, Predictions
    from .source_options import SourceOptions

__all__ = ["Job", "Options", "Stopped"]


@dataclasses.dataclass
class Options:
    """The options that influence the result. They are stored in checkpoints."""

    task: str = "auto"
    metrics: list[str] | None = None
    every: int = 0  # 0: chosen by the length of the stream
    window: int = 1000
    passes: int = 1
    holdout: int = 0
    test_only: bool = False
    regret: bool = False


@dataclasses.dataclass
class Stopped(Exception):
    """A signal has stopped the run. With --save the rows that were learned are saved."""

    signal: int


class Job:
    """A run. `make_model(task)` is called after the first labels have decided the task."""

    def __init__(
        self,
        reading: SourceOptions,
        options: Options,
        how: dict[str, Any],
        *,
        rule: Rule | None,
        make_model: Callable[[str], LinearModel] | None,
        display: Display,
        save: str | None = None,
        checkpoint_every: int = 0,
        predictions: Predictions | None = None,
        audit: Audit | None = None,
    ) -> None:
        self.reading, self.options, self.how = reading, options, how
        self.rule, self.make_model, self.display = rule, make_model, display
        self.save_path, self.checkpoint_every = save, checkpoint_every
        self.predictions, self.audit = predictions, audit
        self.model: LinearModel | None = None
        self.position: Position | None = None
        self.extents: list[Any] = []  # for each source, what was read before this run, or in the first pass
        self.resume_point: ResumePoint | None = None
        self.pass_number = 0
        self.runs: list[Run] = []  # the results of finished passes
        self.loop: ModelLoop | None = None  # of this pass
        self.counts = {"examples": 0, "unlabelled": 0, "features": 0, "skipped": 0}
        self.decided = ""  # how the task was chosen
        self.stopped_whole = False  # True if everything before the malformed input was saved
        self.distances: Distances | None = None  # one-class: the distances since the run began or was resumed
        self.spelled: dict[int, list[str]] = {}  # with --invert_hash: the names of each hash, from the first pass
        self.stream: Stream | None = None  # the stream that is read, if there is one
        self.repeated_options: list[str] = []  # options that must be given again to resume this run
        self.began = perf_counter()
        self.examples_before = 0
        self.pace = Pace()

    # -- from the beginning, or from a checkpoint ------------------------------------------------------------------

    def adopt(self, model: LinearModel) -> None:
        """Start with an existing model."""
        self.model = model

    def resume(
        self,
        model: LinearModel,
        kept: saved.Checkpoint,
        arrays: dict[str, Any],
        resume_point: ResumePoint | None = None,
    ) -> None:
        """Continue as if the run had never stopped."""
        self.adopt(model)
        self.extents, self.resume_point = list(kept.extents), resume_point
        self.position = None if kept.position is None else Position.of(kept.position)
        self.pass_number, self.counts = kept.pass_number, dict(kept.counts)
        self.examples_before = self.counts["examples"]
        self.runs = [Run.from_json(json.dumps(run)) for run in kept.passes]
        if "spelled" in arrays:
            met = json.loads(arrays["spelled"].tobytes())
            self.spelled = {int(hashed): [str(name) for name in names] for hashed, names in met.items()}
        if kept.finished and self.pass_number + 1 >= self.options.passes and self.runs:
            self.runs.pop()  # continue in its last pass: the stream may have grown
        if "recorder" in kept.loop:
            made = self._metrics()
            self.loop = self._new_loop(made, regret="regret" in kept.loop)
            self.loop.restore(kept.loop, arrays)
            self.display.begin(Losses.of(made[0]))
            self.display.restore(kept.session.get("display", {}))

    # -- the loop --------------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Make all passes. Raises `Stopped` after a signal."""
        _native.keep_memory()
        with Interrupts() as interrupts:
            try:
                interrupts.listen()
                while self.pass_number < self.options.passes:
                    self._one_pass(interrupts)
                    if self.pass_number + 1 == self.options.passes:
                        break
                    with interrupts.held():  # these change together: a checkpoint has all of them or none
                        self._end_pass()
                        self.extents = self._extents(all_of_them=True)
                        self.pass_number += 1
                        self.position = None
                    interrupts.check()
                interrupts.hold()  # signals from here on arrive after the end of the run
                self._end_pass(last=True)
                self.save(finished=True)
            except Interrupts.Interruption as came:  # a second signal waits
                self.display.end()
                self.save()
                raise Stopped(came.number) from None
            finally:
                interrupts.hold()
                self.display.end()

    def _one_pass(self, interrupts: Interrupts) -> None:
        stream = self.reading.stream(self.position, **self._read_options())
        stream.resume_point, self.resume_point = self.resume_point, None
        self.reading.format = stream.format
        self.stream = stream
        self.names = [source.name for source in stream.sources]
        self._sizes(stream)
        if self.model is None:
            self._begin_without_labels()
        chunks = self._begin_on_first(stream.batches())
        ranking = self.model is not None and self.model.task == "ranking"
        if ranking:
            chunks = whole_queries(chunks, self.checkpoint_every)
        while True:
            try:
                chunk = next(chunks, None)  # a signal while waiting for rows is raised here
            except InputError as error:
                with interrupts.held():  # the rows before were valid: the user can correct the file and resume
                    try:
                        self.stopped_whole = self.save()
                    except OSError as failed:
                        error.add_note(f"What came before could not be saved: {failed.strerror}")
                raise
            if chunk is None:
                break
            for part in [chunk] if ranking else cut(chunk, self.checkpoint_every):
                with interrupts.held():
                    taken = self.take(part, interrupts)
                    self.position = taken.position
                    self.counts["skipped"] = taken.position.skipped
                    end, n = taken.position.example, self.checkpoint_every
                    if n and end // n > (end - len(taken)) // n:
                        self.save()
                interrupts.check()
        self.counts["skipped"] = stream.skipped  # also counts those after the last valid line
        if stream.keep_names and self.pass_number == 0:
            self.spelled = merge_names(self.spelled, stream.hashes)

    def _begin_on_first(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            self._begin(chunk)
            yield chunk

    def _read_options(self) -> dict[str, Any]:
        """The options for reading. Malformed lines are written to the quarantine in the first pass only."""
        return {**self.how, "quarantine": None} if self.pass_number else self.how

    def _begin_without_labels(self) -> None:
        task = self.options.task
        if task != "auto" and self.make_model is not None:
            self._decide("auto" if task == "classification" else task, "as asked")

    def _begin(self, chunk: Chunk) -> None:
        """Let the first chunk decide task, classes and metrics: the whole chunk, even if it is learned in parts."""
        self.options.every = self.options.every or usual_every(chunk, self.sizes)
        if self.model is None and len(known := chunk.labelled()):
            assert self.rule is not None  # without a model, the rule makes one
            self._decide(*tasks.decide(known.y, self.rule))
        if self.model is not None:
            declare_sides(self.model, chunk)
        if self.loop is None and self.model is not None:
            self._begin_loop()

    def take(self, chunk: Chunk, interrupts: Interrupts) -> Chunk:
        """Predict, evaluate and learn the rows of a chunk; return them. After a signal: only the first of them."""
        if self.model is not None and self.model.task == "oneclass":
            chunk = inside(chunk)
        check_bases(self.model, chunk, learned=not self.options.test_only)
        ranking = self.model is not None and self.model.task == "ranking"
        judged: list[tuple[Outcomes, Any]] = []
        began, done = perf_counter(), 0
        for piece in self.pace.pieces(chunk, whole_queries=ranking):
            judged += self._take_piece(piece)
            done += len(piece)
            if interrupts.came:
                break
        seconds = perf_counter() - began
        taken = part_of(chunk, 0, done)
        labelled = taken.labelled()
        self.counts["unlabelled"] += len(taken) - len(labelled)
        self.counts["features"] += len(labelled.X.indices)
        if judged:
            self._account(judged, seconds, labelled)
        return taken

    def _take_piece(self, chunk: Chunk) -> list[tuple[Outcomes, Any]]:
        """The outcomes of the labelled rows, and which of them are held out."""
        told = self.predictions is not None or self.audit is not None
        judged: list[tuple[Outcomes, Any]] = []
        for part, has_label in runs_of_labels(chunk if told else chunk.labelled(), one_by_one=self.audit is not None):
            if not has_label:
                self._predict(part)
                continue
            if self.audit is not None and self.model is not None:
                self.audit.show(self.model, part)
            outcomes, held, said = self._learn(part)
            judged.append((outcomes, held))
            if self.predictions is not None:
                self.predictions.add(said(), part.id)
        return judged

    def _predict(self, chunk: Chunk) -> None:
        if self.predictions is not None:
            self.predictions.add(self._unlearned(chunk), chunk.id)

    def _unlearned(self, chunk: Chunk) -> Any:
        if self.model is None:
            return [None] * len(chunk)
        return predictions_of(self.model, chunk.X, as_base(chunk.base, len(chunk)))

    def _learn(self, chunk: Chunk) -> tuple[Outcomes, Any, Any]:
        """Learn labelled rows in one call; return outcomes, the held-out rows, and the predictions to write."""
        assert self.loop is not None
        held = self.loop.held_out_of_next(len(chunk), self.options.holdout)
        try:
            rows = rows_of(chunk, self.loop.kind)
            outcomes, said = self.loop.learn(rows, held, test_only=self.options.test_only)
        except (LabelError, NumericalError, ParameterError) as error:
            raise InputError(f"{self._where()}: {error}") from error
        self.counts["examples"] += len(chunk)
        return outcomes, held, said

    def _account(self, judged: list[tuple[Outcomes, Any]], seconds: float, rows: Chunk) -> None:
        """Add outcomes to the metrics and the display, in one call, because parts of a chunk may be small."""
        assert self.loop is not None
        outcomes = Outcomes.join([each for each, _ in judged])
        starts = rows.X.indptr
        if outcomes.kind == "rankings":  # one outcome for each query, which has the features of all its rows
            ends = np.cumsum(np.count_nonzero(~np.isnan(outcomes.truth), axis=1))
            starts = starts[np.concatenate([[0], ends])]
        if self.model is not None and self.model.task == "oneclass":
            self.distances = self.distances or Distances(self.model.radius)
            self.distances.add(outcomes.predicted + self.model.radius)
        self.display.add(outcomes, starts, self._fraction(rows.position), self._title())
        held = None if self.loop.held_out is None else np.concatenate([each for _, each in judged])
        self.loop.record(outcomes, seconds, held)

    def _where(self) -> str:
        at = self.position or Position()
        return f"{self.names[at.file]}, in the rows after example {at.example:,}"

    # -- task, loop, runs -------------------------------------------------------------------------------------------

    def _decide(self, task: str, why: str) -> None:
        assert self.make_model is not None
        self.model = self.make_model(task)
        self.decided = why
        if note := memory_note(self.model):
            self.display.note(note)

    def _metrics(self) -> list[Any]:
        assert self.model is not None
        kind = kind_of(self.model.task)
        made = metrics_module.make_all(self.options.metrics or tasks.usual_metrics(self.model.task))
        if made[0].kind != kind:
            raise ParameterError(f"--metrics {made[0].label} is for {made[0].kind}, but this is {self.task_name()}")
        return made

    def _new_loop(self, metrics: list[Any], *, regret: bool) -> ModelLoop:
        """A loop over the model. With `regret` it records the rows, to compare with the best weights at the end."""
        wanted = needs_of(metrics, False)
        if not regret:
            return ModelLoop(self.model, wanted)
        from ..evaluation.regret_recorder import Hindsight, RegretRecorder

        recorder = RegretRecorder(self.model, Hindsight())
        return ModelLoop(self.model, [*wanted, *([] if recorder.regression else ["margins"])], recorder)

    def _begin_loop(self) -> None:
        assert self.model is not None
        made = self._metrics()
        from_start = self.options.regret and not self.runs and not self.counts["examples"]
        self.loop = self._new_loop(made, regret=from_start)
        run = Run(every=self.options.every, window_size=self.options.window, settings=self.settings())
        calibrate = any(metric.needs == "probabilities" for metric in made)
        self.loop.begin(run, made, calibrate=calibrate, holds_out=bool(self.options.holdout))
        if self.display.losses is None:
            self.display.begin(Losses.of(made[0]))

    def settings(self) -> dict[str, str]:
        assert self.model is not None
        names = ", ".join(self.reading.sources[:3]) + (", …" if len(self.reading.sources) > 3 else "")
        out = {"model": f"{learner_of(self.model)}, {self.task_name()}", "stream": names}
        if self.model.hash_bits is not None:
            out["hash bits"] = str(self.model.hash_bits)
        if self.options.holdout:
            out["held out"] = f"every {self.options.holdout}th example"
        return out

    def task_name(self) -> str:
        assert self.model is not None
        task = self.model.task
        named = {"regression": task, "multilabel": task, "ranking": task, "oneclass": "one-class"}
        return named.get(task, "classification")

    def _end_pass(self, last: bool = False) -> None:
        if self.loop is None:
            return
        run = self.loop.recording.run
        self.loop.close()
        if self.loop.regret is not None:  # a resumed run has not recorded the rows before
            run.regret, self.loop.regret = self.loop.regret.finish(), None
        elif self.counts["examples"] > self.examples_before:
            run.regret = None  # the value was computed from fewer rows
        run.settings = self.settings()  # the weights of an ensemble have changed
        self.runs.append(run)
        if not last:
            self.loop = None

    @property
    def run(self) -> Run:
        """The first pass, the only one in which every example is new."""
        return self.runs[0] if self.runs else Run() if self.loop is None else self.loop.recording.run

    def save(self, finished: bool = False) -> bool:
        """Save model and position. False if there is no model yet, or no --save."""
        if self.save_path is None or self.model is None or self.stream is None:
            return False
        arrays: dict[str, Any] = {}
        loop = {} if self.loop is None else self.loop.state(arrays, times=not finished)
        session: dict[str, Any] = {}
        if self.predictions is not None:
            self.predictions.flush()
        if not finished:
            session = {"display": self.display.state(), "repeated_options": self.repeated_options}
            if self.stream.keep_names:
                met = self.spelled if self.pass_number else merge_names(self.spelled, self.stream.hashes)
                arrays["spelled"] = np.frombuffer(json.dumps(met).encode(), dtype=np.uint8)
        position = self.position
        content = saved.Checkpoint(
            reading=dataclasses.asdict(self.reading),
            options=dataclasses.asdict(self.options),
            position=None if position is None else position.to_dict(),
            pass_number=self.pass_number,
            finished=finished,
            extents=self._extents(),
            passes=[run.content(times=False) for run in self.runs],
            loop=loop,
            counts=self.counts,
            lengths={
                "predictions": None if self.predictions is None else self.predictions.length(),
                "quarantine": self._quarantined(),
            },
            session=session,
        )
        saved.write(self.save_path, self.model, content, arrays)
        return True

    def _extents(self, all_of_them: bool = False) -> list[Any]:
        """For each source the bytes read and their checksum; in later passes those of the whole first pass."""
        stream, position = self.stream, None if all_of_them else self.position
        nothing = stream is None or (not all_of_them and self.position in (None, stream.start))
        if stream is None or nothing or self.pass_number:
            return self.extents or [None] * len(self.names)
        start = stream.start
        before = self.extents[: start.file]
        return [*before, *(stream.seen.of(at, position) for at in range(start.file, len(self.names)))]

    def _quarantined(self) -> int | None:
        """The quarantine's length at the position: the lines after it will be read again."""
        path = self.how.get("quarantine")
        if path is None or self.pass_number or self.position is None or self.stream is None:
            return _length(path)
        return self.stream.quarantine_length(self.position)

    # -- progress ---------------------------------------------------------------------------------------------

    def _sizes(self, stream: Stream) -> None:
        """The sizes of the sources in bytes, if the position counts bytes."""
        self.sizes: list[int] = []
        plain = stream.format is not None and FORMATS[stream.format].text and not stream.follow
        names = [source.name for source in stream.sources]
        if plain and all(name not in ("-", "<stdin>") and saved._plain(name) for name in names):
            self.sizes = [os.path.getsize(name) for name in names]

    def _fraction(self, at: Position) -> float | None:
        total = sum(self.sizes)
        if not total or self.stream is None:
            return None
        end = at.offset + self.stream.sizes.at(at.offset)
        here = (sum(self.sizes[: at.file]) + min(end, self.sizes[at.file])) / total
        return (self.pass_number + here) / self.options.passes

    def _title(self) -> str:
        return f"pass {self.pass_number + 1}/{self.options.passes}" if self.options.passes > 1 else ""


def _length(path: Any) -> int | None:
    try:
        return None if path is None else os.path.getsize(path)
    except OSError:
        return None
