"""Triangles of an undirected graph: in total, of each vertex, and as shares of possible ones.

A product with a mask counts for each edge (i, j) the vertices k that are joined to both i and j.
Put the vertices in some order, and let U have the edges (earlier, later) alone. Then each triangle
counts once, at one of its edges::

    C<s(U)> = U (+.pair) U'    where i < j < k
    D<s(U)> = U (+.pair) U     where i < k < j

The sum of C is the number of triangles. The sums of the rows of C, the columns of C and the columns
of D count the triangles in which a vertex is the first, the middle and the last one.
"""

from __future__ import annotations

from typing import Any

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import require_square, source_vertices
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import FP64, INT64
from lagpu.errors import InvalidValue

_HUB = 8  # mean degrees from which the largest one makes an order of degrees worth its cost


def triangle_count(A: Matrix) -> int:
    """Return the number of triangles of an undirected graph.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entries (i, j) and (j, i) of any values are the edge between i and j; self-loops do not
        count.

    Returns
    -------
    int
        0 or more.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    One masked product. Source: Azad, Buluc and Gilbert 2015; Wolf et al. 2017 (only below the
    diagonal, so that each triangle counts once); Schank and Wagner 2005 (vertices in the order of
    their degrees).

    Examples
    --------
    >>> from lagpu.generators import complete
    >>> triangle_count(complete(5, backend="cpu"))
    10
    """
    return _count(_simple(A, "triangle_count"))


def triangles(A: Matrix, nodes: Any = None) -> Vector:
    """Return the number of triangles that each vertex belongs to.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `triangle_count`.
    nodes : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), INT64
        An entry for each vertex asked for.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        As `triangle_count`; if `nodes` is empty, has a vertex twice or a number that is not a
        vertex.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2], nrows=4, ncols=4, backend="cpu")
    >>> triangles(A).to_dense().tolist()
    [1, 1, 1, 0]
    """
    A = _simple(A, "triangles")
    count = Vector(INT64, A.nrows, like=A, name="triangles")
    count << 0
    count(accum=binary.plus) << _of_each(A)
    return _of(A, count, nodes, "triangles: nodes")


def clustering(A: Matrix, nodes: Any = None) -> Vector:
    """Return the share of joined pairs among the neighbours of each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `triangle_count`; values are not used as weights.
    nodes : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex asked for; 0 where there are fewer than two neighbours.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        As `triangles`.

    Notes
    -----
    Source: Watts and Strogatz 1998.

    Examples
    --------
    >>> from lagpu.generators import complete
    >>> clustering(complete(3, backend="cpu")).to_dense().tolist()
    [1.0, 1.0, 1.0]
    """
    A = _simple(A, "clustering")
    share = Vector(FP64, A.nrows, like=A, name="share")
    share << 0
    twice = _of_each(A).apply(binary.times, right=2).new()
    share(twice.S) << twice.ewise_mult(_ordered_pairs(A), binary.truediv)
    return _of(A, share, nodes, "clustering: nodes")


def average_clustering(A: Matrix, nodes: Any = None, *, count_zeros: bool = True) -> float:
    """Return the mean clustering coefficient of vertices.

    Parameters
    ----------
    A, nodes
        As in `clustering`.
    count_zeros : bool
        Whether to include vertices without a triangle.

    Returns
    -------
    float
        0 to 1; 0 if no vertex counts.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        As `clustering`.

    Examples
    --------
    >>> from lagpu.generators import complete, star
    >>> average_clustering(complete(4, backend="cpu")), average_clustering(star(4, backend="cpu"))
    (1.0, 0.0)
    """
    share = clustering(A, nodes)
    if not count_zeros:
        share << share.select("valuegt", 0)
    return float(share.reduce("plus").new().value / share.nvals) if share.nvals else 0.0


def transitivity(A: Matrix) -> float:
    """Return the share of joined pairs among all pairs of a common neighbour; 0 if there are none.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `triangle_count`.

    Returns
    -------
    float
        0 to 1.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch
        As `triangle_count`.

    Notes
    -----
    Three times the number of triangles over the number of paths of two edges. Source: Newman 2003.

    Examples
    --------
    >>> from lagpu.generators import complete, star
    >>> transitivity(complete(4, backend="cpu")), transitivity(star(4, backend="cpu"))
    (1.0, 0.0)
    """
    A = _simple(A, "transitivity")
    pairs = _ordered_pairs(A).reduce("plus").new().value
    return 6 * _count(A) / pairs if pairs else 0.0


def _simple(A: Matrix, name: str) -> Matrix:
    """Return 1 for each entry of `A` off the diagonal, or raise if the graph is directed."""
    require_square(A)
    A = A.select("offdiag").new().apply("one").new(INT64, name="A")
    if not A.is_symmetric:
        raise InvalidValue(
            f"{name}: an edge has no reverse, so the graph is directed. "
            "Give the undirected one, as A.ewise_add(A.T, 'max').new()."
        )
    return A


def _of(A: Matrix, numbers: Vector, nodes: Any, what: str) -> Vector:
    """Return the numbers of some vertices, or all."""
    if nodes is None:
        return numbers
    wanted = Vector.from_coo(source_vertices(A, nodes, what), True, size=A.nrows, like=A)
    numbers(wanted.S, replace=True) << numbers
    return numbers


def _upward(A: Matrix) -> Matrix:
    """Return each edge once, from the earlier vertex to the later one, in some order of vertices.

    Where few vertices have most of the edges they are the last ones: then no vertex has edges to
    many later ones.
    """
    degree = A.reduce_rowwise("plus").new(name="degree")
    largest = degree.reduce("max").new().value
    if not largest or largest * A.nrows <= _HUB * A.nvals:
        U: Matrix = A.select("triu", 1).new(name="U")
        return U
    rank = Vector(INT64, A.nrows, like=A, name="rank")
    rank << 0
    rank << rank.apply("index")
    rank(accum=binary.plus) << degree.apply("times", right=A.nrows)
    rises = rank.outer(rank, "lt").new(mask=A.S, name="rises")
    U = rises.select("valueeq", True).new(name="U")
    return U


def _count(A: Matrix) -> int:
    """Return the number of triangles."""
    _, C = _first_and_middle(A)
    return C.reduce("plus").new().value or 0


def _first_and_middle(A: Matrix) -> tuple[Matrix, Matrix]:
    """Return U, and the triangles of which an edge joins the first vertex and the middle one."""
    U = _upward(A)
    C: Matrix = semiring.plus_pair(U @ U.T).new(INT64, mask=U.S, name="C")
    return U, C


def _of_each(A: Matrix) -> Vector:
    """Return the number of triangles of each vertex that has one."""
    U, C = _first_and_middle(A)
    D = semiring.plus_pair(U @ U).new(INT64, mask=U.S, name="D")
    count: Vector = C.reduce_rowwise("plus").new(name="count")
    count(accum=binary.plus) << C.reduce_columnwise("plus")
    count(accum=binary.plus) << D.reduce_columnwise("plus")
    return count


def _ordered_pairs(A: Matrix) -> Vector:
    """Return the number of ordered pairs of neighbours of each vertex that has a neighbour."""
    degree = A.reduce_rowwise("plus").new(name="degree")
    others = degree.apply("minus", right=1).new(name="others")
    pairs: Vector = degree.ewise_mult(others, binary.times).new(name="pairs")
    return pairs
