"""``onepass learn``: predict, then learn, every example of a stream."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ..models import portfolio
from ..persistence.files import write
from . import kernels
from .model_options import given_options, model_flags
from .paths import Input, Output, flag_of, reads, summary_stream, writes
from .source_options import SourceOptions, add_source_options, on_error_option, quarantine_option, source_options_of
from .vw import VWCommand, rule_of, rule_options_given, vw_options

if TYPE_CHECKING:
    from ..evaluation import Run
    from ..models.linear import LinearModel
    from ..scheme.rounds import Rule
    from .job import Job, Options

__all__ = ["command"]

RULE = portfolio.DEFAULT
# The default rule for --regret, and for everything that RULE does not support: ranking, one-class, kernels, the pocket.
WITH_A_BOUND = "pa1:C=0.1"


@click.command(
    "learn",
    cls=VWCommand,
    short_help="Learn from files or a stream, and report the error.",
    context_settings={"show_default": True},
)
@click.argument("sources", nargs=-1, type=Input(), metavar="SOURCE…")
@click.option(
    "--rule",
    "-r",
    metavar="RULE",
    show_default=f"{RULE}; for numbers {portfolio.DEFAULT_FOR_NUMBERS}",
    help="The rule, as pa1 or pa1:C=0.1; `onepass models` lists them. auto: several rules, weighted by their losses.",
)
@click.option(
    "--task",
    type=click.Choice(
        ["auto", "classification", "binary", "multiclass", "multilabel", "one-class", "ranking", "regression"]
    ),
    default="auto",
    callback=lambda ctx, parameter, value: "oneclass" if value == "one-class" else value,  # as models call it
    help="What the labels mean. auto: the first labels decide. multilabel: a set of labels, as 1,3,5. one-class: no "
    "labels; find rows far from the others. ranking: the relevance of each row of a query (svmlight's qid:).",
)
@add_source_options
@model_flags()
@click.option(
    "--save",
    "-f",
    "--final_regressor",
    type=Output(whole=True, instead_of=("--resume", "--start-from")),
    metavar="MODEL",
    help="Save the model in this file.",
)
@click.option("--resume", type=Input(), metavar="MODEL", help="Continue the run that wrote this file.")
@click.option(
    "--start-from",
    "-i",
    "--initial_regressor",
    type=Input(),
    metavar="MODEL",
    help="Start a new run with the weights of this model.",
)
@click.option(
    "--checkpoint-every",
    type=click.IntRange(min=1),
    metavar="N",
    help="Save the model every N examples, so that --resume can continue after a crash.",
)
@click.option("--passes", type=click.IntRange(min=1), default=1, help="How often to read the stream.")
@click.option(
    "--holdout",
    "--holdout_period",
    type=click.IntRange(min=2),
    metavar="N",
    help="Hold out every N-th labelled example: predict and evaluate it, but never learn it.",
)
@click.option("-t", "--test-only", "--testonly", is_flag=True, help="Evaluate --start-from MODEL; learn nothing.")
@click.option(
    "--metrics",
    "-m",
    metavar="A,B,…",
    show_default="what suits the task",
    help="The metrics to report, as error or f1:average=macro.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="about 50 reports",
    help="The number of examples between two reports.",
)
@click.option("--window", type=click.IntRange(min=1), default=1000, help="The number of examples in the window.")
@click.option("--regret", is_flag=True, help="Store all rows; compare with the best fixed weights in hindsight.")
@click.option("--report", type=Output(), metavar="R.html", help="Write the curves and results as an HTML page.")
@click.option("--json", "json_path", type=Output(), metavar="R.json", help="Write the curves and results as JSON.")
@click.option(
    "--predictions",
    "-p",
    type=Output(),
    metavar="FILE",
    help="Write the prediction of each example, made before it was learned.",
)
@click.option("--audit", "-a", is_flag=True, help="Print the features of each example with their weights.")
@click.option(
    "--invert_hash",
    type=Output(),
    metavar="FILE",
    help="Write the weights as text, by name of feature. With -b, all names are stored for that.",
)
@on_error_option
@quarantine_option
@click.option("--cache", "-c", is_flag=True, help="Store the parsed rows in SOURCE.cache: the next run is faster.")
@click.option("--cache-file", "--cache_file", type=Output(whole=True), metavar="FILE", help="As --cache, in this file.")
@click.option("--follow", is_flag=True, help="At the end of the last file wait for more lines, until Ctrl-C.")
@click.option(
    "--progress",
    type=click.Choice(["auto", "bar", "table", "none"]),
    default="auto",
    help="How to show progress. auto: a bar on a terminal, otherwise a table with lines at 1, 2, 4, 8, … examples.",
)
@click.option("--quiet", is_flag=True, help="Print no progress and no summary.")
@vw_options
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # fmt: skip
    """Learn from SOURCE: predict each example first, then learn it. Report how good the predictions were.

    SOURCE is one or more files, a 'glob*', or - for standard input. Formats: CSV, TSV, JSON Lines, Parquet, Arrow,
    Vowpal Wabbit's text, svmlight; plain or compressed (.gz, .zst). Memory does not grow with the size of SOURCE.

    In a table, --label names the column to predict; all other columns are features. The first labels decide between
    classes and numbers, unless --task does. --save writes the model for `onepass predict`.

    \b
    Examples:
      onepass learn mail.csv --label spam --save mail.model --report mail.html
      onepass learn train.vw -b 22 --rule sgd:loss=logistic --passes 3 --holdout 10
      zcat clicks.vw.gz | onepass learn - --format vw --save clicks.model --checkpoint-every 1000000
      onepass learn --resume clicks.model clicks.vw.gz
      onepass learn log.jsonl --follow --task regression --label seconds --metrics mae,quantile:q=0.9
      onepass learn sensors.csv --no-label --task one-class --radius 2 --predictions strange.txt
      onepass learn board.csv --label colour --kernel rbf:gamma=8 --budget bpann:B=100 --save board.model
      onepass learn -d train.vw -f model.vw --loss_function logistic -b 18 --passes 2

    If no example has a label, the task is unknown and there is no model to --save. This is an error, unless --task
    is given.

    Exit codes: 0 done; 1 bad input; 2 wrong usage; 3 done, but malformed lines were skipped; 130 interrupted: MODEL
    has what was learned, and --resume continues to the same model, bit for bit, as an uninterrupted run.
    """
    began = perf_counter()
    _check(given)
    job = _resumed_run(ctx, given) if given["resume"] else _new_run(ctx, given)
    from ..errors import InputError
    from .job import Stopped
    from .resumption import repeated_options

    job.repeated_options = repeated_options(ctx)
    try:
        try:
            job.go()
        finally:
            if job.predictions is not None:
                job.predictions.close()
    except Stopped as stopped:
        click.echo(f"onepass: interrupted after {job.counts['examples']:,} examples; {_how_to_resume(job)}", err=True)
        ctx.exit(128 + stopped.signal if stopped.signal not in (2, 15) else 130)
    except InputError as error:
        if job.stopped_whole:
            error.add_note(f"What came before is learned: {_how_to_resume(job)}")
        raise
    if given["invert_hash"] and job.model is not None:
        from .outputs import write_weights

        write_weights(given["invert_hash"], job.model, job.spelled)
    _reports(job, given)
    if not given["quiet"]:
        from .summary import summary

        out = sys.stderr if given["audit"] else summary_stream()
        click.echo(summary(job, perf_counter() - began, given), file=out)
    _require_model(job, given)
    if job.counts["skipped"]:
        ctx.exit(3)


def _require_model(job: Job, given: dict[str, Any]) -> None:
    """Raise if a file of the model was requested but there is no model."""
    unwritten = [given[name] for name in ("save", "invert_hash") if given[name]]
    if job.model is not None or not unwritten:
        return
    from ..errors import InputError

    raise InputError(
        f"no labelled example in {', '.join(job.reading.sources)}, so there is no model: {' and '.join(unwritten)} "
        f"{'was' if len(unwritten) == 1 else 'were'} not written. Give examples with labels; or --task, and the model "
        "is one that has learned nothing"
    )


def _check(given: dict[str, Any]) -> None:
    """Check the options before the work begins."""
    read_once = given["follow"] or "-" in given["sources"]
    wrong = (
        (given["quarantine"] and given["on_error"] != "skip",
         "--quarantine needs --on-error skip: give both"),
        (given["checkpoint_every"] and not (given["save"] or given["resume"]),
         "--checkpoint-every needs a file to write: give --save MODEL"),
        (given["resume"] and given["start_from"],
         "--resume goes on with a run, --start-from begins one: give one of them"),
        (given["passes"] > 1 and read_once,
         "--passes reads the stream again, which standard input and --follow do not allow"),
        (given["cache"] and "-" in given["sources"], "--cache needs files, not standard input"),
    )  # fmt: skip
    for applies, message in wrong:
        if applies:
            raise click.UsageError(message)
    kernels.check(given)
    _check_judging(given)


def _check_judging(given: dict[str, Any]) -> None:
    """Check --regret and --test-only."""
    for name in ("resume", "holdout", "test_only", "follow") if given["regret"] else ():
        if given[name]:
            raise click.UsageError(f"--regret needs a whole stream, read and learned once: leave --{name} out")
    if given["test_only"] and not (given["start_from"] or given["resume"]):
        raise click.UsageError("--test-only judges a model: give it with --start-from MODEL")


def _new_run(ctx: click.Context, given: dict[str, Any]) -> Job:
    from .. import rules

    if given["rule"] == "auto":
        return _auto_run(given)
    options = _options(given)
    of_task = options.task in ("ranking", "oneclass")
    other = of_task or kernels.is_requested(given) or given["regret"] or given["readout"] == "pocket"
    rule = rule_of(given, WITH_A_BOUND if other else RULE)
    for_numbers = rule if other or rule_options_given(given) else rules.make(portfolio.DEFAULT_FOR_NUMBERS)
    model = None
    if given["start_from"]:
        from .checkpoint import read

        model, _, _ = read(given["start_from"])
        _fits(ctx, model, given)
    bits = model.hash_bits if model is not None else given["hash_bits"]
    reading = source_options_of(given, bits)
    task = options.task if model is None else model.task
    reading.multilabel = task == "multilabel"
    _fits_task(task, given)

    def make(task: str, bits: int | None = bits) -> Any:
        from .tasks import new_model

        classes = None if given["oaa"] is None else range(1, given["oaa"] + 1)
        if kernels.is_requested(given):
            return kernels.make_model(given, rule, task, classes=classes, bits=bits)
        from ..models.linear import LinearModel

        own = given_options(given, LinearModel) | {"hash_bits": bits}
        made: LinearModel = new_model(for_numbers if task == "regression" else rule, task, classes=classes, **own)
        return made

    if model is None:
        few = None if bits is None else 1  # one bit: the model is only checked, so its table of weights can be small
        _try(rule, options.task, lambda task: make(task, few))
    job = _job_of(given, reading, options, rule=rule, make=make)
    if model is not None:
        job.adopt(model)
    return job


def _auto_run(given: dict[str, Any]) -> Job:
    """--rule auto: an ensemble of many rules, weighted by how well they predict."""
    for name in (*(["start_from"] if given["start_from"] else []), *rule_options_given(given)):
        if name != "rule":
            raise click.UsageError(f"--rule auto chooses for itself: leave --{name.replace('_', '-')} out")
    if given["regret"]:
        raise click.UsageError("--regret is of one learner, --rule auto has many: name a rule, as --rule arow")

    from ..models.ensemble import EnsembleModel

    classes = None if given["oaa"] is None else range(1, given["oaa"] + 1)
    own = given_options(given, EnsembleModel)

    def make(task: str) -> Any:
        return EnsembleModel(task=task, classes=classes, **own)

    from .. import rules

    # The task is decided as for the default rule, which supports classes and numbers.
    return _job_of(
        given, source_options_of(given, given["hash_bits"]), _options(given), rule=rules.make(RULE), make=make
    )


def _options(given: dict[str, Any]) -> Options:
    from .job import Options

    return Options(
        task=_task(given),
        metrics=None if given["metrics"] is None else _metrics(given["metrics"]),
        every=given["every"] or 0,
        window=given["window"],
        passes=given["passes"],
        holdout=given["holdout"] or 0,
        test_only=given["test_only"],
        regret=given["regret"],
    )


def _task(given: dict[str, Any]) -> str:
    """The task of --task, or of VW's flags."""
    if given["task"] != "auto":
        return str(given["task"])
    if given["oaa"] is not None:
        return "classification"
    return "regression" if given["loss_function"] in ("squared", "classic", "quantile", "absolute") else "auto"


