"""Transforms that keep names or statistics keep no more of them than they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.refusal import refusal

import onepass as op
from onepass import transforms
from onepass.errors import FeatureError, ParameterError
from onepass.persistence import registry
from onepass.scheme import sizes
from onepass.transforms import base, encoding, scaling

NAMED: dict[str, Callable[..., Any]] = {
    "encoder": transforms.OneHotEncoder,
    "scaler": lambda **given: transforms.StandardScaler(with_mean=False, **given),
    "range": transforms.MinMaxScaler,
    "hasher": lambda: transforms.FeatureHasher(1, keep_names=True),
}


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(kind, limit) for kind in NAMED for limit in ("option", "environment") if (kind, limit) != ("hasher", "option")],
)
def test_names_that_transforms_keep_have_a_limit(kind: str, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = NAMED[kind]
    if limit == "environment":
        monkeypatch.setenv("ONEPASS_MAX_FEATURES", "3")
        for module in (sizes, base, encoding, scaling):
            monkeypatch.setattr(module, "FEW", 3)
    given = {"max_features": 3} if limit == "option" else {}
    few = [{"a": 1.0, "b": 1.0}, {"c": 1.0}]
    alone = make(**given)
    for chain in (alone, make(**given) | op.LinearClassifier()):
        answers, answer = ([["u", "v"]], ["v"]) if chain is not alone else ([], [])
        chain.learn_many(few, *answers)
        chain.learn_one(few[1], *answer)
        message = "4 features, but max_features is 3; "
        refusal(FeatureError, message, chain, "learn_one", {"d": 1.0}, *answer)
        refusal(FeatureError, f"row 1: {message}", chain, "learn_many", [few[1], {"d": 1.0}], *answers)
        chain.transform_one({"d": 1.0})
        again = registry.restored(*registry.nested(chain))
        refusal(FeatureError, message, again, "learn_one", {"d": 1.0}, *answer)
    frame = make(**given)
    X = pd.DataFrame(np.arange(8.0).reshape(2, 4), columns=list("abcd"))
    for rows in (X, X.to_numpy()) if kind != "hasher" else (X,):
        refusal(FeatureError, "features, but max_features is 3", frame, "learn_many", rows)
    if limit == "option":
        for wrong in (0, True, 1.5, "7"):
            with pytest.raises(ParameterError, match="max_features="):
                make(max_features=wrong).learn_one({"a": 1.0})


def test_the_statistics_of_scalers_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "1100K")
    scaler = transforms.StandardScaler(with_mean=False)
    scaler.learn_many([{"a": 1.0}])
    wide = {f"f{i}": 1.0 for i in range(60_000)}
    message = "the statistics of 60001 features would take .*, but the limit is 1.13 MB"
    refusal(FeatureError, message, scaler, "learn_one", wide)
    refusal(FeatureError, message, scaler, "learn_many", [wide])
