"""Print the tables of a report as Markdown: ``python -m lagpu.bench.algorithms REPORT.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lagpu.bench.algorithms.table import markdown

__all__ = ["app", "show"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def show(
    report: Annotated[Path, typer.Argument(help="A report of `lagpu bench --algorithm --json`.")],
) -> None:
    """Print the tables of a report as Markdown, as docs/benchmarks has them."""
    try:
        text = markdown(json.loads(report.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a report of lagpu bench"
        typer.echo(f"lagpu.bench.algorithms: {report}: {why}.", err=True)
        raise typer.Exit(2) from error
    typer.echo(text, nl=False)


if __name__ == "__main__":
    app()
