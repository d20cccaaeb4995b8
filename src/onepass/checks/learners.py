"""`check_learner`: tests the whole contract of `Learner`. For your own learners; ours are all tested with it."""

from __future__ import annotations

import dataclasses
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import OnepassError, ParameterError
from ..learner import Learner, LearnerTraits
from ..persistence import registry, store
from .streams import Example, LearnerStream, streams_for
from .wrappers import WRAPPERS, labels_for

__all__ = ["check_learner", "check_wrapped"]


def check_learner(
    learner: Any, *, examples: list[Example] | None = None, wrappers: bool = True, seed: int = 0
) -> list[str]:
    """Test a learner's contract; raise AssertionError at the first breach. Returns the names of the cells tried.

    `learner` should have learned nothing; it is copied and not changed. `examples` are pairs (x, y) for a learner
    whose x is no row (a decoder of yours); otherwise small streams are made to fit the learner's traits, in every form
    that these declare. Checked, for each form:

    - chunks: `learn_one` row by row, one `learn_many`, and any cuts between end in the same bytes
    - state: through bytes and back, before anything was learned, in the middle and at the end, to the same bits
    - copy and pickle: equal and independent
    - prediction changes nothing, and neither do the verbs that the traits declare
    - bad input (NaN, infinity, a text for a number, a negative importance, no label) is refused and changes nothing
    - `nbytes` is there, and grows when something is learned
    - `wrappers`: inside every wrapper of the registry that takes it, the round trip again; the others refuse clearly
    """
    assert isinstance(learner, Learner), f"{learner!r} lacks {_missing(learner)}"
    traits = learner.traits
    assert isinstance(traits, LearnerTraits), f"{learner!r}.traits is {traits!r}; expected LearnerTraits"
    name = type(learner).__name__
    for verb in sorted(traits.verbs):
        assert callable(getattr(learner, verb, None)), f"{name} declares {verb}, which it does not have"
    tried = []
    given = [LearnerStream("examples", examples)] if examples is not None else streams_for(traits, seed=seed)
    for stream in given:
        for what, check in _CHECKS.items():
            _try(f"{name}, {stream.form}, {what}", check, learner, stream)
            tried.append(f"{name}, {stream.form}, {what}")
    if wrappers and examples is None:
        for kind in WRAPPERS:
            tried += check_wrapped(learner, kind, seed=seed)
    return tried


def _missing(learner: Any) -> str:
    verbs = ("learn_one", "learn_many", "state", "from_state", "copy", "save", "nbytes", "traits")
    return ", ".join(verb for verb in verbs if not hasattr(type(learner), verb)) or "nothing"


def _try(cell: str, check: Callable[..., None], *given: Any) -> None:
    try:
        check(*given)
    except AssertionError as error:
        raise AssertionError(f"{cell}: {error}") from error
    except OnepassError as error:
        raise AssertionError(f"{cell}: {type(error).__name__}: {error}") from error


# -- what is checked ---------------------------------------------------------------------------------------------------


def _check_chunks(learner: Any, stream: LearnerStream) -> None:
    one, many, cut = learner.copy(), learner.copy(), learner.copy()
    _feed(one, stream)
    _feed(many, stream, len(stream))
    _feed(cut, stream, 7)
    assert _bytes(one) == _bytes(many), f"learn_many differs from the loop of learn_one{_difference(one, many)}"
    assert _bytes(one) == _bytes(cut), f"chunks of 7 rows change the result{_difference(one, cut)}"


def _check_state(learner: Any, stream: LearnerStream) -> None:
    half = len(stream) // 2
    empty = _reopened(learner.copy())
    assert _bytes(empty) == _bytes(learner), "an untrained learner does not reopen as it was"
    whole, resumed = learner.copy(), empty
    _feed(whole, stream, len(stream))
    _feed(resumed, stream, 5, stop=half)
    before = _bytes(resumed)
    resumed = _reopened(resumed)
    assert _bytes(resumed) == before, "the state changes when it is written and read"
    _feed(resumed, stream, 5, start=half)
    assert _bytes(resumed) == _bytes(whole), f"saving in the middle changes the result{_difference(resumed, whole)}"
    assert _predictions(_reopened(whole), stream) == _predictions(whole, stream), (
        "a reopened learner predicts otherwise"
    )


