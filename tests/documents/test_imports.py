"""Importing is cheap, and scikit-learn comes only with an estimator."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass import rules
from onepass.models.linear import LinearModel

PACKAGE = Path(onepass.__file__).parent


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import onepass", ["scipy", "sklearn", "pandas", "click", "onepass._native"]),
        (
            "from onepass.models.linear import LinearModel; LinearModel('pa1').learn_one({'a': 1}, 'x')",
            ["scipy", "sklearn", "safetensors"],
        ),
        ("import onepass.cli", ["scipy", "sklearn", "pandas", "matplotlib"]),
        ("from onepass import prequential, datasets, rules, check_rule", ["scipy", "sklearn", "pandas"]),
        ("from onepass import rules; rules.make('pa1'); rules.PA1", ["onepass.rules.gaussian", "onepass.rules.ftrl"]),
    ],
    ids=["onepass", "model", "cli", "evaluate", "rules"],
)
def test_what_an_import_brings(statement, heavy):
    loaded = json.loads(run(f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"))
    assert not set(heavy) & set(loaded)


def test_import_time():
    code = "import time, numpy; t = time.process_time(); import onepass.models.linear; print(time.process_time() - t)"
    assert min(float(run(code)) for _ in range(3)) < 0.3


def test_every_public_name_resolves():
    for name in onepass.__all__:
        assert getattr(onepass, name) is not None
    assert set(onepass.__all__) <= set(dir(onepass))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = onepass.nothing


def test_types_of_lazily_loaded_names_are_declared():
    declared = ast.parse((PACKAGE / "__init__.pyi").read_text())
    names = {
        name.asname for node in declared.body if isinstance(node, ast.ImportFrom) and node.level for name in node.names
    }
    assert names - {None} == set(onepass.__all__)


def test_only_the_registry_and_packages_import_by_name():
    """`importlib.import_module` and `__import__` hide an import from the check of layers."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(ast.unparse(call.func).rpartition(".")[2] in ("import_module", "__import__") for call in calls):
            found.add(str(path.relative_to(PACKAGE)))
    assert {name for name in found if not name.endswith("__init__.py")} == {"persistence/registry.py"}


def test_every_rule_is_where_its_name_says():
    for name, kind in rules.RULES.items():
        assert kind.name == name
        assert kind is getattr(rules, kind.__name__)
    for name in rules.__all__:
        assert getattr(rules, name) is not None
    assert {"RULES", "make", *(kind.__name__ for kind in rules.RULES.values())} < set(rules.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = rules.Nothing


def test_model_and_estimator_open_each_others_files(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 3))
    y = (X[:, 0] > 0).astype(int)
    model = LinearModel("pa1:C=0.1", readout="average")
    model.learn_many(X, y)
    model.save(tmp_path / "model.onepass")
    estimator = onepass.load(tmp_path / "model.onepass")
    assert isinstance(estimator, onepass.LinearClassifier)
    np.testing.assert_array_equal(estimator.predict(X), model.predict_many(X))
    estimator.save(tmp_path / "estimator.onepass")
    again = LinearModel.load(tmp_path / "estimator.onepass")
    again.learn_many(X, y)
    estimator.partial_fit(X, y)
    np.testing.assert_array_equal(again.score_many(X)[:, 0], estimator.decision_function(X))
    numbers = onepass.LinearRegressor("nlms").fit(X, X[:, 1])
    numbers.save(tmp_path / "numbers.onepass")
    np.testing.assert_array_equal(LinearModel.load(tmp_path / "numbers.onepass").predict_many(X), numbers.predict(X))
