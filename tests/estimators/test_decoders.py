"""Trees, brackets and matchings: search equals enumeration, costs and features, what is refused."""

from __future__ import annotations

import datetime
import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from support.structured_grid import saved

from onepass.errors import InputError, LabelError, NumericalError, ParameterError
from onepass.estimators import decoders
from onepass.estimators.decoders import CKY, DependencyTree, Matching, expand, identity
from onepass.estimators.structured import StructuredLearner

# -- every answer --------------------------------------------------------------------------------------------------


def all_trees(n: int) -> Iterator[list[int]]:
    for heads in itertools.product(range(n + 1), repeat=n):
        reached, new = {0}, {0}
        while new:
            new = {node for node, head in enumerate(heads, start=1) if head in new}
            reached |= new
        if len(reached) == n + 1:
            yield list(heads)


def all_brackets(start: int, end: int, labels: tuple[Any, ...]) -> Iterator[list[tuple[int, int, Any]]]:
    if end - start < 2:
        yield []
        return
    for label in labels:
        for split in range(start + 1, end):
            for left in all_brackets(start, split, labels):
                for right in all_brackets(split, end, labels):
                    yield [(start, end, label), *left, *right]


def answers_of(decoder: Any, n: int) -> list[Any]:
    if isinstance(decoder, DependencyTree):
        return [heads for heads in all_trees(n) if not decoder.single_root or heads.count(0) == 1 or n == 0]
    if isinstance(decoder, CKY):
        return list(all_brackets(0, n, decoder.labels))
    return [list(each) for each in itertools.permutations(range(n))]


def tokens_of(n: int, rng: np.random.Generator) -> list[Any]:
    words = rng.choice(list("abc"), size=n).tolist()
    kinds: list[list[Any]] = [
        words,
        [[word, word.upper()] for word in words],
        [{"word": word, "size": float(rng.normal())} for word in words],
        list(rng.normal(size=(n, 2))),
    ]
    return kinds[rng.integers(4)]


def input_of(decoder: Any, n: int, rng: np.random.Generator) -> Any:
    if isinstance(decoder, Matching):
        if rng.random() < 0.3:
            return {"pairs": rng.normal(size=(n, n, 2))}
        return tokens_of(n, rng), tokens_of(n, rng)
    if isinstance(decoder, DependencyTree) and rng.random() < 0.3:
        edges = [(head, node) for head in range(n + 1) for node in range(1, n + 1) if head != node]
        return {"tokens": tokens_of(n, rng), "edges": {edge: {"own": float(rng.normal())} for edge in edges}}
    return tokens_of(n, rng)


CASES = [
    *[(DependencyTree(), n) for n in range(6)],
    *[(DependencyTree(single_root=True), n) for n in range(6)],
    *[(CKY(("S",)), n) for n in range(7)],
    *[(CKY(("S", "NP")), n) for n in range(6)],
    *[(CKY(("S", "NP"), rules=False), n) for n in range(5)],
    (CKY(("S", "NP", "VP")), 4),
    *[(Matching(), n) for n in range(7)],
    (Matching("products"), 5),
    (Matching("differences"), 5),
]


def score(w: Any, features: dict[str, float]) -> float:
    return math.fsum(w.get(name, 0.0) * value for name, value in features.items())


def test_enumerations_are_complete():
    """Cayley: (n + 1)^(n − 1) trees rooted at 0, n^(n − 1) of them with one root; Catalan numbers of brackets."""
    assert [len(answers_of(DependencyTree(), n)) for n in range(6)] == [1, 1, 3, 16, 125, 1296]
    assert [len(answers_of(DependencyTree(single_root=True), n)) for n in range(1, 6)] == [1, 2, 9, 64, 625]
    assert [len(answers_of(CKY(("S",)), n)) for n in range(7)] == [1, 1, 1, 2, 5, 14, 42]
    assert len(answers_of(CKY(("S", "NP")), 5)) == 14 * 2**4


