"""The grid: the `Backend` protocol over pieces, what is done part by part, and its meter."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.profile import GpuMeter, rows_without_log
from lagpu.backends.grid import pieces, program, statements, systems
from lagpu.backends.grid.comm import Arrays, LocalEngine
from lagpu.backends.grid.exchange import whole
from lagpu.backends.grid.partition import GridHandle, Layout, needed
from lagpu.backends.grid.pieces import Given, GridClusters, Pieces, cluster_size
from lagpu.backends.grid.search import GridLoop, fuse, plan_loop, search_again, searches
from lagpu.backends.guard import guarded, out_of_memory, refuse_after_fork
from lagpu.backends.policies import sparse_batch_size
from lagpu.backends.protocol import Backend, LoopMeasured, LoopRow, Measured, Meter
from lagpu.dtypes import DType
from lagpu.errors import LagpuError
from lagpu.host.memory import mapped
from lagpu.operations import Operation, Planned, Rejection, Statement

Array = np.ndarray[Any, Any]
T = TypeVar("T")
Work = Callable[[Backend, int], Arrays]


class Parts:
    """See `lagpu.backends.protocol.Parts`."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self.count = pieces.engine.size
        self.beside = len(pieces.engine.local) * pieces.engine.beside
        self.homes = pieces.places

    def matrix(
        self, part: Callable[[Backend, Layout, int], ops.Handle], dtype: DType,
        shape: tuple[int, int], symmetric: bool | None = None, apart: bool = False,
    ) -> GridHandle:  # fmt: skip
        by = self._pieces.layout(shape)

        def attempt(piece: tuple[int, int, Backend]) -> Any:
            """Return a part, or its error, which is raised inside the statement."""
            try:
                return part(piece[2], by, piece[1])
            except Exception as error:
                return error

        ready = mapped(attempt, self._pieces, waits=True) if apart and self._on_own_gpus else []

        def make() -> GridHandle:
            parts = [*ready] or [part(place, by, p) for _, p, place in self._pieces]
            for found in parts:
                if isinstance(found, Exception):
                    raise found
            made = self._pieces.handle(parts, dtype, shape)
            made.symmetric = symmetric
            return self._pieces.ordered(made)

        given = {"dtype": dtype, "shape": shape, "symmetric": symmetric}
        return self._run("matrix of parts", make, given)

    def owned(self, entries: Work, shape: tuple[int, int]) -> dict[int, Arrays]:
        by = self._pieces.layout(shape)

        def send() -> dict[int, Arrays]:
            given = [entries(place, p) for _, p, place in self._pieces]
            received = self._pieces.routed(given, [by.owner(*lists[:2]) for lists in given])
            local = zip(self._pieces.engine.local, received, strict=True)
            return {p: (*by.position(*own[:2]), *own[2:]) for p, own in local}

        return self._run("entries of parts", send, {"shape": shape})

    def columns(self, A: GridHandle) -> dict[int, tuple[Any, ...]]:
        by = self._pieces.layout(A.shape)

        def read() -> dict[int, tuple[Any, ...]]:
            found = {}
            for k, p, place in self._pieces:
                each = zip(by.dims, by.parts(p), strict=True)
                names = [None if dim.whole else dim.own(part) for dim, part in each]
                found[p] = (*place.matrix_to_csc(A.parts[k], narrow=True), *names)
            return found

        return self._run("columns of parts", read, {"matrix": A})

    def reduced(
        self, work: Callable[[Backend, int], Array],
        shape: tuple[int, int], dim: int, ufunc: np.ufunc,
    ) -> Array:  # fmt: skip

        def reduce() -> Array:
            found = [work(place, p) for _, p, place in self._pieces]
            columns = [(x,) if x.ndim == 1 else tuple(x.T) for x in found]  # an engine sends lists
            sums = self._pieces.reduced(columns, needed(self._pieces.layout(shape), dim), ufunc)
            return sums[0] if found[0].ndim == 1 else np.stack(sums, axis=1)

        return self._run("sums of parts", reduce, {"shape": shape, "dim": dim})

    def gather(self, work: Work) -> list[Arrays]:
        pieces = self._pieces
        return self._run(
            "gather", lambda: pieces.engine.gather([work(place, p) for _, p, place in pieces])
        )

    def require_alike(self, what: str, given: Given) -> None:
        self._run(what, lambda: None, given)

    @property
    def _on_own_gpus(self) -> bool:
        """Whether each of several local pieces has a GPU to itself."""
        devices = {id(x.device) for x in self.homes if x.device and x.device.xp is not np}
        return len(devices) == len(self.homes) > 1

    def _run(self, name: str, work: Callable[[], T], given: Given = pieces.NOTHING) -> T:
        with self._pieces.lock:
            return self._pieces.run(name, work, given)


