"""Files of what hashes names say under which hash; where it was another one they are refused, not read wrongly."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.grid import saved

import onepass as op
from onepass import _native, reductions
from onepass.errors import DamagedFileError, NewerFileError, OlderFileError
from onepass.models.linear import LinearModel
from onepass.persistence import store
from onepass.transforms import FeatureHasher, NGrams

BITS = 6
ROWS = [{"7": 1.0, "word": 2.0}, {"12": -1.0, "other": 0.5}, {"7": 0.5, "a^3": 1.0}, {"word": 1.0, "12": 2.0}]


def taught(model: Any, labels: list[Any]) -> Any:
    for x, y in zip(ROWS, labels, strict=True):
        model.learn_one(x, y)
    return model


def ranker() -> Any:
    model = op.Ranker(hash_bits=BITS)
    for relevance, x in enumerate(ROWS):
        model.learn_one(x, relevance, qid=1)
    return model


def structured() -> Any:
    model = op.StructuredLearner(decoder=op.decoders.Sequence(("A", "B")), hash_bits=BITS)
    model.learn_one([{"7": 1.0}, {"8": 1.0}], ["A", "B"])
    return model


MAKERS: dict[str, Callable[[], Any]] = {
    "model": lambda: taught(LinearModel("arow", hash_bits=BITS), [0, 1, 0, 1]),
    "classifier": lambda: taught(op.LinearClassifier("pa1", hash_bits=BITS), [0, 1, 2, 1]),
    "regressor": lambda: taught(op.LinearRegressor("ftrl:loss=squared", hash_bits=BITS), [0.5, 1.0, -2.0, 1.0]),
    "multilabel": lambda: taught(op.MultilabelClassifier(hash_bits=BITS), [["a"], ["b"], ["a", "b"], []]),
    "oneclass": lambda: taught(op.OneClass(hash_bits=BITS, radius=0.1), [None] * 4),
    "ranker": ranker,
    "structured": structured,
    "kernel": lambda: taught(op.KernelClassifier("perceptron", kernel="rbf:gamma=1", hash_bits=BITS), [0, 1, 0, 1]),
    "ensemble": lambda: taught(op.ExpertEnsemble(["pa1", "arow"], hash_bits=BITS), [0, 1, 0, 1]),
    "reduction": lambda: taught(reductions.OneVsAll(op.LinearClassifier(hash_bits=BITS)), [0, 1, 2, 1]),
    "drift": lambda: taught(op.drift.DriftReset(op.LinearClassifier(hash_bits=BITS)), [0, 1, 0, 1]),
    "pipeline": lambda: taught(FeatureHasher(hash_bits=BITS) | op.LinearClassifier(), [0, 1, 0, 1]),
    "pipeline's model": lambda: taught(
        op.transforms.MinMaxScaler() | op.LinearClassifier(hash_bits=BITS), [0, 1, 0, 1]
    ),
    "hasher": lambda: FeatureHasher(hash_bits=BITS, keep_names=True),
    "texts": lambda: NGrams(2, of="characters", hash_bits=BITS),
}


def rewritten(path: Path, version: Any) -> Path:
    """The file with another version of the hash; None: none, as of an earlier onepass."""
    kind, config, arrays = store.read(path)
    found = 0

    def walk(value: Any) -> Any:
        nonlocal found
        if isinstance(value, list):
            return [walk(each) for each in value]
        if not isinstance(value, dict):
            return value
        found += "hash" in value
        changed = {key: version if key == "hash" else walk(each) for key, each in value.items()}
        return {key: each for key, each in changed.items() if key != "hash" or each is not None}

    config = walk(config)
    assert found, "the file says nothing of its hash"
    other = path.with_suffix(".other")
    store.write(other, kind, config, arrays)
    return other


@pytest.mark.parametrize("name", MAKERS)
def test_a_file_says_its_hash_and_another_one_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "now.onepass"
    MAKERS[name]().save(path)
    again, once_more = tmp_path / "again.onepass", tmp_path / "once_more.onepass"
    op.load(path).save(again)  # a model's as the estimator that fits it
    op.load(again).save(once_more)
    assert once_more.read_bytes() == again.read_bytes()
    for version, error, words in (
        (None, OlderFileError, r"now\.other: .*under hash 1; this onepass has hash.*learn it again"),
        (_native.HASH_VERSION + 1, NewerFileError, "upgrade onepass"),
        ("2", DamagedFileError, "names a hash '2'"),
    ):
        with pytest.raises(error, match=words):
            op.load(rewritten(path, version))


def test_copies_and_pickles_go_on(tmp_path: Path) -> None:
    model = MAKERS["model"]()
    assert saved(pickle.loads(pickle.dumps(model))) == saved(model)


@pytest.mark.parametrize("kernel", [False, True])
def test_what_never_met_names_is_not_refused(kernel: bool, tmp_path: Path) -> None:
    """Positions are positions under every hash. Mixed with names, or as wide as the table, they may be places."""

    def make() -> Any:
        kind = op.KernelClassifier if kernel else op.LinearClassifier
        return kind("perceptron", hash_bits=BITS)

    path = tmp_path / "rows.onepass"
    X = np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 1.0]])
    model = make().fit(X, [0, 1])
    model.save(path)
    assert op.load(rewritten(path, None)).predict(X).tolist() == model.predict(X).tolist()
    make().partial_fit(np.eye(2, 1 << BITS), [0, 1], classes=[0, 1]).save(path)
    with pytest.raises(OlderFileError):
        op.load(rewritten(path, None))
    mixed = LinearModel(hash_bits=BITS)
    mixed.learn_one({"word": 1.0}, 1)
    mixed.learn_one(X[0], 0)
    mixed.save(path)
    with pytest.raises(OlderFileError):
        op.load(rewritten(path, None))


def test_what_has_learned_nothing_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.onepass"
    LinearModel(hash_bits=BITS).save(path)
    assert op.load(rewritten(path, None)) is not None


def test_files_of_what_does_not_hash_say_nothing_of_it(tmp_path: Path) -> None:
    taught(LinearModel(), [0, 1, 0, 1]).save(tmp_path / "named.onepass")
    assert "hash" not in store.read(tmp_path / "named.onepass")[1]


def test_this_version_of_the_hash() -> None:
    """A change of these raises hash_version in native/parse/hash.hpp: the places in files are no longer the same."""
    names = ["7", "a^12", "", "age", "text=hello world", "123456789012", "ä^٣", "a^b"]
    hashes = _native.hash_names(names, 32).view(np.uint32).tolist()
    assert (_native.HASH_VERSION, hashes) == (
        2,
        [7, 3531489415, 0, 717653329, 883536660, 3197704724, 735233145, 17524342],
    )
