"""What a caller asks of a reader, what a reader returns, and the memory that one file may take."""

from __future__ import annotations

import math
import os
import stat
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.errors import InvalidValue, LimitExceeded
from lagpu.host import memory
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.renumber import renumbered

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


# ------------------------------------------------------------------------------------------
# What a caller asks of a reader, and what a reader of any format returns.


Array = np.ndarray[Any, Any]

NUMBERS_HINT = (
    "Give renumber=True, on the command line --renumber, or number the vertices from 0 without gaps"
)
NAMES_HINT = "If they are names, give renumber=True, on the command line --renumber"


class Options(NamedTuple):
    """The options of `lagpu.io.read` that a reader may heed.

    Attributes
    ----------
    header : bool, optional
        Whether the first line is a header; None lets the reader decide.
    dup_op : BinaryOp, optional
        Combines the values of an entry given twice, instead of summing them.
    renumber : bool
        Whether vertices have names, or numbers with gaps.
    columns : tuple of str, optional
        Names of the columns of sources, of targets and maybe of weights.
    """

    header: bool | None = None
    dup_op: BinaryOp | None = None
    renumber: bool = False
    columns: tuple[str, ...] | None = None


class Parsed(NamedTuple):
    """The graph in a file.

    Attributes
    ----------
    csc : CSC
        The entries in the file.
    undirected : bool
        Whether the file says that each edge has two directions and is there once.
    ids : ndarray, (n,), optional
        Id of each vertex, if the vertices were renumbered.
    """

    csc: CSC
    undirected: bool = False
    ids: Array | None = None


class Extent(NamedTuple):
    """How many edges there are, and between which vertices.

    Attributes
    ----------
    size : int
        Edges.
    top : tuple of int
        The largest source and the largest target, -1 without edges.
    least : int
        The smallest of both, 0 without edges.
    """

    size: int
    top: tuple[int, int]
    least: int


class Edges(NamedTuple):
    """Edges by the numbers of their ends.

    Attributes
    ----------
    u, v : ndarray of int, (k,)
        Ends.
    weights : ndarray, (k,), optional
        Values.
    """

    u: Array
    v: Array
    weights: Array | None = None

    def largest(self) -> int:
        """Return the largest vertex, -1 if there are no edges."""
        return int(max(self.u.max(initial=-1), self.v.max(initial=-1)))

    def extent(self) -> Extent:
        """Return their number and their least and largest ends."""
        top = int(self.u.max(initial=-1)), int(self.v.max(initial=-1))
        least = int(min(self.u.min(), self.v.min())) if len(self.u) else 0
        return Extent(len(self.u), top, least)

    @classmethod
    def join(cls, parts: list[Edges]) -> Edges:
        """Return the edges of all parts."""
        parts = [part for part in parts if len(part.u)]
        if not parts:
            nothing = np.empty(0, np.int32)
            return cls(nothing, nothing)
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            np.concatenate([part.u for part in parts]),
            np.concatenate([part.v for part in parts]),
            np.concatenate(weights) if weights else None,
        )


def graph_of(
    edges: Edges,
    budget: Budget,
    options: Options,
    *,
    held: int,
    n: int = 0,
    ids: Array | None = None,
    undirected: bool = False,
) -> Parsed:
    """Return the graph of some edges, after asking for the memory.

    Parameters
    ----------
    edges : Edges
        Their ends are at least 0.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    options : Options
        `dup_op`, and `renumber` unless `ids` are given.
    held : int
        Bytes that are allocated already and freed before a matrix is made.
    n : int
        Least number of vertices, unless they are renumbered.
    ids : ndarray, (n,), optional
        Ids of the vertices, if the ends are renumbered already.
    undirected : bool
        As in `Parsed`.
    """
    u, v, weights = edges
    if options.renumber and ids is None:
        budget.require(48 * len(u), "its vertices", held=held)
        u, v, ids = renumbered(u, v)
    n = len(ids) if ids is not None else max(n, 1 + edges.largest())
    need = bytes_for_entries(len(u), n, values=weights is not None, held=held)
    budget.require(need, f"{n} vertices", NUMBERS_HINT, held)
    return Parsed(from_entries(u, v, weights, n, n, options.dup_op), undirected, ids)
