"""Output of commands: results on stdout, progress on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["busy", "console", "print_json"]


class _Console(Console):
    """A console that leaves a closed pipe to `lagpu.cli.entry`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Return a new console for results; not shared, since tests replace stdout."""
    return _Console(highlight=False)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show a description and the elapsed time on stderr, if that is a terminal."""
    errors = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal
    ) as progress:
        progress.add_task(what, total=None)
        yield


def print_json(found: dict[str, Any]) -> None:
    """Print one object on one line."""
    print(json.dumps(found))
