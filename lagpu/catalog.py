"""The table of algorithms: arguments, checker, question of ``lagpu bench``, words of the commands.

The self-test, the soak, `lagpu bench`, ``lagpu check``, ``lagpu crosscheck``, tests and the page of
the algorithms read it.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu import algorithms, check
from lagpu.algebra.tables import semiring
from lagpu.algorithms.betweenness import is_directed
from lagpu.check.graph import climbed
from lagpu.core import Matrix, Vector
from lagpu.errors import CheckFailed, InvalidValue

Array = np.ndarray[Any, Any]

SEED = 1  # of random choices
RANK_ERROR = 1e-4  # sum of the errors of all ranks, as in the GAP benchmark (Beamer et al. 2015)
SOURCES, FEW, SAMPLED, RADIUS = 8, 2, 4, 2  # most of each argument, see `Algorithm.given`
_OUTSIDE = 5000  # most vertices outside of the largest search, if each component takes a search


class Answer(NamedTuple):
    """The part of a result that all right answers share, and the part to prove: arrays alone."""

    same: Array
    proof: Any = None


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A public algorithm with some arguments.

    The arguments `given` after the matrix are ``source`` and ``target``, several ``sources``, a
    ``few`` vertices, a ``radius``, or the number of random sources, ``sampled``. The `graph` is a
    ``pattern``, ``undirected``, ``weighted``, ``positive`` (weights above 0), ``acyclic``, or
    ``FP32``, weighted in that type. `lagpu bench` compares answers by the `rule` ``equal``,
    ``close`` (each number), ``FP32`` (the same in that type) or ``sum`` (of differences).
    """

    name: str  # of the function in `lagpu.algorithms`
    given: tuple[str, ...] = ()
    check: Callable[..., Any] | None = None  # raises for a wrong (matrix, *arguments, result)
    label: str = ""  # the options in words, which `lagpu bench` prints
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments
    graph: str = "pattern"
    read: Callable[[Any], Answer] = Answer  # of the result
    rule: str = "equal"
    why_not: Callable[[Any], str] = lambda _facts: ""  # `lagpu bench` leaves a graph out, or ""
    rounds: Callable[[Any, Answer], int] | None = None  # levels or searches, by facts and answer
    call: Callable[[Matrix, Any], Any] | None = None  # of matrix and facts, for the algorithm
    measured_as: str = ""  # what `lagpu bench` measures instead
    slow: bool = False  # whether it searches from each vertex
    option: str = ""  # of ``lagpu check`` for a file with a result
    command: str = ""
    topic: str = ""  # of the page of the algorithms, in the first row of one

    @property
    def key(self) -> str:
        """The algorithm and its options."""
        return f"{self.name} {self.label}".strip()

    def arguments(self, facts: Any) -> list[Any]:
        """Return the arguments after the matrix, which are attributes of `facts`."""
        return [getattr(facts, name) for name in self.given]

    def run(self, A: Matrix, facts: Any) -> Any:
        """Call the algorithm."""
        if self.call is not None:
            return self.call(A, facts)
        return getattr(algorithms, self.name)(A, *self.arguments(facts), **self.options)

    def prove(self, A: Any, facts: Any, found: Any) -> None:
        """Raise `CheckFailed` if a result is wrong, by the checker and the options that it has."""
        if self.check is not None:
            own = inspect.signature(self.check).parameters
            options = {name: x for name, x in self.options.items() if name in own}
            self.check(A, *self.arguments(facts), found, **options)


# ---- checkers of (matrix, *arguments, result)
#
# `lagpu bench` compares levels and lengths between systems, which takes less time than a proof. So
# its results to prove have None in their place.
def _check_bfs(A: Any, source: int, found: Any) -> None:
    levels, parents = found
    if levels is not None:
        check.check_levels(A, source, levels)
    check.check_parents(A, source, parents, levels)


def _check_route(A: Any, source: int, target: int, found: Any) -> Any:
    if isinstance(found, list):
        return check.check_route(A, source, target, found)
    _length, route = found
    pattern = A if isinstance(A, check.Pattern) else check.Pattern(A)
    joined = pattern.slices.have(np.array(route[:-1], int), np.array(route[1:], int)).all()
    if not joined or (route[0], route[-1]) != (source, target):
        raise CheckFailed(f"shortest_path: {route} is not a path from {source} to {target}.")
    return None


def _check_sides(A: Any, found: Any) -> Any:
    sides, cycle = found
    return check.check_odd_cycle(A, cycle or []) if sides is None else check.check_sides(A, sides)


