"""Measure statements, kernels and fused loops on a device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu import operations as ops
from lagpu.backends.gpu.device.protocol import Device, DeviceObserver, Work
from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle, stride
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, nwords
from lagpu.backends.protocol import LoopMeasured, LoopRow, Measured
from lagpu.dtypes import BOOL, DType

Array = Any
CAPACITY = 1 << 16  # records; 6 MB, and some 65,000 levels of a search
_HEAD, _COUNT, _LOST = constant("kLogHead"), constant("kLogCount"), constant("kLogLost")
# As ``Record`` in common/log.cuh.
_FIELDS = ("how", "statement", "iteration", "in", "out", "edges", "frontier_edges", "other", "ns")
RECORD = np.dtype([*((name, np.uint64) for name in _FIELDS), ("added", np.uint64, 3)])
_WORDS = RECORD.itemsize // 8


class LoopLog:
    """Records of the loops of one trace on one device, in one buffer, `words`.

    `unseen` returns a method of the device, such as ``"to_host"``, whose calls no trace shows;
    `spare` has buffers of earlier logs, for reuse; `capacity` records fit.
    """

    def __init__(
        self, device: Device, unseen: Callable[[str], Callable[[Array], Any]], spare: list[Array]
    ) -> None:
        self.capacity = CAPACITY
        self._device, self._unseen, self._spare = device, unseen, spare
        self._rows: Callable[[], list[LoopRow]] | None = None
        self._found: Sequence[np.ndarray[Any, Any]] = ()  # records of each loop
        self._launched = self._lost = 0
        self._found_at = 0  # how many loops had been launched
        count = _HEAD + CAPACITY * _WORDS
        words: Array = spare.pop() if spare else None
        if words is None or len(words) != count:
            device.require(8 * count, "trace", "Use trace(fuse=False), which keeps no log.")
            words = device.xp.empty(count, np.uint64)
        self.words = words

    def __del__(self) -> None:
        if hasattr(self, "words") and not self._spare:  # one is enough
            self._spare.append(self.words)

    @property
    def is_new(self) -> bool:
        """Whether no loop has written to the log; its words are not initialised then."""
        return self._launched == 0

    def count_of(self, v: VectorStore) -> Callable[[], int]:
        """Return a callable that returns how many entries a vector has now; nothing waits yet."""
        return v.pending_count(self._unseen("read"))

    def ran(self, rows_of: Callable[[np.ndarray[Any, Any]], Iterable[LoopRow]]) -> None:
        """Note that a loop was launched; `rows_of` makes its rows of its records."""
        records = self.launched()
        self._rows = lambda: list(rows_of(records()))

    def launched(self) -> Callable[[], np.ndarray[Any, Any]]:
        """Note that a loop was launched; return a function that fetches its records."""
        number = self._launched
        self._launched += 1

        def records() -> np.ndarray[Any, Any]:
            self._fetch()
            return self._found[number] if number < len(self._found) else np.empty(0, RECORD)

        return records

    def take_rows(self) -> Callable[[], list[LoopRow]] | None:
        """Return the maker of the rows of the loop launched since the last call, or None."""
        rows, self._rows = self._rows, None
        return rows

    @property
    def lost(self) -> int:
        """How many rows did not fit; waits for the loops."""
        self._fetch()
        return self._lost

    def _fetch(self) -> None:
        """Copy the records to the host, unless they are there."""
        if self._found_at == self._launched:
            return
        copy = self._unseen("to_host")
        with self._device.lock, self._device.entered():
            head = copy(self.words[:_HEAD])
            count = int(head[_COUNT])
            found = copy(self.words[_HEAD : _HEAD + count * _WORDS]).view(RECORD)
        begins = np.flatnonzero(found["how"] == constant("kBegins"))
        self._found = np.split(found, begins[1:]) if count else []
        self._lost, self._found_at = int(head[_LOST]), self._launched


def rows_without_log(are_products: Sequence[bool], kernel_ms: float) -> list[LoopRow]:
    """Return a row for each statement of the body, for all iterations together."""
    why = "one kernel for all levels, which keeps no log"
    timed = Measured(kernel_ms, None, kernel="fused", reason=why)
    untimed = Measured(0.0, None, kernel="fused", reason=f"{why}; timed with the product")
    measured = (timed if is_product else untimed for is_product in are_products)
    return [LoopRow(k, None, None, None, of) for k, of in enumerate(measured)]


_LISTED_VERTEX = 8  # bytes of a vertex and its degree in a list of vertices


class SearchTraffic(NamedTuple):
    """Bytes that a level of a search moves, except `vertices` and `positions`, which are counts."""

    edge: int  #: Of an edge that is looked at: its index, and the matrix' value if that is read.
    word: int  #: Of presence bits that an edge leads to.
    bits: int  #: Of all presence bits of the frontier.
    offset: int  #: Of where a column begins.
    #: Of a vertex in the list of a frontier; 0 for a bitmap matrix, which has no lists.
    listed: int
    value: int  #: Of a value that the frontier carries.
    #: How many the matrix and the frontier have.
    vertices: int
    positions: int
    assigned: list[int]  #: Of a value that each of the other statements assigns.

    @classmethod
    def of(cls, statements: ops.Statements) -> SearchTraffic:
        product = next(s for s in statements if isinstance(s.operation, ops.Multiply))
        assigned = [value_bytes(s.out.dtype) for s in statements if s is not product]
        operation: Any = product.operation
        A, u = operation.matrix.csc(), operation.operand
        if isinstance(u, VectorStore):
            return cls.of_vector(A, operation.product, u.dtype, u.size, assigned)
        (rows, n), each = u.shape, stride(u.shape[0])
        offset, word = A.col_ptr.itemsize, min(each, 64) // 8
        return cls(A.row_idx.itemsize, word, each * n // 8, offset, 0, 0, n, rows * n, assigned)

    @classmethod
    def of_vector(
        cls, A: CscMatrix, product: ops.Product, dtype: DType, n: int, assigned: list[int]
    ) -> SearchTraffic:
        """Return the traffic of a search whose frontier is a vector of n values of a type."""
        adds_up = not product.semiring.monoid.has_any_terminal
        carried = value_bytes(dtype) if product.reads[0] or adds_up else 0
        edge, offset, bits = _bytes_of_edge(A, product), A.col_ptr.itemsize, 4 * nwords(n)
        return cls(edge, 4, bits, offset, _LISTED_VERTEX + offset, carried, n, n, assigned)

    def moved(self, r: Any, edges: int | None, left: int) -> int | None:
        """Return the bytes of a level, by its record; `left` had no entry before."""
        entered, found, how = int(r["in"]), int(r["out"]), r["how"]
        if how == _FINDS_NOTHING:
            return 0
        if edges is None:
            return None
        values = self.edge * edges + self.value * (entered + found)
        if how == _PULLS:
            return values + 2 * self.offset * min(left, self.vertices) + 3 * self.bits
        listed = 0 if how in (_PUSHES_ALONE, _PUSHES_IN_CLUSTER) else self.listed
        places = (self.word + 2 * self.offset) * min(entered, self.vertices)
        if self.listed:
            places = 2 * self.offset * found + listed * (entered + found)
        return values + places + min(self.word * edges, self.bits)


class StatementTraffic(NamedTuple):
    """Bytes that a statement of a generated loop moves in an iteration; `columns` is a count."""

    bits: int  #: Of the presence bits of its vectors.
    values: int  #: Of one value of each of them.
    #: As in `SearchTraffic`; 0 if it is no product with a matrix.
    edge: int = 0
    offset: int = 0
    columns: int = 0  #: How many a pull looks at.

    @classmethod
    def of(cls, s: ops.Statement) -> StatementTraffic:
        operation = s.operation
        seen = {id(v): v for v in (s.out, *ops.operands_of(operation)) if type(v) is VectorStore}
        values = sum(value_bytes(v.dtype) for v in seen.values())
        mask = s.desc.mask
        if mask is not None and id(mask) not in seen:
            seen[id(mask)] = mask
            values += 0 if s.desc.structure else value_bytes(mask.dtype)
        bits = sum(4 * nwords(v.size) for v in seen.values())
        if not isinstance(operation, ops.Multiply):
            return cls(bits, values)
        A, product = operation.matrix.csc(), operation.product
        bits += 4 * nwords(s.out.size)  # sums are in a vector of their own
        values += value_bytes(product.result)
        columns = A.shape[product.transpose]
        return cls(bits, values, _bytes_of_edge(A, product), A.col_ptr.itemsize, columns)

    def moved(self, edges: int | None, entered: int, found: int, pulled: bool) -> int:
        """Return the bytes; the vectors have as many values as went in or came out."""
        columns = self.columns if pulled else min(entered, self.columns)
        whole = self.bits + self.values * max(entered, found)
        return whole + self.edge * (edges or 0) + 2 * self.offset * columns


def _bytes_of_edge(A: CscMatrix, product: ops.Product) -> int:
    """Return the bytes of an entry's row, and of its value if the product reads that."""
    value = A.dtype.numpy.itemsize if product.reads[1] and A.values is not None else 0
    return int(A.row_idx.itemsize) + value


