"""Model files: what is saved comes back exactly, and nothing damaged or foreign ever loads."""

from __future__ import annotations

import enum
import errno
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onepass import store
from onepass.errors import (
    DamagedFileError,
    ForeignFileError,
    ModelFileError,
    NewerFileError,
    ParameterError,
)

ZEROS = "0" * 64
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


def small() -> bytes:
    return store.to_bytes("linear", {"rule": "pa1", "C": 0.1}, {"w": np.arange(3.0), "b": np.array([True, False])})


def seal(data: bytes) -> bytes:
    """The file with the checksum put right: what a forger would write."""
    start = data.index(b'"sha256":"') + 10
    blank = data[:start] + ZEROS.encode() + data[start + 64 :]
    return blank[:start] + hashlib.sha256(blank).hexdigest().encode() + blank[start + 64 :]


def forge(header: Any, body: bytes = b"", **metadata: Any) -> bytes:
    """A sealed file of ours with any header one likes; metadata set to None is left out."""
    fields = {"format": "onepass", "version": "1", "kind": "k", "config": "{}", "sha256": ZEROS} | metadata
    meta = {key: value for key, value in fields.items() if value is not None}
    text = json.dumps({"__metadata__": meta} | header, separators=(",", ":")).encode()
    return seal(len(text).to_bytes(8, "little") + text + body)


# Round trips


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "m.onepass"
    config = {"rule": {"name": "pa1", "C": 0.1}, "classes": ["ham", "spam ☃"], "n": None, "on": True}
    arrays = {
        "w": np.arange(6.0).reshape(2, 3),
        "empty": np.zeros((0, 5), np.float32),
        "zero-d": np.array(7, np.int16),
        "flags": np.array([True, False, True]),
        "big": np.arange(4, dtype=">f8"),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "strided": np.arange(10)[::-3],
        "nan": np.array([np.nan, np.inf, -0.0]),
        "": np.zeros(1, np.uint8),
    }
    store.write(path, "linear", config, arrays)
    kind, config_back, back = store.read(path)
    assert (kind, config_back) == ("linear", config)
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].shape == array.shape
        assert back[name].dtype == array.dtype.newbyteorder("=")
        assert back[name].flags.writeable and back[name].flags.c_contiguous
        np.testing.assert_array_equal(back[name], array)
    back["w"] += 1  # a copy of its own
    assert store.read(str(path))[2]["w"][0, 0] == 0


def test_any_safetensors_reader_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "m.onepass"
    store.write(path, "linear", {"C": 0.1}, {"w": np.arange(3.0), "b": np.array([True])})
    loaded = safetensors.numpy.load_file(path)
    np.testing.assert_array_equal(loaded["w"], np.arange(3.0))
    with safetensors.safe_open(path, framework="np") as file:
        metadata = file.metadata()
    assert metadata["format"] == "onepass"
    assert metadata["version"] == str(store.FORMAT_VERSION)
    assert metadata["kind"] == "linear"
    assert json.loads(metadata["config"]) == {"C": 0.1}


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=5).filter(lambda name: name != "__metadata__"),
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: hnp.arrays(
                st.sampled_from([np.dtype(dtype), np.dtype(dtype).newbyteorder(">")]),
                hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
            )
        ),
        max_size=4,
    )
)
@settings(max_examples=100, deadline=None)
def test_round_trip_of_any_arrays(arrays: dict[str, np.ndarray]) -> None:
    data = store.to_bytes("k", {}, arrays)
    assert safetensors.numpy.load(data).keys() == arrays.keys()
    _, _, back = store.from_bytes(data, "memory")
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype.newbyteorder("=")
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**1000), 2**1000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), json_values, max_size=4))
@settings(max_examples=150, deadline=None)
def test_round_trip_of_any_config(config: dict[str, Any]) -> None:
    back = store.from_bytes(store.to_bytes("k", config, {}), "memory")[1]
    assert json.dumps(back, sort_keys=True) == json.dumps(config, sort_keys=True)


