from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

class Engine:
    on_new_label: Callable[[Any], int]
    names: list[Any]
    classes: list[Any]
    positional: bool
    columns: int
    features: int
    rows: int
    ww: float
    t: int
    k: int
    skipped_zero: int
    def __init__(self, task: str, rule: dict[str, Any], options: dict[str, Any]) -> None: ...
    def learn(
        self,
        X: NDArray[Any],
        y: NDArray[Any] | None,
        importance: NDArray[Any] | None,
        target: NDArray[Any] | None,
        sets: NDArray[Any] | None,
        scores: NDArray[Any] | None,
    ) -> None: ...
    def learn_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        starts: NDArray[Any],
        columns: int,
        y: NDArray[Any] | None,
        importance: NDArray[Any] | None,
        target: NDArray[Any] | None,
        sets: NDArray[Any] | None,
        scores: NDArray[Any] | None,
        distinct: bool = False,
        named: bool = False,
    ) -> None: ...
    def learn_pairs(
        self,
        X: NDArray[Any],
        relevance: NDArray[Any],
        importance: NDArray[Any],
        begin: NDArray[Any],
        first: int,
        scores: NDArray[Any] | None,
        learned: NDArray[Any],
    ) -> None: ...
    def learn_pairs_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        starts: NDArray[Any],
        columns: int,
        relevance: NDArray[Any],
        importance: NDArray[Any],
        begin: NDArray[Any],
        first: int,
        scores: NDArray[Any] | None,
        learned: NDArray[Any],
    ) -> None: ...
    def score(self, X: NDArray[Any], scores: NDArray[Any]) -> None: ...
    def score_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        starts: NDArray[Any],
        columns: int,
        scores: NDArray[Any],
        distinct: bool = False,
    ) -> None: ...
    def learn_one(self, x: Any, y: Any, importance: Any = 1.0) -> None: ...
    def learn_direction(self, x: Any, target: float = 1.0, importance: float = 1.0) -> None: ...
    def score_one(self, x: Any) -> Any: ...
    def predict_one(self, x: Any) -> Any: ...
    def check(self, X: NDArray[Any]) -> None: ...
    def check_csr(
        self, data: NDArray[Any], indices: NDArray[Any], starts: NDArray[Any], columns: int, distinct: bool = False
    ) -> None: ...
    def admit_names(self, names: list[Any]) -> None: ...
    def forget_names(self, count: int) -> None: ...
    def check_one(self, x: Any) -> None: ...
    def keep_set(self, X: NDArray[Any], y: NDArray[Any], importance: NDArray[Any] | None) -> None: ...
    def keep_set_csr(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        starts: NDArray[Any],
        columns: int,
        y: NDArray[Any],
        importance: NDArray[Any] | None,
    ) -> None: ...
    def forget_set(self) -> None: ...
    def flush(self) -> None: ...
    def row_of(self, x: Any) -> list[tuple[int, float]]: ...
    def set_features(self, d: int) -> None: ...
    def set_names(self, names: list[Any]) -> None: ...
    def set_classes(self, classes: list[Any]) -> None: ...
    def flip_classes(self) -> None: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def set_state(self, state: dict[str, NDArray[Any]]) -> None: ...
    def find(self, name: Any) -> int: ...

def isa() -> str: ...
def isas() -> list[str]: ...
def use_isa(name: str) -> None: ...
def murmur3(text: str, seed: int = 0) -> int: ...

PADDING: int

class Names:
    def __len__(self) -> int: ...
    def names(self, start: int, stop: int) -> list[str]: ...
    def intern(self, names: list[str]) -> list[int]: ...

class Rows:
    starts: NDArray[Any]
    index: NDArray[Any]
    value: NDArray[Any]
    label: NDArray[Any]
    weight: NDArray[Any] | None
    base: NDArray[Any] | None
    query: NDArray[Any] | None
    tags: list[str] | None
    bad: list[tuple[int, int, int, int, int, str]]
    lines: int
    columns: int
    def __len__(self) -> int: ...
    def settle(self, names: Names | None) -> None: ...

def parse(
    format: str,
    block: bytearray,
    size: int,
    hash_bits: int,
    names: Names | None,
    base: int,
    keep_going: bool,
    expansion: Expansion | None = None,
) -> Rows: ...
def gather(starts: NDArray[Any], codes: NDArray[Any], values: NDArray[Any], columns: NDArray[Any]) -> Rows: ...
def hash_names(names: list[str], bits: int) -> NDArray[Any]: ...
def checksum(data: Any) -> int: ...

class Expansion:
    """Interactions and n-grams: what native/expand.hpp makes of a row."""

    def __init__(self, interactions: list[Any], ngram: int) -> None: ...
    def expand(self, names: list[str], values: list[float]) -> tuple[list[str], list[float]]: ...
    def rows(
        self,
        starts: NDArray[Any],
        codes: NDArray[Any],
        values: NDArray[Any],
        names: list[str] | Names,
        hash_bits: int,
        table: Names | None,
    ) -> Rows: ...

def moments_dense(*given: Any) -> int: ...
def moments_sparse(*given: Any) -> int: ...
def moments_mapping(*given: Any) -> dict[Any, Any] | None: ...
def range_dense(*given: Any) -> int: ...
def range_sparse(*given: Any) -> int: ...
def range_mapping(*given: Any) -> dict[Any, Any] | None: ...
