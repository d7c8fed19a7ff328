"""Devices, alone and together, their launches, and how they are observed, on CUDA and sim."""

from __future__ import annotations

import atexit
import functools
import math
import operator
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from lagpu.backends.gpu.device.compiled import beside
from lagpu.backends.gpu.kernels import Kernel, Param, constant, kernel
from lagpu.backends.guard import out_of_memory, refuse_after_fork
from lagpu.backends.protocol import Measured, NotCompiled
from lagpu.dtypes import lookup
from lagpu.errors import GridTimeout, KernelLaunchError, LagpuError, OutOfMemory
from lagpu.host.interrupt import heard, listen

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
Scalar = bool | int | float | np.generic
#: Threads a block, whether all blocks are resident at once, and bytes of ``LG_DYNAMIC_SHARED``.
How = tuple[int, bool, int]
#: Lets other threads run. On Linux a sleep of no length takes 60 us, longer than most kernels.
give_way = getattr(os, "sched_yield", functools.partial(time.sleep, 0))


class HostNotification(NamedTuple):
    """Memory that host and device see: a kernel writes two numbers there, then a serial number."""

    memory: Array  #: array of u64, (4,): the memory, for the kernel.
    #: memoryview of u64, (4,): the same memory; reading it gives Python numbers, quicker than a
    #: NumPy array would.
    host: memoryview
    #: What the kernel writes after the numbers: before that, they are those of an earlier kernel.
    serial: int


class Limits(NamedTuple):
    """Sizes of launches, and thresholds; those of sim are such that small graphs exceed them."""

    loop_block: int = 1024  #: Threads a block of a generated loop and of a vector sweep.
    #: Threads a block of a bit-parallel search, and of a block that runs one source alone.
    row_block: int = 1024
    #: Threads a block that orders the levels of a row.
    order_block: int = constant("kOrderThreads")
    #: Threads a block of a fused search; with 64-bit pointers 64 registers a thread are too few,
    #: and 72 are enough (docs/design/speed.md).
    search_block: int = 1024
    wide_search_block: int = 896
    #: The most in a search of short levels, which took 13.9 ms with 512 threads and 17.8 with 1024
    #: (road2048, H200, 2026-11-21), and in one of several devices.
    long_search_block: int = 512
    peers_block: int = 1024
    #: Vertices of a frontier that one block, or one cluster, keeps in shared memory.
    solo: int = 512
    cluster_solo: int = 512
    few: int = 128  #: The largest frontier that one block searches alone where there are clusters.
    #: Vertices of a list that have places, if not as many as the kernel says.
    placed: int | None = None
    cached: int = 200_000  #: Bytes of L1 for the words of vertices of high degree.
    near_bytes: int = 128 * 1024  #: Shared memory for the frontier's bits in a pull that adds up.
    ranked_bytes: int = 192 * 1024  #: The same for the values of high rank in a full sum.
    #: A relaxation goes on to the next numbers where fewer edges than this leave what is listed.
    relaxed_edges: int = 16384
    lasts: int = 1 << 16  #: A search of more vertices may last.
    lasting: int = 1 << 33  #: A generated loop that looks at more entries may last.
    #: Whether entries count as vertices do for that, as where threads run by turns.
    lasts_by_entries: bool = False
    #: Steps from which a masked product of matrices puts columns in tables: two launches more take
    #: as long as some 100,000.
    table_steps: int = 1 << 17
    #: Entries of 1,024 columns side by side, and part of all, for which a search shares its pull.
    spread_entries: int = 1 << 17
    spread_share: int = 128
    spread: int = 2048  #: All blocks share longer columns then.


CUDA_LIMITS = Limits()
SIM_LIMITS = Limits(
    loop_block=256, row_block=64, order_block=64, search_block=256, wide_search_block=224,
    long_search_block=256, peers_block=64, cluster_solo=24, few=8, placed=40,
    near_bytes=16, ranked_bytes=16, relaxed_edges=64, lasts=1 << 14, lasting=1 << 18,
    lasts_by_entries=True,
)  # fmt: skip


