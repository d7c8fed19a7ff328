"""What a backend is: some twenty methods, each of which gets one whole operation.

The front end has checked shapes, types and indices before it calls, so a backend trusts its
arguments. A method that writes takes the output's data and a `Descriptor`, and obeys the
GraphBLAS rule for both: with ``T`` the operation's result,

- ``Z = T``, or with an accumulator ``Z = W (+) T`` (entries of only one side stay as they are);
- where the mask holds, ``W`` becomes ``Z`` (an entry that ``Z`` lacks is deleted);
- elsewhere ``W`` stays, or is deleted if `replace` is set.

The output may be one of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring
from lagpu.backends.levels import LevelOperations
from lagpu.backends.matrices import MatrixOperations
from lagpu.backends.profile import Meter
from lagpu.dtypes import DType

__all__ = [
    "Applied",
    "Backend",
    "Counter",
    "Data",
    "Descriptor",
    "Product",
    "Statement",
]

Data = Any
"""A backend's own representation of a vector or a matrix."""

Array = np.ndarray[Any, Any]


class Descriptor(NamedTuple):
    """How a result is written: mask, accumulator, replace.

    Attributes
    ----------
    mask : Data or None
        The mask vector.
    structure : bool
        The mask keeps where it has an entry; else where it has an entry that is not zero.
    complement : bool
        The mask keeps the other positions.
    accum : BinaryOp or None
        The accumulator.
    replace : bool
        Delete the output's entries outside the mask.
    """

    mask: Data | None = None
    structure: bool = True
    complement: bool = False
    accum: BinaryOp | None = None
    replace: bool = False

    @property
    def is_fresh(self) -> bool:
        """Whether nothing stays of what the output had before."""
        return self.accum is None and (self.replace or self.mask is None)


class Product(NamedTuple):
    """One matrix-vector product ``w = A u`` or ``w = A' u``.

    Attributes
    ----------
    semiring : Semiring
        The algebra.
    domain, result : DType
        Operands are cast to `domain`, each product to `result`, the type of sums and result.
    transpose : bool
        Use ``A'``: ``w[j] = (+)_i A[i, j] u[i]``.
    flip : bool
        The vector is the left operand of the multiplication, as in ``u @ A``.
    kernel, policy : str or None
        The author's choice for this product, where a backend offers one.
    """

    semiring: Semiring
    domain: DType
    result: DType
    transpose: bool
    flip: bool
    kernel: str | None = None
    policy: str | None = None


class Applied(NamedTuple):
    """How an operator is applied to each entry.

    Attributes
    ----------
    domain, result : DType
        Entries and the scalar are cast to `domain`; the outcome is of type `result`.
    left, right : NumPy scalar or None
        The bound operand of a `BinaryOp`, or the thunk of an `IndexUnaryOp` in `right`; of type
        `domain`.
    """

    domain: DType
    result: DType
    left: Any = None
    right: Any = None


class Counter(int):
    """The counter of a loop whose body is being recorded: it stands for every value."""


class Statement(NamedTuple):
    """One recorded operation that writes a vector, a matrix or a scalar, whose `w` is a `Cell`.

    Attributes
    ----------
    method, w, desc, args
        ``method(w, desc, *args)`` runs it; of a matrix, as the front end calls it.
    is_counter : bool
        Whether the assigned scalar is the counter of the loop.
    out : object or None
        The matrix that is written: whoever runs the loop puts the new data in its `data`. The data
        of a vector are changed themselves.
    again : callable or None
        Runs a statement that writes a matrix, with the data there are then.
    dtype : DType or None
        Type of the result.
    """

    method: str
    w: Data
    desc: Descriptor
    args: tuple[Any, ...]
    is_counter: bool
    out: Any = None
    again: Callable[[], None] | None = None
    dtype: DType | None = None


