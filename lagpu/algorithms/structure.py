"""Structure of a graph: components, sides, orders, cores, independent sets and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, indexunary, semiring
from lagpu.algorithms import inputs
from lagpu.algorithms.bfs import bfs_levels_joint, bfs_parents
from lagpu.algorithms.inputs import require_square, simple, undirected
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.arguments import integer
from lagpu.dtypes import BOOL, FP64, INT32, INT64
from lagpu.errors import CycleFound, DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.loops.loop import loop

__all__ = [
    "average_clustering", "bipartite_sides", "clustering", "connected_components", "core_number",
    "is_bipartite", "k_core", "maximal_independent_set", "square_clustering",
    "strongly_connected_components", "topological_levels", "topological_order", "transitivity",
    "triangle_centrality", "triangle_count", "triangles",
]  # fmt: skip


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

    Notes
    -----
    "fastsv" takes about log(n) iterations of three products, two of them with a selection; "bfs"
    takes one search for each component.
    Source: Zhang, Azad and Buluç 2020 (FastSV); Shiloach and Vishkin 1982.

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
    parents = inputs.numbered(A, "parents")
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


def _one_by_one(A: Matrix) -> Vector:
    """Return labels by repeated searches, each from the least vertex without a label."""
    labels = Vector(inputs.index_type(A), A.nrows, like=A, name="labels")
    while labels.nvals < A.nrows:
        source = (~labels.S).new().apply("index").new().reduce("min").new().value
        labels(bfs_levels_joint(A, [source]).S) << source
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

    Notes
    -----
    Of a symmetric matrix they are the connected components, and found as those. Else each round
    trims vertices without an edge in or out, which are components by themselves. Then the colour of
    a vertex is the least vertex that reaches it, found forward; and from every vertex that is its
    own colour, a search backward within the colour finds a component.
    Source: Fleischer, Hendrickson and Pinar 2000 (forward and backward); Orzan 2004 (colours).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2], [1, 2, 1], nrows=3, ncols=3, backend="cpu")
    >>> strongly_connected_components(A).to_dense().tolist()
    [0, 1, 1]
    """
    require_square(A)
    if A.is_symmetric:
        return connected_components(A)
    n, kind = A.nrows, inputs.index_type(A)
    A = A.select("offdiag").new(name="A")
    rest = Vector.from_scalar(True, n, BOOL, like=A, name="rest")
    own = inputs.numbered(A, "own")
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
    members = Vector(own.dtype, A.nrows, like=A, name="members")
    same << own.ewise_mult(colours, binary.eq)
    frontier(same.V, replace=True) << own
    for _ in loop(until_empty=frontier):
        members(frontier.S) << frontier
        # No successor has a greater colour: the largest is the own one if any is.
        frontier(~members.S, replace=True) << semiring.max_second(A @ frontier)
        same << frontier.ewise_mult(colours, binary.eq)
        frontier(same.V, replace=True) << frontier
    return members


# ---- the two sides of a bipartite graph, or an odd cycle; every graph has exactly one of the two
#
# From one vertex of each component on, the sides alternate from level to level.
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

    Notes
    -----
    One breadth-first search of all components together. An edge within a side joins two vertices of
    one level, and closes an odd cycle with the paths up the tree to their common ancestor. The
    search is complete before an edge is found; NetworkX stops at the first one.
    Source: König 1916.

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


def cycle_of(parents: np.ndarray[Any, Any]) -> list[int]:
    """Return the vertices of a cycle along the edges parent -> child, or an empty list.

    `parents` has -1 where there is none.
    """
    n = len(parents)  # after k rounds `jump` leads 2**k parents up: at last onto a cycle, or to n
    jump = np.append(np.where(parents < 0, n, parents), n)
    for _ in range(n.bit_length()):
        jump = jump[jump]
    on_cycle = jump[jump < n]
    if not on_cycle.size:
        return []
    start = int(on_cycle.min())
    cycle, v = [start], int(parents[start])
    while v != start:
        cycle.append(v)
        v = int(parents[v])
    return [start, *cycle[:0:-1]]


