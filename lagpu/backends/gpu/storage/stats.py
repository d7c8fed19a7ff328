"""What a product leaves behind in its vectors, for the products after it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from lagpu.backends.gpu.storage.vector import MatrixStore

__all__ = ["Listable", "Listing", "Trail"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
EXPLORED, PULLED = 3, 4  # as kExplored and kPulled in spmv/either.cu


class Trail(NamedTuple):
    """What a product leaves in its result, so that a planner can plan the next one.

    Attributes
    ----------
    matrix : callable
        A weak reference to the matrix.
    pulled : bool
        Whether the product was pulled.
    visited, explored : int
        Vertices and edges of the frontiers before this one, as far as the host knows.
    counts : array of u64, or None
        Entries of the vector and edges that leave them; at `EXPLORED` and `PULLED`, zero unless
        the device decided the direction, what is to be added to `explored`, and whether it pulled.
    """

    matrix: weakref.ref[MatrixStore]
    pulled: bool
    visited: int
    explored: int
    counts: Array


class Listing(NamedTuple):
    """The matrix entries in the columns of a vector's entries, numbered by a product.

    Attributes
    ----------
    form : callable
        A weak reference to the form of the matrix that has these columns.
    vertex, offset : array
        The columns, rising, and the number of entries before each.
    """

    form: weakref.ref[MatrixStore]
    vertex: Array
    offset: Array

    def of(self, form: MatrixStore) -> Listing | None:
        """Return it if it is of the columns of `form`."""
        return self if self.form() is form else None


class Listable(Protocol):
    """What has a list of a vector's columns, or makes it."""

    def of(self, form: MatrixStore) -> Listing | None:
        """Return the list of the columns of `form`, if there is one."""
