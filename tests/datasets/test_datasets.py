"""Generated streams: determinism, independence of chunking, and that the drift is there."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra

from onepass.datasets import (
    BLOCK,
    CSR,
    LED,
    RBF,
    SEA,
    STAGGER,
    Agrawal,
    Checkerboard,
    Recurring,
    RotatingHyperplane,
    SparseText,
    Switch,
    Synthetic,
)
from onepass.errors import ParameterError
from onepass.models.linear import LinearModel

N = 2 * BLOCK + 500

STREAMS = [
    RotatingHyperplane(N, turns=0.5),
    SEA(N),
    SparseText(N, features=3000, nnz=9, classes=3),
    Checkerboard(N, turns=0.5),
    STAGGER(N, noise=0.1),
    LED(N, drifting=3),
    RBF(N, d=4, classes=3, speed=0.5),
    Agrawal(N, function=5, perturbation=0.1),
]


def as_arrays(X: Any) -> list[np.ndarray]:
    return [X.indptr, X.indices, X.data] if isinstance(X, CSR) else [X]


def whole(stream: Synthetic | Switch) -> tuple[Any, np.ndarray]:
    [chunk] = stream.chunks(len(stream))
    return chunk


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
@pytest.mark.parametrize("size", [777, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3, 10 * N])
def test_chunks_of_any_size_hold_the_same_bits(stream: Synthetic, size: int) -> None:
    X, y = whole(stream)
    seen = 0
    for part, labels in stream.chunks(size):
        assert len(labels) == min(size, N - seen)
        rows = slice(seen, seen + len(labels))
        for got, expected in zip(as_arrays(part), as_arrays(X[rows]), strict=True):
            assert got.dtype == expected.dtype
            assert got.tobytes() == expected.tobytes()
        assert labels.tobytes() == y[rows].tobytes()
        seen += len(labels)
    assert seen == N


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_one_at_a_time_is_the_same_stream_by_name(stream: Synthetic) -> None:
    X, y = whole(stream)
    pairs = list(stream)
    assert [label for _, label in pairs] == y.tolist()
    assert type(pairs[0][1]) is int
    for i in (0, 1, BLOCK - 1, BLOCK, N - 1):
        if isinstance(X, CSR):
            row = X[i : i + 1]
            expected = {f"w{j}": v for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)}
        else:
            expected = {f"x{j}": v for j, v in enumerate(X[i].tolist())}
        assert pairs[i][0] == expected


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_the_seed_decides(stream: Synthetic) -> None:
    again = type(stream)(**stream.get_params())
    other = type(stream)(**{**stream.get_params(), "seed": 1})
    first, second, third = (as_arrays(whole(s)[0])[-1].tobytes() for s in (stream, again, other))
    assert first == second != third
    # Blocks are not copies of each other.
    y = whole(stream)[1]
    assert not np.array_equal(y[:BLOCK], y[BLOCK : 2 * BLOCK])


def test_the_seed_means_the_same_in_another_process() -> None:
    code = (
        "import hashlib; from onepass.datasets import *; h = hashlib.sha256();\n"
        "for X, y in SEA(5000, seed=3).chunks(900): h.update(X.tobytes()); h.update(y.tobytes())\n"
        "print(h.hexdigest())"
    )
    ran = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in "12"]
    assert ran[0].stdout == ran[1].stdout
    assert len(ran[0].stdout.strip()) == 64


def teacher(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A static linear classifier, fitted once by least squares; the last entry is the intercept."""
    w: np.ndarray = np.linalg.lstsq(np.c_[X, np.ones(len(X))], 2.0 * y - 1.0, rcond=None)[0]
    return w


def errors(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((np.c_[X, np.ones(len(X))] @ w > 0) != (y == 1)))


def test_hyperplane_drift_is_real() -> None:
    X, y = whole(RotatingHyperplane(40_000, turns=0.5))
    w = teacher(X[:2000], y[:2000])
    tenths = [errors(w, X[i : i + 4000], y[i : i + 4000]) for i in range(0, 40_000, 4000)]
    assert tenths[0] < 0.12
    assert all(later > earlier for earlier, later in itertools.pairwise(tenths))
    assert tenths[-1] > 0.85  # almost half a turn: nearly every label is the opposite, noise apart


