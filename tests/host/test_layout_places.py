"""Places of vertices in the plane."""

import numpy as np
import pytest

from lagpu.host.layout import places


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
