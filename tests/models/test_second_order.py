"""Gaussian weights in use: growth, classes, what is refused and why, files, deviations, a rule of one's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.grid import Doubtful, csr, dicts, saved, stream

from onepass import rules
from onepass.errors import FeatureError, InputError, ModelFileError, NumericalError, ParameterError
from onepass.estimators.linear import LinearClassifier, LinearRegressor
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.persistence import store
from onepass.scheme.rounds import Rule, Scalars, Step
from onepass.scheme.spread import FORMS, Spread
from onepass.scheme.traits import RuleTraits

FULL = ["rls", "rls:form=chol", "rls:form=joseph", "kalman", "arow:covariance=full", "ons:loss=squared"]


def learned(rule: str, task: str = "regression", **options: Any) -> LinearModel:
    s = stream(task)
    model = LinearModel(rule, task, classes=s.classes, **options)
    model.learn_many(s.X, s.y, s.importance)
    return model


# -- growth ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["rls", "rls:form=chol", "arow", "arow:covariance=full", "scw1:covariance=full"])
def test_features_that_come_later_are_as_if_they_had_been_there(rule: str) -> None:
    """Without forgetting, a column of zeros and a name not yet met are the same: padding is the initial variance."""
    task = "regression" if rule.startswith("rls") else "binary"
    s = stream(task)
    X = s.X.copy()
    X[:20, 10:] = 0.0
    wide = LinearModel(rule, task, classes=s.classes)
    wide.learn_many(X, s.y)
    named = LinearModel(rule, task, classes=s.classes)
    for x, y in zip(dicts(X), s.y.tolist(), strict=True):
        named.learn_one(x, y)
    at = [named.names.index(f"f{j}") for j in range(X.shape[1])]
    np.testing.assert_allclose(named.weights()[0][:, at], wide.weights()[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(named.variances(dicts(X)), wide.variances(X), rtol=1e-10)


def test_a_third_class_inherits_how_sure_the_two_were() -> None:
    for rule in ("arow", "arow:covariance=full"):
        model = LinearModel(rule)
        for x, y in (([1.0, 2.0], "a"), ([2.0, -1.0], "b"), ([1.0, 1.0], "a")):
            model.learn_one(np.array(x), y)
        x = np.array([[1.0, 0.5]])
        before, start = model.variances(x)[0, 0], 1.0 + 1.0 + 0.25
        assert before < start
        model.learn_one(np.zeros(2), "c", 0.0)
        np.testing.assert_array_equal(model.variances(x)[0], [before, before, start])


def test_rls_shares_one_covariance_among_classes() -> None:
    """Each class row is ridge regression on ±1, whether the classes were known or grew."""
    s = stream("multiclass")
    model = LinearModel("rls", "multiclass", classes=s.classes, fit_intercept=False)
    model.learn_many(s.X, s.y)
    assert s.classes is not None
    targets = np.where(s.y[:, np.newaxis] == np.array(s.classes), 1.0, -1.0)
    ridge = np.linalg.solve(np.eye(s.X.shape[1]) + s.X.T @ s.X, s.X.T @ targets)
    np.testing.assert_allclose(model.weights()[0], ridge.T, atol=1e-10)
    assert model.variances(s.X).shape == (len(s.X), 1)


@pytest.mark.parametrize("rule", ["rls", "rls:form=chol", "arow", "arow:covariance=full"])
def test_rows_dense_sparse_and_float32_agree(rule: str) -> None:
    s = stream("regression", n=60)
    dense, by_row, narrow = (LinearModel(rule, "regression") for _ in range(3))
    dense.learn_many(s.X, s.y)
    by_row.learn_many(csr(s.X, np.int64), s.y)
    narrow.learn_many(s.X.astype(np.float32), s.y)
    for other in (by_row, narrow):
        np.testing.assert_allclose(other.weights()[0], dense.weights()[0], rtol=1e-10, atol=1e-12)
    for X in (s.X.astype(np.float32), csr(s.X), csr(s.X, np.int64), csr(s.X.astype(np.float32))):
        np.testing.assert_allclose(dense.variances(X), dense.variances(s.X), rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_few_of_many_columns_take_the_short_way(form: str) -> None:
    """A sparse row of a wide matrix reads only its columns of Σ; the result is that of the whole product."""
    rng = np.random.default_rng(0)
    X = sparse.random(40, 200, density=0.03, random_state=1, format="csr")
    y = rng.normal(size=40)
    short, whole = (LinearModel(f"rls:form={form}", "regression") for _ in range(2))
    short.learn_many(X, y)
    whole.learn_many(X.toarray(), y)
    np.testing.assert_allclose(short.weights()[0], whole.weights()[0], atol=1e-12)


@pytest.mark.parametrize("task", ["regression", "multiclass"])
@pytest.mark.parametrize("rule", ["rls", "rls:form=chol", "arow:covariance=full"])
def test_mappings_in_the_order_of_the_columns_have_the_bits_of_rows(rule: str, task: str) -> None:
    """Names that come whole and in order are a dense row: the sums of CSR, of NumPy rows, and of every list of them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 21))
    y = X[:, 0] - X[:, 1] + rng.normal(size=60) if task == "regression" else rng.integers(0, 3, 60)
    classes = None if task == "regression" else [0, 1, 2]
    named, together, rows = (LinearModel(rule, task, classes=classes) for _ in range(3))
    mappings = dicts(X)
    for x, mapping, answer in zip(X, mappings, y.tolist(), strict=True):
        assert named.predict_one(mapping) == rows.predict_one(x)
        named.learn_one(mapping, answer)
        rows.learn_one(x, answer)
    together.learn_many(mappings, y)
    assert saved(named) == saved(together)
    np.testing.assert_array_equal(named.weights()[0], rows.weights()[0])
    np.testing.assert_array_equal(named.variances(mappings), rows.variances(X))


