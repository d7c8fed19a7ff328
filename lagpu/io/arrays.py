"""Objects from and to other libraries: SciPy, cupyx, igraph, python-graphblas, arrays, tables."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu import backends, errors
from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.arguments import array_in, binary_operator
from lagpu.dtypes import BOOL, FP32, FP64, Array, as_array, lookup
from lagpu.host import memory
from lagpu.io.csc import CSC, compress, from_entries, symmetrise
from lagpu.io.reading import BYTES_OF_NAME, Edges, Names, needed, renumbered

__all__ = [
    "from_arrays", "from_cupyx", "from_edgelist", "from_graphblas", "from_igraph",
    "from_pandas_edgelist", "from_scipy", "from_scipy_sparse", "to_cupyx", "to_graphblas",
    "to_igraph", "to_scipy", "to_scipy_sparse",
]  # fmt: skip

Operator = BinaryOp | Monoid | str | None


def from_scipy(
    S: Any, *, dtype: Any = None, backend: str | Backend | None = None, name: str | None = None
) -> Matrix:
    """Return the matrix of a SciPy sparse array or matrix, of any format.

    Stored zeros stay entries, duplicates are summed, and `S` itself is not changed. By default the
    values keep their `dtype`; `name` is for the matrix. `DomainMismatch` if `S` is not a sparse
    array, (nrows, ncols), or lagpu lacks the type of its values.
    """
    sparse: bool = sp.issparse(S)
    if not sparse or S.ndim != 2:
        raise errors.DomainMismatch(
            f"from_scipy: {type(S).__name__} is not a 2-D sparse array. "
            "Wrap it in scipy.sparse.coo_array."
        )
    columns, place = S.astype(lookup(S.dtype).numpy, copy=False).tocsc(), backends.get(backend)
    if columns is S and (not S.has_canonical_format or getattr(place.device, "xp", 0) is np):
        columns = S.copy()  # `compress` sorts in place, and sim keeps arrays
    return named(compress(columns).matrix(place), dtype, name)


from_scipy_sparse = from_scipy  # the name in python-graphblas


def named(A: Matrix, dtype: Any, name: str | None) -> Matrix:
    """Return a new matrix with a type and a name, if they are given."""
    if dtype is not None and lookup(dtype) is not A.dtype:
        A = A.dup(dtype)
    if name is not None:
        A.name = name
    return A


def to_scipy(A: Matrix, *, format: str = "csc") -> sp.csc_array | sp.csr_array | sp.coo_array:
    """Return a matrix as a SciPy array, with a value for each entry even if all are equal.

    The `format` is ``"csc"``, ``"csr"`` or ``"coo"``, else `InvalidValue` is raised. Entries are
    sorted, and stored zeros stay.
    """
    if format == "coo":
        rows, cols, values = A.to_coo()
        return sp.coo_array((values, (rows, cols)), shape=A.shape)
    if format not in ("csc", "csr"):
        raise errors.InvalidValue(f"to_scipy: there is no format {format!r}. Use csc, csr or coo.")
    ptr, idx, values = A.to_csc() if format == "csc" else A.to_csr()
    return (sp.csc_array if format == "csc" else sp.csr_array)((values, idx, ptr), shape=A.shape)


def to_scipy_sparse(A: Matrix, format: str = "csr") -> sp.csc_array | sp.csr_array | sp.coo_array:
    """Do what `to_scipy` does, by rows by default as in python-graphblas."""
    return to_scipy(A, format=format)


def from_arrays(
    rows: Any, cols: Any, values: Any = None, *, nrows: int | None = None, ncols: int | None = None,
    backend: str | Backend | None = None,
) -> Matrix:  # fmt: skip
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
    given = (rows, cols, True if values is None else values)
    arrays = (array_in(x, place, "from_arrays", copies=True) for x in given)
    return Matrix.from_coo(*arrays, nrows=nrows, ncols=ncols, backend=place)


# ---- Graphs from lists of edges with any ids, tables of pandas, igraph and cupyx.


def from_edgelist(
    edges: Any, values: Any = None, *, directed: bool = True, dup_op: Operator = None,
    backend: str | Backend | None = None,
) -> tuple[Matrix, Array]:  # fmt: skip
    """Return the graph of edges between vertices with any ids, and the id of each vertex.

    Parameters
    ----------
    edges : iterable of pairs or triples, or array, (k, 2) or (k, 3)
        ``(source, target)`` or ``(source, target, weight)``; ids are anything that can be hashed,
        such as texts, or numbers of any size.
    values : array_like, (k,), or scalar, optional
        Weights, if the edges are pairs; by default the matrix is BOOL.
    directed : bool
        False adds the reverse of every edge; one that is given in both directions is given twice.
    dup_op : BinaryOp, Monoid or str, optional
        Combines the weights of an edge that is given twice; by default they are summed.
    backend : str or Backend, optional
        Where the matrix will live.

    Returns
    -------
    A : Matrix, (n, n)
        Entry (i, j) is the edge ``ids[i] -> ids[j]``.
    ids : ndarray, (n,)
        Ascending: INT64, UINT64 or FP64 for numbers, objects for other ids. Ids without an order
        among each other, as ``1`` and ``"a"``, are in the order of first sight.

    Raises
    ------
    DimensionMismatch
        If edges are not all pairs or triples, or `values` differ in length or are given to triples.
    DomainMismatch
        If an id is unhashable, None or NaN, or a weight is not a number.
    """
    what = "from_edgelist"
    columns = _columns(edges, what)
    if values is not None:
        if len(columns) == 3:
            raise errors.DimensionMismatch(f"{what}: edges with weights, and values too. Give one.")
        columns.append(values)
    return _graph(columns, what, directed, dup_op, backend)


def from_pandas_edgelist(
    df: Any, source: str = "source", target: str = "target", weight: str | None = None, *,
    directed: bool = True, dup_op: Operator = None, backend: str | Backend | None = None,
) -> tuple[Matrix, Array]:  # fmt: skip
    """Return the graph of a table with an edge in each row, and the id of each vertex.

    Parameters
    ----------
    df : pandas.DataFrame, or anything with columns by name
        The table; a dict of arrays is one too.
    source, target : str
        Columns with the ids of the ends.
    weight : str, optional
        Column with the weights; by default the matrix is BOOL.
    directed, dup_op, backend
        As in `from_edgelist`.

    Returns
    -------
    A : Matrix, (n, n)
        Entry (i, j) is the edge ``ids[i] -> ids[j]``.
    ids : ndarray, (n,)
        As in `from_edgelist`.

    Raises
    ------
    InvalidValue
        If there is no such column, or a weight is missing.
    DomainMismatch, DimensionMismatch
        As in `from_edgelist`.
    """
    what = "from_pandas_edgelist"
    names = [source, target] if weight is None else [source, target, weight]
    for name in names:
        if name not in df:
            known = ", ".join(map(str, list(df)[:20]))
            raise errors.InvalidValue(f"{what}: there is no column {name!r}. It has {known}.")
    return _graph([_plain(df[name], name, what) for name in names], what, directed, dup_op, backend)


def _columns(edges: Any, what: str) -> list[Any]:
    """Return the columns of edges."""
    if isinstance(edges, np.ndarray):
        if edges.ndim != 2 or edges.shape[1] not in (2, 3):
            raise errors.DimensionMismatch(f"{what}: edges {edges.shape}, not (k, 2) or (k, 3).")
        return [edges[:, k] for k in range(edges.shape[1])]
    rows = [tuple(edge) for edge in edges]
    if not rows:
        return [[], []]
    width = len(rows[0])
    odd = next((row for row in rows if len(row) != width or width not in (2, 3)), None)
    if odd is not None:
        fact = f"the edge {odd!r} has {len(odd)} items, not 2 or 3 as all others"
        raise errors.DimensionMismatch(f"{what}: {fact}.")
    return [list(column) for column in zip(*rows, strict=True)]


def _plain(column: Any, name: Any, what: str) -> Any:
    """Return a column of a table as an array of numbers, or as a list of anything."""
    kind = getattr(column, "dtype", None)
    if getattr(column, "ndim", 1) != 1:
        raise errors.InvalidValue(f"{what}: two columns are called {name!r}. Rename one of them.")
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        return np.asarray(column)
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _graph(
    columns: list[Any], what: str, directed: bool, dup_op: Operator, backend: str | Backend | None
) -> tuple[Matrix, Array]:
    """Return the graph of columns of sources, targets and maybe values, and the ids."""
    sources, targets, *values = columns
    count = len(sources)
    if len(targets) != count:
        raise errors.DimensionMismatch(f"{what}: {count} sources != {len(targets)} targets.")
    u, v, ids = _numbered(sources, targets, what)
    weights = _weights(values[0], count, what) if values and values[0] is not True else None
    return _csc(u, v, weights, len(ids), what, directed, dup_op).matrix(backend), ids


def _csc(
    u: Array, v: Array, weights: Array | None, n: int, what: str, directed: bool, dup_op: Operator
) -> CSC:
    op = None if dup_op is None else binary_operator(dup_op)
    if not directed:  # an edge that is given in either direction is the same edge
        u, v = np.minimum(u, v), np.maximum(u, v)
    csc = from_entries(u, v, weights, n, n, op)
    return csc if directed else symmetrise(csc, what)


def _numbered(sources: Any, targets: Any, what: str) -> tuple[Array, Array, Array]:
    ends = sources, targets
    numeric = [isinstance(x, np.ndarray) and x.dtype.kind in "iuf" for x in ends]
    if all(numeric) and sources.dtype.kind == targets.dtype.kind:
        if sources.dtype.kind == "f" and any(np.isnan(x).any() for x in ends):
            raise errors.DomainMismatch(
                f"{what}: an id is NaN, which is equal to nothing. Drop its row."
            )
        memory.require(72 * len(sources), what)
        return renumbered(sources, targets)
    memory.require(2 * BYTES_OF_NAME * len(sources), what)
    # Numbers of two kinds would meet in FP64, which does not hold them all.
    sources, targets = (x.tolist() if of else x for x, of in zip(ends, numeric, strict=True))
    names = Names()
    try:
        u, v = (names.codes(column, len(column)) for column in (sources, targets))
    except TypeError as error:
        raise errors.DomainMismatch(f"{what}: an id is not hashable: {error}.") from error
    # Missing values of pandas equal nothing, or cannot be compared
    missing = [name for name in names if name is None or not _is_itself(name)]
    if missing:
        raise errors.DomainMismatch(
            f"{what}: an id is {missing[0]!r}, which names no vertex. Drop its row."
        )
    (u, v, _), ids = names.ordered(Edges(u, v))
    return u, v, ids


def _is_itself(name: Any) -> bool:
    try:
        return bool(name == name)
    except (TypeError, ValueError):
        return False


def _weights(values: Any, count: int, what: str) -> Array:
    found = as_array(values)
    if found.dtype.kind == "O":
        found = np.array([np.nan if value is None else value for value in found.tolist()])
    if found.ndim == 0:
        found = np.full(count, found)
    if found.shape != (count,):
        raise errors.DimensionMismatch(f"{what}: values {found.shape} != ({count},) edges.")
    if found.dtype.kind not in "biuf":
        raise errors.DomainMismatch(f"{what}: a weight is no number.")
    if found.dtype.kind == "f" and np.isnan(found).any():
        fact = f"the weight of edge {int(np.argmax(np.isnan(found)))} is missing (NaN)"
        raise errors.InvalidValue(f"{what}: {fact}. Fill or drop it.")
    return found


def from_igraph(
    g: Any, weight: str | None = None, *, dup_op: Operator = None,
    backend: str | Backend | None = None,
) -> Matrix:  # fmt: skip
    """Return the adjacency matrix of an igraph graph, directed or not, numbered as there.

    An undirected edge gives two entries, a self-loop one. `weight` is the edge attribute with the
    value; by default the matrix is BOOL, where parallel edges are one entry. `dup_op` combines the
    values of parallel edges, which are summed by default. `DomainMismatch` if `g` is not from
    igraph or a weight not a number; `InvalidValue` if there is no such attribute, or a weight is
    missing.
    """
    what = "from_igraph"
    if not hasattr(g, "get_edgelist") or not hasattr(g, "vcount"):
        raise errors.DomainMismatch(f"{what}: {type(g).__name__} is no igraph.Graph.")
    n, m = g.vcount(), g.ecount()
    memory.require(200 * m + 16 * n, what)  # measured: a list of pairs, then arrays
    if weight is not None and weight not in g.es.attributes():
        known = ", ".join(g.es.attributes()) or "none"
        raise errors.InvalidValue(f"{what}: edges have no attribute {weight!r}. They have {known}.")
    pairs = np.array(g.get_edgelist(), np.int64).reshape(-1, 2)
    weights = None if weight is None else _weights(g.es[weight], m, what)
    return _csc(pairs[:, 0], pairs[:, 1], weights, n, what, g.is_directed(), dup_op).matrix(backend)


def to_igraph(A: Matrix, *, directed: bool | None = None) -> Any:
    """Return a matrix as an igraph graph; unless BOOL, values become the edge attribute ``weight``.

    The graph is `directed` by default unless the matrix, (n, n), is symmetric. `InvalidValue` if it
    is not square, or not symmetric where it must be; `BackendUnavailable` if igraph is not
    installed.
    """
    igraph = needed("igraph", "to_igraph: it")
    undirected = not is_directed(A, directed, "to_igraph")
    csc = CSC.of(A)
    memory.require(200 * csc.nvals + 16 * csc.nrows, "to_igraph")
    rows, cols = csc.row_idx, csc.columns()
    kept = rows <= cols if undirected else np.ones(csc.nvals, bool)
    g = igraph.Graph(csc.nrows, directed=not undirected)
    g.add_edges(np.column_stack([rows[kept], cols[kept]]).tolist())
    if not csc.dtype.is_bool:
        g.es["weight"] = csc.dense_values()[kept].tolist()
    return g


def is_directed(A: Matrix, directed: bool | None, what: str) -> bool:
    """Return whether the graph of a matrix is to be directed; by default unless it is symmetric."""
    if A.nrows != A.ncols:
        fact = f"nrows {A.nrows} != ncols {A.ncols}"
        raise errors.InvalidValue(f"{what}: {fact}. Give a square matrix.")
    if directed is False and not A.is_symmetric:
        raise errors.InvalidValue(f"{what}: the matrix is not symmetric. Give directed=True.")
    return not A.is_symmetric if directed is None else directed


# ---- Convert matrices from and to `cupyx.scipy.sparse`, whose arrays are on a GPU.


def from_cupyx(S: Any, *, backend: str | Backend | None = None) -> Matrix:
    """Return the matrix of a `cupyx.scipy.sparse` matrix, (nrows, ncols), of any format.

    On the gpu backend nothing goes through the host. There a sorted ``csc_matrix`` is not even
    copied: the matrix has the same memory, so do not write to the arrays of `S` afterwards, or give
    ``S.copy()``. Rows (``csr_matrix``) and triplets (``coo_matrix``) are sorted by columns on the
    device; a backend on the host gets a copy. Stored zeros stay entries, duplicates are summed, and
    `S` itself is not changed. `DomainMismatch` if `S` is not a sparse matrix, or lagpu lacks the
    type of its values.
    """
    kind = getattr(S, "format", None)
    if kind is None or not hasattr(S, "tocoo"):
        raise errors.DomainMismatch(
            f"from_cupyx: {type(S).__name__} is not a sparse matrix. "
            "Wrap it in cupyx.scipy.sparse.coo_matrix."
        )
    place = backends.get(backend)
    taken = functools.partial(array_in, place=place, what="from_cupyx", copies=True)
    nrows, ncols = map(int, S.shape)
    if kind not in ("csc", "csr"):
        S = S.tocoo()
        rows, cols, values = (taken(x) for x in (S.row, S.col, S.data))
        dup_op = "lor" if values.dtype == bool else "plus"
        how: Any = {"nrows": nrows, "ncols": ncols, "dup_op": dup_op, "backend": place}
        return Matrix.from_coo(rows, cols, values, **how)
    if not S.has_canonical_format:
        S = S.copy()  # the next line sorts in place
        S.sum_duplicates()
    ptr, idx, values = (taken(x) for x in (S.indptr, S.indices, S.data))
    make = Matrix.from_csc if kind == "csc" else Matrix.from_csr
    return make(ptr, idx, values, nrows=nrows, ncols=ncols, backend=place)


def to_cupyx(A: Matrix, *, format: str = "csc") -> Any:
    """Return a matrix on a GPU as a `cupyx.scipy.sparse` matrix; nothing goes through the host.

    The `format` is ``"csc"``, a copy of the columns that the backend stores, or ``"csr"`` or
    ``"coo"``, made of it on the device; else `InvalidValue` is raised. `BackendMismatch` if the
    matrix, (nrows, ncols), is not on a GPU; `DomainMismatch` if it is of an integer type, which
    cupyx lacks; `LimitExceeded` if its rows, columns or entries exceed 2**31 - 1;
    `BackendUnavailable` if CuPy is not installed.
    """
    if format not in ("csc", "csr", "coo"):
        raise errors.InvalidValue(f"to_cupyx: there is no format {format!r}. Use csc, csr or coo.")
    place = A.backend
    if not is_on_gpu(place):
        raise errors.BackendMismatch(
            f"to_cupyx: {A.name} is on {place.name}. Move it first: A.to('gpu'), or use to_scipy."
        )
    if A.dtype not in (BOOL, FP32, FP64):
        raise errors.DomainMismatch(
            f"to_cupyx: cupyx has no matrices of {A.dtype}. Convert it: A.dup('FP64')."
        )
    if max(A.nrows, A.ncols, A.nvals) > 2**31 - 1:
        raise errors.LimitExceeded(
            f"to_cupyx: {A.nrows} x {A.ncols} with {A.nvals} entries; cupyx counts in 32 bits. "
            "Take a part, A[I, J], or use to_scipy."
        )
    try:
        import cupyx.scipy.sparse as cs
    except ImportError as error:
        raise errors.BackendUnavailable("to_cupyx: needs CuPy. Install lagpu[gpu].") from error
    if format == "csr":  # the columns of the transpose are the rows
        A = A.T.new()
    ptr, idx, values = A.to_csc(on_device=True)
    if format == "csc":
        return cs.csc_matrix((values, idx, ptr), shape=A.shape)
    if format == "csr":
        return cs.csr_matrix((values, idx, ptr), shape=A.shape[::-1])
    xp: Any = place.device and place.device.xp
    cols = xp.searchsorted(ptr, xp.arange(len(idx), dtype=ptr.dtype), side="right") - 1
    return cs.coo_matrix((values, (idx, cols)), shape=A.shape)


def is_on_gpu(place: Backend) -> bool:
    """Return True for a backend whose arrays are on a GPU; sim has them on the host."""
    return place.device is not None and place.device.xp is not np


# ---- Objects of python-graphblas, with and without a copy.


def from_graphblas(
    x: Any, *, dtype: Any = None, copy: bool = True, backend: str | Backend | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return the vector, matrix or scalar of an object of python-graphblas.

    Parameters
    ----------
    x : graphblas.Vector, graphblas.Matrix or graphblas.Scalar, or an expression of one
        The object. An expression is computed.
    dtype : DType, optional
        Type of the values; by default that of `x`. 8- and 16-bit types widen.
    copy : bool
        By default `x` keeps its memory, and neither object sees what happens to the other. With
        False, on `cpu` only, the memory moves: the new object owns it, and `x` has no entries. So
        there is one owner at any time, and no statement can change what another object holds.
    backend : str or Backend, optional
        Where the object will live.
    name : str, optional
        Its name; by default that of `x`.

    Raises
    ------
    DomainMismatch
        If `x` is no object of python-graphblas, or lagpu lacks the type of its values.
    InvalidValue
        If `copy` is False and the backend is not `cpu`, or the type is to change.

    Examples
    --------
    >>> import graphblas
    >>> u = graphblas.Vector.from_coo([0, 2], [1.5, 2.5], size=4)
    >>> from_graphblas(u, backend="cpu").to_dense(0).tolist()
    [1.5, 0.0, 2.5, 0.0]
    """
    if not type(x).__module__.startswith("graphblas."):
        fact = f"{type(x).__name__} is no object of python-graphblas"
        raise errors.DomainMismatch(f"from_graphblas: {fact}.")
    kinds: dict[str, Any] = {"Vector": Vector, "Matrix": Matrix, "Scalar": Scalar}
    kind = kinds.get(type(x).__name__)
    if kind is None:  # an expression, a mask or a view
        return from_graphblas(x.new(), dtype=dtype, backend=backend, name=name)
    wanted = lookup(x.dtype.name) if dtype is None else lookup(dtype)
    if kind is Scalar:
        return Scalar(wanted, x.value, name=name or x.name)
    place = backends.choose(None, backend)
    adopt = getattr(place, "adopt", None)  # of the cpu backend, whose objects are python-graphblas'
    if not copy and (adopt is None or wanted.name != x.dtype.name):
        raise errors.InvalidValue(
            f"from_graphblas: {x.dtype} becomes {wanted} on {place.name}, which takes a copy. "
            "Leave out copy=."
        )
    if adopt is not None:
        data = adopt(x.dup(wanted.name) if copy else x, wanted)
        return kind._of(data, wanted, x.shape, place, name or x.name)
    named: dict[str, Any] = {"backend": place, "name": name or x.name}
    if kind is Vector:
        indices, values = x.to_coo()
        return Vector.from_coo(indices.view(np.int64), values, wanted, size=x.size, **named)
    ptr, idx, values = x.to_csc()
    ptr, idx = ptr.view(np.int64), idx.view(np.int64)
    return Matrix.from_csc(ptr, idx, values, nrows=x.nrows, ncols=x.ncols, dtype=wanted, **named)


