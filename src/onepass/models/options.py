"""The options of models: dataclasses that models and estimators inherit.

An option is one field here. The models and estimators that inherit its group take it, `get_params` lists it, files
store it (`option_values`), and the command has a flag for it, whose help is that of the field (`cli.model_options`).
This module imports nothing that is slow to load, because the command imports it before it reads its arguments.
"""

# ruff: noqa: RUF009  `option` makes the field
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..kernels import Kernel
    from ..kernels.budgets import Budget
    from ..scheme.readouts import Readout
    from ..scheme.rounds import Rule

__all__ = [
    "ClassOptions",
    "EnsembleOptions",
    "FeatureLimitOptions",
    "Flag",
    "HashOptions",
    "InterceptOptions",
    "KernelOptions",
    "LimitOptions",
    "LinearOptions",
    "OneClassOptions",
    "RankingOptions",
    "ReadoutOptions",
    "RuleOptions",
    "ThresholdOptions",
    "flag_of",
    "option",
    "shared_options",
]


@dataclasses.dataclass(frozen=True)
class Flag:
    """How the command spells an option. The defaults follow from the name and the default of the field.

    `help`: what it does, in one line. `names`: its spellings. `kind`: int, float or str, with the limits `least` and
    `most`. `default`: the default in words, if its value does not say enough.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    kind: type | None = None
    least: int | None = None
    most: int | None = None
    default: str | None = None


def option(
    default: Any, flag: Flag | str | None, *, check: str | None = None, late: bool = False, apart: bool = False
) -> Any:
    """Define a field that is an option.

    `flag`: how the command spells it, or only its help; None if the command has no flag for it, or defines the flag
    itself. `check`: the name of a check in `option_values.CHECKS`. `late`: older files do not have the option, which
    then has its default. `apart`: the model writes the option to files itself.
    """
    flag = Flag(flag) if isinstance(flag, str) else flag
    metadata = {"command": flag, "check": check, "late": late, "apart": apart}
    return dataclasses.field(default=default, metadata=metadata)


def with_default(group: type[Any], name: str, default: Any) -> Any:
    """Inherit the option of another group, with another default."""
    field = group.__dataclass_fields__[name]
    return dataclasses.field(default=default, metadata=field.metadata)


def flag_of(field: dataclasses.Field[Any]) -> Flag | None:
    """How the command spells an option; None if it has no flag for it, or defines the flag itself."""
    return field.metadata.get("command")


def shared_options(learner: Any, kind: type[Any]) -> dict[str, Any]:
    """The options of a learner that learners of another kind have, too."""
    own = {field.name for field in dataclasses.fields(learner)}
    return {field.name: getattr(learner, field.name) for field in dataclasses.fields(kind) if field.name in own}


# -- the options -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class HashOptions:
    hash_bits: int | None = option(
        None,
        Flag(
            "Hash the names of features into 2^BITS weights: a fixed size of the model.",
            ("-b", "--hash-bits", "--bit_precision"),
            "BITS",
            int,
            1,
            30,
            "a weight for every name",
        ),
    )


@dataclasses.dataclass(repr=False, eq=False)
class RuleOptions(HashOptions):
    """The options of every learner with a rule."""

    rule: str | Rule = option("pa1", None)  # the command: --rule, whose default depends on the task


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class InterceptOptions(RuleOptions):
    fit_intercept: bool | str = option(
        "auto",
        Flag(
            "Learn an intercept, the weight of a constant feature.",
            ("--intercept/--no-intercept", " /--noconstant"),
            kind=bool,
            default="yes; with a kernel no",
        ),
    )
    intercept_scaling: float = option(
        1.0, Flag("The value of the constant feature of the intercept.", metavar="VALUE"), check="positive"
    )


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class ReadoutOptions:
    readout: str | Readout = option("last", Flag("The weights that predict: last, average, pocket.", metavar="READOUT"))


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LinearOptions(ReadoutOptions, InterceptOptions):
    bias_in_norm: bool = option(True, "Count the constant feature in the norm of an example.", check="flag")


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class KernelOptions(InterceptOptions):
    kernel: str | Kernel | Callable[..., Any] = option(
        "rbf",
        Flag(
            "Learn with a kernel instead of the inner product, as rbf:gamma=0.5.",
            metavar="KERNEL",
            default="none: linear",
        ),
        apart=True,
    )
    budget: str | Budget | None = option(
        None,
        Flag(
            "With a kernel: a limit for the number of support vectors, and how it is kept, as bpann:B=100.",
            metavar="BUDGET",
            default="none",
        ),
    )
    fit_intercept: bool = with_default(InterceptOptions, "fit_intercept", False)


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class ClassOptions:
    """The options of classifiers with one class for each example."""

    multiclass: str = option(
        "rival",
        Flag(
            "With more than two classes: which wrong classes an update moves. rival (the one with the highest score), "
            "uniform, proportional, mira or all.",
            metavar="HOW",
        ),
    )
    costs: Any = option(None, None)  # a table, which no flag can hold


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class ThresholdOptions:
    """The options of multilabel learners."""

    threshold: str = option(
        "uncalibrated",
        Flag(
            "With --task multilabel: calibrated (labels with a score above 0 are in the set) or uncalibrated.",
            metavar="HOW",
            default="calibrated, if the rule supports it",
        ),
        late=True,
    )


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class OneClassOptions:
    radius: float = option(
        1.0,
        Flag("With --task one-class: rows further than R from the centre are anomalies.", metavar="R", default="1"),
        check="positive",
    )


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class RankingOptions:
    """The options of learners that rank the rows of queries."""

    max_query: int = option(1000, None, check="count")  # the command's queries have this limit, too


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class FeatureLimitOptions:
    """The limit of models whose number of features grows with the stream."""

    max_features: int | None = option(
        None,
        Flag(
            "The most features of a model without -b; more are an error.",
            metavar="N",
            kind=int,
            least=1,
            default="2^26, or ONEPASS_MAX_FEATURES",
        ),
        late=True,
    )


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LimitOptions(FeatureLimitOptions):
    """The limits of models whose number of classes grows, too."""

    max_classes: int | None = option(
        None,
        Flag(
            "The most classes; more are an error.",
            metavar="N",
            kind=int,
            least=1,
            default="a million; 100 for labels that are fractions",
        ),
        late=True,
    )


@dataclasses.dataclass(repr=False, eq=False)
class EnsembleOptions(LimitOptions, HashOptions):
    """The options of ensembles: several models, weighted by their losses."""

    members: Sequence[Any] | None = option(None, None, apart=True)  # the command: --rule auto, with the usual ones
    task: str = option("auto", None)  # the command: --task, which has other words
    _: dataclasses.KW_ONLY
    fit_intercept: bool = with_default(InterceptOptions, "fit_intercept", True)
    eta: float | None = option(
        None, Flag("With --rule auto: how fast the weights of the rules follow their losses.", ("--ensemble-eta",),
                   "ETA", float, default="0.1; 0.5 for numbers"), check="positive or None",
    )  # fmt: skip
    alpha: float = option(
        0.001,
        Flag("With --rule auto: the share of the weights that is distributed equally in each round.",
             ("--ensemble-alpha",), "SHARE"),
        check="share",
    )  # fmt: skip
