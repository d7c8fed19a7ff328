"""Permutations that are computed: each number goes to another one, and back."""

import numpy as np
import pytest

from lagpu.host.columns import Permutation

ADDED = [0x9E3779B97F4A7C15, 3, 0xFFFFFFFFFFFFFFFF, 0]
TIMES = [0xBF58476D1CE4E5B9, 1, 0xFFFFFFFFFFFFFFFF, 0x94D049BB133111EB]


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 5, 8, 13, 16])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_each_number_has_a_place_of_its_own(bits, dtype):
    of = Permutation(bits, ADDED, TIMES)
    x = np.arange(1 << bits, dtype=dtype)
    found = of.forward(x.copy())
    assert found.dtype == dtype
    assert sorted(found.tolist()) == x.tolist()
    assert bits < 3 or found.tolist() != x.tolist()
    assert of.backward(found).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("bits", "dtype"),
    [(31, np.uint32), (32, np.uint32), (33, np.uint64), (63, np.uint64), (64, np.uint64)],
)
def test_numbers_as_wide_as_their_type(bits, dtype):
    of = Permutation(bits, ADDED, TIMES)
    last = (1 << bits) - 1
    x = np.array([0, 1, 2, last >> 1, (last >> 1) + 1, last - 1, last], dtype)
    found = of.forward(x.copy())
    assert len(set(found.tolist())) == len(x)
    assert int(found.max()) <= last
    assert of.backward(found).tolist() == x.tolist()


def test_types_agree():
    of = Permutation(20, ADDED, TIMES)
    narrow, wide = (of.forward(np.arange(1000, dtype=t)).tolist() for t in (np.uint32, np.uint64))
    assert narrow == wide
