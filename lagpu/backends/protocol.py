"""The protocol of backends: every method that a backend has, and what it measures for a trace.

The front end has checked shapes, types and indices before it calls, so a backend trusts its
arguments. Vectors and matrices are handles that the backend makes; a handle stays the same when its
object is written. The meaning of each statement is in `lagpu.operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp
from lagpu.dtypes import DType
from lagpu.operations import Handle


@dataclass(frozen=True)
class Sent:
    """The messages that pieces of a grid in this process have sent to others in one form.

    The form is ``"list"`` or ``"bitmap"`` of vertices, or their ``"values"``. Empty messages do not
    count.
    """

    form: str
    messages: int
    bytes: int


@dataclass(frozen=True)
class Phase:
    """A phase of a product on a grid, or the part that one piece has in a level of a search.

    The name is ``"expand"``, ``"share"``, ``"expansion"``, ``"fold"``, ``"update"``. Or it is a
    piece, ``"piece 0"``. The time is of all pieces here together; of a piece until it waits.
    """

    name: str
    ms: float
    sent: tuple[Sent, ...] = ()


class Measured(NamedTuple):
    """The measurement of one statement, for a trace."""

    #: Time of the statement's kernels: by events on a GPU, else by the host's clock; in a fused
    #: loop by the device's clock.
    kernel_ms: float = 0.0
    #: Time the host was busy with the statement, without compiling; None in a fused loop.
    host_ms: float | None = 0.0
    compile_ms: float = 0.0  #: Time spent compiling kernels.
    copy_ms: float = 0.0  #: Time of copies between host and device.
    copy_bytes: int = 0  #: Bytes of these copies.
    direction: str = ""  #: The choice made for a product; these three are empty for others.
    kernel: str = ""
    reason: str = ""  #: Why.
    edges: int | None = None  #: Matrix entries that the product looked at.
    bytes: int | None = None  #: Memory that the kernels moved, estimated (docs/design/trace.md).
    #: Of a product on a grid (docs/design/grid.md) its phases; of a search of pieces, the pieces.
    phases: tuple[Phase, ...] = ()


class LoopRow(NamedTuple):
    """One statement in one iteration of a fused loop, or in all if its kernel keeps no log.

    `statement` is its index in the body, `level` the iteration, None for all. `nvals_in` and
    `nvals_out` are the entries of the last input before and of the output after, or None.
    """

    statement: int
    level: int | None
    nvals_in: int | None
    nvals_out: int | None
    measured: Measured


class LoopMeasured(NamedTuple):
    """The measurement of a launched fused loop, available once the loop has ended.

    `rows` waits for it and returns a row for each statement and iteration, or for each statement if
    the kernel keeps no log. `total` returns the cost of the whole loop: the host's time, compiling,
    copies.
    """

    rows: Callable[[], list[LoopRow]]
    total: Callable[[], Measured]


class Meter(Protocol):
    """Measures statements for a trace; what it returns is called, and waits, when that is read."""

    def run(
        self, work: Callable[[], None], out: Handle | None, operation: ops.Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement by calling `work`.

        `out` is the vector or matrix that it writes, None for a scalar; `operation` is None for a
        statement that sets one entry of `out`.
        """

    def run_loop(self, plan: Callable[[], ops.Planned]) -> tuple[ops.Planned, LoopMeasured | None]:
        """Plan a recorded loop by calling `plan`, and run it unless it is rejected."""

    def count(self, x: Handle) -> Callable[[], int]:
        """Return a callable that returns the present number of entries of a vector or matrix."""

    def stop(self) -> Callable[[], Measured]:
        """Stop measuring; return a callable for the measurement outside of statements."""

    def unrecorded(self) -> int:
        """Return the number of rows of fused loops that did not fit the log."""


Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Capabilities(NamedTuple):
    """The abilities of a backend beyond the protocol."""

    fuses: bool = False  #: Whether the backend, in one piece, runs most loops as one program.
    kernels: tuple[str, ...] = ()  #: The names that `Product.kernel` may have.
    policies: tuple[str, ...] = ()  #: The names that `Product.policy` may have.
    fused_policies: tuple[str, ...] = ()  #: Those of them by which a loop may still be fused.
    sources_hash: str = ""  #: Identifies the sources of the kernels, if there are any.
    #: Whether it is a grid that runs some loops, searches among them, as one program.
    searches: bool = False
    #: On a grid, what is done piece by piece. None: the objects of this backend are in one piece.
    parts: Parts | None = None
    systems: tuple[str, ...] = ()  #: The policies by which a search may run as one program.
    #: On a grid, ``clusters(matrix, pieces)`` returns the `Clusters` of so many pieces, for None of
    #: the fewest that hold the matrix, a copy in each; None if all pieces share one.
    clusters: Callable[[Handle, int | None], Clusters | None] | None = None
    #: What runs statements in a row as one program, as `gpu.fused.program.batch.Batches` does.
    #: None: each statement runs by itself.
    batches: Any = None
    #: Returns the most threads that a statement takes now; None where a device computes.
    threads: Callable[[], int] | None = None
    #: Whether `matrix_from_csc` takes ``by_rows=True`` of rows, in which matrices are stored.
    by_rows: bool = False
    #: Of a backend that neither fuses nor searches: ``patience(handles, turns)`` returns after how
    #: many iterations of a loop that names these objects `plan_loop` is asked to run the rest as
    #: one program; None for never. `turns` are `Until`, or the levels of a sweep.
    patience: Callable[[Sequence[Handle], ops.Until | ops.Levels], int | None] | None = None

    @property
    def records(self) -> bool:
        """Whether a loop is recorded, so that the backend may run it as one program."""
        return self.fuses or self.searches


