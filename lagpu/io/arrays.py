"""Convert matrices from and to SciPy, NetworkX, and arrays on the host or a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core.exchange.arrays_in import array_in
from lagpu.core.matrix import Matrix
from lagpu.errors import BackendUnavailable, DomainMismatch, InvalidValue
from lagpu.host import memory
from lagpu.io.csc import compress, from_entries

__all__ = ["from_arrays", "from_networkx", "from_scipy", "to_networkx", "to_scipy"]


def from_scipy(S: Any, *, backend: str | Backend | None = None) -> Matrix:
    """Return the matrix of a SciPy sparse array or matrix, of any format.

    Parameters
    ----------
    S : scipy.sparse array or matrix, (nrows, ncols)
        Stored zeros stay entries; duplicates are summed. `S` itself is not changed.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    DomainMismatch
        If `S` is not a sparse array, or lagpu lacks the type of its values.
    """
    sparse: bool = sp.issparse(S)
    if not sparse or S.ndim != 2:
        raise DomainMismatch(
            f"from_scipy: {type(S).__name__} is not a 2-D sparse array. "
            "Wrap it in scipy.sparse.coo_array."
        )
    columns = S.tocsc()
    if columns is S and not S.has_canonical_format:
        columns = S.copy()  # `compress` sorts in place
    return compress(columns).matrix(backend)


def to_scipy(A: Matrix, *, format: str = "csc") -> sp.csc_array | sp.csr_array | sp.coo_array:
    """Return a matrix as a SciPy array, with a value for each entry also if all are equal.

    Parameters
    ----------
    A : Matrix, (nrows, ncols)
        A matrix on any backend.
    format : str
        ``"csc"``, ``"csr"`` or ``"coo"``. Entries are sorted, and stored zeros stay.

    Raises
    ------
    InvalidValue
        If there is no such format.
    """
    if format == "csc":
        col_ptr, row_idx, values = A.to_csc()
        return sp.csc_array((values, row_idx, col_ptr), shape=A.shape)
    if format == "csr":
        row_ptr, col_idx, values = A.to_csr()
        return sp.csr_array((values, col_idx, row_ptr), shape=A.shape)
    if format == "coo":
        rows, cols, values = A.to_coo()
        return sp.coo_array((values, (rows, cols)), shape=A.shape)
    raise InvalidValue(f"to_scipy: there is no format {format!r}. Use csc, csr or coo.")


def from_networkx(
    G: Any,
    *,
    weight: str | None = None,
    dup_op: Any = None,
    backend: str | Backend | None = None,
) -> Matrix:
    """Return the adjacency matrix of a NetworkX graph.

    Parameters
    ----------
    G : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Vertex k of the matrix is node ``list(G)[k]``. An undirected edge gives two entries, a
        self-loop one.
    weight : str, optional
        Edge attribute with the value; an edge without the attribute counts 1. By default the matrix
        is BOOL.
    dup_op : BinaryOp, optional
        Combines the values of parallel edges; by default they are summed, as NetworkX does for its
        own matrices. Shortest paths over weights need ``"min"``, the length of the shortest edge.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    DomainMismatch
        If a weight is not a number.
    """
    # Measured, docs/design/memory.md: a list of pairs, then arrays.
    size = G.number_of_edges() * (1 if G.is_directed() else 2)
    memory.require(size * 120 + G.number_of_nodes() * 100, "from_networkx")
    place = {node: k for k, node in enumerate(G)}
    pairs = np.array([(place[u], place[v]) for u, v in G.edges()], np.int64).reshape(-1, 2)
    values = None
    if weight is not None:
        values = np.array([value for _, _, value in G.edges(data=weight, default=1)])
        if values.size and values.dtype.kind not in "biuf":
            raise DomainMismatch(f"from_networkx: the attribute {weight!r} is not always a number.")
    u, v = pairs[:, 0], pairs[:, 1]
    if not G.is_directed():
        once = u != v  # a self-loop is its own reverse
        u, v = np.concatenate([u, v[once]]), np.concatenate([v, u[once]])
        values = None if values is None else np.concatenate([values, values[once]])
    n = len(place)
    if dup_op is not None and values is not None:
        return Matrix.from_coo(u, v, values, nrows=n, ncols=n, dup_op=dup_op, backend=backend)
    return from_entries(u, v, values, n, n).matrix(backend)


def to_networkx(A: Matrix, *, directed: bool = True) -> Any:
    """Return a matrix as a NetworkX graph over the nodes ``0 .. n-1``.

    Parameters
    ----------
    A : Matrix, (n, n)
        A matrix on any backend. Unless BOOL, values become the edge attribute ``weight``.
    directed : bool
        Return a ``DiGraph``; else a ``Graph``, for which the matrix must be symmetric.

    Raises
    ------
    InvalidValue
        If the matrix is not square, or is not symmetric where it must be.
    BackendUnavailable
        If NetworkX is not installed.
    """
    try:
        import networkx as nx
    except ImportError as error:
        raise BackendUnavailable(
            'to_networkx: NetworkX is missing. Install it with: pip install "lagpu[nx]"'
        ) from error
    if A.nrows != A.ncols:
        raise InvalidValue(
            f"to_networkx: nrows {A.nrows} != ncols {A.ncols}. Give a square matrix."
        )
    if not directed and not A.is_symmetric:
        raise InvalidValue("to_networkx: the matrix is not symmetric. Give directed=True.")
    # Measured, docs/design/memory.md: dictionaries of nodes, neighbours and attributes.
    edge = 270 if A.dtype.is_bool else 440
    memory.require(A.nvals * edge + A.nrows * 750, "to_networkx", "Use to_scipy.")
    G: Any = nx.DiGraph() if directed else nx.Graph()
    G.add_nodes_from(range(A.nrows))
    rows, cols, values = (array.tolist() for array in A.to_coo())
    if A.dtype.is_bool:
        G.add_edges_from(zip(rows, cols, strict=True))
    else:
        G.add_weighted_edges_from(zip(rows, cols, values, strict=True))
    return G


def from_arrays(
    rows: Any,
    cols: Any,
    values: Any = None,
    *,
    nrows: int | None = None,
    ncols: int | None = None,
    backend: str | Backend | None = None,
) -> Matrix:
    """Return the matrix of (row, column, value) triplets in arrays of any library.

    Parameters
    ----------
    rows, cols : array, (nvals,)
        NumPy or CuPy arrays, sequences, or anything with ``__cuda_array_interface__`` or
        ``__dlpack__`` (PyTorch, JAX, cuDF, Numba). For the gpu backend device arrays stay on the
        device; for other backends they are copied to the host.
    values : array, (nvals,), or scalar, optional
        Values of the entries; without values the matrix is BOOL.
    nrows, ncols : int, optional
        Shape; by default the largest index plus one.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    BackendUnavailable
        If an array is on a device and CuPy is not installed.
    IndexOutOfBound, DimensionMismatch, InvalidValue
        As `Matrix.from_coo` raises them; no entry may be given twice.
    """
    place = backends.get(backend)
    rows, cols, values = (
        array_in(x, place, "from_arrays", copies=True)
        for x in (rows, cols, True if values is None else values)
    )
    return Matrix.from_coo(
        rows,
        cols,
        values,
        nrows=nrows,
        ncols=ncols,
        backend=place,
    )
