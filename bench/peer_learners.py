"""The learners of `peers.py`: ours, and those of Vowpal Wabbit, scikit-learn and River, with functions that compute
their errors.

A learner has a few settings; the one with the least error on the first tenth of the rows is taken, and its progressive
error over all rows counts. A second form of the rows (numbers standardised) is one more setting.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from peer_sets import Set, forms, load

Learner = dict[str, Any]  # form, setting, prefix, error
Settings = dict[str, dict[str, Any]]  # learner → setting → what makes it

RULES = ("perceptron", "pa1", "pa1@average", "pa2", "romma", "alma", "nlms", "sgd:loss=logistic", "sgd:loss=hinge",
         "pegasos", "adagrad:loss=logistic", "adagrad:loss=hinge", "adagrad:loss=squared_hinge", "rmsprop", "adam",
         "ftrl:loss=logistic", "ftrl:loss=hinge", "vw:loss=squared", "vw:loss=logistic", "vw:loss=hinge", "arow",
         "arow@average", "cw", "scw1", "scw2", "nherd", "auto")  # fmt: skip
FULL = ("arow:covariance=full", "scw1:covariance=full", "nherd:covariance=full", "ons")
WIDEST_FULL = 260  # columns


def chosen(name: str, limit: int | None, prefixes: Callable[[Set], dict[str, dict[str, float]]],
           whole: Callable[[Set, str, str], float]) -> dict[str, Learner]:  # fmt: skip
    """For every learner the best form and setting on the prefix, and its error on all rows."""
    best: dict[str, Learner] = {}
    for form in forms(name):
        for learner, settings in prefixes(load(name, form, limit)).items():
            for setting, error in settings.items():
                if learner not in best or error < best[learner]["prefix"]:
                    best[learner] = {"form": form, "setting": setting, "prefix": error}
    for learner, found in best.items():
        found["error"] = whole(load(name, found["form"], limit), learner, found["setting"])
    return best


# -- ours --------------------------------------------------------------------------------------------------------------


def ours(name: str, limit: int | None) -> dict[str, Learner]:
    """`onepass compare FILE --tune 10%`, of each form; of each rule the form that was better on the prefix."""
    best: dict[str, Learner] = {}
    for form in forms(name):
        data = load(name, form, limit)
        rules = RULES + (FULL if data.X.shape[1] <= WIDEST_FULL and data.rows * data.classes < 1e6 else ())
        for row in compared(data, rules):
            prefix = row["tried"][row["rule"]]
            error = row["values"]["error"]
            if row["lost"] or prefix is None or error is None:
                continue
            if row["asked"] not in best or prefix < best[row["asked"]]["prefix"]:
                best[row["asked"]] = {"form": form, "setting": row["rule"], "prefix": prefix, "error": error}
    return best


def compared(data: Set, rules: tuple[str, ...]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "table.json"
        command = [sys.executable, "-m", "onepass", "compare", str(data.text()), "--task", "classification"]
        command += ["--rules", ",".join(rules), "--tune", str(data.prefix), "--json", str(out), "--quiet"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        return list(json.loads(out.read_text())["rules"])


# -- Vowpal Wabbit -----------------------------------------------------------------------------------------------------

_RATES = ("0.1", "0.5", "2")
VW: Settings = {
    **{loss: {f"-l {rate}": ["--loss_function", loss, "-l", rate] for rate in _RATES}
       for loss in ("squared", "hinge", "logistic")},
    "ftrl": {f"--ftrl_alpha {rate}": ["--ftrl", "--loss_function", "logistic", "--ftrl_alpha", rate]
             for rate in ("0.005", "0.05", "0.5")},
}  # fmt: skip


def vw(name: str, limit: int | None) -> dict[str, Learner]:
    def prefixes(data: Set) -> dict[str, dict[str, float]]:
        return {learner: {setting: _vw_error(data, data.prefix, flags) for setting, flags in settings.items()}
                for learner, settings in VW.items()}  # fmt: skip

    return chosen(name, limit, prefixes, lambda data, learner, setting: _vw_error(data, None, VW[learner][setting]))


def _vw_error(data: Set, rows: int | None, flags: list[str]) -> float:
    """VW as `python -m vowpalwabbit` runs it, in this process: it would start some thirty times for a set."""
    from vowpalwabbit import Workspace

    task = ["--binary"] if data.classes == 2 else ["--oaa", str(data.classes)]
    bits = ["-b", "18" if data.X.shape[1] < 110_000 else "22"]  # features are numbers, so that no two share a column
    machine = Workspace(arg_list=["-d", str(data.text(rows)), "--quiet", *bits, *task, *flags])
    error = float(machine.get_sum_loss() / machine.get_weighted_examples())
    machine.finish()
    return error


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def _sgd(loss: str) -> dict[str, dict[str, Any]]:
    optimal = {f"optimal, alpha {a:g}": {"alpha": a} for a in (1e-5, 1e-4)}
    constant = {f"constant {eta:g}": {"learning_rate": "constant", "eta0": eta} for eta in (0.01, 0.1, 1.0)}
    falling = {"invscaling 1": {"learning_rate": "invscaling", "eta0": 1.0}}
    return {key: {"loss": loss, **given} for key, given in (optimal | constant | falling).items()}


SCIKIT: Settings = {
    "sgd hinge": _sgd("hinge"),
    "sgd log_loss": _sgd("log_loss"),
    "perceptron": {"": {"loss": "perceptron", "learning_rate": "constant", "eta0": 1.0, "penalty": None}},
    "pa1": {
        f"C {c:g}": {"loss": "hinge", "learning_rate": "pa1", "eta0": c, "penalty": None} for c in (0.01, 0.1, 1.0)
    },
}


def scikit(name: str, limit: int | None) -> dict[str, Learner]:
    def prefixes(data: Set) -> dict[str, dict[str, float]]:
        return {learner: {setting: _scikit_error(data, data.prefix, given) for setting, given in settings.items()}
                for learner, settings in SCIKIT.items()}  # fmt: skip

    return chosen(
        name, limit, prefixes, lambda data, learner, setting: _scikit_error(data, data.rows, SCIKIT[learner][setting])
    )


def step_of(data: Set) -> int:
    """Rows predicted, then learned, together: a call takes 0.3 ms, and 3 ms where there are many columns or classes."""
    if data.rows > 55_000:
        return 16
    many = data.X.shape[1] > 10_000 or data.classes > 2
    return 8 if data.rows > (5000 if many else 10_000) else 1


def _scikit_error(data: Set, rows: int, given: dict[str, Any]) -> float:
    """Several classes: one against the rest, as SGDClassifier does it, a machine each (its own loop is slower)."""
    import sklearn
    from sklearn.linear_model import SGDClassifier

    dense = data.X.shape[1] <= 1000
    X = (data.X[:rows].toarray() if dense else data.X[:rows]).astype(np.float64)
    y, wrong, step = data.y[:rows], 0, step_of(data)
    heads = range(data.classes) if data.classes > 2 else (1,)
    machines = [SGDClassifier(shuffle=False, random_state=0, **given) for _ in heads]
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, rows, step):
            part, truth = X[start : start + step], y[start : start + step]
            if start:
                scores = np.stack([machine.decision_function(part) for machine in machines])
                said = (scores[0] > 0).astype(np.int64) if len(machines) == 1 else np.argmax(scores, axis=0)
                wrong += int(np.sum(said != truth))
            else:
                wrong += int(np.sum(truth != 0))
            for head, machine in zip(heads, machines, strict=True):
                machine.partial_fit(part, (truth == head).astype(np.int64), classes=[0, 1])
    return wrong / rows


# -- River -------------------------------------------------------------------------------------------------------------


def _river() -> dict[str, dict[str, Callable[[], Any]]]:
    from river import linear_model, optim

    def logistic(optimizer: Any, rates: tuple[float, ...]) -> dict[str, Callable[[], Any]]:
        return {f"{rate:g}": lambda rate=rate: linear_model.LogisticRegression(optimizer(rate)) for rate in rates}

    return {
        "logistic SGD": logistic(optim.SGD, (0.01, 0.1, 1.0)),
        "logistic AdaGrad": logistic(optim.AdaGrad, (0.01, 0.1, 1.0)),
        "logistic FTRL": logistic(optim.FTRLProximal, (0.05, 0.5)),
        "PA": {f"C {c:g}": lambda c=c: linear_model.PAClassifier(C=c, mode=1) for c in (0.01, 0.1, 1.0)},
        "ALMA": {"": linear_model.ALMAClassifier},
    }


def river(name: str, limit: int | None) -> dict[str, Learner]:
    learners = _river()

    def prefixes(data: Set) -> dict[str, dict[str, float]]:
        return {learner: {setting: _river_error(data, data.prefix, make) for setting, make in settings.items()}
                for learner, settings in learners.items()}  # fmt: skip

    return chosen(
        name, limit, prefixes, lambda data, learner, setting: _river_error(data, data.rows, learners[learner][setting])
    )


def _river_error(data: Set, rows: int, make: Callable[[], Any]) -> float:
    from river import multiclass

    several = data.classes > 2
    model = multiclass.OneVsRestClassifier(make()) if several else make()
    wrong = 0
    for x, y in _examples(data, rows):
        label = y if several else bool(y)
        try:
            wrong += model.predict_one(x) != label
            model.learn_one(x, label)
        except (OverflowError, ZeroDivisionError):  # the step is too long
            return 1.0
    return wrong / rows


def _examples(data: Set, rows: int) -> Iterator[tuple[dict[int, float], int]]:
    return zip(data.mappings()[:rows], data.y[:rows].tolist(), strict=True)


SIDES: dict[str, Callable[[str, int | None], dict[str, Learner]]] = {
    "onepass": ours,
    "VW": vw,
    "scikit-learn": scikit,
    "River": river,
}