def value_bytes(dtype: DType) -> int:
    """Return the bytes of a value; Boolean ones are taken to be all equal, so none is stored."""
    return 0 if dtype is BOOL else dtype.numpy.itemsize


_PUSHES_ALONE, _PUSHES_IN_CLUSTER = constant("kPushesAlone"), constant("kPushesInCluster")
_PUSHES_INTO_WORDS, _PULLS = constant("kPushesIntoWords"), constant("kPulls")
_FINDS_NOTHING, _UNKNOWN = constant("kFindsNothing"), constant("kUnknown")
Count = Callable[[], int]


class SearchRows:
    """The rows of a search; each record covers all statements of one level.

    `had` has for each assignment a callable that returns its output's entries before the loop, or
    None; ``why(record, how)`` returns why a level went in its direction, with what the record
    before says of how, 0 for the first; `traffic` is what a level moves.
    """

    def __init__(
        self, statements: ops.Statements, had: Sequence[Count | None],
        why: Callable[[Any, int], str], traffic: SearchTraffic | None = None,
    ) -> None:  # fmt: skip
        self._traffic = traffic or SearchTraffic.of(statements)
        self._had, self._why, self._count = had, why, len(statements)
        self._product = [isinstance(s.operation, ops.Multiply) for s in statements].index(True)
        self.assigns_after = self._product == 0
        self._others = [k for k in range(self._count) if k != self._product]
        # an assignment of the depth has no operand: its row counts its output's old entries
        self._reads_itself = [not ops.operands_of(statements[k].operation) for k in self._others]

    def __call__(self, records: np.ndarray[Any, Any]) -> Iterator[LoopRow]:
        product, traffic, assigns_after = self._product, self._traffic, self.assigns_after
        before = [0 if count is None else count() for count in self._had]
        last, reached, how = list(before), 0, 0
        made = Measured(0.0, None, kernel="fused", reason="made with the level's product")
        for r, ms in _timed(records):
            entered, found = int(r["in"]), int(r["out"])
            assigned = found if assigns_after else entered
            left = traffic.positions - reached - (0 if assigns_after else entered)
            reached += assigned
            level, pulls = int(r["iteration"]), r["how"] == _PULLS
            if r["how"] == _FINDS_NOTHING:
                pulls = r["frontier_edges"] == _UNKNOWN  # in words, for a pull
            rows = []
            for k, statement in enumerate(self._others):
                into = last[k] if self._reads_itself[k] else assigned
                last[k] = before[k] + (reached if self._had[k] is None else int(r["added"][k]))
                written = made._replace(bytes=assigned * traffic.assigned[k])
                rows.append(LoopRow(statement, level, into, last[k], written))
            direction, edges = "pull" if pulls else "push", _known(r["edges"])
            measured = Measured(
                ms, None, direction=direction, kernel="fused", reason=self._why(r, how),
                edges=edges, bytes=traffic.moved(r, edges, left),
            )  # fmt: skip
            rows.insert(product, LoopRow(product, level, entered, found, measured))
            how = int(r["how"])
            yield from rows


