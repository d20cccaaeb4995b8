"""``onepass inspect``: what a model file holds, its largest weights, and how it was learned."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from .paths import Input

if TYPE_CHECKING:
    from ..models.linear import LinearModel
    from .checkpoint import Checkpoint

__all__ = ["command"]


@click.command(
    "inspect", short_help="Show a model file: rule, weights, history.", context_settings={"show_default": True}
)
@click.argument("model_path", metavar="MODEL", type=Input())
@click.option("--top", type=click.IntRange(min=0), default=10, help="The number of weights to show, the largest first.")
@click.option("--all", "every", is_flag=True, help="Print every weight that is not 0, as lines name:weight.")
def command(model_path: str, top: int, every: bool) -> None:
    """Show what a MODEL file holds: its rule, classes and features, its largest weights, and how it was learned.

    \b
    Examples:
      onepass inspect mail.model
      onepass inspect mail.model --top 30
      onepass inspect mail.model --all > weights.txt
    """
    from ..persistence import store
    from ..persistence.registry import KINDS, load
    from .checkpoint import read
    from .summary import size_of

    kind = store.read(model_path)[0]
    model_kind = KINDS[kind].model or kind if kind in KINDS else None
    if model_kind not in ("LinearModel", "KernelModel"):
        opened = load(model_path)
        click.echo(f"{model_path}: {opened!r}")
        for name, weight in getattr(opened, "standing_", []):
            click.echo(f"  {weight:7.2%}  {name}")
        return
    model, kept, _ = read(model_path)
    if model_kind == "KernelModel":
        if every:
            raise click.UsageError("--all lists weights, of which a kernel learner has none")
        top = 0
    if every:
        from .outputs import weight_lines

        for line in weight_lines(model):
            click.echo(line)
        return
    lines = [f"{model_path}: {size_of(model_path)}", "", *_what(model, kind)]
    if top:
        lines += ["", *_heaviest(model, top)]
    if kept is not None:
        lines += ["", *_history(model_path, kept)]
    click.echo("\n".join(lines))


def _what(model: LinearModel, kind: str) -> list[str]:
    from ..persistence.registry import KINDS
    from .kernels import learner_of
    from .summary import _classes, learned

    task = "regression" if model.task == "regression" else model.task.replace("auto", "classification")
    rows = [
        ("rule", learner_of(model)),
        ("task", f"{task}{_classes(model) if model.classes else ''}"),
        ("readout", repr(model.readout)),
        ("seen", f"{model.t:,} examples, {model.k:,} updates"),
        learned(model),
        ("names", _naming(model)),
    ]
    if KINDS[kind].model is not None:
        rows.append(("saved by", kind))
    return [f"{name:<10}{value}" for name, value in rows]


def _naming(model: LinearModel) -> str:
    if model.hash_bits is not None:
        return f"hashed into {model.hash_bits} bits"
    return f"{model.n_names:,} names" if model.n_names else "features are numbers"


def _heaviest(model: LinearModel, top: int) -> list[str]:
    import numpy as np

    from ..charts.text import text_table

    places, w, intercept = model.met_weights()
    names = model.names
    classes = [str(label) for label in model.classes]
    titles = (
        [f"for {label}" for label in classes] if len(w) > 1 else [f"for {classes[1]}" if len(classes) > 1 else "weight"]
    )
    titles = titles[:6]
    size = np.max(np.abs(w), axis=0) if w.size else np.empty(0)
    order = np.argsort(-size, kind="stable")[:top]
    order = order[size[order] > 0]
    cells = [["feature", *titles]]
    for at in order.tolist():
        j = int(places[at])
        name = str(names[j]) if j < len(names) else f"{'slot ' if model.hash_bits is not None else ''}{j}"
        cells.append([name[:50], *(f"{weight:+.4g}" for weight in w[: len(titles), at])])
    if model.fit_intercept:
        cells.append(["(constant)", *(f"{weight:+.4g}" for weight in intercept[: len(titles)])])
    return text_table(cells, left=1).splitlines()


def _history(path: str, kept: Checkpoint) -> list[str]:
    from ..evaluation.run import Run

    state = "finished" if kept.finished else "not finished"
    sources = ", ".join(kept.reading["sources"][:3]) + (", …" if len(kept.reading["sources"]) > 3 else "")
    lines = [f"learned from {sources} ({kept.reading['format']}), {kept.counts['examples']:,} examples; {state}"]
    if kept.counts["skipped"]:
        lines.append(f"{kept.counts['skipped']:,} malformed lines were skipped")
    if not kept.finished:
        from .resumption import command_of

        options = [str(word) for word in kept.session.get("repeated_options", [])]
        lines.append(f"go on with: {shlex.join(command_of(path, [], options))}")
    runs = [_run(Run, run) for run in kept.passes]
    if not kept.finished and "recorder" in kept.loop:
        runs.append(_run(Run, kept.loop["recorder"]["run"]))
    for number, run in enumerate(runs):
        if run.t:
            lines += ["", *([f"pass {number + 1}"] if len(runs) > 1 else [])]
            lines += [line.rsplit("  ", 1)[0].rstrip() for line in run.table(8).splitlines()]  # the file keeps no times
    return lines


def _run(kind: Any, content: dict[str, Any]) -> Any:
    import json

    return kind.from_json(json.dumps(content))
