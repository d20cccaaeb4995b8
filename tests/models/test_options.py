"""The options of models: one field feeds the model, its estimators, its files and the command.

The learners are those of the registry, and the options the fields of their dataclasses: no list here has to be kept.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import click
import pytest

import onepass as op
from onepass.cli import main
from onepass.cli.model_options import GROUPS, flags_of, given_options
from onepass.errors import DamagedFileError, FeatureError, LabelError
from onepass.models import options
from onepass.models.options import LinearOptions, flag_of, option, shared_options
from onepass.persistence import registry

SOURCE = Path(op.__file__).parent
LEARN = main.get_command(click.Context(main), "learn")  # type: ignore[attr-defined]
ESTIMATORS = {
    registry.class_of(kind): registry.class_of(entry.model)
    for kind, entry in registry.KINDS.items()
    if entry.model is not None
}
MODELS = list(dict.fromkeys(ESTIMATORS.values()))
IN_COMMAND = [op.LinearModel, op.KernelModel, op.EnsembleModel]
# Other values than the defaults, of options whose type does not tell one.
OTHER = {
    "rule": "perceptron:beta=0.5",
    "task": "multiclass",
    "fit_intercept": False,
    "readout": "average",
    "multiclass": "uniform",
    "costs": [[0, 1, 2], [1, 0, 1], [2, 1, 0]],
    "threshold": "calibrated",
    "kernel": "polynomial:degree=2",
    "budget": "oldest:B=7",
    "members": ["pa1", "perceptron"],
    "alpha": 0.25,
}


def shared(estimator: type[Any]) -> list[str]:
    return list(shared_options(estimator(), ESTIMATORS[estimator]))


def another(kind: type[Any], name: str) -> Any:
    """A value of an option that is not its default."""
    if name == "fit_intercept" and issubclass(kind, op.KernelModel):
        return True
    if name == "multiclass" and not issubclass(kind, op.LinearModel | op.KernelModel):
        return "ovo"
    if name in OTHER:
        return OTHER[name]
    default = kind.__dataclass_fields__[name].default
    return not default if isinstance(default, bool) else 9 if default is None else default + 2


@pytest.mark.parametrize(("estimator", "name"), [(each, name) for each in ESTIMATORS for name in shared(each)])
def test_an_option_of_an_estimator_reaches_its_model_and_its_file(estimator: type[Any], name: str) -> None:
    kind = ESTIMATORS[estimator]
    value = another(kind, name)
    by_rule = "rule" in estimator.__dataclass_fields__
    if name == "rule" and estimator in (op.LinearRegressor, op.OneClass, op.KernelRegressor, op.Ranker):
        value = "pa1:C=0.5"
    given = {"rule": "pa1", name: value} if by_rule else {name: value}
    assert name in estimator().get_params()
    classes = [0, 1, 2] if name == "costs" else None
    model = estimator(**given)._new_model(classes)
    usual = estimator(**{**given, name: estimator.__dataclass_fields__[name].default})._new_model(classes)
    assert repr(getattr(model, name)) != repr(getattr(usual, name))
    again = kind.from_state(*model.state())
    assert repr(getattr(again, name)) == repr(getattr(model, name))
    assert repr(getattr(kind(**model.options()), name)) == repr(getattr(model, name)) or name == "costs"


@pytest.mark.parametrize("kind", MODELS)
def test_a_file_holds_every_option(kind: type[Any]) -> None:
    limits = {"max_classes": 5, "max_features": 50}
    model = kind(**limits) if set(limits) <= set(kind.__dataclass_fields__) else kind()
    config, arrays = model.state()
    inside = "options" if "options" in config else None
    names = {field.name for field in dataclasses.fields(kind)}
    assert names <= set(config) | set(config[inside] if inside else ())
    assert kind.from_state(config, arrays).state()[0] == config
    for field in dataclasses.fields(kind):
        held = config[inside] if inside and field.name in config[inside] else config
        without = {key: value for key, value in held.items() if key != field.name}
        without = without if held is config else {**config, inside: without}
        if field.metadata.get("late"):
            assert getattr(kind.from_state(without, arrays), field.name) == field.default
        else:
            with pytest.raises(DamagedFileError):
                kind.from_state(without, arrays)


@pytest.mark.parametrize("kind", [*ESTIMATORS, *MODELS])
def test_signatures_name_every_option(kind: type[Any]) -> None:
    """scikit-learn, help() and type checkers read them."""
    parameters = dict(inspect.signature(kind).parameters)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    parameters.pop("classes", None)
    assert parameters.keys() == fields.keys()
    assert all(parameters[name].default == field.default for name, field in fields.items())
    by_place = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert len(by_place) <= 2
    if kind in ESTIMATORS:
        assert kind().get_params().keys() == fields.keys()


@pytest.mark.parametrize(
    ("kind", "name"), [(each, field.name) for each in IN_COMMAND for field in dataclasses.fields(each)]
)
def test_an_option_is_a_flag_of_the_command(kind: type[Any], name: str) -> None:
    field = kind.__dataclass_fields__[name]
    assert "command" in field.metadata, "declare it with `option`, and say how the command spells it, or None"
    flag = flag_of(field)
    if flag is None:
        return
    [param] = [param for param in LEARN.params if param.name == name]
    assert isinstance(param, click.Option) and param.help == flag.help and param.default is None
    value = another(kind, name)
    text = str(value)
    spelled = (param.opts if value else param.secondary_opts)[:1] if isinstance(value, bool) else [param.opts[-1], text]
    task = ["--task", "multilabel"] if name == "threshold" else []
    given = LEARN.make_context("learn", ["d.vw", *spelled, *task]).params
    assert given_options(given, kind) == {name: value}
    if kind is op.KernelModel and name == "readout":
        value = given[name] = "last"  # all others are refused
    made = kind(**given_options(given, kind), task="multilabel" if name == "threshold" else "auto")
    assert value == "last" or repr(getattr(made, name)) != repr(getattr(kind(task=made.task), name))
    other = next(each for each in IN_COMMAND if name not in each.__dataclass_fields__) if name not in common() else None
    if other is not None:
        with pytest.raises(click.UsageError, match="no such option"):
            given_options(given, other)


def common() -> set[str]:
    return set.intersection(*(set(kind.__dataclass_fields__) for kind in IN_COMMAND))


def test_a_new_option_needs_no_other_file() -> None:
    """A field added to a group is an argument, is in files, and has a flag with its help."""

    @dataclasses.dataclass(kw_only=True, repr=False, eq=False)
    class WiderOptions(LinearOptions):
        shade: int = option(3, options.Flag("How dark it is.", least=0))

    @dataclasses.dataclass(repr=False, eq=False)
    class Wider(op.LinearModel, WiderOptions):  # type: ignore[misc]
        pass

    made = Wider("pa1", shade=5)
    config, arrays = made.state()
    assert config["shade"] == 5 and Wider.from_state(config, arrays).shade == 5 and made.new_model().shade == 5
    flags = {field.name: flag.help for field, flag in flags_of(*GROUPS, WiderOptions)}
    assert flags["shade"] == "How dark it is."


def test_an_option_stands_in_one_file() -> None:
    """No function of models, estimators and command takes or passes on an option by its name."""
    names = {field.name for group in GROUPS for field in dataclasses.fields(group)}
    # Other learners have these, too; and what a task or a file decides is passed on.
    names -= {"rule", "task", "hash_bits", "fit_intercept", "members", "kernel", "threshold", "alpha", "eta"}
    names -= {"readout"}  # of a member: "pa1@average"
    assert {"intercept_scaling", "max_classes", "radius", "budget"} <= names
    found = []
    for path in (path for room in ("models", "estimators", "cli") for path in SOURCE.glob(f"{room}/*.py")):
        if path.name in ("reference.py", "option_values.py", "radius.py"):  # the oracle, the checks, a report
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword | ast.arg) and node.arg in names:
                found.append(f"{path.name}:{node.lineno} {node.arg}")
    assert found == []


def test_limits_of_estimators_are_kept() -> None:
    model = op.LinearClassifier(max_features=2, max_classes=2)
    model.learn_one({"a": 1.0, "b": 1.0}, "x")
    model.learn_one({"a": 1.0}, "y")
    with pytest.raises(FeatureError, match="max_features is 2"):
        model.learn_one({"c": 1.0}, "x")
    with pytest.raises(LabelError, match="max_classes"):
        model.learn_one({"a": 1.0}, "z")
    assert model.t_ == 2
    with pytest.raises(FeatureError, match="max_features is 1"):
        op.LinearRegressor(max_features=1).fit([[1.0, 2.0]], [1.0])
