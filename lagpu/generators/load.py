"""Load a graph from a file or a generator, given as one text; its sizes and degrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu import generators, io
from lagpu.algebra.tables import unary
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import INT64
from lagpu.errors import DimensionMismatch, IndexOutOfBound
from lagpu.generators.sizes import is_on_gpu

Array = np.ndarray[Any, Any]


def load(
    graph: str,
    backend: str | Backend,
    *,
    directed: bool | None = None,
    seed: int | None = None,
    dup_op: str | None = None,
    renumber: bool = False,
) -> Matrix:
    """Return the graph in a file, or the generated graph of a text such as ``kron:16``.

    `dup_op` combines the weights of an edge that is given twice, as in `lagpu.io.read`, and
    `renumber` lets vertices of a file have any ids, which are left out.
    """
    if generators.is_spec(graph):
        return generators.from_spec(graph, seed=seed, backend=backend)
    if renumber:
        return io.read(graph, directed=directed, dup_op=dup_op, renumber=True, backend=backend)[0]
    return io.read(graph, directed=directed, dup_op=dup_op, backend=backend)


@dataclass(frozen=True, eq=False)
class Facts:
    """Sizes and degrees of a graph.

    Attributes
    ----------
    vertices, entries : int
        Rows of the matrix, and stored entries.
    symmetric : bool
        Whether each edge is stored in both directions, with equal values.
    out_degree : ndarray of int, (n,)
        Entries of each row.
    has_loop : ndarray of bool, (n,)
        Whether each vertex has an edge to itself.
    in_degree : ndarray of int, (n,)
        Entries of each column.
    """

    vertices: int
    entries: int
    symmetric: bool
    out_degree: Array
    in_degree: Array
    has_loop: Array

    @classmethod
    def of(cls, A: Matrix) -> Facts:
        """Return the facts of a square matrix.

        Raises
        ------
        DimensionMismatch
            If `A` is not square.
        IndexOutOfBound
            If `A` has no vertices.
        """
        if A.nrows != A.ncols:
            raise DimensionMismatch(
                f"graph: {A.nrows} rows != {A.ncols} columns; an adjacency matrix is square."
            )
        if A.nrows == 0:
            raise IndexOutOfBound("source: the graph has no vertices. Give a graph with vertices.")
        if A.backend.capabilities.parts is not None or is_on_gpu(A.backend):
            return cls._by_statements(A)
        col_ptr, row_idx, _ = A.to_csc()
        n, in_degree = A.nrows, np.diff(col_ptr)
        out_degree = np.bincount(row_idx, minlength=n)
        loops = row_idx == np.repeat(np.arange(n), in_degree)
        has_loop = np.zeros(n, bool)
        has_loop[row_idx[loops]] = True
        return cls(n, len(row_idx), A.is_symmetric, out_degree, in_degree, has_loop)

    @classmethod
    def _by_statements(cls, A: Matrix) -> Facts:
        """Return the facts of a matrix whose entries are to stay where they are."""
        n, symmetric, ones = A.nrows, A.is_symmetric, A.apply(unary.one).new(INT64)
        in_degree = ones.reduce_columnwise("plus").new().to_dense(0)  # where whole columns are
        out_degree = in_degree
        if not symmetric:
            out_degree = ones.reduce_rowwise("plus").new().to_dense(0)
        has_loop = np.zeros(n, bool)
        has_loop[ones.diag().to_coo()[0]] = True
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
        """Return the number of edges from the vertices in the mask `reached`, as Graph500 counts.

        An undirected edge counts once, and so does a self-loop.
        """
        entries, loops = int(self.out_degree[reached].sum()), int(self.has_loop[reached].sum())
        return (entries - loops) // 2 + loops if self.symmetric else entries
