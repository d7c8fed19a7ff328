"""Checkers: right results pass, and a planted fault of every kind is caught."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lagpu import Vector
from lagpu.check import (
    Pattern,
    check_degree_centrality,
    check_levels,
    check_parents,
    check_paths,
    check_remoteness,
    check_route,
)
from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound, InvalidValue
from lagpu.io import from_networkx


def matrix(n, edges):
    rows, cols = zip(*edges, strict=True) if edges else ((), ())
    ones = np.ones(len(rows), bool)
    return sp.coo_array((ones, (np.array(rows, int), np.array(cols, int))), shape=(n, n)).tocsc()


def pair(result):
    """Return a dict as (indices, values)."""
    return np.array(list(result), int), np.array(list(result.values()))


# Directed; 0 -> 1, 2 -> 3 -> 4 with a back edge 4 -> 0, an edge 2 -> 4 is missing; 5 -> 6 -> 5 is
# not reached, and neither is 7, which leads to 1.
N = 8
EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 0), (5, 6), (6, 5), (7, 1)]
A = matrix(N, EDGES)
LEVELS = {0: 0, 1: 1, 2: 1, 3: 2, 4: 3}
PARENTS = {0: 0, 1: 0, 2: 0, 3: 2, 4: 3}
PATHS = {0: 1, 1: 1, 2: 1, 3: 2, 4: 2}


def changed(right, **changes):
    """Return a copy with ``v3=7`` set and ``v3=None`` deleted."""
    found = {**right, **{int(v[1:]): value for v, value in changes.items()}}
    return pair({v: value for v, value in found.items() if value is not None})


def test_right_results_pass():
    for report in (
        check_levels(A, 0, pair(LEVELS)),
        check_parents(A, 0, pair(PARENTS)),
        check_parents(A, 0, pair(PARENTS), pair(LEVELS)),
        check_paths(A, 0, pair(PATHS)),
        check_paths(A, 0, pair(PATHS), pair(LEVELS)),
    ):
        assert (report.reached, report.depth, report.edges) == (5, 3, 6)
        assert len(report.rules) >= 3


def test_checks_share_a_pattern(monkeypatch):
    pattern = Pattern(A)
    reports = check_levels(A, 0, pair(LEVELS)), check_paths(A, 0, pair(PATHS))
    slices = pattern.slices
    monkeypatch.setattr("lagpu.check.graph._slices", None)  # no check reads the matrix again
    assert reports[0] == check_levels(pattern, 0, pair(LEVELS))
    assert reports[1] == check_paths(pattern, 0, pair(PATHS))
    assert pattern.slices is slices
    with pytest.raises(CheckFailed):
        check_levels(pattern, 0, changed(LEVELS, v4=2))
    with pytest.raises(IndexOutOfBound):
        check_levels(pattern, 8, pair(LEVELS))


def test_a_pattern_is_symmetric_where_each_edge_has_its_reverse():
    assert not Pattern(A).symmetric
    assert Pattern(A + A.T).symmetric
    assert not Pattern(from_networkx(nx.cycle_graph(3, create_using=nx.DiGraph))).symmetric


def test_a_pattern_whose_symmetry_is_known_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("lagpu.check.graph.Slice.fingerprint", None)
    assert Pattern(A + A.T, symmetric=True).symmetric
    assert not Pattern(A, symmetric=False).symmetric
    assert check_levels(Pattern(A, symmetric=False), 0, pair(LEVELS)).edges == 6


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"v0": 1}, r"level\[0\] is 1, not 0"),
        ({"v0": None}, r"level\[0\] is none, not 0"),
        ({"v4": None}, r"level <= d \+ 1: vertex 4: no level, but the edge 3 -> 4 comes from"),
        ({"v4": 4}, r"level <= d \+ 1: vertex 4: level 4, but the edge 3 -> 4 comes from level 2"),
        ({"v4": 2}, r"d - 1: vertex 4: level 2, but its nearest in-neighbour has level 2"),
        ({"v3": 1, "v4": 2}, r"d - 1: vertex 3: level 1, but its nearest"),
        ({"v4": 0}, r"d - 1: vertex 4: level 0, but its nearest in-neighbour has level 2"),
        ({"v7": 1}, r"d - 1: vertex 7: level 1, but none of its in-neighbours is reached"),
        ({"v5": 3, "v6": 4}, r"vertex 5: level 3, but its nearest in-neighbour has level 4"),
        ({"v5": 0, "v6": 1}, r"vertex 5: level 0"),
        ({"v4": -1}, r"whole numbers 0 \.\. n-1: vertex 4: level -1"),
        ({"v4": 8}, r"vertex 4: level 8 is not one of 0 \.\. 7"),
        ({"v4": 2.5}, r"vertex 4: level 2\.5"),
        ({"v4": np.nan}, r"vertex 4: level nan"),
        ({"v3": 3, "v4": 9}, r"\(first of 1\)"),
        ({"v1": 2, "v2": 2, "v3": 3, "v4": 4}, r"vertex 1: .* \(first of 2\)"),
    ],
)
def test_wrong_levels(faults, message):
    with pytest.raises(CheckFailed, match=message):
        check_levels(A, 0, changed(LEVELS, **faults))


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"v0": 1}, r"its own parent: parent\[0\] is 1, not 0"),
        ({"v0": None}, r"parent\[0\] is none, not 0"),
        ({"v4": 8}, r"vertex 4: parent 8 is not one of 0 \.\. 7"),
        ({"v4": -1}, r"vertex 4: parent -1"),
        ({"v4": None}, r"4: the tree spans .*: vertex 4: no level, but the edge 3 -> 4"),
        ({"v3": None}, r"1: .*: vertex 4: its parent 3 has no parent"),
        ({"v3": 0}, r"5: .*: vertex 3: its parent is 0, but there is no edge 0 -> 3"),
        ({"v4": 2}, r"5: .*: vertex 4: its parent is 2, but there is no edge 2 -> 4"),
        ({"v3": 4, "v4": 3}, r"1: .*: vertex 3: its chain of parents, from 4 on, does not end"),
        ({"v4": 4}, r"1: .*: vertex 4: is its own parent, but not the source"),
        ({"v7": 7}, r"1: .*: vertex 7: is its own parent"),
        ({"v7": 0}, r"5: .*: vertex 7: its parent is 0, but there is no edge 0 -> 7"),
        ({"v5": 6, "v6": 5}, r"1: .*: vertex 5: its chain"),
        ({"v5": 0, "v6": 5}, r"5: .*: vertex 5: its parent is 0"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_wrong_parents(faults, message, dtype):
    indices, values = changed(PARENTS, **faults)
    with pytest.raises(CheckFailed, match=message):
        check_parents(A, 0, (indices, values.astype(dtype)))


def test_tree_that_is_not_breadth_first():
    cycle = matrix(4, [(0, 1), (1, 2), (2, 3), (0, 3), (3, 2)])
    check_parents(cycle, 0, pair({0: 0, 1: 0, 2: 1, 3: 0}))
    with pytest.raises(CheckFailed, match=r"3: .*: vertex 3: level 3, but the edge 0 -> 3"):
        check_parents(cycle, 0, pair({0: 0, 1: 0, 2: 1, 3: 2}))


def test_levels_that_are_not_the_trees_depths():
    with pytest.raises(CheckFailed, match=r"2: .*: vertex 4: level 2, but its parent \d has 2"):
        check_parents(A, 0, pair(PARENTS), changed(LEVELS, v4=2))
    with pytest.raises(CheckFailed, match=r"vertex 7: level none, but its parent 0 has 0"):
        check_parents(A, 0, changed(PARENTS, v7=0), pair(LEVELS))
    with pytest.raises(CheckFailed, match=r"vertex 7: level 1, but it has no parent"):
        check_parents(A, 0, pair(PARENTS), changed(LEVELS, v7=1))


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"v7": 7}, r"2: .*: vertex 7: level none, but its parent 7 has none"),
        ({"v5": 6, "v6": 5}, r"2: .*: vertex 5: level none, but its parent 6 has none"),
        ({"v4": 4}, r"2: .*: vertex 4: level 3, but its parent 4 has 3"),
        ({"v5": 0}, r"2: .*: vertex 5: level none, but its parent 0 has 0"),
    ],
)
def test_wrong_parents_beside_right_levels(faults, message):
    with pytest.raises(CheckFailed, match=message):
        check_parents(A, 0, changed(PARENTS, **faults), pair(LEVELS))


def test_a_level_that_is_not_the_sources():
    shifted = {v: d + 1 for v, d in LEVELS.items()}
    with pytest.raises(CheckFailed, match=r"2: .*: vertex 0: level 1, but its parent 0 has 1"):
        check_parents(A, 0, pair(PARENTS), pair(shifted))


def test_levels_of_a_tree_that_is_not_breadth_first():
    cycle = matrix(4, [(0, 1), (1, 2), (2, 3), (0, 3), (3, 2)])
    longer = pair({0: 0, 1: 0, 2: 1, 3: 2}), pair({0: 0, 1: 1, 2: 2, 3: 3})
    with pytest.raises(CheckFailed, match=r"3: .*: vertex 3: level 3, but the edge 0 -> 3"):
        check_parents(cycle, 0, *longer)


def test_cycles_of_every_length_are_found():
    for n in range(2, 20):
        ring = matrix(n + 1, [(i, (i + 1) % n) for i in range(n)])
        parents = {n: n, **{(i + 1) % n: i for i in range(n)}}
        with pytest.raises(CheckFailed, match="1: the parents form a tree"):
            check_parents(ring, n, pair(parents))


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"v0": 2}, r"paths\[0\] is 2(\.0)?, not 1"),
        ({"v0": None}, r"paths\[0\] is none, not 1"),
        ({"v3": 3}, r"in-neighbours one level up: vertex 3: 3(\.0)? paths, but the sum is 2"),
        ({"v3": 1, "v4": 1}, r"vertex 3: 1(\.0)? paths, but the sum is 2"),
        ({"v1": 0, "v3": 1, "v4": 1}, r"vertex 1: 0(\.0)? paths"),
        ({"v4": -2}, r"vertex 4: -2(\.0)? paths"),
        (
            {"v4": None},
            r"exactly the reached vertices have a count: vertex 4: no count, but it is at level 3",
        ),
        ({"v7": 1}, r"vertex 7: 1(\.0)? paths, but it is unreached"),
        ({"v7": 0}, r"vertex 7: 0(\.0)? paths, but it is unreached"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.float32])
def test_wrong_path_counts(faults, message, dtype):
    indices, values = changed(PATHS, **faults)
    with pytest.raises(CheckFailed, match=message):
        check_paths(A, 0, (indices, values.astype(dtype)))


def test_nan_is_no_count():
    with pytest.raises(CheckFailed, match="vertex 4: nan paths"):
        check_paths(A, 0, changed(PATHS, v4=np.nan))


def test_path_counts_with_wrong_levels():
    with pytest.raises(CheckFailed, match=r"check_paths: .*vertex 4: level 2"):
        check_paths(A, 0, pair(PATHS), changed(LEVELS, v4=2))


def ladder(rungs, width, leaves=0):
    """Return a chain in which the number of paths is multiplied by `width` at every rung.

    Its last vertex has leaves, and edges back from them.
    """
    edges, count, first = [], [1], 0
    for _ in range(rungs):
        edges += [(first, first + 1 + k) for k in range(width)]
        edges += [(first + 1 + k, first + width + 1) for k in range(width)]
        count += [count[first]] * width + [count[first] * width]
        first += width + 1
    for leaf in range(first + 1, first + 1 + leaves):
        edges += [(first, leaf), (leaf, first)]
        count.append(count[first])
    return matrix(len(count), edges), count


def test_counts_beyond_64_bits_are_not_wrapped():
    graph, count = ladder(66, 2)
    indices = np.arange(len(count))
    wrapped = np.array([c % 2**64 for c in count], np.uint64)
    with pytest.raises(CheckFailed, match="0 paths"):
        check_paths(graph, 0, (indices, wrapped))
    graph, count = ladder(63, 2)
    indices = np.arange(len(count))
    check_paths(graph, 0, (indices, np.array(count, np.uint64)))
    with pytest.raises(CheckFailed, match="-9223372036854775808 paths"):
        check_paths(graph, 0, (indices, np.array(count, np.uint64).view(np.int64)))
    graph, count = ladder(42, 3)  # 3**41 > 2**64: the wrapped sum is no zero
    wrapped = np.array([c % 2**64 for c in count], np.uint64)
    with pytest.raises(CheckFailed, match=f"but the sum is {3**41}"):
        check_paths(graph, 0, (np.arange(len(count)), wrapped))


def test_counts_in_floating_point():
    graph, count = ladder(60, 3)
    exact = np.array(count, float)
    check_paths(graph, 0, (np.arange(len(count)), exact))
    wrong = exact.copy()
    wrong[-1] *= 1 + 1e-12
    with pytest.raises(CheckFailed, match="but the sum is"):
        check_paths(graph, 0, (np.arange(len(count)), wrong))
    graph, count = ladder(33, 3)  # sums below 2**53 are exact, near as they are to it
    assert 2**52 < count[-1] < 2**53
    wrong = np.array(count, float)
    wrong[-1] += 1
    with pytest.raises(CheckFailed, match="but the sum is"):
        check_paths(graph, 0, (np.arange(len(count)), wrong))
    graph, count = ladder(90, 3)  # beyond the largest FP32
    with np.errstate(over="ignore"):
        single = np.array(count, float).astype(np.float32)
    assert np.isinf(single[-1])
    check_paths(graph, 0, (np.arange(len(count)), single))
    single[-1] = 1
    with pytest.raises(CheckFailed, match=r"1\.0 paths, but the sum is inf"):
        check_paths(graph, 0, (np.arange(len(count)), single))


def test_edges_from_deeper_levels_allow_no_rounding():
    graph, count = ladder(30, 2, leaves=1000)
    single = np.array(count, np.float32)
    check_paths(graph, 0, (np.arange(len(count)), single))
    single[-1001:] *= np.float32(1.0001)
    with pytest.raises(CheckFailed, match="but the sum is"):
        check_paths(graph, 0, (np.arange(len(count)), single))


# --------------------------------------------------------------------- any graph, any source
@st.composite
def searches(draw):
    n = draw(st.integers(1, 9))
    directed = draw(st.booleans())
    vertex = st.integers(0, n - 1)
    G = nx.gnp_random_graph(
        n, draw(st.floats(0, 0.6)), seed=draw(st.integers(0, 99)), directed=directed
    )
    G.add_edges_from((v, v) for v in draw(st.lists(vertex, max_size=2)))
    return G, draw(vertex)


def reference(G, source):
    levels = dict(nx.single_source_shortest_path_length(G, source))
    parents = {
        v: min((u for u in G if G.has_edge(u, v) and levels.get(u) == d - 1), default=v)
        for v, d in levels.items()
    }
    paths = {
        v: 1 if v == source else len(list(nx.all_shortest_paths(G, source, v))) for v in levels
    }
    return levels, parents, paths


@given(searches())
def test_right_answers_pass_and_each_single_change_fails(search):
    G, source = search
    graph = matrix(
        len(G), [e for u, v in G.edges for e in ([(u, v)] if G.is_directed() else [(u, v), (v, u)])]
    )
    levels, parents, paths = reference(G, source)
    report = check_levels(graph, source, pair(levels))
    check_parents(graph, source, pair(parents), pair(levels))
    check_paths(graph, source, pair(paths))
    assert report.reached == len(levels)
    assert report.depth == max(levels.values())
    reached = G.subgraph(levels)
    symmetric = (graph != graph.T).nnz == 0
    counted = nx.Graph(reached) if symmetric else reached
    assert report.edges == counted.number_of_edges()
    for v in G:
        for wrong in ({None, *range(len(G) + 1)}) - {levels.get(v)}:
            with pytest.raises(CheckFailed):
                check_levels(graph, source, changed(levels, **{f"v{v}": wrong}))
        for wrong in ({None, *range(len(G))}) - {parents.get(v)}:
            also = (
                v != source
                and v in levels
                and levels.get(wrong) == levels[v] - 1
                and G.has_edge(wrong, v)
            )
            if not also:
                with pytest.raises(CheckFailed):
                    check_parents(graph, source, changed(parents, **{f"v{v}": wrong}))
        for wrong in {None, 0, 1, paths.get(v, 0) + 1} - {paths.get(v)}:
            with pytest.raises(CheckFailed):
                check_paths(graph, source, changed(paths, **{f"v{v}": wrong}))


def test_small_blocks_change_nothing(monkeypatch):
    from lagpu.io.csc import column_blocks

    monkeypatch.setattr("lagpu.check.graph.column_blocks", lambda ptr: column_blocks(ptr, 2))
    test_right_results_pass()
    for faults, message in [({"v4": None}, "3 -> 4"), ({"v4": 2}, "vertex 4: level 2")]:
        test_wrong_levels(faults, message)


# ---------------------------------------------------------------------------- forms of input
def test_matrix_and_vectors():
    G = nx.karate_club_graph()
    B = from_networkx(G, backend="cpu")
    levels, parents, paths = (
        Vector.from_coo(*pair(result), size=len(G), backend="cpu") for result in reference(G, 0)
    )
    report = check_levels(B, 0, levels)
    assert (report.reached, report.edges) == (34, 78)
    check_parents(B, 0, parents, levels)
    check_paths(B, 0, paths, levels)
    check_paths((B.to_csc()[0], B.to_csc()[1]), 0, paths)


def test_rows_in_any_order():
    col_ptr, row_idx = np.array([0, 2, 4, 6]), np.array([2, 1, 2, 0, 1, 0])  # a triangle
    report = check_levels((col_ptr, row_idx), 0, pair({0: 0, 1: 1, 2: 1}))
    assert report.edges == 3
    assert row_idx.tolist() == [2, 1, 2, 0, 1, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int32, np.float64])
def test_types_of_values(dtype):
    n = 300
    path = matrix(n, [(i, i + 1) for i in range(n - 1)])
    some = np.arange(200)
    half = path.copy()
    half.data[199:] = False  # stored values mean nothing, an entry is an edge
    with pytest.raises(CheckFailed, match="vertex 200: no level, but the edge 199 -> 200"):
        check_levels(half, 0, (some, some.astype(dtype)))
    short = matrix(n, [(i, i + 1) for i in range(199)])
    assert check_levels(short, 0, (some, some.astype(dtype))).depth == 199
    check_parents(short, 0, (some, np.maximum(some - 1, 0).astype(dtype)), (some, some))
    check_paths(short, 0, (some, np.ones(200, dtype)))


def test_arguments_that_do_not_fit():
    for source in (-1, 8):
        with pytest.raises(IndexOutOfBound, match="outside 0"):
            check_levels(A, source, pair(LEVELS))
    with pytest.raises(InvalidValue, match=r"source 0\.5 is not a whole number"):
        check_levels(A, 0.5, pair(LEVELS))
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        check_levels(sp.csc_array((2, 3)), 0, pair({0: 0}))
    with pytest.raises(IndexOutOfBound, match="row of the graph"):
        check_levels((np.array([0, 1]), np.array([1])), 0, pair({0: 0}))
    with pytest.raises(IndexOutOfBound, match="levels has a vertex outside"):
        check_levels(A, 0, pair({0: 0, 8: 1}))
    with pytest.raises(InvalidValue, match="two values for one vertex"):
        check_levels(A, 0, (np.array([0, 0]), np.array([0, 0])))
    with pytest.raises(DimensionMismatch, match="indices"):
        check_levels(A, 0, (np.array([0, 1]), np.array([0])))
    with pytest.raises(DimensionMismatch, match=r"levels\.size 3 != 8"):
        check_levels(A, 0, Vector.from_coo([0], [0], size=3, backend="cpu"))
    with pytest.raises(InvalidValue, match="source None is not a whole number"):
        check_levels(A, None, pair(LEVELS))


def test_results_and_graphs_of_other_libraries_that_are_none():
    n = A.shape[0]
    for levels in (LEVELS, {0: 0, 1: 1}, np.arange(n), [0, 1], None, A):
        with pytest.raises(InvalidValue, match=r"levels is of type \w+\. Give a Vector, or a pair"):
            check_levels(A, 0, levels)
    with pytest.raises(InvalidValue, match="are not whole numbers"):
        check_levels(A, 0, ([0.0, 1.5], [0, 1]))
    for values in (["0", "1"], [0, 1j]):
        with pytest.raises(InvalidValue, match=r"values of type .*, not real numbers"):
            check_levels(A, 0, ([0, 1], values))
    for graph in (nx.path_graph(n), nx.path_graph(2), A.toarray(), np.ones((2, 2)), None):
        with pytest.raises(InvalidValue, match=r"graph is of type \w+\. Give a Matrix"):
            check_levels(graph, 0, pair(LEVELS))
    with pytest.raises(CheckFailed, match=r"level\[0\] is none, not 0"):
        check_levels(A, 0, ([], []))
    assert check_route(A, 0, 0, np.array([0]))
    with pytest.raises(InvalidValue, match="'close' is not eccentricity, closeness or harmonic"):
        check_remoteness(A, pair(LEVELS), "close")
    with pytest.raises(InvalidValue, match="'both' is not all, in or out"):
        check_degree_centrality(A, pair(LEVELS), "both")
