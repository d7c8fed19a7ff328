"""The same product, other semirings: the algebra says what is asked.

A road map of five towns, directed, with lengths in kilometres:

    0 --5--> 1 --1--> 2 --2--> 4      0 --9--> 3 --9--> 4      0 --9--> 2
"""

from lagpu import FP64, INT64, Matrix, Vector, binary, loop, semiring
from lagpu.algorithms import bfs_levels, bfs_parents, count_shortest_paths

A = Matrix.from_coo(
    [0, 1, 2, 0, 3, 0], [1, 2, 4, 3, 4, 2], [5.0, 1.0, 2.0, 9.0, 9.0, 9.0], nrows=5, ncols=5
)

# any_pair: is there an edge? any_secondi: from whom? plus_first: how many ways?
print("roads to drive ", bfs_levels(A, 0).to_dense())
print("come from      ", bfs_parents(A, 0).to_dense())
print("shortest routes", count_shortest_paths(A, 0).to_dense().astype(int))

# min_plus: how far? Relax until nothing changes (Bellman and Ford).
distance = Vector(FP64, 5, like=A)
distance[0] = 0
for _ in loop(until_unchanged=distance):
    distance(accum=binary.min) << semiring.min_plus(distance @ A)
print("kilometres     ", distance.to_dense())

# max_min: the widest route, if the numbers are lane widths.
width = Vector(FP64, 5, like=A)
width[0] = float("inf")
for _ in loop(until_unchanged=width):
    width(accum=binary.max) << semiring.max_min(width @ A)
print("widest route   ", width.to_dense())

# plus_pair: how many roads end in each town? A full vector takes part in every product.
everywhere = Vector.from_dense([1] * 5, dtype=INT64, like=A)
print("roads into     ", semiring.plus_pair(everywhere @ A).new().to_dense(0, INT64))
