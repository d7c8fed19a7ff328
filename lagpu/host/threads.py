"""Threads for work that does not hold the interpreter: of NumPy on large arrays, or of devices."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["mapped"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 16  # beyond that memory is the bound


def mapped(
    work: Callable[[Item], Result], items: Iterable[Item], waits: bool = False
) -> list[Result]:
    """Return what a function returns for each item, in order; threads share several items.

    There are at most as many threads as cores, unless the work mostly `waits`, as for a device.
    Each call sees the caller's context variables, such as `numpy.errstate`.
    """
    items = list(items)
    count = min(_MOST, len(items) if waits else _cores(), len(items))
    if count < 2:
        return [work(item) for item in items]
    contexts = [contextvars.copy_context() for _ in items]
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda own, item: own.run(work, item), contexts, items))


def _cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
