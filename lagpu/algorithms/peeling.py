"""Orders, cores and independent sets of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import random_seed, require_square, source_vertices, undirected
from lagpu.core.arguments import integer
from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT32, INT64
from lagpu.errors import CycleFound, DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.loops.loop import loop


def cycle_of(parents: np.ndarray[Any, Any]) -> list[int]:
    """Return the vertices of a cycle along the edges parent -> child, or an empty list.

    `parents` has -1 where there is none.
    """
    n = len(parents)  # pointer doubling: after k rounds `jump` is 2**k parents up; n up is a cycle
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
# Vertices without an edge in are the first level; removing them gives the next level::
#
# d = d - q (+.pair) A; q<!s(levels)> = d<d = 0>


def topological_levels(A: Matrix) -> Vector:
    """Return the number of edges of the longest path that ends at each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)

    Returns
    -------
    Vector, (n,), INT32
        Full; an edge leads to a higher level, and level 0 has no edge in.

    Raises
    ------
    CycleFound
        If there is a cycle; its vertices are the attribute ``cycle`` of the error.
    DimensionMismatch, DomainMismatch
        If `A` is not square.

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
    edges_in = Vector(INT64, A.nrows, like=A, name="edges_in")
    edges_in << 0
    frontier = Vector(INT64, A.nrows, like=A, name="frontier")
    edges_in(accum=binary.plus) << semiring.plus_pair(edges_in @ A)
    frontier << edges_in.select("valueeq", 0)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        edges_in(accum=binary.minus) << semiring.plus_pair(frontier @ A)
        frontier(~levels.S, replace=True) << edges_in.select("valueeq", 0)
    if levels.nvals < A.nrows:
        rest = (~levels.S).new()  # each of these has an edge from another one
        before = semiring.any_secondi(rest @ A).new(mask=rest.S)
        cycle = cycle_of(before.to_dense(-1))
        around = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise CycleFound(f"topological order: there is a cycle {around}. Remove an edge.", cycle)
    return levels


def topological_order(A: Matrix) -> Vector:
    """Return the vertices of a directed acyclic graph so that every edge leads to a later one.

    Parameters
    ----------
    A : Matrix, (n, n)

    Returns
    -------
    Vector, (n,), INT64
        Entry k is the k-th vertex, sorted by level and then by number.

    Raises
    ------
    CycleFound, DimensionMismatch, DomainMismatch
        As `topological_levels`.

    Examples
    --------
    >>> A = Matrix.from_coo([2, 2, 1], [1, 0, 0], nrows=3, ncols=3, backend="cpu")
    >>> topological_order(A).to_dense().tolist()
    [2, 1, 0]
    """
    levels = topological_levels(A)
    order = np.argsort(levels.to_dense(), kind="stable")
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


# ---- maximal independent set: Luby's algorithm
#
# A candidate whose score is above the scores of all neighbours joins, and its neighbours drop
# out::
#
# b<s(c)> = c (max.first) A; members<c > b> = true


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
        If an edge joins two of `nodes`, one is given twice, or `seed` is negative.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `nodes` contains a number that is not a vertex.

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
    scores = _scores(A, random_seed(seed, "maximal_independent_set", A))
    members = Vector(BOOL, A.nrows, like=A, name="members")
    near = Vector(BOOL, A.nrows, like=A, name="near")
    best = Vector(INT64, A.nrows, like=A, name="best")
    nodes = list(nodes) if isinstance(nodes, (set, frozenset)) else nodes
    if nodes is not None and np.size(nodes):
        members[source_vertices(A, nodes, "maximal_independent_set: nodes")] = True
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
