"""Labels that come late: the store of examples that wait for theirs, and streams of events.

With a delay of D examples the label of round t is known after the prediction of round t + D, and learned then; D = 0 is
the ordinary protocol. With a delay in time it is known after the predictions made at its example's time + delay.
Labels that are still to come when the stream ends are then revealed in order.
"""

from __future__ import annotations

import datetime
import numbers
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InputError, ParameterError
from ..metrics.meters import whole
from .examples import Example, as_examples
from .run_state import decode, encode

__all__ = ["DelayedStream", "PendingLabels"]

REMEMBERED = 1_000_000  # ids without their examples


class PendingLabels:
    """Examples that wait for their labels, at most `max_pending`; when full, the oldest is dropped (`dropped` counts).

    A label for an id that was never seen, or a second one, is an `InputError`. A label that comes after its example was
    dropped is counted in `late`. Ids of answered and of dropped examples are remembered too, the last million of each
    (or `max_pending`, if that is more); older ones are then as if never seen.
    """

    def __init__(self, max_pending: int = 1_000_000) -> None:
        self.max_pending = whole("max_pending", max_pending)
        self.dropped = self.late = 0
        self._remembered = max(self.max_pending, REMEMBERED)
        self._waiting: OrderedDict[Hashable, Any] = OrderedDict()
        self._answered: OrderedDict[Hashable, None] = OrderedDict()
        self._dropped: OrderedDict[Hashable, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, id: Hashable, item: Any) -> None:
        """Keep what belongs to `id` until its label comes."""
        if id in self._waiting or id in self._answered or id in self._dropped:
            raise InputError(f"id {id!r} has come before; every example needs an id of its own")
        self._waiting[id] = item
        if len(self._waiting) > self.max_pending:
            oldest, _ = self._waiting.popitem(last=False)
            self.dropped += 1
            self._remember(self._dropped, oldest)

    def take(self, id: Hashable) -> Any:
        """What was kept for `id`, whose label has come; None if it was dropped meanwhile."""
        if id in self._waiting:
            self._remember(self._answered, id)
            return self._waiting.pop(id)
        if id in self._dropped:
            del self._dropped[id]
            self._remember(self._answered, id)
            self.late += 1
            return None
        if id in self._answered:
            raise InputError(f"id {id!r} has had its label; a second one is not learned")
        raise InputError(f"a label came for id {id!r}, of which no example came before")

    # -- state -------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What `restore` needs, as JSON."""
        waiting = [[encode(id), encode(item)] for id, item in self._waiting.items()]
        ids = {"answered": _encode_ids(self._answered), "dropped": _encode_ids(self._dropped)}
        return {"waiting": waiting, **ids, "counts": [self.dropped, self.late]}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Go on where the store was whose `state` this is."""
        self._waiting = OrderedDict((decode(id), decode(item)) for id, item in content["waiting"])
        self._answered, self._dropped = (_decoded_ids(content[name]) for name in ("answered", "dropped"))
        self.dropped, self.late = content["counts"]

    def _remember(self, ids: OrderedDict[Hashable, None], id: Hashable) -> None:
        ids[id] = None
        if len(ids) > self._remembered:
            ids.popitem(last=False)


def _encode_ids(ids: OrderedDict[Hashable, None]) -> Any:
    """Ids as JSON; whole numbers, of which there may be a million, together."""
    if all(type(id) is int and -(2**63) <= id < 2**63 for id in ids):
        return encode(np.array(list(ids), dtype=np.int64))
    return [encode(id) for id in ids]


def _decoded_ids(content: Any) -> OrderedDict[Hashable, None]:
    ids = decode(content)
    return OrderedDict.fromkeys(ids if isinstance(ids, list) else ids.tolist())


class DelayedStream:
    """A stream as events: ("x", id, x, weight, base) when an example comes, ("y", id, y) when its label does.

    `delay` is a number of examples; or a time (a timedelta, or a number with `time`): `time(x)`, or the name of a
    feature, says when an example came, or the stream's chunks carry it. Times must not fall.
    """

    def __init__(self, stream: Any, delay: Any = 0, *, time: Any = None, named: bool = False) -> None:
        self.stream, self.time, self.named = stream, time, named
        self.in_time = time is not None or isinstance(delay, datetime.timedelta)
        if not self.in_time:
            delay = whole("delay", delay, least=0)
        elif not _is_time(delay):
            raise ParameterError(f"delay={delay!r}: expected a number or a timedelta >= 0")
        if time is not None and not callable(time) and not isinstance(time, str):
            raise ParameterError(f"time={time!r}: expected a function of x, or a feature's name")
        self.delay = delay
        self.taken = 0  # examples of the stream so far: the id of the next one
        self._owed: deque[tuple[Any, int, Any]] = deque()  # (when the example came, id, y), in order
        self._before: Any = None  # the time of the last example

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        owed = self._owed
        for id, example in enumerate(as_examples(self.stream, self.named), self.taken):
            now: Any = id
            if self.in_time:
                now, before = self._when(example, id), self._before
                if before is not None and now < before:
                    raise InputError(f"example {id + 1}: its time {now!r} is before {before!r}, that of the one before")
                self._before = now
            while owed and owed[0][0] + self.delay < now:
                _, due_id, y = owed.popleft()
                yield "y", due_id, y
            owed.append((now, id, example.y))
            self.taken = id + 1  # before the example is given: whoever has it may stop here
            yield "x", id, example.x, example.weight, example.base
        while owed:
            _, due_id, y = owed.popleft()
            yield "y", due_id, y

    def state(self) -> dict[str, Any]:
        """What `restore` needs, as JSON: the labels that are still to come."""
        return {"taken": self.taken, "owed": [encode(each) for each in self._owed], "before": encode(self._before)}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Go on where the stream was whose `state` this is: over the examples after those that were taken."""
        self.taken, self._before = content["taken"], decode(content["before"])
        self._owed = deque(decode(each) for each in content["owed"])

    def _when(self, example: Example, id: int) -> Any:
        if callable(self.time):
            return self.time(example.x)
        if self.time is not None:
            try:
                return example.x[self.time]
            except (KeyError, TypeError, IndexError):
                raise InputError(f"example {id + 1} has no feature {self.time!r} to take its time from") from None
        if example.time is None:
            raise InputError(f"example {id + 1} has no time; give time=, a function of x or a feature's name")
        return example.time


def _is_time(delay: Any) -> bool:
    if isinstance(delay, bool) or not isinstance(delay, numbers.Real | datetime.timedelta | np.timedelta64):
        return False
    zero: Any = 0 * delay
    return bool(delay >= zero)
