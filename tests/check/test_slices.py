"""On a grid each piece looks at its own edges: one verdict, and none has all of them."""

import functools
import random

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import both_ways, matrix, random_edges
from grids import own_grid
from ranks import on_grids

from lagpu import Matrix, algorithms, check
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import LocalEngine
from lagpu.backends.grid.pieces import Pieces
from lagpu.check import graph as slices
from lagpu.errors import CheckFailed, DimensionMismatch, InvalidValue

N = 13
ONE_WAY = random_edges(N, 24, 3)
BOTH = both_ways(random_edges(N, 14, 5))
WEIGHTED = [(u, v, (3 * u + v) % 4 + 1) for u, v in dict.fromkeys(ONE_WAY)]
ACYCLIC = [(u, v) for u, v in ONE_WAY if u < v]
RING = [(v, (v + 1) % N) for v in range(N)]
RINGS = [edge for v in range(0, 12, 3) for edge in ((v, v + 1), (v + 1, v + 2), (v + 2, v))]
RINGS += [(1, 3), (5, 6), (8, 12), (4, 9)]
TWO_SIDES = both_ways([(u, v) for u, v in ONE_WAY if (u + v) % 2])
GRIDS = [(1, 2), (2, 1), (2, 3)]


def pair(result):
    return np.array(list(result), int), np.array(list(result.values()))


def each_change(right, wrong):
    """The right result, and each with one entry changed or left out, at every vertex."""
    yield right
    for v in range(N):
        for value in wrong(right.get(v)):
            changed = {**right, v: value}
            yield {u: x for u, x in changed.items() if x is not None}


def near(value):
    """What is wrong in place of a number, and right in place of none."""
    return (None, 0, value + 1, value - 1) if value is not None else (0, 1, 2)


def members(value):
    return (1,) if value is None else (None,)


def entries(v):
    return dict(zip(*(x.tolist() for x in v.to_coo()), strict=True))


CHECKS = {
    "levels": (
        ONE_WAY, {}, lambda A: algorithms.bfs_levels(A, 1), near,
        lambda A, found: check.check_levels(A, 1, found),
    ),
    "levels, undirected": (
        BOTH, {}, lambda A: algorithms.bfs_levels(A, 1), near,
        lambda A, found: check.check_levels(A, 1, found),
    ),
    "parents": (
        ONE_WAY, {}, lambda A: algorithms.bfs_parents(A, 1), lambda _: (None, *range(0, N, 4)),
        lambda A, found: check.check_parents(A, 1, found),
    ),
    "paths": (
        ONE_WAY, {}, lambda A: algorithms.count_shortest_paths(A, 1), near,
        lambda A, found: check.check_paths(A, 1, found),
    ),
    "float paths": (
        BOTH, {}, lambda A: algorithms.count_shortest_paths(A, 1).apply("identity").new("FP32"),
        near, lambda A, found: check.check_paths(A, 1, found),
    ),
    "joint levels": (
        ONE_WAY, {}, lambda A: algorithms.bfs_levels_joint(A, [1, 5]), near,
        lambda A, found: check.check_levels_joint(A, [1, 5], found),
    ),
    "k hops": (
        ONE_WAY, {}, lambda A: algorithms.k_hop(A, [1], 2), members,
        lambda A, found: check.check_k_hop(A, [1], 2, found),
    ),
    "distances": (
        WEIGHTED, {"weights": "whole"}, lambda A: algorithms.sssp(A, 1), near,
        lambda A, found: check.check_distances(A, 1, found),
    ),
    "pageranks": (
        WEIGHTED, {"weights": "float"}, algorithms.pagerank, lambda x: (None, -1.0, 2 * x),
        lambda A, found: check.check_pagerank(A, found),
    ),
    "components": (
        BOTH, {}, algorithms.connected_components, near,
        check.check_components,
    ),
    "components of directed edges": (
        ONE_WAY, {}, lambda A: algorithms.connected_components(A.ewise_add(A.T, "lor").new()), near,
        check.check_components,
    ),
    "sides": (
        TWO_SIDES, {}, lambda A: algorithms.bipartite_sides(A)[0], lambda x: (None, 1 - x, 2),
        check.check_sides,
    ),
    "topological levels": (
        ACYCLIC, {}, algorithms.topological_levels, near, check.check_topological_levels,
    ),
    "topological order": (
        ACYCLIC, {}, algorithms.topological_order, lambda v: (None, (v + 5) % N),
        check.check_topological_order,
    ),
    "a core": (
        BOTH, {}, lambda A: algorithms.k_core(A, 2), members,
        lambda A, found: check.check_k_core(A, found, 2),
    ),
    "a core of directed edges": (
        ACYCLIC, {}, lambda A: algorithms.k_core(A.ewise_add(A.T, "lor").new(), 2), members,
        lambda A, found: check.check_k_core(A, found, 2),
    ),
    "an independent set": (
        BOTH, {}, lambda A: algorithms.maximal_independent_set(A, seed=1), members,
        check.check_independent_set,
    ),
    "an independent set of directed edges": (
        ONE_WAY, {},
        lambda A: algorithms.maximal_independent_set(A.ewise_add(A.T, "lor").new(), seed=1),
        members, check.check_independent_set,
    ),
    "a matching of directed edges": (
        ONE_WAY, {}, lambda A: algorithms.maximal_matching(A, order="rows"), near,
        check.check_matching,
    ),
}  # fmt: skip

