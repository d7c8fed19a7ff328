"""Vectors, matrices and scalars, their notation, and every check of a statement."""

from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector

__all__ = ["Matrix", "Scalar", "Vector"]