# ---- topological levels and order of a directed acyclic graph
#
# Vertices without an edge in are the first level; removing them gives the next level.
def topological_levels(A: Matrix) -> Vector:
    """Return the number of edges of the longest path that ends at each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)

    Returns
    -------
    Vector, (n,), INT32
        An entry for each vertex; an edge leads to a higher level, and level 0 has no edge in.

    Raises
    ------
    CycleFound
        If there is a cycle; its vertices are the attribute ``cycle`` of the error.

    Notes
    -----
    One product per level. Source: Kahn 1962; ``topological_generations`` of NetworkX.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3, backend="cpu")
    >>> topological_levels(A).to_dense().tolist()
    [0, 1, 2]
    """
    require_square(A)
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    edges_in = Vector.from_scalar(0, A.nrows, INT64, like=A, name="edges_in")
    frontier = Vector(INT64, A.nrows, like=A, name="frontier")
    edges_in(accum=binary.plus) << semiring.plus_pair(edges_in @ A)
    frontier << edges_in.select("valueeq", 0)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        edges_in(accum=binary.minus) << semiring.plus_pair(frontier @ A)
        frontier(~levels.S, replace=True) << edges_in.select("valueeq", 0)
    if levels.nvals < A.nrows:
        rest = (~levels.S).new()  # each of these has an edge from another one
        cycle = cycle_of(semiring.any_secondi(rest @ A).new(mask=rest.S).to_dense(-1))
        around = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise CycleFound(f"topological order: there is a cycle {around}. Remove an edge.", cycle)
    return levels


def topological_order(A: Matrix) -> Vector:
    """Return the vertices of an acyclic graph, ordered so that every edge leads to a later one.

    Parameters
    ----------
    A : Matrix, (n, n)

    Returns
    -------
    Vector, (n,), INT64
        Entry k is the k-th vertex, sorted by level and then by number.

    Raises
    ------
    CycleFound
        As `topological_levels`.

    Examples
    --------
    >>> A = Matrix.from_coo([2, 2, 1], [1, 0, 0], nrows=3, ncols=3, backend="cpu")
    >>> topological_order(A).to_dense().tolist()
    [2, 1, 0]
    """
    order = np.argsort(topological_levels(A).to_dense(), kind="stable")
    return Vector.from_dense(order.astype(np.int64), like=A, name="order")


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
        An entry for each vertex.

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
    edges = A.select("offdiag").new().apply("one").new(INT64, name="E")
    if not edges.is_symmetric:
        edges = edges.ewise_add(edges.T, binary.plus).new(name="E")  # 2 for u -> v and v -> u
    core = Vector(INT32, A.nrows, like=A, name="core")
    peeled, fewer = (Vector(INT64, A.nrows, like=A, name=name) for name in ("peeled", "fewer"))
    left = Vector.from_scalar(0, A.nrows, INT64, like=A, name="left")
    left(accum=binary.plus) << edges.reduce_rowwise("plus")
    degree = Scalar(INT32, 0, name="degree")
    for _ in loop(until_empty=left):
        degree(accum=binary.max) << left.reduce("min")
        peeled << left.select("valuele", degree)
        core(peeled.S) << degree
        left(~peeled.S, replace=True) << left
        fewer << semiring.plus_second(peeled @ edges)
        left(left.S, accum=binary.minus) << fewer
    return core