class Backend(MatrixOperations, LevelOperations, Protocol):
    """One place where vectors and matrices live and operations run."""

    name: str
    recorder: Any  # a `Recorder`, or None
    last_loop: str

    def run_loop(
        self,
        statements: list[Statement],
        until_empty: Data | None,
        unchanged: Data | None,
        times: int | None,
    ) -> bool:
        """Run recorded statements again and again as one program.

        Until a vector is empty before an iteration, or one is as it was behind it, or for a number
        of times. Returns False, with nothing done, if they do not fit a program.
        """

    def repeated(self, s: Statement) -> Callable[..., None] | None:
        """Return what runs a statement of a loop again and again, by itself; None: its method."""

    def meter(self) -> Meter:
        """Return what measures this backend's work, until it is stopped."""

    def explain(self, A: Data, u: Data, how: Product) -> list[str]:
        """Return lines that say how a product would run, and why."""

    def explain_selection(self, f: Data, u: Data, how: Product) -> list[str]:
        """Return lines that say how a product with the selection of `f` would run, and why."""

    def free_bytes(self) -> int:
        """Return the bytes that may still be allocated where this backend's data live."""

    # ------------------------------------------------------------------ objects: vectors
    def vector(self, dtype: DType, size: int) -> Data:
        """Return an empty vector."""

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Data:
        """Return a vector of distinct `indices`, rising, or of all if they are None.

        `values` is an array or, beside indices, one scalar.
        """

    def vector_to_coo(self, v: Data) -> tuple[Array, Array]:
        """Return (indices, rising; values) as NumPy arrays."""

    def vector_values(self, v: Data) -> Any:
        """Return a copy of the entries' values, by index, as an array where `v` lives."""

    def vector_head(self, v: Data, count: int) -> tuple[Array, Array]:
        """Return (indices, values) of the first `count` entries; little travels, `v` stays."""

    def vector_form(self, v: Data) -> str:
        """Return the storage form in words, as in ``"bitmap, iso"``."""

    def vector_dup(self, v: Data, dtype: DType) -> Data:
        """Return a copy, cast to `dtype`."""

    def vector_nvals(self, v: Data) -> int:
        """Return the number of entries."""

    def vector_wait(self, v: Data) -> None:
        """Return when all operations that make `v` have ended."""

    def vector_get(self, v: Data, i: int) -> Any:
        """Return entry `i` as a Python scalar, or None."""

    def vector_set(self, v: Data, i: int, value: Any) -> None:
        """Set entry `i` to a NumPy scalar of the vector's type."""

    def vector_remove(self, v: Data, i: int) -> None:
        """Delete entry `i` if there is one."""

    def vector_clear(self, v: Data) -> None:
        """Delete all entries."""

    def vector_resize(self, v: Data, size: int) -> None:
        """Change the size; entries beyond it are deleted."""

    def vector_isequal(self, u: Data, v: Data) -> bool:
        """Whether two vectors of one size have the same entries with equal values."""

    # ----------------------------------------------------------------- objects: matrices
    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Data:
        """Return an empty matrix."""

    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> Data:
        """Return a matrix of triplets; `values` is an array or one scalar.

        Raises
        ------
        InvalidValue
            If an entry is given twice and there is no `dup_op`.
        """

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
    ) -> Data:
        """Return a matrix of valid, sorted CSC arrays; `values` is an array or one scalar."""

    def matrix_to_csc(self, A: Data) -> tuple[Array, Array, Array]:
        """Return (col_ptr, row_idx, values) as NumPy arrays, rows rising in a column."""

    def matrix_corner(self, A: Data, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""

    def matrix_form(self, A: Data) -> str:
        """Return the storage form in words, as in ``"csc, iso"``."""

    def matrix_dup(self, A: Data, dtype: DType) -> Data:
        """Return a copy, cast to `dtype`."""

    def matrix_nvals(self, A: Data) -> int:
        """Return the number of entries."""

    def matrix_get(self, A: Data, i: int, j: int) -> Any:
        """Return entry (i, j) as a Python scalar, or None."""

    def matrix_isequal(self, A: Data, B: Data) -> bool:
        """Whether two matrices of one shape have the same entries with equal values."""

    def matrix_transpose(self, A: Data) -> Data:
        """Return ``A'``."""

    def matrix_apply(self, A: Data, op: Operator, how: Applied) -> Data:
        """Return ``f(A)``, entry by entry."""

    def matrix_select(self, A: Data, op: IndexUnaryOp, thunk: Any) -> Data:
        """Return the entries that `op` keeps; `thunk` is a NumPy scalar of its domain."""

    def matrix_selection(self, f: Data, nrows: int, turned: bool) -> Data:
        """Return the BOOL matrix with an entry (f[j], j) for each entry, or (j, f[j]) if `turned`.

        Values of `f`, of an integer type, that are outside ``0 .. nrows-1`` have no entry.
        """

    def matrix_from_diag(self, v: Data, k: int) -> Data:
        """Return the square matrix with `v` on diagonal `k`."""

    def matrix_diag(self, A: Data, k: int) -> Data:
        """Return diagonal `k` as a vector."""

    def matrix_is_symmetric(self, A: Data) -> bool:
        """Whether ``A' == A``, entries and values; a backend remembers the answer."""

    def matrix_turnable(self, A: Data, allowed: bool | None) -> bool:
        """Return whether a second form of a directed matrix may be made; set it unless None.

        Raises
        ------
        NotSupported
            If the backend has no say in it.
        """

    def matrix_reduce(self, A: Data, monoid: Monoid) -> Any:
        """Return the sum of all entries as a Python scalar, or None if there are none."""

    # --------------------------------------------------------- operations: write a vector
    def mxv(self, w: Data, desc: Descriptor, A: Data, u: Data, how: Product) -> None:
        """``w<m> = A (+.x) u`` or ``A' (+.x) u``."""

    def mxv_selection(self, w: Data, desc: Descriptor, f: Data, u: Data, how: Product) -> None:
        """``w<m> = P (+.x) u`` or ``P' (+.x) u``, P the matrix of `matrix_selection` of `f`."""

    def ewise_add(self, w: Data, desc: Descriptor, u: Data, v: Data, op: BinaryOp) -> None:
        """``w<m> = u (+) v``: on the union, an entry of one side alone as it is."""

    def ewise_mult(self, w: Data, desc: Descriptor, u: Data, v: Data, op: BinaryOp) -> None:
        """``w<m> = u (x) v``: on the intersection."""

    def ewise_union(
        self, w: Data, desc: Descriptor, u: Data, v: Data, op: BinaryOp, defaults: tuple[Any, Any]
    ) -> None:
        """``w<m> = u (+) v``: on the union, a default standing for the missing side."""

    def apply(self, w: Data, desc: Descriptor, u: Data, op: Operator, how: Applied) -> None:
        """``w<m> = f(u)``, entry by entry."""

    def select(self, w: Data, desc: Descriptor, u: Data, op: IndexUnaryOp, thunk: Any) -> None:
        """``w<m> = u<f(u, index, thunk)>``: the entries that `op` keeps."""

    def assign_scalar(self, w: Data, desc: Descriptor, value: Any, indices: Array | None) -> None:
        """``w<m>(I) = value``, a NumPy scalar; `indices` rise, None means all."""

    def assign(self, w: Data, desc: Descriptor, u: Data, indices: Array | None) -> None:
        """``w<m>(I) = u``; `indices` are distinct, None means all."""

    def extract(self, w: Data, desc: Descriptor, u: Data, indices: Array | None) -> None:
        """``w<m> = u(I)``; None means all indices."""

    def extract_column(self, w: Data, desc: Descriptor, A: Data, j: int, transpose: bool) -> None:
        """``w<m> = A(:, j)``, or ``A(j, :)'`` if `transpose`."""

    def reduce_vector(
        self, w: Data, desc: Descriptor, A: Data, monoid: Monoid, transpose: bool
    ) -> None:
        """``w<m>[i] = (+)_j A[i, j]``, or over the columns of ``A'`` if `transpose`."""

    def reduce(self, u: Data, monoid: Monoid) -> Any:
        """Return the sum of all entries as a Python scalar, or None if there are none."""
