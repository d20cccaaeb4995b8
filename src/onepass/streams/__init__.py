"""Files, pipes and tables as streams of examples."""

from __future__ import annotations

from .chunk import Chunk, Position
from .row_stream import Stream, stream

__all__ = ["Chunk", "Position", "Stream", "stream"]
