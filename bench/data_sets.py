"""The real data sets of the experiments, from the folder that the environment variable ONEPASS_DATA names.

A folder or set that is missing ends the program with one line and exit code 1.
"""

from __future__ import annotations

import bz2
import gzip
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

Array = NDArray[Any]


def path(name: str, file: str) -> Path:
    """A file of a set."""
    folder = os.environ.get("ONEPASS_DATA")
    if not folder:
        sys.exit(f"ONEPASS_DATA is not set: it must name the folder that holds {name}/{file}")
    found = Path(folder) / name / file
    if not found.is_file():
        place = (
            f"has no set {name} ({name}/{file})" if Path(folder).is_dir() else f"is no folder; wanted the set {name}"
        )
        sys.exit(f"ONEPASS_DATA={folder} {place}")
    return found


def multilabel(name: str, file: str, labels: int) -> tuple[Array, Array]:
    """X and a table of 0 and 1; the first attributes of the ARFF file are the labels."""
    text = bz2.open(path(name, file), "rt").read()
    lines = re.split("(?i)@data", text)[1].strip().splitlines()
    table = np.array([line.split(",") for line in lines if line.strip()], dtype=float)
    return table[:, labels:], table[:, :labels].astype(np.int64)


def scene() -> tuple[Array, Array]:
    """2,407 pictures × 294 colour moments, 6 labels."""
    return multilabel("scene-multilabel", "Scene.arff.bz2", 6)


def yeast() -> tuple[Array, Array]:
    """2,417 genes × 103, 14 labels; by custom the first 1,500 are for training."""
    return multilabel("yeast-multilabel", "Yeast.arff.bz2", 14)


def mq2008() -> list[tuple[Array, Array, Array]]:
    """The parts S1 to S5, each X (46 features in [0, 1]), relevance 0/1/2, query of every row."""
    parts = []
    for i in range(1, 6):
        with gzip.open(path("mq2008", f"S{i}.txt.gz")) as file:
            X, y, qid = load_svmlight_file(file, n_features=46, query_id=True)
        parts.append((X.toarray(), y, qid))
    return parts


def rcv1() -> tuple[Any, Array, list[str]]:
    """Documents with exactly one topic of the second level (C15, E21, GPOL, M14, …); CSR, class indices, names.

    Topics without documents are left out.
    """
    z = np.load(path("rcv1", "rcv1_27k.npz"))
    X = sp.csr_matrix((z["data"], z["indices"].astype(np.int32), z["indptr"]), shape=z["shape"])
    names = z["topic_names"].tolist()
    topics = np.unpackbits(z["topics"], axis=1)[:, : len(names)].astype(bool)
    second = [j for j, name in enumerate(names) if is_second_level(name)]
    only = topics[:, second].sum(axis=1) == 1
    used, y = np.unique(topics[only][:, second].argmax(axis=1), return_inverse=True)
    return X[only], y, [names[second[j]] for j in used]


def is_second_level(topic: str) -> bool:
    if topic.endswith("CAT"):
        return False
    return topic == "G15" or not topic.startswith("G15") if topic.startswith("G") else len(topic) == 3


def mnist() -> tuple[Array, Array, Array, Array]:
    """X, y, X_test, y_test: 60,000 and 10,000 digits of 28×28, grey from 0 to 1."""

    def read(file: str, skip: int) -> Array:
        return np.frombuffer(gzip.open(path("mnist", file)).read(), np.uint8, offset=skip)

    out: list[Array] = []
    for part in ("train", "t10k"):
        out.append(read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32) / 255)
        out.append(read(f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int64))
    return out[0], out[1], out[2], out[3]


# -- helpers of the experiments --------------------------------------------------------------------------------


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def table(cells: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Markdown, its columns aligned; the first `left` flush left. The first row is the heading."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    rows = [
        [cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in cells
    ]
    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))
