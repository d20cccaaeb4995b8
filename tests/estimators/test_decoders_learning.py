"""Trees, brackets and matchings: learning beats the obvious, files keep it all."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from support.structured_grid import saved

import onepass as op
from onepass.estimators import decoders
from onepass.estimators.decoders import CKY, DECODERS, Decoder, DependencyTree, Matching, Multiclass, Sequence
from onepass.estimators.structured import StructuredLearner

# -- learning ------------------------------------------------------------------------------------------------------


def parsed_sentences(n: int, seed: int) -> tuple[list[Any], list[list[int]]]:
    """A small dependency grammar: a verb with a subject before it and perhaps an object after it, articles and
    adjectives before their noun, phrases with a preposition after a noun or the verb; some words are unknown."""
    rng = np.random.default_rng(seed)

    def noun(depth: int) -> tuple[list[str], list[int | None], int]:
        before = ["the"] * int(rng.random() < 0.7) + ["adj"] * int(rng.integers(0, 3))
        at = len(before)
        words, heads = [*before, "noun"], [at] * at + [None]
        if depth < 2 and rng.random() < 0.3:
            words, heads = attach(words, heads, at, *phrase(depth + 1))
        return words, heads, at

    def phrase(depth: int) -> tuple[list[str], list[int | None], int]:
        words, heads, _ = noun(depth)
        return ["prep", *words], [None, *(0 if head is None else head + 1 for head in heads)], 0

    def attach(words: Any, heads: Any, at: int, more: Any, inner: Any, _: int) -> tuple[list[str], list[int | None]]:
        return words + more, heads + [at if head is None else head + len(words) for head in inner]

    X, Y = [], []
    for _ in range(n):
        words, heads, _ = noun(1)
        verb = len(words)
        heads = [verb if head is None else head for head in heads]
        words, heads = [*words, "verb"], [*heads, None]
        if rng.random() < 0.7:
            words, heads = attach(words, heads, verb, *noun(0))
        if rng.random() < 0.4:
            words, heads = attach(words, heads, verb, *phrase(1))
        X.append([{"word": word if rng.random() > 0.02 else "?"} for word in words])
        Y.append([0 if head is None else head + 1 for head in heads])
    return X, Y


def bracketed_sentences(n: int, seed: int) -> tuple[list[Any], list[Any]]:
    """A small grammar in binary rules: S → NP VP, NP → the N' | NP PP, N' → adj N' | noun, VP → verb NP | VP PP,
    PP → prep NP."""
    rng = np.random.default_rng(seed)

    def grow(label: str, depth: int) -> tuple[list[str], list[tuple[int, int, str]]]:
        shallow = rng.random() > 0.25 / (1 + depth)
        options = {
            "S": ("NP", "VP"),
            "NP": ("the", "N") if shallow else ("NP", "PP"),
            "VP": ("verb", "NP") if shallow else ("VP", "PP"),
            "PP": ("prep", "NP"),
            "N": ("adj", "N") if rng.random() < 0.4 else (),
        }
        if label == "N" and not options["N"]:
            return ["noun"], []
        if label not in options:
            return [label], []
        left, right = (grow(each, depth + 1) for each in options[label])
        words = left[0] + right[0]
        moved = [(start + len(left[0]), end + len(left[0]), each) for start, end, each in right[1]]
        return words, [(0, len(words), label), *left[1], *moved]

    X, Y = [], []
    while len(X) < n:
        words, brackets = grow("S", 0)
        if len(words) <= 12:
            X.append(words)
            Y.append(brackets)
    return X, Y


def matched_items(n: int, seed: int) -> tuple[list[Any], list[list[int]]]:
    """Six items and their noisy copies, shuffled: two features tell which is whose, four are noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        left = rng.normal(size=(6, 6))
        copies = left + rng.normal(size=(6, 6)) * [0.1, 0.1, 3.0, 3.0, 3.0, 3.0]
        y = rng.permutation(6)
        right = np.empty_like(copies)
        right[y] = copies
        X.append((left, right))
        Y.append(y.tolist())
    return X, Y


def right_parts(predicted: Any, Y: Any, decoder: Any) -> float:
    """The share of heads, brackets or pairs that are right."""
    cost = sum(decoder.cost(y, y_hat) for y, y_hat in zip(Y, predicted, strict=True))
    return 1.0 - cost / sum(map(len, Y))


SELECTIONS = [
    {"cost_transform": "identity"},
    {"selection": "prediction"},
    {"cost_transform": "identity", "readout": "average"},
]


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("options", SELECTIONS, ids=str)
@pytest.mark.parametrize("single_root", [False, True])
def test_learns_to_parse(options, single_root):
    decoder = DependencyTree(single_root)
    seen, (X, Y) = parsed_sentences(300, 0), parsed_sentences(100, 1)
    learner = StructuredLearner("pa1:C=0.1", decoder, **options).fit(*seen)
    # Where the head of such a word mostly was: so many tokens further, or the root.
    offsets: dict[str, Counter[int | None]] = defaultdict(Counter)
    for x, y in zip(*seen, strict=True):
        for at, (token, head) in enumerate(zip(x, y, strict=True), start=1):
            offsets[token["word"]][head - at if head else None] += 1
    usual = {word: counts.most_common(1)[0][0] for word, counts in offsets.items()}
    guesses = [
        [0 if usual[token["word"]] is None else at + usual[token["word"]] for at, token in enumerate(x, start=1)]
        for x in X
    ]
    next_one = [[*range(2, len(x) + 1), 0] for x in X]
    assert right_parts(next_one, Y, decoder) < 0.4 and right_parts(guesses, Y, decoder) < 0.55
    assert right_parts(learner.predict(X), Y, decoder) > 0.92
    assert learner.n_decoder_suboptimal_ == 0


