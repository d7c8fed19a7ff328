"""Cases of every kernel and operation: over storage forms, masks, types and index widths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from lagpu import io
from lagpu.algebra.operators import Operator, Semiring
from lagpu.algebra.tables import binary, indexunary, monoid, semiring, unary
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Vector
from lagpu.core.expr import Call
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64, DType
from lagpu.generators import from_spec
from lagpu.loops.loop import eager, loop
from lagpu.selftest.cases import GRAPHS, Case, Difference, Graph, Results, agree, difference, vector

Op = TypeVar("Op", bound=Operator)
Make = Callable[[Vector, Vector], Call]
"""Returns the call of one operation on two vectors."""

#: Of vectors: around a word of entries, a warp and a block.
_SIZES = (1, 31, 33, 1025)


def cases(kernels: tuple[str, ...]) -> Iterator[Case]:
    """Yield the cases; the products are those of some kernels."""
    yield from products(kernels)
    yield from selections()
    yield from vectors()
    yield from matrices()
    yield from loops()


# ---- products: each kernel, u @ A and A @ u

# Every kind of addition (with and without a terminal value, of each type) and of multiplication
# (which reads no operand, one, both, or indices), and every type once. `selections` uses every
# other row, which again have every kind of addition and multiplication.
_PRODUCTS: tuple[tuple[Semiring, DType], ...] = (
    (semiring.any_pair, BOOL), (semiring.lxor_land, BOOL), (semiring.lor_land, BOOL),
    (semiring.land_eq, BOOL), (semiring.plus_times, INT32), (semiring.plus_pair, INT64),
    (semiring.plus_first, FP64), (semiring.plus_minus, FP32), (semiring.times_second, UINT32),
    (semiring.plus_first, BOOL), (semiring.min_plus, FP32), (semiring.min_first, INT32),
    (semiring.max_second, INT64), (semiring.max_min, UINT64), (semiring.min_secondi, INT64),
    (semiring.max_firstj, INT64),
)  # fmt: skip
_WIDE = (semiring.any_pair, semiring.plus_times)
_FEW = GRAPHS[1::3]  # a self-loop, a graph as large as a warp, a hub of many warps

# name: share of entries in u, seed, u on the left, mask, accumulates, replace
_WAYS: dict[str, tuple[float, int, bool, Any, bool, bool]] = {
    "u @ A": (0.05, 1, True, lambda m: None, False, False),
    "u @ A, ~m.S, replace": (0.3, 2, True, lambda m: ~m.S, False, True),
    "u @ A, m.V": (1.0, 3, True, lambda m: m.V, False, False),
    "u @ A, ~m.V, accum": (0.5, 4, True, lambda m: ~m.V, True, False),
    "A @ u": (0.3, 5, False, lambda m: None, False, False),
    "A @ u, m.S, accum, replace": (0.6, 6, False, lambda m: m.S, True, True),
    "no entries": (0.0, 7, True, lambda m: ~m.S, False, True),
}


def products(kernels: tuple[str, ...]) -> Iterator[Case]:
    """Yield the cases of some kernels; the name "" means the backend's own choice."""
    for kernel in kernels:
        for op, dtype in _PRODUCTS:
            for wide in (False, True) if op in _WIDE else (False,):
                run = partial(_products, kernel, op, dtype, wide)
                width = ", 64-bit indices" if wide else ""
                name = f"{kernel or 'product'} {op.name} {dtype}{width}"
                yield Case("products", name, *(agree(partial(run, x)) for x in (GRAPHS, _FEW)))
        name = kernel or "product"
        yield Case("products", f"{name} any_secondi", partial(_any_is_one_of, kernel))
        yield Case("products", f"{name} by a library", partial(_as_the_library, kernel))


def _chosen_kernel(kernel: str, place: Backend) -> dict[str, str]:
    return {"kernel": kernel} if kernel and place.capabilities.kernels else {}


def _products(
    kernel: str, op: Semiring, dtype: DType, wide: bool, graphs: Sequence[Graph], place: Backend
) -> Results:
    plus = binary.lor if op.monoid.name in ("any", "lor", "land", "lxor") else binary.plus
    for graph in graphs:
        A = graph.matrix(dtype, place, wide=wide)
        for way, (share, seed, left, mask, accumulates, replace) in _WAYS.items():
            u = vector(graph.n, dtype, place, share=share, seed=seed)
            m = vector(graph.n, INT32, place, share=0.5, seed=seed + 1)
            call = op(u @ A if left else A @ u, **_chosen_kernel(kernel, place))
            w = vector(graph.n, call.dtype, place, share=0.5, seed=seed + 2)
            w(mask(m), accum=plus if accumulates else None, replace=replace) << call
            yield f"{way} on {graph.name}", w


