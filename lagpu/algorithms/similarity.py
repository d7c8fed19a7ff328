"""Numbers of pairs of vertices and of edges: similarity, reciprocity, Laplacian matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import of, require_finite, require_square, simple
from lagpu.core import Matrix, Vector
from lagpu.core.arguments import index_array
from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue

__all__ = ["laplacian_matrix", "overall_reciprocity", "reciprocity", "similarity"]

KINDS = (
    *("adamic_adar", "common_neighbors", "cosine", "jaccard", "preferential_attachment"),
    "resource_allocation",
)


def similarity(A: Matrix, pairs: Any = None, *, kind: str = "jaccard") -> Matrix:
    """Return how similar the neighbours of pairs of vertices are.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entries (i, j) and (j, i) of any values are the edge between i and j; self-loops do not
        count.
    pairs : Matrix, (n, n), or list of pairs of int, optional
        Entries of a matrix, or pairs (u, v) of vertices; by default all pairs of two vertices with
        a common neighbour, whose number may be the square of the largest degree.
    kind : str
        With N(u) the neighbours of u and d(u) their number: "common_neighbors"
        ``|N(u) & N(v)|``; "jaccard" ``|N(u) & N(v)| / |N(u) | N(v)|``; "cosine"
        ``|N(u) & N(v)| / sqrt(d(u) d(v))``; "adamic_adar" and "resource_allocation" the sums of
        ``1 / log(d(w))`` and ``1 / d(w)`` over the w in N(u) & N(v); "preferential_attachment"
        ``d(u) d(v)``. The "adamic_adar" of (v, v) is infinite if a neighbour of v has no other.

    Returns
    -------
    Matrix, (n, n), FP64
        An entry for each pair, even if it is 0.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.

    Notes
    -----
    ``C⟨s(M)⟩ = (A W) plus.first A'`` for pairs M and the diagonal matrix W of weights of common
    neighbours: a masked product, in work O(sum over the pairs of their degrees), or O(sum of
    squared degrees) without pairs; memory of some four matrices of the pairs. Source: Liben-Nowell
    and Kleinberg 2007; Adamic and Adar 2003; Zhou, Lu and Zhang 2009 (resource allocation); Salton
    and McGill 1983 (cosine).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> A = path(4, backend="cpu")
    >>> [x.tolist() for x in similarity(A).to_coo()]
    [[0, 1, 2, 3], [2, 3, 0, 1], [0.5, 0.5, 0.5, 0.5]]
    >>> similarity(A, [(0, 3)], kind="preferential_attachment").get(0, 3)
    1.0
    """
    if kind not in KINDS:
        raise InvalidValue(f"similarity: there is no kind {kind!r}. Use one of {', '.join(KINDS)}.")
    A = simple(A, "similarity").dup(FP64, name="A")
    M = None if pairs is None else _pairs(A, pairs)
    degree = Vector.from_scalar(0, A.nrows, FP64, like=A, name="degree")
    degree(accum=binary.plus) << A.reduce_rowwise("plus")
    D, left = degree.diag(), A
    if kind in ("adamic_adar", "resource_allocation"):
        weight = degree.apply("log").new() if kind == "adamic_adar" else degree
        left = semiring.plus_times(A @ weight.apply("minv").new().diag()).new(name="AW")
    C = semiring.plus_first(left @ A.T).new(mask=None if M is None else M.S, name="common")
    if M is None:
        C << C.select("offdiag")
        M = C.dup(name="pairs")
    if kind == "preferential_attachment":
        C = M.apply("one").new(FP64)
    own = semiring.any_first(D @ C).new(name="own")
    other = semiring.any_second(C @ D).new(name="other")
    if kind == "jaccard":
        both = own.ewise_mult(other, binary.plus).new().ewise_mult(C, binary.minus).new()
        C << C.ewise_mult(both, binary.truediv)
    elif kind in ("cosine", "preferential_attachment"):
        both = own.ewise_mult(other, binary.times).new()
        if kind == "cosine":
            both << both.apply("sqrt")
        C << C.ewise_mult(both, binary.truediv if kind == "cosine" else binary.times)
    found = Matrix(FP64, *A.shape, like=A, name=kind)
    found(M.S) << 0.0
    found(accum=binary.plus) << C
    return found


def _pairs(A: Matrix, pairs: Any) -> Matrix:
    if isinstance(pairs, Matrix):
        if pairs.shape != A.shape:
            raise DimensionMismatch(f"similarity: pairs.shape {pairs.shape} != {A.shape}.")
        return pairs
    array = np.asarray(list(pairs))
    if array.size and (array.ndim != 2 or array.shape[1] != 2):
        raise DomainMismatch(f"similarity: pairs of shape {array.shape} are not pairs of vertices.")
    rows, cols = (
        index_array(x, A.nrows, "similarity: pairs", from_end=False)
        for x in array.astype(array.dtype if array.size else int).reshape(-1, 2).T
    )
    return Matrix.from_coo(
        rows, cols, True, BOOL, nrows=A.nrows, ncols=A.nrows, dup_op="lor", like=A
    )


# ---- edges with a reverse
def reciprocity(A: Matrix, nodes: Any = None) -> Vector:
    """Return the share of the edges of each vertex that have a reverse.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j; a self-loop is its own reverse.
    nodes : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), FP64
        0 to 1 for each requested vertex that has an edge, in or out.

    Notes
    -----
    ``2 (A & A') 1 / (A 1 + A' 1)`` with the pattern A, its edges A & A' that have a reverse, and a
    vector 1 of ones, in work O(m). `overall_reciprocity` is the share of the whole graph.
    Source: Garlaschelli and Loffredo 2004.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 1], [1, 0, 2], nrows=3, ncols=3, backend="cpu")
    >>> reciprocity(A).to_dense().round(3).tolist()
    [1.0, 0.667, 0.0]
    """
    require_square(A)
    E = A.apply("one").new(INT64, name="E")
    edges = E.reduce_rowwise("plus").new(name="edges")
    edges(accum=binary.plus) << E.reduce_columnwise("plus")
    share = Vector(FP64, A.nrows, like=A, name="reciprocity")
    share(edges.S) << 0.0
    mutual = E.ewise_mult(E.T, binary.plus).new().reduce_rowwise("plus").new(name="mutual")
    share(mutual.S) << mutual.ewise_mult(edges, binary.truediv)
    return of(A, share, nodes, "reciprocity: nodes")


def overall_reciprocity(A: Matrix) -> float:
    """Return the share of the edges that have a reverse; a self-loop counts as one that has none.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.

    Returns
    -------
    float
        0 to 1.

    Raises
    ------
    InvalidValue
        If there is no edge.

    Notes
    -----
    The edges whose reverse is an edge too, over all edges, in work O(m).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 2], nrows=3, ncols=3, backend="cpu")
    >>> overall_reciprocity(A)
    0.5
    """
    require_square(A)
    if not A.nvals:
        raise InvalidValue("overall_reciprocity: the graph has no edges.")
    E = A.select("offdiag").new()
    return float(E.ewise_mult(E.T, binary.pair).new().nvals / A.nvals)


# ---- Laplacian matrices
def laplacian_matrix(A: Matrix, *, weight: bool = True, normalized: bool = False) -> Matrix:
    """Return the Laplacian ``D - A``, D the sums of rows, or ``D**-1/2 (D - A) D**-1/2``.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the edge i -> j and its weight; True counts 1.
    weight : bool
        Whether values are weights; otherwise each edge counts 1.
    normalized : bool
        Whether rows and columns are scaled by the roots of the sums of rows; those whose sum is 0
        become empty.

    Returns
    -------
    Matrix, (n, n), FP64
        D - A, or scaled; D has the sums of the rows of `A` on its diagonal.

    Raises
    ------
    InvalidValue
        If a weight is NaN or infinite, or the sum of a row is negative where its root is needed.

    Notes
    -----
    Work O(m). Source: Chung 1997.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> [x.tolist() for x in laplacian_matrix(path(2, backend="cpu")).to_coo()]
    [[0, 0, 1, 1], [0, 1, 0, 1], [1.0, -1.0, -1.0, 1.0]]
    """
    require_square(A)
    B: Matrix = (A if weight else A.apply("one").new()).dup(FP64, name="B")
    require_finite(B, "laplacian_matrix")
    sums = B.reduce_rowwise("plus").new(name="sums")
    L: Matrix = B.apply("ainv").new(name="L")
    L(accum=binary.plus) << sums.diag(name="D")
    if not normalized:
        return L
    if (sums.reduce("min").new().value or 0) < 0:
        raise InvalidValue("laplacian_matrix: the sum of a row is negative and has no root.")
    roots = sums.select("valuegt", 0).new().apply("sqrt").new().apply("minv").new()
    L << semiring.plus_times(roots.diag() @ L)
    L << semiring.plus_times(L @ roots.diag())
    return L
