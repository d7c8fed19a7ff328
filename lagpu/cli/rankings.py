"""Commands that give every vertex a number: ``lagpu sssp``, ``pagerank``, ``bc``, ``closeness``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagpu.cli.command import analysis
from lagpu.cli.options import SHORTEST, SeedOfBoth, Source

if TYPE_CHECKING:
    from lagpu.cli.analysis import Job
    from lagpu.core.matrix import Matrix
    from lagpu.core.vector import Vector

app = typer.Typer()

_MOST_ITERATIONS = 1_000_000  # more would seem endless


@analysis(app)
def sssp(
    source: Source,
    delta: Annotated[
        float | None,
        typer.Option(help="Step of delta-stepping; without it Bellman-Ford.", show_default=False),
    ] = None,
) -> Job:
    """Find the distances from one vertex over the weights of a graph.

    The shorter of two lengths counts for an edge that the file gives twice.
    """
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job, ranking

    return Job(
        "sssp",
        lambda A, start: algorithms.sssp(A, start, delta=delta),
        lambda A, found, start: checkers.check_distances(A, start, found),
        lambda found, start: {
            "source": start,
            "reached": found.nvals,
            "farthest": ranking(found),
        },
        dup_op=SHORTEST,
        vertices={"--source": source},
    )


@analysis(app)
def pagerank(
    alpha: Annotated[float, typer.Option(help="Probability of following an edge.")] = 0.85,
    tol: Annotated[float, typer.Option(help="Stop at a change below n * TOL and 0.001.")] = 1e-6,
    max_iter: Annotated[
        int, typer.Option(help="Largest number of iterations.", min=0, max=_MOST_ITERATIONS)
    ] = 100,
    weight: Annotated[
        bool, typer.Option("--weight/--no-weight", help="Whether values are weights.")
    ] = True,
) -> Job:
    """Rank the vertices of a graph by PageRank."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job, ranking

    how: dict[str, Any] = {"alpha": alpha, "tol": tol, "weight": weight}
    return Job(
        "pagerank",
        lambda A: algorithms.pagerank(A, max_iter=max_iter, **how),
        lambda A, ranks: checkers.check_pagerank(A, ranks, **how),
        lambda ranks: {"pagerank": ranking(ranks)},
    )


@analysis(app)
def bc(
    k: Annotated[
        int | None,
        typer.Option("--sources", "-k", help="Estimate from K sources.", show_default=False),
    ] = None,
    normalized: Annotated[
        bool, typer.Option("--normalized/--sums", help="Shares of pairs, or sums over them.")
    ] = True,
    endpoints: Annotated[
        bool, typer.Option("--endpoints", help="Count a path at its ends too.")
    ] = False,
    batch: Annotated[
        int | None,
        typer.Option(
            help="Sources at once; by default as many as suit the graph and the memory.",
            min=1,
            show_default=False,
        ),
    ] = None,
    one_degree: Annotated[
        bool,
        typer.Option("--one-degree", help="Fold branches that are trees first; no --sources."),
    ] = False,
    pieces: Annotated[
        int | None,
        typer.Option(
            help="Pieces of the grid that share a copy of the graph; by default the fewest.",
            min=1,
            show_default=False,
        ),
    ] = None,
    seed: SeedOfBoth = None,
) -> Job:
    """Rank the vertices of a graph by betweenness centrality."""
    import random

    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.algorithms.betweenness import batch_size, is_directed, sample
    from lagpu.algorithms.inputs import random_seed
    from lagpu.backends.guard import is_overridden
    from lagpu.cli.analysis import Job, ranking
    from lagpu.errors import InvalidValue

    seeds: list[int] = []  # the one of all runs and of the proof

    def run(A: Matrix) -> tuple[int | None, Vector, Vector | None]:
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
        checkers.check_betweenness(
            A,
            found[1],
            error=found[2],
            normalized=normalized,
            endpoints=endpoints,
            directed=is_directed(A),
            sources=None if k is None else random.Random(seeds[0]).sample(range(A.nrows), k),
        )

    def tell(found: tuple[int | None, Vector, Vector | None]) -> dict[str, Any]:
        size, centrality, error = found
        lines = ranking(centrality)
        facts: dict[str, Any] = {"sources": k or centrality.size, "at_once": size}
        if size is None:
            del facts["at_once"]
        facts["betweenness"] = lines
        if error is not None and k != 1:  # one source has no standard error
            facts["standard_error"] = [[v, error.get(v)] for v, _ in lines]
        return facts

    seed_for = "" if k is None else "the choice of sources"
    return Job("betweenness_centrality", run, prove, tell, lambda f: f[1], seed_for=seed_for)


@analysis(app)
def closeness(
    harmonic: Annotated[
        bool, typer.Option("--harmonic", help="Sum of reciprocal distances instead.")
    ] = False,
) -> Job:
    """Rank the vertices of a graph by closeness centrality."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job, ranking

    name = "harmonic" if harmonic else "closeness"
    return Job(
        f"{name}_centrality",
        algorithms.harmonic_centrality if harmonic else algorithms.closeness_centrality,
        lambda A, found: checkers.check_remoteness(
            A, found, "harmonic" if harmonic else "closeness"
        ),
        lambda found: {name: ranking(found)},
    )