def test_hyperplane_that_stands_still_does_not_drift() -> None:
    X, y = whole(RotatingHyperplane(40_000, turns=0, noise=0.05))
    w = teacher(X[:5000], y[:5000])
    assert errors(w, X[-5000:], y[-5000:]) < 0.08
    assert abs(float(np.mean(y)) - 0.5) < 0.02


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_noise_is_the_share_of_flipped_labels(noise: float) -> None:
    clean, noisy = (whole(RotatingHyperplane(40_000, noise=share)) for share in (0.0, noise))
    assert clean[0].tobytes() == noisy[0].tobytes()
    assert abs(float(np.mean(clean[1] != noisy[1])) - noise) < 0.01
    X, y = whole(SEA(40_000, thresholds=(8.0,), noise=noise))
    assert abs(float(np.mean((X[:, 0] + X[:, 1] > 8) != y)) - noise) < 0.01


def test_sea_switches_where_it_says() -> None:
    X, y = whole(SEA(4003, thresholds=(8, 9, 7, 9.5), noise=0))
    total = X[:, 0] + X[:, 1]
    for segment, theta in enumerate((8, 9, 7, 9.5)):
        rows = np.arange(4003) * 4 // 4003 == segment
        assert 1000 <= rows.sum() <= 1001
        assert np.array_equal(y[rows] == 1, total[rows] > theta)
    # A classifier that knows the first concept perfectly errs in the second.
    first, second = slice(0, 1000), slice(1001, 2001)
    assert np.mean((total[first] > 8) != y[first]) == 0
    assert np.mean((total[second] > 8) != y[second]) > 0.05
    assert X.min() >= 0 and X.max() < 10


def test_sparse_text_looks_like_text() -> None:
    stream = SparseText(6000)
    X, y = whole(stream)
    assert X.shape == (6000, 47_000)
    counts = np.diff(X.indptr)
    assert (counts == 68).mean() > 0.999
    for i in range(50):
        row = X.indices[X.indptr[i] : X.indptr[i + 1]]
        assert np.all(np.diff(row) > 0)  # sorted, none twice
    assert 0 <= X.indices.min() and X.indices.max() < 47_000
    norms = np.add.reduceat(X.data**2, X.indptr[:-1])
    np.testing.assert_allclose(norms, 1.0, rtol=1e-12)
    # Zipf: common words are in most rows, words a hundred times rarer in about a hundredth as many.
    frequency = np.bincount(X.indices, minlength=47_000)
    assert frequency[0] > 0.95 * 6000
    assert 30 < frequency[100:200].sum() / frequency[10_000:10_100].sum() < 150
    assert set(y.tolist()) == {0, 1}


def test_sparse_text_can_be_learned_and_tilt_is_why() -> None:
    def held_out(tilt: float) -> float:
        X, y = whole(SparseText(6000, features=500, nnz=40, tilt=tilt))
        dense = X.csr_matrix().toarray()
        w = teacher(dense[:4000], y[:4000])
        return errors(w, dense[4000:], y[4000:])

    assert held_out(0.4) < 0.15
    assert held_out(0.0) > 0.45


def test_sparse_text_as_scipy_matrix() -> None:
    X, _ = whole(SparseText(300, features=100, nnz=7, classes=5))
    matrix = X.csr_matrix()
    assert matrix.has_canonical_format and matrix.shape == (300, 100)
    first = {f"w{j}": v for j, v in enumerate(matrix[0].toarray()[0].tolist()) if v}
    assert next(X.dicts()) == first


@pytest.mark.parametrize("features", [1, 2, 5])
def test_sparse_text_with_hardly_any_words(features: int) -> None:
    X, y = whole(SparseText(200, features=features, nnz=features, classes=3))
    assert np.all(np.diff(X.indptr) >= 1) and X.indices.max() < features
    assert set(y.tolist()) == {0, 1, 2}


def test_empty_and_tiny_streams() -> None:
    for kind in (RotatingHyperplane, SEA, SparseText, Checkerboard, STAGGER, LED, RBF, Agrawal):
        assert list(kind(0)) == [] == list(kind(0).chunks(10))
        assert len(list(kind(1))) == 1 == len(kind(1))


@pytest.mark.parametrize(
    "bad",
    [
        lambda: RotatingHyperplane(-1),
        lambda: RotatingHyperplane(2.5),  # type: ignore[arg-type]
        lambda: RotatingHyperplane(10, d=1),
        lambda: RotatingHyperplane(10, noise=1.5),
        lambda: RotatingHyperplane(10, turns=float("nan")),
        lambda: RotatingHyperplane(10, seed=-1),
        lambda: SEA(10, thresholds=()),
        lambda: SEA(10, thresholds=(1.0, float("inf"))),
        lambda: SEA(10, thresholds="abc"),  # type: ignore[arg-type]
        lambda: SparseText(10, features=5, nnz=6),
        lambda: SparseText(10, classes=1),
        lambda: SEA(10).chunks(0),
        lambda: SEA(10).chunks(2.0),  # type: ignore[arg-type]
        lambda: SEA(10).chunks(True),
        lambda: whole(SparseText(10, features=9, nnz=2))[0][::2],
        lambda: whole(SparseText(10, features=9, nnz=2))[0][3],
    ],
)
def test_bad_parameters_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError):
        bad()


