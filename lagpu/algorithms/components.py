"""Connected and strongly connected components, each labelled by its least vertex.

A forest is a vector f of parents, which only decrease. P, the selection matrix of f, has an entry
(f[v], v) in each column, so hooking and shortcutting are products too::

    m = f P (min.first) A;  f = min(f, P (min.second) m, m, f P)
"""

from __future__ import annotations

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import index_type, require_square, undirected
from lagpu.algorithms.multi_source import bfs_levels_joint
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL
from lagpu.errors import InvalidValue
from lagpu.loops.loop import loop

__all__ = ["connected_components", "strongly_connected_components"]


def connected_components(A: Matrix, *, method: str = "fastsv") -> Vector:
    """Return for each vertex the least vertex of its connected component.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value joins i and j, in either direction: the components of a directed
        graph are the weak ones.
    method : str
        "fastsv": all components at once, by hooking and shortcutting.
        "bfs": one breadth-first search per component; for few components of small diameter.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        Two vertices have the same label if and only if a path joins them.

    Raises
    ------
    InvalidValue
        If there is no such method.
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    "fastsv" takes about log(n) iterations of three products; P is a view of f, not a matrix.
    Source: Zhang, Azad and Buluc 2020 (FastSV); Shiloach and Vishkin 1982.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 3], [2, 1], nrows=4, ncols=4, backend="cpu")
    >>> connected_components(A).to_dense().tolist()
    [0, 1, 0, 1]
    """
    A = undirected(A)
    if method == "fastsv":
        return _hook_and_shortcut(A)
    if method == "bfs":
        return _one_by_one(A)
    raise InvalidValue(f"connected_components: there is no method {method!r}. Use fastsv or bfs.")


def _hook_and_shortcut(A: Matrix) -> Vector:
    """Return labels by FastSV: at the end every tree is a star, and no edge joins two trees."""
    parents = _numbered(A, "parents")
    P = parents.selection()
    grand = parents.dup(name="grand")
    least = Vector(parents.dtype, A.nrows, like=A, name="least")
    for _ in loop(until_unchanged=parents):
        grand << semiring.min_first(parents @ P)
        least << semiring.min_first(grand @ A)
        parents(accum=binary.min) << semiring.min_second(P @ least)  # hook whole trees
        parents(accum=binary.min) << least
        parents(accum=binary.min) << grand
    return parents


def _numbered(A: Matrix, name: str) -> Vector:
    """Return the vector of vertex numbers."""
    full = Vector(BOOL, A.nrows, like=A)
    full << True
    made: Vector = full.apply("index").new(index_type(A), name=name)
    return made


def _one_by_one(A: Matrix) -> Vector:
    """Return labels by repeated searches, each from the least vertex without a label."""
    labels = Vector(index_type(A), A.nrows, like=A, name="labels")
    while labels.nvals < A.nrows:
        source = (~labels.S).new().apply("index").new().reduce("min").new().value
        reached = bfs_levels_joint(A, [source])
        labels(reached.S) << source
    return labels


def strongly_connected_components(A: Matrix) -> Vector:
    """Return for each vertex the least vertex of its strongly connected component.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        Two vertices have the same label if and only if each reaches the other.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    Each round trims vertices without an edge in or without an edge out, which are components by
    themselves. Then the colour of a vertex is the least vertex that reaches it, found forward; and
    from every vertex that is its own colour, a search backward within the colour finds a component.
    Source: Fleischer, Hendrickson and Pinar 2000 (forward and backward); Orzan 2004 (colours).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2], [1, 2, 1], nrows=3, ncols=3, backend="cpu")
    >>> strongly_connected_components(A).to_dense().tolist()
    [0, 1, 1]
    """
    require_square(A)
    n, kind = A.nrows, index_type(A)
    A = A.select("offdiag").new(name="A")
    rest = Vector(BOOL, n, like=A, name="rest")
    rest << True
    own = _numbered(A, "own")
    labels = Vector(kind, n, like=A, name="labels")
    entered = Vector(BOOL, n, like=A, name="entered")
    while rest.nvals:
        for _ in loop(until_unchanged=rest):
            entered(rest.S, replace=True) << semiring.any_pair(rest @ A)
            rest(entered.S, replace=True) << semiring.any_pair(A @ rest)
        labels(~rest.S, accum=binary.first) << own  # existing labels stay
        found = _components_of_colours(A, own, rest)
        labels(found.S) << found
        rest(~found.S, replace=True) << rest
    return labels


def _components_of_colours(A: Matrix, own: Vector, rest: Vector) -> Vector:
    """Return the labels of one component of each colour within `rest`."""
    colours = Vector(own.dtype, A.nrows, like=A, name="colours")
    colours(rest.S) << own
    frontier = colours.dup(name="frontier")
    worse, same = (Vector(BOOL, A.nrows, like=A, name=name) for name in ("worse", "same"))
    for _ in loop(until_empty=frontier):
        frontier(rest.S, replace=True) << semiring.min_first(frontier @ A)
        worse << frontier.ewise_mult(colours, binary.ge)
        frontier(~worse.V, replace=True) << frontier
        colours(frontier.S) << frontier
    labels = Vector(own.dtype, A.nrows, like=A, name="labels")
    same << own.ewise_mult(colours, binary.eq)
    frontier(same.V, replace=True) << own
    for _ in loop(until_empty=frontier):
        labels(frontier.S) << frontier
        # Backward along an edge colours do not decrease, so the largest shows if one is the same.
        frontier(~labels.S, replace=True) << semiring.max_second(A @ frontier)
        same << frontier.ewise_mult(colours, binary.eq)
        frontier(same.V, replace=True) << frontier
    return labels
