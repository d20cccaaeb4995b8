"""Label sets and rankings through the command, beside scikit-learn's metrics and the library's learners."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score, hamming_loss, ndcg_score
from support.command import onepass, write_queries, write_sets

import onepass as op
from onepass.cli.radius import Distances
from onepass.cli.rows import whole_queries
from onepass.models.linear import LinearModel


def table(lines: list[str], labels: int) -> np.ndarray:
    """Sets 1,3 as rows of 0 and 1."""
    out = np.zeros((len(lines), labels), dtype=int)
    for row, line in enumerate(lines):
        out[row, [int(label) - 1 for label in line.split(",") if label.strip()]] = 1
    return out


@pytest.mark.parametrize("suffix", ["svm", "vw"])
def test_sets_are_judged_as_scikit_learn_judges_them(suffix: str, tmp_path: Path) -> None:
    source = write_sets(tmp_path / f"a.{suffix}", 1500)
    more = ["--metrics", "hamming,set_error,set_f1", "-p", tmp_path / "p", "--json", tmp_path / "r", "--quiet"]
    result = onepass("learn", source, "--task", "multilabel", "--save", tmp_path / "m", *more)
    assert result.returncode == 0, result.stderr
    separator = "|" if suffix == "vw" else " "
    truth = table([line.split(separator)[0] for line in source.read_text().splitlines()], 4)
    said = table((tmp_path / "p").read_text().splitlines(), 4)
    if suffix == "vw":  # where an empty set is no label: predicted, but neither judged nor learned
        there = truth.any(axis=1)
        truth, said = truth[there], said[there]
    values = json.loads((tmp_path / "r").read_text())["values"]
    assert values["hamming"] == pytest.approx(hamming_loss(truth, said))
    assert values["set_error"] == pytest.approx(np.mean(np.any(truth != said, axis=1)))
    assert values["set_f1"] == pytest.approx(f1_score(truth, said, average="samples", zero_division=1.0))
    assert values["hamming"] < 0.15  # it learns

    estimator = op.load(tmp_path / "m")  # and the library opens it
    assert isinstance(estimator, op.MultilabelClassifier) and sorted(estimator.classes_) == [1, 2, 3, 4]
    result = onepass("predict", tmp_path / "m", source, "-o", tmp_path / "o")
    assert result.returncode == 0 and "hamming" in result.stderr
    model = LinearModel.load(tmp_path / "m")
    chunk = next(op.stream(source, multilabel=True).batches())
    expected = [",".join(str(c) for c, s in zip(model.classes, row, strict=True) if s > 0)
                for row in model.score_many(chunk.X)]  # fmt: skip
    assert (tmp_path / "o").read_text().splitlines() == expected


def test_both_formats_hold_the_same_sets_and_the_cache_keeps_them(tmp_path: Path) -> None:
    vw, svm = (write_sets(tmp_path / name, 60) for name in ("a.vw", "a.svm"))
    (read,) = op.stream(vw, multilabel=True, cache=tmp_path / "c").batches()
    (cached,) = op.stream(vw, multilabel=True, cache=tmp_path / "c").batches()
    (other,) = op.stream(svm, multilabel=True).batches()
    assert read.y.tolist() == cached.y.tolist()
    # An empty set is no label in VW's text, and an empty set in svmlight's.
    assert [y or () for y in read.y.tolist()] == other.y.tolist()
    assert any(y is None for y in read.y) and all(isinstance(y, tuple) for y in other.y)


@pytest.mark.parametrize("bits", [[], ["-b", "10"]])
def test_a_ranking_is_learned_as_ranker_learns_it(bits: list[str], tmp_path: Path) -> None:
    source = write_queries(tmp_path / "a.svm", 120)
    more = ["--metrics", "ndcg,map", "-p", tmp_path / "p", "--json", tmp_path / "r", "--quiet", *bits]
    result = onepass("learn", source, "--task", "ranking", "--save", tmp_path / "m", "--checkpoint-every", 100, *more)
    assert result.returncode == 0, result.stderr
    (chunk,) = op.stream(source).batches()
    y, queries = chunk.y.astype(float), chunk.query
    ranker = op.Ranker("pa1:C=0.1")
    scores = ranker.predict_then_learn(chunk.X.csr_matrix(), y, qid=queries)
    said = np.array((tmp_path / "p").read_text().split(), dtype=float)
    np.testing.assert_allclose(said, scores, rtol=1e-4, atol=1e-6)  # six digits are written
    each = [ndcg_score([y[queries == q]], [scores[queries == q]]) for q in np.unique(queries) if y[queries == q].any()]
    values = json.loads((tmp_path / "r").read_text())["values"]
    zeros = sum(not y[queries == q].any() for q in np.unique(queries))
    assert values["ndcg"] == pytest.approx(np.sum(each) / (len(each) + zeros))
    assert isinstance(op.load(tmp_path / "m"), op.Ranker)
    result = onepass("predict", tmp_path / "m", source, "-o", tmp_path / "o")
    assert result.returncode == 0 and "ndcg" in result.stderr
    assert onepass("compare", source, "--task", "ranking", "--rules", "pa1,perceptron").returncode == 0


@pytest.mark.parametrize("bits", [[], ["-b", "10"]])
def test_one_class_is_learned_as_the_library_learns_it(bits: list[str], tmp_path: Path) -> None:
    """With labels, which it takes no notice of, and without; a strange row has names that no row had before."""
    rng = np.random.default_rng(0)
    rows = [{f"x{j}": round(v, 3) for j, v in enumerate(rng.normal(3.0, 0.2, size=3))} for _ in range(300)]
    rows[200] |= {"strange": 8.0}
    lines = [f"{'' if i % 3 else 1} | " + " ".join(f"{k}:{v}" for k, v in x.items()) for i, x in enumerate(rows)]
    (tmp_path / "a.vw").write_text("\n".join(lines) + "\n")
    options = ["--task", "one-class", "--rule", "pa1:C=0.1", "--radius", "0.5", *bits, "--quiet"]
    for name, more in (("m", []), ("n", ["--checkpoint-every", "70"])):
        saving = ["--save", name, "-p", f"{name}.p", "--json", f"{name}.json"]
        result = onepass("learn", "a.vw", *options, *saving, *more, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    learner = op.OneClass("pa1:C=0.1", radius=0.5, hash_bits=10 if bits else None)
    expected = []
    for x in rows:
        expected.append(learner.score_one(x))
        learner.learn_one(x)
    said = np.loadtxt(tmp_path / "m.p")
    np.testing.assert_allclose(said, expected, rtol=1e-5, atol=1e-6)  # six digits are written
    assert np.argmax(said[10:]) == 190 and np.mean(said[100:] <= 0) > 0.7
    values = json.loads((tmp_path / "m.json").read_text())["values"]
    assert values == pytest.approx(
        {"excess": np.mean(np.maximum(0, expected)), "above": np.mean(np.array(expected) > 0)}
    )
    loaded = op.load(tmp_path / "m")
    assert isinstance(loaded, op.OneClass) and loaded.radius == 0.5
    (tmp_path / "b.vw").write_text("| x0:3 x1:3 x2:3\n| x0:3 x1:3 x2:3 never:9\n")
    result = onepass("predict", "m", "b.vw", cwd=tmp_path)
    inside, outside = map(float, result.stdout.split())
    assert inside < 0 < 8 < outside


@pytest.mark.parametrize(("size", "every"), [(1, 0), (7, 0), (50, 20), (1000, 33)])
def test_chunks_of_whole_queries(size: int, every: int, tmp_path: Path) -> None:
    source = write_queries(tmp_path / "a.svm", 40)
    (all_rows,) = op.stream(source).batches()
    met = []
    for chunk in whole_queries(op.stream(source, block_size=size * 40).batches(), every):
        met += chunk.query.tolist()
        end = chunk.position
        assert end.example == len(met)
        rest = list(op.stream(source, start=end).batches())
        assert not rest or rest[0].query[0] != met[-1]  # it goes on with another query
        if every and rest:
            assert end.example // every > (end.example - len(chunk)) // every or len(chunk) < 2 * size + every
    assert met == all_rows.query.tolist()


@pytest.mark.parametrize(
    ("line", "what"),
    [("1,,3 1:2", "numbers with commas"), ("1,1 1:2", "stands twice"), ("a,b 1:2", "numbers with commas"),
     ("1,3, 1:2", "numbers with commas"), ("1:2 3:4", "must begin with a label")],
)  # fmt: skip
def test_malformed_sets(line: str, what: str, tmp_path: Path) -> None:
    source = tmp_path / "a.svm"
    source.write_text(f"1,2 1:1\n{line}\n2 1:3\n")
    result = onepass("learn", source, "--task", "multilabel")
    assert result.returncode == 1 and f"{source}:2:" in result.stderr and what in result.stderr
    result = onepass("learn", source, "--task", "multilabel", "--on-error", "skip", "--quarantine", tmp_path / "q")
    assert result.returncode == 3 and "2, 2" not in result.stdout
    assert line in (tmp_path / "q").read_text()


@pytest.mark.parametrize(
    ("options", "what"),
    [(["--task", "ranking", "--holdout", "5"], "--holdout"), (["--task", "multilabel", "--oaa", "3"], "--oaa"),
     (["--task", "ranking", "--metrics", "error"], "is for classes, but this is ranking"),
     (["--task", "multilabel", "--metrics", "ndcg"], "is for rankings, but this is multilabel"),
     (["--task", "ranking", "--rule", "adaline"], "ranking"), (["--radius", "2"], "--task one-class"),
     (["--task", "one-class", "--oaa", "3"], "--oaa"),
     (["--task", "one-class", "--metrics", "error"], "but this is one-class"),
     (["--task", "one-class", "--radius", "0"], "radius=0"), (["--task", "one-class", "--rule", "arow"], "oneclass")],
)  # fmt: skip
def test_what_does_not_go_together_is_wrong_usage(options: list[str], what: str, tmp_path: Path) -> None:
    result = onepass("learn", write_queries(tmp_path / "a.svm", 5), *options)
    assert result.returncode == 2 and what in result.stderr, result.stderr


def test_sets_of_a_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,x\n1,2\n")
    result = onepass("learn", tmp_path / "a.csv", "--task", "multilabel")
    assert result.returncode == 2 and "vw and svmlight" in result.stderr


def test_invert_hash_gives_names_and_counts_collisions(tmp_path: Path) -> None:
    source = tmp_path / "a.vw"
    source.write_text("".join(f"{1 if j % 2 else -1} |a w{j} |b v{j}\n" for j in range(40)))
    result = onepass("learn", source, "-b", 4, "-q", "ab", "--invert_hash", tmp_path / "w", "--progress", "none")
    assert result.returncode == 0, result.stderr
    names = {line.rpartition(":")[0] for line in (tmp_path / "w").read_text().splitlines()[2:]}
    made = {f"a^w{j}" for j in range(40)} | {f"b^v{j}" for j in range(40)} | {f"a^w{j}*b^v{j}" for j in range(40)}
    assert names <= made and len(names) > 16
    stream = op.stream(source, hash_bits=4, interactions=["ab"], keep_names=True)
    list(stream.batches())
    assert {name for each in stream.hashes.values() for name in each} == made
    assert f"{stream.collisions:,} names share one" in result.stdout and stream.collisions == 120 - len(stream.hashes)


def test_a_finished_run_that_goes_on_writes_no_malformed_line_twice(tmp_path: Path) -> None:
    source = tmp_path / "a.vw"
    options = ["--on-error", "skip", "--quarantine", tmp_path / "q", "--quiet"]
    source.write_text("1 | a\n-1 | b\nabc | c\n")  # the last line is malformed
    assert onepass("learn", source, "--save", tmp_path / "m", *options).returncode == 3
    with source.open("a") as file:
        file.write("x | d\n1 | e\n")
    result = onepass("learn", "--resume", tmp_path / "m", source, *options)
    assert result.returncode == 3, result.stderr
    assert [line.split(b"\t")[0].rpartition(b":")[2] for line in (tmp_path / "q").read_bytes().splitlines()] == [
        b"3", b"4",
    ]  # fmt: skip
    assert LinearModel.load(tmp_path / "m").extra["learn"]["counts"]["skipped"] == 2


def test_a_radius_that_tells_nothing_is_told(tmp_path: Path) -> None:
    """Nearly all rows outside, or none: the summary says what the distances were, and --radius."""
    X = np.random.default_rng(0).normal(size=(9000, 2)) * [30.0, 10.0]
    (tmp_path / "s.csv").write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in X.tolist()))
    model = LinearModel("pa1:C=0.1", "oneclass", radius=2.0)
    said: list[float] = []
    for a, b in X.tolist():
        x = {"a": a, "b": b}
        said.append(float(model.distances([x])[0]))
        model.learn_one(x, None)
    distances = np.array(said)
    shared = ["learn", "s.csv", "--no-label", "--task", "one-class", "--rule", "pa1:C=0.1", "--progress", "none"]
    hint = re.search(r"hint +(.*)", onepass(*shared, "--radius", 2, cwd=tmp_path).stdout)
    assert hint
    found = re.fullmatch(
        r"([\d.]+)% of the rows lay outside the radius 2; half of the distances were within ([\d.]+), 95% within "
        r"([\d.]+): choose with --radius", hint[1])  # fmt: skip
    assert found, hint[1]
    assert float(found[1]) == pytest.approx(100 * np.mean(distances > 2), abs=0.006)
    for share, quantile in ((0.5, found[2]), (0.95, found[3])):  # of one row in four
        assert abs(np.mean(distances <= float(quantile)) - share) < 0.02
    assert "hint" not in onepass(*shared, "--radius", 40, cwd=tmp_path).stdout
    assert "no row lay outside the radius 1000; half" in onepass(*shared, "--radius", 1000, cwd=tmp_path).stdout


def test_distances_are_kept_within_bounds_however_they_come() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(50_000)
    whole, cut = Distances(0.5), Distances(0.5)
    whole.add(values)
    for part in np.split(values, np.sort(rng.integers(0, 50_000, size=200))):
        cut.add(part)
    assert np.array_equal(whole._kept, values[:: whole._every]) and np.array_equal(whole._kept, cut._kept)
    assert 2048 <= len(whole._kept) <= 4096 and whole.outside == cut.outside == np.count_nonzero(values > 0.5)
