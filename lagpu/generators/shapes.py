"""Graphs of simple shapes, for which answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.generators.sizes import count, require
from lagpu.io.csc import CSC, from_entries, undirected

Array = np.ndarray[Any, Any]
Place = str | Backend | None


def grid2d(rows: int, cols: int, *, backend: Place = None) -> Matrix:
    """Return a grid graph; vertex ``r * cols + c`` is at row r, column c.

    Parameters
    ----------
    rows, cols : int
        Shape of the grid, each at least 1.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue, OutOfMemory
        As in `kronecker`.
    """
    u, v = grid_links("grid2d", rows, cols, backend)
    return undirected(u, v, rows * cols).matrix(backend)


def grid_links(what: str, rows: int, cols: int, backend: Place) -> tuple[Array, Array]:
    """Return the links of a grid, each once, after asking for the memory of their matrix."""
    n = count(what, "rows", rows, 1) * count(what, "cols", cols, 1)
    require(what, n, 2 * n, backend=backend)
    at = np.arange(n, dtype=np.int32).reshape(rows, cols)
    u = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    v = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    return u, v


def path(n: int, directed: bool = False, *, backend: Place = None) -> Matrix:
    """Return the path 0, 1, ..., n - 1.

    Parameters
    ----------
    n : int
        Number of vertices, at least 1.
    directed : bool
        Only the edges i -> i + 1.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue, OutOfMemory
        As in `kronecker`.
    """
    require("path", count("path", "n", n, 1), n, backend=backend)
    i = np.arange(n, dtype=np.int32)
    return _simple(i[:-1], i[1:], n, directed).matrix(backend)


def cycle(n: int, directed: bool = False, *, backend: Place = None) -> Matrix:
    """Return the cycle 0, 1, ..., n - 1, 0.

    Parameters
    ----------
    n : int
        Number of vertices, at least 3.
    directed : bool
        Only the edges i -> i + 1 and n - 1 -> 0.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue, OutOfMemory
        As in `kronecker`.
    """
    require("cycle", count("cycle", "n", n, 3), n, backend=backend)
    i = np.arange(n, dtype=np.int32)
    return _simple(i, np.roll(i, -1), n, directed).matrix(backend)


def star(n: int, *, backend: Place = None) -> Matrix:
    """Return the star whose centre is vertex 0.

    Parameters
    ----------
    n : int
        Number of vertices, at least 1.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue, OutOfMemory
        As in `kronecker`.
    """
    require("star", count("star", "n", n, 1), n, backend=backend)
    leaves = np.arange(1, n, dtype=np.int32)
    return undirected(np.zeros(n - 1, np.int32), leaves, n).matrix(backend)


def complete(n: int, *, backend: Place = None) -> Matrix:
    """Return the complete graph, in which every vertex is joined to every other.

    Parameters
    ----------
    n : int
        Number of vertices, at least 1; there are ``n * (n - 1)`` entries.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue, OutOfMemory
        As in `kronecker`.
    """
    degree = count("complete", "n", n, 1) - 1
    require("complete", n, n * degree // 4, backend=backend)  # 6 bytes an entry: nothing is sorted
    rows = np.tile(np.arange(degree, dtype=np.int32), n).reshape(n, degree)
    rows += rows >= np.arange(n)[:, None]  # step over the diagonal
    col_ptr = np.arange(n + 1, dtype=np.int64) * degree
    return CSC(n, n, col_ptr, rows.ravel(), symmetric=True).matrix(backend)


def _simple(u: Array, v: Array, n: int, directed: bool) -> CSC:
    return from_entries(u, v, None, n, n) if directed else undirected(u, v, n)


def mycielskian(k: int, *, backend: Place = None) -> Matrix:
    """Return Mycielski's triangle-free graph of chromatic number k.

    Parameters
    ----------
    k : int
        At least 2, where the graph is one edge; there are ``3 * 2**(k - 2) - 1`` vertices.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue, OutOfMemory
        As in `kronecker`.

    Notes
    -----
    Sizes equal those of ``mycielskianK`` in the SuiteSparse collection.
    Source: Mycielski 1955, Sur le coloriage des graphes.
    """
    n, m = 2, 1
    for _ in range(count("mycielskian", "k", k, 2, 60) - 2):
        n, m = 2 * n + 1, 3 * m + n
    require("mycielskian", n, m, extra=16 * m, backend=backend)
    u, v, n = np.array([0], np.int32), np.array([1], np.int32), 2
    for _ in range(k - 2):
        # Vertices n .. 2n - 1 join the neighbours of their originals, and 2n joins all copies.
        copies = np.arange(n, 2 * n, dtype=np.int32)
        hub = np.full(n, 2 * n, np.int32)
        u, v = np.concatenate([u, u, v, copies]), np.concatenate([v, v + n, u + n, hub])
        n = 2 * n + 1
    return undirected(u, v, n).matrix(backend)
