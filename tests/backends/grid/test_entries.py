"""Entries are received as they were sent, in as few bytes as lists or bits have."""

import numpy as np
import pytest

from lagpu.backends.grid.exchange import from_message, from_numbers, to_message, to_numbers

TYPES = ["?", "i4", "i8", "u4", "u8", "f4", "f8"]


def nbytes(message):
    return sum(array.nbytes for array in message)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [1, 32, 33, 1000])
def test_a_message_comes_back(kind, size):
    rng = np.random.default_rng(size)
    width = np.dtype(kind).itemsize
    for count in {0, 1, size // 32, min(size // 32 + 1, size), size}:
        numbers = rng.permutation(size)[:count]
        for values in (rng.integers(0, 2, count).astype(kind), np.full(count, 3).astype(kind)):
            message = to_message((size,), (numbers,), values)
            there, found = from_message((size,), message)
            order = np.argsort(numbers)
            assert there.tolist() == numbers[order].tolist()
            assert found.dtype == values.dtype
            assert found.tobytes() == values[order].tobytes()
            one = count and len(set(values.tolist())) == 1
            shorter = min(4 * count, (int(numbers.max(initial=-1)) + 8) // 8)
            assert nbytes(message) == shorter + width * (1 if one else count)


def test_values_that_are_equal_in_other_bits_stay_apart():
    given, at = np.array([0.0, -0.0, 0.0]), (np.arange(3),)
    assert from_message((3,), to_message((3,), at, given))[1].tobytes() == given.tobytes()
    given = np.full(3, np.nan)
    assert len(to_message((3,), at, given)[1]) == 1
    assert np.isnan(from_message((3,), to_message((3,), at, given))[1]).tolist() == [True] * 3


def test_places_alone():
    message = to_message((9,), (np.array([7, 2]),), np.zeros(0))
    assert nbytes(message) == 1
    numbers, values = from_message((9,), message)
    assert (numbers.tolist(), len(values)) == ([2, 7], 0)
    assert nbytes(to_message((9,), (np.zeros(0, np.int64),), np.zeros(0))) == 0


@pytest.mark.parametrize("shape", [(6,), (3, 4), (1, 5), (4, 0), (0, 4)])
def test_places_are_numbered_by_columns(shape):
    numbers = np.arange(np.prod(shape))
    at = from_numbers(shape, numbers)
    assert to_numbers(shape, at).tolist() == numbers.tolist()
    if len(shape) == 2:
        assert np.array_equal(np.lexsort(at), numbers)


@pytest.mark.parametrize(("shape", "arrays"), [((2**31, 2**31), 2), ((2**32, 2**31), 3)])
def test_what_cannot_be_numbered_is_sent_by_row_and_column(shape, arrays):
    at, values = (np.array([shape[0] - 1, 5]), np.array([shape[1] - 1, 7])), np.array([1.5, 2.5])
    message = to_message(shape, at, values)
    assert len(message) == arrays
    rows, columns, found = from_message(shape, message)
    assert {*zip(rows.tolist(), columns.tolist(), found.tolist(), strict=True)} == {
        (shape[0] - 1, shape[1] - 1, 1.5),
        (5, 7, 2.5),
    }
