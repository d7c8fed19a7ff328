"""What a statement is given: as one number, by which processes compare it, and in words."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from lagpu.algebra.operators import Monoid, Operator, Semiring
from lagpu.backends.grid.handles import GridHandle
from lagpu.dtypes import DType
from lagpu.operations import method_of

__all__ = ["checksum", "described"]

_COLUMNS = 509  # words: of a longer array the sums of so many columns are looked at
_FIRST, _LONGEST = 5, 60  # values and letters of an argument in an error


def checksum(x: Any) -> int:
    """Return a number that is the same in every process for the same argument of a statement.

    Objects of the grid count by the statement that made them, operators by name, text and code,
    arrays by type, length and values. Of what else there is, as functions, only the type counts.
    """
    return _OF[type(x)](x)


class _Checksums(dict[type, Callable[[Any], int]]):
    """The function for each type of argument, found when there is the first one."""

    def __missing__(self, kind: type) -> Callable[[Any], int]:
        of_kind = zlib.crc32(kind.__name__.encode())
        found: Callable[[Any], int] = lambda _x: of_kind  # noqa: E731
        if issubclass(kind, GridHandle):
            found = attrgetter("number")
        elif issubclass(kind, np.ndarray):
            found = _of_array
        elif issubclass(kind, np.generic):
            found = zlib.crc32
        elif issubclass(kind, (tuple, list)):
            # The hash of a tuple of numbers is the same everywhere, and quick.
            found = lambda x: hash((of_kind, *[_OF[type(part)](part) for part in x]))  # noqa: E731
        elif issubclass(kind, (Operator, Monoid, Semiring, DType)):
            found = _of_named
        elif issubclass(kind, (bool, int, float, str, type(None))):
            found = _of_text
        self[kind] = found
        return found


_OF = _Checksums()


@functools.lru_cache(maxsize=1024, typed=True)
def _of_text(x: Any) -> int:
    return zlib.crc32(repr(x).encode())


@functools.cache
def _of_named(x: Any) -> int:
    """Return the checksum of an operator or a type; both live as long as the program."""
    facts = [repr(x)]
    if isinstance(x, Semiring):
        facts += [str(_of_named(x.monoid)), str(_of_named(x.multiply))]
    elif isinstance(x, Monoid):
        facts += [str(_of_named(x.op))]
    elif isinstance(x, Operator):
        code = getattr(x.numpy, "__code__", None)  # of a user's function; of NumPy's the name says
        numbers = [] if code is None else [c for c in code.co_consts if isinstance(c, (int, float))]
        facts += [x.body, "" if code is None else f"{code.co_code!r} {code.co_names} {numbers}"]
    return zlib.crc32("\n".join(facts).encode())


def _of_array(x: np.ndarray[Any, Any]) -> int:
    """Return a checksum that costs little beside what a statement does with the array."""
    flat: Any = np.ascontiguousarray(x).reshape(-1)
    seen = zlib.crc32(f"{x.dtype.str} {x.shape}".encode())
    if flat.nbytes > 16 * _COLUMNS:
        rows = flat.nbytes // (8 * _COLUMNS)
        flat = flat.view(np.uint8)
        words = flat[: 8 * rows * _COLUMNS].view(np.uint64)
        seen = zlib.crc32(np.add.reduce(words.reshape(rows, _COLUMNS)), seen)
        flat = flat[len(words) * 8 :]
    return zlib.crc32(flat, seen)


def described(given: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, words, checksum) of each argument, and of each field of a statement."""
    return [
        (name, _words(x), f"{checksum(x) % 2**32:08x}")
        for key, whole in given.items()
        for name, x in _parts(key, whole)
    ]


def _parts(name: str, x: Any) -> Iterator[tuple[str, Any]]:
    fields = getattr(x, "_fields", None)
    if fields is not None:
        if name == "operation":
            yield name, method_of(x, 1) or method_of(x, 2)
        for field, part in zip(fields, x, strict=True):
            yield from _parts(field, part)
    elif isinstance(x, (tuple, list)):
        for k, part in enumerate(x):
            yield from _parts(name if len(x) == 1 else f"{name}[{k}]", part)
    else:
        yield name, x


def _words(x: Any) -> str:
    if isinstance(x, GridHandle):
        return f"the {x.dtype} of shape {'x'.join(map(str, x.shape))} made in statement {x.made_in}"
    if isinstance(x, np.ndarray):
        first = " ".join(map(str, x.reshape(-1)[:_FIRST].tolist()))
        return f"{x.size} {x.dtype} [{first}{' ...' * (x.size > _FIRST)}]"
    found = str(x) if isinstance(x, (str, np.generic)) else repr(x)
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}..."
