"""The device layer: what the gpu backend asks of a CUDA device or of its simulation.

Two devices implement the protocol: `lagpu.backends.gpu.device.cuda.CudaDevice` (CuPy) and
`lagpu.backends.gpu.device.sim.SimDevice` (NumPy and a C++ compiler). Both run the same kernels;
arrays are those of `Device.xp`, launches are asynchronous on CUDA and ordered on the current
stream.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple, Protocol

import numpy as np

from lagpu.backends.gpu.kernels import Kernel, Param
from lagpu.errors import KernelLaunchError, OutOfMemory

__all__ = [
    "VARIES",
    "Bound",
    "Device",
    "Signal",
    "Timer",
    "bind",
    "check_block",
    "check_free",
    "check_shared",
    "format_bytes",
    "has_free",
]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
Scalar = bool | int | float | np.generic


VARIES: Any = object()  #: stands for an argument that each run of a `Bound` launch gives anew


class Signal(NamedTuple):
    """A place in memory that host and device see: two numbers, and who wrote them.

    Attributes
    ----------
    place : array of u64, (4,)
        For the kernel.
    host : memoryview of u64, (4,)
        The same memory; it gives numbers of Python, quicker than NumPy its own.
    serial : int
        What the kernel writes behind the numbers.
    """

    place: Array
    host: memoryview
    serial: int

    @property
    def told(self) -> bool:
        """Whether the kernel has written them; nothing waits."""
        return bool(self.host[2] == self.serial)


class Timer(Protocol):
    """Device work timed between entering and leaving a ``with`` block."""

    def __enter__(self) -> Timer: ...

    def __exit__(self, *exc_info: object) -> None: ...

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds of device work; reading it waits for that work."""


