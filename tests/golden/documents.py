"""The rules that README.md and CONTRIBUTING.md show, run as they stand there."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

import onepass as op
from golden.streams import stream

ROOT = Path(__file__).parent.parent.parent
# Rule → its document and the tasks that it says it is for.
RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Cautious": ("README.md", ("binary", "multiclass", "regression", "ranking")),
    "SignError": ("CONTRIBUTING.md", ("binary", "regression")),
    "FastSignError": ("CONTRIBUTING.md", ("binary", "regression")),
}


@functools.cache
def shown(document: str) -> dict[str, Any]:
    """The names that the document's code with rules defines; under "printed", what it prints."""
    wanted = [rule for rule, (where, _) in RULES.items() if where == document]
    text = (ROOT / document).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    s = stream("binary")
    names: dict[str, Any] = {"__name__": __name__, "op": op, "X": s.X, "y": np.array(s.y)}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            if any(f"class {rule}(" in block for rule in wanted):
                exec(compile(block, document, "exec"), names)
    missing = [rule for rule in wanted if rule not in names]
    if missing:
        raise LookupError(f"{document} shows no rule {', '.join(missing)} any more")
    return {**names, "printed": printed.getvalue()}


def rule(name: str) -> Any:
    """A rule by its text; those of the documents by their class's name."""
    return shown(RULES[name][0])[name]() if name in RULES else name
