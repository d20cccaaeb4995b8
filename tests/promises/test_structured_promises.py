"""`StructuredLearner`: the same however examples arrive, in files too; what is malformed changes nothing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from support.direction_rules import DIRECTION_RULES, HalfStep
from support.structured_grid import (
    TAGS,
    Fixed,
    bits,
    saved,
    sentences,
)

import onepass as op
from onepass import rules
from onepass.drift import DriftReset
from onepass.errors import FeatureError, InputError, LabelError, NumericalError, ParameterError
from onepass.estimators.decoders import Multiclass, Sequence
from onepass.estimators.structured import StructuredLearner
from onepass.reductions import OneVsAll
from onepass.transforms import StandardScaler

# -- promise 1 -----------------------------------------------------------------------------------------------------


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("hash_bits", [None, 5])
@pytest.mark.parametrize(
    ("rule", "readout"),
    [(rule, "last") for rule in DIRECTION_RULES] + [("pa1", "average"), (HalfStep(), "average")],
    ids=str,
)
def test_chunks_do_not_matter(rule, readout, hash_bits, tmp_path):
    X, Y, c = sentences()

    def new() -> StructuredLearner:
        return StructuredLearner(rule, Sequence(TAGS), readout=readout, hash_bits=hash_bits)

    one = new()
    for x, y, importance in zip(X, Y, c, strict=True):
        one.learn_one(x, y, importance)
    for size in (len(X), 1, 7):
        chunks, resumed = new(), new()
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            chunks.partial_fit(X[part], Y[part], sample_weight=c[part])
            resumed.partial_fit(X[part], Y[part], sample_weight=c[part])
            if size > 1:
                resumed.save(tmp_path / "between")
                resumed = op.load(tmp_path / "between")
        assert saved(chunks, tmp_path) == saved(resumed, tmp_path) == saved(one, tmp_path)
    again = pickle.loads(pickle.dumps(one))
    assert saved(again, tmp_path) == saved(one, tmp_path)
    assert again.predict(X) == one.predict(X) == [one.predict_one(x) for x in X]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_chunks_do_not_matter_to_the_classifier(form, tmp_path):
    """Without a decoder; labels appear as they come."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.7)
    X = form(table, columns=list("abc")) if form is pd.DataFrame else form(table)
    y = np.array(["red", "green", "blue"])[np.minimum(rng.integers(0, 3, size=40), np.arange(40) // 8)]
    whole = StructuredLearner().partial_fit(X, y)
    chunks, one = StructuredLearner(), StructuredLearner()
    for start in range(0, 40, 9):
        part = X.iloc[start : start + 9] if form is pd.DataFrame else X[start : start + 9]
        chunks.partial_fit(part, y[start : start + 9])
        chunks.save(tmp_path / "between")
        chunks = op.load(tmp_path / "between")
    assert saved(chunks, tmp_path) == saved(whole, tmp_path)
    assert whole.classes_.tolist() == ["red", "green", "blue"]
    if form is not pd.DataFrame:
        for row, label in zip(table, y, strict=True):
            one.learn_one(row, label)
        assert bits(one, tmp_path) == bits(whole, tmp_path)
    np.testing.assert_array_equal(whole.predict(X), [whole.predict_one(row) for row in table])


def test_predict_then_learn_is_the_loop():
    X, Y, _ = sentences()
    loop, expected = StructuredLearner(decoder=Sequence(TAGS)), []
    for x, y in zip(X, Y, strict=True):
        expected.append(loop.predict_one(x))
        loop.learn_one(x, y)
    once = StructuredLearner(decoder=Sequence(TAGS))
    assert once.predict_then_learn(X, Y) == expected
    assert once.weights_ == loop.weights_


# -- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        Sequence((1, "two", (3, "x"), None, b"y"), transitions=False),
        Multiclass(("A", 2), costs=((0.0, 0.5), (2.0, 0.0))),
    ],
)
def test_our_decoders_are_kept_in_the_file(decoder, tmp_path):
    learner = StructuredLearner(rules.PA1(0.3), decoder, cost_transform="identity", passes=2)
    x, y = ([["a"], ["b"]], [(3, "x"), None]) if isinstance(decoder, Sequence) else ({"a": 1.0}, 2)
    learner.learn_one(x, y)
    learner.save(tmp_path / "m")
    for again in (op.load(tmp_path / "m"), StructuredLearner.load(tmp_path / "m")):
        assert again.get_params() == learner.get_params()
        assert again.predict_one(x) == learner.predict_one(x)
        assert saved(again, tmp_path) == saved(learner, tmp_path)