@pytest.mark.full
@pytest.mark.parametrize(("decoder", "n"), CASES, ids=str)
def test_search_equals_enumeration(decoder, n):
    rng = np.random.default_rng([n, sum(repr(decoder).encode())])
    answers = answers_of(decoder, n)
    exact = [identity]
    if isinstance(decoder, CKY):
        exact += [math.sqrt, lambda cost: cost**2, lambda cost: float(cost == 1)]
    for scale in (0.2, 1.0, 1.0, 5.0) if len(answers) > 500 else [0.1, 0.3, 1.0, 3.0] * 4:
        x = input_of(decoder, n, rng)
        features = [decoder.features(x, r) for r in answers]
        names = sorted(set().union(*features))
        w = {name: scale * float(rng.normal()) for name in names}
        scores = [score(w, phi) for phi in features]
        found = decoder.decode(w, x)
        assert found in answers
        assert score(w, decoder.features(x, found)) == pytest.approx(max(scores), abs=1e-9)
        y = answers[rng.integers(len(answers))]
        for transform in exact:
            losses = [s + transform(decoder.cost(y, r)) for s, r in zip(scores, answers, strict=True)]
            rival = decoder.loss_augmented(w, x, y, transform)
            assert rival in answers
            loss = score(w, decoder.features(x, rival)) + transform(decoder.cost(y, rival))
            assert loss == pytest.approx(max(losses), abs=1e-9)
        if isinstance(decoder, CKY):
            assert decoder.loss_augmented(w, x, y) == decoder.loss_augmented(w, x, y, math.sqrt)


def test_cycles_within_cycles():
    """Scores that mostly pull tokens into cycles."""
    rng = np.random.default_rng(3)
    trees = {n: np.array(list(all_trees(n))) for n in range(1, 6)}
    contracted = 0
    for _ in range(300):
        n = int(rng.integers(1, 6))
        scores = rng.normal(size=(n + 1, n + 1)) + (rng.random((n + 1, n + 1)) < 0.4) * 3
        scores[0] -= 4
        best = scores[trees[n], np.arange(1, n + 1)].sum(axis=1).max()
        heads = decoders.tree.maximum_arborescence(scores)
        assert scores[heads, np.arange(1, n + 1)].sum() == pytest.approx(best, abs=1e-9)
        contracted += heads != (np.argmax(scores - np.diag([np.inf] * (n + 1)), axis=0)[1:]).tolist()
    assert contracted > 150


@pytest.mark.parametrize("seed", range(4))
def test_larger_trees_equal_an_integer_programme(seed):
    """n = 12: edges are chosen (0 or 1), one into each node, and carry a flow of which each node keeps one unit."""
    rng = np.random.default_rng(seed)
    n = 12
    edges = [(head, node) for head in range(n + 1) for node in range(1, n + 1) if head != node]
    scores = rng.normal(size=(n + 1, n + 1)) - 2.0 * (np.arange(n + 1) == 0)[:, np.newaxis]
    into = np.array([[node == each for _, node in edges] for each in range(1, n + 1)], dtype=float)
    out_of = np.array([[head == each for head, _ in edges] for each in range(1, n + 1)], dtype=float)
    count = len(edges)
    found = milp(
        np.r_[[-scores[edge] for edge in edges], np.zeros(count)],
        integrality=np.r_[np.ones(count), np.zeros(count)],
        bounds=Bounds(0, np.r_[np.ones(count), np.full(count, n)]),
        constraints=[
            LinearConstraint(np.hstack([into, np.zeros_like(into)]), 1, 1),
            LinearConstraint(np.hstack([np.zeros_like(into), into - out_of]), 1, 1),
            LinearConstraint(np.hstack([-n * np.eye(count), np.eye(count)]), -np.inf, 0),
        ],
    )
    heads = decoders.tree.maximum_arborescence(scores)
    assert not decoders.tree.find_cycle([0, *heads])
    assert scores[heads, np.arange(1, n + 1)].sum() == pytest.approx(-found.fun, abs=1e-6)