def test_a_linear_model_takes_the_sparse_rows_as_they_are() -> None:
    X, y = whole(SparseText(3000, features=500, nnz=10))
    ours, theirs = LinearModel("pa1", task="binary"), LinearModel("pa1", task="binary")
    predictions = list(ours.predict_then_learn(X, y))  # the first is None: no class is known yet
    assert predictions == list(theirs.predict_then_learn(X.csr_matrix(), y))
    assert ours.weights()[0].tobytes() == theirs.weights()[0].tobytes()
    assert np.mean(np.array(predictions[-1000:]) != y[-1000:]) < 0.47


def test_no_scipy_until_asked() -> None:
    code = (
        "import sys; from onepass.datasets import SparseText; from onepass.models.linear import LinearModel;"
        "LinearModel('pa1').predict_then_learn(*next(SparseText(10).chunks(5)));"
        "assert 'scipy' not in sys.modules and 'sklearn' not in sys.modules, 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("squares", [1, 2, 4, 5])
def test_checkerboard_has_its_squares(squares: int) -> None:
    X, y = whole(Checkerboard(5000, squares=squares))
    cells = np.floor((X + 1) * squares / 2).astype(int)
    assert np.array_equal(y, cells.sum(axis=1) % 2)
    assert X.min() >= -1 and X.max() < 1
    assert len(np.unique(cells, axis=0)) == squares**2


def test_checkerboard_turns() -> None:
    """A quarter of a turn of an even board gives every label's opposite or the same board; an eighth neither."""
    X, y = whole(Checkerboard(40_000, squares=2, turns=0.25))
    quadrant = ((X[:, 0] >= 0) ^ (X[:, 1] >= 0)).astype(int)
    tenths = [float(np.mean(quadrant[i : i + 4000] == y[i : i + 4000])) for i in range(0, 40_000, 4000)]
    assert tenths[0] > 0.9 and tenths[-1] < 0.1
    assert all(later < earlier for earlier, later in itertools.pairwise(tenths))
    noisy = whole(Checkerboard(40_000, squares=2, turns=0.25, noise=0.2))
    assert abs(float(np.mean(noisy[1] != y)) - 0.2) < 0.01 and noisy[0].tobytes() == X.tobytes()


def test_a_switch_is_one_stream_and_then_the_other() -> None:
    one, other = SEA(9000, seed=1), SEA(9000, seed=2)
    X, y = whole(one)
    Z, z = whole(other)
    S, s = whole(Switch(one, other, at=4000))
    np.testing.assert_array_equal(S, np.concatenate([X[:4000], Z[4000:]]))
    np.testing.assert_array_equal(s, np.concatenate([y[:4000], z[4000:]]))
    assert len(Switch(one, other)) == 9000 and Switch(one, other).at == 4500


@pytest.mark.parametrize("kind", [SEA, SparseText])
def test_a_gradual_switch(kind: Any) -> None:
    options: dict[str, Any] = {} if kind is SEA else {"features": 300, "nnz": 5}
    one, other = kind(9000, seed=1, **options), kind(9000, seed=2, **options)
    stream = Switch(one, other, at=4500, width=2000, seed=5)
    pairs, first, second = list(stream), list(one), list(other)
    from_second = np.array([a == c and a != b for a, b, c in zip(pairs, first, second, strict=True)])
    assert all(a in (b, c) for a, b, c in zip(pairs, first, second, strict=True))
    t = np.arange(9000)
    p = 1 / (1 + np.exp(-4 * (t - 4500) / 2000))
    for start in range(0, 9000, 1000):
        assert abs(from_second[start : start + 1000].mean() - p[start : start + 1000].mean()) < 0.06
    X, y = whole(stream)
    for size in (1, 777, 4096, 5000) if kind is SEA else (777,):
        parts = list(stream.chunks(size))
        assert np.concatenate([labels for _, labels in parts]).tobytes() == y.tobytes()
        columns = [as_arrays(part)[-1] for part, _ in parts]
        assert np.concatenate(columns).tobytes() == as_arrays(X)[-1].tobytes()


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Switch(SEA(10), SEA(11)),
        lambda: Switch(SEA(10), [1, 2]),
        lambda: Switch(SEA(10), SEA(10), at=-1),
        lambda: Switch(SEA(10), SEA(10), width=0.5),  # type: ignore[arg-type]
        lambda: list(Switch(SEA(10), RotatingHyperplane(10))),
        lambda: Recurring(SEA(10), every=5),
        lambda: Recurring(SEA(10), SEA(11), every=5),
        lambda: Recurring(SEA(10), SEA(10), every=0),
        lambda: STAGGER(10, concepts=(0, 3)),
        lambda: STAGGER(10, concepts=()),
        lambda: LED(10, drifting=2, irrelevant=False),
        lambda: Agrawal(10, function=11),
        lambda: Checkerboard(10, squares=0),
        lambda: Checkerboard(10, noise=2),
    ],
)
def test_bad_boards_and_switches(bad: Any) -> None:
    with pytest.raises(ParameterError):
        bad()