#: Proofs that look at all edges many times, so that on a grid a few faults must do.
LONG = {
    "core numbers": (BOTH, {}, algorithms.core_number, near, check.check_core_numbers),
    "core numbers of directed edges": (
        ONE_WAY, {}, algorithms.core_number, near, check.check_core_numbers,
    ),
    "strong components": (
        ONE_WAY, {}, algorithms.strongly_connected_components, near,
        lambda A, found: check.check_components(A, found, strong=True),
    ),
    "strong components of a ring of rings": (
        RINGS, {}, algorithms.strongly_connected_components, lambda v: (v + 3, v - 3, 0),
        lambda A, found: check.check_components(A, found, strong=True),
    ),
    "triangles": (BOTH, {}, algorithms.triangles, near, check.check_triangles),
    "clustering": (BOTH, {}, algorithms.clustering, near, check.check_clustering),
    "closeness": (
        ONE_WAY, {}, algorithms.closeness_centrality, near,
        lambda A, found: check.check_remoteness(A, found, "closeness"),
    ),
    "eccentricities": (
        RING, {}, algorithms.eccentricity, near,
        lambda A, found: check.check_remoteness(A, found, "eccentricity"),
    ),
    "harmonic centralities of some": (
        BOTH, {}, lambda A: algorithms.harmonic_centrality(A, [1, 5, 6]), lambda _: (0.01, 0.02, 9),
        lambda A, found: check.check_remoteness(A, found, "harmonic", vertices=[1, 5]),
    ),
    "betweenness": (
        ONE_WAY, {}, algorithms.betweenness_centrality, near, check.check_betweenness,
    ),
    "betweenness of some sources": (
        BOTH, {}, lambda A: algorithms.betweenness_estimate(A, 4, seed=1)[0], near,
        lambda A, found: check.check_betweenness(
            A, found, sources=random.Random(1).sample(range(N), 4)
        ),
    ),
}  # fmt: skip


def verdict(prove, A, found):
    try:
        return prove(A, pair(found))
    except CheckFailed as error:
        return str(error)


def verdicts(name, place, step=1):
    """What a check says of a right result and of each with a fault."""
    edges, how, run, wrong, prove = (CHECKS | LONG)[name]
    A = matrix(N, edges, place, **how)
    right = entries(run(matrix(N, edges, "cpu", **how)))
    return [verdict(prove, A, found) for found in list(each_change(right, wrong))[::step]]


def cpu_grid(shape, order=None):
    count = shape[0] * shape[1]
    places = [CpuBackend() for _ in range(count)]
    return GridBackend("grid", LocalEngine(count), places, shape, order)