def test_numpy_scalars_and_tuples_in_the_config() -> None:
    config = {"C": np.float32(0.5), "n": np.int64(3), "on": np.bool_(True), "s": np.str_("x\0"), "t": (1, 2)}
    back = store.from_bytes(store.to_bytes("k", config, {}), "memory")[1]
    assert back == {"C": 0.5, "n": 3, "on": True, "s": "x\0", "t": [1, 2]}
    assert back["on"] is True


def test_same_input_gives_the_same_bytes() -> None:
    w, b = np.arange(3.0), np.array([True])
    one = store.to_bytes("k", {"a": 1, "b": 2}, {"w": w, "b": b})
    two = store.to_bytes("k", {"b": 2, "a": 1}, {"b": b, "w": w})
    assert one == two
    # Hash randomisation must not show either: a process of its own gives the same digest.
    code = (
        "import hashlib, numpy as np; from onepass import store; print(hashlib.sha256(store.to_bytes("
        "'k', {'b': 2, 'a': 1}, {'w': np.arange(3.0), 'b': np.array([True])})).hexdigest())"
    )
    for seed in "12":
        printed = run_python(code, PYTHONHASHSEED=seed).stdout
        assert printed.strip() == hashlib.sha256(one).hexdigest()


def test_written_file_is_to_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.onepass"
    store.write(path, "linear", {"rule": "pa1", "C": 0.1}, {"w": np.arange(3.0), "b": np.array([True, False])})
    assert path.read_bytes() == small()


def test_format_1_stays_readable() -> None:
    # The exact bytes of version 1. If this fails, files out there no longer load: raise FORMAT_VERSION.
    text = (
        b'{"__metadata__":{"format":"onepass","version":"1","kind":"k","config":"{\\"C\\":0.5}","sha256":"'
        b'd576cc083cfd37654dbe5b62106a3f74600752b871869264ac62a16d8b99daef"},'
        b'"w":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}'
    )
    text += b" " * (-len(text) % 8)
    data = len(text).to_bytes(8, "little") + text + b"\1\0\2\0"
    assert store.to_bytes("k", {"C": 0.5}, {"w": np.array([1, 2], np.int16)}) == data
    kind, config, arrays = store.from_bytes(data, "memory")
    assert (kind, config, arrays["w"].tolist()) == ("k", {"C": 0.5}, [1, 2])


def test_words_of_the_format_inside_values_do_no_harm() -> None:
    tricky = f'"sha256":"{ZEROS}"'
    kind, config, arrays = store.from_bytes(
        store.to_bytes(tricky, {tricky: [tricky, tricky[:-1] + "\\"]}, {tricky: np.zeros(1), "sha256": np.ones(1)}),
        "memory",
    )
    assert kind == tricky
    assert config == {tricky: [tricky, tricky[:-1] + "\\"]}
    assert arrays.keys() == {tricky, "sha256"}
    # In the data as well.
    text = np.frombuffer(tricky.encode(), np.uint8)
    np.testing.assert_array_equal(store.from_bytes(store.to_bytes("k", {}, {"t": text}), "memory")[2]["t"], text)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"C": float("nan")}, "config.C"),
        ({"rule": {"C": [1.0, float("inf")]}}, r"config\.rule\.C\[1\]"),
        ({"x": object()}, "config.x"),
        ({"x": np.zeros(2)}, "arrays"),
        ({"x": b"bytes"}, "bytes"),
        ({"x": np.datetime64("2020-01-01", "ns")}, "datetime64"),
        ({"x": {1: 2}}, "key 1"),
        ({"x": {"\ud800": 2}}, "Unicode"),
        ({"x": "\ud83d\ude00"}, "Unicode"),
        ({"x": 1 << 2000}, "1024 bits"),
        ({"x": enum.IntEnum("Colour", "RED").RED}, "Colour"),  # type: ignore[attr-defined]
    ],
)
def test_config_that_json_cannot_hold(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        store.to_bytes("k", config, {})


def test_config_without_end() -> None:
    config: dict[str, Any] = {}
    config["self"] = config
    with pytest.raises(ParameterError, match="deep"):
        store.to_bytes("k", config, {})


@pytest.mark.parametrize("kind", ["", "\ud800", 3])
def test_bad_kind(kind: Any) -> None:
    with pytest.raises(ParameterError, match="kind"):
        store.to_bytes(kind, {}, {})


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.array([object()])},
        {"x": np.array(["a"])},
        {"x": np.zeros(2, np.complex128)},
        {"x": np.zeros(2, np.longdouble)},
        {"x": np.zeros(2, "M8[s]")},
        {"x": np.zeros(2, "i4,f8")},
        {"x": [1.0, 2.0]},
        {"__metadata__": np.zeros(1)},
        {"\ud800": np.zeros(1)},
        {1: np.zeros(1)},
    ],
)
def test_arrays_that_cannot_be_stored(arrays: dict[Any, Any]) -> None:
    with pytest.raises(ParameterError, match="array"):
        store.to_bytes("k", {}, arrays)


