"""The regret of every player and its bound: curves on random, adversarial and real losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..charts.lines import Line
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import curves, picture

__all__ = ["Regrets", "experiment"]

D, T = 5, 2000
POINTS = 40
DRAWN = {"EG (entropic)": "simplex", "EG±": "L1 ball"}  # the sets in the picture, if they are not the ball
SETS = ("ball", "box", "simplex", "L1 ball")
STREAMS = ("random", "adaptive", "phoneme")
PLAYERS: dict[str, tuple[str, ...]] = {  # and the sets they play in
    "OGD, D/(G√t)": SETS,
    "OGD, doubling": SETS,
    "FTRL, quadratic": SETS,
    "dual averaging": ("ball", "box", "L1 ball"),
    "AdaGrad": SETS,
    "EG (entropic)": ("simplex",),
    "EG±": ("L1 ball",),
    "p-norm": ("ball",),
    "coin betting": ("ball",),
    "ONS (logistic)": ("ball",),
}


def make_set(name: str) -> Any:
    from .. import convex

    return {
        "ball": convex.L2Ball(),
        "box": convex.Box(),
        "simplex": convex.Simplex(),
        "L1 ball": convex.L1Ball(),
    }[name]


def make_player(name: str, where: str, rounds: int) -> Any:
    from .. import convex

    S, G = make_set(where), math.sqrt(D) if where == "simplex" else 1.0
    eta = 1.0 / math.sqrt(rounds)
    makers: dict[str, Callable[[], Any]] = {
        "OGD, D/(G√t)": lambda: convex.OGD(D, S, eta="theory", G=G),
        "OGD, doubling": lambda: convex.OGD(D, S, eta=convex.Doubling(S.diameter(D), G)),
        "FTRL, quadratic": lambda: convex.FTRL(D, S, eta=eta / G),
        "dual averaging": lambda: convex.DualAveraging(D, S, gamma=math.sqrt(2.0)),
        "AdaGrad": lambda: convex.AdaGrad(D, S),
        "EG (entropic)": lambda: convex.EG(D, S, eta=math.sqrt(2 * math.log(D) / rounds)),
        "EG±": lambda: convex.EGPlusMinus(D, S, eta=math.sqrt(2 * math.log(2 * D) / rounds)),
        "p-norm": lambda: convex.PNorm(D, p=1.5, eta=eta, radius=1.0),
        "coin betting": lambda: convex.CoinBetting(D),
        "ONS (logistic)": lambda: convex.ONS(D, S, G=1.0, alpha=math.exp(-1.0)),
    }
    return makers[name]()


def make_stream(name: str, where: str, player: str, seed: int, rounds: int) -> Any:
    from .. import convex, datasets

    loss = "logistic" if player.startswith("ONS") else "hinge"
    if name == "phoneme":
        X, y = next(iter(datasets.load("phoneme").shuffled(seed).chunks(rounds)))
        X = np.asarray(X, dtype=np.float64)
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        return convex.Examples(zip(X, np.where(np.asarray(y) == np.max(y), 1.0, -1.0), strict=True), loss)
    if loss == "logistic":
        if name == "adaptive":
            return convex.OppositeLabel(D, loss, seed)
        return convex.RotatingHyperplane(D, 0.0, loss, seed)
    if name == "adaptive":
        return convex.HeavyHalf() if where == "simplex" else convex.Outward(D, seed=seed)
    return convex.RandomLinear(D, mean=[0.1, 0, 0, -0.2, 0], seed=seed)


class Regrets(Experiment):
    name = "regret"
    title = "regret of every player of online convex optimisation, beside its bound"
    version = 2
    seeds = 3
    protocol = f"""
{T:,} rounds in {D} dimensions. *random*: linear losses, independent directions around a small mean. *adaptive*:
linear losses that push away from the origin wherever the player stands (on the simplex: +1 on the heavier half, −1
on the other); for ONS, which wants exp-concave losses, examples whose label is the opposite of the prediction.
*phoneme*: hinge (ONS: logistic) losses of the set's rows scaled to length 1, in a random order. The comparator is
the best point of the set in hindsight (closed form, linear program, or projected gradient with its duality gap).
The bound is that of `player.bounds`, with the constants of the very stream. Share: regret over bound; it must not
pass 1. 3 repetitions.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [
            {"player": player, "set": where, "stream": stream}
            for player, sets in PLAYERS.items()
            for where in sets
            for stream in STREAMS
        ]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return [("phoneme", None)] if cell["stream"] == "phoneme" else []

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        from .. import convex

        rounds = 400 if quick else T
        name, where = str(cell["player"]), str(cell["set"])
        player = make_player(name, where, rounds)
        game = convex.play(player, make_stream(str(cell["stream"]), where, name, seed, rounds), rounds)
        u = game.best(make_set(where)).u
        if name == "p-norm":
            u = u / max(1.0, float(np.linalg.norm(u, ord=1.5)))
        regret = game.regret(u)
        assert regret.bound is not None
        out: Numbers = {
            "regret": regret.final,
            "bound": float(regret.bound[-1]),
            "share": float(np.max(regret.regret / regret.bound)),
        }
        if cell["stream"] == "adaptive" and where == DRAWN.get(name, "ball"):
            every = max(1, rounds // POINTS)
            out["t"] = regret.t[every - 1 :: every].tolist()
            out["curve"] = regret.regret[every - 1 :: every].round(3).tolist()
            out["bounds"] = regret.bound[every - 1 :: every].round(3).tolist()
        return out

    def report(self, results: Results) -> Report:
        rows = [
            ["player", "set", *(f"{stream}: regret / bound" for stream in results.names("stream")), "largest share"]
        ]
        for name in results.names("player"):
            for where in results.where(player=name).names("set"):
                found = [results.one(player=name, set=where, stream=stream) for stream in results.names("stream")]
                cells = ["–" if r is None else f"{r.mean('regret'):.1f} / {r.mean('bound'):.1f}" for r in found]
                shares = [max(r.values("share")) for r in found if r is not None]
                rows.append([name, where, *cells, f"{max(shares):.2f}" if shares else "–"])
        text = "Regret after the last round and its bound; largest share of the bound at any round.\n\n"
        return Report(text + markdown_table(rows), {"adaptive": _draw(results)}, _checks(results))


def _draw(results: Results) -> str:
    panels = []
    for name in results.names("player"):
        where = DRAWN.get(name, "ball")
        result = results.one(player=name, set=where, stream="adaptive")
        lines = []
        if result is not None:
            t = result.values("t")[0]
            for key, colour, thin in (("curve", 1, False), ("bounds", 2, True)):
                mean = np.mean(result.values(key), axis=0).tolist()
                lines.append(Line("regret" if key == "curve" else "bound", t, mean, colour, thin=thin))
        panels.append(curves(lines, title=f"{name}, {where}", across="rounds", width=330, height=230, floor=0))
    keys = [Line("regret", [], [], 1), Line("bound", [], [], 2, thin=True)]
    return picture(panels, keys, title="Regret against the adaptive adversary, and what theory promises", columns=3)


def _checks(results: Results) -> list[Check]:
    shares = {
        f"{r.cell['player']}, {r.cell['set']}, {r.cell['stream']}": max(r.values("share")) for r in results if r.runs
    }
    if not shares:
        return []
    worst = max(shares, key=shares.__getitem__)
    out = [
        Check("no regret passes its bound, at any round", shares[worst] <= 1 + 1e-9, f"{worst}: {shares[worst]:.3f}")
    ]
    grown = [r.mean("regret") for r in results.where(stream="adaptive") if r.runs]
    if grown:
        out.append(Check("the adaptive adversary makes everybody regret", min(grown) > 0, f"least {min(grown):.2f}"))
    return out


experiment = Regrets()
