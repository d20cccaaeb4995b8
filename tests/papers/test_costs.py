"""Cost-sensitive Passive-Aggressive, "max_loss": Crammer et al. 2006, §7. Specification 01 §15."""

from __future__ import annotations

import numpy as np
import pytest

import onepass
from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import M, random_stream, run, with_constant, worst_of
from .ways import WAYS, same

COSTS = [[abs(i - j) ** 2 for j in range(3)] for i in range(3)]
FINAL = [(0.8125, -0.6875), (0.3125, 0.8125), (-1.125, -0.125)]


@pytest.mark.parametrize("way", WAYS)
def test_worked_numbers(way):
    rows = WAYS[way](rules.PA(), "multiclass", M, classes=3, costs=COSTS, fit_intercept=False)
    np.testing.assert_allclose(rows[-1, :, :2], FINAL, atol=1e-6)


def test_worked_steps():
    learner = ReferenceLearner(rules.PA(), "multiclass", classes=3, costs=COSTS, fit_intercept=False)
    run(learner, M)
    np.testing.assert_allclose([r.loss for r in learner.records], [2, 1, 0.5, 1.25, 0], atol=1e-6)
    np.testing.assert_allclose([r.step.add for r in learner.records], [1, 0.5, 0.125, 0.3125, 0], atol=1e-6)


def test_worked_estimator():
    X, y = [e.x for e in M], [e.y for e in M]
    model = onepass.LinearClassifier("pa", costs=COSTS, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, FINAL, atol=1e-6)
    part = onepass.LinearClassifier("pa", costs=COSTS, fit_intercept=False)
    for x, label in zip(X, y, strict=True):
        part.partial_fit([x], [label], classes=[0, 1, 2])
    np.testing.assert_allclose(part.coef_, FINAL, atol=1e-6)


def table(rng, K):
    costs = rng.exponential(size=(K, K)) * 3
    np.fill_diagonal(costs, 0.0)
    return costs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rule", "variant"), [(rules.PA(), "PA"), (rules.PA1(0.2), "PA-I"), (rules.PA2(0.2), "PA-II")])
def test_equals_transcription(rule, variant, weighted, intercept, way):
    """Costs need not be symmetric: the row is the truth."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        stream, costs = random_stream(rng, "multiclass", weighted=weighted), table(rng, 3)
        expected = list(transcriptions.pa_costs(with_constant(stream, float(intercept)), costs, 5, variant, 0.2))
        same(WAYS[way](rule, "multiclass", stream, classes=3, costs=costs, fit_intercept=intercept), expected)


@pytest.mark.parametrize("way", WAYS)
def test_equal_costs_are_the_plain_rule(way):
    """01 §15: cost 1 for every wrong label is 13.1."""
    stream = random_stream(np.random.default_rng(5), "multiclass", weighted=True)
    for rule in (rules.PA(), rules.PA1(0.1), rules.PA2(0.3)):
        plain = WAYS[way](rule, "multiclass", stream, classes=3)
        same(WAYS[way](rule, "multiclass", stream, classes=3, costs=1 - np.eye(3)), plain)


@pytest.mark.parametrize(
    "rule", sorted(name for name, kind in rules.RULES.items() if "multiclass" in kind().traits.tasks)
)
def test_costs_change_what_is_learned_or_are_refused(rule):
    """A rule that looks at all classes at once would take no notice of them."""
    X = np.random.default_rng(2).normal(size=(60, 4))
    y = np.argmax(X[:, :3], axis=1)
    plain = onepass.LinearModel(rule, "multiclass", classes=[0, 1, 2])
    plain.learn_many(X, y)
    costs = 100 * np.array(COSTS) ** 2
    if plain.rule.traits.sees_all_scores("multiclass"):
        with pytest.raises(onepass.errors.ParameterError, match="CostSensitive"):
            onepass.LinearModel(rule, "multiclass", classes=[0, 1, 2], costs=costs)
        with pytest.raises(onepass.errors.ParameterError, match="costs="):
            ReferenceLearner(rule, "multiclass", classes=3, costs=COSTS)
        return
    model = onepass.LinearModel(rule, "multiclass", classes=[0, 1, 2], costs=costs)
    model.learn_many(X, y)
    assert not np.array_equal(model.weights()[0], plain.weights()[0])


@pytest.mark.parametrize("options", [{"multiclass": "uniform"}, {"task": "multilabel"}, {"classes": [0, 1]}])
def test_costs_without_a_rival_are_refused(options):
    classes = options.get("classes", [0, 1, 2])
    given = {"task": "multiclass", "classes": classes, "costs": 1 - np.eye(len(classes)), **options}
    with pytest.raises(onepass.errors.ParameterError, match="costs="):
        onepass.LinearModel("pa1", **given)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("adversarial", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_realizable_bound(seed, adversarial):
    """Σ cost(y, ŷ) ≤ Σ ℓ² ≤ R_Δ²‖U‖² where (U_y − U_r)·x ≥ √cost(y, r), ŷ the plain prediction."""
    rng = np.random.default_rng(seed)
    U, roots = rng.normal(size=(3, 4)), np.sqrt(COSTS)

    def share(x, y):
        s = U @ x
        return min((s[y] - s[r]) / roots[y, r] for r in range(3) if r != y)

    pool = [e for e in random_stream(rng, "multiclass", 200) if np.any(e.x)]
    pool = [e._replace(y=int(np.argmax(U @ e.x))) for e in pool]
    pool = [e for e in pool if share(e.x, e.y) > 0.15]
    learner = ReferenceLearner(rules.PA(), "multiclass", classes=3, costs=COSTS, fit_intercept=False)
    if adversarial:
        loss = lambda s, y: 0.0 if np.ndim(s) == 0 else max(s + roots[y]) - s[y]  # noqa: E731
        stream = worst_of(learner, pool, loss, 120)
    else:
        run(learner, pool)
        stream = pool
    paid = sum(COSTS[e.y][r.prediction] for e, r in zip(stream, learner.records, strict=True))
    lost = sum(r.loss**2 for r in learner.records)
    assert lost > 4
    assert_within(paid, lost, "cost")
    least = min(share(e.x, e.y) for e in pool)
    assert_within(lost, 2 * max(e.x @ e.x for e in pool) * np.sum(U**2) / least**2, "cost-sensitive PA")
