"""The grid: one vector or matrix in pieces, each piece on a backend of its own."""

from collections.abc import Callable, Sequence

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import LocalEngine, connected, engine, require_same
from lagpu.backends.grid.pieces import done_together
from lagpu.backends.protocol import Backend
from lagpu.host.job import Job

__all__ = ["GridBackend", "make", "make_in_job"]


def make(
    name: str, places: Sequence[Backend],
    grid: tuple[int, int] | None = None, order: str | None = None,
) -> GridBackend:  # fmt: skip
    """Return the grid with a piece on each of these local backends, all in this process."""
    devices = [place.device for place in places if isinstance(place, GpuBackend)]
    own = devices if len(devices) == len(places) else ()
    return GridBackend(name, LocalEngine(len(places), own), places, grid, order)


def make_in_job(
    name: str, job: Job, pieces: int, place_on: Callable[[int], Backend],
    grid: tuple[int, int] | None = None, order: str | None = None,
) -> GridBackend:  # fmt: skip
    """Return the grid with `pieces` pieces in each process of a job; every process calls this.

    `place_on` returns the local backend on a device, by its number on this host. If a process lacks
    its device, or has other versions than the first, all raise `BackendUnavailable`.
    """
    joined = engine(job, pieces)

    def made() -> GridBackend:
        places = [place_on(device) for device in joined.devices]
        require_same(joined, name, places)
        devices = [place.device for place in places if isinstance(place, GpuBackend)]
        connection = connected(joined, devices) if devices else joined
        return GridBackend(name, connection, places, grid, order)

    return done_together(joined, "its start", made, [])
