"""Output of commands: results on stdout, progress on stderr, and files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from lagpu.errors import InvalidValue, plain
from lagpu.host import progress
from lagpu.host.files import require_writable
from lagpu.host.job import launched

SAVED = (".npz", ".txt", ".csv")  # suffixes for a vector
_WIDE = 140  # columns where nothing is a terminal


class _Console(Console):
    """A console on which names are plain text: no markup, no emoji, no control characters."""

    def __init__(self) -> None:
        # Open MPI gives a process a terminal of its own, and passes on what it prints there.
        terminal = False if launched() is not None else None
        super().__init__(highlight=False, markup=False, emoji=False, force_terminal=terminal)

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a text, printed by itself or the cell of a table."""
        return super().render_str(plain(text), **how)

    def on_broken_pipe(self) -> None:  # left to `lagpu.cli.entry`
        raise BrokenPipeError


def console() -> Console:
    """Return a new console for results; not shared, since tests replace stdout."""
    out = _Console()
    on_terminal = launched() is None and any(map(os.isatty, range(3)))
    if "COLUMNS" not in os.environ and not on_terminal:
        out.width = _WIDE
    return out


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """Show a description and the elapsed time on stderr, if that is a terminal."""
    # Yields a function that replaces the description.
    with progress.bar(what, after=0) as task:
        yield lambda text: task(what=text)


def show(*parts: Any) -> None:
    """Print texts, which are not wrapped, and tables."""
    out = console()
    for part in parts:
        out.print(part, soft_wrap=isinstance(part, str))


def print_json(found: dict[str, Any]) -> None:
    # JSON lacks NaN and infinite numbers, which Python reads all the same.
    print(json.dumps(json.loads(json.dumps(found), parse_constant=lambda _: None)))


def print_lines(lines: Mapping[str, str]) -> None:
    """Print texts below each other, each after its name."""
    width = max(map(len, lines))
    show(*(f"{name:>{width}}  {text}" for name, text in lines.items()))


def print_written(files: Mapping[str, Path | None], *, as_json: bool = False) -> None:
    """Print which files the options of a command have written; on stderr if stdout is JSON."""
    for option, file in files.items():
        if file is not None:
            note(f"{option}: wrote {file}", on_stderr=as_json)


def note(text: str, *, on_stderr: bool = True) -> None:
    """Print a line, in one of the processes of a job."""
    job = launched()
    if job is not None and job.rank > 0:
        return
    if on_stderr:
        print(plain(f"lagpu: {text}"), file=sys.stderr)
    else:
        show(text)


def require_file(option: str, file: Path | None, suffixes: tuple[str, ...]) -> None:
    """Raise, before any work, unless a file has a valid suffix and can be written."""
    if file is None:
        return
    if file.suffix not in suffixes:
        wanted = " or ".join(suffixes)
        raise InvalidValue(f"{option}: {file.name} does not end in {wanted}. Rename it.")
    require_writable(file, option)
