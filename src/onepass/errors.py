"""Everything onepass raises on purpose.

OnepassError
├── ParameterError (ValueError)      an option or rule parameter outside its range, an unknown name
│   └── UnknownTypeError             a model file that names a rule or a decoder of yours which is not defined here
├── InputError (ValueError)          malformed data; nothing of the call was learned
│   ├── LabelError                   a label outside the declared classes, or of the wrong kind
│   ├── LineError                    a line of a file that is not in its format; `.path`, `.line`, `.column`, `.text`
│   ├── NotRealizableError           an outcome that none of the experts still trusted foresaw
│   └── FeatureError                 wrong number of features, or names where rows were learned
├── NumericalError (ArithmeticError) a finite input whose update overflows; `.row` is the row refused
├── ModelFileError (ValueError)      a model file that will not be loaded
│   ├── DamagedFileError             truncated or altered: its checksum does not match
│   ├── ForeignFileError             not a onepass model file
│   ├── NewerFileError               written by a later format version
│   └── OlderFileError               written by an earlier onepass, under which it meant something else
├── ForkedError (RuntimeError)       a learner that another thread was using when the process was forked
├── DatasetError (OSError)           a data set that is neither here nor to be had, or whose file is damaged
└── MissingDependencyError (ImportError)  an optional package is needed: the message names the extra

A message says what was expected, what came, where, and what to do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Self

__all__ = [
    "DamagedFileError",
    "DatasetError",
    "FeatureError",
    "ForeignFileError",
    "ForkedError",
    "FullError",
    "InputError",
    "LabelError",
    "LineError",
    "MissingDependencyError",
    "ModelFileError",
    "NewerFileError",
    "NotRealizableError",
    "NumericalError",
    "OlderFileError",
    "OnepassError",
    "ParameterError",
    "RowError",
    "UnknownTypeError",
    "checked_parts",
    "rows_from",
]


class OnepassError(Exception):
    """Base of every error that onepass raises on purpose."""


class ParameterError(OnepassError, ValueError):
    """An option outside its range or of unknown name."""


class UnknownTypeError(ParameterError):
    """A whole model file that names a rule or a decoder which this program does not define."""


class InputError(OnepassError, ValueError):
    """Malformed data. Nothing of the call was learned."""


class LabelError(InputError):
    """A label that the learner cannot take."""


class FeatureError(InputError):
    """Features that do not fit what the learner has seen."""


class NotRealizableError(InputError):
    """An outcome that contradicts the last expert who had always been right."""


class LineError(InputError):
    """A line that is not in its file's format. `column` counts characters from 1; `text` is the line, shortened."""

    def __init__(self, what: str, path: str, line: int, column: int, text: str) -> None:
        super().__init__(what, path, line, column, text)
        self.what, self.path, self.line, self.column, self.text = what, path, line, column, text

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}:{self.column}: {self.what}; the line is {self.text!r}. "
            'Correct it, or leave such lines out with on_error="skip"'
        )


_LEARNED, _NOT_LEARNED = ". The rows before it were learned", ". It was not learned"


class RowError(OnepassError):
    """Well-formed data with a row that cannot be learned. Rows before `row` are learned, `row` is not.

    The message begins with "row N: ", and ends with what became of the rows before it.
    """

    def __init__(self, message: str, row: int = 0) -> None:
        why = message.removesuffix(_LEARNED).removesuffix(_NOT_LEARNED)
        super().__init__(why + (_LEARNED if row else _NOT_LEARNED))
        self.row = row

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (str(self), self.row)

    def at(self, row: int) -> Self:
        """The error of a row among some rows, as the error of that row among all."""
        return type(self)(str(self).replace(f"row {self.row}:", f"row {row}:", 1), row)


class NumericalError(RowError, ArithmeticError):
    """A finite input whose update would overflow. Rows before `row` are learned, `row` is not."""


class FullError(RowError, MemoryError):
    """An update beyond what the readout may store. Rows before `row` are learned, `row` is not."""


class ModelFileError(OnepassError, ValueError):
    """A model file that will not be loaded."""


class DamagedFileError(ModelFileError):
    """A truncated or altered model file."""


class ForeignFileError(ModelFileError):
    """A file that is not a onepass model."""


class NewerFileError(ModelFileError):
    """A model file of a later format version than this onepass reads."""


class OlderFileError(ModelFileError):
    """A model file of an earlier onepass that would mean something else to this one."""


class ForkedError(OnepassError, RuntimeError):
    """A learner that another thread was using when this process was forked off: it may be half changed."""


class DatasetError(OnepassError, OSError):
    """A data set that is not here and cannot be fetched, or whose file is damaged."""


class MissingDependencyError(OnepassError, ImportError):
    """An optional package that is not installed."""


class rows_from:  # noqa: N801  (a context manager; a class, since it stands around single rows)
    """Around rows that begin at `start` of the caller's rows: one that is refused is named by its place among these."""

    __slots__ = ("start",)

    def __init__(self, start: int) -> None:
        self.start = start

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self.start and isinstance(error, RowError):
            raise error.at(self.start + error.row) from None


@contextlib.contextmanager
def checked_parts(of: str) -> Iterator[None]:
    """Raise `DamagedFileError` for whatever making a learner of a file's parts raises.

    A checksum detects damage, not a forger: parts that do not fit together raise anything at all.
    """
    try:
        yield
    except (ModelFileError, UnknownTypeError):
        raise
    except MemoryError as error:
        raise DamagedFileError(
            f"{of} wants more memory than there is ({error}); restore it from a backup, or open it on a larger machine"
        ) from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise DamagedFileError(f"{of}'s parts do not fit together ({error}); restore it from a backup") from None


def short(value: Any) -> str:
    """What came, as a message quotes it."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