def k_core(A: Matrix, k: int | None = None, core_number: Vector | None = None) -> Vector:
    """Return the vertices of the k-core, those whose `core_number` is k or more.

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
    k = integer(k, "k_core: k", 0)
    return inputs.where_any(core.select("valuege", k).new(), "members")


_core_number = core_number  # the function; an argument of `k_core` hides its name


# ---- maximal independent set: Luby's algorithm
#
# A candidate whose score is above the scores of all neighbours joins; its neighbours drop out.
def maximal_independent_set(A: Matrix, nodes: Any = None, *, seed: int | None = None) -> Vector:
    """Return a set of vertices that no edge joins, and that no vertex can be added to.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value joins i and j, in either direction; self-loops do not count.
    nodes : int or list of int, optional
        Distinct vertices that must be members, not joined by an edge; none by default.
    seed : int, optional
        Seed of the scores.

    Returns
    -------
    Vector, (n,), BOOL
        True at the members; no entry elsewhere. The same on every backend for one seed.

    Raises
    ------
    InvalidValue
        If an edge joins two of `nodes`.

    Notes
    -----
    About log(n) rounds of two products. The scores are a random order of the vertices, drawn once:
    rounds do not need new scores. Source: Luby 1986; Blelloch, Fineman and Shun 2012.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> maximal_independent_set(star(4, backend="cpu"), 2).to_coo()[0].tolist()
    [1, 2, 3]
    """
    A = undirected(A).select("offdiag").new(name="A")
    scores = _scores(A, inputs.random_seed(seed, "maximal_independent_set", A))
    members = Vector(BOOL, A.nrows, like=A, name="members")
    near = Vector(BOOL, A.nrows, like=A, name="near")
    best = Vector(INT64, A.nrows, like=A, name="best")
    nodes = list(nodes) if isinstance(nodes, (set, frozenset)) else nodes
    if nodes is not None and np.size(nodes):
        members[inputs.source_vertices(A, nodes, "maximal_independent_set: nodes")] = True
        near << semiring.any_pair(members @ A)
        joined = near.ewise_mult(members, binary.pair).new().to_coo()[0].tolist()
        if joined:
            raise InvalidValue(f"maximal_independent_set: edges join the nodes {joined}.")
        scores(~members.S, replace=True) << scores
        scores(~near.S, replace=True) << scores
    for _ in loop(until_empty=scores):
        best << semiring.max_first(scores @ A)
        best << scores.ewise_union(best, binary.minus, left_default=0, right_default=-1)
        best(scores.S, replace=True) << best.select("valuegt", 0)
        members(best.S) << True
        near << semiring.any_pair(best @ A)
        scores(~members.S, replace=True) << scores
        scores(~near.S, replace=True) << scores
    return members


def _scores(A: Matrix, seed: int) -> Vector:
    """Return random scores, distinct because their low bits are the vertex number."""
    low = A.nrows.bit_length()
    drawn = np.random.default_rng(seed).integers(0, 2**32, A.nrows, np.uint32)
    drawn >>= max(0, low - 30)  # so that scores fit 62 bits
    high = Vector.from_dense(drawn, like=A)
    scores: Vector = high.apply(binary.times, right=np.int64(1 << low)).new(name="scores")
    scores(accum=binary.plus) << high.apply("index")
    return scores


# ---- triangles of an undirected graph: in total, of each vertex, and as shares of possible ones
#
# A product with a mask counts for each edge (i, j) the vertices k that are joined to both i and
# j, which finds each triangle six times. Put the vertices in some order, and let U have the edges
# (earlier, later) alone, and L = U' the others. Then each triangle counts once, at one of its
# edges::
#
#     C<s(U)> = L' (+.pair) L    where i < j < k
#     D<s(U)> = L' (+.pair) U    where i < k < j
#
# The sum of C is the number of triangles. The sums of the rows of C, the columns of C and the
# columns of D count the triangles in which a vertex is the first, the middle and the last one.
# Both halves are selected from A, so no transpose is sorted.
_HUB = 8  # if the largest degree is more than this times the mean, an order by degree pays
_SHORT = 32  # edges that a thread of the gpu backend walks by itself


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
        Each triangle counts once.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.

    Notes
    -----
    One or two masked products; `triangles` up to three. Source: Azad, Buluç and Gilbert 2015; Wolf
    et al. 2017 (only below the diagonal, so that each triangle counts once); Schank and Wagner 2005
    (vertices in the order of their degrees).

    Examples
    --------
    >>> from lagpu.generators import complete
    >>> triangle_count(complete(5, backend="cpu"))
    10
    """
    return _count(simple(A, "triangle_count"))


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
        An entry for each requested vertex.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2], nrows=4, ncols=4, backend="cpu")
    >>> triangles(A).to_dense().tolist()
    [1, 1, 1, 0]
    """
    A = simple(A, "triangles")
    count = Vector.from_scalar(0, A.nrows, INT64, like=A, name="triangles")
    count(accum=binary.plus) << _of_each(A)
    return inputs.of(A, count, nodes, "triangles: nodes")


def clustering(A: Matrix, nodes: Any = None, weight: bool = False) -> Vector:
    """Return the share of joined pairs among the neighbours of each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the edge i -> j; self-loops do not count. An undirected graph has each edge
        in both directions.
    nodes : int or list of int, optional
        Distinct vertices; by default all.
    weight : bool
        A triangle counts as the geometric mean of its weights, over the largest weight of the
        graph; else it counts 1.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each requested vertex; 0 where there are fewer than two neighbours.

    Raises
    ------
    InvalidValue
        If weights are NaN or infinite, or none is above 0.

    Notes
    -----
    W has the cube root of each weight divided by the largest, 1 without weights; ``S = W + W'``.
    The numerator is the diagonal of S**3, by one masked product, the denominator
    ``2 (d (d - 1) - 2 r)`` for d edges in and out and r neighbours in both directions. An
    undirected graph without weights has a faster way to the same share: joined pairs over all
    pairs of neighbours. Weighted results agree with NetworkX up to 1e-12.
    Source: Watts and Strogatz 1998; Onnela et al. 2005 (weights); Fagiolo 2007 (directions).

    Examples
    --------
    >>> from lagpu.generators import complete
    >>> clustering(complete(3, backend="cpu")).to_dense().tolist()
    [1.0, 1.0, 1.0]
    """
    require_square(A)
    E = A.select("offdiag").new().apply("one").new(INT64, name="E")
    share = Vector.from_scalar(0, A.nrows, FP64, like=A, name="share")
    if not weight and E.is_symmetric:
        around = _of_each(E).apply(binary.times, right=2).new()
        pairs = _ordered_pairs(E)
    else:
        W = _cube_roots(A) if weight else E
        S = W.ewise_add(W.T, binary.plus).new(name="S")
        around = semiring.plus_times(S @ S).new(mask=S.S, name="around")
        around = around.ewise_mult(S, binary.times).new().reduce_rowwise("plus").new()
        ways = E.ewise_add(E.T, binary.plus).new(name="ways")  # 2: in both directions
        pairs = _ordered_pairs(ways)
        pairs(accum=binary.minus) << ways.select("valueeq", 2).new().reduce_rowwise("plus")
        pairs << pairs.apply(binary.times, right=2)
    possible = pairs.select("valuegt", 0).new()
    share(accum=binary.plus) << around.ewise_mult(possible, binary.truediv)
    return inputs.of(A, share, nodes, "clustering: nodes")


def _cube_roots(A: Matrix) -> Matrix:
    """Return the cube roots of the weights over the largest one, off the diagonal, FP64."""
    inputs.require_finite(A, "clustering")
    largest = A.reduce("max").new().value
    if largest is not None and largest <= 0:
        raise InvalidValue(f"clustering: the largest weight is {largest}. Give one above 0.")
    W: Matrix = A.select("offdiag").new().dup(FP64, name="W")
    W << W.apply("truediv", right=float(largest or 1))
    W << W.apply("cbrt")
    return W


def average_clustering(
    A: Matrix, nodes: Any = None, weight: bool = False, count_zeros: bool = True
) -> float:
    """Return the mean of the shares that `clustering` returns.

    Parameters
    ----------
    A, nodes, weight
        As in `clustering`.
    count_zeros : bool
        Whether to include vertices without a triangle.

    Returns
    -------
    float
        0 to 1; 0 if no vertex counts.

    Raises
    ------
    InvalidValue
        As `clustering`.

    Examples
    --------
    >>> from lagpu.generators import complete, star
    >>> average_clustering(complete(4, backend="cpu")), average_clustering(star(4, backend="cpu"))
    (1.0, 0.0)
    """
    share = clustering(A, nodes, weight)
    if not count_zeros:
        share << share.select("valuene", 0)
    return float(share.reduce("plus").new().value / share.nvals) if share.nvals else 0.0


def transitivity(A: Matrix) -> float:
    """Return the share of joined pairs among all pairs with a common neighbour; 0 without pairs.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `clustering`. In a directed graph the pairs are ordered pairs of successors of a
        common vertex, as in NetworkX.

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    If each edge has a reverse, three times the number of triangles over that of paths of two edges;
    one or two masked products. Source: Newman 2003.

    Examples
    --------
    >>> from lagpu.generators import complete, star
    >>> transitivity(complete(4, backend="cpu")), transitivity(star(4, backend="cpu"))
    (1.0, 0.0)
    """
    require_square(A)
    E = A.select("offdiag").new().apply("one").new(INT64, name="E")
    pairs = _ordered_pairs(E).reduce("plus").new().value
    if not pairs:
        return 0.0
    if E.is_symmetric:
        return float(6 * _count(E) / pairs)
    joined = semiring.plus_pair(E @ E.T).new(INT64, mask=E.S, name="joined")
    return float((joined.reduce("plus").new().value or 0) / pairs)


def triangle_centrality(A: Matrix) -> Vector:
    """Return the share of all triangles around each vertex: its own, and those of its neighbours.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `triangle_count`.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex v: the sum of t(u) / 3 over v and the neighbours that share a
        triangle with v, plus the sum of t(u) over its other neighbours, divided by the number of
        triangles; t(u) is the number of those with the vertex u. 0 without triangles.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.

    Notes
    -----
    ``C⟨s(A)⟩ = A plus.pair A``, ``y = C 1`` and ``(3 A y - 2 P y + y) / sum(y)`` with a vector 1 of
    ones and the pattern P of C: one masked product and two with a vector, O(m) memory. Only one
    division is rounded. Source: Burkhardt 2021.

    Examples
    --------
    >>> from lagpu.generators import complete
    >>> triangle_centrality(complete(3, backend="cpu")).to_dense().tolist()
    [1.0, 1.0, 1.0]
    """
    A = simple(A, "triangle_centrality")
    C = semiring.plus_pair(A @ A).new(INT64, mask=A.S, name="C")
    y = C.reduce_rowwise("plus").new(name="y")
    total = y.reduce("plus").new().value
    found = Vector.from_scalar(0, A.nrows, FP64, like=A, name="centrality")
    if total:
        found(accum=binary.plus) << semiring.plus_second(A @ y)
        found << found.apply("times", right=3)
        found(accum=binary.plus) << y
        near = semiring.plus_second(C @ y).new()
        found(accum=binary.minus) << near.apply("times", right=2)
        found << found.apply("truediv", right=float(total))
    return found


def square_clustering(A: Matrix, nodes: Any = None) -> Vector:
    """Return for each vertex the share of its possible squares that exist.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `triangle_count`.
    nodes : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each requested vertex; 0 where no square is possible.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.

    Notes
    -----
    With ``P = A plus.pair A``, v has d edges, t triangles and ``q = sum of p (p - 1) / 2`` squares,
    over the entries p of its row off the diagonal; ``(d - 1) (sum of p) - 2 t - q`` squares are
    possible. P has an entry for each pair of vertices with a common neighbour, up to n**2, and
    takes work O(sum of squared degrees). Exact but for one division.
    Source: Lind, Gonzalez and Herrmann 2005; Zhang et al. 2008; as NetworkX.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> square_clustering(cycle(4, backend="cpu")).to_dense().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    A = simple(A, "square_clustering")
    P = semiring.plus_pair(A @ A).new(INT64, name="P")
    degree = A.reduce_rowwise("plus").new(name="degree")  # also the diagonal of P
    walks = P.reduce_rowwise("plus").new().ewise_mult(degree, binary.minus).new(name="walks")
    q = P.ewise_mult(P, binary.times).new().reduce_rowwise("plus").new(name="q")
    q(accum=binary.minus) << degree.ewise_mult(degree, binary.times)
    q(accum=binary.minus) << walks
    q << q.apply(binary.floordiv, right=2)
    possible = degree.apply(binary.minus, right=1).new(name="possible")
    possible << possible.ewise_mult(walks, binary.times)
    possible(accum=binary.minus) << P.ewise_mult(A, binary.first).new().reduce_rowwise("plus")
    possible(accum=binary.minus) << q
    share = Vector.from_scalar(0, A.nrows, FP64, like=A, name="share")
    accepted = possible.select("valuegt", 0).new()
    share(accum=binary.plus) << q.ewise_mult(accepted, binary.truediv)
    return inputs.of(A, share, nodes, "square_clustering: nodes")