class Timer(Protocol):
    """Device work timed between entering and leaving a ``with`` block."""

    def __enter__(self) -> Timer: ...

    def __exit__(self, *exc_info: object) -> None: ...

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds of device work; reading it waits for that work."""


class CheckedLaunch:
    """A launch with some arguments fixed, checked each time; see `Device.prepare`.

    `varying` are the parameters whose arguments each call gives, in the order of the source, but
    last those of `each`, which alone differ where a launch comes `again`.
    """

    repeats = False  #: Whether `again` can run it; of a GPU's last call it keeps no array.
    last: dict[str, Any]

    def __init__(
        self, device: Any, kernel: Kernel, threads: int, fixed: dict[str, Any],
        how: How = (256, False, 0), each: Sequence[str] = (),
    ) -> None:  # fmt: skip
        unknown = fixed.keys() - set(kernel.names)
        if unknown:
            raise _misnamed(kernel, unknown, ())
        self.device, self.kernel, self.threads, self.how = device, kernel, threads, how
        self.fixed = {
            name: _exact_scalar(kernel, param, fixed[name]) if not pointer else fixed[name]
            for name, (param, pointer, _) in zip(kernel.names, kernel.slots, strict=True)
            if name in fixed
        }
        named, self.each = {*fixed, *each}, len(each)
        self.varying = (*[name for name in kernel.names if name not in named], *each)

    def __call__(self, new: dict[str, Array | Scalar | None]) -> None:
        (self.device.observer or self.device).run_prepared(self, new)

    def run(self, new: dict[str, Array | Scalar | None]) -> None:
        self.device.run(self.kernel, self.threads, self.all(new), self.how)
        self.last, self.repeats = new, True

    def run_with(self, values: list[Any]) -> None:
        """Do what a call does, with the arguments of `varying` in their order; see `again`."""
        if self.repeats and not self.device.observers:
            self.again(values)
        else:
            self(dict(zip(self.varying, values, strict=True)))

    def again(self, values: list[Any]) -> None:
        """Run it as the last call did, but for these of `each`, in a list that may be changed."""
        self.run(self.last | dict(zip(self.varying[-len(values) :], values, strict=True)))

    def all(self, new: Any) -> tuple[Any, ...]:
        """Return all arguments; `new` are those of a call, by name or in the order of `varying`."""
        if type(new) is list:
            new = dict(zip(self.varying, new, strict=True))
        repeated = new.keys() & self.fixed.keys()
        if repeated:
            raise _misnamed(self.kernel, repeated, ())
        return in_order(self.kernel, (), {**self.fixed, **new})


class Device(Protocol):
    """One device: memory, arrays and kernel launches; an observer sees launches and copies.

    Its classes define `run`, ``_compiled``, ``_from_host``, ``_to_host``, ``_read`` and
    ``_wait_for``, which no observer sees, and all methods below that do nothing; some others are
    those of a device whose launches have ended when they return. An observer has methods of these
    names, but for ``_compiled``, and ``run_prepared``, which are called in their place.
    """

    name: str  #: ``"cuda:0"`` or ``"sim"``.
    xp: Any  #: The array library, ``cupy`` or ``numpy``: allocation and plumbing only.
    compile_ms: float  #: Milliseconds spent so far on compiling and loading kernels.
    #: Held while statements or loops use the device, its counters and the forms of its matrices.
    lock: AbstractContextManager[Any]
    observers: dict[int, Any]  #: The observer of each thread that has one, by its number.
    #: A word as `pinned_zeros` returns it: kernels of loops end when it is not 0.
    stop: tuple[Array, memoryview]
    resident_threads: int  #: Most threads that run at once.
    dynamic_shared_bytes: int  #: Most bytes of shared memory that a launch can have.
    #: Thread blocks of a cluster, which read each other's shared memory; 1 without clusters.
    cluster_blocks: int
    unasked: int = 0  #: Bytes of a new vector for which the driver, which takes long, is not asked.
    #: What the libraries under the device raise when it fails, besides MemoryError.
    errors: tuple[type[Exception], ...] = ()
    #: Called by a thread that has taken the lock, before it uses the device.
    enter: Callable[[], None] | None = None
    #: Set by `run` when a launch cannot be taken back any more: an exception after that, as of an
    #: interrupt, finds the kernel launched.
    began: bool = False
    returns_early: bool = False  #: Whether a launch returns before its kernel has ended.
    lasting: bool = False  #: Whether a loop may run that looks at `stop`; see `let_run`.
    _ends_loops: bool = False
    limits: Limits = CUDA_LIMITS  #: The sizes of launches.
    prepared_launch: type[CheckedLaunch] = CheckedLaunch  #: What `prepare` returns.
    _functions: dict[Kernel, Any]

    __hash__: Any = object.__hash__

    def __init__(self, backend: str) -> None:
        self.lock, self.observers = threading.RLock(), {}
        self.compile_ms = 0.0
        self._functions = {}
        refuse_after_fork(self, backend)
        listen()

    def entered(self) -> AbstractContextManager[None]:
        """Enter the device, and name its errors, where no method of the backend does.

        The caller holds the lock: an interrupt at the first instruction of a Python method
        ``__exit__`` would keep it from giving the lock back, which a lock's own cannot.
        """
        return _Entered(self)

    @property
    def observer(self) -> Any:
        return self.observers.get(threading.get_ident()) if self.observers else None

    @observer.setter
    def observer(self, observer: Any) -> None:
        if observer is None:
            self.observers.pop(threading.get_ident(), None)
        else:
            self.observers[threading.get_ident()] = observer

    @contextmanager
    def launches_end(self, timer: Timer) -> Iterator[None]:
        """Have a timer end after the last launch of this thread, or here if there is none."""
        seen = _TimerEnds(self, timer)
        seen.enter(Work())
        try:
            yield
        finally:
            seen.leave()
            with self.lock, self.entered():
                if not seen.launched:
                    timer.__exit__(None, None, None)

    # -------------------------------------------------------------------------- launches
    def launch(
        self, kernel: Kernel, threads: int, /, *args: Array | Scalar | None, block: int = 256,
        cooperative: bool = False, shared: int = 0, **named: Array | Scalar | None,
    ) -> None:  # fmt: skip
        """Run a kernel on a one-dimensional grid of ``ceil(threads / block)`` blocks, at least one.

        There are never more blocks than keep the device busy: kernels stride over the grid.
        Arguments are given by position or by their name in the source: a contiguous device array of
        the declared type or None (a null pointer), a Python or NumPy scalar where the kernel takes
        a value; if one does not fit, `KernelLaunchError` names its parameter. A block has a
        multiple of 32 threads up to 1024; all blocks of a `cooperative` launch are resident at
        once, as ``grid_sync`` needs; `shared` are the bytes of ``LG_DYNAMIC_SHARED``.
        """
        if named:
            args = in_order(kernel, args, named)
        (self.observer or self).run(kernel, threads, args, (block, cooperative, shared))

    def prepare(
        self, kernel: Kernel, threads: int, /, *, block: int = 256, cooperative: bool = False,
        shared: int = 0, each: Sequence[str] = (), **fixed: Array | Scalar | None,
    ) -> CheckedLaunch:  # fmt: skip
        """Return a launch to be run often; each call gives the arguments that are not fixed here.

        Their types must be those of the first call. `each` is as in `CheckedLaunch`.
        """
        how = block, cooperative, shared
        return self.prepared_launch(self, kernel, threads, fixed, how, each)

    def run(self, kernel: Kernel, threads: int, args: tuple[Any, ...], how: How) -> None:
        """Run a kernel; no observer sees it."""

    def run_prepared(self, launch: CheckedLaunch, new: dict[str, Any]) -> None:
        launch.run(new)

    def run_together(self, launches: Sequence[tuple[CheckedLaunch, Any]]) -> None:
        """Run one kernel on several devices at once, such as wait for each other in it.

        Each has a cooperative launch that its `prepare` has returned, all of the same grid, with
        the arguments of a call, or of `run_with`; the first device is this. An observer sees its
        device's launch, but not on sim, where all are one call. What fails leaves the launches
        before it running; their kernels have to give up by themselves.
        """

    def load(self, kernel: Kernel) -> bool:
        """Compile and load a kernel, as its first launch would; return whether it was not there."""
        fresh = kernel not in self._functions
        self._function(kernel)
        return fresh

    def _function(self, kernel: Kernel) -> Any:
        """Return the compiled kernel, loaded once."""
        known = self._functions.get(kernel)
        if known is None:
            start = time.perf_counter()
            try:
                known = self._functions[kernel] = self._compiled(kernel)
            except NotCompiled:
                _begun(self, kernel)()
                raise
            self.compile_ms += (time.perf_counter() - start) * 1e3
        return known

    def compile_beside(self, kernel: Kernel) -> Callable[[], bool | None]:
        """Begin to compile a kernel into the cache; return a function as `beside` does."""
        return (lambda: True) if kernel in self._functions else beside(*self._building(kernel))

    def _compiled(self, kernel: Kernel) -> Any: ...

    def _building(self, kernel: Kernel) -> tuple[Any, ...]:
        """Return a function of a module that compiles a kernel into the cache, and its values."""

    def max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        """Return how many blocks of `kernel` a cooperative launch can have, in whole clusters."""

    def synchronize(self) -> None:
        """Wait for the work of the current stream; an interrupt ends loops that `let_run` let."""
        if self.lasting:
            self._wait_for_loops()
        else:
            self._synchronize()

    def _synchronize(self) -> None:
        return

    def rearm(self) -> None:
        """Make `stop` 0 again, once a loop for which it was set has seen it."""
        if self.stop[1][0]:
            self._synchronize()
            self.stop[1][0] = 0

    def let_run(self) -> None:
        """Let the host go on while a loop that looks at `stop` runs; call it before the launch.

        After an interrupt the host ends the loop when it next waits for the device, or exits.
        """
        self.rearm()
        if not self._ends_loops:
            atexit.register(self.synchronize)
            self._ends_loops = True
        self.lasting = True

    def wait_in_loop(self) -> None:
        """Wait for all work in a block of `heard` for `stop`."""
        self._synchronize()
        self.lasting = False

    def _wait_for_loops(self) -> None:
        """Wait for all work, with loops that may last; an interrupt ends these, and is raised."""
        try:
            with heard(self.stop[1]):
                self.wait_in_loop()
        except BaseException:
            self.stop[1][0] = 1  # the interrupt may have come before the wait
            self._synchronize()
            raise
        finally:
            self.lasting = False

    def mark(self) -> Callable[[], bool]:
        """Return a function that says, without a wait, whether all work so far is done."""
        return lambda: True

    @property
    def stream(self) -> int:
        """The current stream, as a number for libraries."""
        return 0

    def timer(self) -> Timer:
        """Return a context manager that measures device work without waiting for it."""

    def hold(self, cycles: int) -> Callable[[], None]:
        """Let the device wait while Python launches what follows, so that no time is Python's.

        It waits until the function that this returns is called, but no more than some cycles.
        """
        return lambda: None

    def range(self, name: str) -> AbstractContextManager[Any]:
        """Return a context manager: a profiler shows by `name` what is launched inside."""
        return nullcontext()

    # ----------------------------------------------------------------- copies and numbers
    def from_host(self, array: np.ndarray[Any, Any]) -> Array:
        return (self.observer or self)._from_host(array)

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return a copy on the host; waits for the work before it."""
        if self.lasting:
            self._wait_for_loops()
        return (self.observer or self)._to_host(array)

    def read(self, array: Array) -> Any:
        """Return the one element of `array` as a Python scalar; waits for the work before it."""
        if self.lasting:
            self._wait_for_loops()
        return (self.observer or self)._read(array)

    def notification(self) -> HostNotification:
        """Return pinned memory where a kernel writes two numbers for the host, and a serial."""

    def wait_for(self, notification: HostNotification, counts: Array) -> tuple[int, int]:
        """Return the two numbers that a kernel wrote to its `notification`, sooner than by a copy.

        They are copied from `counts` if nothing is heard for some milliseconds.
        """
        if self.lasting:
            self._wait_for_loops()
        return (self.observer or self)._wait_for(notification, counts)

    def _from_host(self, array: np.ndarray[Any, Any]) -> Array: ...

    def _to_host(self, array: Array) -> np.ndarray[Any, Any]: ...

    def _read(self, array: Array) -> Any: ...

    def _wait_for(self, notification: HostNotification, counts: Array) -> tuple[int, int]: ...

    def fetched(self, array: Array, sender: Any) -> Array:
        """Return a copy of an array of another device, `sender`, which need not be a peer.

        By the wire between GPUs that are peers; else the driver takes the way by the host. It
        follows what that device has been given so far, and comes before what is given later.
        """
        return array.copy()

    # CuPy compiles a kernel for each copy in a type, even as a part of a sort or a scan.
    def copy_of(self, array: Array) -> Array:
        return array.copy()

    def order_of(self, keys: Array) -> Array:
        """Return the stable order that sorts integers, INT64."""
        return self.xp.argsort(keys, kind="stable")

    def running_sum(self, counts: Array) -> Array:
        """Return the sums of integers up to each one, INT64."""
        return self.xp.cumsum(counts, dtype=np.int64)

    def compressed_faults(self, ptr: Array, idx: Array) -> list[int]:
        """Return the faults of compressed arrays of INT32 or INT64, as four numbers.

        They are the number of faults of the pointer, the least index or 0 if that is less, the
        largest index plus one, and how many indices do not rise, if the pointer is right.
        """
        types = {"I": lookup(ptr.dtype).ctype, "T": lookup(idx.dtype).ctype}
        run, columns = kernel("elementwise/arrays.cu", "compressed_faults", **types), len(ptr) - 1
        with self.lock, self.entered():
            found = self.xp.zeros(4, np.uint64)
            self.launch(run, 32 * columns, columns, len(idx), ptr, idx, found)
            faults, below, above, falls = self.to_host(found).tolist()
        return [faults, -below, above, falls]

    def random_words(self, key: np.ndarray[Any, Any], stream: int, first: int, count: int) -> Array:
        """Return numbers of a random stream, UINT32, as `lagpu.generators.edges.words` does."""
        out = self.xp.empty(count, np.uint32)
        run = kernel("random/philox.cu", "random_words")
        with self.lock, self.entered():
            self.launch(
                run, count // 8 + 1,
                first=first, count=count, key0=key[0], key1=key[1], stream=stream, out=out,
            )  # fmt: skip
        return out

    # ----------------------------------------------------------------------------- memory
    def free_bytes(self) -> int:
        """Return the bytes that can still be allocated."""

    def pooled_bytes(self) -> int:
        """Return the free bytes of the memory pool, without asking the driver."""

    def used_bytes(self) -> int:
        """Return the bytes that arrays hold now; what a pool keeps in reserve does not count."""

    def limited(self, nbytes: int) -> AbstractContextManager[None]:
        """Return a context manager: inside, arrays hold at most `nbytes`, earlier ones included."""

    def require(self, nbytes: int, what: str, remedy: str = "") -> None:
        """Raise OutOfMemory unless `nbytes` are free, for `what`; `remedy` says what to do."""
        if not has_free(self, nbytes):
            free = self.free_bytes()
            remedy = remedy or "Use a smaller graph or a device with more memory."
            raise OutOfMemory(
                f"{what}: needs {format_bytes(nbytes)}, "
                f"{format_bytes(free)} free on {self.name}. {remedy}"
            )

    def shared_zeros(self, count: int) -> Array:
        """Return `count` zeroed u64, alone in their memory, for `why_apart`."""

    def pinned_zeros(self, count: int) -> tuple[Array, memoryview]:
        """Return `count` zeroed u64 on the host: as kernels write them, and as the host reads."""

    def address(self, array: Array) -> int:
        """Return where an array begins, for kernels of devices that `why_apart` allows."""

    def exported(self, window: Array) -> str:
        """Return the text by which another process of this host reaches `shared_zeros`."""

    def imported(self, text: str) -> tuple[int, Callable[[], object]]:
        """Return the address here of another process' export, and a function that takes it back."""

    # ------------------------------------------------------------------------------ which
    def why_apart(self, devices: Sequence[Any], others: Sequence[str] = ()) -> str:
        """Return why devices, this one among them, cannot run one kernel; "" if they can.

        Each can then address the others' `shared_zeros`. Other processes' are given by identity.
        """
        if len(set(map(id, devices))) < len(devices):
            return "two pieces are on one device"
        return self._why_apart(devices, others)

    def _why_apart(self, devices: Sequence[Any], others: Sequence[str]) -> str:
        """Return why different devices cannot run one kernel."""
        return ""

    @property
    def identity(self) -> str:
        """What no other device of any host is called."""

    def chosen(self) -> AbstractContextManager[Any]:
        """Return a context manager: the device is the thread's, for libraries; no lock is taken."""
        return nullcontext()

    def describe(self) -> dict[str, str]:
        """Return the names and versions that a measurement or a bug report needs."""


