"""The processes of a job as threads of this one: what MPI does, without MPI or an endless wait.

A thread waits without the lock of the cpu backend, which it may hold as it meets the others.
"""

import collections
import threading
import types

import numpy as np

from lagpu.backends.cpu import CpuBackend
from lagpu.backends.cpu.handles import LOCK
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import MpiEngine
from lagpu.backends.grid.processes import Processes

SECONDS = 120  # for machines that do much else, or compile kernels on the way


class Room:
    """Where the ranks meet: each call returns what every rank has brought to it."""

    def __init__(self, size):
        self.size, self.aborted = size, []
        self.condition = threading.Condition(LOCK)
        self.brought, self.round, self.found = {}, 0, {}
        self.groups = {}

    def meet(self, rank, call, value):
        return self.wait(call, self.bring(rank, call, value))

    def bring(self, rank, call, value):
        """Bring a value to a call, and return its round."""
        with self.condition:
            assert rank not in self.brought
            self.brought[rank] = call, value
            mine = self.round
            if len(self.brought) == self.size:
                calls = {name for name, _ in self.brought.values()}
                assert len(calls) == 1, f"MPI would hang: {calls}"
                self.found[mine] = [self.brought[r][1] for r in range(self.size)]
                self.found.pop(mine - 8, None)
                self.brought, self.round = {}, mine + 1
                self.condition.notify_all()
            return mine

    def wait(self, call, mine):
        with self.condition:
            found = self.condition.wait_for(lambda: self.round > mine, SECONDS)
            assert found, f"{call}: the others did not come"
            return self.found[mine]


class Comm:
    """The calls of mpi4py's communicator that a grid needs."""

    def __init__(self, room, rank, counts=None):
        self.room, self.rank, self.most = room, rank, 0
        self.size = room.size
        # Messages of this rank to others, by call, and their bytes; also by what it is split into.
        self.counts = collections.Counter() if counts is None else counts

    def count(self, call, nbytes):
        """Count a message to each other rank, of so many bytes together."""
        self.counts[call] += self.size - 1
        self.counts["bytes"] += nbytes

    def Get_size(self):
        return self.room.size

    def Get_rank(self):
        return self.rank

    def Abort(self, code):
        self.room.aborted.append((self.rank, code))

    def Split(self, color, key):
        found = self.room.meet(self.rank, "Split", (color, key, self.rank))
        mine = sorted((k, r) for c, k, r in found if c == color)
        with self.room.condition:
            room = self.room.groups.setdefault(tuple(mine), Room(len(mine)))
        return Comm(room, mine.index((key, self.rank)), self.counts)

    def Allgather(self, send, receive):
        self._gathered("Allgather", send, receive)()

    def Iallgather(self, send, receive):
        """See MPI: it does not match a call that waits."""
        return types.SimpleNamespace(Wait=self._gathered("Iallgather", send, receive))

    def _gathered(self, call, send, receive):
        self.count("Allgather", (self.size - 1) * send.nbytes)
        mine = self.room.bring(self.rank, call, send.copy())

        def wait():
            receive.reshape(self.size, -1)[:] = np.stack(self.room.wait(call, mine))

        return wait

    def Allgatherv(self, send, receive):
        buffer, counts = receive
        found = self.room.meet(self.rank, "Allgatherv", send.copy())
        assert [len(x) for x in found] == counts
        self.most = max(self.most, len(buffer))
        buffer[:] = np.concatenate(found)

    def Alltoall(self, send, receive):
        self.count("Alltoall", (self.size - 1) * send.itemsize)
        receive[:] = [x[self.rank] for x in self.room.meet(self.rank, "Alltoall", send.copy())]

    def Alltoallv(self, send, receive):
        self.count("Alltoallv", len(send[0]) - send[1][self.rank])
        cut = np.split(send[0].copy(), np.cumsum(send[1])[:-1])
        buffer, counts = receive
        found = [x[self.rank] for x in self.room.meet(self.rank, "Alltoallv", cut)]
        assert [len(x) for x in found] == counts
        self.most = max(self.most, len(buffer), len(send[0]))
        buffer[:] = np.concatenate(found)


def on_ranks(size, program, first_here=False, **options):
    """Run ``program(processes)`` on each rank: what each returned or raised, and the room.

    The first rank may be this thread, which is the one that signals interrupt.
    """
    room, found = Room(size), [None] * size

    def run(rank):
        try:
            found[rank] = program(Processes(Comm(room, rank), **options))
        except BaseException as error:
            found[rank] = error

    others = range(int(first_here), size)
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in others]
    for thread in threads:
        thread.start()
    if first_here:
        run(0)
    for thread in threads:
        thread.join(2 * SECONDS)
        assert not thread.is_alive(), "a rank is left behind"
    return found, room


def on_grids(size, program, pieces=1, place=CpuBackend, order=None, **options):
    """Run ``program(backend)`` on the grid of each rank: what each returned or raised."""

    def run(processes):
        places = [place() for _ in range(pieces)]
        return program(GridBackend("grid", MpiEngine(processes, pieces), places, order=order))

    return on_ranks(size, run, **options)[0]
