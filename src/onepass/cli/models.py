"""``onepass models``: every rule, its parameters, formula, cost, guarantee and paper."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..scheme.rounds import Rule

__all__ = ["NOTES", "command"]

NNZ = "O(features of the example)"
SQUARE = "O(features²)"
# Rule → cost of a round, what is proved of it, and where.
NOTES = {
    "perceptron": (NNZ, "updates ≤ (R² + 2β/ρ)/γ² where a margin γ separates", "Rosenblatt 1958; Novikoff 1962"),
    "pocket": (f"{NNZ}; O(weights) when a run breaks the record", "the best run's weights; converges on finite sets in "
               "probability", "Gallant 1990"),
    "adaline": (NNZ, "Σ e² ≤ ‖u‖²/ρ + Σ (y − u·x)²/(1 − ρR²) for ρR² < 1", "Widrow and Hoff 1960"),
    "nlms": (NNZ, "Σ e²/‖x‖² ≤ ‖u‖²/μ + Σ (y − u·x)²/‖x‖²/(1 − μ) for 0 < μ < 1", "Nagumo and Noda 1967"),
    "pa": (NNZ, "Σ ℓ² ≤ R²‖u‖² where some u has no loss", "Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006"),
    "pa1": (NNZ, "mistakes ≤ max(R², 1/C)(‖u‖² + 2C Σ ℓ*) for any u",
            "Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006"),
    "pa2": (NNZ, "Σ ℓ² ≤ (R² + 1/(2C))(‖u‖² + 2C Σ ℓ*²) for any u",
            "Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006"),
    "mira": (f"{NNZ} × classes; exact multiclass O(K log K) more", "a mistake bound as the Perceptron's",
             "Crammer and Singer 2003"),
    "romma": (NNZ, "mistakes ≤ R²‖u‖² where u separates with margin 1", "Li and Long 2002"),
    "aromma": (NNZ, "as romma, counting its mistakes alone", "Li and Long 2002"),
    "alma": (NNZ, "corrections ≤ (2/γ*²)(2/α − 1)² + 8/α − 4", "Gentile 2001"),
    "shifting": (NNZ, "mistakes bounded by a comparator that moves, and by how far it does",
                 "Cavallanti, Cesa-Bianchi and Gentile 2007"),
    "sgd": (NNZ, "regret O(√T) for convex losses with η ∝ 1/√t; O(log T) where strongly convex",
            "Robbins and Monro 1951; Zinkevich 2003"),
    "fobos": (NNZ, "Σ[ℓ(w_t) + Ω(w_{t+1})] exceeds any u's by at most ‖u‖²/(2η) + (η/2) Σ‖g‖²",
              "Duchi and Singer 2009"),
    "truncated": (NNZ, "regret O(√T), the gravity's penalty included", "Langford, Li and Zhang 2009"),
    "pegasos": (NNZ, "(λ/2)‖w‖² + mean hinge within Õ(1/(λT)) of the best", "Shalev-Shwartz, Singer, Srebro and "
                "Cotter 2011"),
    "adagrad": (NNZ, "regret ≤ (D²/(2η) + η) Σ_j √(Σ_t g_j²), D the width of a box", "Duchi, Hazan and Singer 2011"),
    "adadelta": (NNZ, "none", "Zeiler 2012"),
    "rmsprop": (NNZ, "none", "Tieleman and Hinton 2012"),
    "adam": ("O(all features); absent=lazy: O(features of the example)", "none: there are convex streams on which it "
             "does not converge", "Kingma and Ba 2015; Reddi, Kale and Kumar 2018"),
    "ftrl": (NNZ, "regret as adagrad's, the penalties included", "McMahan, Holt, Sculley et al. 2013"),
    "vw": (NNZ, "an importance in parts is the same as at once; the scale of a feature does not matter",
           "Karampatziakis and Langford 2011; Ross, Mineiro and Langford 2013"),
    "norma": (NNZ, "regularised risk within O(1/√T) of the best on average; about ν of the rounds below the margin",
              "Kivinen, Smola and Williamson 2004"),
    "parzen": (NNZ, "none: nothing is fitted; with a kernel whose width shrinks slowly, Bayes-consistent",
               "Parzen 1962; Devroye and Krzyzak 1989"),
    "rls": (SQUARE, "clipped to the labels' range, Σ e² ≤ the best ridge solution's + 4Y² ln det(I + XᵀX/λ)",
            "Plackett 1950; Vovk 2001; Azoury and Warmuth 2001"),
    "kalman": (SQUARE, "the least mean squared error of all linear filters, for noise as declared", "Kalman 1960"),
    "arow": (f"{NNZ}; covariance=full: {SQUARE}", "mistakes ≤ √(r‖u‖² + uᵀXu) √(ln det(I + X/r) + |U|) + Σ ℓ* − |U|, "
             "full", "Crammer, Kulesza and Dredze 2009"),
    "cw": (f"{NNZ}; covariance=full: {SQUARE}", "right with probability η on each example it has just seen; noise "
           "breaks it", "Dredze, Crammer and Pereira 2008; Crammer, Dredze and Pereira 2008"),
    "scw1": (f"{NNZ}; covariance=full: {SQUARE}", "as cw where C is large; a bounded step where an example is noise",
             "Wang, Zhao and Hoi 2012"),
    "scw2": (f"{NNZ}; covariance=full: {SQUARE}", "as scw1, with squared losses", "Wang, Zhao and Hoi 2012"),
    "nherd": (f"{NNZ}; covariance=full: {SQUARE}", "a mistake bound as AROW's", "Crammer and Lee 2010"),
    "ons": (f"{SQUARE}; covariance=diagonal: {NNZ}", "regret ≤ (1/(2γ))(ln(det A/ε^d) + 1) for exp-concave losses on a "
            "set", "Hazan, Agarwal and Kale 2007"),
    "pamir": (NNZ, "as pa1, of pairs", "Grangier and Bengio 2008"),
    "mroc": (NNZ, "none: the smoothed AUC is not convex", "sigmoid AUC: Herschtal and Raskutti 2004"),
}  # fmt: skip

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
    cost, guarantee, paper = NOTES.get(rule.name, ("", "", ""))
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
    table = [("tasks", ", ".join(rule.traits.tasks)), ("readouts", _readouts(kind)), ("a round", cost)]
    table += [("guarantee", guarantee), ("paper", paper)]
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