class NotCompiled(Exception):
    """A kernel is not compiled yet, so that a loop has not run; see `Batches.beside`."""


class Parts(Protocol):
    """What a grid does piece by piece, with distributed data; `count` is the number of pieces.

    Each method calls ``work(backend, piece)`` for every piece of this process, with the local
    backend and the number of the piece. Every process of the grid calls the method, and the
    function must use it in the same way everywhere. `beside` pieces share the memory of this host.
    """

    count: int
    beside: int

    @property
    def homes(self) -> Sequence[Backend]:
        """The local backend of each piece of this process."""

    def matrix(
        self, part: Callable[[Backend, Any, int], Handle], dtype: DType,
        shape: tuple[int, int], symmetric: bool | None = None, apart: bool = False,
    ) -> Handle:  # fmt: skip
        """Return the matrix whose part of each piece ``part(backend, layout, piece)`` returns.

        If it needs nothing of other pieces, `apart`, pieces with a GPU each make theirs at the same
        time, in threads, and the caller holds no lock.
        """

    def owned(
        self, entries: Callable[[Backend, int], tuple[Array, ...]], shape: tuple[int, int]
    ) -> dict[int, tuple[Array, ...]]:
        """Return, by the number of each local piece, the entries that it owns, by position.

        ``entries(backend, piece)`` returns the (rows, columns) of entries that this piece has and
        any piece may own, and maybe more about each. They are sent to their owners, repeated ones
        too, and arrive in the order of the pieces.
        """

    def columns(self, A: Handle) -> dict[int, tuple[Any, ...]]:
        """Return the part of a matrix on each local piece, by its number, as compressed columns.

        That is (col_ptr, row_idx, values, rows, cols): on the host, rows and columns by position,
        and the index at each position of either, or None where positions are indices.
        """

    def reduced(
        self, work: Callable[[Backend, int], Array],
        shape: tuple[int, int], dim: int, ufunc: np.ufunc,
    ) -> Array:  # fmt: skip
        """Return a reduction over the rows, `dim` 0, or the columns, 1, of a matrix of this shape.

        `work` returns a value, or a row of values, for each position of the piece's part in this
        dimension. `ufunc` reduces those of pieces with the same index, in their order. The result
        is by index, (shape[dim],) or (shape[dim], k), the same in every process.
        """

    def gather(self, work: Callable[[Backend, int], tuple[Array, ...]]) -> list[tuple[Array, ...]]:
        """Return, in the order of the pieces, the arrays that the function returns for each."""

    def require_alike(self, what: str, given: Mapping[str, Any]) -> None:
        """Raise `ProcessFailed` in every process unless all give the same values for `what`."""


class Clusters(Protocol):
    """`count` sub-clusters of a grid, with a copy of a graph each; some `numbers` are here."""

    count: int
    numbers: Sequence[int]
    backends: Sequence[Backend]

    @property
    def apart(self) -> bool:
        """Whether each has devices of its own, so that threads may let them work together."""

    def run(self, work: Callable[[], T]) -> T:
        """Do some work in every process; an error of one is raised in all."""

    def copy(self, A: Handle, k: int) -> Handle:
        """Return a copy of a graph's pattern, of BOOL, on sub-cluster `k` of this process.

        Its parts come from those of the whole grid's matrix. Every process calls it, within `run`
        and with the same `k`, since all have as many sub-clusters.
        """

    def inside(self, work: Callable[[], T]) -> T:
        """Do some work on the own sub-clusters alone, within `run`."""

    @property
    def add_up(self) -> bool:
        """Whether `total` takes full vectors, which stay on the devices; else it takes arrays."""

    def total(self, parts: Sequence[Any]) -> Handle:
        """Return the sum of the numbers of FP64 of each sub-cluster, added in their order."""


