"""The grid that the tests walk: rule × task × representation × readout, and a stream for each task."""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from onepass import rules
from onepass.estimators.linear import LinearClassifier, LinearRegressor
from onepass.models.linear import LinearModel
from onepass.models.rule_model import RuleModel
from onepass.persistence import store
from onepass.scheme.parameters import number
from onepass.scheme.readouts import Average
from onepass.scheme.rounds import Rule, Scalars, Step
from onepass.scheme.spread import Spread
from onepass.scheme.traits import RuleTraits

TASKS = ("binary", "multiclass", "regression")
CLASSIFY = ("binary", "multiclass")
REGRESS = ("regression",)


# -- rules -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class Tempered(Rule):
    """A user's rule that reads every scalar, keeps a slot, shrinks in both ways: PA-I with a tiring step."""

    name = "tempered"
    tasks = TASKS
    slots: ClassVar[Mapping[str, float]] = {"suffered": 0.0, "rounds": 1.0}
    C: float = number(0.5, above=0)

    def step(self, s: Scalars) -> Step:
        loss = max(0.0, s.target - s.m)
        s.state["suffered"] += loss
        s.state["rounds"] += 1.0
        tired = 1.0 + 0.01 * s.state["suffered"] + 0.001 * (s.t + s.k) + 0.01 * s.side
        add = min(self.C * s.importance, loss / s.xx) / tired
        return Step(add=add, scale=1.0 - 0.01 / (1.0 + s.ww), decay=0.999)


@dataclasses.dataclass(repr=False)
class Doubtful(Rule):
    """A user's rule with Gaussian weights that also reads ‖w‖², shrinks and forgets."""

    name = "doubtful"
    tasks = TASKS

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(spread=Spread(full=True, start=0.5, forgets=True))

    def step(self, s: Scalars) -> Step:
        add = max(0.0, s.target - s.m) / (s.xx + 1.0 + 0.01 * s.ww)
        return Step(add=add, scale=0.99, gain=0.3 * s.importance, forget=0.98)


@dataclasses.dataclass(repr=False)
class BinaryOnly(Rule):
    """A user's rule for one cell only, written as the README would: two lines."""

    name = "binary_only"
    tasks = ("binary",)

    def step(self, s: Scalars) -> Step:
        return Step(add=0.5 if s.m < s.target else 0.0)


@functools.cache
def tempered_in_c() -> Rule:
    """`Tempered` as a C function pointer, by numba: void(scalars, params, state, step)."""
    import numba

    doubles = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.void(doubles, doubles, doubles, doubles))
    def step(s, params, state, out):  # type: ignore[no-untyped-def]
        m, target, xx, ww, importance, t, k, side = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
        loss = max(0.0, target - m)
        state[0] += loss
        state[1] += 1.0
        tired = 1.0 + 0.01 * state[0] + 0.001 * (t + k) + 0.01 * side
        out[0] = min(params[0] * importance, loss / xx) / tired
        out[1] = 1.0 - 0.01 / (1.0 + ww)
        out[2] = 0.999

    kind = type("TemperedInC", (Tempered,), {"cfunc": step.address, "keep": step, "__module__": __name__})
    globals()["TemperedInC"] = kind  # where pickle looks for it
    made: Rule = dataclasses.dataclass(repr=False)(kind)()
    return made