def _check_length(A: Any, source: int, target: int, found: Any) -> None:
    distances = algorithms.sssp(A, source)
    check.check_distances(A, source, distances)
    if found != distances.get(target):
        raise CheckFailed(f"path_weight: {found}, but distance {distances.get(target)}.")


def _remoteness(of: Any, weight: bool = False) -> Callable[..., Any]:
    def prove(A: Any, *vertices_and_found: Any) -> Any:
        *vertices, found = vertices_and_found
        some = vertices[0] if vertices else None
        return check.check_remoteness(A, found, of, vertices=some, weight=weight)

    return prove


def _drawn(A: Any, k: int) -> list[int]:
    return random.Random(SEED).sample(range(A.nrows), k)


def _check_sampled(A: Any, k: int, found: Any, error: Any = None, *, weight: bool = False) -> None:
    how: dict[str, Any] = {"directed": is_directed(A), "sources": _drawn(A, k), "weight": weight}
    check.check_betweenness(A, found, error=error, **how)


def _between(name: str, A: Matrix, facts: Any) -> Any:
    some = facts.sources
    return getattr(algorithms, name)(A, sources=some, targets=some[1:] or some)


def _check_between(prove: Callable[..., Any], A: Any, some: list[int], found: Any) -> None:
    prove(A, found, sources=some, targets=some[1:] or some, directed=is_directed(A))


# ---- readers of results, and facts of answers
def depths(parents: Array) -> Array:
    """Return each vertex's depth in a tree, or -1, (n,); a parent of -1 means none."""
    inside = parents >= 0
    depth, _ = climbed(np, np.where(inside, parents, np.arange(len(parents))))
    return np.where(inside, depth, -1)


def dense(fill: Any) -> Callable[[Any], Answer]:
    """Return a reader of vectors."""
    return lambda v: Answer(v.to_dense(fill))


def _tree(parents: Any) -> Answer:
    return Answer(depths(parents.to_dense(-1)), parents.to_coo())


def _with_tree(found: Any) -> Answer:
    distances, parents = found
    return Answer(distances.to_dense(-1), (None, parents.to_coo()))


def _entries(v: Any) -> Answer:
    return Answer(v.to_coo()[1])


def _number(x: Any) -> Answer:
    return Answer(np.array([x]))


def _route(route: list[int]) -> Answer:
    return Answer(np.array([len(route)]), (None, route))


def _levels_of_each(levels: Matrix) -> Answer:
    rows, cols, values = levels.to_coo()
    found = np.full(levels.shape, -1, values.dtype)
    found[rows, cols] = values
    return Answer(found)


def _trees(parents: Matrix) -> Answer:
    rows, cols, values = parents.to_coo()
    proof = sp.coo_array((values, (rows, cols)), shape=parents.shape)
    return Answer(np.array([depths(row) for row in _levels_of_each(parents).same]), proof)


def _sides(found: Any) -> Answer:
    sides, cycle = found
    return Answer(np.array([cycle is None]), (None if sides is None else sides.to_coo(), cycle))


def _unconnected(facts: Any) -> str:
    return "" if facts.connected else "not connected"


def directed(facts: Any) -> str:
    """Return why a graph is left out unless it is undirected."""
    return "" if facts.symmetric else "directed"


def _deepest(_facts: Any, answer: Answer) -> int:
    return int(answer.same.max()) + 1


def _searches(_facts: Any, answer: Answer) -> int:
    return len(answer.same)


def _sampled(facts: Any, _answer: Answer) -> int:
    return int(facts.sampled)


def _in_five(A: Matrix) -> Vector:
    return Vector.from_dense(np.arange(A.nrows) % 5, like=A)


def _pairs(sources: Any) -> list[tuple[int, int]]:
    """Return pairs of the first of some vertices with each other one."""
    return [(sources[0], v) for v in sources[1:]]


def _similar(kind: str, A: Matrix, facts: Any) -> Matrix:
    return algorithms.similarity(A, _pairs(facts.sources), kind=kind)


def _check_pairs(kind: str, A: Any, sources: Any, found: Any) -> None:
    check.check_similarity(A, found, _pairs(sources), kind=kind)


_ONE, _MANY, _SOME = ("source",), ("sources",), ("few",)
_EACH, _OF_FEW, _OF_SAMPLE = f"from each of {SOURCES}", f"{FEW} vertices", f"{SAMPLED} sources"
_DRAWN = {"seed": SEED}

