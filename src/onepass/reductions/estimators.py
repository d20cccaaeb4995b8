"""The public reductions. Each docstring cites its theorem; `facade.py` has the shared methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if

from ..errors import ParameterError
from ..models.base import locked
from ..rows.batches import is_mappings
from ..scheme.rounds import Array
from .costs import AllPairs, CostReduction, CostRegression, Expansion, Tree
from .either_facade import EitherEstimator
from .facade import ReductionEstimator, ScoringEstimator, listed, public_learner
from .learners import BaseLearner
from .multiclass import AgainstAll, AgainstOne, OutputCode, pair
from .sampling import Rejection
from .scheme import Reduction

__all__ = [
    "CostSensitive",
    "ErrorCorrectingOutputCodes",
    "FilterTree",
    "ImportanceSampling",
    "OneVsAll",
    "OneVsOne",
]


class OneVsAll(ClassifierMixin, ScoringEstimator):  # type: ignore[misc]
    """One base for each class, which learns to separate it from all others; the highest score wins.

    Where it errs, the base of the true class has said no or that of the predicted class yes: it errs at most K times
    as often as its bases on average. It is not consistent: where no class has probability above one half, bases
    without regret may leave regret (Beygelzimer, Langford, Zadrozny 2005, "Weighted one-against-all"). Rifkin and
    Klautau 2004 defend it: with well-tuned bases it is as accurate as any code.

    A new label starts from a copy of a spare base that has learned every example so far as "another class": the result
    is the same as if it had been declared. Where classes are declared, there is no spare base.

    Parameters
    ----------
    base : a rule or its name, a classifier, a `LinearModel`, or an object with `learn_one` and `predict_one`.
    classes : the labels, where they are known; others are then refused.
    """

    def __init__(self, base: Any = "pa1", *, classes: Any = None) -> None:
        self.base = base
        self.classes = classes

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        return AgainstAll(base, classes)

    @property
    def learners_(self) -> dict[Any, Any]:
        """label → base."""
        core = self._learned()
        return dict(zip(core.labels.values, map(public_learner, core.learners), strict=True))


class OneVsOne(ClassifierMixin, ScoringEstimator):  # type: ignore[misc]
    """One base for each pair of classes, which learns only the examples of these two; the most votes win.

    Hastie and Tibshirani 1998; Fürnkranz 2002, who shows that K(K−1)/2 bases on their few examples cost less than K
    bases on all. If the bases err at a mean rate of ε, the reduction errs at a rate of at most (K − 1)ε: a class that
    loses no pair wins. Ties go to the larger sum of scores.

    A new label is treated as if it had been declared (K bases more; see `OneVsAll`).

    Parameters
    ----------
    base : a rule or its name, a classifier, a `LinearModel`, or an object with `learn_one` and `predict_one`.
    classes : the labels, where they are known; others are then refused.
    """

    def __init__(self, base: Any = "pa1", *, classes: Any = None) -> None:
        self.base = base
        self.classes = classes

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        return AgainstOne(base, classes)

    @property
    def learners_(self) -> dict[tuple[Any, Any], Any]:
        """(label i, label j) → base, whose True is j."""
        core = self._learned()
        labels = core.labels.values
        return {
            (labels[i], labels[j]): public_learner(core.learners[pair(i, j)])
            for j in range(len(labels))
            for i in range(j)
        }


class ErrorCorrectingOutputCodes(ClassifierMixin, ScoringEstimator):  # type: ignore[misc]
    """Each class is a codeword, each base learns one column of the code; the nearest codeword wins.

    Dietterich and Bakiri 1995: codewords at Hamming distance ρ survive ⌊(ρ − 1)/2⌋ wrong bases. Allwein, Schapire and
    Singer 2000: with codewords in {−1, 0, +1} and loss-based decoding ŷ = argmin_k Σ_b L(M_kb f_b(x)), the training
    error is at most ε̄ B / (ρ L(0)), ε̄ being the mean loss of the B bases (for L with (L(z) + L(−z))/2 ≥ L(0) > 0).

    The classes must be known from the start: a code is made for K rows.

    Parameters
    ----------
    base : a rule or its name, a classifier, a `LinearModel`, or an object with `learn_one` and `predict_one`.
    code : "exhaustive" (all 2^{K−1} − 1 splits, up to 12 classes), "random" (columns of ±1), "dense" (the best of
        up to a hundred such, by ρ), "sparse" (so too, with half of the entries 0), or a matrix, classes × columns.
    bits : the number of columns of a drawn code; by default ⌈10 log₂ K⌉, ⌈15 log₂ K⌉ for "sparse".
    decoding : "hinge", "logistic", "exponential", "squared", "linear" (losses of the margin), or "hamming".
    classes : the labels, in the order of the code's rows.
    seed : of the drawn code.
    """

    def __init__(
        self,
        base: Any = "pa1",
        *,
        code: Any = "dense",
        bits: int | None = None,
        decoding: str = "hinge",
        classes: Any = None,
        seed: int = 0,
    ) -> None:
        self.base = base
        self.code = code
        self.bits = bits
        self.decoding = decoding
        self.classes = classes
        self.seed = seed

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        return OutputCode(base, classes, self.code, self.bits, self.decoding, self.seed)

    @property
    def code_(self) -> NDArray[np.int8]:
        """The code matrix, classes × bases."""
        return np.array(self._learned().code)


class _WithCosts(ReductionEstimator):
    """y may be labels, a table of costs with a column per class, or a list of mappings from labels to costs."""

    def _answers(self, y: Any, rows: int) -> Any:
        if is_mappings(y):
            return list(y)
        if isinstance(y, np.ndarray) or hasattr(y, "columns"):
            table = np.asarray(y)
            if table.ndim == 2 and table.shape[1] > 1:
                return table
        return super()._answers(y, rows)

    def _classes_of(self, answers: Any) -> list[Any] | None:
        if self.classes is not None or (isinstance(answers, np.ndarray) and answers.ndim == 1):
            return super()._classes_of(answers)
        if isinstance(answers, list):
            try:
                return sorted({label for costs in answers for label in costs})
            except TypeError:  # labels without an order stay in the order of appearance
                return list(dict.fromkeys(label for costs in answers for label in costs))
        return list(range(answers.shape[1]))

    def _declared(self, classes: Any, answers: Any) -> list[Any] | None:
        if self.classes is None and isinstance(answers, np.ndarray) and answers.ndim == 2:
            return listed(classes)  # the order of the table's columns
        return super()._declared(classes, answers)


def _scores_labels(self: CostSensitive) -> bool:
    if self.method == "expansion":
        raise AttributeError("CostSensitive(method='expansion') has no scores; use its base's")
    return True


class CostSensitive(ClassifierMixin, _WithCosts):  # type: ignore[misc]
    """Labels that differ in cost from example to example: ``learn_one(x, {"stay": 0.0, "go": 2.5})``.

    An answer may also be a label: cost 0, and cost 1 for every other label known by then.

    method="oaa" (CSOAA: one against all): a regressor for each label learns its cost; the least predicted cost wins.
        With predictions f of costs c, c_ŷ − min c ≤ √(2 Σ_k (f_k − c_k)²) for every example, so that small squared
        regret means small regret of the costs. An example does not update labels that it does not name.
    method="all_pairs" (weighted all pairs; Beygelzimer, Dani, Hayes, Langford, Zadrozny 2005): a classifier for each
        pair learns which is cheaper, with importance |v_i − v_j|, v_k = ∫₀^{c_k} dL/N(L), N(L) the number of labels of
        cost at most L. The cost of the winner of most pairs exceeds the least cost by at most twice the importances
        of the pairs that were wrong.
    method="expansion" (Abe, Zadrozny, Langford 2004): one multiclass base learns each label y of an example with
        importance max c − c_y. Its weighted errors are then, up to a constant, the costs. The base may be a reduction:
        ``CostSensitive(OneVsAll("pa1"), method="expansion")``.

    Parameters
    ----------
    base : a rule or its name, or a regressor ("oaa"), a classifier that takes importances (the others), …
    method : "oaa", "all_pairs" or "expansion".
    classes : the labels, where they are known; others are then refused. The columns of a table of costs follow it.
    """

    def __init__(self, base: Any = "pa1", *, method: str = "oaa", classes: Any = None) -> None:
        self.base = base
        self.method = method
        self.classes = classes

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        methods: dict[str, type[CostReduction]] = {"oaa": CostRegression, "all_pairs": AllPairs, "expansion": Expansion}
        if self.method not in methods:
            raise ParameterError(f"method={self.method!r}: expected one of {', '.join(methods)}")
        return methods[self.method](base, classes)

    @available_if(_scores_labels)  # type: ignore[untyped-decorator]
    @locked
    def decision_function(self, X: Any) -> Array:
        """Scores of the labels: minus the predicted costs, or votes."""
        return ScoringEstimator.decision_function(self, X)

    @available_if(_scores_labels)  # type: ignore[untyped-decorator]
    @locked
    def score_one(self, x: Any) -> dict[Any, float]:
        """label → score."""
        return ScoringEstimator.score_one(self, x)


class FilterTree(ClassifierMixin, _WithCosts):  # type: ignore[misc]
    """A tournament of the labels: K − 1 bases, of which a prediction uses ⌈log₂ K⌉.

    Beygelzimer, Langford, Ravikumar 2009 ("Error-correcting tournaments"). The leaves of a balanced tree are the
    labels. From the leaves up, the base of a node learns which of the winners of its two subtrees is cheaper, with the
    difference of their costs as importance, so that it is trained on the winners below it. Then the regret
    of the costs is at most the sum of the nodes' importance-weighted regrets: bases without regret leave none, which
    does not hold for a tree of "is it in the left half?".

    An answer is a label (cost 0, and 1 for all others; ⌈log₂ K⌉ bases learn at most) or a cost for each of the
    classes, which must be known from the start. A winner is what a base decides before it learns the example.

    Parameters
    ----------
    base : a rule or its name, a classifier that takes importances, a `LinearModel`, `ImportanceSampling(…)`, …
    classes : the labels, in the order of the leaves.
    """

    def __init__(self, base: Any = "pa1", *, classes: Any = None) -> None:
        self.base = base
        self.classes = classes

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        return Tree(base, classes)

    @property
    def tree_(self) -> list[tuple[int, int]]:
        """Per node its two children, nodes before it or ~k for class k; the last node is the root."""
        return list(self._learned().nodes)


class ImportanceSampling(EitherEstimator):
    """Importance-weighted learning by a base that takes no importances: examples are dropped at random.

    Zadrozny, Langford, Abe 2003 ("Cost-sensitive learning by cost-proportionate example weighting"): an example of
    importance c is accepted with probability c / c_max and learned with importance 1. Accepted examples are distributed
    as D̂(x, y) ∝ c·D(x, y), and for every classifier h, E_D[c·1(h ≠ y)] = E_D[c]·E_D̂[1(h ≠ y)]: few errors on accepted
    examples are few weighted errors. "Costing" averages several such learners (`samples`).

    An importance above c_max is an error. The draws depend on the seed and on the number of examples seen, so that
    any chunks give the same bits; the copies that another reduction makes of this one draw alike.

    Parameters
    ----------
    base : a rule or its name (a classifier), an estimator, a `LinearModel`, a reduction, a River learner.
    c_max : the largest importance in the stream.
    samples : how many bases are taught, each by its own draws. They predict by the mean of their numbers, or by votes.
    classes : the labels, where they are known.
    seed : of the draws.
    """

    def __init__(
        self, base: Any = "pa1", *, c_max: float = 1.0, samples: int = 1, classes: Any = None, seed: int = 0
    ) -> None:
        self.base = base
        self.c_max = c_max
        self.samples = samples
        self.classes = classes
        self.seed = seed

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        task = "regression" if self._predicts_numbers() else "multiclass"
        return Rejection(base, task, classes, self.c_max, self.samples, self.seed)

    def _new_learner(self, task: str, classes: list[Any] | None, owner: str) -> BaseLearner:
        if task == "multiclass" and classes is None:
            classes = self._declared_classes()
        return Rejection(clone(self.base, safe=False), task, classes, self.c_max, self.samples, self.seed)
