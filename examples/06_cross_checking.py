"""One text, every backend of this machine: equal answers, each proved, and what was chosen."""

from lagpu import backends, check, generators, trace
from lagpu.algorithms import bfs_levels

SOURCE = 1
answers = {}
for name, state in backends.available().items():
    if state != "yes":
        print(f"{name}: skipped, it is not available here")
        continue
    A = generators.kronecker(8, backend=name)  # the seed decides, so it is the same graph
    bfs_levels(A, SOURCE)  # kernels are compiled
    with trace() as traced:
        levels = bfs_levels(A, SOURCE)
    check.check_levels(A, SOURCE, levels)
    answers[name] = levels.to_dense(-1).tolist()
    print(f"{name}: {levels.nvals} vertices reached, levels proved")
    for row in traced.rows:
        if row.method == "mxv":
            print(f"  level {row.level}: {row.nvals_in:3} -> {row.kernel}, {row.reason}")

first, *others = answers.values()
assert all(other == first for other in others)
print("all backends agree:", ", ".join(answers))
