"""Named, validated parameters for the small dataclasses (rules, losses, schedules, readouts).

A field declares its range where it is defined; `Parameters` checks it whenever the object is made or
changed. The scikit-learn verbs (`get_params`, `set_params`) let a grid search reach inside:
``{"rule__C": [0.1, 1]}``.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from ..errors import ParameterError, UnknownTypeError

__all__ = ["Parameters", "check_fields", "choice", "flag", "from_config", "from_text", "number", "to_config"]


def number(
    default: float | None,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    infinite: bool = False,
    integer: bool = False,
    optional: bool = False,
    kw_only: bool = False,
) -> Any:
    """A dataclass field holding a number within a range (`None` is legal where it is the default, or `optional`)."""
    limits = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    return dataclasses.field(
        default=default,
        kw_only=kw_only,
        metadata={"limits": limits, "infinite": infinite, "integer": integer, "optional": optional},
    )


def choice(default: str, *options: str, kw_only: bool = False) -> Any:
    """A dataclass field holding one of a few words."""
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"options": options})


def flag(default: bool) -> Any:
    """A dataclass field holding True or False."""
    return dataclasses.field(default=default, metadata={"flag": True})


LARGEST = 2**53  # the largest whole number that all loops count exactly


def _check(owner: str, field: dataclasses.Field[Any], value: Any) -> None:
    """Raise `ParameterError` if a value is not what its field declares."""
    meta = field.metadata
    if "options" in meta and value not in meta["options"]:
        expected = ", ".join(repr(option) for option in meta["options"])
        raise ParameterError(f"{owner}({field.name}={value!r}): expected one of {expected}")
    if "flag" in meta and not isinstance(value, bool):
        raise ParameterError(f"{owner}({field.name}={value!r}): expected True or False")
    if "limits" in meta and (value is not None or not (field.default is None or meta["optional"])):
        _check_number(owner, field.name, value, meta)


def _check_number(owner: str, name: str, value: Any, meta: Mapping[str, Any]) -> None:
    if isinstance(value, bool) or not _is_real(value):
        raise ParameterError(f"{owner}({name}={value!r}): expected {_describe(meta)}, got {type(value).__name__}")
    if not _in_range(value, meta):
        raise ParameterError(f"{owner}({name}={value!r}): expected {_describe(meta)}")
    if meta["integer"] and abs(value) > LARGEST:
        raise ParameterError(f"{owner}({name}={value!r}): expected {_describe(meta)}, up to 2^53")


COMPARISONS = {"above": operator.gt, "at_least": operator.ge, "below": operator.lt, "at_most": operator.le}


def _in_range(value: Any, meta: Mapping[str, Any]) -> bool:
    if math.isnan(value) or (math.isinf(value) and not meta["infinite"]):
        return False
    if meta["integer"] and not float(value).is_integer():
        return False
    limits = meta["limits"]
    return all(limits[name] is None or holds(value, limits[name]) for name, holds in COMPARISONS.items())


def _is_real(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, (str, bytes))


def _describe(meta: Mapping[str, Any]) -> str:
    signs = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}
    bounds = [f"{signs[name]} {limit:g}" for name, limit in meta["limits"].items() if limit is not None]
    kind = "a whole number" if meta["integer"] else "a number"
    if not meta["infinite"]:
        kind = kind.replace("a ", "a finite ", 1)
    return " ".join([kind, " and ".join(bounds)]).strip()


def check_fields(owner: str, values: Any) -> None:
    """Raise `ParameterError` where a field of a dataclass is not what it declares; `owner` names it in the message."""
    for field in dataclasses.fields(values):
        _check(owner, field, getattr(values, field.name))


@dataclasses.dataclass(repr=False)
class Parameters:
    """Base of rules, losses, schedules and readouts: a dataclass that checks its own fields."""

    family: ClassVar[str] = ""  # "rule", "loss", …: part of the name in model files

    def __post_init__(self) -> None:
        check_fields(type(self).__name__, self)
        self.validate()

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in sorted(dataclasses.fields(self), key=lambda field: bool(field.kw_only))
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def validate(self) -> None:
        """Checks that need more than one field; raise `ParameterError`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def set_params(self, **params: Any) -> Self:
        known = self.get_params()
        for name in params:
            if name not in known:
                expected = ", ".join(known) or "none"
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has: {expected}")
        # A new object is made first, so that a refused value leaves this one unchanged.
        checked = type(self)(**{**known, **params})
        for name in params:
            setattr(self, name, getattr(checked, name))
        return self


