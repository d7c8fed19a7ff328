"""``f.selection()``: the matrix that a vector of row numbers selects with, as a live view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.arguments import as_size
from lagpu.core.expr import Call
from lagpu.core.hints import spoken
from lagpu.core.views import MatrixView, TransposedMatrix
from lagpu.dtypes import BOOL, DType
from lagpu.errors import DomainMismatch, NotSupported

if TYPE_CHECKING:
    from lagpu.core.vector import Vector

__all__ = ["SelectionMatrix", "TransposedSelection"]

Array = np.ndarray[Any, Any]


class SelectionMatrix(MatrixView):
    """``f.selection(nrows)``: BOOL, with an entry (f[j], j) for each entry j of a vector `f`.

    A value of `f` outside ``0 .. nrows-1`` selects nothing: its column is empty.
    A product reads `f` as it is when the statement runs; nothing is stored.

    Parameters
    ----------
    f : Vector, (ncols,)
        Row numbers, of an integer type.
    nrows : int, optional
        By default the size of `f`.

    Raises
    ------
    DomainMismatch
        If `f` is not of an integer type.

    Notes
    -----
    ``u @ P`` is a gather, ``w[j] = u[f[j]]``; ``P @ u`` a scatter, where w[i] is the sum over all j
    with ``f[j] = i``.
    """

    __slots__ = ("_nrows", "operand")
    _hint = "Use P.new() to make a matrix of it."

    def __init__(self, f: Vector, nrows: Any = None) -> None:
        if f.dtype.is_float or f.dtype.is_bool:
            raise DomainMismatch(
                f"selection: {spoken(f)} is of type {f.dtype}, and its values are to be row "
                f"numbers. Make integers of them with {spoken(f)}.dup('INT64')."
            )
        self.operand = f
        self._nrows = None if nrows is None else as_size(nrows, "selection")

    @property
    def name(self) -> str:
        """Name, with that of the vector."""
        return f"selection({self.operand.name})"

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return self.operand.size if self._nrows is None else self._nrows

    @property
    def ncols(self) -> int:
        """Number of columns: the size of the vector."""
        return self.operand.size

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """Number of entries now: those of the vector that are rows."""
        return len(self._rows(self.operand.to_coo()[1])[1])

    @property
    def dtype(self) -> DType:
        """BOOL."""
        return BOOL

    @property
    def backend(self) -> Backend:
        """Where the vector lives."""
        return self.operand.backend

    @property
    def T(self) -> TransposedSelection:
        """The transpose: another view of the same vector."""
        return TransposedSelection(self)

    @property
    def stored(self) -> SelectionMatrix:
        """The view itself."""
        return self

    @property
    def data(self) -> NoReturn:
        """Refused: there is no matrix to hand to a backend."""
        me = spoken(self)
        raise NotSupported(
            f"{me}: is a view of {spoken(self.operand)}, for products with a vector. "
            f"For anything else write {me}.new(), a matrix."
        )

    def copying(self, turned: bool = False) -> Call:
        """Return the deferred matrix of these entries, or its transpose."""
        f, shape = self.operand, self.shape[::-1] if turned else self.shape
        shown = self.T if turned else self
        return Call("matrix_selection", (f,), (f.data, self.nrows, turned), BOOL, shape, (shown,))

    def _rows(self, values: Array) -> tuple[Array, Array]:
        """Return which values are rows, and those."""
        rows = values.astype(np.int64)  # 2**63 and more become negative
        inside = (rows >= 0) & (rows < self.nrows)
        return inside, rows[inside]

    # What `display` asks of a view, which has no storage.
    def _form(self) -> str:
        return f"selection of {self.operand.name}"

    def _corner(self, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""
        f = self.operand
        cols, values = f.backend.vector_head(f.data, ncols)
        inside, rows = self._rows(values)
        cols = cols[inside]
        kept = (rows < nrows) & (cols < ncols)
        return rows[kept], cols[kept], np.ones(np.count_nonzero(kept), bool)


class TransposedSelection(TransposedMatrix):
    """``P.T`` of a selection `P`: a view of the same vector."""

    __slots__ = ()
    stored: SelectionMatrix  # type: ignore[assignment]  # it has what a transpose asks for

    def __init__(self, P: SelectionMatrix) -> None:
        self.stored = P

    _output = MatrixView._output

    def copying(self) -> Call:
        """Return the deferred matrix of these entries."""
        return self.stored.copying(turned=True)
