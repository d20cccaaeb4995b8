"""VW text read many features at a time gives the rows that it gives feature by feature."""

from __future__ import annotations

import io
import time

from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op


def test_many_namespaces_read_one_by_one_take_time_in_proportion():
    """Their stops are found once a line; found for each namespace, 32 times as many took 1,000 times as long."""

    def seconds(count):
        data = ("1 " + " ".join(f"|n{i} x:1e1" for i in range(count)) + "\n").encode()
        began = time.process_time()
        [chunk] = op.stream(io.BytesIO(data), format="vw", hash_bits=30, max_line=1 << 24).batches()
        assert chunk.X.data.sum() == 10.0 * count  # some may share a place
        return time.process_time() - began

    assert seconds(64_000) < 200 * min(seconds(2_000) for _ in range(3))


words = st.text("ab7é.-^", min_size=1, max_size=14)
values = st.sampled_from(
    ["", ":1", ":-2.5", ":.25", ":-.5", ":3.", ":0", ":-0.0", ":12345678", ":0.123456", ":1e1", ":x"]
)
spaces = st.text("abcdefg", max_size=6)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(spaces, st.lists(words, min_size=1, max_size=20), values), min_size=1, max_size=4))
def test_features_read_many_at_a_time_are_those_read_one_by_one(namespaces):
    """Where names are kept they are read one by one; else a namespace of one shape is read at once."""
    text = "1 " + " ".join(
        f"|{space} " + " ".join(name + value for name in names) for space, names, value in namespaces
    )
    many, single = (
        next(op.stream(io.BytesIO(text.encode()), format="vw", hash_bits=30, keep_names=keep).batches())
        for keep in (False, True)
    )
    assert many.X.indices.tolist() == single.X.indices.tolist()
    assert many.X.data.tobytes() == single.X.data.tobytes()
