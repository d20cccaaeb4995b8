"""The native loops against `core.py`, against themselves on every instruction set, and against plain arithmetic."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import murmurhash3_32
from support import grid
from support.command import environment, line
from support.grid import READOUTS, RULES, TASKS, saved, stream
from support.positions import position

from onepass import _native, rules
from onepass.estimators.linear import LinearClassifier
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.scheme.readouts import Average
from onepass.scheme.rounds import Rule, Scalars, Step

RULE_TASKS = [(rule, task) for rule, (_, tasks) in RULES.items() for task in tasks]


def core_labels(s: grid.Stream, task: str) -> np.ndarray:
    """The stream's answers as `ReferenceLearner` wants them: ±1, class indices, or numbers."""
    if task == "regression":
        return s.y
    at = np.searchsorted(s.classes, s.y)
    return 2 * at - 1 if task == "binary" else at


def both(rule: Rule, task: str, s: grid.Stream, **options: Any) -> tuple[LinearModel, ReferenceLearner]:
    native = LinearModel(rule, task, classes=s.classes, **options)
    native.learn_many(s.X, s.y, s.importance)
    reference = ReferenceLearner(rule, task, classes=len(s.classes or ()) or 2, **options)
    for x, y, c in zip(s.X, core_labels(s, task), s.importance, strict=True):
        reference.learn(x, y, float(c))
    return native, reference


def assert_close(native: LinearModel, reference: ReferenceLearner, tolerance: float = 1e-12) -> None:
    w, intercept = native.weights()
    for mine, theirs in ((w, np.atleast_2d(reference.w)), (intercept, np.atleast_1d(reference.intercept))):
        assert mine.shape == theirs.shape
        assert np.all(np.abs(mine - theirs) <= tolerance * np.maximum(1.0, np.abs(theirs))), abs(mine - theirs).max()
    assert (native.t, native.k) == (reference.t, reference.k)
    assert native._engine.skipped_zero == reference.skipped_zero
    assert np.allclose(native.state()[1]["slots"], list(reference.state.values()), rtol=1e-12, atol=0)


# -- against the reference ---------------------------------------------------------------------------------------------


AVERAGES = ("last", "average", "post")
AGREEING = [
    (name, task, readout, turn)
    for name, task in RULE_TASKS
    for readout in (*READOUTS, "late")
    for turn in range(len(grid.OPTIONS) - (name in grid.READS_WW))
    if grid.tried(name, "average" if readout == "late" else readout)
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "task", "readout", "turn"), AGREEING)
def test_agrees_with_the_reference(name: str, task: str, readout: str, turn: int) -> None:
    wanted = {**READOUTS, "late": Average(start=30)}[readout]
    s = stream(task, n=70, seed=turn + 1)
    options = {**grid.OPTIONS[turn], **grid.AMONG.get(name, {})}
    assert_close(*both(grid.make_rule(name), task, s, readout=wanted, **options), grid.TOLERANCE.get(name, 1e-12))


@pytest.mark.parametrize("task", TASKS)
def test_a_rule_in_c_and_the_same_rule_in_python_give_the_same_bits(task: str) -> None:
    s = stream(task, n=200)
    states = []
    for rule in (grid.Tempered(), grid.tempered_in_c()):
        model = LinearModel(rule, task, classes=s.classes, readout="average")
        model.learn_many(s.X, s.y, s.importance)
        states.append(model.state()[1])
    assert all(np.array_equal(states[0][key], states[1][key]) for key in states[0])
    assert states[0]["slots"][1] > 100  # the slots were carried from round to round


@dataclasses.dataclass(repr=False)
class Wild(Rule):
    """Scales by turns: 0, negative, far down, far up."""

    name = "wild"
    tasks = TASKS
    factors: ClassVar[tuple[float, ...]] = (1.0, 1e-4, -0.5, 1e4, 0.9, 1e5, 1e-6, -1.0, 0.0)

    def step(self, s: Scalars) -> Step:
        i = s.t % len(self.factors)
        return Step(add=0.1, scale=self.factors[i], decay=0.5 if s.t % 4 == 0 else 1.0)


DECAYING = {
    "halving": rules.SGD("hinge", "constant", eta=0.5, l2=1.0),  # 2^-n: folds the scale every 30 rounds
    "to zero": rules.SGD("hinge", "constant", eta=0.5, l2=2.0),  # decay 0 in every round
    "beyond zero": rules.SGD("logistic", "constant", eta=0.5, l2=50.0),
    "pegasos": rules.Pegasos(lam=1.0),  # its first round scales by 0
    "pegasos-project": rules.Pegasos(lam=10.0, project=True),
    "wild": Wild(),
}