@pytest.mark.parametrize("hash_bits", [None, 4])
@pytest.mark.parametrize("rule", ["pa1", "rls"])
def test_a_mapping_that_changes_between_prediction_and_learning_is_read_again(rule: str, hash_bits: int | None) -> None:
    """What is predicted is kept for learning; a value, a name or the model's names that change are noticed."""
    model, plain = (LinearModel(rule, "regression", hash_bits=hash_bits) for _ in range(2))
    x = {"a": 1.0, "b": 2.0}
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: x.update(a=-3.0),
        lambda: x.update(c=0.5),
        lambda: x.pop("b"),
        lambda: x.update(c=0),
        lambda: (x.clear(), x.update(b=1.0, a=2)),
        lambda: model.learn_one({"z": 1.0, "a": 1.0}, 1.0) or plain.learn_one({"z": 1.0, "a": 1.0}, 1.0),
    ]
    for i, change in enumerate(2 * changes):
        model.predict_one(x)
        change()
        model.learn_one(x, float(i))
        plain.learn_one(dict(x), float(i))
        assert saved(model) == saved(plain)
    kept = model.predict_one(x)
    with pytest.raises(InputError):  # a refused row is not what was read before it
        model.learn_one({"a": float("nan")}, 1.0)
    assert model.predict_one(x) == kept


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_too_many_features_are_refused_before_any_room_is_made() -> None:
    small = rules.RLS(max_dim=4)
    model = LinearModel(small, "regression")
    with pytest.raises(FeatureError, match=r"max_dim=4 with the intercept; 4 features would be too many"):
        model.learn_many(np.ones((2, 4)), [1.0, 2.0])
    with pytest.raises(FeatureError, match="max_dim=4"):
        model.learn_one(np.ones(4), 1.0)
    model.learn_one({"a": 1.0, "b": 2.0, "c": 1.0}, 1.0)
    before = saved(model)
    with pytest.raises(FeatureError, match="max_dim=4"):
        model.learn_one({"a": 1.0, "d": 1.0}, 1.0)
    assert saved(model) == before
    with pytest.raises(FeatureError, match="1048576 features would be too many"):
        LinearModel("rls", "regression", hash_bits=20)
    with pytest.raises(FeatureError, match="Use a rule with"):
        LinearModel("arow:covariance=full", hash_bits=30)
    LinearModel("arow", hash_bits=20)
    assert LinearModel(small, "regression", fit_intercept=False).learn_many(np.ones((1, 4)), [1.0]) is None


