"""The protocol of backends: every method that a backend has.

The front end has checked shapes, types and indices before it calls, so a backend trusts its
arguments. Vectors and matrices are handles that the backend makes; a handle stays the same when its
object is written. The meaning of each statement is in `lagpu.operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

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

Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Capabilities(NamedTuple):
    """The abilities of a backend beyond the protocol.

    Attributes
    ----------
    fuses : bool
        Whether the backend runs some loops as one program; else it rejects every loop, unless it
        `searches`.
    searches : bool
        Whether it runs searches from one frontier as one program; it rejects every other loop.
    kernels, policies : tuple of str
        The names that `Product.kernel` and `Product.policy` may have.
    fused_policies : tuple of str
        Those of the policies by which a loop may still run as one program.
    systems : tuple of str
        Those of the policies by which a search runs as a whole, instead of product by product.
    sources_hash : str
        Identifies the sources of the kernels; an empty string if the backend has no kernels of its
        own.
    parts : Parts or None
        On a grid, what is done piece by piece. None: the objects of this backend are in one piece.
    clusters : callable or None
        On a grid, ``clusters(matrix, pieces)`` returns the `Clusters` of so many pieces, for None
        of the fewest that hold the matrix, a copy in each; None if all pieces share one.
    """

    fuses: bool = False
    kernels: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    fused_policies: tuple[str, ...] = ()
    sources_hash: str = ""
    searches: bool = False
    parts: Parts | None = None
    systems: tuple[str, ...] = ()
    clusters: Callable[[Handle, int | None], Clusters | None] | None = None

    @property
    def records(self) -> bool:
        """Whether a loop is recorded, so that the backend may run it as one program."""
        return self.fuses or self.searches


class Parts(Protocol):
    """What a grid does piece by piece, with data of which nobody has the whole.

    Each method calls a function for every piece of this process: ``work(backend, piece)``, with the
    local backend and the number of the piece. Every process of the grid calls the method, and what
    the function asks of it must be the same everywhere.

    Attributes
    ----------
    count : int
        The number of pieces.
    beside : int
        The number of pieces that share the memory of this host.
    homes : sequence of Backend
        The local backend of each piece of this process.
    """

    count: int
    beside: int

    @property
    def homes(self) -> Sequence[Backend]:
        """See above."""

    def matrix(
        self,
        part: Callable[[Backend, Any, int], Handle],
        dtype: DType,
        shape: tuple[int, int],
        symmetric: bool | None = None,
        apart: bool = False,
    ) -> Handle:
        """Return the matrix whose part of each piece ``part(backend, layout, piece)`` returns.

        If it asks nothing of other pieces, `apart`, pieces with a GPU each make theirs at the same
        time, in threads, and the caller holds no lock.
        """

    def owned(
        self, entries: Callable[[Backend, int], tuple[Array, ...]], shape: tuple[int, int]
    ) -> dict[int, tuple[Array, ...]]:
        """Return, by the number of each local piece, the entries that it owns, by position.

        ``entries(backend, piece)`` returns the (rows, columns) of entries that this piece has and
        any piece may own, and maybe more about each; they travel to their owners, repeated ones
        too, and arrive in the order of the pieces.
        """

    def columns(self, A: Handle) -> dict[int, tuple[Any, ...]]:
        """Return the part of a matrix on each local piece, by its number, as compressed columns.

        That is (col_ptr, row_idx, values, rows, cols): on the host, rows and columns by position,
        and the index at each position of either, or None where positions are indices.
        """

    def reduced(
        self,
        work: Callable[[Backend, int], Array],
        shape: tuple[int, int],
        dim: int,
        ufunc: np.ufunc,
    ) -> Array:
        """Return the reduction of what all pieces say of the rows or the columns of a matrix.

        Parameters
        ----------
        work : callable
            Returns a value, or a row of values, for each position of the piece's part in this
            dimension.
        shape, dim
            The shape of the matrix; 0 for rows, 1 for columns.
        ufunc : np.ufunc
            Reduces the values of pieces that have the same index, in the order of the pieces.

        Returns
        -------
        array, (shape[dim],) or (shape[dim], k)
            By index, the same in every process.
        """

    def gather(self, work: Callable[[Backend, int], tuple[Array, ...]]) -> list[tuple[Array, ...]]:
        """Return, in the order of the pieces, the arrays that the function returns for each."""

    def require_alike(self, what: str, given: Mapping[str, Any]) -> None:
        """Raise `ProcessFailed` in every process unless all give the same to what is named."""


class Clusters(Protocol):
    """Sub-clusters of a grid, which have a copy of a graph each and work by themselves.

    Attributes
    ----------
    count : int
        Sub-clusters, in all processes.
    numbers : sequence of int
        The numbers of those of this process, rising.
    backends : sequence of Backend
        The backend of each of these.
    apart : bool
        Whether each has devices of its own, so that threads may have them work together.
    """

    count: int
    numbers: Sequence[int]
    backends: Sequence[Backend]

    @property
    def apart(self) -> bool:
        """See above."""

    def run(self, work: Callable[[], T]) -> T:
        """Do some work in every process; an error of one is raised in all."""

    def copy(self, A: Handle, k: int) -> Handle:
        """Return a copy of a graph's pattern, of BOOL, on sub-cluster `k` of this process.

        Its parts come from those of the whole grid's matrix. Every process calls it, within `run`
        and with the same `k`, since all have as many sub-clusters.
        """

    def inside(self, work: Callable[[], T]) -> T:
        """Do some work on the own sub-clusters alone, within `run`.

        Processes that share a sub-cluster meet by themselves in it.
        """

    def total(self, parts: Sequence[Array]) -> Array:
        """Return the sum of an array of each sub-cluster, added in their order.

        Parameters
        ----------
        parts : sequence of array
            That of each sub-cluster of this process.
        """


class ProductPlan(Protocol):
    """The choice of a backend for a product.

    Attributes
    ----------
    direction, kernel, reason : str
        Push or pull, the kernel, and the reason in numbers.
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
    """A place where vectors and matrices live and operations run.

    Attributes
    ----------
    name : str
        Name of the backend, such as ``"cpu"``.
    capabilities : Capabilities
        The abilities beyond this protocol.
    device : object or None
        The device on which operations run; None for the host.
    lock : context manager
        Lets one thread at a time in. Each method takes it by itself, so threads may call any of
        them; who needs several in a row, as a loop that is planned and run, holds it around them,
        and the same thread may take it again.
    last_loop : str
        How the last `loop` or `sweep` of this thread ran, and why, as ``"grid search: ..."``;
        ``"eager: ..."`` if statement by statement, as always on a backend that fuses no loop. An
        empty string before the first one. A ``for`` or ``while`` of plain Python is none.
    last_product : ProductPlan or None
        The choice for the last product of this thread; None before the first one, and on a backend
        that does not report its choices.
    """

    name: str
    capabilities: Capabilities
    device: Any
    lock: AbstractContextManager[Any]
    last_loop: str

    @property
    def last_product(self) -> ProductPlan | None:
        """See above."""

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: Statement) -> None:
        """Run a statement that writes a vector or a matrix, and has no reference to a scalar."""

    def evaluate(self, operation: Operation) -> Any:
        """Return the result of `Reduce` or `ExtractElement` as a Python scalar, or None."""

    def explain(self, operation: Operation) -> list[str]:
        """Return lines of text: how a product would run without a mask, and why."""

    def plan_loop(self, body: Sequence[Statement], turns: Until | Sweep) -> FusedLoop | Rejection:
        """Return a program that repeats a recorded body until the end, or why there is none.

        Planning runs no statement and changes no operand.
        """

    def batch_size(
        self, A: Handle, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        """Return the best number of searches of a square matrix to run at once.

        Parameters
        ----------
        A : Handle, (n, n)
            The matrix.
        sources : int
            The number of all searches; each is a row of k x n matrices.
        levels : int
            The number of levels of a search.
        live : sequence of (DType, int)
            The number of k x n matrices of each type that are in use at the same time.
        """

    def meter(self) -> Meter:
        """Return a meter that measures this backend's work until it is stopped."""

    def free_bytes(self) -> int:
        """Return the bytes that this backend can still allocate for vectors and matrices."""

    # ------------------------------------------------------------------- objects: made, read
    def vector(self, dtype: DType, size: int) -> Handle:
        """Return an empty vector."""

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Handle:
        """Return an empty matrix."""

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Handle:
        """Return a vector with entries at distinct, rising `indices`, or everywhere for None.

        `values` is an array or, if there are indices, one scalar.
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
            If an entry is given twice, `values` is an array, and there is no `dup_op`.
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

    def diagonal(self, A: Handle, k: int, rows: Array | None = None) -> Handle:
        """Return diagonal `k` of a matrix as a vector.

        With `rows`, (ncols,) INT64 on the host, return instead the entries (rows[j], j), of which
        one with a negative row is not there: so the diagonal of a matrix in pieces is found.
        """

    def dup(self, x: Handle, dtype: DType) -> Handle:
        """Return a copy of a vector or matrix, cast to `dtype`."""

    def vector_to_coo(self, v: Handle) -> tuple[Array, Array]:
        """Return (indices, values) as NumPy arrays, indices rising."""

    def matrix_to_csc(
        self, A: Handle, on_device: bool = False, narrow: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return (col_ptr, row_idx, values) as NumPy arrays, rows rising in a column.

        With `on_device` a backend of one device returns copies of its own arrays there. Indices are
        INT64; with `narrow`, and on a device, row_idx may be INT32.
        """

    def vector_values(self, v: Handle, on_device: bool = False) -> Any:
        """Return a copy of the values of all entries, by index, as a NumPy array.

        With `on_device` a backend of one device returns an array of its own there.
        """

    def set_values(self, x: Handle, values: Array) -> None:
        """Replace the values of all entries, in the order of `vector_to_coo` or `matrix_to_csc`.

        Statistics of the planner are kept, so the next product is planned as before.
        """

    def vector_head(self, v: Handle, count: int) -> tuple[Array, Array]:
        """Return (indices, values) of the first `count` entries, without copying the others."""

    def matrix_corner(self, A: Handle, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""

    def nvals(self, x: Handle) -> int:
        """Return the number of entries of a vector or matrix."""

    def form(self, x: Handle) -> str:
        """Return the storage form of a vector or matrix in words, as in ``"bitmap, iso"``."""

    def isequal(self, x: Handle, y: Handle) -> bool:
        """Return True if two objects of the same shape have the same entries and equal values."""

    def levels(self, x: Handle) -> Levels | None:
        """Return the present entries of an integer vector or matrix, grouped by value.

        None if the backend can do no better than sorting on the host.
        """

    def is_symmetric(self, A: Handle) -> bool:
        """Return whether ``A' == A``, entries and values; the backend remembers the answer."""

    def wait(self, x: Handle) -> None:
        """Return when all operations that make a vector or matrix have ended."""

    def vector_resized(self, v: Handle, size: int) -> Handle:
        """Return a vector of this size with the entries of `v` that lie in it."""

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: Handle, i: int, value: Any) -> None:
        """Set entry `i` to a NumPy scalar of the vector's type."""

    def vector_remove(self, v: Handle, i: int) -> None:
        """Delete entry `i` if there is one."""

    def vector_clear(self, v: Handle) -> None:
        """Delete all entries."""

    def may_keep_csr(self, A: Handle, allowed: bool | None) -> bool:
        """Return whether a directed matrix may be stored by rows too; set this unless None.

        Raises
        ------
        NotSupported
            If it is to be set, and the backend does not control its storage.
        """
