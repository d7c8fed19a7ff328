"""The questions: each algorithm with its options, the comparison of answers, and exclusions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu import algorithms, check
from lagpu.algebra.tables import semiring
from lagpu.bench.algorithms.problem import Facts, Problem
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed, InvalidValue

__all__ = [
    "LEFT_OUT",
    "PRODUCTS",
    "Answer",
    "Question",
    "chosen",
    "depths",
    "differs",
    "factors",
    "least_labels",
    "menu",
]

Array = np.ndarray[Any, Any]

FEW = 2  # sources of a question that takes a search for each source
SAMPLED = 4  # sources of betweenness
RADIUS = 2  # radius of a neighbourhood
SEED = 1  # seed of random choices
RANK_ERROR = 1e-4  # sum of the errors of all ranks, as in the GAP benchmark (Beamer et al. 2015)
_OUTSIDE = 5000  # most vertices outside of the largest search, if each component takes a search

#: Public algorithms that are measured as part of another one, and its name.
LEFT_OUT = {
    "sssp": "bellman_ford, delta_stepping",
    "k_core": "core_number",
    "k_hop": "neighborhood",
    "has_path": "shortest_path",
    "topological_order": "topological_levels",
    "betweenness_estimate": "betweenness_centrality",
    "triangles": "triangle_count",
    "transitivity": "clustering",
    "average_clustering": "clustering",
    "is_bipartite": "bipartite_sides",
    "radius": "eccentricity",
    "center": "eccentricity",
    "periphery": "eccentricity",
}


class Answer(NamedTuple):
    """The result of an algorithm: the part that all right answers share, and the part to prove.

    Answers are sent between processes, so they consist of arrays, without objects of a backend.
    """

    same: Array
    proof: Any = None


@dataclass(frozen=True)
class Question:
    """An algorithm, with options.

    Attributes
    ----------
    algorithm, options : str
        Names in a row.
    run : callable
        Takes the matrix and the facts; timed.
    read : callable
        Makes an `Answer` of the result of `run`; not timed.
    graph : str
        The matrix: ``pattern``, ``weighted``, ``acyclic``, or ``FP32``, weighted in that type.
    rule : str
        How answers are compared: ``equal``, ``close`` (each number), ``FP32`` (each number, of
        that type) or ``sum`` (of differences).
    prove : callable, optional
        Raises `CheckFailed` for a wrong answer, if right answers may differ.
    why_not : callable
        Returns why a graph is left out, or an empty string.
    rounds : callable, optional
        Returns the number of levels or searches, from the facts and the answer.
    """

    algorithm: str
    options: str
    run: Callable[[Matrix, Facts], Any]
    read: Callable[[Any], Answer]
    graph: str = "pattern"
    rule: str = "equal"
    prove: Callable[[Problem, Answer], object] | None = None
    why_not: Callable[[Facts], str] = lambda _facts: ""
    rounds: Callable[[Facts, Answer], int] | None = None

    @property
    def key(self) -> str:
        """The algorithm and its options."""
        return f"{self.algorithm} {self.options}".strip()


def chosen(names: Sequence[str]) -> list[Question]:
    """Return the questions about some algorithms; ``all`` or an empty list means every one.

    Raises
    ------
    InvalidValue
        For an unknown name; the message lists the valid ones.
    """
    questions = menu()
    known = list(dict.fromkeys(q.algorithm for q in questions))
    words = [word for text in names for word in text.split(",")] or ["all"]
    for word in words:
        if word in LEFT_OUT:
            raise InvalidValue(
                f"--algorithm: {word} is measured as {LEFT_OUT[word]}. Use this name."
            )
        if word != "all" and word not in known:
            raise InvalidValue(
                f"--algorithm: there is no {word!r}. Use all or some of {', '.join(known)}."
            )
    return [q for q in questions if "all" in words or q.algorithm in words]


def menu() -> list[Question]:
    """Return the questions about algorithms that lagpu has, expensive ones last."""
    found = [q for q in _questions() if hasattr(algorithms, q.algorithm)]
    return [*found, *(_product(name) for name in PRODUCTS)]


def differs(rule: str, first: Answer, other: Answer) -> bool:
    """Return True if two answers contradict each other."""
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


def depths(parents: Array) -> Array:
    """Return each vertex's depth in a tree, or -1, (n,); a parent of -1 means none."""
    vertex = np.arange(len(parents))
    jump = np.where(parents >= 0, parents, vertex)
    depth = (jump != vertex).astype(np.int32)
    for _ in range(len(parents).bit_length()):
        further = jump[jump]
        if np.array_equal(further, jump):
            break
        depth += depth[jump]
        jump = further
    return np.where(parents >= 0, depth, -1)