#: Every public algorithm, those that take long last; `lagpu bench` asks in this order.
ALGORITHMS = (
    Algorithm("bfs_levels", _ONE, check.check_levels, read=dense(-1), rounds=_deepest,
              command="bfs", topic="levels"),
    Algorithm("bfs_parents", _ONE, check.check_parents, read=_tree, rounds=_deepest,
              topic="levels"),
    Algorithm("bfs", _ONE, _check_bfs, read=_with_tree, rounds=_deepest, topic="levels"),
    Algorithm("count_shortest_paths", _ONE, check.check_paths, read=dense(0), rule="close",
              topic="paths"),
    Algorithm("bfs_levels_joint", _MANY, check.check_levels_joint, f"from {SOURCES} at once",
              read=dense(-1), rounds=_deepest, topic="nearest"),
    Algorithm("bfs_levels_multi", _MANY, check.check_levels_multi, _EACH, read=_levels_of_each,
              rounds=_deepest, topic="each"),
    Algorithm("bfs_parents_multi", _MANY, check.check_parents_multi, _EACH, read=_trees,
              rounds=_deepest, topic="each"),
    Algorithm("neighborhood", ("source", "radius"),
              lambda A, v, k, x: check.check_levels_joint(A, np.ravel(v), x, k=k),
              f"within {RADIUS} edges",
              read=dense(-1), rounds=_deepest, topic="nearest"),
    Algorithm("k_hop", ("sources", "radius"), check.check_k_hop, measured_as="neighborhood",
              topic="nearest"),
    Algorithm("shortest_path", ("source", "target"), _check_route, read=_route,
              command="path", topic="route"),
    Algorithm("shortest_path", ("source", "target"), _check_route, "of one search",
              {"method": "single"}, read=_route, measured_as="shortest_path"),
    Algorithm("has_path", ("source", "target"), measured_as="shortest_path", topic="route"),
    Algorithm("pseudo_diameter", _ONE, read=lambda found: Answer(np.array(found)), topic="across"),
    Algorithm("pagerank", (), check.check_pagerank, "of weights", rule="sum",
              measured_as="pagerank", option="pagerank", command="pagerank", topic="central"),
    Algorithm("pagerank", (), lambda A, x: check.check_pagerank(A, x, tol=RANK_ERROR, weight=False),
              read=dense(0), rule="sum",
              call=lambda A, facts: algorithms.pagerank(
                  A, tol=RANK_ERROR / facts.vertices, max_iter=1000, weight=False)),
    Algorithm("pagerank", (), check.check_pagerank, "of 10 steps",
              {"tol": None, "dangling": False, "max_iter": 10}, rule="sum", measured_as="pagerank"),
    Algorithm("eigenvector_centrality", (), check.check_eigenvector, rule="sum",
              measured_as="pagerank", topic="central"),
    Algorithm("katz_centrality", (), check.check_katz, "alpha=0.01",
              {"alpha": 0.01, "weight": False}, rule="sum", measured_as="pagerank",
              topic="central"),
    Algorithm("hits", (), check.check_hits, options={"max_iter": 1000},
              read=lambda x: Answer(x[0].to_coo()[0], True), measured_as="pagerank",
              topic="central"),
    *(Algorithm(f"{kind}degree_centrality".removeprefix("all"), (),
                lambda A, x, kind=kind: check.check_degree_centrality(A, x, kind.strip("_")),
                measured_as="pagerank", topic="central") for kind in ("all", "in_", "out_")),
    Algorithm("connected_components", (), check.check_components, "fastsv", read=dense(-1),
              option="components", command="components", topic="parts"),
    Algorithm("connected_components", (), check.check_components, "bfs", {"method": "bfs"},
              read=dense(-1),
              why_not=lambda x: f"{x.outside:,} vertices apart" if x.outside > _OUTSIDE else ""),
    Algorithm("strongly_connected_components", (),
              functools.partial(check.check_components, strong=True), read=dense(-1),
              option="strong", topic="parts"),
    Algorithm("maximal_independent_set", (), check.check_independent_set, f"seed {SEED}", _DRAWN,
              read=dense(False), option="independent", command="independent", topic="apart"),
    Algorithm("bipartite_sides", (), _check_sides, read=_sides, option="sides",
              command="bipartite", topic="sides"),
    Algorithm("is_bipartite", measured_as="bipartite_sides", topic="sides"),
    Algorithm("core_number", (), check.check_core_numbers, read=dense(-1), option="cores",
              command="cores", topic="core"),
    Algorithm("k_core", (), check.check_k_core, "k=2", {"k": 2},
              measured_as="core_number", topic="core"),
    Algorithm("closeness_centrality", (), _remoteness("closeness"), slow=True, option="closeness",
              measured_as="closeness_centrality", command="closeness", topic="central"),
    Algorithm("closeness_centrality", _SOME, _remoteness("closeness"), _OF_FEW, read=_entries,
              rule="close", rounds=_searches),
    Algorithm("harmonic_centrality", (), _remoteness("harmonic"), slow=True, option="harmonic",
              measured_as="harmonic_centrality", topic="central"),
    Algorithm("harmonic_centrality", _SOME, _remoteness("harmonic"), _OF_FEW, read=_entries,
              rule="close", rounds=_searches),
    Algorithm("eccentricity", _SOME, _remoteness("eccentricity"), _OF_FEW, graph="undirected",
              read=_entries, why_not=_unconnected, rounds=_searches, topic="across"),
    *(Algorithm(name, _SOME, _remoteness(name.split("_")[0], True), "by lengths", {option: True},
                "weighted", measured_as=name)
      for name, option in (("closeness_centrality", "distance"), ("eccentricity", "weight"),
                           ("harmonic_centrality", "distance"))),
    *(Algorithm(name, graph="undirected", measured_as="eccentricity", slow=True, topic="across")
      for name in ("radius", "center", "periphery")),
    Algorithm("betweenness_centrality", (),
              lambda A, x: check.check_betweenness(A, x, directed=is_directed(A)), slow=True,
              measured_as="betweenness_centrality", option="betweenness", command="bc",
              topic="central"),
    Algorithm("betweenness_centrality", (), check.check_betweenness, "with endpoints",
              {"endpoints": True, "directed": True}, slow=True,
              measured_as="betweenness_centrality"),
    Algorithm("betweenness_centrality", ("sampled",), _check_sampled, _OF_SAMPLE, _DRAWN,
              read=dense(0), rule="close", rounds=_sampled),
    Algorithm("betweenness_centrality", ("sampled",), _check_sampled, f"{_OF_SAMPLE}, one by one",
              _DRAWN | {"batch": 1}, measured_as="betweenness_centrality"),
    Algorithm("betweenness_estimate", ("sampled",), lambda A, k, x: _check_sampled(A, k, *x),
              _OF_SAMPLE, _DRAWN | {"batch": SAMPLED}, measured_as="betweenness_centrality",
              topic="central"),
    Algorithm("edge_betweenness_centrality", (), check.check_edge_betweenness, "directed",
              {"directed": True}, measured_as="edge_betweenness_centrality", slow=True,
              topic="central"),
    Algorithm("edge_betweenness_centrality", ("sampled",), None, _OF_SAMPLE, _DRAWN,
              read=lambda A: Answer(A.to_csc()[2]), rule="close", rounds=_sampled),
    Algorithm("betweenness_centrality", ("sampled",), _check_sampled, f"by lengths, {_OF_SAMPLE}",
              _DRAWN | {"weight": True}, "positive", measured_as="betweenness_centrality"),
    Algorithm("edge_betweenness_centrality", ("sampled",),
              lambda A, k, x: check.check_edge_betweenness(A, x, weight=True, sources=_drawn(A, k)),
              f"by lengths, {_OF_SAMPLE}", _DRAWN | {"weight": True, "directed": True}, "positive",
              measured_as="edge_betweenness_centrality"),
    *(Algorithm(name, _MANY, functools.partial(_check_between, prove), f"between {SOURCES}",
                call=functools.partial(_between, name), measured_as=name)
      for name, prove in (("betweenness_centrality", check.check_betweenness),
                          ("edge_betweenness_centrality", check.check_edge_betweenness))),
    Algorithm("topological_levels", (), check.check_topological_levels, graph="acyclic",
              read=dense(-1), rounds=_deepest, option="order", command="order", topic="order"),
    Algorithm("topological_order", (), check.check_topological_order, graph="acyclic",
              measured_as="topological_levels", topic="order"),
    Algorithm("sssp", _ONE, check.check_distances, graph="weighted",
              measured_as="bellman_ford, delta_stepping", command="sssp", topic="weights"),
    Algorithm("bellman_ford", _ONE, check.check_distances, graph="weighted", read=dense(-1),
              topic="weights"),
    Algorithm("delta_stepping", _ONE, check.check_distances, graph="weighted", read=dense(-1),
              topic="weights"),
    Algorithm("sssp_parents", _ONE, lambda A, s, x: check.check_sssp_parents(A, s, *x),
              graph="weighted", read=_with_tree, measured_as="bellman_ford", topic="weights"),
    Algorithm("sssp_parents", _MANY, lambda A, s, x: check.check_sssp_parents(A, s, *x),
              f"from {SOURCES} at once", graph="weighted", read=_with_tree,
              measured_as="bellman_ford"),
    Algorithm("shortest_path", ("source", "target"), check.check_route, "by weights",
              {"weight": True}, "weighted", read=_route, measured_as="shortest_path"),
    Algorithm("path_weight", ("source", "target"), _check_length, graph="weighted", read=_number,
              call=lambda A, facts: algorithms.path_weight(A, algorithms.shortest_path(
                  A, facts.source, facts.target, weight=True)),
              measured_as="bellman_ford", topic="route"),
    Algorithm("find_negative_cycle", (), check.check_negative_cycle, graph="weighted",
              measured_as="bellman_ford", topic="weights"),
    Algorithm("floyd_warshall", (), check.check_floyd_warshall, graph="weighted", slow=True,
              measured_as="bellman_ford", topic="weights"),
    *(Algorithm("delta_stepping", _ONE, check.check_distances, f"delta={delta}", {"delta": delta},
                "weighted", measured_as="delta_stepping") for delta in (2, 0.75)),
    Algorithm("triangle_count", (), check.check_triangle_count, graph="undirected", read=_number,
              why_not=directed, topic="triangles"),
    Algorithm("triangles", (), check.check_triangles, graph="undirected", option="triangles",
              measured_as="triangle_count", command="triangles", topic="triangles"),
    Algorithm("clustering", (), check.check_clustering, graph="undirected", read=dense(0),
              rule="close", why_not=directed, option="clustering", topic="triangles"),
    Algorithm("clustering", (), check.check_clustering, "directed, by weights", {"weight": True},
              "positive", measured_as="clustering"),
    Algorithm("triangle_centrality", (), check.check_triangle_centrality, graph="undirected",
              measured_as="clustering", topic="triangles"),
    Algorithm("square_clustering", (), check.check_square_clustering, graph="undirected",
              measured_as="clustering", topic="triangles"),
    Algorithm("average_clustering", graph="undirected", measured_as="clustering",
              topic="triangles"),
    Algorithm("transitivity", (), check.check_transitivity, graph="undirected",
              measured_as="clustering", topic="triangles"),
    Algorithm("k_truss", (), check.check_k_truss, "k=4", {"k": 4},
              "undirected", measured_as="triangle_count", topic="core"),
    Algorithm("minimum_spanning_forest", (), check.check_spanning_forest, graph="undirected",
              measured_as="connected_components", topic="forest"),
    Algorithm("minimum_spanning_forest", (), check.check_spanning_forest, "of largest weight",
              {"maximum": True}, "undirected", measured_as="connected_components"),
    Algorithm("maximal_matching", (), check.check_matching, f"seed {SEED}", _DRAWN,
              measured_as="maximal_independent_set", topic="pairs"),
    Algorithm("louvain", (), check.check_communities, f"seed {SEED}", _DRAWN, "undirected",
              measured_as="connected_components", slow=True, topic="communities"),
    Algorithm("label_propagation", (), check.check_label_propagation, "of 9 rounds",
              {"max_iter": 9}, measured_as="connected_components", topic="communities"),
    Algorithm("label_propagation", (),
              lambda A, x: check.check_label_propagation(A, x, _in_five(A)), "by colours",
              call=lambda A, _: algorithms.label_propagation(A, _in_five(A)),
              measured_as="connected_components"),
    Algorithm("modularity", (), lambda A, x: check.check_modularity(A, _in_five(A), x),
              call=lambda A, _: algorithms.modularity(A, _in_five(A)),
              measured_as="connected_components", topic="communities"),
    Algorithm("contraction", (), lambda A, x: check.check_contraction(A, _in_five(A), *x),
              call=lambda A, _: algorithms.contraction(A, _in_five(A)),
              measured_as="connected_components", topic="communities"),
    Algorithm("largest_component", (), check.check_largest_component,
              measured_as="connected_components", topic="parts"),
    Algorithm("largest_component", (), check.check_largest_component, "strong",
              {"strong": True}, measured_as="strongly_connected_components"),
    Algorithm("ego_graph", ("source", "radius"),
              lambda A, v, k, x: check.check_ego_graph(A, v, x, k), f"within {RADIUS} edges",
              measured_as="neighborhood", topic="nearest"),
    Algorithm("k_hop_sizes", (), lambda A, x: check.check_k_hop_sizes(A, RADIUS, x),
              f"within {RADIUS} edges", {"k": RADIUS}, measured_as="bfs_levels_multi", slow=True,
              topic="nearest"),
    Algorithm("similarity", (), check.check_similarity, "of all pairs", graph="undirected",
              measured_as="triangle_count", slow=True, topic="similar"),
    *(Algorithm("similarity", _MANY, functools.partial(_check_pairs, kind), kind,
                graph="undirected", call=functools.partial(_similar, kind),
                measured_as="triangle_count") for kind in ("adamic_adar", "cosine", "jaccard")),
    Algorithm("reciprocity", (), check.check_reciprocity, measured_as="triangle_count",
              topic="mutual"),
    Algorithm("overall_reciprocity", (), check.check_reciprocity, measured_as="triangle_count",
              topic="mutual"),
    Algorithm("laplacian_matrix", (), check.check_laplacian, measured_as="pagerank",
              topic="laplacian"),
    Algorithm("laplacian_matrix", (), check.check_laplacian, "normalized", {"normalized": True},
              "undirected", measured_as="pagerank"),
    Algorithm("diameter", (), check.check_diameter, graph="undirected", read=_number,
              why_not=_unconnected, slow=True, command="diameter", topic="across"),
    Algorithm("diameter", (), check.check_diameter, "by lengths",
              {"weight": True}, "weighted", measured_as="diameter", slow=True),
)  # fmt: skip

