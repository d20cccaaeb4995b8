"""Help texts with headings: the options of a verb in sections, as a reader looks for them."""

from __future__ import annotations

import click

from .model_options import NAMES

__all__ = ["SECTIONS", "SectionedCommand"]

# Heading → the parameters below it. A verb shows the headings of which it has options.
SECTIONS: dict[str, tuple[str, ...]] = {
    "What to learn": ("rule", "rules", "task", "tune", "passes", "to"),
    "Input": (
        *("format", "label", "no_label", "weight", "id", "time", "features", "drop", "text", "ngram", "interactions"),
        *("index_base", "header", "on_error", "quarantine", "cache", "cache_file", "follow"),
    ),
    "Model files": ("save", "save_best", "resume", "start_from", "checkpoint_every"),
    "Evaluation": ("metrics", "every", "window", "holdout", "test_only", "regret"),
    "Output": (
        *("output", "proba", "scores", "predictions", "report", "json_path", "plot", "audit", "invert_hash"),
        *("progress", "quiet"),
    ),
    "Options of models": tuple(sorted(NAMES)),
    "Vowpal Wabbit's flags": (
        *("data", "loss_function", "learning_rate", "power_t", "adaptive", "normalized", "invariant", "sgd"),
        *("ftrl", "ftrl_alpha", "ftrl_beta", "quantile_tau", "l1", "l2", "oaa"),
    ),
}


class SectionedCommand(click.Command):
    """A verb whose help lists its options by section; those without a section come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in options}
        for heading, names in SECTIONS.items():
            section = [record for name in records if name in names and (record := records[name]) is not None]
            if section:
                with formatter.section(heading):
                    formatter.write_dl(section)
        listed = {name for names in SECTIONS.values() for name in names}
        others = [record for name, record in records.items() if name not in listed and record is not None]
        if others:
            with formatter.section("Other options"):
                formatter.write_dl(others)
