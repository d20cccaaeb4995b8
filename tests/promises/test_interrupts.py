"""Ctrl-C and SIGTERM are answered between two rows, soon, however slow the learner is.

Time is measured as the process's own: on a busy machine it may wait for its turn.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.command import environment, onepass, write_vw

SOON = 1.0  # seconds from a signal to the end

COMMAND = """
import os, sys, threading, time
from onepass.cli import main
from onepass.cli.job import Job

number, after = int(sys.argv.pop(1)), float(sys.argv.pop(1))
take, sent = Job.take, []

def send() -> None:
    began = time.process_time()
    while time.process_time() < began + after:
        time.sleep(0.01)
    sent.append(time.process_time())
    os.kill(os.getpid(), number)

def taking(self, chunk, interrupts):
    if not sent and not self.counts["examples"]:
        threading.Thread(target=send, daemon=True).start()
    return take(self, chunk, interrupts)

Job.take = taking
try:
    main()
finally:
    print("seconds", time.process_time() - sent[0] if sent else "none", file=sys.stderr)
"""


def write_words(path: Path, rows: int, labels: int, words: int) -> Path:
    """Rows of some words each, with one of many labels."""
    rng = np.random.default_rng(0)
    lines = []
    for number in range(rows):
        label = number % labels if number < labels else rng.integers(labels)
        met = rng.choice(3000, size=words, replace=False) + 7 * label
        lines.append(f"{label + 1} | " + " ".join(f"w{j}" for j in met))
    path.write_text("\n".join(lines) + "\n")
    return path


def slow_run(name: str, folder: Path) -> list[str]:
    """Text that is one block, on which a learner spends some seconds."""
    if name == "kernel":
        stream = write_vw(folder / "a.vw", 22_000, words=3000)
        assert stream.stat().st_size > 1.5e6
        return ["learn", str(stream), "--kernel", "rbf:gamma=0.5", "--rule", "perceptron"]
    stream = write_words(folder / "a.vw", 1500, labels=1000, words=100)
    return [
        "learn",
        str(stream),
        "--rule",
        "vw:loss=logistic",
        "-b",
        "10",
        *([] if name == "classes" else ["--oaa", "1000"]),
    ]


def beside(folder: Path, name: str) -> list[str]:
    """The model and the predictions in files of that name."""
    return ["--save", str(folder / f"{name}.m"), "-p", str(folder / f"{name}.p"), "--quiet"]


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *args]
    return subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=600)


@pytest.fixture(scope="module", params=["kernel", "classes", "oaa"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run that was never stopped, and how it was called."""
    folder = tmp_path_factory.mktemp(request.param)
    learn = slow_run(request.param, folder)
    result = onepass(*learn, *beside(folder, "whole"))
    assert result.returncode == 0, result.stderr
    return folder, learn


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_within_a_block_is_answered_soon(number: int, whole: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, learn = whole
    result = run(COMMAND, str(int(number)), "0.15", *learn, *beside(tmp_path, "broken"))
    assert result.returncode == 130, result.stderr
    words = result.stderr.split()
    assert words[:3] == ["onepass:", "interrupted", "after"] and float(words[-1]) < SOON
    learned, lines = int(words[3].replace(",", "")), (tmp_path / "broken.p").read_text().splitlines()
    assert 0 < learned == len(lines) < len((folder / "whole.p").read_text().splitlines())
    resumed = onepass("learn", "--resume", tmp_path / "broken.m", "-p", tmp_path / "broken.p", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    for part in ("m", "p"):
        assert (tmp_path / f"broken.{part}").read_bytes() == (folder / f"whole.{part}").read_bytes()


LIBRARY = """
import json, signal, sys, time
import numpy as np
from scipy import sparse
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel
import onepass as op

def rows(n, d, classes, kind="dense"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < (1.0 if kind == "dense" else 0.2))
    return X if kind == "dense" else sparse.csr_matrix(X), rng.integers(0, classes, n)

CASES = {
    "dense classes": (lambda: LinearModel("pa1", classes=range(4000)), (16_000, 60, 4000)),
    "csr classes": (lambda: LinearModel("vw:loss=logistic", classes=range(1000)), (2000, 200, 1000, "csr")),
    "growing": (lambda: LinearModel("pa1"), (24_000, 60, 3000)),
    "matrix": (lambda: LinearModel("arow:covariance=full"), (9000, 700, 2)),
    "kernel dense": (lambda: KernelModel("perceptron", kernel="rbf"), (28_000, 60, 2)),
    "kernel csr": (lambda: KernelModel("perceptron", kernel="rbf"), (12_000, 100, 2, "csr")),
}
came = []

def pulse(after=0.05):
    # The signal is sent from beside: while rows are learned natively, nothing runs in the main thread.
    import os, threading
    def send():
        began = time.process_time()
        while time.process_time() < began + after:
            time.sleep(0.005)
        came.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()

def state(model):
    config, arrays = model.state()
    return {key: value.tobytes() for key, value in arrays.items()}

"""

BATCHES = """
for name, (make, shape) in CASES.items():
    broken, whole, (X, y) = make(), make(), rows(*shape)
    came.clear()
    pulse()
    try:
        broken.learn_many(X, y)
        raised = False
    except KeyboardInterrupt:
        raised = True
    seconds, t = time.process_time() - came[0], broken.t
    broken.learn_many(X[t:], y[t:])
    whole.learn_many(X, y)
    print(json.dumps([name, raised, seconds, t, len(y), state(broken) == state(whole)]))
"""


def test_ctrl_c_leaves_the_rows_before_it_learned() -> None:
    result = run(LIBRARY + BATCHES)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == 6
    for name, raised, seconds, t, rows, same in lines:
        assert raised and seconds < SOON and 0 < t < rows, name
        assert same, name  # t says how many, and the others may follow


SCORES = """
model, (X, y) = CASES["kernel dense"][0](), rows(4000, 60, 2)
model.learn_many(X, y)
X, before = rows(100_000, 60, 2)[0], state(model)
pulse()
try:
    model.score_many(X)
    raised = False
except KeyboardInterrupt:
    raised = True
print(json.dumps([raised, time.process_time() - came[0], 1, 2, state(model) == before]))
"""

LASVM = """
X, y = rows(6000, 40, 2)
y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
names = [f"a{j}" for j in range(40)]
mappings = [dict(zip(names, row)) for row in X.tolist()]

model = op.LaSVMClassifier(C=10.0)
model.learn_one(mappings[0], int(y[0]))
inner = model._fitted()
pulse(0.2)  # mappings are read before the first row is learned
try:
    inner.learn_many(mappings[1:], y[1:].tolist())
    raised = False
except KeyboardInterrupt:
    raised = True
seconds = time.process_time() - came[0]
t = inner.t
other = op.LaSVMClassifier(C=10.0)
other.learn_one(mappings[0], int(y[0]))
other._fitted().learn_many(mappings[1:t], y[1:t].tolist())
both = [each._fitted().state() for each in (model, other)]
same = both[0][0] == both[1][0] and all(np.array_equal(both[0][1][k], both[1][1][k]) for k in both[1][1])
print(json.dumps([raised, seconds, t, len(y), bool(same)]))
"""


@pytest.mark.parametrize("code", [SCORES, LASVM], ids=["scores", "lasvm"])
def test_scores_and_lasvm_are_interrupted_between_rows(code: str) -> None:
    result = run(LIBRARY + code)
    assert result.returncode == 0, result.stderr
    raised, seconds, t, rows, same = json.loads(result.stdout)
    assert raised and seconds < SOON and 0 < t < rows and same