# Every rule of ours, every loss and every schedule at least once, L2 on and off; the tasks are the spec's,
# written out here and not read from the code.
RULES: dict[str, tuple[str | Callable[[], Rule], tuple[str, ...]]] = {
    "perceptron": ("perceptron", CLASSIFY),
    "perceptron-strict": ("perceptron:rho=0.5,beta=0.2,strict=true", CLASSIFY),
    "perceptron-inv_t": ("perceptron:beta=1,schedule=inv_t(eta=2)", CLASSIFY),
    "adaline": ("adaline", TASKS),
    "adaline-optimal": ("adaline:schedule=optimal(alpha=0.1)", TASKS),
    "nlms": ("nlms:mu=0.5", TASKS),
    "pa": ("pa", TASKS),
    "pa-mistake": ("pa:update_on=mistake", CLASSIFY),
    "pa1": ("pa1:C=0.1", TASKS),
    "pa1-scale_step": ("pa1:lam=5,importance_mode=scale_step", TASKS),
    "pa2": ("pa2", TASKS),
    "pa2-lam": ("pa2:lam=0.3,epsilon=0", TASKS),
    "pegasos": ("pegasos:lam=0.05", CLASSIFY),
    "pegasos-project": ("pegasos:lam=0.05,project=true", CLASSIFY),
    "sgd-hinge": ("sgd", CLASSIFY),
    "sgd-hinge-l2": ("sgd:l2=0.5", CLASSIFY),
    "sgd-perceptron": ("sgd:loss=perceptron(beta=0.5),schedule=inv_t,eta=1", CLASSIFY),
    "sgd-squared_hinge-l2": ("sgd:loss=squared_hinge,schedule=constant,eta=0.02,l2=0.1", CLASSIFY),
    "sgd-logistic": ("sgd:loss=logistic,schedule=inv_scaling(p=0.3,t0=2)", CLASSIFY),
    "sgd-logistic-l2": ("sgd:loss=logistic,schedule=optimal(alpha=0.01),l2=0.01,clock=updates", CLASSIFY),
    "sgd-ramp-l2": ("sgd:loss=ramp,schedule=geometric(eta=0.5,gamma=0.95,eta_min=0.05),l2=0.1", CLASSIFY),
    "sgd-squared": ("sgd:loss=squared,schedule=constant,eta=0.02", TASKS),
    "sgd-squared-l2": ("sgd:loss=squared,schedule=inv_sqrt,eta=0.02,l2=0.3", TASKS),
    "sgd-absolute": ("sgd:loss=absolute,schedule=step_decay(eta=0.2,every=7)", REGRESS),
    "sgd-eps_insensitive-l2": ("sgd:loss=eps_insensitive(epsilon=0.2),l2=0.1,clock=updates", REGRESS),
    "sgd-squared_eps_insensitive": ("sgd:loss=squared_eps_insensitive,schedule=constant,eta=0.02", REGRESS),
    # 40 rounds in batches that divide them: `fit` takes the step of a batch that is not full, a stream waits.
    "sgd-batch": ("sgd:batch_size=8,l2=0.1", CLASSIFY),
    "sgd-batch-sum": ("sgd:loss=squared,schedule=constant,eta=0.005,batch_size=5,reduction=sum", TASKS),
    "sgd-batch-softmax": ("sgd:loss=logistic,batch_size=4,clock=updates", CLASSIFY),
    "fobos-batch": ("fobos:lam1=0.05,lam2=0.1,batch_size=4", CLASSIFY),
    "sgd-quantile": ("sgd:loss=quantile(tau=0.8)", REGRESS),
    "sgd-huber-l2": ("sgd:loss=huber(delta=0.7),l2=0.2", REGRESS),
    "sgd-tukey": ("sgd:loss=tukey,eta=0.02", REGRESS),
    "pocket": ("pocket", CLASSIFY),
    "mira": ("mira", CLASSIFY),
    "mira-margin": ("mira:beta=1,cap=0.2", CLASSIFY),
    "romma": ("romma", CLASSIFY),
    "aromma": ("aromma", CLASSIFY),
    "alma": ("alma", CLASSIFY),
    "alma-river": ("alma:alpha=0.5,B=2,normalize=false,strict=true", CLASSIFY),
    "alma-p4": ("alma:p=4", CLASSIFY),
    "alma-p-uniform": ("alma:p=7", ("multiclass",)),
    "norma": ("norma:lam=0.05,nu=0.3", CLASSIFY),
    "norma-constant": ("norma:lam=0.1,schedule=constant,rho=0.5", CLASSIFY),
    "parzen": ("parzen", CLASSIFY),
    "shifting": ("shifting", CLASSIFY),
    "shifting-constant": ("shifting:lam=0.1,decay=constant", CLASSIFY),
    "fobos": ("fobos:lam1=0.05", CLASSIFY),
    "fobos-elastic": ("fobos:loss=squared,schedule=constant,eta=0.02,lam1=0.1,lam2=0.5", TASKS),
    "truncated": ("truncated:gravity=0.1,K=3,threshold=0.5", CLASSIFY),
    "truncated-huber": ("truncated:loss=huber,gravity=0.2,K=2", REGRESS),
    "perceptron-uniform": ("perceptron", ("multiclass",)),
    "pa1-proportional": ("pa1:C=0.1", ("multiclass",)),
    "pa-all": ("pa", ("multiclass",)),
    "pa1-all": ("pa1:C=0.05", ("multiclass",)),
    "pa2-all": ("pa2", ("multiclass",)),
    "mira-mira": ("mira", ("multiclass",)),
    "pa1-costs": ("pa1", ("multiclass",)),
    "adagrad": ("adagrad", CLASSIFY),
    "adagrad-squared": ("adagrad:loss=squared,eta=0.3,delta=0.01,eps_inside=true", TASKS),
    "adadelta": ("adadelta:loss=squared_hinge,eps=0.01", CLASSIFY),
    "adadelta-exact": ("adadelta:loss=huber,lr=0.5,eps=0.001,absent=exact", REGRESS),
    "rmsprop": ("rmsprop:loss=hinge,eta=0.1", CLASSIFY),
    "rmsprop-exact": ("rmsprop:loss=absolute,eta=0.1,absent=exact", REGRESS),
    "adam": ("adam:loss=logistic,eta=0.05", CLASSIFY),
    "adam-lazy": ("adam:loss=squared,eta=0.1,absent=lazy", TASKS),
    "ftrl": ("ftrl:alpha=0.5,lam1=0.3,lam2=0.1", CLASSIFY),
    "ftrl-squared": ("ftrl:loss=squared,beta=0,lam1=0.2", TASKS),
    "ftrl-without-l1": ("ftrl:alpha=0.5,lam2=0.1", CLASSIFY),
    "vw": ("vw", CLASSIFY),
    "vw-squared": ("vw:loss=squared", TASKS),
    "vw-invariant": ("vw:loss=hinge,eta=0.3,power=0.3,adaptive=false,normalized=false,clip=false", CLASSIFY),
    "vw-normalized": ("vw:loss=quantile(tau=0.7),power=0.4,adaptive=false", REGRESS),
    "vw-adaptive": ("vw:loss=huber,power=0.6,normalized=false,invariant=false", REGRESS),
    "rls": ("rls:forgetting=0.95,max_gamma=5,forecast=vaw", TASKS),
    "rls-chol": ("rls:forgetting=0.95,max_gamma=5,form=chol", TASKS),
    "rls-joseph": ("rls:forgetting=0.95,max_gamma=5,form=joseph", TASKS),
    "kalman": ("kalman:q=0.05,r=2", REGRESS),
    "arow": ("arow:lam=0.5", TASKS),
    "arow-full": ("arow:covariance=full,sigma0=2", TASKS),
    "arow-exact": ("arow:diag=exact,always_update_cov=true", TASKS),
    "arow-uniform": ("arow:covariance=full", ("multiclass",)),
    "cw": ("cw:form=variance,covariance=full", CLASSIFY),
    "scw1": ("scw1:C=0.3,diag=project", CLASSIFY),
    "scw2": ("scw2:C=0.3", CLASSIFY),
    "nherd": ("nherd:C=0.1", CLASSIFY),
    "ons": ("ons", CLASSIFY),
    "ons-huber-diagonal": ("ons:loss=huber,covariance=diagonal", REGRESS),
    "user-python": (Tempered, TASKS),
    "user-gaussian": (Doubtful, TASKS),
    "user-c": (tempered_in_c, TASKS),
}

