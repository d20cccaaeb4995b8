"""Figures 31.4, 31.5, 31.8 and 31.9 of Sugiyama's Introduction to Statistical Machine Learning (2016), chapter 31."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import rules
from ..charts.lines import Line
from ..kernels import maps
from ..models.reference import ReferenceLearner
from .framework import Cell, Check, Experiment, Numbers, Report, Results, Spread
from .pages import markdown_table
from .pictures import Panel, curves, picture

__all__ = ["Sugiyama", "experiment"]

PA = "pa2:lam=1"  # squared hinge with passiveness 1
AROW = "arow:lam=1,covariance=full"
FIGURES: dict[str, tuple[str, ...]] = {  # the learners that use it
    "31.4": ("PA",),
    "31.5": ("PA", "PA, start 0", "PA, drawn", "PA, start 0, drawn", "PA, start 0, 20 passes"),
    "31.8": ("PA", "AROW"),
    "31.9": ("AROW, 100 passes", "AROW, start 0", "AROW, one pass"),
}
GRID = np.linspace(-3, 3, 1000)
PUBLISHED = {
    ("31.5", "PA, drawn"): Spread(0.44, 0.15, 20),
    ("31.5", "PA, start 0, drawn"): Spread(0.056, 0.012, 20),
    ("31.5", "PA, start 0, 20 passes"): Spread(0.043),
    ("31.8", "PA"): Spread(0.43, None, 200),
    ("31.8", "AROW"): Spread(0.0001, None, 200),
    ("31.9", "AROW, 100 passes"): Spread(0.032, 0.004, 20),
    ("31.9", "AROW, start 0"): Spread(0.031, None, 20),
    ("31.9", "AROW, one pass"): Spread(0.18, None, 20),
}


class Sugiyama(Experiment):
    name = "sugiyama"
    title = "PA and AROW with outliers and with Gaussian basis functions (figures 31.4, 31.5, 31.8, 31.9)"
    seeds = 20
    quick_seeds = 3
    protocol = """
31.4: 200 points, x₁ ~ N(∓5, 1) for the two classes, x₂ ~ N(0, 25), a constant; PA with the squared hinge, passiveness
λ = 1, from 0, one pass in random order. Error on the 200 points.
31.8: 50 points, x₁ ~ N(−15, 1) and N(−5, 1), x₂ ~ N(0, 1), a constant; the first two of the positive class are moved
by +10 into the other one. PA as above and AROW with λ = 1 and the full Σ. Error on 1,000 points without outliers.
31.5: y = sin(πx)/(πx) + x/10 + N(0, 0.05²) at 50 equally spaced x of [−3, 3]; features exp(−(x − c)²/0.18) around
these x; PA for the squared loss, λ = 1, one pass in random order from a random start θ₀ ~ N(0, I), and from 0. Root
mean square error on 1,000 points against the curve without noise.
31.9: the same with AROW regression, λ = 1, rows in order; 100 passes from a random start, one pass from 0, one pass
from a random start. A random start is learned as an offset: y − θ₀·φ(x) from 0, which gives the same steps.

The reference is this project's specification, where those values were computed; the book shows pictures. Its values of
31.5 are those of 50 rows drawn with replacement (*drawn*); one pass in random order leaves less error.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [{"figure": figure, "learner": learner} for figure, names in FIGURES.items() for learner in names]

    def missing(self, cell: Cell) -> str | None:
        if str(cell["learner"]).startswith("AROW") and "arow" not in rules.RULES:
            return "the rule arow is not in this onepass"
        return None

    def published(self, cell: Cell) -> Mapping[str, Spread]:
        known = PUBLISHED.get((str(cell["figure"]), str(cell["learner"])))
        return {} if known is None else {"error": known}

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        figure, learner = str(cell["figure"]), str(cell["learner"])
        generator = np.random.default_rng(seed)
        if figure in ("31.4", "31.8"):
            return _classify(figure, AROW if learner == "AROW" else PA, generator, drawn=seed == 0)
        passes = {"PA, start 0, 20 passes": 20, "AROW, 100 passes": 100}.get(learner, 1)
        rule = AROW if learner.startswith("AROW") else "pa2:lam=1,epsilon=0"
        out = _regress(rule, passes, "start 0" not in learner, "drawn" in learner, generator)
        return out if seed == 0 else {"error": out["error"]}

    def report(self, results: Results) -> Report:
        rows = [["figure", "learner", "error", "reference"]]
        for r in results:
            if not r.runs:
                continue
            known = self.published(r.cell).get("error")
            shown = r.spread("error").show(4)
            rows.append([str(r.cell["figure"]), str(r.cell["learner"]), shown, "" if known is None else known.show(4)])
        text = "Error rate (31.4, 31.8) or root mean square error (31.5, 31.9).\n\n" + markdown_table(rows)
        return Report(text, {"figures": _draw(results)}, _checks(results))


