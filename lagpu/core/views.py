"""``A.T``: the transpose of a matrix as an operand, and what it shares with the matrix."""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any, NoReturn

from lagpu.algebra.operators import Semiring
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import as_semiring
from lagpu.core.expr import Call, is_operand
from lagpu.core.hints import for_matrix, spoken
from lagpu.core.matmul import MatMul, product
from lagpu.core.pairs import MatrixOperand
from lagpu.dtypes import DType
from lagpu.host import display

if TYPE_CHECKING:
    from lagpu.core.matrix import Matrix
    from lagpu.core.vector import Vector

__all__ = ["MatrixView", "TransposedMatrix", "mxv"]


def mxv(
    self: Any,
    u: Vector,
    op: Semiring | str,
    *,
    kernel: str | None = None,
    policy: str | None = None,
) -> Call:
    """``w[i] = (+)_j A[i, j] (x) u[j]``, the same as ``op(A @ u)``.

    Parameters
    ----------
    u : Vector, (ncols,)
        The vector.
    op : Semiring
        The algebra.
    kernel, policy : str, optional
        Strategy or choice of strategies, on a backend that has them.
    """
    return product(self, u, as_semiring(op), False, _getframe(1), kernel, policy)


class MatrixView(MatrixOperand):
    """What is read as a matrix and stored as something else."""

    __slots__ = ()
    ndim = 2
    _instead = for_matrix

    def __repr__(self) -> str:
        return display.matrix_text(self)

    def _repr_html_(self) -> str:
        return display.matrix_html(self)

    def _output(self, value: Any) -> str:
        return "It is a view: write to what it is made of."

    def __call__(self, *how: Any, **more: Any) -> NoReturn:
        """Refuse ``A.T(mask) << C``."""
        self.refuse("is not written to", MatrixView._output(self, None))

    def __matmul__(self, other: Any) -> MatMul:
        return MatMul(self, other)

    def __rmatmul__(self, other: Any) -> MatMul:
        return MatMul(other, self)

    mxv = mxv

    def new(self, dtype: Any = None, *, name: str | None = None) -> Matrix:
        """Return a matrix of its own with these entries; it does not follow what is viewed."""
        made: Matrix = self.copying().new(dtype, name=name)
        return made

    def copying(self) -> Call:
        """Return the deferred matrix of these entries."""
        raise NotImplementedError


class TransposedMatrix(MatrixView):
    """``A.T``: a view of a matrix, for products and for ``A.T.new()``."""

    __slots__ = ("stored",)
    _hint = "Use A.T.new() to make a matrix of it."

    def __init__(self, A: Matrix) -> None:
        self.stored = A

    @property
    def name(self) -> str:
        """Name of the matrix with a prime."""
        return f"{self.stored.name}'"

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return self.stored.ncols

    @property
    def ncols(self) -> int:
        """Number of columns."""
        return self.stored.nrows

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return self.stored.nvals

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.stored.dtype

    @property
    def backend(self) -> Backend:
        """Where the matrix lives."""
        return self.stored.backend

    @property
    def T(self) -> Matrix:
        """The matrix itself."""
        return self.stored

    def _output(self, value: Any) -> str:
        it = spoken(value)
        if is_operand(value, 2):
            it = it.removesuffix(".T") if it.endswith(".T") else f"{it}.T"
        return f"It is a view: write {spoken(self.stored)} << {it}."

    def copying(self) -> Call:
        """Return the deferred transposition."""
        A = self.stored
        return Call("matrix_transpose", (A,), (A.data,), A.dtype, self.shape, (self,))
