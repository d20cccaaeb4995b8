"""Threads that parse the blocks of a stream, in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..errors import InputError
from .blocks import Block

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["in_order", "in_this_process"]


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of all streams. They never end: the garbage collector may close a stream in any thread at any
    moment, and to wait for threads there could deadlock."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(64, thread_name_prefix="onepass-parse")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def in_this_process(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks. In a forked child, which has no threads and shares its files with its parent, an error."""
    process = os.getpid()
    for block in blocks:
        yield block
        if process != os.getpid():
            raise InputError("a stream that was begun does not go on in a forked process: begin it there")


def in_order(blocks: Iterable[Block], parse: Callable[[Block], None], threads: int) -> Iterator[Block]:
    """The blocks, each after `parse`, in order; at most `threads` of them are parsed ahead."""
    if threads == 1:
        for block in blocks:
            parse(block)
            yield block
        return
    process = os.getpid()
    waiting: deque[tuple[Block, Future[None]]] = deque()
    try:
        for block in blocks:
            waiting.append((block, _pool().submit(parse, block)))
            while waiting and (len(waiting) > threads or block.idle):
                yield _first_of(waiting)
        while waiting:
            yield _first_of(waiting)
    finally:
        for _, future in waiting if process == os.getpid() else ():
            future.cancel()


def _first_of(waiting: deque[tuple[Block, Future[None]]]) -> Block:
    """The first block, as soon as it is parsed."""
    block, future = waiting.popleft()
    future.result()
    return block
