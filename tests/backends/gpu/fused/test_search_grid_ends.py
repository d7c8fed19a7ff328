"""The last level of a search is not run where its frontier shows that it finds nothing."""

import numpy as np
import pytest
from limits import set_limits
from pieces_of_search import matrix, sims
from searches import levels_and_paths, levels_behind

import lagpu
from lagpu import BOOL, INT32, INT64, Vector, algorithms, backends, generators, loop, semiring
from lagpu.backends import grid
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.guard import overridden

NOT_RUN = "none leads on: not run"
RUN = ("leaf with a loop, and one apart", "drawn, directed")  # whose last levels do run


def both_ways(*edges):
    i, j = zip(*edges, strict=True)
    return np.r_[i, j], np.r_[j, i]


def drawn(kind):
    """Return a random graph of 257 vertices: some isolated, some with loops, some with one edge."""
    rng = np.random.default_rng(5)
    i, j = rng.integers(0, 200, (2, 300))
    return (i, j) if kind == "directed" else (np.r_[i, j], np.r_[j, i])


# A name: vertices, rows and columns of entries, source.
GRAPHS = {
    "one vertex": (1, [], [], 0),
    "loop alone": (1, [0], [0], 0),
    "two": (2, *both_ways((0, 1)), 0),
    "two and one": (3, *both_ways((0, 1)), 0),
    "path from its end": (33, *both_ways(*((v, v + 1) for v in range(32))), 0),
    "path from within": (40, *both_ways(*((v, v + 1) for v in range(31))), 12),
    "star from a leaf": (70, *both_ways(*((v, 40) for v in range(65) if v != 40)), 3),
    "star from its centre": (70, *both_ways(*((v, 40) for v in range(65) if v != 40)), 40),
    "circle": (31, *both_ways(*((v, (v + 1) % 31) for v in range(31))), 7),
    "way there": (33, np.arange(32), np.arange(1, 33), 0),
    "leaf with a loop": (3, [0, 1, 1, 2, 2], [1, 0, 2, 1, 2], 0),
    "leaf with a loop, and one apart": (9, [0, 1, 1, 2, 2, 5], [1, 0, 2, 1, 2, 5], 0),
    "drawn": (257, *drawn("both ways"), 0),
    "drawn, directed": (257, *drawn("directed"), 0),
}


def is_symmetric(graph):
    _, i, j, _ = GRAPHS[graph]
    edges = {*zip(np.array(i).tolist(), np.array(j).tolist(), strict=True)}
    return edges == {(w, v) for v, w in edges}