def to_graphblas(x: Any, *, copy: bool = True) -> Any:
    """Return a vector, a matrix or a scalar, or what an expression computes, for python-graphblas.

    By default `x` keeps its memory, and neither object sees what happens to the other. With
    ``copy=False``, on `cpu` only, the memory moves: the returned object owns it, and `x` has no
    entries. `DomainMismatch` if `x` is no object of lagpu; `InvalidValue` if it is not on `cpu` and
    not to be copied.

    >>> v = Vector.from_coo([0, 2], [1.5, 2.5], size=4, backend="cpu")
    >>> to_graphblas(v).nvals
    2
    """
    import graphblas as gb

    x = x if isinstance(x, (Vector, Matrix, Scalar)) or not hasattr(x, "new") else x.new()
    if isinstance(x, Scalar):
        return gb.Scalar.from_value(x.value, x.dtype.name, name=x.name)
    if not isinstance(x, (Vector, Matrix)):
        raise errors.DomainMismatch(f"to_graphblas: {type(x).__name__} is no object of lagpu.")
    release = getattr(x.backend, "release", None)
    if release is not None:
        x._flushed()
        found = release(x.dup().data if copy else x.data)
    elif not copy:
        raise errors.InvalidValue(
            f"to_graphblas: {x.backend.name} has memory of its own. Leave out copy=."
        )
    elif isinstance(x, Vector):
        found = gb.Vector.from_coo(*x.to_coo(), x.dtype.name, size=x.size)
    else:
        found = gb.Matrix.from_csc(*x.to_csc(), x.dtype.name, nrows=x.nrows)
    found.name = x.name
    return found
