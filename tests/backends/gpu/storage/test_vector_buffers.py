"""A vector's forms: entries not counted yet, and buffers left by another result."""

import numpy as np
import pytest
from loop_names import is_fused

from lagpu import FP32, FP64, INT32, INT64, Vector, loop, semiring
from lagpu.backends.gpu.kernels import constant
from lagpu.generators import path


@pytest.fixture
def uncounted(place):
    """The store of a bitmap whose number of entries is not known, as a kernel leaves it."""

    def make(values, dtype=INT64):
        store = Vector.from_coo([1, 31, 32, 69], values, dtype, size=70, backend=place).data
        store.to_bitmap()
        store.changes()
        assert store.known is None
        return store

    return make


def test_entries_are_counted_when_somebody_asks(uncounted):
    assert uncounted([4, 3, 2, 1]).nvals == 4
    assert uncounted([4, 3, 2, 1]).pending_count()() == 4
    store = uncounted(7)
    count = store.pending_count()
    store.set_empty()
    assert (count(), store.nvals) == (4, 0)  # of the entries there were


def test_a_count_is_read_where_the_kernel_notifies_unless_somebody_else_reads(uncounted):
    store, notification = uncounted(7), object()
    count = store.device.from_host(np.array([4, 0], np.uint64))
    waited = []
    store.device.wait_for = lambda *given: waited.append(given) or (9, 0)
    try:
        store.counted(count, notification)
        assert store.pending_count(lambda words: int(words[0]) + 1)() == 5
        assert not waited
        assert store.pending_count()() == 9
        assert waited == [(notification, count)]
    finally:
        del store.device.wait_for


def test_only_a_vector_known_to_be_empty_becomes_blank(uncounted):
    store = uncounted([4, 3, 2, 1])
    assert not store.to_blank()
    assert store.get(31) == 3
    store.set_empty()
    assert store.to_blank()
    assert (store.form, store.iso) == ("bitmap", None)


def test_one_value_for_all_is_written_to_each(uncounted):
    store = uncounted(7)
    assert store.values is None
    store.to_writable()
    assert [store.get(i) for i in (0, 1, 31, 32, 69)] == [None, 7, 7, 7, 7]
    for i in (2, 63, 64):
        store.set(i, 5)
    assert [store.get(i) for i in (1, 2, 3, 62, 63, 64, 65)] == [7, 5, None, None, 5, 5, None]
    assert store.nvals == 7


@pytest.mark.parametrize("spare", ["words", "values", "type"])
def test_a_spare_buffer_that_does_not_fit_is_not_taken(uncounted, spare):
    store = uncounted([4, 3, 2, 1])
    xp = store.device.xp
    fits = {"words": xp.empty(3, np.uint32), "values": xp.empty(70, np.int64)}
    for name, array in fits.items():
        store.spare = {name: array}
        assert (store.spare_words() if name == "words" else store.spare_values(INT64)) is array
        assert not store.spare
    short = {"words": xp.empty(2, np.uint32), "values": xp.empty(69, np.int64)}
    store.spare = short if spare != "type" else fits
    if spare == "words":
        assert len(store.spare_words()) == 3
    else:
        wanted = FP32 if spare == "type" else INT64
        found = store.spare_values(wanted)
        assert (found.dtype, len(found)) == (wanted.numpy, 70)


def test_the_buffers_of_the_last_result_serve_the_next(uncounted):
    store, other = uncounted([4, 3, 2, 1]), uncounted(7)
    words, values = store.words, store.values
    store.adopt(other)
    assert store.spare_words() is words
    assert store.spare_values(INT64) is values
    assert [store.get(i) for i in (1, 2)] == [7, None]


def searched(A, levels, frontier):
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)


def test_a_search_from_all_vertices(place):
    """A frontier in the form ``full`` has no single source."""
    A, levels = path(5, backend=place), Vector(INT32, 5, backend=place)
    frontier = Vector.from_dense(np.ones(5, bool), backend=place)
    assert frontier.data.form == "full"
    searched(A, levels, frontier)
    assert is_fused(place.last_loop)
    assert levels.to_dense().tolist() == [0] * 5


def test_a_search_from_a_bitmap(place):
    """Nor has one in the form ``bitmap``."""
    A, levels = path(5, backend=place), Vector(INT32, 5, backend=place)
    frontier = Vector.from_coo([0, 4], True, size=5, backend=place)
    frontier.data.to_bitmap()
    searched(A, levels, frontier)
    assert is_fused(place.last_loop)
    assert levels.to_dense().tolist() == [0, 1, 2, 1, 0]


@pytest.mark.parametrize("share", [0.01, 0.08, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1025, 3 * 32 * constant("kGroupWords") + 5])
def test_a_bitmap_is_listed_in_groups(place, n, share):
    """Words of few entries are listed by a thread each, fuller ones by a lane for each entry."""
    rng = np.random.default_rng(n)
    where = np.flatnonzero(rng.random(n) < share * (np.arange(n) // 64 % 3 / 2 if share < 1 else 1))
    values = rng.integers(0, 1000, len(where))
    store = Vector.from_coo(where, values, INT64, size=n, backend=place).data
    store.to_bitmap()
    found = [place.device.to_host(x).tolist() for x in store.listed()]
    assert found == [where.tolist(), values.tolist()]


def test_a_single_entry_is_one(place):
    store = Vector(INT64, 40, backend=place).data
    store.set_single(33, np.int64(7))
    assert store.nvals == 1
    store.to_bitmap()
    assert place.device.to_host(store.listed()[0]).tolist() == [33]


def test_a_list_of_one_index_is_one_entry(place):
    """So a search from ``[v]`` begins as one from v, without an upload."""
    v = Vector(INT64, 40, backend=place)
    v[[33]] = 7
    assert (v.data.single, v[33].new().value) == (33, 7)
    for values in (8, [8]):
        assert Vector.from_coo([33], values, FP64, size=40, backend=place).data.single == 33
    assert Vector.from_coo([0], [8], FP64, size=1, backend=place)[0].new().value == 8
    v[[33]] = [8]
    v[[-1]] = 9
    assert [x.tolist() for x in v.to_coo()] == [[33, 39], [8, 9]]


@pytest.mark.parametrize("form", ["single", "sparse"])
def test_the_value_of_one_entry_is_written_to_it(place, form):
    store = Vector(INT64, 40, backend=place).data
    if form == "single":
        store.set_single(33, np.int64(7))
    else:
        store.set_sparse(place.device.from_host(np.array([33])), None, np.int64(7))
    store.spare = {"values": place.device.from_host(np.full(40, 5))}  # as another result left it
    store.to_writable()
    assert (store.nvals, store.get(33), store.get(32)) == (1, 7, None)
