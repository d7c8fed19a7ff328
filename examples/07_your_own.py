"""An algorithm and a semiring that lagpu does not have, on two backends, proved."""

import numpy as np

from lagpu import (
    FP64,
    INT64,
    Matrix,
    Vector,
    backends,
    binary,
    check,
    generators,
    loop,
    monoid,
    semiring,
    steps,
)
from lagpu.algorithms import bfs
from lagpu.errors import CheckFailed


def components(A):
    """Return the least vertex of each vertex's component.   l = min(l, l min.first A)"""
    labels = Vector.from_dense(np.arange(A.nrows), dtype=INT64, like=A, name="labels")
    for _ in loop(until_unchanged=labels):
        labels(accum=binary.min) << semiring.min_first(labels @ A)
    return labels


graph = generators.uniform(6, 1)  # 64 vertices, 64 edges at most, drawn at random
labels = components(graph)
print(len(np.unique(labels.to_dense())), "components")

state = backends.available()["sim"]  # "yes", or what it lacks
has_sim = state == "yes"
print("simulated GPU:", state)

there = graph.to("sim" if has_sim else "cpu")
labels_there = components(there)
print(labels_there.to("cpu").isequal(labels.to("cpu")))
if has_sim:
    print(there.backend.last_loop)

small = generators.road(3)
with steps() as s:
    components(small)

print(s[0])  # s.to_html("components.html") writes a page of all steps

works = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4],
    [1, 2, 3, 3, 4, 5, 5],
    [0.9, 0.5, 0.9, 0.9, 0.99, 0.5, 0.99],
    nrows=6,
    ncols=6,
    name="works",
)


def best_way(A, source, start, over):
    """Return what the best way to each vertex is worth.   b = b ⊕ b ⊕.⊗ A"""
    best = Vector(FP64, A.nrows, like=A, name="best")
    best[source] = start
    for _ in loop(until_unchanged=best):
        best(accum=over.monoid) << over(best @ A)
    return best


print(best_way(works, 0, 1.0, semiring.max_times).to_dense().round(3))

worn = binary.register("worn", lambda x, y: 0.9 * x * y, "0.9 * x * y")
max_worn = semiring.register(monoid.max, worn)

print(best_way(works, 0, 1.0, max_worn).to_dense().round(3))

there = works.to("sim" if has_sim else "cpu")
worth = best_way(there, 0, 1.0, max_worn).to("cpu")
print(worth.isclose(best_way(works, 0, 1.0, max_worn).to("cpu")))


levels, parents = bfs(graph, 0)
report = check.check_levels(graph, 0, levels)
check.check_parents(graph, 0, parents, levels)
for rule in report.rules:
    print("holds:", rule)


wrong = levels.dup()
deepest = int(levels.to_coo()[0][levels.to_coo()[1].argmax()])
wrong[deepest] = 1
try:
    check.check_levels(graph, 0, wrong)
except CheckFailed as error:
    print(error)

rows, cols, _ = graph.to_coo()
label = labels.to_dense()
print("one label per edge:    ", (label[rows] == label[cols]).all())
print("a label labels itself: ", (label[label] == label).all())
