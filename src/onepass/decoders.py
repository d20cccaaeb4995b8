"""Decoders: which of the possible answers y scores best, ⟨w, Φ(x, y)⟩, and the features Φ of an answer.

`structured.StructuredLearner` learns the weights of any decoder. Two are here: `Sequence`, a label for each
position of a sequence, and `Multiclass`, one label. Weights come as a mapping of feature names to numbers in
which a name that is not there weighs 0.

>>> from onepass.decoders import Sequence
>>> tagger = Sequence(("noun", "verb"))
>>> tagger.features(["dogs", "bark"], ["noun", "verb"])
{'noun|dogs': 1.0, '→noun': 1.0, 'verb|bark': 1.0, 'noun→verb': 1.0, 'verb→': 1.0}
>>> tagger.decode({"noun|dogs": 1.0, "noun→verb": 0.5}, ["dogs", "bark"])
['noun', 'verb']
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .batches import to_row
from .core import Array
from .errors import DamagedFileError, InputError, LabelError, NumericalError, ParameterError
from .parameters import Parameters, flag
from .store import decode_values, encode_values

__all__ = ["DECODERS", "Decoder", "Multiclass", "Sequence", "Weights", "difference", "from_config", "to_config"]

Features = dict[str | int, float]
Transform = Callable[[float], float]

# Beyond this a sum over positions could overflow, and no answer would be the best one.
LARGEST_SCORE = 1e300
QUIETLY = np.errstate(over="ignore", invalid="ignore")


class Weights(Protocol):
    """What a decoder is given as w: a mapping, read only. `many(names)`, where there is one, is faster for many."""

    def get(self, name: Any, default: float = 0.0, /) -> float: ...


@runtime_checkable
class Decoder(Protocol):
    """What a structured learner asks of a decoder. Feature names are strings or whole numbers.

    Optional: ``loss_augmented(w, x, y, transform=math.sqrt)``, the answer r with the highest
    ⟨w, Φ(x, r)⟩ + transform(cost(y, r)), without which the learner takes selection="prediction" only; and
    ``equal(y, y_hat)``, by default ``==``. Ties must be broken the same way every time.
    """

    def decode(self, w: Weights, x: Any) -> Any:
        """The answer with the highest score ⟨w, Φ(x, ·)⟩."""
        ...

    def features(self, x: Any, y: Any) -> Mapping[Any, float]:
        """Φ(x, y)."""
        ...

    def cost(self, y: Any, y_hat: Any) -> float:
        """What answering y_hat costs when y is right: ≥ 0, and 0 if they are equal."""
        ...


def identity(cost: float) -> float:
    return cost


# -- named feature vectors -----------------------------------------------------------------------------------------


def expand(x: Mapping[Any, Any]) -> Features:
    """A mapping of names to numbers, strings or booleans as numbers alone; zeros are left out."""
    out: Features = {}
    for name, value in x.items():
        if isinstance(value, str):
            name, number = f"{name}={value}", 1.0
        else:
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise InputError(
                    f"feature {name!r} must be a number, a string or a boolean, got {value!r} ({type(value).__name__})"
                ) from None
        if not math.isfinite(number):
            raise InputError(
                f"feature {name!r} must be a finite number, got {number}; leave it out where its value is missing"
            )
        if number:
            out[name] = out.get(name, 0.0) + number
    return out


def difference(plus: Mapping[Any, float], minus: Mapping[Any, float]) -> Features:
    """plus − minus, without what cancels."""
    out = dict(plus)
    for name, value in minus.items():
        out[name] = out.get(name, 0.0) - value
    return {name: value for name, value in out.items() if value}


def weights_of(w: Weights, names: list[str]) -> Array:
    many = getattr(w, "many", None)
    if many is not None:
        return np.asarray(many(names), dtype=np.float64)
    return np.array([w.get(name, 0.0) for name in names], dtype=np.float64)


def read_row(x: Any) -> dict[str, float]:
    """One example's features: a mapping, a row of numbers, a word, or a list of words (each counts 1)."""
    if isinstance(x, str):
        return {x: 1.0}
    if isinstance(x, Mapping):
        return {str(name): value for name, value in expand(x).items()}
    if isinstance(x, (list, tuple)) and x and all(isinstance(word, str) for word in x):
        counts: dict[str, float] = {}
        for word in x:
            counts[word] = counts.get(word, 0.0) + 1.0
        return counts
    row = to_row(x)
    bad = np.flatnonzero(~np.isfinite(row))
    if len(bad):
        raise InputError(f"x must hold finite numbers, but x[{bad[0]}] is {row[bad[0]]}")
    return {str(j): float(row[j]) for j in np.flatnonzero(row)}


