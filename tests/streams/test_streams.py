"""A stream gives the same examples however it is cut, parsed, resumed or cached; a model learns the same from them."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from support.extras import require_extra

import onepass as op
from onepass import _native
from onepass.errors import DamagedFileError, FeatureError, InputError, ParameterError
from onepass.models.linear import LinearModel
from onepass.streams import Position

pa = require_extra("pyarrow")


def vw_lines(n: int, seed: int = 0) -> list[str]:
    """Lines with all that VW's format has."""
    g = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        words = " ".join(f"w{j}" for j in g.integers(0, 300, 8))
        numbers = " ".join(f"f{j}:{v:.4f}" for j, v in zip(g.integers(0, 50, 5), g.normal(size=5), strict=True))
        head = [f"{g.choice([-1, 1])}", f"{g.choice([-1, 1])} {g.random():.2f}", f"1 2 0 'tag{i}"][int(g.integers(3))]
        lines.append(f"{head} |t {words} c:{g.choice(['x', 'y'])} |n:2 {numbers} zero:0 |n again:1e-3 :3")
    return lines


@pytest.fixture(scope="module")
def vw_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vw") / "some.vw"
    path.write_text("\n".join(vw_lines(700)) + "\n")
    return path


@pytest.fixture(scope="module")
def table_files(tmp_path_factory):
    """The same table in every format that holds one."""
    from pyarrow import csv, parquet

    folder = tmp_path_factory.mktemp("tables")
    g = np.random.default_rng(1)
    rows = [
        {
            "label": int(g.integers(3)),
            "a": None if g.random() < 0.2 else round(float(g.normal()), 3),
            "b": int(g.integers(-2, 3)),
            "city": None if g.random() < 0.2 else str(g.choice(["Rome", "Oslo", 'a "b", c', "x=y"])),
            "ok": bool(g.random() < 0.5),
            "w": round(float(g.random()), 2),
        }
        for _ in range(500)
    ]
    table = pa.Table.from_pylist(rows)
    csv.write_csv(table, folder / "t.csv")
    csv.write_csv(table, folder / "t.tsv", csv.WriteOptions(delimiter="\t"))
    parquet.write_table(table, folder / "t.parquet", row_group_size=128)
    with pa.ipc.new_file(folder / "t.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    (folder / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder, rows


TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")


def saved(model: LinearModel, tmp_path) -> bytes:
    model.save(tmp_path / "model.onepass")
    return (tmp_path / "model.onepass").read_bytes()


def learned(stream, size=None, *, hash_bits=None, rule="pa1", start=None) -> LinearModel:
    model = start or LinearModel(rule, hash_bits=hash_bits)
    for chunk in stream.batches(size):
        model.learn_many(chunk.X, chunk.y, chunk.weight)
    return model


def one_by_one(path, *, hash_bits=None, rule="pa1", **options) -> LinearModel:
    """What learn_one makes of the mappings, with the weights of the chunks."""
    model = LinearModel(rule, hash_bits=hash_bits)
    stream = op.stream(path, **options)
    weights = [1.0 if c.weight is None else c.weight[i] for c in stream.batches() for i in range(len(c))]
    for (x, y), weight in zip(stream, weights, strict=True):
        model.learn_one(x, y, weight)
    return model


@pytest.mark.parametrize("rule", ["pa1", "sgd:loss=logistic", "fobos"])
@pytest.mark.parametrize("hash_bits", [None, 6, 18])
def test_chunks_learn_what_mappings_learn(vw_file, tmp_path, rule, hash_bits):
    """Bit for bit, at every size of chunk and block and number of threads."""
    expected = saved(one_by_one(vw_file, hash_bits=hash_bits, rule=rule), tmp_path)
    for size, threads, block in ((None, 1, 1 << 20), (1, 2, 1000), (64, 3, 5000), (1000, 2, 1 << 16)):
        stream = op.stream(vw_file, hash_bits=hash_bits, threads=threads, block_size=block)
        assert saved(learned(stream, size, hash_bits=hash_bits, rule=rule), tmp_path) == expected


@pytest.mark.parametrize("format", TABLES)
@pytest.mark.parametrize("hash_bits", [None, 8])
def test_tables_learn_what_mappings_learn(table_files, tmp_path, format, hash_bits):
    path = table_files[0] / f"t.{format}"
    options = {"weight": "w"}
    expected = saved(one_by_one(path, hash_bits=hash_bits, **options), tmp_path)
    for size, block in ((None, 1 << 20), (7, 1000), (100, 3000)):
        stream = op.stream(path, hash_bits=hash_bits, block_size=block, **options)
        assert saved(learned(stream, size, hash_bits=hash_bits), tmp_path) == expected


@pytest.mark.parametrize("format", TABLES)
def test_tables_hold_what_was_written(table_files, format):
    folder, rows = table_files
    read = list(op.stream(folder / f"t.{format}", weight="w"))
    assert len(read) == len(rows)
    for (x, y), row in zip(read, rows, strict=True):
        assert y == row["label"]
        expected = {"a": row["a"], "b": row["b"], "ok": float(row["ok"])}
        expected = {name: float(value) for name, value in expected.items() if value}
        if row["city"] is not None:
            expected[f"city={row['city']}"] = 1.0
        assert x == expected


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("format", ["vw", *TABLES])
@pytest.mark.parametrize("hash_bits", [None, 18])
def test_a_position_resumes_exactly(vw_file, table_files, tmp_path, format, hash_bits):
    path = vw_file if format == "vw" else table_files[0] / f"t.{format}"
    whole = saved(learned(op.stream(path, hash_bits=hash_bits), hash_bits=hash_bits), tmp_path)
    for size in (33, 250):
        model, position = LinearModel("pa1", hash_bits=hash_bits), None
        for _ in range(1000):
            stream = op.stream(path, hash_bits=hash_bits, start=position, block_size=4000)
            chunk = next(iter(stream.batches(size)), None)
            if chunk is None:
                break
            model.learn_many(chunk.X, chunk.y, chunk.weight)
            position = json.loads(json.dumps(chunk.position.to_dict()))
            model.save(tmp_path / "between.onepass")
            model = LinearModel.load(tmp_path / "between.onepass")
        assert position["example"] == model.t
        assert saved(model, tmp_path) == whole


@pytest.mark.parametrize("compress", ["gz", "zst", "stdin"])
def test_what_cannot_be_sought_resumes_by_reading(vw_file, tmp_path, compress):
    data = vw_file.read_bytes()
    if compress == "gz":
        (tmp_path / "x.vw.gz").write_bytes(gzip.compress(data))
    elif compress == "zst":
        with pa.CompressedOutputStream(str(tmp_path / "x.vw.zst"), "zstd") as file:
            file.write(data)

    def source():
        return io.BytesIO(data) if compress == "stdin" else tmp_path / f"x.vw.{compress}"

    chunks = list(op.stream(source(), format="vw", hash_bits=10, block_size=5000).batches(100))
    assert sum(map(len, chunks)) == 700
    again = list(op.stream(source(), format="vw", hash_bits=10, start=chunks[2].position).batches(100))
    assert [len(chunk) for chunk in again] == [len(chunk) for chunk in chunks[3:]]
    for one, other in zip(chunks[3:], again, strict=True):
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(one.X, name), getattr(other.X, name))
        np.testing.assert_array_equal(one.y, other.y)