@pytest.mark.parametrize("options", [{}, *SELECTIONS], ids=str)
def test_learns_brackets(options):
    decoder = CKY(("S", "NP", "VP", "PP", "N"))
    learner = StructuredLearner("pa1:C=0.1", decoder, **options).fit(*bracketed_sentences(60, 0))
    X, Y = bracketed_sentences(60, 1)
    # Right-branching, its labels given to it: the shape alone.
    unlabelled = [[(start, end, "") for start, end, _ in y] for y in Y]
    right_branching = [[(start, len(x), "") for start in range(len(x) - 1)] for x in X]
    baseline, learned = right_parts(right_branching, unlabelled, decoder), right_parts(learner.predict(X), Y, decoder)
    assert baseline < 0.7 and learned > 0.95
    assert learner.n_decoder_suboptimal_ == 0


@pytest.mark.parametrize("options", SELECTIONS, ids=str)
def test_learns_to_match(options):
    decoder = Matching("differences")
    learner = StructuredLearner("pa1:C=0.1", decoder, **options).fit(*matched_items(300, 0))
    X, Y = matched_items(100, 1)
    nearest = [
        linear_sum_assignment(np.linalg.norm(left[:, np.newaxis] - right, axis=2))[1].tolist() for left, right in X
    ]
    baseline, learned = right_parts(nearest, Y, decoder), right_parts(learner.predict(X), Y, decoder)
    assert baseline < 0.5 and learned > 0.88
    assert learner.n_decoder_suboptimal_ == 0
    w = learner.weights_
    assert max(w["≠0"], w["≠1"]) < 3 * min(w[f"≠{j}"] for j in range(2, 6)), w


def test_learns_a_dictionary():
    """Products of words: which word translates which, from sentences in another order."""
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(150):
        words, y = rng.choice(20, size=6, replace=False), rng.permutation(6)
        right = [""] * 6
        for word, at in zip(words, y, strict=True):
            right[at] = f"mot{word}"
        X.append(([f"word{word}" for word in words], right))
        Y.append(y.tolist())
    learner = StructuredLearner("pa", Matching("products"), cost_transform="identity").fit(X[:100], Y[:100])
    assert learner.score(X[100:], Y[100:]) > 0.9


# -- the same after a file -----------------------------------------------------------------------------------------


@pytest.mark.full(strength=1)
@pytest.mark.parametrize(
    ("decoder", "problem"),
    [
        (DependencyTree(), parsed_sentences),
        (DependencyTree(single_root=True), parsed_sentences),
        (CKY(("S", "NP", "VP", "PP", "N")), bracketed_sentences),
        (CKY(("S", "NP", "VP", "PP", "N"), rules=False), bracketed_sentences),
        (Matching(), matched_items),
        (Matching("differences"), matched_items),
    ],
    ids=["tree", "one root", "brackets", "no rules", "matching", "differences"],
)
@pytest.mark.parametrize("readout", ["last", "average"])
def test_files_keep_everything(decoder, problem, readout, tmp_path):
    X, Y = problem(20, 2)
    learner = StructuredLearner("pa1:C=0.1", decoder, cost_transform="identity", readout=readout)
    learner.partial_fit(X[:10], Y[:10])
    learner.save(tmp_path / "m")
    for again in (op.load(tmp_path / "m"), StructuredLearner.load(tmp_path / "m")):
        assert again.get_params() == learner.get_params() and again.decoder == decoder
        assert saved(again, tmp_path) == saved(learner, tmp_path)
        assert again.predict(X) == learner.predict(X)
    # Going on from the file, example by example, is as if there had been no file.
    learner.partial_fit(X[10:], Y[10:])
    for x, y in zip(X[10:], Y[10:], strict=True):
        again.learn_one(x, y)
    assert saved(again, tmp_path) == saved(learner, tmp_path)


def test_every_decoder_is_known():
    assert DECODERS == {kind.name: kind for kind in (CKY, DependencyTree, Matching, Multiclass, Sequence)}
    for decoder in (CKY(("S", 2)), DependencyTree(True), Matching("products"), Multiclass(("A",)), Sequence(("A",))):
        assert isinstance(decoder, Decoder)
        assert pickle.loads(pickle.dumps(decoder)) == decoder == clone(decoder, safe=False)
        assert decoders.from_config(decoders.to_config(decoder)) == decoder
    assert all(hasattr(decoders, name) for name in decoders.__all__)