def _any_is_one_of(kernel: str, place: Backend, _oracle: Backend) -> str:
    """Prove any_secondi: each result is an in-neighbour with an entry."""
    # Any such in-neighbour is right, so the result is not compared with the oracle.
    for graph in GRAPHS:
        A = graph.matrix(BOOL, place)
        u = vector(graph.n, INT64, place, share=0.3, seed=8)
        found, parents = semiring.any_secondi(u @ A, **_chosen_kernel(kernel, place)).new().to_coo()
        edges = np.isin(graph.rows, u.to_coo()[0])
        if not np.array_equal(found, np.unique(graph.cols[edges])):
            raise Difference(f"{graph.name}: entries at the wrong vertices")
        known = set(zip(graph.rows[edges].tolist(), graph.cols[edges].tolist(), strict=True))
        for i, j in zip(parents.tolist(), found.tolist(), strict=True):
            if (i, j) not in known:
                raise Difference(f"{graph.name}: {i} is not an in-neighbour of {j}")
    return f"{len(GRAPHS)} graphs hold"


def _as_the_library(kernel: str, place: Backend, _oracle: Backend) -> str:
    """Compare products with those of cupyx on a GPU, elsewhere of SciPy."""
    # They are a second oracle, which shares nothing with python-graphblas.
    on_gpu = place.device is not None and place.device.xp is not np
    library = io.to_cupyx if on_gpu else io.to_scipy
    for graph in GRAPHS:
        A = graph.matrix(FP64, place)
        u = vector(graph.n, FP64, place, share=0.5, seed=9)
        S, x = library(A), u.to_dense(0.0)
        for way, call, of in (("A @ u", A @ u, S), ("u @ A", u @ A, S.T)):
            found = semiring.plus_times(call, **_chosen_kernel(kernel, place)).new()
            wanted = (of @ place.device.xp.asarray(x)).get() if on_gpu else of @ x
            if differs := difference(found.to_dense(0.0), wanted, rounded=True):
                raise Difference(f"{way} on {graph.name}: {differs}")
    return f"{2 * len(GRAPHS)} products agree with {library.__name__.removeprefix('to_')}"


# ---- products with selection matrices: gathers and scatters

_INTEGERS = (INT32, INT64, UINT32, UINT64)
_FORMS: dict[str, Callable[[Any, Vector], Any]] = {
    "u @ P": lambda P, u: u @ P,
    "P.T @ u": lambda P, u: P.T @ u,
    "P @ u": lambda P, u: P @ u,
    "u @ P.T": lambda P, u: u @ P.T,
}


def selections() -> Iterator[Case]:
    """Yield products with selection matrices, as single statements and in a loop."""
    for k, (op, dtype) in enumerate(_PRODUCTS[::2]):  # types of row numbers alternate
        kind, forms = _INTEGERS[k % 4], list(_FORMS)[k % 2 :: 2]
        name = f"selection {' and '.join(forms)}, {op.name} {dtype} by {kind}"
        yield Case("products", name, agree(partial(_selections, forms, op, dtype, kind)))
    name = "selection, a loop that writes the vector it selects by"
    yield Case("products", name, agree(_roots))


def _selections(
    forms: Sequence[str], op: Semiring, dtype: DType, kind: DType, place: Backend
) -> Results:
    for n, hub, form in itertools.product(_SIZES, (False, True), forms):
        P = _row_numbers(n, hub, kind, place).selection()
        u = vector(n, dtype, place, share=0.6, seed=2)
        m = vector(n, INT32, place, share=0.5, seed=3)
        call = op(_FORMS[form](P, u))
        w = vector(n, call.dtype, place, share=0.5, seed=4)
        w(~m.V) << call
        yield f"{form}, {n} {'columns of one row' if hub else 'columns'}", w


