"""``onepass models``: every rule, its parameters, formula, cost, guarantee and paper."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..scheme.rounds import Rule

__all__ = ["LEARNERS", "command"]

# Learners of the library beside the rules: what each does. `onepass learn` takes rules; these are for Python.
LEARNERS = {
    "GaussianMixture": "sources of points: stepwise or batch EM",
    "BernoulliMixture": "sources of zeros and ones: stepwise or batch EM",
    "GaussianNB": "naive Bayes, features normal",
    "BernoulliNB": "naive Bayes, features there or not",
    "MultinomialNB": "naive Bayes, features counted",
    "ComplementNB": "naive Bayes, against the counts of other classes",
    "CategoricalNB": "naive Bayes, features of some values",
    "KMeans": "centres of clusters, in mini-batches or one by one",
    "IncrementalPCA": "principal components, exact up to what falls below",
    "CCIPCA": "principal components row by row, no rate",
    "OjaPCA": "principal components by gradient steps",
    "DictionaryLearning": "atoms that rows are sums of few of",
    "LVQClassifier": "prototypes of classes that move",
    "KNNClassifier": "the nearest of the last examples vote",
    "LaSVMClassifier": "a kernel SVM that learns online",
    "SoftmaxSGD": "in onepass.compose.continual: logistic regression step by step, of many classes",
    "Replay": "in onepass.compose.continual: with a memory of the past that is learned again",
    "AGEM": "in onepass.compose.continual: with no step against the memory",
    "EWC": "in onepass.compose.continual: with weights that earlier tasks hold on to",
}


@click.command("models")
@click.argument("name", required=False, metavar="[RULE|NAME]")
def command(name: str | None) -> None:
    """List the rules, their parameters and formulas, and the other learners; or all there is to say of one.

    \b
    A rule is given by its name, or with parameters after a colon:
      pa1    pa1:C=0.1    sgd:loss=logistic,eta=0.5    "sgd:loss=huber(delta=2)"

    \b
    Examples:
      onepass models
      onepass models pa1
    """
    from ..rules import RULES, make

    if name is None:
        for each, kind in RULES.items():
            click.echo(f"{each:<12}{_parameters(kind)}")
            click.echo(f"{'':<12}{(inspect.getdoc(kind) or '').partition(chr(10))[0]}")
        click.echo("\nIn Python, onepass.NAME:")
        for each, what in LEARNERS.items():
            click.echo(f"{each:<20}{what}")
        click.echo("\nMore of one: onepass models RULE or NAME")
        return
    if name in LEARNERS:
        from ..persistence.registry import class_of

        kind = class_of(name)
        click.echo(f"{name}   {kind.__module__}.{name}\n\n{inspect.getdoc(kind)}")
        return
    rule = make(name)
    click.echo(_all_of(rule))


def _parameters(kind: type[Rule]) -> str:
    fields = sorted(dataclasses.fields(kind), key=lambda field: field.kw_only is True)
    return ", ".join(f"{field.name}={field.default}" for field in fields)


def _all_of(rule: Rule) -> str:
    kind = type(rule)
    lines = [f"{rule.name}   {kind.__module__}.{kind.__name__}", ""]
    for paragraph in (inspect.getdoc(kind) or "").split("\n\n"):
        lines += [*textwrap.wrap(paragraph, 78, initial_indent="  ", subsequent_indent="  "), ""]
    lines.pop()
    lines += ["", "parameters"]
    fields = dataclasses.fields(kind)
    if not fields:
        lines.append("  none")
    for field in fields:
        options = ", ".join(map(repr, field.metadata.get("options", ())))
        more = f"   one of {options}" if options else f"   {_range(field)}" if "limits" in field.metadata else ""
        lines.append(f"  {field.name:<16}{getattr(rule, field.name)!r}{more}")
    lines += ["", "update", *("  " + line for line in _formula(kind))]
    table = [("tasks", ", ".join(rule.traits.tasks)), ("readouts", _readouts(kind)), ("a round", kind.cost)]
    table += [("guarantee", kind.guarantee), ("paper", kind.paper)]
    lines.append("")
    for title, text in table:
        wrapped = textwrap.wrap(text, 64) or ["–"]
        lines += [f"{title:<12}{wrapped[0]}", *(" " * 12 + line for line in wrapped[1:])]
    lines.append(f"\nonepass play --rule {rule.name} --step   shows it at work")
    return "\n".join(lines)


def _range(field: dataclasses.Field[object]) -> str:
    signs = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}
    limits = field.metadata["limits"]
    return " and ".join(f"{sign} {limits[name]:g}" for name, sign in signs.items() if limits[name] is not None)


def _formula(kind: type[Rule]) -> list[str]:
    """The rule's own lines of code, which are its formula."""
    lines: list[str] = []
    for name in ("move", "_row", "way") if kind().traits.by_coordinate else ("step", "penalised", "tau"):
        home = next((base for base in kind.__mro__ if name in vars(base) and base.__name__ != "Rule"), None)
        # What raises NotImplementedError is only a place for what follows.
        source = "" if home is None else textwrap.dedent(inspect.getsource(vars(home)[name])).rstrip()
        if source and "NotImplementedError" not in source:
            lines += source.splitlines()
    return lines


def _readouts(kind: type[Rule]) -> str:
    from ..errors import ParameterError
    from ..scheme.readouts import READOUTS, make_readout

    admitted = []
    for name in READOUTS:
        try:
            make_readout(name, kind())
        except ParameterError:
            continue
        admitted.append(name)
    return ", ".join(admitted)