@pytest.mark.full
@pytest.mark.parametrize("readout", AVERAGES)
@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("name", DECAYING)
def test_the_lazy_scale_folds_without_loss(name: str, task: str, readout: str) -> None:
    s = dataclasses.replace(stream(task, n=300, d=5, seed=3), importance=np.ones(300))
    native, reference = both(DECAYING[name], task, s, readout=READOUTS[readout])
    assert_close(native, reference)
    assert 1e-9 <= abs(native.state()[1]["scalars"][position("linear", "scale")]) <= 1e9


@pytest.mark.full
@pytest.mark.parametrize("d", [3, 19, 100])
@pytest.mark.parametrize("form", ["f64", "f32", "csr32", "csr64", "named", "hashed"])
@pytest.mark.parametrize(("name", "task"), RULE_TASKS)
def test_same_bits_on_every_instruction_set(name: str, task: str, form: str, d: int, own_isa: None) -> None:
    """19 features: a full group of lanes and a rest; 3: a rest alone; 100: several groups."""
    s = stream(task, n=25, d=d)
    cell = grid.Cell(name, task, form, "average" if grid.admits(name, "average") else "last")
    got = {}
    for isa in _native.isas():
        _native.use_isa(isa)
        assert _native.isa() == isa
        model = cell.model(s.classes)
        model.learn_many(cell.form.make(s.X), s.y, s.importance)
        got[isa] = (saved(model), model.score_many(cell.form.make(s.X)).tobytes())
    assert [isa for isa in got if got[isa] != got["scalar"]] == []


@functools.cache
def rows_of_every_length(kind: type) -> sparse.csr_matrix:
    generator = np.random.default_rng(7)
    lengths = np.arange(108) % 36
    starts = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.sort(generator.permutation(40)[:n]) for n in lengths])
    values = np.where(generator.random(starts[-1]) < 0.1, 0.0, generator.normal(size=starts[-1])).astype(kind)
    return sparse.csr_matrix((values, indices, starts), shape=(len(lengths), 40))


@pytest.mark.full(most=110, quick=20)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "task"), RULE_TASKS)
def test_rows_of_every_length_on_every_instruction_set(name: str, task: str, kind: type, own_isa: None) -> None:
    """0 to 35 features, the last weights: the loops compiled for each kind of rule, in one batch and row by row."""
    X = rows_of_every_length(kind)
    rows = X.shape[0]
    s = stream(task, n=rows)
    got = {}
    for isa, size in itertools.product(_native.isas(), (rows, 1)):
        _native.use_isa(isa)
        model = LinearModel(grid.make_rule(name), task, classes=s.classes, **grid.AMONG.get(name, {}))
        for i in range(0, rows, size):
            model.learn_many(X[i : i + size], s.y[i : i + size], s.importance[i : i + size])
        got[isa, size] = (saved(model), model.score_many(X).tobytes())
    assert [each for each in got if got[each] != got["scalar", rows]] == []
    if kind is np.float64:
        _, reference = both(
            grid.make_rule(name), task, dataclasses.replace(s, X=X.toarray()), **grid.AMONG.get(name, {})
        )
        assert_close(model, reference, grid.TOLERANCE.get(name, 1e-12))


@pytest.fixture
def own_isa() -> Iterator[None]:
    before = _native.isa()
    yield
    _native.use_isa(before)


def test_an_unknown_instruction_set_is_refused() -> None:
    had = ", ".join(_native.isas())
    with pytest.raises(ValueError, match=f"instruction set 'sse9' is not available on this machine, which has {had}"):
        _native.use_isa("sse9")


