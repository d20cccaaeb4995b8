"""Record again what the cells and the commands do, and print what changed: ``python tests/golden/record.py``.

``--check`` writes nothing and fails where something changed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from golden import commands, documents, runs, values  # noqa: E402
from golden.cells import Cell, cells  # noqa: E402

LEARNERS, COMMANDS = HERE / "learners.jsonl", HERE / "commands.jsonl"
AGAIN = "If that is meant: python tests/golden/record.py, and say in the commit why it changed."


def read(path: Path) -> dict[str, Any]:
    """Name → record."""
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {record.pop("name"): record for record in records}


def write(path: Path, records: dict[str, Any]) -> None:
    """A line for each, in the order of their names."""
    lines = [json.dumps({"name": name, **records[name]}, ensure_ascii=False) for name in sorted(records)]
    path.write_text("".join(f"{line}\n" for line in lines))


def learners_now(chosen: tuple[Cell, ...] | None = None) -> dict[str, Any]:
    every = [cell for family in cells().values() for cell in family] if chosen is None else chosen
    return {cell.name: runs.record(cell) for cell in every}


def commands_now(scenario: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        done = commands.run(scenario, Path(folder))
    return {f"{scenario}: {number}. {each['command']}": each for number, each in enumerate(done, start=1)}


def printed_now() -> dict[str, Any]:
    """What the documents' code prints."""
    pages = sorted({document for document, _ in documents.RULES.values()})
    return {f"the rules of {page}": {"printed": documents.shown(page)["printed"].splitlines()} for page in pages}


def changes(recorded: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """A paragraph for each name whose record differs."""
    for name in dict.fromkeys([*recorded, *found]):
        if name not in found:
            yield f"{name}\n    is no longer there"
        elif name not in recorded:
            yield f"{name}\n    is new"
        elif lines := list(values.differences(recorded[name], found[name])):
            more = [f"    … and {len(lines) - 6} more"] if len(lines) > 6 else []
            yield "\n".join([name, *(f"    {line}" for line in lines[:6]), *more])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.fsync = lambda handle: None  # models are saved to be looked at, not to be kept
    found = {
        LEARNERS: learners_now(),
        COMMANDS: {**printed_now(), **{k: v for each in commands.SCENARIOS for k, v in commands_now(each).items()}},
    }
    lines = [line for path, records in found.items() for line in changes(read(path), records)]
    print("\n".join([*lines, f"{len(lines)} of {sum(map(len, found.values()))} changed"]))
    if not options.check:
        for path, records in found.items():
            write(path, records)
    return int(options.check and bool(lines))


if __name__ == "__main__":
    sys.exit(main())
