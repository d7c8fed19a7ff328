"""What a statement of a fused loop moves, estimated by the counts in the loop's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lagpu.backends.gpu.kernels.functors import reads
from lagpu.backends.gpu.profile.unlogged import PRODUCTS
from lagpu.backends.gpu.storage.bitmap import stride
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.protocol import Statement
from lagpu.dtypes import BOOL, DType

__all__ = ["PieceMoves", "SearchMoves"]

_PLACE = 8  # bytes of a vertex and its degree in a list of vertices


class SearchMoves(NamedTuple):
    """What a level of a search moves; in bytes, but for `vertices`.

    Attributes
    ----------
    edge : int
        Of an edge that is looked at: its index, and the matrix' value if that is read.
    word : int
        Of presence bits that an edge leads to.
    bits : int
        Of all presence bits of the frontier.
    offset : int
        Of where a column begins.
    listed : int
        Of a vertex in the list of a frontier; a block has none.
    value : int
        Of a value that the frontier carries.
    vertices, positions : int
        How many the matrix and the frontier have.
    assigned : list of int
        Of a value that each of the other statements assigns.
    """

    edge: int
    word: int
    bits: int
    offset: int
    listed: int
    value: int
    vertices: int
    positions: int
    assigned: list[int]

    @classmethod
    def of(cls, statements: Sequence[Statement]) -> SearchMoves:
        """Return it."""
        product = next(k for k, x in enumerate(statements) if x.method in PRODUCTS)
        s = statements[product]
        assigned = [_value(x.w.dtype) for k, x in enumerate(statements) if k != product]
        if s.method == "matrix_mxm":
            A, (rows, n) = s.args[1], s.w.shape
            each = stride(rows)
            word, bits = min(each, 64) // 8, each * n // 8
            return cls(_index(A), word, bits, _offset(A), 0, 0, n, rows * n, assigned)
        A, u, how = s.args
        reads_u, reads_a = reads(how.semiring.multiply)[:: 1 if how.flip else -1]
        adds_up = not how.semiring.monoid.has_any_terminal
        carried = _value(u.dtype) if reads_u or adds_up else 0
        edge, offset, n = _index(A) + (_value_in(A) if reads_a else 0), _offset(A), u.size
        listed = _PLACE + offset
        return cls(edge, 4, 4 * nwords(n), offset, listed, carried, n, n, assigned)

    def push(self, edges: int, entered: int, found: int, alone: bool) -> int:
        """Return the bytes of a level that is pushed, by one block `alone` in shared memory."""
        listed = 0 if alone else self.listed
        if self.listed:
            places = 2 * self.offset * found + listed * (entered + found)
        else:
            places = (self.word + 2 * self.offset) * min(entered, self.vertices)
        looked = self.edge * edges + min(self.word * edges, self.bits)
        return looked + places + self.value * (entered + found)

    def pull(self, edges: int, entered: int, found: int, left: int) -> int:
        """Return the bytes of a level that is pulled; `left` had no entry before."""
        columns = 2 * self.offset * min(left, self.vertices)
        return self.edge * edges + columns + 3 * self.bits + self.value * (entered + found)


class PieceMoves(NamedTuple):
    """What a statement of a program moves in an iteration; in bytes, but for `columns`.

    Attributes
    ----------
    bits : int
        Of the presence bits of its vectors.
    values : int
        Of one value of each of them.
    edge, offset : int
        As in `SearchMoves`; 0 if it is no product with a matrix.
    columns : int
        How many a pull looks at.
    """

    bits: int
    values: int
    edge: int = 0
    offset: int = 0
    columns: int = 0

    @classmethod
    def of(cls, s: Statement) -> PieceMoves:
        """Return it."""
        seen = {id(v): v for v in (s.w, *s.args) if type(v) is VectorStore}
        values = sum(_value(v.dtype) for v in seen.values())
        mask = s.desc.mask
        if mask is not None and id(mask) not in seen:
            seen[id(mask)] = mask
            values += 0 if s.desc.structure else _value(mask.dtype)
        bits = sum(4 * nwords(v.size) for v in seen.values())
        if s.method != "mxv":
            return cls(bits, values)
        A, _, how = s.args
        sums = _value(how.result)  # which stand in a vector of their own
        reads_a = reads(how.semiring.multiply)[1 if how.flip else 0]
        edge, columns = _index(A) + (_value_in(A) if reads_a else 0), A.shape[how.transpose]
        return cls(bits + 4 * nwords(s.w.size), values + sums, edge, _offset(A), columns)

    def moved(self, edges: int | None, entered: int, found: int, pulled: bool) -> int:
        """Return the bytes; the vectors have as many values as went in or came out."""
        columns = self.columns if pulled else min(entered, self.columns)
        whole = self.bits + self.values * max(entered, found)
        return whole + self.edge * (edges or 0) + 2 * self.offset * columns


def _index(A: MatrixStore) -> int:
    return int(A.row_idx.dtype.itemsize)


def _offset(A: MatrixStore) -> int:
    return int(A.col_ptr.dtype.itemsize)


def _value_in(A: MatrixStore) -> int:
    return 0 if A.values is None else A.dtype.numpy.itemsize


def _value(dtype: DType) -> int:
    """Return the bytes of a value; Boolean ones are taken to be all equal, so none is stored."""
    return 0 if dtype is BOOL else dtype.numpy.itemsize