# They read ‖w‖² or φᵀΣφ, intercept included, and so refuse bias_in_norm=False.
READS_WW = {
    *(name for name in RULES if name.startswith(("rls", "kalman", "arow", "cw", "scw", "nherd", "ons", "user-gauss"))),
    "pegasos-project",
    "user-python",
    "user-c",
    "romma",
    "aromma",
    "alma",
    "alma-river",
    "alma-p4",
    "alma-p-uniform",
}

# Ways to learn among several classes that are options of the learner, not of the rule.
AMONG: dict[str, dict[str, Any]] = {
    "perceptron-uniform": {"multiclass": "uniform"},
    "arow-uniform": {"multiclass": "uniform"},
    "pa1-proportional": {"multiclass": "proportional"},
    "alma-p-uniform": {"multiclass": "uniform"},
    "pa-all": {"multiclass": "all"},
    "pa1-all": {"multiclass": "all"},
    "pa2-all": {"multiclass": "all"},
    "mira-mira": {"multiclass": "mira"},
    "pa1-costs": {"costs": [[0, 1, 4, 9], [1, 0, 1, 4], [4, 1, 0, 1], [9, 4, 1, 0]]},
}
# ROMMA divides by how far w and φ are from parallel: on noisy streams it grows, and with it every rounding.
TOLERANCE = {"romma": 1e-6, "aromma": 1e-6}
# Rules for ranking pairs alone: tests/support/ranking_grid.py.
ELSEWHERE = {"pamir", "mroc"}

