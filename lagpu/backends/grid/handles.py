"""Handles of the grid: one vector or matrix, as the handles of its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.dtypes import DType
from lagpu.operations import Handle

MADE_BITS = 20  # of an object's number, for those that one statement makes


class GridHandle:
    """A vector or a matrix whose last dimension is distributed to the pieces.

    Parameters
    ----------
    parts : sequence of Handle
        For each local piece its part, a handle of the piece's place: of a vector the entries, of a
        matrix the columns that the piece owns, numbered by their positions there.
    dtype : DType
        Type of the values.
    shape : tuple of int
        The size of each dimension of the whole.

    Attributes
    ----------
    number : int
        In a job the same in every process: the statement that made the object, and its number among
        the objects of that statement.
    """

    __slots__ = ("__weakref__", "dtype", "number", "parts", "shape")

    def __init__(self, parts: Sequence[Handle], dtype: DType, shape: tuple[int, ...]) -> None:
        self.parts = list(parts)
        self.dtype = dtype
        self.shape = shape
        self.number = 0

    @property
    def made_in(self) -> int:
        """The statement that made it."""
        return self.number >> MADE_BITS

    def become(self, other: GridHandle) -> None:
        """Take the parts and the shape of a new handle at once: the one way to write all parts."""
        self.parts, self.shape = other.parts, other.shape


def become_all(new: Sequence[tuple[GridHandle, GridHandle]]) -> None:
    """Have each handle take the parts of a new one, all of them even if interrupted."""
    try:
        for x, found in new:
            x.become(found)
    except BaseException:  # an interrupt between two of them
        for x, found in new:
            x.become(found)
        raise


class GridVector(GridHandle):
    """A vector of shape (n,); see `GridHandle`."""

    __slots__ = ()


class GridMatrix(GridHandle):
    """A matrix of shape (m, n); see `GridHandle`.

    Attributes
    ----------
    symmetric : bool or None
        Whether the matrix equals its transpose, once known.
    turned : GridMatrix or None
        The transpose, once an operation has needed it.
    degrees : list of array or None
        The entries in the row of each vertex of each local piece, once a search has needed them.
    copies : dict
        The copy on each sub-cluster of one device, by its number, where there was room to keep it.
    """

    __slots__ = ("copies", "degrees", "symmetric", "turned")

    def __init__(self, parts: Sequence[Handle], dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(parts, dtype, shape)
        self.symmetric: bool | None = None
        self.turned: GridMatrix | None = None
        self.degrees: list[np.ndarray[Any, Any]] | None = None
        self.copies: dict[int, Handle] = {}

    def knows(self, symmetric: bool) -> None:
        """Remember whether the matrix equals its transpose, which is then not needed."""
        self.symmetric = symmetric
        if symmetric:
            self.turned = None

    def become(self, other: GridHandle) -> None:
        """See `GridHandle`; facts about the earlier entries are forgotten first."""
        self.symmetric, self.turned, self.degrees, self.copies = None, None, None, {}
        super().become(other)
