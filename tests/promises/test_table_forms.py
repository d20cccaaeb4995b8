"""Every learner and wrapper of the registry × the forms in which a table may come: the answers of the dense table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.extras import require_extra
from support.learners import LEARNERS

import onepass as op
from onepass.checks.streams import streams_for
from onepass.checks.wrappers import WRAPPERS, labels_for
from onepass.errors import FeatureError, InputError, ParameterError
from onepass.persistence import registry
from onepass.transforms.base import Transform

CASES = [pytest.param(make, id=name) for name, make in LEARNERS.items()]
COLUMNS = ["e", "b", "d", "a", "c"]  # of the streams: not sorted, so that sorting them shows


def shuffled(X: Any, duplicates: bool) -> Any:
    """CSR rows whose columns fall; with `duplicates`, each value in two halves, which are exact."""
    data, indices, starts = [], [], [0]
    for row in np.asarray(X):
        for j in np.flatnonzero(row)[::-1]:
            data += [row[j] / 2, row[j] / 2] if duplicates else [row[j]]
            indices += [j, j] if duplicates else [j]
        starts.append(len(data))
    return sparse.csr_matrix((np.array(data), np.array(indices), np.array(starts)), shape=X.shape)


def with_zeros(X: Any) -> Any:
    rows, columns = X.shape
    whole = (X.ravel(), np.tile(np.arange(columns), rows), np.arange(0, X.size + 1, columns))
    return sparse.csr_matrix(whole, shape=X.shape)


def wide(X: Any) -> Any:
    out = sparse.csr_matrix(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


SPARSE: dict[str, Callable[[Any], Any]] = {
    "csr": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "unsorted": lambda X: shuffled(X, False),
    "duplicates": lambda X: shuffled(X, True),
    "explicit zeros": with_zeros,
    "int64 indices": wide,
    "float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "lil": sparse.lil_matrix,
    "dok": sparse.dok_matrix,
    "dia": sparse.dia_matrix,
    "bsr": lambda X: sparse.bsr_matrix(X, blocksize=(2, 5)),
}
DENSE: dict[str, Callable[[Any], Any]] = {
    "float32": lambda X: X.astype(np.float32),
    "lists": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "columns first": np.asfortranarray,
    "pandas": lambda X: require_extra("pandas").DataFrame(X, columns=COLUMNS),
    "pandas, no names": lambda X: require_extra("pandas").DataFrame(X),
    "polars": lambda X: require_extra("polars").DataFrame(X, schema=COLUMNS),
}
FRAMES = {form: DENSE[form] for form in ("pandas", "polars")}

# How each learner comes: alone, or inside a wrapper.
AROUND = ["alone", *WRAPPERS]


def inside(make: Callable[[], Any], around: str) -> Any:
    """A learner inside the wrapper; None where the two do not go together."""
    learner = make()
    if around == "alone":
        return learner
    wrapper = WRAPPERS[around]
    return wrapper.make(learner) if wrapper.takes(learner.traits) else None


def takes_tables(learner: Any) -> bool:
    return learner is not None and "rows" in learner.traits.forms and learner.traits.values != "texts"


# Each learner with each wrapper that takes it: those that learn tables.
FITTING = [
    pytest.param(case.values[0], around, id=f"{case.id}-{around}")
    for case in CASES
    for around in AROUND
    if takes_tables(inside(case.values[0], around))
]
TABLES = [pytest.param(cell.values[0], id=str(cell.id)[:-6]) for cell in FITTING if cell.values[1] == "alone"]


def made(make: Callable[[], Any], around: str) -> tuple[Any, Any]:
    """A learner inside the wrapper, and its stream of rows."""
    learner, values = inside(make, around), make().traits.values
    labels = ("a", "b") if around == "alone" else labels_for(around)
    traits = dataclasses.replace(learner.traits, values=values)
    return learner, next(stream for stream in streams_for(traits, labels) if stream.form == "rows")


def learned(learner: Any, X: Any, y: Any) -> Any:
    """A copy that has learned the table."""
    learner = learner.copy()
    learner.learn_many(X, *(() if y is None else (y,)))
    return learner


def said(learner: Any, X: Any) -> Any:
    """What it answers to a table, as numbers or labels."""
    verb = "predict_many" if hasattr(learner, "predict_many") else "transform_many"
    answer = getattr(learner, verb)(X)
    if hasattr(answer, "csr"):  # a transform's batch
        return answer.filled(0, answer.rows).tolist()
    return answer.tolist() if isinstance(answer, np.ndarray) else answer


def same(found: Any, wanted: Any, what: str, exact: bool = True) -> None:
    if not exact and isinstance(wanted[0], float | list):
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=1e-9, atol=1e-12)
    else:
        assert found == wanted, f"{what}: {found} != {wanted}"


def learns_names(learner: Any) -> bool:
    """Are the columns of a frame what a mapping's names are to it, also where arrays have only places?"""
    kinds = op.StructuredLearner | op.transforms.Pipeline | Transform
    return isinstance(learner, kinds) or getattr(learner, "hash_bits", None) is not None


