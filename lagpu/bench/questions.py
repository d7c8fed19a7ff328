"""The questions of ``lagpu bench --algorithm``: each algorithm with its options, as a table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu import algorithms, check
from lagpu.algebra.tables import semiring
from lagpu.bench.graphs import FEW, RADIUS, SAMPLED, Problem, Summary
from lagpu.bench.harness import Array
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed, InvalidValue

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

    `read` makes an `Answer` of the result, not timed; `given` names the facts that are arguments
    after the matrix, and `more` has keyword arguments; `graph` is the matrix: ``pattern``,
    ``weighted``, ``acyclic``, or ``FP32``, weighted in that type; `rule` is how answers are
    compared: ``equal``, ``close`` (each number), ``FP32`` (the same in that type) or ``sum`` (of
    differences). `prove` raises `CheckFailed` for a wrong answer, where right ones may differ;
    `why_not` returns why a graph is left out; `rounds` counts levels or searches; `call` is called
    in place of the algorithm.
    """

    algorithm: str
    options: str
    read: Callable[[Any], Answer]
    given: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    graph: str = "pattern"
    rule: str = "equal"
    prove: Callable[[Problem, Answer], object] | None = None
    why_not: Callable[[Summary], str] = lambda _facts: ""
    rounds: Callable[[Summary, Answer], int] | None = None
    call: Callable[[Matrix, Summary], Any] | None = None

    @property
    def key(self) -> str:
        """The algorithm and its options."""
        return f"{self.algorithm} {self.options}".strip()

    def run(self, A: Matrix, facts: Summary) -> Any:
        """Call the algorithm; timed."""
        if self.call is not None:
            return self.call(A, facts)
        return getattr(algorithms, self.algorithm)(A, *self.arguments(facts), **self.more)

    def arguments(self, facts: Summary) -> list[Any]:
        """Return the arguments after the matrix."""
        return [getattr(facts, name) for name in self.given]


def chosen(names: Sequence[str]) -> list[Question]:
    """Return the questions about some algorithms; ``all`` or an empty list means every one.

    Raises
    ------
    InvalidValue
        For an unknown name; the message lists the valid ones.
    """
    known = list(dict.fromkeys(q.algorithm for q in QUESTIONS))
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
    return [q for q in QUESTIONS if "all" in words or q.algorithm in words]


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
    dense = np.full(levels.shape, -1, values.dtype)
    dense[rows, cols] = values
    return Answer(dense)


def _trees(parents: Matrix) -> Answer:
    rows, cols, values = parents.to_coo()
    proof = sp.coo_array((values, (rows, cols)), shape=parents.shape)
    return Answer(np.array([depths(row) for row in _levels_of_each(parents).same]), proof)


def _two_sides(found: tuple[Any, list[int] | None]) -> Answer:
    sides, cycle = found
    return Answer(np.array([cycle is None]), cycle or sides.to_coo())


def _prove_tree(problem: Problem, answer: Answer) -> None:
    check.check_parents(problem.pattern, problem.facts.source, answer.proof)


def _prove_trees(problem: Problem, answer: Answer) -> None:
    check.check_parents_multi(problem.columns, problem.facts.sources, answer.proof)


def _prove_route(problem: Problem, answer: Answer) -> None:
    route, facts = answer.proof, problem.facts
    if (route[0], route[-1]) != (facts.source, facts.target):
        raise CheckFailed(
            f"shortest_path: a path from {route[0]} to {route[-1]}, not from {facts.source} to "
            f"{facts.target}."
        )
    for i, j in itertools.pairwise(route):
        if not problem.has_edge(i, j):
            raise CheckFailed(f"there is no edge {i} -> {j}.")


def _prove_sides(problem: Problem, answer: Answer) -> None:
    if answer.same[0]:
        check.check_sides(problem.columns, answer.proof)
    else:
        check.check_odd_cycle(problem.columns, answer.proof)


def _unconnected(facts: Summary) -> str:
    return "" if facts.connected else "not connected"


def _directed(facts: Summary) -> str:
    return "" if facts.symmetric else "directed"


def _many_outside(facts: Summary) -> str:
    return f"{facts.outside:,} vertices apart" if facts.outside > _OUTSIDE else ""


def _deepest(_facts: Summary, answer: Answer) -> int:
    return int(answer.same.max()) + 1


