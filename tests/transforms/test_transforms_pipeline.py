"""Pipelines: the order of learning, any chunks, files, refusals, and life inside scikit-learn and River."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from river import compose, linear_model, preprocessing
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.pipeline import make_pipeline

import onepass as op
from onepass import transforms as T
from onepass.errors import DamagedFileError, ForeignFileError, InputError, LabelError, NumericalError, ParameterError
from onepass.reductions import OneVsAll


def table(rows=60, columns=4, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns)) * 10.0 ** np.arange(columns) + 3.0
    return X, (X @ (1.0 / 10.0 ** np.arange(columns)) > 3.333).astype(int)


def named(X):
    return [{f"{'ab'[j % 2]}^{j}": value for j, value in enumerate(row) if value} for row in X.tolist()]


CHAINS = {
    "standard": lambda: T.StandardScaler() | op.LinearClassifier("pa1"),
    "scale": lambda: T.StandardScaler(with_mean=False) | op.LinearClassifier("pa1"),
    "minmax": lambda: T.MinMaxScaler() | op.LinearClassifier("sgd:loss=logistic"),
    "one hot": lambda: T.OneHotEncoder() | op.LinearClassifier("pa1"),
    "hash": lambda: T.FeatureHasher(6, keep_names=True) | op.LinearClassifier("pa1"),
    "cross": lambda: T.Interactions(["::"]) | op.LinearClassifier("pa1"),
    "polynomial": lambda: T.PolynomialFeatures(2) | op.LinearClassifier("pa1"),
    "three": lambda: T.StandardScaler() | T.PolynomialFeatures(2) | op.LinearClassifier("pa1", readout="average"),
    "scaled twice": lambda: T.MinMaxScaler() | T.StandardScaler() | op.LinearClassifier("pa1"),
    "hashed model": lambda: T.StandardScaler() | op.LinearClassifier("pa1", hash_bits=8),
    "reduction": lambda: T.StandardScaler() | OneVsAll("pa1", classes=[0, 1]),
}
SPARSE = ("scale", "hash", "cross")
SHAPES = ("rows", "mappings", "frame", "csr")
CELLS = [(chain, shape) for chain in CHAINS for shape in SHAPES if shape != "csr" or chain in SPARSE]


def shapes(X):
    """The same rows in every shape: (name, many, one by one)."""
    frame = pd.DataFrame(X, columns=[f"{'ab'[j % 2]}^{j}" for j in range(X.shape[1])])
    csr = scipy.sparse.csr_matrix(np.where(np.abs(X) < 3, 0, X))
    return {
        "rows": (X, list(X)),
        "mappings": (named(X), named(X)),
        "frame": (frame, [frame.iloc[i : i + 1] for i in range(len(X))]),
        "csr": (csr, [csr[i] for i in range(len(X))]),
    }


def saved(pipeline, tmp_path):
    path = tmp_path / "model.onepass"
    pipeline.save(path)
    op.load(path).save(path)  # loading declares the width of what learned rows of numbers
    return path.read_bytes()


def cut(X, a, b):
    return X.iloc[a:b] if hasattr(X, "iloc") else X[a:b]


@pytest.mark.full(most=18)
@pytest.mark.parametrize(("chain", "shape"), CELLS)
def test_any_chunks_give_the_same_bits(chain, shape, tmp_path):
    """Promise 1: the loop, chunks of any size, and saving and resuming in between."""
    X, y = table()
    many, ones = shapes(np.round(X))[shape]
    loop = CHAINS[chain]()
    for x, label in zip(ones, y.tolist(), strict=True):
        if shape == "frame":
            loop.learn_many(x, [label])
        else:
            loop.learn_one(x, label)
    expected = saved(loop, tmp_path)
    for size in (1, 7, 60):
        chunks = CHAINS[chain]()
        for start in range(0, len(y), size):
            chunks.learn_many(cut(many, start, start + size), y[start : start + size])
            if start % 10 == 0 or size > 1:
                chunks.save(tmp_path / "half.onepass")
                chunks = op.load(tmp_path / "half.onepass")
                chunks = pickle.loads(pickle.dumps(chunks))
        assert saved(chunks, tmp_path) == expected


@pytest.mark.full(strength=1)
@pytest.mark.parametrize(("chain", "shape"), CELLS)
def test_predict_then_learn(chain, shape, tmp_path):
    """Predictions are those of the loop that asks first, and asking changes nothing."""
    X, y = table()
    many, ones = shapes(np.round(X))[shape]
    loop, chunks = CHAINS[chain](), CHAINS[chain]()
    expected = []
    for x, label in zip(ones, y.tolist(), strict=True):
        if shape == "frame":
            expected.append(loop.predict_many(x)[0])
            loop.learn_many(x, [label])
        else:
            expected.append(loop.predict_one(x))
            loop.learn_one(x, label)
    got = []
    for start in range(0, len(y), 13):
        got += list(chunks.predict_then_learn(cut(many, start, start + 13), y[start : start + 13]))
    assert got == expected
    assert saved(chunks, tmp_path) == saved(loop, tmp_path)


@pytest.mark.parametrize("chain", ["standard", "minmax", "three", "polynomial", "one hot", "hash", "cross"])
def test_partial_fit_is_the_loop(chain, tmp_path):
    X, y = table()
    X = np.round(X)
    loop, chunks = CHAINS[chain](), CHAINS[chain]()
    loop.partial_fit(X[:1], y[:1], classes=[0, 1])
    for x, label in zip(X[1:], y[1:].tolist(), strict=True):
        loop.learn_one(x, label)
    for start in range(0, len(y), 7):
        chunks.partial_fit(X[start : start + 7], y[start : start + 7], classes=[0, 1])
    assert saved(chunks, tmp_path) == saved(loop, tmp_path)
    np.testing.assert_array_equal(chunks.predict(X), [loop.predict_one(x) for x in X])


def test_a_stream_is_learned_as_its_mappings_are(tmp_path):
    """Named and hashed chunks of op.stream through a scaler and interactions, against one by one."""
    path = tmp_path / "a.vw"
    generator = np.random.default_rng(0)
    lines = []
    for _ in range(80):
        words = " ".join(
            f"w{k}:{v:.3f}" for k, v in zip(generator.integers(0, 30, 5), generator.normal(size=5), strict=True)
        )
        lines.append(f"{generator.integers(0, 2)} |a {words} |b u{generator.integers(0, 4)}\n")
    path.write_text("".join(lines))

    def chain():
        return T.StandardScaler(with_mean=False) | T.Interactions(["ab"]) | op.LinearClassifier("pa1")

    by_one, by_chunk = chain(), chain()
    for x, y in op.stream(path):
        by_one.learn_one(x, y)
    for chunk in op.stream(path).batches(17):
        by_chunk.learn_many(chunk.X, chunk.y)
    assert saved(by_one, tmp_path) == saved(by_chunk, tmp_path)
    hashed = [T.StandardScaler(with_mean=False) | op.LinearClassifier("pa1", hash_bits=10) for _ in range(2)]
    for pipeline, size in zip(hashed, (80, 9), strict=True):
        for chunk in op.stream(path, hash_bits=10).batches(size):
            pipeline.learn_many(chunk.X, chunk.y)
    assert saved(hashed[0], tmp_path) == saved(hashed[1], tmp_path)
    run = op.prequential(chain(), op.stream(path), every=40)
    assert run.value == pytest.approx(np.mean([p != y for p, y in _asked(chain(), op.stream(path))]))


def _asked(model, stream):
    for x, y in stream:
        yield model.predict_one(x), y
        model.learn_one(x, y)


# -- the order ---------------------------------------------------------------------------------------------------------


class Recorder:
    """A model that keeps what it was taught and asked."""

    def __init__(self):
        self.taught, self.asked = [], []

    def learn_one(self, x, y):
        self.taught.append(x)

    def predict_one(self, x):
        self.asked.append(x)


def test_learning_transforms_first_and_predicting_as_it_was():
    model = Recorder()
    chain = T.StandardScaler() | model
    values = [1.0, 5.0, 2.0]
    for value in values:
        chain.predict_one({"a": value})
        chain.learn_one({"a": value}, 0)
    for i, value in enumerate(values):
        seen = values[: i + 1]
        spread = np.std(seen)
        after = (value - np.mean(seen)) / spread if spread > 0 else 0.0
        assert model.taught[i]["a"] == pytest.approx(after)
        if i > 1:
            assert model.asked[i]["a"] == pytest.approx((value - np.mean(values[:i])) / np.std(values[:i]))


def test_the_order_is_rivers():
    theirs = preprocessing.StandardScaler() | linear_model.PAClassifier(C=0.1, mode=1)
    ours = T.StandardScaler() | op.LinearClassifier("pa1:C=0.1", bias_in_norm=False)
    X, y = table(100)
    for x, label in zip(named(X), y.tolist(), strict=True):
        theirs.predict_one(x)  # changes nothing, here as there
        theirs.learn_one(x, bool(label))
        ours.learn_one(x, bool(label))
    final = theirs[-1] if isinstance(theirs, compose.Pipeline) else None
    assert ours["linearclassifier"].weights_ == pytest.approx(dict(final.weights), rel=1e-9)


@pytest.mark.parametrize("chain", CHAINS)
def test_predicting_changes_nothing(chain, tmp_path):
    X, y = table()
    pipeline = CHAINS[chain]()
    pipeline.learn_many(named(X[:30]), y[:30])
    before = saved(pipeline, tmp_path)
    pipeline.predict_many(named(X))
    for x in named(X + 1000):
        pipeline.predict_one(x)
        pipeline.transform_one(x)
    assert saved(pipeline, tmp_path) == before


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain", [name for name in CHAINS if name not in ("hash", "reduction")])
def test_what_the_model_refuses_no_transform_learns(chain, tmp_path):
    X, y = table()
    pipeline = CHAINS[chain]()
    pipeline.learn_many(named(X), y)
    before = saved(pipeline, tmp_path)
    row = named(X)[0]
    for call, error in (
        (lambda: pipeline.learn_one(row, [1]), LabelError),
        (lambda: pipeline.learn_one({**row, "a^0": float("nan")}, 1), InputError),
        (lambda: pipeline.learn_one(row, 1, -1.0), InputError),
        (lambda: pipeline.learn_many([row, row], [1]), InputError),
        (lambda: pipeline.learn_many([row, row], [1, [2]]), LabelError),
        (lambda: pipeline.learn_many([row, {"a": None}], [1, 1]), InputError),
        (lambda: pipeline.predict_then_learn([row, row], [1, [2]]), LabelError),
        (lambda: pipeline.predict_then_learn([row, {"b": "x", "c": None}], [1, 1]), InputError),
    ):
        with pytest.raises(error):
            call()
        assert saved(pipeline, tmp_path) == before
    table_chain = CHAINS[chain]().partial_fit(X, y, classes=[0, 1])
    before = saved(table_chain, tmp_path)
    bad = X.copy()
    bad[3, 1] = np.nan
    for call in (
        lambda: table_chain.partial_fit(bad, y),
        lambda: table_chain.partial_fit(X, y + 5),
        lambda: table_chain.partial_fit(X[:, :2], y),
        lambda: table_chain.fit(bad, y),
        lambda: table_chain.predict(bad),
    ):
        with pytest.raises(InputError):
            call()
        assert saved(table_chain, tmp_path) == before


def test_overflow_leaves_the_rows_before(tmp_path):
    X = np.array([[1.0], [2.0], [3.0], [1e308], [-1e308], [4.0]])
    y = [0, 1, 0, 1, 0, 1]
    chunks, loop = (T.StandardScaler() | op.LinearClassifier("pa1") for _ in range(2))
    with pytest.raises(NumericalError) as caught:
        chunks.learn_many(X, y)
    for x, label in zip(X[: caught.value.row], y, strict=False):
        loop.learn_one(x, label)
    assert saved(chunks, tmp_path) == saved(loop, tmp_path)
    # the model overflows, not the transform
    rows = [{"a": 1.0}, {"a": 1e200}, {"a": 1.0}]
    chunks, loop = (T.Interactions(["::"]) | op.LinearRegressor("adaline:eta=1") for _ in range(2))
    with pytest.raises((NumericalError, InputError)):
        chunks.learn_many(rows, [1.0, 1.0, 1.0])


@pytest.mark.parametrize("model", [op.LinearClassifier, op.LinearRegressor, op.KernelClassifier, op.KernelRegressor])
def test_a_wrong_rule_is_refused_where_it_learns(model):
    """Parameters are checked where they are used, as scikit-learn wants it; traits are asked before."""
    wrong = T.StandardScaler() | model("poetry")
    assert wrong.traits.answers in ("class", "number")
    with pytest.raises(ParameterError, match="is not a rule"):
        wrong.learn_one({"a": 1.0}, 0)


def test_steps_that_are_none():
    with pytest.raises(ParameterError, match="scikit-learn's own go into scikit-learn's Pipeline"):
        T.StandardScaler() | 5
    with pytest.raises(ParameterError, match="expected a transform"):
        T.Pipeline.of(op.LinearClassifier(), T.StandardScaler())
    with pytest.raises(ParameterError, match="expected a transform"):
        inner = T.StandardScaler() | T.StandardScaler()
        T.Pipeline([("inner", inner), ("model", op.LinearClassifier())]).learn_one({"a": 1.0}, 0)
    with pytest.raises(ParameterError, match="pairs"):
        T.Pipeline([1, 2]).learn_one({"a": 1.0}, 0)
    with pytest.raises(AttributeError, match="no model"):
        (T.StandardScaler() | T.PolynomialFeatures()).predict_one({"a": 1.0})
    with pytest.raises(NotFittedError):
        (T.StandardScaler() | op.LinearClassifier()).predict([[1.0]])


# -- files -------------------------------------------------------------------------------------------------------------


def test_damaged_files_do_not_load(tmp_path):
    X, y = table(10)
    pipeline = T.StandardScaler() | op.LinearClassifier()
    pipeline.learn_many(named(X), y)
    data = saved(pipeline, tmp_path)
    path = tmp_path / "damaged.onepass"
    for at in range(0, len(data), 41):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ValueError):
            op.load(path)
    for at in range(0, len(data), 97):
        path.write_bytes(data[:at])
        with pytest.raises(ValueError):
            op.load(path)


def test_forged_parts_do_not_fit(tmp_path):
    from onepass.persistence import store

    pipeline = T.StandardScaler() | op.LinearClassifier()
    pipeline.learn_many(*[named(table(10)[0]), table(10)[1]])
    pipeline.save(tmp_path / "a")
    kind, config, arrays = store.read(tmp_path / "a")

    def refuse(change, error=DamagedFileError):
        other, other_arrays = pickle.loads(pickle.dumps((config, arrays)))
        change(other, other_arrays)
        store.write(tmp_path / "b", kind, other, other_arrays)
        with pytest.raises(error):
            op.load(tmp_path / "b")

    assert kind == "Pipeline"
    refuse(lambda c, a: c["steps"][0].update(kind="os.system"), ForeignFileError)
    refuse(lambda c, a: c["steps"][0].update(kind="MinMaxScaler"))
    refuse(lambda c, a: c["steps"][0].update(kind="LinearClassifier"))
    refuse(lambda c, a: c["steps"][0].pop("kind"))
    refuse(lambda c, a: c["steps"][0]["state"]["params"].update(with_mean="yes"))
    refuse(lambda c, a: c["steps"][0]["state"]["params"].update(other=1))
    refuse(lambda c, a: c["steps"][0]["state"]["learned"].update(used=3))
    refuse(lambda c, a: c["steps"][1]["state"]["params"].pop("rule"))
    refuse(lambda c, a: c["steps"].reverse())
    refuse(lambda c, a: a.update({"0.mean": a["0.mean"][:-1]}))
    refuse(lambda c, a: a.update({"0.mean": a["0.mean"].astype(np.float32)}))
    refuse(lambda c, a: a.pop("0.squares"))
    refuse(lambda c, a: c.pop("steps"))
    refuse(lambda c, a: c.update(steps=[]))


@pytest.mark.parametrize("transform", [T.StandardScaler(), T.OneHotEncoder(), T.MinMaxScaler((0, 2)), T.NGrams((1, 2))])
def test_a_transform_alone_is_saved(transform, tmp_path):
    transform = clone(transform)
    transform.learn_one({"a": 1.0, "b": "x"})
    transform.save(tmp_path / "t")
    again = op.load(tmp_path / "t")
    assert type(again) is type(transform)
    assert again.get_params() == transform.get_params()
    x = {"a": 3.0, "b": "x"}
    again.learn_one(x)
    transform.learn_one(x)
    assert again.transform_one(x) == transform.transform_one(x)
    with pytest.raises(ParameterError, match="pickle"):
        model = T.StandardScaler() | SGDClassifier()
        model.save(tmp_path / "x")


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def test_inside_sklearns_pipeline_and_grid_search():
    X, y = table(120)
    theirs = make_pipeline(T.StandardScaler(), T.PolynomialFeatures(), op.LinearClassifier())
    ours = T.StandardScaler() | T.PolynomialFeatures() | op.LinearClassifier()
    np.testing.assert_array_equal(theirs.fit(X, y).decision_function(X), ours.fit(X, y).decision_function(X))
    assert ours.score(X, y) == theirs.score(X, y)
    assert list(ours.get_feature_names_out()) == list(theirs[:-1].get_feature_names_out())
    grid = {"polynomialfeatures__degree": [1, 2], "linearclassifier__rule": ["pa1", "perceptron"]}
    searches = [GridSearchCV(model, grid, cv=3).fit(X, y) for model in (clone(ours), theirs)]
    np.testing.assert_array_equal(*(search.cv_results_["mean_test_score"] for search in searches))
    assert isinstance(SklearnPipeline([("all", ours)]).fit(X, y).predict(X), np.ndarray)


def test_names_params_and_kind():
    chain = T.StandardScaler() | (T.StandardScaler() | op.LinearRegressor())
    assert [name for name, _ in chain.steps] == ["standardscaler", "standardscaler-2", "linearregressor"]
    assert is_regressor(chain) and not is_classifier(chain)
    assert is_classifier(T.StandardScaler() | op.LinearClassifier())
    chain.set_params(**{"standardscaler__with_mean": False, "linearregressor__rule": "nlms"})
    assert chain["standardscaler"].with_mean is False
    copied = clone(chain)
    assert copied["linearregressor"].rule == "nlms" and copied["linearregressor"] is not chain["linearregressor"]
    assert hasattr(T.StandardScaler() | T.PolynomialFeatures(), "transform")
    assert not hasattr(chain, "transform") and not hasattr(chain, "decision_function")


def test_frames_name_the_models_features():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcd"))
    chain = (T.StandardScaler() | op.LinearClassifier()).partial_fit(frame, y, classes=[0, 1])
    assert set(chain["linearclassifier"].weights_) == set("abcd")
    chain.learn_one({"b": 1.0, "a": 2.0}, 1)  # the same features, by name
    assert chain.predict(frame).shape == (60,)


def test_sklearns_models_at_the_end():
    X, y = table(200)
    chain = T.StandardScaler() | SGDClassifier(random_state=0)
    for part in range(0, 200, 20):
        chain.partial_fit(X[part : part + 20], y[part : part + 20], classes=[0, 1])
    assert chain.score(X, y) > 0.8


def test_texts():
    texts, y = ["good film", "bad film", "good fun", "bad taste"] * 5, [1, 0, 1, 0] * 5
    chain = T.NGrams(2) | op.LinearClassifier()
    chain.partial_fit(texts, y, classes=[0, 1])
    assert chain.predict(["good", "bad"]).tolist() == [1, 0]
    assert "text=good film" in chain["linearclassifier"].weights_
    assert (T.NGrams(2) | op.LinearClassifier()).fit(texts, y).score(texts, y) == 1.0
    assert chain.predict_one({"text": "so bad"}) == 0


def test_a_step_that_is_replaced_in_place_is_noticed() -> None:
    pipeline = T.StandardScaler(with_mean=False) | op.LinearClassifier()
    pipeline.learn_one({"a": 2.0}, "x")
    scaler, model = T.MinMaxScaler(), op.LinearRegressor()
    pipeline.steps[0] = ("scaler", scaler)
    pipeline.steps[1] = ("model", model)
    pipeline.learn_one({"a": 2.0}, 1.5)
    assert scaler._state is not None and model.t_ == 1 and isinstance(pipeline.predict_one({"a": 2.0}), float)
    pipeline.steps[0] = ("scaler", object())
    with pytest.raises(ParameterError, match="step 0 is"):
        pipeline.learn_one({"a": 2.0}, 1.5)
