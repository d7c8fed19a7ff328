"""Connected components, strongly connected components, and bipartite graphs."""

from __future__ import annotations

from lagpu.algebra.tables import binary, indexunary, semiring
from lagpu.algorithms.bfs import bfs_levels_joint, bfs_parents
from lagpu.algorithms.inputs import index_type, require_square, undirected
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT32
from lagpu.errors import InvalidValue
from lagpu.loops.loop import loop


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


# ---- the two sides of a bipartite graph, or an odd cycle; every graph has exactly one of the two
#
# From one vertex of each component on, the sides alternate from level to level::
#
# q<!s(v)> = 1 - (q (any.first) A); v<s(q)> = q


def bipartite_sides(A: Matrix) -> tuple[Vector | None, list[int] | None]:
    """Return the sides of a bipartite graph, or an odd cycle of a graph that is not bipartite.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value joins i and j, in either direction.

    Returns
    -------
    sides : Vector, (n,), INT32, or None
        0 or 1 at each vertex, 0 at the least one of a component; every edge joins a 0 and a 1.
    odd_cycle : list of int, or None
        Vertices of a cycle of odd length, if there is one; a self-loop is the shortest.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    One breadth-first search of all components together. An edge within a side joins two vertices of
    one level, and closes an odd cycle with the paths up the tree to their common ancestor.
    Source: Konig 1916.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> sides, odd_cycle = bipartite_sides(cycle(4, backend="cpu"))
    >>> sides.to_dense().tolist(), odd_cycle
    ([0, 1, 0, 1], None)
    >>> bipartite_sides(cycle(3, backend="cpu"))
    (None, [0, 1, 2])
    """
    A = undirected(A)
    roots = connected_components(A)
    sides = Vector(INT32, A.nrows, like=A, name="sides")
    frontier = Vector(INT32, A.nrows, like=A, name="frontier")
    index = roots.apply(indexunary.rowindex, 0).new()
    frontier(roots.ewise_mult(index, binary.eq).new().V) << 0
    for _ in loop(until_empty=frontier):
        sides(frontier.S) << frontier
        frontier(~sides.S, replace=True) << semiring.any_first(frontier @ A)
        frontier << frontier.apply("minus", left=1)
    for side in (0, 1):
        one = sides.select("valueeq", side).new()
        within = semiring.any_secondi(one @ A).new(mask=one.S)
        if within.nvals:
            v, u = (int(x[0]) for x in within.to_coo())
            return None, _odd_cycle(A, roots.get(v), u, v)
    return sides, None


def is_bipartite(A: Matrix) -> bool:
    """Return True if the vertices have two sides such that each edge joins one with the other.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `bipartite_sides`.

    Returns
    -------
    bool
        True if `bipartite_sides` returns sides, False if it returns an odd cycle.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> is_bipartite(cycle(4, backend="cpu")), is_bipartite(cycle(5, backend="cpu"))
    (True, False)
    """
    return bipartite_sides(A)[1] is None


def _odd_cycle(A: Matrix, root: int, u: int, v: int) -> list[int]:
    """Return the cycle of the edge (u, v), whose ends have one level, and the tree above them."""
    parents = bfs_parents(A, root)
    left, right = [u], [v]
    while left[-1] != right[-1]:
        left.append(parents.get(left[-1]))
        right.append(parents.get(right[-1]))
    cycle = left + right[-2::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
