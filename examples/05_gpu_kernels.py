"""The lanes that one thread or one warp per column keeps busy, and a fused loop."""

import numpy as np

from lagpu import Matrix, Vector, backends, generators, semiring
from lagpu.algorithms import bfs_levels

A = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4, 5, 6], [1, 2, 3, 3, 4, 5, 5, 1, 0], nrows=7, ncols=7, name="A"
)
col_ptr, row_idx, _ = A.to_csc()
print("col_ptr", col_ptr)
print("row_idx", row_idx)


def busy_lanes(A):
    """Return the share of lanes that work: one thread or one warp per column."""
    length = np.diff(A.to_csc()[0])
    padded = np.append(length, np.zeros(-len(length) % 32, int)).reshape(-1, 32)
    thread_a_column = 32 * padded.max(axis=1).sum()  # lanes times steps
    warp_a_column = 32 * np.ceil(length / 32).sum()
    return length.sum() / thread_a_column, length.sum() / warp_a_column


graphs = {
    "road:64": generators.road(64),
    "delaunay:12": generators.delaunay(12),
    "urand:12": generators.uniform(12),
    "kron:12": generators.kronecker(12),
    "mycielskian:12": generators.mycielskian(12),
}
shares = {name: busy_lanes(G) for name, G in graphs.items()}
print("a column gets    a thread  a warp")
for name, (by_thread, by_warp) in shares.items():
    print(f"{name:15} {by_thread:9.0%} {by_warp:7.0%}")

state = backends.available()["sim"]  # "yes", or what it lacks
has_sim = state == "yes"
print("simulated GPU:", state)

B = graphs["kron:12"].to("sim" if has_sim else "cpu")
frontier = Vector.from_coo([1], [True], size=B.nrows, like=B)
if has_sim:
    kernels = ("push_edge", "push_queue", "push_active", "push_virtual")
    kernels += ("pull_scalar", "pull_warp", "pull_bitmap")
    answers = [semiring.any_pair(frontier @ B, kernel=kernel).new() for kernel in kernels]
    print(all(w.isequal(answers[0]) for w in answers), answers[0].nvals, "neighbours")

C = A.to(B.backend)
print(C)

if has_sim:
    bfs_levels(B, 1)
    print(B.backend.last_loop)
