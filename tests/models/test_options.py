"""The options of models: one field feeds the model, its estimators and its files."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

import onepass as op
from onepass.errors import DamagedFileError
from onepass.models.options import LATE, InterceptOptions, LimitOptions

SOURCE = Path(op.__file__).parent
ESTIMATORS = {
    op.LinearClassifier: op.LinearModel,
    op.LinearRegressor: op.LinearModel,
    op.MultilabelClassifier: op.LinearModel,
    op.OneClass: op.LinearModel,
    op.KernelClassifier: op.KernelModel,
    op.KernelRegressor: op.KernelModel,
}
OTHER = {
    "rule": "perceptron:beta=0.5",
    "task": "multiclass",
    "hash_bits": 5,
    "fit_intercept": False,
    "intercept_scaling": 3.0,
    "bias_in_norm": False,
    "readout": "average",
    "multiclass": "uniform",
    "costs": [[0, 1, 2], [1, 0, 1], [2, 1, 0]],
    "threshold": "calibrated",
    "radius": 2.5,
    "kernel": "rbf:gamma=0.25",
    "budget": "oldest:B=7",
    "max_classes": 9,
    "max_features": 99,
}


def shared(estimator: type[Any]) -> list[str]:
    own = [field.name for field in dataclasses.fields(estimator)]
    return [name for name in own if name in {field.name for field in dataclasses.fields(ESTIMATORS[estimator])}]


@pytest.mark.parametrize(("estimator", "name"), [(each, name) for each in ESTIMATORS for name in shared(each)])
def test_an_option_of_an_estimator_reaches_its_model(estimator: type[Any], name: str) -> None:
    value = OTHER[name]
    if name == "fit_intercept" and issubclass(ESTIMATORS[estimator], op.KernelModel):
        value = True
    if estimator in (op.LinearRegressor, op.OneClass, op.KernelRegressor) and name == "rule":
        value = "pa1:C=0.5"
    given = {"rule": "pa1", name: value}
    classes = [0, 1, 2] if name == "costs" else None
    model = estimator(**given).new_model(classes)
    usual = estimator(**{**given, name: next(f.default for f in dataclasses.fields(estimator) if f.name == name)})
    assert repr(getattr(model, name)) != repr(getattr(usual.new_model(classes), name))
    again = type(model).from_state(*model.state())
    assert repr(getattr(again, name)) == repr(getattr(model, name))


@pytest.mark.parametrize("kind", [op.LinearModel, op.KernelModel])
def test_a_file_holds_every_option(kind: type[Any]) -> None:
    model = kind("pa1", max_classes=5, max_features=50)
    config, arrays = model.state()
    names = {field.name for field in dataclasses.fields(kind)}
    assert names <= set(config)
    assert kind.from_state(config, arrays).state()[0] == config
    for field in dataclasses.fields(kind):
        without = {key: value for key, value in config.items() if key != field.name}
        if field.metadata.get("late"):
            assert getattr(kind.from_state(without, arrays), field.name) == field.default
        else:
            with pytest.raises(DamagedFileError):
                kind.from_state(without, arrays)


@pytest.mark.parametrize("kind", [*ESTIMATORS, *dict.fromkeys(ESTIMATORS.values())])
def test_signatures_name_every_option(kind: type[Any]) -> None:
    """scikit-learn, help() and type checkers read them; `rule` (and a model's task) alone may be given by place."""
    parameters = dict(inspect.signature(kind).parameters)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    parameters.pop("classes", None)
    assert parameters.keys() == fields.keys()
    assert all(parameters[name].default == field.default for name, field in fields.items())
    by_place = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert by_place == (["rule"] if kind in ESTIMATORS else ["rule", "task"])
    if kind in ESTIMATORS:
        assert kind().get_params().keys() == fields.keys()


def test_an_option_stands_in_one_file() -> None:
    """No function of models and estimators takes or passes on an option by its name; the reference learner is apart."""
    names = {field.name for group in (InterceptOptions, LimitOptions) for field in dataclasses.fields(group)}
    names -= {"rule", "hash_bits", "fit_intercept"}  # other learners have these, too
    assert {"intercept_scaling", "max_classes"} <= names and LATE["late"]
    found = []
    for path in [*SOURCE.glob("models/*.py"), *SOURCE.glob("estimators/*.py")]:
        if path.name in ("reference.py", "ensemble.py", "lasvm.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword | ast.arg) and node.arg in names:
                found.append(f"{path.name}:{node.lineno} {node.arg}")
    assert found == []
