"""What a reader is asked, what it returns, the memory of one file, and the names of vertices."""

from __future__ import annotations

import importlib
import math
import os
import re
import stat
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.errors import (
    BackendUnavailable,
    FileFormatError,
    InvalidValue,
    LagpuError,
    LimitExceeded,
)
from lagpu.host import memory
from lagpu.host.columns import distinct
from lagpu.io.csc import CSC, bytes_for_entries, from_entries
from lagpu.io.text import Malformed

_VARIABLE = "LAGPU_READ_LIMIT"
_LEAST = 10**9
_TIMES = 100
Array = np.ndarray[Any, Any]


class Budget(NamedTuple):
    """A file, by its name in messages, and its limit."""

    name: str
    size: int
    limit: float

    @classmethod
    def of(cls, name: str, stream: IO[bytes]) -> Budget:
        """Return the budget of an open file; a pipe has no size, and so no limit."""
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


NUMBERS_HINT = (
    "Give renumber=True, on the command line --renumber, or number the vertices from 0 without gaps"
)
NAMES_HINT = "If they are names, give renumber=True, on the command line --renumber"


class Options(NamedTuple):
    """The options of `lagpu.io.read` that a reader may heed."""

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
    """How many edges there are, the largest source and target (-1 without edges), the least end."""

    size: int
    top: tuple[int, int]
    least: int


class Edges(NamedTuple):
    """Edges by the numbers of their ends, (k,), and maybe their weights."""

    u: Array
    v: Array
    weights: Array | None = None

    @classmethod
    def of(
        cls, table: Array, width: int, places: tuple[int, int, int | None], least: int = 0
    ) -> Edges:
        """Return the edges in the rows of a table: columns of sources, targets and weights.

        Raises
        ------
        Malformed
            If a row has another width, or an end is not a whole number in ``least .. 2**53 - 1``.
        """
        if not len(table):
            return cls.join([])
        if table.shape[1] != width:
            raise Malformed
        source, target, weight = places
        ends = table[:, source], table[:, target]
        low, high = min(x.min() for x in ends), max(x.max() for x in ends)
        if not (least <= low and high < 2**53):  # FP64 has them all; this refuses NaN too
            raise Malformed
        if table.dtype.kind == "f" and any((x % 1 != 0).any() for x in ends):
            raise Malformed
        kind = np.int32 if high < 2**31 - 1 else np.int64
        u, v = (x.astype(kind) for x in ends)
        return cls(u, v, None if weight is None else table[:, weight].copy())

    def largest(self) -> int:
        """Return the largest vertex, -1 if there are no edges."""
        return int(max(self.u.max(initial=-1), self.v.max(initial=-1)))

    def extent(self) -> Extent:
        """Return their number and their least and largest ends."""
        top = int(self.u.max(initial=-1)), int(self.v.max(initial=-1))
        least = int(min(self.u.min(), self.v.min())) if len(self.u) else 0
        return Extent(len(self.u), top, least)

    def mirrored(self, sign: int) -> Edges:
        """Return these edges, and unless the sign is 0 those across with their weights times it."""
        if not sign:
            return self
        across = np.flatnonzero(self.u != self.v)
        weights = self.weights
        if weights is not None:
            weights = np.concatenate([weights, weights[across] * sign])
        u, v = np.concatenate([self.u, self.v[across]]), np.concatenate([self.v, self.u[across]])
        return Edges(u, v, weights)

    @classmethod
    def join(cls, parts: list[Edges]) -> Edges:
        """Return the edges of all parts."""
        parts = [part for part in parts if len(part.u)]
        if len(parts) < 2:
            nothing = np.empty(0, np.int32)
            return parts[0] if parts else cls(nothing, nothing)
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

    Its ends are at least 0, and are renumbered here unless `ids` are given; `n` is the least number
    of vertices, and `held` the bytes that are allocated already and freed before a matrix is made.
    """
    u, v, weights = edges
    if options.renumber and ids is None:
        budget.require(48 * len(u), "its vertices", held=held)
        u, v, ids = renumbered(u, v)
    n = len(ids) if ids is not None else max(n, 1 + edges.largest())
    need = bytes_for_entries(len(u), n, values=weights is not None, held=held)
    budget.require(need, f"{n} vertices", NUMBERS_HINT, held)
    return Parsed(from_entries(u, v, weights, n, n, options.dup_op), undirected, ids)


@contextmanager
def errors_named(what: str) -> Iterator[None]:
    """Turn an error of reading an archive into `FileFormatError`, ``what: cause``.

    The libraries that read archives, trees and tables raise some fifteen types of error for damaged
    files, and none for anything else.
    """
    try:
        yield
    except (LagpuError, MemoryError):
        raise
    except Exception as error:
        fact = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
        if isinstance(error, RecursionError):
            fact = "it is nested too deeply"
        raise FileFormatError(f"{what}: {fact}.") from error


# ------------------------------------------------------------------------------------------
# Vertices that have names, or numbers with gaps, are numbered from 0. The ids ascend, numbers by
# value and text by its characters; ids without an order are in the order of first sight.


# Measured, docs/design/memory.md: a name of some characters in the tables, while it is ordered too.
BYTES_OF_NAME = 250
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")


def renumbered(u: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return the ends of edges, given by ids, as numbers from 0, and the id of each, ascending."""
    ids = distinct(np.concatenate([u, v]))
    if ids.dtype.kind in "iu" and ids.dtype.itemsize < 8:
        ids = ids.astype(np.int64)
    return _narrow(np.searchsorted(ids, u), ids), _narrow(np.searchsorted(ids, v), ids), ids


