"""Loops of many small iterations as one call of SciPy's csgraph; see docs/design/cpu.md.

Each function here reads the state that the statements of a loop have left, and returns the state
that they would leave at its end, or why it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.tables import binary, indexunary, monoid, semiring
from lagpu.backends.cpu import handles, statements
from lagpu.backends.cpu.handles import LOCK, Box, gb
from lagpu.backends.cpu.workarounds import boxed
from lagpu.backends.match import DEPTH, VALUE, match_relaxation, match_search
from lagpu.dtypes import BOOL, FP64, INT64, DType
from lagpu.host.columns import listed
from lagpu.host.interrupt import uninterrupted
from lagpu.host.memory import available_bytes
from lagpu.host.ordered import Graph, level_ends, ordered

Array = np.ndarray[Any, Any]
#: Why any other loop runs statement by statement.
BY_ITSELF = ops.Rejection("this backend runs each statement by itself")
#: Iterations before a loop counts as long, or one for each so many vertices and entries if these
#: are more: they have cost then about what the rest costs as one call.
LEAST, PER_ITERATION = 16, 1 << 13
SMALL = 1 << 11  #: Vertices and entries of the smallest matrix that is worth a call.
_LARGE = 1 << 20  # vertices and entries from which free memory is read
_EXACT = 2.0**53  # csgraph computes in FP64, which has all integers below


def patience(objects: Sequence[Box], turns: ops.Until | ops.Levels) -> int | None:
    """Return after how many iterations a loop is worth a call; see `Capabilities.patience`."""
    with LOCK:
        matrices = [x for x in objects if x.kind == "Matrix"]
        if not matrices or max(map(_size, matrices)) < SMALL:
            return None
        if not isinstance(turns, ops.Until):
            return 0 if all(is_long(A, turns.deepest) for A in matrices) else None
        if turns.unchanged is not None or all(A.long for A in matrices):
            return 0
        return max(map(_least, matrices))


def is_long(A: Box, iterations: int) -> bool:
    """Whether so many iterations with a matrix are worth a call."""
    return _size(A) >= SMALL and iterations > _least(A)


def _size(A: Box) -> int:
    return A.shape[0] + handles.count_entries(A)


def _least(A: Box) -> int:
    return max(LEAST, _size(A) // PER_ITERATION)


def plan_whole(body: ops.Statements, turns: ops.Turns) -> WholeLoop | ops.Rejection:
    """Return the end of a loop, or why csgraph does not find it."""
    finders: tuple[Callable[..., WholeLoop | ops.Rejection], ...] = (_search, _relaxation)
    if isinstance(turns, ops.Sweep):
        finders = (_dependencies,)
    elif turns.empty is None:
        finders = (_components,)
    tried = (find(body, turns) for find in finders)
    return next((found for found in tried if not isinstance(found, ops.Rejection)), BY_ITSELF)


class WholeLoop:
    """The end of a loop, which `run` writes; see `FusedLoop`. `last` is the last counter."""

    nbytes = 0

    def __init__(self, name: str, why: str, new: Sequence[tuple[Box, Box]], last: int = 0) -> None:
        self.name, self.why, self._new, self._last = f"SciPy {name}", why, new, last

    def run(self) -> None:
        """Give every object its last state: all, or before an interrupt none."""
        with uninterrupted():
            for x, new in self._new:
                x.become(new)

    def count(self) -> Callable[[], int]:
        """Return a function that returns the last value of the counter."""
        return lambda: self._last


# --------------------------------------------------------------------------- graphs and vectors
def _graph(A: Box, by_row: bool) -> Graph | None:
    """Return the graph of a square matrix; None if it is too large."""
    n, nvals = A.shape[0], handles.count_entries(A)
    by_row = by_row or A.symmetric is True
    if by_row not in A.graphs:
        is_short = n + nvals >= _LARGE and 32 * nvals + 128 * n > available_bytes()
        if not n or is_short or n + nvals >= 2**31 - 1:  # csgraph has indices of 32 bits
            return None
        A.graphs = {**A.graphs, by_row: Graph(*(A.gb.to_csr() if by_row else A.gb.to_csc()))}
    return A.graphs[by_row]


def _entries(x: Box) -> tuple[Array, Array]:
    indices, values = x.gb.to_coo()
    return indices.astype(np.int64), values


def _vector(dtype: DType, n: int, at: Array, values: Any) -> Box:
    """Return a vector with values at some vertices, in any order."""
    dense = np.empty(n, dtype.numpy)
    dense[at] = values
    if len(at) == n:
        return boxed(gb.Vector.from_dense(dense, dtype=dtype.name), dtype)
    there = np.zeros(n, bool)
    there[at] = True
    where = np.flatnonzero(there)
    return boxed(gb.Vector.from_coo(where, dense[where], dtype.name, size=n), dtype)


def _over(x: Box, new: Box) -> Box:
    """Return a vector with the entries of `new`, and elsewhere with those of `x`."""
    if not handles.count_entries(x):
        return new
    both = boxed(x.gb.dup(), x.dtype)
    statements.RUN[ops.Assign](both, ops.Descriptor(new), ops.Assign(new))
    return both


def _empty(x: Box) -> tuple[Box, Box]:
    return x, boxed(handles.made(x.dtype, x.size), x.dtype)


# ----------------------------------------------------------------------------------------- searches
def _search(body: ops.Statements, until: ops.Until) -> WholeLoop | ops.Rejection:
    """Search breadth-first: the mask's vertices are as if they were not there."""
    found = match_search(body, until.empty)
    if isinstance(found, ops.Rejection):
        return found
    n = found.A.shape[0]
    if until.times is not None and until.times <= n:
        return ops.Rejection("it ends after some levels")
    has_values = any(a.what == VALUE for a in found.assignments)
    of = found.product.semiring
    is_one = of.multiply is binary.pair and (of.monoid.idempotent or not found.sums)
    number = found.frontier.dtype.numpy.type(1) if is_one else None  # which any product is
    follows = of.multiply.positional == "k" and not found.sums
    counts = found.counts and found.frontier.dtype is FP64
    cast = found.frontier.dtype.is_float and any(  # GraphBLAS' cast, which NumPy's is not
        a.what == VALUE and not a.target.dtype.is_float for a in found.assignments
    )
    if has_values and number is None and (cast or not (follows or counts)):
        return ops.Rejection("csgraph does not carry the values")
    graph = _graph(found.A, found.product.transpose)
    if graph is None:
        return ops.Rejection("csgraph does not take so large a matrix")
    starts, given = _entries(found.frontier)
    excluded, _ = _entries(found.excluded)
    if not found.assigns_first and not np.isin(starts, excluded).all():
        return ops.Rejection("the search may come back to where it begins")
    order, parents = ordered(graph, starts, excluded)
    first = len(starts)
    ends = level_ends(order, parents, first)
    level = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
    values = order
    if has_values:
        values = parents[order] if number is None else np.full(len(order), number)
        values = values.astype(found.frontier.dtype.numpy)
        values[:first] = given
        if counts:
            values[first:] = 0
            steps = graph.kept["steps"] = Steps(graph, order, level)
            values = steps.solved(values, transpose=True)
    depth = level + until.done
    if not found.assigns_first:
        order, depth, values = order[first:], depth[first:] - 1, values[first:]
    new = [_empty(found.frontier)]
    for x, what, number in found.assignments:
        assigned = depth if what == DEPTH else values if what == VALUE else number
        new.append((x, _over(x, _vector(x.dtype, n, order, assigned))))
    found.A.long = True
    why = f"{len(ends)} levels from iteration {until.done} on"
    return WholeLoop("breadth_first_order", why, new, until.done + len(ends) - 1)


