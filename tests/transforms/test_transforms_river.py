"""River's own checks of a transform, through an adapter."""

from __future__ import annotations

import warnings

import pytest
from river import checks as river_checks
from river import preprocessing

from onepass import transforms as T

# -- River's checks, through an adapter --------------------------------------------------------------------------------


class RiverScaler(preprocessing.StandardScaler):
    """Ours under River's contract."""

    def __init__(self):
        super().__init__()
        self._ours = T.StandardScaler()

    def learn_one(self, x):
        self._ours.learn_one(x)

    def transform_one(self, x):
        return self._ours.transform_one(x)


# Not those about the adapter's docstring, and about River's own learn_many.
CHECKS = [
    check
    for check in river_checks.yield_checks(RiverScaler())
    if check.__name__ != "check_doc" and "many" not in check.__name__
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_river_checks(check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(RiverScaler())
