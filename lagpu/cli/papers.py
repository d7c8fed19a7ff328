"""``lagpu paper``: the experiments of the papers, run again."""

from __future__ import annotations

from typing import Annotated

import typer

from lagpu.cli.options import Backend, Report, Seed

app = typer.Typer()


@app.command()
def paper(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PAPER",
            help="000 (hiragushi), 001 (vbfs), 002 (mgbc or bfs2d), 003 (turbobfs), 004 (kepler).",
        ),
    ],
    table: Annotated[
        str | None, typer.Option(metavar="N", help="This table alone.", show_default=False)
    ] = None,
    figure: Annotated[
        str | None, typer.Option(metavar="N", help="This figure alone.", show_default=False)
    ] = None,
    section: Annotated[
        str | None, typer.Option(metavar="N", help="This section alone.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small graphs and few searches.")] = False,
    backend: Backend = "auto",
    graph: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="The file of the paper's graph of this name; repeatable.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This graph alone; repeatable.", show_default=False),
    ] = None,
    roots: Annotated[
        int | None,
        typer.Option(help="Searches a graph; by default the paper's.", show_default=False),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            help="What a GPU's arrays hold at most in a search, the graph included.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    json_file: Report = None,
) -> None:
    """Run a paper's tables and figures again: its variants, its metric, its figures beside ours."""
    from lagpu.cli.rerun import files_of, rerun
    from lagpu.errors import InvalidValue
    from lagpu.papers.run import Request

    files = files_of(graph or ())
    if memory is not None and not 0 < memory < 1e9:
        raise InvalidValue(f"--memory: {memory:g} GB. Give more than 0, as 12.")
    limit = None if memory is None else int(memory * 1e9)
    request = Request(backend, quick, roots, seed, files, tuple(only or ()), limit)
    part = {"table": table, "figure": figure, "section": section}
    rerun(name, part, request, json_file)