def test_a_decoder_of_yours_is_given_again(tmp_path):
    learner = StructuredLearner("pa", Fixed(), selection="prediction")
    learner.learn_one("x", 0)
    learner.save(tmp_path / "m")
    with pytest.raises(ParameterError, match=r"Fixed.*StructuredLearner\.load\(path, decoder=") as info:
        op.load(tmp_path / "m")
    assert "structured_grid.Fixed" in str(info.value)
    again = StructuredLearner.load(tmp_path / "m", decoder=Fixed())
    assert again.weights_ == learner.weights_
    again.learn_one("x", 1)
    with pytest.raises(ParameterError):
        StructuredLearner.load(tmp_path / "m")


def test_other_files_are_not_structured_learners(tmp_path):
    op.LinearClassifier().fit([[1.0], [2.0]], [0, 1]).save(tmp_path / "m")
    with pytest.raises(ParameterError, match="holds no StructuredLearner"):
        StructuredLearner.load(tmp_path / "m")


# -- promise 2 -----------------------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
GOOD: tuple[list[Any], list[Any]] = ([["a", "b"]], [["A", "B"]])

BAD = {
    "NaN": ([[{"f": NAN}]], [["A"]], InputError, "example 1: position 0: feature 'f' must be a finite"),
    "infinity": ([[[1.0, INF]]], [["A"]], InputError, "finite"),
    "None in a position": ([["a", None]], [["A", "B"]], InputError, "position 1"),
    "nested": ([[{"f": [1]}]], [["A"]], InputError, "number"),
    "a number for x": ([3], [["A"]], InputError, "sequence"),
    "a mapping for x": ([{"a": 1}], [["A"]], InputError, "sequence"),
    "None for x": ([None], [["A"]], InputError, "sequence"),
    "unknown label": ([["a"]], [["Z"]], LabelError, "'Z' is not one of"),
    "unhashable label": ([["a"]], [[["A"]]], LabelError, "is not one of"),
    "short y": ([["a", "b"]], [["A"]], LabelError, "2 positions"),
    "a word for y": ([["a"]], ["A"], LabelError, "list of labels"),
    "a number for y": ([["a"]], [3], LabelError, "list of labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_input_changes_nothing(case, tmp_path):
    X, Y, error, text = BAD[case]
    learner = StructuredLearner("pa1", Sequence(TAGS)).fit(*sentences()[:2])
    before = saved(learner, tmp_path)
    for call in (learner.partial_fit, learner.fit, learner.learn_many, learner.predict_then_learn):
        with pytest.raises(error, match=text):
            call(GOOD[0] + X, GOOD[1] + Y)
        assert saved(learner, tmp_path) == before
    with pytest.raises(error):
        learner.learn_one(X[0], Y[0])
    assert saved(learner, tmp_path) == before
    learner.partial_fit(*GOOD)  # and it goes on
    assert saved(learner, tmp_path) != before


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m: m.partial_fit(GOOD[0], []), InputError),
        (lambda m: m.partial_fit([], []), InputError),
        (lambda m: m.fit([], []), InputError),
        (lambda m: m.partial_fit("ab", "AB"), InputError),
        (lambda m: m.partial_fit(None, GOOD[1]), InputError),
        (lambda m: m.partial_fit(GOOD[0], None), InputError),
        (lambda m: m.partial_fit(*GOOD, classes=["A"]), ParameterError),
        (lambda m: m.partial_fit(*GOOD, sample_weight=[-1.0]), InputError),
        (lambda m: m.partial_fit(*GOOD, sample_weight=[1.0, 2.0]), InputError),
        (lambda m: m.learn_one(GOOD[0][0], GOOD[1][0], -1.0), InputError),
        (lambda m: m.learn_one(GOOD[0][0], GOOD[1][0], NAN), InputError),
        (lambda m: m.predict([["a", {"f": NAN}]]), InputError),
    ],
)
def test_malformed_calls_change_nothing(call, error, tmp_path):
    learner = StructuredLearner("pa1", Sequence(TAGS)).fit(*sentences()[:2])
    before = saved(learner, tmp_path)
    with pytest.raises(error):
        call(learner)
    assert saved(learner, tmp_path) == before


