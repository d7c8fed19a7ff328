"""The formats of graph files: a module for each, and the table of all of them in `table`."""

__all__: list[str] = []
