"""What a game draws: SVG, the terminal, matplotlib."""

from __future__ import annotations

import itertools
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra
from test_play import SVG, rounds_of, run

from onepass import errors
from onepass.play import Play, play


@pytest.fixture(scope="module")
def worked() -> Play:
    return play("pa", "A", fit_intercept=False)


# SVG


def drawn(svg: str, kind: str) -> list[list[list[tuple[float, float]]]]:
    """The lines of a kind in each round, from pixels back to the plane."""
    root = ElementTree.fromstring(svg)
    left, bottom, right, top = map(float, root.get("data-box", "").split())
    panel = float(root.get("data-panel", ""))

    def back(line: ElementTree.Element, end: int) -> tuple[float, float]:
        x, y = float(line.get(f"x{end}", "")), float(line.get(f"y{end}", ""))
        return left + x / panel * (right - left), bottom + (1 - y / panel) * (top - bottom)

    return [
        [[back(line, 1), back(line, 2)] for line in group.iter(f"{SVG}line") if line.get("class") == kind]
        for group in rounds_of(svg)
    ]


@pytest.mark.parametrize("options", [{"fit_intercept": False, "stream": "A"}, {"seed": 5}, {"readout": "average"}])
def test_svg_boundaries_satisfy_the_equation(options: dict[str, Any]) -> None:
    played = play("pa", **options)
    svg = played.svg_strip()
    checked = 0
    for kind, levels in (("before", [0]), ("after", [0]), ("readout", [0]), ("margin", [1, -1])):
        for frame, lines in zip(played.frames, drawn(svg, kind), strict=True):
            weights = {"before": frame.before, "readout": frame.predicting}.get(kind, frame.after)
            for line in lines:
                scores = [float(weights.w @ point + weights.b) for point in line]
                # Coordinates are written to a ten-thousandth of a pixel.
                assert any(scores == pytest.approx([level, level], abs=1e-5) for level in levels), (kind, frame.t)
                checked += 1
    assert checked > 15
    assert all(len(lines) == 1 for lines in drawn(svg, "after"))


def test_svg_regression_lines() -> None:
    played = play("pa1:epsilon=0.3", task="regression", rounds=5)
    for kind, levels in (("after", [0]), ("margin", [0.3, -0.3])):
        for frame, lines in zip(played.frames, drawn(played.svg_strip(), kind), strict=True):
            for line in lines:
                gaps = [float(frame.after.w[0] * x + frame.after.b - y) for x, y in line]
                assert any(gaps == pytest.approx([level, level], abs=1e-5) for level in levels)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_svg_is_self_contained_and_has_a_group_per_round(task: str, tmp_path: Path) -> None:
    played = play("pa1", task=task, rounds=7)
    path = tmp_path / "strip.svg"
    svg = played.svg_strip(path)
    assert path.read_text(encoding="utf-8") == svg
    groups = rounds_of(svg)
    assert len(groups) == 7
    for frame, group in zip(played.frames, groups, strict=True):
        text = "".join(group.find(f"{SVG}text").itertext())  # type: ignore[union-attr]
        assert text == frame.title
        rings = [circle for circle in group.iter(f"{SVG}circle") if circle.get("class") == "ring"]
        assert len(rings) == 1
        assert len(list(group.iter(f"{SVG}circle"))) == 1 + frame.t
    assert "prefers-color-scheme: dark" in svg
    assert "<script" not in svg and "href" not in svg and "@import" not in svg
    assert svg.count("http") == 1  # the name space
    assert svg in played._repr_html_()
    assert svg == play("pa1", task=task, rounds=7).svg_strip()


def test_svg_escapes_what_it_is_given() -> None:
    class Stream(list):  # type: ignore[type-arg]
        def chunks(self, size: int) -> Any:
            yield np.ones((1, 2)), np.ones(1)

        def __repr__(self) -> str:
            return "<&>"

    assert len(rounds_of(play("pa1", Stream()).svg_strip())) == 1


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 9])
def test_pictures_do_not_overlap(columns: int) -> None:
    svg = play("pa1", rounds=7).svg_strip(columns=columns)
    root = ElementTree.fromstring(svg)
    places = [tuple(map(int, re.findall(r"\d+", group.get("transform", "")))) for group in rounds_of(svg)]
    assert max(x for x, _ in places) + 260 < float(root.get("width", ""))
    assert max(y for _, y in places) + 290 < float(root.get("height", ""))
    for (x1, y1), (x2, y2) in itertools.combinations(places, 2):
        assert abs(x1 - x2) >= 290 or abs(y1 - y2) >= 300
    assert len({x for x, _ in places}) <= columns


def test_arrow_is_to_a_stated_scale(worked: Play) -> None:
    assert worked.arrow_scale() == 1
    small, large = play("adaline", rounds=4), play("pegasos", rounds=4)
    assert small.arrow_scale() > 1 and f"w × {small.arrow_scale():g}" in small.svg_strip()
    assert large.arrow_scale() < 1 and f"w / {1 / large.arrow_scale():g}" in large.svg_strip()


# The terminal


def test_the_terminal_picture() -> None:
    played = play("pa", "A", fit_intercept=False)
    for frame in played.frames:
        picture = [line for line in played.text(frame.t).splitlines() if line[:1] in "┌│└"]
        assert len(picture) == 17 and {len(line.partition("  ")[0]) for line in picture[:1]} == {46}
        inside = "".join(line[1:45] for line in picture[1:-1])
        assert inside.count("+") == sum(y > 0 for _, y in frame.points)
        assert inside.count("o") == sum(y < 0 for _, y in frame.points)
        assert ("(+)" if frame.y > 0 else "(o)") in inside
        assert any("\u2800" < letter <= "\u28ff" for letter in inside)
        assert len(played.text(frame.t).splitlines()) <= 23  # and a prompt: 24 lines


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_plain_letters_and_colors_say_the_same(task: str) -> None:
    played = play("pa1", task=task, rounds=5, readout="average")
    assert played.text(ascii=True).isascii()
    assert re.sub(r"\x1b\[[\d;]*m", "", played.text(color=True)) == played.text()
    assert "\x1b" not in played.text()


# Pictures by matplotlib


@pytest.mark.full(most=1)
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_gif_has_a_frame_per_round(task: str, tmp_path: Path) -> None:
    image = require_extra("PIL.Image")
    require_extra("matplotlib")
    played = play("pa1", task=task, rounds=4)
    played.gif(tmp_path / "play.gif", dpi=40)
    with image.open(tmp_path / "play.gif") as gif:
        assert (gif.format, gif.n_frames, gif.info["loop"]) == ("GIF", 4, 0)
    played.png(tmp_path / "play.png", columns=3, dpi=30)
    with image.open(tmp_path / "play.png") as png:
        assert png.format == "PNG"


@pytest.mark.parametrize("missing", ["matplotlib.figure", "PIL.Image"])
def test_a_missing_package_is_named(
    missing: str, worked: Play, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for draw in (worked.gif, worked.png):
        with pytest.raises(errors.MissingDependencyError, match=r"onepass\[plot\]"):
            draw(tmp_path / "play.gif")
    assert not list(tmp_path.iterdir())
    result = run("play", "--gif", str(tmp_path / "play.gif"))
    assert result.exit_code == 1 and "onepass[plot]" in result.stderr and not result.stdout
