"""Reductions keep the promises: any chunks, nothing malformed learned, files that resume and never load damaged."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.grid import REPRESENTATIONS, csr, dicts
from support.reduction_grid import (
    INF,
    LABELS,
    NAN,
    NEED_CLASSES,
    REDUCTIONS,
    STREAM,
    WITH_COSTS,
    C,
    costs_for,
    make,
    refuses,
    saved,
)
from test_promise_chunks import cuts

import onepass as op
from onepass import LinearClassifier
from onepass.errors import (
    FeatureError,
    InputError,
    LabelError,
    NumericalError,
)
from onepass.reductions import (
    OneVsAll,
)
from onepass.rows.batches import as_batch

# -- promise 1: the same answer however the data arrives ---------------------------------------------------------------


def feed(model: Any, shape: Any, y: Any, start: int, stop: int) -> None:
    model.learn_many(shape.part(STREAM.X, start, stop), y[start:stop], C[start:stop])


def teach(model: Any, shape: Any, y: Any, i: int) -> None:
    answer = y[i] if isinstance(y[i], dict) else y[i].item()
    model.learn_one(shape.row(STREAM.X, i), answer, float(C[i]))


def ways(name: str, shape: Any, y: Any, classes: Any, folder: Path) -> dict[str, Any]:
    n = len(C)
    rng = np.random.default_rng(len(name))
    options = dict(shape.options)
    out = {
        way: make(name, classes, **options) for way in ("whole", "chunks", "one by one", "mixed", "files", "pickles")
    }
    feed(out["whole"], shape, y, 0, n)
    for i in range(n):
        teach(out["one by one"], shape, y, i)
    start = 0
    for stop in cuts(rng, n, 9):
        feed(out["chunks"], shape, y, start, stop)
        feed(out["files"], shape, y, start, stop)
        feed(out["pickles"], shape, y, start, stop)
        if start % 2:
            feed(out["mixed"], shape, y, start, stop)
        else:
            for i in range(start, stop):
                teach(out["mixed"], shape, y, i)
        out["files"].save(folder / "r.onepass")
        out["files"] = op.load(folder / "r.onepass")
        out["pickles"] = pickle.loads(pickle.dumps(out["pickles"]))
        start = stop
    return out


def assert_all_alike(models: dict[str, Any], shape: Any) -> None:
    expected, whole = saved(models["whole"]), models["whole"]
    assert not [way for way, model in models.items() if saved(model) != expected]
    predicted = list(whole.predict_many(shape.make(STREAM.X)))
    assert predicted == [whole.predict_one(shape.row(STREAM.X, i)) for i in range(len(C))]
    assert predicted == list(models["files"].predict_many(shape.make(STREAM.X)))
    assert whole.t_ == len(C)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("form", REPRESENTATIONS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_same_bytes_however_the_data_arrives(name: str, form: str, tmp_path: Path) -> None:
    shape = REPRESENTATIONS[form]
    models = ways(name, shape, STREAM.y, LABELS, tmp_path)
    if shape.table:
        by_part = make(name, **dict(shape.options))
        start = 0
        for stop in (17, len(C)):
            part = shape.part(STREAM.X, start, stop)
            by_part.partial_fit(part, STREAM.y[start:stop], classes=LABELS, sample_weight=C[start:stop])
            by_part.save(tmp_path / "p.onepass")
            by_part = op.load(tmp_path / "p.onepass")
            start = stop
        models["partial_fit"] = by_part
        models["fit"] = make(name, **dict(shape.options)).fit(shape.make(STREAM.X), STREAM.y, sample_weight=C)
    assert_all_alike(models, shape)


@pytest.mark.parametrize("form", ["f64", "csr32", "named"])
@pytest.mark.parametrize("name", WITH_COSTS)
def test_same_bytes_with_costs(name: str, form: str, tmp_path: Path) -> None:
    shape = REPRESENTATIONS[form]
    costs = costs_for(STREAM.y)
    models = ways(name, shape, costs, LABELS, tmp_path)
    by_table = make(name, LABELS)
    by_table.learn_many(shape.make(STREAM.X), np.array([list(each.values()) for each in costs]), C)
    assert_all_alike({**models, "table": by_table}, shape)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("form", ["f64", "csr32", "named", "hashed"])
@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in NEED_CLASSES])
def test_same_bytes_while_classes_grow(name: str, form: str, tmp_path: Path) -> None:
    shape = REPRESENTATIONS[form]
    y = STREAM.y.copy()
    y[:18][y[:18] == 20] = 40
    assert_all_alike(ways(name, shape, y, None, tmp_path), shape)
    if name in ("oaa", "all_pairs", "expansion"):
        costs = costs_for(y)
        for row in costs[:11]:
            del row[30]
        assert_all_alike(ways(name, shape, costs, None, tmp_path), shape)


@pytest.mark.parametrize("readout", ["average", "pocket", "voted"])
@pytest.mark.parametrize("name", ["ova", "ovo", "code", "tree"])
def test_same_bytes_with_every_readout(name: str, readout: str, tmp_path: Path) -> None:
    models = [make(name, LABELS, "perceptron", readout=readout) for _ in range(3)]
    models[0].learn_many(STREAM.X, STREAM.y)
    for x, y in zip(STREAM.X, STREAM.y, strict=True):
        models[1].learn_one(x, y)
    models[2].learn_many(STREAM.X[:23], STREAM.y[:23])
    models[2].save(tmp_path / "r.onepass")
    models[2] = op.load(tmp_path / "r.onepass")
    models[2].learn_many(STREAM.X[23:], STREAM.y[23:])
    assert len({saved(model) for model in models}) == 1
    assert list(models[0].predict_many(STREAM.X)) == [models[2].predict_one(x) for x in STREAM.X]


@pytest.mark.parametrize("name", ["tree", "tree-sampled"])
def test_a_label_is_its_costs_of_zero_and_one(name: str) -> None:
    by_label, by_cost = make(name, LABELS), make(name, LABELS)
    by_label.learn_many(STREAM.X, STREAM.y, C)
    by_cost.learn_many(STREAM.X, [{k: float(k != y) for k in LABELS} for y in STREAM.y], C)
    if name == "tree":
        assert saved(by_label) == saved(by_cost)
    one = make(name, LABELS)
    for x, y, c in zip(STREAM.X, STREAM.y, C, strict=True):
        one.learn_one(x, {k: float(k != y) for k in LABELS}, float(c))
    assert saved(one) == saved(by_cost)


def test_rows_go_one_by_one_where_copies_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large hashed model and few rows: the same bytes by the other path."""
    X, y = csr(STREAM.X), STREAM.y
    for name in REDUCTIONS:
        models = [make(name, LABELS, hash_bits=10) for _ in range(2)]
        monkeypatch.setattr("onepass.reductions.scheme._WEIGHTS_PER_ROW", 10_000)
        models[0].learn_many(X, y, C)
        models[1].learn_many(X[:1], y[:1], C[:1])
        monkeypatch.setattr("onepass.reductions.scheme._WEIGHTS_PER_ROW", 1)
        assert models[1]._core._one_by_one(as_batch(X[1:20]))
        models[1].learn_many(X[1:20], y[1:20], C[1:20])
        models[1].learn_many(X[20:], y[20:], C[20:])
        assert saved(models[0]) == saved(models[1]), name


