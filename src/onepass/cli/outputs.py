"""The other outputs of a run: predictions, audits and weights as text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..persistence.files import abandon, is_regular, opened, replaced

if TYPE_CHECKING:
    from ..models.linear import LinearModel
    from ..streams import Chunk

__all__ = ["Audit", "Predictions", "cut_back", "merge_names", "text_of", "weight_lines", "write_weights"]


class Predictions:
    """One line for each example, written during the run: the prediction, and the id if there is one."""

    def __init__(self, path: str, length: int | None = None) -> None:
        """`length`: a resumed run continues the file after this number of bytes."""
        self.path = path
        self.regular = is_regular(path)
        goes_on = length is not None and self.regular and os.path.exists(path)
        if goes_on:
            cut_back(path, length)
        self.file = opened(path, "ab" if goes_on else "wb")

    def add(self, said: Any, ids: Any) -> None:
        self.write(text_of(said, ids))

    def write(self, text: str) -> None:
        try:
            self.file.write(text.encode("utf-8", "replace"))
        except OSError:
            abandon(self.file)  # otherwise Python would try to write the rest again at exit
            raise

    def flush(self) -> None:
        self.file.flush()

    def length(self) -> int | None:
        """The number of bytes written; None if the file cannot be truncated."""
        return os.path.getsize(self.path) if self.regular else None

    def close(self) -> None:
        self.file.close()


def cut_back(path: str, length: int | None) -> None:
    """Truncate the file to its length at the checkpoint; the run writes the rest again."""
    if length is None or not is_regular(path) or not os.path.exists(path):
        return
    size = os.path.getsize(path)
    if size < length:
        raise InputError(
            f"--resume: {path} has {size:,} bytes, of which that run had written {length:,}; give the file that it "
            "wrote, or the name of a new one for what comes from here on"
        )
    os.truncate(path, length)


def text_of(said: Any, ids: Any) -> str:
    """Predictions as lines."""
    values = said.tolist() if isinstance(said, np.ndarray) else said
    words = map(_word, values)
    if ids is not None:
        words = (f"{word} {tag}" if tag is not None else word for word, tag in zip(words, ids, strict=True))  # type: ignore[assignment]
    return "\n".join(words) + "\n" if len(values) else ""


def _word(value: Any) -> str:
    if value is None:
        return ""  # no class was known yet
    if isinstance(value, tuple):
        return ",".join(map(str, value))  # a set of labels
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Audit:
    """Before an example is learned: its features with values and weights, the largest first (VW's --audit)."""

    def __init__(self, out: Any) -> None:
        self.out = out

    def show(self, model: LinearModel, chunk: Chunk) -> None:
        from ..evaluation.model_loop import predictions_of
        from ..rows.batches import as_base

        places, w, intercept = model.met_weights()
        said = predictions_of(model, chunk.X, as_base(chunk.base, len(chunk))) if model.started else [None] * len(chunk)
        for row in range(len(chunk)):
            low, high = int(chunk.X.indptr[row]), int(chunk.X.indptr[row + 1])
            tag = "" if chunk.id is None or chunk.id[row] is None else f" {chunk.id[row]}"
            print(f"{_word(said[row])}{tag}\tlabel {chunk.y[row]}", file=self.out)
            columns, names = self._features(model, chunk, low, high)
            parts = []
            for j, name, value in zip(columns, names, chunk.X.data[low:high].tolist(), strict=True):
                at = np.flatnonzero(places == j)
                weights = w[:, at[0]] if len(at) else np.zeros(len(w))
                parts.append((float(np.max(np.abs(weights * value))), f"{name}:{value:g}:{_weights(weights)}"))
            parts.sort(key=lambda part: -part[0])
            constant = [f"Constant:1:{_weights(intercept)}"] if model.fit_intercept else []
            if chunk.base is not None and chunk.base[row]:
                constant.append(f"Base:{chunk.base[row]:g}")
            print("\t" + "\t".join([*(text for _, text in parts), *constant]), file=self.out)

    def _features(self, model: LinearModel, chunk: Chunk, low: int, high: int) -> tuple[list[int], list[Any]]:
        """The model's features of a row (−1 for unknown ones) and their names."""
        columns: list[int] = chunk.X.indices[low:high].tolist()
        if chunk.X.table is None:
            return columns, columns
        names = [chunk.X.table.names(j, j + 1)[0] for j in columns]
        return model.find(names).tolist(), names


def _weights(weights: Any) -> str:
    return "@".join(f"{weight:g}" for weight in np.atleast_1d(weights).tolist())


def weight_lines(model: LinearModel, spelled: Mapping[int, list[str]] | None = None) -> Iterator[str]:
    """Every weight that is not 0 as a line name:weight, the largest first; with several classes name:a@b@c.

    `spelled`: the names of each hash. Names with the same hash share its weight; each has its own line.
    """
    places, w, intercept = model.met_weights()
    names = model.names
    heaviest = np.argsort(-np.max(np.abs(w), axis=0), kind="stable") if w.size else np.empty(0, dtype=np.intp)
    yield f"# {model.rule!r}; classes: {', '.join(map(str, model.classes))}"
    if model.fit_intercept:
        yield f"Constant:{_weights(intercept)}"
    for at in heaviest.tolist():
        if np.any(w[:, at]):
            j = int(places[at])
            called = (spelled or {}).get(j) or [str(names[j]) if j < len(names) else str(j)]
            yield from (f"{name}:{_weights(w[:, at])}" for name in called)


def write_weights(path: str, model: LinearModel, spelled: Mapping[int, list[str]]) -> None:
    """Write the lines of the weights to a file (VW's --invert_hash)."""
    with replaced(path) as file:
        file.writelines(f"{line}\n".encode("utf-8", "replace") for line in weight_lines(model, spelled))


def merge_names(before: Mapping[int, list[str]], now: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Merge the names of hashes from before the run was stopped with those from after it."""
    out = {hashed: list(names) for hashed, names in before.items()}
    for hashed, names in now.items():
        known = out.setdefault(hashed, [])
        met = set(known)
        known += [name for name in names if name not in met]
    return out
