"""Loops that run as one kernel."""

__all__: list[str] = []
