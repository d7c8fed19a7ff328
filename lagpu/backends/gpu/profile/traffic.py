"""Estimate the bytes that statements of a fused loop move, from the counts in its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lagpu.backends.gpu.storage.bitmap import stride
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.dtypes import BOOL, DType
from lagpu.operations import Multiply, Product, Statement, operands_of

__all__ = ["SearchTraffic", "StatementTraffic", "value_bytes"]

_LISTED_VERTEX = 8  # bytes of a vertex and its degree in a list of vertices


class SearchTraffic(NamedTuple):
    """Bytes that a level of a search moves, except `vertices` and `positions`, which are counts.

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
        Of a vertex in the list of a frontier; 0 for a bitmap matrix, which has no lists.
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
    def of(cls, statements: Sequence[Statement]) -> SearchTraffic:
        """Return it."""
        made = next(s for s in statements if isinstance(s.operation, Multiply))
        assigned = [value_bytes(s.out.dtype) for s in statements if s is not made]
        operation = made.operation
        assert isinstance(operation, Multiply)
        A, u, product = operation.matrix.csc(), operation.operand, operation.product
        if not isinstance(u, VectorStore):
            rows, n = u.shape
            each = stride(rows)
            word, bits = min(each, 64) // 8, each * n // 8
            return cls(_index(A), word, bits, _offset(A), 0, 0, n, rows * n, assigned)
        return cls.of_vector(A, product, u.dtype, u.size, assigned)

    @classmethod
    def of_vector(
        cls, A: CscMatrix, product: Product, dtype: DType, n: int, assigned: list[int]
    ) -> SearchTraffic:
        """Return it, where the frontier is a vector of n values of a type."""
        reads_u, reads_a = product.semiring.multiply.reads[:: 1 if product.flip else -1]
        adds_up = not product.semiring.monoid.has_any_terminal
        carried = value_bytes(dtype) if reads_u or adds_up else 0
        edge, offset = _index(A) + (_value_in(A) if reads_a else 0), _offset(A)
        listed = _LISTED_VERTEX + offset
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


class StatementTraffic(NamedTuple):
    """Bytes that a statement of a generated loop moves in an iteration, except `columns`, a count.

    Attributes
    ----------
    bits : int
        Of the presence bits of its vectors.
    values : int
        Of one value of each of them.
    edge, offset : int
        As in `SearchTraffic`; 0 if it is no product with a matrix.
    columns : int
        How many a pull looks at.
    """

    bits: int
    values: int
    edge: int = 0
    offset: int = 0
    columns: int = 0

    @classmethod
    def of(cls, s: Statement) -> StatementTraffic:
        """Return it."""
        operation = s.operation
        seen = {id(v): v for v in (s.out, *operands_of(operation)) if type(v) is VectorStore}
        values = sum(value_bytes(v.dtype) for v in seen.values())
        mask = s.desc.mask
        if mask is not None and id(mask) not in seen:
            seen[id(mask)] = mask
            values += 0 if s.desc.structure else value_bytes(mask.dtype)
        bits = sum(4 * nwords(v.size) for v in seen.values())
        if not isinstance(operation, Multiply):
            return cls(bits, values)
        A, product = operation.matrix.csc(), operation.product
        sums = value_bytes(product.result)  # which are in a vector of their own
        reads_a = product.semiring.multiply.reads[1 if product.flip else 0]
        edge, columns = _index(A) + (_value_in(A) if reads_a else 0), A.shape[product.transpose]
        return cls(bits + 4 * nwords(s.out.size), values + sums, edge, _offset(A), columns)

    def moved(self, edges: int | None, entered: int, found: int, pulled: bool) -> int:
        """Return the bytes; the vectors have as many values as went in or came out."""
        columns = self.columns if pulled else min(entered, self.columns)
        whole = self.bits + self.values * max(entered, found)
        return whole + self.edge * (edges or 0) + 2 * self.offset * columns


def _index(A: CscMatrix) -> int:
    return int(A.row_idx.dtype.itemsize)


def _offset(A: CscMatrix) -> int:
    return int(A.col_ptr.dtype.itemsize)


def _value_in(A: CscMatrix) -> int:
    return 0 if A.values is None else A.dtype.numpy.itemsize


def value_bytes(dtype: DType) -> int:
    """Return the bytes of a value; Boolean ones are taken to be all equal, so none is stored."""
    return 0 if dtype is BOOL else dtype.numpy.itemsize
