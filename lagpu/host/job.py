"""The job of processes that mpirun or srun has started: its size, and which process prints."""

import atexit
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from types import TracebackType
from typing import NamedTuple

from lagpu.errors import plain
from lagpu.host.files import nowhere

# Of each launcher: the number of processes, and the number of this one. Slurm sets its own for a
# job's script too, so they count only beside those of PMIx, which each process of a step has.
_VARIABLES = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),  # Open MPI
    ("PMI_SIZE", "PMI_RANK"),  # MPICH, Intel MPI, srun --mpi=pmi2
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),  # MVAPICH
    ("SLURM_STEP_NUM_TASKS", "PMIX_RANK"),  # srun --mpi=pmix
)
_OTHERS_JOIN_SECONDS = 2.0  # what processes take to join that have started at the same time
_FIRST_SPEAKS_SECONDS = 2.0  # what the first process needs to print an error that all have

_deciders: list[Callable[[BaseException], bool]] = []
_of_all: list[Callable[[], bool]] = []
_hooked: list[bool] = []
_command: list[Sequence[str]] = [("no command",)]


class Job(NamedTuple):
    """The place of this process in its job: one of `size`, at least 2, with number `rank`."""

    size: int
    rank: int


def launched() -> Job | None:
    """Return the job that a launcher has started this process in; None if it is alone."""
    for size, rank in _VARIABLES:
        found = os.environ.get(size, ""), os.environ.get(rank, "")
        if all(map(str.isdigit, found)):
            job = Job(*map(int, found))
            return job if job.size > 1 else None
    return None


@contextmanager
def first_reports() -> Iterator[None]:
    """Have the first process of the job alone print and write files in the block."""
    job = launched()
    if job is None or job.rank == 0:
        yield
        return
    with nowhere(), redirect_stdout(io.StringIO()):
        yield


def speaks(error: BaseException) -> bool:
    """Return whether this process is the one that prints an error that ends its job.

    Processes that can reach each other decide it together, within seconds. Before they can, the
    first one prints, and ends some seconds later: Open MPI's launcher may wait for ever if a
    process ends while another one joins. Another one waits until the launcher has had the time to
    end it too.
    """
    if _deciders:
        return _deciders[-1](error)
    job = launched()
    if job is not None and job.rank:
        time.sleep(_OTHERS_JOIN_SECONDS + _FIRST_SPEAKS_SECONDS)
    elif job is not None:
        atexit.register(time.sleep, _OTHERS_JOIN_SECONDS)
    return True


def owner(error: BaseException) -> str:
    """Return ``process 1 of 3: `` for an error of some processes that this one prints; or ""."""
    job = launched()
    if job is None or getattr(error, "process", None) is not None:
        return ""
    of_all = _of_all[-1]() if _of_all else job.rank == 0
    return "" if of_all else f"process {job.rank} of {job.size}: "


@contextmanager
def running(phrases: Sequence[str]) -> Iterator[None]:
    """Have a grid that begins inside compare the command that each process of its job runs."""
    _command.append(phrases)
    try:
        yield
    finally:
        _command.pop()


def command() -> Sequence[str]:
    """Return the phrases of the command that this process runs; one alone for another program."""
    return _command[-1]


def end_together(
    decides: Callable[[BaseException], bool] | None = None,
    of_all: Callable[[], bool] = lambda: False,
) -> None:
    """Have an uncaught error printed by one process of the job.

    `decides` informs the other processes that this one ends by an error, and returns whether it
    prints; `of_all` returns, after that, whether every process has such an error of its own.
    """
    if decides is not None:
        _deciders[:], _of_all[:] = [decides], [of_all]
    if _hooked:
        return
    _hooked.append(True)
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        if speaks(error):
            before(kind, error, at)
            job = launched()
            who = "this process" if job is None else f"process {job.rank} of {job.size}"
            said = plain(" ".join(f"{kind.__name__}: {error}".split())).rstrip(":")
            print(f"lagpu: {who} ended the job: {said}", file=sys.stderr, flush=True)

    sys.excepthook = hook