def why_level(n: int, kind: str, alpha: float, beta: float, r: Any, before: int) -> str:
    """Return why a level of a fused search went in its direction, in numbers."""
    pulls, found, pulled = r["how"] == _PULLS, int(r["in"]), before == _PULLS
    if r["how"] == _FINDS_NOTHING:
        return f"vertices {found}, none leads on: not run"
    if r["how"] == _PUSHES_ALONE:
        return f"vertices {found}, few for several levels: one thread block alone"
    if r["how"] == _PUSHES_IN_CLUSTER:
        return f"vertices {found}, few for several levels: one cluster of thread blocks alone"
    if kind in ("kOnlyPushes", "kOnlyPulls"):
        return f"vertices {found}; one form of the matrix {'pulls' if pulls else 'pushes'}"
    if kind == "kByUnvisited":
        share = found / int(r["other"]) if r["other"] else float("inf")
        return f"frontier / unvisited {share:.3g} {'>=' if pulls else '<'} {alpha:g}"
    if kind == "kByDensity":
        if pulled:
            return f"pulled before; vertices {found}"
        return f"density {found / n:.2%} {'>=' if pulls else '<'} {100 * alpha:g}%"
    if before == _PUSHES_INTO_WORDS and pulls:
        return f"pushed into words before; vertices {found}"
    if pulled and not pulls and found * beta >= n:
        return f"pulled before; vertices {found}, few of those left"
    if pulled:
        return f"pulled before; vertices {found} {'>=' if pulls else '<'} {n} / {beta:g}"
    if not pulls and int(r["frontier_edges"]) * alpha > int(r["other"]):
        return f"edges {r['frontier_edges']} of unexplored {r['other']} have not grown much"
    sign, into = ">" if pulls else "<=", ": into words" if r["how"] == _PUSHES_INTO_WORDS else ""
    return f"edges {r['frontier_edges']} {sign} unexplored {r['other']} / {alpha:g}{into}"


