"""Operators, and the tables of them that anyone can read."""

__all__: list[str] = []