class Backend(Protocol):
    """A place where vectors and matrices live and operations run."""

    name: str  #: Such as ``"cpu"``.
    capabilities: Capabilities  #: The abilities beyond this protocol.
    device: Any  #: The device on which operations run; None for the host.
    #: Lets one thread at a time in. Each method takes it by itself; a caller that needs several
    #: methods in a row, as for a loop that is planned and run, holds it around them.
    lock: AbstractContextManager[Any]
    #: How the last `loop` or `sweep` of this thread ran, and why, as ``"grid search: ..."``;
    #: ``"eager: ..."`` if statement by statement. Empty before the first one.
    last_loop: str

    @property
    def last_product(self) -> Any:
        """The `direction`, `kernel` and `reason` of this thread's last product, or None."""

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: ops.Statement) -> None:
        """Run a statement that writes a vector or a matrix, and has no reference to a scalar."""

    def evaluate(self, operation: ops.Operation) -> Any:
        """Return the result of `Reduce` or `ExtractElement` as a Python scalar, or None."""

    def explain(self, operation: ops.Operation) -> list[str]:
        """Return lines of text: how a product would run without a mask, and why."""

    def plan_loop(self, body: ops.Statements, turns: ops.Turns) -> ops.Planned:
        """Return a program that repeats a recorded body, or why there is none; nothing is run."""

    def batch_size(
        self, A: Handle, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        """Return the best number of searches of a square matrix to run at once.

        Each of `sources` searches, of so many `levels`, is a row of k x n matrices; `live` has the
        number of such matrices of each type that are in use at the same time.
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
        """Return a vector with entries at distinct, rising `indices`, or everywhere for None."""

    def matrix_from_coo(
        self, rows: Any, cols: Any, values: Any, dtype: DType,
        shape: tuple[int, int], dup_op: BinaryOp | None,
    ) -> Handle:  # fmt: skip
        """Return a matrix of triplets; `InvalidValue` if one is given twice without `dup_op`."""

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType,
        shape: tuple[int, int], symmetric: bool | None = None,
    ) -> Handle:  # fmt: skip
        """Return a matrix of valid, sorted CSC arrays, `symmetric` if the caller knows that."""

    def matrix_from_diagonal(self, v: Handle, k: int) -> Handle:
        """Return the square matrix with the vector `v` on diagonal `k`."""

    def diagonal(self, A: Handle, k: int, rows: Array | None = None) -> Handle:
        """Return diagonal `k` of a matrix as a vector.

        With `rows`, (ncols,) INT64 on the host, return instead the entries (rows[j], j) with a row
        of 0 or more: so the diagonal of a matrix in pieces is found.
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

    def nvals(self, x: Handle) -> int:
        """Return the number of entries of a vector or matrix."""

    def form(self, x: Handle) -> str:
        """Return the storage form of a vector or matrix in words, as in ``"bitmap, iso"``."""

    def isequal(self, x: Handle, y: Handle) -> bool:
        """Return True if two objects of the same shape have the same entries and equal values."""

    def levels(self, x: Handle) -> ops.Levels | None:
        """Return the present entries of an integer object by value, or None to sort on the host."""

    def is_symmetric(self, A: Handle) -> bool:
        """Return whether ``A' == A``, entries and values; the backend remembers the answer.

        Values are compared as numbers: NaN equals nothing, and -0.0 equals 0.0.
        """

    def wait(self, x: Handle) -> None:
        """Return when all operations that make a vector or matrix have ended."""

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: Handle, i: int, value: Any) -> None:
        """Set entry `i` to a NumPy scalar of the vector's type."""

    def vector_remove(self, v: Handle, i: int) -> None:
        """Delete entry `i` if there is one."""

    def vector_clear(self, v: Handle) -> None:
        """Delete all entries."""

    def may_keep_csr(self, A: Handle, allowed: bool | None) -> bool:
        """Return whether a directed matrix may be stored by rows too; set this unless None."""


# ---- Values that the processes of a backend have each for themselves
def of_all(backend: Backend, *numbers: float) -> list[list[float]]:
    """Return the numbers that each process of a backend has, in one order, the same in all.

    Every process calls it, with as many numbers. A process that decided by its own clock, free
    memory or random numbers could decide otherwise, and the others wait for it forever.
    """
    parts = backend.capabilities.parts
    if parts is None or len(parts.homes) == parts.count:
        return [list(numbers)]
    return [its.tolist() for (its,) in parts.gather(lambda _home, _piece: (np.array(numbers),))]


def require_alike(backend: Backend, what: str, **given: Any) -> None:
    """Raise `ProcessFailed` in every process of a backend unless all give the same, by name.

    Statements do so by themselves: this is for what decides what a process does with its own part.
    """
    if backend.capabilities.parts is not None:
        backend.capabilities.parts.require_alike(what, given)


def in_step(backend: Backend, work: Callable[[], T]) -> T:
    """Return the result of what each process does without the backend; all raise one's error."""
    parts = backend.capabilities.parts
    if parts is None or len(parts.homes) == parts.count:
        return work()
    done: list[T] = []

    def once(_home: Backend, _piece: int) -> tuple[()]:
        if not done:
            done.append(work())
        return ()

    parts.gather(once)
    return done[0]