def least_labels(labels: Array) -> Array:
    """Return for each vertex the least vertex with the same label."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]


# --------------------------------------------------------------------- how results are read


def _dense(fill: Any) -> Callable[[Any], Answer]:
    return lambda v: Answer(v.to_dense(fill))


def _tree(parents: Any) -> Answer:
    return Answer(depths(parents.to_dense(-1)), parents.to_coo())


def _entries(v: Any) -> Answer:
    return Answer(v.to_coo()[1])


def _number(x: Any) -> Answer:
    return Answer(np.array([x]))


def _levels_of_each(levels: Matrix) -> Answer:
    rows, cols, values = levels.to_coo()
    dense = np.full(levels.shape, -1, np.int32)
    dense[rows, cols] = values
    return Answer(dense)


def _trees(parents: Matrix) -> Answer:
    rows, cols, values = parents.to_coo()
    dense = np.full(parents.shape, -1)
    dense[rows, cols] = values
    proof = sp.coo_array((values, (rows, cols)), shape=parents.shape)
    return Answer(np.array([depths(row) for row in dense]), proof)


def _by_columns(A: Matrix) -> Answer:
    return Answer(A.to_csc()[2])


def _two_sides(found: tuple[Any, list[int] | None]) -> Answer:
    sides, cycle = found
    return Answer(np.array([cycle is None]), cycle or sides.to_coo())


# -------------------------------------------------------------------------- how they are proved


def _prove_tree(problem: Problem, answer: Answer) -> None:
    check.check_parents(problem.columns, problem.facts.source, answer.proof)


def _prove_trees(problem: Problem, answer: Answer) -> None:
    check.check_parents_multi(problem.columns, problem.facts.sources, answer.proof)


def _prove_route(problem: Problem, answer: Answer) -> None:
    route, facts = answer.proof, problem.facts
    if (route[0], route[-1]) != (facts.source, facts.target):
        raise CheckFailed(
            f"shortest_path: a path from {route[0]} to {route[-1]}, not from {facts.source} to "
            f"{facts.target}."
        )
    _prove_edges(problem, list(itertools.pairwise(route)))


def _prove_sides(problem: Problem, answer: Answer) -> None:
    if answer.same[0]:
        check.check_sides(problem.columns, answer.proof)
        return
    cycle = answer.proof
    if len(cycle) % 2 == 0:
        raise CheckFailed(f"bipartite_sides: a cycle of {len(cycle)} vertices is not odd.")
    _prove_edges(problem, list(zip(cycle, cycle[1:] + cycle[:1], strict=True)), undirected=True)


def _prove_edges(
    problem: Problem, edges: list[tuple[int, int]], *, undirected: bool = False
) -> None:
    for i, j in edges:
        if not (problem.has_edge(i, j) or (undirected and problem.has_edge(j, i))):
            raise CheckFailed(f"there is no edge {i} -> {j}.")


# ------------------------------------------------------------------------- what rules them out


def _unconnected(facts: Facts) -> str:
    return "" if facts.connected else "not connected"


def _directed(facts: Facts) -> str:
    return "" if facts.symmetric else "directed"


def _many_outside(facts: Facts) -> str:
    return f"{facts.outside:,} vertices apart" if facts.outside > _OUTSIDE else ""


# ---------------------------------------------------------------------------------- the menu


def _deepest(_facts: Facts, answer: Answer) -> int:
    return int(answer.same.max()) + 1


def _sampled(facts: Facts) -> int:
    return min(SAMPLED, facts.vertices)


def _ranks(A: Matrix, facts: Facts) -> Any:
    return algorithms.pagerank(A, tol=RANK_ERROR / facts.vertices, max_iter=1000, weight=False)


#: Products of the matrix with a full vector of FP32, beside the algorithms, by their semirings.
PRODUCTS = ("plus_second", "plus_times")


def factors(n: int) -> Array:
    """Return the vector of a product, (n,), FP32, 1 to 2."""
    return (1 + np.arange(n) % 64 / 64).astype(np.float32)


def _product(name: str) -> Question:
    """Return a product as a question; the vector is made at the first run, before any is timed."""
    made: list[Any] = []

    def run(A: Matrix, _facts: Facts) -> Any:
        if not made or made[0] is not A:
            made[:] = [A, Vector.from_dense(factors(A.ncols), backend=A.backend)]
        return semiring[name](A @ made[1]).new()

    return Question(
        "product", f"{name} FP32", run, _dense(0), rule="FP32", why_not=_directed,
        graph="pattern" if name == "plus_second" else "FP32",
    )  # fmt: skip


def _few_searches(_facts: Facts, answer: Answer) -> int:
    return len(answer.same)


def _questions() -> list[Question]:
    ask: Any = algorithms  # Any, as some may be missing
    few = f"{FEW} vertices"
    return [
        Question(
            "bfs_levels", "", lambda A, f: ask.bfs_levels(A, f.source), _dense(-1), rounds=_deepest
        ),
        Question(
            "bfs_parents", "", lambda A, f: ask.bfs_parents(A, f.source), _tree,
            prove=_prove_tree, rounds=_deepest,
        ),
        Question(
            "bfs", "", lambda A, f: ask.bfs(A, f.source),
            lambda found: Answer(found[0].to_dense(-1), found[1].to_coo()),
            prove=_prove_tree, rounds=_deepest,
        ),
        Question(
            "count_shortest_paths", "", lambda A, f: ask.count_shortest_paths(A, f.source),
            _dense(0), rule="close",
        ),
        Question(
            "bfs_levels_joint", "from 8 at once",
            lambda A, f: ask.bfs_levels_joint(A, f.sources), _dense(-1), rounds=_deepest,
        ),
        Question(
            "bfs_levels_multi", "from each of 8",
            lambda A, f: ask.bfs_levels_multi(A, f.sources), _levels_of_each, rounds=_deepest,
        ),
        Question(
            "bfs_parents_multi", "from each of 8",
            lambda A, f: ask.bfs_parents_multi(A, f.sources), _trees,
            prove=_prove_trees, rounds=_deepest,
        ),
        Question(
            "neighborhood", f"within {RADIUS} edges",
            lambda A, f: ask.neighborhood(A, f.source, RADIUS), _dense(-1), rounds=_deepest,
        ),
        Question(
            "shortest_path", "", lambda A, f: ask.shortest_path(A, f.source, f.target),
            lambda route: Answer(np.array([len(route)]), route), prove=_prove_route,
        ),
        Question(
            "pseudo_diameter", "", lambda A, f: ask.pseudo_diameter(A, f.source),
            lambda found: Answer(np.array(found)),
        ),
        Question("pagerank", "", _ranks, _dense(0), rule="sum"),
        Question(
            "connected_components", "fastsv",
            lambda A, _: ask.connected_components(A), _dense(-1),
        ),
        Question(
            "connected_components", "bfs",
            lambda A, _: ask.connected_components(A, method="bfs"), _dense(-1),
            why_not=_many_outside,
        ),
        Question(
            "strongly_connected_components", "",
            lambda A, _: ask.strongly_connected_components(A), _dense(-1),
        ),
        Question(
            "maximal_independent_set", f"seed {SEED}",
            lambda A, _: ask.maximal_independent_set(A, seed=SEED), _dense(False),
        ),
        Question(
            "bipartite_sides", "", lambda A, _: ask.bipartite_sides(A), _two_sides,
            prove=_prove_sides,
        ),
        Question("core_number", "", lambda A, _: ask.core_number(A), _dense(-1)),
        Question(
            "closeness_centrality", few,
            lambda A, f: ask.closeness_centrality(A, sorted(f.sources[:FEW])), _entries,
            rule="close", rounds=_few_searches,
        ),
        Question(
            "harmonic_centrality", few,
            lambda A, f: ask.harmonic_centrality(A, sorted(f.sources[:FEW])), _entries,
            rule="close", rounds=_few_searches,
        ),
        Question(
            "eccentricity", few, lambda A, f: ask.eccentricity(A, sorted(f.sources[:FEW])),
            _entries, why_not=_unconnected, rounds=_few_searches,
        ),
        Question(
            "betweenness_centrality", f"{SAMPLED} sources",
            lambda A, f: ask.betweenness_centrality(A, _sampled(f), seed=SEED), _dense(0),
            rule="close", rounds=lambda f, _: _sampled(f),
        ),
        Question(
            "edge_betweenness_centrality", f"{SAMPLED} sources",
            lambda A, f: ask.edge_betweenness_centrality(A, _sampled(f), seed=SEED), _by_columns,
            rule="close", rounds=lambda f, _: _sampled(f),
        ),
        Question(
            "topological_levels", "", lambda A, _: ask.topological_levels(A), _dense(-1),
            graph="acyclic", rounds=_deepest,
        ),
        Question(
            "bellman_ford", "", lambda A, f: ask.bellman_ford(A, f.source), _dense(-1),
            graph="weighted",
        ),
        Question(
            "delta_stepping", "", lambda A, f: ask.delta_stepping(A, f.source), _dense(-1),
            graph="weighted",
        ),
        Question(
            "triangle_count", "", lambda A, _: ask.triangle_count(A), _number,
            why_not=_directed,
        ),
        Question(
            "clustering", "", lambda A, _: ask.clustering(A), _dense(0), rule="close",
            why_not=_directed,
        ),
        Question("diameter", "", lambda A, _: ask.diameter(A), _number, why_not=_unconnected),
    ]  # fmt: skip