def test_more_on_the_right_than_on_the_left():
    rng = np.random.default_rng(5)
    decoder = Matching("differences")
    x = (rng.normal(size=(3, 2)), rng.normal(size=(5, 2)))
    answers = [list(each) for each in itertools.permutations(range(5), 3)]
    for _ in range(20):
        w = {"≠0": rng.normal(), "≠1": rng.normal()}
        y = answers[rng.integers(len(answers))]
        best = max(score(w, decoder.features(x, r)) for r in answers)
        assert score(w, decoder.features(x, decoder.decode(w, x))) == pytest.approx(best)
        worst = max(score(w, decoder.features(x, r)) + decoder.cost(y, r) for r in answers)
        rival = decoder.loss_augmented(w, x, y, identity)
        assert score(w, decoder.features(x, rival)) + decoder.cost(y, rival) == pytest.approx(worst)


def test_ties_are_broken_the_same_way():
    x = ["a", "a", "a", "a"]
    assert DependencyTree().decode({}, x) == [0, 0, 0, 0]
    assert DependencyTree(single_root=True).decode({}, x) == [0, 1, 1, 1]
    assert CKY(("S", "NP")).decode({}, x) == [(0, 4, "S"), (1, 4, "S"), (2, 4, "S")]
    assert Matching().decode({}, (x, x)) == [0, 1, 2, 3]
    # Between equally bad rivals, too; and as often as one asks, also a decoder made anew.
    w = {"a→a": 1.0, "a←a": 1.0, "a×a": 1.0, "S→S→": 1.0, "NP→→S": 1.0}
    for decoder, given, y in (
        (DependencyTree(), x, [2, 0, 2, 3]),
        (DependencyTree(single_root=True), x, [2, 0, 2, 3]),
        (CKY(("S", "NP")), x, [(0, 4, "S"), (0, 2, "S"), (2, 4, "S")]),
        (Matching(), (x, x), [1, 0, 3, 2]),
    ):
        again = pickle.loads(pickle.dumps(decoder))
        assert len({repr(each.decode(w, given)) for each in (decoder, again) * 3}) == 1
        assert len({repr(each.loss_augmented(w, given, y, identity)) for each in (decoder, again) * 3}) == 1


# -- the root of a cost --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decoder", "x", "y"),
    [(DependencyTree(), ["a", "b", "c"], [0, 1, 1]), (Matching(), (["a", "b", "c"], ["a", "b", "c"]), [0, 1, 2])],
    ids=str,
)
def test_no_search_that_is_not_exact(decoder, x, y):
    """√ does not split over parts: adding √1 for each would choose another rival than the worst. So it is refused."""
    w = {name: 0.35 for name in decoder.features(x, y)}
    answers = answers_of(decoder, 3)

    def worst(transform: Any) -> list[Any]:
        return max(answers, key=lambda r: score(w, decoder.features(x, r)) + transform(decoder.cost(y, r)))

    assert worst(math.sqrt) != worst(identity)
    for call in (
        lambda: decoder.loss_augmented(w, x, y),
        lambda: decoder.loss_augmented(w, x, y, math.sqrt),
        lambda: StructuredLearner("pa", decoder).fit([x], [y]),
        lambda: StructuredLearner("pa", decoder).learn_one(x, y),
    ):
        with pytest.raises(ParameterError, match=r"cost_transform='identity'.* or selection='prediction'"):
            call()
    StructuredLearner("pa", decoder, cost_transform="identity").fit([x], [y])
    StructuredLearner("pa", decoder, selection="prediction").fit([x], [y])
    StructuredLearner("pa", decoder, selection="prediction", cost_transform="identity").fit([x], [y])


def test_brackets_count_their_errors_for_the_root():
    """Every right bracket weighs 0.7: one error gains −0.7 + 1, two −1.4 + √2; one by one each would gain 0.3."""
    decoder, x = CKY(("A", "B"), rules=False), ["a", "b", "c"]
    y = [(0, 3, "A"), (0, 2, "A")]
    w = {"A|length=3": 0.7, "A|length=2": 0.7}
    assert decoder.cost(y, decoder.loss_augmented(w, x, y)) == 1.0
    right_branching = [(0, 3, "B"), (1, 3, "B")]
    assert decoder.cost(y, decoder.loss_augmented(w, x, y, identity)) == decoder.cost(y, right_branching) == 2.0


# -- features ------------------------------------------------------------------------------------------------------


