"""Each transform against an independent one: scikit-learn's on tables, River's one at a time, exact fractions."""

from __future__ import annotations

import pickle
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.feature_extraction.text as sk_text
import sklearn.preprocessing as sk
from river import preprocessing
from sklearn.base import clone
from support.estimator_checks import assert_checks_pass

import onepass as op
from onepass import transforms as T
from onepass.errors import FeatureError, InputError, NumericalError, ParameterError
from onepass.rows.batches import Batch
from onepass.transforms.base import as_matrix

ALL = [
    T.StandardScaler(),
    T.StandardScaler(with_mean=False),
    T.MinMaxScaler(),
    T.MinMaxScaler((-1, 2), clip=True),
    T.OneHotEncoder(),
    T.FeatureHasher(8),
    T.FeatureHasher(8, signed=True, keep_names=True),
    T.Interactions(["::"]),
    T.PolynomialFeatures(),
    T.PolynomialFeatures(3, interaction_only=True, include_bias=True),
    T.NGrams((1, 2)),
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "estimator", ALL[:-1], ids=repr
)  # texts are no tables of numbers: there are no checks of those
def test_sklearn_contract(estimator):
    assert_checks_pass(estimator, failing=(), least=30)


def normal(rows=200, columns=5, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, columns)) * 10.0 ** np.arange(columns) + generator.normal(size=columns)


def dicts(X):
    return [{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()]


def test_a_sparse_matrix_of_the_callers_stays_as_it_was():
    """Columns that do not rise, or come twice, are put in order in a copy."""
    data, indices, starts = (
        np.array([1.0, 2.0, 3.0, 4.0]),
        np.array([2, 0, 1, 1], np.int32),
        np.array([0, 2, 4], np.int32),
    )
    given = tuple(array.copy() for array in (data, indices, starts))
    matrix = as_matrix(Batch(2, 3, csr=given))
    np.testing.assert_array_equal(matrix.toarray(), [[2.0, 0.0, 1.0], [0.0, 7.0, 0.0]])
    assert matrix.has_canonical_format
    for now, before in zip(given, (data, indices, starts), strict=True):
        np.testing.assert_array_equal(now, before)


# -- scaling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("with_std", [True, False])
def test_standard_scaler_is_sklearns_on_tables(with_mean, with_std):
    X = normal()
    ours = T.StandardScaler(with_mean=with_mean, with_std=with_std).fit(X)
    theirs = sk.StandardScaler(with_mean=with_mean, with_std=with_std).fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(ours.var_, X.var(axis=0), rtol=1e-12)
    assert ours.n_samples_seen_ == 200


def test_standard_scaler_is_sklearns_on_sparse_tables():
    X = scipy.sparse.random(300, 40, 0.1, format="csr", random_state=0)
    ours, theirs = T.StandardScaler(with_mean=False), sk.StandardScaler(with_mean=False)
    np.testing.assert_allclose(ours.fit_transform(X).toarray(), theirs.fit_transform(X).toarray(), rtol=1e-12)
    dense = T.StandardScaler(with_mean=False).fit(X.toarray())
    np.testing.assert_allclose(ours.scale_, dense.scale_, rtol=1e-12)
    np.testing.assert_allclose(ours.mean_, X.toarray().mean(axis=0), rtol=1e-12)
    with pytest.raises(InputError, match="with_mean=False"):
        T.StandardScaler().fit(X)


def test_absent_is_zero_without_centring():
    """Mappings that leave out zeros are scaled as the dense rows are."""
    X = scipy.sparse.random(100, 8, 0.3, format="csr", random_state=1).toarray()
    named, dense = T.StandardScaler(with_mean=False), T.StandardScaler(with_mean=False)
    for x in X:
        row = {f"x{j}": value for j, value in enumerate(x.tolist()) if value}
        named.learn_one(row)
        dense.learn_one(x)
        expected = dense.transform_one(x)
        for name, value in named.transform_one(row).items():
            assert value == pytest.approx(expected[int(name[1:])], rel=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (T.StandardScaler(), preprocessing.StandardScaler()),
        (T.MinMaxScaler(), preprocessing.MinMaxScaler()),
    ],
    ids=["standard", "minmax"],
)
def test_scalers_are_rivers_one_at_a_time(ours, theirs):
    generator = np.random.default_rng(0)
    for x in dicts(normal(300)):
        x = {name: value for name, value in x.items() if generator.random() < 0.7}  # absent: not counted
        ours.learn_one(x)
        theirs.learn_one(x)
        assert ours.transform_one(x) == pytest.approx(theirs.transform_one(x), rel=1e-9, abs=1e-12)