class Steps:
    """The edges from each level of a search to the next one, by places in an order by level.

    With S their matrix, `matrix` is ``I - S``, upper triangular. Numbers of shortest paths, and
    Brandes' dependencies, are solutions of ``(I - S') p = e`` and ``(I - S) d = b``.
    """

    def __init__(self, graph: Graph, order: Array, level: Array) -> None:
        from scipy.sparse import csr_array, eye_array

        r, at = len(order), np.empty(graph.n, np.int32)
        self.order, self.level, self.level_of = order, level, np.full(graph.n, -2, np.int32)
        at[order], self.level_of[order] = np.arange(r, dtype=np.int32), level
        rows = graph.rows()
        kept = np.flatnonzero(self.level_of[graph.idx] - self.level_of[rows] == 1)
        ends, ones = (at[rows[kept]], at[graph.idx[kept]]), np.broadcast_to(1.0, len(kept))
        self.matrix = eye_array(r, format="csr") - csr_array((ones, ends), shape=(r, r))

    def solved(self, numbers: Array, *, transpose: bool) -> Array:
        """Return x of ``(I - S) x = b``, or of ``(I - S') x = b``, (r,)."""
        from scipy.sparse.linalg import spsolve_triangular

        matrix = self.matrix.T if transpose else self.matrix
        return spsolve_triangular(matrix, numbers, lower=transpose, unit_diagonal=True)


