"""``onepass bench``: how fast this machine learns, compared with the other libraries that are installed."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import click

__all__ = ["command"]


@click.command("bench", short_help="Measure how fast this machine learns.", context_settings={"show_default": True})
@click.option(
    "--examples", type=click.IntRange(min=100), default=50_000, help="The number of rows of the generated stream."
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=3, help="The number of runs; the fastest one is reported."
)
@click.option("--peers/--no-peers", default=True, help="Also time scikit-learn and River, where they are installed.")
def command(examples: int, repeats: int, peers: bool) -> None:
    """Time one pass of the rule pa1 over generated sparse rows. Takes about ten seconds.

    `python bench/command.py` in the source compares whole commands on files, also with Vowpal Wabbit.

    \b
    Examples:
      onepass bench
      onepass bench --examples 200000 --no-peers
    """
    from ..charts.text import text_table

    parts, rows = _data(examples)
    cells = [["learner", "how", "examples/s", "error", "×"]]
    ours = 0.0
    for name, how, work, count in [*_ours(parts), *(_peers(parts, rows) if peers else [])]:
        best, error = float("inf"), 0.0
        for _ in range(repeats):
            began = perf_counter()
            error = work()
            best = min(best, perf_counter() - began)
        speed = count / best
        ours = ours or speed
        cells.append([name, how, f"{speed:,.0f}", f"{error:.2%}", f"{ours / speed:.1f}"])
    click.echo(f"{examples:,} rows, {sum(len(X.indices) for X, _ in parts) / examples:.0f} features each\n")
    click.echo(text_table(cells, left=2))


def _data(examples: int) -> tuple[Any, Any]:
    from itertools import islice

    from ..datasets import SparseText

    stream = SparseText(examples, seed=1)
    return list(stream.chunks(4096)), list(islice(stream, min(examples, 5000)))


def _ours(parts: Any) -> list[tuple[str, str, Callable[[], float], int]]:
    import numpy as np

    from ..models.linear import LinearModel

    count = sum(len(y) for _, y in parts)

    def chunks(**options: Any) -> float:
        model, wrong = LinearModel("pa1:C=0.1", **options), 0
        for X, y in parts:
            said = model.predict_then_learn(X, y)
            wrong += (
                int(np.sum(np.array(said, dtype=object) != y)) if isinstance(said, list) else int(np.sum(said != y))
            )
        return wrong / count

    return [("onepass", "chunks of rows", chunks, count)]


def _peers(parts: Any, rows: Any) -> list[tuple[str, str, Callable[[], float], int]]:
    import importlib.util

    import numpy as np

    found: list[tuple[str, str, Callable[[], float], int]] = []
    count = sum(len(y) for _, y in parts)
    classes = np.unique(np.concatenate([y for _, y in parts]))
    if importlib.util.find_spec("sklearn"):
        from sklearn.linear_model import SGDClassifier

        matrices = [(X.csr_matrix(), y) for X, y in parts]

        def scikit() -> float:
            model, wrong = SGDClassifier(learning_rate="pa1", eta0=0.1, penalty=None), 0
            for i, (X, y) in enumerate(matrices):
                if i:
                    wrong += int(np.sum(model.predict(X) != y))
                model.partial_fit(X, y, classes)
            return wrong / max(1, count - len(matrices[0][1]))  # the first chunk cannot be predicted

        def older() -> float:
            from sklearn.linear_model import PassiveAggressiveClassifier

            model, wrong = PassiveAggressiveClassifier(C=0.1), 0
            for i, (X, y) in enumerate(matrices):
                if i:
                    wrong += int(np.sum(model.predict(X) != y))
                model.partial_fit(X, y, classes)
            return wrong / max(1, count - len(matrices[0][1]))

        import sklearn

        recent = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 8)
        found.append(("scikit-learn", "partial_fit, judged by chunk", scikit if recent else older, count))
    if importlib.util.find_spec("river"):
        from river import linear_model

        make: Any = linear_model.PAClassifier

        def river() -> float:
            model, wrong = make(C=0.1, mode=1), 0
            for x, y in rows:
                wrong += model.predict_one(x) != bool(y)
                model.learn_one(x, bool(y))
            return wrong / len(rows)

        def one_by_one() -> float:
            from ..models.linear import LinearModel

            model, wrong = LinearModel("pa1:C=0.1"), 0
            for x, y in rows:
                wrong += model.predict_one(x) != y
                model.learn_one(x, y)
            return wrong / len(rows)

        found.append(("onepass", "mappings, one by one", one_by_one, len(rows)))
        found.append(("River", "mappings, one by one", river, len(rows)))
    return found
