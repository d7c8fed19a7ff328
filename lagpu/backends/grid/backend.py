"""The grid: the `Backend` protocol over pieces, each on a local backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.grid import statements, systems
from lagpu.backends.grid.clusters import GridClusters, cluster_size
from lagpu.backends.grid.comm import Engine
from lagpu.backends.grid.exchange import whole
from lagpu.backends.grid.handles import GridHandle, GridMatrix, GridVector
from lagpu.backends.grid.meter import GridMeter
from lagpu.backends.grid.parts import Parts
from lagpu.backends.grid.pieces import Pieces, collective, joined, on_host
from lagpu.backends.grid.search import plan_loop, searches
from lagpu.backends.guard import guarded, out_of_memory
from lagpu.backends.policies import sparse_batch_size
from lagpu.backends.profile import Meter
from lagpu.backends.protocol import Backend, ProductPlan
from lagpu.dtypes import DType
from lagpu.errors import LagpuError
from lagpu.operations import (
    Assign,
    AssignScalar,
    ExtractElement,
    FusedLoop,
    Multiply,
    MultiplySelection,
    Operation,
    Reduce,
    Rejection,
    Statement,
    Sweep,
    Until,
)

Array = np.ndarray[Any, Any]


def _named_error(backend: GridBackend, error: Exception, method: str) -> LagpuError | None:
    """Return lagpu's error for one of NumPy; local backends raise named errors already."""
    return out_of_memory(error, method, backend.name) if isinstance(error, MemoryError) else None