def _check_copies(learner: Any, stream: LearnerStream) -> None:
    half = len(stream) // 2
    first = learner.copy()
    _feed(first, stream, half, stop=half)
    before = _bytes(first)
    twins = {"copy": first.copy()}
    if _importable(type(learner)):
        twins["pickle"] = pickle.loads(pickle.dumps(first))
    for what, twin in twins.items():
        assert _bytes(twin) == before, f"a {what} is not equal to its original"
        _feed(twin, stream, 5, start=half)
        assert _bytes(first) == before, f"learning in a {what} changes the original"
        whole = learner.copy()
        _feed(whole, stream)
        assert _bytes(twin) == _bytes(whole), f"a {what} learns on otherwise than its original"


def _importable(kind: type) -> bool:
    """Can pickle find the class? It cannot if the class was defined inside a function or a document."""
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _check_purity(learner: Any, stream: LearnerStream) -> None:
    for trained in (False, True):
        one = learner.copy()
        if trained:
            _feed(one, stream)
        before = _bytes(one)
        _predictions(one, stream)
        for verb in sorted(one.traits.verbs - {"predict_then_learn", "score_then_learn", "predict_interval"}):
            if trained or verb in ("score_one", "predict_proba_one", "transform_one"):
                getattr(one, verb)(stream.examples[0][0])
        after = _bytes(one)
        assert after == before, f"prediction changes {'a trained' if trained else 'an untrained'} learner"


def _check_bad_input(learner: Any, stream: LearnerStream) -> None:
    half = len(stream) // 2
    one = learner.copy()
    _feed(one, stream, 5, stop=half)
    for what, bad in _bad_examples(stream, one.traits):
        for refused in (one, learner.copy()):
            same = _bytes(refused)
            try:
                _learn(refused, **bad)
            except ValueError as error:
                assert isinstance(error, OnepassError) or type(refused).__module__.partition(".")[0] != "onepass", (
                    f"{what}: {type(error).__name__} is not an error of onepass ({error})"
                )
            else:
                raise AssertionError(f"{what} was learned")
            assert _bytes(refused) == same, f"{what} was refused, but changed the learner"
    _feed(one, stream, 5, start=half)
    whole = learner.copy()
    _feed(whole, stream)
    assert _bytes(one) == _bytes(whole), "after refused examples the learner learns otherwise"


def _check_memory(learner: Any, stream: LearnerStream) -> None:
    one = learner.copy()
    empty = one.nbytes
    assert isinstance(empty, int) and empty >= 0, f"nbytes={empty!r} of an untrained learner; expected a count"
    _feed(one, stream)
    assert isinstance(one.nbytes, int), f"nbytes={one.nbytes!r}; expected a whole number"
    arrays = sum(array.nbytes for array in one.state()[1].values())
    assert one.nbytes > 0 or arrays == 0, f"nbytes={one.nbytes} after learning, but its arrays have {arrays} bytes"
    assert one.copy().nbytes > 0 or arrays == 0, "a copy says that it takes no memory"


_CHECKS: dict[str, Callable[[Any, LearnerStream], None]] = {
    "chunks": _check_chunks,
    "state": _check_state,
    "copies": _check_copies,
    "purity": _check_purity,
    "bad input": _check_bad_input,
    "memory": _check_memory,
}


def check_wrapped(learner: Any, kind: str, *, seed: int = 0, form: int | None = None) -> list[str]:
    """The round trip inside one kind of wrapper; a wrapper that does not take the learner says so. `form`: the number
    of the only form to try, modulo the number of forms. Returns the names of the cells tried.
    """
    wrapper = WRAPPERS[kind]
    name = f"{type(learner).__name__} inside {kind}"
    fits = wrapper.takes(learner.traits)
    try:
        wrapped = wrapper.make(learner.copy())
        traits = wrapped.traits
        streams = streams_for(dataclasses.replace(traits, values=learner.traits.values), labels_for(kind), seed)
        streams = streams if form is None else [streams[form % len(streams)]]
        for stream in streams:
            if not fits:
                _feed(wrapped, stream, 5)
    except ParameterError:
        assert not fits, f"{name} is refused"
        return [f"{name}, refused"]
    assert fits, f"{name} is accepted, but the wrapper says that it takes no such learner"
    tried = []
    for stream in streams:
        for what in ("chunks", "state"):
            _try(f"{name}, {stream.form}, {what}", _CHECKS[what], wrapped, stream)
            tried.append(f"{name}, {stream.form}, {what}")
    return tried