# -------------------------------------------------------------------------------------- relaxations
def _relaxation(body: ops.Statements, until: ops.Until) -> WholeLoop | ops.Rejection:
    """Find distances by Dijkstra's algorithm, in FP64; its order of edges is as good as any."""
    f: Any = until.empty
    limit = np.inf
    if len(body) == 5 and body[1][:2] == (f, ops.Descriptor()) and not body[1].scalars:
        kept = body[1].operation
        if isinstance(kept, ops.Select) and (kept.operand, kept.op) == (f, indexunary.valuele):
            body, limit = [body[0], *body[2:]], float(kept.thunk)
    found = match_relaxation(body, until.empty)
    if isinstance(found, ops.Rejection):
        return found
    A, _, d, worse, product, _ = found
    n, kind = A.shape[0], found.frontier.dtype
    kinds = {kind, d.dtype, product.domain, product.result}
    if product.semiring is not semiring.min_plus or len(kinds) > 1 or kind not in (FP64, INT64):
        return ops.Rejection("csgraph has distances of FP64 and INT64 alone")
    graph = _graph(A, product.transpose) if until.times is None or until.times > n else None
    if graph is None or worse.dtype is not BOOL:
        return ops.Rejection("it is bounded or too large")
    weights = graph.weights()
    longest = float(weights.max(initial=0)) * n  # of Python, which overflows without a warning
    near, known = _dense(f), _dense(d)
    if not (weights.min(initial=0) >= 0 and longest < np.finfo(float).max / 4 and near.min() >= 0):
        return ops.Rejection("csgraph takes finite lengths of 0 or more")
    if not _is_relaxed(graph, near, known, worse, limit):
        return ops.Rejection("it begins with numbers that are not relaxed")
    starts = np.flatnonzero(near < known)
    reached = np.minimum(known, _distances(graph, starts, near[starts], limit))
    where = np.flatnonzero(np.isfinite(reached))
    if kind is INT64 and reached[where].max(initial=0) >= _EXACT:
        return ops.Rejection("distances are beyond 2**53")
    A.long = True
    new = [_empty(f), _empty(worse), (d, _vector(kind, n, where, reached[where]))]
    return WholeLoop("dijkstra", f"from iteration {until.done} on, {len(starts)} vertices", new)


def _dense(x: Box) -> Array:
    """Return the numbers of a vector, infinite where there is none."""
    found = np.full(x.size, np.inf)
    indices, values = _entries(x)
    found[indices] = values
    return found


