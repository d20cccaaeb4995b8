"""Files that a forger wrote: of every kind of learner, each is refused as a file or loads and can be used."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cache_forging import SOURCES, CacheForge
from support.forging import Forge, inside
from support.learners import LEARNERS, NESTED
from support.positions import position
from test_learner_contract import CASES, IDS

import onepass as op
from onepass.errors import ModelFileError, UnknownTypeError
from onepass.persistence import registry, store

FILES = 20
CACHES = 60


@pytest.mark.full(most=16)
@pytest.mark.parametrize(("number", "make"), [(number, *case.values) for number, case in enumerate(CASES)], ids=IDS)
def test_a_forged_file_is_refused_or_can_be_used(
    number: int, make: Callable[[], Any], tmp_path: Path, record_property: Callable[[str, Any], None]
) -> None:
    forge = Forge(make(), number)
    refused = used = 0
    for seed in range(FILES):
        data = forge.file(np.random.default_rng([seed, number]))
        if data is None:
            continue
        (tmp_path / "m.onepass").write_bytes(data)
        try:
            learner = registry.load(tmp_path / "m.onepass")
        except (ModelFileError, UnknownTypeError):
            refused += 1
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                forge.use(learner)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__)[-2:])
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{where}")
        used += 1
    record_property("cells", refused + used)
    assert refused


def test_a_whole_file_can_be_used(tmp_path: Path) -> None:
    for case in CASES[::7]:
        forge = Forge(case.values[0]())
        registry.save(registry.made(forge.kind, forge.config, forge.arrays), tmp_path / "m.onepass")
        forge.use(registry.load(tmp_path / "m.onepass"))


def put(at: int, number: float) -> Callable[[Any], Any]:
    """Another number in an array."""

    def work(array: Any) -> Any:
        array.reshape(-1)[at] = number
        return array

    return work


MATRIX = {"type": "kernel:Precomputed", "params": {"gram": [[1.0]]}}

WIDTH, COLUMNS, POSITIONAL = (position("kernel", name) for name in ("width", "columns", "positional"))

# Learners, what is changed in their files, and into what (or how): found by many more files than are tried here.
FOUND: list[tuple[str, dict[str, Any]]] = [
    ("DriftReset", {"learned/detectors/0/own/sums": [[0.0], 0.0]}),
    ("DriftReset", {"learned/detectors/0/own/spreads": [[0.0]]}),
    ("DriftReset", {"learned/detectors/0/own/width": 2**40}),
    ("StandardScaler", {"learned/rows": "12"}),
    ("MinMaxScaler", {"learned/used": {}}),
    ("TaskFeatures", {"params/task": [[]]}),
    ("DictionaryLearning", {"params/max_sweeps": 10**30}),
    ("GaussianMixture", {"params/init_size": 10**30}),
    ("KMeans", {"learned/filled": 0}),
    ("KMeans", {"arrays/waiting_weight": np.full(12, -1.0)}),
    ("Replay", {"arrays/W": np.zeros((1, 6))}),
    ("ExpertEnsemble", {"arrays/alive": np.zeros(3, dtype=np.uint8)}),
    ("Ranker", {"arrays/extra.values": np.zeros((39, 1))}),
    ("Ranker", {"arrays/extra.relevance": np.zeros((12, 1))}),
    # Rows of another width were written behind a buffer of the support vectors' width.
    (
        "KernelClassifier-2",
        {"arrays/support": np.ones((6, 1)), "arrays/scalars": put(position("kernel", "width"), 1.0)},
    ),
    (
        "KernelClassifier-2",
        {
            "arrays/scalars": lambda s: put(position("kernel", "columns"), 0.0)(
                put(position("kernel", "positional"), 0.0)(s)
            )
        },
    ),
    ("KernelClassifier-2", {"arrays/support": put(0, 1e200)}),
    ("LinearRegressor-1", {"arrays/scalars": put(position("linear", "positional"), 1.0)}),
    ("KernelClassifier-1", {"learned/classes": ["a", "b", "c"], "arrays/coefficients": np.ones((5, 3))}),
    ("KernelModel costs", {"declared": False}),
    ("KernelModel projected", {"arrays/support": np.zeros((3, 5))}),
    ("KernelModel hashed", {"arrays/scalars": put(WIDTH, 2.0**40)}),
    ("LaSVMClassifier", {"learned/kernel": MATRIX}),
    ("LaSVMClassifier-1", {"learned/kernel": MATRIX, "arrays/x": np.full((10, 1), 1e6), "learned/columns": 1}),
    ("LaSVMClassifier", {"arrays/index": put(-1, 2.0**40)}),
    ("LinearModel", {"arrays/scalars": put(position("linear", "A"), 2.0)}),
    ("KMeans", {"params/n_clusters": 2**50}),
    ("reset continual", {"learned/detectors/0/own/total": 1e300}),
    ("ImportanceSampling", {"params/samples": 2**27}),
    ("reset continual", {"learned/bases/0/names": 5}),
    ("DriftFade", {"learned/t": 10**30}),
    ("one-vs-all of LASVM", {"learned/bases/0/learner/learned/classes": ["a", "b"]}),
]
COSTS = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
ALSO: dict[str, Callable[[], Any]] = {
    "KernelModel costs": lambda: op.KernelModel("mira", classes=["a", "b", "c"], costs=COSTS),
    "KernelModel projected": lambda: op.KernelModel("perceptron", kernel="linear", budget="projectron:B=3"),
    "KernelModel hashed": lambda: op.KernelModel(hash_bits=5),
}


def forge_of(case: str) -> Forge:
    every = {**LEARNERS, **NESTED}
    return Forge(ALSO[case]()) if case in ALSO else Forge(every[case](), list(every).index(case))


def change(forge: Forge, changes: dict[str, Any], path: Path) -> None:
    """Write the learner's file with other values in some places."""
    parts: Any = {**forge.config, "arrays": forge.arrays}
    for place, value in changes.items():
        *outer, last = [int(key) if key.isdigit() else key for key in place.split("/")]
        parent = inside(parts, tuple(outer))
        assert last in parent or isinstance(parent, list)
        parent[last] = value(parent[last]) if callable(value) else value
    path.write_bytes(store.to_bytes(forge.kind, {key: parts[key] for key in forge.config}, forge.arrays))


