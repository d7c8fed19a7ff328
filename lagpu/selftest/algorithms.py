"""The table of algorithms: how each is called, what proves its result; and its cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu import algorithms as a
from lagpu import check
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT64
from lagpu.errors import CheckFailed, LagpuError
from lagpu.loops.loop import eager
from lagpu.selftest.case import Case, Difference
from lagpu.selftest.data import DEEP, GRAPHS, Graph

_SMALL = 32  # most vertices of a graph for an algorithm that searches from each


@dataclass(frozen=True, eq=False)
class Inputs:
    """What algorithms are called on: a graph in several forms, and some of its vertices.

    `A` may be any graph, `U` has each edge in both directions, `S` also has no self-loop, `W` has
    lengths, and `D` has no cycle.
    """

    A: Matrix
    U: Matrix
    S: Matrix
    W: Matrix
    D: Matrix
    source: int
    target: int
    sources: list[int]

    @classmethod
    def of(cls, A: Matrix, source: int) -> Inputs:
        """Return the inputs made of one matrix."""
        n = A.nrows
        U = A.ewise_add(A.T, "max").new()
        above = A.select("triu", 2).new()  # the path through the hub's leaves would be long
        sources = sorted({0, source, n // 3})
        return cls(A, U, U.select("offdiag", 0).new(), A, above, source, n // 2, sources)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A row of `ALGORITHMS`.

    Attributes
    ----------
    label : str
        The name of the function in `lagpu.algorithms`, and its options, if it has several rows.
    call : callable
        Takes `Inputs`, returns the result.
    prove : callable, optional
        Takes `Inputs` and the result; raises `CheckFailed` if the result is wrong.
    same : callable, optional
        Returns the part of a result that all right answers share, as lists and numbers.
    slow : bool
        Whether it searches from each vertex.
    """

    label: str
    call: Callable[[Inputs], Any]
    prove: Callable[[Inputs, Any], object] | None = None
    same: Callable[[Any], Any] | None = None
    slow: bool = False

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.label.split()[0]

    def outcome(self, inputs: Inputs) -> Any:
        """Return the part of a proved result that all right answers share, or an error's text."""
        try:
            found = self.call(inputs)
            if self.prove is not None:
                self.prove(inputs, found)
        except CheckFailed:
            raise
        except LagpuError as error:
            return f"{type(error).__name__}: {error}"
        return (self.same or plain)(found)


def plain(x: Any) -> Any:
    """Return a result as lists and numbers."""
    if isinstance(x, tuple):
        return [plain(part) for part in x]
    if isinstance(x, (Vector, Matrix)):
        return [part.tolist() for part in x.to_coo()]
    return x


def alike(x: Any, y: Any) -> bool:
    """Return True if two plain results differ by the rounding of sums alone."""
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(alike, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return bool(np.isclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True))
    return bool(x == y)


def _where(found: Any) -> Any:
    """Return the indices of the entries alone."""
    return plain(found)[:-1]


def _prove_tree(c: Inputs, found: Any) -> None:
    levels, parents = found
    check.check_levels(c.A, c.source, levels)
    check.check_parents(c.A, c.source, parents, levels)


def _few(c: Inputs) -> dict[str, Any]:
    """Return the options of an estimate by a few sources, searched at once."""
    k = min(3, c.A.nrows)
    return {"k": k, "seed": 1, "batch": k}


def _prove_few(c: Inputs, found: Any, error: Any = None) -> None:
    sources = random.Random(1).sample(range(c.A.nrows), _few(c)["k"])
    directed = not c.A.is_symmetric
    check.check_betweenness(c.A, found, directed=directed, sources=sources, error=error)


def _prove_sides(c: Inputs, found: Any) -> None:
    sides, cycle = found
    if sides is None:
        check.check_odd_cycle(c.A, cycle or [])
    else:
        check.check_sides(c.A, sides)


