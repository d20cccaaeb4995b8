"""`RuleTraits`: what a rule declares is what models ask, and nobody asks for a rule's name or class."""

from __future__ import annotations

import ast
import dataclasses
import math
from pathlib import Path

import pytest

import onepass as op
from onepass import kernels, rules
from onepass.errors import ParameterError
from onepass.scheme import DIRECTIONS, Plane, Rule, RuleTraits, Scalars, Step
from onepass.scheme.spread import Spread

SOURCE = Path(op.__file__).parent
KINDS = {kind.__name__ for kind in rules.RULES.values()} | {
    base.__name__ for kind in rules.RULES.values() for base in kind.__mro__ if base not in (object, Rule)
}
KINDS -= {"Parameters", "Pocket"}  # Pocket is a readout too


@dataclasses.dataclass(repr=False)
class Half(Rule):
    """The README's rule: tasks and a step."""

    tasks = ("binary", "regression")

    def step(self, s: Scalars) -> Step:
        return Step(add=0.5 * max(0.0, s.target - s.m) / s.xx)


@pytest.mark.parametrize("name", list(rules.RULES))
def test_the_traits_of_every_rule_are_frozen_and_consistent(name: str) -> None:
    traits = rules.make(name).traits
    assert traits == rules.make(name).traits
    assert traits.tasks and set(traits.solves) <= set(traits.multiclass)
    assert traits.sees_all_scores("multiclass", traits.multiclass[-1]) == bool(traits.solves)
    assert not traits.sees_all_scores("binary", traits.multiclass[-1])
    assert traits.by_coordinate == (traits.coordinates != "none")
    assert len(traits.planes) > 0 or not traits.weights_from_planes
    with pytest.raises(dataclasses.FrozenInstanceError):
        traits.additive = True  # type: ignore[misc]


def test_a_rule_with_a_step_alone_declares_the_defaults() -> None:
    assert Half().traits == RuleTraits(("binary", "regression"), uses_ww=True)
    assert Half().traits.multiclass == DIRECTIONS

    class OneWord(Half):
        tasks = "binary"  # type: ignore[assignment]

    assert OneWord().traits.tasks == ("binary",)


def test_what_a_rule_declared_before_traits_is_refused_not_ignored() -> None:
    with pytest.raises(ParameterError, match=r"OldRule\.spread would never be asked for.*traits"):
        type("OldRule", (Half,), {"spread": lambda self: Spread()})
    with pytest.raises(ParameterError, match=r"OldRule\.additive"):
        type("OldRule", (Half,), {"additive": True})
    type("Parameter", (Half,), {"__annotations__": {"theta": "float"}, "theta": 0.1})  # a field of that name is none


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("sgd:loss=logistic", {"probabilities": ("binary", "multiclass"), "solves": DIRECTIONS}),
        ("sgd:batch_size=8,reduction=sum", {"batch_size": 8, "reduction": "sum"}),
        ("truncated:threshold=2", {"soft_limit": 2.0, "soft_thresholds": True}),
        ("alma:p=4", {"geometry": 4.0, "ball": 1.0}),
        ("alma", {"geometry": 2.0, "ball": math.inf}),
        ("adam:absent=lazy", {"dense_update": False, "coordinates": "adam_lazy"}),
        ("ftrl:lam1=0.5", {"weights_from_planes": True, "coordinates": "ftrl"}),
        ("pa1:epsilon=0.3", {"epsilon": 0.3, "formula": "pa1"}),
        ("pa1:update_on=mistake", {"tasks": ("binary", "multiclass", "multilabel", "ranking", "structured")}),
        ("perceptron:strict=true", {"stays_at_zero": True}),
        ("pocket", {"readout": "pocket", "formula": "perceptron"}),
        ("arow", {"planes": (Plane("variance", 1.0),)}),
        ("arow:covariance=full", {"planes": (), "spread": Spread(full=True)}),
        ("vw:clip=false", {"clips": False, "multiclass": ("rival",)}),
    ],
)
def test_traits_depend_on_the_parameters(text: str, changed: dict[str, object]) -> None:
    traits = rules.make(text).traits
    assert {name: getattr(traits, name) for name in changed} == changed


def test_what_a_rule_of_yours_declares_is_what_models_ask() -> None:
    @dataclasses.dataclass(repr=False)
    class Declared(Half):
        voted: bool = False

        @property
        def traits(self) -> RuleTraits:
            return super().traits.replace(additive=self.voted, formula="perceptron", uses_ww=False)

    X, y = [[1.0, 2.0], [2.0, -1.0]] * 10, [1, -1] * 10
    with pytest.raises(ParameterError, match="sums the updates of a rule that only adds"):
        op.LinearModel(Declared(), readout="voted")
    model = op.LinearModel(Declared(voted=True), readout="voted", bias_in_norm=False)
    model.learn_many(X, y)
    assert model.predict_many(X).tolist() == y
    with pytest.raises(ParameterError, match="is not defined for Half"):
        op.KernelClassifier(Half(), budget=kernels.budgets.Forgetron(4)).fit(X, y)
    assert op.KernelClassifier(Declared(), budget=kernels.budgets.Forgetron(4)).fit(X, y).n_support_ <= 4


def _asks_who(node: ast.AST) -> bool:
    """isinstance(…, a kind of rule), or a comparison with rule.name."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
        named = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
        named |= {each.attr for each in ast.walk(node.args[1]) if isinstance(each, ast.Attribute)}
        return bool(named & KINDS)
    if isinstance(node, ast.Compare):
        return any(
            isinstance(side, ast.Attribute)
            and side.attr in ("name", "code")
            and (getattr(side.value, "id", "") == "rule" or getattr(side.value, "attr", "") == "rule")
            and not isinstance(node.ops[0], ast.GtE)  # has it a native formula at all?
            for side in (node.left, *node.comparators)
        )
    return False


def test_nobody_asks_for_a_rules_name_or_class() -> None:
    assert _asks_who(ast.parse("isinstance(rule, rules.PA1 | SGD)", mode="eval").body)
    assert _asks_who(ast.parse("model.rule.name == 'pa2'", mode="eval").body)
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if _asks_who(node):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")  # type: ignore[attr-defined]
    assert found == []


def test_a_model_asks_its_rule_once_and_the_rule_is_never_stale() -> None:
    asked = []

    @dataclasses.dataclass(repr=False)
    class Counted(rules.PA1):
        @property
        def traits(self) -> RuleTraits:
            asked.append(self.C)
            return super().traits.replace(epsilon=self.C)

    rule = Counted(C=0.5)
    op.LinearModel(rule)
    assert asked == [0.5]
    rule.C = 0.25
    assert rule.traits.epsilon == 0.25
    with pytest.raises(TypeError, match="no trait epsilom; it has tasks"):
        rule.traits.replace(epsilom=1.0)