#: The searches from one vertex, by the name of what they find.
FINDS = {"levels": "bfs_levels", "parents": "bfs_parents", "paths": "count_shortest_paths"}

#: Checkers of (matrix, *arguments, result) by the name of the algorithm, with its defaults.
PROOFS = {row.name: row.check for row in reversed(ALGORITHMS) if row.check is not None}


# ---- the questions of ``lagpu bench --algorithm``: rows of the table, and products
#: Products of the matrix with a full vector of FP32, beside the algorithms, by their semirings.
PRODUCTS = ("plus_second", "plus_times")


def factors(n: int) -> Array:
    """Return the vector of the products, (n,), FP32."""
    return (1 + np.arange(n) % 64 / 64).astype(np.float32)


def _product(name: str) -> Algorithm:
    """Return a product as a question; the vector is made at the first run, before any is timed."""
    made: list[Any] = []

    def call(A: Matrix, _facts: Any) -> Any:
        if not made or made[0] is not A:
            made[:] = [A, Vector.from_dense(factors(A.ncols), backend=A.backend)]
        return semiring[name](A @ made[1]).new()

    graph = "pattern" if name == "plus_second" else "FP32"
    return Algorithm("product", label=f"{name} FP32", graph=graph, read=dense(0), rule="FP32",
                     why_not=directed, call=call)  # fmt: skip


