"""Nothing damaged, foreign, hostile or newer loads as a model file."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from support.store_files import ZEROS, forge, small

from onepass.errors import DamagedFileError, ForeignFileError, ModelFileError, NewerFileError, ParameterError
from onepass.persistence import store


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
    "metadata of another kind": (22).to_bytes(8, "little") + b'{"__metadata__":"foo"}',
}
FOUND = {"empty": "found an empty file", "one byte": "found 1 bytes", "metadata of another kind": "of another program"}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "stranger"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(ForeignFileError, match="stranger: expected a onepass model file, found") as caught:
        store.read(path)
    assert FOUND.get(name, "") in str(caught.value)
    with pytest.raises(ForeignFileError):
        store.from_bytes(FOREIGN[name], "here")


@pytest.mark.parametrize(
    "start", [b"a,b,c,d,e,f\n", (1 << 40).to_bytes(8, "little") + b"{", b"\x10" + b"\0" * 7 + b"["]
)
def test_a_large_foreign_file_is_not_read_whole(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    with open(path, "wb") as file:
        file.write(start)
        file.truncate(1 << 40)  # sparse: a terabyte that takes no room, and fits in no memory
    with pytest.raises(ModelFileError):
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


def test_the_checksum_is_that_of_the_metadata_and_the_only_one() -> None:
    for header, metadata in (({"sha256": ZEROS}, {"sha256": None}), ({}, {"more": {"sha256": "1" * 64}})):
        with pytest.raises(DamagedFileError, match="expected one sha256 of 64 hex digits"):
            store.from_bytes(forge(header, **metadata), "here")
    with pytest.raises(DamagedFileError, match=r"its header ends at byte \d+, the file at 60"):
        store.from_bytes(small()[:60], "here")


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
