"""`predict`, `compare`, `inspect`, `convert`, `bench` and `completion`, as whole processes."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest
from support.command import environment, line, onepass, write_csv, write_regression, write_vw

import onepass as op
from onepass import LinearModel
from onepass.cli.compare import split_rules
from onepass.cli.significance import Pairs
from onepass.cli.summary import collisions
from onepass.models import portfolio
from onepass.rules.grids import GRIDS, variants

# -- predict -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = write_csv(tmp_path / "mail.csv", 1500)
    made = onepass(
        "learn", path, "--label", "spam", "--id", "id", "--rule", "sgd:loss=logistic", "--save", tmp_path / "m"
    )
    assert made.returncode == 0, made.stderr
    return tmp_path / "m"


def test_predictions_are_the_models(model: Path, tmp_path: Path) -> None:
    new = write_csv(tmp_path / "new.csv", 300, seed=9)
    result = onepass("predict", model, new, "-o", tmp_path / "p")
    assert result.returncode == 0, result.stderr
    loaded = LinearModel.load(model)
    expected = [(loaded.predict_one(x), y) for x, y in op.stream(new, label="spam", drop=["id"])]
    lines = [each.split() for each in (tmp_path / "p").read_text().splitlines()]
    assert lines == [[said, f"r{i}"] for i, (said, _) in enumerate(expected)]
    error = np.mean([said != y for said, y in expected])
    assert f"300 predicted; 300 with a label: error {error:.2%}" in result.stderr


def test_a_file_without_the_label_is_predicted_too(model: Path, tmp_path: Path) -> None:
    new = write_csv(tmp_path / "new.csv", 50, seed=9)
    with_label = onepass("predict", model, new).stdout
    rows = [each.rpartition(",")[0] for each in new.read_text().splitlines()]
    new.write_text("\n".join(rows) + "\n")
    result = onepass("predict", model, new)
    assert result.returncode == 0, result.stderr
    assert result.stdout == with_label and len(with_label.splitlines()) == 50


def test_probabilities_and_scores(model: Path, tmp_path: Path) -> None:
    new = write_csv(tmp_path / "new.csv", 20, seed=9)
    lines = [each.split(",") for each in onepass("predict", model, new, "--proba").stdout.splitlines()]
    assert lines[0] == ["prediction", "no", "yes", "id"]
    for said, no, yes, _ in lines[1:]:
        assert float(no) + float(yes) == pytest.approx(1.0, abs=1e-5)
        assert said == ("yes" if float(yes) > 0.5 else "no")
    scores = [each.split(",") for each in onepass("predict", model, new, "--scores").stdout.splitlines()]
    assert scores[0] == ["prediction", "score of yes", "id"]
    for (_, _, yes, _), (_, score, _) in zip(lines[1:], scores[1:], strict=True):
        assert 1.0 / (1.0 + math.exp(-float(score))) == pytest.approx(float(yes), abs=1e-4)
    assert onepass("predict", model, new, "--proba", "--scores").returncode == 2


def test_predict_refuses_what_it_cannot_do(model: Path, tmp_path: Path) -> None:
    plain = write_vw(tmp_path / "a.vw", 50)
    onepass("learn", plain, "--save", tmp_path / "pa")
    result = onepass("predict", tmp_path / "pa", plain, "--proba")
    assert result.returncode == 2 and "has no probabilities" in result.stderr
    result = onepass("predict", plain, plain)
    assert result.returncode == 1 and "expected a onepass model file" in result.stderr
    plain.write_text("1 | a\nabc | b\n")
    result = onepass("predict", tmp_path / "pa", plain)
    assert result.returncode == 1 and f"{plain}:2:1: the label must be a number" in result.stderr
    result = onepass("predict", tmp_path / "pa", plain, "--on-error", "skip")
    assert result.returncode == 3 and len(result.stdout.splitlines()) == 1


# -- compare -----------------------------------------------------------------------------------------------------------


def test_compare_is_several_runs_of_learn(tmp_path: Path) -> None:
    path = write_vw(tmp_path / "a.vw", 4000)
    rules = ["perceptron", "pa1:C=0.01", "sgd:loss=logistic,eta=0.3"]
    result = onepass("compare", path, "--rules", ",".join(rules), "--report", tmp_path / "c.html", "--plot",
                     tmp_path / "c.svg", "--save-best", tmp_path / "best")  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = {re.split(r"\s{2,}", row)[0]: re.split(r"\s{2,}", row) for row in result.stdout.splitlines() if "%" in row}
    assert set(rows) == set(rules)
    for rule in rules:
        alone = onepass("learn", path, "--rule", rule, "--progress", "none").stdout
        assert re.search(r"^error +([\d.]+%)", alone, re.MULTILINE)[1] == rows[rule][1]  # type: ignore[index]
    order = [float(row[1][:-1]) for row in rows.values()]
    assert order == sorted(order)
    drawing = xml.etree.ElementTree.parse(tmp_path / "c.svg").getroot()
    assert drawing.tag.endswith("svg") and len(drawing.findall(".//{*}path")) >= 6
    page = (tmp_path / "c.html").read_text()
    assert all(rule in page for rule in rules)
    best = next(iter(rows))
    assert repr(LinearModel.load(tmp_path / "best").rule) == repr(op.rules.make(best))


def test_the_test_of_compare_is_mcnemars(tmp_path: Path) -> None:
    """From the predictions themselves, which `learn` writes."""
    path = write_vw(tmp_path / "a.vw", 1500)
    result = onepass("compare", path, "--rules", "perceptron,pa1:C=0.01")
    wrong = []
    for rule in ("perceptron", "pa1:C=0.01"):
        onepass("learn", path, "--rule", rule, "-p", tmp_path / "p", "--quiet")
        said = [each.rpartition(" ")[0] for each in (tmp_path / "p").read_text().splitlines()]
        truth = [each.split()[0] for each in path.read_text().splitlines()]
        wrong.append(np.array([a != b for a, b in zip(said, truth, strict=True)]))
    b, c = int(np.sum(wrong[0] & ~wrong[1])), int(np.sum(wrong[1] & ~wrong[0]))
    from scipy.stats import chi2

    p = chi2.sf((abs(b - c) - 1) ** 2 / (b + c), 1)
    shown = re.search(r"(< 0\.0001|\d\.\d{4})$", result.stdout.split("\n\n")[1], re.MULTILINE)
    assert shown and shown[1] == ("< 0.0001" if p < 1e-4 else f"{p:.4f}")


def test_tune_takes_what_did_best_on_the_first_examples(tmp_path: Path) -> None:
    """By hand: every variant on the first 300 examples; the best of each rule then on all of them."""
    path = write_vw(tmp_path / "a.vw", 1500)
    asked = ["pa1", "arow:lam=1@average", "sgd:loss=hinge,schedule=inv_sqrt"]
    result = onepass("compare", path, "--rules", ",".join(asked), "--tune", "20%", "--json", tmp_path / "t.json")
    assert result.returncode == 0, result.stderr
    assert "of 9 variants those that did best on the first 300" in result.stdout
    table = json.loads((tmp_path / "t.json").read_text())
    assert (table["examples"], table["tuned_on"], {row["asked"] for row in table["rules"]}) == (1500, 300, set(asked))
    chunks = list(op.stream(path).batches())
    X, y = chunks[0].X, chunks[0].y.astype(int)
    assert len(y) == 1500
    for row in table["rules"]:
        prefix, whole = {}, {}
        for text in variants(row["asked"]):
            rule, readout = portfolio.read(text)
            wrong = LinearModel(rule, readout=readout).predict_then_learn(X, y) != y
            prefix[text], whole[text] = np.mean(wrong[:300]), np.mean(wrong)
        assert row["tried"] == pytest.approx(prefix)
        assert row["rule"] == min(prefix, key=prefix.__getitem__)
        assert row["values"]["error"] == pytest.approx(whole[row["rule"]])
    short = onepass("compare", path, "--rules", "pa1", "--tune", "1000000")
    assert short.returncode == 0 and "on the first 1,500" in short.stdout  # the stream ended before
    for wrong in ("0", "120%", "many"):
        assert onepass("compare", path, "--tune", wrong).returncode == 2
    assert onepass("compare", "-", "--tune", "10%").returncode == 2  # a share of what?


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_grid_makes_rules_for_its_task(task: str) -> None:
    for name in op.rules.RULES:
        made = [op.rules.make(text) for text in variants(name, task)]
        wanted = "regression" if task == "regression" else "binary"
        if wanted in {each for rule in made for each in rule.traits.tasks}:
            assert all(wanted in rule.traits.tasks for rule in made)
            assert len({repr(rule) for rule in made}) == len(made)
    assert variants("scw1:C=0.5,eta=0.9") == ["scw1:C=0.5,eta=0.9"]  # what is given stays
    assert set(GRIDS) <= set(op.rules.RULES)


def test_a_rule_that_overflows_drops_out_of_compare(tmp_path: Path) -> None:
    path = write_regression(tmp_path / "r.svm", 500)
    wild = "sgd:loss=squared,schedule=constant,eta=1e200"
    result = onepass("compare", path, "--rules", f"nlms,{wild}")
    assert result.returncode == 0, result.stderr
    assert re.search(rf"^{re.escape(wild)} .*overflows$", result.stdout, re.MULTILINE)
    alone = onepass("compare", path, "--rules", wild)
    assert alone.returncode == 1 and "overflow" in alone.stderr


def test_significance_against_scipy() -> None:
    from scipy import stats

    rng = np.random.default_rng(0)
    few = (rng.random((3, 30)) < [[0.2], [0.4], [0.9]]).astype(float)
    pairs = Pairs(3)
    pairs.add(few[:, :10])
    pairs.add(few[:, 10:])
    b, c = np.sum(few[0] > few[1]), np.sum(few[1] > few[0])
    assert pairs.p(0, 1) == pytest.approx(stats.binomtest(int(b), int(b + c)).pvalue)
    losses = rng.random((2, 5000))
    losses[1] += 0.01
    pairs = Pairs(2)
    pairs.add(losses)
    d = losses[0] - losses[1]
    assert pairs.p(0, 1) == pytest.approx(2 * stats.norm.sf(abs(d.mean()) / (d.std() / np.sqrt(len(d)))), rel=1e-6)
    three = Pairs(3)
    three.p = lambda a, b: {1: 0.01, 2: 0.02}[b]  # type: ignore[method-assign]
    assert three.against(0, [2, 1]) == [0.02, 0.02]  # Holm: the smallest twice, the next at least as large


def test_compare_numbers(tmp_path: Path) -> None:
    path = write_regression(tmp_path / "r.svm", 2000)
    result = onepass("compare", path)
    assert result.returncode == 0, result.stderr
    assert "mae" in result.stdout and "paired z-test" in result.stdout
    assert onepass("compare", path, "--rules", "pa1,pa1").returncode == 2
    assert onepass("compare", path, "--rules", "pa7").returncode == 2


def test_rules_are_split_at_their_names() -> None:
    given = "pa1,sgd:loss=huber(delta=2),eta=0.5,pa1:C=0.1,epsilon=0.2, perceptron"
    assert split_rules(given) == ["pa1", "sgd:loss=huber(delta=2),eta=0.5", "pa1:C=0.1,epsilon=0.2", "perceptron"]


# -- inspect -----------------------------------------------------------------------------------------------------------


def test_inspect_tells_what_a_file_is(model: Path) -> None:
    result = onepass("inspect", model, "--top", 2)
    assert result.returncode == 0, result.stderr
    loaded = LinearModel.load(model)
    heaviest = sorted(loaded.named_weights().items(), key=lambda item: -abs(item[1]))[:2]
    for name, weight in heaviest:
        assert re.search(rf"^{re.escape(name)} +{re.escape(f'{weight:+.4g}')}$", result.stdout, re.MULTILINE)
    assert "SGD(loss='logistic')" in result.stdout and "1,500 examples" in result.stdout
    assert "finished" in result.stdout and "mail.csv (csv)" in result.stdout
    every = onepass("inspect", model, "--all").stdout.splitlines()
    assert len(every) == 2 + np.count_nonzero(loaded.weights()[0])


def test_inspect_of_models_of_the_library(tmp_path: Path) -> None:
    LinearModel("pa", hash_bits=4).save(tmp_path / "m")
    assert "hashed into 4 bits" in onepass("inspect", tmp_path / "m").stdout
    (tmp_path / "junk").write_text("hello, this is no model")
    result = onepass("inspect", tmp_path / "junk")
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1


def test_the_estimate_of_collisions() -> None:
    rng = np.random.default_rng(0)
    for names in (0, 10, 1000, 5000):
        used = len(np.unique(rng.integers(0, 4096, size=names)))
        assert collisions(used, 4096) == pytest.approx(names - used, abs=0.05 * names + 2)


# -- convert -----------------------------------------------------------------------------------------------------------


def rows_of(path: Path, **options: object) -> list[tuple[dict[str, float], object]]:
    return [(dict(x), y) for x, y in op.stream(path, **options)]


@pytest.mark.parametrize("to", ["vw", "csv", "tsv", "jsonl", "parquet", "arrow"])
def test_examples_survive_conversion(to: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "a.vw"
    lines = []
    for i in range(200):
        values = " ".join(f"f{j}:{rng.normal():.6g}" for j in rng.choice(20, 5, replace=False))
        lines.append(f"{rng.choice([-1, 1])} {rng.integers(1, 4)} 'tag{i}| {values}\n")
    path.write_text("".join(lines))
    out = tmp_path / f"b.{to}"
    result = onepass("convert", path, out)
    assert result.returncode == 0, result.stderr
    table = {} if to == "vw" else {"label": "label", "weight": "weight", "id": "id"}
    before, after = op.stream(path), op.stream(out, **table)  # type: ignore[arg-type]
    for one, other in zip(before.batches(50), after.batches(50), strict=True):
        assert one.y.tolist() == other.y.tolist() and one.weight.tolist() == other.weight.tolist()  # type: ignore[union-attr]
        assert list(one.id) == list(other.id)  # type: ignore[arg-type]
    # A table's columns have an order of their own.
    assert rows_of(path) == rows_of(out, **table)


def test_names_become_numbers_for_svmlight(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,city,y\n10,New York,1\n,Paris,0\n7.5,Paris,0\n")
    assert onepass("convert", tmp_path / "t.csv", tmp_path / "t.svm", "--label", "y").returncode == 0
    assert (tmp_path / "t.svm").read_text() == "1 1:10.0 2:1.0\n0 3:1.0\n0 1:7.5 3:1.0\n"
    assert (tmp_path / "t.svm.names").read_text() == "1 age\n2 city=New York\n3 city=Paris\n"
    assert onepass("convert", tmp_path / "t.svm", tmp_path / "u.jsonl").returncode == 0
    rows = [json.loads(each) for each in (tmp_path / "u.jsonl").read_text().splitlines()]
    assert rows == [{"label": 1, "1": 10.0, "2": 1.0}, {"label": 0, "3": 1.0}, {"label": 0, "1": 7.5, "3": 1.0}]


def test_a_cache_is_what_learn_reads(tmp_path: Path) -> None:
    path = write_vw(tmp_path / "a.vw", 500)
    assert onepass("convert", path, tmp_path / "a.vw.cache", "-b", 10).returncode == 0
    stamp = (tmp_path / "a.vw.cache").stat().st_mtime_ns
    assert onepass("learn", path, "-b", 10, "--cache", "--quiet").returncode == 0
    assert (tmp_path / "a.vw.cache").stat().st_mtime_ns == stamp  # used, not made again


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (["a.vw", "b.xyz"], 2, "give --to"),
        (["a.vw"], 2, "Give IN and OUT"),
        (["a.vw", "a.vw"], 2, "is the same file as IN a.vw"),
        (["words.csv", "b.vw", "--label", "y"], 1, "VW's labels are numbers, got 'yes'"),
        (["words.csv", "b.svm", "--label", "y"], 1, "svmlight's labels are numbers"),
        (["a.vw", "b.vw", "-b", "4"], 2, "--to cache"),
        (["bad.vw", "b.jsonl"], 1, "bad.vw:2:1"),
    ],
)
def test_conversions_that_cannot_be(args: list[str], code: int, expected: str, tmp_path: Path) -> None:
    write_vw(tmp_path / "a.vw", 5)
    (tmp_path / "words.csv").write_text("x,y\n1,yes\n")
    (tmp_path / "bad.vw").write_text("1 | a\nabc | b\n")
    result = onepass("convert", *args, cwd=tmp_path)
    assert result.returncode == code and expected in result.stderr, result.stderr
    assert not any((tmp_path / name).exists() for name in ("b.vw", "b.svm", "b.jsonl", "b.xyz"))
    assert not list(tmp_path.glob(".onepass-*"))


# -- bench, completion -------------------------------------------------------------------------------------------------


def test_bench_runs() -> None:
    result = onepass("bench", "--examples", 2000, "--repeats", 1)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^onepass +chunks of rows +[\d,]+ ", result.stdout, re.MULTILINE)
    assert "River" in result.stdout and "scikit-learn" in result.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = onepass("completion", shell)
    assert result.returncode == 0 and "_ONEPASS_COMPLETE" in result.stdout


def test_completion_completes() -> None:
    import subprocess

    for words, expected in (
        ("onepass co", {"compare", "convert", "completion"}),
        ("onepass learn --hold", {"--holdout"}),
    ):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_ONEPASS_COMPLETE": "bash_complete"}
        result = subprocess.run(line(), env={**environment(), **asked}, capture_output=True, text=True)
        found = {each.partition(",")[2] for each in result.stdout.split()}
        assert expected <= found, (words, result.stdout, result.stderr)