class _Entered:
    """The block of `Device.entered`: a class, as a generator takes three times as long."""

    __slots__ = ("_device",)

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> None:
        if self._device.enter is not None:
            self._device.enter()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        named = named_error(self._device, error, "device") if isinstance(error, Exception) else None
        if named is not None:
            raise named from error


def has_free(device: Device, nbytes: int) -> bool:
    """Whether `nbytes` can be allocated; the driver, which takes long, is asked only if need be."""
    return nbytes <= device.pooled_bytes() or nbytes <= device.free_bytes()


def format_bytes(nbytes: int) -> str:
    """Return a size in decimal units, such as ``"12.4 GB"``."""
    size = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def check_shape(kernel: Kernel, block: int, shared: int = 0, most: int = 0) -> None:
    """Check a launch: blocks of whole warps with at most 1024 threads, and its shared memory."""
    if block % 32 or not 32 <= block <= 1024:
        fact = f"{kernel.name}: {block} threads a block. Use a multiple of 32 from 32 to 1024."
        raise KernelLaunchError(fact)
    if not 0 <= shared <= most:
        raise KernelLaunchError(f"{kernel.name}: {shared} bytes of shared memory; at most {most}.")


def in_order(kernel: Kernel, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return arguments in the order of the parameters: `args` are the first, `named` the others."""
    names = kernel.names[len(args) :]
    if len(named) == len(names):
        try:
            return (*args, *[named[name] for name in names])
        except KeyError:
            pass  # below it is named
    raise _misnamed(kernel, named.keys() - set(names), set(names) - named.keys())


def _misnamed(kernel: Kernel, unknown: Iterable[str], missing: Iterable[str]) -> KernelLaunchError:
    facts = (("unexpected", unknown), ("missing", missing))
    said = "; ".join(f"{what}: {', '.join(sorted(names))}" for what, names in facts if names)
    takes = ", ".join(map(str, kernel.params))
    return KernelLaunchError(f"{kernel.name}: arguments {said}. It takes ({takes}).")


def bind(kernel: Kernel, args: tuple[Any, ...], ndarray: Any) -> list[Any]:
    """Return checked arguments: arrays of the type `ndarray`, None for null, exact scalars."""
    if len(args) != len(kernel.params):
        raise KernelLaunchError(
            f"{kernel.name}: {len(args)} arguments != {len(kernel.params)} parameters. "
            f"It takes ({', '.join(map(str, kernel.params))})."
        )
    bound = []
    # A launch takes microseconds, and a fused search has some fifty arguments: an argument of the
    # exact type passes without a call.
    for (param, pointer, dtype), arg in zip(kernel.slots, args, strict=True):
        if not pointer:
            arg = arg if type(arg) is dtype.type else _exact_scalar(kernel, param, arg)
        elif arg is not None:
            if type(arg) is not ndarray and not isinstance(arg, ndarray):
                fact = f"{type(arg).__name__} is not a {ndarray.__module__} array"
                raise _misfit(kernel, param, fact)
            if arg.dtype != dtype:
                raise _misfit(kernel, param, f"dtype {arg.dtype} != {param.dtype}")
            if not arg.flags.c_contiguous:
                raise _misfit(kernel, param, "the array is not contiguous")
        bound.append(arg)
    return bound


def _exact_scalar(kernel: Kernel, param: Param, value: Any) -> np.generic:
    """Convert to the declared type, refusing what would change the value."""
    dtype: np.dtype[Any] = param.dtype
    try:
        if dtype.kind == "f":
            wide = float(value)
            if math.isfinite(wide) and abs(wide) > float(np.finfo(dtype).max):
                raise OverflowError
            return dtype.type(wide)
        if dtype.kind == "b" and value not in (0, 1):
            raise ValueError
        return np.bool_(value) if dtype.kind == "b" else dtype.type(operator.index(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise _misfit(kernel, param, f"{value!r} is not a {dtype}") from error


def _misfit(kernel: Kernel, param: Param, fact: str) -> KernelLaunchError:
    return KernelLaunchError(f"{kernel.name}: parameter {param.name!r} ({param}): {fact}.")


_NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY, and cudaErrorMemoryAllocation


@functools.lru_cache(maxsize=256)
def _begun(device: Device, kernel: Kernel) -> Callable[[], bool | None]:
    return device.compile_beside(kernel)


def named_error(device: Any, error: Exception, what: str) -> LagpuError | None:
    """Return lagpu's error for one of CuPy or NumPy, or None for any other; `what` has failed."""
    if isinstance(error, LagpuError):
        return None
    of_device = isinstance(error, device.errors)
    if isinstance(error, MemoryError) or (of_device and _lacks_memory(error)):
        return out_of_memory(error, what, device.name)
    return KernelLaunchError(f"{what}: {error}. Report it as a bug.") if of_device else None


def launch_error(device: Any, error: Exception, kernel: Any) -> LagpuError:
    """Return lagpu's error for one of the driver, which has not begun to run a kernel."""
    if _lacks_memory(error):
        return out_of_memory(error, repr(kernel), device.name)
    return KernelLaunchError(f"{kernel!r}: {error}.")


def _lacks_memory(error: Exception) -> bool:
    """Whether the driver had none left, as for a kernel's code where other processes have it."""
    return getattr(error, "status", None) == _NO_MEMORY


_NOTIFICATION = 24  # bytes: two numbers and a serial


class Work:
    """What was launched and copied since a moment; times are in events without a wait."""

    __slots__ = ("bytes", "compile_ms", "copies", "copy_bytes", "each", "kernels")

    def __init__(self) -> None:
        self.kernels: list[Timer] = []
        self.copies: list[Timer] = []
        self.copy_bytes = self.bytes = 0
        self.compile_ms = 0.0
        self.each: list[tuple[str, float]] = []  # bytes for each edge, or entry

    def measured(self, host_ms: float, **counts: int) -> Measured:
        """Return the sums; waits for the work. `counts` are edges, in and out of a product."""
        return Measured(
            kernel_ms=sum((timer.elapsed_ms for timer in self.kernels), 0.0),
            host_ms=host_ms - self.compile_ms,
            compile_ms=self.compile_ms,
            copy_ms=sum((timer.elapsed_ms for timer in self.copies), 0.0),
            copy_bytes=self.copy_bytes,
            bytes=self.bytes + round(sum(counts.get(what, 0) * each for what, each in self.each)),
        )


_LAUNCH_CYCLES = 200_000  # some 100 us, longer than Python takes for a kernel between two events


class DeviceObserver:
    """Sees the launches and copies of one thread on a device, from `enter` to `leave`.

    `traffic` has, for each kernel that moves some arrays only in part, the arrays' names, with the
    count which the bytes are proportional to, and how many elements for each. Launches and copies
    are recorded in `now`; launches are timed and recorded while `timed` is set.
    """

    def __init__(self, device: Device, traffic: Mapping[str, Any]) -> None:
        self.now = Work()
        self.timed = False
        self._device: Any = device
        self._outer: DeviceObserver | None = None
        self._traffic = traffic
        self._parts: dict[Kernel, list[tuple[int, str, float]]] = {}

    def enter(self, now: Work) -> None:
        """Observe the device; an observer around this one goes on seeing everything."""
        self.now, self._outer = now, self._device.observer
        self._device.observer = self

    def leave(self) -> None:
        self.timed = False
        if self._device.observer is self:
            self._device.observer = self._outer
        self._outer = None

    @property
    def _inner(self) -> Any:
        return self._outer or self._device

    def unseen(self, name: str) -> Callable[..., Any]:
        """Return a method of the device, such as ``"read"``, that this observer does not see."""
        return getattr(self._inner, f"_{name}")

    def run(self, kernel: Kernel, threads: int, args: tuple[Any, ...], how: How) -> None:
        run = self._inner.run
        self._launched(kernel, lambda: run(kernel, threads, args, how), lambda: args)

    def run_prepared(self, launch: CheckedLaunch, new: dict[str, Any]) -> None:
        run = self._inner.run_prepared
        self._launched(launch.kernel, lambda: run(launch, new), lambda: launch.all(new))

    def _launched(
        self, kernel: Kernel, work: Callable[[], None], args: Callable[[], tuple[Any, ...]]
    ) -> None:
        if not self.timed:
            work()
            return
        self._device.load(kernel)
        launched = self._device.hold(_LAUNCH_CYCLES)
        with self._device.timer() as timer:
            work()
        launched()
        self.now.kernels.append(timer)
        given = args()
        for k, count, each in self._parts_of(kernel):  # each array once, or of some only a part
            if given[k] is not None and count:
                self.now.each.append((count, each))
            elif given[k] is not None:
                self.now.bytes += given[k].nbytes

    def _from_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self._copied(self._inner._from_host, array)

    def _to_host(self, array: Any) -> Any:
        return self._copied(self._inner._to_host, array)

    def _read(self, array: Any) -> Any:
        return self._copied(self._inner._read, array)

    def _wait_for(self, notification: HostNotification, counts: Any) -> Any:
        """See a notification: it is not timed, as the host waits for the kernel, not for a copy."""
        self.now.copy_bytes += _NOTIFICATION
        return self._inner._wait_for(notification, counts)

    def _copied(self, copy: Callable[[Any], Any], array: Any) -> Any:
        with self._device.timer() as timer:
            made = copy(array)
        self.now.copies.append(timer)
        self.now.copy_bytes += getattr(made, "nbytes", array.nbytes)
        return made

    def _parts_of(self, kernel: Kernel) -> list[tuple[int, str, float]]:
        """Return each array's place, and its bytes for each of a count; "" counts whole."""
        if kernel not in self._parts:
            partly = self._traffic.get(kernel.name, {})
            self._parts[kernel] = [
                (k, count, each * param.dtype.itemsize)
                for k, param in enumerate(kernel.params)
                if param.pointer
                for count, each in [partly.get(param.name, ("", 1.0))]
            ]
        return self._parts[kernel]


class _TimerEnds(DeviceObserver):
    """Ends a timer after each prepared launch; the last end counts."""

    def __init__(self, device: Any, timer: Timer) -> None:
        super().__init__(device, {})
        self._timer = timer
        self.launched = False

    def run_prepared(self, launch: CheckedLaunch, new: dict[str, Any]) -> None:
        super().run_prepared(launch, new)
        self.launched = True
        self._timer.__exit__(None, None, None)


# -------------------------------------------- devices of one host that run one kernel together
MOST_PEERS = constant("kMostPeers")
#: Nanoseconds after which a device that has heard nothing of another one gives up.
PATIENCE = 10 * 10**9
_GLANCES, _ROUNDS = 100, 1000  # at a report, some milliseconds in all
_RESULTS, _EPOCH, _VERDICT = constant("kResults"), constant("kEpoch"), constant("kVerdict")


def posts_words(count: int) -> int:
    """Return the u64 at the beginning of each window that `count` devices take for their posts."""
    return constant("kPostTurns") * count * constant("kPostWords")


class Peers:
    """Windows and reports of devices that run one kernel together; see common/peers.cuh.

    Each device of this process, whose pieces are numbered from `first`, has a window: zeroed memory
    that all can address, with `posts_words` u64, and after these what a kernel keeps there.
    `everywhere` has for each device the addresses there of all windows, if other processes have
    some.
    """

    def __init__(
        self, devices: Sequence[Device], windows: Sequence[Array],
        everywhere: Sequence[Sequence[int]] = (), first: int = 0,
    ) -> None:  # fmt: skip
        self.patience = PATIENCE  #: Nanoseconds that a device waits for another one.
        self._devices, self._windows, self._first = tuple(devices), tuple(windows), first
        #: Whether the posts are as a run expects them; `clear` makes them so.
        self.ready, self._epoch = True, 0
        self.layout: Any = None  #: What all kernels since the last `clear` keep in the windows.
        where = [d.address(window) for d, window in zip(devices, windows, strict=True)]
        self.addresses: list[Array] = []  #: Of all windows, u64, for each device.
        self.results: list[Array] = []  #: Where the kernel of each reports: u64 on the host.
        self._seen: list[memoryview] = []
        self.nbytes = sum(int(window.nbytes) for window in windows)
        for device, known in zip(devices, everywhere or [where] * len(where), strict=True):
            with device.lock, device.entered():
                self.addresses.append(device.from_host(np.array(known, np.uint64)))
                result, seen = device.pinned_zeros(_RESULTS)
            self.results.append(result)
            self._seen.append(seen)
        self.count = len(self.addresses[0])  #: The pieces of all processes.

    def fixed(self, k: int) -> dict[str, Any]:
        """Return the arguments of the k-th piece of this process that are the same in each run."""
        return {"piece": self._first + k, "windows": self.addresses[k]}

    def turn(self) -> dict[str, Any]:
        """Return those of the next run."""
        return {"epoch": self._epoch, "patience": self.patience}

    def run(
        self,
        launches: Sequence[tuple[CheckedLaunch, Any]],
        results: Sequence[Array] = (), meanwhile: Callable[[], object] | None = None,
    ) -> list[Array]:  # fmt: skip
        """Run the launches of all devices, in their order; return what each reports, on the host.

        The caller holds the devices' locks. The kernels have nothing to wait for but those of other
        processes; if there is an error they have ended, and what they wrote is of no use:
        `GridTimeout` if a device has waited too long for another one, `KeyboardInterrupt` if the
        host has stopped them. They report to `results` on the devices, by default to those above,
        which the host sees sooner, and which hold a report until the next run. The host calls
        `meanwhile` while they run; the thread has entered one of the devices.
        """
        if not self.ready:
            self.clear()
        for seen in self._seen:
            seen[_EPOCH] = self._epoch
        self.ready, first = False, self._devices[0]
        try:
            first.run_together(launches)
            if meanwhile is not None:
                meanwhile()
            found = [self._reported(k, results) for k in range(len(self._devices))]
            if any(report[_VERDICT] for report in found):
                self._fail(found)
        except BaseException as error:
            self._wait()  # which their patience bounds
            named = named_error(first, error, "device") if isinstance(error, Exception) else None
            if named is None:
                raise
            raise named from error
        self._epoch, self.ready = int(found[0][_EPOCH]), True
        return found

    def _reported(self, k: int, results: Sequence[Array] = ()) -> Array:
        device = self._devices[k]
        if results:
            with device.lock, device.entered():
                return device.to_host(results[k][:_RESULTS])
        seen, before = self._seen[k], self._epoch
        for _ in range(_ROUNDS):
            for _ in range(_GLANCES):
                if seen[_EPOCH] != before:
                    return seen
            give_way()  # other threads may have work for other devices
        with device.lock, device.entered():
            device.synchronize()
        return seen

    def _wait(self) -> None:
        for device in self._devices:
            with device.lock, device.entered():
                device.synchronize()

    def clear(self) -> None:
        """Empty this process' windows while no kernel runs; none begins before all are empty."""
        for device, window in zip(self._devices, self._windows, strict=True):
            with device.lock, device.entered():
                window[:] = 0
        self._wait()
        self._epoch, self.ready = 0, True

    def _fail(self, results: Sequence[Array]) -> NoReturn:
        verdicts = [result[_VERDICT] for result in results]
        if constant("kStopped") in verdicts:
            raise KeyboardInterrupt
        gave_up = constant("kGaveUp")
        k = verdicts.index(gave_up if gave_up in verdicts else constant("kOtherGaveUp"))
        turn, missing = (int(results[k][constant(name)]) for name in ("kTurn", "kMissing"))
        who = " and ".join(str(p) for p in range(self.count) if missing >> p & 1)
        raise GridTimeout(
            f"grid: piece {self._first + k} has heard nothing of piece {who or '?'} in turn "
            f"{turn}. Nothing was written. See that each device works, and that no other program "
            "keeps it busy."
        )
