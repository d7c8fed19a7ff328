"""The commands and their options; each command imports its body when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagpu.cli.options import (
    FILES,
    AsJson,
    Backend,
    Check,
    Directed,
    Each,
    Forms,
    Graph,
    Grid,
    Kernel,
    OneSource,
    Orientation,
    Output,
    Policy,
    Renumber,
    Report,
    Save,
    Seed,
    Sources,
    Steps,
    placed,
)

app = typer.Typer(
    name="lagpu",
    help="Graph search as masked sparse linear algebra, on CPU and GPU.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from lagpu.versions import __version__

        print(f"lagpu {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error arose; any command takes it.")
    ] = False,
) -> None:
    """Graph search as masked sparse linear algebra, on CPU and GPU."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def bfs(
    graph: Graph,
    source: OneSource = None,
    sources: Sources = None,
    each: Each = False,
    backend: Backend = "auto",
    grid: Grid = None,
    output: Annotated[
        Output,
        typer.Option(metavar="WHAT", help="levels, parents, or paths: numbers of shortest paths."),
    ] = Output.LEVELS,
    kernel: Kernel = None,
    policy: Policy = None,
    orientation: Orientation = Forms.AUTO,
    directed: Directed = None,
    renumber: Renumber = False,
    seed: Seed = None,
    save: Save = None,
    check: Check = False,
    trace_file: Annotated[
        Path | None,
        typer.Option(
            "--trace", help="Write the cost of each statement: .html or .json.", show_default=False
        ),
    ] = None,
    step_file: Steps = None,
    as_json: AsJson = False,
) -> None:
    """Search a graph from one vertex or several, and show the cost of each level."""
    from lagpu.cli.search import Request, search
    from lagpu.cli.start import Begin

    begin = Begin(source, sources, each)
    place = placed(backend, grid)
    how = (output.value, kernel, policy, orientation.value, directed, renumber, seed)
    request = Request(graph, begin, place, *how)
    files = {"trace_file": trace_file, "step_file": step_file}
    search(request, check=check, save=save, as_json=as_json, **files)


@app.command()
def info(
    graph: Graph,
    grid: Grid = None,
    directed: Directed = None,
    renumber: Renumber = False,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Describe a graph and the memory it needs."""
    from lagpu.cli.describe import describe

    place = "cpu" if grid is None else placed("auto", grid)
    describe(graph, place, directed=directed, renumber=renumber, seed=seed, as_json=as_json)


@app.command()
def convert(
    graph: Graph,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=f"{FILES}.")],
    directed: Directed = None,
    renumber: Renumber = False,
    ids: Annotated[
        Path | None,
        typer.Option(help="Write the id of each vertex: .npz, .txt or .csv.", show_default=False),
    ] = None,
    seed: Seed = None,
) -> None:
    """Write a graph to a file of another format, by the suffix."""
    from lagpu.cli.describe import convert

    convert(graph, out, directed=directed, renumber=renumber, ids=ids, seed=seed)


@app.command()
def generate(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="Such as kron:16 or road:512.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help=f"{FILES}.")],
    seed: Seed = None,
) -> None:
    """Make a graph and write it to a file in the format of the suffix."""
    from lagpu.cli.describe import make

    make(spec, out, seed=seed)


Result = Annotated[Path | None, typer.Option(help="A saved result.", show_default=False)]


@app.command()
def check(
    graph: Graph,
    source: OneSource = None,
    sources: Sources = None,
    each: Each = False,
    levels: Result = None,
    parents: Result = None,
    paths: Result = None,
    distances: Result = None,
    components: Result = None,
    strong: Annotated[
        Path | None, typer.Option(help="A saved result: strong components.", show_default=False)
    ] = None,
    sides: Result = None,
    cores: Result = None,
    order: Result = None,
    independent: Result = None,
    triangles: Result = None,
    clustering: Result = None,
    pagerank: Result = None,
    betweenness: Result = None,
    closeness: Result = None,
    harmonic: Result = None,
    directed: Directed = None,
    renumber: Renumber = False,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Prove the results in files, which --save or any other program wrote.

    The options of the algorithm are taken to be the defaults.
    """
    # every option with a path is a result
    given = {name: path for name, path in locals().items() if isinstance(path, Path)}
    from lagpu.cli.check import prove
    from lagpu.cli.start import Begin

    begin = Begin(source, sources, each)
    prove(
        graph,
        begin,
        given,
        directed=directed,
        renumber=renumber,
        seed=seed,
        as_json=as_json,
    )


@app.command()
def crosscheck(
    algorithm: Annotated[
        str,
        typer.Argument(metavar="ALGORITHM", help="Name of a command: bfs, sssp, pagerank, ..."),
    ],
    graph: Graph,
    source: OneSource = None,
    backends: Annotated[
        str,
        typer.Option(
            help="The oracle, and the backends compared with it; for a single backend, its fused "
            "loops are compared with its eager ones.",
        ),
    ] = "cpu,gpu",
    output: Annotated[
        Output | None,
        typer.Option(
            metavar="WHAT", help="For bfs: levels, parents, or paths.", show_default=False
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="VERTEX", help="For path.", show_default=False),
    ] = None,
    kernel: Kernel = None,
    policy: Policy = None,
    directed: Directed = None,
    renumber: Renumber = False,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Run an algorithm on several backends, and stop at the first statement that differs."""
    from lagpu.cli.compare import call, compare

    wanted = None if output is None else output.value
    compare(
        call(algorithm, source, target=target, output=wanted, seed=seed),
        graph,
        backends,
        kernel=kernel,
        policy=policy,
        directed=directed,
        renumber=renumber,
        seed=seed,
        as_json=as_json,
    )


@app.command()
def selftest(
    backend: Backend = "auto",
    grid: Grid = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One case of each kind: seconds instead of minutes.")
    ] = False,
    json_file: Report = None,
) -> None:
    """Prove an installation: every kernel, operation and algorithm against python-graphblas."""
    from lagpu.cli.check import prove_installation

    prove_installation(placed(backend, grid), json_file, quick=quick)


@app.command()
def backends(as_json: AsJson = False) -> None:
    """List the backends, and why a backend is unavailable."""
    from lagpu.cli.describe import list_backends

    list_backends(as_json=as_json)
