"""Launches: arguments checked against a kernel's signature, and launches that are run often."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import PER_CALL, Array, Scalar
from lagpu.backends.gpu.kernels import Kernel, Param
from lagpu.errors import KernelLaunchError

__all__ = ["CheckedLaunch", "bind", "check_block", "check_shared"]


class CheckedLaunch:
    """A launch whose arguments are fixed, except some, checked each time; see `Device.prepare`."""

    def __init__(
        self,
        device: Any,
        kernel: Kernel,
        threads: int,
        args: tuple[Any, ...],
        *,
        block: int = 256,
        cooperative: bool = False,
        shared: int = 0,
    ) -> None:
        self.device = device
        self.kernel = kernel
        self.threads = threads
        self.block, self.cooperative, self.shared = block, cooperative, shared
        self._args = args
        self._per_call = [k for k, x in enumerate(args) if x is PER_CALL]

    def __call__(self, *new: Array | Scalar | None) -> None:
        """Run it with these for the arguments that are given each time."""
        device = self.device
        observer = device.observer if device.observers else None
        if observer is None:
            self.run(new)
        else:
            observer.prepared(self, new)

    def run(self, new: tuple[Array | Scalar | None, ...]) -> None:
        """Run it; no observer sees it."""
        self.device.run(
            self.kernel, self.threads, self.all(new), self.block, self.cooperative, self.shared
        )

    def all(self, new: tuple[Array | Scalar | None, ...]) -> tuple[Any, ...]:
        """Return all arguments, with these for those that are given each time."""
        args = list(self._args)
        for k, x in zip(self._per_call, new, strict=True):
            args[k] = x
        return tuple(args)


def check_block(kernel: Kernel, block: int) -> None:
    """Check the size of a block: whole warps, at most 1024 threads."""
    if block % 32 or not 32 <= block <= 1024:
        raise KernelLaunchError(
            f"{kernel.name}: {block} threads a block. Use a multiple of 32 from 32 to 1024."
        )


def check_shared(kernel: Kernel, shared: int, most: int) -> None:
    """Check the shared memory that a launch asks for."""
    if not 0 <= shared <= most:
        raise KernelLaunchError(f"{kernel.name}: {shared} bytes of shared memory; at most {most}.")


def bind(kernel: Kernel, args: tuple[Any, ...], ndarray: Any) -> list[Any]:
    """Check arguments against a kernel's signature and give scalars their exact width.

    Parameters
    ----------
    kernel : Kernel
        Whose signature must be met.
    args : tuple
        As given to `Device.launch`.
    ndarray : type
        The array type of the device.

    Returns
    -------
    list
        Arrays as they are, None for a null pointer, NumPy scalars of the declared type.

    Raises
    ------
    KernelLaunchError
        At the first argument that does not fit; the message names the parameter.
    """
    if len(args) != len(kernel.params):
        raise KernelLaunchError(
            f"{kernel.name}: {len(args)} arguments != {len(kernel.params)} parameters. "
            f"It takes ({', '.join(map(str, kernel.params))})."
        )
    bound = []
    # A launch takes microseconds, and a grid search has some fifty arguments: an argument of the
    # exact type passes without a call.
    for (param, pointer, dtype), arg in zip(kernel.slots, args, strict=True):
        if pointer:
            fits = arg is None or (
                type(arg) is ndarray and arg.dtype == dtype and arg.flags.c_contiguous
            )
            if not fits and not _is_array(arg, dtype, ndarray):
                raise _misfit(kernel, param, _why_no_fit(param, arg, ndarray))
            bound.append(arg)
        else:
            fits = type(arg) is dtype.type
            bound.append(arg if fits else _exact_scalar(kernel, param, arg))
    return bound


def _is_array(array: Any, dtype: np.dtype[Any], ndarray: Any) -> bool:
    """Whether it is a contiguous array of the type; of a subclass too."""
    return isinstance(array, ndarray) and array.dtype == dtype and bool(array.flags.c_contiguous)


def _why_no_fit(param: Param, array: Any, ndarray: Any) -> str:
    if not isinstance(array, ndarray):
        return f"{type(array).__name__} is not a {ndarray.__module__} array"
    if array.dtype != param.dtype:
        return f"dtype {array.dtype} != {param.dtype}"
    return "the array is not contiguous"


def _exact_scalar(kernel: Kernel, param: Param, value: Any) -> np.generic:
    """Convert to the declared type, refusing what would change the value."""
    dtype = param.dtype
    kind = dtype.kind
    try:
        if kind == "f":
            return _to_float(value, dtype)
        if kind == "b":
            return _to_bool(value)
        return dtype.type(operator.index(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise _misfit(kernel, param, f"{value!r} is not a {dtype}") from error


def _to_float(value: Any, dtype: np.dtype[Any]) -> np.generic:
    wide = float(value)
    if math.isfinite(wide) and abs(wide) > float(np.finfo(dtype).max):
        raise OverflowError
    narrow: np.generic = dtype.type(wide)
    return narrow


def _to_bool(value: Any) -> np.generic:
    if value not in (0, 1):
        raise ValueError
    return np.bool_(value)


def _misfit(kernel: Kernel, param: Param, fact: str) -> KernelLaunchError:
    return KernelLaunchError(f"{kernel.name}: parameter {param.name!r} ({param}): {fact}.")
