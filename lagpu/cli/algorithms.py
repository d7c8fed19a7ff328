"""The commands that run one algorithm: each maps its own options to a `Job`.

`lagpu.cli.run` runs the job of such a command.
"""

import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from lagpu import algorithms
from lagpu.algorithms.betweenness import batch_size, is_directed, sample
from lagpu.algorithms.inputs import random_seed
from lagpu.backends.guard import is_overridden
from lagpu.cli.commands import (
    OPTIONS,
    REQUIRED,
    SHORTEST,
    Declared,
    add,
    flag,
    option,
    row,
    run,
    source,
    value,
)
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed, InvalidValue

TOP = 10  # vertices of a ranking
_MOST_ITERATIONS = 1_000_000  # more would seem endless
_OPTIONS = (
    "backend grid kernel policy orientation directed renumber seed save check step_file as_json"
)


def _same(result: Any) -> Any:
    return result


@dataclass(frozen=True, eq=False)
class Job:
    """The algorithm of a command, with its proof and its output.

    Attributes
    ----------
    algorithm : str
        Name of a function of `lagpu.algorithms`.
    facts : callable
        Returns the facts to print of (result, *vertices); a list of pairs is a ranking of vertices.
    more : dict
        Further arguments of the algorithm.
    vertices : dict
        The vertices that the user names, by option: the arguments after the matrix.
    call : callable, optional
        Is called with (matrix, *vertices) in place of the algorithm.
    prove : callable, optional
        Checks (matrix, *vertices, result) in place of the checker in `lagpu.cli.check.PROOFS`.
    vector : callable
        Returns what is saved of a result, or None.
    of_vertices : bool
        Whether the values of the result are vertices.
    dup_op : str, optional
        Combines the weights of an edge that a file gives twice; by default they are summed.
    seed_for : str
        What the seed is for, besides a generated graph.
    """

    algorithm: str
    facts: Callable[..., dict[str, Any]] = lambda _: {}
    more: dict[str, Any] = field(default_factory=dict)
    vertices: dict[str, str] = field(default_factory=dict)
    call: Callable[..., Any] | None = None
    prove: Callable[..., Any] | None = None
    vector: Callable[[Any], Any] = _same
    of_vertices: bool = False
    dup_op: str | None = None
    seed_for: str = ""

    def run(self, A: Matrix, *vertices: Any) -> Any:
        """Return the result of the algorithm."""
        call = self.call or getattr(algorithms, self.algorithm)
        return call(A, *vertices, **self.more)


def ranking(v: Vector) -> list[list[Any]]:
    """Return the vertices of the largest values, largest first, as [vertex, value]."""
    indices, values = v.to_coo()
    order = np.argsort(-values.astype(float), kind="stable")[:TOP]
    return [[int(indices[k]), values[k].item()] for k in order if np.isfinite(values[k])]


def _algorithm(
    *, save: bool = True, **own: Declared
) -> Callable[[Callable[..., Job]], Callable[..., Job]]:
    """Make a command of a function that returns a `Job` for the values of its own options."""

    def register(job_of: Callable[..., Job]) -> Callable[..., Job]:
        before = {name: of for name, of in own.items() if name not in _OPTIONS.split()}
        shared = {name: OPTIONS[name] for name in _OPTIONS.split() if save or name != "save"}

        def command(**given: Any) -> None:
            job = job_of(**{name: given[name] for name in own})
            run("run.run", {x: given[x] for x in ("graph", *shared)} | {"job": job})

        options = {"graph": OPTIONS["graph"]} | before | shared | own
        add(job_of.__name__, inspect.getdoc(job_of) or "", options, command)
        return job_of

    return register


_SOURCE = value(str, REQUIRED, "Vertex to start from.", "--source", "-s", metavar="VERTEX")
_SEED = option(int, "Seed of a generated graph, and of the algorithm.", min=0)


@_algorithm(source=_SOURCE, delta=option(float, "Step of delta-stepping; without it Bellman-Ford."))
def sssp(source: str, delta: float | None) -> Job:
    """Find the distances from one vertex over the weights of a graph.

    The shorter of two lengths counts for an edge that the file gives twice.
    """

    def facts(found: Vector, start: int) -> dict[str, Any]:
        return {"source": start, "reached": found.nvals, "farthest": ranking(found)}

    vertices = {"--source": source}
    return Job("sssp", facts, {"delta": delta}, vertices, dup_op=SHORTEST)