def test_header_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_MAX_HEADER", 1000)
    with pytest.raises(ParameterError, match="into arrays"):
        store.to_bytes("k", {"x": "y" * 1000}, {})


# Damage


def test_every_bit_flip_is_refused() -> None:
    data = small()
    for index in range(len(data)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            bad = bytearray(data)
            bad[index] ^= mask
            with pytest.raises(ModelFileError, match=r"^here: "):
                store.from_bytes(bytes(bad), "here")


def test_every_byte_of_the_data_is_covered() -> None:
    # All 255 other values, where nothing but the checksum can notice.
    data = small()
    end = 8 + int.from_bytes(data[:8], "little")
    for index in range(end, len(data)):
        for mask in range(1, 256):
            bad = bytearray(data)
            bad[index] ^= mask
            with pytest.raises(DamagedFileError, match="sha256"):
                store.from_bytes(bytes(bad), "here")


def test_every_prefix_is_refused(tmp_path: Path) -> None:
    data = small()
    path = tmp_path / "cut.onepass"
    for length in range(len(data)):
        # A cut file that shows it was ours is damaged; of fewer than 9 bytes nobody can tell.
        expected = ForeignFileError if length < 9 else DamagedFileError
        with pytest.raises(expected):
            store.from_bytes(data[:length], "here")
        path.write_bytes(data[:length])
        with pytest.raises(expected, match=r"cut\.onepass"):
            store.read(path)


def test_appended_and_swapped_bytes_are_refused() -> None:
    data = small()
    for extra in (b"\0", b" ", b"x" * 8, data):
        with pytest.raises(DamagedFileError):
            store.from_bytes(data + extra, "here")
    end = 8 + int.from_bytes(data[:8], "little")
    with pytest.raises(DamagedFileError):
        store.from_bytes(data[:end] + data[end + 8 : end + 16] + data[end : end + 8] + data[end + 16 :], "here")


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_random_damage_is_refused(draw: st.DataObject) -> None:
    data = small()
    start = draw.draw(st.integers(0, len(data) - 1))
    stop = draw.draw(st.integers(start, len(data)))
    middle = draw.draw(st.binary(max_size=40))
    bad = data[:start] + middle + data[stop:]
    if bad != data:
        with pytest.raises(ModelFileError):
            store.from_bytes(bad, "here")


def test_messages_say_what_to_do() -> None:
    data = bytearray(small())
    data[-1] ^= 1
    with pytest.raises(DamagedFileError, match=r"model\.onepass: .*expected sha256 .*; restore a copy"):
        store.from_bytes(bytes(data), "model.onepass")


# Versions and strangers


def test_newer_version() -> None:
    words = r"here: written by a newer onepass \(format 2; this one reads up to 1\): upgrade onepass"
    with pytest.raises(NewerFileError, match=words):
        store.from_bytes(forge({}, version="2"), "here")
    # A later format may checksum in another way, or have other fields.
    for metadata in ({"sha256": None}, {"sha256": "blake"}, {"config": None}, {"kind": None}):
        header = {"format": "onepass", "version": "12"} | {k: v for k, v in metadata.items() if v is not None}
        with pytest.raises(NewerFileError, match="format 12"):
            store.from_bytes(safetensors.numpy.save({"w": np.zeros(1)}, header), "here")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", " 1", "01", "x", "٢", "9" * 5000, None, 1])
def test_version_that_is_none(version: Any) -> None:
    with pytest.raises(DamagedFileError):
        store.from_bytes(forge({}, version=version), "here")


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["BOMB"],)


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model", "x" * 100)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, w=np.zeros(3))
    return file.getvalue()