def _try(rule: Rule, task: str, make: Any) -> None:
    """Refuse an unsupported combination of rule, readout and task before the stream is read."""
    if task != "auto":
        make("auto" if task == "classification" else task)
    elif "binary" in rule.traits.tasks or "regression" in rule.traits.tasks:
        make("auto" if "binary" in rule.traits.tasks else "regression")
    else:
        raise click.UsageError(f"--rule {rule.name} is for {', '.join(rule.traits.tasks)}, which needs the library")


def _fits_task(task: str, given: dict[str, Any]) -> None:
    """Refuse options that the task does not support."""
    for name, flag in (("holdout", "--holdout"), ("audit", "--audit"), ("oaa", "--oaa")):
        if task == "ranking" and given[name]:
            raise click.UsageError(f"--task ranking does not support {flag}: leave it out")
    if task != "oneclass" and given["radius"] is not None:
        raise click.UsageError("--radius is for --task one-class alone: give both")
    if task == "oneclass" and (given["oaa"] or given["audit"]):
        raise click.UsageError("--task one-class supports neither --oaa nor --audit: leave them out")
    if task == "multilabel" and given["oaa"]:
        raise click.UsageError("--task multilabel does not support --oaa: leave it out")


def _fits(ctx: click.Context, model: LinearModel, given: dict[str, Any]) -> None:
    from .resumption import IN_MODEL, is_given

    if given["hash_bits"] not in (None, model.hash_bits):
        raise click.UsageError(
            f"--hash-bits {given['hash_bits']}: the model has {model.hash_bits or 'a weight per name'}"
        )
    for param in ctx.command.params:
        if param.name in IN_MODEL and is_given(ctx, param.name):
            raise click.UsageError(
                f"{flag_of(param)}: the model brings its own, {kernels.learner_of(model)}; leave it out"
            )
    for name in ("max_classes", "max_features"):
        if given[name] is not None:
            for each in getattr(model, "members", [model]):
                each.limit(name, given[name])


