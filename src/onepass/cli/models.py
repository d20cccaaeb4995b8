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

# The learners of the library that are not rules, each in a few words. `onepass learn` cannot use them; Python can.
LEARNERS = {
    "GaussianMixture": "mixture of normal distributions, by stepwise or batch EM",
    "BernoulliMixture": "mixture of patterns of zeros and ones, by stepwise or batch EM",
    "GaussianNB": "naive Bayes for numbers, normal in each class",
    "BernoulliNB": "naive Bayes for features that are present or absent",
    "MultinomialNB": "naive Bayes for counts",
    "ComplementNB": "naive Bayes for counts; scores a class by the counts of the others",
    "CategoricalNB": "naive Bayes for categories",
    "KMeans": "cluster centres, by mini-batches or row by row",
    "IncrementalPCA": "principal components, by singular value decompositions of mini-batches",
    "CCIPCA": "principal components row by row, without a learning rate",
    "OjaPCA": "principal components by gradient steps",
    "DictionaryLearning": "a dictionary of atoms; each row is a sum of few of them",
    "LVQClassifier": "prototypes of each class, moved by the examples",
    "KNNClassifier": "votes of the nearest stored examples",
    "LaSVMClassifier": "a kernel SVM that learns online",
    "SoftmaxSGD": "in onepass.compose.continual: multiclass logistic regression by SGD",
    "Replay": "in onepass.compose.continual: SGD that also learns stored examples of earlier tasks again",
    "AGEM": "in onepass.compose.continual: SGD whose steps do not increase the loss on stored examples",
    "EWC": "in onepass.compose.continual: SGD that keeps weights which were important for earlier tasks",
}


@click.command("models", short_help="List the rules and the other learners, or explain one of them.")
@click.argument("name", required=False, metavar="[RULE|NAME]")
def command(name: str | None) -> None:
    """List the rules, with their parameters and formulas, and the other learners. With a NAME: explain this one.

    A rule says how an example changes the weights: `onepass learn --rule RULE` learns with it. The other learners are
    classes for Python.

    In the formulas x is the example, y its label or number, w the weights, s = ⟨w, x⟩ the score, φ the direction that
    the task makes of x (y·x for two classes), m = ⟨w, φ⟩ the margin, ℓ the loss, c the importance of the example, and
    t the number of the round.

    \b
    A rule is written as its name, or as its name and parameters after a colon:
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
        click.echo("\nOther learners, for Python, as onepass.NAME:")
        for each, what in LEARNERS.items():
            click.echo(f"{each:<20}{what}")
        click.echo("\nDetails of one: onepass models RULE or NAME. The letters of the formulas: onepass models --help")
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
    lines.append(f"\nSee it learn, round by round: onepass play --rule {rule.name} --step")
    return "\n".join(lines)


def _range(field: dataclasses.Field[object]) -> str:
    signs = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}
    limits = field.metadata["limits"]
    return " and ".join(f"{sign} {limits[name]:g}" for name, sign in signs.items() if limits[name] is not None)


def _formula(kind: type[Rule]) -> list[str]:
    """The lines of code that compute the rule's step: its formula."""
    lines: list[str] = []
    for name in ("move", "_row", "way") if kind().traits.by_coordinate else ("step", "penalised", "tau"):
        home = next((base for base in kind.__mro__ if name in vars(base) and base.__name__ != "Rule"), None)
        # A method that raises NotImplementedError is abstract: it has no formula.
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