@pytest.mark.full(most=180)
@pytest.mark.parametrize("form", [*SPARSE, *(f"dense {form}" for form in DENSE)])
@pytest.mark.parametrize(("make", "around"), FITTING)
def test_every_form_of_a_table_is_learned_alike(make: Callable[[], Any], around: str, form: str) -> None:
    """The same bits as the dense table, or as the CSR matrix (of which some learners make other weights)."""
    learner, stream = made(make, around)
    X, y = stream.part(0, len(stream))
    sparsely = not form.startswith("dense ")
    if sparsely and "csr" not in learner.traits.forms:
        with pytest.raises((InputError, ParameterError), match=r"[Ss]parse"):
            learned(learner, SPARSE[form](X), y)
        return
    table = SPARSE[form](X) if sparsely else DENSE[form.removeprefix("dense ")](X)
    plain = sparse.csr_matrix(X) if sparsely else X
    if form in ("dense pandas", "dense polars") and (around == "Pipeline" or learns_names(make())):
        plain = FRAMES["pandas"](X)
    exact = form not in ("explicit zeros", "bsr")  # zeros are added up too, in other lanes
    found, wanted = learned(learner, table, y), learned(learner, plain, y)
    same(said(found, plain), said(wanted, plain), "what was learned", exact)
    same(said(wanted, table), said(wanted, plain), "what is asked", exact)
    if sparsely:
        alone = learner.copy()
        rows = sparse.csr_matrix(table) if form != "unsorted" and form != "duplicates" else table
        for i in range(len(stream)):
            alone.learn_one(rows[i], *(() if y is None else (y[i],)))
        same(said(alone, plain), said(wanted, plain), "the loop of learn_one", exact)


@pytest.mark.full(most=90)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(("make", "around"), FITTING)
def test_no_frame_is_read_in_another_order(make: Callable[[], Any], around: str, frame: str) -> None:
    """Columns in another order are matched by name or refused; so are others, fewer and more; mappings may follow."""
    learner, stream = made(make, around)
    X, y = stream.part(0, len(stream))
    known = learned(learner, FRAMES[frame](X), y)
    before = repr(known.state())
    answers = said(known, FRAMES[frame](X))
    order = [2, 0, 1, 4, 3]
    swapped = FRAMES[frame](X)[[COLUMNS[j] for j in order]]
    for what, given in {"another order": swapped, "fewer": swapped[[*COLUMNS[:4]]]}.items():
        try:
            found = said(known, given)
        except FeatureError as error:
            assert any(word in str(error) for word in ("column", "features", "named"))
        else:
            if what == "another order" and hasattr(known, "predict_many"):
                same(found, answers, what)
        after = known.copy()
        try:
            after.learn_many(given, *(() if y is None else (y,)))
        except FeatureError:
            continue
        if what == "another order":
            twice = learned(known, FRAMES[frame](X), y)
            same(said(after, FRAMES[frame](X)), said(twice, FRAMES[frame](X)), "learned in another order", exact=False)
    assert repr(known.state()) == before
    if "names" in learner.traits.forms and learner.traits.answers in ("class", "number", "cluster"):
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in X.tolist()]
        one_by_one = [known.predict_one(x) for x in rows]
        same([getattr(each, "item", lambda each=each: each)() for each in one_by_one], list(answers), "mappings", False)


@pytest.mark.parametrize("make", TABLES)
def test_a_frame_with_a_name_twice_is_refused(make: Callable[[], Any]) -> None:
    learner, stream = made(make, "alone")
    X, y = stream.part(0, len(stream))
    frame = require_extra("pandas").DataFrame(X, columns=["a", "b", "a", "c", "d"])
    with pytest.raises(FeatureError, match="two columns of X are called 'a'"):
        learned(learner, frame, y)
    frame.columns = ["a", 1, "b", 2, "c"]
    with pytest.raises(FeatureError, match="all strings or all whole numbers"):
        learned(learner, frame, y)


def test_the_issue() -> None:
    """Where the answers were wrong: columns swapped in silence, a value assigned twice and not added."""
    pandas = require_extra("pandas")
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 200)
    frame = pandas.DataFrame({"a": generator.normal(size=200) + 4 * y, "b": generator.normal(size=200)})
    model = op.GaussianNB()
    model.learn_many(frame[["a", "b"]], y)
    with pytest.raises(FeatureError, match="column 0 of X is 'b', but this model has learned 'a' there"):
        model.predict_many(frame[["b", "a"]])
    assert model.predict_one({"b": 0.0, "a": 4.0}) == 1
    X = sparse.csr_matrix((np.tile([1.0, 3.0], 3), np.zeros(6, int), [0, 2, 4, 6]), shape=(3, 2))
    for learner in (op.GaussianNB(), op.drift.DriftReset(op.GaussianNB())):
        learner.learn_many(X, ["a", "b", "a"])
        naive = learner if isinstance(learner, op.GaussianNB) else learner.learners_[0]
        assert naive.theta_.tolist() == [[4.0, 0.0]] * 2


def test_every_kind_is_here() -> None:
    assert {str(case.id).partition("-")[0] for case in CASES} == set(registry.KINDS)