def _classify(figure: str, rule: str, generator: np.random.Generator, *, drawn: bool) -> Numbers:
    centres, n, across = ((-5, 5), 200, 5.0) if figure == "31.4" else ((-15, -5), 50, 1.0)

    def draw(count: int) -> tuple[Any, Any]:
        y = np.repeat([1, -1], count // 2)
        x1 = np.where(y == 1, centres[0], centres[1]) + generator.normal(size=count)
        return np.column_stack([x1, across * generator.normal(size=count), np.ones(count)]), y

    X, y = draw(n)
    if figure == "31.8":
        X[:2, 0] += 10
    learner = ReferenceLearner(rule, "binary", fit_intercept=False)
    for i in generator.permutation(n):
        learner.learn(X[i], int(y[i]))
    test, truth = (X, y) if figure == "31.4" else draw(1000)
    w = np.asarray(learner.w).ravel()
    out: Numbers = {"error": float(np.mean(np.where(test @ w > 0, 1, -1) != truth)), "w": w.tolist()}
    if drawn:  # one seed is shown
        out["points"] = [[round(float(a), 3), round(float(b), 3), int(c)] for (a, b, _), c in zip(X, y, strict=True)]
    return out


def _regress(rule: str, passes: int, random_start: bool, drawn: bool, generator: np.random.Generator) -> Numbers:
    x = np.linspace(-3, 3, 50)
    y = np.sinc(x) + 0.1 * x + 0.05 * generator.normal(size=50)
    basis = maps.GaussianBasis(centres=x[:, np.newaxis], h=0.3).fit(x[:, np.newaxis])
    phi, grid = basis.transform(x[:, np.newaxis]), basis.transform(GRID[:, np.newaxis])
    theta = generator.normal(size=50) if random_start else np.zeros(50)
    learner = ReferenceLearner(rule, "regression", fit_intercept=False)
    order = np.arange(50) if rule.startswith("arow") else generator.permutation(50)
    if drawn:
        order = generator.integers(50, size=50)
    for _ in range(passes):
        for i in order:
            learner.learn(phi[i], float(y[i] - theta @ phi[i]))
    f = grid @ (theta + np.asarray(learner.w).ravel())
    truth = np.sinc(GRID) + 0.1 * GRID
    return {
        "error": float(np.sqrt(np.mean((f - truth) ** 2))),
        "f": f[::10].round(4).tolist(),
    }


LINES = {"PA": 1, "PA, start 0": 2, "AROW, 100 passes": 1, "AROW, start 0": 2}  # the functions drawn, by colour
BOUNDARIES = {"PA": 3, "AROW": 4}


def _draw(results: Results) -> str:
    """The results of the first seed: the functions, and the boundaries between the points."""
    at, panels = GRID[::10], []
    for figure, rule in (("31.5", "PA"), ("31.9", "AROW")):
        lines = [Line("without noise", at.tolist(), (np.sinc(at) + 0.1 * at).tolist(), 8, thin=True)]
        for name, colour in LINES.items():
            r = results.one(figure=figure, learner=name)
            if r is not None:
                lines.append(Line(name, at.tolist(), r.runs[0]["f"], colour))
        panels.append(curves(lines, title=f"{figure}: {rule}, Gaussian basis functions", across="x", width=520))
    for figure in ("31.4", "31.8"):
        panels.append(
            _scatter(figure, {str(r.cell["learner"]): r.runs[0] for r in results.where(figure=figure) if r.runs})
        )
    keys = [
        Line("without noise", [], [], 8, thin=True),
        Line("31.5, 31.9: random start", [], [], 1),
        Line("start 0", [], [], 2),
        Line("31.4, 31.8: boundary of PA", [], [], 3),
        Line("of AROW", [], [], 4),
    ]
    return picture(panels, keys, title="Sugiyama, chapter 31", columns=2)


def _scatter(figure: str, runs: dict[str, Numbers]) -> Panel:
    width, height, left, top = 520.0, 320.0, 40.0, 34.0
    points = next(iter(runs.values()))["points"] if runs else []
    if not points:
        return Panel("", width, height)
    low, high = (min(p[0] for p in points) - 1, max(p[0] for p in points) + 1)
    down, up = (min(p[1] for p in points) - 1, max(p[1] for p in points) + 1)

    def place(a: float, b: float) -> tuple[float, float]:
        return left + (width - left - 20) * (a - low) / (high - low), top + (height - top - 20) * (up - b) / (up - down)

    title = "200 points" if figure == "31.4" else "two outliers among the other class"
    out = [f'<text class="name" x="{left:.0f}" y="{top - 12:.0f}">{figure}: {title}</text>']
    for a, b, label in points:
        x, y = place(a, b)
        out.append(f'<circle class="f{5 if label > 0 else 7}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>')
    for name, run in runs.items():
        ends = _boundary(run["w"], (low, high), (down, up))
        if len(ends) == 2:
            (x1, y1), (x2, y2) = (place(*end) for end in ends)
            out.append(f'<path class="line s{BOUNDARIES[name]}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>')
    return Panel("".join(out), width, height)


def _boundary(w: list[float], across: tuple[float, float], along: tuple[float, float]) -> list[tuple[float, float]]:
    """Where the line w₁x₁ + w₂x₂ + w₃ = 0 crosses the frame."""
    ends = [(-(w[1] * b + w[2]) / w[0], b) for b in along if w[0] != 0]
    ends += [(a, -(w[0] * a + w[2]) / w[1]) for a in across if w[1] != 0]
    slack = 1e-9
    inside = [
        (a, b)
        for a, b in ends
        if across[0] - slack <= a <= across[1] + slack and along[0] - slack <= b <= along[1] + slack
    ]
    return sorted(inside, key=lambda end: end[1])[:: max(1, len(inside) - 1)][:2]


def _checks(results: Results) -> list[Check]:
    def near(figure: str, learner: str, tolerance: float) -> tuple[bool, str]:
        got = results.the(figure=figure, learner=learner).mean("error")
        known = PUBLISHED[figure, learner].mean
        return abs(got - known) <= tolerance, f"{got:.3f}, reference {known:.3f}"

    def below(figure: str, learner: str, limit: float) -> tuple[bool, str]:
        got = results.the(figure=figure, learner=learner).mean("error")
        return got <= limit, f"{got:.4f}"

    def above(figure: str, learner: str, limit: float) -> tuple[bool, str]:
        got = results.the(figure=figure, learner=learner).mean("error")
        return got >= limit, f"{got:.3f}"

    if results.quick:
        return []
    return [
        Check.of("31.4: PA separates the clusters", below, "31.4", "PA", 0.0),
        Check.of("31.5: PA from a random start stays wiggly", above, "31.5", "PA", 0.2),
        Check.of("31.5: the same, rows drawn", near, "31.5", "PA, drawn", 0.1),
        Check.of("31.5: PA from 0, rows drawn", near, "31.5", "PA, start 0, drawn", 0.012),
        Check.of("31.5: PA from 0, one pass", below, "31.5", "PA, start 0", 0.056),
        Check.of("31.8: PA is dragged away by two outliers", above, "31.8", "PA", 0.2),
        Check.of("31.8: AROW is not", below, "31.8", "AROW", 0.01),
        Check.of("31.9: AROW after 100 passes", near, "31.9", "AROW, 100 passes", 0.008),
        Check.of("31.9: AROW after one pass from 0", near, "31.9", "AROW, start 0", 0.008),
    ]


experiment = Sugiyama()