def test_minmax_is_sklearns_in_chunks():
    X = normal()
    for options in ({}, {"feature_range": (-3, 5)}, {"clip": True}):
        ours, theirs = T.MinMaxScaler(**options), sk.MinMaxScaler(**options)
        for part in np.array_split(X[:150], 7):
            ours.partial_fit(part)
            theirs.partial_fit(part)
        np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-12, atol=1e-12)


def test_variance_is_stable():
    """A mean of 1e9 with a spread of 1e-3: the textbook formula has no digit left; Welford's has most."""
    values = [1e9 + 1e-3 * k for k in (1, 5, 2, 8, 3, 9, 4)]
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    variance = float(sum((v - mean) ** 2 for v in exact) / len(exact))
    scaler = T.StandardScaler().fit(np.array(values)[:, np.newaxis])
    assert scaler.var_[0] == pytest.approx(variance, rel=1e-3)  # the running mean itself is rounded to 1e-7
    rows = np.array(values)
    assert abs(float(np.mean(rows**2) - np.mean(rows) ** 2) - variance) > variance / 2  # what it saves us from


def test_a_constant_keeps_its_scale():
    X = np.full((50, 1), 0.1 + 0.2)
    np.testing.assert_allclose(T.StandardScaler().fit_transform(X), 0.0, atol=1e-15)
    np.testing.assert_array_equal(T.StandardScaler(with_mean=False).fit_transform(X), X)
    np.testing.assert_array_equal(T.MinMaxScaler().fit_transform(X), 0.0)


def test_nothing_learned_changes_little():
    assert T.StandardScaler().transform_one({"a": 3.0}) == {"a": 3.0}
    assert T.MinMaxScaler().transform_one({"a": 3.0}) == {"a": 0.0}


def test_categories_pass_the_scalers():
    scaler = T.StandardScaler()
    for value in (1.0, 3.0):
        scaler.learn_one({"a": value, "city": "Oslo"})
    assert scaler.transform_one({"city": "Oslo", "a": 3.0}) == {"city": "Oslo", "a": 1.0}


# -- encoding ----------------------------------------------------------------------------------------------------------


def test_one_hot_is_sklearns():
    X = np.array([["b", 1], ["a", 2], ["b", 2], ["c", 1]], dtype=object)
    ours, theirs = T.OneHotEncoder().fit(X), sk.OneHotEncoder(handle_unknown="ignore").fit(X)
    table = pd.DataFrame(ours.transform(X).toarray(), columns=ours.get_feature_names_out())
    names = [f"x{j}={value}" for j, values in enumerate(theirs.categories_) for value in values]
    np.testing.assert_array_equal(table[names], theirs.transform(X).toarray())
    assert list(ours.get_feature_names_out()) == ["x0=b", "x1=1", "x0=a", "x1=2", "x0=c"]  # in the order of coming
    assert ours.transform(np.array([["z", 1]], dtype=object)).toarray().tolist() == [[0, 1, 0, 0, 0]]


def test_one_hot_grows():
    encoder = T.OneHotEncoder()
    encoder.learn_one({"city": "Oslo", "floor": 3})
    assert encoder.transform_one({"city": "Oslo", "floor": 4}) == {"city=Oslo": 1.0}
    encoder.learn_one({"city": "Rome", "floor": 3.0, "new": True})
    assert encoder.categories_ == ["city=Oslo", "floor=3", "city=Rome", "new=True"]
    river = preprocessing.OneHotEncoder()
    for x in ({"city": "Oslo", "floor": 3}, {"city": "Rome", "floor": 3}):
        river.learn_one(x)
    theirs = {name.replace("_", "="): 1.0 for name, value in river.transform_one({"city": "Rome"}).items() if value}
    assert encoder.transform_one({"city": "Rome"}) == theirs