@pytest.mark.parametrize(("case", "changes"), FOUND, ids=[f"{case}/{' '.join(changes)}" for case, changes in FOUND])
def test_a_forgery_that_was_taken_once_is_refused(case: str, changes: dict[str, Any], tmp_path: Path) -> None:
    change(forge_of(case), changes, tmp_path / "m.onepass")
    with pytest.raises(ModelFileError):
        registry.load(tmp_path / "m.onepass")


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        ("MultinomialNB", {"learned/columns": 0, "arrays/count": np.zeros((2, 0))}),
        ("Replay", {"params/memory": 3}),
        ("KMeans", {"params/n_clusters": 2**20}),
        ("StructuredLearner", {"params/cost_transform": []}),
    ],
)
def test_an_odd_file_that_crashed_once_can_be_used(case: str, changes: dict[str, Any], tmp_path: Path) -> None:
    forge = forge_of(case)
    change(forge, changes, tmp_path / "m.onepass")
    learner = registry.load(tmp_path / "m.onepass")
    forge.use(learner)
    forge.stretch(learner)


@pytest.mark.parametrize("name", SOURCES)
def test_a_forged_cache_is_refused_or_gives_rows(
    name: str, tmp_path: Path, record_property: Callable[[str, Any], None]
) -> None:
    forge = CacheForge(tmp_path / name, *SOURCES[name])
    found = []
    for seed in range(CACHES):
        rng = np.random.default_rng([seed, list(SOURCES).index(name)])
        if not forge.forge(rng):
            continue
        try:
            found.append(forge.use(rng))
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__)[-3:])
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{where}")
    record_property("cells", len(found))
    assert found.count("refused") > CACHES // 4 and found.count("used") > CACHES // 100
