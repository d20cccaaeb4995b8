"""The options of the verbs that read streams: files, columns, and how they become rows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, LineError, OnepassError
from ..streams.formats import FORMATS
from .paths import Output

if TYPE_CHECKING:
    from ..streams import Position, Stream

__all__ = [
    "SourceOptions",
    "add_source_options",
    "in_words_of_the_command",
    "on_error_option",
    "quarantine_option",
    "source_options_of",
]

on_error_option = click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    help="What to do with a malformed line: stop with an error, or skip it.",
)
quarantine_option = click.option(
    "--quarantine",
    type=Output(),
    metavar="FILE",
    help="With --on-error skip: write the malformed lines to this file.",
)


@dataclasses.dataclass
class SourceOptions:
    """All options that influence the rows of a source. They are stored in checkpoints, as JSON."""

    sources: list[str]
    format: str | None = None
    label: str | None = None
    no_label: bool = False
    weight: str | None = None
    id: str | None = None
    time: str | None = None
    features: list[str] | None = None
    drop: list[str] | None = None
    text: list[str] | None = None
    ngram: int = 1
    hash_bits: int | None = None
    index_base: int = 0
    header: bool = True
    interactions: list[str] | None = None
    multilabel: bool = False

    def stream(self, start: Position | None = None, **how: Any) -> Stream:
        """`how`: on_error, quarantine, cache, follow."""
        from ..streams import stream

        return stream(
            self.sources if len(self.sources) > 1 else self.sources[0],
            format=self.format,
            label=False if self.no_label else self.label,
            weight=self.weight,
            id=self.id,
            time=self.time,
            features=self.features,
            drop=self.drop,
            interactions=self.interactions,
            text=self.text,
            ngram=self.ngram,
            hash_bits=self.hash_bits,
            multilabel=self.multilabel,
            base=self.index_base,
            header=self.header,
            start=start,
            **how,
        )


def source_options_of(options: dict[str, Any], hash_bits: int | None) -> SourceOptions:
    """The source options from the options of a verb."""
    sources = [*options["sources"], *options.get("data", ())]
    if not sources:
        raise click.UsageError("which stream? Give a file, several, a 'glob*', or - for standard input")
    named: dict[str, Any] = {name: _names(options[name]) for name in ("features", "drop", "text", "interactions")}
    plain = {name: options[name] for name in ("format", "label", "no_label", "weight", "id", "time", "ngram")}
    return SourceOptions(
        sources, hash_bits=hash_bits, index_base=options["index_base"], header=options["header"], **plain, **named
    )


def _names(given: tuple[str, ...]) -> list[str] | None:
    """The names of an option that is repeated or has commas."""
    names = [name.strip() for each in given for name in each.split(",") if name.strip()]
    return names or None


def add_source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a verb."""
    many: dict[str, Any] = {"multiple": True, "metavar": "A,B,…"}
    for option in reversed(
        [
            click.option("--format", type=click.Choice(list(FORMATS)), show_default="from the name or the first bytes",
                         help="The format of SOURCE."),
            click.option("--label", metavar="COLUMN", show_default="label, target, class or y",
                         help="Tables: the column to predict."),
            click.option("--no-label", is_flag=True, help="Tables: there is no column to predict."),
            click.option("--weight", metavar="COLUMN", help="Tables: the column with the importance of each example."),
            click.option("--id", metavar="COLUMN", help="Tables: the column with the id of each example."),
            click.option("--time", metavar="COLUMN",
                         help="Tables: the column with the time of each example, which is not a feature."),
            click.option("--features", **many, help="Tables: use only these columns as features."),
            click.option("--drop", **many, help="Tables: do not use these columns."),
            click.option("--text", **many, help="Tables: columns of text, in which each word becomes a feature."),
            click.option("--ngram", type=click.IntRange(1, 100), default=1,
                         help="With --text: also use sequences of up to N words."),
            click.option("-q", "--interactions", multiple=True, metavar="AB",
                         help="Add products of features: of the namespaces that begin with A and B."),
            click.option("--index-base", type=click.IntRange(0, 1), default=0,
                         help="svmlight: the number of the first feature, 0 or 1."),
            click.option("--header/--no-header", default=True,
                         help="CSV: the first line has the names of the columns, or not."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


# The library's errors name parameters of Python. Messages of the command must name its options.
_WORDS = (
    (re.compile(r'on_error="skip"'), "--on-error skip"),
    (re.compile(r"label=False"), "--no-label"),
    (re.compile(r"hash_bits=None"), "no --hash-bits"),
    (re.compile(r"drop=\['([^']*)'\]"), r"--drop '\1'"),
    (re.compile(r"\bop\.stream hash_bits=(\d+)"), r"the command --hash-bits \1"),
    (re.compile(r"\bhash_bits=(\w+)"), r"--hash-bits \1"),
    (re.compile(r"\b(label|format|weight|features|drop|text|cache|header)="), r"--\1 "),
)


def in_words_of_the_command(error: OnepassError) -> str:
    """The message with options instead of parameters. Text that is quoted from a file does not change."""
    if isinstance(error, LineError):
        where = f"{error.path}:{error.line}:{error.column}: {error.what}; the line is {error.text!r}. "
        return where + "Correct it, or leave such lines out with --on-error skip"
    text = str(error)
    if isinstance(error, InputError):
        for pattern, instead in _WORDS:
            text = pattern.sub(instead, text)
    return text
