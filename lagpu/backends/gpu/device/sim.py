"""The sim device: the same kernels compiled by g++ and run on the host."""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import os
import shlex
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lagpu.backends.gpu.device import protocol
from lagpu.backends.gpu.device.compiled import kept, require_now
from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, HostNotification, How, Timer
from lagpu.backends.gpu.kernels import Kernel
from lagpu.errors import BackendUnavailable, InvalidValue, KernelCompileError, KernelLaunchError
from lagpu.host import children
from lagpu.host.memory import available_bytes

# What kernels never use would cost compile time.
# Each library has its own places in shared memory: unique symbols would be one for all libraries.
_KERNEL_FLAGS = (
    "-DLAGPU_SIM", "-fno-exceptions", "-fno-rtti", "-nostdlib",
    "-fno-gnu-unique", "-fvisibility-inlines-hidden",
)  # fmt: skip
_CLUSTER = 3  # blocks
_UNASKED_BYTES = 1 << 20
_MESSAGE_BYTES = 512
_ONE_AT_A_TIME = threading.Lock()  # the runtime holds one launch
_entered = threading.local()  # the device of this thread, as a GPU is a thread's


class SimDevice(Device):
    """A simulated device on NumPy arrays.

    `seed` decides the order of blocks, warps and lanes; a launch has `blocks` at most, and a thread
    yields after about `preempt` atomics, fences and volatile loads, 0 for never. By default the
    seed and further compiler `flags` are those of ``LAGPU_SIM_SEED`` and ``LAGPU_SIM_FLAGS``.
    """

    name = "sim"
    limits = protocol.SIM_LIMITS
    xp: Any = np
    resident_threads = 2**31  # of any launch, `blocks` blocks
    dynamic_shared_bytes = 64 * 1024  # kDynamicBytes of the runtime

    def __init__(
        self, *, seed: int | None = None, blocks: int = 3, preempt: int = 64,
        flags: tuple[str, ...] | None = None, backend: str = "sim",
    ) -> None:  # fmt: skip
        super().__init__(backend)
        self.seed = _seed() if seed is None else seed
        self.blocks = blocks
        self.cluster_blocks = min(blocks, _CLUSTER)
        self.preempt = preempt
        further = os.environ.get("LAGPU_SIM_FLAGS", "").split()
        self.flags = tuple(further) if flags is None else flags
        self._launches = itertools.count()
        self._runtime = _load_runtime(self.flags)
        self._limit: int | None = None
        self._files: dict[int, int] = {}  # of windows, by their address
        self.stop = self.pinned_zeros(1)
        self.enter()

    def enter(self) -> None:
        _entered.device = id(self)

    def _require_entered(self) -> None:
        """Refuse what a GPU may do on another one, or not at all: a copy, an event, a launch."""
        if getattr(_entered, "device", id(self)) != id(self):
            raise KernelLaunchError("sim: the thread has entered another device. Report a bug.")

    def run(self, kernel: Kernel, threads: int, args: tuple[Any, ...], how: How) -> None:
        self._require_entered()
        self._run([self.packed(kernel, args, how)], threads, how)

    def run_together(self, launches: Sequence[tuple[CheckedLaunch, Any]]) -> None:
        first = launches[0][0]
        packed = []
        for launch, new in launches:
            block, cooperative, _ = launch.how
            if (launch.threads, block, cooperative) != (first.threads, first.how[0], True):
                how = (launch.threads, block, cooperative)
                raise KernelLaunchError(f"{launch.kernel!r}: {how} is not how the first one runs.")
            packed.append(self.packed(launch.kernel, launch.all(new), launch.how))
        self._run(packed, first.threads, first.how)
        launches[-1][0].device.enter()  # as where each device has a launch of its own

    def address(self, array: np.ndarray[Any, Any]) -> int:
        return int(array.__array_interface__["data"][0])

    def shared_zeros(self, count: int) -> np.ndarray[Any, Any]:
        """Return zeroed u64 that the simulated devices of all processes can address."""
        self.require(8 * count, "window")
        file = os.memfd_create("lagpu window")
        os.ftruncate(file, 8 * max(count, 1))
        made = np.frombuffer(mmap.mmap(file, 0), np.uint64, count)
        weakref.finalize(made, os.close, file)
        self._files[self.address(made)] = file  # of the last one there
        return made

    def exported(self, window: np.ndarray[Any, Any]) -> str:
        return f"/proc/{os.getpid()}/fd/{self._files[self.address(window)]}"

    def imported(self, text: str) -> tuple[int, Callable[[], object]]:
        with Path(text).open("r+b") as file:
            held = [np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint64)]
        return self.address(held[0]), held.clear

    def _why_apart(self, devices: Sequence[Any], others: Sequence[str]) -> str:
        pids = {other.split()[1] for other in others}
        return "its process has other devices of the job" if str(os.getpid()) in pids else ""

    def pinned_zeros(self, count: int) -> tuple[np.ndarray[Any, Any], memoryview]:
        made = np.zeros(count, np.uint64)
        return made, memoryview(made.data)

    @property
    def identity(self) -> str:
        return f"sim {os.getpid()} {id(self)}"

    def packed(
        self, kernel: Kernel, args: tuple[Any, ...], how: How
    ) -> tuple[Kernel, Any, np.ndarray[Any, Any]]:
        """Return (kernel, what runs it, its arguments), checked."""
        protocol.check_shape(kernel, how[0], how[2], self.dynamic_shared_bytes)
        slots = _pack(kernel, protocol.bind(kernel, args, np.ndarray))
        return kernel, self._function(kernel), slots

    def _run(
        self, packed: Sequence[tuple[Kernel, Any, np.ndarray[Any, Any]]], threads: int, how: How
    ) -> None:
        block, cooperative, _ = how
        grid = min(max(1, -(-threads // block)), self.blocks)
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        count, places = len(packed), ctypes.c_void_p * len(packed)
        entries = places(*(ctypes.cast(entry, ctypes.c_void_p).value for _, entry, _ in packed))
        arguments = places(*(slots.ctypes.data for _, _, slots in packed))
        seed = ctypes.c_uint64((self.seed << 32) + next(self._launches))
        launch, preempt = self._runtime.sim_launch, self.preempt
        with _ONE_AT_A_TIME:
            self.began = True  # Python looks for signals after the next call, not before it
            failed = launch(
                entries, arguments, count, grid, block, cooperative, seed, preempt,
                message, _MESSAGE_BYTES,
            )  # fmt: skip
        if failed:
            self.began = False
            raise KernelLaunchError(f"{packed[0][0]!r}: {message.value.decode()}.")

    def _compiled(self, kernel: Kernel) -> Any:
        return _load_kernel(kernel, self.flags)

    def _building(self, kernel: Kernel) -> tuple[Any, ...]:
        return _object_of, kernel, self.flags

    def max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        protocol.check_shape(kernel, block)
        return self.blocks // kernel.cluster * kernel.cluster

    def _from_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._require_entered()
        return np.array(array, order="C")

    def _to_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        self._require_entered()
        return array.copy()

    def _read(self, array: np.ndarray[Any, Any]) -> bool | int | float:
        self._require_entered()
        return array.item()

    def notification(self) -> HostNotification:
        return HostNotification(*self.pinned_zeros(4), 1)

    def _wait_for(self, notification: HostNotification, counts: Any) -> tuple[int, int]:
        """Return the numbers of a notification: a launch has ended when it returns."""
        _, host, serial = notification
        numbers: Any = host if host[2] == serial else counts
        return int(numbers[0]), int(numbers[1])

    def free_bytes(self) -> int:
        free = available_bytes()
        return free if self._limit is None else max(min(free, self._limit - self.used_bytes()), 0)

    def pooled_bytes(self) -> int:
        """Return the bytes that are assumed to be free: to measure them takes a millisecond."""
        return _UNASKED_BYTES if self._limit is None else 0

    def used_bytes(self) -> int:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @contextmanager
    def limited(self, nbytes: int) -> Iterator[None]:
        before, self._limit = self._limit, nbytes
        try:
            yield
        finally:
            self._limit = before

    def timer(self) -> Timer:
        self._require_entered()
        return _WallTimer()

    def describe(self) -> dict[str, str]:
        return {
            "device": f"sim, seed {self.seed}, {self.blocks} blocks",
            "compiler": compiler()[1],
            "numpy": np.__version__,
        }


class _WallTimer:
    def __enter__(self) -> _WallTimer:
        self._begin = self._end = time.perf_counter()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._end = time.perf_counter()

    @property
    def elapsed_ms(self) -> float:
        return (self._end - self._begin) * 1e3


def _seed() -> int:
    given = os.environ.get("LAGPU_SIM_SEED") or "0"
    try:
        return int(given)
    except ValueError as error:
        fact = f"sim: LAGPU_SIM_SEED {given!r} is not a whole number. Leave it out for 0."
        raise InvalidValue(fact) from error


@functools.cache
def _load_runtime(flags: tuple[str, ...]) -> ctypes.CDLL:
    source = '#line 1 "runtime.cpp"\n' + (SIM_FOLDER / "runtime.cpp").read_text("utf-8")
    # Each barrier runs it, and it is compiled once: `-O0` is meant for the kernels.
    runtime = ctypes.CDLL(str(shared_object(source, "runtime.cpp", (*flags, "-O1"))))
    runtime.sim_state.restype = ctypes.c_void_p
    return runtime


@functools.cache
def _load_kernel(kernel: Kernel, flags: tuple[str, ...]) -> Any:
    """Compile and load; the kernel gets the runtime by pointer, so it links to nothing."""
    library = ctypes.CDLL(str(_object_of(kernel, flags)))
    library.lg_attach(ctypes.c_void_p(_load_runtime(flags).sim_state()))
    return library.lg_entry


def _object_of(kernel: Kernel, flags: tuple[str, ...]) -> Path:
    """Return the path of a kernel's object, compiled if it is not in the cache."""
    options = (*kernel.flags, *_KERNEL_FLAGS, *flags)
    return shared_object(kernel.source + _entry_text(kernel), repr(kernel), options)


def _entry_text(kernel: Kernel) -> str:
    """C++ that calls the kernel with arguments read from 8-byte slots."""
    values = ", ".join(
        f"*reinterpret_cast<{param.ctype}{' *' * param.pointer} const*>(slots + {8 * index})"
        for index, param in enumerate(kernel.params)
    )
    return f"""
#line 1 "entry"
extern "C" void lg_attach(sim::Sim* state) {{ lg_sim = state; }}
extern "C" void lg_entry(const char* slots) {{ {kernel.name}({values}); }}
"""


def _pack(kernel: Kernel, values: list[Any]) -> np.ndarray[Any, Any]:
    slots = np.zeros(max(1, len(values)), np.uint64)
    for index, (param, value) in enumerate(zip(kernel.params, values, strict=True)):
        if not param.pointer:
            slots[index : index + 1].view(value.dtype)[0] = value
        elif value is not None:
            if not param.const and not value.flags.writeable:
                fact = f"{kernel.name}: parameter {param.name!r} ({param}): the array is read-only."
                raise KernelLaunchError(fact)
            slots[index] = value.__array_interface__["data"][0]
    return slots


#: Where the sim device's C++ lies; texts may include its headers.
SIM_FOLDER = Path(__file__).parent / "sim_runtime"

# Half the compile time of -O2 at its speed: of what -O2 adds, only tail calls count, since the
# fibers' waits end in calls. Kernels look at values as bits, which the CUDA compilers allow. A
# product and a sum are rounded each, on every processor.
_FLAGS = (
    "-std=c++17", "-O1", "-foptimize-sibling-calls", "-fPIC", "-shared", "-fno-strict-aliasing",
    "-ffp-contract=off", "-pipe",
)  # fmt: skip
_LIBRARIES = ("-lm", "-lgcc")  # named, for compilers with -nostdlib; they follow the text
_VERSION_SECONDS, _COMPILE_SECONDS = 60, 600  # a compiler that takes longer hangs
_ANOTHER = "Set CXX to a compiler that works, or leave it out for g++."


@functools.cache
def compiler() -> tuple[tuple[str, ...], str]:
    """Return the words of the C++ compiler's command, ``CXX`` or ``g++``, and its version line."""
    wanted = os.environ.get("CXX") or "g++"
    try:
        words = shlex.split(wanted)
    except ValueError as error:
        said = f"sim: CXX={wanted!r}: {error}. Write it as in a shell."
        raise BackendUnavailable(said) from error
    path = shutil.which(words[0]) if words else None
    if path is None:
        said = f"sim: no C++ compiler {wanted!r}. Install one, such as `apt install g++`."
        raise BackendUnavailable(said)
    command = (path, *words[1:])
    refused = f"sim: the C++ compiler {wanted!r} does not report its version"
    try:
        done = children.run([*command, "--version"], seconds=_VERSION_SECONDS)
    except OSError as error:
        late = isinstance(error, TimeoutError)
        fact = f" in {_VERSION_SECONDS} s" if late else f": {error.strerror or error}"
        raise BackendUnavailable(f"{refused}{fact}. {_ANOTHER}") from error
    if done.code or not done.out.strip():
        raise BackendUnavailable(f"{refused}: it ends with exit code {done.code}. {_ANOTHER}")
    return command, done.out.splitlines()[0]


def shared_object(source: str, what: str, flags: tuple[str, ...]) -> Path:
    """Return the path of `source` compiled with `flags`, or from the cache; errors name `what`."""
    command, version = compiler()
    options = [*command, *_FLAGS, *flags, f"-I{SIM_FOLDER}"]
    decisive = (version, *_FLAGS, *_LIBRARIES, *flags, _headers(), source)
    return kept("sim", decisive, ".so", lambda folder: _build(options, source, what, folder))[0]


@functools.cache
def _headers() -> str:
    return "\0".join(header.read_text("utf-8") for header in sorted(SIM_FOLDER.glob("*.hpp")))


def _build(command: list[str], source: str, what: str, folder: str) -> bytes:
    """Return the object; the compiler writes into `folder` alone."""
    require_now()
    built = Path(folder) / "built.so"
    words = [*command, "-x", "c++", "-", "-o", str(built), *_LIBRARIES]
    try:
        done = children.run(words, source, seconds=_COMPILE_SECONDS, folder=folder)
    except TimeoutError as error:
        fact = f"{what}: the compiler has not ended after {_COMPILE_SECONDS} s. {_ANOTHER}"
        raise KernelCompileError(fact) from error
    except OSError as error:
        fact = f"{what}: the compiler cannot be started: {error.strerror or error}. {_ANOTHER}"
        raise BackendUnavailable(fact) from error
    if done.code:
        raise KernelCompileError(f"{what}: does not compile. The log says:\n{done.err}")
    if not built.is_file():
        raise KernelCompileError(f"{what}: the compiler has written nothing. {_ANOTHER}")
    return built.read_bytes()
