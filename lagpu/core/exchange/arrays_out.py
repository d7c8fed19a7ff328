"""A vector as a dense array: on the host, on its device, and through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.core.arguments import as_fill
from lagpu.core.hints import name_of
from lagpu.dtypes import DType, cast, lookup
from lagpu.errors import InvalidValue
from lagpu.operations import Assign, AssignScalar, Descriptor, Statement

_HOST, _CUDA = 1, 2  # kDLCPU, kDLCUDA
_LARGE = 1 << 18  # entries: from here on it pays to have a device put them in their places


def to_dense(v: Any, fill_value: Any, dtype: Any, on_device: bool) -> np.ndarray[Any, Any]:
    """Do what `Vector.to_dense` does."""
    kind = v.dtype if dtype is None else lookup(dtype)
    fill = None if fill_value is None else as_fill(fill_value, kind)
    dense: np.ndarray[Any, Any]
    if on_device or (v.backend.device is not None and v.size >= _LARGE):
        dense = _of_device(v, fill, kind, on_device)
    else:
        dense = _of_host(v, fill, kind)
    return dense


def _of_host(v: Any, fill: Any, kind: DType) -> Any:
    """Return the dense values, put in their places by the host."""
    if v.nvals == v.size:
        return cast(v.backend.vector_values(v.data), kind)
    if fill is None:
        _require_full(v, v.nvals, "to_dense", "Give fill_value= for the missing ones.")
    indices, values = v.to_coo()
    dense = np.full(v.size, fill, kind.numpy)
    dense[indices] = cast(values, kind)
    return dense


def dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule of a copy of all values, where they live.

    ``torch.from_dlpack(v)``, ``jax.dlpack.from_dlpack(v)``, ``cupy.from_dlpack(v)`` and
    ``numpy.from_dlpack(v)`` call it.

    Raises
    ------
    InvalidValue
        If an entry is missing, or ``copy=False`` is asked for.
    """
    if copy is False:
        raise InvalidValue(
            "__dlpack__: hands out a copy, since a vector's memory changes with each statement. "
            "Leave out copy=False."
        )
    _require_full(self, self.nvals, "__dlpack__", "Hand out {0}.to_dense(fill_value) instead.")
    wanted = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
    given = {name: value for name, value in wanted.items() if value is not None}
    return self.backend.vector_values(self.data, True).__dlpack__(**given)


def dlpack_device(self: Any) -> tuple[int, int]:
    """Return DLPack's (kind, number) of the device where the values live."""
    device = self.backend.device
    if device is None or device.xp is np:
        return _HOST, 0
    return _CUDA, int(device.name.rpartition(":")[2])


def _of_device(v: Any, fill: Any, kind: DType, on_device: bool) -> Any:
    """Return the dense values, put in their places by the backend's device."""
    place, nvals = v.backend, v.nvals
    if nvals == v.size:
        data = v.data if kind is v.dtype else place.dup(v.data, kind)
        return place.vector_values(data, on_device)
    if fill is None:
        _require_full(v, nvals, "to_dense", "Give fill_value= for the missing ones.")
    dense = place.vector(kind, v.size)
    place.execute(Statement(dense, Descriptor(), AssignScalar(fill), kind))
    place.execute(Statement(dense, Descriptor(v.data), Assign(v.data), v.dtype))
    return place.vector_values(dense, on_device)


def _require_full(v: Any, nvals: int, what: str, remedy: str) -> None:
    if nvals < v.size:
        name = name_of(v)
        raise InvalidValue(f"{what}: {name} has {nvals} of {v.size} entries. {remedy.format(name)}")
