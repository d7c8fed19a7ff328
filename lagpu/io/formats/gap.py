"""The serialized graphs of the GAP Benchmark Suite: ``.sg``, and ``.wsg`` with weights.

One byte says whether the graph is directed; then come m and n in 64 bits, n + 1 offsets in 64 bits,
and the m neighbours in 32 bits, with weights each before a weight in 32 bits. Of a directed graph
the same follows for incoming edges.
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.csc import CSC, asymmetry, bytes_for_entries, compress, known_symmetric
from lagpu.io.reading import Budget, Options, Parsed

Array = np.ndarray[Any, Any]

_HEAD = 17


def is_serialized(data: bytes) -> bool:
    """Return whether the sizes in the first bytes fit the length of the data."""
    return _item(data) > 0


def _item(data: bytes) -> int:
    """Return the bytes of a neighbour, 4 or 8 with a weight; 0 if the sizes do not fit."""
    if len(data) < _HEAD or data[0] > 1:
        return 0
    m, n = np.frombuffer(data, "<i8", 2, 1).tolist()
    if m < 0 or n < 0:
        return 0
    for item in (4, 8):
        if _HEAD + (1 + data[0]) * (8 * (n + 1) + item * m) == len(data):
            return item
    return 0


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph in a file: BOOL, or INT32 with weights.

    Parameters
    ----------
    data : bytes
        Content of the file.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    options : Options
        None of them counts.

    Raises
    ------
    FileFormatError
        If its sizes do not fit its length, offsets do not rise, or a neighbour is outside.
    OutOfMemory, LimitExceeded
        If the graph does not fit.
    """
    name, item = budget.name, _item(data)
    if not item:
        raise FileFormatError(
            f"read: {name}: the sizes of a serialized GAP graph do not fit its length. It is "
            "truncated, or of another kind."
        )
    m, n = np.frombuffer(data, "<i8", 2, 1).tolist()
    need = bytes_for_entries(m, n, values=True) + 16 * m
    budget.require(need, f"{n} vertices", held=len(data))
    ptr = np.frombuffer(data, "<i8", n + 1, _HEAD)
    if ptr[0] != 0 or ptr[-1] != m or (np.diff(ptr) < 0).any():
        raise FileFormatError(f"read: {name}: offsets do not rise from 0 to {m}.")
    items = np.frombuffer(data, "<i4", m * item // 4, _HEAD + 8 * (n + 1)).reshape(m, item // 4)
    ends = items[:, 0]
    if m and not 0 <= ends.min() <= ends.max() < n:
        raise FileFormatError(f"read: {name}: a neighbour is outside 0 .. {n - 1}.")
    values = np.ones(m, np.int8) if item == 4 else items[:, 1].copy()
    rows = sp.csr_array((values, ends.copy(), ptr.copy()), shape=(n, n))
    csc = compress(rows.tocsc(), pattern=item == 4)
    del rows
    return Parsed(csc if data[0] else known_symmetric(csc))


def dump(csc: CSC, file: IO[bytes]) -> None:
    """Write the places of the entries.

    Raises
    ------
    InvalidValue
        If there are vertices beyond 32 bits.
    """
    _dump(csc, file, None)


def dump_weights(csc: CSC, file: IO[bytes]) -> None:
    """Write the entries with weights of 32 bits; True is 1.

    Raises
    ------
    InvalidValue
        If a vertex or a value is no whole number of 32 bits.
    """
    values = csc.dense_values()
    if values.size and not (
        (values == np.floor(values)).all() and -(2**31) <= values.min() <= values.max() < 2**31
    ):
        raise InvalidValue("write: .wsg has whole weights of 32 bits alone. Use .mtx or .npz.")
    _dump(csc, file, values.astype("<i4"))


def _dump(csc: CSC, file: IO[bytes], weights: Array | None) -> None:
    n, m = csc.nrows, csc.nvals
    if n >= 2**31:
        raise InvalidValue(f"write: .sg and .wsg have no vertex beyond 32 bits, and {n} are there.")
    directed = asymmetry(csc) is not None
    data = np.arange(m) if weights is None else weights
    columns = sp.csc_array((data, csc.row_idx, csc.col_ptr), shape=(n, n))
    file.write(bytes([directed]) + np.array([m, n], "<i8").tobytes())
    # The columns of a matrix are the incoming edges; those of a symmetric one are all edges.
    for part in [columns.tocsr(), columns] if directed else [columns]:
        ends = part.indices.astype("<i4")
        pairs = ends if weights is None else np.column_stack([ends, part.data.astype("<i4")])
        file.write(part.indptr.astype("<i8").tobytes())
        file.write(pairs.tobytes())