ROWS = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.partial_fit([[1, 2, NAN]], [1]), InputError, r"X\[0, 2\] is NaN"),
        (lambda m: m.partial_fit(sparse.csr_array([[0, 0, INF]]), [1]), InputError, "inf"),
        (lambda m: m.learn_one([1.0, NAN], 1), InputError, "finite"),
        (lambda m: m.learn_one({"a": NAN}, 1), InputError, "finite"),
        (lambda m: m.learn_one(ROWS, 1), FeatureError, "one row"),
        (lambda m: m.learn_one(ROWS[0], 7), LabelError, "declared"),
        (lambda m: m.learn_one(ROWS[0], None), LabelError, "None"),
        (lambda m: m.learn_one(ROWS[0], [1]), LabelError, "hashable"),
        (lambda m: m.partial_fit(ROWS, [1, 7]), LabelError, "declared"),
        (lambda m: m.partial_fit(ROWS, [1]), InputError, "2 rows"),
        (lambda m: m.partial_fit(ROWS, [0.5, 1.5]), LabelError, "continuous"),
        (lambda m: m.partial_fit(ROWS, [0, 1], classes=[0, 7]), LabelError, "differ"),
        (lambda m: m.partial_fit(np.ones((2, 4)), [0, 1]), InputError, "4 features"),
        (lambda m: m.fit(np.ones((2, 4)), [0, NAN]), LabelError, "NaN"),
        (lambda m: m.fit([[1, 2], [1, NAN]], [0, 1]), InputError, "NaN"),
        (lambda m: m.fit(ROWS, [0, 1], sample_weight=[0, 0]), InputError, "nothing to fit"),
    ],
)
def test_malformed_rows_change_nothing(call, error, text, tmp_path):
    learner = StructuredLearner().fit(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 3)
    before = saved(learner, tmp_path)
    with pytest.raises(error, match=text):
        call(learner)
    assert saved(learner, tmp_path) == before


def test_first_call_refused_leaves_nothing():
    learner = StructuredLearner()
    for call in (learner.fit, learner.partial_fit):
        with pytest.raises(InputError):
            call([[1.0, NAN], [0.0, 1.0]], [0, 1])
        assert set(vars(learner)) == set(learner.get_params())


def test_labels_that_read_the_same_are_refused(tmp_path):
    learner = StructuredLearner()
    learner.learn_one({"a": 1.0}, 1)
    before = saved(learner, tmp_path)
    with pytest.raises(LabelError, match="as text"):
        learner.learn_one({"a": 1.0}, "1")
    assert saved(learner, tmp_path) == before