def test_one_hot_of_some():
    encoder = T.OneHotEncoder(features=["city"])
    frame = pd.DataFrame({"city": ["a", "b"], "n": [0.0, 2.5]})
    encoder.partial_fit(frame)
    assert encoder.categories_ == ["city=a", "city=b", "n"]
    assert encoder.transform(frame).toarray().tolist() == [[1, 0, 0], [0, 1, 2.5]]
    assert encoder.transform_one({"city": "b", "n": 2.5}) == {"city=b": 1.0, "n": 2.5}


def test_hashing_is_the_models_own():
    """A model behind `FeatureHasher` and one with hash_bits have the same weights in the same slots."""
    stream = list(op.datasets.SparseText(200, features=500, nnz=10))
    chain = T.FeatureHasher(10) | op.LinearClassifier("pa1")
    alone = op.LinearClassifier("pa1", hash_bits=10)
    for x, y in stream:
        chain.learn_one(x, y)
        alone.learn_one(x, y)
    np.testing.assert_allclose(chain["linearclassifier"].coef_, alone.coef_, rtol=1e-12)
    assert T.FeatureHasher(10).transform_one({"a": 2.0}) == {op._native.murmur3("a") % 1024: 2.0}


def test_hashing_keeps_sums_and_names():
    rows = [{"a": 1.0, "b": 2.0, "c": "red"}, {"b": 1.0, 7: 3.0}]
    hasher = T.FeatureHasher(2, keep_names=True)
    hasher.learn_many(rows)
    table = hasher.transform_many(rows)
    assert [sum(hasher.transform_one(x).values()) for x in rows] == [4.0, 4.0]
    assert (table.rows, table.columns) == (2, 4)
    names = [name for shared in hasher.names_.values() for name in shared]
    assert sorted(names) == ["7", "a", "b", "c=red"]
    assert hasher.collisions_ == 4 - len(hasher.names_)
    with pytest.raises(AttributeError, match="keep_names=True"):
        _ = T.FeatureHasher().collisions_


def test_signed_hashing_cancels_on_average():
    names = {f"w{i}": 1.0 for i in range(4000)}
    plain, signed = (sum(T.FeatureHasher(4, signed=s).transform_one(names).values()) for s in (False, True))
    assert plain == 4000.0
    assert abs(signed) < 300


def test_collisions_of_a_stream(tmp_path):
    """The side table of hashes → names for a stream read by name."""
    path = tmp_path / "a.vw"
    path.write_text("".join(f"1 |a w{i} w{i + 1}\n" for i in range(100)))
    hasher = T.FeatureHasher(6, keep_names=True)
    for chunk in op.stream(path).batches(30):
        hasher.learn_many(chunk.X)
    hashed = np.concatenate([chunk.X.indices for chunk in op.stream(path, hash_bits=6).batches()])
    assert set(hasher.names_) == set(hashed.tolist())
    assert hasher.collisions_ == 101 - len(set(hashed.tolist()))


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("include_bias", [False, True])
def test_polynomials_are_sklearns(degree, interaction_only, include_bias):
    X = np.random.default_rng(0).normal(size=(20, 4))
    options = {"interaction_only": interaction_only, "include_bias": include_bias}
    ours, theirs = T.PolynomialFeatures(degree, **options), sk.PolynomialFeatures(degree, **options)
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), rtol=1e-12)
    names = ours.get_feature_names_out()
    assert ours.n_output_features_ == len(names)
    row = dict(zip(names, ours.transform(X)[3], strict=True))
    assert ours.transform_one(dicts(X)[3]) == pytest.approx(row, rel=1e-12)


def test_polynomials_of_mappings_have_one_name_each():
    ours = T.PolynomialFeatures(2)
    assert ours.transform_one({"b": 2.0, "a": 3.0}) == ours.transform_one({"a": 3.0, "b": 2.0})
    assert ours.transform_one({"b": 2.0, "a": 3.0})["a*b"] == 6.0


# -- texts -------------------------------------------------------------------------------------------------------------


TEXTS = ["So it goes. So it goes!", "and SO on", "", "Schöne Grüße, 北京 2008"]


