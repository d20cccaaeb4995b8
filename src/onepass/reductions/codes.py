"""Code matrices for error-correcting output codes, and their decoders.

Row k of a matrix M ∈ {−1, 0, +1}^{K×B} is the codeword of class k; column b is the question that base b answers: is
the class among the +1 rather than the −1? Classes at 0 are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..scheme.rounds import Array
from ..scheme.sizes import MOST_LEARNERS, require_room

__all__ = ["CODES", "DECODERS", "check_code", "decode", "make_code", "row_distance"]

Code = NDArray[np.int8]
_MOST_EXHAUSTIVE = 12  # classes; 2,047 columns
_DRAWS = 1_000
_BLOCK = 100_000  # products in memory at once while decoding


def exhaustive(K: int) -> Code:
    """All splits of K classes: 2^{K−1} − 1 columns, codewords 2^{K−2} apart (Dietterich and Bakiri 1995)."""
    if K > _MOST_EXHAUSTIVE:
        raise ParameterError(
            f"code='exhaustive' has 2^(K-1) - 1 columns: at most {_MOST_EXHAUSTIVE} classes, got {K}; use code='dense'"
        )
    columns = 2 ** (K - 1) - 1
    # Row 0 is all +1; row i alternates runs of 2^{K−1−i} times −1 and +1.
    rows = [np.ones(columns), *(np.where(np.arange(columns) // 2 ** (K - 1 - i) % 2, 1, -1) for i in range(1, K))]
    return np.array(rows, dtype=np.int8)


def row_distance(code: Code) -> float:
    """ρ: the least distance between two codewords, Σ_b (1 − M_ib M_jb)/2, where a 0 counts one half."""
    M = code.astype(np.float64)
    apart = (M.shape[1] - M @ M.T) / 2
    return float(apart[~np.eye(len(M), dtype=np.bool_)].min())


def random_code(K: int, bits: int, rng: np.random.Generator, zeros: float) -> Code | None:
    """Random columns, each with a +1 and a −1, all different; None where they do not separate all classes."""
    found: dict[bytes, NDArray[Any]] = {}
    for _ in range(1_000):
        signs = rng.integers(0, 2, size=(bits, K), dtype=np.int8) * 2 - 1
        columns = np.where(rng.random((bits, K)) < zeros, 0, signs).astype(np.int8)
        columns = columns[(columns.max(axis=1) == 1) & (columns.min(axis=1) == -1)]
        # A column and its opposite ask the same question.
        leading = np.take_along_axis(columns, np.argmax(columns != 0, axis=1)[:, np.newaxis], axis=1)
        for question, column in zip(columns * leading, columns, strict=True):
            if len(found) < bits:
                found.setdefault(question.tobytes(), column)
        if len(found) == bits:
            code = np.stack(list(found.values()), axis=1)
            return code if separates_classes(code) else None
    return None


def separates_classes(code: Code) -> bool:
    """Is every pair of classes on different sides of some column?"""
    M = code.astype(np.float64)  # sums of ±1 are exact
    opposed = (np.abs(M) @ np.abs(M).T) > M @ M.T
    return bool(np.all(opposed | np.eye(len(M), dtype=np.bool_)))


def best_random_code(K: int, bits: int | None, seed: int, *, zeros: float, per_class: float, draws: int) -> Code:
    most = (3**K - 2 ** (K + 1) + 1) // 2 if zeros else 2 ** (K - 1) - 1  # different questions
    wanted = min(math.ceil(per_class * math.log2(K)), most) if bits is None else bits
    if wanted > most or 2**wanted < K:
        raise ParameterError(
            f"bits={bits!r}: {K} classes take from {math.ceil(math.log2(K))} to {most} different columns"
        )
    rng = np.random.default_rng(seed)
    best, distance = None, -1.0
    if wanted == most:  # all possible columns: only their order could differ
        draws = 1
    for _ in range(max(1, draws // 10, min(draws, 2_000 // K))):  # a draw costs O(K² bits)
        code = random_code(K, wanted, rng, zeros)
        if code is not None and (apart := row_distance(code)) > distance:
            best, distance = code, apart
    for _ in range(_DRAWS):
        best = random_code(K, wanted, rng, zeros) if best is None else best
    if best is None:
        raise ParameterError(f"bits={bits!r}: no code of {wanted} columns for {K} classes was found; raise bits")
    return best


# name → (fraction of zeros, columns per log₂ K, draws, of which the one with the largest ρ wins). The fractions and
# sizes are those of Allwein, Schapire and Singer 2000, section 6, who take the best of 10,000.
CODES: dict[str, tuple[float, float, int]] = {
    "random": (0.0, 10.0, 1),
    "dense": (0.0, 10.0, 100),
    "sparse": (0.5, 15.0, 100),
}


def make_code(code: Any, K: int, bits: int | None, seed: int) -> Code:
    _check_bits(bits)
    require_room(4 * K * K, f"the codewords of {K:,} classes, each compared with each,", "use fewer classes")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError(f"seed={seed!r}: expected a whole number >= 0")
    if isinstance(code, str):
        if code in CODES:
            zeros, per_class, draws = CODES[code]
            return best_random_code(K, bits, int(seed), zeros=zeros, per_class=per_class, draws=draws)
        if code != "exhaustive":
            expected = ", ".join(repr(name) for name in ("exhaustive", *CODES))
            raise ParameterError(f"code={code!r}: expected one of {expected}, or a matrix of -1, 0 and 1")
        matrix = exhaustive(K)
    else:
        matrix = check_code(code, K)
    if bits is not None and bits != matrix.shape[1]:
        raise ParameterError(f"bits={bits!r}: this code has {matrix.shape[1]} columns; leave bits=None")
    return matrix


def _check_bits(bits: Any) -> None:
    if isinstance(bits, bool) or not (bits is None or (isinstance(bits, (int, np.integer)) and bits >= 1)):
        raise ParameterError(f"bits={bits!r}: expected None or a whole number >= 1")
    if bits is not None and bits > MOST_LEARNERS:
        raise ParameterError(f"bits={bits!r}: expected at most {MOST_LEARNERS:,}; each is a base learner")


def check_code(code: Any, K: int) -> Code:
    try:
        given = np.asarray(code)
        whole = given.ndim == 2 and bool(np.isin(given, (-1, 0, 1)).all())
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise ParameterError("code: expected a matrix, classes × columns, of -1, 0 and 1")
    if len(given) != K:
        raise ParameterError(f"code has {len(given)} rows; expected one for each of the {K} classes")
    matrix = given.astype(np.int8)
    if not (np.all(matrix.max(axis=0, initial=-1) == 1) and np.all(matrix.min(axis=0, initial=1) == -1)):
        raise ParameterError("code: every column needs a 1 and a -1, or there is nothing to learn")
    if not separates_classes(matrix):
        raise ParameterError("code: two rows are never opposed: no column tells these classes apart")
    return matrix


# Losses of z = M_kb f_b. Hamming distance is one too, of the sign.
DECODERS: dict[str, Callable[[Array], Array]] = {
    "hamming": lambda z: (1 - np.sign(z)) / 2,
    "hinge": lambda z: np.maximum(0.0, 1 - z),
    "linear": lambda z: -z,
    "squared": lambda z: (1 - z) * (1 - z),
    "logistic": lambda z: np.logaddexp(0.0, -z),
    "exponential": lambda z: np.exp(np.minimum(-z, 700.0)),  # e^700 is still finite
}


def decode(code: Code, scores: Array, decoding: str) -> Array:
    """−Σ_b L(M_kb f_b), rows × classes: the class of largest value is the nearest codeword."""
    if decoding == "hamming":
        scores = np.where(scores > 0, 1.0, -1.0)  # a score of 0 counts as −1, as in a base's prediction
    loss = DECODERS[decoding]
    words = np.ascontiguousarray(code.T.astype(np.float64))  # columns × classes
    out = np.empty((len(scores), words.shape[1]))
    size = max(1, _BLOCK // max(1, words.size))
    with np.errstate(over="ignore"):
        for start in range(0, len(scores), size):
            z = scores[start : start + size, :, np.newaxis] * words
            out[start : start + size] = -np.add.reduce(loss(z), axis=1)
    return out
