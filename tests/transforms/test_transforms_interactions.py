"""Interactions and n-grams: against VW's audit, and the same in mappings, tables, and every shape of a stream."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.extras import require_extra

import onepass as op
from onepass import transforms as T
from onepass.errors import FeatureError, InputError, LineError, ParameterError
from onepass.rows.expansion import expand_one, expand_rows, make_expansion, numbers_of

LINES = [
    "1 |a x:2 y:3 z |b p q:5",
    "-1 |b q p |a z x:-1.5",
    "1 |a x:2 |c u v w",
    "-1 |alpha k:0.5 |b p | nameless:4",
    "1 | only these",
]
SPECS = [["ab"], ["ba"], ["aa"], ["::"], ["a:"], ["aab"], ["aaa"], ["ab", "ba"], ["ab", "bc", "abc"], [" a"]]

AUDIT = """
import sys, vowpalwabbit
arguments, lines = sys.argv[1], sys.argv[2:]
model = vowpalwabbit.Workspace(arguments + " --quiet --noconstant --audit")
for line in lines:
    example = model.parse(line)
    model.learn(example)
    model.finish_example(example)
    print("end", flush=True)
"""


def expand_chunk(chunk, interactions, hash_bits=None):
    """A chunk of named rows (`op.stream` without hash_bits) with interactions; hashed, if wanted."""
    expansion = make_expansion(interactions)
    if isinstance(chunk.X, list):
        return dataclasses.replace(chunk, X=[expand_one(expansion, numbers_of(x)) for x in chunk.X])
    return dataclasses.replace(chunk, X=expand_rows(expansion, chunk.X, hash_bits))


def audit(arguments, lines):
    """For each line VW's own features: name → value, with the names of a product in order."""
    require_extra("vowpalwabbit")
    command = [sys.executable, "-c", AUDIT, arguments, *lines]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows, row = [], {}
    for line in text.splitlines():
        if line == "end":
            rows.append(row)
            row = {}
        elif line.startswith("\t"):
            for feature in line.strip().split("\t"):
                name, _, value = re.fullmatch(r"(.*):(\d+):([^:]*):[^:]*", feature).groups()
                row[name] = row.get(name, 0.0) + float(value)
    return rows


def in_order(row):
    return {"*".join(sorted(name.split("*"))): value for name, value in row.items()}


@pytest.mark.parametrize("specs", SPECS[:-1], ids="-".join)  # VW has no way to write a blank on its command line
def test_interactions_are_vws(specs, tmp_path):
    """The same products with the same values as in VW's audit (whose names may have their factors in another order)."""
    path = tmp_path / "a.vw"
    path.write_text("\n".join(LINES) + "\n")
    arguments = " ".join(f"--interactions '{spec}'" if " " not in spec else "" for spec in specs)
    expected = audit(arguments.replace("'", ""), LINES)
    got = [x for x, _ in op.stream(path, interactions=specs)]
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        theirs = {re.sub(r"(^|\*)\^", r"\1", name): value for name, value in theirs.items()}  # the nameless namespace
        assert in_order(ours) == pytest.approx(in_order(theirs), rel=1e-6)


@pytest.mark.parametrize("ngram", [2, 3])
def test_ngrams_are_vws(ngram, tmp_path):
    lines = ["1 |a the cat sat |b on the mat", "1 |a x y |b z |a w"]
    path = tmp_path / "a.vw"
    path.write_text("\n".join(lines) + "\n")
    for (ours, _), theirs in zip(op.stream(path, ngram=ngram), audit(f"--ngram {ngram} -q ab", lines), strict=True):
        single = {name: value for name, value in theirs.items() if "*" not in name}
        assert {re.sub(" ", "^", name): value for name, value in ours.items()} == single


