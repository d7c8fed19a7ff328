"""Entries of a part as a message: a set of positions, and their values, or the one value of all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.travel.presence import packed, unpacked

__all__ = ["by_position", "fits", "heard", "nothing", "places", "told"]

Array = np.ndarray[Any, Any]


def fits(shape: tuple[int, ...]) -> bool:
    """Whether the places in a part of this shape, or a smaller one, can be numbered."""
    return math.prod(shape) < 2**63


def by_position(shape: tuple[int, ...], at: Arrays) -> Array:
    """Return the number of each place in a part, column after column."""
    *rows, last = at
    return last * shape[0] + rows[0] if rows else last


def places(shape: tuple[int, ...], numbers: Array) -> Arrays:
    """Return the place that each number means: the inverse of `by_position`."""
    if len(shape) == 1:
        return (numbers,)
    columns, rows = np.divmod(numbers, max(shape[0], 1))
    return rows, columns


def told(numbers: Array, values: Array, size: int) -> Arrays:
    """Return entries as a message of two arrays.

    Parameters
    ----------
    numbers : array of int
        Distinct places, of `size`, in any order.
    values : array
        The value of each, or no value at all. Values that are all the same bits travel as one.
    size : int
        The number of all places.
    """
    if len(values) > 1:
        if _are_one(values):
            values = values[:1]
        elif (np.diff(numbers) < 0).any():
            order = np.argsort(numbers)
            numbers, values = numbers[order], values[order]
    return packed(numbers, size), values


def heard(message: Arrays, size: int) -> tuple[Array, Array]:
    """Return (numbers rising, values) of a message of `told`; no values if none were told."""
    numbers, values = unpacked(message[0], size), message[1]
    return numbers, np.repeat(values, len(numbers)) if len(values) == 1 else values


def nothing(dtype: np.dtype[Any], size: int) -> Arrays:
    """Return the message of no entries, to who needs none."""
    return told(np.zeros(0, np.int64), np.zeros(0, dtype), size)


def _are_one(values: Array) -> bool:
    bits = values.view(f"u{values.itemsize}")
    return bool((bits == bits[0]).all())
