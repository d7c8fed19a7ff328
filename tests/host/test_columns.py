"""Columns of entries in any order, sorted at once and by shares."""

import numpy as np
import pytest

from lagpu.host import columns


@pytest.mark.parametrize("some", [False, True])  # of what is drawn there are all, or some
@pytest.mark.parametrize("shares", [1, 2, 3, 50, 64])
@pytest.mark.parametrize(("ncols", "count"), [(1, 0), (1, 5), (50, 0), (50, 700), (33, 40)])
def test_columns_are_those_of_the_distinct_entries(ncols, count, shares, some):
    rng = np.random.default_rng(count)
    i, j = (rng.integers(0, most, count, np.int32) for most in (20, ncols))
    there = rng.random(count) < 0.4 if some else np.ones(count, bool)
    asked = []

    def drawn():
        asked.append(count)
        parts = (slice(k, k + 100) for k in range(0, count, 100))
        return ((i[part], j[part], there[part] if some else True) for part in parts)

    ptr, rows = columns.sorted_columns(np, drawn, columns.even_ends(ncols, shares))
    wanted = sorted(set(zip(j[there].tolist(), i[there].tolist(), strict=True)))
    at = np.repeat(np.arange(ncols), np.diff(ptr))
    assert list(zip(at.tolist(), rows.tolist(), strict=True)) == wanted
    assert (ptr.dtype, rows.dtype) == (np.int64, np.int32)
    assert len(asked) == shares


def test_so_many_shares_as_there_is_room_for():
    assert columns.shares_for(1000, 26_000) == 1
    assert columns.shares_for(1000, 25_999) == 2
    assert columns.shares_for(1000, 21_000) == 2
    assert columns.shares_for(1000, 20_999) == 3
    assert columns.shares_for(1000, 0) == columns.shares_for(1000, 8_100) == 64
    assert columns.bytes_of(1000) == 26_000


def test_a_share_has_no_more_entries_than_cupy_selects_from():
    """On four GPUs a piece of kron28e16 is drawn as 2**31 entries."""
    assert columns.shares_for(2**31, 10**15) == 2
    assert columns.shares_for(2**33, 10**15) == 5
    assert columns.shares_for(2**30, 10**15) == 1


@pytest.mark.parametrize(
    ("free", "kept", "wanted"),
    [
        (30_000, 4_000, True),  # one share with them, as without
        (21_000, 6_400, True),  # four shares instead of two
        (21_000, 7_000, False),  # five
        (8_700, 400, False),  # no room for a share beside them
        (900, 1_000, False),  # nor for them
    ],
)
def test_entries_are_kept_where_that_takes_at_most_twice_as_many_shares(free, kept, wanted):
    assert columns.keeps(1000, free, kept) is wanted
