"""The bits of vertices in a frontier's words: one each, and each word belongs to one piece."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pieces_of_search import RUNS, sims

from lagpu import Matrix, algorithms
from lagpu.backends.grid import search as fused
from lagpu.backends.grid.partition import Partition, Shuffle, layout
from lagpu.backends.grid.search import BITS, num_slots, slots_of

BLOCKS = st.builds(
    Partition, st.integers(1, 5000), st.integers(1, 9), st.sampled_from([1, 2, 32, 1024])
)
SHUFFLED = BLOCKS.map(lambda by: dataclasses.replace(by, new=Shuffle(by.size)))


@given(by=st.one_of(BLOCKS, SHUFFLED))
def test_each_vertex_has_a_slot_in_words_of_its_piece(by):
    slots = slots_of(by)
    of_vertex = np.arange(by.size) if slots.of_vertex is None else slots.of_vertex
    assert len(set(of_vertex.tolist())) == by.size
    assert of_vertex.max() < slots.words * BITS == num_slots(by)
    for p in range(by.pieces):
        words = of_vertex[by.own(p)] // BITS
        assert set((words >> slots.run) % by.pieces) <= {p}
    if slots.names is not None:
        assert np.array_equal(slots.names[of_vertex], np.arange(by.size))


def test_slots_are_numbered_in_31_bits(monkeypatch):
    """Past 2**30 vertices a search of pieces is one kernel, as long as slots are."""
    by = layout((2**30,), (2, 1)).dims[0]
    assert 2**30 <= num_slots(by) < 2**31
    assert num_slots(Partition(2**31 - 1, 2, 32)) >= 2**31
    place = sims(2)
    for slots, runs in [(2**31 - 1, True), (2**31, False)]:
        A = Matrix.from_coo([0, 1], [1, 2], True, nrows=3, ncols=3, backend=place)
        monkeypatch.setattr(fused, "num_slots", lambda by, slots=slots: slots)
        assert algorithms.bfs_levels(A, 0).to_dense().tolist() == [0, 1, 2]
        assert place.last_loop.startswith(RUNS) == runs
        if not runs:
            assert "3 vertices take 2**31 slots" in place.last_loop
