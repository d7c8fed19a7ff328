"""Compressed sparse columns on the host: sort the endpoints of edges and drop duplicates.

Generators and readers use this form and call `Matrix.from_csc` once. NumPy sorts keys of 64 bits by
vector instructions, 20 to 40 ns for each entry on one core; where they do not fit, SciPy converts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu import backends
from lagpu.algebra.operators import BinaryOp
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix
from lagpu.core.arguments import from_rows, one_if_alike
from lagpu.dtypes import Array, DType, index_kind, lookup
from lagpu.errors import InvalidValue
from lagpu.host import memory
from lagpu.host.columns import firsts

_CHUNK = 1 << 14  # edges at a time, so that temporaries stay in the cache
_COUNTED = 1 << 22  # entries up to which counting is faster than sorting keys


@dataclass(frozen=True, eq=False)
class CSC:
    """A sparse matrix as plain NumPy arrays; row i, column j is the edge i -> j."""

    nrows: int
    ncols: int
    col_ptr: Array  # whole numbers, (ncols + 1,)
    row_idx: Array  # (nvals,), ascending and distinct within a column
    values: Any = np.True_  # (nvals,), or a NumPy scalar: the value of every entry, `iso`
    symmetric: bool | None = None  # True if known to equal its transpose to the bit
    by_rows: bool = False  # whether these are the columns of the transpose, for `matrix` alone

    @classmethod
    def of(cls, A: Matrix) -> CSC:
        """Return a copy of a matrix on any backend."""
        col_ptr, row_idx, values = A.to_csc()
        rows = row_idx.astype(index_kind(A.nrows), copy=False)
        return cls(A.nrows, A.ncols, col_ptr, rows, _iso(values))

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return lookup(self.values.dtype)

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return len(self.row_idx)

    @property
    def iso(self) -> bool:
        """Whether one scalar is the value of every entry."""
        return not isinstance(self.values, np.ndarray)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        values = 0 if self.iso else self.values.nbytes
        return int(self.col_ptr.nbytes + self.row_idx.nbytes + values)

    @property
    def is_pattern(self) -> bool:
        """Whether all values are True: places say all."""
        return self.dtype.is_bool and bool(np.all(self.values))

    def columns(self) -> Array:
        """Return the column of every entry, (nvals,)."""
        return np.repeat(np.arange(self.ncols, dtype=index_kind(self.ncols)), np.diff(self.col_ptr))

    def dense_values(self) -> Array:
        """Return a value for each entry, (nvals,), also for an iso-valued matrix."""
        return np.full(self.nvals, self.values) if self.iso else self.values

    def entries(self, *, values: bool | None = None) -> list[Array]:
        """Return row and column of every entry, and its value; by default unless all are True."""
        with_values = not self.is_pattern if values is None else values
        return [self.row_idx, self.columns(), *([self.dense_values()] if with_values else [])]

    def matrix(self, backend: str | Backend | None = None) -> Matrix:
        """Return the matrix on a backend."""
        arrays = (self.col_ptr, self.row_idx, self.values)
        shape = (self.nrows, self.ncols)
        place = backends.choose(None, backend)
        if self.by_rows:
            data = from_rows(place, *arrays, self.dtype, shape)
            return Matrix._of(data, self.dtype, shape, place, None)
        return Matrix._from_csc(place, arrays, shape, self.dtype, symmetric=self.symmetric)


def bytes_for_entries(nvals: int, ncols: int, *, values: bool = False, held: int = 0) -> int:
    """Return an upper bound on what `from_entries` and then a matrix on the cpu backend take."""
    # `held` bytes are allocated already and freed before the matrix is made.
    index = 4 if max(nvals, ncols) < 2**31 else 8
    sorting = nvals * (3 * index + (28 if values else 9)) + 3 * index * (ncols + 1)
    # Measured, docs/design/memory.md: the most of any backend.
    made = nvals * ((46 if values else 22) + index - 4) + 27 * (ncols + 1)
    return max(sorting, made - held)


def from_entries(
    rows: Array, cols: Array, values: Array | None, nrows: int, ncols: int,
    dup_op: BinaryOp | None = None, *, symmetric: bool = False,
) -> CSC:  # fmt: skip
    """Return the matrix of some entries; duplicates are summed in its type, or merged if all True.

    Entries come in any order; without values all are True. `dup_op` combines duplicates instead of
    summing them, in the order in which they are given. `symmetric` says that each entry is given
    with the same value across the diagonal too; the matrix knows that it is symmetric then, unless
    duplicates may be summed in another order there.
    """
    values = None if values is None else values.astype(lookup(values.dtype).numpy, copy=False)
    given, width = len(rows), (nrows - 1).bit_length()
    places = 0 if values is None else given.bit_length()
    if 0 < nrows + ncols <= given <= _COUNTED:
        csc = _from_counts(rows, cols, values, (nrows, ncols), dup_op)
    elif (ncols - 1).bit_length() + width + places < 64:
        csc = _from_keys(rows, cols, values, (nrows, ncols), (width, places), dup_op)
    else:
        if values is not None and dup_op is not None:
            memory.require(48 * given, "entries that are given twice")
            rows, cols, values = dup_op.merged(rows, cols, values, lookup(values.dtype))
        data = np.ones(len(rows), np.int8) if values is None else values
        entries = sp.coo_array((data, (rows, cols)), shape=(nrows, ncols)).tocsc()
        csc = compress(entries, pattern=values is None)
    known = symmetric and (values is None or (csc.nvals == given and _is_exact(csc.values)))
    return replace(csc, symmetric=True) if known else csc


def _from_counts(
    rows: Array, cols: Array, values: Array | None, shape: tuple[int, int], dup_op: BinaryOp | None
) -> CSC:
    """Do what `from_entries` does, by counting rows, then columns: fast where caches hold all."""
    data = np.ones(len(rows), np.int8) if values is None else values
    entries = sp.coo_array((data, (rows, cols)), shape=shape)
    entries.has_canonical_format = True  # duplicates stay, in their order
    found = entries.tocsr().tocsc()
    col_ptr, row_idx, data = found.indptr.astype(np.int64), found.indices, found.data
    new = firsts(np, row_idx)
    new[col_ptr[col_ptr < len(new)]] = True
    if not new.all():
        starts = np.flatnonzero(new)
        row_idx, col_ptr = row_idx[starts], np.searchsorted(starts, col_ptr)
        data = data if values is None else _folded(data, starts, dup_op)
    kept = row_idx.astype(index_kind(shape[0]), copy=False)
    return CSC(*shape, col_ptr, kept, np.True_ if values is None else _iso(data))


def _folded(values: Array, starts: Array, dup_op: BinaryOp | None) -> Array:
    """Return one value for each run of duplicates, which begin at `starts`."""
    if dup_op is not None:
        return dup_op.fold_runs(values, starts, lookup(values.dtype))
    with np.errstate(all="ignore"):  # inf - inf
        return np.add.reduceat(values, starts, dtype=values.dtype)


def _from_keys(
    rows: Array, cols: Array, values: Array | None, shape: tuple[int, int], bits: tuple[int, int],
    dup_op: BinaryOp | None,
) -> CSC:  # fmt: skip
    """Do what `from_entries` does, by keys of 64 bits: column, row, and place of values."""
    (nrows, ncols), (width, places) = shape, bits
    keys = cols.astype(np.int64)
    keys <<= width
    keys |= rows
    if values is not None:
        keys <<= places
        keys |= np.arange(len(keys))
    keys.sort()  # by vector instructions: faster than what SciPy does, or a stable sort
    if values is not None:
        values = values[keys & ((1 << places) - 1)]
        keys >>= places
    new = firsts(np, keys)
    if not new.all():
        starts = np.flatnonzero(new)
        keys = keys[starts]
        values = values if values is None else _folded(values, starts, dup_op)
    row_idx = (keys & ((1 << width) - 1)).astype(index_kind(nrows))
    keys >>= width
    col_ptr = np.zeros(ncols + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=ncols), out=col_ptr[1:])
    return CSC(nrows, ncols, col_ptr, row_idx, np.True_ if values is None else _iso(values))


def column_blocks(col_ptr: Array, entries: int = 1 << 18) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of runs of columns with about `entries` entries each."""
    cuts = np.searchsorted(col_ptr, np.arange(entries, int(col_ptr[-1]), entries))
    ends = np.unique(np.append(cuts, len(col_ptr) - 1)).tolist()
    yield from zip([0, *ends[:-1]], ends, strict=True)


