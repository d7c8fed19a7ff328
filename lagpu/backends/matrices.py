"""What a backend does with whole matrices: products, combinations, parts, and the way of writing.

These methods never change their arguments: each returns new data, which the front end puts into
its matrix. `turned` says for each operand whether its transpose is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.dtypes import DType

if TYPE_CHECKING:
    from lagpu.backends.protocol import Descriptor

__all__ = ["MatrixOperations", "Turned"]

Data = Any
Array = np.ndarray[Any, Any]
Turned = tuple[bool, bool]


class MatrixOperations(Protocol):
    """Operations that make a matrix of one or two others."""

    def block_bytes(self, dtype: DType, nrows: int, ncols: int) -> int | None:
        """Return the bytes of a matrix of few rows that is stored position by position, a block.

        None means that a matrix of this shape is never stored so here.
        """

    def rows_apart(self, A: Data, k: int) -> bool:
        """Whether a loop over a block of k rows with this matrix works on each row by itself."""

    def matrix_mxm(
        self, A: Data, B: Data, semiring: Semiring, turned: Turned, desc: Descriptor
    ) -> Data:
        """Return ``A (+.x) B``; only the entries that the mask keeps."""

    def explain_mxm(self, A: Data, B: Data, semiring: Semiring, turned: Turned) -> list[str]:
        """Return lines that say how a product would run without a mask, and why."""

    def matrix_ewise_add(self, A: Data, B: Data, op: BinaryOp, turned: Turned) -> Data:
        """Return ``A (+) B``: on the union, an entry of one side alone as it is."""

    def matrix_ewise_mult(self, A: Data, B: Data, op: BinaryOp, turned: Turned) -> Data:
        """Return ``A (x) B``: on the intersection."""

    def matrix_ewise_union(
        self, A: Data, B: Data, op: BinaryOp, turned: Turned, defaults: tuple[Any, Any]
    ) -> Data:
        """Return ``A (+) B``: on the union, a default standing for the missing side."""

    def matrix_kronecker(self, A: Data, B: Data, op: BinaryOp, turned: Turned) -> Data:
        """Return the Kronecker product: a block ``A[i, j] (x) B`` for each entry of `A`."""

    def matrix_extract(self, A: Data, rows: Array | None, cols: Array | None) -> Data:
        """Return ``A(I, J)``; indices may repeat, None means all."""

    def matrix_write(self, C: Data, desc: Descriptor, T: Data) -> Data:
        """Return what ``C<M> = T`` makes of `C`, with accumulator and replace."""

    def matrix_assign(
        self,
        C: Data,
        desc: Descriptor,
        A: Data,
        turned: bool,
        rows: Array | None,
        cols: Array | None,
    ) -> Data:
        """Return what ``C<M>(I, J) = A`` makes of `C`; indices are distinct, None means all."""

    def matrix_assign_scalar(
        self, C: Data, desc: Descriptor, value: Any, rows: Array | None, cols: Array | None
    ) -> Data:
        """Return what ``C<M>(I, J) = value`` makes of `C`; indices rise, None means all."""