@pytest.mark.parametrize("rule", [*FULL, "arow"])
def test_a_bad_row_leaves_all_as_it_was(rule: str) -> None:
    model = learned(rule)
    before = saved(model)
    X = stream("regression").X.copy()
    X[7, 3] = np.nan
    with pytest.raises(InputError, match=r"X\[7, 3\] is NaN"):
        model.learn_many(X, np.ones(len(X)))
    assert saved(model) == before


@pytest.mark.parametrize("rule", [*FULL, "arow"])
def test_overflow_is_refused_for_its_row(rule: str) -> None:
    s = stream("regression")
    X = s.X.copy()
    X[5] = 1e160
    got, expected = (LinearModel(rule, "regression") for _ in range(2))
    with pytest.raises(NumericalError) as error:
        got.learn_many(X, s.y)
    assert error.value.row == 5
    expected.learn_many(X[:5], s.y[:5])
    assert saved(got) == saved(expected)


@pytest.mark.parametrize("rule", FULL)
def test_an_importance_that_overflows_is_refused(rule: str) -> None:
    """Not learned as if it had been nothing: c·xᵀΣx is too large to divide by, though c and the row are numbers."""
    model, reference = LinearModel(rule, "regression"), ReferenceLearner(rule, "regression")
    before = saved(model)
    with pytest.raises(NumericalError):
        model.learn_one(np.array([2.0, 1.0]), 1.0, 1e308)
    assert saved(model) == before
    with pytest.raises(NumericalError):
        reference.learn([2.0, 1.0], 1.0, 1e308)


def test_a_covariance_that_would_not_stay_positive_is_refused() -> None:
    """With variances of 1e30 beside noise of 1e-9 the second look at a direction leaves nothing but rounding."""
    model = LinearModel("arow:lam=1e-9,sigma0=1e30,covariance=full", "regression", fit_intercept=False)
    rng = np.random.default_rng(0)
    with pytest.raises(NumericalError, match=r"no longer positive definite; scale the features"):
        for _ in range(200):
            before = saved(model) if model.t else None
            model.learn_one(rng.normal(size=3) * [1.0, 1e3, 1e6], 1.0)
    assert before is not None
    assert saved(model) == before


def test_the_diagonal_never_reaches_zero() -> None:
    """Where the formula as written would round to 0, a variance only becomes small."""
    for rule in ("arow:lam=1e-30", "nherd:C=1e30", "arow:lam=1e-30,diag=exact"):
        model = LinearModel(rule, "binary", classes=[-1, 1], fit_intercept=False)
        for y in (1, -1, 1, -1):
            model.learn_one(np.array([1.0]), y)
        assert 0 < model.variances([[1.0]])[0, 0] < 1e-20


def test_what_does_not_go_together() -> None:
    with pytest.raises(ParameterError, match="reads φᵀΣφ, intercept included"):
        LinearModel("arow", bias_in_norm=False)
    with pytest.raises(ParameterError, match="also shrinks"):
        LinearModel("arow", readout="voted")
    with pytest.raises(ParameterError, match="keeps variances of weights"):
        KernelModel("arow")
    with pytest.raises(ParameterError, match="not defined for task='oneclass'"):
        LinearModel("arow", "oneclass")
    with pytest.raises(ParameterError, match="keeps no variances; use a second-order rule"):
        LinearModel("pa1", "regression").variances([[1.0]])
    with pytest.raises(ParameterError, match="says nothing of the noise"):
        LinearRegressor("ons:loss=squared").fit([[1.0], [2.0]], [1.0, 2.0]).predict([[1.0]], return_std=True)
    regressor = LinearRegressor("rls").fit([[1.0], [2.0]], [1.0, 2.0])
    for coverage in (0, 1, True, "wide"):
        with pytest.raises(ParameterError, match="coverage"):
            regressor.predict_interval([[1.0]], coverage=coverage)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        regressor.predict([[np.nan]], return_std=True)


