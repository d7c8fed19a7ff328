"""Arrays reach the pieces of other processes as they reach those of the own one, in any chunks."""

import signal

import numpy as np
import pytest
from ranks import on_ranks

from lagpu.backends.grid import processes as module
from lagpu.backends.grid.comm import LocalEngine, MpiEngine
from lagpu.errors import LagpuError, OutOfMemory, ProcessFailed

SIZES = [(1, 1), (1, 3), (2, 1), (3, 1), (2, 2), (3, 2)]  # processes, pieces in each
CHUNKS = [8, 200, 1 << 26]


def part(piece, count):
    """Two arrays as of entries; their values name the sender."""
    return np.arange(count) * 10 + piece, np.full(count, piece / 2)


def plain(lists):
    """Arrays as lists, of a list of all senders or a dict of some."""
    each = [one.items() if isinstance(one, dict) else enumerate(one) for one in lists]
    return [{s: [array.tolist() for array in arrays] for s, arrays in one} for one in each]


def given_to(s, pieces):
    """Some arrays to most other pieces; a few are empty."""
    return {d: part(10 * s + d, (3 * s + 5 * d) % 7) for d in range(pieces) if (s + 2 * d) % 5}


@pytest.mark.each_value
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(("size", "pieces"), SIZES)
@pytest.mark.parametrize("longer", [1, 50])
def test_as_in_one_process(size, pieces, chunk, longer):
    local = LocalEngine(size * pieces)
    lists = [part(p, p * longer) for p in local.local]
    gathered = plain([local.gather(lists)])
    exchanged = plain(local.exchange([given_to(s, local.size) for s in local.local]))

    def program(processes):
        engine = MpiEngine(processes, pieces)
        assert engine.size == local.size
        mine = slice(engine.local[0], engine.local[-1] + 1)
        assert plain([engine.gather(lists[mine])]) == gathered
        given = [given_to(s, engine.size) for s in engine.local]
        assert plain(engine.exchange(given)) == exchanged[mine]
        assert (engine.sent > 0) == (size > 1)
        engine.barrier()
        return processes._comm.most

    most, _ = on_ranks(size, program, chunk=chunk)
    assert all(isinstance(x, int) for x in most), most
    assert max(most) <= max(chunk, 8 * size)  # no call of MPI takes more


@pytest.mark.parametrize("numbers", [[1e16, 1.0, -1e16], [1e16, -1e16, 1.0], [2**60, 2**60, 1]])
def test_sums_are_in_the_order_of_the_pieces(numbers):
    def program(processes):
        return MpiEngine(processes).sum([numbers[processes.rank]])

    assert on_ranks(3, program)[0] == [LocalEngine(3).sum(numbers)] * 3


def test_memory_is_asked_of_all_before_anything_long_is_sent(monkeypatch):
    """No process waits in a transfer for one that has no room for it."""
    monkeypatch.setattr(module, "_SMALL", 100)

    def program(processes):
        engine = MpiEngine(processes)
        engine.begin("a test")
        try:
            engine.gather([part(processes.rank, 100)])
        except OutOfMemory as error:
            engine.fail(error)
            return str(error)

    def require(nbytes, what, remedy):
        assert nbytes > 3 * 1600
        assert nbytes % 2 == 0  # of the two processes on the host
        asked.append(nbytes)
        if len(asked) == 2:
            raise OutOfMemory(f"{what}: needs much. {remedy}")

    asked = []
    monkeypatch.setattr(module, "require", require)
    found, _ = on_ranks(3, program, beside=2)
    assert sum(said.startswith("grid: needs much") for said in found) == 1, found
    assert sum("of 3: grid: needs much" in said for said in found) == 2
    asked.append(None)
    assert on_ranks(3, program, beside=2)[0] == [None] * 3


@pytest.mark.parametrize("call", ["Allgather", "Allgatherv", "Alltoall", "Alltoallv"])
def test_an_interrupt_in_an_exchange_waits_for_its_end(call):
    """The others receive what they wait for; the next synchronization reports the interrupt."""

    def program(processes):
        comm, engine = processes._comm, MpiEngine(processes)
        real, began = getattr(comm, call), []

        def interrupted(*args):
            if processes.rank == 0 and not began:
                began.append(True)
                signal.raise_signal(signal.SIGINT)
            real(*args)

        setattr(comm, call, interrupted)
        engine.begin("a test")
        try:
            if call.startswith("Allg"):
                engine.gather([part(processes.rank, 100)])
            else:
                engine.exchange([dict.fromkeys(range(2), part(processes.rank, 100))])
            engine.agree()
        except (KeyboardInterrupt, LagpuError) as error:
            engine.fail(error)
            engine.begin("another one")
            engine.agree()
            return str(error) or type(error).__name__

    found, _ = on_ranks(2, program, first_here=True)
    assert found == ["KeyboardInterrupt", "process 0 of 2: KeyboardInterrupt"]


def test_no_memory_within_a_transfer_ends_the_job():
    """It is too late to report it: the others wait for the bytes."""

    def program(processes):
        def full(*_args):
            raise MemoryError

        processes._comm.Allgatherv = full
        engine = MpiEngine(processes)
        engine.begin("a test")
        with pytest.raises(ProcessFailed, match="grid: MPI failed") as seen:
            engine.gather([part(processes.rank, 100)])
        engine.fail(seen.value)
        assert processes.end(seen.value)
        processes.close()

    found, room = on_ranks(1, program)
    assert found == [None]
    assert room.aborted == [(0, 1)]
