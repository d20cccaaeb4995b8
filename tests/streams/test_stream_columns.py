"""Which features the columns, texts and numbers of a stream become, and back."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op
from onepass import _native
from onepass.errors import InputError
from onepass.models.linear import LinearModel


def test_text_columns_become_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('label,body,n\nspam,"Buy now, BUY!",1\nham,,2\n')
    read = list(op.stream(path, text="body", ngram=2))
    first = {"n": 1, "body=buy": 2, "body=now": 1, "body=buy now": 1, "body=now buy": 1}
    assert read == [(first, "spam"), ({"n": 2}, "ham")]
    (tmp_path / "a.jsonl").write_text('{"label": "spam", "body": "Buy now, BUY!", "n": 1}\n')
    assert next(iter(op.stream(tmp_path / "a.jsonl", text="body", ngram=2))) == (first, "spam")


def test_names_inside_objects_have_all_names_outside():
    text = b'{"label": 1, "user": {"age": 3, "home": {"city": "Rome", "zip": {"code": 7}}}, "n": 2}\n'
    [(x, y)] = op.stream(io.BytesIO(text), format="jsonl")
    assert x == {"user.age": 3, "user.home.city=Rome": 1, "user.home.zip.code": 7, "n": 2} and y == 1


def test_numbers_that_are_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,zip,n\n1,08001,1\n0,90210,2\n")
    assert list(op.stream(path, categorical="zip")) == [({"zip=08001": 1, "n": 1}, 1), ({"zip=90210": 1, "n": 2}, 0)]
    (tmp_path / "a.jsonl").write_text('{"label": 1, "zip": 8001}\n')
    assert list(op.stream(tmp_path / "a.jsonl", categorical=["zip"])) == [({"zip=8001": 1}, 1)]


def test_columns_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,when,who,a,b\n1,2.5,me,3,4\n0,3.5,you,5,6\n")
    chunk = next(op.stream(path, id="who", time="when", drop=["b"]).batches())
    assert (chunk.id.tolist(), chunk.time.tolist()) == (["me", "you"], [2.5, 3.5])
    assert list(op.stream(path, label="b", features=["a"])) == [({"a": 3}, 4), ({"a": 5}, 6)]
    assert [y for _, y in op.stream(path, label=False)] == [None, None]
    with pytest.raises(InputError, match="no column 'z'"):
        list(op.stream(path, label="z"))
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="which column is the label"):
        list(op.stream(path))
    path.write_text("1,2\n3,4\n")
    assert list(op.stream(path, header=["label", "x"])) == [({"x": 2}, 1), ({"x": 4}, 3)]
    assert list(op.stream(path, header=False, label="1")) == [({"0": 1}, 2), ({"0": 3}, 4)]


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".6f", ".3g", ".17e", "+.8f"]))
def test_numbers_are_read_as_python_reads_them(value, form):
    text = repr(value) if form == "r" else format(value, form)
    stream = op.stream(io.BytesIO(f"1 | a:{text}\n".encode()), format="vw")
    expected = float(text)
    x = next(iter(stream))[0] if np.isfinite(expected) else None
    if x is not None:
        assert x.get("a", 0.0) == expected


def test_a_scale_multiplies_all_numbers_of_its_namespace():
    text = b"1 |n:2 a:1.5 b :3 c:-1e-3 d:x |m a:1.5 |n:0.5 a:123456789\n"
    [(x, _)] = op.stream(io.BytesIO(text), format="vw")
    expected = {"n^a": 3.0 + 61728394.5, "n^b": 2.0, "n^0": 6.0, "n^c": -2e-3, "n^d=x": 1.0, "m^a": 1.5}
    assert x == expected


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.", min_size=1, max_size=12), st.sampled_from(["", "-", "+"]))
def test_texts_that_look_like_numbers(digits, sign):
    text = sign + digits
    stream = op.stream(io.BytesIO(f"1 2:{text}\n".encode()), format="svmlight")
    try:
        expected = float(text)
    except ValueError:
        with pytest.raises(InputError, match="must be a number"):
            list(stream)
        return
    assert next(iter(stream))[0].get("2", 0.0) == expected


names = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\r\n:|\0", min_codepoint=33), min_size=1, max_size=20
)
numbers = st.floats(-1e6, 1e6).filter(bool)


def hash_of_name(name):
    """Murmur3, but a name of digits is its number, counted from the hash of its namespace."""
    space, caret, rest = name.rpartition("^")
    if re.fullmatch("[0-9]+", rest):
        return (_native.murmur3(space + caret) + int(rest)) % 2**32
    return _native.murmur3(name)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(names, numbers, max_size=8), min_size=1, max_size=5), names | st.just(""))
def test_mappings_survive_vw_text(rows, space):
    """Written as VW text and read again, by name and by hash."""
    lines = [f"1 |{space} " + " ".join(f"{name}:{value!r}" for name, value in row.items()) for row in rows]
    data = "\n".join(lines).encode()
    prefix = f"{space}^" if space else ""
    expected = [{prefix + name: value for name, value in row.items()} for row in rows]
    read = [x for x, _ in op.stream(io.BytesIO(data), format="vw")]
    assert read == expected
    chunk = next(op.stream(io.BytesIO(data), format="vw", hash_bits=30).batches())
    hashes = [hash_of_name(name) & (2**30 - 1) for row in expected for name in row]
    if len(set(hashes)) == len(hashes):
        assert chunk.X.indices.tolist() == hashes


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.integers(0, 2**31 - 2), numbers, max_size=8), min_size=1, max_size=5))
def test_rows_survive_svmlight_text(rows):
    data = "\n".join("-1 " + " ".join(f"{index}:{value!r}" for index, value in row.items()) for row in rows).encode()
    read = [x for x, _ in op.stream(io.BytesIO(data), format="svmlight")]
    assert read == [{str(index): value for index, value in row.items()} for row in rows]


def test_columns_that_are_numbers_may_grow(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 5:2 3:1\n1 2:1 # later, fewer\n")
    expected = LinearModel("pa1")
    expected.learn_many(np.array([[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 2], [0, 0, 1, 0, 0, 0.0]]), [1, -1, 1])
    for size in (1, 2, None):
        model = LinearModel("pa1")
        for chunk in op.stream(path).batches(size):
            assert len(model.predict_many(chunk.X)) == len(chunk)
            model.learn_many(chunk.X, chunk.y)
        np.testing.assert_array_equal(model.weights()[0], expected.weights()[0])
    model.save(tmp_path / "m.onepass")
    assert LinearModel.load(tmp_path / "m.onepass").n_features == 6
