"""Push and pull: two ways to compute one product, and how many edges each looks at."""

import numpy as np

from lagpu import Vector, backends, explain, generators, semiring, trace
from lagpu.algorithms import bfs_levels

A = generators.kronecker(12, backend="cpu")  # a few vertices have very many edges
SOURCE = 1
levels = bfs_levels(A, SOURCE)
depth = levels.reduce("max").new().value
print(f"{levels.nvals} of {A.nrows} vertices in {depth + 1} levels")


def edges_examined(A, levels):
    """Return the entries that push and that pull look at, level by level."""
    level = levels.to_dense(-1)
    col_ptr, row_idx, _ = A.to_csc()
    out_degree = np.bincount(row_idx, minlength=A.nrows)
    push, pull = [], []
    for depth in range(level.max() + 1):
        push.append(out_degree[level == depth].sum())
        looked = 0
        for j in np.flatnonzero((level < 0) | (level > depth)):
            predecessors = level[row_idx[col_ptr[j] : col_ptr[j + 1]]]
            (hits,) = np.nonzero(predecessors == depth)
            looked += hits[0] + 1 if len(hits) else len(predecessors)
        pull.append(looked)
    return np.array(push), np.array(pull)


push, pull = edges_examined(A, levels)
for depth, counts in enumerate(zip(push, pull)):
    print(f"level {depth}: push {counts[0]:7,}  pull {counts[1]:7,}")

best = np.minimum(push, pull).sum()
print(f"push {push.sum():,}, pull {pull.sum():,}, the better at each level {best:,}")

road = generators.road(24, backend="cpu")
push_road, pull_road = edges_examined(road, bfs_levels(road, 0))
print(f"road: push {push_road.sum():,}, pull {pull_road.sum():,}")

state = backends.available()["sim"]  # "yes", or what it lacks
has_sim = state == "yes"
print("simulated GPU:", state)

B = A.to("sim" if has_sim else "cpu")
frontier = Vector.from_coo([SOURCE], [True], size=B.nrows, like=B, name="frontier")
print(explain(semiring.any_pair(frontier @ B)))

with trace(fuse=False) as traced:  # each level's product by itself, as the planner chooses it
    found = bfs_levels(B, SOURCE)

for row in traced.rows:
    if row.method == "mxv":
        print(f"level {row.level}: {row.nvals_in:5} -> {row.kernel:11} {row.reason}")