# -- labels --------------------------------------------------------------------------------------------------------


def label_text(label: Any) -> str:
    """A label inside a feature name; "|" and "→", which end it there, are escaped."""
    text = label if isinstance(label, str) else repr(label)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("→", "\\→")


class Labelled(Parameters):
    """What the decoders share: labels by index, and the names "label|feature" of their weights."""

    family = "decoder"
    labels: tuple[Any, ...]

    # Names made of text are worth keeping: the model finds the weight of the same object faster.
    _LARGEST_CACHE = 1 << 16

    def __post_init__(self) -> None:
        if isinstance(self.labels, str) or not isinstance(self.labels, Iterable):
            raise ParameterError(f"labels={self.labels!r}: expected a list of labels")
        if type(self.labels) is not tuple or any(isinstance(label, np.generic) for label in self.labels):
            self.labels = tuple(_plain(label) for label in self.labels)
        encode_values(self.labels)  # a label that no file can hold is refused now, not when saving
        self._texts = [label_text(label) for label in self.labels]
        self._index = {label: index for index, label in enumerate(self.labels)}
        self._cache: dict[str, tuple[str, ...]] = {}
        if len(set(self._texts)) != len(self._texts) or len(self._index) != len(self._texts):
            raise ParameterError(f"labels={self.labels!r}: expected labels that differ, also as text")
        super().__post_init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}}

    def index_of(self, label: Any) -> int:
        try:
            return self._index[label]
        except (KeyError, TypeError):
            raise LabelError(f"label {label!r} is not one of {list(self.labels)!r}") from None

    def names_of(self, feature: str) -> tuple[str, ...]:
        """The names of a feature's weights, label by label."""
        names = self._cache.get(feature)
        if names is None:
            if len(self._cache) >= self._LARGEST_CACHE:
                self._cache.clear()
            names = self._cache[feature] = tuple(f"{text}|{feature}" for text in self._texts)
        return names

    @QUIETLY
    def emissions(self, w: Weights, rows: list[dict[str, float]]) -> Array:
        """Σⱼ xⱼ w[label|j] for each row (down) and label (across)."""
        names = [name for row in rows for feature in row for name in self.names_of(feature)]
        values = np.array([value for row in rows for value in row.values()])
        products = weights_of(w, names).reshape(len(values), len(self.labels)) * values[:, np.newaxis]
        out = np.zeros((len(rows), len(self.labels)))
        start = 0
        for scores, row in zip(out, rows, strict=True):
            scores[:] = products[start : start + len(row)].sum(axis=0)
            start += len(row)
        if not np.all(np.abs(out) <= LARGEST_SCORE):
            raise NumericalError("row 0: the scores overflow; scale the features down or choose smaller steps")
        return out


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


# -- one label -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class Multiclass(Labelled):
    """One of `labels`: x, a mapping or a row of numbers, in the block of its label: Φ = {"label|feature": value}.

    `costs[i][j]` is what answering label j costs when label i is right; by default 1 for every wrong label, with
    which max_loss selection and a Passive-Aggressive rule is the classifier's multiclass="rival" without intercept.
    Of equals, the label listed first wins.
    """

    name = "multiclass"
    labels: tuple[Any, ...] = ()
    costs: tuple[tuple[float, ...], ...] | None = None

    def validate(self) -> None:
        if self.costs is None:
            return
        table = np.asarray(self.costs, dtype=np.float64)
        k = len(self.labels)
        if table.shape != (k, k) or not np.all(np.isfinite(table)) or np.any(table < 0) or np.any(np.diag(table)):
            raise ParameterError(
                f"costs={self.costs!r}: expected {k} rows of {k} finite numbers >= 0, with 0 on the diagonal"
            )
        if self.costs != (plain := tuple(tuple(row) for row in table.tolist())):
            self.costs = plain

    def decode(self, w: Weights, x: Any) -> Any:
        return self.labels[int(np.argmax(self.emissions(w, [read_row(x)])[0]))] if self.labels else None

    def loss_augmented(self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt) -> Any:
        truth = self.index_of(y)
        losses = [transform(self._cost(truth, r)) for r in range(len(self.labels))]
        return self.labels[int(np.argmax(self.emissions(w, [read_row(x)])[0] + losses))]

    def features(self, x: Any, y: Any) -> dict[str, float]:
        index = self.index_of(y)
        return {self.names_of(feature)[index]: value for feature, value in read_row(x).items()}

    def cost(self, y: Any, y_hat: Any) -> float:
        return self._cost(self.index_of(y), self.index_of(y_hat))

    def _cost(self, i: int, j: int) -> float:
        return float(i != j) if self.costs is None else self.costs[i][j]


