"""Vectors and matrices as pickles and back: entries as host arrays, and the name of a backend.

lagpu itself neither writes nor reads a pickle; this is what a user's `multiprocessing`, joblib or
dask does with objects that it sends to another process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu import backends

Array = np.ndarray[Any, Any]


def taken_apart(x: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return what ``x.__reduce__`` returns, for a `Vector` or a `Matrix`.

    Raises
    ------
    NotSupported
        If another process could not find the backend by its name.
    """
    place = backends.name_elsewhere(x.backend)
    *where, values = x.to_coo() if x.ndim == 1 else x.to_csc()
    if x.ndim == 1 and len(values) == x.size:
        where = [None]
    return _put_together, (type(x), x.shape, x.dtype, where, _one_if_alike(values), place, x.name)


def _put_together(
    kind: Any, shape: Any, dtype: Any, where: list[Any], values: Any, place: str, name: str
) -> Any:
    """Return the vector or matrix; see `lagpu.backends.found_again` for where it lives."""
    backend = backends.found_again(place)
    if len(shape) == 2:
        col_ptr, row_idx = where
        data = backend.matrix_from_csc(col_ptr, row_idx, values, dtype, shape)
        return kind._of(data, dtype, shape, backend, name)
    (size,), (indices,) = shape, where
    if indices is None and np.ndim(values) == 0:
        indices = np.arange(size)
    data = backend.vector_from_coo(indices, values, dtype, size)
    return kind._of(data, dtype, size, backend, name)


def _one_if_alike(values: Array) -> Any:
    """Return the one number that all values are to the bit, or else the values: NaN, -0.0."""
    if len(values) < 2:
        return values
    bits = values.view(f"u{values.itemsize}")
    return values[0] if bool((bits == bits[0]).all()) else values