def undirected(u: Array, v: Array, n: int) -> CSC:
    """Return the symmetric BOOL matrix of edges {u, v}, without self-loops and duplicates."""
    # Each edge is there in either order, any number of times; `n` is at most 2**31.
    return from_edge_keys(edge_keys(u, v), n)


def edge_keys(u: Array, v: Array) -> Array:
    """Return one INT64 for each edge {u, v}: the larger vertex, then the smaller in 32 bits."""
    keys: Array = np.maximum(u, v).astype(np.int64)
    keys <<= 32
    keys |= np.minimum(u, v)
    return keys


def from_edge_keys(keys: Array, n: int) -> CSC:
    """Return the matrix of `undirected` from `edge_keys`, which are overwritten."""
    # Pass a temporary, so that the keys can be freed half-way. Only the upper triangle is sorted,
    # in place, and the lower one is its transpose: about 20 bytes an edge at the peak, 8 of them
    # the result.
    keys.sort()
    keys = _simple_edges(keys)
    above = np.searchsorted(keys, np.arange(n + 1, dtype=np.int64) << 32)
    rows = keys.astype(np.int32)  # the low 32 bits: the smaller vertex
    del keys
    # SciPy takes the wider of both index types; 64 bits would double the time and memory.
    narrow = above.astype(index_kind(len(rows)))
    upper = sp.csc_array((np.ones(len(rows), np.int8), rows, narrow), shape=(n, n))
    lower = upper.tocsr()  # row i of the upper triangle is column i of the lower one
    counts = np.column_stack([np.diff(above), np.diff(lower.indptr)])  # of each column
    own = np.repeat(np.tile([True, False], n), counts.ravel())
    row_idx = np.empty(2 * len(rows), np.int32)
    np.place(row_idx, own, rows)
    np.place(row_idx, np.logical_not(own, out=own), lower.indices)
    return CSC(n, n, above + lower.indptr, row_idx, symmetric=True)


