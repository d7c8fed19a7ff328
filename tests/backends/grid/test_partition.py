"""Every index has one owner and one place there, in small dimensions and past 2**31."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagpu.backends.grid.partition import Partition, Ranks, Shuffle, block_cyclic, layout

SIZES = [0, 1, 2, 31, 32, 33, 65, 1025, 5000]
HUGE = 2**33 + 7


def partitions(sizes):
    pieces = st.integers(1, 9)
    blocks = st.sampled_from([1, 2, 32, 1024])
    of_blocks = st.builds(Partition, sizes, pieces, blocks)
    return st.one_of(
        st.builds(block_cyclic, sizes, pieces),
        of_blocks,
        of_blocks.map(lambda by: dataclasses.replace(by, new=Shuffle(by.size))),
    )


def test_ranks_have_the_largest_degrees_first_and_isolated_vertices_last():
    ranks = Ranks.of(np.array([0, 3, 1, 0, 3, 9]))
    assert ranks.index(np.arange(6)).tolist() == [5, 1, 4, 2, 0, 3]
    assert ranks.number(np.array([5, 3])).tolist() == [0, 5]
    assert (ranks.number(4), ranks.index(2), ranks.size) == (2, 4, 6)
    by = layout((6,), (3, 1), (ranks,)).dims[0]
    assert [by.own(p).tolist() for p in range(3)] == [[5, 2], [1, 0], [4, 3]]
    assert not by.rises


def test_ranks_past_two_to_the_31_have_64_bits(monkeypatch):
    """A table of so many numbers is not for a test: its type is."""

    class Long(np.ndarray):
        def __len__(self):
            return 2**31

    monkeypatch.setattr(np, "arange", lambda n, dtype: np.zeros(3, dtype))
    ranks = Ranks(np.zeros(3, np.int64).view(Long))
    assert ranks.indices.dtype == ranks.numbers.dtype == np.int64
    assert Ranks(np.arange(3, dtype=np.int64)).indices.dtype == np.int32


@given(partitions(st.one_of(st.sampled_from(SIZES), st.integers(0, 9000))))
def test_pieces_take_their_own_values_and_put_them_back(by):
    values, again = 3 * np.arange(by.size), np.full(by.size, -1)
    for p in range(by.pieces):
        own = by.taken(p, values)
        assert own.tolist() == (3 * by.own(p)).tolist()
        by.put(p, own, again)
    assert again.tolist() == values.tolist()


@given(partitions(st.one_of(st.sampled_from(SIZES), st.integers(0, 9000))))
def test_every_index_has_one_owner(by):
    own = [by.own(p) for p in range(by.pieces)]
    assert [len(x) for x in own] == [by.count(p) for p in range(by.pieces)]
    assert sorted(np.concatenate(own).tolist()) == list(range(by.size))
    for p, indices in enumerate(own):
        assert indices.dtype == np.int64
        assert not by.rises or (np.diff(indices) > 0).all()
        assert (by.owner(indices) == p).all()
        assert by.position(indices).tolist() == list(range(len(indices)))
        assert (by.index(p, by.position(indices)) == indices).all()


@given(partitions(st.one_of(st.integers(2**31, HUGE), st.just(2**40 + 3))), st.data())
def test_past_two_to_the_31(by, data):
    j = data.draw(st.integers(0, by.size - 1))
    p = by.owner(j)
    assert 0 <= by.position(j) < by.count(p)
    assert by.located(j) == (p, by.position(j))
    assert by.index(p, by.position(j)) == j
    assert sum(by.count(q) for q in range(by.pieces)) == by.size
    many = np.array([j, by.size - 1], np.int64)
    assert by.position(many)[0] == by.position(j)
    assert by.index(by.owner(many), by.position(many)).tolist() == many.tolist()


@given(st.integers(0, 2**34), st.integers(1, 999))
def test_every_piece_has_its_share(size, pieces):
    by = block_cyclic(size, pieces)
    counts = [by.count(p) for p in range(pieces)]
    assert max(counts) - min(counts) <= by.block
    assert by.block & (by.block - 1) == 0
    if size >= 4 * pieces:
        assert min(counts) > 0
        assert 4 * by.block * pieces <= size


@pytest.mark.parametrize(
    ("size", "block"), [(10, 1), (12 * 32, 32), (12 * 1024, 1024), (HUGE, 1024)]
)
def test_blocks_grow_with_the_dimension(size, block):
    assert block_cyclic(size, 3).block == block


# ------------------------------------------------------------------------ of several dimensions
SHAPES = [(0,), (1,), (65,), (5000,), (33, 33), (9, 700), (700, 9), (65, 33), (0, 5), (130, 250)]
GRIDS = [(1, 1), (3, 1), (1, 2), (2, 1), (2, 3), (4, 4)]
ORDERS = [None, "random", "degree"]


def numbering(shape, order):
    if order == "degree":
        rng = np.random.default_rng(shape)
        return tuple(Ranks.of(rng.integers(0, 5, size)) for size in shape)
    return tuple(map(Shuffle, shape)) if order else None


@pytest.mark.each_value
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_entry_has_one_owner_and_one_place(shape, grid, order):
    by = layout(shape, grid, numbering(shape, order))
    assert by.pieces == grid[0] * grid[1]
    at = [x.ravel() for x in np.indices(shape)]
    owner, where = by.owner(*at), by.position(*at)
    for p in range(by.pieces):
        mine = [x[owner == p] for x in at]
        places = [x[owner == p] for x in where]
        assert len(mine[0]) == np.prod(by.shape(p))
        taken = np.zeros(by.shape(p), bool)
        taken[tuple(places)] = True
        assert taken.all()
        assert [x.tolist() for x in by.index(p, *places)] == [x.tolist() for x in mine]


@pytest.mark.each_value
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    ("n", "order"),
    [(n, of) for n in (1, 33, 700, 5000, 2**40) for of in ORDERS if of != "degree" or n <= 5000],
)
def test_a_column_of_pieces_has_the_sources_and_a_row_the_targets(n, grid, order):
    """The formulas of the papers: a part of a dimension is what some pieces have of a vector."""
    R, C = grid
    new = numbering((n,), order)
    by, vector = layout((n, n), grid, new and new * 2), layout((n,), grid, new)
    indices = np.unique(np.concatenate([np.arange(min(n, 500)), n - 1 - np.arange(min(n, 500))]))
    owner = vector.owner(indices)
    assert [dim.pieces for dim in by.dims] == [C, R]
    assert by.dims[0].owner(indices).tolist() == (owner // R).tolist()
    assert by.dims[1].owner(indices).tolist() == (owner % R).tolist()
    for p in range(R * C):
        assert by.parts(p) == (p // R, p % R)
        for dim, count in enumerate((R, C)):
            mates = [q for q in range(R * C) if by.parts(q)[dim] == by.parts(p)[dim]]
            assert len(mates) == count
            assert sum(vector.dims[0].count(q) for q in mates) == by.shape(p)[dim]


def test_few_rows_are_distributed_as_vectors():
    flat, square = layout((16, 700), (2, 3)), layout((350, 700), (2, 3))
    assert flat.dims[1] == layout((700,), (2, 3)).dims[0]
    assert [dim.pieces for dim in flat.dims] == [1, 6]
    assert [dim.pieces for dim in square.dims] == [3, 2]
    assert layout((700, 9), (2, 3)).shape(5) == (224, 4)


@pytest.mark.parametrize("order", [None, "random"])
def test_a_checkerboard_past_two_to_the_31(order):
    n = 2**40 + 77
    by = layout((n, n), (3, 4), numbering((n, n), order))
    i, j = np.array([0, 2**31, 2**35 + 5, n - 1]), np.array([n - 1, 2**32 + 1, 3, 2**39])
    owner, where = by.owner(i, j), by.position(i, j)
    for k, p in enumerate(owner):
        assert all(x[k] < count for x, count in zip(where, by.shape(p), strict=True))
        found = by.index(p, where[0][k], where[1][k])
        assert (int(found[0]), int(found[1])) == (i[k], j[k])
    counts = [by.shape(p) for p in range(12)]
    assert sum(a * b for a, b in counts) == n * n


# ------------------------------------------------------------------------------------ at random
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 17, 64, 1000, 4097])
def test_a_shuffle_is_a_permutation(size):
    new, indices = Shuffle(size), np.arange(size)
    numbers = new.number(indices)
    assert numbers.dtype == np.int64
    assert sorted(numbers.tolist()) == indices.tolist()
    assert new.index(numbers).tolist() == indices.tolist()
    assert [new.number(int(i)) for i in indices[:5]] == numbers[:5].tolist()
    if size > 60:
        assert np.count_nonzero(numbers == indices) < 10


@given(st.integers(2**31, 2**62), st.data())
def test_a_shuffle_past_two_to_the_31(size, data):
    i = data.draw(st.integers(0, size - 1))
    new = Shuffle(size)
    assert 0 <= new.number(i) < size
    assert new.index(new.number(i)) == i
    assert new.number(new.index(i)) == i
    assert new.number(np.array([i, size - 1])).tolist() == [new.number(i), new.number(size - 1)]


@pytest.mark.parametrize("step", [1, 6, 1024, 6 * 1024, 4096])
def test_a_shuffle_spreads_what_blocks_would_not(step):
    """Hubs whose numbers are a multiple of something are not all with one piece."""
    by = layout((2**30,), (6, 1), numbering((2**30,), "random")).dims[0]
    counts = np.bincount(by.owner(np.arange(6000) * step), minlength=6)
    assert counts.min() > 850
    assert counts.max() < 1150