def assigned_first(A, f, x, y, times):
    for depth in loop(times=times, until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_after(A, f, x, y, times):
    levels_behind(A, f, x, times)


def counted(A, f, x, y, times):
    levels_and_paths(A, f, x, y, times)


LOOPS = (assigned_first, assigned_after, counted)


def searched(place, work, graph, there=False, sources=1, times=None):
    """Return what a search leaves, and the rows of its products."""
    n, i, j, source = GRAPHS[graph]
    A = matrix(n, np.array(i, np.int64), np.array(j, np.int64), place)
    if hasattr(A.data, "parts"):  # a grid does not ask by itself
        A.data.symmetric = is_symmetric(graph)
    x, y = Vector(INT32, n, backend=place), Vector(INT64, n, backend=place)
    f = Vector(INT64 if work is counted else BOOL, n, backend=place)
    for v in {source, n - 1} if sources > 1 else {source}:
        f[v] = 1
    if there:
        x[min(2, n - 1)] = 99
    with lagpu.trace() as t:
        work(A, f, x, y, times)
    left = [[v.nvals, *(part.tolist() for part in v.to_coo())] for v in (x, y, f)]
    rows = [row for row in t.rows if row.method == "mxv"]
    return (left, [(row.level, row.nvals_in, row.nvals_out) for row in rows]), rows, A.backend


@pytest.fixture(autouse=True)
def pushes(monkeypatch):
    """All levels are pushed, by all blocks, so that all frontiers are listed."""
    set_limits(monkeypatch, solo=0, cluster_solo=0)
    for module in (search_grid, grid.search):
        monkeypatch.setattr(module, "alpha_of", lambda *_, **__: -1e9)
        monkeypatch.setattr(module, "gamma_of", lambda *_: -1e9)


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("work", LOOPS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_results_are_those_of_all_levels(place, graph, work, there, sources):
    want = searched("cpu", work, graph, there, sources)[0]
    for of in (place, sims(2)):
        found, _, backend = searched(of, work, graph, there, sources)
        assert "search" in backend.last_loop
        assert found == want


@pytest.mark.parametrize("work", [assigned_first, counted])
@pytest.mark.parametrize("graph", ["star from a leaf", "path from its end", "drawn"])
def test_a_bound_ends_a_search_first(place, graph, work):
    """The frontier of a level that has no turn is left, though it finds nothing."""
    levels = len(searched("cpu", work, graph)[1])
    for times in (levels - 1, levels):
        want = searched("cpu", work, graph, times=times)[0]
        assert (want[0][2][0] > 0) == (times < levels)
        for of in (place, sims(2)):
            found, _, backend = searched(of, work, graph, times=times)
            assert "search" in backend.last_loop
            assert found == want


def finds_nothing(work, graph, left, rows):
    """Whether all that edges lead to is found, or the last frontier has the edges alone it came by.

    Of one source and nothing before. A source that no assignment came before may be found.
    """
    n, i, j, source = GRAPHS[graph]
    edges = {*zip(np.array(i).tolist(), np.array(j).tolist(), strict=True)}
    symmetric, first, last = is_symmetric(graph), work is not assigned_after, len(rows) - 1
    level = dict(zip(*left[0][1:], strict=True))
    frontier = {v for v in range(n) if level.get(v) == (last if first else last - 1)}
    if last == 0:
        frontier = {source}
    leave = sum(v in frontier for v, _ in edges)
    targets = {v for _, v in edges} - ({source} if symmetric and first else set())
    back = len(frontier) if symmetric and (last > 1 or (last and first)) else 0
    return len(targets) == sum(found for *_, found in rows) or leave == back


@pytest.mark.parametrize("pieces", [0, 2])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_level_that_finds_nothing_is_not_run(place, graph, pieces):
    of, not_run = sims(pieces) if pieces else place, []
    for work in LOOPS:
        found, rows, _ = searched(of, work, graph)
        assert not [row for row in rows[:-1] if NOT_RUN in row.reason]
        not_run.append(NOT_RUN in rows[-1].reason)
        assert not_run[-1] == finds_nothing(work, graph, *found)
        assert not not_run[-1] or rows[-1].edges == 0
    assert not_run == [graph not in RUN] * 3


@pytest.mark.parametrize("policy", ["auto", "beamer:alpha=0,beta=1"])
def test_a_rule_that_was_asked_for_has_all_levels(place, policy):
    A = generators.path(40, backend=overridden(backends.get(place), None, policy))
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
    last = [row for row in t.rows if row.method == "mxv"][-1]
    assert (NOT_RUN in last.reason) == (policy == "auto")


MODULE = """
for depth in loop(until_empty=f):
    x(f.S) << depth
    f(~x.S, replace=True) << semiring.any_pair(f @ A)
"""


def test_a_counter_counts_it(place, tmp_path):
    """Outside a function, where it keeps its last value."""
    path = tmp_path / "module.py"
    path.write_text(MODULE, "utf-8")
    A = generators.star(70, backend=place)
    names = {"A": A, "loop": loop, "semiring": semiring, "__name__": "module"}
    names["f"], names["x"] = Vector(BOOL, 70, like=A), Vector(INT32, 70, like=A)
    names["f"][3] = True
    exec(compile(MODULE, str(path), "exec"), names)
    assert A.backend.last_loop.startswith("grid search")
    assert int(names["depth"]) == 2
