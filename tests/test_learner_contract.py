"""Every learner of the registry keeps the whole contract of `Learner`, alone and inside every wrapper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import onepass as op
from onepass import continual, drift, reductions, registry, transforms
from onepass.learner_checks import check_wrapped
from onepass.learner_wrappers import WRAPPERS

THREE = ["a", "b", "c"]
SMALL = ["pa1:C=0.1", "arow", "perceptron@average"]

# Kinds whose constructor needs arguments, or would make a large learner, and variants of the others.
MADE: dict[str, list[Callable[[], Any]]] = {
    "EnsembleModel": [lambda: op.EnsembleModel(SMALL), lambda: op.EnsembleModel(["pa1", "nlms"], "regression")],
    "ExpertEnsemble": [lambda: op.ExpertEnsemble(SMALL), lambda: op.ExpertEnsemble(["pa1"], task="regression")],
    "LinearModel": [op.LinearModel, lambda: op.LinearModel("ftrl:lam1=0.1", hash_bits=5)],
    "LinearClassifier": [
        op.LinearClassifier,
        lambda: op.LinearClassifier("sgd:loss=logistic", readout="average"),
        lambda: op.LinearClassifier("arow", hash_bits=6),
        lambda: op.LinearClassifier("perceptron", readout="pocket"),
    ],
    "LinearRegressor": [op.LinearRegressor, lambda: op.LinearRegressor("rls")],
    "KernelClassifier": [
        op.KernelClassifier,
        lambda: op.KernelClassifier("perceptron", budget="forgetron:B=5"),
        lambda: op.KernelClassifier("pa1", kernel="polynomial:degree=2", budget="bpann:B=6"),
    ],
    "LaSVMClassifier": [op.LaSVMClassifier, lambda: op.LaSVMClassifier(cache_mb=0, kernel="linear")],
    "Replay": [continual.Replay, lambda: continual.Replay(kernel="rbf:gamma=0.5", D=10)],
    "Pipeline": [
        lambda: transforms.StandardScaler(with_mean=False) | op.LinearClassifier(),
        lambda: op.KMeans(2, batch_size=5) | op.LinearRegressor(),
    ],
    "ErrorCorrectingOutputCodes": [lambda: reductions.ErrorCorrectingOutputCodes(classes=THREE)],
    "CostSensitive": [lambda: reductions.CostSensitive(classes=THREE)],
    "FilterTree": [lambda: reductions.FilterTree(classes=THREE)],
    "DriftReset": [drift.DriftReset, lambda: drift.DriftReset(op.LinearRegressor())],
    "DriftFade": [lambda: drift.DriftFade(learners=3)],
}

CASES = [
    pytest.param(make, id=kind if number == 0 else f"{kind}-{number}")
    for kind in registry.KINDS
    for number, make in enumerate(MADE.get(kind, [lambda kind=kind: registry.class_of(kind)()]))
]
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
    """With -m full in every form; otherwise in one, so that every form meets every learner and every wrapper."""
    tried = [
        check_wrapped(make(), kind, form=None if grids_are_whole else number + turn)
        for turn, kind in enumerate(WRAPPERS)
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
