"""Run a fused loop whole: an error or an interrupt leaves what was before it, or what follows it.

An interrupt (Ctrl-C) may come between any two lines of Python. Behind the launch of the loop's
kernel there is no way back, so what is left to do is done before the interrupt goes on. While the
host waits for a kernel, no line of Python sees an interrupt: the kernel itself looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from lagpu.backends.gpu.device.errors import named_error
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.errors import LagpuError
from lagpu.host.interrupt import heard

__all__ = ["Prepared", "run_whole"]

#: (what launches the kernel of the loop, what takes its results over; that returns True if the
#: kernel was stopped, and what it wrote is of no use)
Prepared = tuple[Callable[[], None], Callable[[], bool | None]]


def run_whole(
    device: Device,
    name: str,
    written: Sequence[VectorStore],
    prepare: Callable[[], Prepared],
    stops: bool = False,
) -> None:
    """Prepare a loop, launch its kernel and take the results over, or leave all as it was.

    Parameters
    ----------
    device : Device
        Where the loop runs.
    name : str
        What errors call the loop.
    written : sequence of VectorStore
        The vectors that the loop writes in place.
    prepare : callable
        Allocates, compiles, and changes the form of vectors, or drops entries that the kernel will
        replace; it returns (launch, settle). `settle` may run twice: the second time it finishes
        what an interrupt has left.
    stops : bool
        Whether the kernel looks at the device's word `Device.stop`, which an interrupt sets. Then
        the host waits for the end of the loop.

    Raises
    ------
    KeyboardInterrupt
        When the kernel was stopped, in whatever thread; the vectors are what they were after some
        whole iteration, or before the loop.
    OutOfMemory, KernelCompileError, KernelLaunchError
        Before the kernel ran; the vectors are what they were.
    """
    before = [(x, x.state()) for x in written]
    try:
        try:
            launch, settle = prepare()
        except BaseException:
            _restore(before)
            raise
        device.began = False
        with heard(device.stop[1]) if stops else nullcontext():
            _run(device, launch, settle, before, stops)
    except Exception as error:
        named = named_error(device, error, name)
        if named is None:
            raise
        raise named from error


def _run(
    device: Device,
    launch: Callable[[], None],
    settle: Callable[[], bool | None],
    before: list[tuple[VectorStore, tuple[Any, ...]]],
    waits: bool,
) -> None:
    """Launch a kernel, and take its results over, whatever interrupts that."""

    def end() -> None:
        if waits:
            device.synchronize()
        if settle():
            _restore(before)

    try:
        launch()
    except BaseException:
        if device.began:
            end()
        else:
            _restore(before)
        raise
    try:
        end()
    except LagpuError:
        raise
    except BaseException:
        end()
        raise


def _restore(before: list[tuple[VectorStore, tuple[Any, ...]]]) -> None:
    for x, state in before:
        x.restore(state)
