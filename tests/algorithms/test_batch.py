"""Many searches at once: each row against the search from its source, and the checkers."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import AWKWARD, both_ways, drawn, matrix, networkx_of
from hypothesis import strategies as st
from strategies import for_all

from lagpu import INT32, Matrix, Vector, crosscheck
from lagpu.algorithms import bfs_levels, bfs_levels_multi, bfs_parents_multi
from lagpu.check import check_levels_multi, check_parents_multi
from lagpu.errors import (
    CheckFailed,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)


def row(M, r):
    found = M[r, :].new()
    return dict(zip(*(x.tolist() for x in found.to_coo()), strict=True))


def prove(A, sources):
    levels, parents = bfs_levels_multi(A, sources), bfs_parents_multi(A, sources)
    assert levels.shape == parents.shape == (len(sources), A.nrows)
    assert (levels.dtype, parents.dtype) == (INT32, INT32)
    G = networkx_of(A)
    for r, source in enumerate(sources):
        assert row(levels, r) == nx.single_source_shortest_path_length(G, source)
    reports = check_levels_multi(A, sources, levels)
    assert reports == tuple(
        type(one)(mine.rules, one.reached, one.depth, one.edges)
        for one, mine in zip(check_parents_multi(A, sources, parents), reports, strict=True)
    )


@for_all(cpu=80, compiled=16)
def test_random_graphs(backend, draw):
    A = drawn(draw, backend)
    vertices = st.lists(st.integers(0, A.nrows - 1), min_size=1, max_size=5, unique=True)
    prove(A, draw(vertices, label="sources"))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    for A in (matrix(n, edges, backend), matrix(n, both_ways(edges), backend)):
        prove(A, list(range(n))[::-1])


def test_sources(backend):
    A = matrix(4, [(0, 1), (1, 2)], backend)
    alone = bfs_levels_multi(A, 1)
    assert alone.shape == (1, 4)
    assert row(alone, 0) == {1: 0, 2: 1}
    assert bfs_levels_multi(A, np.array([2, 0]))[1, :].new().isequal(bfs_levels(A, 0))
    with pytest.raises(InvalidValue, match="vertex 1 is given twice"):
        bfs_levels_multi(A, [1, 0, 1])
    with pytest.raises(InvalidValue, match="the list is empty"):
        bfs_parents_multi(A, [])
    with pytest.raises(DomainMismatch, match="a set has no order"):
        bfs_levels_multi(A, {0, 1})
    with pytest.raises(IndexOutOfBound, match="index 4"):
        bfs_levels_multi(A, [0, 4])
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        bfs_levels_multi(Matrix("BOOL", 2, 3, like=A), [0])
    with pytest.raises(DomainMismatch, match="is not a Matrix"):
        bfs_parents_multi(np.eye(2), [0])


def test_backends_agree_statement_by_statement():
    A = matrix(9, [(v, (v * 5 + 1) % 9) for v in range(9)], "cpu")
    assert crosscheck(bfs_levels_multi, A, [0, 4, 7], backends=("cpu", "sim")).ok


# -------------------------------------------------------------------------- the checkers themselves

# 0 -> 1 -> 2, and 3 apart; searched from 1, 0 and 3.
EDGES = [(0, 1), (1, 2)]
LEVELS = [(0, 1, 0), (0, 2, 1), (1, 0, 0), (1, 1, 1), (1, 2, 2), (2, 3, 0)]
PARENTS = [(0, 1, 1), (0, 2, 1), (1, 0, 0), (1, 1, 0), (1, 2, 1), (2, 3, 3)]


def result(triples, ncols=4, backend="cpu"):
    rows, cols, values = map(np.array, zip(*triples, strict=True))
    return Matrix.from_coo(rows, cols, values, nrows=3, ncols=ncols, backend=backend)


@pytest.mark.parametrize(
    ("right", "check"), [(LEVELS, check_levels_multi), (PARENTS, check_parents_multi)]
)
def test_right_results_pass(right, check):
    A = matrix(4, EDGES, "cpu")
    rows, cols, values = zip(*right, strict=True)
    theirs = sp.coo_array((values, (rows, cols)), shape=(3, 4))
    for found in (result(right), theirs):
        reports = check(A, [1, 0, 3], found)
        assert [(one.reached, one.depth, one.edges) for one in reports] == [
            *((2, 1, 1), (3, 2, 2), (1, 0, 0))
        ]


@pytest.mark.parametrize(
    ("k", "fault", "message"),
    [
        (0, None, r"row 0, source 1: check_levels: the source has level 0: level\[1\] is none"),
        (4, (1, 2, 1), "row 1, source 0: check_levels: a vertex of level d > 0"),
        (4, None, "row 1, source 0: check_levels: an edge from level d"),
        (5, (2, 0, 0), "row 2, source 3: check_levels: the source has level 0"),
    ],
)
def test_wrong_levels_are_refused(k, fault, message):
    wrong = [*LEVELS[:k], *([] if fault is None else [fault]), *LEVELS[k + 1 :]]
    with pytest.raises(CheckFailed, match=message):
        check_levels_multi(matrix(4, EDGES, "cpu"), [1, 0, 3], result(wrong))


@pytest.mark.parametrize(
    ("k", "fault", "message"),
    [
        (1, (0, 2, 0), "row 0, source 1: check_parents: 1: the parents form a tree"),
        (4, (1, 2, 0), "row 1, source 0: check_parents: 5: a tree edge is an edge"),
        (4, None, "row 1, source 0: check_parents: "),
    ],
)
def test_wrong_parents_are_refused(k, fault, message):
    wrong = [*PARENTS[:k], *([] if fault is None else [fault]), *PARENTS[k + 1 :]]
    with pytest.raises(CheckFailed, match=message):
        check_parents_multi(matrix(4, EDGES, "cpu"), [1, 0, 3], result(wrong))


def test_results_of_another_shape_are_refused():
    A = matrix(4, EDGES, "cpu")
    with pytest.raises(DimensionMismatch, match=r"shape \(3, 4\) != \(2, 4\)"):
        check_levels_multi(A, [1, 0], result(LEVELS))
    with pytest.raises(DimensionMismatch, match=r"shape \(3, 5\) != \(3, 4\)"):
        check_levels_multi(A, [1, 0, 3], result(LEVELS, 5))
    with pytest.raises(IndexOutOfBound, match="source 4"):
        check_levels_multi(A, [1, 0, 4], result(LEVELS))
    assert isinstance(bfs_levels(A, 0), Vector)