# -- files -------------------------------------------------------------------------------------------------------------

FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "too small": lambda arrays: arrays.update(sigma=arrays["sigma"][:, :-1].copy()),
    "of two classes": lambda arrays: arrays.update(sigma=np.vstack([arrays["sigma"]] * 2)),
    "missing": lambda arrays: arrays.pop("sigma"),
    "not finite": lambda arrays: arrays["sigma"].__setitem__((0, 1), np.nan),
    "a variance of 0": lambda arrays: arrays["sigma"].__setitem__((0, 2), 0.0),
    "a negative variance": lambda arrays: arrays["sigma"].__setitem__((0, 0), -1.0),
    "a count missing": lambda arrays: arrays.pop("sigma_waited"),
}
FORGED_FACTOR: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a bound missing": lambda arrays: arrays.pop("sigma_reach"),
    "a bound below 0": lambda arrays: arrays["sigma_reach"].__setitem__(0, -1.0),
    "two bounds": lambda arrays: arrays.update(sigma_reach=np.ones(2)),
}


@pytest.mark.parametrize(
    ("form", "what"),
    [(form, what) for form in FORMS for what in FORGED] + [("chol", what) for what in FORGED_FACTOR],
)
def test_a_forged_covariance_does_not_load(form: str, what: str) -> None:
    config, arrays = learned(f"rls:form={form}").state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    (FORGED | FORGED_FACTOR)[what](arrays)
    with pytest.raises((ModelFileError, ParameterError)):
        LinearModel.from_state(*store.from_bytes(store.to_bytes("LinearModel", config, arrays), "forged")[1:])


def test_a_forged_diagonal_does_not_load() -> None:
    config, arrays = learned("arow").state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    arrays["planes"].flat[3] = -1.0
    with pytest.raises(ModelFileError, match="variance"):
        LinearModel.from_state(config, arrays)


def test_a_file_says_its_form() -> None:
    """A triangle of Γ and a factor of Γ⁻¹ look alike: what they are must come from the file, not from who reads it."""
    s = stream("regression")
    for form in FORMS:
        model = learned(f"rls:form={form},forgetting=0.9")
        again = LinearModel.from_state(*store.from_bytes(saved(model), "a model")[1:])
        assert isinstance(again.rule, rules.RLS) and again.rule.form == form
        np.testing.assert_array_equal(again.variances(s.X), model.variances(s.X))
    config, arrays = learned("rls").state()
    del config["rule"]["params"]["form"]  # as files had it before there was a choice
    old = LinearModel.from_state(config, arrays)
    assert isinstance(old.rule, rules.RLS) and old.rule.form == "gain"
    np.testing.assert_array_equal(old.variances(s.X), learned("rls").variances(s.X))


