"""What a backend is: all of its methods.

The front end has checked shapes, types and indices before it calls, so a backend trusts its
arguments. Vectors and matrices are handles that the backend makes; a handle stays the same when it
is written. What a statement means is in `lagpu.operations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.profile import Meter
from lagpu.dtypes import DType
from lagpu.operations import (
    FusedLoop,
    Handle,
    Levels,
    Operation,
    Rejection,
    Statement,
    Sweep,
    Until,
)

__all__ = ["Backend", "Capabilities", "ProductPlan"]

Array = np.ndarray[Any, Any]


class Capabilities(NamedTuple):
    """What a backend can do beyond the protocol.

    Attributes
    ----------
    fuses : bool
        Whether it runs some loops as one program; else it rejects every loop.
    kernels, policies : tuple of str
        What `Product.kernel` and `Product.policy` may name.
    sources_hash : str
        Identifies the sources of its kernels; an empty string if it has none of its own.
    """

    fuses: bool = False
    kernels: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    sources_hash: str = ""


class ProductPlan(Protocol):
    """What a backend chose for a product.

    Attributes
    ----------
    direction, kernel, reason : str
        Push or pull, the kernel, and why, in numbers.
    """

    @property
    def direction(self) -> str:
        """See above."""

    @property
    def kernel(self) -> str:
        """See above."""

    @property
    def reason(self) -> str:
        """See above."""


class Backend(Protocol):
    """One place where vectors and matrices live and operations run.

    Attributes
    ----------
    name : str
        Its name, such as ``"cpu"``.
    capabilities : Capabilities
        What it can do beyond this protocol.
    device : object or None
        The device on which it runs; None if that is the host.
    last_loop : str
        How the last loop ran, and why, as ``"grid search: ..."``; ``"eager: ..."`` if statement by
        statement. An empty string before the first loop, and where no loop is fused.
    last_product : ProductPlan or None
        What was chosen for the last product; None before the first, and if the backend does not
        tell.
    """

    name: str
    capabilities: Capabilities
    device: Any
    last_loop: str

    @property
    def last_product(self) -> ProductPlan | None:
        """See above."""

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: Statement) -> None:
        """Run a statement that writes a vector or a matrix; it holds no reference to a scalar."""

    def evaluate(self, operation: Operation) -> Any:
        """Return the result of `Reduce` or `ExtractElement` as a Python scalar, or None."""

    def explain(self, operation: Operation) -> list[str]:
        """Return lines that say how a product would run without a mask, and why."""

    def plan_loop(self, body: Sequence[Statement], turns: Until | Sweep) -> FusedLoop | Rejection:
        """Return the program that runs a recorded body again and again, or why there is none.

        Nothing has run, and no operand has changed, when it returns.
        """

    def batch_size(
        self, A: Handle, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        """Return how many of some searches of a square matrix had better run at once.

        Parameters
        ----------
        A : Handle, (n, n)
            The matrix.
        sources : int
            How many searches there are, each a row of k x n matrices.
        levels : int
            How many levels a search has.
        live : sequence of (DType, int)
            How many k x n matrices of each type are in use at the same time.
        """

    def meter(self) -> Meter:
        """Return what measures this backend's work, until it is stopped."""

    def free_bytes(self) -> int:
        """Return the bytes that may still be allocated where this backend's objects live."""

    # ------------------------------------------------------------------- objects: made, read
    def vector(self, dtype: DType, size: int) -> Handle:
        """Return an empty vector."""

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Handle:
        """Return an empty matrix."""

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Handle:
        """Return a vector of distinct `indices`, rising, or of all if they are None.

        `values` is an array or, beside indices, one scalar.
        """

    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> Handle:
        """Return a matrix of triplets; `values` is an array or one scalar.

        Raises
        ------
        InvalidValue
            If an entry is given twice and there is no `dup_op`.
        """

    def matrix_from_csc(
        self,
        col_ptr: Any,
        row_idx: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        symmetric: bool | None = None,
    ) -> Handle:
        """Return a matrix of valid, sorted CSC arrays; `values` is an array or one scalar.

        `symmetric` says whether the matrix equals its transpose, if the caller knows.
        """

    def matrix_from_diagonal(self, v: Handle, k: int) -> Handle:
        """Return the square matrix with the vector `v` on diagonal `k`."""

    def diagonal(self, A: Handle, k: int) -> Handle:
        """Return diagonal `k` of a matrix as a vector."""

    def dup(self, x: Handle, dtype: DType) -> Handle:
        """Return a copy of a vector or matrix, cast to `dtype`."""

    def vector_to_coo(self, v: Handle) -> tuple[Array, Array]:
        """Return (indices, rising; values) as NumPy arrays."""

    def matrix_to_csc(self, A: Handle) -> tuple[Array, Array, Array]:
        """Return (col_ptr, row_idx, values) as NumPy arrays, rows rising in a column."""

    def vector_values(self, v: Handle) -> Any:
        """Return a copy of the entries' values, by index, as an array where `v` lives."""

    def set_values(self, x: Handle, values: Array) -> None:
        """Replace the values of all entries, in the order in which they are read out.

        What a planner remembers of the entries stays, so the next product is planned alike.
        """

    def vector_head(self, v: Handle, count: int) -> tuple[Array, Array]:
        """Return (indices, values) of the first `count` entries; little travels, `v` stays."""

    def matrix_corner(self, A: Handle, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""

    def nvals(self, x: Handle) -> int:
        """Return the number of entries of a vector or matrix."""

    def form(self, x: Handle) -> str:
        """Return the storage form of a vector or matrix in words, as in ``"bitmap, iso"``."""

    def isequal(self, x: Handle, y: Handle) -> bool:
        """Whether two vectors or matrices of one shape have the same entries, equal values."""

    def levels(self, x: Handle) -> Levels | None:
        """Return the entries of an integer vector or matrix by value, as they are now.

        None if the backend has no better way than an ordering on the host.
        """

    def is_symmetric(self, A: Handle) -> bool:
        """Whether ``A' == A``, entries and values; a backend remembers the answer."""

    def wait(self, x: Handle) -> None:
        """Return when all operations that make a vector or matrix have ended."""

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: Handle, i: int, value: Any) -> None:
        """Set entry `i` to a NumPy scalar of the vector's type."""

    def vector_remove(self, v: Handle, i: int) -> None:
        """Delete entry `i` if there is one."""

    def vector_clear(self, v: Handle) -> None:
        """Delete all entries."""

    def vector_resize(self, v: Handle, size: int) -> None:
        """Change the size; entries beyond it are deleted."""

    def may_keep_csr(self, A: Handle, allowed: bool | None) -> bool:
        """Return whether a directed matrix may be kept by rows too; set it unless None.

        Raises
        ------
        NotSupported
            If the backend has no say in it.
        """
