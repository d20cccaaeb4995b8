"""The documents are true: their code runs, and they name everything there is to name."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import importlib
import importlib.util
import inspect
import io
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import onepass
from onepass import budgets, convex, datasets, drift, experts, kernels, metrics, rules
from onepass.compose import continual
from onepass.convex.regret import guarantees
from onepass.scheme import losses, schedules

ROOT = Path(__file__).parent.parent.parent
README, RULES, CONTRIBUTING, EVALUATION, LASVM = (
    ROOT / name for name in ("README.md", "docs/rules.md", "CONTRIBUTING.md", "docs/evaluation.md", "docs/lasvm.md")
)
GAMES = [ROOT / f"docs/{name}.md" for name in ("convex", "experts", "regret")]
LEARNERS = {  # page → the learners it describes
    "mixtures": ("GaussianMixture", "BernoulliMixture"),
    "naive-bayes": (
        *("GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB", "CategoricalNB"),
        *("LVQClassifier", "KNNClassifier"),
    ),
    "clustering": ("KMeans",),
    "decomposition": ("IncrementalPCA", "CCIPCA", "OjaPCA", "DictionaryLearning"),
}
CHANGES = [ROOT / f"docs/{name}.md" for name in ("drift", "continual")]
CONTRACT = ROOT / "docs/learners.md"
PAGES = [ROOT / f"docs/{page}.md" for page in LEARNERS]
ESTIMATORS = ("LinearClassifier", "LinearRegressor", "Ranker", "StructuredLearner")


def code_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("path", [README, CONTRIBUTING, EVALUATION], ids=lambda path: path.name)
def test_code_blocks_run(path, tmp_path, monkeypatch, capsys):
    """In order, in one namespace, as a reader would type them; what a comment promises is printed."""
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks(path)
    assert len(blocks) >= 2
    namespace: dict[str, object] = {"__name__": "document"}
    for block in blocks:
        exec(compile(block, str(path), "exec", dont_inherit=True), namespace)
    if path is README:
        printed = capsys.readouterr().out.splitlines()
        assert printed[1] == "spam"
        assert "from=stranger" in printed[2]
        assert float(printed[0]) == pytest.approx(0.97, abs=0.01)
        assert float(printed[-1]) == pytest.approx(0.97, abs=0.01)


@pytest.mark.parametrize("path", [LASVM, CONTRACT, *GAMES, *PAGES, *CHANGES], ids=lambda path: path.name)
def test_pages_print_what_they_say(path, tmp_path, monkeypatch):
    """Every block of Python is followed by all that it prints."""
    monkeypatch.chdir(tmp_path)
    text = path.read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == len(code_blocks(path)) > 0
    namespace: dict[str, object] = {"__name__": "document"}
    for code, claimed in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(path), "exec", dont_inherit=True), namespace)
        assert printed.getvalue() == claimed


def test_every_option_and_attribute_of_lasvm_is_listed():
    text = LASVM.read_text()
    kind = onepass.LaSVMClassifier
    learned = [name for name in vars(kind) if name.endswith("_") and not name.startswith("_") and name != "classes_"]
    for name in (*kind().get_params(deep=False), *learned, "stopped_by_"):
        assert f"`{name}`" in text, f"{name} is missing in docs/lasvm.md"


def test_pages_have_their_pictures():
    for page in (LASVM, *GAMES, *CHANGES):
        assert page.with_suffix(".svg").exists() and f"]({page.stem}.svg)" in page.read_text()


PICTURES = {
    "draw_lasvm.py": {"lasvm"},
    "draw_regret.py": {page.stem for page in GAMES},
    "draw_learners.py": set(LEARNERS),
    "draw_drift.py": {page.stem for page in CHANGES},
}


@pytest.mark.full(most=1)
@pytest.mark.parametrize("script", PICTURES)
def test_the_pictures_can_be_drawn(script, tmp_path):
    """What is in the repository is what its script draws, but for fonts and versions."""
    to = tmp_path / "lasvm.svg" if script == "draw_lasvm.py" else tmp_path
    subprocess.run([sys.executable, str(ROOT / "scripts" / script), str(to)], check=True)
    assert {path.stem for path in tmp_path.glob("*.svg")} >= PICTURES[script]
    assert all("</svg>" in path.read_text() for path in tmp_path.glob("*.svg"))


@pytest.mark.parametrize(("module", "registries"), [
    (convex, [convex.PLAYERS]), (experts, [experts.ALGORITHMS, experts.BANDITS]),
])  # fmt: skip
def test_every_name_of_convex_and_experts_is_listed(module, registries):
    text = (ROOT / f"docs/{module.__name__.rpartition('.')[2]}.md").read_text()
    for name in module.__all__:
        assert re.search(rf"`{name}[`(]", text), f"{name} is missing"
    for registry in registries:
        for name, kind in registry.items():
            line = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
            assert f"`{kind.__name__}(" in line


def test_every_option_of_the_ensemble_and_every_bound_is_listed():
    text = (ROOT / "docs/experts.md").read_text()
    for option in onepass.ExpertEnsemble().get_params(deep=False):
        assert f"`{option}`" in text, f"ExpertEnsemble's option {option} is missing"
    regret = (ROOT / "docs/regret.md").read_text()
    bounded = [name for name, kind in rules.RULES.items() if guarantees.of(kind(), kind.tasks[0]).bound is not None]
    assert bounded
    for name in bounded:
        assert f"`{name}`" in regret or name == "pocket", f"the bound of {name} is missing in docs/regret.md"


@pytest.mark.parametrize("page", LEARNERS)
def test_every_option_and_attribute_of_the_learners_is_listed(page):
    text = (ROOT / f"docs/{page}.md").read_text()
    assert f"]({page}.svg)" in text and (ROOT / f"docs/{page}.svg").exists()
    for name in LEARNERS[page]:
        kind = getattr(onepass, name)
        learned = [each for base in kind.__mro__ for each in vars(base) if base.__module__.startswith("onepass")]
        learned = [each for each in learned if each.endswith("_") and not each.startswith("_")]
        for each in (*kind().get_params(deep=False), *learned):
            assert f"`{each}`" in text, f"{name}'s {each} is missing in docs/{page}.md"


def test_every_detector_and_continual_learner_is_listed():
    drift_page, continual_page = (page.read_text() for page in CHANGES)
    for name, kind in drift.DETECTORS.items():
        line = next(line for line in drift_page.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"`{kind.__name__}`" in line
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in (drift_page if name == "hddmw" else line), f"{name}'s {field.name} is missing"
    for name in (*drift.__all__, *continual.__all__):
        assert f"`{name}" in drift_page + continual_page or name in ("DETECTORS", "Detector", "make_detector"), name


def test_contributed_rules_pass_their_check():
    namespace: dict[str, object] = {"__name__": "document"}
    for block in code_blocks(CONTRIBUTING):
        exec(compile(block, "CONTRIBUTING.md", "exec", dont_inherit=True), namespace)
    for name in ("SignError", "FastSignError"):
        assert onepass.check_rule(namespace[name]())


@pytest.mark.parametrize(
    "registry", [rules.RULES, losses.LOSSES, schedules.SCHEDULES], ids=["rule", "loss", "schedule"]
)
def test_every_rule_loss_schedule_and_parameter_is_listed(registry):
    text = RULES.read_text()
    for name, kind in registry.items():
        assert f"`{name}" in text, f"{name} is missing in docs/rules.md"
        for field in dataclasses.fields(kind):
            assert re.search(rf"[`(, ]{field.name}[`=]", text), f"{name}'s parameter {field.name} is missing"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_option_is_listed(name):
    text = RULES.read_text()
    for option in getattr(onepass, name)().get_params(deep=False):
        assert f"`{option}`" in text, f"{name}'s option {option} is missing in docs/rules.md"


def test_every_metric_set_and_option_of_evaluation_is_listed():
    text = EVALUATION.read_text()
    for name, kind in metrics.METRICS.items():
        assert f"`{name}`" in text, f"the metric {name} is missing in docs/evaluation.md"
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in text, f"{name}'s parameter {field.name} is missing"
    for name, chosen in datasets.SETS.items():
        assert re.search(rf"`{name}`( ↓| \(partly ↓\)|[ ,|])", text), f"the set {name} is missing"
        marked = re.search(rf"`{name}` (\(partly )?↓", text) is not None
        assert marked == bool(chosen.sources), f"{name}: ↓ means that it can be downloaded"
    for option in list(inspect.signature(onepass.prequential).parameters)[2:]:
        assert f"`{option}`" in text, f"prequential's option {option} is missing"
    for view in metrics.VIEWS:
        assert f"| `{view}` |" in text
    for name in datasets.__all__:
        if isinstance(getattr(datasets, name), type) and issubclass(getattr(datasets, name), datasets.Synthetic):
            assert name == "Synthetic" or f"`{name}" in text, f"the generator {name} is missing"


def test_every_public_name_is_listed():
    text = RULES.read_text()
    for name in onepass.__all__:
        assert f"`{name}`" in text, f"{name} is missing in docs/rules.md"


@pytest.mark.parametrize(
    ("page", "registry"), [("kernels", kernels.KERNELS), ("budgets", budgets.BUDGETS)], ids=["kernel", "budget"]
)
def test_every_kernel_and_budget_is_listed(page, registry):
    text = (ROOT / f"docs/{page}.md").read_text()
    for name, kind in registry.items():
        line = next((line for line in text.splitlines() if line.startswith("| `") and f"`{name}`" in line), "")
        assert f"`{kind.__name__}`" in line, f"{name} is missing in docs/{page}.md"
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in line, f"{name}'s parameter {field.name} is missing in docs/{page}.md"


def test_the_table_of_budgets_says_which_rules_each_admits():
    text = (ROOT / "docs/budgets.md").read_text()
    for name, kind in budgets.BUDGETS.items():
        cells = next(line for line in text.splitlines() if line.startswith(f"| `{name}`")).split("|")
        said = cells[4].strip().split(" ")[0] if not kind.formulas else cells[4].split(", β")[0].strip()
        assert said == (", ".join(kind.formulas) or "any"), name
        tasks = "all" if len(kind.tasks) == 3 else ", ".join(kind.tasks)
        assert cells[5].strip() == tasks, name


@pytest.mark.parametrize("name", ["KernelClassifier", "KernelRegressor"])
def test_every_kernel_option_is_listed(name):
    text = (ROOT / "docs/kernels.md").read_text()
    for option in getattr(onepass, name)().get_params(deep=False):
        assert f"`{option}`" in text, f"{name}'s option {option} is missing in docs/kernels.md"


@pytest.mark.parametrize("page", ["kernels", "budgets"])
def test_pages_run_and_print_what_they_say(page, capsys):
    text = (ROOT / f"docs/{page}.md").read_text()
    code, claimed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()
    exec(compile(code, page, "exec", dont_inherit=True), {"__name__": "document"})
    assert capsys.readouterr().out == claimed


def test_links_resolve():
    for path in (README, CONTRIBUTING, *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:\s]+)", text):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_notation_explains_every_letter_of_the_rules():
    explained = (ROOT / "docs/notation.md").read_text()
    used = set()
    for path in (*(ROOT / "src/onepass/rules").glob("*.py"), *(ROOT / "src/onepass/scheme").glob("*.py")):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Module | ast.ClassDef)]
        used |= set("".join(ast.get_docstring(node) or "" for node in nodes))
    greek = {letter for letter in used if "Α" <= letter <= "ω" or letter in "ℓ∇"}
    assert len(greek) > 20 and greek <= set(explained), f"docs/notation.md lacks {greek - set(explained)}"


def test_rooms_exist():
    """The tour names every room, every module beside them, every native folder, and nothing else."""
    text = (ROOT / "docs/architecture.md").read_text()
    listed = text[text.index("```\nsrc/onepass/") : text.index("tests/            golden/")]
    for folder, part in zip(("src/onepass", "native"), listed.split("native/\n"), strict=True):
        named = set(re.findall(r"^  ([\w.]+)", part, re.MULTILINE))
        there = {path.name for path in (ROOT / folder).iterdir() if path.is_dir() or path.suffix == ".py"}
        assert named == {name for name in there if not name.startswith("__")}, folder


def test_the_pictures_of_the_tour_are_those_of_the_script():
    before = {path: path.read_text() for path in (ROOT / "docs").glob("architecture-*.svg")}
    spec = importlib.util.spec_from_file_location("draw_architecture", ROOT / "scripts/draw_architecture.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert sorted(before.values()) == sorted([drawing.rooms(), drawing.way()])


def test_every_fault_that_mutants_plants_fits_the_code():
    (faults,) = tomllib.loads((ROOT / "scripts/faults.toml").read_text()).values()
    for fault in faults:
        text = (ROOT / fault["file"]).read_text()
        assert text.count(fault["original"]) == 1, f"fault {fault['id']}: {fault['file']} has its text not exactly once"


def test_doctests():
    tried = 0
    for module in pkgutil.walk_packages(onepass.__path__, "onepass."):
        if module.name.endswith("__main__"):
            continue
        result = doctest.testmod(importlib.import_module(module.name), optionflags=doctest.NORMALIZE_WHITESPACE)
        assert result.failed == 0, module.name
        tried += result.attempted
    assert tried > 0