# --------- Measure the statements of a grid: its time and what it sends, and the work of its places
class GridMeter:
    """Times statements to their end on every local piece; see `Meter`.

    The time is the host's, of all pieces; edges, bytes, compiling and copies are sums over the
    places' own meters, and the kernel is that of the first piece. `count` returns the number of
    entries of a vector or matrix.
    """

    def __init__(self, pieces: Pieces, count: Callable[[GridHandle], int]) -> None:
        self._pieces, self._count = pieces, count
        own = {id(place): place.meter() for place in pieces.places}
        self._own = list(own.values())
        self._of_piece = [own[id(place)] for place in pieces.places]

    def run(
        self, work: Callable[[], None], out: GridHandle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement to its end, and time it; other threads' bytes do not count."""
        pieces, engine = self._pieces, self._pieces.engine
        with pieces.lock:
            before, start = engine.sent, time.perf_counter()
            pieces.phases, pieces.since = [], start
            with self._watched() as parts:
                work()
                if out is not None:
                    for k, _, place in pieces:
                        place.wait(out.parts[k])
                folds = any(phase.name == "fold" for phase in pieces.phases)
                pieces.mark("update" if folds else "expansion")
            ms = (time.perf_counter() - start) * 1e3
            said, phases = "", tuple(pieces.phases)
            if isinstance(operation, (ops.Multiply, ops.MultiplySelection)):
                said = f"{engine.size} pieces; {engine.sent - before} bytes sent"
        of = phases if said else ()
        return lambda: _together([part() for part in parts], ms, said)._replace(phases=of)

    @contextmanager
    def _watched(self) -> Iterator[list[Callable[[], Measured]]]:
        """Measure each part of a statement by the meter of its place, in their order."""
        parts: list[Callable[[], Measured]] = []

        def watch(k: int, statement: Statement) -> None:
            place = self._pieces.places[k]
            run = self._of_piece[k].run
            parts.append(run(lambda: place.execute(statement), statement.out, statement.operation))

        self._pieces.watch = watch
        try:
            yield parts
        finally:
            self._pieces.watch = None

    def run_loop(self, plan: Callable[[], Planned]) -> tuple[Planned, LoopMeasured | None]:
        """See `Meter`: a kernel of all pieces has a log on each device."""
        with self._pieces.lock:
            compiled, start = self._compile_ms(), time.perf_counter()
            with self._watched():  # it waits for its end
                loop = plan()
                if isinstance(loop, Rejection):
                    return loop, None
                if isinstance(loop, GridLoop):
                    loop.run([cast(GpuMeter, meter).log() for meter in self._of_piece])
                else:
                    loop.run()
            ms = (time.perf_counter() - start) * 1e3
            compile_ms = self._compile_ms() - compiled
        rows: Callable[[], list[LoopRow]] | None
        whole = Measured(host_ms=ms - compile_ms, compile_ms=compile_ms)
        if isinstance(loop, program.GridProgram):
            products = [isinstance(s.operation, ops.Multiply) for s in loop.statements]
            rows = functools.partial(rows_without_log, products, ms - compile_ms)
        else:
            rows, whole = cast(GridLoop, loop).rows, whole._replace(kernel_ms=ms - compile_ms)
        # without rows it had no iteration
        return loop, None if rows is None else LoopMeasured(rows, lambda: whole)

    def _compile_ms(self) -> float:
        devices = {id(d): d for d in (place.device for place in self._pieces.places) if d}
        return float(sum(device.compile_ms for device in devices.values()))

    def count(self, x: GridHandle) -> Callable[[], int]:
        known = self._count(x)
        return lambda: known

    def stop(self) -> Callable[[], Measured]:
        found = [meter.stop() for meter in self._own]
        return lambda: _together([part() for part in found], 0.0, "")

    def unrecorded(self) -> int:
        return max(meter.unrecorded() for meter in self._own)


def _together(parts: Sequence[Measured], ms: float, said: str) -> Measured:
    summed = ("compile_ms", "copy_ms", "copy_bytes")
    sums = {name: sum(getattr(part, name) for part in parts) for name in summed}
    found = Measured(ms, ms, **sums)
    if not parts:
        return found._replace(reason=said)
    first = parts[0]
    # After the pieces' products there may be an assignment of their sums.
    counted = [part for part in parts if part.kernel or not first.kernel]
    return found._replace(
        direction=first.direction,
        kernel=first.kernel,
        reason="; ".join(filter(None, (said, first.reason))),
        edges=_total([part.edges for part in counted]),
        bytes=_total([part.bytes for part in counted]),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


# ---------------------------- The grid: the `Backend` protocol over pieces, each on a local backend
def _named_error(backend: Any, error: Exception, method: str) -> LagpuError | None:
    """Return lagpu's error for one of NumPy; local backends raise named errors already."""
    return out_of_memory(error, method, backend.name) if isinstance(error, MemoryError) else None


@guarded(_named_error)
@pieces.collective
class _LockedGrid:
    """The methods of a grid, each of them a statement that holds the lock of all places."""

    device = None
    enter = None
    last_loop = ""

    def __init__(
        self, name: str, engine: LocalEngine, places: Sequence[Backend],
        grid: tuple[int, int] | None = None, order: str | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.pieces = Pieces(engine, places, grid, order)
        self.lock = self.pieces.lock
        if searches(self.pieces):
            refuse_after_fork(self, name)
            refuse_after_fork(self.pieces, name)
        self.capabilities = places[0].capabilities._replace(
            fuses=False,
            policies=systems.policies_with_systems(places[0]),
            searches=searches(self.pieces),
            systems=tuple(systems.SYSTEMS) if searches(self.pieces) else (),
            parts=Parts(self.pieces),
            clusters=self._clusters,
            patience=self._patience if self.pieces.are_one else None,
            by_rows=False,
        )

    def __repr__(self) -> str:
        return f"<lagpu backend {self.name}>"

    @property
    def last_product(self) -> Any:
        return self.pieces.places[0].last_product

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: Statement) -> None:
        """See `Backend`; one that reads the indices of a vector is one kernel if possible."""
        out, desc, operation, _ = statement
        if self.pieces.are_one:
            self._execute_whole(statement)
            return
        by_kernel = statements.reads_indices(operation) and not self.pieces.watch
        if by_kernel and not statements.are_by_formula(self.pieces, operation):
            loop = self.plan_loop([statement], ops.Until(times=1))
            if isinstance(loop, program.GridProgram):
                return loop.run()
        localized = statements.LOCALIZED[type(operation)](self.pieces, operation, statement)
        keeps = not desc.is_fresh or (
            isinstance(operation, (ops.Assign, ops.AssignScalar)) and operation.indices is not None
        )
        new = self.dup(out, out.dtype) if keeps else self.pieces.empty(out.dtype, out.shape)
        for k, local in enumerate(localized):
            by_mask = desc._replace(mask=None if desc.mask is None else desc.mask.parts[k])
            part = statement._replace(out=new.parts[k], desc=by_mask, operation=local)
            self.pieces.execute(k, part)
        self.pieces.change(lambda: out.become(new))

    def _execute_whole(self, statement: Statement) -> None:
        """Run a statement on the one piece, whose place does all of it or nothing."""
        out, desc, operation, _ = statement
        kind: Any = type(operation)
        if kind is ops.Multiply:  # which may name a system
            (local,) = statements.LOCALIZED[kind](self.pieces, operation, statement)
        else:
            parts = {name: getattr(operation, name).parts[0] for name in kind.reads}
            local = operation._replace(**parts)
        desc = desc._replace(mask=None if desc.mask is None else desc.mask.parts[0])
        out.take(out.parts)  # facts of before do not hold
        self.pieces.execute(0, statement._replace(out=out.parts[0], desc=desc, operation=local))

    def evaluate(self, operation: Operation) -> Any:
        if isinstance(operation, ops.ExtractElement):
            return statements.element(self.pieces, operation)
        assert isinstance(operation, ops.Reduce)
        return statements.reduce(self.pieces, operation)

    def explain(self, operation: Operation) -> list[str]:
        """See `Backend`: the product of the first local piece."""
        assert isinstance(operation, (ops.Multiply, ops.MultiplySelection))
        first = self.pieces.places[0]
        size, how = self.pieces.engine.size, "collects the left operand"
        if isinstance(operation, ops.Multiply):
            A, inner, local = statements.local_products(self.pieces, operation)
            parts = self.pieces.layout(A.shape).dims[inner].pieces
            if parts > 1:
                how = f"collects one of {parts} parts of the left operand, and sends its sums"
            said = first.explain(local[0])
        else:
            left = whole(self.pieces, operation.operand, "mxv")[0]
            part = operation._replace(indices=operation.indices.parts[0], operand=left)
            said = first.explain(part)
        return [f"each of {size} pieces {how}; the first one then:", *said]

    def plan_loop(self, body: ops.Statements, turns: ops.Turns) -> Planned:
        named = systems.without_system(body)[1] is not None
        if not (named or isinstance(turns, ops.Sweep) or self.pieces.watch):  # a trace logs pieces
            one = program.plan_on_one(self.pieces, body, turns)
            if one is not None:
                return one
        found = plan_loop(self.pieces, body, turns)
        if not isinstance(found, Rejection) or not self.pieces.one_kernel:
            return found
        why = f"no search: {found.why}"
        if named:
            return Rejection(why)
        if not fuse(self.pieces):
            other = "other loops are kernels on one column of pieces of one process"
            return Rejection(f"{why}; {other}")
        loop = program.plan_program(self.pieces, body, turns, why)
        if isinstance(loop, Rejection):
            return Rejection(f"{why}; no generated loop: {loop.why}")
        return loop

    def batch_size(
        self, A: GridHandle, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        """See `Backend`: 1 if one kernel searches all pieces; a power of two, or all sources."""
        if fuse(self.pieces):
            return 1
        nvals = self.pieces.nvals(A)
        return sparse_batch_size(self.free_bytes(), A.shape[0], nvals, sources, levels)

    def meter(self) -> Meter:
        return GridMeter(self.pieces, self.nvals)

    def free_bytes(self) -> int:
        own = [place.free_bytes() for place in self.pieces.places]
        return int(min(self.pieces.engine.gather_objects(own)))

    # ------------------------------------------------------------------- objects: made, read
    def vector(self, dtype: DType, size: int) -> GridHandle:
        return self.pieces.empty(dtype, (size,))

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> GridHandle:
        return self.pieces.empty(dtype, shape)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> GridHandle:
        return self.pieces.vector_of(pieces.on_host(indices), pieces.on_host(values), dtype, size)

    def matrix_from_coo(
        self, rows: Any, cols: Any, values: Any, dtype: DType,
        shape: tuple[int, int], dup_op: BinaryOp | None,
    ) -> GridHandle:  # fmt: skip
        """See `Backend`: each piece takes its entries from what every process has."""
        by, parts = self.pieces.layout(shape), []
        rows, cols, values = map(pieces.on_host, (rows, cols, values))
        for _, p, place in self.pieces:
            mine = np.flatnonzero(by.owner(rows, cols) == p)
            own = values[mine] if np.ndim(values) else values
            i, j = by.position(rows[mine], cols[mine])
            parts.append(place.matrix_from_coo(i, j, own, dtype, by.shape(p), dup_op))
        return self.pieces.ordered(self.pieces.handle(parts, dtype, shape))

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType,
        shape: tuple[int, int], symmetric: bool | None = None,
    ) -> GridHandle:  # fmt: skip
        by, parts = self.pieces.layout(shape), []
        col_ptr, row_idx, values = map(pieces.on_host, (col_ptr, row_idx, values))
        data = values if np.ndim(values) else np.ones(len(row_idx), bool)
        whole = sp.csc_array((data, row_idx, col_ptr), shape=shape)
        for _, p, place in self.pieces:
            (rows, cols), (of_row, of_col) = by.dims, by.parts(p)
            own = whole[:, cols.own(of_col)]
            if not rows.whole:
                own = own[rows.own(of_row)]
                own.sort_indices()
            x = own.data if np.ndim(values) else values
            ptr = own.indptr.astype(np.int64)
            parts.append(place.matrix_from_csc(ptr, own.indices, x, dtype, by.shape(p)))
        made = self.pieces.handle(parts, dtype, shape)
        made.symmetric = symmetric
        return self.pieces.ordered(made)

    def _patience(self, handles: Sequence[Any], turns: ops.Until | ops.Levels) -> int | None:
        patience = self.pieces.places[0].capabilities.patience
        if patience is None or not isinstance(turns, ops.Until):
            return None
        of = {id(x): x.parts[0] for x in (*handles, *turns[:2]) if x is not None}
        return patience([of[id(x)] for x in handles], turns.on(of))

    def _clusters(self, A: GridHandle, asked: int | None) -> GridClusters | None:
        pieces = self.pieces
        of = pieces.run(
            "clusters",
            lambda: cluster_size(pieces, A, asked, self.free_bytes()),
            {"graph": A, "pieces": asked},
        )
        if of == pieces.engine.size:
            return None

        def make(engine: LocalEngine, places: Sequence[Backend]) -> Backend:
            name = f"{self.name}, {of} pieces"
            return cast(Backend, GridBackend(name, engine, places, None, pieces.order))

        return pieces.run("clusters", lambda: GridClusters(pieces, of, make))

    def matrix_from_diagonal(self, v: GridHandle, k: int) -> GridHandle:
        n = v.shape[0] + abs(k)
        given = [(i + max(-k, 0), i + max(k, 0), x) for i, x in self.pieces.entries(v)]
        return self.pieces.sent(given, v.dtype, (n, n))

    def diagonal(self, A: GridHandle, k: int, rows: Any = None) -> GridHandle:
        assert rows is None  # which only a piece is given
        m, n = A.shape
        size = max(0, min(m - max(-k, 0), n - max(k, 0)))
        given, layout = [], self.pieces.layout(A.shape)
        by_row, by_col = layout.dims
        for at, p, place in self.pieces:
            of_row, of_col = layout.parts(p)
            cols = by_col.own(of_col)
            row = np.clip(cols - k, 0, max(m - 1, 0))
            there = (row == cols - k) & (by_row.owner(row) == of_row) if m else row < 0
            rows = np.where(there, by_row.position(row), -1)
            where, values = place.vector_to_coo(place.diagonal(A.parts[at], 0, rows))
            given.append((cols[where] - max(k, 0), values))
        return self.pieces.sent(given, A.dtype, (size,))

    def dup(self, x: Any, dtype: DType) -> Any:
        parts = [place.dup(x.parts[k], dtype) for k, _, place in self.pieces]
        copy = self.pieces.handle(parts, dtype, x.shape)
        copy.symmetric = x.symmetric or None
        return copy

    def vector_to_coo(self, v: GridHandle) -> tuple[Array, Array]:
        indices, values = self.pieces.collected(v)
        return indices, values

    def matrix_to_csc(
        self, A: GridHandle, on_device: bool = False, narrow: bool = False
    ) -> tuple[Array, Array, Array]:
        rows, cols, values = self.pieces.collected(A)
        return pieces.column_offsets(cols, A.shape[1]), rows, values

    def vector_values(self, v: GridHandle, on_device: bool = False) -> Array:
        (size,), pieces = v.shape, self.pieces
        if pieces.nvals(v) < size:
            return self.vector_to_coo(v)[1]
        given = [(place.vector_values(v.parts[k]),) for k, _, place in pieces]
        found, by = np.empty(size, v.dtype.numpy), pieces.partition(size)
        for p, (own,) in enumerate(pieces.engine.gather(given)):
            by.put(p, own, found)
        return found

    def set_values(self, x: Any, values: Array) -> None:
        received = self.pieces.engine.gather(self.pieces.entries(x))
        *rows, indices, given = pieces.joined(received)
        put = np.empty_like(given)
        put[pieces.order_by_columns(*rows, indices)] = pieces.on_host(values)
        of_piece = np.split(put, np.cumsum([len(lists[0]) for lists in received])[:-1])
        new = self.dup(x, x.dtype)
        for k, p, place in self.pieces:
            place.set_values(new.parts[k], of_piece[p])
        self.pieces.change(lambda: x.become(new))

    def vector_head(self, v: GridHandle, count: int) -> tuple[Array, Array]:
        by, given = self.pieces.partition(v.shape[0]), []
        for k, p, place in self.pieces:
            where, values = place.vector_head(v.parts[k], count if by.rises else by.count(p))
            given.append(_first(count, by.index(p, where), values))
        return _first(count, *pieces.joined(self.pieces.engine.gather(given)))

    def nvals(self, x: GridHandle) -> int:
        return self.pieces.nvals(x)

    def form(self, x: GridHandle) -> str:
        return f"{self.pieces.engine.size} pieces, {self.pieces.places[0].form(x.parts[0])}"

    def isequal(self, x: GridHandle, y: GridHandle) -> bool:
        unequal = [not place.isequal(x.parts[k], y.parts[k]) for k, _, place in self.pieces]
        return self.pieces.engine.sum(unequal) == 0

    def levels(self, x: GridHandle) -> program.GridLevels | None:
        """See `Backend`: those of a vector by its pieces, if these may run one kernel."""
        may = len(x.shape) == 1 and fuse(self.pieces)
        return program.GridLevels(self.pieces, x) if may else None

    def is_symmetric(self, A: GridHandle) -> bool:
        if A.symmetric is not None:
            return A.symmetric
        found = self.isequal(A, self.pieces.transpose(A))
        self.pieces.change(lambda: A.knows(found))
        return found

    def wait(self, x: GridHandle) -> None:
        for k, _, place in self.pieces:
            place.wait(x.parts[k])
        self.pieces.engine.barrier()

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: GridHandle, i: int, value: Any) -> None:
        """See `Backend`: in place, so all processes synchronize first."""
        before = v.count
        for place, part, at in self._owner_of(v, i):
            place.vector_set(part, at, value)
        if before == 0:
            v.count, v.single = 1, (i, value)

    def vector_remove(self, v: GridHandle, i: int) -> None:
        for place, part, at in self._owner_of(v, i):
            place.vector_remove(part, at)

    def _owner_of(self, v: GridHandle, i: int) -> list[tuple[Backend, Any, int]]:
        """Return (place, part, position) of an index, if its owner is here."""
        self.pieces.engine.barrier(last=True)
        parts, v.count, v.single = v.parts, None, None
        owner, at = self.pieces.partition(v.shape[0]).located(i)
        return [(place, parts[k], at) for k, p, place in self.pieces if p == owner]

    def vector_clear(self, v: GridHandle) -> None:
        self.pieces.change(functools.partial(v.become, self.pieces.empty(v.dtype, v.shape)))

    def may_keep_csr(self, A: GridHandle, allowed: bool | None) -> bool:
        found = [place.may_keep_csr(A.parts[k], allowed) for k, _, place in self.pieces]
        return all(found)


class GridBackend(_LockedGrid):
    """Vectors and matrices that are distributed to pieces. See `Backend`; arguments as `Pieces`.

    A statement makes new parts, then the handle takes all of them at once: one that fails leaves
    every object as it was. What is on the host of one process alone needs no lock; a plan that was
    made before needs none more than that of its caller.
    """

    def vector(self, dtype: DType, size: int) -> GridHandle:
        if size < self.pieces.unlocked:
            return GridHandle(self.pieces.parts_of, dtype, (size,))
        return super().vector(dtype, size)

    def vector_set(self, v: GridHandle, i: int, value: Any) -> None:
        if not self.pieces.unlocked or v.count != 0:
            return super().vector_set(v, i, value)
        v.take(self.pieces.parts_of)
        v.count, v.single = 1, (i, value)

    def nvals(self, x: GridHandle) -> int:
        return super().nvals(x) if x.count is None or not self.pieces.unlocked else x.count

    def plan_loop(self, body: ops.Statements, turns: ops.Turns) -> Planned:
        return search_again(self.pieces, body, turns) or super().plan_loop(body, turns)


def _first(count: int, indices: Array, values: Array) -> tuple[Array, Array]:
    """Return the first entries of a list in any order."""
    first = np.argsort(indices)[:count]
    return indices[first], values[first]
