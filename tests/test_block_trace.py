"""Traced loops over blocks: the one kernel's log says what the single statements say."""

import sys

import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile
from test_blocksearch import FUSED, direction, frontier_of, random_graph  # noqa: F401
from test_fused_trace import LOGS, preprocessed, same

import lagpu
from lagpu import BOOL, INT32, INT64, Matrix, algorithms, generators, loop, semiring
from lagpu.backends.gpu import blocksearch, kernels, looplog


@pytest.fixture
def place(backend):
    if backend.name == "cpu":
        pytest.skip("cpu has one way to run a loop")
    return backend


def both(run, place, why=FUSED):
    """Trace a program as it runs and statement by statement."""
    with lagpu.trace() as fused:
        found = run()
    assert place.last_loop == why
    with lagpu.trace(fuse=False) as eager:
        expected = run()
    assert all(x.isequal(y, check_dtype=True) for x, y in zip(found, expected, strict=True))
    assert {row.mode for row in eager.rows} == {"eager"}
    return fused, eager


def behind(A, sources, times):
    """The source has no level, and the first vertices found have level 0."""
    f, levels, seen = (
        frontier_of(A, sources),
        Matrix(INT64, len(sources), A.nrows, like=A, name="levels"),
        Matrix(BOOL, len(sources), A.nrows, like=A, name="seen"),
    )
    for depth in loop(until_empty=f, times=times):
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
        levels(f.S) << depth
        seen(f.S) << True
    return f, levels, seen