def _narrow(numbers: Array, ids: Array) -> Array:
    return numbers.astype(np.int32 if len(ids) < 2**31 else np.int64, copy=False)


class Names:
    """Numbers for names, which come part by part."""

    def __init__(self) -> None:
        self._place: defaultdict[Hashable, int] = defaultdict()
        self._place.default_factory = self._place.__len__

    def __len__(self) -> int:
        return len(self._place)

    def __iter__(self) -> Any:
        return iter(self._place)

    def codes(self, names: Iterable[Hashable], count: int) -> Array:
        """Return the number of each name, (count,), in the order of first sight so far."""
        return np.fromiter(map(self._place.__getitem__, names), np.int64, count)

    def ordered(self, u: Array, v: Array, *, utf8: bool = False) -> tuple[Array, Array, Array]:
        """Return the ends of edges as final numbers, and the id of each number.

        The ids are INT64 or UINT64 if all names are whole numbers, also in text, FP64 if all are
        numbers, else objects. With `utf8` the names are bytes, and the ids texts. The names are
        forgotten, to take less memory.
        """
        names: list[Any] = list(self._place)
        self._place.clear()
        if utf8:
            names = [name.decode() for name in names]
        numbers = whole_numbers(names)
        if numbers is None:
            ids = np.fromiter(names, object, len(names))
            try:
                order = sorted(range(len(names)), key=names.__getitem__)
            except TypeError:
                return u, v, ids
            rank = np.empty(len(ids), np.int64)
            rank[order] = np.arange(len(ids))
            ids = ids[order]
        else:  # names that are written differently may be the same number
            ids = distinct(numbers)
            rank = np.searchsorted(ids, numbers)
        return _narrow(rank[u], ids), _narrow(rank[v], ids), ids


def whole_numbers(names: list[Any]) -> Array | None:
    """Return names as numbers if all are whole and fit 64 bits (or all are floats), else None."""
    if all(isinstance(name, str) for name in names):
        if not all(_WHOLE.fullmatch(name) for name in names):
            return None
        names = [int(name) for name in names]
    elif any(isinstance(name, bool | np.bool_) for name in names):
        return None
    elif all(isinstance(name, float | np.floating) for name in names):
        return np.array(names, np.float64)
    elif not all(isinstance(name, int | np.integer) for name in names):
        return None
    least, most = min(names, default=0), max(names, default=0)
    if least >= -(2**63) and most < 2**63:
        return np.array(names, np.int64)
    return np.array(names, np.uint64) if least >= 0 and most < 2**64 else None