def _searches(_facts: Summary, answer: Answer) -> int:
    return len(answer.same)


#: Products of the matrix with a full vector of FP32, beside the algorithms, by their semirings.
PRODUCTS = ("plus_second", "plus_times")


def factors(n: int) -> Array:
    """Return the vector of a product, (n,), FP32, 1 to 2."""
    return (1 + np.arange(n) % 64 / 64).astype(np.float32)


def _product(name: str) -> Question:
    """Return a product as a question; the vector is made at the first run, before any is timed."""
    made: list[Any] = []

    def call(A: Matrix, _facts: Summary) -> Any:
        if not made or made[0] is not A:
            made[:] = [A, Vector.from_dense(factors(A.ncols), backend=A.backend)]
        return semiring[name](A @ made[1]).new()

    graph = "pattern" if name == "plus_second" else "FP32"
    return Question("product", f"{name} FP32", _dense(0), rule="FP32", why_not=_directed,
                    graph=graph, call=call)  # fmt: skip


_EACH, _OF_FEW, _OF_SAMPLE = "from each of 8", f"{FEW} vertices", f"{SAMPLED} sources"
_DRAWN = {"seed": SEED}

#: Every question, expensive ones last.
QUESTIONS = (
    Question("bfs_levels", "", _dense(-1), ("source",), rounds=_deepest),
    Question("bfs_parents", "", _tree, ("source",), prove=_prove_tree, rounds=_deepest),
    Question("bfs", "", lambda of: Answer(of[0].to_dense(-1), of[1].to_coo()), ("source",),
             prove=_prove_tree, rounds=_deepest),
    Question("count_shortest_paths", "", _dense(0), ("source",), rule="close"),
    Question("bfs_levels_joint", "from 8 at once", _dense(-1), ("sources",), rounds=_deepest),
    Question("bfs_levels_multi", _EACH, _levels_of_each, ("sources",), rounds=_deepest),
    Question("bfs_parents_multi", _EACH, _trees, ("sources",), prove=_prove_trees, rounds=_deepest),
    Question("neighborhood", f"within {RADIUS} edges", _dense(-1), ("source", "radius"),
             rounds=_deepest),
    Question("shortest_path", "", lambda route: Answer(np.array([len(route)]), route),
             ("source", "target"), prove=_prove_route),
    Question("pseudo_diameter", "", lambda found: Answer(np.array(found)), ("source",)),
    Question("pagerank", "", _dense(0), rule="sum", call=lambda A, f: algorithms.pagerank(
                 A, tol=RANK_ERROR / f.vertices, max_iter=1000, weight=False)),
    Question("connected_components", "fastsv", _dense(-1)),
    Question("connected_components", "bfs", _dense(-1), more={"method": "bfs"},
             why_not=_many_outside),
    Question("strongly_connected_components", "", _dense(-1)),
    Question("maximal_independent_set", f"seed {SEED}", _dense(False), more=_DRAWN),
    Question("bipartite_sides", "", _two_sides, prove=_prove_sides),
    Question("core_number", "", _dense(-1)),
    Question("closeness_centrality", _OF_FEW, _entries, ("few",), rule="close", rounds=_searches),
    Question("harmonic_centrality", _OF_FEW, _entries, ("few",), rule="close", rounds=_searches),
    Question("eccentricity", _OF_FEW, _entries, ("few",), why_not=_unconnected, rounds=_searches),
    Question("betweenness_centrality", _OF_SAMPLE, _dense(0), ("sampled",), _DRAWN, rule="close",
             rounds=lambda f, _: f.sampled),
    Question("edge_betweenness_centrality", _OF_SAMPLE, lambda A: Answer(A.to_csc()[2]),
             ("sampled",), _DRAWN, rule="close", rounds=lambda f, _: f.sampled),
    Question("topological_levels", "", _dense(-1), graph="acyclic", rounds=_deepest),
    Question("bellman_ford", "", _dense(-1), ("source",), graph="weighted"),
    Question("delta_stepping", "", _dense(-1), ("source",), graph="weighted"),
    Question("triangle_count", "", _number, why_not=_directed),
    Question("clustering", "", _dense(0), rule="close", why_not=_directed),
    Question("diameter", "", _number, why_not=_unconnected),
    *map(_product, PRODUCTS),
)  # fmt: skip
