"""Graphs from one text: a file, or a generator and its numbers, as in `_KINDS`.

The names of benchmarks are texts too: ``kron16`` is ``kron:16``, ``kron16e8`` is ``kron:16:8``.
A file of such a name is ``./kron16``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lagpu import io
from lagpu.algebra.tables import unary
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix
from lagpu.dtypes import INT64, Array
from lagpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue
from lagpu.generators import graphs
from lagpu.io.arrays import is_on_gpu

__all__ = ["from_spec", "is_spec"]


class _Kind(NamedTuple):
    make: Callable[..., Matrix]
    numbers: str  # a regular expression, a group for each number
    form: str  # for messages, and
    example: str
    seeded: bool = False


_ONE = "([0-9]+)"
_DRAWN = "([0-9]+)(?::([0-9]+))?"
_KINDS = {
    "kron": _Kind(graphs.kronecker, _DRAWN, "kron:S or kron:S:E", "kron:16", True),
    "urand": _Kind(graphs.uniform, _DRAWN, "urand:S or urand:S:E", "urand:16", True),
    "gnm": _Kind(graphs.gnm, "([0-9]+):([0-9]+)", "gnm:N:M", "gnm:128:2874", True),
    "road": _Kind(graphs.road, _DRAWN, "road:K or road:K:L", "road:512", True),
    "chains": _Kind(graphs.chains, _DRAWN, "chains:S or chains:S:L", "chains:12", True),
    "hubs": _Kind(graphs.hubs, _DRAWN, "hubs:N or hubs:N:H", "hubs:1000", True),
    "grid": _Kind(graphs.grid2d, "([0-9]+)x([0-9]+)", "grid:RxC", "grid:30x40"),
    "delaunay": _Kind(graphs.delaunay, _ONE, "delaunay:S", "delaunay:16", True),
    "mycielskian": _Kind(graphs.mycielskian, _ONE, "mycielskian:K", "mycielskian:11"),
    "path": _Kind(graphs.path, _ONE, "path:N", "path:9"),
    "cycle": _Kind(graphs.cycle, _ONE, "cycle:N", "cycle:9"),
    "star": _Kind(graphs.star, _ONE, "star:N", "star:9"),
    "complete": _Kind(graphs.complete, _ONE, "complete:N", "complete:9"),
}

# kron16, kron16e8, grid30x40
_SHORT = re.compile(f"({'|'.join(_KINDS)})([0-9]+)(?:e([0-9]+)|(x[0-9]+))?")


def _with_colons(text: str) -> str:
    """Return ``kron:16:8`` for ``kron16e8``, and any other text as it is."""
    found = _SHORT.fullmatch(text)
    if found is None:
        return text
    name, first, second, by = found.groups()
    return ":".join(part for part in (name, first + (by or ""), second) if part)


def canonical(text: str) -> str:
    """Return the one text for a graph: ``kron:16:16`` for ``kron16``; a file's name stays as it is.

    Generators with an edge factor have 16 by default.
    """
    long = _with_colons(text)
    return f"{long}:16" if re.fullmatch("(kron|urand):[0-9]+", long) else long


def is_spec(text: str) -> bool:
    """Return True if a text is meant for `from_spec`, correctly spelled or not, and not as a file.

    Such a text is a known name and numbers, or begins with a known name and a colon, or is a word,
    a colon and numbers.
    """
    name, colon, _ = _with_colons(text).partition(":")
    known = colon and name in _KINDS
    return bool(known or re.fullmatch(r"[A-Za-z]\w+:[0-9]+([:x][0-9]+)*", text))


def is_random(text: str) -> bool:
    """Return True if a text names a graph that a seed changes."""
    kind = _KINDS.get(_with_colons(text).partition(":")[0])
    return kind is not None and kind.seeded


def from_spec(
    text: str, *, seed: int | None = None, backend: str | Backend | None = None
) -> Matrix:
    """Return the graph that a text specifies, such as ``kron:16`` or ``grid:30x40``.

    By default `seed` is that of the generator. `InvalidValue` is raised if there is no such kind of
    graph, in which case the message lists the kinds, or if its numbers are wrong.
    """
    name, _, numbers = _with_colons(text).partition(":")
    kind = _KINDS.get(name)
    if kind is None:
        forms = ", ".join(kind.form for kind in _KINDS.values())
        raise InvalidValue(f"generate: there is no graph {text!r}. Use one of {forms}.")
    found = re.fullmatch(kind.numbers, numbers)
    if found is None or len(numbers) > 40:  # no size has so many digits
        raise InvalidValue(
            f"generate: {text[:60]!r} does not have the form {kind.form}. Write {kind.example}."
        )
    given = [int(number) for number in found.groups() if number]
    how = {"seed": seed} if kind.seeded and seed is not None else {}
    return kind.make(*given, backend=backend, **how)


def load(
    graph: str, backend: str | Backend, *, directed: bool | None = None, seed: int | None = None,
    dup_op: str | None = None, renumber: bool = False,
) -> Matrix:  # fmt: skip
    """Return the graph in a file, or the generated graph of a text such as ``kron:16``.

    `dup_op` combines the weights of an edge that is given twice, as in `lagpu.io.read`, and
    `renumber` lets vertices of a file have any ids, which are left out.
    """
    if is_spec(graph):
        return from_spec(graph, seed=seed, backend=backend)
    how: Any = {"directed": directed, "dup_op": dup_op, "backend": backend}
    return io.read(graph, renumber=True, **how)[0] if renumber else io.read(graph, **how)


@dataclass(frozen=True, eq=False)
class Facts:
    """Sizes and degrees of a graph."""

    vertices: int
    entries: int
    symmetric: bool  # whether each edge is stored in both directions, with equal values
    out_degree: Array  # entries of each row, (n,)
    in_degree: Array  # entries of each column
    has_loop: Array  # whether each vertex has an edge to itself

    @classmethod
    def of(cls, A: Matrix) -> Facts:
        """Return the facts of a square matrix that has vertices, or raise."""
        if A.nrows != A.ncols:
            raise DimensionMismatch(
                f"graph: {A.nrows} rows != {A.ncols} columns; an adjacency matrix is square."
            )
        if A.nrows == 0:
            raise IndexOutOfBound("source: the graph has no vertices. Give a graph with vertices.")
        n, symmetric = A.nrows, A.is_symmetric
        if A.backend.capabilities.parts is not None or is_on_gpu(A.backend):
            # By statements: the entries stay where they are.
            ones = A.apply(unary.one).new(INT64)
            in_degree = ones.reduce_columnwise("plus").new().to_dense(0)  # where whole columns are
            out_degree = in_degree
            if not symmetric:
                out_degree = ones.reduce_rowwise("plus").new().to_dense(0)
            loops = ones.diag().to_coo()[0]
        else:
            col_ptr, row_idx, _ = A.to_csc()
            in_degree, out_degree = np.diff(col_ptr), np.bincount(row_idx, minlength=n)
            loops = row_idx[row_idx == np.repeat(np.arange(n), in_degree)]
        has_loop = np.zeros(n, bool)
        has_loop[loops] = True
        return cls(n, int(out_degree.sum()), symmetric, out_degree, in_degree, has_loop)

    @property
    def edges(self) -> int:
        """Undirected edges, each once, if the matrix is symmetric; else stored entries."""
        return self.edges_from(np.ones(self.vertices, bool))

    @property
    def kind(self) -> str:
        """The kind of edges that `edges` counts: ``"undirected"`` or ``"directed"``."""
        return "undirected" if self.symmetric else "directed"

    def edges_from(self, reached: Array) -> int:
        """Return the edges from distinct vertices, or those in a mask, each once as in Graph500."""
        entries, loops = int(self.out_degree[reached].sum()), int(self.has_loop[reached].sum())
        return (entries - loops) // 2 + loops if self.symmetric else entries