@pytest.fixture
def nobody_collects(monkeypatch):
    """No process may ask for all entries of a matrix."""

    def refuse(*_args, **_more):
        raise AssertionError("the graph is collected")

    collected = Pieces.collected
    monkeypatch.setattr(GridBackend, "matrix_to_csc", refuse)
    monkeypatch.setattr(
        Pieces, "collected", lambda self, x: refuse() if len(x.shape) == 2 else collected(self, x)
    )


@pytest.mark.parametrize("name", CHECKS)
def test_every_verdict_is_that_of_one_backend(name, nobody_collects):
    want = verdicts(name, "cpu")
    assert not isinstance(want[0], str)
    refused = sum(isinstance(one, str) for one in want)
    assert refused > len(want) // 2, "these changes are no faults"
    for shape in GRIDS:
        assert verdicts(name, cpu_grid(shape)) == want


@pytest.mark.parametrize("name", LONG)
def test_long_proofs_say_what_one_backend_says(name, nobody_collects):
    want = verdicts(name, "cpu", 7)
    assert not isinstance(want[0], str)
    assert sum(isinstance(one, str) for one in want) > len(want) // 2, "these changes are no faults"
    for shape, order in (((3, 1), "random"), ((2, 2), None)):
        assert verdicts(name, cpu_grid(shape, order), 7) == want


@pytest.mark.parametrize("order", ["random", "degree"])
@pytest.mark.parametrize("name", ["levels", "parents", "distances", "components", "sides"])
def test_indices_in_another_order(name, order, nobody_collects):
    want = verdicts(name, "cpu")
    for shape in ((3, 1), (2, 3)):
        assert verdicts(name, cpu_grid(shape, order)) == want


@pytest.mark.parametrize(("ranks", "pieces"), [(2, 1), (3, 1), (2, 2)])
def test_in_several_processes(ranks, pieces, nobody_collects):
    steps = dict.fromkeys(("levels", "parents", "paths", "components"), 5)
    steps |= dict.fromkeys(("core numbers", "strong components", "triangles", "betweenness"), 15)
    want = [verdicts(name, "cpu", step) for name, step in steps.items()]
    found = on_grids(
        ranks, lambda place: [verdicts(name, place, step) for name, step in steps.items()], pieces
    )
    assert found == [want] * ranks


@pytest.mark.parametrize("shape", GRIDS)
def test_a_piece_is_asked_for_its_own_part_alone(shape, monkeypatch):
    """All parts together have each entry once, and a slice is a part."""
    made, init = [], slices.Slice.__init__

    def note(self, n, col_ptr, row_idx, *more, **named):
        made.append(len(row_idx))
        init(self, n, col_ptr, row_idx, *more, **named)

    monkeypatch.setattr(slices.Slice, "__init__", note)
    A = matrix(N, BOTH, cpu_grid(shape))
    check.check_levels(A, 1, algorithms.bfs_levels(A, 1))
    assert len(made) == shape[0] * shape[1]
    assert sum(made) == A.nvals
    assert max(made) < A.nvals


def test_searches_of_each_source(nobody_collects):
    sources = [1, 4]
    A, B = matrix(N, ONE_WAY, "cpu"), matrix(N, ONE_WAY, cpu_grid((2, 3)))
    for run, prove in (
        (algorithms.bfs_levels_multi, check.check_levels_multi),
        (algorithms.bfs_parents_multi, check.check_parents_multi),
    ):
        want = run(A, sources)
        assert prove(B, sources, want) == prove(A, sources, want)
        rows, cols, values = want.to_coo()
        for k in range(len(values)):
            wrong = values.copy()
            wrong[k] += 1
            found = type(A).from_coo(rows, cols, wrong, nrows=2, ncols=N, backend="cpu")
            said = [verdict_of_each(prove, graph, sources, found) for graph in (A, B)]
            assert said[0] == said[1]


def verdict_of_each(prove, A, sources, found):
    try:
        return prove(A, sources, found)
    except CheckFailed as error:
        return str(error)


