"""``onepass predict``: the predictions of a saved model for every example of a stream."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .paths import STDOUT, Input, Output
from .sections import SectionedCommand
from .source_options import SourceOptions, add_source_options, on_error_option, quarantine_option, source_options_of

if TYPE_CHECKING:
    from ..models.linear import LinearModel
    from ..streams import Chunk, Stream
    from .outputs import Predictions

__all__ = ["command"]

COLUMNS = ("label", "no_label", "weight", "id", "time", "features", "drop", "text", "ngram", "header")


@click.command(
    "predict",
    cls=SectionedCommand,
    short_help="Predict the examples of a file or a stream with a saved model.",
    context_settings={"show_default": True},
)
@click.argument("model_path", metavar="MODEL", type=Input())
@click.argument("sources", nargs=-1, type=Input(), metavar="SOURCE…")
@add_source_options
@click.option(
    "-o",
    "--output",
    type=Output(),
    default="-",
    metavar="FILE",
    show_default="the terminal",
    help="Write the predictions to this file.",
)
@click.option("--proba", is_flag=True, help="Write a table: the prediction, and the probability of every class.")
@click.option("--scores", is_flag=True, help="Write a table: the prediction, and the score of every class.")
@on_error_option
@quarantine_option
@click.option("--follow", is_flag=True, help="At the end of the last file wait for more lines, until Ctrl-C.")
@click.option("--quiet", is_flag=True, help="Print no summary.")
@click.pass_context
def command(
    ctx: click.Context, /, model_path: str, output: str, proba: bool, scores: bool, **given: Any
) -> None:  # fmt: skip
    """Predict every example of SOURCE with a saved MODEL, one line for each. The model does not change.

    The columns have the same meaning as when the model was learned, unless options say otherwise. If the stream has
    labels, the summary (on stderr) says how good the predictions were.

    \b
    Examples:
      onepass predict mail.model new.csv
      onepass predict mail.model new.csv -o answers.csv --proba
      zcat new.vw.gz | onepass predict clicks.model - --format vw > clicks.txt
    """
    from .checkpoint import read
    from .outputs import Predictions

    if proba and scores:
        raise click.UsageError("--proba and --scores: give one of them")
    if given["quarantine"] and given["on_error"] != "skip":
        raise click.UsageError("--quarantine needs --on-error skip: give both")
    model, kept, _ = read(model_path)
    if proba:
        _require_probabilities(model)
    reading = source_options_of(given, model.hash_bits)
    reading.multilabel = model.task == "multilabel"
    if kept is not None:
        _reuse_source_options(ctx, reading, SourceOptions(**kept.reading))
    how = {
        "on_error": "skip" if given["on_error"] == "skip" else "raise",
        "quarantine": given["quarantine"],
        "follow": given["follow"],
    }
    stream, chunks = _open(reading, how, "label" in given and given["label"] is not None)
    with contextlib.closing(Predictions(output)) as out:
        judged = _write(model, chunks, out, "proba" if proba else "scores" if scores else "")
    if not given["quiet"] and output != STDOUT:
        click.echo(judged.summary(stream.skipped), err=True)
    if stream.skipped:
        ctx.exit(3)


def _require_probabilities(model: LinearModel) -> None:
    if model.task in ("regression", "ranking", "multilabel") or "binary" not in model.rule_traits.probabilities:
        raise click.UsageError(f"--proba: {model.rule!r} has no probabilities; learn with --rule sgd:loss=logistic")


def _reuse_source_options(ctx: click.Context, reading: SourceOptions, learned: SourceOptions) -> None:
    """Use the source options of the run that made the model, unless the user gave others."""
    from ..streams.formats import detect
    from ..streams.sources import sources_of

    if reading.format is None:
        try:
            reading.format = detect(sources_of(reading.sources)[0])
        except InputError:
            reading.format = learned.format
    if reading.format == "svmlight":
        reading.index_base = learned.index_base
    reading.interactions = reading.interactions or learned.interactions
    if reading.format in ("vw", "svmlight"):
        return
    for name in COLUMNS:
        source = ctx.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            setattr(reading, name, getattr(learned, name))


def _open(reading: SourceOptions, how: dict[str, Any], asked: bool) -> tuple[Stream, Iterator[Chunk]]:
    """Open a stream; return it and its chunks. A table without a label column is read without labels."""
    stream = reading.stream(**how)
    chunks = stream.batches()
    try:
        first = next(chunks, None)
    except InputError as error:
        about_label = "which column is the label" in str(error) or f"no column {reading.label!r}" in str(error)
        if asked or not about_label:
            raise
        reading.no_label, reading.label = True, None
        stream = reading.stream(**how)
        chunks = stream.batches()
        first = next(chunks, None)
    return stream, _prepend(first, chunks)


def _prepend(first: Chunk | None, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    if first is not None:
        yield first
        yield from chunks


class PredictionQuality:
    """The metrics of the predictions, for rows with labels."""

    def __init__(self, model: LinearModel) -> None:
        from .. import metrics
        from ..evaluation.model_loop import kind_of
        from ..evaluation.queries import Queries
        from .tasks import usual_metrics

        self.kind = kind_of(model.task)
        self.labels_are_none = model.task == "oneclass"  # one-class models are evaluated by distances, without labels
        self.meters = [metrics.Meter(name) for name in usual_metrics(model.task)]
        self.queries = Queries()
        self.rows = self.labelled = 0

    def add(self, chunk: Chunk, said: Any) -> None:
        import numpy as np

        from ..rows.examples import Examples
        from ..streams.chunk import known
        from .tasks import as_labels

        self.rows += len(chunk)
        there = known(chunk.y)
        if not there.any():
            return
        self.labelled += int(there.sum())
        y = chunk.y[there]
        weight = None if chunk.weight is None else chunk.weight[there]
        picked = (
            [label for label, k in zip(said, there.tolist(), strict=True) if k]
            if isinstance(said, list)
            else said[there]
        )
        if self.kind == "rankings":
            keys = np.full(len(chunk), -1) if chunk.query is None else chunk.query
            self._ranked(self.queries.add(Examples(None, y, None, None, keys[there]), np.asarray(picked)))
            return
        for meter in self.meters:
            meter.add(as_labels(y) if self.kind == "classes" else y, picked, weight=weight)

    def _ranked(self, done: Any) -> None:
        if done is not None:
            for meter in self.meters:
                meter.add(done.truth, scores=done.scores)

    def summary(self, skipped: int) -> str:
        parts = [f"{self.rows:,} predicted"]
        self._ranked(self.queries.close())
        if self.labelled:
            values = ", ".join(f"{m.metric.label} {m.metric.show(m.value)}" for m in self.meters)
            parts.append(values if self.labels_are_none else f"{self.labelled:,} with a label: {values}")
        if skipped:
            parts.append(f"{skipped:,} malformed lines skipped")
        return "; ".join(parts)


def _write(model: LinearModel, chunks: Iterator[Chunk], out: Predictions, table: str) -> PredictionQuality:
    from ..evaluation.model_loop import label_sets, scores_of
    from ..rows.batches import as_base
    from .rows import check_bases, inside

    judged = PredictionQuality(model)
    header = bool(table)
    for chunk in chunks:
        check_bases(model, chunk, learned=False)
        if model.task == "oneclass":
            chunk = inside(chunk)
        scores = scores_of(model, chunk.X, as_base(chunk.base, len(chunk)))
        said = label_sets(model.classes, scores) if model.task == "multilabel" else model._predictions(scores)
        judged.add(chunk, said)
        if not table:
            out.add(said, chunk.id)
            continue
        values = model.probabilities(scores) if table == "proba" else scores
        if header:
            out.write(_header(model, values.shape[1], chunk))
            header = False
        out.write(_table(said, values, chunk))
    return judged


def _header(model: LinearModel, columns: int, chunk: Chunk) -> str:
    numbers = model.task in ("regression", "ranking", "oneclass")
    names = ["score"] if numbers else [str(label) for label in model.classes]
    if columns != len(names):
        names = [f"score of {names[-1]}"]
    return _csv(["prediction", *names, *(["id"] if chunk.id is not None else [])])


def _table(said: Any, values: Any, chunk: Chunk) -> str:
    """A line for each row: the prediction, its probabilities or scores, and the id if there is one."""
    from .outputs import _word

    listed = said.tolist() if hasattr(said, "tolist") else said
    ids = [[]] * len(chunk) if chunk.id is None else [[tag] for tag in chunk.id.tolist()]
    return "".join(
        _csv([_word(label), *(f"{v:.6g}" for v in row), *tag])
        for label, row, tag in zip(listed, values.tolist(), ids, strict=True)
    )


def _csv(cells: list[Any]) -> str:
    quoted = ['"' + t.replace('"', '""') + '"' if any(c in t for c in ',"\n') else t for t in map(str, cells)]
    return ",".join(quoted) + "\n"
