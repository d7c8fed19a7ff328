"""Batches in tests: statements wait from their first time on, and programs are made at once."""

from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest

from lagpu import Vector
from lagpu.backends.gpu.device.cuda import CudaDevice, Packed
from lagpu.backends.gpu.fused.program import batch as program_batch
from lagpu.core import recorder


def full(place, n=70, start=0.0):
    return Vector.from_dense(np.arange(n) + start, backend=place)


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


@pytest.fixture
def place(backend):
    if backend.capabilities.batches is None:
        pytest.skip("cpu runs each statement by itself")
    with batches_at_once():
        yield backend


@contextmanager
def launches(backend):
    """Yield a list that gets the name of each kernel that the backend's device launches."""
    device, names = backend.device, []
    quick = isinstance(device, CudaDevice)  # a launch that comes again does not ask it
    of, name = (Packed, "launch") if quick else (device, "run")
    own = getattr(of, name)

    def counted(first, *rest):
        names.append((first._kernel if quick else first).name)
        return own(first, *rest)

    with mock.patch.object(of, name, counted):
        yield names
