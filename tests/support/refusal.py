"""A check that a learner refuses what it is given, and is as it was."""

from __future__ import annotations

from typing import Any

import pytest

from onepass.errors import OnepassError
from onepass.persistence import store


def refusal(error: type[OnepassError], message: str, learner: Any, verb: str, *given: Any) -> None:
    """The learner refuses what is given, and is as it was."""
    before = store.to_bytes("any", *learner.state())
    with pytest.raises(error, match=message):
        getattr(learner, verb)(*given)
    assert store.to_bytes("any", *learner.state()) == before