READOUTS: dict[str, Any] = {
    "last": "last",
    "average": "average",
    "post": Average(kind="post", start=5),
    "pocket": "pocket",
    "voted": "voted",
}


@functools.cache
def admits(name: str, readout: str) -> bool:
    """Voting needs a rule that only adds; under lazy L1 only the last can be read in O(nnz); a link has no mean."""
    traits = make_rule(name).traits
    if traits.by_coordinate:
        return readout in ("last", "average", "post")
    if traits.soft_thresholds or (name == "pocket" and readout == "last"):
        return readout == "last"
    if traits.geometry != 2 and readout in ("average", "post"):
        return False
    if traits.batch_size > 1 and readout == "pocket":
        return False
    return readout != "voted" or traits.additive


def make_rule(name: str) -> Rule:
    maker, _ = RULES[name]
    return rules.make(maker) if isinstance(maker, str) else maker()


# -- streams -----------------------------------------------------------------------------------------------------------

FEATURES = 19  # one full group of 16 lanes and a rest
LABELS = {"binary": ["no", "yes"], "multiclass": [10, 20, 30, 40]}


@dataclasses.dataclass
class Stream:
    X: NDArray[np.float64]
    y: NDArray[Any]
    importance: NDArray[np.float64]
    classes: list[Any] | None


@functools.cache
def stream(task: str, n: int = 40, d: int = FEATURES, seed: int = 0) -> Stream:
    """Half-empty rows of float32 numbers, one of them zero, noisy answers, importances with zeros."""
    rng = np.random.default_rng([seed, n, d])
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)).astype(np.float32).astype(np.float64)
    X[0] = 1.0  # every feature is there from the start: a rule that forgets makes a difference of those that come later
    X[n // 3] = 0.0
    importance = rng.choice([0.0, 0.5, 1.0, 1.0, 2.5], size=n)
    if task == "regression":
        return Stream(X, X @ rng.normal(size=d) + rng.normal(size=n), importance, None)
    labels = LABELS[task]
    scores = X @ rng.normal(size=(d, len(labels))) + rng.normal(size=(n, len(labels)))
    scores[np.arange(len(labels)), np.arange(len(labels))[::-1]] = 1e3  # the first rows bring every class, in disorder
    return Stream(X, np.array(labels)[np.argmax(scores, axis=1)], importance, labels)


# -- representations ---------------------------------------------------------------------------------------------------


def csr(X: NDArray[Any], index: type = np.int32) -> sparse.csr_matrix:
    matrix = sparse.csr_matrix(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def dicts(X: NDArray[Any]) -> list[dict[str, float]]:
    return [{f"f{j}": float(v) for j, v in enumerate(row) if v} for row in X]


@dataclasses.dataclass(frozen=True)
class Representation:
    """What a table looks like to its user. `table` is False where only the stream's methods take it."""

    make: Callable[[NDArray[np.float64]], Any]
    table: bool = True
    options: tuple[tuple[str, Any], ...] = ()

    def part(self, X: NDArray[np.float64], start: int, stop: int) -> Any:
        return self.make(X[start:stop])

    def row(self, X: NDArray[np.float64], i: int) -> Any:
        """Row i for `learn_one`: of a sparse matrix the matrix of that row, as its own indexing gives it."""
        part = self.make(X[i : i + 1])
        return part if sparse.issparse(part) else part[0]


REPRESENTATIONS = {
    "f64": Representation(lambda X: X),
    "f32": Representation(lambda X: X.astype(np.float32)),
    "csr32": Representation(csr),
    "csr64": Representation(lambda X: csr(X, np.int64)),
    "named": Representation(dicts, table=False),
    "hashed": Representation(dicts, table=False, options=(("hash_bits", 4),)),
    "rows": Representation(lambda X: X.tolist()),
}

# -- cells -------------------------------------------------------------------------------------------------------------

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"fit_intercept": False},
    {"intercept_scaling": 2.0},
    {"bias_in_norm": False},
)


