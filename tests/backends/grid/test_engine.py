"""Messages between pieces arrive whole, in the order of the pieces, and are counted."""

import numpy as np
import pytest

from lagpu import backends
from lagpu.backends.grid.comm import LocalEngine

PIECES = [1, 2, 3, 5]


def part(piece, count):
    """Two arrays as of entries; their values name the sender."""
    return np.arange(count) * 10 + piece, np.full(count, piece / 2)


@pytest.mark.parametrize("pieces", PIECES)
def test_gather(pieces):
    engine = LocalEngine(pieces)
    given = [part(p, p) for p in engine.local]
    received = engine.gather(given)
    assert len(received) == len(engine.local) == engine.size == pieces
    assert [x.tolist() for x, _ in received] == [x.tolist() for x, _ in given]
    assert [y.tolist() for _, y in received] == [y.tolist() for _, y in given]
    assert engine.sent == (pieces - 1) * 16 * sum(range(pieces))


@pytest.mark.parametrize("pieces", PIECES)
def test_exchange(pieces):
    engine = LocalEngine(pieces)
    given = [{d: part(10 * s + d, 1 + d) for d in engine.local} for s in engine.local]
    received = engine.exchange(given)
    for d in engine.local:
        for s in engine.local:
            assert received[d][s][0].tolist() == given[s][d][0].tolist()
            assert received[d][s][1].tolist() == given[s][d][1].tolist()
    to_others = sum(1 + d for s in engine.local for d in engine.local if s != d)
    assert engine.sent == 16 * to_others


def test_sum_is_in_the_order_of_the_pieces():
    assert LocalEngine(3).sum([1e16, 1.0, -1e16]) == 0.0
    assert LocalEngine(3).sum([1e16, -1e16, 1.0]) == 1.0
    assert LocalEngine(3).sum([2**60, 2**60, 1]) == 2**61 + 1


def test_a_window_is_on_the_device_of_each_piece():
    places = backends.get("grid:2:sim").pieces
    made = places.engine.windows(20, [place.device for place in places.places])
    assert [(of.own.dtype, of.own.tolist()) for of in made] == [(np.uint64, [0, 0, 0])] * 2
    where = [of.own.__array_interface__["data"][0] for of in made]
    assert [of.addresses for of in made] == [where] * 2


def test_a_piece_receives_from_those_that_send_to_it():
    engine = LocalEngine(3)
    received = engine.exchange([{1: part(0, 2)}, {}, {1: part(2, 1), 2: part(2, 3)}])
    assert [[*one] for one in received] == [[], [0, 2], [2]]


def test_a_local_engine_has_nothing_to_wait_for():
    engine = LocalEngine(2)
    engine.barrier()
