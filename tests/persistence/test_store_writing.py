"""Model files are replaced whole or not at all, whatever fails; where they may be written and read."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.store_files import run_python, small

from onepass.errors import ParameterError
from onepass.persistence import store


def listing(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "m.onepass"
    store.write(path, "old", {}, {"w": np.zeros(4)})
    return path


@pytest.mark.parametrize("name", ["replace", "fsync", "open"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "disk on fire"), KeyboardInterrupt(), OSError("bare")])
def test_failure_leaves_the_old_file(
    name: str, error: BaseException, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = old.read_bytes()

    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(type(error)) as caught:
            store.write(old, "new", {}, {"w": np.ones(4)})
    if isinstance(error, OSError):
        assert "saving the model failed" in str(caught.value) and str(old) in str(caught.value)
    assert old.read_bytes() == before
    assert listing(old.parent) == ["m.onepass"]


def test_failure_on_the_first_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OSError(errno.EIO, "disk on fire")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk on fire"):
        store.write(tmp_path / "m.onepass", "new", {}, {})
    assert listing(tmp_path) == []


def test_bad_input_leaves_the_old_file(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(ParameterError):
        store.write(old, "new", {"C": float("nan")}, {})
    assert old.read_bytes() == before
    assert listing(old.parent) == ["m.onepass"]


def test_order_of_syncing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data is on the disk before it gets the name, and the name before `write` returns."""
    events: list[str] = []
    replace, fsync = os.replace, os.fsync

    def spy_replace(source: str, target: str) -> None:
        events.append("replace")
        assert Path(source).parent == Path(target).parent
        assert store.read(source)[0] == "new"
        assert store.read(target)[0] == "old"
        replace(source, target)

    def spy_fsync(handle: int) -> None:
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    monkeypatch.setattr(os, "replace", spy_replace)
    monkeypatch.setattr(os, "fsync", spy_fsync)
    store.write(old, "new", {}, {"w": np.ones(4)})
    assert events == ["file", "replace", "folder"]


@pytest.mark.parametrize(("number", "refused"), [(errno.EIO, True), (errno.EINVAL, False)])
def test_folder_that_cannot_be_synced(number: int, refused: bool, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def second_fails(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", second_fails)
    if refused:
        with pytest.raises(OSError, match="in place but may not survive"):
            store.write(old, "new", {}, {})
    else:
        store.write(old, "new", {}, {})
    assert store.read(old)[0] == "new"
    assert listing(old.parent) == ["m.onepass"]


def test_no_handles_leak(old: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        store.write(old, "new", {}, {})
        store.read(old)
    assert len(os.listdir("/proc/self/fd")) == before


def test_disk_full_leaves_the_old_file(old: Path) -> None:
    before = old.read_bytes()
    result = run_python(
        """
        import resource, sys
        import numpy as np
        from onepass.persistence import store
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for size in (20_000, 12_500):  # well beyond the limit, and by a header only
            try:
                store.write(sys.argv[1], "new", {}, {"w": np.ones(size)})
            except OSError as error:
                print(error)
        """,
        old,
    )
    lines = result.stdout.splitlines()
    assert len(lines) == 2 and all("free some space" in line and str(old) in line for line in lines)
    assert old.read_bytes() == before
    assert listing(old.parent) == ["m.onepass"]


def test_killed_while_writing_leaves_the_old_file(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(subprocess.CalledProcessError):
        run_python(
            """
            import os, signal, sys
            from onepass.persistence import store
            os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
            store.write(sys.argv[1], "new", {}, {})
            """,
            old,
        )
    assert old.read_bytes() == before
    store.write(old, "new", {}, {})  # what the dead process left behind is in nobody's way
    assert store.read(old)[0] == "new"


def test_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(PermissionError, match="directory must be readable and writable"):
            store.write(folder / "m.onepass", "k", {}, {})
    finally:
        folder.chmod(0o700)


def test_read_only_folder_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same for those who may write anywhere, such as root in a container.
    def refuse(*args: Any, **kwargs: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", ".onepass-1234.tmp")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match="must be readable and writable") as caught:
        store.write(tmp_path / "m.onepass", "k", {}, {})
    assert caught.value.filename == str(tmp_path / "m.onepass")
    assert ".tmp" not in str(caught.value)


def test_bad_targets(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create its directory first"):
        store.write(tmp_path / "none" / "m.onepass", "k", {}, {})
    with pytest.raises(IsADirectoryError, match="directory"):
        store.write(tmp_path, "k", {}, {})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="regular file"):
        store.write(pipe, "k", {}, {})
    assert pipe.is_fifo()
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="regular file"):
            store.write("/dev/full", "k", {}, {})
    assert listing(tmp_path) == ["pipe"]


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "m.onepass"
    mask = os.umask(0o027)
    try:
        store.write(path, "k", {}, {})
        assert path.stat().st_mode & 0o777 == 0o640  # as the umask says, not mkstemp's 0600
        path.chmod(0o604)
        store.write(path, "k", {}, {})
        assert path.stat().st_mode & 0o777 == 0o604  # as its owner said
    finally:
        os.umask(mask)


def test_file_system_without_permission_bits(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    store.write(old, "new", {}, {})
    assert store.read(old)[0] == "new"


def test_links_and_relative_and_long_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "m.onepass")
    store.write(link, "k", {}, {})
    assert link.is_symlink() and store.read(tmp_path / "real" / "m.onepass")[0] == "k"
    monkeypatch.chdir(tmp_path)
    store.write("here.onepass", "k", {}, {})
    assert store.read("here.onepass")[0] == "k"
    long = "x" * 255
    store.write(long, "k", {}, {})
    assert store.read(long)[0] == "k"


def test_reads_from_a_pipe() -> None:
    reader, writer = os.pipe()
    os.write(writer, small())
    os.close(writer)
    try:
        assert store.read(f"/dev/fd/{reader}")[0] == "linear"
    finally:
        os.close(reader)


# Weight of the module


def test_import_is_light() -> None:
    loaded = run_python("import sys; import onepass.persistence.store; print(*sys.modules)").stdout.split()
    assert not {"torch", "scipy", "sklearn", "pandas", "pickle5"} & set(loaded)
