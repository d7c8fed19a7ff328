"""A generated loop of a grid is one kernel on each device, and leaves what the statements leave."""

import threading
from functools import partial

import numpy as np
import pytest
from limits import set_limits
from nvrtc import ARCHITECTURES, nvrtc_compile
from pieces_of_search import gpu_grid, sim_grid, sims

import lagpu
from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    Matrix,
    Scalar,
    Vector,
    algorithms,
    backends,
    binary,
    generators,
    indexunary,
    loop,
    semiring,
    sweep,
)
from lagpu import operations as ops
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused import loop as loop_module
from lagpu.backends.gpu.fused.program import run as programs
from lagpu.backends.grid import program
from lagpu.backends.grid.backend import GridBackend
from lagpu.errors import EmptyObject, GridTimeout, OutOfMemory

ONE_KERNEL = "generated loop of pieces: "
SIZES = [1, 2, 4, 5, 31, 33, 1023, 3000]
GRIDS = ["2", "3", "5", "3-degree", "2-random"]
CASES = [(grid, n) for grid in GRIDS for n in SIZES]


def graph(n, place, weights=None, both=True, seed=0):
    """Return a graph with self-loops, isolated vertices and hubs, as `weights` one of lengths."""
    rng = np.random.default_rng(n + seed)
    i, j = rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n)
    i[: n // 3] = n // 2
    keep = (i % 5 != 1) & (j % 5 != 1)
    i, j = i[keep], j[keep]
    w = rng.integers(1, 50, len(i))
    if both:
        i, j, w = np.r_[i, j], np.r_[j, i], np.r_[w, w]
    values, dtype, op = (True, BOOL, binary.any) if weights is None else (w, weights, binary.min)
    return Matrix.from_coo(i, j, values, dtype, nrows=n, ncols=n, dup_op=op, backend=place)


def plain(x):
    return [part.tolist() for part in x.to_coo()]


def last_of_rows(place, n, rows):
    """A scatter: the last index of each row."""
    row = Vector.from_coo(range(len(rows)), rows, INT32, size=len(rows), backend=place)
    left = Vector.from_coo(row.to_coo()[0], range(len(rows)), INT64, size=row.size, backend=place)
    last, found = (Vector(INT64, n, backend=place) for _ in range(2))
    R = row.selection(nrows=n)
    for _ in loop(until_empty=left, times=2):
        last << semiring.max_second(R @ left)
        found << last
    return plain(found)


def to_and_fro(A, starts):
    """A loop with products by a matrix and its transpose, and a scalar."""
    v, w = Vector(INT64, A.nrows, like=A), Vector(INT64, A.nrows, like=A)
    most = Scalar(INT64, like=A)
    v[starts] = 1
    for _ in loop(times=3):
        w << semiring.plus_first(v @ A)
        v(binary.plus) << semiring.plus_second(A @ w)
        most << v.reduce("max")
        v << v.apply(binary.minus, right=most)
    return plain(v), plain(w), most.value


@pytest.mark.parametrize("grid", GRIDS)
def test_a_known_loop_is_not_looked_at_again(grid, monkeypatch):
    place, looked = sim_grid(grid), []
    for owner, name in ((program, "_why_not_here"), (ops, "moved")):
        usual = getattr(owner, name)

        def noted(*given, usual=usual, name=name):
            looked.append(name)
            return usual(*given)

        monkeypatch.setattr(owner, name, noted)
    for seed in (0, 1):
        A, B = (graph(67, x, INT64, both=False, seed=seed) for x in (place, "cpu"))
        for starts in ([3], [5, 64], [0, 33, 66]):
            expected = to_and_fro(B, starts)
            looked.clear()
            assert to_and_fro(A, starts) == expected
            assert place.last_loop.startswith(ONE_KERNEL)
        assert not looked
        del A  # so that the next matrix sets the order, where vertices are by degree


def least_neighbours(place):
    """A loop whose products are indices, of a matrix with more columns than rows."""
    rng = np.random.default_rng(8)
    i, j = rng.integers(0, 256, 900), rng.integers(0, 512, 900)
    A = Matrix.from_coo(i, j, True, nrows=256, ncols=512, dup_op=binary.any, backend=place)
    v, w = Vector(BOOL, 256, like=A), Vector(INT64, 512, like=A)
    v << True
    for _ in loop(times=2):
        w << semiring.min_firsti(v @ A)
    return plain(w)


def test_a_known_loop_is_looked_at_again_in_another_order():
    place, expected = sim_grid("2-degree"), least_neighbours("cpu")
    for _ in range(3):
        assert least_neighbours(place) == expected
    assert place.last_loop.startswith(ONE_KERNEL)
    ordered = [graph(n, place) for n in (256, 512)]
    for _ in range(3):
        assert least_neighbours(place) == expected
    assert "which pieces number by slots" in place.last_loop
    del ordered


def test_a_loop_finds_nothing_that_one_of_another_size_has_left():
    """The words of a vector that no piece owns are there too, in every window."""
    place = sim_grid("2")
    for n, m in ((34, 66), (12, 34), (34, 66)):
        rows = [(7 * k + 3) % n for k in range(m)]
        assert last_of_rows(place, n, rows) == last_of_rows("cpu", n, rows)
        assert place.last_loop.startswith(ONE_KERNEL)


def scores(A):
    """A loop with products, sums, tables of indices, a mask by value and a float vector."""
    n = A.nrows
    u = Vector.from_scalar(1, n, FP64, like=A)
    taken, t, most = Vector(BOOL, n, like=A), Vector(FP64, n, like=A), Scalar(FP64, name="most")
    for depth in loop(times=5):
        t << semiring.plus_times(u @ A)
        t(taken.V, accum=binary.plus) << u
        most << t.reduce("max")
        u(t.S) << t.apply(binary.truediv, right=most)
        u(accum=binary.plus) << t.apply(indexunary.rowindex, 3)
        taken << u.select("valuegt", 2)
        taken(~taken.S) << depth
    return u


ALGORITHMS = {
    "components": lambda place, n: algorithms.connected_components(graph(n, place)),
    "ranks": lambda place, n: algorithms.pagerank(graph(n, place, both=False)),
    "distances": lambda place, n: algorithms.sssp(graph(n, place, INT64, both=False), n // 2),
    "float distances": lambda place, n: algorithms.sssp(graph(n, place, FP32), 0),
    "cores": lambda place, n: algorithms.core_number(graph(n, place)),
    "strong": lambda place, n: algorithms.strongly_connected_components(
        graph(n, place, both=False)
    ),
    "independent": lambda place, n: algorithms.maximal_independent_set(graph(n, place), seed=7),
    "scores": lambda place, n: scores(graph(n, place, INT32, both=False)),
    "betweenness": lambda place, n: betweenness(graph(n, place, both=n % 2)),
}


def betweenness(A):
    sources = min(A.nrows, 3)
    pieces = getattr(A.backend, "pieces", None)
    pieces = None if pieces is None else pieces.engine.size
    return algorithms.betweenness_centrality(A, sources, seed=2, pieces=pieces)


@pytest.mark.each_value
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("grid", "n"), CASES)
def test_a_grid_finds_what_cpu_finds(grid, n, name):
    finds_what_cpu_finds(backends.get(f"grid:{grid}:sim"), n, name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("pieces", "n"), [(2, 33), (2, 60_000), (3, 1023)])
def test_gpus_find_what_cpu_finds(pieces, n, name):
    finds_what_cpu_finds(gpu_grid(pieces), n, name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["levels", "distances"])
def test_a_deep_graph_is_searched_on_one_gpu(name):
    work = ALGORITHMS.get(name) or (lambda x, n: algorithms.bfs_levels(graph(n, x), n // 2))
    found = work(gpu_grid(2), 70_000)
    assert ", which is faster" in gpu_grid(2).last_loop
    assert plain(found) == plain(work("cpu", 70_000))


def finds_what_cpu_finds(place, n, name):
    place.last_loop = ""
    try:
        found = ALGORITHMS[name](place, n)
    except EmptyObject:
        assert name == "scores"
        with pytest.raises(EmptyObject):
            ALGORITHMS[name]("cpu", n)
        return
    assert place.last_loop.startswith(ONE_KERNEL) or n < 6 or name in ("strong", "betweenness")
    wanted = ALGORITHMS[name]("cpu", n)
    assert found.to_coo()[0].tolist() == wanted.to_coo()[0].tolist()
    np.testing.assert_allclose(found.to_coo()[1], wanted.to_coo()[1], rtol=1e-6, atol=1e-12)


def moved_on(u, A, v, gone):  # u has all entries at first, then others
    for _ in loop(times=4):
        v << semiring.plus_times(u @ A)
        v << v.apply(binary.minus, right=3)
        u(~gone.S, replace=True) << v


@pytest.mark.each_value
@pytest.mark.parametrize("cached", [0, CUDA_LIMITS.cached])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("pieces", [2, 3, 5])
@pytest.mark.parametrize("n", [33, 1023, 1025, 3000])
def test_ghosts_in_the_order_of_degrees(pieces, n, both, cached, monkeypatch):
    """By slots of rows with most entries first, if these have many; whatever entries there are."""
    set_limits(monkeypatch, cached=cached)
    place, found = sim_grid(pieces), []
    for where in (place, "cpu"):
        A = graph(n, where, INT64, both=both)
        for lacking in ([], [n // 2], np.arange(1, n, 2)):
            u = Vector.from_dense(np.arange(n) % 7 - 2, backend=where)
            gone = Vector.from_coo(lacking, True, BOOL, size=n, backend=where)
            moved_on(u, A, Vector(INT64, n, backend=where), gone)
            found.append(plain(u))
        if where is place:
            assert place.last_loop.startswith("generated loop of pieces")
            parts = [part.csc() for part in A.data.parts]
            may = cached and all(part.nvals for part in parts)
            assert (parts[0].cache["by degree"] is not None) == bool(may)
    assert found[:3] == found[3:]


def twice(u, A, v, w):
    for _ in loop(times=3):
        v << semiring.plus_times(u @ A)
        w << semiring.min_times(u @ A)
        u << v.ewise_add(w, binary.max)


def twice_by_parts(u, A, v, w):
    for _ in loop(times=3):
        v << semiring.plus_times(u @ A)
        u(v.V, accum=binary.plus) << v
        w << semiring.min_times(u @ A)
        u << v.ewise_add(w, binary.max)


@pytest.mark.parametrize("pieces", [2, 3])
@pytest.mark.parametrize(("body", "ghosts"), [(twice, 1), (twice_by_parts, 2)])
def test_what_did_not_change_is_sent_once(pieces, body, ghosts, monkeypatch):
    """All devices meet once more then, before it is sent again: they do not wait in between."""
    texts, write = [], program.PieceProgram.write

    def write_and_keep(self):
        found = write(self)
        texts.append(self.kernel.source)
        return found

    monkeypatch.setattr(program.PieceProgram, "write", write_and_keep)
    place, n, found = sims(pieces), 700, []
    for where in (place, "cpu"):
        A = graph(n, where, INT64)
        u, v, w = (Vector.from_dense(np.arange(n) % 7 - k, backend=where) for k in (2, 0, 0))
        body(u, A, v, w)
        found.append(plain(u))
    assert found[0] == found[1]
    (text,) = {text[text.rindex("__global__") :] for text in texts}
    assert text.count("send_entries<") == ghosts
    assert text.count("if (!meet(&all") == 1 + 2 + (ghosts == 1)


def count_down(u, A, few, one, total):
    for _ in loop(until_empty=one):
        u << semiring.plus_times(u @ A)
        few << few.apply(binary.minus, right=3)
        total << few.reduce("plus")
        one << total
        one << one.select("valuegt", 0)


@pytest.mark.parametrize("pieces", [2, 3])
def test_pieces_without_vertices_and_small_vectors(pieces):
    """A vector of 32 indices at most, which no product reads, is whole on each device."""
    place = sim_grid(pieces)
    few = Vector.from_coo([0, 2], [5, 9], INT64, size=3, backend=place)
    one = Vector.from_coo([0], [100], INT64, size=1, backend=place)
    A, total = graph(2, place), Scalar(INT64, name="total")
    count_down(Vector.from_scalar(1, 2, INT64, like=A), A, few, one, total)
    assert place.last_loop.startswith(ONE_KERNEL)
    assert (plain(few), plain(one), total.value) == ([[0, 2], [-4, 0]], [[], []], -4)


def test_a_program_is_written_once():
    place = sims(2)
    for _ in range(2):  # the first loop finds that the pieces can run one kernel
        algorithms.connected_components(graph(100, place))
    before = sum(map(len, programs._programs.values()))
    algorithms.connected_components(graph(100, place, seed=3))
    assert sum(map(len, programs._programs.values())) == before


def test_the_windows_are_those_of_the_run_before():
    place = sims(2)
    A = graph(100, place)
    algorithms.pagerank(A)
    windows = A.data.parts[0].csc().cache[program._WINDOW]
    algorithms.pagerank(A)
    assert A.data.parts[0].csc().cache[program._WINDOW] is windows


class Loop:
    """A loop on a grid whose result is known, and vectors that it writes."""

    def __init__(self, place, n=70):
        self.A = graph(n, place)
        self.u = Vector.from_scalar(1, n, INT64, like=self.A)
        self.t = Vector(INT64, n, like=self.A)

    def run(self):
        for _ in loop(until_unchanged=self.u, times=3):
            self.t << semiring.plus_times(self.u @ self.A)
            self.u(self.t.S) << self.t
        return plain(self.u), plain(self.t)


def test_a_device_that_gives_up_leaves_everything(monkeypatch):
    """What windows have in common is lost then: the next run finds them empty."""
    place = sims(2)
    o, wanted = Loop(place), Loop("cpu").run()
    o.run()
    window = o.A.data.parts[0].csc().cache[program._WINDOW]
    o = Loop(place)
    o.A.data.parts[0].csc().cache[program._WINDOW] = window
    before = plain(o.u)
    monkeypatch.setattr(window, "patience", 0)
    with pytest.raises(GridTimeout):
        o.run()
    assert plain(o.u) == before
    monkeypatch.undo()
    window._windows[1][:] = 7  # as writes that came too late
    assert o.run() == wanted


def without_end(o, v):
    for _ in loop(until_empty=v):
        o.u << semiring.plus_times(v @ o.A)


def test_an_interrupt_leaves_everything():
    place = sims(2)
    o = Loop(place)
    v = Vector.from_scalar(1, 70, INT64, like=o.A)
    stop = place.pieces.places[1].device.stop[1]
    timer = threading.Timer(0.3, lambda: stop.__setitem__(0, 1))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            without_end(o, v)
    finally:
        timer.join()
        stop[0] = 0
    assert plain(o.u) == plain(v) == [list(range(70)), [1] * 70]


@pytest.mark.parametrize(
    ("grid", "work", "why"),
    [
        ("2x2", lambda o: o.run(), "on one column of pieces"),
        ("2", lambda o: _by_position(o, semiring.min_secondj), "the index of the output"),
        ("3", lambda o: _by_position(o, semiring.min_firstj), "number by slots"),
        ("3", lambda o: _of_one_index(o), "is on one piece alone"),
    ],
)
def test_other_loops_run_by_statement(grid, work, why):
    found = []
    for place in (backends.get(f"grid:{grid}:sim"), "cpu"):
        o = Loop(place)
        work(o)
        found.append((plain(o.u), plain(o.t)))
        if place != "cpu":
            assert place.last_loop.startswith("eager: ")
            assert why in place.last_loop
    assert found[0] == found[1]


def _by_position(o, op):
    for _ in loop(times=2):
        o.t << op(o.u @ o.A)
        o.u << o.t


def _of_one_index(o):
    for _ in loop(times=2):
        o.u[3] << 7
        o.u << o.u * 2


def _with_scalars(o, first):
    s, t = Scalar(FP64, first), Scalar(INT64, 3)
    for depth in loop(times=4):
        o.u << semiring.plus_times(o.u @ o.A)
        o.u << o.u + t
        t << o.u.reduce("min")
        s << s * 0.5 + depth
        s << s - t
    for _ in loop(times=2):  # it reads what the loop before has left on the first device
        o.t << o.u * t
        t << t + 1
    return s


def _until(o, enough_at):
    enough, most = Scalar(BOOL), Scalar(INT64, 7)
    for _ in loop(until=enough, times=9):
        o.u << o.u * 2
        most(binary.plus) << o.u.reduce("max")
        enough << (most > enough_at)
    return most


def _gathered(o, step):
    back = Vector.from_dense((np.arange(70) * step) % 70, like=o.A)
    s = Scalar(INT64, step)
    for _ in loop(times=3):
        o.t << o.u[back]
        o.u << o.t + s
        s << s + 1
    return s


@pytest.mark.parametrize(
    ("work", "given"),
    [
        (_with_scalars, (1.0, float("nan"), float("inf"))),
        (_until, (-1, 20, 2**62, 20)),  # after one iteration, some, or all
        (_gathered, (69, 3)),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3])
def test_scalars_are_the_same_on_all_pieces(pieces, work, given):
    found = []
    for place in (sims(pieces), "cpu"):
        o, of_place = Loop(place), []
        for x in given:
            s = work(o, x)
            of_place.append((repr(s.value), plain(o.u), plain(o.t)))
            if place != "cpu":
                assert place.last_loop.startswith(ONE_KERNEL if pieces > 1 else "generated loop: ")
            o.u << o.u * 0 + 1
        found.append(of_place)
    assert repr(found[0]) == repr(found[1])


def test_a_trace_has_a_row_for_each_statement():
    o = Loop(sims(2))
    with lagpu.trace() as t:
        o.run()
    assert [row.kernel for row in t.rows if row.direction or row.kernel] == ["fused"] * 2


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_the_programs(arch):
    kernels = []
    keep = lambda run: lambda self: (kernels.append(self._program(None)[0].kernel), run(self))[1]  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        write = program.PieceProgram.write
        patch.setattr(program.PieceProgram, "write", keep(write))
        place = sims(3)
        for name in ("components", "ranks", "distances", "scores"):
            ALGORITHMS[name](place, 200)
    assert len(set(kernels)) >= 4
    for kernel in set(kernels):
        assert nvrtc_compile(kernel, arch)


@pytest.mark.parametrize("n", [4, 5, 7])
def test_a_piece_of_one_vertex_has_its_rows_in_order(n):
    """Its column has slots that do not rise: by rows they must, also where there is one column."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        i, j = rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n)
        found = [
            [
                algorithms.bfs_levels(A, source).to_dense(-1).tolist()
                for A in [
                    Matrix.from_coo(i, j, True, nrows=n, ncols=n, dup_op=binary.any, backend=place)
                ]
                for source in range(n)
            ]
            for place in (sim_grid(3), "cpu")
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("grid", ["2", "3", "3-random"])
@pytest.mark.parametrize("name", ["levels", "distances", "float distances", "paths"])
def test_a_deep_graph_is_searched_on_one_device(grid, name, monkeypatch):
    monkeypatch.setattr(program, "_LARGE", 0)
    work = ALGORITHMS.get(name) or (lambda x, n: algorithms.bfs_levels(graph(n, x), n // 2))
    if name == "paths":
        work = lambda x, n: algorithms.count_shortest_paths(graph(n, x), n // 2)  # noqa: E731
    for n in (5, 33, 700):
        place = backends.get(f"grid:{grid}:sim")
        found, wanted = work(place, n), work("cpu", n)
        assert ", which is faster" in place.last_loop
        kernel = {"levels": "grid search", "paths": "grid search"}.get(name, "relaxation")
        assert place.last_loop.startswith(kernel)
        assert plain(found) == plain(wanted)
        assert plain(found.dup()) == plain(wanted)


@pytest.mark.parametrize("name", ["levels", "distances"])
def test_a_search_on_one_device_enters_it(name, monkeypatch):
    """Whatever device its plan has left to the thread."""
    monkeypatch.setattr(program, "_LARGE", 0)
    place, plan = backends.get("grid:2:sim"), GridBackend.plan_loop

    def plan_and_leave(*given):
        found = plan(*given)
        place.pieces.places[1].device.enter()
        return found

    monkeypatch.setattr(GridBackend, "plan_loop", plan_and_leave)
    work = ALGORITHMS.get(name) or (lambda x, n: algorithms.bfs_levels(graph(n, x), n // 2))
    for _ in range(3):  # first, again, and known
        assert plain(work(place, 700)) == plain(work("cpu", 700))
        assert ", which is faster" in place.last_loop


def test_a_known_relaxation_has_the_numbers_of_its_own_matrix():
    """By the least length vertices are settled: those of another graph's would be too early."""
    n, place, rng = 200, backends.get("grid:2:sim"), np.random.default_rng(4)
    i, j = rng.integers(0, n, (2, 12 * n))
    for least in (40, 40, 1, 40, 1):
        w = rng.integers(least, 50, len(i))
        A, B = (
            Matrix.from_coo(i, j, w, INT64, nrows=n, ncols=n, dup_op=binary.min, backend=x)
            for x in (place, "cpu")
        )
        assert plain(algorithms.sssp(A, 0)) == plain(algorithms.sssp(B, 0))
        assert "a relaxation may take edges in any order" in place.last_loop


@pytest.mark.parametrize("name", ["bfs_levels", "sssp"])
def test_results_follow_the_kernel_of_one_device_without_a_wait(name, monkeypatch):
    monkeypatch.setattr(program, "_LARGE", 0)
    monkeypatch.setattr(loop_module, "lasts", lambda *_: True)
    order, send, wait = [], program._sent_by_one, SimDevice.wait_in_loop
    monkeypatch.setattr(program, "_sent_by_one", lambda *x: order.append(x[1].form) or send(*x))
    monkeypatch.setattr(SimDevice, "wait_in_loop", lambda x: order.append("wait") or wait(x))
    place, search = backends.get("grid:2:sim"), getattr(algorithms, name)
    weights = None if name == "bfs_levels" else FP64
    work = lambda x: search(graph(700, x, weights), 350)  # noqa: E731
    for _ in range(2):
        order.clear()
        assert plain(work(place)) == plain(work("cpu"))
        assert order[: order.index("wait")] == ["bitmap"]


@pytest.mark.parametrize("error", [MemoryError("full"), KeyboardInterrupt()])
def test_a_search_whose_results_cannot_be_sent_leaves_all_as_it_was(error, monkeypatch):
    monkeypatch.setattr(program, "_LARGE", 0)
    monkeypatch.setattr(loop_module, "lasts", lambda *_: True)
    place, waited = backends.get("grid:2:sim"), []
    A, other = graph(700, place), place.pieces.places[1].device
    levels, frontier = Vector(INT32, 700, like=A), Vector(BOOL, 700, like=A)
    levels[3], frontier[350] = 7, True

    def fails(*_):
        other.enter()
        raise error

    def search():
        for depth in loop(until_empty=frontier):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)

    wait = SimDevice.wait_in_loop
    monkeypatch.setattr(
        SimDevice, "wait_in_loop", lambda x: (waited.append(x._require_entered()), wait(x))
    )
    with monkeypatch.context() as patch:
        patch.setattr(program, "_sent_by_one", fails)
        with pytest.raises(KeyboardInterrupt if error.args == () else OutOfMemory):
            search()
    assert waited
    assert plain(levels) == [[3], [7]]
    assert plain(frontier) == [[350], [True]]
    search()
    assert levels.nvals > 100


def test_results_that_change_after_the_kernel_are_sent_then(monkeypatch):
    """A search that ends early gives vertices of the last frontier the values they had."""
    monkeypatch.setattr(program, "_LARGE", 0)
    monkeypatch.setattr(loop_module, "lasts", lambda *_: True)

    def counted(place):
        A, like = generators.path(40, backend=place), partial(Vector, INT64, 40)
        frontier, levels = like(like=A), like(like=A)
        parents = Vector.from_scalar(99, 40, INT64, like=A)
        frontier[7] = 7
        for depth in loop(until_empty=frontier, times=4):
            levels(frontier.S) << depth
            parents(frontier.S) << frontier
            frontier(~levels.S, replace=True) << semiring.any_secondi(frontier @ A)
        return plain(levels), plain(parents), plain(frontier)

    place = backends.get("grid:2:sim")
    for _ in range(3):
        assert counted(place) == counted("cpu")
        assert ", which is faster" in place.last_loop


@pytest.mark.parametrize("grid", ["2", "3-random"])
@pytest.mark.parametrize("lengths", [[True], [2], [0], [0.1], [0, 1, 1], [0.1, 7.0]])
def test_pieces_relax_a_graph_of_many_edges(grid, lengths, monkeypatch):
    """A product leaves out what is settled; where lengths differ one device is faster."""
    n, place, masks = 300, backends.get(f"grid:{grid}:sim"), []

    class Program(program.GridProgram):
        def __init__(self, pieces, statements, *given):
            super().__init__(pieces, statements, *given)
            masks.extend(s.desc for s in statements if isinstance(s.operation, ops.Multiply))

    monkeypatch.setattr(program, "GridProgram", Program)
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, n, (2, 20 * n))
    w = np.resize(np.array(lengths), len(i))
    A, B = (
        Matrix.from_coo(i, j, w, nrows=n, ncols=n, dup_op=binary.min, backend=x)
        for x in (place, "cpu")
    )
    wanted = [plain(algorithms.sssp(B, 0)), plain(algorithms.count_shortest_paths(B, 0))]
    for large in (program._LARGE, 0):
        monkeypatch.setattr(program, "_LARGE", large)
        assert plain(algorithms.sssp(A, 0)) == wanted[0]
        on_one = large == 0 and len(lengths) > 1
        assert (", which is faster" in place.last_loop) == on_one
        assert place.last_loop.startswith("relaxation" if on_one else "generated loop of pieces")
        assert plain(algorithms.count_shortest_paths(A, 0)) == wanted[1]
        assert place.last_loop.startswith("search of pieces")
    assert masks
    assert all(desc.mask is not None and desc.complement for desc in masks)


@pytest.mark.parametrize("lengths", [[3, 3], [3, 4]])
def test_a_copy_of_parts_of_one_value_each(lengths, monkeypatch):
    monkeypatch.setattr(program, "_LARGE", 0)
    n, place = 300, sims(2)
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n)
    w = np.array(lengths)[place.pieces.partition(n).owner(j)]
    found = [
        algorithms.sssp(
            Matrix.from_coo(i, j, w, INT64, nrows=n, ncols=n, dup_op=binary.min, backend=x), 0
        )
        for x in (place, "cpu")
    ]
    assert ", which is faster" in place.last_loop
    assert plain(found[0]) == plain(found[1])


@pytest.mark.parametrize("grid", ["2", "3-random"])
def test_levels_are_cut_on_the_pieces(grid):
    place = backends.get(f"grid:{grid}:sim")
    A = generators.grid2d(9, 9, backend=place)
    levels = algorithms.bfs_levels(A, 0)
    at, depth = levels.to_dense(), 16
    for here, above in sweep(levels):
        for mask, level in ((here, depth), (above, depth - 1)):
            assert mask.to_coo()[0].tolist() == np.flatnonzero(at == level).tolist()
            assert mask.to_coo()[1].all()
        depth -= 1
    assert depth == 0
    assert place.levels(levels.data).deepest == 16
    assert place.levels(Vector(INT32, 9, backend=place).data).deepest == -1
    negative = place.levels(Vector.from_coo([1], [-1], INT32, size=9, backend=place).data)
    assert (negative.lowest, negative.deepest) == (-1, -1)
