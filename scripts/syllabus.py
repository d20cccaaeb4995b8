"""The line numbers of `docs/syllabus.md`: ``python scripts/syllabus.py`` sets them anew.

A link of the page such as [`Perceptron.step`](../src/onepass/rules/perceptron.py#L17) names a definition and the line
it is on. Where a definition has moved, this finds it again; where it is gone, it says so and changes nothing.
``--check`` only says what would change. The numbers that the page claims are never written by this script: they come
from the papers, and `tests/test_syllabus.py` compares them with what runs.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SYLLABUS = ROOT / "docs" / "syllabus.md"

# [`name`](path#L12): a definition and its line.
LINK = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<path>[^)#\s]+)#L(?P<line>\d+)\)")


class Definition(NamedTuple):
    name: str  # Class.method where it is inside a class
    path: Path
    line: int


def definitions(page: Path = SYLLABUS) -> Iterator[Definition]:
    """The definitions that the page links to, where it says they are."""
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        yield Definition(match["name"], (page.parent / match["path"]).resolve(), int(match["line"]))


def line_of(path: Path, name: str) -> int | None:
    """The line of a Python file where `name` (a class, function, method or constant) is defined, or None."""
    body = _parsed(path.read_text(encoding="utf-8")).body
    line = None
    for part in name.split("."):
        found = next((node for node in body if part in _names(node)), None)
        if found is None:
            return None
        line, body = found.lineno, getattr(found, "body", [])
    return line


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _names(node: ast.stmt) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def refreshed(page: Path = SYLLABUS) -> tuple[str, list[str]]:
    """The page with every line number right, and what is wrong beyond that."""
    wrong: list[str] = []

    def right(match: re.Match[str]) -> str:
        path = (page.parent / match["path"]).resolve()
        line = line_of(path, match["name"]) if path.is_file() else None
        if line is None:
            wrong.append(f"{match['path']}: there is no {match['name']}; name what took its place in {page.name}")
            return match[0]
        return f"[`{match['name']}`]({match['path']}#L{line})"

    return LINK.sub(right, page.read_text(encoding="utf-8")), wrong


def main(arguments: list[str]) -> int:
    text, wrong = refreshed()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    stale = text != SYLLABUS.read_text(encoding="utf-8")
    if not wrong and stale and "--check" not in arguments:
        SYLLABUS.write_text(text, encoding="utf-8")
        print(f"{SYLLABUS.relative_to(ROOT)}: line numbers set anew")
        stale = False
    elif stale:
        print(f"{SYLLABUS.relative_to(ROOT)}: some definitions have moved; run python scripts/syllabus.py")
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
