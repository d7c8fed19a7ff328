"""Operators, and the tables of them that anyone can read."""
