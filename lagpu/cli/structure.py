"""Commands for the structure of a graph: ``lagpu components``, ``diameter`` and more."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lagpu.cli.command import analysis
from lagpu.cli.options import AsJson, SeedOfBoth, Source
from lagpu.errors import CheckFailed, InvalidValue

if TYPE_CHECKING:
    from lagpu.cli.analysis import Job
    from lagpu.core.matrix import Matrix
    from lagpu.core.vector import Vector

app = typer.Typer()


class Method(StrEnum):
    """The methods for connected components."""

    FASTSV = "fastsv"
    BFS = "bfs"


@analysis(app)
def components(
    strong: Annotated[
        bool, typer.Option("--strong", help="Components of vertices that reach each other.")
    ] = False,
    method: Annotated[
        Method | None,
        typer.Option(help="Method for weak components; by default fastsv.", show_default=False),
    ] = None,
) -> Job:
    """Find the connected components of a graph."""
    import numpy as np

    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job

    if strong and method is not None:
        raise InvalidValue("--method: is for weak components. Leave out it or --strong.")

    def run(A: Matrix) -> Vector:
        if strong:
            return algorithms.strongly_connected_components(A)
        return algorithms.connected_components(A, method=(method or Method.FASTSV).value)

    def tell(labels: Vector) -> dict[str, Any]:
        sizes = np.unique(labels.to_dense(), return_counts=True)[1]
        alone = int(np.count_nonzero(sizes == 1))
        return {"components": len(sizes), "largest": int(sizes.max()), "of_one_vertex": alone}

    return Job(
        "strongly_connected_components" if strong else "connected_components",
        run,
        lambda A, labels: checkers.check_components(A, labels, strong=strong),
        tell,
        of_vertices=True,
    )


@analysis(app, save=False)
def diameter(
    pseudo: Annotated[
        bool, typer.Option("--pseudo", help="Estimate by a few searches: two vertices far apart.")
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            "-s",
            metavar="VERTEX",
            help="Where --pseudo begins; by default 0.",
            show_default=False,
        ),
    ] = None,
) -> Job:
    """Find the largest distance between two vertices of a graph."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job

    if source is not None and not pseudo:
        raise InvalidValue("--source: is where --pseudo begins. Leave it out, or add --pseudo.")

    def prove_pseudo(A: Matrix, found: tuple[int, int, int], *_: int) -> None:
        length, begin, end = found
        route = algorithms.shortest_path(A, begin, end)
        checkers.check_route(A, begin, end, route)
        if len(route) - 1 != length:
            raise CheckFailed(
                f"pseudo_diameter: {length}, but the path has {len(route) - 1} edges."
            )

    exact = Job(
        "diameter",
        algorithms.diameter,
        checkers.check_diameter,
        lambda found: {"diameter": found},
        lambda _: None,
    )
    estimate = Job(
        "pseudo_diameter",
        lambda A, start=0: algorithms.pseudo_diameter(A, start),
        prove_pseudo,
        lambda found, *_: dict(zip(("pseudo_diameter", "begin", "end"), found, strict=True)),
        lambda _: None,
        vertices={} if source is None else {"--source": source},
    )
    return estimate if pseudo else exact


@analysis(app, save=False)
def path(
    source: Source,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="VERTEX", help="Vertex to reach.")
    ],
) -> Job:
    """Find a path with fewest edges between two vertices."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job

    return Job(
        "shortest_path",
        algorithms.shortest_path,
        lambda A, found, start, end: checkers.check_route(A, start, end, found),
        lambda found, *_: {"length": len(found) - 1, "path": found},
        lambda _: None,
        vertices={"--source": source, "--target": target},
    )


@analysis(app)
def bipartite() -> Job:
    """Find the two sides of a bipartite graph, or an odd cycle."""
    from lagpu import algorithms
    from lagpu.cli.analysis import Job
    from lagpu.cli.check import prove_sides

    def tell(found: tuple[Any, Any]) -> dict[str, Any]:
        sides, cycle = found
        if sides is None:
            return {"bipartite": False, "odd_cycle": cycle}
        right = int(sides.to_dense().sum())
        return {"bipartite": True, "side_0": sides.size - right, "side_1": right}

    run = algorithms.bipartite_sides
    return Job("bipartite_sides", run, prove_sides, tell, lambda found: found[0])


@analysis(app)
def cores() -> Job:
    """Find the core number of each vertex of a graph."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job

    def tell(found: Vector) -> dict[str, Any]:
        numbers = found.to_dense()
        largest = int(numbers.max())
        return {"largest_core": largest, "vertices_in_it": int((numbers == largest).sum())}

    return Job("core_number", algorithms.core_number, checkers.check_core_numbers, tell)


@analysis(app)
def triangles(
    share: Annotated[
        bool,
        typer.Option("--clustering", help="Clustering coefficients instead."),
    ] = False,
) -> Job:
    """Count the triangles of an undirected graph, and of each vertex."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job, ranking

    if share:
        return Job(
            "clustering",
            algorithms.clustering,
            checkers.check_clustering,
            lambda found: {
                "mean": found.reduce("plus").new().value / found.size,
                "clustering": ranking(found),
            },
        )
    return Job(
        "triangles",
        algorithms.triangles,
        checkers.check_triangles,
        lambda found: {
            "triangles": found.reduce("plus").new().value // 3,
            "triangles_of_vertex": ranking(found),
        },
    )


@analysis(app)
def order() -> Job:
    """Find the topological levels of a directed acyclic graph."""
    import numpy as np

    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job

    def tell(found: Vector) -> dict[str, Any]:
        sizes = np.bincount(found.to_dense())
        return {"levels": len(sizes), "widest_level": int(sizes.max())}

    return Job(
        "topological_levels",
        algorithms.topological_levels,
        checkers.check_topological_levels,
        tell,
    )


@analysis(app)
def independent(
    seed: SeedOfBoth = None,
) -> Job:
    """Find a maximal independent set of a graph."""
    from lagpu import algorithms
    from lagpu import check as checkers
    from lagpu.cli.analysis import Job

    return Job(
        "maximal_independent_set",
        lambda A: algorithms.maximal_independent_set(A, seed=seed),
        checkers.check_independent_set,
        lambda found: {"members": found.nvals},
        seed_for="the order of the vertices",
    )


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List all algorithms of the library, with one line each."""
    from lagpu.cli.analysis import list_algorithms

    list_algorithms(as_json=as_json)