# Rows whose result depends on a source, or several.
_SEARCHES = (
    Algorithm("bfs_levels", lambda c: a.bfs_levels(c.A, c.source),
              lambda c, x: check.check_levels(c.A, c.source, x)),
    Algorithm("bfs_parents", lambda c: a.bfs_parents(c.A, c.source),
              lambda c, x: check.check_parents(c.A, c.source, x), _where),
    Algorithm("bfs", lambda c: a.bfs(c.A, c.source), _prove_tree,
              lambda x: [plain(x[0]), _where(x[1])]),
    Algorithm("count_shortest_paths", lambda c: a.count_shortest_paths(c.A, c.source),
              lambda c, x: check.check_paths(c.A, c.source, x)),
    Algorithm("sssp", lambda c: a.sssp(c.W, c.source),
              lambda c, x: check.check_distances(c.W, c.source, x)),
    Algorithm("bellman_ford", lambda c: a.bellman_ford(c.W, c.source),
              lambda c, x: check.check_distances(c.W, c.source, x)),
    Algorithm("delta_stepping", lambda c: a.delta_stepping(c.W, c.source),
              lambda c, x: check.check_distances(c.W, c.source, x)),
    Algorithm("delta_stepping by 2", lambda c: a.delta_stepping(c.W, c.source, 2),
              lambda c, x: check.check_distances(c.W, c.source, x)),
    Algorithm("delta_stepping by 0.75", lambda c: a.delta_stepping(c.W, c.source, 0.75),
              lambda c, x: check.check_distances(c.W, c.source, x)),
    Algorithm("bfs_levels_joint", lambda c: a.bfs_levels_joint(c.A, c.sources),
              lambda c, x: check.check_levels_joint(c.A, c.sources, x)),
    Algorithm("neighborhood", lambda c: a.neighborhood(c.A, c.sources, 2),
              lambda c, x: check.check_levels_joint(c.A, c.sources, x, k=2)),
    Algorithm("k_hop", lambda c: a.k_hop(c.A, c.sources, 2),
              lambda c, x: check.check_k_hop(c.A, c.sources, 2, x)),
    Algorithm("bfs_levels_multi", lambda c: a.bfs_levels_multi(c.A, c.sources),
              lambda c, x: check.check_levels_multi(c.A, c.sources, x)),
    Algorithm("bfs_parents_multi", lambda c: a.bfs_parents_multi(c.A, c.sources),
              lambda c, x: check.check_parents_multi(c.A, c.sources, x), _where),
    Algorithm("closeness_centrality", lambda c: a.closeness_centrality(c.A, c.source),
              lambda c, x: check.check_remoteness(c.A, x, "closeness", vertices=[c.source])),
    Algorithm("harmonic_centrality", lambda c: a.harmonic_centrality(c.A, c.source),
              lambda c, x: check.check_remoteness(c.A, x, "harmonic", vertices=[c.source])),
    Algorithm("pseudo_diameter", lambda c: a.pseudo_diameter(c.A, c.source)),
    Algorithm("shortest_path", lambda c: a.shortest_path(c.A, c.source, c.target),
              lambda c, x: check.check_route(c.A, c.source, c.target, x), len),
    Algorithm("shortest_path of one search",
              lambda c: a.shortest_path(c.A, c.source, c.target, method="single"),
              lambda c, x: check.check_route(c.A, c.source, c.target, x), len),
    Algorithm("has_path", lambda c: a.has_path(c.A, c.source, c.target)),
    Algorithm("eccentricity", lambda c: a.eccentricity(c.U, c.source)),
)  # fmt: skip
_WHOLE = (
    Algorithm("connected_components", lambda c: a.connected_components(c.A),
              lambda c, x: check.check_components(c.A, x)),
    Algorithm("connected_components by bfs", lambda c: a.connected_components(c.A, method="bfs"),
              lambda c, x: check.check_components(c.A, x)),
    Algorithm("strongly_connected_components", lambda c: a.strongly_connected_components(c.A),
              lambda c, x: check.check_components(c.A, x, strong=True)),
    Algorithm("pagerank", lambda c: a.pagerank(c.A), lambda c, x: check.check_pagerank(c.A, x),
              _where),
    Algorithm("betweenness_estimate", lambda c: a.betweenness_estimate(c.A, **_few(c)),
              lambda c, x: _prove_few(c, *x)),
    Algorithm("betweenness_centrality of a few, one by one",
              lambda c: a.betweenness_centrality(c.A, **_few(c) | {"batch": 1}), _prove_few),
    Algorithm("betweenness_centrality", lambda c: a.betweenness_centrality(c.A),
              lambda c, x: check.check_betweenness(c.A, x, directed=not c.A.is_symmetric),
              slow=True),
    Algorithm("betweenness_centrality with endpoints",
              lambda c: a.betweenness_centrality(c.A, endpoints=True, directed=True),
              lambda c, x: check.check_betweenness(c.A, x, endpoints=True), slow=True),
    Algorithm("edge_betweenness_centrality",
              lambda c: a.edge_betweenness_centrality(c.A, directed=True),
              lambda c, x: check.check_edge_betweenness(c.A, x), slow=True),
    Algorithm("closeness_centrality of all", lambda c: a.closeness_centrality(c.A),
              lambda c, x: check.check_remoteness(c.A, x, "closeness"), slow=True),
    Algorithm("harmonic_centrality of all", lambda c: a.harmonic_centrality(c.A),
              lambda c, x: check.check_remoteness(c.A, x, "harmonic"), slow=True),
    Algorithm("diameter", lambda c: a.diameter(c.U), slow=True),
    Algorithm("radius", lambda c: a.radius(c.U), slow=True),
    Algorithm("center", lambda c: a.center(c.U), slow=True),
    Algorithm("periphery", lambda c: a.periphery(c.U), slow=True),
    Algorithm("bipartite_sides", lambda c: a.bipartite_sides(c.A), _prove_sides,
              lambda x: plain(x[0])),
    Algorithm("is_bipartite", lambda c: a.is_bipartite(c.A)),
    Algorithm("topological_levels", lambda c: a.topological_levels(c.D),
              lambda c, x: check.check_topological_levels(c.D, x)),
    Algorithm("topological_order", lambda c: a.topological_order(c.D),
              lambda c, x: check.check_topological_order(c.D, x)),
    Algorithm("core_number", lambda c: a.core_number(c.A),
              lambda c, x: check.check_core_numbers(c.A, x)),
    Algorithm("k_core", lambda c: a.k_core(c.A, 2), lambda c, x: check.check_k_core(c.A, x, 2)),
    Algorithm("maximal_independent_set", lambda c: a.maximal_independent_set(c.A, seed=1),
              lambda c, x: check.check_independent_set(c.A, x)),
    Algorithm("triangles", lambda c: a.triangles(c.U), lambda c, x: check.check_triangles(c.U, x)),
    Algorithm("triangle_count", lambda c: a.triangle_count(c.U),
              lambda c, x: check.check_triangle_count(c.U, x)),
    Algorithm("clustering", lambda c: a.clustering(c.U),
              lambda c, x: check.check_clustering(c.U, x)),
    Algorithm("average_clustering", lambda c: a.average_clustering(c.U)),
    Algorithm("transitivity", lambda c: a.transitivity(c.U),
              lambda c, x: check.check_transitivity(c.U, x)),
)  # fmt: skip
#: Every public algorithm has a row here; `lagpu selftest`, the soak and tests read it.
ALGORITHMS = _SEARCHES + _WHOLE
# On a deep graph a backend may search from each of these sources by itself.
_DEEP = ("bfs_levels_multi", "bfs_parents_multi", "betweenness_estimate")


