"""Run a fused loop whole: an error or an interrupt leaves what was before it, or what follows it.

An interrupt (Ctrl-C) may come between any two lines of Python. Behind the launch of the loop's
kernel there is no way back, so what is left to do is done before the interrupt goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lagpu.backends.gpu.device.errors import named_error
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.errors import LagpuError

__all__ = ["Prepared", "run_whole"]

#: (what launches the kernel of the loop, what takes its results over)
Prepared = tuple[Callable[[], None], Callable[[], None]]


def run_whole(
    device: Device,
    name: str,
    written: Sequence[VectorStore],
    prepare: Callable[[], Prepared],
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

    Raises
    ------
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
        try:
            launch()
        except BaseException:
            if device.began:
                settle()
            else:
                _restore(before)
            raise
        try:
            settle()
        except LagpuError:
            raise
        except BaseException:
            settle()
            raise
    except Exception as error:
        named = named_error(device, error, name)
        if named is None:
            raise
        raise named from error


def _restore(before: list[tuple[VectorStore, tuple[Any, ...]]]) -> None:
    for x, state in before:
        x.restore(state)
