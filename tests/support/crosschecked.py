"""What the tests of crosschecks run, and where."""

from lagpu import algorithms

BOTH = ("cpu", "sim")
CPU = {"backend": "cpu"}
SEARCHES = (
    algorithms.bfs,
    algorithms.bfs_levels,
    algorithms.bfs_parents,
    algorithms.count_shortest_paths,
)
