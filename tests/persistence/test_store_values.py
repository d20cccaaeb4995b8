"""Labels and feature names inside model files: what comes back is the same in value and in type."""

from __future__ import annotations

import enum
import fractions
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onepass.errors import DamagedFileError, ParameterError
from onepass.persistence import store


def same(a: Any, b: Any) -> bool:
    """Equal in value and in type, all the way down; tells -0.0 from 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)


# Labels

labels = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.characters(categories=["Cs"]), max_size=3)
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


@given(st.lists(labels, max_size=8))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_labels_round_trip(values: list[Any]) -> None:
    encoded = store.encode_values(values)
    assert same(store.decode_values(encoded), values)
    config = store.from_bytes(store.to_bytes("k", {"classes": encoded}, {}), "here")[1]
    assert same(store.decode_values(config["classes"]), values)


def test_labels_of_like_value_stay_apart() -> None:
    values = [
        True,
        1,
        1.0,
        "1",
        b"1",
        (1,),
        ("1",),
        (),
        None,
        "",
        b"",
        0,
        -0.0,
        0.0,
        False,
        "None",
        "{}",
        10**5000,
    ]
    values += ["\ud83d\ude00", "\U0001f600", "\ud800", "a\0", 2**64, 2**63, -(2**64), 5e-324, ((((1.0,),),),)]
    back = store.from_bytes(store.to_bytes("k", {"v": store.encode_values(values)}, {}), "here")[1]["v"]
    assert same(store.decode_values(back), values)


def test_numpy_labels_become_python() -> None:
    scalars = [
        np.int8(-3),
        np.uint64(2**64 - 1),
        np.float32(0.1),
        np.bool_(True),
        np.str_("a\0"),
        np.bytes_(b"b\0"),
    ]
    back = store.decode_values(store.encode_values(scalars))
    assert same(back, [-3, 2**64 - 1, float(np.float32(0.1)), True, "a\0", b"b\0"])
    for array in (np.array([1, 2]), np.array(["a", "b"]), np.array([1, "a", None], dtype=object)):
        assert same(store.decode_values(store.encode_values(array)), array.tolist())  # type: ignore[arg-type]
    assert same(store.decode_values(store.encode_values([(np.int64(1), "x")])), [(1, "x")])


Point = namedtuple("Point", "x y")


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    pass


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (frozenset({1}), "frozenset"),
        (1j, "complex"),
        (fractions.Fraction(1, 2), "Fraction"),
        (Point(1, 2), "Point"),
        (Colour.RED, "Colour"),
        (Text("x"), "Text"),
        (object(), "object"),
        ((1, [2]), "list"),
        (np.datetime64("2020-01-01", "ns"), "datetime64"),
        (np.timedelta64(1, "ns"), "timedelta64"),
        (np.longdouble(1) / 3, "longdouble|float128"),
        (np.zeros((), "i4,i4")[()], "void"),
        (float("nan"), "nan"),
        (np.float32("inf"), "inf"),
        ((float("-inf"),), "inf"),
    ],
)
def test_labels_that_cannot_be_kept(value: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        store.encode_values([value])


def test_label_whose_repr_fails() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(ParameterError, match="Shy"):
        store.encode_values([Shy()])


def test_labels_nested_without_measure() -> None:
    value: Any = 1
    for _ in range(32):
        value = (value,)
    assert store.decode_values(store.encode_values([value])) == [value]
    assert store.from_bytes(store.to_bytes("k", {"v": store.encode_values([value])}, {}), "here")
    with pytest.raises(ParameterError, match="deep"):
        store.encode_values([(value,)])


@pytest.mark.parametrize(
    "encoded",
    [
        {},
        "abc",
        None,
        [[1]],
        [{}],
        [{"int": 3}],
        [{"int": "x"}],
        [{"bytes": "0"}],
        [{"str": "ff"}],
        [{"tuple": 1}],
        [{"tuple": [[]]}],
        [{"pickle": "00"}],
        [{"int": "1", "bytes": ""}],
    ],
)
def test_labels_that_are_not(encoded: Any) -> None:
    with pytest.raises(DamagedFileError, match="expected"):
        store.decode_values(encoded)


def test_hostile_nesting_of_labels() -> None:
    item: Any = 1
    for _ in range(100_000):
        item = {"tuple": [item]}
    try:
        with pytest.raises(DamagedFileError):
            store.decode_values([item])
    finally:
        while isinstance(item, dict):  # taken apart by hand: freeing it whole is deep as well
            item = item.pop("tuple")[0]


# Feature names

any_text = st.text() | st.text(st.characters(categories=["Cs", "Lu"]), max_size=5)


@given(st.lists(any_text | st.integers() | st.integers(-(2**100), 2**100)))
@settings(max_examples=200, deadline=None)
def test_names_round_trip(names: list[str | int]) -> None:
    arrays = store.encode_names(names)
    assert same(store.decode_names(arrays), names)
    back = store.from_bytes(store.to_bytes("k", {}, arrays), "here")[2]
    assert same(store.decode_names(back), names)


def test_names_at_the_edges() -> None:
    names: list[str | int] = [
        "",
        "",
        "\0",
        "a\0b\0",
        "1",
        1,
        -1,
        0,
        "0x1",
        "\ud83d\ude00",
        "\U0001f600",
        16**5000,
    ]
    assert same(store.decode_names(store.encode_names(names)), names)
    assert store.decode_names(store.encode_names([])) == []
    assert store.decode_names(store.encode_names([""])) == [""]
    numpy_names = [np.int64(3), np.str_("x\0")]
    assert same(store.decode_names(store.encode_names(numpy_names)), [3, "x\0"])  # type: ignore[arg-type]
    assert store.decode_names(store.encode_names(np.array(["a", "b"]))) == ["a", "b"]  # type: ignore[arg-type]


def test_many_names() -> None:
    names = [f"word{i}" for i in range(200_000)]
    arrays = store.encode_names(names)
    assert sum(array.nbytes for array in arrays.values()) < 25 * len(names)
    assert store.decode_names(arrays) == names


@pytest.mark.parametrize("name", [None, 1.0, True, b"x", ("a",), np.float64(1), np.bool_(True)])
def test_names_that_are_neither(name: Any) -> None:
    with pytest.raises(ParameterError, match=type(name).__name__):
        store.encode_names([name])


@pytest.mark.parametrize(
    "change",
    [
        {"utf8": None},
        {"offsets": None},
        {"is_int": None},
        {"utf8": np.zeros(3, np.int8)},
        {"utf8": np.full(3, 255, np.uint8)},
        {"utf8": np.zeros((3, 1), np.uint8)},
        {"offsets": np.array([0, 1, 3], np.int32)},
        {"offsets": np.array([0, 1, 4])},
        {"offsets": np.array([1, 1, 3])},
        {"offsets": np.array([0, 5, 3])},
        {"offsets": np.array([0, -1, 3])},
        {"offsets": np.array([], np.int64)},
        {"offsets": np.array([0, 3])},
        {"is_int": np.array([True, False, False])},
        {"is_int": np.array([True, False])},
        {"is_int": np.array([1, 0])},
    ],
)
def test_names_that_are_not(change: dict[str, Any]) -> None:
    arrays = store.encode_names(["x", "yz"]) | change
    with pytest.raises(DamagedFileError, match="encode_names"):
        store.decode_names({key: value for key, value in arrays.items() if value is not None})
