"""Places of vertices in the plane."""

import numpy as np
import pytest

from lagpu.draw.shapes import places


def lengths(found):
    return np.linalg.norm(found[:, None] - found[None], axis=2)


def test_distances_follow_those_of_the_graph():
    n = 9
    apart = lengths(places(np.arange(n - 1), np.arange(1, n), n))  # a path
    wanted = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    assert np.allclose(apart, wanted, atol=0.05 * n)


@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_no_two_vertices_share_a_place(n):
    star = np.zeros(n - 1, int), np.arange(1, n)
    none = np.zeros(0, int), np.zeros(0, int)
    for edges in (star, none):
        found = places(*edges, n)
        assert found.shape == (n, 2)
        assert np.isfinite(found).all()
        apart = lengths(found)[np.triu_indices(n, 1)]
        assert n == 1 or apart.min() > 0.05 * apart.max()


def test_components_lie_near_the_largest_and_apart():
    n = 20
    rows, cols = np.append(np.arange(16), 17), np.append(np.arange(1, 17), 18)  # 19 is alone
    found = places(rows, cols, n)
    apart = lengths(found)
    parts = [np.arange(17), np.array([17, 18]), np.array([19])]
    for one in parts[1:]:
        others = np.setdiff1d(np.arange(n), one)
        nearest = apart[np.ix_(one, others)].min()
        assert 1.5 <= nearest < 2
    assert abs(apart[17, 18] - 1) < 0.1


def test_vertices_alone_come_nearer_than_their_distance_in_the_layout():
    n = 24
    rows, cols = np.arange(16), np.arange(1, 17)  # and seven vertices alone
    apart = lengths(places(rows, cols, n))
    alone = np.arange(17, n)
    assert apart[np.ix_(alone, np.arange(17))].min(1).max() < 5
    assert (apart + 9 * np.eye(n))[alone].min() > 0.3