# -- a label for each position -------------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class Sequence(Labelled):
    """A label of `labels` for each position: exact first-order (hidden Markov like) sequence labelling.

    x is a sequence of positions, each a word, a list of words, a mapping of features, or a row of numbers; y is a
    list of labels. Features: "label|feature" at each position and, with `transitions`, "label→label" between
    neighbours, "→label" at the start and "label→" at the end. The cost is the number of wrong labels.

    `decode` is the Viterbi algorithm. `loss_augmented` carries the number of errors so far in its state, so that it
    is exact for any transform of the cost, √ included, which does not split over positions: O(n²L²) for n positions
    and L labels, O(nL²) for the identity. Of equals, the label listed first wins.
    """

    name = "sequence"
    labels: tuple[Any, ...] = ()
    transitions: bool = flag(True)

    def validate(self) -> None:
        if not self.labels or "" in self._texts:
            raise ParameterError(f"labels={self.labels!r}: expected at least one label, none of them empty")
        links = [f"{before}→{after}" for before, after in itertools.product(self._texts, repeat=2)]
        self._arcs = links + [f"→{text}" for text in self._texts] + [f"{text}→" for text in self._texts]

    def decode(self, w: Weights, x: Any) -> list[Any]:
        rows = self._rows(x)
        return self._labels(viterbi(self.emissions(w, rows), *self._arc_weights(w))) if rows else []

    def loss_augmented(self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt) -> list[Any]:
        rows = self._rows(x)
        truth = self._truth(y, len(rows))
        if not rows:
            return []
        emissions, arcs = self.emissions(w, rows), self._arc_weights(w)
        if transform is identity:
            wrong = np.ones_like(emissions)
            wrong[np.arange(len(truth)), truth] = 0.0
            return self._labels(viterbi(emissions + wrong, *arcs))
        gains = np.array([transform(float(errors)) for errors in range(len(rows) + 1)])
        return self._labels(viterbi_counting_errors(emissions, *arcs, truth, gains))

    def features(self, x: Any, y: Any) -> dict[str, float]:
        rows = self._rows(x)
        indices = self._truth(y, len(rows))
        out: dict[str, float] = {}
        before = ""
        for row, index in zip(rows, indices, strict=True):
            for feature, value in row.items():
                name = self.names_of(feature)[index]
                out[name] = out.get(name, 0.0) + value
            before = self._pass(out, before, self._texts[index])
        if rows:
            self._pass(out, before, "")
        return out

    def cost(self, y: Any, y_hat: Any) -> float:
        if len(y) != len(y_hat):
            raise InputError(f"the sequences have {len(y)} and {len(y_hat)} labels; expected equally many")
        return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))

    def equal(self, y: Any, y_hat: Any) -> bool:
        return list(y) == list(y_hat)

    def _pass(self, out: dict[str, float], before: str, after: str) -> str:
        if self.transitions:
            name = f"{before}→{after}"
            out[name] = out.get(name, 0.0) + 1.0
        return after

    def _rows(self, x: Any) -> list[dict[str, float]]:
        if isinstance(x, Mapping) or not (isinstance(x, Items) or hasattr(x, "__array__")):
            raise InputError(f"x must be a sequence of positions, got {x!r:.80} ({type(x).__name__})")
        x = x if isinstance(x, Items) else np.asarray(x)
        if getattr(x, "ndim", 1) == 0:
            raise InputError(f"x must be a sequence of positions, got the number {x!r}")
        rows = []
        for position, each in enumerate(x):
            try:
                rows.append(read_row(each))
            except InputError as error:
                raise type(error)(f"position {position}: {error}") from None
        return rows

    def _truth(self, y: Any, positions: int) -> list[int]:
        if isinstance(y, str) or not hasattr(y, "__len__"):
            raise LabelError(f"y must be a list of labels, one for each position, got {y!r:.80}")
        if len(y) != positions:
            raise LabelError(f"x has {positions} positions, y has {len(y)} labels")
        return [self.index_of(label) for label in y]

    def _labels(self, path: list[int]) -> list[Any]:
        return [self.labels[index] for index in path]

    def _arc_weights(self, w: Weights) -> tuple[Array, Array, Array]:
        """Weights between labels (from down, to across), at the start, at the end."""
        n = len(self.labels)
        if not self.transitions:
            return np.zeros((n, n)), np.zeros(n), np.zeros(n)
        weights = weights_of(w, self._arcs)
        return weights[: n * n].reshape(n, n), weights[n * n : -n], weights[-n:]


