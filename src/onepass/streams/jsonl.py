"""JSON Lines: one object per line. A value inside an inner object has the name outer.inner."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from ..errors import short
from ..rows.rows import CSR
from .blocks import BadLine, Block, too_long
from .chunk import Chunk, exact
from .labels import LabelKind, kind_of
from .roles import USUAL_LABELS, Roles, words
from .tables import assign_columns
from .threads import in_order

__all__ = ["of_jsonl"]


NESTED = 100  # objects and lists within each other


def of_jsonl(stream: Any, table: Any) -> Iterator[Block]:
    """Lines that are JSON objects."""
    roles, labels = Roles.of(stream), LabelKind(stream.start.labels)
    # One thread: Python's JSON parser holds the interpreter's lock, so that other threads would only wait.
    # Besides, each block must know the kind of labels in the blocks before it.
    for block in in_order(stream.blocks(), lambda block: _parse(block, roles, labels, stream.max_line), 1):
        assign_columns(block, stream, table)
        yield block


class _Wrong(Exception):
    """What is wrong with a line, and where."""

    def __init__(self, what: str, column: int = 0) -> None:
        super().__init__(what)
        self.column = column


def _parse(block: Block, roles: Roles, labels: LabelKind, max_line: int) -> None:
    """Add the rows and the malformed lines to the block."""
    codes: dict[str, int] = {}
    starts, flat, values = [0], [], []
    answers: dict[str, list[Any]] = {"label": [], "weight": [], "id": [], "time": []}
    bad: list[BadLine] = []
    numbers: list[int] = []  # of rows, their lines
    lines = bytes(memoryview(block.buffer)[: block.size]).split(b"\n")[:-1]
    for number, line in enumerate(lines):
        if len(line) > max_line:
            bad.append(BadLine(len(starts) - 1, number, 0, line[:200], too_long(len(line))))
            continue
        if not line.strip():
            continue
        try:
            row, answer = _parse_line(line, roles)
            _require_kind(answer["label"], labels)
        except _Wrong as wrong:
            bad.append(BadLine(len(starts) - 1, number, wrong.column, line.rstrip(b"\r"), str(wrong)))
            continue
        for name, value in row:
            flat.append(codes.setdefault(name, len(codes)))
            values.append(value)
        starts.append(len(flat))
        numbers.append(number)
        for key, value in answer.items():
            answers[key].append(value)
    arrays = {role: exact(values) for role, values in answers.items()}
    X = CSR(
        np.array(starts, dtype=np.int32),
        np.array(flat, dtype=np.int32),
        np.array(values, dtype=np.float64),
        (len(numbers), len(codes)),
        table=list(codes),
    )
    block.chunk = Chunk(
        X,
        arrays["label"],
        weight=arrays["weight"].astype(np.float64) if roles.weight else None,
        id=arrays["id"] if roles.id else None,
        time=arrays["time"] if roles.time else None,
    )
    block.bad, block.lines, block.labels = bad, len(lines), labels.kind
    block.line_of = lambda row: (numbers[row], lines[numbers[row]].rstrip(b"\r"))


def _require_kind(label: Any, labels: LabelKind) -> None:
    """Refuse labels that look alike but are different classes: 1 and "1", 1 and true."""
    if label is not None and not labels.take(kind := kind_of(label)):
        raise _Wrong(f"the labels before are {labels.kind}, and {short(label)} is one of {kind}")


def _parse_line(line: bytes, roles: Roles) -> tuple[list[tuple[str, float]], dict[str, Any]]:
    if b"\0" in line:
        raise _Wrong("a NUL byte", line.index(b"\0"))
    given = _object_in(line)
    if not isinstance(given, dict):
        raise _Wrong(f"expected an object {{…}}, got {type(given).__name__}")
    if line.count(b"{") + line.count(b"[") > NESTED:
        _require_shallow(given)
    if b"\\u" in line:
        _require_text(given)
    answer: dict[str, Any] = {"label": None, "weight": 1.0, "id": None, "time": None}
    label = roles.label
    if label is None:
        usual = [name for name in given if name.lower() in USUAL_LABELS]
        if len(usual) > 1:
            raise _Wrong(f"which is the label, {' or '.join(usual)}? Say label=")
        label = usual[0] if usual else None
    row: list[tuple[str, float]] = []
    named = {label: "label", roles.weight: "weight", roles.id: "id", roles.time: "time"}
    values = given if not any(isinstance(value, dict) for value in given.values()) else _flattened(given, named)
    for name, value in values.items():
        role = named.get(name)
        if role is not None:
            answer[role] = _answer(role, name, value, answer[role])
        elif roles.is_feature(name):
            row += _features(name, value, roles)
    return row, answer


def _object_in(line: bytes) -> Any:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise _Wrong("not UTF-8 text", error.start) from None
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_no_constant, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise _Wrong(f"not JSON: {error.msg}", len(text[: error.pos].encode())) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _Wrong(f"a number of more than {sys.get_int_max_str_digits():,} digits") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Wrong(f"two values are called {next(name for name in made if names.count(name) > 1)!r}")
    return made


def _too_deep() -> _Wrong:
    return _Wrong(f"nested too deep: at most {NESTED} objects and lists within each other")


def _require_shallow(given: Any) -> None:
    level = [given]
    for _ in range(NESTED):
        level = [
            each
            for outer in level
            for each in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(each, dict | list)
        ]
    if level:
        raise _too_deep()


def _require_text(given: Any) -> None:
    """Refuse what JSON can express but NumPy and model files cannot hold."""
    if isinstance(given, str):
        if "\0" in given:
            raise _Wrong("a NUL character, \\u0000")
        if any("\ud800" <= character <= "\udfff" for character in given):
            raise _Wrong("half of a surrogate pair, which is no character")
    elif isinstance(given, dict | list):
        for each in (*given.keys(), *given.values()) if isinstance(given, dict) else given:
            _require_text(each)


def _no_constant(name: str) -> float:
    raise _Wrong(f"{name} is not a number of JSON, nor one to learn from")


def _flattened(given: dict[str, Any], whole: Container[str | None]) -> dict[str, Any]:
    """The object with the values of its inner objects, except of those whose names are in `whole`."""
    out: dict[str, Any] = {}
    for name, value in _flat(given, "", whole):
        if name in out:
            raise _Wrong(f"two values are called {name!r}")
        out[name] = value
    return out


def _flat(given: dict[str, Any], prefix: str, whole: Container[str | None]) -> Iterator[tuple[str, Any]]:
    for inner, value in given.items():
        name = prefix + inner
        if isinstance(value, dict) and name not in whole:
            yield from _flat(value, f"{name}.", whole)
        else:
            yield name, value


def _answer(role: str, name: str, value: Any, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        raise _Wrong(f"the {role} {name!r} must be a finite number or a string, got {short(value)}")
    if role == "label" and isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise _Wrong(f"the label {name!r} must be a whole number of at most 64 bits, got {short(value)}")
    if role != "weight":
        return value
    if isinstance(value, str | bool) or value < 0 or _as_float(value) == math.inf:
        raise _Wrong(f"the weight {name!r} must be a finite number >= 0, got {short(value)}")
    return float(value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _features(name: str, value: Any, roles: Roles) -> list[tuple[str, float]]:
    if value is None:
        return []
    if name in roles.text:
        if not isinstance(value, str):
            raise _Wrong(f"{name!r} must be text, got {short(value)}")
        return [(word, 1.0) for word in words(name, value, roles.ngram)]
    if isinstance(value, list):
        raise _Wrong(f"{name!r} is a list; expected a number, a string, true, false or null")
    if isinstance(value, str):
        return [(f"{name}={value}", 1.0)]
    number = value if type(value) is float else _as_float(value)
    if not math.isfinite(number):
        raise _Wrong(f"{name!r} must be a finite number, got {short(value)}")
    if name in roles.categorical:
        return [(f"{name}={value}", 1.0)]
    return [(name, number)] if number else []
