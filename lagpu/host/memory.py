"""Memory and threads of this machine: the bytes that are free, and work on all cores."""

import contextvars
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from lagpu.errors import OutOfMemory

_MEMINFO = Path("/proc/meminfo")
_MEMBERSHIP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")
_STATM = Path("/proc/self/statm")

# Limits of the process, each with the column of statm that it bounds, in pages.
_LIMITS = ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5))

# File names of the limit, the use, and the line of memory.stat with page cache that can be dropped.
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")


def available_bytes() -> int:
    """Return the bytes that this process may still allocate without swapping.

    That is the least of the machine's ``MemAvailable``, the bytes left in the control groups of
    this process, version 1 or 2, and the bytes left under its own limits (``ulimit -v``, ``-d``).
    """
    return min([_shared_bytes(), *_process_bytes()])


def require(
    nbytes: int, what: str, remedy: str = "Use a smaller graph.", processes: int = 1
) -> None:
    """Raise `OutOfMemory` if an allocation of so many bytes exceeds the free host memory.

    If several `processes` of this machine are about to allocate as much, it must have the memory of
    all. The message is ``what: needs 12.4 GB, 9.1 GB free. remedy``.
    """
    free = available_bytes()
    if nbytes <= free and processes > 1:
        nbytes, free = nbytes * processes, _shared_bytes()
    if nbytes > free:
        raise OutOfMemory(f"{what}: needs {_shown(nbytes)}, {_shown(free)} free. {remedy}")


@contextmanager
def shortage_named(what: str, remedy: str = "Use a smaller graph.") -> Iterator[None]:
    """Turn a failed allocation of Python, NumPy or SciPy into `OutOfMemory` with its cause.

    `require` refuses what cannot fit; this is for what another process takes in the meantime.
    """
    try:
        yield
    except OutOfMemory:
        raise
    except MemoryError as error:
        fact = " ".join(str(error).split()).rstrip(".") or "an allocation failed"
        raise OutOfMemory(f"{what}: {fact}. {remedy}") from error


def _shown(nbytes: float) -> str:
    """Return a size for a message, in GB unless that is less than one."""
    return f"{nbytes / 1e9:,.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:,.1f} MB"


def _shared_bytes() -> int:
    """Return the bytes that this process and others beside it may still allocate together."""
    facts = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
    return min([int(facts["MemAvailable"].split()[0]) * 1024, *_control_group_bytes()])


def _process_bytes() -> list[int]:
    pages, size = _STATM.read_text().split(), resource.getpagesize()
    limits = ((resource.getrlimit(kind)[0], int(pages[column]) * size) for kind, column in _LIMITS)
    return [max(0, limit - used) for limit, used in limits if limit != resource.RLIM_INFINITY]


def _control_group_bytes() -> list[int]:
    """Return the bytes left under the limit of each control group above this process."""
    left = []
    for line in _MEMBERSHIP.read_text().splitlines() if _MEMBERSHIP.exists() else []:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUPS, _V2
        elif "memory" in controllers.split(","):
            root, names = _CGROUPS / "memory", _V1
        else:
            continue
        folder = root / group.lstrip("/")
        # In a container the path may be one of the host, so the mount point itself is tried too.
        places = (x for x in (folder, *folder.parents) if root in (x, *x.parents))
        left += [_left(place, *names) for place in places]
    return [nbytes for nbytes in left if nbytes is not None]


def _left(folder: Path, limit: str, usage: str, cache: str) -> int | None:
    """Return limit minus use of one control group, None if it has no limit."""
    try:
        ceiling = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
    except OSError:
        return None
    if ceiling == "max":
        return None
    try:
        counters = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:  # without it nothing is known to be droppable
        counters = {}
    return max(0, int(ceiling) - used + int(counters.get(cache, 0)))


# ---- Threads for work that does not hold the interpreter: of NumPy on large arrays, or of devices.
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
    return len(os.sched_getaffinity(0))
