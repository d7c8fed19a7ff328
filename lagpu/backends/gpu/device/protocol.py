"""The protocol of a device, and what its implementations share."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from lagpu.backends.gpu.kernels import Kernel, Param, kernel
from lagpu.backends.guard import out_of_memory
from lagpu.errors import KernelLaunchError, LagpuError, OutOfMemory

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
Scalar = bool | int | float | np.generic


PER_CALL: Any = object()  #: marks an argument that each call of a `PreparedLaunch` gives


class HostNotification(NamedTuple):
    """Memory that host and device see, where a kernel writes two numbers and then a serial number.

    Attributes
    ----------
    memory : array of u64, (4,)
        The memory, for the kernel.
    host : memoryview of u64, (4,)
        The same memory; reading it gives Python numbers, quicker than a NumPy array would.
    serial : int
        What the kernel writes after the numbers: before that, they are those of an earlier kernel.
    """

    memory: Array
    host: memoryview
    serial: int


class Timer(Protocol):
    """Device work timed between entering and leaving a ``with`` block."""

    def __enter__(self) -> Timer: ...

    def __exit__(self, *exc_info: object) -> None: ...

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds of device work; reading it waits for that work."""


class PreparedLaunch(Protocol):
    """A launch whose arguments are fixed, except some; see `Device.prepare`."""

    def __call__(self, *new: Array | Scalar | None) -> None:
        """Launch with `args` for the arguments marked `PER_CALL`."""


