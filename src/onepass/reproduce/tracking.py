"""A best expert that changes: Fixed Share follows it, Hedge does not."""

from __future__ import annotations

import numpy as np

from ..charts.lines import Line
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import curves, picture

__all__ = ["Tracking", "experiment"]

M, N, SPELLS = 10, 2000, 5
POINTS = 40
LEARNERS = ("Hedge", "AdaHedge", "Fixed Share", "Fixed Share, α = 0.01")


class Tracking(Experiment):
    name = "tracking"
    title = "experts that take turns at being best: Fixed Share against Hedge"
    seeds = 5
    protocol = f"""
{M} experts, {N:,} rounds in {SPELLS} spells of {N // SPELLS}. In each spell one expert, drawn anew, loses 1 with
probability 0.1; the others with 0.5. Hedge and AdaHedge compete with the best single expert, Fixed Share with the
best sequence: its regret against the sequence of the spells, {SPELLS - 1} switches, has a bound. η and α of *Fixed
Share* are those for that many switches; the other has α = 0.01, η = 0.5, its defaults. 5 repetitions.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [{"learner": learner} for learner in LEARNERS]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        from .. import experts

        rounds = N // 4 if quick else N
        generator = np.random.default_rng(seed)
        sequence = np.repeat(generator.permutation(M)[:SPELLS], rounds // SPELLS)
        losses = (generator.random((len(sequence), M)) < 0.5).astype(np.float64)
        losses[np.arange(len(sequence)), sequence] = generator.random(len(sequence)) < 0.1
        made: dict[str, experts.Experts] = {
            "Hedge": experts.Hedge(M, horizon=len(sequence)),
            "AdaHedge": experts.AdaHedge(M),
            "Fixed Share": experts.FixedShare(M, switches=SPELLS - 1, horizon=len(sequence)),
            "Fixed Share, α = 0.01": experts.FixedShare(M),
        }
        game = experts.play(made[str(cell["learner"])], losses)
        regret = game.regret(sequence)
        every = max(1, len(sequence) // POINTS)
        return {
            "loss": float(regret.loss[-1]),
            "regret": regret.final,
            "bound": None if regret.bound is None else float(regret.bound[-1]),
            "holds": None if regret.bound is None else regret.holds(),
            "t": regret.t[every - 1 :: every].tolist(),
            "curve": regret.regret[every - 1 :: every].round(3).tolist(),
            "bounds": None if regret.bound is None else regret.bound[every - 1 :: every].round(3).tolist(),
        }

    def report(self, results: Results) -> Report:
        rows = [["learner", "loss", "regret against the sequence", "bound"]]
        for name in results.names("learner"):
            r = results.one(learner=name)
            if r is not None:
                bound = "none" if r.values("bound")[0] is None else r.spread("bound").show()
                rows.append([name, r.spread("loss").show(), r.spread("regret").show(), bound])
        lines = []
        for i, name in enumerate(LEARNERS):
            r = results.one(learner=name)
            if r is not None:
                lines.append(Line(name, r.values("t")[0], np.mean(r.values("curve"), axis=0).tolist(), i + 1))
        r = results.one(learner="Fixed Share")
        if r is not None:
            bounds = np.mean(r.values("bounds"), axis=0).tolist()
            lines.append(Line("bound of Fixed Share", r.values("t")[0], bounds, 3, thin=True))
        panel = curves(
            lines, title="regret against the sequence of best experts", across="rounds", width=760, height=340
        )
        drawn = picture([panel], lines, title=f"{SPELLS} spells, a new best expert in each", columns=1)
        return Report(markdown_table(rows), {"regret": drawn}, _checks(results))


def _checks(results: Results) -> list[Check]:
    def within() -> tuple[bool, str]:
        r = results.the(learner="Fixed Share")
        return all(r.values("holds")), f"{r.mean('regret'):.1f} of {r.mean('bound'):.1f}"

    def better() -> tuple[bool, str]:
        a, b = (results.the(learner=name).mean("loss") for name in ("Fixed Share", "Hedge"))
        return a < b, f"{a:.1f} against {b:.1f}"

    return [
        Check.of("Fixed Share is within its bound for the sequence, at every round", within),
        Check.of("it loses less than Hedge", better),
    ]


experiment = Tracking()
