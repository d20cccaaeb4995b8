"""Recorded behaviour: what every learner, the command and the documents' own rules do.

cells      the cells: the axes of scheme_families and other_families, covered pairwise (cover)
learners   a cell's learner
streams    data by whole-number arithmetic, in every form
runs       a cell is run: taught, perhaps refused, then asked
values     values as text, hashes, and the comparison with what was recorded
commands   the command on small files
documents  the rules of README.md and CONTRIBUTING.md
settings   all of it once more under other instruction sets, BLAS kernels and numpy and libm functions, by hand

``python tests/golden/record.py`` writes learners.jsonl and commands.jsonl again and prints what changed.
"""
