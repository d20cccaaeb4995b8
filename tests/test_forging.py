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
from test_learner_contract import CASES, IDS

from onepass import registry, store
from onepass.errors import DamagedFileError, ModelFileError, UnknownTypeError

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


# Cases, what is changed in their files, and into what: found by many more files than are tried here.
FOUND: list[tuple[str, str, Any]] = [
    ("DriftReset", "learned/detectors/0/own/sums", [[0.0], 0.0]),
    ("DriftReset", "learned/detectors/0/own/spreads", [[0.0]]),
    ("DriftReset", "learned/detectors/0/own/width", 2**40),
    ("StandardScaler", "learned/rows", "12"),
    ("MinMaxScaler", "learned/used", {}),
    ("TaskFeatures", "params/task", [[]]),
    ("DictionaryLearning", "params/max_sweeps", 10**30),
    ("GaussianMixture", "params/init_size", 10**30),
    ("KMeans", "learned/filled", 0),
    ("KMeans", "arrays/waiting_weight", np.full(12, -1.0)),
    ("Replay", "arrays/W", np.zeros((1, 6))),
    ("ExpertEnsemble", "arrays/alive", np.zeros(3, dtype=np.uint8)),
    ("Ranker", "arrays/extra.values", np.zeros((39, 1))),
]


@pytest.mark.parametrize(("case", "place", "value"), FOUND, ids=[f"{case}/{place}" for case, place, _ in FOUND])
def test_a_forgery_that_was_taken_once_is_refused(case: str, place: str, value: Any, tmp_path: Path) -> None:
    forge = Forge(CASES[IDS.index(case)].values[0](), IDS.index(case))
    parts: Any = {**forge.config, "arrays": forge.arrays}
    *outer, last = [int(key) if key.isdigit() else key for key in place.split("/")]
    parent = inside(parts, tuple(outer))
    assert last in parent
    parent[last] = value
    (tmp_path / "m.onepass").write_bytes(store.to_bytes(forge.kind, forge.config, forge.arrays))
    with pytest.raises(DamagedFileError):
        registry.load(tmp_path / "m.onepass")


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