@QUIETLY
def viterbi(emissions: Array, links: Array, start: Array, end: Array) -> list[int]:
    """The best path: argmax over labels of Σ emissions + links + start + end."""
    best = start + emissions[0]
    back: list[NDArray[np.intp]] = []
    for scores in emissions[1:]:
        through = best[:, np.newaxis] + links
        back.append(np.argmax(through, axis=0))
        best = np.max(through, axis=0) + scores
    path = [int(np.argmax(best + end))]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1]


@QUIETLY
def viterbi_counting_errors(
    emissions: Array, links: Array, start: Array, end: Array, truth: list[int], gains: Array
) -> list[int]:
    """The same with gains[number of labels that differ from truth] added: the state is (errors so far, label)."""
    positions, labels = emissions.shape
    wrong = np.arange(labels) != np.array(truth)[:, np.newaxis]
    best = np.full((positions + 1, labels), -np.inf)
    best[wrong[0].astype(np.intp), np.arange(labels)] = start + emissions[0]
    back: list[NDArray[np.intp]] = []
    for t in range(1, positions):
        through = best[: t + 1, :, np.newaxis] + links  # errors × from × to
        back.append(np.argmax(through, axis=1))
        arrived = np.max(through, axis=1) + emissions[t]
        best[: t + 1] = np.where(wrong[t], -np.inf, arrived)
        best[1 : t + 2, wrong[t]] = arrived[:, wrong[t]]
    errors, label = divmod(int(np.argmax(best + end + gains[:, np.newaxis])), labels)
    path = [label]
    for t in range(positions - 1, 0, -1):
        errors -= int(wrong[t, path[-1]])
        path.append(int(back[t - 1][errors, path[-1]]))
    return path[::-1]


# -- files ---------------------------------------------------------------------------------------------------------

DECODERS: dict[str, type[Labelled]] = {"multiclass": Multiclass, "sequence": Sequence}


def to_config(decoder: Any) -> Any:
    """A decoder as JSON: ours by name and parameters, another's by its class's name, for the message on loading."""
    if decoder is None:
        return None
    for name, kind in DECODERS.items():
        if type(decoder) is kind:
            params = decoder.get_params()
            return {"name": name, "params": list(params), "values": encode_values(list(params.values()))}
    return {"own": f"{type(decoder).__module__}.{type(decoder).__qualname__}"}


def from_config(config: Any) -> Any:
    """The inverse of `to_config`; nothing but our own decoders is ever made."""
    if config is None:
        return None
    if "own" in config:
        raise ParameterError(
            f"this model was learned with a decoder of yours, {config['own']}, which no file can hold; "
            "open it with StructuredLearner.load(path, decoder=...)"
        )
    if config.get("name") not in DECODERS:
        raise DamagedFileError(
            f"decoder {config.get('name')!r} is not known here; expected one of {', '.join(DECODERS)}"
        )
    return DECODERS[config["name"]](**dict(zip(config["params"], decode_values(config["values"]), strict=True)))
