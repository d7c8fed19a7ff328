"""The solutions of the exercises."""

import numpy as np

from lagpu import FP64, INT32, INT64, Matrix, Vector, binary, generators, loop, semiring
from lagpu.algorithms import bfs_levels

A = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4, 5, 6], [1, 2, 3, 3, 4, 5, 5, 1, 0], nrows=7, ncols=7, name="A"
)
town = generators.road(12, seed=5)

# 1. Where do edges lead from?
to_five = bfs_levels(A.T.new(), 5)
print(to_five.to_coo()[0])

# 2. Several sources
levels = Vector(INT32, town.nrows, like=town)
frontier = Vector.from_coo([0, 77, 143], True, size=town.nrows, like=town)
for depth in loop(until_empty=frontier):
    levels(frontier.S) << depth
    frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ town)
print("at most", levels.reduce("max").new().value, "blocks")

# 3. The nearest station itself
station = Vector(INT64, town.nrows, like=town)
frontier = Vector.from_coo([0, 77, 143], [0, 77, 143], size=town.nrows, like=town)
for _ in loop(until_empty=frontier):
    station(frontier.S) << frontier
    frontier(~station.S, replace=True) << semiring.min_first(frontier @ town)
numbers, counts = np.unique(station.to_coo()[1], return_counts=True)
print(dict(zip(numbers.tolist(), counts.tolist())))

# 4. Within three steps
near = bfs_levels(A, 0).select("valuege", 2).new().select("valuele", 3).new()
print(near.to_coo()[0])

# 5. Is it bipartite?
level = bfs_levels(town, 0).to_dense(-1)
rows, cols, _ = town.to_coo()
reached = level[rows] >= 0
print(not (reached & (level[rows] % 2 == level[cols] % 2)).any())

# 6. The longest way through a plan
plan = Matrix.from_coo(
    [0, 0, 1, 2, 3], [1, 2, 3, 3, 4], [2.0, 2.0, 5.0, 1.0, 3.0], nrows=5, ncols=5
)
begin = Vector(FP64, 5, like=plan)
begin[0] = 0
for _ in loop(until_unchanged=begin):
    begin(accum=binary.max) << semiring.max_plus(begin @ plan)
print(begin.to_dense())
