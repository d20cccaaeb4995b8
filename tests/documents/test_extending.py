"""The examples of docs/extending.md: each diff applies to this tree, touches at most four files, and its Python works.

The C++ of a diff is only applied, not compiled: what runs are the readable Python twins.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onepass import _native

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
EXAMPLES = {
    part.partition("\n")[0]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:] if "```diff" in part
}
# The copy comes before an editable installation, whose finder knows where the modules of the package are.
FIRST = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__]"


def diff_of(example: str) -> str:
    found = re.search(r"```diff\n(.*?)```", EXAMPLES[example], re.DOTALL)
    assert found
    return found[1]


def files_of(diff: str) -> dict[str, list[str]]:
    """File → its hunks."""
    parts = re.split(r"^diff --git .*\n", diff, flags=re.MULTILINE)[1:]
    return {
        re.search(r"^\+\+\+ b/(.*)$", part, re.MULTILINE)[1]: re.split(r"^@@.*\n", part, flags=re.MULTILINE)[1:]  # type: ignore[index]
        for part in parts
    }


def apply(diff: str, tree: Path) -> None:
    """Apply a diff; the lines that a hunk replaces must be in the file exactly once."""
    for name, hunks in files_of(diff).items():
        path = tree / name
        for hunk in hunks:
            lines = [line if line.strip() else " " + line for line in hunk.splitlines(keepends=True)]
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            if not old:
                assert not path.exists(), f"{name} exists already"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(new, encoding="utf-8")
                continue
            text = path.read_text(encoding="utf-8")
            assert text.count(old) == 1, f"{name} has these lines {text.count(old)} times, expected once:\n{old}"
            path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the diffs need, with all of them applied."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "src" / "onepass", tree / "src" / "onepass", ignore=shutil.ignore_patterns("*.so"))
    (tree / "src" / "onepass" / Path(_native.__file__).name).symlink_to(_native.__file__)
    for example in EXAMPLES:
        for name in files_of(diff_of(example)):
            if (ROOT / name).exists() and not (tree / name).exists():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, tree / name)
        apply(diff_of(example), tree)
    return tree


def test_there_is_an_example_of_each() -> None:
    kinds = {"rule", "kernel", "budget", "loss", "file format", "learner", "metric"}
    assert {title.removeprefix("A ") for title in EXAMPLES} == kinds


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_new_thing_touches_at_most_four_files(example: str) -> None:
    files = files_of(diff_of(example))
    assert 2 <= len(files) <= 4
    assert any(name.startswith("tests/") for name in files) or ">>> " in diff_of(example), "there is no test"


def test_the_examples_work(tree: Path, tmp_path: Path) -> None:
    """In one process, each in a namespace of its own: what a block prints is what the page says."""
    for number, example in enumerate(EXAMPLES):
        code = "\n".join(re.findall(r"```python\n(.*?)```", EXAMPLES[example], re.DOTALL))
        (tmp_path / f"{number}.py").write_text(code, encoding="utf-8")
    run = f"{FIRST}; sys.path.insert(0, {str(tree / 'src')!r})\n"
    run += "".join(
        f"exec(open('{n}.py', encoding='utf-8').read(), {{}}); print('----')\n" for n in range(len(EXAMPLES))
    )
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("----\n")
    for number, example in enumerate(EXAMPLES):
        claimed = "".join(re.findall(r"```text\n(.*?)```", EXAMPLES[example], re.DOTALL))
        assert printed[number] == claimed, example
