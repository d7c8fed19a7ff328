"""Options that the commands of several algorithms share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagpu.cli.commands import AsJson, Backend, Directed, Graph, Seed, Source

__all__ = [
    "AsJson",
    "Backend",
    "Check",
    "Directed",
    "Graph",
    "Kernel",
    "Policy",
    "Save",
    "Seed",
    "SeedOfBoth",
    "Source",
]

Kernel = Annotated[
    str | None,
    typer.Option(help="Use this kernel for every product (gpu, sim).", show_default=False),
]
Policy = Annotated[
    str | None,
    typer.Option(help="Choose kernels by this policy (gpu, sim).", show_default=False),
]
Save = Annotated[
    Path | None, typer.Option(help="Write the result: .npz, .txt or .csv.", show_default=False)
]
Check = Annotated[bool, typer.Option("--check", help="Prove the result.")]
SeedOfBoth = Annotated[
    int | None,
    typer.Option(
        help="Seed of a generated graph, and of the algorithm.", min=0, show_default=False
    ),
]
