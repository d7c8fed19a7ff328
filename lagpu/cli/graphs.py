"""Load the graph of a command, with a progress display."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from typing import Any

from lagpu import generators, io
from lagpu.backends.protocol import Backend
from lagpu.cli.console import busy
from lagpu.cli.names import Names
from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators.load import Facts, is_random
from lagpu.generators.load import load as load_quietly


def load(graph: str, backend: str | Backend, *, seed_for: str = "", **options: Any) -> Matrix:
    """Return the graph of `load_named`, whose vertices are numbers."""
    return load_named(graph, backend, seed_for=seed_for, **options)[0]


def load_named(
    graph: str,
    backend: str | Backend,
    *,
    seed_for: str = "",
    renumber: bool = False,
    **options: Any,
) -> tuple[Matrix, Names]:
    """Return the graph and its vertices; `options` are those of `lagpu.generators.load.load`.

    Parameters
    ----------
    renumber : bool
        Whether the vertices of a file have names, or numbers with gaps.
    seed_for : str
        What else the seed is for; without it a seed that makes no graph is refused.

    Raises
    ------
    InvalidValue
        For an option that this graph ignores, and for a device such as ``/dev/zero``.
    LagpuError
        If the graph cannot be read or made.
    """
    is_made = generators.is_spec(graph)
    if options.get("seed") is not None and not seed_for and not is_random(graph):
        raise InvalidValue(f"--seed: nothing about {graph} is random. Leave it out.")
    if is_made and options.get("directed") is not None:
        option = "--directed" if options["directed"] else "--undirected"
        raise InvalidValue(f"{option}: {graph} is made, not read from a file. Leave it out.")
    if is_made and renumber:
        raise InvalidValue(f"--renumber: {graph} is made, not read from a file. Leave it out.")
    if not is_made:
        require_no_device(Path(graph))
    verb = "making" if is_made else "reading"
    with busy(f"{verb} {graph}"):
        if not renumber:
            return load_quietly(graph, backend, **options), Names()
        how = {name: options.get(name) for name in ("directed", "dup_op")}
        A, ids = io.read(graph, backend=backend, renumber=True, **how)
        return A, Names(ids)


def timed_load(
    graph: str, backend: str | Backend, *, orientation: str = "auto", **options: Any
) -> tuple[Matrix, Names, float]:
    """Return what `load_named` returns, and the milliseconds that this has taken.

    `orientation` is that of the matrix, as `lagpu.Matrix.orientation` has it.
    """
    start = time.perf_counter()
    A, names = load_named(graph, backend, **options)
    if orientation != "auto":
        A.orientation = str(orientation)
    return A, names, (time.perf_counter() - start) * 1e3


def require_no_device(file: Path) -> None:
    """Raise if a file is a device, from which a command would read for ever.

    Raises
    ------
    InvalidValue
        For a device; a pipe, as in ``lagpu info <(zcat graph.gz)``, is none.
    """
    try:
        mode = file.stat().st_mode
    except OSError:  # its reader says why
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InvalidValue(f"read: {file} is a device. Give a file.")


def facts_of(A: Matrix) -> Facts:
    """Return the sizes and the degrees of a graph."""
    with busy("counting degrees"):
        return Facts.of(A)