def test_different_streams_give_different_bytes() -> None:
    """The comparisons above can fail."""
    for name in REDUCTIONS:
        X = STREAM.X.copy()
        X[-1, 0] = np.nextafter(X[-1, 0] + 1.0, 9.0)
        models = [make(name, LABELS) for _ in range(3)]
        models[0].learn_many(STREAM.X, STREAM.y)
        models[1].learn_many(X, STREAM.y)
        models[2].learn_many(STREAM.X[::-1], STREAM.y[::-1])
        if "sampled" in name:
            del models[1]  # the last row may have been dropped
        assert len({saved(model) for model in models}) == len(models)


# -- promise 2: nothing malformed is learned ---------------------------------------------------------------------------


def learned(name: str, form: str = "f64", **options: Any) -> Any:
    model = make(name, LABELS, **options)
    model.learn_many(REPRESENTATIONS[form].make(STREAM.X), STREAM.y, C)
    return model


def broken(value: float) -> np.ndarray:
    X = STREAM.X[:5].copy()
    X[3, 2] = value
    return X


@pytest.mark.parametrize("verb", ["learn_many", "partial_fit", "fit"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_malformed_tables(name: str, verb: str) -> None:
    model, y = learned(name), STREAM.y[:5]
    learn = getattr(model, verb)
    for value, shown in ((NAN, "NaN"), (INF, "infinity")):
        refuses(model, InputError, rf"X\[3, 2\] is {shown}", lambda v=value: learn(broken(v), y))
        refuses(model, InputError, rf"X\[3, 2\] is {shown}", lambda v=value: learn(sparse.csr_matrix(broken(v)), y))
    if verb != "fit":
        refuses(model, InputError, "features", lambda: learn(STREAM.X[:5, :4], y))
        if name != "tree-sampled":
            refuses(model, LabelError, "50", lambda: learn(STREAM.X[:5], [10, 20, 50, 10, 20]))
    refuses(model, InputError, "4|inconsistent", lambda: learn(STREAM.X[:5], y[:4]))
    refuses(model, InputError, "importance", lambda: learn(STREAM.X[:5], y, **weights(verb, [1, 1, -1, 1, 1])))
    refuses(model, InputError, "importance", lambda: learn(STREAM.X[:5], y, **weights(verb, [1, 1, 1, 1, NAN])))
    refuses(model, InputError, "no rows|0 sample", lambda: learn(STREAM.X[:0], y[:0]))


def weights(verb: str, c: list[float]) -> dict[str, Any]:
    return {"importance" if verb == "learn_many" else "sample_weight": c}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_malformed_examples(name: str) -> None:
    model, x = learned(name), STREAM.X[0]
    for bad, message in (
        (broken(NAN)[3], "NaN|nan"),
        (broken(INF)[3], "inf"),
        (x[:4], "features"),
        ({"f1": 1.0}, "unnamed|named"),
        ("text", "row of numbers"),
        (None, "row of numbers"),
        (STREAM.X[:2], "one row"),
    ):
        refuses(model, InputError, message, lambda b=bad: model.learn_one(b, 10))
        refuses(model, InputError, message, lambda b=bad: model.predict_one(b))
    for label, message in ((50, "declared classes"), (None, "None"), (NAN, "nan"), ([10], "hashable")):
        refuses(model, LabelError, message, lambda y=label: model.learn_one(x, y))
    for c in (-1.0, NAN, INF, "much", [1.0, 2.0]):
        refuses(model, InputError, "importance", lambda c=c: model.learn_one(x, 10, c))


@pytest.mark.parametrize("form", ["named", "hashed"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_malformed_mappings(name: str, form: str) -> None:
    model = learned(name, form, **dict(REPRESENTATIONS[form].options))
    X, y = dicts(STREAM.X[:5]), STREAM.y[:5]
    for bad, message in (({"f1": NAN}, "row 3.*(NaN|nan)"), ({"f1": [1]}, "row 3"), (7, "row 3.*mapping")):
        refuses(model, InputError, message, lambda b=bad: model.learn_many([*X[:3], b, X[4]], y))
    refuses(model, InputError, "(?i)nan", lambda: model.learn_one({"f1": NAN}, 10))
    if form == "named":
        refuses(model, FeatureError, "named", lambda: model.learn_one(STREAM.X[0], 10))
        refuses(model, FeatureError, "named", lambda: model.learn_many(STREAM.X, STREAM.y))


@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in NEED_CLASSES])
def test_a_refused_example_lets_no_class_in(name: str) -> None:
    model = make(name)
    with pytest.raises(InputError):
        model.learn_one({"a": NAN}, "x")
    assert model._core is None and model.predict_one({"a": 1.0}) is None
    model.learn_one({"a": 1.0}, "x")
    model.learn_one({"b": 1.0}, "y")
    refuses(model, InputError, "(?i)nan", lambda: model.learn_one({"a": NAN}, "z"))
    refuses(model, InputError, "(?i)nan", lambda: model.learn_many([{"a": 1.0}, {"a": NAN}], ["z", "z"]))
    for bad in (None, NAN, object()):
        refuses(model, LabelError, "label", lambda b=bad: model.learn_many([{"a": 1.0}] * 2, ["z", b]))
    assert model.classes_.tolist() == ["x", "y"]


@pytest.mark.parametrize("name", WITH_COSTS)
def test_malformed_costs(name: str) -> None:
    model, x = learned(name), STREAM.X[0]
    good = dict.fromkeys(LABELS, 1.0)
    for bad, message in (
        ({}, "at least one"),
        ({**good, 50: 1.0}, "declared classes"),
        ({**good, 20: NAN}, "cost of label 20 must be finite"),
        ({**good, 20: "dear"}, "cost of label 20 must be a number"),
        ({**good, 20: None}, "cost of label 20 must be a number"),
    ):
        refuses(model, LabelError, message, lambda b=bad: model.learn_one(x, b))
        refuses(model, LabelError, rf"y\[1\].*{message}", lambda b=bad: model.learn_many(STREAM.X[:2], [good, b]))
    one, many = model.copy(), model.copy()
    many.learn_many(STREAM.X[:2], [good, 10])  # a label among costs is 0 for it and 1 for the others
    for row, answer in zip(STREAM.X, (good, 10), strict=False):
        one.learn_one(row, answer)
    assert saved(many) == saved(one)
    refuses(model, InputError, "rows", lambda: model.learn_many(STREAM.X[:2], [good]))
    refuses(model, LabelError, "4 classes", lambda: model.learn_many(STREAM.X[:2], np.ones((2, 3))))
    refuses(
        model, LabelError, r"y\[1, 2\]", lambda: model.learn_many(STREAM.X[:2], np.array([[1.0] * 4, [1, 1, NAN, 1]]))
    )
    wide = {10: -1.5e308, 20: 1.5e308, 30: 0.0, 40: 0.0}
    refuses(model, InputError, "too large", lambda: model.learn_one(x, wide))
    if name.startswith("tree"):
        refuses(model, LabelError, "every class.*20", lambda: model.learn_one(x, {10: 1.0, 30: 0.0, 40: 0.0}))
        refuses(model, LabelError, "every class.*20", lambda: model.learn_many([x], [{10: 1.0, 30: 0.0, 40: 0.0}]))


def test_importances_that_the_base_does_not_take() -> None:
    for name in ("sampled", "ova-sampled", "tree-sampled"):
        model = learned(name)
        refuses(model, InputError, "c_max", lambda m=model: m.learn_one(STREAM.X[0], 10, 9.5))
        refuses(model, InputError, "c_max", lambda m=model: m.learn_many(STREAM.X[:2], [10, 20], [1.0, 9.5]))
    tree = learned("tree-sampled")
    refuses(tree, InputError, "c_max", lambda: tree.learn_one(STREAM.X[0], {10: 0.0, 20: 1.0, 30: 12.0, 40: 0.0}))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("verb", ["learn_many", "learn_one", "mappings"])
@pytest.mark.parametrize("cause", ["features", "importance"])
@pytest.mark.parametrize("name", [name for name in REDUCTIONS if "sampled" not in name])
def test_overflow_is_refused_for_its_row(name: str, cause: str, verb: str, first: bool) -> None:
    """Rows before it are learned by all bases; the row itself by none, though only some of them overflow."""
    far = 6
    X, c, y = STREAM.X[:10].copy(), np.ones(10), STREAM.y[:10].copy()
    X[X == 0] = 0.5
    if cause == "features":
        X[far] = 1e200
    else:
        X[[far - 1, far]], c[[far - 1, far]], y[far - 1] = 1.0, 1e308, y[far]
    rule = "sgd:loss=squared,schedule=constant" if name == "oaa" else "perceptron:beta=1e300"
    got, expected = make(name, LABELS, rule), make(name, LABELS, rule)
    if not first:
        for model in (got, expected):
            model.learn_many(dicts(STREAM.X[20:]) if verb == "mappings" else STREAM.X[20:], STREAM.y[20:])
    table = dicts(X) if verb == "mappings" else X
    with pytest.raises(NumericalError) as caught:
        if verb == "learn_one":
            for i in range(10):
                got.learn_one(X[i], y[i], float(c[i]))
        else:
            got.learn_many(table, y, c)
    stop = far if verb == "learn_one" else caught.value.row
    assert stop == far or (cause == "importance" and stop == far - 1)
    if verb != "learn_one":
        assert f"row {stop}:" in str(caught.value)
    elif got.t_ - (0 if first else 20) != far:
        stop = got.t_ - (0 if first else 20)
    for i in range(stop):
        expected.learn_one(table[i], y[i], float(c[i]))
    assert saved(got) == saved(expected)


@pytest.mark.parametrize("x", [{"a": 1.0}, {"a": 1.0, "b": "text"}, np.ones(1), csr(np.ones((1, 1)))], ids=str)
def test_an_example_that_overflows_in_the_third_base_is_not_learned_by_the_first(x: Any) -> None:
    """The weights are ∓1e308: the next step takes the first two bases back to 0, and the third beyond all numbers."""
    for verb in ("learn_one", "learn_many"):
        model = OneVsAll(LinearClassifier("perceptron:beta=1.7e308", fit_intercept=False), classes=LABELS)
        model.learn_one(x, 20, 1e308)
        before = saved(model)
        with pytest.raises(NumericalError):
            if verb == "learn_one":
                model.learn_one(x, 10, 1e308)
            else:
                model.learn_many([x] if isinstance(x, dict) else x.reshape(1, -1), [10], [1e308])
        assert saved(model) == before


def test_a_new_class_whose_row_overflows_is_not_let_in() -> None:
    X = STREAM.X[:4].copy()
    X[2] = 1e200
    for name in ("ova", "ovo", "all_pairs", "expansion"):
        for verb in ("learn_many", "learn_one"):
            model = make(name, rule="pa1")
            with pytest.raises(NumericalError):
                if verb == "learn_many":
                    model.learn_many(X, ["a", "b", "c", "d"])
                else:
                    for x, y in zip(X, "abcd", strict=True):
                        model.learn_one(x, y)
            assert model.classes_.tolist() == ["a", "b"] and model.t_ == 2
