"""The syllabus is true: its links point at what they name, its snippets run, and its numbers appear.

A page for each chapter, with sections (##). Each section has links *Read*, *Code* and *Checked*, and one or more blocks
that run, each followed by what must appear: the whole output of Python, some lines of a command's.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onepass import budgets, convex, experts, kernels, reductions, rules, scheme
from onepass.estimators import decoders
from onepass.scheme import losses, schedules, tasks

ROOT = Path(__file__).parent.parent.parent
INDEX = ROOT / "docs" / "syllabus" / "README.md"
CHAPTERS = sorted(INDEX.parent.glob("[0-9]*.md"))
MOST_LINES = 5  # of a snippet

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


class Block(NamedTuple):
    language: str
    code: str
    claimed: str  # what must appear


class Section(NamedTuple):
    title: str
    text: str

    @property
    def blocks(self) -> list[Block]:
        return [Block(*found.groups(default="")) for found in BLOCK.finditer(self.text)]

    @property
    def prose(self) -> str:
        return re.sub(r"```.*?```", "", self.text, flags=re.DOTALL)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


SETUP = BLOCK.search(text_of(INDEX))[2]  # type: ignore[index]
SECTIONS = [
    Section(part.partition("\n")[0], part)
    for page in CHAPTERS
    for part in re.split(r"^## ", text_of(page), flags=re.MULTILINE)[1:]
]


def output(code: str, namespace: dict[str, Any]) -> str:
    """What a snippet prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "the syllabus", "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def command_output(line: str, folder: Path) -> str:
    """What a command prints, as if it were installed."""
    program, *arguments = shlex.split(line)
    assert program == "onepass", f"{line}: the syllabus runs onepass and nothing else"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "NO_COLOR": "1"}
    environment |= {"PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    command = [sys.executable, "-m", "onepass", *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def outputs(section: Section, folder: Path) -> list[str]:
    """What the blocks print, run in order by someone who has typed the setup and nothing else."""
    namespace: dict[str, Any] = {"__name__": "syllabus"}
    output(SETUP, namespace)
    return [
        output(block.code, namespace) if block.language == "python" else command_output(block.code, folder)
        for block in section.blocks
    ]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_what_is_claimed_appears(section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block, printed in zip(section.blocks, outputs(section, tmp_path), strict=True):
        if block.language == "python":
            assert printed == block.claimed
            continue
        lines = iter([re.sub(r"\s+", " ", line.strip()) for line in printed.splitlines()])
        for claim in block.claimed.splitlines():
            wanted = re.sub(r"\s+", " ", claim.strip())
            assert any(wanted in line for line in lines), f"{claim!r} does not appear, in this order, in:\n{printed}"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_every_topic_says_where_to_read_what_runs_and_what_appears(section: Section) -> None:
    for word, target in (
        ("Read", r"(\.\./)+[\w-]+\.md"),
        ("Code", r"\.\./\.\./src/[^)]+\.py"),
        ("Checked", r"\.\./\.\./tests/[^)]+\.py"),
    ):
        part = re.search(rf"\*{word}\*(.*?)(?=\*[A-Z]\w+\*|\n\n)", section.text, re.DOTALL)
        assert part and re.search(rf"\]\({target}", part[1]), f"{section.title}: *{word}* has no link"
    assert section.blocks, f"{section.title} runs nothing"
    for block in section.blocks:
        assert re.search(r"\d|True|False", block.claimed) or "error" in block.code, f"{section.title} shows no number"
        lines = [line for line in block.code.splitlines() if line.strip()]
        assert len(lines) <= MOST_LINES, f"{section.title}: {len(lines)} lines, expected at most {MOST_LINES}"
    fences = section.text.count("\n```")
    assert fences == 2 * sum(1 + bool(block.claimed) for block in section.blocks), (
        f"{section.title}: a block is not run"
    )


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", [INDEX, *CHAPTERS], ids=lambda page: page.stem)
def test_links_resolve(page: Path) -> None:
    for link in LINK.findall(re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)):
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.is_file(), f"{link}: no such file"
        if path.suffix == ".md" and anchor:
            assert anchor in anchors(path), f"{link}: no such heading; there are {sorted(anchors(path))}"
        assert not (path.suffix == ".py" and anchor), f"{link}: name the definition in the text, without a line number"


def test_the_contents_and_the_arrows_lead_through_all_chapters() -> None:
    contents = re.findall(r"^\| (\d+) \| \[(.*?)\]\((.*?)\)", text_of(INDEX), re.MULTILINE)
    assert [name for _, _, name in contents] == [page.name for page in CHAPTERS]
    for place, (number, title, name) in enumerate(contents):
        lines = text_of(INDEX.parent / name).splitlines()
        assert lines[0] == f"# {number} {title}" and number == str(place + 1)
        neighbours = [name for _, _, name in contents[max(0, place - 1) : place + 2] if name != CHAPTERS[place].name]
        assert [link for link in LINK.findall(lines[4]) if "#" not in link] == neighbours, f"{name}: the line of arrows"


NAMED = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<path>[^)#\s]+\.py)\)")  # [`Class.method`](path.py)


def defined_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
    return [target.id for target in targets if isinstance(target, ast.Name)]


def is_defined(name: str, body: list[ast.stmt]) -> bool:
    """Is `Class.method`, a class, a function or a constant defined there?"""
    first, _, rest = name.partition(".")
    found = next((statement for statement in body if first in defined_names(statement)), None)
    return found is not None and (not rest or is_defined(rest, getattr(found, "body", [])))


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_links_name_what_their_file_defines(page: Path) -> None:
    text = text_of(page)
    links = list(NAMED.finditer(text))
    assert len(links) == len(re.findall(r"\.py\)", text)) > 0, "a link to code is [`name`](path.py)"
    for link in links:
        tree = ast.parse((page.parent / link["path"]).resolve().read_text(encoding="utf-8"))
        assert is_defined(link["name"], tree.body), f"{link['path']} does not define {link['name']}"


def _run_names() -> str:
    """All that is run or appears, the setup included."""
    return SETUP + "\n".join(block.code + block.claimed for section in SECTIONS for block in section.blocks)


CHECKLIST = {
    "rule": list(rules.RULES),
    "readout": list(scheme.READOUTS),
    "loss": list(losses.LOSSES),
    "schedule": list(schedules.SCHEDULES),
    # Structures come to a learner as a task object, the others by name.
    "task": [f"{getattr(tasks, kind).name}|{kind}" for kind in tasks.__all__ if kind != "make"],
    "multiclass word": sorted({word for kind in rules.RULES.values() for word in kind().traits.multiclass}),
    "reduction": [name for name in reductions.__all__ if name != "load"],
    "kernel": list(kernels.KERNELS),
    "budget": list(budgets.BUDGETS),
    "decoder": [kind.__name__ for kind in decoders.DECODERS.values()],
    "player": [kind.__name__ for kind in convex.PLAYERS.values()],
    "expert algorithm": [kind.__name__ for kind in (*experts.ALGORITHMS.values(), *experts.BANDITS.values())],
}


@pytest.mark.parametrize("kind", CHECKLIST)
def test_nothing_is_left_out(kind: str) -> None:
    run = _run_names()
    for name in CHECKLIST[kind]:
        assert re.search(rf"\b(?:{name})\b", run), f"the syllabus never runs the {kind} {name}: add a topic"