def _simple_edges(keys: Array) -> Array:
    """Return the distinct keys but self-loops, moved to the front of a sorted array."""
    kept = 0
    last = -1
    for start in range(0, len(keys), _CHUNK):
        part = keys[start : start + _CHUNK]
        new = (part >> 32) != (part & 0xFFFFFFFF)
        new[1:] &= part[1:] != part[:-1]
        new[0] &= part[0] != last
        last = part[-1]
        chosen = part[new]
        keys[kept : kept + len(chosen)] = chosen  # only overwrites keys that have been read
        kept += len(chosen)
    return keys[:kept]


def symmetrise(csc: CSC, what: str) -> CSC:
    """Return the union of a matrix with its transpose, if that fits."""
    # `InvalidValue` if it is not square, or an edge has a different value in each direction.
    memory.require(bytes_for_entries(2 * csc.nvals, csc.ncols, values=not csc.iso), what)
    require_reverses(what, csc.nrows, csc.ncols)
    n = csc.nrows
    if csc.iso:
        rows, cols = csc.row_idx, csc.columns()
        both = (np.concatenate([rows, cols]), np.concatenate([cols, rows]))
        merged = replace(from_entries(*both, None, n, n), values=csc.values)
    else:  # SciPy's transpose is sorted
        back = sp.csc_array((csc.values, csc.row_idx, csc.col_ptr), shape=(n, n)).T.tocsc()
        merged, conflict = united(csc, CSC(n, n, back.indptr, back.indices, back.data))
        if conflict is not None:
            raise InvalidValue(f"{what}: {different(*conflict)}")
    return replace(merged, symmetric=_is_exact(csc.values) or None)


def require_reverses(what: str, nrows: int, ncols: int) -> None:
    """Raise `InvalidValue` unless a matrix is square."""
    if nrows != ncols:
        fact = f"nrows {nrows} != ncols {ncols}, so edges have no reverse"
        raise InvalidValue(f"{what}: {fact}. Leave `directed` out.")


