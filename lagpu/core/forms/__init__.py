"""Vectors and matrices from and to other forms of data: dicts, pairs, edge lists, dense arrays."""

__all__: list[str] = []
