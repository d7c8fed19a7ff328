"""Traced loops whose kernels keep no log: they run as ever, and have a row a statement."""

import io
import json
import sys

import loop_names
import pytest
from bit_searches import frontier_of, random_graph
from browser import browse, cells, check_page, needs_browser, packed
from graphs import both_ways, matrix
from meters import recorded  # noqa: F401
from rich.console import Console

import lagpu
from lagpu import FP64, INT32, INT64, Matrix, Vector, algorithms, binary, generators, loop, semiring
from lagpu.backends.gpu.fused import search_many as policy

WHY = "one kernel for all levels, which keeps no log"
SWEEP = [
    "share(here.S, replace) << plus(delta, 1.0)",
    "share(here.S) << truediv(share ⊗ paths)",
    "pulled(above.S, replace) << share plus_first A'",
    "delta(accum=binary.plus) << times(pulled ⊗ paths)",
]


def of_all(t):
    return [row for row in t.rows if row.level is None]


def check_rows(rows, loops):
    """They say nothing of entries, edges and bytes; the product has the time of them all."""
    for row in rows:
        unknown = (row.nvals_in, row.nvals_out, row.edges, row.bytes, row.host_ms)
        assert unknown == (None,) * 5
        assert (row.mode, row.kernel, row.direction) == ("fused", "fused", "")
        assert row.reason.startswith(WHY)
        is_product = row.method in ("mxv", "matrix_mxm")
        assert (row.kernel_ms > 0) == is_product == (row.reason == WHY)
    assert sum(row.method in ("mxv", "matrix_mxm") for row in rows) == loops


def is_unlogged(t, place, how, loops=1):
    """Whether the last loop ran as one kernel, and so many have rows for all levels."""
    assert loop_names.loop_name(place) == how
    check_rows(of_all(t), loops)
    totals = t.totals()
    assert totals.statements == len(t.rows)
    assert totals.unlogged == len(of_all(t))
    assert totals.fused >= totals.unlogged
    assert totals.kernel_ms == sum(row.kernel_ms for row in t.rows)
    assert totals.host_ms > 0
    return True


@pytest.fixture
def unknown(monkeypatch):
    """A body that is known has no masks; a traced one is recorded each time."""
    monkeypatch.setattr("lagpu.loops.loop.find_known", lambda *_: None)


def launches(recorded):
    """What the device was asked for, but for the counts and the times that a trace wants."""
    return [name for name in recorded if name not in ("timer", "count_bits")]


