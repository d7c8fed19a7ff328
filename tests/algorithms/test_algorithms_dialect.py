"""The loops of the algorithms run on python-graphblas' own objects, as they stand."""

import ast
import inspect
import textwrap

import numpy as np
import pytest
from graphs import both_ways, entries, matrix, random_edges

from lagpu.algorithms import (
    bellman_ford,
    bipartite_sides,
    maximal_independent_set,
    topological_levels,
)
from lagpu.algorithms.structure import _scores

gb = pytest.importorskip("graphblas")
N = 60


def loop_text(function):
    """The first loop of a function, as written."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return ast.unparse(next(node for node in ast.walk(tree) if isinstance(node, ast.For)))


def graphblas_loop(*, until_empty, times=None):
    done = 0
    while until_empty.nvals and done != times:
        yield done
        done += 1


def run(function, A, **names):
    """Run the loop of `function` over a copy of `A`, and the other names, in python-graphblas."""
    rows, cols, values = A.to_coo()
    names["A"] = gb.Matrix.from_coo(rows, cols, values, nrows=A.nrows, ncols=A.ncols)
    names |= {"semiring": gb.semiring, "binary": gb.binary, "loop": graphblas_loop}
    text = loop_text(function)
    assert "<<" in text
    exec(text, names)
    return names


def found(v):
    return dict(zip(*(x.tolist() for x in v.to_coo()), strict=True))


def test_bellman_ford():
    edges = [(u, v, 1 + (u * v) % 5) for u, v in random_edges(N, 150, 1)]
    A = matrix(N, edges, "cpu", weights="whole")
    one = {name: gb.Vector("INT64", N) for name in ("distances", "nearer")}
    for v in one.values():
        v[0] = 0
    names = run(bellman_ford, A, **one, worse=gb.Vector("BOOL", N))
    assert found(names["distances"]) == entries(bellman_ford(A, 0))


def test_topological_levels():
    A = matrix(N, [(min(e), max(e)) for e in random_edges(N, 150, 2) if e[0] != e[1]], "cpu")
    edges_in = gb.Vector.from_dense(np.bincount(A.to_coo()[1], minlength=N))
    names = run(
        topological_levels,
        A,
        levels=gb.Vector("INT32", N),
        edges_in=edges_in,
        frontier=edges_in.select("valueeq", 0).new(),
    )
    assert found(names["levels"]) == entries(topological_levels(A))


def test_bipartite_sides():
    A = matrix(N, both_ways([(v, v + 1) for v in range(N - 1)]), "cpu")
    frontier = gb.Vector("INT32", N)
    frontier[0] = 0
    names = run(bipartite_sides, A, sides=gb.Vector("INT32", N), frontier=frontier)
    assert found(names["sides"]) == entries(bipartite_sides(A)[0])


def test_maximal_independent_set():
    A = matrix(N, both_ways([e for e in random_edges(N, 120, 3) if e[0] != e[1]]), "cpu")
    names = run(
        maximal_independent_set,
        A,
        scores=gb.Vector.from_dense(_scores(A, 5).to_dense()),
        members=gb.Vector("BOOL", N),
        near=gb.Vector("BOOL", N),
        best=gb.Vector("INT64", N),
    )
    assert found(names["members"]) == entries(maximal_independent_set(A, seed=5))
