"""What a driver says, by lagpu's names."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import lagpu
from lagpu import generators
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device import protocol
from lagpu.backends.gpu.device.protocol import launch_error, named_error
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.kernels import kernel
from lagpu.errors import KernelLaunchError, OutOfMemory


class DriverError(RuntimeError):
    """An error as CuPy's of the driver and of the runtime."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


FULL = DriverError(2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory")
BROKEN = DriverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")


class Failing(SimDevice):
    """A device whose driver fails at each launch from some time on."""

    fails = None

    def run(self, *how):
        if self.fails is not None:
            raise self.fails
        super().run(*how)


@pytest.mark.parametrize(
    ("fails", "kind", "text"),
    [
        (FULL, OutOfMemory, "is out of memory: CUDA_ERROR_OUT_OF_MEMORY: out of memory. Free"),
        (BROKEN, KernelLaunchError, "CUDA_ERROR_ILLEGAL_ADDRESS: .* Report it as a bug"),
    ],
)
def test_a_driver_that_fails_in_a_statement(fails, kind, text):
    device = Failing()
    device.errors = (DriverError,)
    A = generators.kronecker(6, backend=GpuBackend("failing", device))
    device.fails = fails
    with lagpu.eager(), pytest.raises(kind, match=text):
        lagpu.algorithms.bfs_levels(A, 1)


def test_a_launch_that_the_driver_refuses():
    device, some = SimDevice(), kernel("spmv/pull.cu", "spmv_csc_scalar")
    assert isinstance(launch_error(device, FULL, some), OutOfMemory)
    refused = launch_error(device, BROKEN, some)
    assert isinstance(refused, KernelLaunchError)
    assert "spmv_csc_scalar" in str(refused)
    assert named_error(device, ValueError("other"), "execute") is None


@pytest.mark.parametrize("at", ["__enter__", "__exit__"])
def test_an_interrupt_as_a_block_begins_or_ends_keeps_no_lock(at):
    """Python raises it at the first instruction of a method, before the method does anything."""
    device, seen = SimDevice(), []

    def trace(frame, event, _):
        if event == "call" and frame.f_code.co_name == at and frame.f_globals is vars(protocol):
            seen.append(at)
            raise KeyboardInterrupt

    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt), device.lock, device.entered():
            pass
    finally:
        sys.settrace(None)
    with ThreadPoolExecutor(1) as other:
        assert other.submit(device.lock.acquire, timeout=1).result()
        other.submit(device.lock.release).result()
    assert seen