class Device(Protocol):
    """One device: memory, arrays and kernel launches."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """``"cuda:0"`` or ``"sim"``."""

    @property
    def xp(self) -> Any:
        """The array library, ``cupy`` or ``numpy``: allocation and plumbing only."""

    @property
    def compile_ms(self) -> float:
        """Milliseconds spent so far on compiling and loading kernels."""

    def launch(
        self,
        kernel: Kernel,
        threads: int,
        *args: Array | Scalar | None,
        block: int = 256,
        cooperative: bool = False,
        shared: int = 0,
    ) -> None:
        """Run a kernel on a one-dimensional grid of at least one block.

        Parameters
        ----------
        kernel : Kernel
            Compiled on its first launch.
        threads : int
            Work items. The grid has ``ceil(threads / block)`` blocks, but never more than keep the
            device busy: kernels stride over the grid.
        *args
            One a parameter: a contiguous device array of the declared type or None (a null
            pointer), a Python or NumPy scalar where the kernel takes a value.
        block : int, default 256
            Threads a block, a multiple of 32 up to 1024.
        cooperative : bool, default False
            Whether all blocks must be resident at once, as ``grid_sync`` needs.
        shared : int, default 0
            Bytes of ``LG_DYNAMIC_SHARED``, at most `dynamic_shared_bytes`; with a cooperative
            launch, more than 48 KiB too.

        Raises
        ------
        KernelLaunchError
            When an argument does not fit its parameter, which the message names.
        KernelCompileError
            When the kernel does not compile.
        """

    def bound(
        self,
        kernel: Kernel,
        threads: int,
        *args: Array | Scalar | None,
        block: int = 256,
        cooperative: bool = False,
        shared: int = 0,
    ) -> Bound:
        """Return a launch to be run often, as `launch` with `VARIES` for what is given each time.

        What is given must keep the types of the first run.
        """

    def load(self, kernel: Kernel, cooperative: bool = False) -> bool:
        """Compile and load a kernel, as its first launch would; return whether it was not there."""

    @property
    def resident_threads(self) -> int:
        """Most threads that run at once."""

    @property
    def dynamic_shared_bytes(self) -> int:
        """Most bytes of shared memory that a launch can ask for."""

    def max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        """Return how many blocks of `kernel` a cooperative launch can have."""

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return a contiguous copy on the device."""

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return a copy on the host; waits for the work before it."""

    def read(self, array: Array) -> bool | int | float:
        """Return the one element of `array` as a Python scalar; waits for the work before it."""

    def signal(self) -> Signal:
        """Return a place where a kernel can tell the host two numbers, and that it has."""

    def heed(self, signal: Signal, counts: Array) -> tuple[int, int]:
        """Return the two numbers told by a kernel that was launched with `signal`.

        Quicker than copying them, which is done if nothing is heard for some milliseconds; for
        that, `counts` has them too.
        """

    def synchronize(self) -> None:
        """Wait for the work of the current stream."""

    def free_bytes(self) -> int:
        """Return the bytes that can still be allocated."""

    def pooled_bytes(self) -> int:
        """Return those of them that need not be asked for; quick."""

    def total_bytes(self) -> int:
        """Return the bytes of memory the device has."""

    def used_bytes(self) -> int:
        """Return the bytes that arrays hold now; what a pool keeps in reserve does not count."""

    def require(self, nbytes: int, what: str, remedy: str = "") -> None:
        """Raise OutOfMemory unless `nbytes` are free; call it before allocating.

        Parameters
        ----------
        nbytes : int
            What will be allocated at the same time.
        what : str
            Who asks, as the message begins: ``"bfs"``.
        remedy : str, optional
            A sentence that says what to do instead.
        """

    def timer(self) -> Timer:
        """Return a context manager that measures device work without waiting for it.

        Examples
        --------
        >>> with device.timer() as timer:  # doctest: +SKIP
        ...     device.launch(...)
        >>> timer.elapsed_ms  # doctest: +SKIP
        0.15
        """

    def describe(self) -> dict[str, str]:
        """Return the names and versions that a measurement or a bug report needs."""


class Bound:
    """A launch whose arguments stand, except some; see `Device.bound`."""

    def __init__(
        self,
        device: Device,
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
        self._places = [k for k, x in enumerate(args) if x is VARIES]

    def __call__(self, *new: Array | Scalar | None) -> None:
        """Run it with these for the arguments that vary."""
        self.device.launch(
            self.kernel, self.threads, *self.all(new),
            block=self.block, cooperative=self.cooperative, shared=self.shared,
        )  # fmt: skip

    def all(self, new: tuple[Array | Scalar | None, ...]) -> list[Any]:
        """Return all arguments, with these for those that vary."""
        args = list(self._args)
        for k, x in zip(self._places, new, strict=True):
            args[k] = x
        return args


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
    # Launches are counted in microseconds, and a traversal has some fifty arguments: what fits at
    # a glance is let through without a call.
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
        return f"{type(array).__name__} is no {ndarray.__module__} array"
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
        raise _misfit(kernel, param, f"{value!r} is no {dtype}") from error


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


def has_free(device: Device, nbytes: int) -> bool:
    """Whether `nbytes` can be allocated; the driver is asked only if the pool does not have them.

    To ask it takes longer than a search.
    """
    return nbytes <= device.pooled_bytes() or nbytes <= device.free_bytes()


def check_free(device: Device, nbytes: int, what: str, remedy: str) -> None:
    """Raise OutOfMemory when `device` has fewer than `nbytes` free; `Device.require` for all."""
    if not has_free(device, nbytes):
        free = device.free_bytes()
        remedy = remedy or "Use a smaller graph or a device with more memory."
        raise OutOfMemory(
            f"{what}: needs {format_bytes(nbytes)}, "
            f"{format_bytes(free)} free on {device.name}. {remedy}"
        )


def format_bytes(nbytes: int) -> str:
    """Return a size in decimal units, ``"12.4 GB"``.

    Examples
    --------
    >>> format_bytes(12_400_000_000)
    '12.4 GB'
    """
    size = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
