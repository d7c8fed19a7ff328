"""Small problems for ``lagpu bench --algorithm``, and what systems answer."""

from __future__ import annotations

from lagpu import Matrix, backends, io
from lagpu.bench.graphs import HostGraph, make
from lagpu.catalog import QUESTIONS, Algorithm, Answer

# Two triangles joined by an edge, with a self-loop; a path that leads back; a diamond; two parts.
GRAPHS = {
    "undirected": [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (4, 4)],
    "even": [(0, 1), (1, 2), (2, 3), (3, 0)],
    "directed": [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)],
    "acyclic": [(3, 1), (3, 0), (1, 2), (0, 2)],
    "apart": [(0, 1), (1, 2), (3, 4)],
}


UNDIRECTED = ("undirected", "even", "apart")


def matrix(kind: str) -> Matrix:
    i, j = (list(ends) for ends in zip(*GRAPHS[kind], strict=True))
    if kind in UNDIRECTED:
        i, j = i + j, j + i
    n = 1 + max(i + j)
    return Matrix.from_coo(i, j, nrows=n, ncols=n, dup_op="lor", backend="cpu")


def problem_of(kind, folder) -> HostGraph:
    io.write(matrix(kind), folder / "graph.npz")
    make(str(folder / "graph.npz"), backends.get("cpu"), None, folder)
    return HostGraph.read(folder)


def question(key: str) -> Algorithm:
    return next(q for q in QUESTIONS if q.key == key)


def answer(system, key: str) -> Answer:
    ask, read = system.prepare(question(key))
    return read(ask())