def _resumed_run(ctx: click.Context, given: dict[str, Any]) -> Job:
    from . import checkpoint as saved
    from .job import Options
    from .resumption import refuse_others

    path = given["resume"]
    if given["save"] is None:
        writes(path, "--resume", instead_of=("--resume",))
        given["save"] = path
    model, kept, arrays = saved.read(path, resuming=True)
    if kept is None:
        raise click.UsageError(
            f"--resume: {path} remembers no run (it was saved by the library); use --start-from {path}"
        )
    reading, options = SourceOptions(**kept.reading), Options(**kept.options)
    sources = given["sources"] or given["data"] or ("-",)  # sources are compared by their content, not their names
    refuse_others(ctx, reading, source_options_of({**given, "sources": sources}, given["hash_bits"]))
    refuse_others(ctx, options, _options(given))
    _fits(ctx, model, given)
    reading.sources = [*given["sources"], *given["data"]] or reading.sources
    from ..streams.sources import sources_of

    if not (given["sources"] or given["data"]):
        for source in reading.sources:
            reads(source, "SOURCE")
    resume_point = saved.check_sources(kept, sources_of(reading.sources), reading.sources)
    for name in ("predictions", "quarantine"):
        given[f"{name}_length"] = kept.lengths.get(name)
    job = _job_of(given, reading, options, rule=None, make=None)
    job.resume(model, kept, arrays, resume_point)
    return job


