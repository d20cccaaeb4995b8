"""What kernel learners store stays within the limit of memory; what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from support.refusal import refusal

import onepass as op
from onepass import transforms
from onepass.errors import FeatureError, FullError, LabelError
from onepass.models.lasvm import LasvmModel
from onepass.persistence import store


@pytest.mark.parametrize("budget", [None, "projectron:eta=0.01", "forgetron:B=90"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
def test_stored_vectors_have_a_limit(form: Any, budget: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "1100K")
    X, y = np.random.default_rng(0).normal(size=(12, 20_000)), [0, 1] * 6
    model, singly = (op.KernelModel("perceptron", kernel="rbf:gamma=1", budget=budget) for _ in "12")
    message = "one more stored vector would take more memory than the limit, 1.13 MB; give the learner a"
    with pytest.raises(FullError, match=message) as told:
        model.learn_many(form(X), y)
    row = told.value.row
    assert row == model.t and row == {np.asarray: 6}.get(form, 3)
    for k in range(row):
        singly.learn_one(form(X[k : k + 1])[0], y[k])
    assert store.to_bytes("any", *singly.state()) == store.to_bytes("any", *model.state())
    refusal(FullError, message, singly, "learn_one", form(X[row : row + 1])[0], y[row])
    chain = transforms.StandardScaler(with_mean=False) | op.KernelClassifier("perceptron", kernel="rbf:gamma=1")
    with pytest.raises(FullError) as told:
        chain.learn_many(form(X), y)
    assert told.value.row == chain["kernelclassifier"].t_ == chain["standardscaler"].n_samples_seen_ == row
    within = op.KernelModel("perceptron", kernel="rbf:gamma=1", budget="forgetron:B=2")
    within.learn_many(form(X), y)
    assert within.t == 12


def test_classes_of_stored_vectors_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = op.KernelModel("perceptron", kernel="linear")
    model.learn_many(np.random.default_rng(0).normal(size=(2000, 2)), np.arange(2000) % 3)
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "1100K")
    message = r"stored vectors of 2 features x \d+ classes of Perceptron\(\) would take .*; give the learner a budget"
    refusal(LabelError, message, model, "learn_many", np.ones((200, 2)), list(range(200)))


def test_names_that_come_after_a_frame_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = op.KernelModel("perceptron", kernel="linear")
    X = np.random.default_rng(0).normal(size=(40, 3))
    model.learn_many(pd.DataFrame(X, columns=list("abc")), [0, 1] * 20)
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "1100K")
    wide = {f"f{i}": 1.0 for i in range(30_000)}
    message = r"stored vectors of 30003 features of Perceptron\(\) would take .*; give the learner a budget"
    refusal(FeatureError, message, model, "learn_one", wide, 1)
    refusal(FeatureError, message, model, "learn_many", [wide], [1])


@pytest.mark.parametrize("make", [lambda: op.KernelModel("perceptron", kernel="rbf:gamma=1"), LasvmModel])
def test_a_limit_that_is_none_refuses_the_row_that_needs_it(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = np.random.default_rng(0).normal(size=(12, 20_000)), [0, 1] * 6
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "much")
    model = make()
    with pytest.raises(FullError, match="row 6: ONEPASS_MAX_MEMORY=much: expected bytes") as told:
        model.learn_many(X, y)
    assert told.value.row == model.t == 6
