"""Texts as words or characters, and n-grams of them: `NGrams`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError, ParameterError
from ..rows.batches import Batch
from .base import Rows, as_rows, mappings_of
from .encoding import bits_of, hashed_names
from .products import Stateless
from .scaling import flag

__all__ = ["NGrams"]

WORD = re.compile(r"\w+")
BLANKS = re.compile(r"\s+")


class NGrams(Stateless):
    """A text becomes its words, and n-grams of them: {"text": "so it goes"} becomes text=so, text=so it, … with counts.

    The names are those that `op.stream(text=…, ngram=…)` gives. Nothing is learned: names need no vocabulary, and the
    tables of scikit-learn's methods (`transform` of a list of texts) are hashes of them.

    Parameters
    ----------
    ngram : the longest n-gram; or (shortest, longest).
    of : "words" (letters, digits and _), or "characters" (blanks count as one space each).
    lower : convert to lower case.
    features : the names of the texts; by default all strings of a mapping.
    binary : 1 for each word that occurs, instead of its count.
    hash_bits : tables have 2^hash_bits columns.
    """

    _changes: ClassVar[bool] = False

    traits = dataclasses.replace(Stateless.traits, values="texts", forms=("names",))

    def __init__(
        self,
        ngram: int | tuple[int, int] = 1,
        *,
        of: str = "words",
        lower: bool = True,
        features: Iterable[str] | None = None,
        binary: bool = False,
        hash_bits: int = 18,
    ) -> None:
        self.ngram = ngram
        self.of = of
        self.lower = lower
        self.features = features
        self.binary = binary
        self.hash_bits = hash_bits

    def _new_state(self) -> Any:
        self._lengths()
        if self.of not in ("words", "characters"):
            raise ParameterError(f"of={self.of!r}: expected 'words' or 'characters'")
        flag("lower", self.lower)
        flag("binary", self.binary)
        if self.features is not None and (isinstance(self.features, str) or not all(map(_is_name, self.features))):
            raise ParameterError(f"features={self.features!r}: expected a list of names, or None for all texts")
        bits_of(self.hash_bits)
        return ()

    def _lengths(self) -> tuple[int, int]:
        lengths = self.ngram if isinstance(self.ngram, tuple | list) else (1, self.ngram)
        whole = (isinstance(n, int | np.integer) and not isinstance(n, bool) for n in lengths)
        if len(lengths) != 2 or not all(whole) or not 1 <= lengths[0] <= lengths[1] <= 100:
            message = "expected a whole number from 1 to 100, or two of them, the shortest and the longest run"
            raise ParameterError(f"ngram={self.ngram!r}: {message}")
        return int(lengths[0]), int(lengths[1])

    def _runs(self, text: str) -> list[str]:
        text = text.lower() if self.lower else text
        shortest, longest = self._lengths()
        lengths = range(shortest, longest + 1)
        if self.of == "characters":
            text = BLANKS.sub(" ", text)
            return [text[at : at + n] for n in lengths for at in range(len(text) - n + 1)]
        found = WORD.findall(text)
        return [" ".join(found[at : at + n]) for n in lengths for at in range(len(found) - n + 1)]

    def _transform_mapping(self, x: Mapping[Any, Any]) -> Any:
        self._new_state()
        z: dict[Any, Any] = {}
        for name, value in x.items():
            if not (isinstance(value, str) if self.features is None else name in self.features):
                z[name] = value
                continue
            if not isinstance(value, str):
                raise InputError(f"feature {name!r:.80} must be a text, got {value!r:.80} ({type(value).__name__})")
            for run in self._runs(value):
                made = f"{name}={run}"
                z[made] = 1.0 if self.binary else z.get(made, 0.0) + 1.0
        return z

    def _transform_rows(self, batch: Batch) -> Rows:
        if batch.table is None:
            raise InputError("NGrams takes texts: a list of strings, or mappings; got a table of numbers")
        return [self._transform_mapping(x) for x in mappings_of(batch, [])]

    # -- lists of texts ------------------------------------------------------------------------------------------------

    def _read(self, X: Any) -> Rows:
        return X if isinstance(X, Batch) else as_rows(X) if hasattr(X, "tocsr") else texts(X)

    def _single(self, x: Any) -> Any:
        return texts([x])

    def _validated(self, X: Any, *, reset: bool) -> Any:
        rows = texts(X)
        if reset:
            self.n_features_in_ = 1
        return rows

    def _output(self, rows: Rows) -> Any:
        """Counts in hashed columns."""
        import scipy.sparse

        assert isinstance(rows, list)
        starts = np.cumsum([0, *(len(row) for row in rows)])
        slots = _native.hash_names([str(name) for row in rows for name in row], bits_of(self.hash_bits))
        data = np.array([float(value) for row in rows for value in row.values()])
        matrix = scipy.sparse.csr_matrix((data, slots, starts), shape=(len(rows), 1 << self.hash_bits))
        matrix.sum_duplicates()
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return hashed_names(bits_of(self.hash_bits))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.no_validation = True
        tags.requires_fit = False
        return tags


def _is_name(name: Any) -> bool:
    return isinstance(name, str)


def texts(X: Any) -> list[Mapping[Any, Any]]:
    """A column of texts as mappings, each called `text`; mappings as they are."""
    if isinstance(X, str | bytes | Mapping) or not hasattr(X, "__iter__"):
        raise InputError(f"expected a list of texts, got {type(X).__name__}")
    rows: list[Mapping[Any, Any]] = []
    for number, x in enumerate(X):
        if not isinstance(x, str | Mapping):
            raise InputError(f"row {number}: expected a text, got {x!r:.80} ({type(x).__name__})")
        rows.append({"text": str(x)} if isinstance(x, str) else x)
    return rows