@_algorithm(
    alpha=value(float, 0.85, "Probability of following an edge."),
    tol=value(float, 1e-6, "Stop at a change below n * TOL and 0.001."),
    max_iter=value(int, 100, "Largest number of iterations.", min=0, max=_MOST_ITERATIONS),
    weight=value(bool, True, "Whether values are weights.", "--weight/--no-weight"),
)
def pagerank(max_iter: int, **how: Any) -> Job:
    """Rank the vertices of a graph by PageRank."""

    def prove(A: Matrix, ranks: Vector) -> None:
        from lagpu import check

        check.check_pagerank(A, ranks, **how)

    return Job(
        "pagerank",
        lambda ranks: {"pagerank": ranking(ranks)},
        {"max_iter": max_iter, **how},
        prove=prove,
    )


@_algorithm(
    k=option(int, "Estimate from K sources.", "--sources", "-k"),
    normalized=value(bool, True, "Shares of pairs, or sums over them.", "--normalized/--sums"),
    endpoints=flag("--endpoints", "Count a path at its ends too."),
    batch=option(
        int, "Sources at once; by default as many as suit the graph and the memory.", min=1
    ),
    one_degree=flag("--one-degree", "Fold branches that are trees first; no --sources."),
    pieces=option(
        int, "Pieces of the grid that share a copy of the graph; by default the fewest.", min=1
    ),
    seed=_SEED,
)
def bc(
    k: int | None,
    normalized: bool,
    endpoints: bool,
    batch: int | None,
    one_degree: bool,
    pieces: int | None,
    seed: int | None,
) -> Job:
    """Rank the vertices of a graph by betweenness centrality."""
    seeds: list[int] = []  # the one of all runs and of the proof

    def call(A: Matrix) -> tuple[int | None, Vector, Vector | None]:
        # Several sources are a matrix, whose products take no kernel.
        is_single = is_overridden(A.backend)
        sources = A.nrows if k is None else k
        if batch is not None and batch > sources:
            raise InvalidValue(f"--batch: {batch} at once of {sources} sources. Give fewer.")
        if not seeds:
            seeds.append(random_seed(seed, "bc", A))
        size = batch or (1 if is_single else None)
        if size is None and A.backend.capabilities.clusters is None:  # else each has its own
            size = batch_size(A, sample(A, k, seeds[0]))
        how: dict[str, Any] = {
            "endpoints": endpoints, "seed": seeds[0], "batch": size, "pieces": pieces
        }  # fmt: skip
        if k is None or one_degree:
            how["one_degree"] = one_degree
            return size, algorithms.betweenness_centrality(A, k, normalized, **how), None
        return size, *algorithms.betweenness_estimate(A, k, normalized, **how)

    def prove(A: Matrix, found: tuple[int | None, Vector, Vector | None]) -> None:
        from lagpu import check

        check.check_betweenness(
            A,
            found[1],
            error=found[2],
            normalized=normalized,
            endpoints=endpoints,
            directed=is_directed(A),
            sources=None if k is None else random.Random(seeds[0]).sample(range(A.nrows), k),
        )

    def facts(found: tuple[int | None, Vector, Vector | None]) -> dict[str, Any]:
        size, centrality, error = found
        lines = ranking(centrality)
        said: dict[str, Any] = {"sources": k or centrality.size}
        said |= {} if size is None else {"at_once": size}
        said["betweenness"] = lines
        if error is not None and k != 1:  # one source has no standard error
            said["standard_error"] = [[v, error.get(v)] for v, _ in lines]
        return said

    return Job(
        "betweenness_centrality",
        facts,
        call=call,
        prove=prove,
        vector=lambda found: found[1],
        seed_for="" if k is None else "the choice of sources",
    )


@_algorithm(harmonic=flag("--harmonic", "Sum of reciprocal distances instead."))
def closeness(harmonic: bool) -> Job:
    """Rank the vertices of a graph by closeness centrality."""
    name = "harmonic" if harmonic else "closeness"
    return Job(f"{name}_centrality", lambda found: {name: ranking(found)})


class Method(StrEnum):
    """The methods for connected components."""

    FASTSV = "fastsv"
    BFS = "bfs"


