"""Labels stay what they are: large integers, texts that end in NUL, numbers among texts; in learners, tables, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra
from support.learners import LEARNERS, NESTED

import onepass as op
from onepass.errors import LabelError
from onepass.rows.labels import label_array

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

LARGE = [2**53 + 1, 2**53, 2**53 + 2, 2**63 - 1, 2**63 - 2]
TEXTS = ["a", "a\0", "", "a ", "\0", "a\0\0"]
BEYOND = [2**64 + 1, 2**64, -1, 2**63]  # no type of NumPy's holds them all
MIXED: list[Any] = [1, "1", "1.0", b"1", ("1",)]
KINDS = {"large": LARGE, "texts": TEXTS, "beyond": BEYOND, "mixed": MIXED}

# They learn what they are told of the rows of an identity matrix.
CLASSIFIERS = {
    name: make
    for name, make in {**LEARNERS, **NESTED}.items()
    if name.partition("-")[0] in ("LinearModel", "LinearClassifier", "KernelClassifier", "KNNClassifier", "GaussianNB",
                                  "LaSVMClassifier", "StructuredLearner", "OneVsAll", "OneVsOne", "DriftReset",
                                  "LVQClassifier", "SoftmaxSGD", "ExpertEnsemble")
    and name != "KernelClassifier-1"  # of two classes
    and make().traits.answers == "class" and "hash_bits" not in repr(make())
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_are_learned_and_answered_as_they_are(name: str, kind: str, tmp_path: Path) -> None:
    labels = KINDS[kind]
    if name.startswith("StructuredLearner") and kind == "mixed":  # it names its weights after them
        with pytest.raises(LabelError, match="differ, also as text"):
            CLASSIFIERS[name]().learn_many(np.eye(len(labels)), labels)
        return
    X = 3.0 * np.eye(len(labels))
    learner = CLASSIFIERS[name]()
    learner.learn_many(X, labels)
    learner.learn_many(X, labels)
    learner.save(tmp_path / "model")
    for each in (learner, op.load(tmp_path / "model")):
        known = list(each.classes_ if hasattr(each, "classes_") else each.classes)
        assert [(type(op_plain(k)), k) for k in sorted(known, key=repr)] == [
            (type(k), k) for k in sorted(labels, key=repr)
        ]
        said = [op_plain(label) for label in each.predict_many(X)]
        assert set(map(repr, said)) <= set(map(repr, labels))
        if name.startswith(("LinearModel", "KNN", "StructuredL", "OneVsAll")) and name != "LinearModel-1":
            assert said == labels


def op_plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in ("LinearModel", "LinearModel-1")])
@pytest.mark.parametrize("kind", ["large", "texts"])
def test_tables_keep_them_too(name: str, kind: str) -> None:
    labels = KINDS[kind]
    learner = CLASSIFIERS[name]().fit(np.eye(len(labels)), labels)
    assert sorted(op_plain(label) for label in learner.classes_) == sorted(labels)
    assert {repr(op_plain(label)) for label in learner.predict(np.eye(len(labels)))} <= set(map(repr, labels))


@pytest.mark.parametrize("kind", [op.LinearClassifier, op.GaussianNB, op.LaSVMClassifier, op.StructuredLearner])
def test_a_table_of_numbers_and_texts_is_refused(kind: Any) -> None:
    for call in (
        lambda m: m.fit(np.eye(2), [1, "1"]),
        lambda m: m.partial_fit(np.eye(2), [1, 2], classes=[1, "1"]),
    ):
        with pytest.raises(LabelError):
            call(kind())


def test_an_array_is_made_only_of_what_it_can_hold() -> None:
    for labels in KINDS.values():
        assert [op_plain(label) for label in label_array(labels)] == labels
    assert label_array([1, 2]).dtype == np.int64 and label_array(["a"]).dtype.kind == "U"


@pytest.mark.parametrize("given", [[2**53 + 1, None, 2**53, 2**53 + 2], [2**64 - 1, None, 2**64 - 2, 3]])
def test_files_keep_large_labels_beside_gaps(given: list[int | None], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"a": 1.5} | ({} if y is None else {"y": y})) + "\n" for y in given)
    )
    sources = [tmp_path / "a.jsonl"]
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"1.5,{'' if y is None else y}\n" for y in given))
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        require_extra("pyarrow")
    table = pyarrow.table({"a": [1.5] * 4, "y": pyarrow.array(given, pyarrow.uint64())})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    sources += [tmp_path / "a.csv", tmp_path / "a.parquet"]
    for source in sources:
        there = [label for chunk in op.stream(source, label="y").batches() for label in chunk.answers()]
        assert [label if label is None else int(label) for label in there] == given, source
        chunks = [chunk.labelled() for chunk in op.stream(source, label="y").batches()]
        kept = [op_plain(label) for chunk in chunks for label in chunk.y]
        assert [int(label) for label in kept] == [y for y in given if y is not None], source