def cases() -> Iterator[Case]:
    """Yield the cases: every algorithm on every graph, fused and eager."""
    for row in ALGORITHMS:
        for graph in GRAPHS:
            if graph.n <= _SMALL or not row.slow:
                sources = graph.sources() if row in _SEARCHES else [0]
                yield Case("algorithms", f"{row.label} on {graph.name}", _run(row, graph, sources))
        if row.label in _DEEP:
            run = _run(row, DEEP, [DEEP.n // 2])
            yield Case("algorithms", f"{row.label} on {DEEP.name}", run)


def _run(row: Algorithm, graph: Graph, sources: list[int]) -> Callable[[Backend, Backend], str]:
    def run(place: Backend, oracle: Backend) -> str:
        for dtype in (BOOL, INT64):
            A, B = graph.matrix(dtype, place), graph.matrix(dtype, oracle)
            for source in sources:
                right = row.outcome(Inputs.of(B, source))
                inputs = Inputs.of(A, source)
                if not alike(row.outcome(inputs), right):
                    raise Difference(f"{dtype}, from {source}: differs from the oracle")
                with eager():
                    again = row.outcome(inputs)
                if not alike(again, right):
                    raise Difference(f"{dtype}, from {source}, eager: differs from the oracle")
        return f"{2 * len(sources)} runs proved, fused and eager"

    return run
