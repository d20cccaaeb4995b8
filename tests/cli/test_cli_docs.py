"""docs/command.md and the newcomer's path in the README are true: they run as printed and name what there is."""

from __future__ import annotations

import itertools
import operator
import re
import shlex
from pathlib import Path

import click
import pytest
from support.command import onepass, write_csv, write_vw

import onepass as op
from onepass.cli import VERBS, main
from onepass.cli.vw_hints import ELSEWHERE

ROOT = Path(__file__).parent.parent.parent
COMMAND, README = ROOT / "docs/command.md", ROOT / "README.md"


def shell_lines(path: Path) -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL)
    return [
        shlex.split(line, comments=True)[1:]
        for block in blocks
        for line in block.splitlines()
        if line.startswith("onepass ")
    ]


@pytest.mark.parametrize("document", [COMMAND, README], ids=lambda path: path.name)
def test_commands_run_as_printed(document: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "mail.csv", 400)
    write_vw(tmp_path / "clicks.vw", 3000)
    lines = shell_lines(document)
    assert len(lines) >= 3
    for args in lines:
        result = onepass(*args, cwd=tmp_path)
        assert result.returncode == 0, (args, result.stderr)
        for name, value in itertools.pairwise(args):
            if name in ("--save", "--report", "--plot", "-o"):
                assert (tmp_path / value).stat().st_size > 100


def test_the_newcomers_path_is_three_lines_from_a_table_to_a_model_and_a_report() -> None:
    block = next(b for b in re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL) if "onepass learn" in b)
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) == 3
    assert ".csv" in lines[0] and "--save" in lines[0] and "--report" in lines[0]
    assert lines[1].startswith("onepass predict")


def options_of(verb: str) -> set[str]:
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


def test_every_verb_and_flag_of_vw_is_listed() -> None:
    text = COMMAND.read_text()
    for verb in VERBS:
        assert f"`{verb}`" in text
    by_verb = {verb: options_of(verb) for verb in VERBS}
    ours = by_verb["learn"]
    for flag in re.findall(r"`(--?[a-z][a-z0-9_\-]*)", text):
        assert flag == "--help" or any(flag in options for options in by_verb.values()), flag
    for flag in ("-d", "-f", "-i", "-t", "-p", "-q", "-b", "-l", "--passes", "--loss_function", "--oaa", "--l1", "--l2",
                 "--audit", "--invert_hash"):  # fmt: skip
        assert flag in ours and f"`{flag}" in text
    assert not ours & set(ELSEWHERE)  # a flag that works is not said to be elsewhere


def test_what_vw_calls_otherwise_is_said() -> None:
    for flag in (
        "--multilabel_oaa",
        "--rank",
        "--cb_explore_adf",
        "--quadratic",
        "--ksvm",
        "--holdout_off",
        "--search",
    ):
        assert flag in ELSEWHERE
    options = set().union(*(options_of(verb) for verb in VERBS))
    for flag, instead in ELSEWHERE.items():  # what is named there is there
        for named in re.findall(r"(?<![\w-])--?[a-z][a-z\-]*", instead):
            assert named in options, f"{flag}: {instead}"
        for name in re.findall(r"onepass\.(\w+(?:\.\w+)?)", instead):
            assert operator.attrgetter(name)(op) is not None
    refused = onepass("learn", "x.vw", "--multilabel_oaa", "3")
    assert refused.returncode == 2 and "Vowpal Wabbit's; here it is --task multilabel" in refused.stderr