# ------------------------------------------------------------------------ it runs as ever


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize(
    ("graph", "batch", "k", "how", "loops"),
    [
        ("path:40", 1, 2, loop_names.SWEEP, 2),
        ("road:8", 1, 2, loop_names.SWEEP, 2),
        ("road:8", 8, 8, loop_names.PER_SOURCE_SWEEP, 2),  # the search keeps no log either
    ],
)
def test_traced_betweenness_runs_as_untraced(place, recorded, graph, batch, k, how, loops):
    A = generators.from_spec(graph, backend=place)

    def run():
        return algorithms.betweenness_centrality(A, k=k, seed=1, batch=batch)

    run()
    run()  # forms are made, and launches prepared, in the first two
    recorded.clear()
    expected, untraced = run(), launches(recorded)
    ran = place.last_loop
    recorded.clear()
    with lagpu.trace() as t:
        found = run()
    assert launches(recorded) == untraced
    assert place.last_loop == ran
    assert found.isequal(expected, check_dtype=True)
    assert is_unlogged(t, place, how, loops)
    swept = [row for row in t.rows if row.formula in SWEEP]
    assert [row.formula for row in swept] == SWEEP * (k // batch)
    assert all(row.level is None and "betweenness.py:" in row.where for row in swept)


@pytest.mark.usefixtures("unknown")
def test_nothing_waits_for_a_sweep(place, recorded):
    A = generators.path(40, backend=place)
    levels, paths = algorithms.betweenness.count_paths(A, [0])
    algorithms.betweenness.dependencies(A, levels, paths)
    recorded.clear()
    algorithms.betweenness.dependencies(A, levels, paths)
    waits = [recorded.count(name) for name in ("to_host", "read")]
    recorded.clear()
    with lagpu.trace() as t:
        algorithms.betweenness.dependencies(A, levels, paths)
    assert [recorded.count(name) for name in ("to_host", "read")] == waits
    first = [(row.level, row.kernel_ms) for row in t.rows]
    assert [(row.level, row.kernel_ms) for row in t.rows] == first


def test_a_per_source_search(place, recorded):
    A = random_graph(70, 2, directed=True).to(place)
    sources = [3, 0]
    expected = algorithms.bfs_levels_multi(A, sources)
    algorithms.bfs_parents_multi(A, sources)
    recorded.clear()
    algorithms.bfs_parents_multi(A, sources)
    untraced = launches(recorded)
    recorded.clear()
    with lagpu.trace() as t:
        parents = algorithms.bfs_parents_multi(A, sources)
    assert launches(recorded) == untraced
    assert is_unlogged(t, place, loop_names.PER_SOURCE)
    assert [row.formula for row in t.rows] == [
        "parents(frontier.S) << frontier",
        "frontier(~parents.S, replace) << frontier any_secondi A",
    ]
    assert parents.apply("one").new().isequal(expected.apply("one").new())


def has_entries(A, times=None):
    f, levels = frontier_of(A, [3, 0]), Matrix(INT32, 2, A.nrows, like=A, name="levels")
    levels[0, 5] = 7
    levels.nvals  # noqa: B018
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
    return f, levels


@pytest.mark.parametrize("times", [None, 2])
def test_a_block_that_has_entries(place, recorded, times):
    """Which of them are new a log would not tell; the counter is spelled by its name."""
    A = random_graph(70, 2, directed=True).to(place)
    has_entries(A, times)
    recorded.clear()
    expected, untraced = has_entries(A, times), launches(recorded)
    recorded.clear()
    with lagpu.trace() as t:
        found = has_entries(A, times)
    assert launches(recorded) == untraced
    assert is_unlogged(t, place, loop_names.BITS)
    assert all(x.isequal(y) for x, y in zip(found, expected, strict=True))
    assert [row.formula for row in of_all(t)] == [
        "levels(f.S) << depth",
        "f(~levels.S, replace) << f any_pair A",
    ]


# ------------------------------------------------------- beside others, and what is not fused


def search_and_back(A, source):
    """A loop that logs, one that does not, and one that logs again."""
    levels = algorithms.bfs_levels(A, source)
    size, passed, gained = (Vector(INT64, A.nrows, like=A) for _ in range(3))
    size(levels.S) << 1
    for here, above in lagpu.sweep(levels):
        passed(here.S, replace=True) << size
        gained(above.S, replace=True) << semiring.plus_second(A @ passed)
        size(accum=binary.plus) << gained
    return size, algorithms.bfs_levels(A, source)


def test_loops_with_and_without_a_log_in_order(place):
    A = generators.path(6, backend=place)
    with lagpu.trace() as t:
        size, _ = search_and_back(A, 1)
    assert size.to_dense(0).tolist() == [1, 6, 4, 3, 2, 1]
    search = [-1, *(k // 2 for k in range(10))]
    assert [row.level for row in t.rows] == [*search, -1, None, None, None, *search]
    first, second = t.rows[:11], t.rows[-11:]
    for name in ("formula", "nvals_in", "nvals_out", "edges", "direction"):
        assert [getattr(r, name) for r in first] == [getattr(r, name) for r in second]
    assert [row.formula for row in of_all(t)] == [
        "passed(here.S, replace) << size",
        "gained(above.S, replace) << A plus_second passed",
        "size(accum=binary.plus) << gained",
    ]
    assert t.totals().fused == 20 + 3
    assert t.totals().unrecorded == 0


def test_an_error_on_the_way_leaves_the_next_loop_its_log(place, monkeypatch):
    A = generators.path(6, backend=place)
    levels = algorithms.bfs_levels(A, 1)

    def fails(self):
        raise RuntimeError("no")

    def run():
        with lagpu.trace() as t:
            with pytest.raises(RuntimeError, match="no"):
                algorithms.betweenness.dependencies(A, levels, levels.apply("one").new(FP64))
            algorithms.bfs_levels(A, 1)
        return t

    monkeypatch.setattr("lagpu.backends.gpu.fused.sweep.VectorSweep.run", fails)
    t = run()
    assert of_all(t) == []
    assert [row.level for row in t.rows[-10:]] == [k // 2 for k in range(10)]


def test_statement_by_statement_it_is_as_it_was(place):
    A = generators.path(40, backend=place)

    def run():
        return algorithms.betweenness_centrality(A, k=8, seed=1, batch=8)

    expected = run()
    with lagpu.trace(fuse=False) as t:
        found = run()
    assert found.to_dense(0) == pytest.approx(expected.to_dense(0))
    assert of_all(t) == []
    assert {row.mode for row in t.rows} == {"eager"}
    assert place.last_loop == "eager: a trace of single statements is on"
    assert t.totals().unlogged == 0


def test_what_does_not_fit_runs_statement_by_statement(place, monkeypatch):
    monkeypatch.setattr(policy, "MOST_DEGREE", 0)
    A = matrix(9, both_ways([(v, v + 1) for v in range(8)]), place)
    levels = algorithms.bfs_levels_multi(A, [0, 8])
    with lagpu.trace() as t:
        algorithms.betweenness.dependencies(A, levels, levels.apply("one").new(FP64))
    assert place.last_loop == "eager: no per-source sweep: mean degree 1.8 > 0"
    inside = [row for row in t.rows if row.level != -1]
    assert [row.level for row in inside] == [k // 4 for k in range(4 * 8)]
    assert [row.formula for row in inside[:4]] == SWEEP
    assert all(row.bytes and row.mode == "eager" for row in inside)


def with_a_vector(levels, share, x, y):
    for here, above in lagpu.sweep(levels):
        share(here.S, replace=True) << 1
        x(accum=binary.plus) << y
        share(above.S) << 3


def test_a_record_that_ends_is_replayed_with_its_places(place):
    A = generators.path(9, backend=place)
    levels = algorithms.bfs_levels_multi(A, [1, 7])

    def run(**how):
        share = Matrix(INT64, 2, 9, like=A, name="share")
        x, y = (Vector.from_coo([k], [2], INT64, size=9, backend=place) for k in (0, 1))
        with lagpu.trace(**how) as t:
            with_a_vector(levels, share, x, y)
        rows = [(r.level, r.formula, r.where, r.nvals_in, r.nvals_out, r.mode) for r in t.rows]
        return rows, (share, x)

    rows, found = run()
    assert place.last_loop == "eager: the body writes vectors and matrices"
    expected, wanted = run(fuse=False)
    assert rows == expected
    assert len(rows) == 3 * 7
    assert all(x.isequal(y) for x, y in zip(found, wanted, strict=True))


@pytest.mark.parametrize("most", [0, 10**6])
def test_a_trace_lets_go_of_what_it_saw(place, monkeypatch, most):
    """Of a loop that is fused, and of one that turned out not to be."""
    monkeypatch.setattr(policy, "MOST_DEGREE", most)
    A = random_graph(70, 2, directed=True).to(place)
    before = sys.getrefcount(A), sys.getrefcount(A.data)
    with lagpu.trace() as t:
        parents = algorithms.bfs_parents_multi(A, [3, 0])
        assert (sys.getrefcount(A), sys.getrefcount(A.data)) == before
        assert (sys.getrefcount(parents), sys.getrefcount(parents.data)) == (2, 2)
    assert (t.totals().unlogged == 0) == (most == 0)


# ------------------------------------------------------------------------- how it is shown


@pytest.fixture
def t(place):
    A = generators.path(6, backend=place)
    with lagpu.trace() as t:
        search_and_back(A, 1)
    return t


@pytest.fixture
def alone(place):
    """A trace that has rows for all levels and no other."""
    A = random_graph(70, 2, directed=True).to(place)
    with lagpu.trace() as t:
        algorithms.bfs_parents_multi(A, [3, 0])
    return t


SAID = "stand for all levels of loops whose kernels keep no log: entries, edges and bytes"


def test_tables(t, alone):
    line = next(x for x in t.table().splitlines() if "gained(above.S" in x)
    assert line.split()[0] == "all"
    before, behind = line.split("passed", 1)
    assert "gained(above.S, replace) << A plus_second" in before
    assert behind.split()[:4] == ["-", "-", "fused", "-"]
    assert line.rstrip().endswith(WHY)
    # where lines are folded depends on how many digits a time has
    assert f" 3 of them {SAID}" in " ".join(t.table().split())
    assert f" 2 of them {SAID}" in " ".join(alone.table().split())
    out = Console(file=io.StringIO(), width=100)
    out.print(t)
    assert out.file.getvalue().count(" all ") >= 3


def test_json(t):
    found = json.loads(t.to_json())
    rows = [row for row in found["rows"] if row["level"] is None]
    assert len(rows) == found["totals"]["unlogged"] == 3
    assert {(row["nvals_in"], row["nvals_out"], row["edges"], row["bytes"]) for row in rows} == {
        (None,) * 4
    }


def test_pages(t, alone):
    page = t.to_html()
    check_page(page)
    found = packed(page)
    shown = ["all" if r.level is None else None if r.level < 0 else r.level for r in t.rows]
    assert found["level"] == shown
    assert found["in"] == [row.nvals_in for row in t.rows]
    ms = sum(row.kernel_ms for row in of_all(t))
    assert f"Not by level: {ms:.4f} ms of loops whose kernels keep no log." in page
    assert "levels 0 to 4" in page
    page = alone.to_html()
    check_page(page)
    assert packed(page)["level"] == ["all", "all"]
    assert "<svg" not in page
    assert "Not by level:" in page
    check_page(alone._repr_html_())


@needs_browser
def test_a_list_sorted_by_level_has_them_behind(t, tmp_path):
    level = "document.querySelector('#rows th button')"
    found = cells(browse(t.to_html(), tmp_path, f"{level}.click(); {level}.click();"))
    levels = [row[0] for row in found]
    assert levels[:20] == [str(4 - k // 4) for k in range(20)]
    assert sorted(levels[20:]) == ["-", "-", "-", "all", "all", "all"]


def test_plots(t, alone):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = t.plot()
    heights = [patch.get_height() for patch in ax.patches]
    inside = [row.kernel_ms for row in t.rows if row.level not in (None, -1)]
    assert sum(heights) == pytest.approx(sum(inside))
    assert "Not by level:" in ax.get_xlabel()
    assert alone.plot().get_xlabel().startswith("level\nNot by level:")
    matplotlib.pyplot.close("all")
