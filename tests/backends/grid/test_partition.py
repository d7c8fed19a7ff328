"""Every index has one owner and one place there, in small dimensions and past 2**31."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagpu.backends.grid.partition import Dealt, dealt

SIZES = [0, 1, 2, 31, 32, 33, 65, 1025, 5000]
HUGE = 2**33 + 7


def partitions(sizes):
    pieces = st.integers(1, 9)
    runs = st.sampled_from([1, 2, 32, 1024])
    return st.one_of(
        st.builds(dealt, sizes, pieces),
        st.builds(Dealt, sizes, pieces, runs),
    )


@given(partitions(st.one_of(st.sampled_from(SIZES), st.integers(0, 9000))))
def test_every_index_has_one_owner(by):
    own = [by.own(p) for p in range(by.pieces)]
    assert [len(x) for x in own] == [by.count(p) for p in range(by.pieces)]
    assert sorted(np.concatenate(own).tolist()) == list(range(by.size))
    for p, indices in enumerate(own):
        assert indices.dtype == np.int64
        assert (np.diff(indices) > 0).all()
        assert (by.owner(indices) == p).all()
        assert by.position(indices).tolist() == list(range(len(indices)))
        assert (by.index(p, by.position(indices)) == indices).all()


@given(partitions(st.integers(2**31, HUGE)), st.data())
def test_past_two_to_the_31(by, data):
    j = data.draw(st.integers(0, by.size - 1))
    p = by.owner(j)
    assert 0 <= by.position(j) < by.count(p)
    assert by.index(p, by.position(j)) == j
    assert sum(by.count(q) for q in range(by.pieces)) == by.size
    many = np.array([j, by.size - 1], np.int64)
    assert by.position(many)[0] == by.position(j)
    assert by.index(by.owner(many), by.position(many)).tolist() == many.tolist()


@given(st.integers(0, 2**34), st.integers(1, 999))
def test_every_piece_has_its_share(size, pieces):
    by = dealt(size, pieces)
    counts = [by.count(p) for p in range(pieces)]
    assert max(counts) - min(counts) <= by.run
    assert by.run & (by.run - 1) == 0
    if size >= 4 * pieces:
        assert min(counts) > 0
        assert 4 * by.run * pieces <= size


@pytest.mark.parametrize(("size", "run"), [(10, 1), (12 * 32, 32), (12 * 1024, 1024), (HUGE, 1024)])
def test_runs_grow_with_the_dimension(size, run):
    assert dealt(size, 3).run == run