@_algorithm(
    strong=flag("--strong", "Components of vertices that reach each other."),
    method=option(Method, "Method for weak components; by default fastsv."),
)
def components(strong: bool, method: Method | None) -> Job:
    """Find the connected components of a graph."""
    if strong and method is not None:
        raise InvalidValue("--method: is for weak components. Leave out it or --strong.")

    def facts(labels: Vector) -> dict[str, Any]:
        sizes = np.unique(labels.to_dense(), return_counts=True)[1]
        alone = int(np.count_nonzero(sizes == 1))
        return {"components": len(sizes), "largest": int(sizes.max()), "of_one_vertex": alone}

    if strong:
        return Job("strongly_connected_components", facts, of_vertices=True)
    more = {"method": (method or Method.FASTSV).value}
    return Job("connected_components", facts, more, of_vertices=True)


@_algorithm(
    save=False,
    pseudo=flag("--pseudo", "Estimate by a few searches: two vertices far apart."),
    source=source("Where --pseudo begins; by default 0."),
)
def diameter(pseudo: bool, source: str | None) -> Job:
    """Find the largest distance between two vertices of a graph."""
    if source is not None and not pseudo:
        raise InvalidValue("--source: is where --pseudo begins. Leave it out, or add --pseudo.")

    def prove(A: Matrix, *given: Any) -> None:
        from lagpu import check

        length, begin, end = given[-1]
        route = algorithms.shortest_path(A, begin, end)
        check.check_route(A, begin, end, route)
        if len(route) - 1 != length:
            raise CheckFailed(
                f"pseudo_diameter: {length}, but the path has {len(route) - 1} edges."
            )

    if not pseudo:
        return Job("diameter", lambda found: {"diameter": found})
    return Job(
        "pseudo_diameter",
        lambda found, *_: dict(zip(("pseudo_diameter", "begin", "end"), found, strict=True)),
        vertices={} if source is None else {"--source": source},
        prove=prove,
    )


@_algorithm(
    save=False,
    source=_SOURCE,
    target=value(str, REQUIRED, "Vertex to reach.", "--target", "-t", metavar="VERTEX"),
)
def path(source: str, target: str) -> Job:
    """Find a path with fewest edges between two vertices."""
    return Job(
        "shortest_path",
        lambda found, *_: {"length": len(found) - 1, "path": found},
        vertices={"--source": source, "--target": target},
    )


@_algorithm()
def bipartite() -> Job:
    """Find the two sides of a bipartite graph, or an odd cycle."""

    def facts(found: tuple[Any, Any]) -> dict[str, Any]:
        sides, cycle = found
        if sides is None:
            return {"bipartite": False, "odd_cycle": cycle}
        right = int(sides.to_dense().sum())
        return {"bipartite": True, "side_0": sides.size - right, "side_1": right}

    return Job("bipartite_sides", facts, vector=lambda found: found[0])


@_algorithm()
def cores() -> Job:
    """Find the core number of each vertex of a graph."""

    def facts(found: Vector) -> dict[str, Any]:
        numbers = found.to_dense()
        largest = int(numbers.max())
        return {"largest_core": largest, "vertices_in_it": int((numbers == largest).sum())}

    return Job("core_number", facts)


@_algorithm(share=flag("--clustering", "Clustering coefficients instead."))
def triangles(share: bool) -> Job:
    """Count the triangles of an undirected graph, and of each vertex."""

    def facts(found: Vector) -> dict[str, Any]:
        total = found.reduce("plus").new().value
        if share:
            return {"mean": total / found.size, "clustering": ranking(found)}
        return {"triangles": total // 3, "triangles_of_vertex": ranking(found)}

    return Job("clustering" if share else "triangles", facts)


@_algorithm()
def order() -> Job:
    """Find the topological levels of a directed acyclic graph."""

    def facts(found: Vector) -> dict[str, Any]:
        sizes = np.bincount(found.to_dense())
        return {"levels": len(sizes), "widest_level": int(sizes.max())}

    return Job("topological_levels", facts)


@_algorithm(seed=_SEED)
def independent(seed: int | None) -> Job:
    """Find a maximal independent set of a graph."""
    return Job(
        "maximal_independent_set",
        lambda found: {"members": found.nvals},
        {"seed": seed},
        seed_for="the order of the vertices",
    )


row(
    "list",
    "graphs.list_algorithms",
    "List all algorithms of the library, with one line each.",
    "as_json",
)