def loaded_with(isa: str, code: str) -> subprocess.CompletedProcess[str]:
    about = {**environment(), "ONEPASS_ISA": isa}
    return subprocess.run([sys.executable, "-c", code], env=about, text=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("isa", ["", *_native.isas()])
def test_the_environment_chooses_the_instruction_set(isa: str) -> None:
    shown = "from onepass import _native; print(_native.isa(), _native.uses_packs())"
    result = loaded_with(isa, shown)
    assert result.returncode == 0, result.stderr
    chosen = isa or _native.isas()[-1]
    used, packs = result.stdout.split()
    assert used == chosen
    assert chosen == "avx512" or packs == "False"  # the parsers follow


@pytest.mark.parametrize("isa", ["sse9", "AVX2"])
def test_an_unknown_instruction_set_in_the_environment_is_an_import_error(isa: str) -> None:
    result = loaded_with(isa, "import onepass; onepass.LinearClassifier()")
    assert result.returncode == 1
    expected = f"ONEPASS_ISA={isa}: expected scalar, avx2 or avx512; this machine has {', '.join(_native.isas())}"
    assert expected in result.stderr and "ImportError" in result.stderr
    command = subprocess.run(
        line("learn", "no.vw"), env={**environment(), "ONEPASS_ISA": isa}, text=True, capture_output=True, timeout=120
    )
    assert command.returncode == 2 and expected in command.stderr and len(command.stderr.splitlines()) == 1


# -- the norm ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["f64", "csr32", "hashed"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("name", ["pegasos-project", "user-c"])
def test_the_tracked_norm_is_the_norm(name: str, task: str, form: str) -> None:
    """‖w‖² of the features, followed in O(1) over 30 000 rounds, is looked at between its recomputations."""
    cell = grid.Cell(name, task, form, "last")
    model = cell.model(grid.LABELS[task])
    updates = 0
    for part in range(12):
        s = stream(task, n=2500, seed=part)
        model.learn_many(cell.form.make(s.X), s.y)
        w, _ = model.weights()
        assert model._engine.ww == pytest.approx(float(np.sum(w * w)), rel=1e-11)
        updates = model.k
    assert model.t == 30_000
    assert updates > 5_000


@pytest.mark.parametrize("form", ["f64", "named"])
@pytest.mark.parametrize("name", ["pegasos-project", "user-c", "romma"])
def test_the_tracked_norm_is_the_norm_when_classes_come(name: str, form: str) -> None:
    """The third class makes w the rows −w/2 and w/2, of half the squared norm."""
    s, shape = stream("multiclass", n=60), grid.REPRESENTATIONS[form]
    model = LinearModel(grid.make_rule(name), "auto")
    order = np.argsort(np.minimum(s.y, 30), kind="stable")  # 10s, then 20s, then the others
    seen = set()
    for i in order:
        model.learn_one(shape.row(s.X, int(i)), s.y[i].item())
        seen.add(s.y[i].item())
        w, _ = model.weights()
        assert model._engine.ww == pytest.approx(float(np.sum(w * w)), rel=1e-9), len(seen)
    assert len(seen) == 4 and model._engine.ww > 0


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("task", TASKS)
def test_unsorted_and_repeated_columns_are_summed(task: str, index: type) -> None:
    """Quarters, so that sums are exact and the canonical matrix must give the same bits."""
    s = stream(task)
    rng = np.random.default_rng(5)
    n, d, stored = len(s.X), grid.FEATURES, 30
    data = rng.integers(-8, 9, size=n * stored) / 4.0
    columns = rng.integers(0, d, size=n * stored).astype(index)
    raw = sparse.csr_matrix((data, columns, np.arange(0, n * stored + 1, stored, dtype=index)), shape=(n, d))
    raw.indices, raw.indptr = columns, raw.indptr.astype(index)
    assert not raw.has_canonical_format
    canonical = raw.copy()
    canonical.sum_duplicates()
    models = [LinearModel("pa1:C=0.1", task, classes=s.classes) for _ in range(3)]
    scores = []
    for model, X in zip(models, (raw, canonical), strict=False):
        model.learn_many(X, s.y)
        scores.append(model.score_many(X))
    for i in range(n):
        row = slice(i * stored, (i + 1) * stored)
        starts = np.array([0, stored], dtype=index)
        models[2].learn_one(sparse.csr_matrix((data[row], columns[row], starts), shape=(1, d)), s.y[i])
    assert saved(models[0]) == saved(models[1]) == saved(models[2])
    assert np.array_equal(*scores)
    assert not raw.has_canonical_format  # the user's matrix is left alone


@pytest.mark.parametrize("task", TASKS)
def test_representations_agree(task: str) -> None:
    s = stream(task, n=100)
    found = {}
    for name, form in grid.REPRESENTATIONS.items():
        if name != "hashed":  # its few buckets collide
            model = LinearModel("pa1", task, classes=s.classes)
            model.learn_many(form.make(s.X), s.y, s.importance)
            order = [int(str(n)[1:]) for n in model.names] or list(range(grid.FEATURES))
            found[name] = model.weights()[0][:, np.argsort(order)]
    for name, w in found.items():
        assert np.allclose(w, found["f64"], rtol=1e-12, atol=1e-12), name


def test_murmur3_is_that_of_scikit_learn() -> None:
    texts = ["abcdefghijklmnopqrstuvwxyz"[:n] for n in range(20)] + ["ünïcode", "日本語", "a\0b", "x" * 1000]
    for text in texts:
        for seed in (0, 1, 42):
            assert _native.murmur3(text, seed) == murmurhash3_32(text, seed=seed, positive=True), text


@pytest.mark.parametrize("name", ["7", "007", "0", "123456789012345678901", "a^7", "a^b^00012", "^5", "٣"])
def test_a_name_of_digits_is_its_number_counted_from_its_namespace(name: str) -> None:
    space, caret, rest = name.rpartition("^")
    expected = _native.murmur3(space + caret) + int(rest) if rest.isascii() else _native.murmur3(name)
    assert _native.hash_names([name], 32).view(np.uint32)[0] == expected % 2**32
    for other in (name + "x", name + "*", "x" + name, name + "^"):
        if not other.rpartition("^")[2].isdigit():
            assert _native.hash_names([other], 32).view(np.uint32)[0] == _native.murmur3(other), other


@pytest.mark.parametrize("bits", [1, 4, 10])
def test_hashed_names_land_where_murmur3_says(bits: int) -> None:
    model = LinearModel("perceptron", hash_bits=bits, fit_intercept=False)
    x = {"age": 2.0, "colour": "red", "member": True, 7: 1.5, "zero": 0.0}
    model.learn_one(x, "b")
    model.learn_one({}, "a")  # b is the larger label: its direction is positive
    expected = np.zeros(1 << bits)
    for text, value in (("age", 2.0), ("colour=red", 1.0), ("member", 1.0)):
        expected[murmurhash3_32(text, positive=True) % (1 << bits)] += value
    expected[7 % (1 << bits)] += 1.5  # a number is its own hash
    assert np.array_equal(model.weights()[0][0], expected)


# -- counters, zeros, classes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", grid.REPRESENTATIONS)
def test_importance_zero_and_zero_vectors_count_and_change_nothing(form: str) -> None:
    cell = grid.Cell("adaline", "regression", form, "last")
    settings = {**cell.settings(), "fit_intercept": False}
    X = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 1.0], [1e-160, 0.0], [2.0, 0.0]])
    model = LinearModel("adaline", "regression", **settings)
    model.learn_many(cell.form.make(X), [1.0] * 5, [1.0, 1.0, 0.0, 1.0, 1.0])
    assert (model.t, model.k, model._engine.skipped_zero) == (5, 2, 2)  # 1e-160² is no normal number
    two = LinearModel("adaline", "regression", **settings)
    two.learn_many(cell.form.make(X[[0, 4]]), [1.0, 1.0])
    assert np.array_equal(two.weights()[0], model.weights()[0])


