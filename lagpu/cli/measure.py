"""``lagpu bench`` and ``lagpu graph500``."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lagpu.bench import family, graph500, report, suite
from lagpu.cli.console import console
from lagpu.errors import CheckFailed, FileMissing, InvalidValue
from lagpu.jsonfile import write

__all__ = ["measure", "measure_family", "measure_graph500", "only"]

_TABLE_WIDTH = 140  # in a pipe too: a number cut short says nothing
_GRACE_SECONDS = 0.7  # for what is running to stop by itself


def measure(plan: suite.Plan, json_file: Path | None) -> None:
    """Run a benchmark, print its table, and write its report.

    Raises
    ------
    CheckFailed
        At the end, if any row is not checked.
    """
    _need_folder("bench", json_file)
    with _interruptible(), _telling() as tell:
        found, refusals = suite.run(plan, tell)
    if json_file is not None:
        write(found, json_file, "bench")
    out = console()
    out.width = max(out.width, _TABLE_WIDTH)
    out.print(report.table(found["rows"]))
    out.print(
        "ms is the device's time where there is a device, wall ms until the device has ended",
        soft_wrap=True,
    )
    _refuse(refusals)


def measure_family(
    what: tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]],
    times: dict[str, Any],
    seed: int | None,
    json_file: Path | None,
) -> None:
    """Measure every algorithm, print a table for each graph, and write the report behind each.

    Parameters
    ----------
    what : tuple of sequences of str
        Graphs, algorithms, backends and peers.
    times : dict
        ``repeats seconds limit budget``, as far as they are given.
    seed : int, optional
        Of generated graphs and of the choice of sources.
    json_file : Path, optional
        The report; it is whole at any time.

    Raises
    ------
    CheckFailed
        If two systems contradict one another; at the end, if a measurement raised an error.
    """
    _need_folder("bench", json_file)

    def keep(found: dict[str, Any]) -> None:
        if json_file is not None:
            write(found, json_file, "bench")

    with _interruptible(), _telling() as tell:
        found, failures = family.run(family.Plan(*what, **times, seed=seed), tell, keep)
    out = console()
    out.width = max(out.width, _TABLE_WIDTH)
    for table in family.tables(found["rows"]):
        out.print(table)
    out.print(
        "ms until the device has ended, in brackets the device's time; ? where nothing was there "
        "to compare with",
        soft_wrap=True,
    )
    _refuse(failures)


def only(when: str, options: dict[str, Any]) -> None:
    """Raise `InvalidValue` if an option is given that belongs to another kind of measurement."""
    for name, value in options.items():
        if value not in (None, []):
            raise InvalidValue(f"--{name}: it is for lagpu bench {when}. Leave it out.")


def _refuse(refusals: Sequence[str]) -> None:
    if refusals:
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        raise CheckFailed(f"bench: {refusals[0]}{more}")


def measure_graph500(
    scale: int,
    edge_factor: int,
    *,
    backend: str,
    roots: int,
    seed: int | None,
    json_file: Path | None,
) -> None:
    """Run Graph500, print the required fields, and write the report.

    Raises
    ------
    CheckFailed
        If a search is invalid; then nothing is written.
    """
    _need_folder("graph500", json_file)
    with _interruptible(), _telling() as tell:
        found = graph500.run(scale, edge_factor, backend=backend, roots=roots, seed=seed, tell=tell)
    if json_file is not None:
        write(_without_nan(found), json_file, "graph500")
    print("\n".join(graph500.lines(found["fields"])))


def _without_nan(found: dict[str, Any]) -> dict[str, Any]:
    """Return a report as JSON has it: no number is null."""
    fields = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in found["fields"].items()
    }
    return json.loads(json.dumps(found | {"fields": fields}))  # type: ignore[no-any-return]


def _need_folder(what: str, json_file: Path | None) -> None:
    if json_file is not None and not json_file.parent.is_dir():  # told before minutes of work
        raise FileMissing(f"{what}: there is no folder {json_file.parent}. Make it first.")


@contextmanager
def _telling() -> Iterator[Callable[[str], None]]:
    """Yield what shows on stderr, if that is a terminal, what goes on and for how long already."""
    errors = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal
    ) as progress:
        task = progress.add_task("beginning", total=None)
        yield lambda text: progress.update(task, description=text)


@contextmanager
def _interruptible() -> Iterator[None]:
    """End the process soon after Ctrl-C, even from inside a long call of compiled code.

    Python sees an interrupt only between its own steps; a sort or a transfer of a large graph can
    take longer than anybody waits. So a thread watches, and where the interrupt does not get
    through, ends the process. Nothing is half-written then: reports are renamed when complete.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receive, send = os.pipe()
    os.set_blocking(send, False)
    before = signal.set_wakeup_fd(send, warn_on_full_buffer=False)
    over = threading.Event()

    def watch() -> None:
        while (seen := os.read(receive, 1)) and seen[0] != signal.SIGINT:
            pass
        if seen and not over.wait(_GRACE_SECONDS):
            print("lagpu: interrupted.", file=sys.stderr, flush=True)
            os._exit(128 + signal.SIGINT)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(send)
        watcher.join()
        os.close(receive)