FOREIGN = {
    "empty": b"",
    "one byte": b"{",
    "text": b"1 |text hello world\n-1 |text good bye\n",
    "csv": b"a,b,c,d\n1,2,3,4\n",
    "json": b'{"a": 1, "b": [1, 2, 3]}',
    "json lines": b'{"a":1}\n{"a":2}\n',
    "zip": zipped(),
    "npz": npz(),
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\0" * 50,
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + b"x" * 50,
    "pickle": pickle.dumps({"w": [1.0, 2.0]}),
    "zeros": b"\0" * 1000,
    "ones": b"\xff" * 1000,
    "safetensors": safetensors.numpy.save({"w": np.zeros(3)}),
    "safetensors with metadata": safetensors.numpy.save({"w": np.zeros(3)}, {"format": "pt"}),
    "no tensors": safetensors.numpy.save({}),
    "an array as header": (2).to_bytes(8, "little") + b"[]",
    "metadata of another kind": (21).to_bytes(8, "little") + b'{"__metadata__":"foo"}'[:21],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "stranger"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(ForeignFileError, match="stranger: expected a onepass model file, found"):
        store.read(path)
    with pytest.raises(ForeignFileError):
        store.from_bytes(FOREIGN[name], "here")


def test_a_large_foreign_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    with open(path, "wb") as file:
        file.write(b"a,b,c,d,e,f\n")
        file.truncate(1 << 40)  # sparse: a terabyte that takes no room, and fits in no memory
    with pytest.raises(ForeignFileError):
        store.read(path)


def test_directory_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ForeignFileError, match="directory"):
        store.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        store.read(tmp_path / "none")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_bomb_does_not_go_off(protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crater = tmp_path / "crater"
    monkeypatch.setenv("BOMB", str(crater))
    bomb = pickle.dumps(Bomb(), protocol)
    path = tmp_path / "bomb"
    path.write_bytes(bomb)
    with pytest.raises(ForeignFileError):
        store.read(path)
    # Nor when it sits in an honest file, as data or as an array type of its own.
    store.from_bytes(store.to_bytes("k", {}, {"w": np.frombuffer(bomb, np.uint8)}), "here")
    with pytest.raises(ParameterError):
        store.to_bytes("k", {}, {"w": np.array([Bomb()])})
    assert not crater.exists()
    pickle.loads(bomb)  # it was live
    assert crater.exists()


# Forged files: the checksum is right, the content is hostile


def tensor(dtype: Any = "U8", shape: Any = (1,), offsets: Any = (0, 1)) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (tensor(offsets=[0, 2]), b"x"),
        (tensor(offsets=[0, 1 << 60], shape=[1 << 60]), b"x"),
        (tensor("F64", [1 << 61], [0, 0]), b""),
        (tensor("F64", [1 << 62, 1 << 62, 0], [0, 0]), b""),
        (tensor("F64", [0, 1 << 63], [0, 0]), b""),
        (tensor(shape=[1] * 100), b"x"),
        (tensor(offsets=[1, 0]), b"x"),
        (tensor(offsets=[-1, 0]), b"x"),
        (tensor(offsets=[(1 << 64) - 8, (1 << 64) - 1]), b"x"),
        (tensor(offsets=[1 << 64, (1 << 64) + 1]), b"x"),
        (tensor(shape=[-1]), b"x"),
        (tensor(shape="x"), b"x"),
        (tensor("BF16", [1], [0, 2]), b"xx"),
        (tensor("C64", [1], [0, 8]), b"x" * 8),
        (tensor("F4", [1], [0, 1]), b"x"),
        (tensor("O"), b"x"),
        ({"a": 1}, b""),
        ({"a": {}}, b""),
        ({"a": None}, b""),
        (tensor() | {"b": tensor()["a"]}, b"x"),
        (tensor(), b"xx"),
        ({}, b"x"),
    ],
)
def test_hostile_arrays(header: dict[str, Any], body: bytes) -> None:
    with pytest.raises(DamagedFileError, match="here"):
        store.from_bytes(forge(header, body), "here")


