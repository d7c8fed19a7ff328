"""Options that several commands share."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lagpu.errors import InvalidValue

SHORTEST = "min"  # combines the lengths of an edge that a file gives twice


class Output(StrEnum):
    """The results of a search."""

    LEVELS = "levels"
    PARENTS = "parents"
    PATHS = "paths"


class Forms(StrEnum):
    """The forms of a directed graph that are kept."""

    AUTO = "auto"
    CSC = "csc"


# The suffixes are those of lagpu.io.formats, whose import would take time (a test compares).
FILES = (
    ".mtx, .npz, .graphml, .gml, .gr, .col, .graph, .metis, .sg, .wsg, .parquet, .h5, .hdf5, .csv, "
    ".tsv, .el, .wel, .txt; text also .gz"
)
_GRAPH_HELP = (
    f"A file ({FILES}; - is the standard input), or kron:16, urand:16, gnm:99:500, road:512, "
    "grid:30x40, delaunay:16, mycielskian:11, path:9, cycle:9, star:9, complete:9; "
    "kron16 is the same as kron:16, and kron16e8 as kron:16:8."
)
Graph = Annotated[str, typer.Argument(metavar="GRAPH", help=_GRAPH_HELP)]
Source = Annotated[
    str, typer.Option("--source", "-s", metavar="VERTEX", help="Vertex to start from.")
]
OneSource = Annotated[
    str | None,
    typer.Option(
        "--source", "-s", metavar="VERTEX", help="Vertex to start from.", show_default=False
    ),
]
Sources = Annotated[
    str | None,
    typer.Option(
        help="Several vertices, as in 0,5,9: levels from the nearest.", show_default=False
    ),
]
Each = Annotated[bool, typer.Option("--each", help="A search from each of --sources, all at once.")]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        "-b",
        metavar="NAME",
        help="auto, cpu, gpu or sim.",
        autocompletion=lambda: ["auto", "cpu", "gpu", "sim"],
    ),
]
Grid = Annotated[
    str | None,
    typer.Option(
        metavar="PIECES",
        help="In pieces: all (GPUs, or processes of mpirun), 2, 2x3, or 4:cpu, 2:sim on that "
        "backend, all:gpu:3,1 on these GPUs; vertices dealt by degree or at random: all-degree, "
        "2x3-random.",
        show_default=False,
    ),
]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected",
        help="Take the entries of a file as they are, or add each edge's reverse; "
        "by default the file decides.",
        show_default=False,
    ),
]
Renumber = Annotated[
    bool,
    typer.Option(
        "--renumber",
        help="Vertices of the file have names, or numbers with gaps: take and show these.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[
    int | None, typer.Option(help="Seed of a generated graph.", min=0, show_default=False)
]
Kernel = Annotated[
    str | None,
    typer.Option(help="Use this kernel for every product (gpu, sim).", show_default=False),
]
Policy = Annotated[
    str | None,
    typer.Option(
        help="Choose directions and kernels by this policy, as beamer, on gpu and sim also "
        "hiragushi, bfs2d:ratio=0.1, tdbu:vector or vbfs:64; or search a grid by a paper's system: "
        "kepler, bfs2d:ratio=0.1 or hiragushi.",
        show_default=False,
    ),
]
Orientation = Annotated[
    Forms,
    typer.Option(
        "--orientation",
        metavar="FORMS",
        help="csc: keep a directed graph in one form alone, in half of the memory, so that a "
        "search has one direction; auto: in both forms where that pays.",
    ),
]
Save = Annotated[
    Path | None, typer.Option(help="Write the result here: .npz, .txt or .csv.", show_default=False)
]
Steps = Annotated[
    Path | None,
    typer.Option(
        "--step",
        help="Write a page to step through the algorithm on a small graph: .html.",
        show_default=False,
    ),
]
Check = Annotated[bool, typer.Option("--check", help="Prove the result.")]
SeedOfBoth = Annotated[
    int | None,
    typer.Option(
        help="Seed of a generated graph, and of the algorithm.", min=0, show_default=False
    ),
]
Report = Annotated[
    Path | None, typer.Option("--json", help="Write the report here.", show_default=False)
]


def placed(backend: str, grid: str | None) -> str:
    """Return the name of the backend that ``--backend`` and ``--grid`` say together.

    Raises
    ------
    InvalidValue
        If both name the backend of the pieces, or ``--grid`` does not have its form.
    """
    if grid is None:
        return backend
    pieces, colon, kind = grid.partition(":")
    known = re.fullmatch("(all|[1-9][0-9]*(x[1-9][0-9]*)?)(-random|-degree)?", pieces)
    if known is None or bool(colon) != bool(kind):
        raise InvalidValue(f"--grid: {grid!r} is not all, 2, 2x3, 4-degree:cpu or the like.")
    if kind and backend != "auto":
        raise InvalidValue(
            f"--grid: {grid} names the backend of the pieces, and so does --backend {backend}. "
            "Leave one of them out."
        )
    count = f"grid{known[3] or ''}" if known[1] == "all" else f"grid:{pieces}"
    if not kind and backend != "auto":
        kind = backend
    return ":".join(part for part in (count, kind) if part)
