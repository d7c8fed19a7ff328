"""Processes of a row or column of pieces send to each other alone; none hangs if one fails."""

import types

import numpy as np
import pytest
from grids import Own
from ranks import on_ranks

from lagpu import INT64, Matrix, Vector, semiring
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import MpiEngine
from lagpu.errors import OutOfMemory, ProcessFailed

N = 256


def matrix(place):
    i, j = np.nonzero(np.random.default_rng(3).random((N, N)) < 0.3)
    x = (i * 7 + j) % 5
    return Matrix.from_coo(i, j, x, INT64, nrows=N, ncols=N, backend=place)


def grid_of(processes, shape, pieces=1):
    shared = types.SimpleNamespace(calls=0, at=None, error=OutOfMemory("full"))
    places = [Own(shared) for _ in range(pieces)]
    return GridBackend("grid", MpiEngine(processes, pieces), places, shape), shared


def product(A, start=0):
    u = Vector.from_dense(np.arange(start, start + N), backend=A.backend)
    return semiring.plus_times(u @ A).new()


WANT = (np.arange(N) @ matrix("cpu").to_dense(0)).tolist()


def counted(among_all):
    """Return messages by call, and bytes, of the second product on 2 x 2 processes."""

    def program(processes):
        place, _ = grid_of(processes, (2, 2))
        if among_all:  # as if there were no communicator but that of all
            usual = place.pieces.engine.exchange
            place.pieces.engine.exchange = lambda given, *_: usual(given)
        A = matrix(place)
        u = Vector.from_dense(np.arange(N), backend=place)
        for _ in range(2):
            before = processes._comm.counts.copy()
            w = semiring.plus_times(u @ A).new()
            found = processes._comm.counts - before
        assert w.to_dense(0).tolist() == WANT
        return found

    found, _ = on_ranks(4, program)
    return sum(found, start=found[0] - found[0])


def test_messages_and_bytes_of_a_product_on_two_rows_and_two_columns():
    """Expand and fold send one message a process instead of three, and fewer headers."""
    lines, every = counted(False), counted(True)
    # Headers: of the new vector; of all at the start and the end, of one partner twice.
    assert (lines["Allgather"], every["Allgather"]) == (4 * (3 + 3 + 1 + 1 + 3), 4 * (3 + 3 * 3))
    for call in ("Alltoall", "Alltoallv"):  # lengths, and what is expanded and folded
        assert (lines[call], every[call]) == (4 * 2, 4 * 2 * 3)
    headers = 256 * (every["Allgather"] - lines["Allgather"])
    assert lines["bytes"] < every["bytes"] - headers


@pytest.mark.parametrize(("shape", "pieces"), [((2, 2), 1), ((2, 2), 2), ((2, 3), 3), ((3, 2), 1)])
def test_any_pieces_of_a_process(shape, pieces):
    """Also a column in one process, whose expand calls nothing of MPI."""

    def program(processes):
        A = matrix(grid_of(processes, shape, pieces)[0])
        return [product(A, start).to_dense(0).tolist() for start in (0, 0)]

    found, _ = on_ranks(shape[0] * shape[1] // pieces, program)
    assert found == [[WANT, WANT]] * len(found)


@pytest.mark.parametrize("failing", [(0,), (3,), (1, 2), (0, 1, 2, 3)])
def test_a_process_that_fails_on_its_line(failing):
    """At each call of its place in a product: all raise, and go on with the next statement."""

    def program(processes):
        place, shared = grid_of(processes, (2, 2))
        A = matrix(place)
        product(A)
        u = Vector.from_dense(np.arange(N), backend=place)
        w = Vector(INT64, N, backend=place)
        raised = []
        for at in range(5):
            shared.at = shared.calls + at if processes.rank in failing else None
            try:
                w << semiring.plus_times(u @ A)
            except OutOfMemory as error:
                raised.append((at, error.process is None))
            shared.at = None
            assert w.nvals in (0, N)
            w << semiring.plus_times(u @ A)
            assert w.to_dense(0).tolist() == WANT
            w.clear()
        return raised

    found, _ = on_ranks(4, program)
    assert all(isinstance(of, list) for of in found), found
    assert len({tuple(at for at, _ in of) for of in found}) == 1
    for rank, of in enumerate(found):
        assert len(of) >= 2
        assert all(mine == (rank in failing) for _, mine in of)


def test_processes_with_other_arguments_do_not_wait_on_a_line():
    """Though so many statements have been compared that others are not."""

    def program(processes):
        place, _ = grid_of(processes, (2, 2))
        processes._compared = 0
        A = matrix(place)
        for _ in range(2):
            product(A)
        u = Vector.from_dense(np.arange(N), backend=place)
        mask, w = u.dup(), Vector(INT64, N, backend=place)
        if processes.rank in (1, 2):
            w << semiring.plus_times(u @ A)
        else:
            w(mask.S) << semiring.plus_times(u @ A)

    found, _ = on_ranks(4, program)
    assert all(isinstance(error, ProcessFailed) for error in found), found
    assert "Give every process the same" in str(found[0])
