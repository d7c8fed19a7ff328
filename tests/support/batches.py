"""Batches in tests: statements wait from their first time on, and programs are made at once."""

from contextlib import contextmanager
from unittest import mock

from lagpu.backends.gpu.device import cuda
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused.program import batch as program_batch
from lagpu.core import recorder


@contextmanager
def batches_at_once(after=0):
    """Let all lines wait; batches alike run one by one `after` times, then as a program."""
    recorder.queue.forget()  # another test's thread may have used it
    kept = recorder.HOT, program_batch.AFTER, program_batch.WAITS
    recorder.HOT, program_batch.AFTER, program_batch.WAITS = 0, after, True
    try:
        yield
    finally:
        recorder.queue.flush()
        recorder.HOT, program_batch.AFTER, program_batch.WAITS = kept


@contextmanager
def launches(backend):
    """Yield a list that gets the name of each kernel that the backend's device launches."""
    names = []
    if backend.device.returns_early:
        of, name, kernel_of = cuda.Packed, "launch", lambda packed, *_: packed._kernel
    else:
        of, name, kernel_of = SimDevice, "run_packed", lambda _, packed, *rest: packed[0][0]
    run = getattr(of, name)

    def counted(*given):
        names.append(kernel_of(*given).name)
        return run(*given)

    with mock.patch.object(of, name, counted):
        yield names