def test_globs_and_lists_of_files(tmp_path):
    lines = vw_lines(90)
    for i in range(3):
        text = "\n".join(lines[30 * i : 30 * i + 30])
        (tmp_path / f"part{i}.vw").write_text(text + ("\n" if i == 1 else ""))  # a last line need not be ended
    (tmp_path / "all.vw").write_text("\n".join(lines))
    whole = list(op.stream(tmp_path / "all.vw"))
    assert list(op.stream(str(tmp_path / "part*.vw"))) == whole
    assert list(op.stream([tmp_path / f"part{i}.vw" for i in range(3)])) == whole
    for chunk in op.stream(str(tmp_path / "part*.vw")).batches(40):
        rest = list(op.stream(str(tmp_path / "part*.vw"), start=chunk.position))
        assert rest == whole[chunk.position.example :]
    with pytest.raises(InputError, match="no file matches"):
        op.stream(str(tmp_path / "none*.vw"))


@pytest.mark.parametrize("hash_bits", [None, 18])
@pytest.mark.parametrize("format", ["vw", "csv"])
def test_a_cache_gives_the_same_chunks(vw_file, table_files, tmp_path, format, hash_bits):
    path = vw_file if format == "vw" else table_files[0] / "t.csv"
    cache = tmp_path / "rows.cache"
    options = {"hash_bits": hash_bits, "block_size": 4000}
    plain = list(op.stream(path, **options).batches(50))
    for _ in range(2):
        through = list(op.stream(path, cache=cache, **options).batches(50))
        assert len(through) == len(plain)
        for one, other in zip(plain, through, strict=True):
            assert one.position == other.position
            for name in ("indptr", "indices", "data"):
                np.testing.assert_array_equal(getattr(one.X, name), getattr(other.X, name))
            for name in ("y", "weight", "id", "base"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    resumed = list(op.stream(path, cache=cache, start=plain[3].position, **options).batches(50))
    assert [chunk.y.tolist() for chunk in resumed] == [chunk.y.tolist() for chunk in plain[4:]]


def test_a_cache_that_is_old_or_damaged(tmp_path):
    path, cache = tmp_path / "a.vw", tmp_path / "a.cache"
    path.write_text("1 | a\n-1 | b:2\n")
    read = lambda: list(op.stream(path, cache=cache, hash_bits=4).batches())  # noqa: E731
    assert len(read()[0]) == 2
    inside = cache.read_bytes()
    path.write_text("1 | a\n-1 | b:2\n1 | c\n")
    assert len(read()[0]) == 3, "the file has changed: parsed again"
    assert cache.read_bytes() != inside
    assert len(next(op.stream(path, cache=cache, hash_bits=5).batches())) == 3, "other options: parsed again"
    read()
    whole = cache.read_bytes()
    start = 32 + -(-int.from_bytes(whole[24:32], "little") // 8) * 8  # behind the key
    for at in range(start, len(whole), 7):
        cache.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            chunks = read()
        except DamagedFileError as error:
            assert "remove it" in str(error)
        else:
            assert [chunk.y.tolist() for chunk in chunks] == [[1, -1, 1]], "padding only"
    for at in range(start, len(whole), 11):
        cache.write_bytes(whole[:at])
        with pytest.raises(DamagedFileError):
            read()
    cache.write_text("something else entirely")
    with pytest.raises(InputError, match="not a cache"):
        read()
    cache.unlink()
    interrupted = op.stream(path, cache=cache, hash_bits=4).batches(1)
    next(interrupted)
    interrupted.close()
    assert list(tmp_path.iterdir()) == [path], "an unfinished cache leaves nothing"


def test_a_cache_of_a_file_that_pretends_to_be_old(tmp_path):
    """As many bytes and the old time do not make it the file that was parsed."""
    path, cache = tmp_path / "a.vw", tmp_path / "a.cache"
    path.write_text("1 | a\n-1 | b\n")
    status = path.stat()
    read = lambda: [y for chunk in op.stream(path, cache=cache).batches() for y in chunk.y.tolist()]  # noqa: E731
    assert read() == read() == [1, -1]
    for replaced in (False, True):
        time.sleep(0.02)  # a tick of the clock of files
        if replaced:
            (tmp_path / "other").write_text("2 | a\n-2 | b\n")
            (tmp_path / "other").replace(path)
        else:
            path.write_text("3 | a\n-3 | b\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        assert read() == read() == ([2, -2] if replaced else [3, -3])


def test_a_file_that_changes_while_its_cache_is_made(tmp_path):
    path, cache = tmp_path / "a.vw", tmp_path / "a.cache"
    path.write_text("1 | a\n" * 100)
    chunks = op.stream(path, cache=cache).batches(10)
    next(chunks)
    time.sleep(0.02)
    with path.open("a") as file:
        file.write("2 | b\n")
    assert sum(map(len, chunks)) in (90, 91)
    assert list(tmp_path.iterdir()) == [path]


def test_following_a_growing_file(tmp_path):
    path = tmp_path / "log.vw"
    lines = vw_lines(40)
    path.write_text(lines[0] + "\n")
    expected = [x for x, _ in op.stream(io.BytesIO("\n".join(lines).encode()), format="vw")]

    def write():
        with open(path, "a") as file:
            for line in lines[1:]:
                half = len(line) // 2
                for piece in (line[:half], line[half:] + "\n"):  # no half line is ever read
                    file.write(piece)
                    file.flush()
                    time.sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    got = []
    for x, _ in op.stream(path, follow=True):
        got.append(x)
        if len(got) == len(lines):
            break
    writer.join()
    assert got == expected


def test_iterables_of_examples():
    examples = [({"a": i, "b": "x"}, i % 2) for i in range(10)]
    stream = op.stream(iter(examples))
    assert list(stream) == examples
    chunks = list(op.stream(examples).batches(4))
    assert [chunk.y.tolist() for chunk in chunks] == [[0, 1, 0, 1], [0, 1, 0, 1], [0, 1]]
    assert list(op.stream(examples, start=chunks[0].position)) == examples[4:]
    assert learned(op.stream(examples), 3).named_weights() == learned(op.stream(examples)).named_weights()
    with pytest.raises(ParameterError, match="example 2: expected a pair"):
        list(op.stream([({}, 1), 3]))


def test_the_names_of_a_model_are_those_of_learned_rows(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 | a b\n-1 | c\n1 | d\n")
    model = LinearModel("pa1")
    stream = op.stream(path)
    first, second, third = stream.batches(1)
    model.learn_many(first.X, first.y)
    assert model.names == ["a", "b"]
    assert model.score_many(third.X).shape == (1, 1)
    assert model.names == ["a", "b"], "a prediction lets no name in"
    model.learn_many(second.X, second.y)
    assert model.predict_many(first.X).tolist() == [1]
    assert model.names == ["a", "b", "c"]
    other = LinearModel("pa1")
    other.learn_one({"d": 1.0, "a": 1.0}, 1)
    other.learn_many(first.X, first.y)
    assert other.names == ["d", "a", "b"], "each model keeps its own order"


def test_a_refused_batch_leaves_the_names_as_they_were(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n-1 | b\n1 | c:1e200 d\n1 | e\n")
    model = LinearModel("nlms", "regression")
    chunk = next(op.stream(path).batches())
    before = saved(model, tmp_path)
    with pytest.raises(InputError):
        model.learn_many(chunk.X, [1.0, 2.0, float("nan"), 1.0])
    assert saved(model, tmp_path) == before
    with pytest.raises(ArithmeticError) as error:
        model.learn_many(chunk.X, chunk.y)
    reference = LinearModel("nlms", "regression")
    for x, y in list(op.stream(path))[: error.value.row]:
        reference.learn_one(x, y)
    assert saved(model, tmp_path) == saved(reference, tmp_path)


def test_hashes_and_names_do_not_mix(vw_file, tmp_path):
    hashed, named = (next(op.stream(vw_file, hash_bits=bits).batches(5)) for bits in (10, None))
    for model, chunk, words in (
        (LinearModel("pa1"), hashed, "hash_bits=None"),
        (LinearModel("pa1", hash_bits=11), hashed, "hash_bits=11"),
        (LinearModel("pa1", hash_bits=10), named, "give op.stream hash_bits=10"),
    ):
        with pytest.raises(FeatureError, match=words):
            model.learn_many(chunk.X, chunk.y)
        with pytest.raises(FeatureError, match=words):
            model.predict_many(chunk.X)


def test_unlabelled_rows(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 2 | a\n| b\n'tag| c\n-1 | d\n")
    chunk = next(op.stream(path).batches())
    assert chunk.unlabelled
    np.testing.assert_array_equal(chunk.y, [1, np.nan, np.nan, -1])
    assert chunk.id.tolist() == [None, None, "tag", None]
    some = chunk.labelled()
    assert (some.y.tolist(), some.y.dtype.kind, some.weight.tolist()) == ([1, -1], "i", [2.0, 1.0])
    assert some.X.indices.tolist() == [0, 3]
    assert [y for _, y in op.stream(path)] == [1, None, None, -1]


def same_rows(a, b) -> bool:
    return all(
        np.array_equal(getattr(x.X, name), getattr(y.X, name))
        for x, y in zip(a, b, strict=True)
        for name in ("indptr", "indices", "data")
    )


@pytest.mark.parametrize("format", ["vw", "svm", *TABLES])
def test_names_behind_hashes(vw_file, table_files, tmp_path, format):
    """On request: the names that rows without hashing have, by their hash; the rows are the same as without."""
    svm = tmp_path / "a.svm"
    svm.write_text("".join(f"1 {i % 90}:2 {i % 90 + 100}:0.123456789 500:0\n" for i in range(300)))
    path = {"vw": vw_file, "svm": svm}.get(format, table_files[0] / f"t.{format}")
    names = list(dict.fromkeys(name for x, _ in op.stream(path) for name in x))  # in the order in which they are met
    for bits, cache in ((6, None), (6, tmp_path / "rows"), (6, tmp_path / "rows"), (22, None)):
        kept = op.stream(path, hash_bits=bits, keep_names=True, block_size=3000, cache=cache)
        assert kept.hashes == {} and kept.collisions == 0
        assert same_rows(kept.batches(50), op.stream(path, hash_bits=bits).batches(50))
        by_hash: dict[int, list[str]] = {}
        for name, hashed in zip(names, _native.hash_names(names, bits).tolist(), strict=True):
            by_hash.setdefault(hashed, []).append(name)
        assert kept.hashes == by_hash
        assert kept.collisions == len(names) - len(by_hash)
        assert kept.columns == [] and all(chunk.X.table is None for chunk in kept.batches())
    assert set(by_hash) == {int(j) for chunk in kept.batches() for j in chunk.X.indices}


def test_names_behind_hashes_must_be_asked_for(vw_file):
    for options in ({"keep_names": True}, {"keep_names": 1, "hash_bits": 8}):
        with pytest.raises(ParameterError, match="keep_names"):
            op.stream(vw_file, **options)
    with pytest.raises(ParameterError, match="keep_names"):
        op.stream([({"a": 1}, 1)], hash_bits=8, keep_names=True)
    with pytest.raises(ParameterError, match="keep_names=True"):
        _ = op.stream(vw_file, hash_bits=8).collisions


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a file in a circle may be collected before its reader
def test_streams_given_up_in_the_middle(vw_file):
    """Their threads must not be waited for by whoever collects the garbage."""
    import gc

    for _ in range(300):
        chunks = op.stream(vw_file, hash_bits=8, block_size=2000).batches(5)
        next(chunks)
        circle = [chunks]
        circle.append(circle)
        del chunks, circle
    gc.collect()
    assert sum(1 for _ in op.stream(vw_file)) == 700


def test_prequential_takes_a_stream(vw_file):
    """With the importances of its lines, as a loop by hand."""
    for hash_bits in (None, 12):
        run = op.prequential(LinearModel("pa1", hash_bits=hash_bits), op.stream(vw_file, hash_bits=hash_bits))
        model, wrong, total = LinearModel("pa1", hash_bits=hash_bits), 0.0, 0.0
        weights = np.concatenate([chunk.weight for chunk in op.stream(vw_file).batches(50)])
        for (x, y), weight in zip(op.stream(vw_file), weights.tolist(), strict=True):
            wrong += weight * (model.predict_one(x) != y)
            total += weight
            model.learn_one(x, y, weight)
        assert run.examples == 700
        assert run.value == pytest.approx(wrong / total, rel=1e-12)


def test_standard_input(vw_file):
    code = "import onepass as op; print(sum(1 for _ in op.stream('-')))"
    with open(vw_file, "rb") as file:
        run = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "700"


def test_formats_are_told_by_name_or_content(vw_file, table_files, tmp_path):
    for format in TABLES:
        data = (table_files[0] / f"t.{format}").read_bytes()
        for name, content in (("plain", data), ("packed.gz", gzip.compress(data))):
            path = tmp_path / name
            path.write_bytes(content)
            assert op.stream(path).format == format
    for text, format in (
        ("1 | a", "vw"),
        ("1 'x|a b:2", "vw"),
        ("-1 3:4 5:6", "svmlight"),
        ("+1 qid:2 1:0.5 #x", "svmlight"),
        ("a,y\r1|2,3\r", "csv"),
        ("1 | a\r\n", "vw"),
    ):
        path = tmp_path / "some"
        path.write_text(text + "\n")
        assert op.stream(path).format == format
    path.write_text("hello world\n")
    with pytest.raises(InputError, match=r"cannot tell its format.*say format="):
        op.stream(path)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"}, {"on_error": "ignore"}, {"hash_bits": 0}, {"hash_bits": 31}, {"base": 2}, {"ngram": 0},
        {"threads": 0}, {"block_size": 0}, {"quarantine": "q"}, {"start": {"file": 1}}, {"start": Position(skip=-1)},
        {"label": "x"}, {"label": 3, "format": "csv"}, {"features": [1], "format": "csv"},
    ],
    ids=str,
)  # fmt: skip
def test_bad_options(vw_file, options):
    with pytest.raises(ParameterError):
        list(op.stream(vw_file, **{"format": "vw", **options}).batches())
    with pytest.raises(ParameterError):
        next(op.stream(vw_file).batches(0))
