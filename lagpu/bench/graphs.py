"""The graphs of a benchmark: named graphs, generated graphs and files, with their facts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lagpu import generators
from lagpu.check import Pattern
from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators.load import Facts
from lagpu.host.threads import mapped
from lagpu.io.csc import column_blocks

__all__ = ["SMALL_SUITE", "SUITE", "HostGraph", "require_graph"]

Array = np.ndarray[Any, Any]

#: The graphs that are measured on a GPU by default; other scales are valid names too.
SUITE = (
    "kron20e16",
    "kron22e16",
    "kron24e16",
    "urand22e16",
    "mycielskian17",
    "road2048",
    "delaunay20",
)
#: The graphs that are measured by default where there is none: seconds on a CPU.
SMALL_SUITE = ("kron12e16", "urand12e16", "mycielskian11", "road64", "delaunay12")


def require_graph(name: str, renumber: bool = False) -> None:
    """Check that a text names a generated graph or a file, a file alone to `renumber` vertices.

    Raises
    ------
    InvalidValue
        If there is no graph and no file of this name; the message lists the names.
    """
    if renumber and generators.is_spec(name):
        raise InvalidValue(f"--renumber: {name} is made, not read from a file. Leave it out.")
    if generators.is_spec(name) or Path(name).is_file():
        return
    raise InvalidValue(
        f"bench: there is no graph or file {name!r}. Use one of {', '.join(SUITE)}, "
        "a generated graph such as kron:16, or a file."
    )


@dataclass(frozen=True, eq=False)
class HostGraph:
    """The columns of a graph on the host, to draw roots and to prove results.

    Attributes
    ----------
    col_ptr, row_idx : ndarray of int
        The columns.
    facts : Facts
        Sizes and degrees.
    """

    col_ptr: Array
    row_idx: Array
    facts: Facts

    @classmethod
    def of(cls, A: Matrix) -> HostGraph:
        """Return the columns of a square matrix with at least one vertex.

        Raises
        ------
        InvalidValue
            If the matrix is not square, or has no vertices.
        """
        if A.nrows != A.ncols or A.nrows == 0:
            raise InvalidValue(f"bench: the graph is {A.nrows} x {A.ncols}. Give a square matrix.")
        col_ptr, row_idx, _ = A.to_csc()
        if A.nrows < 2**31:
            row_idx = row_idx.astype(np.int32)
        n, symmetric = A.nrows, A.is_symmetric
        in_degree = np.diff(col_ptr)
        out_degree = in_degree if symmetric else np.bincount(row_idx, minlength=n)
        has_loop = np.zeros(n, bool)

        def mark_loops(block: tuple[int, int]) -> None:
            first, last = block
            columns = np.arange(first, last, dtype=row_idx.dtype)
            rows = row_idx[col_ptr[first] : col_ptr[last]]
            has_loop[rows[rows == np.repeat(columns, in_degree[first:last])]] = True

        mapped(mark_loops, column_blocks(col_ptr))
        facts = Facts(n, len(row_idx), symmetric, out_degree, in_degree, has_loop)
        return cls(col_ptr, row_idx, facts)

    @cached_property
    def pattern(self) -> Pattern:
        """The columns as checkers take them, made once."""
        return Pattern(self.columns, self.facts.symmetric)

    @property
    def columns(self) -> tuple[Array, Array]:
        """The pair ``(col_ptr, row_idx)``."""
        return self.col_ptr, self.row_idx

    def roots(self, count: int, seed: int) -> list[int]:
        """Return distinct random vertices, each with an edge to another vertex.

        Raises
        ------
        InvalidValue
            If there is no such vertex.
        """
        candidates = np.flatnonzero(self.facts.out_degree > self.facts.has_loop)
        if not candidates.size:
            raise InvalidValue("bench: no vertex has an edge to another. Give another graph.")
        drawn = np.random.default_rng(seed).choice(
            candidates, min(count, candidates.size), replace=False
        )
        return [int(root) for root in drawn]

    def edges_from(self, reached: Array) -> int:
        """Return the number of edges from a list of reached vertices, each edge counted once."""
        mark = np.zeros(self.facts.vertices, bool)
        mark[reached] = True
        return self.facts.edges_from(mark)