@pytest.mark.parametrize(
    "metadata",
    [
        {"kind": None},
        {"kind": ""},
        {"kind": 1},
        {"config": None},
        {"config": {}},
        {"config": ""},
        {"config": "[]"},
        {"config": "{"},
        {"config": '{"a":NaN}'},
        {"config": '{"a":-Infinity}'},
        {"config": '{"a":1e999}'},
        {"config": '{"a":1,"a":2}'},
        {"config": '{"a":{"b":1,"b":2}}'},
        {"config": "[" * 100_000},
        {"config": '{"a":' * 100_000},
        {"config": '{"a":' + "9" * 100_000 + "}"},
    ],
)
def test_hostile_metadata(metadata: dict[str, Any]) -> None:
    with pytest.raises(DamagedFileError, match="here"):
        store.from_bytes(forge({}, **metadata), "here")


def test_hostile_headers() -> None:
    def raw(text: bytes, length: int | None = None) -> bytes:
        return (len(text) if length is None else length).to_bytes(8, "little") + text

    first = b'{"__metadata__":{"format":"onepass","version":"1"'
    for data in (
        raw(first, 1 << 63),
        raw(first, (1 << 64) - 1),
        raw(first, 99_999_999),
        raw(first + b',"version":"1"}}'),
        raw(first + b'},"__metadata__":{"format":"onepass"}}'),
        raw(first + b',"sha256":"' + b"0" * 64 + b'","x":{"sha256":"' + b"0" * 64 + b'"}}}'),
        raw(first + b',"x":' + b"[" * 200_000),
        raw(first + b',"x":\xff}}'),
        raw(first + b',"x":' + b"9" * 10_000 + b"}}"),
        raw(first + b"}}"),
    ):
        with pytest.raises(DamagedFileError, match="here"):
            store.from_bytes(data, "here")


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["F64", "U8", "BOOL", "I16", "F8_E4M3", "F4", "BF16", "C64", "x"]),
                "shape": st.lists(st.integers(0, 4) | st.integers(0, 2**64), max_size=4),
                "data_offsets": st.lists(st.integers(0, 40) | st.integers(0, 2**64), min_size=2, max_size=2),
            }
        ),
        max_size=3,
    ),
    st.binary(max_size=40),
)
@settings(max_examples=300, deadline=None)
def test_forged_headers_load_or_are_refused(header: dict[str, Any], body: bytes) -> None:
    try:
        arrays = store.from_bytes(forge(header, body), "here")[2]
    except DamagedFileError:
        return
    assert sum(array.nbytes for array in arrays.values()) == len(body)


# Atomic replacement


