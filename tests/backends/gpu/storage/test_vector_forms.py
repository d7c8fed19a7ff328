"""A vector's store against a plain dict: every form, every step, entries at the ends of words."""

import random

import numpy as np
import pytest

from lagpu import FP32, INT64, Vector
from lagpu.backends.gpu.storage.stores import VectorStore, bytes_of, nwords

SIZES = (1, 2, 31, 32, 33, 64, 70, 97)
FORMS = ("empty", "single", "sparse", "sparse iso", "bitmap", "bitmap iso", "full", "full iso")


def made(place, form, size, rng, dtype=INT64):
    """Return (store in this form, its entries as a dict)."""
    store, number = Vector(dtype, size, backend=place).data, dtype.numpy.type
    kind, _, iso = form.partition(" ")
    if kind == "empty":
        return store, {}
    if kind == "single":
        i = rng.choice([0, size - 1])
        store.set_single(i, number(7))
        return store, {i: 7}
    where = range(size) if kind == "full" else sorted(rng.sample(range(size), (size + 1) // 2))
    entries = {i: 7 if iso else rng.randrange(100) for i in where}
    packed = None if iso else np.array(list(entries.values()), dtype.numpy)
    one = number(7) if iso else None
    if kind == "full":
        store.set_full(None if iso else place.device.from_host(packed), one)
        return store, entries
    indices = place.device.from_host(np.array(list(entries), np.int64))
    store.set_sparse(indices, None if iso else place.device.from_host(packed), one)
    if kind == "bitmap":
        store.to_bitmap()
    return store, entries


def entries_of(store):
    """Return the entries as they are listed; no call changes the form."""
    indices, values = store.copy(store.dtype).listed()
    where = store.device.to_host(indices).tolist()
    packed = [store.number] * len(where) if values is None else store.device.to_host(values)
    return dict(zip(where, [x.item() for x in packed], strict=True))


def assert_is(store, entries):
    assert entries_of(store) == entries
    assert store.nvals == len(entries)
    if store.form == "bitmap":
        bits = np.unpackbits(store.device.to_host(store.words).view(np.uint8), bitorder="little")
        assert np.flatnonzero(bits).tolist() == sorted(entries)  # and none beyond the size


def learned(store):
    """Note something of each kind that only holds for the entries there are now."""
    store.nvals  # noqa: B018  what a notification says is read first
    store.stats = store.frontier_edges = store.edge_offsets = 5


def notes(store):
    return store.stats, store.frontier_edges, store.edge_offsets


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES)
def test_each_form_holds_its_entries(place, form, size):
    rng = random.Random(f"{form} {size}")
    for to in ("to_bitmap", "to_writable", "readable", "_upload", "copy"):
        store, entries = made(place, form, size, rng)
        assert_is(store, entries)
        assert [store.get(i) for i in range(size)] == [entries.get(i) for i in range(size)]
        store, entries = made(place, form, size, rng)
        store.spare = {
            "words": place.device.from_host(np.full(nwords(size), 0xFFFFFFFF, np.uint32)),
            "values": place.device.from_host(np.full(size, 55)),
        }
        asked = store.bytes_to_write
        if to == "copy":
            learned(store)
            store = store.copy(FP32)
            assert notes(store) == (5, 5, 5)
            assert store.dtype is FP32
            assert store.values is None or store.values.dtype == np.float32
        else:
            getattr(store, to)()
        if to == "to_writable":
            assert (store.form, store.bytes_to_write) == ("bitmap", 0)
            held = {"bitmap": 4 * nwords(size), "bitmap values": bytes_of(size, INT64)}
            there = form if form == "bitmap iso" else form.replace("bitmap", "bitmap values")
            assert asked == bytes_of(size, INT64) - held.get(there.removesuffix(" iso"), 0)
        assert_is(store, entries)


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES)
def test_an_entry_is_set_and_removed(place, form, size):
    rng = random.Random(f"{form} {size} set")
    for i in sorted({0, 1 % size, size // 2, 31 % size, 32 % size, size - 1}):
        store, entries = made(place, form, size, rng)
        learned(store)
        store.set(i, np.int64(-3))
        entries[i] = -3
        assert_is(store, entries)
        assert notes(store) == (None, None, None)
        for j in (i, i, (i + 1) % size):
            there = j in entries
            learned(store)
            store.remove(j)
            entries.pop(j, None)
            assert_is(store, entries)
            assert there is (notes(store) == (None, None, None))


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_becomes_what_it_was(place, form):
    rng = random.Random(form)
    store, entries = made(place, form, 70, rng)
    learned(store)
    state = store.state()
    for other in FORMS:
        changed, others = made(place, other, 70, rng)
        learned(changed)
        store.adopt(changed)
        assert_is(store, others)
        assert notes(store) == (5, 5, 5)
        store.restore(state)
        assert_is(store, entries)
        assert notes(store) == (5, 5, 5)


@pytest.mark.parametrize("form", FORMS)
def test_values_change(place, form):
    rng = random.Random(form)
    store, entries = made(place, form, 70, rng)
    values = np.arange(len(entries)) + 100
    learned(store)
    store.set_values(place.device.from_host(values))
    assert_is(store, dict(zip(entries, values.tolist(), strict=True)))
    assert notes(store) == (5, 5, 5)


def test_equal_entries_in_every_pair_of_forms(place):
    runtime = place.runtime

    def vector(entries, form):
        store = VectorStore(place.device, runtime.counters, INT64, 33)
        where = place.device.from_host(np.array(list(entries), np.int64))
        iso = len(set(entries.values())) == 1 and "iso" in form
        values = place.device.from_host(np.array(list(entries.values()), np.int64))
        store.set_sparse(where, None if iso else values, np.int64(7) if iso else None)
        if form.startswith("bitmap"):
            store.to_bitmap()
        return store

    forms = ("sparse", "sparse iso", "bitmap", "bitmap iso")
    sevens = {0: 7, 31: 7, 32: 7}
    for x in forms:
        for y in forms:
            assert vector(sevens, x).isequal(vector(sevens, y))
            assert not vector(sevens, x).isequal(vector({0: 7, 31: 7}, y))
            assert not vector(sevens, x).isequal(vector({0: 7, 30: 7, 32: 7}, y))
            assert not vector(sevens, x).isequal(vector({0: 7, 31: 7, 32: 8}, y))
            assert vector({}, x).isequal(vector({}, y))


def test_a_copy_does_not_wait_for_a_count(place):
    """Programs of pieces copy all that they write, whose entries may never be counted."""
    store, entries = made(place, "bitmap", 97, random.Random(1))
    store.counted(None)
    copy = store.copy(INT64)
    assert store.known is copy.known is None
    assert copy.nvals == store.nvals == len(entries)


@pytest.mark.parametrize("form", ["empty", "single"])
def test_a_copy_of_a_vector_without_arrays_makes_none(place, form, monkeypatch):
    store, entries = made(place, form, 40, random.Random(1))
    with monkeypatch.context() as patch:
        patch.setattr(type(place.device), "from_host", None)
        copy = store.copy(FP32)
    assert (copy.dtype, copy.indices, copy.words, copy.values) == (FP32, None, None, None)
    assert_is(copy, entries)
    assert_is(store, entries)