def test_repeated_words_make_their_runs(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |a so it goes so it goes\n")
    (x, _), *_ = op.stream(path, ngram=2)
    assert x == {"a^so": 2, "a^it": 2, "a^goes": 2, "a^so it": 2, "a^it goes": 2, "a^goes so": 1}


# -- an independent definition -----------------------------------------------------------------------------------------


def reference(row, spec):
    """Every set of features that fits the letters, once: by trying all ways."""

    def fits(name, letter):
        space = name.split("^")[0] if "^" in name else ""
        return letter == ":" or (space == "" if letter == " " else space.startswith(letter))

    found = {}
    for chosen in itertools.product(row, repeat=len(spec)):
        if all(fits(name, letter) for name, letter in zip(chosen, spec, strict=True)):
            value = 1.0
            for name in chosen:
                value *= row[name]
            found[tuple(sorted(chosen))] = value
    return {chosen: value for chosen, value in found.items() if value}


names = st.sampled_from(["a^x", "a^y", "aa^x", "b^x", "b^z", "c^q", "plain", "ä^ö"])
values = st.sampled_from([1.0, -2.0, 0.5, 3.0])


@given(
    st.dictionaries(names, values, max_size=7),
    st.lists(st.sampled_from("abcä: "), min_size=2, max_size=4).map("".join),
)
def test_interactions_are_their_definition(row, spec):
    ours = T.Interactions([spec]).transform_one(row)
    products = {tuple(sorted(name.split("*"))): value for name, value in ours.items() if "*" in name}
    assert products == pytest.approx(reference(row, spec))
    assert {name: value for name, value in ours.items() if "*" not in name} == row
    assert len(products) == sum("*" in name for name in ours)  # none twice


@given(st.permutations(["a^x", "a^y", "b^z", "b^x"]))
def test_names_do_not_depend_on_the_order_of_a_row(order):
    row = {name: float(i + 1) for i, name in enumerate(sorted(order))}
    shuffled = {name: row[name] for name in order}
    for spec in ("::", "aab", "ab"):
        assert T.Interactions([spec]).transform_one(row) == T.Interactions([spec]).transform_one(shuffled)


# -- the same everywhere -----------------------------------------------------------------------------------------------


def saved(model, tmp_path):
    model.save(tmp_path / "model.onepass")
    return (tmp_path / "model.onepass").read_bytes()


def vw_lines(n=300, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(n):
        a = " ".join(f"w{k}" for k in generator.zipf(1.5, 6) % 50)
        b = " ".join(
            f"n{k}:{v:.4f}" for k, v in zip(generator.integers(0, 9, 3), generator.normal(size=3), strict=True)
        )
        yield f"{generator.integers(0, 2)} |a {a} |b {b}"


@pytest.mark.parametrize("hash_bits", [None, 12])
@pytest.mark.parametrize("ngram", [1, 2])
def test_every_way_gives_the_same_model(hash_bits, ngram, tmp_path):
    """One by one by name, chunks parsed on several threads in small blocks, a cache, expanded chunks: the same bits."""
    path = tmp_path / "a.vw"
    path.write_text("\n".join(vw_lines()) + "\n")
    options = {"interactions": ["ab", "aa"], "ngram": ngram}
    loop = op.LinearClassifier("pa1", hash_bits=hash_bits)
    for x, y in op.stream(path, **options):
        loop.learn_one(x, y)
    expected = saved(loop, tmp_path)
    cache = tmp_path / "cache"
    for more in ({"block_size": 500, "threads": 3}, {"block_size": 1 << 20}, {"cache": cache}, {"cache": cache}):
        model = op.LinearClassifier("pa1", hash_bits=hash_bits)
        for chunk in op.stream(path, hash_bits=hash_bits, **options, **more).batches(37):
            model.learn_many(chunk.X, chunk.y)
        assert saved(model, tmp_path) == expected, more
    if ngram == 1:
        model = op.LinearClassifier("pa1", hash_bits=hash_bits)
        for chunk in op.stream(path).batches(37):
            chunk = expand_chunk(chunk, options["interactions"], hash_bits)
            model.learn_many(chunk.X, chunk.y)
        assert saved(model, tmp_path) == expected
        chain = T.Interactions(options["interactions"]) | op.LinearClassifier("pa1", hash_bits=hash_bits)
        for x, y in op.stream(path):
            chain.learn_one(x, y)
        assert chain["linearclassifier"].weights_ == loop.weights_


def test_a_cache_is_of_its_interactions(tmp_path):
    path, cache = tmp_path / "a.vw", tmp_path / "cache"
    path.write_text("1 |a x |b y\n")
    for specs, features in ((["ab"], 3), (None, 2), (["::"], 5), (["ab"], 3)):
        [chunk] = op.stream(path, cache=cache, interactions=specs, block_size=100).batches()
        assert len(chunk.X.data) == features


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_columns_of_a_table(format, tmp_path):
    frame = pd.DataFrame(
        {"city": ["oslo", "rome", None], "n": [2.0, 0.0, 3.0], "m": [1.5, 4.0, 2.0], "label": [1, 0, 1]}
    )
    path = tmp_path / f"a.{format}"
    if format == "csv":
        frame.to_csv(path, index=False)
    elif format == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in frame.to_dict("records")).replace("NaN", "null") + "\n")
    else:
        frame.to_parquet(path)
    specs = ["city*n", ("n", "m")]
    expected = [
        {"city=oslo": 1, "n": 2, "m": 1.5, "city=oslo*n": 2, "n*m": 3},
        {"city=rome": 1, "m": 4},
        {"n": 3, "m": 2, "n*m": 6},
    ]
    assert [x for x, _ in op.stream(path, interactions=specs)] == expected
    models = [op.LinearClassifier("pa1", hash_bits=bits) for bits in (None, 10)]
    for model in models:
        for chunk in op.stream(path, interactions=specs, hash_bits=model.hash_bits).batches():
            model.learn_many(chunk.X, chunk.y)
        loop = op.LinearClassifier("pa1", hash_bits=model.hash_bits)
        for x, y in zip(expected, frame["label"].tolist(), strict=True):
            loop.learn_one(x, y)
        assert loop.weights_ == model.weights_
    examples = [({"city": "oslo", "n": 2, "m": 1.5}, 1)]
    assert next(op.stream(examples, interactions=specs).batches()).X == expected[:1]


