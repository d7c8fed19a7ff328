"""Subgraphs: trusses, components, neighbourhoods, spanning forests and matchings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms import inputs
from lagpu.algorithms.betweenness import batches
from lagpu.algorithms.bfs import neighborhood
from lagpu.algorithms.sssp import sssp
from lagpu.algorithms.structure import connected_components, strongly_connected_components
from lagpu.core import Matrix, Vector
from lagpu.core.arguments import integer
from lagpu.dtypes import BOOL, INT32, INT64, Array
from lagpu.errors import InvalidValue
from lagpu.loops.loop import loop

__all__ = [
    "ego_graph", "k_hop_sizes", "k_truss", "largest_component", "maximal_matching",
    "minimum_spanning_forest",
]  # fmt: skip


def k_truss(A: Matrix, k: int) -> Matrix:
    """Return the k-truss: the largest subgraph with each edge in k - 2 or more of its triangles.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entries (i, j) and (j, i) of any values are the edge between i and j; self-loops do not
        count.
    k : int
        0 or more.

    Returns
    -------
    Matrix, (n, n)
        The entries of `A` that are in the truss.

    Raises
    ------
    InvalidValue
        If an edge has no reverse.

    Notes
    -----
    ``C⟨s(C), r⟩ = C plus.pair C'``, then C keeps what is at least k - 2, until it does not change.
    An iteration takes work O(sum of squared degrees), depth O(log n) and the memory of C twice.
    Source: Cohen 2008; Davis 2018 (in GraphBLAS).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 0, 2, 1, 2, 2, 3], [1, 0, 2, 0, 2, 1, 3, 2], 1, backend="cpu")
    >>> k_truss(A, 3).to_coo()[0].tolist()
    [0, 0, 1, 1, 2, 2]
    """
    C, least = inputs.simple(A, "k_truss"), integer(k, "k_truss: k", 0) - 2
    if least > 0:  # else edges without a triangle stay
        for _ in loop(until_unchanged=C):
            C(C.S, replace=True) << semiring.plus_pair(C @ C.T)
            C << C.select("valuege", least)
            C << C.apply("one")
    return A.select("offdiag").new(mask=C.S, name="truss")


def largest_component(A: Matrix, *, strong: bool = False) -> Vector:
    """Return the vertices of the largest connected component.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    strong : bool
        Whether the vertices of a component reach each other; otherwise edges count both ways.

    Returns
    -------
    Vector, (n,), BOOL
        True at its vertices, no entry elsewhere. Of equally large components, that with the
        least vertex.

    Notes
    -----
    Cost and source: those of `connected_components` or `strongly_connected_components`.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 2, 3], [1, 3, 4], nrows=5, ncols=5, backend="cpu")
    >>> largest_component(A).to_coo()[0].tolist()
    [2, 3, 4]
    """
    labels = strongly_connected_components(A) if strong else connected_components(A)
    sizes = semiring.plus_pair(labels.selection() @ labels).new(INT64, name="sizes")
    largest = sizes.select("valueeq", sizes.reduce("max").new().value or 0).new()
    least = largest.apply("index").new().reduce("min").new().value or 0
    return inputs.where_any(labels.select("valueeq", least).new(), "members")


def ego_graph(
    A: Matrix, n: int, radius: float = 1, *, center: bool = True, undirected: bool = False,
    weight: bool = False,
) -> Matrix:  # fmt: skip
    """Return the subgraph of the vertices near one vertex.

    Parameters
    ----------
    A : Matrix, square
        Entry (i, j) is the edge i -> j.
    n : int
        The vertex.
    radius : float
        Largest distance of a vertex, 0 or more.
    center : bool
        Whether the vertex itself is in the subgraph.
    undirected : bool
        Whether paths follow edges in both directions.
    weight : bool
        Whether values are lengths, none negative; otherwise each edge has length 1.

    Returns
    -------
    Matrix, of the shape of A
        The entries of `A` whose row and column are near. `neighborhood` returns the vertices.

    Raises
    ------
    InvalidValue
        If a length is negative.

    Notes
    -----
    A search, and ``D A D`` for the diagonal matrix D of the vertices, in work O(m). Source: Freeman
    1982; ``ego_graph`` of NetworkX.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> ego_graph(path(5, backend="cpu"), 0, 2).to_coo()[0].tolist()
    [0, 1, 1, 2]
    """
    source = inputs.source_vertex(A, n, "ego_graph: n")
    if not inputs.number(radius, "ego_graph: radius") >= 0:
        raise InvalidValue(f"ego_graph: radius {radius} is not 0 or more.")
    B = A.ewise_add(A.T, binary.min).new() if undirected else A
    if weight:
        inputs.require_no_negative(B, "ego_graph", "Leave such edges out.")
        near = sssp(B, source, limit=radius)
    else:
        near = neighborhood(B, source, int(min(radius, A.nrows)))
    if not center:
        del near[source]
    near = inputs.where_any(near, "near")
    D = near.diag()
    rows = semiring.any_second(D @ A).new(name="rows")
    return semiring.any_first(rows @ D).new(name="ego")


def k_hop_sizes(A: Matrix, k: int, nodes: Any = None) -> Vector:
    """Return how many other vertices are at most `k` edges from each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    k : int
        Radius, 0 or more.
    nodes : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), INT64
        An entry for each requested vertex.

    Notes
    -----
    As `bfs_levels_multi` for some vertices at a time, as many as the backend advises after one
    search: k + 1 products of work O(m) for each 64 of them. Source: Then et al. 2014.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> k_hop_sizes(path(5, backend="cpu"), 2).to_dense().tolist()
    [2, 3, 4, 3, 2]
    """
    n, times = inputs.require_square(A), integer(k, "k_hop_sizes: k", 0) + 1
    what = "k_hop_sizes: nodes"
    sources = list(range(n)) if nodes is None else inputs.source_vertices(A, nodes, what)
    sizes = Vector(INT64, n, like=A, name="sizes")
    for some in batches(A, sources, None):
        frontier = inputs.frontier_of(A, some, True, BOOL)
        levels = Matrix(INT32, *frontier.shape, like=A, name="levels")
        for depth in loop(until_empty=frontier, times=times):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
        others = levels.select("valuegt", 0).new().apply("one").new(INT64)
        count = Vector.from_scalar(0, len(some), INT64, like=A)
        count(accum=binary.plus) << others.reduce_rowwise("plus")
        sizes[some] << count
    return sizes


# ---- a list of edges, so that a loop that chooses some of them consists of vectors
#
# Entry e of the list leads from i(e) to j(e); entries 2k and 2k + 1 are the two directions of the
# edge that is the k-th in an order of preference. With the selection matrices R of i and C of j, a
# gather ``v R`` gives each entry the value of its begin, and a scatter ``R (min.second) x`` gives
# each vertex the least value of the entries that begin there.
def _listed(A: Matrix, key: Callable[[Array, Array], Array]) -> tuple[Vector, Vector]:
    """Return the vectors i and j of the edges of a symmetric matrix, sorted by a key."""
    # ``key(edge, value)`` is the key of each entry; edges are numbered in the order of rows.
    i, j, values = A.select("offdiag").new().to_coo()
    low, high = np.minimum(i, j), np.maximum(i, j)
    by_rows = np.lexsort((i > j, high, low))
    edge = np.empty(len(i), np.int64)
    edge[by_rows] = np.arange(len(i)) // 2
    order = np.lexsort((i > j, edge, key(edge, values)))
    kind = inputs.index_type(A).numpy
    begin, end = (Vector.from_dense(x[order].astype(kind), like=A) for x in (i, j))
    return begin, end


def _require_weights(A: Matrix, what: str) -> None:
    """Raise `InvalidValue` unless the entries have reverses of the same value, not NaN."""
    inputs.require_square(A)
    if A.apply("isnan").new().reduce("lor").new().value or not A.is_symmetric:
        raise InvalidValue(
            f"{what}: a weight is NaN, or an entry has no reverse of the same value. "
            "Give an undirected graph, such as A.ewise_add(A.T, 'min').new()."
        )


def _rank(values: Array) -> Array:
    return np.unique(values, return_inverse=True)[1]


def minimum_spanning_forest(A: Matrix, *, maximum: bool = False) -> Matrix:
    """Return a spanning tree of least weight of each component of an undirected graph.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entries (i, j) and (j, i) of one value are the edge between i and j and its weight, of any
        sign; self-loops do not count.
    maximum : bool
        Whether the trees are those of largest weight.

    Returns
    -------
    Matrix, (n, n)
        The entries of `A` that are in the forest. Of edges with the same weight the first in the
        order of rows is preferred, so there is one answer.

    Raises
    ------
    InvalidValue
        If an entry has no reverse of the same value, or is NaN.

    Notes
    -----
    Borůvka's algorithm on trees of pointers: O(log n) rounds of work O(n + m), after the host has
    sorted the edges; memory 40 bytes an entry. A tree that is a star (all of its vertices point to
    the root) chooses its least edge outward, and its root points to the other end's parent from
    then on. Of two stars that choose the same edge the lesser root stays. Other trees halve their
    depth. Source: Borůvka 1926; Awerbuch and Shiloach 1987 (stars).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 0, 2, 1, 2], [1, 0, 2, 0, 2, 1], [3, 3, 1, 1, 2, 2],
    ...                     backend="cpu")
    >>> [x.tolist() for x in minimum_spanning_forest(A).to_coo()]
    [[0, 1, 2, 2], [2, 2, 0, 1], [1, 2, 1, 2]]
    """
    _require_weights(A, "minimum_spanning_forest")
    n = A.nrows
    begin, end = _listed(A, lambda _, w: -_rank(w) if maximum else _rank(w))
    own, e = inputs.numbered(A, "own"), inputs.numbered(A, "e", begin.size)
    roots = own.dup(name="roots")
    named = ("grand", "stars", "of_star", "hook", "back")
    grand, stars, of_star, hook, back = (Vector(own.dtype, n, like=A, name=x) for x in named)
    deep, tall, same = (Vector(BOOL, n, like=A, name=x) for x in ("deep", "tall", "same"))
    least, chosen = (Vector(INT64, n, like=A, name=x) for x in ("least", "chosen"))
    from_star, to = (Vector(own.dtype, e.size, like=A, name=x) for x in ("from_star", "to"))
    outward = Vector(BOOL, e.size, like=A, name="outward")
    usable = Vector(INT64, e.size, like=A, name="usable")
    R, C, S = begin.selection(nrows=n), end.selection(nrows=n), from_star.selection(nrows=n)
    P, G, H = roots.selection(), grand.selection(), hook.selection()
    L = least.selection(nrows=e.size)
    for _ in loop(until_unchanged=roots):
        grand << semiring.min_first(roots @ P)
        deep << grand.ewise_mult(roots, binary.ne)
        tall << semiring.lor_second(G @ deep)
        same << own.ewise_mult(roots, binary.eq)
        stars(same.V, replace=True) << own
        stars(~tall.V, replace=True) << stars
        of_star << semiring.min_first(stars @ P)
        from_star << semiring.min_first(of_star @ R)
        to << semiring.min_first(roots @ C)
        outward << from_star.ewise_mult(to, binary.ne)
        usable(outward.V, replace=True) << e
        least << semiring.min_second(S @ usable)
        chosen(least.S) << least
        hook << semiring.min_first(to @ L)
        back << semiring.min_first(hook @ H)
        same << back.ewise_mult(own, binary.eq)
        hook(same.V, accum=binary.min) << own
        roots << grand
        roots(hook.S) << hook
    i, j = (x.to_dense()[chosen.to_coo()[1] // 2 * 2] for x in (begin, end))
    F = Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=n, ncols=n, dup_op="lor", like=A)
    return A.select("offdiag").new(mask=F.S, name="forest")


def maximal_matching(A: Matrix, *, order: str = "random", seed: int | None = None) -> Vector:
    """Return edges without a common end, to which no edge can be added.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value joins i and j, in either direction; self-loops do not count.
    order : str
        Which edges are preferred: "random" ones; those of large "weight", which makes the sum of
        weights at least half of the largest possible; or the first in the order of "rows", as in
        NetworkX.
    seed : int, optional
        Seed of the random order.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        The other end of each vertex's edge; no entry if it has none. The same on every backend for
        one seed.

    Raises
    ------
    InvalidValue
        If for "weight" an entry has no reverse of the same value, or is NaN.

    Notes
    -----
    An edge that both ends prefer joins the matching, and the edges at its ends drop out; so the
    result is that of taking the edges one after the other in their order. O(log(n)**2) rounds for a
    random order, and up to n for another; a round has work O(n + m); memory 32 bytes an entry.
    Source: Blelloch, Fineman and Shun 2012; Preis 1999 (by weight: at least half of the largest).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> maximal_matching(path(5, backend="cpu"), order="rows").to_coo()[1].tolist()
    [1, 0, 3, 2]
    """
    name, drawn_by = "maximal_matching", inputs.random_seed(seed, "maximal_matching", A)
    if order not in ("random", "weight", "rows"):
        raise InvalidValue(f"{name}: there is no order {order!r}. Use random, weight or rows.")
    if order == "weight":
        _require_weights(A, name)
    drawn = np.random.default_rng(drawn_by)
    keys: dict[str, Callable[[Array, Array], Array]] = {
        "random": lambda edge, _: drawn.permutation(len(edge) // 2)[edge],
        "weight": lambda _, values: -_rank(values),
        "rows": lambda edge, _: edge,
    }
    A = inputs.undirected(A)
    n = A.nrows
    begin, end = _listed(A, keys[order])
    mates, found = (Vector(begin.dtype, n, like=A, name=x) for x in ("mates", "found"))
    ends = Vector(begin.dtype, begin.size, like=A, name="ends")
    best = Vector(INT64, n, like=A, name="best")
    liked = Vector(INT64, begin.size, like=A, name="liked")
    won, gone = (Vector(BOOL, begin.size, like=A, name=x) for x in ("won", "gone"))
    left = inputs.numbered(A, "e", begin.size).apply("floordiv", right=2).new(name="left")
    R, C = begin.selection(nrows=n), end.selection(nrows=n)
    for _ in loop(until_empty=left):
        best << semiring.min_second(R @ left)
        liked << semiring.min_first(best @ R)
        liked(accum=binary.min) << semiring.min_first(best @ C)
        won << left.ewise_mult(liked, binary.eq)
        ends(won.V, replace=True) << end
        found << semiring.min_second(R @ ends)
        mates(found.S) << found
        gone << semiring.any_pair(found @ R)
        left(~gone.S, replace=True) << left
        gone << semiring.any_pair(found @ C)
        left(~gone.S, replace=True) << left
    return mates
