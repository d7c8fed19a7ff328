"""All processes learn of an error at their next synchronization; none waits for one that ended."""

import threading
import time

import pytest
from ranks import SECONDS, on_ranks

from lagpu import errors
from lagpu.errors import LagpuError, OutOfMemory, ProcessFailed


def failing(error, rank=1):
    """A program that fails on one rank before it sends anything, on others behind it."""

    def program(processes):
        processes.begin("execute")
        try:
            if processes.rank == rank:
                raise error
            processes.agree()
        except BaseException as seen:
            processes.fail(seen)
            processes.begin("execute")
            processes.agree()  # they are in step again
            return seen

    return program


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("boom"), ProcessFailed, "process 1 of 3: ValueError: boom"),
        (KeyboardInterrupt(), ProcessFailed, "process 1 of 3: KeyboardInterrupt"),
        (OutOfMemory("mxm: full."), OutOfMemory, "process 1 of 3: mxm: full."),
        (MemoryError(), OutOfMemory, "process 1 of 3: MemoryError"),
        (errors.FileMissing("read: no."), errors.FileMissing, "process 1 of 3: read: no."),
        (errors.CycleFound("a circle", [1]), ProcessFailed, "process 1 of 3: a circle"),
        (ValueError("x\n\x1b[2J" + "y" * 9000), ProcessFailed, r"process 1 of 3: .*y"),
    ],
)
def test_each_process_raises(error, kind, text):
    found, _ = on_ranks(3, failing(error))
    assert found[1] is error
    assert error.process is None if isinstance(error, LagpuError) else True
    for other in (found[0], found[2]):
        assert type(other) is kind
        assert other.process == 1
        assert str(other).startswith(text) or "\\x1b" in str(other)
        assert len(str(other)) < 5000


def test_the_first_of_several_is_reported():
    def program(processes):
        processes.begin("execute")
        try:
            if processes.rank:
                raise ValueError(processes.rank)
            processes.agree()
        except Exception as error:
            processes.fail(error)
            return str(error)

    found, _ = on_ranks(4, program)
    assert found == ["process 1 of 4: ValueError: 1", "1", "2", "3"]


def test_processes_at_other_statements_part():
    def program(processes):
        processes.begin("execute" if processes.rank < 2 else "nvals")
        with pytest.raises(ProcessFailed) as first:
            processes.agree()
        processes.begin("execute")
        with pytest.raises(ProcessFailed) as again:
            processes.agree()
        assert first.value is again.value
        processes.fail(first.value)
        processes.close()  # waits for no process
        return str(first.value), processes.end(first.value)

    found, _ = on_ranks(3, program)
    text = (
        "grid: process 0 is at execute (statement 1), process 2 is at nvals (statement 1). "
        "Run the same statements on every process."
    )
    assert found == [(text, True), (text, False), (text, False)]  # one prints


def test_a_process_that_repeats_a_statement_is_noticed():
    def program(processes):
        processes.begin("execute")
        if processes.rank:
            processes.begin("execute")
        processes.agree()

    found, _ = on_ranks(2, program)
    assert all("(statement 1), process 1 is at execute (statement 2)" in str(x) for x in found)


def test_one_ends_by_an_error_while_others_wait():
    def program(processes):
        processes.begin("execute")
        if processes.rank == 1:
            return processes.end(ValueError("boom"))
        with pytest.raises(ProcessFailed, match="process 1 of 3: ValueError: boom") as raised:
            processes.agree()
        return processes.end(raised.value)

    assert on_ranks(3, program)[0] == [False, True, False]


def test_all_end_by_their_errors_and_one_prints():
    """Only then is the error that of no process in particular."""

    def program(processes):
        return processes.end(ValueError("boom")), processes.of_all

    assert on_ranks(3, program)[0] == [(True, True), (False, True), (False, True)]


def test_the_process_that_fails_prints_the_error():
    def program(processes):
        processes.begin("execute")
        try:
            if processes.rank == 2:
                raise ValueError("boom")
            processes.agree()
        except Exception as error:
            processes.fail(error)
            speaks = processes.end(error)
            processes.close()
            return speaks, processes.of_all

    assert on_ranks(3, program)[0] == [(False, False), (False, False), (True, False)]


def test_one_comes_to_its_end_while_others_wait():
    def program(processes):
        if processes.rank == 0:
            return processes.close()
        processes.begin("nvals")
        with pytest.raises(ProcessFailed, match=r"process 0 is at its end .* is at nvals") as seen:
            processes.agree()
        return processes.end(seen.value)

    assert on_ranks(3, program)[0] == [None, True, False]


def test_all_come_to_their_end():
    def program(processes):
        if processes.rank == 1:
            time.sleep(0.1)  # one that is slow is waited for
        processes.begin("execute")
        processes.agree()
        processes.close()

    found, room = on_ranks(3, program)
    assert found == [None] * 3
    assert room.aborted == []


def test_no_process_waits_for_those_that_do_not_come():
    """One is busy outside of the grid: who ends by an error gives up, prints, and ends all."""
    given_up = threading.Event()

    def program(processes):
        if processes.rank == 0:
            assert given_up.wait(SECONDS)
            processes.begin("execute")
            with pytest.raises(ProcessFailed):
                processes.agree()
            return None
        assert processes.end(ValueError("boom"))
        given_up.set()
        processes.close()
        return "gave up"

    found, room = on_ranks(2, program, patience=0.05)
    assert found == [None, "gave up"]
    assert room.aborted == [(1, 1)]


def test_a_failure_of_mpi_ends_the_job():
    def program(processes):
        def broken(*_buffers):
            raise RuntimeError("MPI_ERR_OTHER: the network is gone")

        processes._comm.Allgather = broken
        processes.begin("execute")
        with pytest.raises(ProcessFailed, match="grid: MPI failed: MPI_ERR_OTHER") as seen:
            processes.agree()
        processes.fail(seen.value)
        assert processes.end(seen.value)
        processes.close()

    found, room = on_ranks(1, program)
    assert found == [None]
    assert room.aborted == [(0, 1)]
