"""Follow the leader on losses for which it fails, and the step size of a lecture with linear regret."""

from __future__ import annotations

import math

from ..charts.lines import Line
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import curves, picture

__all__ = ["Leader", "experiment"]

ROUNDS = (10, 30, 100, 300, 1000)
LEARNERS = ("FTL", "FTRL, 1/√T", "OGD, D/(G√t)", "Hedge, √(N ln M)", "Hedge, √(ln M/N)", "Hedge, √(8 ln M/N)")


class Leader(Experiment):
    name = "leader"
    title = "follow the leader fails where the regularised leader does not; so does Hedge with the printed step"
    seeds = 1
    protocol = """
FTL, FTRL and OGD on [−1, 1] with the losses −w/2, w, −w, w, … (`convex.Alternating`): the leader of the past is always
the wrong answer to the next round. Hedge with two experts, loss 1 for the heavier one each round (`experts.Heaviest`),
with η = √(N ln M) as printed in a lecture (*Peña 1c*), with √(ln M/N), which was meant, and with √(8 ln M/N), which is
best. Nothing is drawn at random.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [{"learner": learner, "rounds": T} for learner in LEARNERS for T in ROUNDS]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        from .. import convex, experts

        name, T = str(cell["learner"]), int(cell["rounds"])
        box, lnM = convex.Box(), math.log(2)
        if name.startswith("Hedge"):
            eta = {"√(N ln M)": math.sqrt(T * lnM), "√(ln M/N)": math.sqrt(lnM / T)}.get(
                name.split(", ")[1], math.sqrt(8 * lnM / T)
            )
            return {"regret": experts.play(experts.Hedge(2, eta=eta), experts.Heaviest(), T).regret().final}
        player: convex.Player = (
            convex.FTL(1, box)
            if name == "FTL"
            else convex.FTRL(1, box, eta=1 / math.sqrt(T))
            if name.startswith("FTRL")
            else convex.OGD(1, box, eta="theory", G=1.0)
        )
        return {"regret": convex.play(player, convex.Alternating(), T).regret().final}

    def report(self, results: Results) -> Report:
        rounds = results.names("rounds")
        rows = [["learner", *(f"T = {T:,}" for T in rounds)]]
        for name in results.names("learner"):
            found = [results.one(learner=name, rounds=T) for T in rounds]
            rows.append([name, *("–" if r is None else f"{r.mean('regret'):.3f}" for r in found)])
        return Report("Regret after T rounds.\n\n" + markdown_table(rows), {"regret": _draw(results)}, _checks(results))


def _draw(results: Results) -> str:
    panels = []
    for title, names in (("alternating linear losses", LEARNERS[:3]), ("loss 1 for the heavier expert", LEARNERS[3:])):
        lines = []
        for i, name in enumerate(LEARNERS):
            found = [r for r in results.where(learner=name) if r.runs]
            if name in names and found:
                t = [float(r.cell["rounds"]) for r in found]
                lines.append(Line(name, t, [math.log10(max(r.mean("regret"), 1e-3)) for r in found], i + 1))
        panels.append(
            curves(lines, title=title, across="rounds", width=430, log=True, show=lambda v: f"{10**v:g}", floor=-1)
        )
    keys = [Line(name, [], [], i + 1) for i, name in enumerate(LEARNERS)]
    return picture(panels, keys, title="Regret after T rounds, both on logarithmic scales", columns=2)


def _checks(results: Results) -> list[Check]:
    def at(learner: str, T: int) -> float:
        return results.the(learner=learner, rounds=T).mean("regret")

    def fails() -> tuple[bool, str]:
        values = [at("FTL", T) for T in (10, 100, 1000)]
        return values == [9.5, 99.5, 999.5], ", ".join(f"{v:g}" for v in values)

    def steady() -> tuple[bool, str]:
        values = [(T, at("FTRL, 1/√T", T)) for T in (10, 100, 1000)]
        return all(v <= math.sqrt(T) for T, v in values), ", ".join(f"{v:.3f}" for _, v in values)

    def printed() -> tuple[bool, str]:
        value, claimed = at("Hedge, √(N ln M)", 1000), 2 * math.sqrt(1000 * math.log(2))
        return value > claimed, f"{value:.1f} > {claimed:.1f} = 2√(N ln M)"

    def meant() -> tuple[bool, str]:
        value, bound = at("Hedge, √(ln M/N)", 1000), 9 / 8 * math.sqrt(1000 * math.log(2))
        return value <= bound, f"{value:.3f} ≤ {bound:.1f}"

    return [
        Check.of("FTL loses every round: regret T − 1/2", fails),
        Check.of("FTRL with η = 1/√T stays below √T", steady),
        Check.of("the printed η breaks the bound printed beside it", printed),
        Check.of("the corrected η keeps its bound", meant),
    ]


experiment = Leader()