@guarded(_named_error)
@collective
class GridBackend:
    """Vectors and matrices that are distributed to pieces. See `Backend`; arguments as `Pieces`.

    A statement makes new parts, then the handle takes all of them at once: one that fails leaves
    every object as it was.
    """

    device = None
    enter = None
    last_loop = ""

    def __init__(
        self,
        name: str,
        engine: Engine,
        places: Sequence[Backend],
        grid: tuple[int, int] | None = None,
        order: str | None = None,
    ) -> None:
        self.name = name
        self.pieces = Pieces(engine, places, grid, order)
        self.lock = self.pieces.lock
        self.capabilities = places[0].capabilities._replace(
            fuses=False,
            policies=systems.policies_with_systems(places[0]),
            searches=searches(self.pieces),
            systems=tuple(systems.SYSTEMS),
            parts=Parts(self.pieces),
            clusters=self._clusters,
        )

    def __repr__(self) -> str:
        return f"<lagpu backend {self.name}>"

    @property
    def last_product(self) -> ProductPlan | None:
        """See `Backend`: the choice of the first local piece."""
        return self.pieces.places[0].last_product

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: Statement) -> None:
        """See `Backend`."""
        out, desc, operation, _ = statement
        localized = statements.LOCALIZED[type(operation)](self.pieces, operation, out, desc)
        keeps = not desc.is_fresh or (
            isinstance(operation, (Assign, AssignScalar)) and operation.indices is not None
        )
        new = self.dup(out, out.dtype) if keeps else self.pieces.empty(out.dtype, out.shape)
        for k, local in enumerate(localized):
            mask = None if desc.mask is None else desc.mask.parts[k]
            by_mask = desc._replace(mask=mask)
            part = statement._replace(out=new.parts[k], desc=by_mask, operation=local)
            self.pieces.execute(k, part)
        self.pieces.changes.make(lambda: out.become(new))

    def evaluate(self, operation: Operation) -> Any:
        """See `Backend`."""
        if isinstance(operation, ExtractElement):
            return statements.element(self.pieces, operation)
        assert isinstance(operation, Reduce)
        return statements.reduce(self.pieces, operation)

    def explain(self, operation: Operation) -> list[str]:
        """See `Backend`: the product of the first local piece."""
        assert isinstance(operation, (Multiply, MultiplySelection))
        first = self.pieces.places[0]
        size, how = self.pieces.engine.size, "collects the left operand"
        if isinstance(operation, Multiply):
            A, inner, local = statements.local_products(self.pieces, operation)
            parts = self.pieces.layout(A.shape).dims[inner].pieces
            if parts > 1:
                how = f"collects one of {parts} parts of the left operand, and sends its sums"
            said = first.explain(local[0])
        else:
            left = whole(self.pieces, operation.operand, "mxv")[0]
            said = first.explain(
                operation._replace(indices=operation.indices.parts[0], operand=left)
            )
        return [f"each of {size} pieces {how}; the first one then:", *said]

    def plan_loop(self, body: Sequence[Statement], turns: Until | Sweep) -> FusedLoop | Rejection:
        """See `Backend`."""
        return plan_loop(self.pieces, body, turns)

    def batch_size(
        self, A: GridMatrix, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        """See `Backend`: a power of two, or all sources."""
        nvals = self.pieces.nvals(A)
        return sparse_batch_size(self.free_bytes(), A.shape[0], nvals, sources, levels)

    def meter(self) -> Meter:
        """See `Backend`."""
        return GridMeter(self.pieces, self.nvals)

    def free_bytes(self) -> int:
        """See `Backend`: of the piece that has the least."""
        least = np.array([min(place.free_bytes() for place in self.pieces.places)])
        engine = self.pieces.engine
        return int(min(free[0] for (free,) in engine.gather([(least,)] * len(engine.local))[0]))

    # ------------------------------------------------------------------- objects: made, read
    def vector(self, dtype: DType, size: int) -> GridVector:
        """See `Backend`."""
        made: GridVector = self.pieces.empty(dtype, (size,))
        return made

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> GridMatrix:
        """See `Backend`."""
        made: GridMatrix = self.pieces.empty(dtype, shape)
        return made

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> GridVector:
        """See `Backend`: each piece takes its entries from what every process has."""
        by, parts = self.pieces.partition(size), []
        indices, values = on_host(indices), on_host(values)
        for _, p, place in self.pieces:
            where, own = None, values
            if indices is not None:
                mine = np.flatnonzero(by.owner(indices) == p)
                where = by.position(indices[mine])
                if not by.rises:
                    order = np.argsort(where)
                    mine, where = mine[order], where[order]
                own = values[mine] if np.ndim(values) else values
            elif np.ndim(values):
                own = by.taken(p, values)
            parts.append(place.vector_from_coo(where, own, dtype, by.count(p)))
        made: GridVector = self.pieces.handle(parts, dtype, (size,))
        return made

    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> GridMatrix:
        """See `Backend`: each piece takes its entries from what every process has."""
        by, parts = self.pieces.layout(shape), []
        rows, cols, values = map(on_host, (rows, cols, values))
        for _, p, place in self.pieces:
            mine = np.flatnonzero(by.owner(rows, cols) == p)
            own = values[mine] if np.ndim(values) else values
            i, j = by.position(rows[mine], cols[mine])
            local: Any = by.shape(p)
            parts.append(place.matrix_from_coo(i, j, own, dtype, local, dup_op))
        made: GridMatrix = self.pieces.handle(parts, dtype, shape)
        return self.pieces.ordered(made)

    def matrix_from_csc(
        self,
        col_ptr: Any,
        row_idx: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        symmetric: bool | None = None,
    ) -> GridMatrix:
        """See `Backend`: each piece takes its entries from what every process has."""
        by, parts = self.pieces.layout(shape), []
        col_ptr, row_idx, values = map(on_host, (col_ptr, row_idx, values))
        data = values if np.ndim(values) else np.ones(len(row_idx), bool)
        whole = sp.csc_array((data, row_idx, col_ptr), shape=shape)
        for _, p, place in self.pieces:
            (rows, cols), (of_row, of_col) = by.dims, by.parts(p)
            own = whole[:, cols.own(of_col)]
            if not rows.whole:
                own = own[rows.own(of_row)]
                own.sort_indices()
            x = own.data if np.ndim(values) else values
            local: Any = by.shape(p)
            ptr = own.indptr.astype(np.int64)
            parts.append(place.matrix_from_csc(ptr, own.indices, x, dtype, local))
        made: GridMatrix = self.pieces.handle(parts, dtype, shape)
        made.symmetric = symmetric
        return self.pieces.ordered(made)

    def _clusters(self, A: GridMatrix, asked: int | None) -> GridClusters | None:
        """Return the sub-clusters for the searches of a graph; see `Capabilities`."""
        pieces = self.pieces
        of = pieces.changes.run(
            "clusters",
            lambda: cluster_size(pieces, A, asked, self.free_bytes()),
            {"graph": A, "pieces": asked},
        )
        if of == pieces.engine.size:
            return None

        def make(engine: Engine, places: Sequence[Backend]) -> Backend:
            name = f"{self.name}, {of} pieces"
            return cast(Backend, GridBackend(name, engine, places, None, pieces.order))

        return pieces.changes.run("clusters", lambda: GridClusters(pieces, of, make))

    def matrix_from_diagonal(self, v: GridVector, k: int) -> GridMatrix:
        """See `Backend`."""
        n = v.shape[0] + abs(k)
        given = [(i + max(-k, 0), i + max(k, 0), x) for i, x in self.pieces.entries(v)]
        made: GridMatrix = self.pieces.sent(given, v.dtype, (n, n))
        return made

    def diagonal(self, A: GridMatrix, k: int, rows: Any = None) -> GridVector:
        """See `Backend`: each piece finds its part of it."""
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
        made: GridVector = self.pieces.sent(given, A.dtype, (size,))
        return made

    def dup(self, x: Any, dtype: DType) -> Any:
        """See `Backend`."""
        parts = [place.dup(x.parts[k], dtype) for k, _, place in self.pieces]
        copy = self.pieces.handle(parts, dtype, x.shape)
        if isinstance(x, GridMatrix) and x.symmetric:
            copy.symmetric = True
        return copy

    def vector_to_coo(self, v: GridVector) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = self.pieces.collected(v)[0]
        return indices, values

    def matrix_to_csc(
        self, A: GridMatrix, on_device: bool = False, narrow: bool = False
    ) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        rows, cols, values = self.pieces.collected(A)[0]
        col_ptr = np.zeros(A.shape[1] + 1, np.int64)
        np.cumsum(np.bincount(cols, minlength=A.shape[1]), out=col_ptr[1:])
        return col_ptr, rows, values

    def vector_values(self, v: GridVector, on_device: bool = False) -> Array:
        """See `Backend`."""
        (size,), pieces = v.shape, self.pieces
        if pieces.nvals(v) < size:
            return self.vector_to_coo(v)[1]
        given = [(place.vector_values(v.parts[k]),) for k, _, place in pieces]
        found, by = np.empty(size, v.dtype.numpy), pieces.partition(size)
        for p, (own,) in enumerate(pieces.engine.gather(given)[0]):
            by.put(p, own, found)
        return found

    def set_values(self, x: Any, values: Array) -> None:
        """See `Backend`."""
        received = self.pieces.engine.gather(self.pieces.entries(x))[0]
        *rows, indices, given = joined(received)
        put = np.empty_like(given)
        put[np.lexsort((*rows, indices))] = on_host(values)
        of_piece = np.split(put, np.cumsum([len(lists[0]) for lists in received])[:-1])
        new = self.dup(x, x.dtype)
        for k, p, place in self.pieces:
            place.set_values(new.parts[k], of_piece[p])
        self.pieces.changes.make(lambda: x.become(new))

    def vector_head(self, v: GridVector, count: int) -> tuple[Array, Array]:
        """See `Backend`."""
        by, given = self.pieces.partition(v.shape[0]), []
        for k, p, place in self.pieces:
            first = count if by.rises else by.count(p)
            where, values = place.vector_head(v.parts[k], first)
            given.append(_first(count, by.index(p, where), values))
        return _first(count, *joined(self.pieces.engine.gather(given)[0]))

    def matrix_corner(self, A: GridMatrix, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        by, given = self.pieces.layout(A.shape), []
        for k, p, place in self.pieces:
            ends = [
                np.flatnonzero(dim.own(part) < most)
                for dim, part, most in zip(by.dims, by.parts(p), (nrows, ncols), strict=True)
            ]
            most = [int(where[-1]) + 1 if len(where) else 0 for where in ends]
            *where, values = place.matrix_corner(A.parts[k], *most)
            rows, cols = by.index(p, *where)
            there = (rows < nrows) & (cols < ncols)
            given.append((rows[there], cols[there], values[there]))
        rows, cols, values = joined(self.pieces.engine.gather(given)[0])
        order = np.lexsort((cols, rows))
        return rows[order], cols[order], values[order]

    def nvals(self, x: GridHandle) -> int:
        """See `Backend`."""
        return self.pieces.nvals(x)

    def form(self, x: GridHandle) -> str:
        """See `Backend`: the number of pieces, and the form of the first local one."""
        return f"{self.pieces.engine.size} pieces, {self.pieces.places[0].form(x.parts[0])}"

    def isequal(self, x: GridHandle, y: GridHandle) -> bool:
        """See `Backend`."""
        unequal = [not place.isequal(x.parts[k], y.parts[k]) for k, _, place in self.pieces]
        return self.pieces.engine.sum(unequal) == 0

    def levels(self, x: GridHandle) -> None:
        """See `Backend`: sorted on the host."""

    def is_symmetric(self, A: GridMatrix) -> bool:
        """See `Backend`."""
        if A.symmetric is not None:
            return A.symmetric
        found = self.isequal(A, self.pieces.turned(A))
        self.pieces.changes.make(lambda: A.knows(found))
        return found

    def wait(self, x: GridHandle) -> None:
        """See `Backend`."""
        for k, _, place in self.pieces:
            place.wait(x.parts[k])
        self.pieces.engine.barrier()

    def vector_resized(self, v: GridVector, size: int) -> GridVector:
        """See `Backend`: entries are redistributed, since the owner depends on the size."""
        entries = self.pieces.entries(v)
        given = [(at[at < size], values[at < size]) for at, values in entries]
        made: GridVector = self.pieces.sent(given, v.dtype, (size,))
        return made

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: GridVector, i: int, value: Any) -> None:
        """See `Backend`: in place, so all processes synchronize first."""
        for place, part, at in self._owner_of(v, i):
            place.vector_set(part, at, value)

    def vector_remove(self, v: GridVector, i: int) -> None:
        """See `Backend`: in place, as `vector_set`."""
        for place, part, at in self._owner_of(v, i):
            place.vector_remove(part, at)

    def _owner_of(self, v: GridVector, i: int) -> list[tuple[Backend, Any, int]]:
        """Return (place, part, position) of an index, if its owner is here."""
        self.pieces.engine.barrier()
        by = self.pieces.partition(v.shape[0])
        owner, at = by.owner(i), by.position(i)
        return [(place, v.parts[k], at) for k, p, place in self.pieces if p == owner]

    def vector_clear(self, v: GridVector) -> None:
        """See `Backend`."""
        new = self.pieces.empty(v.dtype, v.shape)
        self.pieces.changes.make(lambda: v.become(new))

    def may_keep_csr(self, A: GridMatrix, allowed: bool | None) -> bool:
        """See `Backend`."""
        found = [place.may_keep_csr(A.parts[k], allowed) for k, _, place in self.pieces]
        return all(found)


def _first(count: int, indices: Array, values: Array) -> tuple[Array, Array]:
    """Return the first entries of a list in any order."""
    first = np.argsort(indices)[:count]
    return indices[first], values[first]
