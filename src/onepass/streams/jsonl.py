"""JSON Lines: one object per line; what is inside an object is called outer.inner."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..labels import label_array
from .parts import BadLine, Part, in_order
from .roles import USUAL_LABELS, Roles, words
from .sources import Block
from .tables import Coded, coded_part

__all__ = ["of_jsonl"]


def of_jsonl(stream: Any, blocks: Iterable[Block], table: Any) -> Iterator[Part]:
    roles = Roles.of(stream)
    # One thread: the interpreter's own parser does the work and holds its lock, so that others would wait for it.
    for block, coded in in_order(blocks, lambda block: _rows(block, roles), 1):
        yield coded_part(coded, stream, table, block)


class _Wrong(Exception):
    """What is wrong with a line, and where."""

    def __init__(self, what: str, column: int = 0) -> None:
        super().__init__(what)
        self.column = column


def _rows(block: Block, roles: Roles) -> Coded:
    codes: dict[str, int] = {}
    starts, flat, values = [0], [], []
    answers: dict[str, list[Any]] = {"label": [], "weight": [], "id": [], "time": []}
    bad: list[BadLine] = []
    numbers: list[int] = []  # of rows, their lines
    lines = bytes(memoryview(block.buffer)[: block.size]).split(b"\n")[:-1]
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row, answer = _row(line, roles)
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
    rows = len(starts) - 1
    arrays = {role: _array(values, rows) for role, values in answers.items()}
    return Coded(
        np.array(starts, dtype=np.int32),
        np.array(flat, dtype=np.int32),
        np.array(values, dtype=np.float64),
        list(codes),
        arrays["label"],
        arrays["weight"].astype(np.float64) if roles.weight else None,
        arrays["id"] if roles.id else None,
        arrays["time"] if roles.time else None,
        bad,
        len(lines),
        line_of=lambda row: (numbers[row], lines[numbers[row]].rstrip(b"\r")),
    )


def _array(values: list[Any], rows: int) -> Any:
    kinds = {type(value) for value in values}
    large = any(isinstance(value, int) and abs(value) >= 2**53 for value in values)
    if kinds == {int}:
        return label_array(values)
    if kinds and kinds <= {int, float, type(None)} and kinds != {type(None)} and not large:  # which floats would blur
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    if kinds == {type(None)}:
        return np.full(rows, np.nan)
    return label_array(values)


def _row(line: bytes, roles: Roles) -> tuple[list[tuple[str, float]], dict[str, Any]]:
    if b"\0" in line:
        raise _Wrong("a NUL byte", line.index(b"\0"))
    try:
        given = json.loads(line, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _Wrong("not UTF-8 text", error.start) from None
    except (json.JSONDecodeError, RecursionError) as error:
        column = len(line.decode()[: error.pos].encode()) if isinstance(error, json.JSONDecodeError) else 0
        raise _Wrong(f"not JSON: {getattr(error, 'msg', 'nested too deep')}", column) from None
    if not isinstance(given, dict):
        raise _Wrong(f"expected an object {{…}}, got {type(given).__name__}")
    answer: dict[str, Any] = {"label": None, "weight": 1.0, "id": None, "time": None}
    label = roles.label
    if label is None:
        usual = [name for name in given if name.lower() in USUAL_LABELS]
        if len(usual) > 1:
            raise _Wrong(f"which is the label, {' or '.join(usual)}? Say label=")
        label = usual[0] if usual else None
    row: list[tuple[str, float]] = []
    named = {label: "label", roles.weight: "weight", roles.id: "id", roles.time: "time"}
    for name, value in _flat(given, ""):
        role = named.get(name)
        if role is not None:
            answer[role] = _answer(role, name, value, answer[role])
        elif roles.is_feature(name):
            row += _features(name, value, roles)
    return row, answer


def _no_constant(name: str) -> float:
    raise _Wrong(f"{name} is not a number of JSON, nor one to learn from")


def _flat(given: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _answer(role: str, name: str, value: Any, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(value, list) or (isinstance(value, float) and not math.isfinite(value)):
        raise _Wrong(f"the {role} {name!r} must be a finite number or a string, got {str(value)[:80]}")
    if role == "weight" and (isinstance(value, str | bool) or value < 0):
        raise _Wrong(f"the weight {name!r} must be a number >= 0, got {str(value)[:80]}")
    return value


def _features(name: str, value: Any, roles: Roles) -> list[tuple[str, float]]:
    if value is None:
        return []
    if name in roles.text:
        if not isinstance(value, str):
            raise _Wrong(f"{name!r} must be text, got {str(value)[:80]}")
        return [(word, 1.0) for word in words(name, value, roles.ngram)]
    if isinstance(value, str) or (name in roles.categorical and not isinstance(value, list)):
        return [(f"{name}={value}", 1.0)]
    if isinstance(value, list):
        raise _Wrong(f"{name!r} is a list; expected a number, a string, true, false or null")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _Wrong(f"{name!r} must be a finite number, got {str(value)[:80]}")
    return [(name, number)] if number else []
