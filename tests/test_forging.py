"""Files that a forger wrote: of every kind of learner, each is refused as a file or loads and can be used."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.forging import Forge
from test_learner_contract import CASES, IDS

from onepass import registry
from onepass.errors import ModelFileError, UnknownTypeError

FILES = 20


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
