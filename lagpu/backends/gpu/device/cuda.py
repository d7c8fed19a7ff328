"""The CUDA device: memory, events, launches and peers through CuPy."""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import operator
import os
import platform
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, cast

import numpy as np

from lagpu.backends.gpu.device import protocol
from lagpu.backends.gpu.device.compiled import compile_for, compiled
from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, HostNotification, How, Timer
from lagpu.backends.gpu.kernels import Kernel
from lagpu.errors import BackendUnavailable, KernelLaunchError

_Pair = tuple[Any, Any]


class Events:
    """Pairs of events for timers, those of timers that are gone first; `cuda` is ``cupy.cuda``.

    All that were ever made are kept. A timer in a cycle, such as an exception makes with its
    frames, is collected together with what it has: CuPy's events end themselves then, although the
    timer has just given them to the next.
    """

    def __init__(self, cuda: Any) -> None:
        self.cuda = cuda
        self._made: list[_Pair] = []
        self.spare: list[_Pair] = []

    def take(self) -> _Pair:
        try:
            return self.spare.pop()
        except IndexError:
            pair = self.cuda.Event(), self.cuda.Event()
            self._made.append(pair)
            return pair


_WAIT = """typedef unsigned long long u64;
extern "C" __global__ void wait(long long cycles, const volatile u64* released, u64 number) {
  const long long begin = clock64();
  while (clock64() - begin < cycles && *released < number) {}
}"""


class EventTimer:
    """A context manager that measures by events on the current stream; see `Timer`."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._pair = events.take()

    def __del__(self) -> None:
        if hasattr(self, "_pair"):
            self._events.spare.append(self._pair)

    def __enter__(self) -> EventTimer:
        self._pair[0].record()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._pair[1].record()

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds between both; waits for the second."""
        begin, end = self._pair
        end.synchronize()
        return float(self._events.cuda.get_elapsed_time(begin, end))


# Struct codes of arguments, eight bytes each; True is a pointer.
SLOT: dict[Any, str] = {
    True: "Q",
    np.dtype(np.bool_): "?7x",
    np.dtype(np.int32): "i4x",
    np.dtype(np.uint32): "I4x",
    np.dtype(np.int64): "q",
    np.dtype(np.uint64): "Q",
    np.dtype(np.float32): "f4x",
    np.dtype(np.float64): "d",
}


class Packed:
    """A kernel with a buffer of arguments; each launch packs those named first, the others stay.

    Arguments are adjacent in the buffer, and the driver gets the address of each. A launch has at
    most `most` blocks; `known` has the places of arrays among the arguments, by the types of all.
    `pack` writes those that vary, `pack_each` the last `each` of them; `pointers` and
    `each_pointers` are the places of arrays among them.
    """

    def __init__(
        self, device: Any, kernel: Kernel, function: int, how: How, most: int,
        names: Sequence[str], fixed: Sequence[Any] = (), each: int = 0,
    ) -> None:  # fmt: skip
        self.function, self.most = function, most
        self.known: dict[Any, list[tuple[int, Any]]] = {}
        order = [kernel.names.index(name) for name in names]
        slots = [kernel.slots[k] for k in order]
        codes, split = [SLOT[slot[1] or slot[2]] for slot in slots], len(names) - len(fixed)
        buffer: Any = np.zeros(max(1, len(names)), np.uint64)
        self.buffer = buffer
        given = zip(fixed, slots[split:], strict=True)
        known = [0 if x is None else x.data.ptr if slot[1] else x for x, slot in given]

        def packing(first: int, end: int) -> Callable[..., None]:
            packs = struct.Struct("<" + "".join(codes[first:end]))
            return functools.partial(packs.pack_into, buffer, 8 * first)

        self.pack, self.pack_each = packing(0, split), packing(split - each, split)
        packing(split, len(codes))(*known)
        self.places = np.empty(max(1, len(names)), np.uint64)  # kept: the driver has their address
        self.places[order] = buffer.ctypes.data + 8 * np.arange(len(names), dtype=np.uint64)
        self.pointers = [k for k, slot in enumerate(slots[:split]) if slot[1]]
        self.each_pointers = [k - split + each for k in self.pointers if k >= split - each]
        block, cooperative, shared = how
        driver = device.xp.cuda.driver
        self._start: Any = driver.launchCooperativeKernel if cooperative else driver.launchKernel
        end = () if cooperative else (0,)
        self._before = (1, 1, block, 1, 1, shared)
        self._after = (self.places.ctypes.data, *end)
        self._errors = driver.CUDADriverError
        self._current_stream = device.xp.cuda.get_current_stream
        self._device, self._kernel = device, kernel

    def launch(
        self, grid: int, pack: Callable[..., None], pointers: Sequence[int], values: list[Any]
    ) -> None:
        """Pack these arrays and numbers, and run the kernel on the current stream."""
        for k in pointers:
            array = values[k]
            values[k] = 0 if array is None else array.data.ptr
        stream, device = self._current_stream().ptr, self._device
        try:
            with device.launching:  # the driver has read the buffer when it returns
                pack(*values)
                device.began = True  # Python looks for signals after the next call, not before it
                self._start(self.function, grid, *self._before, stream, *self._after)
        except self._errors as error:
            device.began = False
            raise protocol.launch_error(device, error, self._kernel) from error