def test_recurring_concepts_take_turns() -> None:
    streams = [SEA(9000, seed=seed) for seed in (1, 2, 3)]
    rows = [whole(stream)[0] for stream in streams]
    X, _ = whole(Recurring(*streams, every=1500))
    for t in (0, 1499, 1500, 2999, 3000, 4499, 4500, 5999, 6000, 8999):
        np.testing.assert_array_equal(X[t], rows[t // 1500 % 3][t])
    gradual, _ = whole(Recurring(*streams, every=1500, width=400))
    turn = np.array([[np.array_equal(gradual[t], each[t]) for each in rows] for t in range(9000)]).argmax(axis=1)
    assert not turn[:700].any() and (turn[2000:2400] == 1).mean() > 0.98 and 0.3 < (turn[1400:1600] == 1).mean() < 0.7


def test_stagger_concepts_are_those_of_the_paper() -> None:
    X, y = whole(STAGGER(9000))
    small, red, green, round_ = (X[:, i] == 1 for i in (0, 3, 4, 7))
    expected = np.concatenate([(small & red)[:3000], (green | round_)[3000:6000], ~small[6000:]])
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(X.reshape(-1, 3, 3).sum(axis=2), 1)


def test_led_without_noise_is_a_display() -> None:
    X, y = whole(LED(4000, noise=0.0))
    lamps = {digit: np.unique(X[y == digit, :7], axis=0) for digit in range(10)}
    assert all(len(rows) == 1 for rows in lamps.values())
    assert [int(lamps[digit].sum()) for digit in range(10)] == [6, 2, 5, 5, 4, 5, 6, 3, 7, 6]
    assert len({tuple(rows[0]) for rows in lamps.values()}) == 10
    moved, _ = whole(LED(4000, noise=0.0, drifting=3))
    np.testing.assert_array_equal(moved[:2000], X[:2000])
    assert sum(not np.array_equal(moved[2000:, j], X[2000:, j]) for j in range(7)) == 3


def test_centres_of_rbf_move_at_their_speed() -> None:
    still, y = whole(RBF(3000, d=3, centres=1))
    assert len(set(y.tolist())) == 1
    moving, _ = whole(RBF(3000, d=3, centres=1, speed=0.1))
    travelled = np.linalg.norm(moving - still, axis=1)
    assert travelled[0] == 0 and 0.05 < travelled[1000] <= 0.1 + 1e-12 and travelled.max() <= 0.3 + 1e-12


@pytest.mark.parametrize("function", range(1, 11))
def test_agrawal_decides_as_river_does(function: int) -> None:
    synth = require_extra("river.datasets.synth")
    decide = getattr(synth.Agrawal, f"_classification_function_{function - 1}")
    if function == 5:  # River looks at the salary where the paper looks at the loan

        def decide(salary: float, _: Any, age: float, *rest: float) -> bool:
            bands = [(50, 100, 100, 200), (75, 125, 200, 300), (25, 75, 300, 100)]
            low, high, inside, outside = bands[0 if age < 40 else 1 if age < 60 else 2]
            at_least = 1000 * (inside if 1000 * low <= salary <= 1000 * high else outside)
            return at_least <= rest[-1] <= at_least + 200_000

    X, y = whole(Agrawal(3000, function=function, seed=function))
    said = np.array([decide(*row) for row in X.tolist()])
    # River calls group A 1 up to function 6 and 0 after, where it also asks for an income above 1, not above 0.
    differ = y != (said if function <= 6 else 1 - said)
    assert differ.sum() <= (0 if function <= 6 else 1)
    assert 0.02 < y.mean() < 0.98 or function in (8, 10)
    assert np.all((X[:, 1] == 0) == (X[:, 0] >= 75_000))