def test_features():
    assert DependencyTree().features(["the", "dog", "barks"], [2, 3, 0]) == {
        "distance|-1": 2.0,
        "←dog": 1.0,
        "the←": 1.0,
        "the←dog": 1.0,
        "←barks": 1.0,
        "dog←": 1.0,
        "dog←barks": 1.0,
        "root|": 1.0,
        "root|barks": 1.0,
    }
    assert DependencyTree().features({"tokens": [{}] * 8, "edges": {(1, 8): {"f": 2.0}}}, [0] + [1] * 7) == {
        "root|": 1.0,
        "distance|+1": 1.0,
        "distance|+2": 1.0,
        "distance|+3": 1.0,
        "distance|+4": 1.0,
        "distance|+5": 3.0,
        "edge|f": 2.0,
    }
    assert CKY(("S", "NP")).features(["the", "dog", "barks"], [(0, 3, "S"), [0, 2, "NP"]]) == {
        "S|length=3": 1.0,
        "S|first=the": 1.0,
        "S|last=barks": 1.0,
        "S→NP→": 1.0,
        "NP|length=2": 1.0,
        "NP|first=the": 1.0,
        "NP|last=dog": 1.0,
        "NP|after=barks": 1.0,
        "NP→→": 1.0,
    }
    left, right = [{"u": 1.0, "v": 2.0}], [{"u": 3.0}]
    assert Matching().features((left, right), [0]) == {"≠u": 2.0, "≠v": 2.0, "u×u": 3.0, "v×u": 6.0}
    assert Matching("products").features((["cat"], ["chat"]), [0]) == {"cat×chat": 1.0}
    assert Matching("differences").features((["cat"], ["cat"]), [0]) == {}
    assert Matching().features({"pairs": [["a", "b"], ["c", "d"]]}, [1, 0]) == {"b": 1.0, "c": 1.0}


def test_names_cannot_be_confused():
    for x, other in ((["a→b", "c"], ["a", "b→c"]), (["a←", "b"], ["a", "←b"]), (["a\\", "b"], ["a", "\\b"])):
        a, b = (set(DependencyTree().features(each, [0, 1])) for each in (x, other))
        assert not {name for name in a & b if name not in ("root|", "distance|+1")}
    assert DependencyTree().features(["root|", "b"], [0, 1])["root|"] == 1.0
    names = [set(Matching("products").features(([a], [b]), [0])) for a, b in (("a×", "b"), ("a", "×b"))]
    assert names[0] != names[1]


# -- refusals ------------------------------------------------------------------------------------------------------

PAIR = (["a", "b"], ["c", "d"])