def _halves(A: Matrix) -> tuple[Matrix, Matrix] | None:
    """Return the edges to earlier vertices, and those to later ones, in some order of vertices."""
    # If few vertices have most of the edges these are the last ones: then no vertex has edges to
    # many later ones. None if no vertex has many edges, so that half of them would save nothing.
    degree = A.reduce_rowwise("plus").new(name="degree")
    largest = degree.reduce("max").new().value or 0
    if largest <= _SHORT:
        return None
    if largest * A.nrows <= _HUB * A.nvals:
        return A.select("tril", -1).new(name="L"), A.select("triu", 1).new(name="U")
    rank = inputs.numbered(A, "rank", A.nrows)
    rank(accum=binary.plus) << degree.apply("times", right=A.nrows)
    rises = rank.outer(rank, "lt").new(mask=A.S, name="rises")
    return rises.select("valueeq", False).new(name="L"), rises.select("valueeq", True).new(name="U")


def _of_each_edge(A: Matrix) -> Matrix:
    return semiring.plus_pair(A @ A).new(INT64, mask=A.S, name="around")


def _count(A: Matrix) -> int:
    halves = _halves(A)
    if halves is None:
        return (_of_each_edge(A).reduce("plus").new().value or 0) // 6
    L, U = halves
    C = semiring.plus_pair(L.T @ L).new(INT64, mask=U.S, name="C")
    return C.reduce("plus").new().value or 0


def _of_each(A: Matrix) -> Vector:
    """Return the number of triangles of each vertex that has one."""
    if (halves := _halves(A)) is None:
        each: Vector = _of_each_edge(A).reduce_columnwise("plus").new(name="each")
        each << each.apply("floordiv", right=2)
        return each
    L, U = halves
    C = semiring.plus_pair(L.T @ L).new(INT64, mask=U.S, name="C")
    D = semiring.plus_pair(L.T @ U).new(INT64, mask=U.S, name="D")
    each = C.reduce_rowwise("plus").new(name="each")
    each(accum=binary.plus) << C.reduce_columnwise("plus")
    each(accum=binary.plus) << D.reduce_columnwise("plus")
    return each


def _ordered_pairs(A: Matrix) -> Vector:
    """Return the number of ordered pairs of neighbours of each vertex that has a neighbour."""
    degree = A.reduce_rowwise("plus").new(name="degree")
    others = degree.apply("minus", right=1).new(name="others")
    return degree.ewise_mult(others, binary.times).new(name="pairs")