def test_tables_and_mappings_agree():
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(20, 4)))
    frame = pd.DataFrame(X, columns=["a^x", "b^x", "a^y", "plain"])
    crosses = T.Interactions(["ab", "plain*a"]).fit(frame)
    out = pd.DataFrame(crosses.transform(frame).toarray(), columns=crosses.get_feature_names_out())
    for row, x in zip(out.to_dict("records"), frame.to_dict("records"), strict=True):
        assert {name: value for name, value in row.items() if value} == crosses.transform_one(x)


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_product_that_overflows_is_a_bad_line(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |a x |b y\n1 |a x:1e200 |b y:1e200\n1 |a x |b z\n")
    with pytest.raises(LineError, match="too large") as caught:
        list(op.stream(path, interactions=["ab"]))
    assert caught.value.line == 2
    skipping = op.stream(path, interactions=["ab"], on_error="skip")
    assert len(list(skipping)) == 2 and skipping.skipped == 1
    with pytest.raises(InputError, match="too large"):
        T.Interactions(["ab"]).transform_one({"a^x": 1e200, "b^y": 1e200})


def test_a_row_of_too_many_products():
    row = {f"a^{i}": 1.0 for i in range(300)}
    with pytest.raises(InputError, match="more than 16,777,216"):
        T.Interactions(["aaaa"]).transform_one(row)


def test_a_line_of_too_many_products(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |a x\n1 |a " + " ".join(f"w{i}" for i in range(300)) + "\n")
    with pytest.raises(LineError, match="16,777,216"):
        list(op.stream(path, interactions=["aaaa"]))


def test_what_has_no_names_is_refused(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2 3:4\n")
    with pytest.raises(ParameterError, match="svmlight"):
        op.stream(path, format="svmlight", interactions=["ab"])
    vw = tmp_path / "a.vw"
    vw.write_text("1 |a x |b y\n")
    with pytest.raises(ParameterError, match="from 2 to 8"):
        op.stream(vw, interactions=["a"])
    chunk = next(op.stream(vw, hash_bits=8).batches())
    for call in (lambda: expand_chunk(chunk, ["ab"]), lambda: T.Interactions(["ab"]).transform_many(chunk.X)):
        with pytest.raises(FeatureError, match="names"):
            call()


def test_spellings():
    row = {"user^u": 1.0, "item^i": 2.0, "city=x": 3.0, "n": 4.0, "univ^z": 5.0}
    assert "user^u*item^i" in T.Interactions(["user*item"]).transform_one(row)
    assert "univ^z*item^i" not in T.Interactions(["user*item"]).transform_one(row)
    assert "univ^z*item^i" in T.Interactions(["ui"]).transform_one(row)
    assert T.Interactions(("ui",)).transform_one(row) == T.Interactions("ui").transform_one(row)
    assert "city=x*n" in T.Interactions([("city", "n")]).transform_one(row)
    assert "city=x*n" in T.Interactions(["  "]).transform_one(row)
