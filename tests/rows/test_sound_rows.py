"""Rows that a parser, or the reader of a cache, saw to be well formed are learned without a second look; no others."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cache_forging import Record, record_bytes, records_of
from support.grid import saved

import onepass as op
from onepass.datasets import CSR
from onepass.errors import DamagedFileError, InputError, NumericalError
from onepass.rows.batches import as_batch
from onepass.streams import cache as caches

BITS = 6
ROWS = 40


def lines(rows: int = ROWS) -> list[str]:
    g = np.random.default_rng(3)
    return [
        f"{1 if x[0] > 0 else -1} | " + " ".join(f"f{j}:{v:.3f}" for j, v in zip(g.permutation(60)[:5], x, strict=True))
        for x in g.normal(size=(rows, 5))
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.vw"
    made.write_text("\n".join(lines()) + "\n")
    return made


def only_chunk(path: Path, **options: Any) -> Any:
    [chunk] = op.stream(path, **options).batches()
    return chunk


def unmarked(X: CSR) -> CSR:
    return CSR(X.indptr, X.indices, X.data, X.shape, X.distinct, X.table, X.hash_bits)


@pytest.mark.parametrize("hash_bits", [None, BITS])
def test_rows_of_text_and_of_caches_are_marked_validated(path: Path, tmp_path: Path, hash_bits: int | None) -> None:
    for cache in (None, tmp_path / "c", tmp_path / "c"):  # parsed; parsed, and a cache written; from the cache
        X = only_chunk(path, hash_bits=hash_bits, cache=cache).X
        assert X.validated and X[3:9].validated and X[:0].validated
        for array in (X.indptr, X.indices, X.data, X[3:9].indptr):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7
    table = tmp_path / "t.csv"
    table.write_text("label,a\n1,2.5\n0,3.5\n")
    assert not only_chunk(table, cache=tmp_path / "t").X.validated, "not the native parser's"
    assert only_chunk(table, cache=tmp_path / "t").X.validated


def test_what_others_make_of_them_is_not(path: Path) -> None:
    X = only_chunk(path, hash_bits=BITS).X
    made = [
        unmarked(X),
        replace(X, shape=(len(X), 3)),
        replace(X, indices=X.indices + 1),
        X.take(np.arange(4)),
        copy.deepcopy(X),
        pickle.loads(pickle.dumps(X)),
    ]
    assert not any(each.validated for each in made)
    for outside in (made.pop(2), made.pop(1)):
        with pytest.raises(InputError, match="outside its shape"):
            as_batch(outside)
    assert not any(as_batch(each).validated for each in made)
    with pytest.raises(ValueError, match="init=False"):
        replace(X, _validated=True)
    batch = as_batch(X)
    assert batch.validated and batch.part(2, 5).validated
    assert not batch.take(np.arange(3)).validated and not replace(batch, columns=3).validated


def test_a_copy_that_was_changed_is_looked_at(path: Path) -> None:
    chunk = only_chunk(path, hash_bits=BITS)
    model = op.LinearModel("pa1", hash_bits=BITS)
    model.learn_many(chunk.X, chunk.y)
    before = saved(model)
    for name, bad in (("indices", 1 << BITS), ("indices", -1), ("data", np.nan), ("indptr", 1 << 30)):
        X = copy.deepcopy(chunk.X)
        getattr(X, name)[-1] = bad
        for use in (lambda X=X: model.learn_many(X, chunk.y), lambda X=X: model.score_many(X)):
            with pytest.raises(InputError):
                use()
        assert saved(model) == before


@pytest.mark.parametrize("rows", [4, ROWS])  # fewer numbers than weights, and more
@pytest.mark.parametrize("far", [None, "1 | f1:1e200 f2:1\n"])
@pytest.mark.parametrize("rule", ["sgd:loss=logistic", "arow", "vw:loss=logistic", "pa1"])
def test_they_are_learned_as_others_are(tmp_path: Path, rule: str, far: str | None, rows: int) -> None:
    """Also where finite values overflow when they are squared: that row is refused, those before it stay."""
    text = [line + "\n" for line in lines(rows)]
    path = tmp_path / "b.vw"
    path.write_text("".join(text[: rows - 2] + ([far] if far else []) + text[rows - 2 :]))
    chunk = only_chunk(path, hash_bits=BITS)
    got = []
    for X in (chunk.X, unmarked(chunk.X)):
        model = op.LinearModel(rule, hash_bits=BITS, classes=[-1, 1])
        said: Any = None
        try:
            said = model.predict_then_learn(X, chunk.y).tolist()
        except NumericalError as error:
            said = str(error)
        got.append((said, saved(model), model.score_many(X[: rows - 2]).tolist()))
    assert got[0] == got[1]
    assert isinstance(got[0][0], str) == (far is not None)


def test_rows_have_as_many_columns_as_they_reach(tmp_path: Path) -> None:
    """So that a model grows in the same way, however the stream is cut."""
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 2:1\n-1 7:1\n1 3:1\n")
    for cache in (None, tmp_path / "c", tmp_path / "c"):
        chunks = list(op.stream(path, cache=cache).batches(1))
        assert [chunk.X.shape for chunk in chunks] == [(1, 3), (1, 8), (1, 4)]
        assert all(chunk.X.validated for chunk in chunks)
    assert only_chunk(path).X.shape == (3, 8)
    assert only_chunk(path, hash_bits=BITS).X[:1].shape == (1, 1 << BITS)


def test_chosen_rows_keep_the_meaning_of_their_columns(path: Path) -> None:
    for options in ({}, {"hash_bits": BITS}):
        X = only_chunk(path, **options).X
        few = X.take(np.array([5, 2]))
        assert (few.distinct, few.table, few.hash_bits) == (True, X.table, X.hash_bits)
        np.testing.assert_array_equal(few.data, np.concatenate([X[5:6].data, X[2:3].data]))


# -- caches whose checksums are right and whose rows are not -----------------------------------------------------------


def forged(whole: bytes, change: Callable[[Record], object]) -> bytes:
    """The cache with its first record changed, under a checksum that fits."""
    begin, records = records_of(whole)
    change(records[0])
    return begin + b"".join(record_bytes(record) for record in records)


def put(name: str, at: int, value: float) -> Callable[[Record], object]:
    return lambda made: made.arrays[name].__setitem__(at, value)


def claim(place: int, value: int) -> Callable[[Record], object]:
    return lambda made: made.shape.__setitem__(place, value)


def fewer(name: str) -> Callable[[Record], object]:
    def change(made: Record) -> None:
        made.arrays[name] = made.arrays[name][:-1]
        if name in made.head["arrays"]:
            made.head["arrays"][name][1] -= 1

    return change


FORGERIES: dict[str, Callable[[Record], object]] = {
    "an index outside": put("index", 7, 1 << BITS),
    "a negative index": put("index", 0, -1),
    "a value that is none": put("value", 3, np.nan),
    "an infinite value": put("value", -1, -np.inf),
    "starts that fall": put("starts", 5, 90),
    "starts before the first": put("starts", 0, -1),
    "starts beyond the last": put("starts", -1, 10_000),
    "too few labels": fewer("y"),
    "too few rows": claim(0, ROWS),
    "more rows than there are": claim(0, 1 << 62),
    "more features than there are": claim(1, 1 << 20),
    "so many that their bytes overflow": claim(1, 1 << 62),
    "values of three bytes": claim(2, 3),
    "a wider table": lambda made: (claim(3, 1 << 20)(made), put("index", 7, 1 << BITS)(made)),
    "a label of a foreign kind": lambda made: made.head["arrays"].update(y=["O", ROWS]),
    "labels beyond the file": lambda made: made.head["arrays"].update(y=["<i8", 1 << 40]),
    "no bits": lambda made: made.head.update(hash_bits=-3),
    "bits left out": lambda made: made.head.pop("hash_bits"),
    "lines left out": lambda made: made.head.pop("lines"),
    "an offset of a foreign kind": lambda made: made.head.update(offset=[]),
    "bad lines that are none": lambda made: made.head.update(bad=11),
    "a bad line of nothing": lambda made: made.head.update(bad=[{}]),
    "a head of nothing": lambda made: made.head.clear(),
}


@pytest.mark.parametrize("hash_bits", [None, BITS])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_cache_is_refused(path: Path, tmp_path: Path, forgery: str, hash_bits: int | None) -> None:
    cache = tmp_path / "c"
    expected = only_chunk(path, hash_bits=hash_bits, cache=cache).X
    whole = cache.read_bytes()
    cache.write_bytes(forged(whole, lambda made: None))
    np.testing.assert_array_equal(only_chunk(path, hash_bits=hash_bits, cache=cache).X.data, expected.data)
    cache.write_bytes(forged(whole, FORGERIES[forgery]))
    with pytest.raises(DamagedFileError, match="remove it"):
        only_chunk(path, hash_bits=hash_bits, cache=cache)


def test_rows_that_were_handed_out_do_not_change_with_the_cache(path: Path, tmp_path: Path) -> None:
    cache = tmp_path / "c"
    only_chunk(path, hash_bits=BITS, cache=cache)
    chunk = only_chunk(path, hash_bits=BITS, cache=cache)
    indices = chunk.X.indices.copy()
    at = cache.read_bytes().find(indices.tobytes())
    with cache.open("r+b") as file:
        file.seek(at)
        file.write(np.full(len(indices), 1 << 30, dtype=np.int32).tobytes())
    assert chunk.X.validated and not chunk.X.indices.flags.writeable
    np.testing.assert_array_equal(chunk.X.indices, indices)


@pytest.fixture(scope="module")
def long_cache(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A stream, and a cache of it that is longer than what is read ahead."""
    path = tmp_path_factory.mktemp("long") / "long.svm"
    path.write_bytes(b"1 " + b" ".join(b"%d:1.5" % i for i in range(999)) + b"\n" + b"-1 3:1\n")
    path.write_bytes(path.read_bytes() * 4000)
    for _ in op.stream(path, cache=path.with_suffix(".cache")).batches():
        pass
    return path, path.with_suffix(".cache").read_bytes()