@dataclasses.dataclass(frozen=True)
class Cell:
    rule: str
    task: str
    representation: str
    readout: str

    def __str__(self) -> str:
        return f"{self.rule}-{self.task}-{self.representation}-{self.readout}"

    @property
    def seed(self) -> int:
        return zlib.crc32(str(self).encode())

    @property
    def form(self) -> Representation:
        return REPRESENTATIONS[self.representation]

    def settings(self) -> dict[str, Any]:
        """Keyword arguments of a model; the intercept's options take turns from cell to cell."""
        turn = OPTIONS[self.seed % (len(OPTIONS) - (self.rule in READS_WW))]
        return {"readout": READOUTS[self.readout], **dict(self.form.options), **turn, **AMONG.get(self.rule, {})}

    def model(self, classes: list[Any] | None = None, task: str | None = None) -> LinearModel:
        return LinearModel(make_rule(self.rule), task or self.task, classes=classes, **self.settings())

    def estimator(self, task: str | None = None) -> LinearClassifier | LinearRegressor:
        if self.task == "regression":
            return LinearRegressor(make_rule(self.rule), **self.settings())
        return LinearClassifier(make_rule(self.rule), task=task or self.task, **self.settings())

    @property
    def grows(self) -> bool:
        """May classes appear on the way? Costs name them beforehand."""
        return "costs" not in AMONG.get(self.rule, {})

    def stream(self) -> Stream:
        return stream(self.task)


# Rules by coordinates share what averages: a few of them are tried with each kind.
AVERAGED = {"average": ("adagrad", "adam", "vw-squared"), "post": ("ftrl", "vw")}


@functools.cache
def tried(rule: str, readout: str) -> bool:
    if readout in AVERAGED and make_rule(rule).traits.by_coordinate:
        return rule in AVERAGED[readout]
    if make_rule(rule).traits.spread and readout not in ("last", "average"):
        return admits(rule, readout) and rule in ("arow", "arow-full")
    return admits(rule, readout)


# What a rule keeps beside its weights does not ask how a table was typed: such rules are tried in these forms alone.
FEWER = ("f64", "csr32", "named", "hashed")


@functools.cache
def shaped(rule: str, representation: str) -> bool:
    traits = make_rule(rule).traits
    return representation in FEWER or not (traits.by_coordinate or traits.spread)


CELLS = [
    Cell(rule, task, representation, readout)
    for rule, (_, tasks) in RULES.items()
    for task in tasks
    for representation in REPRESENTATIONS
    for readout in READOUTS
    if tried(rule, readout) and shaped(rule, representation)
]

# (rule, task) where the rule is not defined: asking for it must raise.
UNDEFINED = [
    (rule, task) for rule, (_, tasks) in RULES.items() for task in TASKS if task not in tasks and rule not in AMONG
]


def saved(learner: Any) -> bytes:
    """The bytes of the model's file, without what an estimator keeps beside it."""
    model = learner if isinstance(learner, RuleModel) else learner._model
    config, arrays = model.state()
    return store.to_bytes(type(model).__name__, {**config, "extra": {}}, arrays)
