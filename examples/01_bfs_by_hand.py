"""Breadth-first search by hand: one masked product a level.

A frontier is a Boolean vector. One product with the adjacency matrix gives its neighbours; the mask
keeps those that have no level yet.
"""

from pathlib import Path

from lagpu import BOOL, INT32, Matrix, Vector, generators, io, loop, semiring, step
from lagpu.algorithms import bfs, bfs_levels

# Seven vertices, nine edges.
A = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4, 5, 6],  # from
    [1, 2, 3, 3, 4, 5, 5, 1, 0],  # to
    nrows=7,
    ncols=7,
    name="A",
)
print(A)

frontier = Vector(BOOL, 7, name="frontier")
frontier[0] = True
found = semiring.any_pair(frontier @ A).new(name="found")
print("one step leads to", found.to_coo()[0])

# Level by level, by hand.
levels = Vector(INT32, 7, name="levels")

levels(frontier.S) << 0  # where the frontier has an entry, the level is 0
frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

levels(frontier.S) << 1
frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

levels(frontier.S) << 2
frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

levels(frontier.S) << 3
frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

print("vertices left in the frontier:", frontier.nvals)

# The same, as a loop.
levels = Vector(INT32, A.nrows, like=A, name="levels")
frontier = Vector(BOOL, A.nrows, like=A, name="frontier")
frontier[0] = True

for depth in loop(until_empty=frontier):
    levels(frontier.S) << depth
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

print(levels.to_dense(-1))

# The same again, watched.
steps = list(step(bfs_levels, A, 0))
for s in steps[2:5]:
    print(s)

# A town: crossings in a grid, some streets missing.
town = generators.road(10)
levels, parents = bfs(town, 0)
blocks = levels.reduce("max").new().value
print(f"{levels.nvals} of {town.nrows} crossings, up to {blocks} blocks away")

# A real graph: which module of Python's standard library imports which.
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
