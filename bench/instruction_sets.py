"""The same loops on every instruction set that this processor has: nanoseconds a row, learning alone.

python bench/instruction_sets.py [--rows N] [--repeats R] [--json FILE]

Rows as in command.py: about 60 of 50,000 features. The sets give the same bits; the table shows how much faster the
wider ones are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from command import sparse
from scipy.sparse import csr_matrix
from timing import header, in_turn, machine, say

from onepass import _native
from onepass.charts.text import text_table
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel

RULES = ("sgd:loss=logistic", "arow", "adagrad:loss=logistic", "ftrl:loss=logistic", "vw:loss=logistic")
KERNEL = "pa1, rbf, 4,000 rows of 20 numbers"


def text_like(rows: int) -> tuple[csr_matrix, Any]:
    labels, indices, values = zip(*sparse(rows), strict=True)
    starts = np.concatenate([[0], np.cumsum([len(each) for each in indices])])
    X = csr_matrix((np.concatenate(values), np.concatenate(indices), starts), shape=(rows, 50_000))
    return X, np.array(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the generated matrix")
    parser.add_argument("--repeats", type=int, default=5, help="turns each set takes; the best counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    given = parser.parse_args()
    about, own, sets = machine(), _native.isa(), _native.isas()
    print(header(about), flush=True)
    X, y = text_like(given.rows)
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(4000, 20))
    work: dict[str, tuple[Any, Any, Any]] = {
        rule: (lambda rule=rule: LinearModel(rule, "binary", classes=[-1, 1]), X, y) for rule in RULES
    }
    work[KERNEL] = (lambda: KernelModel("pa1", kernel="rbf"), dense, np.where(dense[:, 0] > 0, 1, -1))
    figures: dict[str, dict[str, float]] = {}
    for name, (make, rows, labels) in work.items():
        say(f"{name} …")

        def learn(model: Any, isa: str, rows: Any = rows, labels: Any = labels) -> None:
            _native.use_isa(isa)
            model.learn_many(rows, labels)

        best, _ = in_turn([(make, lambda model, isa=isa: learn(model, isa)) for isa in sets], given.repeats)
        figures[name] = {isa: seconds / rows.shape[0] * 1e9 for isa, seconds in zip(sets, best, strict=True)}
    _native.use_isa(own)
    cells = [["rule", *(f"{isa} ns" for isa in sets)]]
    cells += [[name, *(f"{found[isa]:,.0f}" for isa in sets)] for name, found in figures.items()]
    print(f"\n{text_table(cells, left=1)}")
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": about, "ns": figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