# -- a rule of one's own -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("form", ["joseph", "chol"])
def test_every_rule_with_a_full_covariance_may_choose_its_form(form: str, task: str) -> None:
    """Among classes each row has its own Σ, whose part of the joint update is that of more noise."""

    @dataclasses.dataclass(repr=False)
    class Formed(Doubtful):
        form: str = "gain"

        @property
        def traits(self) -> RuleTraits:
            spread = Spread(full=True, start=0.5, forgets=True, largest=0.6, form=self.form)
            return super().traits.replace(spread=spread)

    s = stream(task)
    models = [LinearModel(Formed(form=each), task, classes=s.classes) for each in ("gain", form)]
    for model in models:
        model.learn_many(s.X, s.y, s.importance)
    plain, other = models
    np.testing.assert_allclose(other.weights()[0], plain.weights()[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other.variances(s.X), plain.variances(s.X), rtol=1e-9)
    waited = [float(model._engine.state()["sigma_waited"][0]) for model in models]
    assert waited[0] == waited[1] > 0


def test_what_a_form_is_for() -> None:
    with pytest.raises(ParameterError, match=r"Spread\(form='abc'\): expected one of 'gain', 'joseph', 'chol'"):
        Spread(full=True, form="abc")
    for full, drift in ((False, 0.0), (True, 0.1)):
        with pytest.raises(ParameterError, match="is for a full Σ without drift; use form='gain'"):
            Spread(full=full, drift=drift, form="chol")


def test_deviations_of_names_rows_and_tables_agree() -> None:
    s = stream("regression")
    by_name = LinearRegressor("rls")
    by_table = LinearRegressor("rls").fit(s.X, s.y)
    by_name.learn_many(dicts(s.X), s.y)
    for i in (0, 5, 11):
        named, tabled = (by_name.predict_one(dicts(s.X)[i], std=True), by_table.predict_one(s.X[i], std=True))
        assert named == pytest.approx(tabled, rel=1e-10)
    means, stds = by_table.predict(csr(s.X), return_std=True)
    np.testing.assert_allclose(np.stack([means, stds]), np.stack(by_table.predict(s.X, return_std=True)), rtol=1e-9)
    assert LinearRegressor("rls:lam=4,noise_variance=2").predict_one({"a": 2.0}, std=True)[1] == pytest.approx(
        np.sqrt(2.0 * (1.0 + (4.0 + 1.0) / 4.0))
    )


def test_the_reference_says_the_same_variance() -> None:
    for rule, task in (("arow", "binary"), ("rls", "regression"), ("scw2:covariance=full", "multiclass")):
        s = stream(task)
        model = learned(rule, task)
        reference = ReferenceLearner(rule, task, classes=4)
        ys = s.y.tolist() if task == "regression" else [s.classes.index(y) for y in s.y.tolist()]  # type: ignore[union-attr]
        for x, y, c in zip(s.X, ys, s.importance.tolist(), strict=True):
            reference.learn(x, (2 * y - 1) if task == "binary" else y, c)
        np.testing.assert_allclose(model.variances(s.X[:1])[0], np.atleast_1d(reference.variance(s.X[0])), rtol=1e-10)


def test_classifiers_work_wherever_the_first_order_rules_do() -> None:
    mail = LinearClassifier("arow", hash_bits=10)
    for _ in range(3):
        mail.learn_one({"text:hello": 1.0, "n": 2.0}, "ham")
        mail.learn_one({"text:viagra": 1.0, "n": 2.0}, "spam")
        mail.learn_one({"text:invoice": 1.0, "n": 2.0}, "bill")
    assert [mail.predict_one({f"text:{word}": 1.0}) for word in ("hello", "viagra", "invoice")] == [
        "ham",
        "spam",
        "bill",
    ]


@dataclasses.dataclass(repr=False)
class Forgetful(Rule):
    """A user's rule that forgets without a bound on what it forgets."""

    name = "forgetful"
    tasks = ("regression",)
    form: str = "gain"

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(spread=Spread(full=True, forgets=True, form=self.form))

    def step(self, s: Scalars) -> Step:
        return Step(add=(s.target - s.m) / (s.xx + 1.0), gain=s.importance, forget=0.1)


@pytest.mark.parametrize("form", ["gain", "joseph", "chol"])
def test_what_would_become_infinite_is_refused(form: str) -> None:
    """A feature that stays away is forgotten until its variance would overflow: that round is refused."""
    model = LinearModel(Forgetful(form=form), "regression", fit_intercept=False)
    model.learn_many(np.ones((1, 3)), [1.0])
    with pytest.raises(NumericalError, match="overflows"):
        for _ in range(400):
            before = saved(model)
            model.learn_many(np.array([[1.0, 0.0, 0.0]]), [1.0])
    assert saved(model) == before
    again = LinearModel.from_state(*model.state())
    assert np.all(np.isfinite(again.variances(np.eye(3))))