def listing(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "m.onepass"
    store.write(path, "old", {}, {"w": np.zeros(4)})
    return path


@pytest.mark.parametrize("name", ["replace", "fsync", "open"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "disk on fire"), KeyboardInterrupt(), OSError("bare")])
def test_failure_leaves_the_old_file(
    name: str, error: BaseException, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = old.read_bytes()

    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(type(error)) as caught:
            store.write(old, "new", {}, {"w": np.ones(4)})
    if isinstance(error, OSError):
        assert "saving the model failed" in str(caught.value) and str(old) in str(caught.value)
    assert old.read_bytes() == before
    assert listing(old.parent) == ["m.onepass"]


def test_failure_on_the_first_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OSError(errno.EIO, "disk on fire")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk on fire"):
        store.write(tmp_path / "m.onepass", "new", {}, {})
    assert listing(tmp_path) == []


def test_bad_input_leaves_the_old_file(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(ParameterError):
        store.write(old, "new", {"C": float("nan")}, {})
    assert old.read_bytes() == before
    assert listing(old.parent) == ["m.onepass"]


def test_order_of_syncing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data is on the disk before it gets the name, and the name before `write` returns."""
    events: list[str] = []
    replace, fsync = os.replace, os.fsync

    def spy_replace(source: str, target: str) -> None:
        events.append("replace")
        assert Path(source).parent == Path(target).parent
        assert store.read(source)[0] == "new"
        assert store.read(target)[0] == "old"
        replace(source, target)

    def spy_fsync(handle: int) -> None:
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    monkeypatch.setattr(os, "replace", spy_replace)
    monkeypatch.setattr(os, "fsync", spy_fsync)
    store.write(old, "new", {}, {"w": np.ones(4)})
    assert events == ["file", "replace", "folder"]


@pytest.mark.parametrize(("number", "refused"), [(errno.EIO, True), (errno.EINVAL, False)])
def test_folder_that_cannot_be_synced(number: int, refused: bool, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def second_fails(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", second_fails)
    if refused:
        with pytest.raises(OSError, match="in place but may not survive"):
            store.write(old, "new", {}, {})
    else:
        store.write(old, "new", {}, {})
    assert store.read(old)[0] == "new"
    assert listing(old.parent) == ["m.onepass"]


def test_no_handles_leak(old: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        store.write(old, "new", {}, {})
        store.read(old)
    assert len(os.listdir("/proc/self/fd")) == before


def run_python(code: str, *args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(store.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        env=os.environ | {"PYTHONPATH": source} | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_disk_full_leaves_the_old_file(old: Path) -> None:
    before = old.read_bytes()
    result = run_python(
        """
        import resource, sys
        import numpy as np
        from onepass import store
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for size in (20_000, 12_500):  # well beyond the limit, and by a header only
            try:
                store.write(sys.argv[1], "new", {}, {"w": np.ones(size)})
            except OSError as error:
                print(error)
        """,
        old,
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 2 and all("free some space" in line and str(old) in line for line in lines)
    assert old.read_bytes() == before
    assert listing(old.parent) == ["m.onepass"]


def test_killed_while_writing_leaves_the_old_file(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(subprocess.CalledProcessError):
        run_python(
            """
            import os, signal, sys
            from onepass import store
            os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
            store.write(sys.argv[1], "new", {}, {})
            """,
            old,
        )
    assert old.read_bytes() == before
    store.write(old, "new", {}, {})  # what the dead process left behind is in nobody's way
    assert store.read(old)[0] == "new"


def test_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(PermissionError, match="directory must be readable and writable"):
            store.write(folder / "m.onepass", "k", {}, {})
    finally:
        folder.chmod(0o700)


def test_read_only_folder_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same for those who may write anywhere, such as root in a container.
    def refuse(*args: Any, **kwargs: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", ".onepass-1234.tmp")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match="must be readable and writable") as caught:
        store.write(tmp_path / "m.onepass", "k", {}, {})
    assert caught.value.filename == str(tmp_path / "m.onepass")
    assert ".tmp" not in str(caught.value)


def test_bad_targets(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create its directory first"):
        store.write(tmp_path / "none" / "m.onepass", "k", {}, {})
    with pytest.raises(IsADirectoryError, match="directory"):
        store.write(tmp_path, "k", {}, {})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="regular file"):
        store.write(pipe, "k", {}, {})
    assert pipe.is_fifo()
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="regular file"):
            store.write("/dev/full", "k", {}, {})
    assert listing(tmp_path) == ["pipe"]


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "m.onepass"
    mask = os.umask(0o027)
    try:
        store.write(path, "k", {}, {})
        assert path.stat().st_mode & 0o777 == 0o640  # as the umask says, not mkstemp's 0600
        path.chmod(0o604)
        store.write(path, "k", {}, {})
        assert path.stat().st_mode & 0o777 == 0o604  # as its owner said
    finally:
        os.umask(mask)


def test_file_system_without_permission_bits(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    store.write(old, "new", {}, {})
    assert store.read(old)[0] == "new"


def test_links_and_relative_and_long_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "m.onepass")
    store.write(link, "k", {}, {})
    assert link.is_symlink() and store.read(tmp_path / "real" / "m.onepass")[0] == "k"
    monkeypatch.chdir(tmp_path)
    store.write("here.onepass", "k", {}, {})
    assert store.read("here.onepass")[0] == "k"
    long = "x" * 255
    store.write(long, "k", {}, {})
    assert store.read(long)[0] == "k"


def test_reads_from_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, small())
    os.close(writer)
    try:
        assert store.read(f"/dev/fd/{reader}")[0] == "linear"
    finally:
        os.close(reader)


# Weight of the module


def test_import_is_light() -> None:
    loaded = run_python("import sys; import onepass.store; print(*sys.modules)").stdout.split()
    assert not {"torch", "scipy", "sklearn", "pandas", "pickle5"} & set(loaded)
