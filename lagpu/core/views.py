"""Views that are read as matrices: the transpose ``A.T``, and the selection ``f.selection()``.

A selection is the matrix that selects the rows listed by a vector.
"""

from __future__ import annotations

from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import semiring
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import as_semiring, as_size
from lagpu.core.expr import Call, Mask, is_operand, temporary
from lagpu.core.forms import TransposedForms
from lagpu.core.hints import ComputedForms, name_of, part_of
from lagpu.core.infix import Arithmetic, MatrixOperand, vector_product
from lagpu.core.recorder import flush, why_unreadable
from lagpu.core.types import VectorLike
from lagpu.dtypes import BOOL, DType
from lagpu.errors import DomainMismatch, NotSupported
from lagpu.host import display
from lagpu.operations import SelectionToMatrix

Array = np.ndarray[Any, Any]


def mxv(
    self: Any,
    u: VectorLike,
    op: Semiring | str = semiring.plus_times,
    *,
    kernel: str | None = None,
    policy: str | None = None,
) -> Call:
    """Multiply by a vector, as ``op(A @ u)``: ``w[i] = ⊕ⱼ A[i, j] ⊗ u[j]``.

    Parameters
    ----------
    u : Vector, (ncols,)
        The vector.
    op : Semiring
        The algebra.
    kernel, policy : str, optional
        The strategy, or the rule that chooses one, on a backend that offers them.
    """
    return vector_product(self, u, as_semiring(op), False, _getframe(1), kernel, policy)


class MatrixView(Arithmetic, MatrixOperand, ComputedForms):
    """An object that is read as a matrix and stored as something else."""

    __slots__ = ()
    ndim = 2
    _why_unreadable = why_unreadable

    def __repr__(self) -> str:
        return display.matrix_text(self)

    def _repr_html_(self) -> str:
        return display.matrix_html(self)

    def _output(self, value: Any) -> str:
        return "It is a view. Write to the viewed object instead."

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse ``A.T(mask) << C``."""
        self.refuse("cannot be written to", MatrixView._output(self, None))

    mxv = mxv

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return a new `Matrix` with the entries that the view has now, or those under a mask."""
        return self.copying().new(dtype, mask=mask, name=name)

    def copying(self) -> Call:
        """Return the deferred copy of the entries as a matrix."""
        raise NotImplementedError

    def _computed(self) -> Any:
        """Return the entries as a matrix, for what a view itself does not have."""
        return temporary(self.copying())

    def __getitem__(self, where: Any) -> Any:
        return part_of(self, self._computed()[where])


class TransposedMatrix(TransposedForms, MatrixView):
    """The transpose ``A.T``: a view of a matrix, for products and for ``A.T.new()``."""

    __slots__ = ("stored",)
    _hint = "Use A.T.new() to make a matrix of it."

    def __init__(self, A: Any) -> None:
        self.stored = A

    @property
    def name(self) -> str:
        """Name of the matrix with a prime."""
        return f"{self.stored.name}'"

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return int(self.stored.ncols)

    @property
    def ncols(self) -> int:
        """Number of columns."""
        return int(self.stored.nrows)

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return int(self.stored.nvals)

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        found: DType = self.stored.dtype
        return found

    @property
    def backend(self) -> Backend:
        """Where the matrix lives."""
        found: Backend = self.stored.backend
        return found

    @property
    def T(self) -> Any:
        """The matrix itself."""
        return self.stored

    def _output(self, value: Any) -> str:
        it = name_of(value)
        if is_operand(value, 2):
            it = it.removesuffix(".T") if it.endswith(".T") else f"{it}.T"
        return f"It is a view. Write {name_of(self.stored)} << {it}."

    def copying(self) -> Call:
        """Return the deferred transpose."""
        call: Call = self.stored.copying(transposed=True)
        return call


class SelectionMatrix(MatrixView):
    """A BOOL matrix with an entry (f[j], j) for each entry j of a vector: ``f.selection(nrows)``.

    A value of `f` outside ``0 .. nrows-1`` selects nothing: its column is empty.
    A product reads `f` as it is when the statement runs; nothing is stored.

    Parameters
    ----------
    f : Vector, (ncols,)
        Row numbers, of an integer type.
    nrows : int, optional
        Number of rows, by default the size of `f`.

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

    def __init__(self, f: VectorLike, nrows: Any = None) -> None:
        if f.dtype.is_float or f.dtype.is_bool:
            raise DomainMismatch(
                f"selection: {name_of(f)} is of type {f.dtype}, and row numbers are integers. "
                f"Convert it with {name_of(f)}.dup('INT64')."
            )
        self.operand = f
        self._nrows = None if nrows is None else as_size(nrows, "selection")

    @property
    def name(self) -> str:
        """``selection(f)`` with the name of the vector."""
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
        """Number of entries now: the entries of the vector whose value is a row."""
        flush(self.backend)
        f = self.operand
        return len(self._rows(f.backend.vector_to_coo(f.data)[1])[1])

    @property
    def dtype(self) -> DType:
        """Type of the values, BOOL."""
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
        """Raise `NotSupported`: a selection has no matrix to hand to a backend."""
        me = name_of(self)
        raise NotSupported(
            f"{me}: is a view of {name_of(self.operand)}, only for products with a vector. "
            f"Make a matrix with {me}.new()."
        )

    def copying(self, transposed: bool = False) -> Call:
        """Return the deferred copy of the entries as a matrix, or its transpose."""
        f, shape = self.operand, self.shape[::-1] if transposed else self.shape
        operation = SelectionToMatrix(f.data, self.nrows, transposed)
        return Call(operation, (f,), BOOL, shape, (self.T if transposed else self,))

    def _rows(self, values: Array) -> tuple[Array, Array]:
        """Return (which values are row numbers, those row numbers)."""
        rows = values.astype(np.int64)  # 2**63 and more become negative
        inside = (rows >= 0) & (rows < self.nrows)
        return inside, rows[inside]

    # A view has no storage of its own, so `display` calls these two.
    def _form(self) -> str:
        return f"selection of {self.operand.name}"

    def _preview(self, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""
        f = self.operand
        cols, values = f.backend.vector_head(f.data, ncols)
        inside, rows = self._rows(values)
        cols = cols[inside]
        kept = (rows < nrows) & (cols < ncols)
        return rows[kept], cols[kept], np.ones(np.count_nonzero(kept), bool)


class TransposedSelection(TransposedMatrix):
    """The transpose ``P.T`` of a selection `P`: a view of the same vector."""

    __slots__ = ()
    _output = MatrixView._output