def _job_of(given: dict[str, Any], reading: SourceOptions, options: Any, *, rule: Any, make: Any) -> Job:
    from .job import Job
    from .outputs import Audit, Predictions, cut_back
    from .progress import Display, display

    cache = given["cache_file"]
    if given["cache"] and cache is None:
        cache = f"{reading.sources[0]}.cache"
        writes(cache, "--cache")
    if given["quarantine"] is not None:
        cut_back(given["quarantine"], given.get("quarantine_length"))
    how = {
        "on_error": "skip" if given["on_error"] == "skip" else "raise",
        "quarantine": given["quarantine"],
        "cache": cache,
        "follow": given["follow"],
        "keep_names": given["invert_hash"] is not None and reading.hash_bits is not None,
    }
    shown = Display() if given["quiet"] else display(given["progress"], sys.stderr, None)
    return Job(
        reading,
        options,
        how,
        rule=rule,
        make_model=make,
        display=shown,
        save=given["save"],
        checkpoint_every=given["checkpoint_every"] or 0,
        predictions=None
        if given["predictions"] is None
        else Predictions(given["predictions"], given.get("predictions_length")),
        audit=Audit(sys.stdout) if given["audit"] else None,
    )


def _metrics(text: str) -> list[str]:
    """Split metrics at commas. A parameter belongs to the metric before it: f1:average=macro,error."""
    from .. import metrics

    parts: list[str] = []
    for part in text.split(","):
        if parts and "=" in part and part.partition("=")[0].strip() not in metrics.METRICS and ":" not in part:
            parts[-1] += f",{part}"
        else:
            parts.append(part.strip())
    metrics.make_all(parts)
    return parts


