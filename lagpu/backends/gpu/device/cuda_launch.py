"""Launches on CUDA: prepared ones, and how many clusters of thread blocks fit on a GPU at once."""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.errors import launch_error
from lagpu.backends.gpu.device.launch import CheckedLaunch
from lagpu.backends.gpu.device.protocol import PER_CALL
from lagpu.backends.gpu.kernels import Kernel

__all__ = ["SLOT", "CudaLaunch", "blocks_of_cluster", "driver", "most_clusters"]

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


class CudaLaunch(CheckedLaunch):
    """A prepared launch that packs only the arguments of each call.

    Those arguments are adjacent in the buffer, so one call packs them; the driver gets the address
    of each argument.
    """

    device: Any  # a CudaDevice

    def __init__(
        self,
        device: Any,
        kernel: Kernel,
        threads: int,
        args: tuple[Any, ...],
        **how: Any,
    ) -> None:
        super().__init__(device, kernel, threads, args, **how)
        self._pointers: list[int] | None = None  # the arrays among what is given each time

    def _lay_out(self) -> None:
        """Pack the fixed arguments, after room for the others."""
        kernel, device = self.kernel, self.device
        ready = device.ready(kernel, self.cooperative, self.block, self.shared)
        slots, count = kernel.slots, len(self._args)
        fixed = [k for k in range(count) if self._args[k] is not PER_CALL]
        order = [*self._per_call, *fixed]
        codes = [SLOT[slots[k][1] or slots[k][2]] for k in order]
        varying = struct.Struct("<" + "".join(codes[: len(self._per_call)]))
        buffer: Any = np.zeros(max(1, count), np.uint64)
        values = [self._args[k] for k in fixed]
        known = [0 if x is None else x.data.ptr if slots[k][1] else x
                 for k, x in zip(fixed, values, strict=True)]  # fmt: skip
        struct.pack_into("<" + "".join(codes[len(self._per_call) :]), buffer, varying.size, *known)
        places = np.empty(max(1, count), np.uint64)
        places[order] = buffer.ctypes.data + 8 * np.arange(count, dtype=np.uint64)
        grid = min(max(1, -(-self.threads // self.block)), ready.most)
        self._pack: Any = varying.pack_into
        self._buffer, self._places = buffer, places  # kept: the driver has addresses in them
        driver = device.xp.cuda.driver
        launch: Any = driver.launchCooperativeKernel if self.cooperative else driver.launchKernel
        how = (ready.function, grid, 1, 1, self.block, 1, 1, self.shared)
        end = (places.ctypes.data,) if self.cooperative else (places.ctypes.data, 0)
        self._driver_launch, self._how, self._end = launch, how, end
        self._launching, self._errors = device.launching, driver.CUDADriverError
        self._current_stream = device.xp.cuda.get_current_stream
        self._pointers = [at for at, k in enumerate(self._per_call) if slots[k][1]]

    @property
    def has_run(self) -> bool:
        """Whether it was run before, so that its kernel is loaded."""
        return self._pointers is not None

    def __call__(self, *new: Any) -> None:
        """Run it with these for the arguments that are given each time."""
        if self._pointers is None or self.device.observers:
            super().__call__(*new)  # which checks it, or lets the observer see it
        else:
            self._launch(new)

    def run(self, new: tuple[Any, ...]) -> None:
        """Run it, checked if it is the first time; no observer sees it."""
        if self._pointers is None:
            super().run(new)
            self._lay_out()
        else:
            self._launch(new)

    def _launch(self, new: tuple[Any, ...]) -> None:
        values = [*new]
        for k in self._pointers or ():
            array = values[k]
            values[k] = 0 if array is None else array.data.ptr
        stream = self._current_stream().ptr
        try:
            with self._launching:
                self._pack(self._buffer, 0, *values)
                self.device.began = True
                self._driver_launch(*self._how, stream, *self._end)
        except self._errors as error:
            self.device.began = False
            raise launch_error(self.device, error, self.kernel) from error


_FIRST = 90  # compute capability that knows clusters
_BLOCKS = 8  # that every such GPU takes in one


def blocks_of_cluster(capability: int) -> int:
    """Return the thread blocks of a cluster on a GPU of a compute capability; 1 if it has none."""
    return _BLOCKS if capability >= _FIRST else 1


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
    """Return how many clusters of a kernel fit on the current GPU; 0 if the driver cannot tell.

    CuPy does not ask the driver.

    Parameters
    ----------
    function : int
        The kernel, loaded.
    kernel : Kernel
        Whose text says how many blocks a cluster has.
    block, shared : int
        Threads of a block, and bytes of the shared memory that its launch asks for.
    """
    launch = _LaunchConfig((kernel.cluster, 1, 1), (block, 1, 1), shared, None, None, 0)
    found = ctypes.c_int()
    failed = driver().cuOccupancyMaxActiveClusters(
        ctypes.byref(found), ctypes.c_void_p(function), ctypes.byref(launch)
    )
    return 0 if failed else found.value
