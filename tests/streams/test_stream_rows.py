"""Rows of a stream's chunk one by one: what `learn_many` makes of the chunk, bit for bit, in the order of each row."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.grid import saved

import onepass as op
from onepass.errors import FeatureError, InputError, NumericalError
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel

BITS = 6


def text(format: str) -> bytes:
    """Rows whose features are in any order, some of them 0, and all of which meet one with the largest number."""
    rng = np.random.default_rng(3)
    lines = []
    for _ in range(40):
        chosen = rng.permutation(30)[:7].tolist()
        values = np.append(rng.normal(size=7).round(3), [1.5, 0.0])
        row = " ".join(f"{j}:{v:g}" for j, v in zip([*chosen, 41, 40], values.tolist(), strict=True))
        names = " ".join(f"n{each}" for each in row.split())
        lines.append(f"{rng.choice([-1, 1])} " + (f"| {names}" if format == "vw" else row))
    return "\n".join(lines).encode()


def chunks(format: str, hash_bits: int | None) -> Iterator[Any]:
    yield from op.stream(io.BytesIO(text(format)), format=format, hash_bits=hash_bits, block_size=300).batches()


def made(rule: str, hash_bits: int | None) -> LinearModel:
    if rule == "kernel":
        return KernelModel("pa1", "binary", kernel="rbf:gamma=0.1", classes=[-1, 1], hash_bits=hash_bits)
    return LinearModel(
        rule, "binary", classes=[-1, 1], hash_bits=hash_bits, readout="average" if rule == "pa1" else "last"
    )


CELLS = [
    (rule, format, hash_bits)
    for rule in ("sgd", "pa1", "arow", "adagrad", "kernel")
    for format, hash_bits in (("vw", BITS), ("vw", None), ("svmlight", BITS), ("svmlight", None))
]


@pytest.mark.parametrize(("rule", "format", "hash_bits"), CELLS, ids=str)
def test_one_by_one_is_the_chunk(rule: str, format: str, hash_bits: int | None) -> None:
    many, one = made(rule, hash_bits), made(rule, hash_bits)
    named = (format, hash_bits) == ("vw", None)  # of single rows, names that are new are not scored, not even as 0
    unsorted = False
    for chunk in chunks(format, hash_bits):
        scores = []
        for i in range(len(chunk)):
            row = chunk.X[i : i + 1]
            unsorted |= bool(np.any(np.diff(row.indices) < 0))
            scores.append(one.score_one(row))
            one.learn_one(row, int(chunk.y[i]))
        parts = many.score_then_learn(chunk.X, chunk.y)
        assert np.allclose(
            np.concatenate([each for _, each in parts])[:, 0], scores, rtol=1e-14 if named else 0, atol=0
        )
        assert saved(one) == saved(many)
    assert unsorted


def test_sets_with_new_labels_keep_the_order_of_their_rows() -> None:
    """A batch with new labels is learned one by one; row by row, it is in most calls that none is new."""
    many, one = LinearModel("arow", "multilabel"), LinearModel("arow", "multilabel")
    for number, chunk in enumerate(chunks("svmlight", None)):
        sets = [[number], [0, number], [number]][: len(chunk)]
        many.learn_many(chunk.X[: len(sets)], sets)
        for i in range(len(sets)):
            one.learn_many(chunk.X[i : i + 1], sets[i : i + 1])
        assert saved(one) == saved(many)


def test_rows_of_another_kind_are_refused() -> None:
    hashed, other = next(chunks("vw", BITS)).X, next(chunks("vw", BITS + 1)).X
    named, numbers = next(chunks("vw", None)).X, next(chunks("svmlight", None)).X
    model = made("pa1", BITS)
    model.learn_one(hashed[:1], 1)
    before = saved(model)
    broken = replace(hashed[:1], data=np.full_like(hashed[:1].data, np.nan))
    for x, error, words in (
        (other[:1], FeatureError, f"hashes of {BITS + 1} bits"),
        (named[:1], FeatureError, f"give op.stream hash_bits={BITS} too"),
        (numbers[:1], FeatureError, f"give op.stream hash_bits={BITS} too"),
        (hashed[:2], FeatureError, "one row of numbers, got 2"),
        (broken, InputError, "is NaN"),
    ):
        for ask in (lambda x=x: model.learn_one(x, 1), lambda x=x: model.predict_one(x)):
            with pytest.raises(error, match=words):
                ask()
    assert saved(model) == before


def growing(format: str) -> bytes:
    """Rows that bring ever new features."""
    rng = np.random.default_rng(5)
    lines = []
    for i in range(40):
        row = " ".join(f"{j + 1}:{rng.normal():.3f}" for j in sorted(rng.choice(4 + 2 * i, 4, replace=False).tolist()))
        lines.append(f"{rng.normal():.3f} " + ("| " + row.replace(" ", " n") if format == "vw" else row))
    return "\n".join(lines).encode()


@pytest.mark.parametrize("format", ["vw", "svmlight"])
@pytest.mark.parametrize(
    "rule",
    [
        "rls",
        "rls:forgetting=0.9",
        "rls:forecast=vaw",
        "rls:forgetting=0.9,form=chol,max_gamma=20",
        "rls:forgetting=0.9,form=joseph",
        "kalman:q=0.01",
        "arow:covariance=full",
        "ons:loss=squared",
    ],
)
def test_features_count_from_their_first_row_on(rule: str, format: str) -> None:
    """A chunk brings its features together; a whole matrix must not see those of rows to come."""

    def learned(size: int) -> tuple[bytes, Any]:
        model, said = LinearModel(rule, "regression"), []
        for chunk in op.stream(io.BytesIO(growing(format)), format=format).batches(size):
            said.append(model.predict_then_learn(chunk.X, np.asarray(chunk.y, dtype=float)))
            if chunk.position.example == 24:  # what is read from a file goes on as it was
                model = LinearModel.from_state(*model.state())
        return saved(model), np.concatenate(said)

    whole, said = learned(1000)
    for size in (1, 3, 8):
        assert learned(size)[0] == whole, size
        np.testing.assert_array_equal(learned(size)[1], said)
    one = LinearModel(rule, "regression")
    for chunk in op.stream(io.BytesIO(growing(format)), format=format).batches():
        for i in range(len(chunk)):
            one.learn_one(chunk.X[i : i + 1], float(chunk.y[i]))
    assert saved(one) == whole


BRINGS = [
    (rule, brings)
    for rule in ("sgd", "arow", "arow:covariance=full", "kernel")
    for brings in ("a known class", "a new class", "a new label")
    if (rule, brings) != ("kernel", "a new label")  # kernel models have no label sets
]


@pytest.mark.parametrize("format", ["vw", "svmlight"])
@pytest.mark.parametrize(("rule", "brings"), BRINGS)
def test_rows_after_a_refused_one_leave_nothing(rule: str, format: str, brings: str) -> None:
    """The row that is too large, its labels and all after it: as if the stream had ended before, however it is cut."""
    task = "multilabel" if brings == "a new label" else "auto"
    rows = growing(format).splitlines()[:20]
    overflow = "1:1e200 2:1e200 70:1"
    rows[10] = b"x " + (f"| {overflow}".replace(" ", " n") if format == "vw" else overflow).encode()
    known = 2 if brings == "a known class" else 3
    labels = [i % 2 for i in range(10)] + [known - 1] + [i % known for i in range(11, 20)]
    text = b"\n".join(b"%d %s" % (y, row.split(b" ", 1)[1]) for y, row in zip(labels, rows, strict=True))

    def learned(text: bytes, size: int | None) -> tuple[LinearModel, str]:
        """In chunks, or one by one; up to the end, or the row that is refused."""
        model = KernelModel("pa1", kernel="linear") if rule == "kernel" else LinearModel(rule, task)
        try:
            for chunk in op.stream(io.BytesIO(text), format=format).batches(size or 1000):
                y = [int(label) for label in chunk.y]
                sets = [[label] for label in y] if task == "multilabel" else y
                if size is None:
                    for i, answer in enumerate(sets):
                        model.learn_one(chunk.X[i : i + 1], answer)
                else:
                    model.learn_many(chunk.X, sets)
        except NumericalError as error:
            return model, str(error)
        return model, ""

    ended, _ = learned(b"\n".join(text.splitlines()[:10]), 1)
    for size in (1, 4, 1000, None):
        model, said = learned(text, size)
        assert said
        assert saved(model) == saved(ended), size
        if size == 1000:
            assert said.startswith("row 10: ")
        LinearModel.from_state(*model.state()) if rule != "kernel" else KernelModel.from_state(*model.state())
