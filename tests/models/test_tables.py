"""The tables that Python and C++ share: each name has its twin on the other side, and no number stands for a name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass import _native, rules
from onepass.errors import ParameterError
from onepass.models.linear import LinearModel
from onepass.models.options import LOOPS
from onepass.models.reference import ReferenceLearner
from onepass.scheme import DIRECTIONS, Average, Rule, Scalars, Step, losses, schedules
from onepass.scheme.rounds import Array

SOURCE = Path(op.__file__).parent
NATIVE = Path(__file__).parents[2] / "native"

# The rules whose formula depends on a parameter, with a value for each.
VARIANTS = [
    *rules.RULES,
    "adadelta:absent=exact",
    "rmsprop:absent=exact",
    "adam:absent=lazy",
    "ftrl:lam1=0.1",
]


# -- every name has its twin -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(rules.RULES))
def test_a_rule_and_its_row_of_the_table_agree(name: str) -> None:
    rule = rules.make(name)
    parameters, slots = _native.rules[rule.compiled]
    assert rule.compiled in {kind.__name__ for kind in type(rule).__mro__}
    assert tuple(rule.native()) == parameters
    assert tuple(rule.slots) == slots


def test_every_row_of_the_table_is_a_rule() -> None:
    kinds = {kind.__name__: kind for kind in rules.RULES.values()}
    assert set(_native.rules) == {kind.compiled for kind in kinds.values()}
    # A rule of ours without a row would be slow, and nobody would know.
    assert {name for name, kind in kinds.items() if kind.compiled != name} == {"PAMIR", "Pocket"}
    assert (rules.PAMIR.compiled, rules.Pocket.compiled) == ("PA1", "Perceptron")


def test_every_value_of_an_enum_has_its_twin() -> None:
    twins = {
        "Task": {"classify", *LOOPS.values()},
        "Averaging": {"none", *Average.__dataclass_fields__["kind"].metadata["options"]},
        "Against": set(DIRECTIONS),
        "Loss": set(losses.LOSSES),
        "Schedule": set(schedules.SCHEDULES),
        "Coordinates": {rules.make(text).traits.coordinates for text in VARIANTS},
    }
    assert {name: set(values) for name, values in _native.enums.items()} == twins


def test_a_formula_of_the_user_has_no_twin() -> None:
    @dataclasses.dataclass(repr=False)
    class Cubic(losses.Loss):
        name, margin = "cubic", True

        def pull(self, z: float) -> float:
            return max(0.0, 1.0 - z) ** 2

    with pytest.raises(ParameterError, match="loss='cubic' has no compiled formula; expected one of perceptron, hinge"):
        LinearModel(rules.SGD(loss=Cubic()))


# -- a rule of the user over one of ours -------------------------------------------------------------------------------


class Sevenfold(rules.PA1):
    """Overrides what the step of its base calls."""

    def tau(self, loss: float, xx: float, c: float) -> float:
        return 7.0 * super().tau(loss, xx, c)


class Halving:
    def step(self, s: Scalars) -> Step:
        return Step(add=0.5, scale=0.5)


class Mixed(Halving, rules.Perceptron):
    """Gets another step from a class that is no rule."""


class Remembering(rules.Perceptron):
    slots = {"rounds": 0.0}  # noqa: RUF012

    def suffer(self, s: Scalars) -> float:
        return 0.0


class Renamed(rules.PA2):
    """Overrides nothing that a round computes."""

    name = "renamed"

    def validate(self) -> None:
        super().validate()


class PA2(rules.Perceptron):
    """Has the name of a row that is not its own."""

    def step(self, s: Scalars) -> Step:
        return Step(add=3.0)


@pytest.mark.parametrize("kind", [Sevenfold, Mixed, Remembering, PA2])
def test_an_overridden_method_is_called(kind: type[Rule]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    assert kind.compiled == ""
    model, reference = LinearModel(kind()), ReferenceLearner(kind())
    model.learn_many(X, y)
    for row, label in zip(X, y, strict=True):
        reference.learn(row, 2 * label - 1)
    np.testing.assert_allclose(model.score_many(X)[:, 0], [reference.score(row) for row in X], rtol=1e-12)


def test_without_an_override_the_formula_is_the_compiled_one() -> None:
    assert Renamed.compiled == "PA2"


class Faster(rules.AdaGrad):
    def move(self, w: Array, g: Array, *rest: object) -> Array:
        return w - g


@pytest.mark.parametrize("rule", [Faster(), rules.AdaGradFull()], ids=repr)
def test_a_way_of_moving_weights_in_python_is_refused(rule: Rule) -> None:
    with pytest.raises(ParameterError, match="the native loop cannot call; use ReferenceLearner"):
        LinearModel(rule)


# -- no number stands for a name ---------------------------------------------------------------------------------------


def trees() -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "kernels" not in path.parts:  # their turn comes
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name, value) of each assignment of a class, of tuples too; of a keyword; of an item of a dict."""
    pairs: list[tuple[ast.expr, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs.extend(zip(target.elts, value.elts, strict=True))
        elif isinstance(target, ast.Name) and value is not None:
            yield target.id, value


CODES = {"code", "op", "coordinates", "compiled", "averaging", "against", "budget", "kernel"}


def test_python_says_no_code_by_number() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{value.lineno}: {name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        for name, value in assigned(node)
        if name in CODES and isinstance(value, ast.Constant) and isinstance(value.value, int)
    ]
    assert found == []


PARAMETERS = re.compile(r"\b(params|p|state|M\.params|M\.state|model\.params|model\.state)\[(\d+)\]")


@pytest.mark.parametrize("name", ["core/rules.cpp", "loops/coordinates.hpp", "loops/vowpal.hpp", "loops/round.hpp"])
def test_a_formula_reads_its_parameters_by_name(name: str) -> None:
    lines = (NATIVE / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if PARAMETERS.search(line)] == []


def test_the_searches_find_what_they_look_for() -> None:
    """Planted, each is seen."""
    tree = ast.parse("class A:\n    name, code = 'a', 3\n    op: int = 4\nf(coordinates=2)")
    named = [(name, ast.unparse(value)) for node in ast.walk(tree) for name, value in assigned(node)]
    assert {("code", "3"), ("op", "4"), ("coordinates", "2")} <= set(named)
    assert PARAMETERS.search("return p[1] * state[x];") and PARAMETERS.search("M.state[0] += 1.0;")
    assert not PARAMETERS.search("p[At::eta]") and not PARAMETERS.search("planes[0]")


def test_a_class_finds_its_formula_by_its_name() -> None:
    source = inspect.getsource(rules.PA2) + (NATIVE / "core/rules.cpp").read_text(encoding="utf-8")
    assert '{"PA2", ' in source and "class PA2" in source
