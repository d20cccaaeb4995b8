"""A recorder's state as JSON and arrays: a resumed evaluation gives the same bits as one without a stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError
from ..persistence.store import decode_values, encode_values
from .meters import Recorder
from .outcomes import Outcomes
from .statistics import Seen, Statistic, Table

__all__ = ["restore", "save"]

Arrays = dict[str, NDArray[Any]]
ROWS = ("truth", "predicted", "weight", "scores", "probabilities")
COLUMNS = ("low", "high", "positive", "negative")


def save(recorder: Recorder) -> tuple[dict[str, Any], Arrays]:
    """The state for `restore`. It depends on the examples alone, not on how they were chunked."""
    arrays: Arrays = {}
    states: list[Any] = []
    for number, (view, statistic) in enumerate(_places(recorder)):
        state = recorder._states[view].get(statistic)
        states.append(None if state is None else _encode(state, f"state{number}", arrays))
    recent = Outcomes.join(recorder._recent) if recorder._recent else None
    if recent is not None:
        recent = recent.part(max(0, len(recent) - recorder.window), len(recent))
    return {
        "labels": encode_values(recorder.labels.values[1:]),
        "seen": recorder.seen,
        "weight": recorder.weight,
        "extra": len(recorder.extra),
        "states": states,
        "recent": _encode_rows(recent, "recent", arrays),
        "waiting": _encode_rows(Outcomes.join(recorder._waiting) if recorder._waiting else None, "waiting", arrays),
    }, arrays


def restore(recorder: Recorder, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore a saved state into a new recorder of the same metrics."""
    try:
        for label in decode_values(config["labels"]):
            recorder.labels.code(label)
        recorder.seen, recorder.weight = int(config["seen"]), float(config["weight"])
        recorder.extra = recorder.extra[: config["extra"]]  # some statistics may have been removed
        for number, ((view, statistic), encoded) in enumerate(zip(_places(recorder), config["states"], strict=True)):
            if encoded is not None:
                recorder._states[view][statistic] = _decode(encoded, f"state{number}", arrays)
        recent = _decode_rows(recorder, config["recent"], "recent", arrays)
        waiting = _decode_rows(recorder, config["waiting"], "waiting", arrays)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(f"the evaluation in this file does not fit together ({error})") from None
    recorder._recent, recorder._recent_rows = ([recent], len(recent)) if recent is not None else ([], 0)
    recorder._waiting, recorder._waiting_rows = ([waiting], len(waiting)) if waiting is not None else ([], 0)


def _places(recorder: Recorder) -> list[tuple[str, Statistic]]:
    views = ("cumulative", "since_last", "fading")
    own = [(view, statistic) for view in views for statistic in recorder.statistics]
    return own + [("cumulative", statistic) for statistic in recorder.extra]


def _encode(state: Any, name: str, arrays: Arrays) -> Any:
    if isinstance(state, Seen):
        for code, tables in state.tables.items():
            for column in COLUMNS:
                parts = [getattr(table, column) for table in tables]
                arrays[f"{name}.{code}.{column}"] = np.concatenate(parts) if parts else np.empty(0)
        lengths = [[code, [len(table) for table in tables]] for code, tables in state.tables.items()]
        return {"seen": state.total, "tables": lengths}
    if isinstance(state, dict):
        for key, value in state.items():
            arrays[f"{name}.{key}"] = value
        return {"keys": list(state)}
    arrays[name] = state
    return {}


def _decode(encoded: Mapping[str, Any], name: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if "tables" in encoded:
        seen = Seen(float(encoded["seen"]), {})
        for code, lengths in encoded["tables"]:
            cuts = np.cumsum([0, *lengths])
            columns = [arrays[f"{name}.{code}.{column}"] for column in COLUMNS]
            seen.tables[code] = [
                Table(*(column[start : start + length] for column in columns))
                for start, length in zip(cuts.tolist(), lengths, strict=False)
            ]
        return seen
    if "keys" in encoded:
        return {key: arrays[f"{name}.{key}"] for key in encoded["keys"]}
    return arrays[name]


def _encode_rows(rows: Outcomes | None, name: str, arrays: Arrays) -> Any:
    if rows is None:
        return None
    there = [column for column in ROWS if getattr(rows, column) is not None]
    arrays.update({f"{name}.{column}": getattr(rows, column) for column in there})
    return {"kind": rows.kind, "columns": there}


def _decode_rows(
    recorder: Recorder, encoded: Mapping[str, Any] | None, name: str, arrays: Mapping[str, NDArray[Any]]
) -> Outcomes | None:
    if encoded is None:
        return None
    columns: dict[str, Any] = {column: arrays[f"{name}.{column}"] for column in encoded["columns"]}
    return Outcomes(encoded["kind"], labels=recorder.labels, **columns)
