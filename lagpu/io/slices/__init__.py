"""Files of which each piece of a grid reads a share: no process has the whole of the graph."""

from lagpu.io.slices.build import read

__all__ = ["read"]
