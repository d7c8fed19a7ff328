"""Inexact types, and a random product of a matrix and a vector."""

from strategies import (
    TYPES,
)

FLOATS = tuple(t for t in TYPES if t.is_float)


def product(A, u, op, *, flip, transpose, **options):
    """The deferred call, in one of its four spellings."""
    operand = A.T if transpose else A
    return op(u @ operand, **options) if flip else op(operand @ u, **options)


def inexact(op, A, u):
    """Whether the order of a float sum shows, so that a cast to an integer may differ by one."""
    return op.multiply.name == "truediv" or not op.monoid.is_exact(op.types(A, u)[1])