def in_front(A, sources, times):
    f = frontier_of(A, sources)
    levels = Matrix(INT32, *f.shape, like=A, name="levels")
    seen = Matrix(BOOL, *f.shape, like=A, name="seen")
    for depth in loop(until_empty=f, times=times):
        seen(f.S) << True
        levels(f.S) << depth
        f(~seen.S, replace=True) << semiring.lor_land(f @ A)
    return f, levels, seen


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 31), (33, 66), (65, 1025)])
def test_rows_are_those_of_the_single_statements(place, direction, k, n, directed):  # noqa: F811
    A = random_graph(n, 2, directed).to(place)
    sources = [*range(k - 1), n - 1]
    fused, eager = both(lambda: (algorithms.bfs_levels_multi(A, sources),), place)
    assert same(fused, eager)
    assert {row.mode for row in fused.rows} == {"fused"}
    products = [row for row in fused.rows if row.method == "matrix_mxm"]
    assert [row.level for row in products] == list(range(len(products)))
    assert all(row.kernel == "fused" and "edges " in row.reason for row in products)
    assert all(row.kernel_ms >= 0 and row.host_ms is None for row in fused.rows)
    if direction != "as it is chosen":
        at_all = {row.direction for row in products if not row.reason.startswith("edges 0 ")}
        assert at_all <= {direction}
    pushes = [row for row in products if row.direction == "push"]
    assert all(row.reason.startswith(f"edges {row.edges} <= ") for row in pushes)
    groups = -(-k // 64)
    assert all(0 <= row.edges <= groups * (A.nvals + n) for row in products)
    assert any(row.edges for row in products)


@pytest.mark.parametrize("times", [None, 1, 3, 50])
@pytest.mark.parametrize("search", [behind, in_front])
def test_several_assignments_and_bounds(place, search, times):
    A = random_graph(70, 2, directed=True).to(place)
    with lagpu.trace() as nothing:
        pass
    fused, eager = (
        both(lambda: search(A, [3, 0, 69], times), place) if times != 0 else (nothing,) * 2
    )
    assert same(fused, eager)
    assert fused.totals().fused == len(fused.rows)


def test_more_levels_than_the_kernel_keeps_times_of(place):
    A = generators.path(90, backend=place)
    fused, eager = both(lambda: (algorithms.bfs_levels_multi(A, [0, 80]),), place)
    assert same(fused, eager)
    assert len(fused.rows) == 180
    products = [row for row in fused.rows if row.method == "matrix_mxm"]
    assert any(row.kernel_ms > 0 for row in products[70:])
    # two edges a vertex; both rows are at vertex 40 in level 40, and a word is looked at once
    assert [row.edges for row in products[20:89]] == [4] * 20 + [2] + [4] * 39 + [3] + [2] * 8


def test_a_pull_counts_what_it_looks_at(place, monkeypatch):
    """Of a star: a leaf looks at its hint, then at its only edge; the middle until it is done."""
    monkeypatch.setattr(blocksearch, "PUSH_COST", 1 << 31)
    A = generators.star(3000, backend=place)
    with lagpu.trace() as t:
        algorithms.bfs_levels_multi(A, [0])
        algorithms.bfs_levels_multi(A, [1])
    edges = [row.edges for row in t.rows if row.method == "matrix_mxm"]
    assert [row.direction for row in t.rows if row.method == "matrix_mxm"] == ["pull"] * len(edges)
    leaves = 2999
    assert edges[0] == leaves  # all of them find the middle
    assert edges[1] == 0  # all rows are done
    assert 2 * (leaves - 1) < edges[2] <= 3 * leaves  # all leaves but one look in vain
    assert edges[3] == leaves - 1


def test_loops_of_one_trace_share_a_log(place):
    A = generators.path(12, backend=place)
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
        algorithms.bfs_levels_multi(A, [0, 5])
        algorithms.bfs_levels(A, 0)
        algorithms.bfs_levels_multi(A, [0, 5])
    rows = [(row.level, row.method, row.nvals_in, row.nvals_out) for row in t.rows]
    assert rows[: len(rows) // 2] == rows[len(rows) // 2 :]
    assert len(rows) == 2 * (25 + 24)


def test_a_full_log_says_how_much_is_missing(place, monkeypatch):
    A = generators.path(30, backend=place)
    monkeypatch.setattr(looplog, "CAPACITY", 11)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels_multi(A, [0])
    assert levels.nvals == 30
    assert [row.level for row in t.rows] == [k // 2 for k in range(20)]
    assert t.totals().unrecorded == 40


def test_what_is_assigned_has_entries(place):
    """Which of them are new, this log does not tell; so each statement runs by itself."""
    A = random_graph(70, 2, directed=True).to(place)

    def run():
        f, levels = frontier_of(A, [3, 0]), Matrix(INT32, 2, 70, like=A, name="levels")
        levels[0, 5] = 7
        levels.nvals  # noqa: B018
        for depth in loop(until_empty=f):
            levels(f.S) << depth
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)
        return (levels,)

    why = "eager: it is traced, and what is assigned has entries, which the log tells not apart"
    assert same(*both(run, place, why))


def test_rows_apart_are_traced_one_by_one(place):
    A = random_graph(70, 2, directed=True).to(place)

    def run():
        return (algorithms.bfs_parents_multi(A, [3, 0]).apply("one").new(),)

    why = "eager: it is traced, and a search of rows apart keeps no log"
    assert same(*both(run, place, why))


def test_a_trace_lets_go_of_matrices(place):
    A = random_graph(70, 2, directed=True).to(place)
    before = sys.getrefcount(A)
    with lagpu.trace():
        levels = algorithms.bfs_levels_multi(A, [3, 0])
        assert sys.getrefcount(A) == before
        assert sys.getrefcount(levels) == 2


def test_untraced_kernels_have_no_log(place, monkeypatch):
    asked = []

    def told(*args, **macros):
        asked.append(kernels.kernel(*args, **macros))
        return asked[-1]

    monkeypatch.setattr(blocksearch, "kernel", told)
    A = generators.path(12, backend=place)
    algorithms.bfs_levels_multi(A, [0, 5])
    plain = asked[0]
    assert "LG_LOG" not in dict(plain.macros)
    assert not LOGS.search(preprocessed(plain))
    asked.clear()
    with lagpu.trace():
        algorithms.bfs_levels_multi(A, [0, 5])
    logs = asked[0]
    assert dict(logs.macros)["LG_LOG"] == str(looplog.CAPACITY)
    assert LOGS.search(preprocessed(logs))
    assert logs.params == plain.params


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("groups", ["1", "2"])
def test_nvrtc_compiles_what_logs(arch, groups):
    made = kernels.kernel("blocksearch.cu", "block_search", LOG="65536", GROUPS=groups)
    assert nvrtc_compile(made, arch)
