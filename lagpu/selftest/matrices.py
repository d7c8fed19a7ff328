"""Every operation on matrices, and operators that a user registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lagpu.algebra.tables import binary, indexunary, monoid, semiring, unary
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, FP32, INT32, INT64, DType
from lagpu.generators import from_spec
from lagpu.selftest.case import Case, Difference, Program, agree
from lagpu.selftest.data import GRAPHS, Graph, vector

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
    "compressed": lambda A: [part.tolist() for part in (*A.to_csc(), *A.to_csr())],
}
_UNDIRECTED = (
    *("kron:4", "urand:4", "road:4", "grid:3x4", "delaunay:4", "mycielskian:4"),
    *("path:5", "cycle:5", "star:5", "complete:5"),
)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, operation in _OPERATIONS.items():
        programs: dict[str, Program] = {}
        for graph in GRAPHS:
            for dtype in (BOOL, INT64, FP32):
                programs[f"{graph.name} {dtype}"] = _on(graph, dtype, operation)
        yield Case("matrices", name, agree(programs))
    yield Case("matrices", "built of duplicates", agree({"program": _duplicates}))
    yield Case("matrices", "symmetric as made", _symmetric_as_made)
    yield Case("matrices", "product with A.T", agree({g.name: _transposed(g) for g in GRAPHS}))
    yield Case("operators", "registered by a user", agree({g.name: _registered(g) for g in GRAPHS}))


def _on(graph: Graph, dtype: DType, operation: Callable[[Matrix], Any]) -> Program:
    return lambda place: operation(graph.matrix(dtype, place))


def _duplicates(place: Backend) -> Matrix:
    rows, cols, values = [2, 0, 2, 2, 0], [1, 3, 1, 1, 0], [1, 2, 3, 4, 5]
    return Matrix.from_coo(
        rows, cols, values, INT32, nrows=3, ncols=4, dup_op=binary.minus, backend=place
    )


def _symmetric_as_made(place: Backend, oracle: Backend) -> str:
    """Compare what a generated graph says of itself with what its entries say, after writes too."""
    for spec in _UNDIRECTED:
        A = from_spec(spec, backend=place)
        copy = A.dup(INT32)
        copy[0, 1] << 7
        for what, x in ((spec, A), (f"{spec}, copied", A.dup()), (f"{spec}, written", copy)):
            looked_at = Matrix.from_csc(*x.to_csc(), nrows=x.nrows, backend=oracle)
            if x.is_symmetric is not looked_at.is_symmetric:
                raise Difference(f"{what}: is_symmetric is {x.is_symmetric}")
    return f"{len(_UNDIRECTED)} graphs agree"


def _transposed(graph: Graph) -> Program:
    def run(place: Backend) -> Any:
        A = graph.matrix(INT32, place)
        u = vector(graph.n, INT32, place, share=0.5, seed=1)
        return (
            semiring.plus_minus(A.T @ u)
            .new()
            .ewise_add(semiring.min_first(u @ A.T).new(), binary.plus)
            .new()
        )

    return run


def _registered(graph: Graph) -> Program:
    """Return a program with a user's function, semiring and selector."""

    def run(place: Backend) -> Any:
        affine, square = _user_operators()
        A = graph.matrix(INT64, place)
        u = vector(graph.n, INT64, place, share=0.5, seed=1)
        return affine(u @ A).new().apply(square).new()

    return run


def _user_operators() -> tuple[Any, Any]:
    """Return two user operators, registered in the first call."""
    if "selftest_affine" not in binary:
        op = binary.register("selftest_affine", lambda x, y: x + 2 * y, "x + 2 * y")
        unary.register("selftest_square", lambda x: x * x, "x * x")
        semiring.register(monoid.plus, op)
    return semiring["plus_selftest_affine"], unary["selftest_square"]
