"""Model files for tests: a small one, and any that a forger could write."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from onepass.persistence import store

ZEROS = "0" * 64


def small() -> bytes:
    return store.to_bytes("linear", {"rule": "pa1", "C": 0.1}, {"w": np.arange(3.0), "b": np.array([True, False])})


def seal(data: bytes) -> bytes:
    """The file with the checksum put right: what a forger would write."""
    start = data.index(b'"sha256":"') + 10
    blank = data[:start] + ZEROS.encode() + data[start + 64 :]
    return blank[:start] + hashlib.sha256(blank).hexdigest().encode() + blank[start + 64 :]


def forge(header: Any, body: bytes = b"", **metadata: Any) -> bytes:
    """A sealed file of ours with any header one likes; metadata set to None is left out."""
    fields = {"format": "onepass", "version": "1", "kind": "k", "config": "{}", "sha256": ZEROS} | metadata
    meta = {key: value for key, value in fields.items() if value is not None}
    text = json.dumps({"__metadata__": meta} | header, separators=(",", ":")).encode()
    return seal(len(text).to_bytes(8, "little") + text + body)


def run_python(code: str, *args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(store.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        env=os.environ | {"PYTHONPATH": source} | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