class Device(Protocol):
    """One device: memory, arrays and kernel launches.

    Attributes
    ----------
    lock : context manager
        Held while statements or loops use the device, its counters and the forms of its matrices.
    observer : DeviceObserver or None
        Sees launches and copies of this thread while a trace is on.
    errors : tuple of type
        What the libraries under the device raise when it fails, besides MemoryError.
    began : bool
        Set when a launch cannot be taken back any more; see `gpu.fused.search_space`.
    stop : (array of u64, memoryview)
        A word as `pinned_zeros` returns it: kernels of loops end when it is not 0.
    """

    lock: AbstractContextManager[Any]
    observer: Any
    errors: tuple[type[Exception], ...]
    began: bool
    stop: tuple[Array, memoryview]

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

    @property
    def enter(self) -> Callable[[], None] | None:
        """What a thread that has taken the lock calls before it uses the device; None: nothing."""

    def alone(self) -> AbstractContextManager[None]:
        """Hold the lock to use the device, where no method of the backend does."""

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
            Bytes of ``LG_DYNAMIC_SHARED``, at most `dynamic_shared_bytes`.

        Raises
        ------
        KernelLaunchError
            When an argument does not fit its parameter, which the message names.
        KernelCompileError
            When the kernel does not compile.
        """

    def prepare(
        self,
        kernel: Kernel,
        threads: int,
        *args: Array | Scalar | None,
        block: int = 256,
        cooperative: bool = False,
        shared: int = 0,
    ) -> PreparedLaunch:
        """Return a launch to be run often; `PER_CALL` marks the arguments given at each call.

        The arguments that are given must keep the types of the first run.
        """

    def load(self, kernel: Kernel) -> bool:
        """Compile and load a kernel, as its first launch would; return whether it was not there."""

    def run_together(self, launches: Sequence[tuple[PreparedLaunch, tuple[Any, ...]]]) -> None:
        """Run one kernel on several devices at once, such as wait for each other in it.

        An observer sees its device's launch, but not on sim, where all are one call. What fails
        leaves the launches before it running; their kernels have to give up by themselves.

        Parameters
        ----------
        launches : sequence of (PreparedLaunch, tuple)
            For each device a cooperative launch, all of the same grid, that `prepare` of the device
            has returned, and its arguments that are given at each call. The first device is this.
        """

    def why_apart(self, devices: Sequence[Any]) -> str:
        """Return why devices, this one among them, cannot run one kernel; "" if they can.

        Each can then address the others' `shared_zeros`.
        """

    def address(self, array: Array) -> int:
        """Return where an array begins, for kernels of devices that `why_apart` allows."""

    def shared_zeros(self, count: int) -> Array:
        """Return `count` zeroed u64, alone in their memory, for `why_apart`."""

    def pinned_zeros(self, count: int) -> tuple[Array, memoryview]:
        """Return `count` zeroed u64 on the host: as kernels write them, and as the host reads."""

    @property
    def resident_threads(self) -> int:
        """Most threads that run at once."""

    @property
    def dynamic_shared_bytes(self) -> int:
        """Most bytes of shared memory that a launch can ask for."""

    @property
    def cluster_blocks(self) -> int:
        """Thread blocks of a cluster, which read each other's shared memory; 1 without clusters."""

    def max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        """Return how many blocks of `kernel` a cooperative launch can have, in whole clusters."""

    @property
    def identity(self) -> str:
        """What no other device of any host is called."""

    def chosen(self) -> AbstractContextManager[Any]:
        """Return a context manager: the device is the thread's, for libraries; no lock is taken."""

    @property
    def stream(self) -> int:
        """The current stream, as a number for libraries."""

    def mark(self) -> Callable[[], bool]:
        """Return what tells, without a wait, whether all that was given so far has been done."""

    def fetched(self, array: Array, sender: Any) -> Array:
        """Return a copy of an array of another device, `sender`, which need not be a peer.

        It follows what that device has been given so far; what that device is given later follows
        the copy.
        """

    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        """Return a contiguous copy on the device."""

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return a copy on the host; waits for the work before it."""

    def read(self, array: Array) -> bool | int | float:
        """Return the one element of `array` as a Python scalar; waits for the work before it."""

    def notification(self) -> HostNotification:
        """Return pinned memory where a kernel writes two numbers for the host, and a serial."""

    def wait_for(self, notification: HostNotification, counts: Array) -> tuple[int, int]:
        """Return the two numbers that a kernel wrote to its `notification`.

        Quicker than copying them, which is done if nothing is heard for some milliseconds; for
        that, `counts` has them too.
        """

    def synchronize(self) -> None:
        """Wait for the work of the current stream."""

    def free_bytes(self) -> int:
        """Return the bytes that can still be allocated."""

    def pooled_bytes(self) -> int:
        """Return the free bytes of the memory pool, without asking the driver."""

    def used_bytes(self) -> int:
        """Return the bytes that arrays hold now; what a pool keeps in reserve does not count."""

    def limited(self, nbytes: int) -> AbstractContextManager[None]:
        """Return a context manager: inside, arrays hold at most `nbytes`, earlier ones included."""

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

    def range(self, name: str) -> AbstractContextManager[Any]:
        """Return a context manager: a profiler shows by `name` what is launched inside."""

    def random_words(self, key: np.ndarray[Any, Any], stream: int, first: int, count: int) -> Array:
        """Return the numbers ``first .. first + count - 1`` of a random stream, (count,), UINT32.

        They are those of `lagpu.generators.edges.words`, which says more.
        """

    def describe(self) -> dict[str, str]:
        """Return the names and versions that a measurement or a bug report needs."""


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


# ------------------------------------------------------------------------------------------
# Launches: arguments checked against a kernel's signature, and launches that are run often.


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


# ------------------------------------------------------------------------------------------
# Random numbers made on a device; see `lagpu.generators.edges`.


def random_words(
    device: Any, key: np.ndarray[Any, Any], stream: int, first: int, count: int
) -> Any:
    """Return the numbers ``first .. first + count - 1`` of a stream, (count,), UINT32."""
    out = device.xp.empty(count, np.uint32)
    run = kernel("random/philox.cu", "random_words")
    with device.alone():
        device.launch(run, count // 8 + 1, first, count, *key, np.uint64(stream), out)
    return out


# ------------------------------------------------------------------------------------------
# The errors of the libraries under a device, by lagpu's names.


_NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY, and cudaErrorMemoryAllocation


def named_error(device: Any, error: Exception, what: str) -> LagpuError | None:
    """Return lagpu's error for one of CuPy or NumPy, or None for any other; `what` has failed."""
    if isinstance(error, LagpuError):
        return None
    if isinstance(error, MemoryError):
        return out_of_memory(error, what, device.name)
    if isinstance(error, device.errors):
        if _lacks_memory(error):
            return out_of_memory(error, what, device.name)
        return KernelLaunchError(f"{what}: {error}. Report it as a bug.")
    return None


def launch_error(device: Any, error: Exception, kernel: Any) -> LagpuError:
    """Return lagpu's error for one of the driver, which has not begun to run a kernel."""
    if _lacks_memory(error):
        return out_of_memory(error, repr(kernel), device.name)
    return KernelLaunchError(f"{kernel!r}: {error}.")


def _lacks_memory(error: Exception) -> bool:
    """Whether the driver had none left, as for a kernel's code where other processes have it."""
    return getattr(error, "status", None) == _NO_MEMORY
