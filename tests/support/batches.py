"""Batches in tests: statements wait from their first time on, and programs are made at once."""

from contextlib import contextmanager

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
    device = backend.device
    names, run = [], device.run

    def counted(kernel, threads, args, how):
        names.append(kernel.name)
        return run(kernel, threads, args, how)

    device.run = counted
    try:
        yield names
    finally:
        del device.run