@pytest.mark.parametrize(
    ("decoder", "x", "y", "error", "text"),
    [
        (DependencyTree(), 3, [0], InputError, "sequence of tokens"),
        (DependencyTree(), ["a", None], [0, 1], InputError, "token 1"),
        (DependencyTree(), [{"f": math.nan}], [0], InputError, "finite"),
        (DependencyTree(), {"words": ["a"]}, [0], InputError, "tokens"),
        (DependencyTree(), {"tokens": ["a"], "edges": {(1, 1): {}}}, [0], InputError, r"edge \(1, 1\)"),
        (DependencyTree(), {"tokens": ["a"], "edges": {(0, 2): {}}}, [0], InputError, r"edge \(0, 2\)"),
        (DependencyTree(), {"tokens": ["a"], "edges": {(0, 1): {"f": math.inf}}}, [0], InputError, "finite"),
        (DependencyTree(), ["a", "b"], [0], LabelError, "expected 2 heads"),
        (DependencyTree(), ["a", "b"], "01", LabelError, "list of heads"),
        (DependencyTree(), ["a", "b"], 0, LabelError, "list of heads"),
        (DependencyTree(), ["a", "b"], [0, 1.0], LabelError, "whole numbers"),
        (DependencyTree(), ["a", "b"], [0, True], LabelError, "whole numbers"),
        (DependencyTree(), ["a", "b"], [0, 3], LabelError, "head 3"),
        (DependencyTree(), ["a", "b"], [0, -1], LabelError, "head -1"),
        (DependencyTree(), ["a", "b"], [0, 2], LabelError, "not itself"),
        (DependencyTree(), ["a", "b", "c"], [2, 1, 0], LabelError, r"\[1, 2\].*cycle"),
        (DependencyTree(single_root=True), ["a", "b"], [0, 0], LabelError, "single_root"),
        (CKY(("S",)), {"a": 1}, [], InputError, "sequence of tokens"),
        (CKY(("S",)), ["a", "b"], [], LabelError, "1 different brackets"),
        (CKY(("S",)), ["a"], [(0, 1, "S")], LabelError, "0 different brackets"),
        (CKY(("S",)), ["a", "b"], [(0, 2, "X")], LabelError, "'X' is not one of"),
        (CKY(("S",)), ["a", "b"], [(0, 2)], LabelError, "no bracket"),
        (CKY(("S",)), ["a", "b"], "S", LabelError, "list of brackets"),
        (CKY(("S",)), ["a", "b"], [(0, 2.0, "S")], LabelError, "whole numbers"),
        (CKY(("S",)), ["a", "b", "c"], [(0, 3, "S"), (0, 3, "S")], LabelError, "different"),
        (CKY(("S",)), ["a", "b", "c"], [(0, 2, "S"), (1, 3, "S")], LabelError, "no binary tree"),
        (CKY(("S",)), ["a"] * 4, [(0, 4, "S"), (0, 2, "S"), (1, 3, "S")], LabelError, "no binary tree"),
        (Matching(), ["a"], [0], InputError, "pair"),
        (Matching(), "ab", [0, 1], InputError, "pair"),
        (Matching(), (["a", "b"], ["c"]), [0, 1], InputError, "2 items on the left"),
        (Matching(), {"pairs": [["a", "b"], ["c"]]}, [0, 1], InputError, "equally many"),
        (Matching(), {"pairs": [["a"], ["c"]]}, [0, 1], InputError, "at least 2"),
        (Matching(), {"left": ["a"], "right": ["b"]}, [0], InputError, "pair"),
        (Matching(), PAIR, [0], LabelError, "expected 2 indices"),
        (Matching(), PAIR, [0, 0], LabelError, "different"),
        (Matching(), PAIR, [0, 2], LabelError, "from 0 to 1"),
        (Matching(), PAIR, [0, -1], LabelError, "from 0 to 1"),
    ],
)
def test_malformed_examples_change_nothing(decoder, x, y, error, text, tmp_path):
    learner = StructuredLearner("pa1", decoder, selection="prediction")
    good = {DependencyTree: (["a", "b"], [2, 0]), Matching: (PAIR, [1, 0])}.get(
        type(decoder), (["a", "b"], [(0, 2, "S")])
    )
    learner.learn_one(*good)
    before = saved(learner, tmp_path)
    for call in (
        lambda: learner.learn_one(x, y),
        lambda: learner.partial_fit([good[0], x], [good[1], y]),
        lambda: learner.fit([good[0], x], [good[1], y]),
    ):
        with pytest.raises(error, match=text):
            call()
        assert saved(learner, tmp_path) == before


@pytest.mark.parametrize(
    "make",
    [
        lambda: DependencyTree(single_root=1),
        lambda: CKY(()),
        lambda: CKY("SN"),
        lambda: CKY(("",)),
        lambda: CKY(("S", "S")),
        lambda: CKY(("S",), rules=None),
        lambda: Matching("sums"),
    ],
)
def test_invalid_decoders(make):
    with pytest.raises(ParameterError):
        make()


def test_scores_that_overflow_are_refused():
    for decoder, x, name in (
        (DependencyTree(), [{"f": 1e200}], "root|f"),
        (CKY(("S",)), [{"f": 1e200}] * 2, "S|first=f"),
        (Matching("differences"), ([{"f": 1e200}], [{}]), "≠f"),
    ):
        with pytest.raises(NumericalError, match="overflow"):
            decoder.decode({name: 1e200}, x)


@pytest.mark.parametrize(
    "value",
    [np.datetime64("2020-01-01"), np.timedelta64(3, "ns"), datetime.date(2020, 1, 1), 1j, np.complex64(1)],
    ids=["date in NumPy", "duration in NumPy", "date", "complex", "complex in NumPy"],
)
def test_dates_durations_and_complex_numbers_are_no_features(value):
    with pytest.raises(InputError, match="feature 'a' must be a number, a string or a boolean"):
        expand({"a": value})
