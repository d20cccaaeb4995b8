"""Readers: files and pipes as streams of examples."""

from __future__ import annotations

from .chunk import Chunk, Position
from .reading import Stream, stream

__all__ = ["Chunk", "Position", "Stream", "stream"]
