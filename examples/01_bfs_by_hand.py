"""Breadth-first search by hand: one masked product a level.

A frontier is a Boolean vector. One product with the adjacency matrix gives its neighbours; the mask
keeps those that have no level yet.
"""

from pathlib import Path

from lagpu import BOOL, INT32, Vector, io, loop, semiring

GRAPH = Path(__file__).parent / "data" / "stdlib-imports.txt.gz"
ARGPARSE, ANTIGRAVITY = 48, 47  # the file's comments name its vertices

A = io.read(GRAPH)  # entry (i, j): one of the modules i and j imports the other
levels = Vector(INT32, A.nrows, like=A, name="levels")
frontier = Vector(BOOL, A.nrows, like=A, name="frontier")
frontier[ARGPARSE] = True

for depth in loop(until_empty=frontier):
    print(f"level {depth}: {frontier.nvals} modules")
    levels(frontier.S) << depth
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

print(f"{levels.nvals} of {A.nrows} modules are linked with argparse")
print(f"antigravity is {levels.get(ANTIGRAVITY)} imports away")
