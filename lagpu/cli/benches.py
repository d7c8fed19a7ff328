"""The commands that measure: lagpu bench and lagpu graph500."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lagpu.cli.options import (
    Backend,
    Forms,
    Grid,
    Kernel,
    Orientation,
    Output,
    Report,
    Seed,
    placed,
)

app = typer.Typer()


class Mode(StrEnum):
    """The ways to run loops."""

    FUSED = "fused"
    EAGER = "eager"
    BOTH = "both"


@app.command()
def bench(
    graphs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GRAPH]...",
            help="Graphs such as kron20e16 (which is kron:20:16) and road2048, or files; "
            "by default seven large graphs on a GPU, five small ones elsewhere.",
        ),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", "-b", metavar="NAME", help="auto, cpu, gpu or sim; repeatable."),
    ] = None,
    roots: Annotated[
        int | None,
        typer.Option(help="Searches; by default 32, 8 on road and delaunay.", show_default=False),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="Loops as one kernel, statement by statement, or both; "
            "by default fused if the backend can.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[Output] | None,
        typer.Option(metavar="WHAT", help="levels, parents, or paths; repeatable."),
    ] = None,
    kernel: Kernel = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Choose directions and kernels by this policy, as beamer or bfs2d:ratio=0.1; "
            "all, or repeatable.",
            show_default=False,
        ),
    ] = None,
    orientation: Orientation = Forms.AUTO,
    renumber: Annotated[
        bool,
        typer.Option("--renumber", help="Vertices of the files have names, or numbers with gaps."),
    ] = False,
    seed: Seed = None,
    json_file: Report = None,
    peers: Annotated[
        list[str] | None,
        typer.Option(
            help="all (that are installed), or some of scipy, networkx, python-graphblas, "
            "igraph, networkit, pylibcugraph, and for products cusparse; or FILE.json, recorded "
            "figures in the form of a report of lagpu bench; repeatable.",
            show_default=False,
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Instead of searches measure all, or these functions of lagpu.algorithms, "
            "beside the cpu backend; repeatable.",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="With --algorithm: runs; by default 3.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="With --algorithm: no more runs after these; by default 1.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            help="With --algorithm: a measurement ends after these seconds; by default 10.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="With --algorithm: seconds of the whole; by default 480.", show_default=False
        ),
    ] = None,
) -> None:
    """Measure searches from many roots, or every algorithm; results are proved and compared."""
    from lagpu.bench.suite import Plan
    from lagpu.cli.measure import measure, measure_family, only

    times = {"repeats": repeats, "seconds": seconds, "limit": limit, "budget": budget}
    searches = {
        "roots": roots, "mode": mode, "output": output, "kernel": kernel, "policy": policy,
        "orientation": orientation if orientation is Forms.CSC else None,
    }  # fmt: skip
    if algorithm:
        only("without --algorithm", searches)
        given = {name: value for name, value in times.items() if value is not None}
        places = tuple(backend or ("auto", "cpu"))
        what = (graphs or (), algorithm, places, peers or ())
        measure_family(what, given | {"renumber": renumber}, seed, json_file)
        return
    only("with --algorithm", times)
    plan = Plan(
        graphs=graphs or (),
        backends=tuple(dict.fromkeys(backend or ["auto"])),
        roots=roots,
        mode=None if mode is None else mode.value,
        outputs=tuple(dict.fromkeys(one.value for one in output or [Output.LEVELS])),
        kernel=kernel,
        policies=tuple(dict.fromkeys(policy or ())),
        orientation=orientation.value,
        seed=seed,
        peers=peers or (),
        renumber=renumber,
    )
    measure(plan, json_file)


@app.command()
def graph500(
    scale: Annotated[int, typer.Option(help="2**SCALE vertices.")],
    edge_factor: Annotated[int, typer.Option(help="Tuples per vertex.")] = 16,
    backend: Backend = "auto",
    grid: Grid = None,
    roots: Annotated[
        int | None,
        typer.Option(
            help="Searches; by default 64, or one from each vertex with an edge to another.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    json_file: Report = None,
) -> None:
    """Run the Graph500 benchmark: construction, and searches proved by its five rules."""
    from lagpu.cli.measure import measure_graph500

    place = placed(backend, grid)
    measure_graph500(scale, edge_factor, backend=place, roots=roots, seed=seed, json_file=json_file)
