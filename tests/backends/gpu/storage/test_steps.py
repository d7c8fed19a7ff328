"""Steps on arrays: each does what NumPy does, also with nothing."""

import numpy as np
import pytest

from lagpu import Matrix, Vector, binary
from lagpu.backends.gpu.storage import forms, stores

SIZES = [0, 1, 31, 32, 33, 3000]


def some(count, most, seed, kind=np.int64):
    return np.random.default_rng(seed).integers(0, most, count).astype(kind)


@pytest.fixture
def device(place):
    return place.device


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_bounds(device, count, kind):
    rising, wanted = np.sort(some(count, 40, 1, kind)), some(100, 50, 2) - 5
    there = device.from_host(rising)
    for numbers in (range(3, 60), wanted):
        given = numbers if isinstance(numbers, range) else device.from_host(numbers)
        low, high = (np.searchsorted(rising, numbers, side) for side in ("left", "right"))
        assert device.to_host(stores.bounds(device, there, given)).tolist() == low.tolist()
        less = stores.bounds(device, there, given, upto=True, minus=device.from_host(low))
        assert device.to_host(less).tolist() == (high - low).tolist()


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("size", SIZES)
def test_places_of_numbers(device, count, size):
    x, rising = some(count, 50, 1), np.unique(some(size, 50, 2))
    given = device.from_host(x)
    for complement in (False, True):
        found = stores.found(device, given, device.from_host(rising), complement)
        right = np.flatnonzero(np.isin(x, rising) != complement)
        assert device.to_host(found).tolist() == right.tolist()
    inside = device.to_host(stores.within(device, given, 7, 12))
    assert inside.tolist() == np.flatnonzero((x >= 7) & (x < 12)).tolist()


@pytest.mark.parametrize("count", SIZES)
def test_runs(device, count):
    x, y = np.sort(some(count, 9, 1)), some(count, 2, 2)
    for pair in ((x,), (x, y)):
        right = [k for k in range(count) if k == 0 or any(z[k] != z[k - 1] for z in pair)]
        found = stores.run_starts(device, *map(device.from_host, pair))
        assert device.to_host(found).tolist() == right


@pytest.mark.parametrize("lengths", [[], [0], [0, 3, 0, 0, 2, 0], [40] * 100])
def test_expanded(device, lengths):
    starts = some(len(lengths), 1000, 1)
    ends = np.cumsum(lengths, dtype=np.int64)
    found = stores.expanded(device, device.from_host(starts), device.from_host(ends))
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = [s + k for s, length in zip(starts, lengths, strict=True) for k in range(length)]
    assert [device.to_host(x).tolist() for x in found] == [owner.tolist(), place]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("size", [0, 1, 2000])
def test_merged(device, count, size):
    numbers = np.random.default_rng(1).permutation(count + size)
    x, y = np.sort(numbers[:count]), np.sort(numbers[count:])
    found = stores.merged(device, device.from_host(x), device.from_host(y))
    assert device.to_host(found).tolist() == list(range(count + size))


def test_entries_are_sorted_where_positions_have_no_numbers(device):
    rows, cols = np.array([5, 2**40, 5, 0]), np.array([2**39, 0, 3, 2**39])
    given = map(device.from_host, (rows, cols))
    order = forms._by_column(device, *given, (2**41, 2**40))
    assert device.to_host(order).tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize("op", [binary.minus, binary.first, binary.second, binary.eq])
def test_duplicates_are_combined_from_left_to_right(place, op):
    rows, values = np.array([1, 0, 1, 1, 2, 1]), np.array([7, 1, 2, 4, 3, 9])
    right = values[0]
    for x in (2, 4, 9):
        right = op.numpy(right, x)
    A = Matrix.from_coo(rows, rows, values, dup_op=op, backend=place)
    assert A[1, 1].new().get() == right
    assert A[2, 2].new().get() == 3


@pytest.mark.parametrize("dense", [True, False])
def test_values_of_two_types_are_compared_as_numbers(place, dense):
    at = np.arange(4) if dense else np.arange(0, 8, 2)
    one = Vector.from_coo(at, [1, 2, 3, 4], "INT64", size=8, backend=place)
    same = Vector.from_coo(at, [1.0, 2.0, 3.0, 4.0], "FP32", size=8, backend=place)
    other = Vector.from_coo(at, [1.0, 2.0, 3.5, 4.0], size=8, backend=place)
    assert one.isequal(same)
    assert not one.isequal(other)
    assert not other.isequal(one)
    iso = Vector.from_coo(at, 2, "INT64", size=8, backend=place)
    assert iso.isequal(Vector.from_coo(at, [2.0] * 4, size=8, backend=place))
    assert not iso.isequal(other)
    nan = Vector.from_coo(at, [np.nan] * 4, size=8, backend=place)
    assert not nan.isequal(nan)
    assert Vector.from_coo([1], [-0.0], size=8, backend=place).isequal(
        Vector.from_coo([1], [0.0], size=8, backend=place)
    )