def why_edges(r: Any, entries: Any, factor: int) -> str:
    """Return why a product went in its direction that pulls from a part of all entries on."""
    sign = ">" if r["how"] == _PULLS else "<="
    return f"edges {r['frontier_edges']} {sign} {entries} / {factor}"


class ProgramRows:
    """The rows of a generated loop, with a record for each statement and iteration.

    `inputs` has for each statement the vector or scalar whose entries are the row's input, `counts`
    by a vector's ``id`` a callable that returns its entries before the loop. A product of a matrix
    pulls where the frontier edges times the factor exceed the entries, (entries, factor) in
    `bounds`; without a choice `why` says so.
    """

    def __init__(
        self, statements: ops.Statements, inputs: list[Any],
        counts: dict[int, Count], bounds: dict[int, tuple[int, int]], why: dict[int, str],
    ) -> None:  # fmt: skip
        self._traffic = [StatementTraffic.of(s) for s in statements]
        self._counts, self._bounds, self._why = counts, bounds, why
        self._writes = [id(s.out) for s in statements]
        self._reads = [id(x) for x in inputs]
        self._operations = [type(s.operation) for s in statements]
        self._of_scalars = [
            k for k, s in enumerate(statements)
            if s.writes_scalar and not isinstance(s.operation, (ops.Reduce, ops.ExtractElement))
        ]  # fmt: skip

    def __call__(self, records: np.ndarray[Any, Any]) -> Iterator[LoopRow]:
        counts = {of: count() for of, count in self._counts.items()}
        made = Measured(0.0, None, kernel="fused", reason="a statement of one generated loop")
        for r, ms in _timed(records):
            k = int(r["statement"])
            operation, pulls = self._operations[k], r["how"] == _PULLS
            if k in self._of_scalars:
                continue  # numbers of scalars have no row, as they have none in an eager loop
            measured = made._replace(kernel_ms=ms)
            if operation in (ops.Multiply, ops.MultiplySelection):
                chooses = r["frontier_edges"] != _UNKNOWN and k in self._bounds
                measured = measured._replace(
                    direction="pull" if pulls else "push", edges=_known(r["edges"]),
                    reason=why_edges(r, *self._bounds[k]) if chooses else self._why[k],
                )  # fmt: skip
            entered = counts[self._reads[k]]
            found = counts[self._writes[k]] = int(r["out"])
            moved = self._traffic[k].moved(measured.edges, entered, found, pulls)
            yield LoopRow(k, int(r["iteration"]), entered, found, measured._replace(bytes=moved))


def _timed(records: np.ndarray[Any, Any]) -> Iterator[tuple[Any, float]]:
    """Yield each record after the first with the milliseconds since the one before it."""
    ns = np.maximum(np.diff(records["ns"].astype(np.int64)), 0)
    yield from zip(records[1:], (ns / 1e6).tolist(), strict=True)


def _known(number: Any) -> int | None:
    return None if number == _UNKNOWN else int(number)


class Last(threading.local):
    """What a thread did last: the plan of a product, and how a loop ran."""

    plan: Any = None
    loop: str = ""


class Runtime:
    """The device of a backend, its counters, and the measurements of its last product.

    While a product is measured, `edges` counts the matrix entries that it looks at, and `product`
    is the result of a product of matrices before it was written. `observers` and `logs` are those
    of stopped meters, for reuse.
    """

    def __init__(self, device: Device) -> None:
        self.device, self.counters, self.last = device, Counters(device), Last()
        self.edges: Any = None
        self.product: CscMatrix | BitmapMatrix | None = None
        self.observers: list[DeviceObserver] = []
        self.logs: list[Array] = []


