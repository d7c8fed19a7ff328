"""Relaxation: loops that improve the numbers of vertices along edges, as one kernel."""

__all__: list[str] = []