def test_counters_of_the_estimator() -> None:
    s = stream("binary")
    learner = LinearClassifier("perceptron").partial_fit(s.X, s.y, classes=s.classes, sample_weight=s.importance)
    reference = both(rules.Perceptron(), "binary", s)[1]
    assert (learner.t_, learner.k_) == (reference.t, reference.k)
    assert 0 < learner.k_ < learner.t_ == len(s.X)


LAZY = [
    "fobos:lam1=0.02",
    "fobos:lam1=0.02,lam2=0.1",
    "truncated:gravity=0.02,K=2",
    "truncated:gravity=0.5,threshold=0.1",
]


@pytest.mark.parametrize("rule", LAZY)
def test_a_third_class_halves_what_is_left_after_paying(rule: str) -> None:
    s = stream("binary")
    model = LinearModel(rule)
    model.learn_many(s.X, s.y)
    w, _ = model.weights()
    model.learn_one(np.zeros(grid.FEATURES), "third", 0.0)
    assert np.count_nonzero(w) and np.allclose(
        model.weights()[0], np.vstack([-w / 2, w / 2, 0 * w]), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("rule", LAZY)
def test_files_with_debts_beside_the_weights_are_read(rule: str) -> None:
    """Before weights were stored raised by what was owed, a file had that of each feature in an array of its own."""
    s = stream("binary")
    model = LinearModel(rule)
    model.learn_many(s.X, s.y)
    config, arrays = model.state()
    a = arrays["scalars"][position("linear", "scale")]
    then = np.linspace(0.0, float(arrays["owed_now"][0]), grid.FEATURES)
    v = np.linspace(-2.0, 2.0, grid.FEATURES)[:, np.newaxis]
    left = np.sign(v) * np.maximum(0.0, np.abs(v) - (arrays["owed_now"][0] - then)[:, np.newaxis])
    old = LinearModel.from_state(config, {**arrays, "v": v, "owed": then})
    expected = a * np.where(np.abs(v) > model.rule_traits.soft_limit, v, left)
    assert np.allclose(old.weights()[0], expected.T, rtol=1e-12, atol=1e-15)
    again = LinearModel.from_state(*old.state())
    assert np.array_equal(again.weights()[0], old.weights()[0])


@pytest.mark.parametrize("readout", AVERAGES)
def test_a_third_class_splits_the_binary_weights(readout: str) -> None:
    """(w) becomes (−w/2, +w/2, 0), and so does what was averaged: no prediction changes."""
    s = stream("binary")
    model = LinearModel("pa1", readout=READOUTS[readout])
    model.learn_many(s.X, s.y)
    w, b = model.weights()
    scores = model.score_many(s.X)[:, 0]
    assert list(model.predict_many(s.X)) == [model.predict_one(x) for x in s.X]
    model.learn_one(np.zeros(grid.FEATURES), "third", 0.0)  # importance 0: the class is let in, nothing moves
    assert model.classes == ["no", "yes", "third"]
    n = 40.0 if readout == "average" else 36.0  # rounds averaged before; the last round repeats the last weights
    if readout == "last":
        wide, wide_b = model.weights()
        assert np.array_equal(wide, np.vstack([-w / 2, w / 2, 0 * w]))
        assert np.array_equal(wide_b, np.concatenate([-b / 2, b / 2, 0 * b]))
        split = model.score_many(s.X)
        assert np.allclose(split[:, 1] - split[:, 0], scores, rtol=1e-12, atol=1e-12)
    else:
        last = model.weights(last=True)[0]
        averaged = (n * np.vstack([-w / 2, w / 2, 0 * w]) + last) / (n + 1)
        assert np.allclose(model.weights()[0], averaged, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("labels", [["b", "a"], ["a", "b"], [1, 0], [2.5, -1], [True, False], [(1, 2), (1, 1)]])
def test_two_classes_are_kept_in_order(labels: list[Any]) -> None:
    """Whichever comes first, the smaller label is the negative one, as if both had been declared."""
    s = stream("binary")
    y = [labels[0]] * 3 + [labels[i] for i in (s.y[3:] == s.y[-1]).astype(int)]
    grown = LinearModel("pa1", readout="average")
    declared = LinearModel("pa1", classes=sorted(labels), readout="average")
    for model in (grown, declared):
        model.learn_many(s.X, y)
    assert grown.classes == sorted(labels)
    assert np.array_equal(grown.weights()[0], declared.weights()[0])
    assert list(grown.predict_many(s.X)) == list(declared.predict_many(s.X))


# -- users' rules ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class Broken(Rule):
    """Goes wrong in its sixth round, in the way it is told."""

    name = "broken"
    tasks = TASKS
    way: str = "raises"

    def step(self, s: Scalars) -> Any:
        if s.t != 6:
            return Step(add=0.1)
        if self.way == "raises":
            raise KeyError("my own mistake")
        return {"float": 0.1, "text": Step(add="x"), "nan": Step(add=float("nan")), "scale": Step(scale=None)}[self.way]


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize(
    ("way", "error"),
    [("raises", KeyError), ("float", TypeError), ("text", ValueError), ("scale", TypeError), ("nan", ArithmeticError)],
)
def test_a_rule_that_fails_stops_at_its_row(way: str, error: type[Exception], one_by_one: bool) -> None:
    s = stream("regression")
    model, five = LinearModel(Broken(way), "regression"), LinearModel(Broken(way), "regression")
    five.learn_many(s.X[:5], s.y[:5])
    with pytest.raises(error):
        if one_by_one:
            for x, y in zip(s.X, s.y, strict=True):
                model.learn_one(x, y)
        else:
            model.learn_many(s.X, s.y)
    assert saved(model) == saved(five)
