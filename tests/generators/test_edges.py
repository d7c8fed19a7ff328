"""The edges of random graphs: their chances, and that each part can be drawn alone."""

import numpy as np
import pytest

from lagpu import backends
from lagpu.generators.edges import KroneckerEdges, UniformEdges, both_ways

KINDS = [KroneckerEdges, UniformEdges]


def test_quadrants_have_the_chances_of_the_specification():
    count = 1 << 20
    i, j = KroneckerEdges(11, 1).unlabelled(0, count)
    assert np.bitwise_or.reduce(i) == np.bitwise_or.reduce(j) == 2**11 - 1  # all bits are drawn
    for bit in range(11):
        quadrant = 2 * (i >> bit & 1) + (j >> bit & 1)
        share = np.bincount(quadrant, minlength=4) / count
        # Four standard deviations of the largest share are 0.002.
        assert share == pytest.approx([0.57, 0.19, 0.19, 0.05], abs=0.002)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0, 1, 8, 9, 31])
def test_parts_are_those_of_the_whole(backend, kind, scale):
    """On the host and on a device."""
    device = backends.get(backend).device
    whole = kind(scale, 5)(0, 1000)
    edges = kind(scale, 5, device)
    for first, count in ((0, 300), (300, 700), (999, 1)):
        for ends, all_of_them in zip(edges(first, count), whole, strict=True):
            part = ends if device is None else device.to_host(ends)
            assert part.dtype == np.int32
            assert part.tolist() == all_of_them[first : first + count].tolist()
            assert part.min() >= 0
            assert part.max() < 2**scale


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides(kind):
    assert kind(20, 1)(0, 9)[0].tolist() == kind(20, 1)(0, 9)[0].tolist()
    assert kind(20, 1)(0, 9)[0].tolist() != kind(20, 2)(0, 9)[0].tolist()


def test_uniform_ends_are_uniform_and_apart():
    u, v = UniformEdges(4, 1)(0, 1 << 16)
    counts = np.bincount(16 * u + v, minlength=256)
    assert counts.min() > 180  # 256 on average, with a deviation of 16
    assert counts.max() < 332


def test_edges_go_both_ways_but_for_loops():
    u, v = np.array([1, 2, 3], np.int32), np.array([2, 2, 1], np.int32)
    found = [(rows[there].tolist(), cols[there].tolist()) for rows, cols, there in both_ways(u, v)]
    assert found == [([1, 3], [2, 1]), ([2, 1], [1, 3])]
