"""Kernel models on the chunks of streams: bit for bit their loop over examples, however cut; in the command too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import onepass, write_csv, write_vw
from support.kernel_grid import saved

import onepass as op
from onepass.errors import InputError
from onepass.models.kernel import KernelModel
from onepass.persistence import store

BUDGETS = ["unlimited", "oldest:B=20", "bpann:B=20", "bpap:B=20"]


def write_svmlight(path: Path, rows: int = 300) -> Path:
    """Later rows have features that no row had before."""
    rng = np.random.default_rng(5)
    with path.open("w") as file:
        for number in range(rows):
            met = np.sort(rng.choice(5 + number // 10, size=4, replace=False)) + 1
            file.write(f"{rng.choice([-1, 1])} " + " ".join(f"{j}:{rng.normal():.3f}" for j in met) + "\n")
    return path


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("kernel_streams")
    made = {
        "vw": write_vw(folder / "a.vw", 300, words=40),
        "csv": write_csv(folder / "a.csv", 300),
        "svmlight": write_svmlight(folder / "a.svm"),
    }
    label = {"csv": {"label": "spam", "drop": ["id"]}}
    return {
        **{name: lambda name=name: op.stream(made[name], **label.get(name, {})) for name in made},
        "hashed": lambda: op.stream(made["vw"], hash_bits=8),
        "paths": made,
    }


def model_for(name: str, budget: str) -> KernelModel:
    return KernelModel("pa1", kernel="rbf", budget=budget, hash_bits=8 if name == "hashed" else None)


def parts(stream: Any, sizes: list[int]) -> Iterator[tuple[Any, Any]]:
    """The rows of a small stream, a few at a time."""
    chunk = next(iter(stream.batches()))
    start = 0
    for size in itertools.cycle(sizes):
        rows = np.arange(start, min(start + size, len(chunk)))
        if len(rows) == 0:
            return
        yield chunk.X.take(rows), chunk.y[rows]
        start += size


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ["vw", "csv", "svmlight", "hashed"])
def test_chunks_are_the_loop(name: str, budget: str, streams: dict[str, Any]) -> None:
    whole, cut, fresh = (model_for(name, budget) for _ in range(3))
    for chunk in streams[name]().batches():
        whole.learn_many(chunk.X, chunk.y)
    for X, y in parts(streams[name](), [1, 7, 40]):
        before = cut.score_many(X)[:1] if cut.started else None
        said = cut.score_then_learn(X, y)
        if before is not None:
            np.testing.assert_array_equal(said[0][1][:1], before)  # names that are new count in a prediction too
    assert saved(whole) == saved(cut)
    assert 0 < whole.n_support
    if name != "svmlight":  # whose examples have no names; a loop over them learns by number
        for x, y in streams[name]():
            fresh.learn_one(x, y)
        assert saved(fresh) == saved(whole)


def test_prequential_reads_streams(streams: dict[str, Any]) -> None:
    runs = [
        op.prequential(op.KernelClassifier("pa1", kernel="rbf:gamma=0.2", budget="bpann:B=50"), stream)
        for stream in (streams["vw"](), list(streams["vw"]()))
    ]
    assert runs[0].values == runs[1].values
    assert runs[0].examples == 300


def test_a_refused_chunk_changes_nothing(streams: dict[str, Any]) -> None:
    chunks = list(parts(streams["vw"](), [50]))
    model = model_for("vw", "bpap:B=20")
    model.learn_many(*chunks[0])
    before, bad = saved(model), chunks[1]
    bad[0].data[len(bad[0].data) // 2] = np.nan
    with pytest.raises(InputError, match="finite"):
        model.learn_many(*bad)
    assert saved(model) == before
    fresh = model_for("vw", "bpap:B=20")
    empty = saved(fresh)
    with pytest.raises(InputError, match="finite"):
        fresh.learn_many(*bad)
    assert saved(fresh) == empty
    model.learn_many(*chunks[2])  # and it goes on


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_learns_saves_and_resumes_to_the_same_bits(streams: dict[str, Any], tmp_path: Path) -> None:
    source = streams["paths"]["csv"]
    options = ["--label", "spam", "--drop", "id", "--kernel", "rbf:gamma=0.5", "--budget", "bpann:B=30", "--quiet"]
    done = onepass("learn", source, *options, "--save", tmp_path / "whole")
    assert done.returncode == 0, done.stderr
    lines = source.read_text().splitlines(keepends=True)
    half = tmp_path / "growing.csv"
    half.write_text("".join(lines[:130]))
    assert onepass("learn", half, *options, "--save", tmp_path / "m").returncode == 0
    half.write_text("".join(lines))
    assert onepass("learn", "--resume", tmp_path / "m", half, "--quiet").returncode == 0
    whole, resumed = (
        {k: v for k, v in store.read(tmp_path / name)[2].items() if "." not in k} for name in ("whole", "m")
    )
    assert whole.keys() == resumed.keys() and "support_data" in whole
    for key, array in whole.items():
        np.testing.assert_array_equal(resumed[key], array, err_msg=key)
    assert op.load(tmp_path / "whole").n_support_ == 30
    model = KernelModel.load(tmp_path / "whole")
    expected = KernelModel("pa1:C=0.1", kernel="rbf:gamma=0.5", budget="bpann:B=30")
    for x, y in streams["csv"]():
        expected.learn_one(x, y)
    np.testing.assert_array_equal(model.coefficients, expected.coefficients)
    told = onepass("inspect", tmp_path / "whole").stdout
    assert "RBF(gamma=0.5)" in told and "BPANN(B=30)" in told and "30 of at most 30" in told
    predicted = onepass("predict", tmp_path / "whole", source).stdout.split()
    assert len(predicted) == 300
    assert np.mean([p == line.split(",")[-1].strip() for p, line in zip(predicted, lines[1:], strict=True)]) > 0.75


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kernel", "rbfx"], ["rbfx"]),
        (["--budget", "bpann:B=0"], ["B"]),
        (["--kernel", "rbf", "--readout", "average"], ["last"]),
        (["--budget", "forgetron", "--rule", "pa1"], ["Forgetron", "perceptron"]),
        (["--kernel", "rbf", "--audit"], ["--audit", "kernel"]),
        (["--kernel", "rbf", "--rule", "fobos:lam1=1"], ["single weights"]),
    ],
)
def test_refusals(options: list[str], words: list[str], streams: dict[str, Any]) -> None:
    done = onepass("learn", streams["paths"]["vw"], *options)
    assert done.returncode == 2, done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_brings_its_own_kernel(streams: dict[str, Any], tmp_path: Path) -> None:
    source = streams["paths"]["vw"]
    assert onepass("learn", source, "--kernel", "linear", "--save", tmp_path / "m", "--quiet").returncode == 0
    done = onepass("learn", source, "--start-from", tmp_path / "m", "--kernel", "rbf")
    assert done.returncode == 2 and "brings its own" in done.stderr