def _how_to_resume(job: Job) -> str:
    if job.save_path is None:
        return "nothing was saved: --save MODEL was not given"
    if job.model is None or job.stream is None:
        return "nothing was learned yet"
    from .resumption import command_of

    return f"saved; go on with: {shlex.join(command_of(job.save_path, job.reading.sources, job.repeated_options))}"


def _reports(job: Job, given: dict[str, Any]) -> None:
    if given["report"] is not None:
        from ..evaluation import report

        title = ", ".join(os.path.basename(name) for name in job.reading.sources[:3])
        runs = {f"pass {number + 1}": run for number, run in enumerate(job.runs)}
        held = {f"{name} held out, all so far": _held_out(run) for name, run in runs.items() if run.holdout}
        runs = {**held, **runs} if len(runs) > 1 else {title: job.run}
        report.write(given["report"], runs, f"{len(job.runs)} passes over {title}")
    if given["json_path"] is not None:
        write(given["json_path"], job.run.to_json())


def _held_out(run: Run) -> Run:
    """The hold-out of a pass as a separate run, for the chart."""
    from ..metrics import VIEWS

    curves = {metric: dict.fromkeys(VIEWS, run.holdout[metric]) for metric in run.metrics}
    last = {metric: run.holdout[metric][-1] for metric in run.metrics}
    return dataclasses.replace(run, values=last, t=run.holdout["t"], curves=curves, holdout={})
