"""Draws docs/convex.svg, docs/experts.svg and docs/regret.svg: ``python scripts/draw_regret.py [FOLDER]``."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

import onepass as op
from onepass import convex, experts
from onepass.charts.lines import Line
from onepass.reproduce.pictures import Panel, curves, picture

KEYS = [Line("regret", [], [], 1), Line("bound", [], [], 2, thin=True)]


def panel(regret: op.Regret, title: str, **options: object) -> Panel:
    thin = regret.thinned(100)
    lines = [Line("regret", thin.t.tolist(), thin.regret.tolist(), 1)]
    if thin.bound is not None:
        lines.append(Line("bound", thin.t.tolist(), thin.bound.tolist(), 2, thin=True))
    return curves(lines, title=title, across="rounds", width=330, height=240, **options)  # type: ignore[arg-type]


def players() -> str:
    T, d, ball = 1000, 4, convex.L2Ball()
    eta, Z = 1 / math.sqrt(T), np.random.default_rng(0).normal(size=(T, d))
    games = {
        "OGD, D/(G√t)": (convex.OGD(d, ball, eta="theory"), convex.Outward(d)),
        "FTRL, η = 1/√T": (convex.FTRL(d, ball, eta=eta), convex.Outward(d)),
        "AdaGrad": (convex.AdaGrad(d, convex.Box()), convex.Outward(d)),
        "EG on the simplex": (convex.EG(d, eta=math.sqrt(2 * math.log(d) / T)), convex.HeavyHalf()),
        "1/(μt), strongly convex": (
            convex.OGD(d, eta=convex.StronglyConvex(1.0)),
            lambda t, w: convex.Quadratic(Z[t - 1]),
        ),
        "FTL, alternating losses": (convex.FTL(1, convex.Box()), convex.Alternating()),
    }
    panels = [panel(convex.play(*game, T).regret(), title, floor=0) for title, game in games.items()]
    return picture(panels, KEYS, title="Players against adversaries: regret and what is promised", columns=3)


def advised() -> str:
    N, M = 600, 8
    hedge = experts.play(experts.Hedge(M, horizon=N), experts.HeaviestHalf(), N).regret()
    printed = experts.play(experts.Hedge(2, eta=math.sqrt(N * math.log(2))), experts.Heaviest(), N).regret()
    printed.bound = 2 * np.sqrt(printed.t * math.log(2))
    sequence = np.repeat([0, 3, 6, 1], N // 4)
    losses = (np.random.default_rng(0).random((N, M)) < 0.5).astype(float)
    losses[np.arange(N), sequence] = 0.0
    share = experts.play(experts.FixedShare(M, switches=3, horizon=N), losses).regret(sequence)
    panels = [
        panel(hedge, "Hedge, √(8 ln M/N)"),
        panel(printed, "η = √(N ln M), as printed, fails"),
        panel(share, "Fixed Share, 3 switches"),
    ]
    return picture(panels, KEYS, title="Experts: regret and bounds", columns=3)


def rules() -> str:
    panels = []
    for rule in ("sgd:loss=logistic,schedule=constant,eta=0.05", "sgd:loss=logistic", "pa2:C=0.1"):
        run = op.prequential(op.LinearClassifier(rule), op.datasets.SEA(3000, seed=1), regret=True)
        panels.append(panel(op.regret(run), rule.replace("loss=logistic", "logistic").replace("schedule=", "")))
    return picture(panels, KEYS, title="Rules on SEA: regret against the best weights in hindsight", columns=3)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "docs"
    for name, draw in (("convex", players), ("experts", advised), ("regret", rules)):
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
