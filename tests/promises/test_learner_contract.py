"""Every learner of the registry keeps the whole contract of `Learner`, alone and inside every wrapper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.learners import LEARNERS

import onepass as op
from onepass import drift, reductions, transforms
from onepass.checks.learners import check_wrapped
from onepass.checks.wrappers import WRAPPERS
from onepass.compose import continual
from onepass.persistence import registry

CASES = [pytest.param(make, id=name) for name, make in LEARNERS.items()]
IDS = [str(case.id) for case in CASES]


@pytest.mark.full(quick=20)
@pytest.mark.parametrize("make", CASES)
def test_a_learner_keeps_the_contract(make: Callable[[], Any], record_property: Callable[[str, Any], None]) -> None:
    record_property("cells", len(op.check_learner(make(), wrappers=False)))


@pytest.mark.full(quick=6)
@pytest.mark.parametrize(("number", "make"), [(number, *case.values) for number, case in enumerate(CASES)], ids=IDS)
def test_a_learner_keeps_the_contract_inside_every_wrapper(
    number: int, make: Callable[[], Any], record_property: Callable[[str, Any], None], grids_are_whole: bool
) -> None:
    """With -m full in every form; otherwise in one, so that every form meets every learner and every wrapper, and a
    second learner of the same kind (`LinearModel-1`) in every third wrapper."""
    step = 3 if not grids_are_whole and IDS[number][-1].isdigit() else 1
    tried = [
        check_wrapped(make(), kind, form=None if grids_are_whole else number + turn)
        for turn, kind in list(enumerate(WRAPPERS))[number % step :: step]
    ]
    record_property("cells", sum(map(len, tried)))
    assert all(tried)


def test_every_wrapper_of_the_registry_is_tried() -> None:
    assert set(WRAPPERS) == {kind for kind, entry in registry.KINDS.items() if entry.wrapper}


def test_every_public_learner_is_in_the_registry() -> None:
    """A class with the verbs of a learner that the registry does not know could be saved and lost."""
    for module in (op, continual, drift, reductions, transforms):
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and hasattr(kind, "learn_one") and hasattr(kind, "from_state"):
                assert name in registry.KINDS or name == "Learner", f"{module.__name__}.{name} is not in the registry"


def test_kinds_of_learners_are_siblings() -> None:
    kernel, linear, lasvm, ensemble = (
        op.KernelClassifier(),
        op.LinearClassifier(),
        op.LaSVMClassifier(),
        op.ExpertEnsemble(),
    )
    for learner in (kernel, lasvm, ensemble):
        assert not isinstance(learner, op.LinearClassifier)
    assert not isinstance(linear, op.KernelClassifier)
    assert not isinstance(op.KernelModel(), op.LinearModel)
    assert linear.traits.linear and not kernel.traits.linear


class Broken(op.LinearClassifier):
    """Learns a row twice when it comes in a chunk."""

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        super().learn_many(X, y, importance, base)
        super().learn_many(X, y, importance, base)


class Forgetful(op.LinearClassifier):
    """Learns from predictions."""

    def predict_one(self, x: Any, base: float = 0.0) -> Any:
        said = super().predict_one(x, base)
        if said is not None:
            self.learn_one(x, said)
        return said


@pytest.mark.parametrize(("kind", "what"), [(Broken, "chunks"), (Forgetful, "purity")])
def test_a_learner_that_breaks_the_contract_is_found(kind: type, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        op.check_learner(kind(), wrappers=False)


def test_a_class_outside_the_registry_is_refused_when_it_is_saved(tmp_path: Any) -> None:
    learner = Broken()
    learner.learn_one({"a": 1.0}, "x")
    with pytest.raises(op.errors.ParameterError, match=r"a model file cannot hold .*Broken"):
        learner.save(tmp_path / "model")