def _is_relaxed(graph: Graph, near: Array, known: Array, worse: Box, limit: float) -> bool:
    """Whether no edge out of `known` gives a new number; `worse` marks those that are no better."""
    marked = np.zeros(graph.n, bool)
    indices, values = _entries(worse)
    marked[indices] = values
    if ((near >= known) != marked)[np.isfinite(near)].any():
        return False
    if not np.isfinite(known).any():
        return True
    with np.errstate(over="ignore"):  # beyond the largest number they are infinite
        through = np.repeat(known, np.diff(graph.ptr)) + graph.weights()
    return bool(((through >= np.minimum(near, known)[graph.idx]) | (through > limit)).all())


def _distances(graph: Graph, starts: Array, numbers: Array, limit: float) -> Array:
    """Return distances, (n,), from vertices that have numbers of their own."""
    from scipy.sparse import csgraph

    if len(starts) == 1 and numbers[0] == 0:
        whole, start = graph.csr(graph.weights()), starts[0]
    else:
        whole, start = graph.csr(graph.weights(), numbers, starts), graph.n
    return csgraph.dijkstra(whole, indices=[start], limit=limit)[0][: graph.n]


# ------------------------------------------------------------------------------------- dependencies
def _dependencies(body: ops.Statements, turns: ops.Sweep) -> WholeLoop | ops.Rejection:
    """Solve for the dependencies of a source, which the sweep of betweenness adds up."""
    here, above, found = turns
    operations: list[Any] = [s.operation for s in body]
    if list(map(type, operations)) != [ops.Apply, ops.Ewise, ops.Multiply, ops.Ewise]:
        return BY_ITSELF
    (share, _, pulled, delta), paths = [s.out for s in body], operations[1].right
    product, A = operations[2].product, operations[2].matrix
    expected = [
        (ops.Descriptor(here, replace=True), ops.Apply(delta, operations[0].function)),
        (ops.Descriptor(here), ops.Ewise("ewise_mult", share, paths, binary.truediv)),
        (ops.Descriptor(above, replace=True), operations[2]._replace(operand=share)),
        (ops.Descriptor(accum=binary.plus), ops.Ewise("ewise_mult", pulled, paths, binary.times)),
    ]
    add = operations[0].function
    fits = (
        [(s.desc, s.operation) for s in body] == expected
        and body[1].out is share
        and len({id(x) for x in (share, pulled, delta, paths)}) == 4
        and {x.dtype for x in (share, pulled, delta, paths)} == {FP64}
        and (add.op, add.left, add.right) == (binary.plus, None, 1)
        and product.semiring.monoid is monoid.plus
        and product.semiring.multiply is (binary.first if product.flip else binary.second)
        and not product.is_named
    )
    levels: Any = found
    n = delta.size
    graph = _graph(A, not product.transpose) if fits and A.shape == (n, n) else None
    if graph is None:
        return BY_ITSELF
    level_of = np.full(n, -2, np.int32)
    level_of[levels.where[0]] = levels.values
    steps = graph.kept.pop("steps", None)  # of the last search that counted paths
    if steps is None or not np.array_equal(level_of, steps.level_of):
        steps = Steps(graph, levels.where[0], levels.values)
    (at, before), (counted, number) = _entries(delta), _entries(paths)
    if not np.array_equal(at, np.flatnonzero(level_of >= 0)) or not np.array_equal(at, counted):
        return ops.Rejection("vectors have entries elsewhere than the levels")
    place = np.empty(n, np.int32)
    place[at] = np.arange(len(at), dtype=np.int32)
    order, level = steps.order, steps.level
    place = place[order]
    before, number = before[place], number[place]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = steps.solved((before + 1) / number, transpose=False)
    if not (np.isfinite(shares).all() and np.isfinite(number).all()):
        return ops.Rejection("not all numbers are finite")
    sums = shares - steps.matrix @ shares
    last, first = level == 1, (level == 0) & (np.diff(steps.matrix.indptr) > 1)
    new = [
        (delta, _vector(FP64, n, order, before + sums * number)),
        (share, _vector(FP64, n, order[last], shares[last])),
        (pulled, _vector(FP64, n, order[first], sums[first])),
    ]
    return WholeLoop("spsolve_triangular", f"{levels.deepest} levels", new)


