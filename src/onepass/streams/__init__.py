"""Files, pipes and tables as streams of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import lazily_loaded

if TYPE_CHECKING:
    from .chunk import Chunk, Position
    from .row_stream import Stream, stream

__all__ = ["Chunk", "Position", "Stream", "stream"]

__getattr__ = lazily_loaded(
    __name__, {"Chunk": "chunk", "Position": "chunk", "Stream": "row_stream", "stream": "row_stream"}
)
