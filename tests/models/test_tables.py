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
from onepass import _native, budgets, kernels, rules
from onepass.errors import ParameterError
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel
from onepass.models.option_values import LOOPS
from onepass.models.reference import ReferenceLearner
from onepass.rows.expansion import read_interactions
from onepass.scheme import DIRECTIONS, Average, Rule, Scalars, Step, losses, schedules
from onepass.scheme.rounds import Array
from onepass.scheme.spread import FORMS

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
        "Form": set(FORMS),
        "Loss": set(losses.LOSSES),
        "Schedule": set(schedules.SCHEDULES),
        "Coordinates": {rules.make(text).traits.coordinates for text in VARIANTS},
        "TermKind": {kind for terms in read_interactions(["a:", "user*item"]) for kind, _ in terms},
        "RecordKind": {"row", "text_after_quote", "open_quote", "too_long"},  # tests/streams reads one of each
        "KernelOp": set(kernels.KERNELS) - {"cosine"},  # the normalized linear one
    }
    assert {name: set(values) for name, values in _native.enums.items()} == twins


@pytest.mark.parametrize("name", list(kernels.KERNELS))
def test_a_kernel_and_its_formula_agree(name: str) -> None:
    kernel: kernels.Kernel = {
        "call": kernels.Call(lambda x, z: 0.0),
        "precomputed": kernels.Precomputed(np.eye(2)),
    }.get(name) or kernels.make(name)
    native = kernel.resolved(3).native()
    assert native["op"] == ("normalized" if name == "cosine" else name)
    assert set(native["p"]) <= {"c", "gamma", "r", "degree"}


@pytest.mark.parametrize("name", list(budgets.BUDGETS))
def test_a_budget_and_its_row_of_the_table_agree(name: str) -> None:
    kind = budgets.BUDGETS[name]
    rule = rules.make("perceptron" if "perceptron" in kind.formulas else "pa1")
    assert tuple(kind().numbers(rule)) == _native.budgets[kind.compiled]
    assert kind.compiled == ("BudgetPerceptron" if name == "budget_svm" else kind.__name__)


def test_every_row_of_the_budgets_is_a_budget() -> None:
    assert set(_native.budgets) == {kind.compiled for kind in budgets.BUDGETS.values()}


def test_a_formula_of_the_user_has_no_twin() -> None:
    @dataclasses.dataclass(repr=False)
    class Cubic(losses.Loss):
        name, margin = "cubic", True

        def pull(self, z: float) -> float:
            return max(0.0, 1.0 - z) ** 2

    class Steeper(losses.Hinge):
        def pull(self, z: float) -> float:
            return 2.0 * super().pull(z)

    class Halves(schedules.Constant):
        def __call__(self, t: float) -> float:
            return 0.5**t

    for rule in (rules.SGD(loss=Cubic()), rules.SGD(loss=Steeper()), rules.SGD(schedule=Halves())):
        with pytest.raises(ParameterError, match="has no compiled formula; write a rule"):
            LinearModel(rule)

    class Wide(kernels.RBF):
        def block(self, X: Array, Z: Array) -> Array:
            return np.sqrt(super().block(X, Z))

    class Patient(budgets.Oldest):
        def full(self, f: object) -> bool:
            return False

    with pytest.raises(ParameterError, match=r"has no compiled formula; give its function to kernels.Call"):
        KernelModel("pa1", kernel=Wide(gamma=1.0)).learn_one([1.0], 0)
    with pytest.raises(ParameterError, match="has no compiled formula; use a budget"):
        KernelModel("pa1", budget=Patient())


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


POSITION = re.compile(r"\b(params|p|state|scalars|scalar)\[\d+\]")
CODE = re.compile(r"\b[A-Z]\w+\(nb::cast<int>")  # an enum's value from a number of Python


@pytest.mark.parametrize("folder", ["bind", "core", "kernels", "loops"])
def test_cpp_reads_parameters_and_saved_numbers_by_name(folder: str) -> None:
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted((NATIVE / folder).glob("*.[ch]pp"))
        if path.name not in ("checksum.cpp", "lasvm.cpp", "lasvm_state.cpp")  # bytes; their turn comes
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if POSITION.search(line) or CODE.search(line)
    ]
    assert found == []


def counts_names(node: ast.AST) -> bool:
    """Is it A, B = range(2), which repeats the order of another list?"""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    return ast.unparse(node.value.func) == "range" and any(isinstance(each, ast.Tuple) for each in node.targets)


def test_python_counts_no_names() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {ast.unparse(n)}" for path, t in trees() for n in ast.walk(t) if counts_names(n)
    ]
    assert found == []


def test_python_reads_saved_numbers_by_name() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if by_position(node)
    ]
    assert found == []


def by_position(node: ast.AST) -> bool:
    """Is it state["…scalars"][3], or machines[:, 2] of such an array?"""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Subscript):
        return False
    array, key = node.value.slice, node.slice
    named = isinstance(array, ast.Constant) and str(array.value).endswith(("scalars", "machines"))
    numbers = [part.value for part in ast.walk(key) if isinstance(part, ast.Constant)]
    return named and any(isinstance(number, int) for number in numbers)


def test_the_searches_find_what_they_look_for() -> None:
    """Planted, each is seen."""
    tree = ast.parse("class A:\n    name, code = 'a', 3\n    op: int = 4\nf(coordinates=2)")
    named = [(name, ast.unparse(value)) for node in ast.walk(tree) for name, value in assigned(node)]
    assert {("code", "3"), ("op", "4"), ("coordinates", "2")} <= set(named)
    assert any(map(counts_names, ast.walk(ast.parse("A, B = range(2)"))))
    reads = [node for node in ast.walk(ast.parse('s["scalars"][3]; s["scalars"]["t"]; s["v"][0]')) if by_position(node)]
    assert [ast.unparse(node) for node in reads] == ["s['scalars'][3]"]
    assert POSITION.search("return p[1] * state[x];") and POSITION.search("M.state[0] += 1.0;")
    assert not POSITION.search("p[At::eta]") and not POSITION.search("planes[0]")
    assert CODE.search('Averaging(nb::cast<int>(options["averaging"]))') and not CODE.search("nb::cast<int>(x)")


def test_a_class_finds_its_formula_by_its_name() -> None:
    source = inspect.getsource(rules.PA2) + (NATIVE / "core/rules.cpp").read_text(encoding="utf-8")
    assert '{"PA2", ' in source and "class PA2" in source
