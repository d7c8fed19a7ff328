"""The trace: a row an operation, levels of the loop, nothing while it is off."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import lagpu
from lagpu import BOOL, FP64, INT32, Matrix, Scalar, Vector, algorithms, binary, monoid, semiring
from lagpu import backends as registry
from lagpu.backends.gpu import GpuBackend, kernels
from lagpu.backends.gpu.device.protocol import Timer
from lagpu.backends.gpu.ops.statements import TRAFFIC
from lagpu.backends.gpu.ops.strategies import STRATEGIES


@pytest.fixture
def path(backend):
    return Matrix.from_coo([0, 1, 2, 3], [1, 2, 3, 4], nrows=5, ncols=5, backend=backend)


def test_a_search_row_by_row(path):
    with lagpu.trace() as t:
        algorithms.bfs_levels(path, 0)
    assert [row.method for row in t.rows] == ["set"] + ["assign_scalar", "mxv"] * 5
    assert [row.level for row in t.rows] == [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    products = t.rows[2::2]
    assert [row.nvals_in for row in products] == [1] * 5
    assert [row.nvals_out for row in products] == [1, 1, 1, 1, 0]
    assert all(row.kernel and row.reason for row in products)
    assert products[0].formula == "frontier(~levels.S, replace) << frontier any_pair A"
    assert [row.formula for row in t.rows[:2]] == ["frontier[0] << True", "levels(frontier.S) << 0"]
    lines = Path(algorithms.bfs.__globals__["__file__"]).read_text("utf-8").splitlines()
    file, line = products[0].where.split(":")
    assert file == "bfs.py"
    assert lines[int(line) - 1].endswith("<< semiring.any_pair(frontier @ A)")
    assert products[0].shapes == ((5,), (5, 5), (5,))
    assert t.rows[0].shapes == ((5,),)


def test_edges_looked_at(path):
    with lagpu.trace() as t:
        algorithms.bfs_levels(path, 0)
    looked = [row.edges for row in t.rows if row.method == "mxv"]
    assert all(isinstance(edges, int) and edges >= 0 for edges in looked)
    if path.backend.name == "cpu":
        assert looked == [1, 1, 1, 1, 0]


def test_results_are_those_without_a_trace(path):
    without = algorithms.bfs_levels(path, 1)
    with lagpu.trace():
        traced = algorithms.bfs_levels(path, 1)
    assert traced.isequal(without)


def test_levels_end_with_the_loop_also_by_break_and_nested(backend):
    v = Vector.from_dense([1], backend=backend)
    w = Vector(INT32, 1, backend=backend)
    with lagpu.trace() as t:
        w << 0
        for outer in lagpu.loop(times=2):
            for _ in lagpu.loop(times=5):
                w << v
                break
            w << outer
        w << 3
    assert [row.level for row in t.rows] == [-1, 0, 0, 0, 1, -1]


def test_formulas_name_bound_operands(backend):
    u = Vector.from_coo([0, 2], [1, 2], FP64, size=3, name="u", backend=backend)
    half = Scalar(FP64, 0.5)
    for call, formula in (
        (u.apply("times", right=2), "times(u, 2.0)"),
        (u.apply("minus", left=1), "minus(1.0, u)"),
        (u.apply("times", right=half), "times(u, 0.5)"),
        (u.apply("index"), "index(u)"),
        (u.apply("index", right=3), "index(u, 3)"),
        (u.apply("abs"), "abs(u)"),
    ):
        with lagpu.trace() as t:
            u << call
        assert t.rows[0].formula == f"u << {formula}"


def test_formulas_name_mask_accumulator_and_indices(backend):
    w = Vector(INT32, 2, backend=backend, name="w")
    u = Vector.from_dense([1, 2], backend=backend, name="u")
    A = Matrix.from_coo([0], [1], nrows=2, ncols=2, backend=backend)
    with lagpu.trace() as t:
        w(~u.V, accum=binary.plus) << u.ewise_add(u, binary.min)
        w(u.S, replace=True)[[0]] = 5
        w << semiring.plus_first(A.T @ u)
        w << u.reduce(monoid.plus)
        w << A[0, :]
    assert [row.formula for row in t.rows] == [
        "w(~u.V, accum=binary.plus) << min(u ⊕ u)",
        "w(u.S, replace)[I] << 5",
        "w << A' plus_first u",
        "s << plus(u)",
        "w << 3",
        "w << A[0, :]",
    ]


def test_traces_nest_and_end_with_an_error(backend):
    w = Vector(BOOL, 1, backend=backend)
    with lagpu.trace() as outer:
        with pytest.raises(RuntimeError, match="stop"), lagpu.trace() as inner:  # noqa: PT012
            w << True
            raise RuntimeError("stop")
        w << False
    w << True
    assert (len(inner.rows), len(outer.rows)) == (1, 1)


def test_names_are_the_authors(backend):
    first = Vector.from_dense([1, 2], backend=backend)
    second = Vector(INT32, 2, backend=backend)
    total = Scalar(INT32)
    with lagpu.trace() as t:
        second << first.apply("ainv")
        second(first.S) << semiring.plus_first(Matrix(INT32, 2, 2, like=first).T @ second)
        total << second.reduce()
    assert [row.formula for row in t.rows] == [
        "second << ainv(first)",
        "second(first.S) << A' plus_first second",  # a matrix without a variable of its own
        "total << plus(second)",
    ]


def test_scalars_and_matrices_are_statements(backend):
    A = Matrix.from_coo([0, 1], [1, 0], [3, 4], nrows=2, ncols=2, backend=backend)
    with lagpu.trace() as t:
        total = A.reduce_scalar("plus").new()
        B = A.apply("ainv").new()
    assert total == 7
    assert B.get(1, 0) == -4
    assert [(row.method, row.nvals_in, row.nvals_out, row.shapes) for row in t.rows] == [
        ("matrix_reduce", 2, 1, ((), (2, 2))),
        ("matrix_apply", 2, 2, ((2, 2), (2, 2))),
    ]


def test_counts_are_of_their_moment(backend):
    """They are read at the end, when the vectors have gone on."""
    v = Vector(INT32, 40, backend=backend, name="v")
    u = Vector.from_coo(np.arange(0, 40, 2), 1, size=40, backend=backend)
    with lagpu.trace() as t:
        v << u
        v << v.select("rowgt", 19)
        v(v.S, replace=True) << v.select("rowgt", 29)
        v << 1
    assert [(row.nvals_in, row.nvals_out) for row in t.rows] == [
        (20, 20),
        (20, 10),
        (10, 5),
        (5, 40),
    ]


class Watched(Timer):
    """A timer that tells when it was asked."""

    asked = 0

    def __init__(self, inner):
        self.inner = inner

    def __enter__(self):
        self.inner.__enter__()
        return self

    def __exit__(self, *exc_info):
        self.inner.__exit__(*exc_info)

    @property
    def elapsed_ms(self):
        Watched.asked += 1
        return self.inner.elapsed_ms


def test_a_device_is_waited_for_as_without_a_trace(path, monkeypatch):
    """Neither events nor counters are read before the rows are."""
    device = getattr(path.backend, "device", None)
    if device is None:
        pytest.skip("no device")
    timer, reads = device.timer, []
    monkeypatch.setattr(device, "timer", lambda: Watched(timer()), raising=False)
    for name in ("_read", "_wait_for", "_to_host", "synchronize"):
        below = getattr(device, name)
        told = lambda *args, below=below: (reads.append(1), below(*args))[1]  # noqa: E731
        monkeypatch.setattr(device, name, told, raising=False)

    def program():
        u = Vector.from_coo([0, 1], [1.0, 2.0], size=5, backend=path.backend)
        w = Vector(FP64, 5, backend=path.backend)
        for _ in range(3):
            w(u.S) << u
            w << u.ewise_add(w, "plus")
            w << w.vxm(path, "plus_first", kernel="push_edge")

    program()  # the first makes the workspaces
    reads.clear()
    program()
    untraced = len(reads)
    Watched.asked = 0
    with lagpu.trace() as t:
        program()
    assert (len(reads), Watched.asked) == (2 * untraced, 0)
    assert len(t.rows) == 9
    assert len(reads) > 2 * untraced
    assert Watched.asked > 0


def test_a_trace_keeps_no_vector_alive(backend):
    v = Vector(INT32, 5, backend=backend)
    w = Vector(INT32, 5, backend=backend)
    v << 1
    w(v.S) << v
    before = sys.getrefcount(v.data), sys.getrefcount(w.data)
    with lagpu.trace() as t:
        w(v.S) << v
        w(v.V) << v.apply("ainv")
    assert (sys.getrefcount(v.data), sys.getrefcount(w.data)) == before
    assert [row.nvals_out for row in t.rows] == [5, 5]


def test_kernels_are_compiled_apart(path, monkeypatch):
    device = getattr(path.backend, "device", None)
    if device is None:
        pytest.skip("no device")
    fresh = []
    monkeypatch.setattr(device, "compile_ms", device.compile_ms)

    def load(kernel):
        fresh.append(kernel.name)
        device.compile_ms += 1024

    monkeypatch.setattr(device, "load", load, raising=False)
    u = Vector.from_coo([0], [1.0], size=5, backend=path.backend)
    with lagpu.trace() as t:
        u << u.vxm(path, "plus_first", kernel="push_queue")
    assert fresh
    assert t.rows[0].compile_ms > 1000 * len(fresh)
    assert t.totals().compile_ms == t.rows[0].compile_ms


def test_the_device_is_its_own_again(backend):
    device = getattr(backend, "device", None)
    if device is None:
        pytest.skip("no device")
    assert device.observer is None
    v = Vector(INT32, 3, backend=backend)
    with lagpu.trace():
        v << 1
        outer = device.observer
        assert outer is not None
        names = vars(device).keys() | set()
        with lagpu.trace() as inner:
            v << 2
            assert device.observer not in (None, outer)
        assert device.observer is outer
        v << 3
    assert device.observer is None
    assert vars(device).keys() == names
    assert len(inner.rows) == 1


def test_copies_and_compiling_are_apart(backend):
    if not backend.capabilities.kernels:
        pytest.skip("nothing is copied or compiled")
    power = 3.0 + np.random.default_rng().random()  # a kernel that no cache has
    op = lagpu.unary.register(
        f"tests_trace_{id(power)}", lambda x: x + power, cuda=f"x + {power!r}"
    )
    v = Vector.from_dense(np.arange(1000.0), backend=backend)
    with lagpu.trace() as cold:
        v << v.apply(op)
    with lagpu.trace() as warm:
        v << v.apply(op)
        assert v.to_coo()[1][0] == 2 * power
    (first,), (second,) = cold.rows, warm.rows
    assert first.compile_ms > 0
    assert second.compile_ms == 0
    assert second.copy_bytes == 0  # reading the vector is no part of the statement
    assert warm.totals().copy_bytes >= 8000
    assert warm.totals().copy_ms > 0


def test_bytes_of_a_push_and_of_a_pull(backend):
    """As docs/design/trace.md has it; counters and the like are less than a kilobyte."""
    n, k = 8192, 1024
    A = Matrix.from_coo(range(n - 1), range(1, n), 2.5, nrows=n, ncols=n, backend=backend)
    u = Vector.from_coo(range(k), np.ones(k), size=n, backend=backend)
    w = Vector(FP64, n, backend=backend)
    if not backend.capabilities.kernels:
        with lagpu.trace() as t:
            w << semiring.plus_second(u @ A)
        least = (8 + 8) * k + (16 + 8) * k + (8 + 8) * k  # each piece of a grid reads all of u
        assert t.rows[0].bytes == least or (t.rows[0].bytes > least and backend.name != "cpu")
        return
    for kernel in STRATEGIES:  # forms and workspaces are made
        w << u.vxm(A, "plus_second", kernel=kernel)
    moved, looked = {}, {}
    for kernel in STRATEGIES:
        with lagpu.trace() as t:
            w << u.vxm(A, "plus_second", kernel=kernel)
        moved[kernel], looked[kernel] = t.rows[0].bytes, t.rows[0].edges
    offsets, words, values, lengths = 4 * (n + 1), n // 8, 8 * n, 2 * 4 * k
    pull = offsets + 4 * (n - 1) + 2 * (words + values) + lengths
    listed = 2 * 4 * k + 8 * k + 3 * 2 * 4 * k  # their places, their values, lines of the list
    wanted = {
        "pull_scalar": pull,
        "pull_warp": pull,
        "push_edge": pull + words + values,  # which it clears first
        "push_queue": words + words + values + 4 * k + listed + lengths,
    }
    for kernel, whole in wanted.items():
        assert looked[kernel] == (k if kernel == "push_queue" else n - 1)
        assert moved[kernel] == pytest.approx(whole, abs=1000), kernel
    assert all(moved.values())


def test_every_kernel_of_a_product_has_its_traffic():
    found = {}
    folder = Path(kernels.__file__).parent
    for file in (
        *folder.glob("spmv/*.cu"),
        *folder.glob("bitmap/pr*.cu"),
        *folder.glob("spgemm/*.cu"),
    ):
        for name in re.findall(r"__global__ void (?:__.*\)\s+)?(\w+)\(", file.read_text("utf-8")):
            found[name] = {
                p.name
                for p in kernels.kernel(str(file.relative_to(folder)), name).params
                if p.pointer
            }
    multiply_nothing = ("bitmap_fill", "bitmap_reduce_columns")
    count_for_plans = ("count_rows", "count_products", "count_steps", "list_parts")
    for name in multiply_nothing + count_for_plans:
        del found[name]
    assert found.keys() == TRAFFIC.keys()
    for name, partly in TRAFFIC.items():
        if name not in ("spmv_edge_reset", "selection_reset", "sum_products"):  # the host knows
            assert "edges" in found[name]
        if name.startswith("spmv"):  # which share their arrays' names
            others = set().union(*(found[other] for other in found if other.startswith("spmv")))
            assert partly.keys() <= others
        else:
            assert partly.keys() <= found[name]
        whole = ("spmv_csc_edge", "spmv_csc_cooc")  # they look at every entry
        if partly and name.startswith("spmv") and name not in whole:
            assert {"row_idx", "values", "lengths"} <= found[name] & partly.keys()


def test_totals_json_and_table(path):
    with lagpu.trace() as t:
        algorithms.bfs_levels(path, 0)
    found = json.loads(t.to_json())
    assert found["rows"][3]["formula"] == t.rows[3].formula
    assert found["totals"] == asdict(t.totals())
    assert found["totals"]["statements"] == len(t.rows) == 11
    assert found["totals"]["edges"] == sum(row.edges or 0 for row in t.rows)
    lines = t.table().splitlines()
    assert len([line for line in lines if "any_pair" in line]) == 5
    assert all(row.reason in t.table() for row in t.rows)
    said = " ".join(lines[-4:])  # where lines are folded depends on how many digits a time has
    assert re.search(
        "(^| )11 statements looked at .* Each statement|(^| )11 statements .* ran", said
    )
    assert "In addition: compiling" in said
    assert repr(t) == "Trace(11 statements)"
    narrow = Console(width=80)
    with narrow.capture() as captured:
        narrow.print(t)
    assert "11 statements" in captured.get()


def test_long_tables_are_folded(backend):
    v = Vector(INT32, 1, backend=backend)
    with lagpu.trace() as t:
        for i in range(60):
            v << i
    text = t.table()
    assert "10 more statements" in text
    assert "v << 39 " in text
    assert "v << 40 " not in text
    assert "v << 50 " in text


def test_a_backend_is_metered_once_however_it_is_reached():
    names = [name for name, state in registry.available().items() if state == "yes"]
    vectors = [Vector(INT32, 2, backend=name) for name in names]
    with lagpu.trace() as t:
        for _ in range(2):
            for v in vectors:
                v << 1
    assert len(t.rows) == 2 * len(names)
    assert not any(
        isinstance(v.backend, GpuBackend) and v.backend.device.observer is not None for v in vectors
    )


def test_a_row_of_whole_matrices_counts_the_first(backend):
    A = lagpu.Matrix.from_coo([0, 1, 2], [1, 2, 0], nrows=3, ncols=3, backend=backend)
    Q = lagpu.Matrix.from_coo([0, 1], [0, 2], True, nrows=2, ncols=3, like=A)
    with lagpu.trace() as t:
        Q << lagpu.semiring.any_pair(Q @ A)
        w = Q.reduce_rowwise("plus").new()
    assert [(row.method, row.nvals_in, row.nvals_out) for row in t.rows] == [
        ("matrix_mxm", 2, 2),
        ("reduce_vector", 0, 2),
    ]
    assert w.size == 2