class GpuMeter:
    """Measures statements on a device; see `Meter`."""

    def __init__(self, runtime: Runtime, traffic: Mapping[str, Any]) -> None:
        self._runtime, self._device, spare = runtime, runtime.device, runtime.observers
        self._observer = spare.pop() if spare else DeviceObserver(self._device, traffic)
        self._outside = Work()
        self._observer.enter(self._outside)
        self._compiled = self._device.compile_ms  # before, and since then inside statements
        self._log: LoopLog | None = None

    def run(
        self, work: Callable[[], None], out: Any, operation: ops.Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement; see `Meter`. No other thread's work comes between its parts."""
        with self._device.lock, self._device.entered():
            if operation is None and out.known == 0 and out.form == "sparse":
                start = time.perf_counter()  # a first entry: nothing is launched, nor copied
                work()
                first_ms = (time.perf_counter() - start) * 1e3
                return lambda: Measured(0.0, first_ms, bytes=0)
            if isinstance(operation, (ops.Multiply, ops.MultiplySelection)):
                return self._run_product(work, out, operation.operand)
            now = Work()
            _, host_ms = self._observed(now, work, timed=True)
            return lambda: now.measured(host_ms)

    def _run_product(
        self, work: Callable[[], None], out: VectorStore | MatrixHandle, operand: Any
    ) -> Callable[[], Measured]:
        """Run a product; of matrices, the result is counted before it is written."""
        runtime, now = self._runtime, Work()
        runtime.edges = counted = runtime.counters.take()
        before = self.count(operand)
        try:
            _, host_ms = self._observed(now, work, timed=True)
        finally:
            runtime.edges = None
        made, runtime.product = runtime.product, None
        plan, read = runtime.last.plan, self._observer.unseen("read")
        written: Any = out if isinstance(out, VectorStore) else made
        after = self.count(written)

        def measured() -> Measured:
            with self._device.lock, self._device.entered():
                edges = int(read(counted))
            counts = {"edges": edges, "in": before(), "out": after()}
            found = now.measured(host_ms, **counts)._replace(edges=edges)
            if plan is None:
                return found
            return found._replace(direction=plan.direction, kernel=plan.kernel, reason=plan.reason)

        return measured

    def run_loop(self, plan: Callable[[], ops.Planned]) -> tuple[ops.Planned, LoopMeasured | None]:
        """See `Meter`: a kernel that keeps a log has the times; launches of others are timed."""
        now = Work()

        def plan_and_run() -> Any:
            made: Any = plan()  # a `KernelLoop`, unless it is rejected
            if not isinstance(made, ops.Rejection):
                self._observer.timed = not made.keeps_log
                made.run(*([self.log()] if made.keeps_log else []))
            return made

        loop, host_ms = self._observed(now, plan_and_run, timed=False)
        if isinstance(loop, ops.Rejection):
            return loop, None
        rows = None if self._log is None else self._log.take_rows()
        if not loop.keeps_log:  # of the loop nothing is kept: it holds matrices
            multiply = [isinstance(s.operation, ops.Multiply) for s in loop.statements]
            rows = lambda: rows_without_log(multiply, now.measured(host_ms).kernel_ms)  # noqa: E731
        if rows is None:  # it had no iteration
            return loop, None
        return loop, LoopMeasured(rows, lambda: now.measured(host_ms))

    def log(self) -> LoopLog:
        if self._log is None:
            self._log = LoopLog(self._device, self._observer.unseen, self._runtime.logs)
        return self._log

    def _observed(self, now: Work, work: Callable[[], Any], timed: bool) -> tuple[Any, float]:
        """Return what `work` returns, and the milliseconds the host took for it."""
        device, observer = self._device, self._observer
        observer.now, observer.timed = now, timed
        compiled, start = device.compile_ms, time.perf_counter()
        try:
            found = work()
        finally:
            host_ms = (time.perf_counter() - start) * 1e3
            now.compile_ms = device.compile_ms - compiled
            self._compiled += now.compile_ms
            observer.now, observer.timed = self._outside, False  # what is outside has no times
        return found, host_ms

    def unrecorded(self) -> int:
        return 0 if self._log is None else self._log.lost

    def count(self, x: VectorStore | MatrixHandle | CscMatrix | BitmapMatrix) -> Callable[[], int]:
        """See `Meter`: a number on the host, or the counter that a kernel will have filled."""
        store = x.store if isinstance(x, MatrixHandle) else x
        v = store.entries if isinstance(store, BitmapMatrix) else store
        if isinstance(v, CscMatrix) or v.known is not None:
            known = v.nvals
            return lambda: known
        with self._device.lock, self._device.entered():
            compiled = self._device.compile_ms
            try:
                return v.pending_count(self._observer.unseen("read"))
            finally:  # the count is the trace's, not the program's
                self._compiled += self._device.compile_ms - compiled

    def stop(self) -> Callable[[], Measured]:
        with self._device.lock, self._device.entered():
            self._observer.leave()
            self._runtime.observers.append(self._observer)
            outside = self._outside
            outside.compile_ms = self._device.compile_ms - self._compiled
        return lambda: outside.measured(outside.compile_ms)
