"""No output of a verb overwrites what it reads, or another output; devices and pipes are written to, never replaced.

The grids come from the parameters of the commands themselves: an option with a file that has not been said to be read
or written fails here.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from support.command import onepass, process, write_vw
from support.extras import require_extra

import onepass as op
from onepass.cli import VERBS, main
from onepass.cli.paths import Folder, Input, Output, flag_of
from onepass.errors import ParameterError

OWN = """
from onepass.reproduce.framework import Experiment

class Own(Experiment):
    name, title, protocol = "own", "An own one", "None."

    def cells(self, quick):
        return [{"letter": "a"}]

experiment = Own()
"""
FULL = "No space left on device"


def parameters(verb: str, kind: type[Any] = object) -> list[click.Parameter]:
    command = main.get_command(click.Context(main), verb)  # type: ignore[attr-defined]
    assert command is not None
    return [param for param in command.params if isinstance(param.type, kind)]


READ = {verb: [flag_of(param) for param in parameters(verb, Input)] for verb in VERBS}
WRITTEN = {verb: {flag_of(param): param.type for param in parameters(verb, Output)} for verb in VERBS}
OUTPUTS = [(verb, flag) for verb in VERBS for flag in WRITTEN[verb]]
SUFFIXES = {"--svg": ".svg", "--png": ".png", "--gif": ".gif", "--plot": ".svg", "OUT": ".jsonl"}
# What a verb needs to run at all, and so that all its outputs are written; a line of d.vw is malformed.
SKIP = ["--on-error", "skip"]
RUNS = {
    "learn": ["learn", "d.vw", *SKIP, "--progress", "none"],
    "predict": ["predict", "m", "d.vw", *SKIP],
    "compare": ["compare", "d.vw", "--rules", "pa1,perceptron", *SKIP],
    "convert": ["convert", "d.vw", *SKIP, "--to", "jsonl"],
    "demo": ["demo", "--examples", "200", "--rule", "pa1", "--quiet"],
    "play": ["play", "--rounds", "2"],
}
STREAMED = {"--predictions", "--output", "--quarantine"}  # as the work goes on; all others are whole or not there


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_vw(folder / "d.vw", 60)
    with (folder / "d.vw").open("a") as file:
        file.write("abc | malformed\n")
    assert onepass("learn", "d.vw", *SKIP, "--save", "m", "--quiet", cwd=folder).returncode == 3
    return folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    shutil.copytree(made, folder)
    return folder


def content(folder: Path) -> dict[str, Any]:
    """Every file with its bytes, every link with its target."""
    return {
        path.name: os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else path.stat().st_mode
        for path in folder.iterdir()
    }


def given(verb: str, flag: str, path: str | Path) -> list[str]:
    """An option with its value; an argument stands alone."""
    return [str(path)] if not flag.startswith("-") else [flag, str(path)]


def call(verb: str, *values: tuple[str, str]) -> list[str]:
    """A verb with these options and arguments, and what else it cannot do without."""
    options = [word for flag, path in values if flag.startswith("-") for word in (flag, path)]
    arguments = {flag: path for flag, path in values if not flag.startswith("-")}
    needed = {"predict": ["MODEL", "SOURCE"], "convert": ["IN", "OUT"], "compare": ["SOURCE"], "learn": ["SOURCE"]}
    stand_in = {"MODEL": "m", "SOURCE": "d.vw", "IN": "d.vw", "OUT": "unused.jsonl"}
    words = [arguments.pop(name, stand_in[name]) for name in needed.get(verb, [])]
    return [verb, *words, *arguments.values(), *options]


def test_every_parameter_with_a_file_is_read_or_written() -> None:
    counted = 0
    for verb in VERBS:
        for param in parameters(verb):
            counted += 1
            known = isinstance(param.type, Input | Output | Folder)
            words = f"{param.metavar or ''} {param.name} {' '.join(param.opts)}"
            looks_so = re.search(
                r"FILE|MODEL|SOURCE|FOLDER|\bOUT\b|\bIN\b|\w\.\w+$|path|file|output", param.metavar or ""
            )
            looks_so = looks_so or re.search(r"path|file|output", words.replace("multiple", ""))
            assert known or not (looks_so or isinstance(param.type, click.Path | click.File)), f"{verb} {words}"
    assert counted > 120 and len(OUTPUTS) >= 18


WAYS = ["path", "relative", "symlink", "hard link", "folder"]


def alias(way: str, path: Path, suffix: str | None) -> str:
    """Another name of a file, or the same. `suffix`: how it must end."""
    other = path.parent / f"other{suffix or ''}"
    if way == "symlink":
        other.symlink_to(path.name)
    elif way == "hard link" or suffix not in (None, path.suffix):
        os.link(path, other)
    elif way == "folder":
        (path.parent / "linked").symlink_to(path.parent)
        return str(path.parent / "linked" / path.name)
    else:
        return str(path) if way == "path" else os.path.join(".", "..", path.parent.name, path.name)
    return other.name


PAIRS = [(verb, out, read) for verb, out in OUTPUTS for read in READ[verb]]
MODELS = {"--resume", "--start-from", "MODEL"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("verb", "out", "read"), PAIRS)
def test_no_output_overwrites_an_input(verb: str, out: str, read: str, way: str, home: Path) -> None:
    if read in WRITTEN[verb][out].instead_of:
        return  # a model that is replaced once it is read: below
    source = home / ("m" if read in MODELS else "d.vw")
    other = alias(way, source, WRITTEN[verb][out].suffix)
    before = content(home)
    result = onepass(*call(verb, (read, source.name), (out, other)), cwd=home)
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert f"{out} {other} is the same file as" in result.stderr and f" {read} " in result.stderr
    assert content(home) == before


@pytest.mark.parametrize("verb", [verb for verb in VERBS if len(WRITTEN[verb]) > 1])
def test_no_output_overwrites_another(verb: str, home: Path) -> None:
    tried = 0
    for (one, kind), (two, other_kind) in itertools.combinations(WRITTEN[verb].items(), 2):
        for way in ("path", "relative", "folder", "symlink", "hard link"):
            for path in home.iterdir():
                if path.name not in ("d.vw", "m"):
                    path.unlink()
            first = home / f"new{kind.suffix or ''}"
            if way == "hard link" or other_kind.suffix != kind.suffix:
                first.write_text("there before")
            second = alias(way, first, other_kind.suffix)
            before = content(home)
            result = onepass(*call(verb, (one, first.name), (two, second)), cwd=home)
            assert result.returncode == 2 and "is the same file as" in result.stderr, (one, two, way, result.stderr)
            assert one in result.stderr and two in result.stderr and "which is written too" in result.stderr
            assert content(home) == before
            tried += 1
    assert tried == 5 * len(list(itertools.combinations(WRITTEN[verb], 2)))


@pytest.mark.parametrize("out", ["--report", "--predictions", "--json", "--quarantine", "--invert_hash"])
def test_what_is_read_or_written_unasked_is_not_overwritten(out: str, home: Path) -> None:
    refused: list[tuple[list[str], str, str]] = [
        (["learn", "d.vw", "-c", out, "d.vw.cache"], "--cache d.vw.cache", out),
        (["learn", "--resume", "m", out, "d.vw"], "SOURCE d.vw", out),  # as its checkpoint says
        (["learn", "--resume", "m", "d.vw", out, "m"], "--resume m", out),
        (["learn", "d.*", out, "d.txt"], "SOURCE d.*", out),  # which is not there yet, but at the next look
        (["learn", "d.vw", "m", out, "m"], "SOURCE m", out),
    ]
    (home / "link").symlink_to("d.vw")
    for args, one, two in refused:
        before = content(home)
        result = onepass(*args, *SKIP, cwd=home)
        assert result.returncode == 2 and one in result.stderr and two in result.stderr, (args, result.stderr)
        assert content(home) == before


def test_other_files_that_are_written_unasked(home: Path) -> None:
    (home / "o.svm.names").write_bytes((home / "d.vw").read_bytes())
    (home / "d.vw.cache").write_bytes((home / "d.vw").read_bytes())
    (home / "x").mkdir()
    (home / "e.py").write_text("raise SystemExit(9)  # not run")
    for args, one, two in [
        (["convert", "o.svm.names", "o.svm", "--format", "vw"], "IN o.svm.names", "OUT.names"),
        (["learn", "d.vw", "d.vw.cache", "-c", "--format", "vw"], "SOURCE d.vw.cache", "--cache"),
        (["learn", "-", "--format", "vw", "-p", "/dev/stdin"], "SOURCE -", "--predictions"),
        (["learn", "--resume", "m", "m"], "SOURCE m", "--resume"),  # which would be saved there
    ]:
        before = {name: data for name, data in content(home).items() if name != "x"}
        result = onepass(*args, *SKIP, cwd=home)
        assert result.returncode == 2 and one in result.stderr and two in result.stderr, (args, result.stderr)
        assert {name: data for name, data in content(home).items() if name != "x"} == before


def test_a_page_of_an_experiment_does_not_overwrite_the_experiment(home: Path) -> None:
    (home / "own.py").write_text(OWN)
    (home / "out").mkdir()
    os.link(home / "own.py", home / "out" / "own-quick.md")
    result = onepass("reproduce", "own.py", "--quick", "--done", "--out", "out", cwd=home)
    assert result.returncode == 2 and "--out" in result.stderr and "NAME own.py" in result.stderr, result.stderr
    assert (home / "own.py").read_text() == OWN and os.listdir(home / "out") == ["own-quick.md"]


@pytest.mark.parametrize("way", [*WAYS, "same"])
@pytest.mark.parametrize("read", ["--resume", "--start-from"])
def test_a_model_may_be_replaced_by_the_one_that_goes_on_from_it(read: str, way: str, home: Path) -> None:
    path = home / "m"
    other = "m" if way == "same" else alias(way, path, None)
    expected = onepass("learn", read, "m", "d.vw", *SKIP, "--save", "elsewhere", "--quiet", cwd=home)
    assert expected.returncode == 3, expected.stderr
    result = onepass("learn", read, "m", "d.vw", *SKIP, "--save", other, "--quiet", cwd=home)
    assert result.returncode == 3, result.stderr
    assert (home / other).read_bytes() == (home / "elsewhere").read_bytes()
    assert (home / "other").is_symlink() == (way == "symlink")


# -- links, permissions, devices, pipes ------------------------------------------------------------------------------


def run_with(verb: str, flag: str, path: str, home: Path, **how: Any) -> Any:
    if flag in ("--png", "--gif") or (verb, flag) == ("demo", "--plot"):
        require_extra("matplotlib")
    # Predictions are printed, unless they go elsewhere.
    more = ["--output", os.devnull] if (verb, flag) == ("predict", "--quarantine") else []
    return onepass(*RUNS[verb], *given(verb, flag, path), *more, cwd=home, **how)


def masked(text: bytes) -> bytes:
    """Without what a clock said."""
    text = re.sub(rb"[-\d.e]+", b"0", text)
    return text[:2000] + text[-100:] if text.startswith(b"<!") else text  # speeds are drawn too


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
def test_a_link_stays_a_link_and_permissions_stay(verb: str, flag: str, home: Path) -> None:
    suffix = SUFFIXES.get(flag, "")
    (home / "deep").mkdir()
    target, link = home / "deep" / f"target{suffix}", home / f"link{suffix}"
    old = b"" if flag == "--cache-file" else b"there before"  # a cache replaces no other file
    target.write_bytes(old)
    target.chmod(0o604)
    link.symlink_to(target)
    before = set(os.listdir(home))
    result = run_with(verb, flag, link.name, home)
    assert result.returncode in (0, 3), result.stderr
    assert link.is_symlink() and target.read_bytes() != old
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    assert set(os.listdir(home)) == before and os.listdir(home / "deep") == [target.name]  # and nothing else


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
def test_a_write_that_fails_leaves_the_old_file(
    verb: str, flag: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flag in STREAMED:
        return
    path = home / f"old{SUFFIXES.get(flag, '')}"
    path.write_bytes(b"" if flag == "--cache-file" else b"there before")
    before = content(home)

    def fail(*names: Any) -> None:
        raise OSError(5, "Input/output error", *names)

    monkeypatch.setattr(os, "replace", fail)
    result = run_with(verb, flag, path.name, home)
    assert result.returncode == 1 and path.name in result.stderr, result.stderr
    assert "Input/output error" in result.stderr and ".tmp" not in result.stderr
    assert content(home) == before


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Any]:
    """Devices of our own: those of the machine are not for a test that may break them."""

    def make(minor: int) -> Path:
        path = tmp_path / f"device{minor}"
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            path.open("wb").close()
        except OSError:
            path.unlink(missing_ok=True)
            if os.access("/dev", os.W_OK):
                pytest.skip("no devices can be made here, and those of the machine could be harmed")
            return Path({3: "/dev/null", 7: "/dev/full"}[minor])
        return path

    if sys.platform != "linux":
        pytest.skip("the devices of Linux")
    yield make


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
def test_a_device_is_written_to_and_stays_one(verb: str, flag: str, home: Path, device: Any) -> None:
    for minor in (3, 7):
        path = device(minor)
        result = run_with(verb, flag, str(path), home)
        assert stat.S_ISCHR(path.stat().st_mode)
        if WRITTEN[verb][flag].whole:
            assert result.returncode == 2 and "no regular file" in result.stderr
        elif minor == 3:
            assert result.returncode in (0, 3), result.stderr
        else:
            assert result.returncode == 1 and result.stderr.endswith(f"onepass: {path}: {FULL}\n"), result.stderr
    assert set(os.listdir(home)) == {"d.vw", "m"}


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
def test_a_pipe_and_standard_output_get_what_a_file_would(verb: str, flag: str, home: Path) -> None:
    suffix = SUFFIXES.get(flag, "")
    expected = run_with(verb, flag, f"file{suffix}", home)
    assert expected.returncode in (0, 3), expected.stderr
    whole = masked((home / f"file{suffix}").read_bytes())
    pipe = home / "pipe"
    os.mkfifo(pipe)
    (home / "out").symlink_to("/dev/stdout")
    if WRITTEN[verb][flag].whole:
        for path in ("pipe", "-", "/dev/stdout", "out"):
            result = run_with(verb, flag, path, home)
            assert result.returncode == 2 and "no regular file" in result.stderr
    else:
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
        reader.start()
        result = run_with(verb, flag, "pipe", home)
        reader.join(20)
        assert result.returncode == expected.returncode, result.stderr
        if flag == "--plot" and verb == "demo":
            assert got[0].startswith(b"\x89PNG")  # a pipe has no name that says what to draw
        elif flag in ("--png", "--gif"):
            assert got[0][:4] == (home / f"file{suffix}").read_bytes()[:4]
        else:
            assert masked(got[0]) == whole
            for path in ("-", "/dev/stdout", "out"):
                result = run_with(verb, flag, path, home)
                assert result.returncode == expected.returncode, result.stderr
                assert masked(result.stdout.encode()) == whole, path
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert set(os.listdir(home)) == {"d.vw", "m", "pipe", "out", f"file{suffix}"}


@pytest.mark.parametrize(("verb", "flag"), OUTPUTS)
def test_a_pipe_is_not_both_read_and_written(verb: str, flag: str, home: Path) -> None:
    os.mkfifo(home / "pipe")
    for read in READ[verb]:
        if not WRITTEN[verb][flag].whole and WRITTEN[verb][flag].suffix is None:
            result = onepass(*call(verb, (read, "pipe"), (flag, "pipe")), cwd=home)
            assert result.returncode == 2 and "is the same file as" in result.stderr


def test_standard_output_is_for_one_option(home: Path) -> None:
    for verb in RUNS:
        free = [flag for flag, kind in WRITTEN[verb].items() if not kind.whole]
        for one, two in itertools.combinations(free, 2):
            result = onepass(*call(verb, (one, "-"), (two, "/dev/stdout")), cwd=home)
            assert result.returncode == 2 and one in result.stderr and two in result.stderr, result.stderr


@pytest.mark.parametrize(
    "args", [["learn", "d.vw"], ["learn", "-", "--format", "vw"], ["predict", "m", "d.vw"], ["compare", "d.vw"]]
)
def test_standard_output_is_not_appended_to_an_input(args: list[str], home: Path) -> None:
    before = content(home)
    with (home / "d.vw").open("rb") as stdin, (home / "d.vw").open("ab") as stdout:
        result = process(*args, *SKIP, cwd=home, stdin=stdin, stdout=stdout, stderr=-1, capture_output=False)
    assert result.returncode == 2 and "standard output is the same file as" in result.stderr
    assert content(home) == before


def test_a_full_standard_output_is_an_error(home: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    for args in (["models"], ["predict", "m", "d.vw", *SKIP], ["learn", "d.vw", *SKIP]):
        with open("/dev/full", "wb") as full:
            result = process(*args, cwd=home, stdout=full, stderr=-1, capture_output=False)
        assert result.returncode == 1, result.stderr
        assert result.stderr.splitlines()[-1] == f"onepass: standard output: {FULL}"


# -- the library -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["quarantine", "cache"])
def test_a_stream_does_not_write_to_what_it_reads(name: str, way: str, home: Path) -> None:
    before = (home / "d.vw").read_bytes()
    other = alias(way, home / "d.vw", None)
    how: Any = {name: home / other if os.sep not in other else other, "on_error": "skip"}
    if way == "relative":
        how[name] = os.path.relpath(home / "d.vw")
    with pytest.raises(ParameterError, match=f"{name}= .* is the same file as source"):
        op.stream(home / "d.vw", **how)
    with (home / "d.vw").open("rb") as file, pytest.raises(ParameterError, match="is the same file as source"):
        op.stream(file, format="vw", **how)
    with pytest.raises(ParameterError, match="which is written too"):
        op.stream(home / "d.vw", on_error="skip", quarantine=home / "new", cache=home / "new")
    assert (home / "d.vw").read_bytes() == before and not (home / "new").exists()
