"""`onepass learn`, as whole processes: what is learned, printed and written, and the codes at the end."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from support.command import onepass, write_csv, write_regression, write_vw

import onepass as op
from onepass import LinearModel, rules
from onepass.cli.vw import rule_of, vw_options
from onepass.models.portfolio import DEFAULT, DEFAULT_FOR_NUMBERS


@pytest.fixture
def vw(tmp_path: Path) -> Path:
    return write_vw(tmp_path / "a.vw", 3000)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "mail.csv", 1500)


def progressive_error(path: Path, rule: str, **options: object) -> tuple[float, LinearModel]:
    """The oracle: a loop of predict_one and learn_one."""
    model, wrong, seen = LinearModel(rule), 0, 0
    for x, y in op.stream(path, **options):
        if y is None:
            continue
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
        seen += 1
    return wrong / seen, model


def said(text: str, name: str) -> str:
    return re.search(rf"^{re.escape(name)}  +(.*)$", text, re.MULTILINE)[1]  # type: ignore[index]


# -- what is learned ---------------------------------------------------------------------------------------------------


def test_it_is_the_loop_of_predict_one_and_learn_one(vw: Path, tmp_path: Path) -> None:
    result = onepass("learn", vw, "--rule", "pa1:C=0.05", "--save", tmp_path / "m", "--json", tmp_path / "r.json")
    assert result.returncode == 0, result.stderr
    error, expected = progressive_error(vw, "pa1:C=0.05")
    assert said(result.stdout, "error").startswith(f"{error:.2%}")
    assert json.loads((tmp_path / "r.json").read_text())["values"]["error"] == pytest.approx(error, abs=1e-12)
    model = LinearModel.load(tmp_path / "m")
    assert model.names == expected.names
    for one, other in zip(model.weights(), expected.weights(), strict=True):
        assert np.array_equal(one, other)


def test_the_model_opens_in_the_library(vw: Path, tmp_path: Path) -> None:
    onepass("learn", vw, "--save", tmp_path / "m")
    model, expected = op.load(tmp_path / "m"), LinearModel.load(tmp_path / "m")
    assert type(model).__name__ == "LinearClassifier"
    for learner in (model, expected):
        learner.learn_one({"word1": 1.0}, -1)
    model.save(tmp_path / "again")
    again = op.load(tmp_path / "again")
    assert again.t_ == expected.t == 3001
    words = [{f"word{j}": 1.0} for j in range(200)]
    assert again.predict_many(words).tolist() == expected.predict_many(words).tolist()
    assert {again.predict_one(word) for word in words} == {-1, 1}


def test_a_table_with_words_gaps_and_ids(csv: Path, tmp_path: Path) -> None:
    result = onepass("learn", csv, "--label", "spam", "--id", "id", "--save", tmp_path / "m", "-p", tmp_path / "p")
    assert result.returncode == 0, result.stderr
    assert "classification of 2 classes: no, yes (the labels are words)" in result.stdout
    names = LinearModel.load(tmp_path / "m").names
    assert {"age", "income", "city=Rome", "city=Oslo"} == set(names)
    lines = (tmp_path / "p").read_text().splitlines()
    assert len(lines) == 1500 and lines[0] == " r0"  # nothing was known before the first
    wrong = sum(
        line.split()[0] != row.split(",")[4] for line, row in zip(lines[1:], csv.read_text().split()[2:], strict=True)
    )
    assert said(result.stdout, "error").startswith(f"{(wrong + 1) / 1500:.2%}")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["0.5", "1.5"], "classification of 2 classes"),
        (["1", "2", "3"], "classification of 3 classes"),
        ([str(i) for i in range(30)], "regression"),
        (["0.1", "0.2", "0.3"], "regression"),
        (["1", "1", "1"], "classification of 1 class"),
    ],
)
def test_the_first_labels_decide_the_task(labels: list[str], expected: str, tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{label} 1:{i}\n" for i, label in enumerate(labels * 3)))
    result = onepass("learn", path, "--rule", "pa1:C=0.01")
    assert result.returncode == 0, result.stderr
    assert said(result.stdout, "task").startswith(expected)
    other = "regression" if expected.startswith("class") else "classification"
    result = onepass("learn", path, "--task", other, "--rule", "pa1:C=0.01")
    assert said(result.stdout, "task").startswith(other)
    assert "(as asked)" in result.stdout


def test_a_rule_for_numbers_alone_decides_too(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n2 1:2\n" * 5)
    result = onepass("learn", path, "--rule", "sgd:loss=huber,eta=0.01")
    assert said(result.stdout, "task") == "regression (sgd is for nothing else)"


def test_regression(tmp_path: Path) -> None:
    path = write_regression(tmp_path / "r.svm", 3000)
    result = onepass("learn", path, "--metrics", "mae,r2,quantile:q=0.9", "--rule", "pa1:C=0.1,epsilon=0")
    assert result.returncode == 0, result.stderr
    assert float(said(result.stdout, "mae").split(";")[0]) < 0.2
    assert float(said(result.stdout, "r2").split(";")[0]) > 0.95
    assert said(result.stdout, "quantile:q=0.9")


def test_unlabelled_rows_are_predicted_not_learned(tmp_path: Path) -> None:
    path = write_vw(tmp_path / "a.vw", 2000, unlabelled=0.3)
    plain = onepass("learn", path, "--save", tmp_path / "m")
    told = onepass("learn", path, "--save", tmp_path / "n", "-p", tmp_path / "p")
    error, _ = progressive_error(path, DEFAULT)
    assert said(plain.stdout, "error").startswith(f"{error:.2%}")
    assert said(told.stdout, "error").startswith(f"{error:.2%}")
    rows = len((tmp_path / "p").read_text().splitlines())
    assert rows == 2000
    assert said(told.stdout, "without label") == said(plain.stdout, "without label")
    one, other = (LinearModel.load(tmp_path / name) for name in "mn")
    assert one.names == other.names and np.array_equal(one.weights()[0], other.weights()[0])


def test_passes_and_holdout(vw: Path, tmp_path: Path) -> None:
    result = onepass(
        "learn", vw, "--passes", 3, "--holdout", 10, "--save", tmp_path / "m", "--report", tmp_path / "r.html"
    )
    assert result.returncode == 0, result.stderr
    held = [float(x) for x in re.findall(r"held out +error ([\d.]+)%", result.stdout)]
    errors = [float(x) for x in re.findall(r"pass \d error +([\d.]+)%", result.stdout)]
    assert len(held) == len(errors) == 3
    assert errors[2] < errors[0]  # what was seen before is known
    # Held-out rows change nothing: the same as a stream without them, but for the count of rounds.
    lines = vw.read_text().splitlines(keepends=True)
    (tmp_path / "rest.vw").write_text("".join(line for i, line in enumerate(lines, 1) if i % 10))
    onepass("learn", tmp_path / "rest.vw", "--passes", 3, "--save", tmp_path / "n")
    one, other = (LinearModel.load(tmp_path / name) for name in "mn")
    tables = one.named_weights(), other.named_weights()
    assert tables[0] == tables[1]
    page = (tmp_path / "r.html").read_text()
    assert "pass 3 held out" in page and "<h1>3 passes over a.vw</h1>" in page


def test_hashing_reports_collisions(vw: Path) -> None:
    result = onepass("learn", vw, "-b", 7)
    shown = re.search(r"of 128 slots used; about (\d+) names share one", result.stdout)
    assert shown and 30 <= int(shown[1]) <= 130  # 200 words in 128 slots: 100 or so lie on another


def test_standard_input_and_compressed_files_give_the_same(vw: Path, tmp_path: Path) -> None:
    onepass("learn", vw, "--save", tmp_path / "m")
    with vw.open() as file:
        assert onepass("learn", "-", "--format", "vw", "--save", tmp_path / "n", stdin=file).returncode == 0
    (tmp_path / "a.vw.gz").write_bytes(gzip.compress(vw.read_bytes()))
    assert onepass("learn", tmp_path / "a.vw.gz", "--save", tmp_path / "o").returncode == 0
    m, n, o = (LinearModel.load(tmp_path / name).state()[1] for name in "mno")
    for name in ("v", "bias", "names.utf8"):
        assert m[name].tobytes() == n[name].tobytes() == o[name].tobytes()


def test_a_cache_gives_the_same(vw: Path, tmp_path: Path) -> None:
    first = onepass("learn", vw, "--cache", "--save", tmp_path / "m")
    assert first.returncode == 0 and Path(f"{vw}.cache").exists(), first.stderr
    assert onepass("learn", vw, "--cache", "--save", tmp_path / "n").returncode == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


def test_start_from_learns_on(vw: Path, tmp_path: Path) -> None:
    lines = vw.read_text().splitlines(keepends=True)
    for name, part in (("1.vw", lines[:1000]), ("2.vw", lines[1000:])):
        (tmp_path / name).write_text("".join(part))
    onepass("learn", tmp_path / "1.vw", "-f", tmp_path / "half")
    result = onepass("learn", tmp_path / "2.vw", "-i", tmp_path / "half", "-f", tmp_path / "whole")
    assert result.returncode == 0, result.stderr
    onepass("learn", vw, "-f", tmp_path / "once")
    one, other = (LinearModel.load(tmp_path / name) for name in ("whole", "once"))
    assert one.names == other.names and np.array_equal(one.weights()[0], other.weights()[0])
    # And -t learns nothing.
    judged = onepass("learn", vw, "-t", "-i", tmp_path / "whole", "-f", tmp_path / "same")
    assert judged.returncode == 0, judged.stderr
    assert np.array_equal(LinearModel.load(tmp_path / "same").weights()[0], one.weights()[0])


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_the_rule_without_a_word_about_it(tmp_path):
    """Classes, numbers, and what has a bound; a rule that is named is taken whatever the labels are."""
    write_vw(tmp_path / "classes.vw", 50)
    write_regression(tmp_path / "numbers.svm", 50)

    def rule(*given):
        return said(onepass("learn", *given).stdout, "rule")

    assert rule(tmp_path / "classes.vw") == repr(rules.make(DEFAULT))
    assert rule(tmp_path / "numbers.svm") == repr(rules.make(DEFAULT_FOR_NUMBERS))
    assert rule(tmp_path / "numbers.svm", "--rule", DEFAULT) == repr(rules.make(DEFAULT))
    assert rule(tmp_path / "classes.vw", "--regret") == repr(rules.make("pa1:C=0.1"))
    assert rule(tmp_path / "numbers.svm", "--kernel", "rbf:gamma=1").startswith("PA1(C=0.1)")
    for name in ("classes.vw", "numbers.svm"):
        assert rule(tmp_path / name, "--readout", "pocket") == repr(rules.make("pa1:C=0.1"))


def test_flags_about_steps_are_not_for_a_model_that_has_its_rule(tmp_path):
    write_vw(tmp_path / "classes.vw", 50)
    onepass("learn", tmp_path / "classes.vw", "--save", tmp_path / "m")
    for flags in (["--power_t", "0.3"], ["--sgd"], ["--ftrl"], ["--normalized"], ["-l", "2"]):
        refused = onepass("learn", tmp_path / "classes.vw", "--start-from", tmp_path / "m", *flags)
        assert refused.returncode == 2 and "the model brings its own" in refused.stderr, flags
        refused = onepass("learn", tmp_path / "classes.vw", "--rule", "auto", *flags)
        assert refused.returncode == 2 and "--rule auto chooses for itself" in refused.stderr, flags


def test_the_progress_table_is_vws(vw: Path) -> None:
    result = onepass("learn", vw)
    lines = result.stderr.splitlines()
    assert lines[0].split() == ["average", "since", *["example"] * 2, *["current"] * 3]
    table = [line.split() for line in lines[2:]]
    assert [int(row[2]) for row in table] == [2**i for i in range(12)]
    examples = list(op.stream(vw))[:2048]
    model, losses = LinearModel(DEFAULT), []
    for x, y in examples:
        losses.append(model.predict_one(x) != y)
        model.learn_one(x, y)
    for row in table:
        t = int(row[2])
        assert float(row[0]) == pytest.approx(np.mean(losses[:t]), abs=1e-6)
        assert float(row[1]) == pytest.approx(np.mean(losses[t // 2 : t]), abs=1e-6)
        assert int(row[4]) == examples[t - 1][1] and int(row[6]) == 8
        assert (row[4] != row[5]) == losses[t - 1]


def test_quiet_is_quiet_and_progress_none_keeps_the_summary(vw: Path) -> None:
    result = onepass("learn", vw, "--quiet")
    assert (result.stdout, result.stderr) == ("", "")
    result = onepass("learn", vw, "--progress", "none")
    assert result.stderr == "" and "examples" in result.stdout


def test_the_report_and_the_metrics(vw: Path, tmp_path: Path) -> None:
    result = onepass("learn", vw, "--metrics", "error,auc,log_loss,f1:average=macro", "--rule", "sgd:loss=logistic",
                     "--report", tmp_path / "r.html", "--every", 500)  # fmt: skip
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "r.html").read_text()
    for word in ("auc", "log_loss", "f1:average=macro", "Calibration", "a.vw", "3,000"):
        assert word in page
    for metric in ("error", "auc", "log_loss", "f1:average=macro"):
        assert said(result.stdout, metric)


def test_predictions_on_stdout_leave_the_words_to_stderr(vw: Path) -> None:
    result = onepass("learn", vw, "-p", "-", "--progress", "none")
    assert len(result.stdout.splitlines()) == 3000
    assert "examples" in result.stderr


def test_audit_shows_features_and_weights_before_they_are_learned(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("-1 |n z\n1 'x|n a:2 b\n-1 'y|n a c\n")
    result = onepass("learn", path, "--audit", "--rule", "pa", "--no-intercept", "--progress", "none")
    first, its, second, parts = result.stdout.splitlines()[2:]
    assert (first, second) == ("-1 x\tlabel 1", "1 y\tlabel -1")
    assert its.split() == ["n^a:2:0", "n^b:1:0"]
    assert parts.split() == ["n^a:1:0.4", "n^c:1:0"]  # the first moved w by x/‖x‖² = (2, 1)/5
    assert "examples" in result.stderr


def test_invert_hash_writes_weights_by_name(vw: Path, tmp_path: Path) -> None:
    onepass("learn", vw, "--invert_hash", tmp_path / "w.txt", "-f", tmp_path / "m")
    table = LinearModel.load(tmp_path / "m").named_weights()
    lines = (tmp_path / "w.txt").read_text().splitlines()[2:]
    assert {line.rpartition(":")[0]: float(line.rpartition(":")[2]) for line in lines} == {
        name: pytest.approx(weight, rel=1e-5) for name, weight in table.items()
    }


# -- VW's flags --------------------------------------------------------------------------------------------------------


def test_vws_flags_mean_the_same(vw: Path, tmp_path: Path) -> None:
    theirs = onepass("learn", "-d", vw, "-f", tmp_path / "m", "--loss_function", "logistic", "-l", 0.5, "-b", 12,
                     "--l2", 1e-6, "--passes", 2, "-c", "--noconstant", "-p", tmp_path / "p")  # fmt: skip
    assert theirs.returncode == 0, theirs.stderr
    ours = onepass("learn", vw, "--save", tmp_path / "n", "--rule", "sgd:loss=logistic,eta=0.5,l2=1e-6",
                   "--hash-bits", 12, "--passes", 2, "--no-intercept", "-p", tmp_path / "q")  # fmt: skip
    assert ours.returncode == 0, ours.stderr
    one, other = (LinearModel.load(tmp_path / name) for name in "mn")
    assert one.rule == other.rule and np.array_equal(one.weights()[0], other.weights()[0])
    assert (tmp_path / "p").read_text() == (tmp_path / "q").read_text()


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (["--loss_function", "hinge"], "vw:loss=hinge"),
        (["-l", 0.2, "--power_t", 0.3], "vw:loss=squared,eta=0.2,power=0.3"),
        (["--loss_function", "classic"], "vw:loss=squared,invariant=false"),
        (["--loss_function", "quantile", "--quantile_tau", 0.2], "vw:loss=quantile(tau=0.2)"),
        (["--adaptive", "--normalized"], "vw:loss=squared,invariant=false,vw_compat=true"),
        (["--sgd"], "vw:loss=squared,eta=10.0,adaptive=false,normalized=false,invariant=false,vw_compat=true"),
        (["--ftrl", "--loss_function", "logistic", "--l1", 0.5], "ftrl:alpha=0.5,beta=1,lam1=0.5"),
        (["--ftrl", "--ftrl_alpha", 0.1, "--l2", 4], "ftrl:loss=squared,alpha=0.1,beta=0.5,lam2=2.0"),
        (["--rule", "sgd", "-l", 0.3], "sgd:eta=0.3"),
        ([], "pa1:C=0.1"),
    ],
)
def test_vws_flags_about_steps_are_vws_update(flags: list[Any], rule: str) -> None:
    @click.command()
    @click.option("--rule")
    @vw_options
    def probe(**options: Any) -> None:
        click.echo(repr(rule_of(options, "pa1:C=0.1")))

    result = CliRunner().invoke(probe, list(map(str, flags)))
    assert result.output.strip() == repr(rules.make(rule)), result.output


def test_oaa_declares_the_classes(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n2 | b\n3 | c\n" * 20)
    result = onepass("learn", path, "--oaa", 4, "-f", tmp_path / "m")
    assert "of 4 classes: 1, 2, 3, 4" in result.stdout
    path.write_text("1 | a\n7 | b\n")
    result = onepass("learn", path, "--oaa", 4)
    assert result.returncode == 1 and "label 7 is not one of the declared classes" in result.stderr


def test_squared_loss_is_regression_as_in_vw(vw: Path) -> None:
    result = onepass("learn", vw, "--loss_function", "squared", "-l", 0.01)
    assert said(result.stdout, "task").startswith("regression")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--ftrl", "-l", "0.5"], "--ftrl takes --ftrl_alpha, --ftrl_beta"),
        (["--power_t", "0.3", "--rule", "pa1"], "the rule pa1 has no power"),
        (["--invariant", "--rule", "sgd"], "the rule sgd has no adaptive"),
        (["--readable_model", "x"], "onepass inspect MODEL --all"),
        (["--link", "logistic"], "--proba"),
        (["-k"], "made anew"),
        (["-l", "0.5", "--rule", "pa1"], "the rule pa1 has no eta or rho or mu; it has"),
        (["--l1", "0.1", "--rule", "sgd"], "no lam1 or gravity"),
    ],
)
def test_vws_other_flags_name_ours(flags: list[str], expected: str, vw: Path) -> None:
    result = onepass("learn", vw, *flags)
    assert result.returncode == 2
    assert expected in result.stderr and len(result.stderr.splitlines()) == 1


# -- wrong usage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], "which stream?"),
        (["a.vw", "--rule", "pa9"], "rule='pa9' is not a rule"),
        (["a.vw", "--ftrl", "--l1", "-1"], "'--l1': -1.0 is not in the range x>=0"),
        (["a.vw", "--ftrl", "--ftrl_beta", "-1"], "'--ftrl_beta': -1.0 is not in the range x>=0"),
        (["a.vw", "--ftrl", "--l2", "nan"], "'--l2': nan is not a finite number"),
        (["a.vw", "--ftrl", "--ftrl_alpha", "inf"], "'--ftrl_alpha': inf is not a finite number"),
        (["a.vw", "--metrics", "errr"], "metric='errr' is not a metric"),
        (["a.vw", "--checkpoint-every", "5"], "--save MODEL"),
        (["a.vw", "--quarantine", "q"], "--on-error skip"),
        (["-", "--passes", "2"], "standard input"),
        (["a.vw", "--save", "no/such/m"], "there is no such folder"),
        (["a.vw", "--test-only"], "--start-from MODEL"),
        (["a.vw", "--rule", "pamir"], "is for ranking"),
        (["a.vw", "--readout", "best"], "best"),
        (["a.vw", "--rule", "romma", "--task", "regression"], "not defined for task='regression'"),
        (["a.vw", "--resume", "m", "--start-from", "n"], "give one of them"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(args: list[str], expected: str, tmp_path: Path) -> None:
    write_vw(tmp_path / "a.vw", 10)
    result = onepass("learn", *args, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert expected in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "m").exists()


def test_a_metric_that_the_rule_cannot_give(vw: Path) -> None:
    result = onepass("learn", vw, "--metrics", "log_loss")
    assert result.returncode == 2 and "probabilities" in result.stderr
    result = onepass("learn", vw, "--metrics", "mae")
    assert result.returncode == 2 and "is for numbers, but this is classification" in result.stderr
