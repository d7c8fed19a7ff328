"""Free host memory, and a check before an allocation that it fits."""

from __future__ import annotations

from pathlib import Path

from lagpu.errors import OutOfMemory

__all__ = ["available_bytes", "require"]

_MEMINFO = Path("/proc/meminfo")
_MEMBERSHIP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")

# File names of the limit, the use, and the line of memory.stat with page cache that can be dropped.
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")


def available_bytes() -> int:
    """Return the bytes that this process may still allocate without swapping.

    That is the least of the machine's ``MemAvailable`` and the bytes left in the control groups
    of this process, version 1 or 2.
    """
    return min([_machine_bytes(), *_control_group_bytes()])


def require(nbytes: int, what: str, remedy: str = "Use a smaller graph.") -> None:
    """Raise if an allocation would exceed the free host memory.

    Parameters
    ----------
    nbytes : int
        Bytes about to be allocated.
    what : str
        The operation, with which the message begins.
    remedy : str
        What the user can do, the end of the message.

    Raises
    ------
    OutOfMemory
        ``what: needs 12.4 GB, 9.1 GB free. remedy``
    """
    free = available_bytes()
    if nbytes > free:
        raise OutOfMemory(
            f"{what}: needs {nbytes / 1e9:,.1f} GB, {free / 1e9:,.1f} GB free. {remedy}"
        )


def _machine_bytes() -> int:
    for line in _MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{_MEMINFO} has no line MemAvailable")  # pragma: no cover (Linux < 3.14)


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
        left += [
            _left(place, *names)
            for place in (folder, *folder.parents)
            if root in (place, *place.parents)
        ]
    return [nbytes for nbytes in left if nbytes is not None]


def _left(folder: Path, limit: str, usage: str, cache: str) -> int | None:
    """Return limit minus use of one control group, None if it has no limit."""
    try:
        ceiling = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
        counters = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:
        return None
    if ceiling == "max":
        return None
    return max(0, int(ceiling) - used + int(counters.get(cache, 0)))
