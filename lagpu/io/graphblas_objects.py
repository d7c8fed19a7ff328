"""Objects of python-graphblas from and to lagpu's, with and without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu import backends, errors
from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Scalar, Vector
from lagpu.dtypes import lookup


def from_graphblas(
    x: Any,
    *,
    dtype: Any = None,
    copy: bool = True,
    backend: str | Backend | None = None,
    name: str | None = None,
) -> Any:
    """Return the vector, matrix or scalar of an object of python-graphblas.

    Parameters
    ----------
    x : graphblas.Vector, graphblas.Matrix or graphblas.Scalar, or an expression of one
        The object. An expression is computed.
    dtype : DType, optional
        Type of the values; by default that of `x`. 8- and 16-bit types widen.
    copy : bool
        By default `x` keeps its memory, and neither object sees what happens to the other. With
        False, on `cpu` only, the memory moves: the new object owns it, and `x` has no entries.
        So there is one owner at any time, and no statement can change what another object holds.
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
        raise errors.DomainMismatch(
            f"from_graphblas: {type(x).__name__} is no object of python-graphblas."
        )
    kinds: dict[str, Any] = {"Vector": Vector, "Matrix": Matrix, "Scalar": Scalar}
    kind = kinds.get(type(x).__name__)
    if kind is None:  # an expression, a mask or a view
        return from_graphblas(x.new(), dtype=dtype, backend=backend, name=name)
    given = lookup(x.dtype.name)
    wanted = given if dtype is None else lookup(dtype)
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
    """Return a vector, a matrix or a scalar as an object of python-graphblas.

    Parameters
    ----------
    x : Vector, Matrix or Scalar, or an expression of one, on any backend
        The object. An expression is computed.
    copy : bool
        By default `x` keeps its memory, and neither object sees what happens to the other. With
        False, on `cpu` only, the memory moves: the returned object owns it, and `x` has no entries.

    Raises
    ------
    DomainMismatch
        If `x` is no object of lagpu.
    InvalidValue
        If `copy` is False and `x` is not on `cpu`.

    Examples
    --------
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
