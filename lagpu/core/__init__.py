"""Vectors, matrices and scalars, their notation, and every check of what an author wrote."""

__all__: list[str] = []