# --------------------------------------------------------------------------------------- components
def _components(body: ops.Statements, until: ops.Until) -> WholeLoop | ops.Rejection:
    """Label components as FastSV does: by the least vertex of each."""
    f: Any = until.unchanged
    operations: list[Any] = [s.operation for s in body]
    kinds = [ops.MultiplySelection, ops.Multiply, ops.MultiplySelection, ops.Assign, ops.Assign]
    if until.times is not None or list(map(type, operations)) != kinds:
        return BY_ITSELF
    A, grand, least = operations[1].matrix, body[0].out, body[1].out
    n, kind, products = A.shape[0], f.dtype, [operation.product for operation in operations[:3]]
    gather, product, scatter = products
    lower = ops.Descriptor(accum=binary.min)
    expected = [
        (grand, ops.Descriptor(), ops.MultiplySelection(f, f, gather)),
        (least, ops.Descriptor(), ops.Multiply(A, grand, product)),
        (f, lower, ops.MultiplySelection(f, least, scatter)),
        (f, lower, ops.Assign(least)),
        (f, lower, ops.Assign(grand)),
    ]
    fits = (
        [s[:3] for s in body] == expected
        and len({id(x) for x in (f, grand, least)}) == 3
        and A.shape == (n, n)
        and all(map(_carries, products))
        and (gather.transpose, scatter.transpose) == (True, False)
        and not product.is_named
        and {grand.dtype, least.dtype} == {kind}
        and kind.numpy.kind == "i"
        and np.can_cast(kind.numpy, product.domain.numpy)
    )
    if not fits or handles.count_entries(f) != n:
        return BY_ITSELF
    if A.symmetric is None:
        A.symmetric = bool(A.gb.isequal(A.gb.T.new()))
    graph = _graph(A, True) if A.symmetric else None
    if graph is None:
        return BY_ITSELF
    labels = _labels(graph)
    has, own = f.gb.to_dense(), np.arange(n)
    if not ((has >= 0).all() and (has <= own).all() and (labels[has] == labels).all()):
        return ops.Rejection("it does not begin with vertices of the components")
    joined = np.flatnonzero(np.diff(graph.ptr))
    new = [(x, _vector(kind, n, own, labels)) for x in (f, grand)]
    new.append((least, _vector(kind, n, joined, labels[joined])))
    return WholeLoop("connected_components", f"{(labels == own).sum()} components", new)


def _carries(product: ops.Product) -> bool:
    """Whether a product is the least of the vector's values."""
    multiply = binary.first if product.flip else binary.second
    return product.semiring.monoid is monoid.min and product.semiring.multiply is multiply


def _labels(graph: Graph) -> Array:
    """Return the least vertex of each vertex's component, (n,), of a symmetric graph."""
    # Most vertices are often in that of the vertex of most edges, which a search finds sooner.
    from scipy.sparse import csgraph

    n = graph.n
    labels = np.empty(n, np.int64)
    hub = np.argmax(np.diff(graph.ptr)) if n else 0
    first = csgraph.breadth_first_order(graph.csr(), int(hub), return_predecessors=False)
    labels[first] = first.min()
    apart = np.ones(n, bool)
    apart[first] = False
    rest = np.flatnonzero(apart)
    if len(rest):
        number, (counts, entries) = np.cumsum(apart) - 1, listed(graph.ptr, rest)
        part = Graph(np.append(0, np.cumsum(counts)), number[graph.idx[entries]]).csr()
        # strong: of a symmetric graph they are the same, and the transpose is not made
        count, found = csgraph.connected_components(part, connection="strong")
        least = np.empty(count, np.int64)
        least[found[::-1]] = rest[::-1]
        labels[rest] = least[found]
    return labels
