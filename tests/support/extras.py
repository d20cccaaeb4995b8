"""Packages that tests need and users may lack."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def require_extra(name: str) -> Any:
    """The module, or a skip; with ONEPASS_REQUIRE_EXTRAS=1, which CI sets, a failure in place of the skip."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if os.environ.get("ONEPASS_REQUIRE_EXTRAS") == "1":
            raise AssertionError(f"{name} is not installed, and ONEPASS_REQUIRE_EXTRAS=1 requires it") from error
        pytest.skip(f"needs {name}, which is not installed", allow_module_level=True)