@pytest.mark.parametrize("left", [0, 0.3, 0.99])
@pytest.mark.parametrize("then", [b"", b"\0"], ids=["cut short", "written over"])
def test_a_cache_that_changes_while_it_is_read(long_cache: tuple[Path, bytes], left: float, then: bytes) -> None:
    """An error, and no signal that ends the process; what was taken before stays as it was."""
    path, whole = long_cache
    cache = path.with_suffix(".cache")
    assert len(whole) > 24 << 20
    cache.write_bytes(whole)
    chunks = op.stream(path, cache=cache).batches()
    first = next(chunks)
    keep = int(left * len(whole))
    with cache.open("r+b") as file:
        if then:
            file.seek(keep)
            file.write(then * (len(whole) - keep))
        else:
            file.truncate(keep)
    rows = len(first)
    with pytest.raises(DamagedFileError, match="changed while it was read"):
        for chunk in chunks:
            rows += len(chunk)
            assert set(chunk.y.tolist()) <= {1, -1}
    assert rows < 8000
    assert first.X.data.sum() == 1498.5 * (first.y == 1).sum() + (first.y == -1).sum()


def test_a_cache_that_is_replaced_while_it_is_read(long_cache: tuple[Path, bytes]) -> None:
    """As by another run: who has begun to read the old one goes on with it."""
    path, whole = long_cache
    cache = path.with_suffix(".cache")
    cache.write_bytes(whole)
    chunks = op.stream(path, cache=cache).batches()
    rows = len(next(chunks))
    (path.parent / "other").write_bytes(b"else")
    (path.parent / "other").replace(cache)
    assert rows + sum(map(len, chunks)) == 8000


def test_a_record_that_claims_to_be_larger_than_memory(path: Path, tmp_path: Path) -> None:
    """As it may in a file with holes, whose size proves nothing."""
    cache = tmp_path / "c"
    only_chunk(path, hash_bits=BITS, cache=cache)
    whole = cache.read_bytes()
    start = 32 + -(-int.from_bytes(whole[24:32], "little") // 8) * 8
    claimed = 1 << 43
    with cache.open("r+b") as file:
        file.seek(start)
        file.write(caches.FRONT.pack(2, claimed, 0))
        try:
            file.truncate(claimed + (1 << 20))
        except OSError:
            pytest.skip("no file of so many bytes can be made here")
    with pytest.raises(DamagedFileError):
        only_chunk(path, hash_bits=BITS, cache=cache)
