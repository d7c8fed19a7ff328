"""Two sides or an odd cycle, against NetworkX and the checkers."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of
from hypothesis import strategies as st
from strategies import for_all

from lagpu import INT32, Matrix
from lagpu.algorithms import bipartite_sides, is_bipartite
from lagpu.check import check_odd_cycle, check_sides
from lagpu.errors import CheckFailed, DimensionMismatch, DomainMismatch, IndexOutOfBound


def prove(A):
    sides, cycle = bipartite_sides(A)
    assert (sides is None) is not (cycle is None)
    assert is_bipartite(A) is (cycle is None)
    G = networkx_of(A).to_undirected()
    assert nx.is_bipartite(G) is (cycle is None)
    if cycle is None:
        assert sides.dtype is INT32
        check_sides(A, sides)
        assert all(sides.get(min(part)) == 0 for part in nx.connected_components(G))
    else:
        check_odd_cycle(A, cycle)


@for_all(cpu=100, compiled=10)
def test_random_graphs(backend, draw):
    prove(drawn(draw, backend, degree=draw(st.sampled_from([1, 2]), label="degree")))


@for_all(cpu=60, compiled=6)
def test_random_bipartite_graphs(backend, draw):
    """Edges from even to odd vertices only, one of them perhaps not."""
    n = draw(st.integers(2, 20), label="n")
    half = st.integers(0, n // 2 - 1)
    edges = draw(st.lists(st.tuples(half, half), max_size=3 * n), label="edges")
    edges = [(2 * u, 2 * v + 1) for u, v in edges]
    assert bipartite_sides(matrix(n, edges, backend))[1] is None
    prove(
        matrix(
            n, [*edges, draw(st.sampled_from([(0, 1), (0, 0), (0, n - 1), (1, n - 1)]))], backend
        )
    )


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove(matrix(n, edges, backend))
    prove(matrix(n, both_ways(edges), backend))


def test_known_graphs(backend):
    long = matrix(401, [(v, (v + 1) % 401) for v in range(401)], backend)
    assert sorted(bipartite_sides(long)[1]) == list(range(401))
    assert bipartite_sides(matrix(3, [(0, 1), (2, 2)], backend)) == (None, [2])
    assert bipartite_sides(Matrix("BOOL", 0, 0, backend=backend))[0].size == 0


def test_bad_input():
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        bipartite_sides(Matrix("BOOL", 2, 3, backend="cpu"))
    with pytest.raises(DomainMismatch, match="is not a Matrix"):
        bipartite_sides(np.eye(2))


# -------------------------------------------------------------------------- the checkers themselves

SQUARE = matrix(5, [(0, 1), (2, 1), (2, 3), (3, 0), (3, 4), (4, 2)], "cpu")


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ([0, 1, 0, 1, None], "vertex 4: no side"),
        ([0, 1, 0, 1, 2], "vertex 4: side 2"),
        ([0, 1, 0, 1, 0.5], "vertex 4: side 0.5"),
        ([0, 1, 0, 1, 0], "vertex 2: side 0, like 4"),
        ([0, 1, 0, 1, 1], "vertex 4: side 1, like 3"),
    ],
)
def test_wrong_sides_are_refused(sides, message):
    kept = [v for v, side in enumerate(sides) if side is not None]
    with pytest.raises(CheckFailed, match=message):
        check_sides(SQUARE, (np.array(kept), np.array([sides[v] for v in kept])))


@pytest.mark.parametrize(
    ("cycle", "error", "message"),
    [
        ([0, 1, 2, 3], CheckFailed, "odd number"),
        ([], CheckFailed, "odd number"),
        ([2, 3, 2], CheckFailed, "none of them twice"),
        ([0, 1, 2], CheckFailed, "2 and 0 are not"),
        ([0], CheckFailed, "0 and 0 are not"),
        ([2, 3, 5], IndexOutOfBound, "within 0 .. 4"),
    ],
)
def test_wrong_cycles_are_refused(cycle, error, message):
    check_odd_cycle(SQUARE, [2, 3, 4])
    with pytest.raises(error, match=message):
        check_odd_cycle(SQUARE, cycle)


def test_entries_of_a_right_answer():
    assert entries(bipartite_sides(matrix(4, [(2, 1), (3, 2)], "cpu"))[0]) == {
        0: 0,
        1: 0,
        2: 1,
        3: 0,
    }
