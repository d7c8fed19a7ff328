"""Vectors, matrices and scalars, their notation, and every check of a statement."""
