"""Decoders: which of the possible answers y scores best, ⟨w, Φ(x, y)⟩, and the features Φ of an answer.

`structured.StructuredLearner` learns the weights of any decoder. Here are `Sequence`, a label for each position of a
sequence; `DependencyTree`, a head for each token; `CKY`, a binary tree of labelled brackets; `Matching`, a partner
for each item; and `Multiclass`, one label. Weights come as a mapping of feature names to numbers in which a name that
is not there weighs 0.

>>> from onepass.estimators.decoders import DependencyTree, Sequence
>>> tagger = Sequence(("noun", "verb"))
>>> tagger.features(["dogs", "bark"], ["noun", "verb"])
{'noun|dogs': 1.0, '→noun': 1.0, 'verb|bark': 1.0, 'noun→verb': 1.0, 'verb→': 1.0}
>>> tagger.decode({"noun|dogs": 1.0, "noun→verb": 0.5}, ["dogs", "bark"])
['noun', 'verb']
>>> DependencyTree().decode({"dogs←bark": 1.0, "root|bark": 1.0}, ["dogs", "bark"])
[2, 0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ...errors import DamagedFileError, UnknownTypeError
from ...persistence.store import decode_values, encode_values
from ...scheme.parameters import Parameters
from .base import Features, Labelled, Transform, Weights, difference, expand, identity, label_text, read_row, weights_of
from .matching import Matching
from .multiclass import Multiclass
from .sequence import Sequence, viterbi, viterbi_counting_errors
from .tree import CKY, DependencyTree

__all__ = [
    "CKY",
    "DECODERS",
    "Decoder",
    "DependencyTree",
    "Features",
    "Labelled",
    "Matching",
    "Multiclass",
    "Sequence",
    "Transform",
    "Weights",
    "difference",
    "expand",
    "from_config",
    "identity",
    "label_text",
    "read_row",
    "to_config",
    "viterbi",
    "viterbi_counting_errors",
    "weights_of",
]


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


DECODERS: dict[str, type[Parameters]] = {
    "cky": CKY,
    "dependency_tree": DependencyTree,
    "matching": Matching,
    "multiclass": Multiclass,
    "sequence": Sequence,
}


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
        raise UnknownTypeError(
            f"this model was learned with a decoder of yours, {config['own']}, which no file can hold; "
            "open it with StructuredLearner.load(path, decoder=...)"
        )
    if config.get("name") not in DECODERS:
        raise DamagedFileError(
            f"decoder {config.get('name')!r} is not known here; expected one of {', '.join(DECODERS)}"
        )
    return DECODERS[config["name"]](**dict(zip(config["params"], decode_values(config["values"]), strict=True)))
