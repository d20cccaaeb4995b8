"""The table of file formats."""

from __future__ import annotations

import pytest

import onepass as op
from onepass.streams import formats
from onepass.streams.row_stream import replace_options


def test_one_entry_of_the_table_is_a_format(tmp_path, monkeypatch):
    """The reader stands in the table too: a format is never read by the reader of another one."""

    def read(stream, names):
        yield from formats.read_json_lines(replace_options(stream, sources=sources), names)

    monkeypatch.setitem(formats.FORMATS, "boxed", formats.Format("boxed", (".boxed",), read, text=False))
    (tmp_path / "a.jsonl").write_text('{"a": 1, "label": "x"}\n')
    sources = op.stream(tmp_path / "a.jsonl").sources
    (tmp_path / "b.boxed").write_bytes(b"PAR1")
    assert list(op.stream(tmp_path / "b.boxed")) == [({"a": 1.0}, "x")]
    with pytest.raises(TypeError, match="read"):
        formats.Format("unread", (".unread",), text=False)  # a format without a reader