def test_overflow_refuses_its_example(tmp_path):
    X = [["a"], [{"a": 1e200}], ["b"]]
    Y = [["B"], ["A"], ["B"]]
    loop, chunks = (StructuredLearner("pa", Sequence(TAGS)) for _ in range(2))
    loop.learn_one(X[0], Y[0])
    with pytest.raises(NumericalError):
        loop.learn_one(X[1], Y[1])
    loop.learn_one(X[2], Y[2])
    with pytest.raises(NumericalError, match="row 1") as info:
        chunks.partial_fit(X, Y)
    assert info.value.row == 1 and chunks.t_ == 1
    chunks.partial_fit(X[2:], Y[2:])
    assert saved(loop, tmp_path) == saved(chunks, tmp_path)
    # What is malformed refuses the whole call, also behind a row that overflows.
    before = saved(chunks, tmp_path)
    with pytest.raises(LabelError):
        chunks.partial_fit([*X, ["a"]], [*Y, ["Z"]])
    assert saved(chunks, tmp_path) == before


def test_scores_that_overflow(tmp_path):
    learner = StructuredLearner("sgd:schedule=constant,eta=1e200", Sequence(TAGS))
    learner.learn_one([{"a": 1.0, "b": -1.0}], ["B"])
    before = saved(learner, tmp_path)
    with pytest.raises(NumericalError):
        learner.learn_one([{"a": 1e200, "b": 1e200}, {"b": 1e200}], ["A", "B"])
    with pytest.raises(NumericalError, match="overflow"):
        learner.predict_one([{"a": 1e200, "b": 1e200}])
    assert saved(learner, tmp_path) == before


class Broken(Fixed):
    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


@pytest.mark.parametrize(
    ("methods", "error", "text"),
    [
        ({"cost": lambda y, r: -1.0}, InputError, "cost must be"),
        ({"cost": lambda y, r: NAN}, InputError, "cost must be"),
        ({"features": lambda x, y: {"f": NAN}}, InputError, "finite"),
        ({"features": lambda x, y: {("a", y): 1.0}}, FeatureError, "names must be"),
        ({"decode": lambda w, x: 1 / 0}, ZeroDivisionError, ""),
    ],
)
def test_a_broken_decoder_changes_nothing(methods, error, text, tmp_path):
    learner = StructuredLearner("pa", Fixed(), selection="prediction").fit(["x"], [0])
    before = saved(learner, tmp_path)
    good, learner.decoder = learner.decoder, Broken(**methods)
    with pytest.raises(error, match=text or None):
        learner.learn_one("x", 0)
    with pytest.raises(error, match=text or None):
        learner.partial_fit(["x"], [0])
    learner.decoder = good
    assert saved(learner, tmp_path) == before


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"selection": "worst"}, "one of 'max_loss', 'prediction'"),
        ({"cost_transform": "log"}, "one of 'sqrt', 'identity'"),
        ({"passes": 0}, "passes"),
        ({"rule": "adaline"}, "structured"),
        ({"decoder": Fixed()}, "selection='prediction'"),
        ({"decoder": Fixed}, "expected an object"),
        ({"decoder": object()}, "expected an object"),
        ({"decoder": Broken(loss_augmented=lambda w, x, y: y), "cost_transform": "identity"}, "transform"),
    ],
)
def test_invalid_parameters(params, text):
    with pytest.raises(ParameterError, match=text):
        StructuredLearner(**params).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("wrap", [lambda base: StandardScaler() | base, DriftReset, OneVsAll])
def test_a_classifier_of_rows_inside_a_wrapper(wrap, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), (np.arange(40) % 3).tolist()
    chunks, loop = wrap(StructuredLearner()), wrap(StructuredLearner())
    for start in (0, 7, 30):
        stop = {0: 7, 7: 30, 30: 40}[start]
        chunks.learn_many(X[start:stop], y[start:stop])
    for x, label in zip(X, y, strict=True):
        loop.learn_one(x, label)
    assert list(chunks.predict_many(X)) == [loop.predict_one(x) for x in X]
    chunks.save(tmp_path / "m")
    assert list(op.load(tmp_path / "m").predict_many(X)) == list(chunks.predict_many(X))
