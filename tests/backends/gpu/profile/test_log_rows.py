"""A traced loop runs as it runs untraced: its kernel logs what the eager trace would have shown."""

import json
import re
import sys

import numpy as np
import pytest
from drawn_loops import random_graph
from loop_names import ALL, GENERATED, loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from programs import components, normalise, relax, walks, within
from searches import graph, levels_and_paths, levels_behind, parents, raising, start, twice
from traces import LOGS, preprocessed, same

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, algorithms, binary, generators
from lagpu.backends.gpu import kernels
from lagpu.backends.gpu import profile as log
from lagpu.cli import main
from lagpu.errors import DimensionMismatch

SIZES = [1, 2, 31, 33, 1025]


def both(run, backend, how=ALL):
    """Trace a program as it runs and statement by statement; it makes its vectors again."""
    with lagpu.trace() as fused:
        found = run()
    assert loop_name(backend) in how, backend.last_loop
    with lagpu.trace(fuse=False) as eager:
        expected = run()
    assert backend.last_loop == "eager: a trace of single statements is on"
    assert {row.mode for row in eager.rows} == {"eager"}
    assert all(x.isequal(y) for x, y in zip(found, expected, strict=True))
    return fused, eager


# ------------------------------------------------------------------------------ traversals


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_rows_of_searches_are_those_of_the_eager_trace(place, n, symmetric):
    A = graph(n, symmetric, place)

    def levels():
        return (algorithms.bfs_levels(A, n // 2),)

    def some_parents():
        return (algorithms.bfs_parents(A, n // 2).apply("one").new(),)  # any parent will do

    for run in (levels, some_parents):
        fused, eager = both(run, place)
        assert same(fused, eager)
        inside = [row for row in fused.rows if row.level >= 0 and row.method != "apply"]
        assert {row.mode for row in inside} == {"fused"}
        products = [row for row in inside if row.method == "mxv"]
        assert all(row.kernel == "fused" and row.reason and row.direction for row in products)
        assert all(row.kernel_ms >= 0 and row.host_ms is None for row in inside)


def test_edges_and_directions_are_those_of_the_eager_trace(place):
    """Both look at the same edges, of hints and first predecessors too; the last is not run."""
    A = generators.kronecker(10, backend=place)
    fused, eager = both(lambda: (algorithms.bfs_levels(A, 1),), place)
    assert same(fused, eager)
    left, right = ([r for r in s.rows if r.method == "mxv"] for s in (fused, eager))
    assert {row.direction for row in left} == {"push", "pull"}
    assert "not run" in left[-1].reason
    assert [row.edges for row in left] == [row.edges for row in right]
    assert [row.direction for row in left[:-1]] == [row.direction for row in right[:-1]]


def test_reasons_name_the_edges_of_the_frontier(place):
    """Also of the level that one block alone, on a path, hands over to the grid: a hub's."""
    rows, cols, _ = generators.kronecker(11, 8, backend="cpu").to_coo()
    n, hub = 2054, int(np.bincount(rows).argmax())
    rows, cols = np.r_[rows, hub, range(2048, n - 1)], np.r_[cols, 2048, range(2049, n)]
    A = Matrix.from_coo(np.r_[rows, cols], np.r_[cols, rows], nrows=n, ncols=n,
                        dup_op=binary.any, backend=place)  # fmt: skip
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, n - 1)
    vertices, level = levels.to_coo()
    degrees = np.bincount(A.to_coo()[0], minlength=n)
    of = np.bincount(level, degrees[vertices]).astype(int).tolist()
    products = [row for row in t.rows if row.method == "mxv"]
    alone = [row.level for row in products if "one thread block alone" in row.reason]
    named = re.compile("edges ([0-9]+) ")
    found = {row.level: named.match(row.reason) for row in products}
    edges = {k: int(match[1]) for k, match in found.items() if match}
    assert max(alone) + 1 in edges
    assert edges == {k: of[k] for k in edges}


def test_one_block_alone_logs_each_level(place):
    A = generators.path(40, backend=place)
    fused, eager = both(lambda: (algorithms.bfs_levels(A, 0),), place)
    assert same(fused, eager)
    alone = [row for row in fused.rows if "one thread block alone" in row.reason]
    assert len(alone) > 30
    assert [row.edges for row in alone][:-1] == [2] * (len(alone) - 1)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("times", [None, 1, 3, 50])
@pytest.mark.parametrize("sources", [[0], [1, 2, 30]])
def test_vectors_that_had_entries_and_several_assignments(place, times, sources):
    A = graph(33, True, place, seed=4)

    def run():
        blocked = start(INT32, 33, [7, 8, *sources[:1]], 99, A)
        f, paths = start(FP64, 33, sources, 1, A), start(INT64, 33, [0, 5, 9], 4, A)
        levels_and_paths(A, f, blocked, paths, times)
        g, behind = start(BOOL, 33, sources, True, A), start(INT32, 33, [3, *sources], 0, A)
        levels_behind(A, g, behind, times)
        p, least, found = (
            start(INT64, 33, sources, 0, A),
            Vector(INT32, 33, like=A),
            Vector(INT64, 33, like=A),
        )
        parents(A, p, least, found, times)
        return f, blocked, paths, g, behind, p, least, found

    fused, eager = both(run, place)
    assert same(fused, eager)
    assert fused.totals().fused == len(fused.rows)


# -------------------------------------------------------------------------------- programs


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("n", SIZES)
def test_rows_of_programs_are_those_of_the_eager_trace(place, n):
    A, S = random_graph(n, 3 * n, place), random_graph(n, n, place, 2, directed=False)

    def run():
        label = Vector.from_dense(np.arange(n), backend=place)
        components(S, label)
        frontier = Vector.from_coo([n // 2], True, size=n, backend=place)
        reached = Vector(INT32, n, like=A)
        within(A, reached, frontier, 3)
        x, total = Vector.from_coo([n // 2], 1, size=n, backend=place), Vector(INT64, n, like=A)
        walks(A, x, total, 4)
        source = Vector.from_coo([n // 2], 0, size=n, backend=place)
        d, changed, new = source.dup(), source.dup(), Vector(INT64, n, like=A)
        relax(A, d, changed, new)
        y, z = Vector.from_dense(np.arange(n) % 3, backend=place), Vector(INT64, n, like=A)
        normalise(A, y, z, 3)
        return label, frontier, reached, x, total, d, changed, new, y, z

    fused, eager = both(run, place)
    assert same(fused, eager)
    assert fused.totals().fused == len(fused.rows)
    products = [row for row in fused.rows if row.method == "mxv"]
    assert all(row.direction in ("push", "pull") and row.edges is not None for row in products)
    compared = re.compile("edges [0-9]+ (>|<=) [0-9]+ / [0-9]+")
    assert all(compared.fullmatch(row.reason) for row in products), {r.reason for r in products}


def test_a_search_that_is_a_program(place):
    """A constant beside the depth: until_empty, and the last iteration logs before the end."""
    A = graph(33, True, place, seed=2)

    def run():
        f, levels, other = (
            start(BOOL, 33, [3], True, A),
            Vector(INT32, 33, like=A),
            Vector(INT32, 33, like=A),
        )
        twice(A, f, levels, other)
        return f, levels, other

    fused, eager = both(run, place, [GENERATED])
    assert same(fused, eager)


# ------------------------------------------------------------------------- around the loop


def test_a_record_that_is_not_fused_is_traced_as_it_runs(place):
    """A reduction is no piece; the first pass was recorded, and its rows are there once."""

    def run():
        A = graph(33, True, place, seed=2)
        f, levels = start(BOOL, 33, [3], True, A), Vector(INT32, 33, like=A)
        short = Vector(INT32, 5, like=A)
        with pytest.raises(DimensionMismatch):
            raising(A, f, levels, short)
        return f, levels

    with lagpu.trace() as first:
        run()
    with lagpu.trace(fuse=False) as second:
        run()
    assert same(first, second)
    assert {row.mode for row in first.rows} == {"eager"}


def test_eager_inside_a_trace(place):
    A = graph(33, True, place)
    with lagpu.trace() as t, lagpu.eager():
        algorithms.bfs_levels(A, 3)
    assert place.last_loop == "eager: inside lagpu.eager()"
    assert {row.mode for row in t.rows} == {"eager"}


def test_rows_may_be_read_between_loops(place):
    A = graph(33, True, place)
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 3)
        first = len(t.rows)
        algorithms.bfs_levels(A, 3)
    rows = t.rows
    assert len(rows) == 2 * first
    assert [row.nvals_out for row in rows[:first]] == [row.nvals_out for row in rows[first:]]


def test_a_full_log_says_how_much_is_missing(place, monkeypatch):
    A = generators.path(30, backend=place)
    monkeypatch.setattr(log, "CAPACITY", 11)  # a loop's beginning and ten levels
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 0)
        label = Vector.from_dense(np.arange(30), backend=place)
        components(A, label)  # wholly lost
    assert levels.nvals == 30
    assert [row.level for row in t.rows if row.method == "mxv"] == list(range(10))
    with lagpu.trace(fuse=False) as eager:
        algorithms.bfs_levels(A, 0)
        label = Vector.from_dense(np.arange(30), backend=place)
        components(A, label)
    totals = t.totals()
    assert totals.unrecorded == len(eager.rows) - len(t.rows) > 40
    assert f"{totals.unrecorded} more rows are missing" in " ".join(t.table().split())
    monkeypatch.setattr(log, "CAPACITY", 12)  # a program's iteration is logged whole or not
    with lagpu.trace() as t:
        f, levels, other = (
            start(BOOL, 30, [0], True, A),
            Vector(INT32, 30, like=A),
            Vector(INT32, 30, like=A),
        )
        twice(A, f, levels, other)
    assert [row.level for row in t.rows] == [k // 3 for k in range(9)]
    assert t.totals().unrecorded == 90 - 9


def test_the_command_line_knows_the_depth_though_the_log_is_full(place, monkeypatch, capsys):
    monkeypatch.setattr(log, "CAPACITY", 9)
    assert main(["bfs", "path:40", "-s", "0", "-b", place.name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["depth"], len(found["levels"])) == (39, 8)


def test_a_trace_lets_go_of_what_it_has_seen(place):
    """Within the trace, too: a graph that is deleted makes room for the next."""
    A = graph(33, True, place)
    v = Vector(INT32, 33, like=A)

    def assigns(A, v):  # a frame of its own, which ends: a frame keeps what it was asked to name
        v << v

    def sets(A, v):
        v[3] = 1

    before = sys.getrefcount(A), sys.getrefcount(v)
    with lagpu.trace():
        algorithms.bfs_levels(A, 3)
        algorithms.pagerank(A)
        assigns(A, v)
        assert (sys.getrefcount(A), sys.getrefcount(v)) == before
        sets(A, v)
        assert sys.getrefcount(A) == before[0]


def test_what_a_fused_loop_cannot_tell_stays_empty(place):
    A = graph(33, True, place)
    algorithms.bfs_levels(A, 3)
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 3)
    fused = [row for row in t.rows if row.mode == "fused"]
    assert all(row.host_ms is None for row in fused)
    totals = t.totals()
    assert totals.fused == len(fused) == len(t.rows) - 1
    assert totals.host_ms > 0
    assert "ran inside fused loops" in t.table()
    assert "the launches of fused loops included. " in " ".join(t.table().split())
    found = json.loads(t.to_json())
    assert {row["mode"] for row in found["rows"]} == {"eager", "fused"}
    assert "fused" in t.to_html()
    assert "fused" in t._repr_html_()
    with lagpu.trace(fuse=False) as t:
        algorithms.bfs_levels(A, 3)
    assert "Each statement ran by itself." in t.table()


def test_the_variant_that_logs_is_compiled_apart(place):
    A = graph(70, True, place)
    f, x = start(INT64, 70, [0], 5, A), start(INT64, 70, [0], 5, A)
    with lagpu.trace() as t:
        levels_and_paths(A, f, x, Vector(FP64, 70, like=A), 4)
    assert all(row.compile_ms == 0 for row in t.rows)
    with lagpu.trace() as again:
        levels_and_paths(A, f, x, Vector(FP64, 70, like=A), 4)
    assert again.totals().compile_ms == 0


# ---------------------------------------------------------------------- nothing when it is off


def test_untraced_kernels_have_no_log(place, monkeypatch):
    asked, parents_of = [], {"kernel": kernels.kernel, "from_source": kernels.from_source}
    from lagpu.backends.gpu.fused import search_grid
    from lagpu.backends.gpu.fused.program import run as program_run
    from lagpu.backends.gpu.fused.program import text

    # Other tests of this process may have left the programs of these loops.
    monkeypatch.setattr(sys.modules["lagpu.loops.loop"], "_known", {})
    monkeypatch.setattr(program_run, "kept_programs", lambda *of: [])
    for module, name in ((search_grid, "kernel"), (text, "from_source")):

        def recorded(*args, name=name, **macros):
            asked.append(parents_of[name](*args, **macros))
            return asked[-1]

        monkeypatch.setattr(module, name, recorded)

    def run():
        A = graph(33, True, place)
        algorithms.bfs_levels(A, 3)
        f, levels = start(BOOL, 33, [3], True, A), Vector(INT32, 33, like=A)
        twice(A, f, levels, Vector(INT32, 33, like=A))

    run()
    traversal_kernel, program_kernel = asked
    for kernel in asked:
        assert "LG_LOG" not in dict(kernel.macros)
        assert not LOGS.search(preprocessed(kernel))
    asked.clear()
    with lagpu.trace():
        run()
    assert len(asked) == 2
    for kernel in asked:
        assert dict(kernel.macros)["LG_LOG"] == str(log.CAPACITY)
        assert LOGS.search(preprocessed(kernel))
    assert asked[0].params == traversal_kernel.params
    untraced, traced = ({p.name for p in x.params} for x in (program_kernel, asked[1]))
    assert untraced < traced  # which has a log, and no passes, so the words of more vectors


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_what_logs(arch):
    for macros in ({}, {"SUM": "1", "ISO": "0", "ADD": "Plus", "MUL": "First", "KEEP": "1",
                        "F": "f64", "U": "f64", "A": "f64", "T": "f64", "Z": "f64"}):  # fmt: skip
        made = kernels.kernel(
            "search/grid.cu", "grid_search", LOG="65536", HAD="1", BLOCK="1024", **macros
        )
        assert nvrtc_compile(made, arch)


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_programs_that_log(arch, monkeypatch):
    from lagpu.backends.gpu.fused.program import text

    made = []

    def recorded(*args, **macros):
        made.append(kernels.from_source(*args, **macros))
        return made[-1]

    monkeypatch.setattr(text, "from_source", recorded)
    A = random_graph(33, 99, lagpu.backends.get("sim"))
    with lagpu.trace():
        components(A, Vector.from_dense(np.arange(33), like=A))
        source = Vector.from_coo([3], 0, size=33, like=A)
        relax(A, source.dup(), source.dup(), Vector(INT64, 33, like=A))
        walks(A, source.dup(), Vector(INT64, 33, like=A), 2)
    assert len(made) == 3
    for kernel in made:
        assert dict(kernel.macros)["LG_LOG"]
        assert nvrtc_compile(kernel, arch)