def different(i: int, j: int, value: Any, other: Any) -> str:
    """Return that an edge has two values, and what to do, for a message."""
    return (
        f"edge {i} -> {j} has value {value}, {j} -> {i} has {other}. Give directed=True, or make "
        "them equal."
    )


def united(csc: CSC, back: CSC) -> tuple[CSC, tuple[int, int, Any, Any] | None]:
    """Return the union of two matrices, with the values of the first where both have an entry."""
    # Also return the first place where they differ: (row, column, value, other value), or None.
    rows, cols, values = csc.row_idx, csc.columns(), csc.dense_values()
    back_rows, back_cols, back_values = back.row_idx, back.columns(), back.dense_values()
    # Both lists ascend by (column, row), so bisection finds each entry of the other one.
    keys = cols.astype(np.int64) * csc.nrows + rows
    back_keys = back_cols.astype(np.int64) * csc.nrows + back_rows
    at = np.minimum(np.searchsorted(keys, back_keys), max(len(keys) - 1, 0))
    known = keys[at] == back_keys if len(keys) else np.zeros(len(back_keys), bool)
    both = np.flatnonzero(known)
    differs = both[values[at[both]] != back_values[both]]
    conflict = None
    if differs.size:
        k = differs[0]
        conflict = int(back_rows[k]), int(back_cols[k]), values[at[k]], back_values[k]
    pairs = (rows, back_rows), (cols, back_cols), (values, back_values)
    rows, cols, values = (np.concatenate([own, other[~known]]) for own, other in pairs)
    return from_entries(rows, cols, values, csc.nrows, csc.ncols), conflict


def known_symmetric(csc: CSC) -> CSC:
    """Return a matrix that knows it is symmetric, if it equals its transpose to the bit."""
    same = csc.nrows == csc.ncols and _is_exact(csc.values) and asymmetry(csc) is None
    return replace(csc, symmetric=True) if same else csc


def _is_exact(values: Any) -> bool:
    """Return True if equal values are alike to the bit: no NaN, and no 0.0, which has two signs."""
    return values.dtype.kind != "f" or not (np.isnan(values) | (values == 0)).any()


def asymmetry(csc: CSC) -> tuple[int, int] | None:
    """Return the place of an entry of a square matrix without an equal one across, or None."""
    n = csc.nrows
    data = np.arange(csc.nvals)  # where the entry across is stored
    here = sp.csc_array((data, csc.row_idx, csc.col_ptr), shape=(n, n))
    across = here.T.tocsc()  # sorted
    pairs = ((across.indptr, here.indptr), (across.indices, here.indices))
    same = all(np.array_equal(*pair) for pair in pairs)
    if same and csc.iso:
        return None
    if same:
        alone = csc.values[across.data] != csc.values
    else:
        rows, cols = csc.row_idx.astype(np.int64), csc.columns().astype(np.int64)
        alone = ~np.isin(rows * n + cols, cols * n + rows)
    if not alone.any():
        return None
    k = int(np.argmax(alone))
    return int(csc.row_idx[k]), int(np.searchsorted(csc.col_ptr, k, "right")) - 1


def compress(entries: Any, *, pattern: bool = False) -> CSC:
    """Return a SciPy CSC array as `CSC`: 32-bit rows if they fit, equal values as one scalar."""
    # Its rows may be in any order, and repeated; a `pattern` is True everywhere.
    entries.sum_duplicates()  # sorts too, unless the array is known to be sorted
    nrows, ncols = entries.shape
    rows = entries.indices.astype(index_kind(nrows), copy=False)
    col_ptr = entries.indptr.astype(np.int64, copy=False)
    return CSC(nrows, ncols, col_ptr, rows, np.True_ if pattern else _iso(entries.data))


def _iso(values: Array) -> Any:
    """Return the value of all entries as a scalar if it is the same, else all values."""
    values = values.astype(lookup(values.dtype).numpy, copy=False)
    if values.size < 2:
        return values[0] if values.size else values.dtype.type(1)
    return one_if_alike(values)
