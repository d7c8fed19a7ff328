"""Cases of every algorithm: its rows of the table, on graphs of odd sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.catalog import ALGORITHMS, RADIUS, SAMPLED, SOURCES, Algorithm
from lagpu.core import Matrix, Vector
from lagpu.dtypes import BOOL, INT64
from lagpu.errors import CheckFailed, LagpuError
from lagpu.loops.loop import eager
from lagpu.selftest.cases import DEEP, GRAPHS, Case, Difference, Graph, difference

_SMALL = 32  # most vertices of a graph for an algorithm that searches from each
# On a deep graph a backend may search from each of these sources by itself.
_DEEP = ("bfs_levels_multi", "bfs_parents_multi", "betweenness_estimate")
_BRIEF = GRAPHS[3:4]


@dataclass(eq=False)
class Inputs:
    """What algorithms are called on: matrices by `Algorithm.graph`, and arguments by their names.

    `graphs` are any, one with each edge in both directions, one with lengths, one with lengths
    above 0, and one without cycles.
    """

    graphs: Mapping[str, Matrix]
    source: int
    target: int
    sources: list[int]

    @classmethod
    def of(cls, A: Matrix, source: int) -> Inputs:
        n = A.nrows
        both = A.ewise_add(A.T, "max").new()
        above = A.select("triu", 2).new()  # the path through the hub's leaves would be long
        graphs = {"pattern": A, "undirected": both, "weighted": A, "acyclic": above}
        graphs["positive"] = A.select("valuene", 0).new()
        some = range(0, n, max(1, n // (SOURCES - 2)))
        return cls(graphs, source, n // 2, sorted({source, *some}))

    def __post_init__(self) -> None:
        self.vertices, self.radius = self.graphs["pattern"].nrows, RADIUS
        self.few, self.sampled = sorted({self.source, self.target}), min(SAMPLED, self.vertices)


def outcome(row: Algorithm, inputs: Inputs) -> Any:
    """Return the part of a proved result that all right answers share, or an error's text."""
    A = inputs.graphs[row.graph]
    try:
        found = row.run(A, inputs)
        row.prove(A, inputs, found)
    except CheckFailed:
        raise
    except LagpuError as error:
        return f"{type(error).__name__}: {error}"
    parts = found if isinstance(found, tuple) else (found,)
    types = tuple(x.dtype.name for x in parts if isinstance(x, (Matrix, Vector)))
    if row.rule == "sum":
        return types, found.to_coo()[0]
    answer = row.read(found)
    return types, found if answer.proof is None else answer.same


def cases() -> Iterator[Case]:
    """Yield a case for each row of the table of algorithms, on every graph."""
    for row in ALGORITHMS:
        graphs = [graph for graph in GRAPHS if graph.n <= _SMALL or not row.slow]
        more = [DEEP] if row.name in _DEEP else []
        yield case(row, [*graphs, *more])


def case(row: Algorithm, graphs: Sequence[Graph]) -> Case:
    return Case("algorithms", row.key, _run(row, graphs), _run(row, _BRIEF))


def _run(row: Algorithm, graphs: Sequence[Graph]) -> Callable[[Backend, Backend], str]:
    """Return a run whose sources take turns with the types; one search also runs eagerly."""
    of_source = {"source", "sources", "few"} & {*row.given}

    def run(place: Backend, oracle: Backend) -> str:
        count = 0
        for k, graph in enumerate(graphs):
            sources = [graph.n // 2] if graph is DEEP else graph.sources() if of_source else [0]
            if len(sources) == 1:
                sources *= 2  # one for each type
            for j, source in enumerate(sources):
                dtype = (BOOL, INT64)[j % 2]
                where = f"{graph.name}, {dtype}, from {source}"
                try:
                    with eager():  # statement by statement
                        right = outcome(row, Inputs.of(graph.matrix(dtype, oracle), source))
                    inputs = Inputs.of(graph.matrix(dtype, place), source)
                    differs = difference(outcome(row, inputs), right, rounded=True)
                    if not differs and j == k % 2:
                        where += ", eager"
                        with eager():
                            differs = difference(outcome(row, inputs), right, rounded=True)
                except Exception as error:
                    raise Difference(f"{where}: {type(error).__name__}: {error}") from error
                if differs:
                    raise Difference(f"{where}: {differs}")
                count += 1
        return f"{count} results proved, each fused, {len(graphs)} eager"

    return run
