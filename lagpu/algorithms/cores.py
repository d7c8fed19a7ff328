"""Core numbers: repeatedly peel off the vertices of least degree.

d has the degrees of the remaining vertices, and k never decreases::

    k = max(k, [min_i d[i]]);  q = d<= k;  d<!s(q)> = d;  d<s(d)> = d - q (+.second) A
"""

from __future__ import annotations

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import require_square
from lagpu.core.arguments import integer
from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT32, INT64
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.loops.loop import loop

__all__ = ["core_number", "k_core"]


def core_number(A: Matrix) -> Vector:
    """Return for each vertex the largest k such that it is in the k-core.

    The k-core is the largest subgraph in which every vertex has degree >= k.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j; self-loops do not count. The degree in a graph
        that is not symmetric is the number of edges in and out.

    Returns
    -------
    Vector, (n,), INT32
        Full.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    One product per round of peeling. Source: Seidman 1983; Batagelj and Zaversnik 2003.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 3], nrows=4, ncols=4, backend="cpu")
    >>> core_number(A).to_dense().tolist()
    [2, 2, 2, 1]
    """
    require_square(A)
    edges = _edges_between(A)
    core = Vector(INT32, A.nrows, like=A, name="core")
    names = ("left", "peeled", "fewer")
    left, peeled, fewer = (Vector(INT64, A.nrows, like=A, name=name) for name in names)
    left << 0
    left(accum=binary.plus) << edges.reduce_rowwise("plus")
    k = Scalar(INT32, name="k")
    k << 0
    for _ in loop(until_empty=left):
        k(accum=binary.max) << left.reduce("min")
        peeled << left.select("valuele", k)
        core(peeled.S) << k
        left(~peeled.S, replace=True) << left
        fewer << semiring.plus_second(peeled @ edges)
        left(left.S, accum=binary.minus) << fewer
    return core


def k_core(A: Matrix, k: int | None = None, core_number: Vector | None = None) -> Vector:
    """Return the vertices of the k-core.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `core_number`.
    k : int, optional
        Least degree; by default the largest k with a core.
    core_number : Vector, (n,), optional
        The result of `core_number` for `A`, so that it is not computed again.

    Returns
    -------
    Vector, (n,), BOOL
        True at the vertices of the core; no entry elsewhere.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch
        If `k` is negative or not an integer, `A` is not square, or `core_number` does not fit `A`.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 3], nrows=4, ncols=4, backend="cpu")
    >>> k_core(A).to_coo()[0].tolist()
    [0, 1, 2]
    """
    require_square(A)
    core = _core_number(A) if core_number is None else core_number
    if not isinstance(core, Vector):
        raise DomainMismatch(f"k_core: core_number is a {type(core).__name__}, not a Vector.")
    if core.size != A.nrows:
        raise DimensionMismatch(f"k_core: core_number.size {core.size} != {A.nrows} vertices.")
    if k is None:
        k = core.reduce("max").new().value or 0
    elif integer(k, "k_core: k") < 0:
        raise InvalidValue(f"k_core: k {k} < 0. Give 0 or more.")
    members = Vector(BOOL, A.nrows, like=A, name="members")
    members(core.select("valuege", k).new().S) << True
    return members


_core_number = core_number  # the function; an argument of `k_core` hides its name


def _edges_between(A: Matrix) -> Matrix:
    """Return how many edges join two vertices: 2 for u -> v and v -> u in a directed graph."""
    edges: Matrix = A.select("offdiag").new().apply("one").new(INT64, name="E")
    if edges.is_symmetric:
        return edges
    both: Matrix = edges.ewise_add(edges.T, binary.plus).new(name="E")
    return both
