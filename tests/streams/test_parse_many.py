"""VW text read many features at a time gives the rows that it gives feature by feature."""

from __future__ import annotations

import io
import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op
from onepass import _native
from onepass.errors import InputError


def test_many_namespaces_read_one_by_one_take_time_in_proportion():
    """Their stops are found once a line; found for each namespace, 32 times as many took 1,000 times as long."""

    def seconds(count):
        data = ("1 " + " ".join(f"|n{i} x:1e1" for i in range(count)) + "\n").encode()
        began = time.process_time()
        [chunk] = op.stream(io.BytesIO(data), format="vw", hash_bits=30, max_line=1 << 24).batches()
        assert chunk.X.data.sum() == 10.0 * count  # some may share a place
        return time.process_time() - began

    few = min(seconds(2_000) for _ in range(3))  # the first of which also imports what is needed
    assert seconds(64_000) < 200 * few


words = st.text("ab7é.-^", min_size=1, max_size=14) | st.text("ab7", min_size=1, max_size=70)
values = st.sampled_from(
    ":1 :-2.5 :.25 :-.5 :3. :0 :-0.0 :12345678 :0.123456 :1e1 :x :- :. :-. :1.2.3 :--1 :1-2 :-1234567 :123456789 "
    ":99999.99 :/1 :1: :0.00000 ".split(" ")
)
spaces = st.text("abcdefg", max_size=6)


def read(text, **options):
    """The first row, or what is wrong with it."""
    try:
        row = next(op.stream(io.BytesIO(text.encode()), format="vw", hash_bits=30, **options).batches()).X
    except InputError as error:
        return str(error)
    return row.indices.tolist(), row.data.tobytes()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(spaces, st.lists(words, min_size=1, max_size=80), values), min_size=1, max_size=4))
def test_features_read_many_at_a_time_are_those_read_one_by_one(namespaces):
    """Where names are kept they are read one by one; else a namespace of one shape is read at once, in registers as
    wide as the processor has them, or in none."""
    text = "1 " + " ".join(
        f"|{space} " + " ".join(name + value for name in names) for space, names, value in namespaces
    )
    single, best = read(text, keep_names=True), _native.isa()
    try:
        for isa in _native.isas():
            _native.use_isa(isa)
            assert read(text) == single, isa
    finally:
        _native.use_isa(best)


def test_numbers_and_values_of_every_length_are_what_python_reads():
    """Names of digits and short decimals, at every place of a register and with every count of features."""
    rng = random.Random(3)
    best = _native.isa()
    for count in [*range(1, 40), 64, 65, 255, 256, 257, 300]:
        names = rng.sample(range(10 ** rng.randint(3, 8)), count)
        digits = [str(rng.randrange(1, 10 ** rng.randint(1, 6))).zfill(rng.randint(1, 6)) for _ in names]
        points = [rng.randint(0, len(d)) for d in digits]
        values = [
            rng.choice(("", "-")) + d[:p] + "." * rng.randint(p < len(d), 1) + d[p:]
            for d, p in zip(digits, points, strict=True)
        ]
        text = "1 | " + " ".join(f"{name}:{value}" for name, value in zip(names, values, strict=True)) + "\n"
        try:
            for isa in _native.isas():
                _native.use_isa(isa)
                row = next(op.stream(io.BytesIO(text.encode()), format="vw", hash_bits=30).batches()).X
                assert row.indices.tolist() == names
                assert row.data.tolist() == [float(value) for value in values]
        finally:
            _native.use_isa(best)


def test_a_feature_that_stands_twice_is_added_up_wherever_it_stands():
    for count in (2, 3, 17, 59, 255, 256, 257, 600):
        for first, second in {(0, count - 1), (0, 1), (count - 2, count - 1), ((count - 1) // 2, count - 1)}:
            names = [f"name{i}" for i in range(count)]
            names[second] = names[first]
            [batch] = op.stream(io.BytesIO(f"1 | {' '.join(names)}\n".encode()), format="vw", hash_bits=30).batches()
            assert batch.X.data.tolist() == [2.0 if i == first else 1.0 for i in range(count - 1)], (count, first)
