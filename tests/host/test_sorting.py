"""Distinct numbers, as NumPy has them."""

import numpy as np
import pytest

from lagpu.host.columns import all_distinct, distinct


@pytest.mark.parametrize(
    "values",
    [[], [3], [3, 3], [2, 1, 3], [5, -1, 5, 0, -1], [[4, 1], [1, 2]]],
)
def test_as_numpy_has_them(values):
    array = np.array(values, np.int64)
    assert distinct(array).tolist() == np.unique(array).tolist()
    assert distinct(array).dtype == np.int64
    assert all_distinct(array) == (len(np.unique(array)) == array.size)


def test_many():
    array = np.random.default_rng(1).integers(0, 3000, 5000)
    assert np.array_equal(distinct(array), np.unique(array))
    assert not all_distinct(array)
    assert all_distinct(np.random.default_rng(1).permutation(5000))
