"""`RunState`: all that a prequential run has besides its model, so that another process can go on with it."""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, ForeignFileError, ParameterError
from ..persistence import store
from ..rows.rows import CSR

__all__ = ["RunState", "decode", "encode"]

KIND = "prequential run"


@dataclasses.dataclass
class RunState:
    """Where a run is: `rows` of the stream were taken. `config` is JSON, and `arrays` are its large columns.

    It holds the metrics and curves so far, the marks and the state of the drift detector, the labels that are still to
    come with their examples, and the rows that were recorded for the regret. It does not hold the model: save that at
    the same moment.
    """

    rows: int
    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, atomically and with a checksum."""
        store.write(path, KIND, {"rows": self.rows, "run": self.config}, self.arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        kind, config, arrays = store.read(path)
        if kind != KIND:
            raise ForeignFileError(f"{os.fspath(path)} holds a {kind}, not a run; open a model with onepass.load")
        return cls(int(config["rows"]), config["run"], arrays)


# -- values as JSON ----------------------------------------------------------------------------------------------------


def encode(value: Any) -> Any:
    """An example, a label, an id or a time as JSON: `decode` gives the same bits and types."""
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(np.asarray(value), isinstance(value, np.generic))
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in (list, tuple, set, frozenset):
        items = [encode(item) for item in value]
        return items if type(value) is list else {type(value).__name__: items}
    if isinstance(value, Mapping):
        return {"mapping": [[encode(key), encode(item)] for key, item in value.items()]}
    if type(value) in (datetime.datetime, datetime.date):
        return {type(value).__name__: value.isoformat()}
    if type(value) is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if hasattr(value, "tocsr"):
        return _encode_sparse(value)
    raise ParameterError(
        f"the state of a run cannot hold {value!r:.60}, a {type(value).__name__}: expected numbers, text, mappings, "
        "arrays, sparse rows, or dates of the standard library"
    )


def _encode_array(values: NDArray[Any], single: bool) -> Any:
    if values.dtype.hasobject:
        return {"objects": [encode(item) for item in values.ravel().tolist()], "shape": list(values.shape)}
    content = np.ascontiguousarray(values).tobytes().hex()
    return {"number" if single else "array": content, "dtype": values.dtype.str, "shape": list(values.shape)}


def _encode_sparse(row: Any) -> Any:
    if isinstance(row, CSR):
        if row.table is not None:  # its columns are those of a stream that does not go on
            names = row.table.names(0, row.shape[1])
            return encode({names[j]: v for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)})
        kind: Any = ["stream", row.distinct, row.hash_bits]
    else:
        row = row.tocsr()
        kind = ["scipy"]
    arrays = [encode(each) for each in (row.data, row.indices, row.indptr)]
    return {"sparse": kind, "arrays": arrays, "shape": list(row.shape)}


def decode(content: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(content, list):
        return [decode(item) for item in content]
    if not isinstance(content, dict):
        return content
    if "array" in content or "number" in content:
        data = bytes.fromhex(content["array" if "array" in content else "number"])
        values = np.frombuffer(data, dtype=np.dtype(content["dtype"])).reshape(content["shape"]).copy()
        return values if "array" in content else values[()]
    if "objects" in content:
        out = np.empty(len(content["objects"]), dtype=object)
        out[:] = [decode(item) for item in content["objects"]]
        return out.reshape(content["shape"])
    if "sparse" in content:
        return _decode_sparse(content)
    [(kind, items)] = content.items()
    if kind not in DECODERS:
        raise DamagedFileError(f"the state of a run has a {kind!r:.40}, which this onepass does not know")
    return DECODERS[kind](items)


DECODERS: dict[str, Any] = {
    "float": float,
    "tuple": lambda items: tuple(map(decode, items)),
    "set": lambda items: set(map(decode, items)),
    "frozenset": lambda items: frozenset(map(decode, items)),
    "mapping": lambda items: {decode(key): decode(value) for key, value in items},
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "timedelta": lambda parts: datetime.timedelta(*parts),
}


def _decode_sparse(content: Mapping[str, Any]) -> Any:
    data, indices, starts = (decode(each) for each in content["arrays"])
    rows, columns = content["shape"]
    kind, *more = content["sparse"]
    if kind == "stream":
        return CSR(starts, indices, data, (rows, columns), distinct=more[0], hash_bits=more[1])
    import scipy.sparse

    return scipy.sparse.csr_matrix((data, indices, starts), shape=(rows, columns))