# -- learning and looking ----------------------------------------------------------------------------------------------


def _learn(learner: Any, x: Any, y: Any, **more: Any) -> None:
    learner.learn_one(x, y, **more) if learner.traits.supervised else learner.learn_one(x, **more)


def _feed(learner: Any, stream: LearnerStream, size: int = 1, start: int = 0, stop: int | None = None) -> None:
    """Learn examples from `start` to `stop`, `size` at a time; one at a time by `learn_one`."""
    end = len(stream) if stop is None else stop
    supervised = learner.traits.supervised
    for first in range(start, end, size):
        if size == 1:
            x, y = stream.examples[first]
            learner.learn_one(x, y) if supervised else learner.learn_one(x)
            continue
        X, y = stream.part(first, min(first + size, end))
        learner.learn_many(X, y) if supervised else learner.learn_many(X)


def _predictions(learner: Any, stream: LearnerStream) -> list[Any]:
    verbs = ("transform_one", "transform_many") if learner.traits.answers == "row" else ("predict_one", "predict_many")
    one = [_plain(getattr(learner, verbs[0])(x)) for x, _ in stream.examples[:5]]
    if hasattr(learner, verbs[1]):
        getattr(learner, verbs[1])(stream.part(0, 5)[0])
    return one


def _plain(answer: Any) -> Any:
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if hasattr(answer, "toarray"):
        return answer.toarray().tolist()
    return repr(answer)


def _bytes(learner: Any) -> bytes:
    return store.to_bytes("check", *learner.state())


def _reopened(learner: Any) -> Any:
    """A copy of the learner, made by writing its state to bytes and reading it."""
    kind = type(learner).__name__
    ours = registry.KINDS.get(kind) is not None and registry.class_of(kind) is type(learner)
    config, arrays = store.from_bytes(_bytes(learner), "check")[1:]
    return (registry.class_of(kind) if ours else type(learner)).from_state(config, arrays)


def _difference(a: Any, b: Any) -> str:
    """The name of the array or number that differs, for the message."""
    (config_a, arrays_a), (config_b, arrays_b) = a.state(), b.state()
    for name in sorted(set(arrays_a) | set(arrays_b)):
        left, right = arrays_a.get(name), arrays_b.get(name)
        if left is None or right is None or left.shape != right.shape or left.tobytes() != right.tobytes():
            return f" (array {name!r}: {left!r:.60} and {right!r:.60})"
    return f" ({config_a!r:.200} and {config_b!r:.200})"


def _bad_examples(stream: LearnerStream, traits: LearnerTraits) -> list[tuple[str, dict[str, Any]]]:
    x, y = stream.examples[0]
    bad: list[tuple[str, dict[str, Any]]] = []
    if stream.form == "rows":
        for value in (np.nan, np.inf):
            row = np.array(x)
            row[1] = value
            bad.append((f"{value} in a row", {"x": row, "y": y}))
        bad.append(("a word for a row", {"x": "word", "y": y}))
    if stream.form == "names" and traits.values != "texts":
        bad += [(f"{value} for a name", {"x": {**x, "f1": value}, "y": y}) for value in (np.nan, np.inf, None)]
    if traits.weighted:
        bad.append(("a negative importance", {"x": x, "y": y, "importance": -1.0}))
    if traits.answers == "class":
        bad.append(("no label", {"x": x, "y": None}))
    if traits.answers == "number":
        bad += [("a text for a number", {"x": x, "y": "many"}), ("NaN as y", {"x": x, "y": np.nan})]
    return bad