P = TypeVar("P", bound=Parameters)

_CALL = re.compile(r"\s*([A-Za-z_][\w\-]*)\s*(?::(.*)|\((.*)\))?\s*", re.DOTALL)


def from_text(text: str, registry: Mapping[str, type[P]], what: str) -> P:
    """Read ``"pa1"``, ``"pa1:C=0.1"``, ``"huber(delta=2)"`` or ``"sgd:loss=huber(delta=2),eta=0.5"``."""
    match = _CALL.fullmatch(text) if isinstance(text, str) else None
    name = match.group(1).lower() if match else ""
    if match is None or name not in registry:
        expected = ", ".join(sorted(registry))
        raise ParameterError(f"{what}={text!r} is not a {what}; expected one of {expected}, or a {what} object")
    kind = registry[name]
    return kind(**_read_items(kind, f"{what}={text!r}", name, match.group(2) or match.group(3) or ""))


def _read_items(kind: type[Parameters], said: str, name: str, items: str) -> dict[str, Any]:
    """Parameters by name, from ``"0.1,loss=hinge"``: those without a name are taken in the order of the fields."""
    fields = [field.name for field in dataclasses.fields(kind)]
    in_order = [field.name for field in dataclasses.fields(kind) if not field.kw_only]
    params: dict[str, Any] = {}
    for position, item in enumerate(_split(items)):
        key, equals, value = item.partition("=")
        if not equals:
            key, value = (in_order[position] if position < len(in_order) else ""), item
        key = key.strip()
        if key not in fields:
            expected = ", ".join(fields) or "none"
            raise ParameterError(f"{said}: {name} has no parameter {key or item!r}; it has: {expected}")
        if key in params:
            raise ParameterError(f"{said}: {key} is given twice; expected it once")
        word = "options" in kind.__dataclass_fields__[key].metadata  # "none" may be one of the words
        params[key] = value.strip() if word else read_value(value.strip())
    return params


def _split(text: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    items, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            items.append(text[start:position])
            start = position + 1
    items.append(text[start:])
    return [item for item in items if item.strip()]


_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "inf": math.inf}


def read_value(text: str) -> Any:
    """The value that a text stands for; the text itself where it is no number, sequence or word in quotes.

    Not `ast.literal_eval`: in Python 3.11 it fails now and then when two threads call it at once.
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("(") and text.endswith(")"):
        items = [read_value(item.strip()) for item in _split(text[1:-1])]
        return items[0] if len(items) == 1 and not text[:-1].rstrip().endswith(",") else tuple(items)
    return _number(text)


def _number(text: str) -> Any:
    """A number as Python writes it; other texts as they are, "nan" among them."""
    if not text.isascii() or text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return text
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def config_name(kind: type[Parameters]) -> str:
    """The name of a class in files: ours by family and name, others with their module, so that they cannot be taken for
    ours.
    """
    ours = kind.__module__.startswith("onepass.")
    return f"{kind.family}:{kind.__name__ if ours else f'{kind.__module__}.{kind.__qualname__}'}"


def to_config(value: Any) -> Any:
    """A parameter as JSON: plain values unchanged, arrays as lists, objects as their name and parameters."""
    if isinstance(value, Parameters):
        return {
            "type": config_name(type(value)),
            "params": {name: to_config(v) for name, v in value.get_params().items()},
        }
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        return to_config(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_config(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return {"type": "inf"} if value > 0 else {"type": "-inf"}
    return value


def from_config(config: Any, known: dict[str, type[Parameters]]) -> Any:
    """The inverse of `to_config`; only classes in `known` are ever made."""
    if isinstance(config, list):
        return [from_config(each, known) for each in config]
    if not isinstance(config, dict):
        return config
    if config.get("type") in ("inf", "-inf"):
        return float(config["type"])
    kind = known.get(str(config.get("type")))
    if kind is None:
        expected = ", ".join(sorted(known))
        raise UnknownTypeError(f"type {config.get('type')!r} is not known here; expected one of {expected}")
    return kind(**{name: from_config(v, known) for name, v in config["params"].items()})