@pytest.mark.parametrize("place", ["cpu", cpu_grid((3, 1)), cpu_grid((2, 2))])
def test_labels_that_are_wrong_together(place, nobody_collects):
    def said(edges, labels):
        A = matrix(N, edges, place)
        return outcome(check.check_components, A, (np.arange(N), np.array(labels)), strong=True)

    apart, ring = np.arange(N), np.zeros(N, int)
    assert "vertex 1: label 1, but it is in the component of 0" in said(RING, apart)
    assert "vertex 1: label 0, but it is in the component of 1" in said(RING[:-1], ring)
    assert isinstance(said(RING, ring), tuple)
    assert isinstance(said(RING[:-1], apart), tuple)
    full = [(u, v) for u in range(N) for v in range(u + 1, N)]  # more edges than vertices
    assert isinstance(said(full, apart), tuple)
    assert "vertex 12: label 12, but it is in the component of 11" in said([*full, (12, 11)], apart)


@pytest.mark.parametrize("place", ["cpu", cpu_grid((3, 1)), cpu_grid((2, 2))])
def test_a_round_takes_several_neighbours_of_one_vertex(place, nobody_collects):
    hub = [(0, v) for v in range(1, 9)] + [(9, 10), (10, 11), (11, 9)]
    for edges in (hub, both_ways(hub)):
        A, cores = matrix(N, edges, place), [*[1] * 9, 2, 2, 2, 0]
        check.check_core_numbers(A, (np.arange(N), np.array(cores)))
        cores[9:12] = [1] * 3
        with pytest.raises(CheckFailed, match="vertex 9: core number 1, but peeled at 2"):
            check.check_core_numbers(A, (np.arange(N), np.array(cores)))


def test_numbers_of_a_whole_graph(nobody_collects):
    grid = cpu_grid((2, 2))
    for edges, prove, right in (
        (RING, check.check_diameter, N - 1),
        (ONE_WAY, check.check_diameter, np.inf),
        (BOTH, check.check_triangle_count, None),
        (BOTH, check.check_transitivity, None),
        (ONE_WAY, check.check_transitivity, 0.5),
    ):
        A, B = matrix(N, edges, "cpu"), matrix(N, edges, grid)
        if prove is check.check_triangle_count:
            right = algorithms.triangle_count(A)
        elif right is None:
            right = algorithms.transitivity(A)
        for number in (right, right + 1, right / 2, 3):
            assert outcome(prove, B, number) == outcome(prove, A, number)


@pytest.mark.parametrize("words", [0, 1 << 14])
def test_distances_from_more_vertices_than_a_word_has_bits(words, monkeypatch):
    monkeypatch.setattr("lagpu.check.centrality._WORDS", words)
    A = matrix(70, [(v, (v + 1) % 70) for v in range(70)], "cpu")
    check.check_diameter(A, 69)
    assert "68, but from 0 to 69 it is 69" in outcome(check.check_diameter, A, 68)
    right = np.full(70, 69)
    check.check_remoteness(A, (np.arange(70), right), "eccentricity")
    right[66] = 68
    with pytest.raises(CheckFailed, match="vertex 66: eccentricity 68, but it is 69"):
        check.check_remoteness(A, (np.arange(70), right), "eccentricity")


