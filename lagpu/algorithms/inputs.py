"""What algorithms share: checks of matrices, vertices, numbers and seeds, and small results."""

import math
import secrets
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary
from lagpu.backends.protocol import of_all
from lagpu.core import Matrix, Vector
from lagpu.core.arguments import index_array, integer, single_index
from lagpu.dtypes import BOOL, INT32, INT64, DType
from lagpu.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound, InvalidValue


def require_square(A: Any) -> int:
    """Return the number of vertices, or raise unless `A` is a square `Matrix`."""
    if not isinstance(A, Matrix):
        advice = "Write x.new() to make one." if hasattr(A, "new") else "Make one with lagpu.io."
        raise DomainMismatch(f"graph: {type(A).__name__} is not a Matrix. {advice}")
    nrows, ncols = A.shape
    if nrows != ncols:
        raise DimensionMismatch(
            f"graph: {nrows} rows != {ncols} columns; an adjacency matrix is square."
        )
    return nrows


def require_finite(A: Matrix, what: str) -> None:
    """Raise `InvalidValue` if a value of `A` is NaN or infinite."""
    if not A.dtype.is_float:
        return
    total = A.reduce("plus").new().value
    if total is None or math.isfinite(total):
        return
    finite = A.select("valuegt", -math.inf).new().select("valuelt", math.inf).new()
    if finite.nvals != A.nvals:  # else all are finite, and only the sum overflows
        raise InvalidValue(
            f"{what}: {A.nvals - finite.nvals} weights are NaN or infinite. Leave such edges out."
        )


def require_no_negative(A: Matrix, what: str, advice: str) -> None:
    """Raise `InvalidValue` if a value of `A` is negative."""
    least = A.reduce("min").new().value if A.dtype.numpy.kind in "if" else None
    if least is not None and least < 0:
        raise InvalidValue(f"{what}: a weight is {least} < 0. {advice}")


def source_vertex(A: Any, source: Any, what: str = "source") -> int:
    """Return `source` as an int that is a vertex of the square matrix `A`, or raise."""
    return single_index(source, _some_vertices(A, what), what, from_end=False)


def _some_vertices(A: Any, what: str) -> int:
    """Return the number of vertices of a graph that has some, or raise."""
    n = require_square(A)
    if not n:
        raise IndexOutOfBound(f"{what}: the graph has no vertices. Give a graph with vertices.")
    return n


def source_vertices(A: Any, sources: Any, what: str = "sources") -> list[int]:
    """Return one vertex or several as a list of distinct vertices of the matrix `A`, or raise."""
    n = _some_vertices(A, what)
    if isinstance(sources, (set, frozenset)):
        sources = list(sources)
    elif np.ndim(sources) == 0:
        sources = [single_index(sources, n, what, from_end=False)]
    chosen = index_array(sources, n, what, from_end=False)
    found = list(range(n)) if chosen is None else chosen.tolist()
    if not found:
        raise InvalidValue(f"{what}: the list is empty. Give one vertex or more.")
    if len(set(found)) != len(found):
        twice = next(v for k, v in enumerate(found) if v in found[:k])
        raise InvalidValue(f"{what}: vertex {twice} is given twice. Give each once.")
    return found


def number(x: Any, what: str) -> float:
    """Return `x` as a float, which may be NaN, or raise `DomainMismatch`."""
    if isinstance(x, (bool, np.bool_)) or not isinstance(x, (int, float, np.integer, np.floating)):
        raise DomainMismatch(f"{what} {x!r} is not a number.")
    try:
        return float(x)
    except OverflowError:
        raise DomainMismatch(f"{what} does not fit FP64.") from None


def random_seed(seed: Any, what: str, A: Matrix) -> int:
    """Return a seed as an int; for None one that is drawn, the same for all processes of a grid."""
    if seed is None:
        return int(of_all(A.backend, secrets.randbelow(2**32))[0][0])
    return integer(seed, f"{what}: seed", 0)


def index_type(A: Matrix) -> DType:
    """Return the smallest signed type that fits every vertex number of `A`."""
    return INT32 if A.nrows <= 2**31 else INT64


def undirected(A: Matrix) -> Matrix:
    """Return `A` if it is symmetric, else the union of the patterns of `A` and ``A'``."""
    require_square(A)
    if A.is_symmetric:
        return A
    pattern = A.apply("one").new(BOOL)
    return pattern.ewise_add(pattern.T, binary.lor).new(name=A.name)


def where_any(v: Vector, name: str) -> Vector:
    """Return True at each entry of a vector."""
    return v.apply("one").new(BOOL, name=name)


def simple(A: Matrix, name: str) -> Matrix:
    """Return 1 for each entry of `A` off the diagonal, or raise if the graph is directed."""
    require_square(A)
    A = A.select("offdiag").new().apply("one").new(INT64, name="A")
    if not A.is_symmetric:
        raise InvalidValue(
            f"{name}: an edge has no reverse, so the graph is directed. "
            "Give the undirected one, as A.ewise_add(A.T, 'max').new()."
        )
    return A


def frontier_of(A: Matrix, sources: list[int], values: Any, kind: DType) -> Matrix:
    """Return the k x n matrix with a value at each row's source."""
    k, n = len(sources), A.nrows
    return Matrix.from_coo(
        np.arange(k), sources, values, kind, nrows=k, ncols=n, like=A, name="frontier"
    )


def numbered(A: Matrix, name: str, size: int | None = None) -> Vector:
    """Return the vector 0, 1, 2, ...: of the vertex numbers of `A`, or of a size in INT64."""
    kind, size = (index_type(A), A.nrows) if size is None else (INT64, size)
    return Vector.from_scalar(True, size, BOOL, like=A).apply("index").new(kind, name=name)


def of(A: Matrix, numbers: Vector, nodes: Any, what: str) -> Vector:
    """Return the numbers of some vertices, or all."""
    if nodes is None:
        return numbers
    wanted = Vector.from_coo(source_vertices(A, nodes, what), True, size=A.nrows, like=A)
    numbers(wanted.S, replace=True) << numbers
    return numbers
