"""The memory that reading one file may take: what is free, and no more than fits its size.

A file of some bytes may ask for any amount of memory: by packing (gzip, zip), by a vertex number,
by the sizes in a header. So beside free memory there is a limit, one gigabyte or a hundred times
the bytes of the file, whichever is more. ``LAGPU_READ_LIMIT``, in bytes as ``16e9``, replaces it.
"""

from __future__ import annotations

import math
import os
import stat
from typing import IO, NamedTuple

from lagpu.errors import InvalidValue, LimitExceeded
from lagpu.host import memory

__all__ = ["Budget"]

_VARIABLE = "LAGPU_READ_LIMIT"
_LEAST = 10**9
_TIMES = 100


class Budget(NamedTuple):
    """A file, by its name in messages, and its limit."""

    name: str
    size: int
    limit: float

    @classmethod
    def of(cls, name: str, stream: IO[bytes]) -> Budget:
        """Return the budget of an open file; a pipe has no size, and so no limit.

        Raises
        ------
        InvalidValue
            If ``LAGPU_READ_LIMIT`` is not a number of bytes.
        """
        text, facts = os.environ.get(_VARIABLE), os.fstat(stream.fileno())
        if not text:
            limit = max(_LEAST, _TIMES * facts.st_size) if stat.S_ISREG(facts.st_mode) else math.inf
            return cls(name, facts.st_size, limit)
        try:
            limit = float(text)
        except ValueError:
            limit = math.nan
        if not limit > 0:
            raise InvalidValue(f"{_VARIABLE}: {text!r} is not a number of bytes. Write 16e9.")
        return cls(name, facts.st_size, limit)

    def require(
        self, nbytes: int, part: str = "", remedy: str = "Use a smaller graph", held: int = 0
    ) -> None:
        """Raise if reading must not take so much, before it is taken.

        Parameters
        ----------
        nbytes : int
            Bytes about to be allocated at the same time.
        part : str
            What of the file needs them, such as its largest vertex.
        remedy : str
            What the user can do, without a full stop.
        held : int
            Bytes of the file's content that are allocated already; they count for the limit.

        Raises
        ------
        OutOfMemory
            If they are not free.
        LimitExceeded
            If they exceed the limit for a file of this size.
        """
        what = f"read: {self.name}, {part}"
        memory.require(nbytes, what, remedy + ".")
        total = nbytes + held
        if total > self.limit:
            advice = f"or set {_VARIABLE}={2 * total:.0e} if you trust the file."
            raise LimitExceeded(
                f"{what}: needs {total / 1e9:,.1f} GB, more than the limit {self.limit / 1e9:,.1f} "
                f"GB for a file of {self.size:,} bytes. {remedy}, {advice}"
            )
