"""Load the graph of a command, with a progress display."""

from __future__ import annotations

from typing import Any

from lagpu import generators
from lagpu.backends.protocol import Backend
from lagpu.cli.console import busy
from lagpu.core.matrix import Matrix
from lagpu.generators.load import Facts
from lagpu.generators.load import load as load_quietly

__all__ = ["facts_of", "load"]


def load(graph: str, backend: str | Backend, **options: Any) -> Matrix:
    """Return the graph; `options` are those of `lagpu.generators.load.load`."""
    verb = "making" if generators.is_spec(graph) else "reading"
    with busy(f"{verb} {graph}"):
        return load_quietly(graph, backend, **options)


def facts_of(A: Matrix) -> Facts:
    """Return the sizes and the degrees of a graph."""
    with busy("counting degrees"):
        return Facts.of(A)