# ------------------------------------------------------------------------------------------
# Kinds of files by their first bytes, and the libraries that some need.


_PICTURE = "a picture. Give the graph that it shows"
_PACKED = "Unpack it first; gzip (.gz) and .tar.gz are read as they are"
# First bytes, and what they are the beginning of.
_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF document. Give the data that it shows"),
    (b"\x89PNG", _PICTURE),
    (b"\xff\xd8\xff", _PICTURE),
    (b"GIF8", _PICTURE),
    (b"BZh", f"packed by bzip2. {_PACKED}"),
    (b"\xfd7zXZ\x00", f"packed by xz. {_PACKED}"),
    (b"\x28\xb5\x2f\xfd", f"packed by zstd. {_PACKED}"),
    (b"7z\xbc\xaf\x27\x1c", f"packed by 7-Zip. {_PACKED}"),
    (b"\x93NUMPY", "one NumPy array (.npy). Use lagpu.io.from_edgelist(numpy.load(path))"),
    (b"SQLite format 3\x00", "an SQLite database. Export its table as CSV"),
    (b"ARROW1", "an Arrow (Feather) table. Write it as Parquet, or use from_pandas_edgelist"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file. Use scipy.io.loadmat and lagpu.io.from_scipy"),
    (b"\x80\x04\x95", "a Python pickle, which is not read. Use lagpu.io.from_scipy or the like"),
    (b"\x80\x05\x95", "a Python pickle, which is not read. Use lagpu.io.from_scipy or the like"),
    (b"\xff\xfe", "text in UTF-16. Convert the file to UTF-8"),
    (b"\xfe\xff", "text in UTF-16. Convert the file to UTF-8"),
)
_NX = "Read it by NetworkX and use lagpu.io.from_networkx"
_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(rb"\s*+(?:" + pattern + rb")", re.IGNORECASE | re.DOTALL), what)
    for pattern, what in (
        (rb"(?:<\?xml[^>]*>|<!--.*?-->|\s)*+<gexf\b", f"GEXF. {_NX}"),
        (rb"<!doctype html|<html\b", "a web page. Download the file that it offers"),
        (rb"<", "XML, but no GraphML"),
        (rb"(?:strict\s+)?(?:di)?graph\b[^\[\n]*\{", f"a DOT file of Graphviz. {_NX}"),
        (rb"\*(?:vertices|network)\b", f"a Pajek file. {_NX}"),
        (rb"[\[{]\s*[\"\[{}\]]", "JSON. Use lagpu.io.from_edgelist with what json.load returns"),
    )
)


def kind_of(start: bytes) -> str:
    """Return what the first bytes of a file are, with what to do; an empty string if unknown."""
    return next((what for mark, what in _BYTES if start.startswith(mark)), "")


def kind_of_text(data: bytes) -> str:
    """Return the same for a text."""
    start = data[: 1 << 14]
    return next((what for pattern, what in _TEXTS if pattern.match(start)), "")


# ------------------------------------------------------------------------------------------
# Libraries that some formats need, by the extra of lagpu that installs them.


_MODULES = {"nx": "networkx", "parquet": "pyarrow.parquet", "hdf5": "h5py", "igraph": "igraph"}


def needed(extra: str, what: str) -> Any:
    """Return the module of an extra; `what` begins the message of `BackendUnavailable`."""
    module = _MODULES[extra]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BackendUnavailable(
            f"{what} needs {package}, which is missing. "
            f'Install it with: pip install "lagpu[{extra}]"'
        ) from error