@pytest.mark.parametrize("directed", [True, False])
def test_edges_with_centralities(directed, nobody_collects):
    edges = ONE_WAY if directed else BOTH
    A = matrix(N, edges, "cpu")
    right = algorithms.edge_betweenness_centrality(A)
    rows, cols, values = right.to_coo()

    def reported(C, values, place=None):
        of = sp.coo_array((values, (rows, cols)), shape=(N, N))
        if place is not None:
            of = Matrix.from_coo(rows, cols, values, nrows=N, ncols=N, backend=place)
        return outcome(check.check_edge_betweenness, C, of, directed=directed)

    grids = [cpu_grid((2, 2), "random" if directed else None)]
    graphs = [matrix(N, edges, grid) for grid in grids]
    assert isinstance(reported(A, values), tuple)
    for k in [None, *range(0, len(values), 9)]:
        wrong = values.copy()
        if k is not None:
            wrong[k] += 0.5
        want = reported(A, wrong)
        assert isinstance(want, str) == (k is not None)
        for grid, B in zip(grids, graphs, strict=True):
            assert (
                reported(B, wrong) == reported(B, wrong, grid) == reported(B, wrong, "cpu") == want
            )
    kept = slice(1, None)
    fewer = sp.coo_array((values[kept], (rows[kept], cols[kept])), shape=(N, N))
    for C in (A, *graphs):
        with pytest.raises(DimensionMismatch, match="not those of the graph"):
            check.check_edge_betweenness(C, fewer)


def test_few_distances_at_a_time(monkeypatch, nobody_collects):
    names = ("betweenness", "betweenness of some sources", "triangles", "closeness")
    want = [verdicts(name, "cpu", 9) for name in names]
    monkeypatch.setattr("lagpu.check.centrality._PAIRS", 3 * N)
    monkeypatch.setattr("lagpu.check.structure._LISTED", 5)
    monkeypatch.setattr("lagpu.check.centrality._FEW", 0)
    assert [verdicts(name, "cpu", 9) for name in names] == want


def test_routes_and_odd_cycles(nobody_collects):
    ring = [(v, (v + 1) % 9) for v in range(9)]
    places = ["cpu", cpu_grid((2, 1)), cpu_grid((2, 3))]
    routes = [[0, 1, 2, 3], [0, 2, 3], [0, 1, 2, 4, 3], [0, 8, 3]]
    cycles = [[*range(9)], [0, 1, 3], [0, 1, 2]]
    said = []
    for place in places:
        A = matrix(9, [*ring, (2, 4), (4, 3)], place)
        found = [outcome(check.check_route, A, 0, 3, route) for route in routes]
        found += [outcome(check.check_route, A, 0, 2, [0, 1, 2, 3, 4, 5])]
        said.append(found + [outcome(check.check_odd_cycle, A, cycle) for cycle in cycles])
    assert said[0] == said[1] == said[2]
    assert "no edge 0 -> 2" in said[0][1]
    assert "1 and 3 are not" in said[0][6]


def outcome(prove, *args, **options):
    try:
        return prove(*args, **options)
    except (CheckFailed, InvalidValue) as error:
        return str(error)


@pytest.mark.parametrize("shape", [None, *GRIDS])
def test_symmetric_patterns(shape, nobody_collects, monkeypatch):
    def symmetric(edges):
        place = "cpu" if shape is None else cpu_grid(shape)
        return check.Pattern(matrix(N, edges, place)).symmetric

    blocks = functools.partial(slices.column_blocks, entries=3)
    monkeypatch.setattr(slices, "column_blocks", blocks)
    assert symmetric(BOTH)
    assert symmetric([(u, u) for u in range(0, N, 2)])
    absent = [(u, v) for v in range(N) for u in range(v) if (u, v) not in BOTH]
    for k, cut in enumerate([(u, v) for u, v in BOTH if u != v][::5]):
        kept = [edge for edge in BOTH if edge != cut]
        assert not symmetric(kept)
        other = absent[k] if cut[0] < cut[1] else absent[k][::-1]
        assert not symmetric([*kept, other])  # as many edges up as down


def test_fingerprints_are_of_pairs_and_differ_from_call_to_call():
    """What a sum of begins, of ends, or of a known number for each pair would not tell apart."""
    up, down = [(0, 5), (1, 4), (2, 3)], [(5, 1), (4, 0), (3, 2)]
    (own,) = check.Pattern(matrix(6, up + down, "cpu")).slices.own.values()
    found = {own.fingerprint(key) for key in range(50)}
    assert len(found) == 50
    assert 0 not in found


def test_places_that_share_nothing(nobody_collects):
    want = verdicts("levels", "cpu")
    assert verdicts("levels", own_grid((2, 2))[0]) == want