@pytest.mark.parametrize("ngram", [(1, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize("of", ["words", "characters"])
def test_ngrams_are_sklearns(ngram, of):
    analyzer = {"words": "word", "characters": "char"}[of]
    pattern = {"token_pattern": r"\w+"} if of == "words" else {}
    theirs = sk_text.CountVectorizer(ngram_range=ngram, analyzer=analyzer, **pattern)
    counts = theirs.fit_transform(TEXTS).toarray()
    names = theirs.get_feature_names_out()
    ours = T.NGrams(ngram, of=of)
    for text, row in zip(TEXTS, counts, strict=True):
        expected = {f"text={name}": float(count) for name, count in zip(names, row, strict=True) if count}
        assert ours.transform_one({"text": text}) == expected
    table = ours.fit_transform(TEXTS)
    assert table.shape == (4, 2**18)
    np.testing.assert_array_equal(np.asarray(table.sum(axis=1)).ravel(), counts.sum(axis=1))


def test_ngrams_are_the_streams(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f'{i},"{text}"\n' for i, text in enumerate(TEXTS)))
    stream = op.stream(path, header=["label", "text"], text=["text"], ngram=2)
    ours = T.NGrams(2)
    assert [x for x, _ in stream] == [ours.transform_one({"text": text}) for text in TEXTS]


# -- every one ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ALL[:-1], ids=str)
def test_frames_name_columns(transform):
    frame = pd.DataFrame({"b^x": [1.0, 2.0, 3.0], "a^y": [4.0, 0.0, 6.0]})
    ours = clone(transform).fit(frame)
    assert list(ours.feature_names_in_) == ["b^x", "a^y"]
    out = ours.transform(frame)
    assert out.shape[1] == len(ours.get_feature_names_out())
    with pytest.raises(InputError):
        ours.transform(frame[["a^y", "b^x"]])
    with pytest.raises(InputError, match="input_features"):
        ours.get_feature_names_out(["a", "b"])


@pytest.mark.parametrize("transform", ALL[:-1], ids=str)
def test_pickle_and_clone(transform):
    X = normal(30)
    ours = clone(transform).fit(X)
    again = pickle.loads(pickle.dumps(ours))
    for part in (again.partial_fit(X), ours.partial_fit(X)):
        out = part.transform(X)
        np.testing.assert_array_equal(out.toarray() if hasattr(out, "toarray") else out, dense(ours.transform(X)))
    assert clone(ours)._state is None


def dense(table):
    return table.toarray() if hasattr(table, "toarray") else table


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.StandardScaler(with_mean="yes"), "with_mean='yes': expected True or False"),
        (lambda: T.StandardScaler(with_std=1), "with_std=1"),
        (lambda: T.MinMaxScaler((1, 0)), r"feature_range=\(1, 0\)"),
        (lambda: T.MinMaxScaler((0, float("inf"))), "feature_range"),
        (lambda: T.MinMaxScaler("ab"), "feature_range"),
        (lambda: T.MinMaxScaler(clip=None), "clip"),
        (lambda: T.OneHotEncoder("city"), "features='city'"),
        (lambda: T.OneHotEncoder([1]), "features"),
        (lambda: T.FeatureHasher(31), "hash_bits=31: expected a whole number from 1 to 30"),
        (lambda: T.FeatureHasher(True), "hash_bits"),
        (lambda: T.FeatureHasher(signed=0), "signed"),
        (lambda: T.FeatureHasher(keep_names=0), "keep_names"),
        (lambda: T.Interactions([]), "at least one"),
        (lambda: T.Interactions(["a"]), "from 2 to 8"),
        (lambda: T.Interactions([3]), "interaction 3"),
        (lambda: T.Interactions(7), "interactions=7"),
        (lambda: T.Interactions(["a^*b"]), "ends the name"),
        (lambda: T.Interactions(["abcdefghi"]), "from 2 to 8"),
        (lambda: T.PolynomialFeatures(0), "degree=0"),
        (lambda: T.PolynomialFeatures(2.5), "degree=2.5"),
        (lambda: T.PolynomialFeatures(interaction_only=1), "interaction_only"),
        (lambda: T.PolynomialFeatures(include_bias="no"), "include_bias"),
        (lambda: T.NGrams(0), "ngram=0"),
        (lambda: T.NGrams((2, 1)), "ngram"),
        (lambda: T.NGrams(of="bytes"), "of='bytes'"),
        (lambda: T.NGrams(lower=2), "lower"),
        (lambda: T.NGrams(binary=2), "binary"),
        (lambda: T.NGrams(features="text"), "features='text'"),
        (lambda: T.NGrams(hash_bits=0), "hash_bits=0"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ParameterError, match=message):
        make().learn_one({"text": "a"} if isinstance(make(), T.NGrams) else {"a^x": 1.0})


NUMERIC = [transform for transform in ALL if not isinstance(transform, T.NGrams)]
BAD_ROWS = {
    "NaN": {"a": float("nan")},
    "infinity": {"b": 1.0, "a": float("inf")},
    "None": {"a": None},
    "a list": {"a": [1.0]},
    "complex": {"a": 1j},
    "too large": {"a": 10**400},
    "not a mapping": 5,
    "a string": "abc",
    "nothing": None,
    "NaN in a row": np.array([1.0, np.nan]),
    "a table": np.ones((2, 2)),
}


def learned(transform):
    ours = clone(transform)
    ours.learn_many([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": -1.0}])
    return ours


@pytest.mark.parametrize("what", BAD_ROWS)
@pytest.mark.parametrize("transform", NUMERIC, ids=str)
def test_nothing_malformed_is_learned(transform, what, tmp_path):
    ours = learned(transform)
    ours.save(tmp_path / "before")
    for call in (ours.learn_one, ours.transform_one, lambda x: ours.learn_many([{"a": 1.0}, x])):
        with pytest.raises((InputError, FeatureError)):
            call(BAD_ROWS[what])
    ours.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


@pytest.mark.parametrize("transform", NUMERIC, ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_malformed_table_is_learned(transform, value, tmp_path):
    X = normal(10)
    ours = clone(transform).fit(X)
    ours.save(tmp_path / "before")
    X[7, 2] = value
    for call in (ours.partial_fit, ours.fit, ours.transform):
        with pytest.raises(InputError):
            call(X)
    ours.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


@pytest.mark.parametrize("what", [5, "abc", [5], ["a", None], None])
def test_ngrams_take_texts_only(what):
    with pytest.raises(InputError):
        T.NGrams().fit(what)
    with pytest.raises(InputError):
        T.NGrams(features=["a"]).learn_one({"a": 3.0})


@pytest.mark.parametrize("scaler", ALL[:4], ids=str)
def test_overflow_is_refused_for_its_row(scaler):
    X = np.array([[1.0], [2.0], [1e308], [-1e308], [3.0]])
    chunk, loop = clone(scaler), clone(scaler)
    with pytest.raises(NumericalError) as caught:
        chunk.learn_many(X)
    for x in X[: caught.value.row]:
        loop.learn_one(x)
    with pytest.raises(NumericalError):
        loop.learn_one(X[caught.value.row])
    assert pickle.dumps(chunk._state.arrays) == pickle.dumps({k: v[:1] for k, v in loop._state.arrays.items()})
    named = clone(scaler)
    with pytest.raises(NumericalError) as by_name:
        named.learn_many([{"a": float(x)} for x in X[:, 0]])
    assert by_name.value.row == caught.value.row


def test_a_scale_that_zeros_would_make_infinite_is_refused():
    scaler = T.StandardScaler(with_mean=False)
    scaler.learn_one({"a": 1e100})
    with pytest.raises(NumericalError, match="overflow"):
        scaler.learn_one({"a": 1e200})
    scaler.learn_one({"b": 1.0})
    assert np.isfinite(scaler.var_).all()


def test_rows_and_names_do_not_mix():
    scaler = T.StandardScaler().fit(normal())
    with pytest.raises(FeatureError, match="unnamed"):
        scaler.learn_one({"a": 1.0})
    named = learned(T.StandardScaler())
    with pytest.raises(FeatureError, match="no names"):
        named.learn_one(np.ones(2))
    with pytest.raises(FeatureError, match="expecting 5 features"):
        scaler.learn_one(np.ones(3))


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parent.parent.parent / "docs/features.md").read_text()


def test_the_page_names_every_transform_and_option():
    for name in T.__all__:
        assert f"`{name}`" in PAGE
    for transform in ALL:
        for option in transform.get_params():
            assert f"`{option}`" in PAGE, f"{type(transform).__name__}'s option {option} is missing in docs/features.md"


def test_the_pages_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "document"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "features.md", "exec", dont_inherit=True), namespace)
    promised = re.findall(r"print\(.*\)  # (.*)", PAGE)
    assert capsys.readouterr().out.split() == promised and len(promised) == 2