def _row_numbers(n: int, hub: bool, kind: DType, place: Backend) -> Vector:
    """Return row numbers, some out of range, or with `hub` the same number at every entry."""
    rng = np.random.default_rng(n)
    rows = np.full(n, n // 2) if hub else rng.integers(0, n + n // 10 + 1, n)
    indices = np.flatnonzero(rng.random(n) < 0.9)
    return Vector.from_coo(indices, rows[indices], kind, size=n, backend=place)


def _roots(place: Backend) -> Results:
    """Find the root of each vertex of a random forest."""
    for n in _SIZES:
        above = np.random.default_rng(n).integers(0, np.arange(1, n + 1))
        parents = Vector.from_dense(above, backend=place)
        P = parents.selection()
        for _ in loop(until_unchanged=parents):
            parents << semiring.min_first(parents @ P)
        yield f"{n} vertices", parents


# ---- vectors

_SHARES = (0.05, 0.6, 1.0)  # sparse, bitmap, full
_ROUNDED = ("exp", "log", "sqrt", "minv")  # libraries differ in the last bit


def vectors() -> Iterator[Case]:
    """Yield every operation on vectors, over their storage forms, masks and types."""
    for name, dtype, make in _calls():
        yield Case("vectors", f"{name} {dtype}", agree(partial(_called, dtype, make)))
    for name in _ROUNDED:
        yield Case("vectors", f"apply {name}", partial(_rounded, name))
    for dtype in (BOOL, INT64, FP32):
        for name, mask in _MASKS.items():
            program = partial(_written, dtype, mask, (False, True) if name else (False,))
            yield Case("vectors", f"assign and extract {dtype}{name}", agree(program))
    yield Case("vectors", "entries one by one", agree(_entries))


def _calls() -> Iterator[tuple[str, DType, Make]]:
    """Yield (name, type, call) of every operation and operator."""
    for f in _built_in(unary):
        for dtype in (BOOL, INT32, FP64) if f.name not in _ROUNDED else ():
            yield f"apply {f.name}", dtype, lambda u, v, f=f: u.apply(f)  # type: ignore[misc]
    for dtype in (INT32, FP64):
        yield "apply minus left", dtype, lambda u, v: u.apply("minus", left=7)
        yield "apply times right", dtype, lambda u, v: u.apply("times", 3)
    for op in _built_in(binary):
        # `any` may return either operand, and positional operators need a product.
        for dtype in (UINT32, FP32) if not op.positional and op.name != "any" else ():
            yield f"ewise_mult {op.name}", dtype, _multiplied(op)
    for dtype in (BOOL, INT64, FP32):
        yield "ewise_add max", dtype, lambda u, v: u.ewise_add(v, binary.max)
        yield "ewise_union minus", dtype, lambda u, v: u.ewise_union(v, binary.minus, 1, 2)
    for i in _built_in(indexunary):
        yield f"apply {i.name}", FP32, lambda u, v, i=i: u.apply(i, 2)  # type: ignore[misc]
        if i.result(INT32) is BOOL:
            yield f"select {i.name}", INT32, lambda u, v, i=i: u.select(i, 2)  # type: ignore[misc]
    for m in monoid:
        for dtype in (BOOL, INT32, UINT64, FP32) if m.name != "any" and not m.registered else ():
            if dtype in m:
                yield f"reduce {m.name}", dtype, lambda u, v, m=m: u.reduce(m)  # type: ignore[misc]


def _built_in(table: Iterable[Op]) -> list[Op]:
    """Return the operators of a table that no user has registered."""
    return [op for op in table if not op.body]


def _multiplied(op: Any) -> Make:
    if op.name == "truediv":  # avoid division by zero
        return lambda u, v: u.ewise_mult(v.apply(binary.plus, 1).new(), op)
    return lambda u, v: u.ewise_mult(v, op)


def _called(dtype: DType, make: Make, place: Backend) -> Results:
    for n, share, masked in itertools.product(_SIZES, _SHARES, (False, True)):
        u = vector(n, dtype, place, share=share, seed=1)
        call = make(u, vector(n, dtype, place, share=0.5, seed=2))
        if masked and call.shape != ():
            m = vector(n, INT32, place, share=0.5, seed=3)
            found = vector(n, call.dtype, place, share=0.5, seed=4)
            found(~m.S, replace=True) << call
        else:
            found = call.new()
        yield f"size {n}, share {share}{', ~m.S, replace' * masked}", found


def _rounded(name: str, place: Backend, oracle: Backend) -> str:
    """Compare a function that is accurate to a few units in the last place."""
    for dtype in (FP32, FP64):
        u = vector(1025, dtype, place, share=0.6, seed=1).apply(binary.plus, 1).new()
        (at, x), (where, y) = (v.apply(name).new().to_coo() for v in (u, u.to(oracle)))
        most = 8 * float(np.finfo(dtype.numpy).eps)
        if not (np.array_equal(at, where) and np.allclose(x, y, most, 0, equal_nan=True)):
            raise Difference(f"{dtype}: differs by more than 8 roundings")
    return "2 types agree to 8 roundings"


_MASKS: dict[str, Any] = {
    "": lambda m: None, " m.S": lambda m: m.S, " ~m.S": lambda m: ~m.S,
    " m.V": lambda m: m.V, " ~m.V": lambda m: ~m.V,
}  # fmt: skip
# Each takes (updater, u, indices), where the indices are distinct, unsorted and incomplete.
_WRITES: dict[str, Any] = {
    "scalar": lambda to, u, at: to << 1,
    "vector": lambda to, u, at: to << u,
    "scalar at indices": lambda to, u, at: to[at] << 1,
    "vector at indices": lambda to, u, at: to[at] << u[: len(at)].new(),
}


def _written(dtype: DType, mask: Any, replaces: Sequence[bool], place: Backend) -> Results:
    """Assign and extract, also at indices."""
    ways = itertools.product(_SIZES, (None, binary.second), replaces, _WRITES.items())
    for n, accum, replace, (what, write) in ways:
        w = vector(n, dtype, place, share=0.6, seed=1)
        u = vector(n, dtype, place, share=0.5, seed=2)
        m = vector(n, INT32, place, share=0.5, seed=3)
        at = np.random.default_rng(n).permutation(n)[: (n + 1) // 2]
        write(w(mask(m), accum=accum, replace=replace), u, at)
        found = w if n % 2 else w[at[::-1]].new()
        yield f"{what}, size {n}, accum {accum}, replace {replace}", found


def _entries(place: Backend) -> Results:
    """Set, read, delete, resize, copy, clear, build and compare."""
    w = Vector(INT64, 40, backend=place)
    w[33], w[0], w[31] = 5, 1, 3
    w[33] = w.get(0) + w.get(31, 0) + w.get(32, 100)
    del w[0]
    short = w.dup(FP64)
    short.resize(33)
    v = Vector(INT64, 40, backend=place)
    v.build([7, 5, 7], [1, 2, 3], dup_op=binary.plus)
    v[:33] << short
    before = v.dup()
    v.clear()
    v << before.apply(binary.plus, 1)
    yield "entries", (w, short, before, v)
    yield "facts", [v.isequal(before), v.isequal(v.dup()), v.nvals, 31 in v, 30 in v]


# ---- matrices

_OPERATIONS: dict[str, Callable[[Matrix], Any]] = {
    "apply unary": lambda A: A.apply("ainv").new(),
    "apply bound": lambda A: A.apply("minus", left=9).new(),
    "apply index": lambda A: A.apply(indexunary.rowindex, 1).new(),
    "select by value": lambda A: A.select("valuegt", 1).new(),
    "select tril": lambda A: A.select("tril", -1).new(),
    "select offdiag": lambda A: A.select("offdiag", 0).new(),
    "reduce": lambda A: A.reduce("plus").new(),
    "reduce min": lambda A: A.reduce("min").new(),
    "reduce_rowwise": lambda A: A.reduce_rowwise("plus").new(),
    "reduce_columnwise": lambda A: A.reduce_columnwise("max").new(),
    "diag": lambda A: A.diag(0),
    "diag above": lambda A: A.diag(A.ncols // 2),
    "diag of a vector": lambda A: A.diag(0).diag(-1),
    "extract a row": lambda A: A[A.nrows // 2, :].new(),
    "extract a column": lambda A: A[:, A.ncols - 1].new(),
    "extract an entry": lambda A: A[0, 0].new(),
    "transpose": lambda A: A.T.new(),
    "dup to FP32": lambda A: A.dup(FP32),
    "isequal": lambda A: [A.isequal(A.dup()), A.isequal(A.T.new()), A.is_symmetric],
    "compressed": lambda A: tuple(part.tolist() for part in (*A.to_csc(), *A.to_csr())),
}
_UNDIRECTED = (
    *("kron:4", "urand:4", "road:4", "grid:3x4", "delaunay:4", "mycielskian:4"),
    *("path:5", "cycle:5", "star:5", "complete:5"),
)


def matrices() -> Iterator[Case]:
    """Yield every operation on matrices, and operators that a user registers."""
    for name, operation in _OPERATIONS.items():
        yield Case("matrices", name, agree(partial(_operated, operation)))
    yield Case("matrices", "built of duplicates", agree(_duplicates))
    yield Case("matrices", "symmetric as made", _symmetric_as_made)
    yield Case("matrices", "product with A.T", agree(_transposed))
    yield Case("operators", "registered by a user", agree(_registered))


def _operated(operation: Callable[[Matrix], Any], place: Backend) -> Results:
    for graph, dtype in itertools.product(GRAPHS, (BOOL, INT64, FP32)):
        yield f"{graph.name} {dtype}", operation(graph.matrix(dtype, place))


def _duplicates(place: Backend) -> Results:
    rows, cols, values = [2, 0, 2, 2, 0], [1, 3, 1, 1, 0], [1, 2, 3, 4, 5]
    how: dict[str, Any] = {"nrows": 3, "ncols": 4, "dup_op": binary.minus, "backend": place}
    yield "from_coo", Matrix.from_coo(rows, cols, values, INT32, **how)


def _symmetric_as_made(place: Backend, oracle: Backend) -> str:
    """Compare the facts that a generated graph has with its entries, also after writes."""
    for spec in _UNDIRECTED:
        A = from_spec(spec, backend=place)
        copy = A.dup(INT32)
        copy[0, 1] << 7
        for what, x in ((spec, A), (f"{spec}, copied", A.dup()), (f"{spec}, written", copy)):
            looked_at = Matrix.from_csc(*x.to_csc(), nrows=x.nrows, backend=oracle)
            if x.is_symmetric is not looked_at.is_symmetric:
                raise Difference(f"{what}: is_symmetric is {x.is_symmetric}")
    return f"{len(_UNDIRECTED)} graphs agree"


def _transposed(place: Backend) -> Results:
    for graph in GRAPHS:
        A = graph.matrix(INT32, place)
        u = vector(graph.n, INT32, place, share=0.5, seed=1)
        pushed = semiring.min_first(u @ A.T).new()
        yield graph.name, semiring.plus_minus(A.T @ u).new().ewise_add(pushed, binary.plus).new()


def _registered(place: Backend) -> Results:
    """Yield results of a user's function and semiring."""
    affine, square = _user_operators()
    for graph in GRAPHS:
        u = vector(graph.n, INT64, place, share=0.5, seed=1)
        yield graph.name, affine(u @ graph.matrix(INT64, place)).new().apply(square).new()


def _user_operators() -> tuple[Any, Any]:
    """Return two user operators, registered in the first call."""
    if "selftest_affine" not in binary:
        op = binary.register("selftest_affine", lambda x, y: x + 2 * y, "x + 2 * y")
        unary.register("selftest_square", lambda x: x * x, "x * x")
        semiring.register(monoid.plus, op)
    return semiring["plus_selftest_affine"], unary["selftest_square"]


# ---- loops over k-row matrices

_ROWS = (1, 33, 65)


def loops() -> Iterator[Case]:
    """Yield loops over bitmap matrices, fused and eager."""
    for name, run in _LOOPS.items():
        for graph in GRAPHS:
            yield Case("matrices", f"{name} on {graph.name}", agree(partial(_looped, run, graph)))


def _looped(run: Callable[[Matrix, int], Matrix], graph: Graph, place: Backend) -> Results:
    for k in (k for k in _ROWS if 2 * k <= max(2, graph.n)):
        yield f"{k} rows", run(graph.matrix(INT64, place), k)
        with eager():
            found = run(graph.matrix(INT64, place), k)
        yield f"{k} rows, eagerly", found


def _seeds(A: Matrix, k: int, dtype: DType) -> Matrix:
    """Return a k x n matrix with one entry in each row, at different columns if possible."""
    rows = np.arange(k)
    places = rows * max(1, A.nrows // k) % A.nrows
    return Matrix.from_coo(
        rows, places, rows.astype(dtype.numpy), dtype, nrows=k, ncols=A.nrows, like=A
    )


def _distances(A: Matrix, k: int) -> Matrix:
    """Return the least weights of paths; only vertices that came nearer are relaxed again."""
    found, changed = _seeds(A, k, INT64), _seeds(A, k, INT64)
    new = Matrix(INT64, *found.shape, like=A)
    nearer = Matrix(BOOL, *found.shape, like=A)
    for _ in loop(until_empty=changed):
        new << semiring.min_plus(changed @ A)
        nearer << new.ewise_mult(found, binary.lt)
        changed(nearer.V, replace=True) << new
        changed(~found.S) << new
        found(accum=binary.min) << new
    return found


def _labels(A: Matrix, k: int) -> Matrix:
    """Return the largest seed that a vertex reaches, against the edges."""
    label = _seeds(A, k, INT32)
    for _ in loop(until_unchanged=label, times=50):
        label(accum=binary.max) << semiring.max_first(label @ A.T)
    return label


def _filled(A: Matrix, k: int) -> Matrix:
    """Return sums of the depths at which vertices were reached within two steps, 7 elsewhere."""
    near, when = _seeds(A, k, BOOL), Matrix(INT32, k, A.nrows, like=A)
    for depth in loop(times=3):
        when(near.S, accum=binary.plus) << depth
        near(~when.S) << semiring.any_pair(near @ A)
        when(~near.S, replace=True) << 7
        when(accum=binary.max) << near
    return when


_LOOPS = {"weights of paths": _distances, "labels": _labels, "steps, and numbers": _filled}