class CudaLaunch(CheckedLaunch):
    """A prepared launch that packs only the arguments of each call."""

    device: Any  # a CudaDevice
    packed: Packed | None = None  # from the second call on
    _grid: int
    _in_order: Any  # gets the values of `varying` from the arguments of a call

    def __call__(self, new: dict[str, Any]) -> None:
        if self.packed is None or self.device.observers:
            super().__call__(new)  # which checks it, or lets the observer see it
        else:
            self._launch(self.packed, new)

    def run(self, new: dict[str, Any]) -> None:
        """Run it, checked if it is the first time; no observer sees it."""
        if self.packed is not None:
            self._launch(self.packed, new)
            return
        self.device.run(self.kernel, self.threads, self.all(new), self.how)
        ready = self.device.ready(self.kernel, self.how)
        self._grid = min(max(1, -(-self.threads // self.how[0])), ready.most)
        several = operator.itemgetter(*self.varying) if len(self.varying) > 1 else None
        self._in_order = several or (lambda new: [new[name] for name in self.varying])
        names, fixed = [*self.varying, *self.fixed], [*self.fixed.values()]
        of = self.device, self.kernel, ready.function, self.how, ready.most
        self.packed = Packed(*of, names, fixed, self.each)

    def _launch(self, packed: Packed, new: dict[str, Any]) -> None:
        packed.launch(self._grid, packed.pack, packed.pointers, [*self._in_order(new)])
        self.repeats = True

    def again(self, values: list[Any]) -> None:
        packed: Any = self.packed
        packed.launch(self._grid, packed.pack_each, packed.each_pointers, values)


def blocks_of_cluster(capability: int) -> int:
    """Return the thread blocks of a cluster: every GPU from 9.0 on takes eight."""
    return 8 if capability >= 90 else 1


class _LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig`` of the driver; the kernel's own text has the size of its clusters."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


@functools.cache
def driver() -> Any:
    """Return the driver's library, for what CuPy does not ask it."""
    return ctypes.CDLL("libcuda.so.1")


def most_clusters(function: int, kernel: Kernel, block: int, shared: int) -> int:
    """Return how many clusters of a loaded kernel fit on the current GPU; 0 if unknown."""
    launch = _LaunchConfig((kernel.cluster, 1, 1), (block, 1, 1), shared, None, None, 0)
    found = ctypes.c_int()
    failed = driver().cuOccupancyMaxActiveClusters(
        ctypes.byref(found), ctypes.c_void_p(function), ctypes.byref(launch)
    )
    return 0 if failed else found.value


_REMEDY = 'Install `pip install "lagpu[gpu]"` on a machine with an NVIDIA GPU and its driver.'
_WAVES = 4  # grids of this many times what is resident even out blocks of unequal work
_NOWHERE = nullcontext()
_PLACES = 256  # notifications on the way at once; one more than that is read by copying
# What a slot takes from Python without a change; numbers of entries fit.
_AS_THEY_ARE = {(np.dtype(t), int) for t in (np.int64, np.uint64)} | {(np.dtype(np.bool_), bool)}
_GLANCES, _ROUNDS = 100, 1000  # at a notification, some milliseconds in all
_PER_THREAD = 2  # cudaStreamPerThread: another stream in each thread
_UNASKED = 1024  # a part of the memory for which the driver, which takes long, is not asked
_STATIC = 4096  # shared memory left for the static arrays of a kernel that takes the most


class CudaDevice(Device):
    """One GPU; it becomes the current device of each thread that uses it.

    `share` devices of this program are on the GPU: a cooperative launch has this part of the thread
    blocks that fit, so that those of all run at once.
    """

    prepared_launch = CudaLaunch
    returns_early = True

    def __init__(self, index: int = 0, share: int = 1) -> None:
        self._backend = "gpu" if index == 0 else f"gpu:{index}"
        super().__init__(self._backend)
        self.xp, self._device = _open_device(index)
        self.name = f"cuda:{index}"
        self.number, self.share = index, share
        cuda = self.xp.cuda
        self.errors = (cuda.driver.CUDADriverError, cuda.runtime.CUDARuntimeError)
        self._capability = int(self._device.compute_capability)
        self.unasked = int(self._device.mem_info[1]) // _UNASKED
        self._current_context = cuda.driver.ctxGetCurrent
        self._current_stream = cuda.get_current_stream
        self._context = self._current_context()
        attributes = self._device.attributes
        self._processors = int(attributes["MultiProcessorCount"])
        self.resident_threads = self._processors * int(attributes["MaxThreadsPerMultiProcessor"])
        #: What a launch may ask for, beside a kernel's static arrays.
        self.dynamic_shared_bytes = int(attributes["MaxSharedMemoryPerBlockOptin"]) - _STATIC
        self.cluster_blocks = blocks_of_cluster(self._capability)
        # Such as -lineinfo, so that a profiler or a sanitizer can name lines.
        self._flags = tuple(os.environ.get("LAGPU_CUDA_FLAGS", "").split())
        self._stream: Any = None  # the last one, see `enter`
        self._cooperative_blocks: dict[tuple[Kernel, int, int], int] = {}
        self._shared_allowed: dict[Kernel, int] = {}
        self._pinned = self.xp.cuda.alloc_pinned_memory(8)
        places, seen = self.pinned_zeros(4 * _PLACES)
        windows = [slice(4 * k, 4 * k + 4) for k in range(_PLACES)]
        self._places = [(places[of], seen[of]) for of in windows]
        self.stop = self.pinned_zeros(1)
        self._notifications = 0
        self._ahead: HostNotification | None = None
        self._events = Events(self.xp.cuda)
        self._ready: dict[tuple[Kernel, How], Packed] = {}
        self._apart: dict[tuple[Any, ...], str] = {}
        self._beside: Any = None
        self.launching = threading.Lock()
        self._reading = threading.Lock()  # there is one pinned word

    def enter(self) -> None:
        """Make this GPU the thread's, and let its work follow what threads before it have done.

        A new thread has no context of the driver, and a user may have chosen another GPU.
        Work goes to the thread's current stream, by default the same for all. Workspaces and
        counters serve every stream, so the first work on another one waits for all before it.
        """
        if self._current_context() != self._context:
            self._device.use()
            self.xp.cuda.driver.ctxSetCurrent(self._context)
        stream = self._current_stream().ptr
        now = (stream, threading.get_ident()) if stream == _PER_THREAD else stream
        if now != self._stream:
            if self.lasting:
                self._wait_for_loops()
            self._device.synchronize()
            self._stream = now

    def run(self, kernel: Kernel, threads: int, args: tuple[Any, ...], how: How) -> None:
        ready = self.ready(kernel, how)
        grid = min(max(1, -(-threads // how[0])), ready.most)
        ready.launch(grid, ready.pack, ready.pointers, self._values(kernel, ready, args))

    def run_together(self, launches: Sequence[tuple[CheckedLaunch, Any]]) -> None:
        """Run a cooperative launch on each of several GPUs, one after the other, without a wait.

        All that may wait for a GPU, as loading a kernel does, comes before the first launch: its
        kernel waits for those of the others.
        """
        mine = cast(Sequence[tuple[CudaLaunch, Any]], launches)
        for launch, _ in mine:
            if launch.packed is None:  # it has not run, so its kernel may not be loaded
                launch.device.enter()
                launch.device.ready(launch.kernel, launch.how)
        beside = [launch.device.beside() for launch, _ in mine]
        collects = gc.isenabled()
        gc.disable()  # what it frees may wait for a GPU
        try:
            for (launch, new), stream in zip(mine, beside, strict=True):
                launch.device.enter()
                with stream or _NOWHERE:
                    launch.run_with(new) if type(new) is list else launch(new)
        finally:
            if collects:
                gc.enable()
            for stream in beside:
                if stream is not None:
                    self.xp.cuda.get_current_stream().wait_event(stream.record())

    def beside(self) -> Any:
        """Return a stream after the current one, for a launch that others wait for, or None."""
        if self.share == 1:
            return None
        self.enter()
        if self._beside is None:
            self._beside = self.xp.cuda.Stream(non_blocking=True)
        self._beside.wait_event(self.xp.cuda.get_current_stream().record())
        return self._beside

    def _why_apart(self, devices: Sequence[Any], others: Sequence[str]) -> str:
        key = (*((device.number, device.share) for device in devices), *others)
        if key not in self._apart:
            numbers, share = [d.number for d in devices], min(d.share for d in devices)
            own = [device.identity for device in devices]
            links = (why_no_link(self.xp, x, y) for x in own for y in others)
            self._apart[key] = why_apart(self.xp, numbers, share) or next(filter(None, links), "")
        return self._apart[key]

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def shared_zeros(self, count: int) -> Any:
        """Return zeroed memory that the peers of this GPU can address; waits until it is zeroed.

        Not from CuPy's pool, which a program may have replaced by one that peers have no access to;
        the pool gives back what it holds unused if there is no other memory.
        """
        self.require(8 * count, "window")
        cuda, nbytes = self.xp.cuda, 8 * max(count, 1)
        try:
            memory = cuda.memory.Memory(nbytes)
        except cuda.runtime.CUDARuntimeError:
            self.xp.get_default_memory_pool().free_all_blocks()
            memory = cuda.memory.Memory(nbytes)
        made = self.xp.ndarray(count, np.uint64, cuda.MemoryPointer(memory, 0))
        made.fill(0)
        self.synchronize()
        return made

    def exported(self, window: Any) -> str:
        return self.xp.cuda.runtime.ipcGetMemHandle(window.data.ptr).hex()

    def imported(self, text: str) -> tuple[int, Callable[[], object]]:
        runtime = self.xp.cuda.runtime
        address = int(runtime.ipcOpenMemHandle(bytes.fromhex(text)))
        return address, functools.partial(runtime.ipcCloseMemHandle, address)

    @property
    def identity(self) -> str:
        return f"{platform.node()} {self._device.pci_bus_id}"

    def chosen(self) -> AbstractContextManager[Any]:
        return cast(AbstractContextManager[Any], self.xp.cuda.Device(self.number))

    @property
    def stream(self) -> int:
        return int(self.xp.cuda.get_current_stream().ptr)

    def copy_of(self, array: Any) -> Any:
        """Return a copy of an array, by the driver if it is contiguous."""
        if not array._c_contiguous:
            return array.copy()
        made = self.xp.empty(array.shape, array.dtype)
        made.data.copy_from_device_async(array.data, array.nbytes)
        return made

    def order_of(self, keys: Any) -> Any:
        """Return the stable order that sorts integers, by what CuPy's argsort calls."""
        keys, order = self.copy_of(keys), self.xp.empty(len(keys), np.int64)
        if len(keys):  # which it overwrites
            self.xp.cuda.thrust.argsort(keys.dtype, order.data.ptr, keys.data.ptr, 0, keys.shape)
        return order

    def running_sum(self, counts: Any) -> Any:
        """Return the sums up to each number, by what CuPy's cumsum calls."""
        if counts.dtype != np.int64 or len(counts) >= 2**31:
            return self.xp.cumsum(counts, dtype=np.int64)
        cub = self.xp.cuda.cub
        return cub.device_scan(self.copy_of(counts), cub.CUPY_CUB_CUMSUM)

    def mark(self) -> Callable[[], bool]:
        event = self.xp.cuda.get_current_stream().record()
        return lambda: bool(event.done)

    def fetched(self, array: Any, sender: Any) -> Any:
        if sender.number == self.number:
            return array.copy()
        cuda, here = self.xp.cuda, self.number
        stream = cuda.get_current_stream()
        with cuda.Device(sender.number):
            theirs = cuda.get_current_stream()
            stream.wait_event(theirs.record())
        made = self.xp.empty_like(array)
        cuda.runtime.memcpyPeerAsync(
            made.data.ptr, here, array.data.ptr, sender.number, array.nbytes, stream.ptr
        )
        theirs.wait_event(stream.record())  # it may overwrite the array only then
        return made

    def _values(self, kernel: Kernel, ready: Packed, args: tuple[Any, ...]) -> list[Any]:
        """Return the values for the slots of a launch: arrays, and numbers of the exact type.

        A launch takes microseconds, and a fused search has some fifty arguments: if their types
        passed before, only arrays are checked again.
        """
        kinds = tuple(map(type, args))
        arrays = ready.known.get(kinds)
        if arrays is not None:
            for k, dtype in arrays:
                array = args[k]
                if array is not None and not (array.dtype is dtype and array._c_contiguous):
                    break
            else:
                return list(args)
        bound = protocol.bind(kernel, args, self.xp.ndarray)
        if all(
            slot[1] or kind is slot[2].type or (slot[2], kind) in _AS_THEY_ARE
            for slot, kind in zip(kernel.slots, kinds, strict=True)
        ):
            ready.known[kinds] = [(k, kernel.slots[k][2]) for k in ready.pointers]
        return bound

    def ready(self, kernel: Kernel, how: How) -> Packed:
        """Return all of a launch that does not change from one to the next, made once."""
        found = self._ready.get((kernel, how))
        if found is None:
            block, cooperative, shared = how
            protocol.check_shape(kernel, block, shared, self.dynamic_shared_bytes)
            self._allow_shared(kernel, shared)
            most = _WAVES * self.resident_threads // block
            if cooperative:
                most = self.max_cooperative_blocks(kernel, block, shared)
            found = Packed(self, kernel, self._function(kernel).ptr, how, most, kernel.names)
            self._ready[kernel, how] = found
        return found

    def max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        known = self._cooperative_blocks.get((kernel, block, shared))
        if known is None:
            protocol.check_shape(kernel, block)
            count = self.xp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
            function = self._function(kernel)
            self._allow_shared(kernel, shared)
            if kernel.cluster > 1:
                fit = most_clusters(function.ptr, kernel, block, shared)
            else:
                fit = int(count(function.ptr, block, shared)) * self._processors
            known = kernel.cluster * (fit // self.share)
            self._cooperative_blocks[kernel, block, shared] = known
        return known

    def _allow_shared(self, kernel: Kernel, shared: int) -> None:
        """Let launches of a kernel ask for so many bytes; without that 48 KiB are the most."""
        if shared > self._shared_allowed.get(kernel, 0):  # what was allowed stays so
            driver = self.xp.cuda.driver
            wanted = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(self._function(kernel).ptr, wanted, shared)
            self._shared_allowed[kernel] = shared

    def _from_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self.xp.array(array, order="C")

    def _to_host(self, array: Any) -> np.ndarray[Any, Any]:
        return self.xp.asnumpy(array)

    def _read(self, array: Any) -> bool | int | float:
        """Return the one element of `array` through pinned memory, the quickest way."""
        if array.size != 1:
            raise KernelLaunchError(f"read: {array.size} elements != 1. Use to_host.")
        stream = self.xp.cuda.get_current_stream()
        with self._reading:
            array.data.copy_to_host_async(self._pinned.ptr, array.nbytes, stream)
            stream.synchronize()
            value: bool | int | float = np.frombuffer(self._pinned, array.dtype, 1)[0].item()
        return value

    def notification(self) -> HostNotification:
        """Return the next of some places in pinned memory, which the GPU reaches by its address."""
        ahead, self._ahead = self._ahead, None
        return ahead or self._next_notification()

    def _next_notification(self) -> HostNotification:
        place, host = self._places[self._notifications % _PLACES]
        self._notifications += 1
        return HostNotification(place, host, self._notifications)

    def _wait_for(self, notification: HostNotification, counts: Any) -> tuple[int, int]:
        if self._ahead is None:  # there is time
            self._ahead = self._next_notification()
        _, host, serial = notification
        if threading.current_thread() is not threading.main_thread():
            self._synchronize()  # a thread that glances keeps those of other devices from running
        for _ in range(_ROUNDS):
            for _ in range(_GLANCES):
                if host[2] == serial:
                    return host[0], host[1]
            protocol.give_way()
        first, second = self._to_host(counts[:2]).tolist()
        return first, second

    def _synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def free_bytes(self) -> int:
        """Return the free bytes of the driver and of CuPy's pool, within the pool's limit."""
        pool = self.xp.get_default_memory_pool()
        free, _ = self._device.mem_info
        free += pool.total_bytes()
        limit = int(pool.get_limit()) or free  # 0: none
        return max(int(min(free, limit)) - int(pool.used_bytes()), 0)

    def pooled_bytes(self) -> int:
        return int(self.xp.get_default_memory_pool().free_bytes())

    def used_bytes(self) -> int:
        return int(self.xp.get_default_memory_pool().used_bytes())

    @contextmanager
    def limited(self, nbytes: int) -> Iterator[None]:
        """Set the limit of CuPy's pool; what the pool keeps in reserve would count."""
        pool = self.xp.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.get_limit()
        pool.set_limit(size=nbytes)
        try:
            yield
        finally:
            pool.set_limit(size=before)

    def timer(self) -> Timer:
        return EventTimer(self._events)

    def hold(self, cycles: int) -> Callable[[], None]:
        wait, released, host, numbers = self._holds
        number = next(numbers)
        wait((1,), (1,), (np.int64(cycles), released, np.uint64(number)))
        return functools.partial(host.__setitem__, 0, number)

    @functools.cached_property
    def _holds(self) -> tuple[Any, Any, memoryview, Iterator[int]]:
        return self.xp.RawKernel(_WAIT, "wait"), *self.pinned_zeros(1), itertools.count(1)

    def range(self, name: str) -> AbstractContextManager[Any]:
        from cupyx.profiler import time_range

        return cast(AbstractContextManager[Any], time_range(name))

    def describe(self) -> dict[str, str]:
        cuda = self.xp.cuda
        properties = cuda.runtime.getDeviceProperties(self._device.id)
        return {
            "device": properties["name"].decode(),
            "compute capability": f"{properties['major']}.{properties['minor']}",
            "processors": str(self._processors),
            "driver": _version(cuda.runtime.driverGetVersion()),
            "runtime": _version(cuda.runtime.runtimeGetVersion()),
            "nvrtc": ".".join(map(str, cuda.nvrtc.getVersion())),
            "cupy": self.xp.__version__,
            "numpy": np.__version__,
        }

    def pinned_zeros(self, count: int) -> tuple[Any, memoryview]:
        cuda = self.xp.cuda
        pinned = cuda.alloc_pinned_memory(8 * count)
        host = np.frombuffer(pinned, np.uint64, count)
        host[:] = 0
        memory = cuda.UnownedMemory(pinned.ptr, 8 * count, pinned, self._device.id)
        made = self.xp.ndarray(count, np.uint64, cuda.MemoryPointer(memory, 0))
        return made, memoryview(host.data)

    def _compiled(self, kernel: Kernel) -> Any:
        module = self.xp.cuda.function.Module()
        module.load(compiled(self.xp, kernel, self._capability, self._flags, self._backend))
        return module.get_function(kernel.name)  # keeps the module

    def _building(self, kernel: Kernel) -> tuple[Any, ...]:
        return compile_for, kernel, self._capability, self._flags, self._backend


def _open_device(index: int) -> tuple[Any, Any]:
    try:
        import cupy
    except ImportError as error:
        raise BackendUnavailable(f"gpu: CuPy is missing ({error}). {_REMEDY}") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendUnavailable(f"gpu: no device ({error}). {_REMEDY}") from error
    if not 0 <= index < count:
        raise BackendUnavailable(
            f"gpu: there is no device {index}; this process sees {count}, numbered from 0. Take "
            "others, or fewer."
        )
    device = cupy.cuda.Device(index)
    device.use()
    cupy.cuda.runtime.free(0)  # makes the context that launches need, before the first allocation
    return cupy, device


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


_ATOMICS = 3  # CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
_NVML_ATOMICS = 3  # NVML_P2P_CAPS_INDEX_ATOMICS
_ENABLED_BEFORE = 704  # cudaErrorPeerAccessAlreadyEnabled


def why_apart(cupy: Any, numbers: Sequence[int], share: int = 1) -> str:
    """Return why GPUs, one for each piece, cannot run one kernel together, or an empty string.

    Each then addresses the memory of the others, as far as `shared_zeros` allocated it. Up to
    `share` pieces may be on one GPU, each with its share of the thread blocks.
    """
    if max(map(numbers.count, numbers)) > share:
        return "two pieces are on one GPU, where one kernel would wait for the other to begin"
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        return "CUDA_LAUNCH_BLOCKING is set, so that one kernel runs at a time"
    runtime, numbers = cupy.cuda.runtime, sorted(set(numbers))
    for one, other in itertools.permutations(numbers, 2):
        if not runtime.deviceCanAccessPeer(one, other):
            return f"GPU {one} has no access to the memory of GPU {other}"
        if not has_atomics(one, other):
            return f"GPU {one} has no atomic operations on the memory of GPU {other}"
    for one, other in itertools.permutations(numbers, 2):
        with cupy.cuda.Device(one):
            try:
                runtime.deviceEnablePeerAccess(other)
            except runtime.CUDARuntimeError as error:
                if error.status != _ENABLED_BEFORE:
                    return f"GPU {one} is refused access to the memory of GPU {other}: {error}"
    return ""


def why_no_link(cupy: Any, one: str, other: str) -> str:
    """Return why a GPU cannot address that of another process by atomic operations, or "".

    Both are given by their identity. A launcher may show a process its own GPU alone; then NVML,
    which sees all, answers in place of the driver.
    """
    (here, mine), (there, its) = one.split(), other.split()
    if one == other:
        return "two pieces are on one GPU, where one kernel would wait for the other to begin"
    if here != there:
        return f"GPU {its} is of another host"
    runtime = cupy.cuda.runtime
    with suppress(runtime.CUDARuntimeError):
        numbers = [runtime.deviceGetByPCIBusId(bus) for bus in (mine, its)]
        if runtime.deviceCanAccessPeer(*numbers) and has_atomics(*numbers):
            return ""
        return f"GPU {mine} has no atomic operations on the memory of GPU {its}"
    found, handles = ctypes.c_int(), [ctypes.c_void_p(), ctypes.c_void_p()]
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        failed = nvml.nvmlInit_v2()
        for bus, handle in zip((mine, its), handles, strict=True):
            failed |= nvml.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(handle))
        failed |= nvml.nvmlDeviceGetP2PStatus(*handles, _NVML_ATOMICS, ctypes.byref(found))
    except (OSError, AttributeError) as error:
        return f"NVML cannot say how GPU {its} is linked: {error}"
    if failed or found.value:
        return f"GPU {mine} has no atomic operations on the memory of GPU {its}, by NVML"
    return ""


def has_atomics(one: int, other: int) -> bool:
    """Whether a GPU's atomic operations on the memory of another one are one step, as by NVLink."""
    found = ctypes.c_int()
    failed = driver().cuDeviceGetP2PAttribute(ctypes.byref(found), _ATOMICS, one, other)
    return not failed and bool(found.value)
