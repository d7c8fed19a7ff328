"""One text, every backend of this machine: compared statement by statement, and proved."""

import lagpu
from lagpu import FP64, Matrix, Vector, backends, binary, check, generators, monoid, semiring
from lagpu.algorithms import bfs_levels, bfs_parents
from lagpu.errors import CrosscheckFailed

state = backends.available()["sim"]  # "yes", or what it lacks
has_sim = state == "yes"
print("simulated GPU:", state)

A = generators.kronecker(8, backend="cpu")
if has_sim:
    report = lagpu.crosscheck(bfs_levels, A, 1, backends=("cpu", "sim"))
    for row in report.rows:
        print(f"{row.runs} x  {row.formula}: {row.rule}")
if has_sim:
    print(report)  # says also where each statement stands

# What `any` chooses may differ, if it is one of those that met.
if has_sim:
    for row in lagpu.crosscheck(bfs_parents, A, 1, backends=("cpu", "sim")).rows:
        print(f"{row.runs} x  {row.formula}: {row.rule}, {row.chosen} chosen differently")

# An operator whose Python and C++ do not say the same.
apart = binary.register("apart", lambda x, y: abs(x - y), "x - y")
plus_apart = semiring.register(monoid.plus, apart)


def gaps(A, u):
    """Return the sum of abs(u[i] - A[i, j]) over the edges into each vertex j."""
    w = Vector(FP64, A.nrows, like=A, name="w")
    w << plus_apart(u @ A)
    return w


roads = Matrix.from_coo([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0], backend="cpu")
height = Vector.from_dense([2.0, 1.0, 5.0], backend="cpu", name="height")

if has_sim:
    try:
        lagpu.crosscheck(gaps, roads, height, backends=("cpu", "sim"))
    except CrosscheckFailed as error:
        print(error)

# The loop as one kernel, and statement by statement.
if has_sim:
    print(lagpu.crosscheck(bfs_levels, A, 1, backends=("sim",)))

answers = {}
for name, state in backends.available().items():
    if state != "yes":
        print(f"{name}: skipped, it is not available here")
        continue
    B = A.to(name)
    levels = bfs_levels(B, 1)
    check.check_levels(B, 1, levels)
    answers[name] = levels.to_dense(-1).tolist()
    print(f"{name}: {levels.nvals} vertices reached, levels proved")

first, *others = answers.values()
assert all(other == first for other in others)
print("all backends agree:", ", ".join(answers))