#: Every question, expensive ones last.
QUESTIONS = (*(row for row in ALGORITHMS if not row.measured_as), *map(_product, PRODUCTS))


def questions_of(names: Sequence[str]) -> list[Algorithm]:
    """Return the questions about some algorithms; ``all`` or an empty list means every one."""
    known = list(dict.fromkeys(row.name for row in QUESTIONS))
    others = {row.name: row.measured_as for row in ALGORITHMS if row.name not in known}
    words = [word for text in names for word in text.split(",")] or ["all"]
    for word in words:
        if word in others:
            raise InvalidValue(f"--algorithm: {word} is measured as {others[word]}. Use this name.")
        if word != "all" and word not in known:
            remedy = f"Use all or some of {', '.join(known)}."
            raise InvalidValue(f"--algorithm: there is no {word!r}. {remedy}")
    return [row for row in QUESTIONS if "all" in words or row.name in words]


def differs(rule: str, first: Answer, other: Answer) -> bool:
    """Return whether two answers differ by the rule of their question."""
    x, y = first.same, other.same
    if x.shape != y.shape:
        return True
    if rule == "equal":
        return not np.array_equal(x, y)
    if rule == "close":
        return not np.allclose(x, y, rtol=1e-6, atol=0, equal_nan=True)
    if rule == "FP32":  # sums of positive numbers, in any order
        return not np.allclose(x, y, rtol=1e-4, atol=0)
    # Two iterations that contract by 0.85 and stop at a change below e differ by at most this.
    return not np.abs(x - y).sum() <= 2 * RANK_ERROR / (1 - 0.85)
