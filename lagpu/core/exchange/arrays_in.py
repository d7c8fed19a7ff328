"""Arrays of any library as users pass them: to NumPy's, or to CuPy's on a GPU; and their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.errors import BackendMismatch, BackendUnavailable, DomainMismatch, InvalidValue

_DLPACK_HOST = (1, 3)  # kDLCPU, kDLCUDAHost: memory that NumPy reads
_OWN = frozenset((np.ndarray, list, tuple, range, bool, int, float))


def array_in(x: Any, place: Backend, what: str, *, copies: bool = False) -> Any:
    """Return data for a backend as an array of NumPy, or of CuPy if both are on a GPU.

    Host arrays are not copied. Numbers, lists and what no library's protocol covers pass as they
    are.

    Parameters
    ----------
    x : object
        An array of NumPy or CuPy, an object with ``__cuda_array_interface__`` or ``__dlpack__``
        (PyTorch, JAX, Numba, the array API), or a column of pandas, polars or pyarrow.
    place : Backend
        Where the data will be used.
    what : str
        The beginning of messages.
    copies : bool
        Copy from a GPU to a backend on the host; else that is an error.

    Raises
    ------
    InvalidValue
        If a value is missing: NA, null or masked. A NaN of a float type is a value.
    DomainMismatch
        If the object does not hand out its data.
    BackendMismatch
        If the data is on a GPU and the backend is not, unless `copies`.
    BackendUnavailable
        If the data is on a GPU and CuPy is not installed.
    """
    if type(x) in _OWN:
        return x
    _require_none_missing(x, what)
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x) if isinstance(x, np.ma.MaskedArray) else x
    on_device = hasattr(x, "__cuda_array_interface__")
    if on_device or hasattr(x, "__dlpack__"):
        return _exported(x, place, what, on_device, copies)
    numpy_dtype = getattr(getattr(x, "dtype", None), "numpy_dtype", None)
    return x if numpy_dtype is None else x.to_numpy(dtype=numpy_dtype)  # of pandas: Int64 and such


def _exported(x: Any, place: Backend, what: str, by_interface: bool, copies: bool) -> Any:
    """Return the array behind ``__cuda_array_interface__`` or ``__dlpack__``."""
    if not by_interface and _asked(x, "__dlpack_device__", what)[0] in _DLPACK_HOST:
        array = _asked(x, np.asarray if hasattr(x, "__array__") else np.from_dlpack, what)
        return array if array.ndim else array[()]
    on_gpu = place.device is not None and place.device.xp is not np
    if not on_gpu and not copies:
        raise BackendMismatch(
            f"{what}: the array is on a GPU, the backend is {place.name}. Copy it first, e.g. with "
            "cupy.asnumpy, or take backend='gpu'."
        )
    try:
        import cupy
    except ImportError as error:
        raise BackendUnavailable(
            f"{what}: device arrays need CuPy. Install lagpu[gpu], or copy them to the host."
        ) from error
    array = cupy.asarray(x) if by_interface else _asked(x, cupy.from_dlpack, what)
    return array if on_gpu else array.get()


def _asked(x: Any, how: Any, what: str) -> Any:
    """Return the answer of an exporter; one that refuses, as of a tensor with gradients, says why.

    `how` is a function of `x`, or the name of a method.
    """
    try:
        return getattr(x, how)() if isinstance(how, str) else how(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = type(x).__name__
        raise DomainMismatch(
            f"{what}: {kind} does not hand out its data: {error}. Convert it to NumPy or CuPy."
        ) from error


def _require_none_missing(x: Any, what: str) -> None:
    """Raise `InvalidValue` if a value is NA, null or masked; NumPy would make NaN of some."""
    if isinstance(x, np.ma.MaskedArray):
        missing = int(np.ma.getmaskarray(x).sum())
    elif hasattr(x, "null_count"):  # pyarrow, and polars, where it is a method
        missing = int(x.null_count() if callable(x.null_count) else x.null_count)
    elif hasattr(x, "isna") and _may_lack_values(x.dtype):
        missing = int(x.isna().sum())
    else:
        return
    if missing:
        raise InvalidValue(
            f"{what}: {missing} of {len(x)} values are missing. Leave them out, as with "
            "x.dropna() of pandas, or fill them in; an entry without a value has no entry."
        )


def _may_lack_values(dtype: Any) -> bool:
    """Whether a column of pandas of this type may have NA: not one of NumPy's numbers."""
    return not isinstance(dtype, np.dtype) or dtype.kind == "O"


def require_fit(array: Any, given: DType, kind: DType, what: str) -> None:
    """Raise `DomainMismatch` if a number of an array does not fit the integer type `kind`.

    Floats that are whole fit; 1.7, NaN and 1e300 do not.
    """
    if kind.is_bool or kind.is_float or given.is_bool or not array.size:
        return
    if given.is_float:
        low, high = float(kind.smallest), float(int(kind.largest) + 1)  # both are powers of two
        fits = (array >= low) & (array < high) & (array == array.round())
        if bool(fits.all()):
            return
        outlier, remedy = array[~fits][0].item(), "Use a float type, or round the values first."
    else:
        low, high = int(array.min()), int(array.max())
        if low >= int(kind.smallest) and high <= int(kind.largest):
            return
        outlier = low if low < int(kind.smallest) else high
        remedy = kind.instead_for(outlier)
    raise DomainMismatch(f"{what}: {outlier} does not fit {kind}. {remedy}")
