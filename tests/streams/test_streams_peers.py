"""The text parsers against the programs whose formats they read: Vowpal Wabbit and scikit-learn."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
from support.extras import require_extra

import onepass as op

FOLDER = os.environ.get("ONEPASS_DATA", "")
FILES = ("0001", "0002", "rcv1_small", "rcv1_multiclass", "wiki256", "frank")


class Peer:
    """VW, reading one line at a time."""

    def __init__(self) -> None:
        vw = require_extra("vowpalwabbit")
        # Without a constant; a table large enough that names hardly meet.
        self.workspace = vw.Workspace("--quiet --noconstant -b 30")

    def read(self, line: str) -> tuple[float, float, float, str, list[float]]:
        example = self.workspace.example(line)
        values = [value for _, value in example.iter_features()]
        label = example.get_simplelabel_label()
        said = (
            float("nan") if label > 3.4e38 else label, example.get_simplelabel_weight(),
            example.get_simplelabel_initial(), example.get_tag(), values,
        )  # fmt: skip
        self.workspace.finish_example(example)
        return said


@pytest.fixture(scope="module")
def peer():
    return Peer()


def agree(peer: Peer, lines: list[str]) -> None:
    """Label, importance, initial prediction, tag, number of features, their sum and sum of squares, line by line."""
    chunks = list(op.stream(io.BytesIO("\n".join(lines).encode()), format="vw").batches(len(lines)))
    assert sum(map(len, chunks)) == len(lines)
    chunk = chunks[0]
    for row, line in enumerate(lines):
        label, weight, base, tag, values = peer.read(line)
        ours = chunk.X.data[chunk.X.indptr[row] : chunk.X.indptr[row + 1]]
        np.testing.assert_allclose(chunk.y[row], label, rtol=1e-6, err_msg=line)
        np.testing.assert_allclose(1.0 if chunk.weight is None else chunk.weight[row], weight, rtol=1e-6, err_msg=line)
        np.testing.assert_allclose(0.0 if chunk.base is None else chunk.base[row], base, rtol=1e-6, err_msg=line)
        assert (chunk.id[row] or "" if chunk.id is not None else "") == tag, line
        assert len(ours) == len(values), line
        np.testing.assert_allclose(sorted(ours), sorted(values), rtol=2e-6, atol=1e-30, err_msg=line)


@pytest.mark.data
@pytest.mark.parametrize("name", FILES)
def test_vw_reads_its_own_files_so(peer, name):
    with gzip.open(Path(FOLDER) / "vw-testdata" / f"{name}.dat.gz", "rt") as file:
        lines = [line.rstrip("\n") for line in file][:1000]
    agree(peer, [line for line in lines if line.strip()])


def test_vw_reads_its_format_so(peer):
    agree(
        peer,
        [
            "1 2 0.5 'tag|a x:2 y |b:3 x y:0.5", "1 |a x:abc y:1e3", "| :0.5 :0.25 x", "tag| x", "1 1 tag| x",
            "1 'tag | x", "|a:2 x", "| a:xyz:3 b", "| a|b c", "| a\tb", "|a | b", "| a:1|b c:2", "1\t2 | x", "|é ü:3",
            "|a  b:2 ", "| 12 0x1 -3 a:-1.5e-3 b:+2 c:.5 d:5. e:0 f:-0.0", "1e3 | x", "  1  | x", "|a b c |a d |aa b",
            "||", "| |", "|a|b c", "1| x", "1 |a b:a=b c:x=1", "| :xyz b", "-1 0 | a", "| a:1\r",
        ],
    )  # fmt: skip


def test_vw_reads_random_lines_so(peer):
    g = np.random.default_rng(0)

    def number() -> str:
        value = g.normal() * 10.0 ** g.integers(-3, 4)
        return [f"{value:.3f}", f"{value:.6e}", f"{int(value) or 1}", f"{abs(value):.1f}", f"+{abs(value):.2f}"][
            g.integers(5)
        ]

    def feature(i: int) -> str:
        name = f"{g.choice(['f', 'wörd', 'a-b', '7'])}{i}"
        return [name, f"{name}:{number()}", f"{name}:v{g.integers(9)}", f":{number()}"][
            g.choice(4, p=[0.4, 0.4, 0.1, 0.1])
        ]

    def line() -> str:
        head = " ".join(
            str(part) for part in [g.integers(-3, 9), f"{g.random():.3f}", f"{g.normal():.3f}"][: g.integers(4)]
        )
        tag = g.choice(["", "'t", "'some_tag "]) if head else ""
        spaces = []
        for s in range(g.integers(1, 4)):
            scale = f":{g.random() + 0.1:.2f}" if g.random() < 0.3 else ""
            name = f"s{s}{scale}" if s or g.random() < 0.8 or scale else ""
            blank = g.choice([" ", "  ", " \t"])
            spaces.append(f"|{name} " + blank.join(feature(i) for i in range(g.integers(0, 9))))
        return f"{head} {tag}" + " ".join(spaces)

    agree(peer, [line() for _ in range(2000)])


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["adult/a9a.svm.gz", "libol/w1a.gz", "ctr-samples/ipinyou_test.svm.gz", "mq2008/S1.txt.gz"]
)
def test_scikit_learn_reads_svmlight_so(name):
    from sklearn.datasets import load_svmlight_file

    path = Path(FOLDER) / name
    X, y, query = load_svmlight_file(str(path), zero_based=True, query_id=True)
    chunks = list(op.stream(path, format="svmlight", block_size=100_000).batches(1000))
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
    row = 0
    for chunk in chunks:
        ours = chunk.X.csr_matrix()
        theirs = X[row : row + len(chunk), : ours.shape[1]]
        assert abs(ours - theirs).sum() == 0.0
        assert X[row : row + len(chunk), ours.shape[1] :].nnz == 0
        if len(query):
            np.testing.assert_array_equal(chunk.query, query[row : row + len(chunk)])
        row += len(chunk)


def test_svmlight_written_by_scikit_learn(tmp_path):
    from scipy import sparse
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    g = np.random.default_rng(0)
    X = sparse.random(200, 50, 0.2, random_state=0, format="csr")
    y = g.normal(size=200)
    for base in (0, 1):
        dump_svmlight_file(
            X, y, str(tmp_path / "a.svm"), zero_based=base == 0, comment="two\nlines", query_id=np.arange(200)
        )
        chunk = next(op.stream(tmp_path / "a.svm", base=base).batches(200))
        theirs, labels = load_svmlight_file(str(tmp_path / "a.svm"), zero_based=base == 0)  # 16 digits do not keep all
        np.testing.assert_array_equal(chunk.X.csr_matrix().toarray(), theirs[:, : chunk.X.shape[1]].toarray())
        np.testing.assert_array_equal(chunk.y, labels)
        np.testing.assert_array_equal(chunk.query, np.arange(200))
