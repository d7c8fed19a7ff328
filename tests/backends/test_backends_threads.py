"""One backend, many threads: each gets what it would get alone, and its own loops and traces.

``LAGPU_THREAD_RUNS=10000`` takes 10,000 runs of each case instead of some.
"""

import asyncio
import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from samples import sampled
from threads import MODES, NUMBERS, PROGRAMS, RUNS, answers, switching, together

import lagpu
from lagpu import (
    BOOL,
    INT32,
    INT64,
    Scalar,
    Vector,
    algorithms,
    backends,
    binary,
    loop,
    semiring,
    unary,
)
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue
from lagpu.generators import kronecker, path

ROUND = 16  # runs on graphs of which no form is made yet


def check(program, A, s, right, mode):
    with mode():
        found = program(A, s)
    return None if found == right else f"{s}: {found} != {right}"


@pytest.fixture(params=MODES)
def mode(request, backend):
    if request.param is lagpu.eager and not backend.capabilities.fuses:
        pytest.skip("each statement runs by itself in any case")
    return request.param


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "count", "workers"), sampled(itertools.product(PROGRAMS, (1, 2), (2, 8)), 3)
)
def test_threads_get_right_answers(backend, mode, name, count, workers):
    """On graphs that are new to all threads: the first thread makes forms and workspaces."""
    program, make = PROGRAMS[name]
    right = answers(name, [make(seed, backend) for seed in range(count)], mode)
    for first in range(0, RUNS, ROUND):
        graphs = [make(seed, backend) for seed in range(count)]
        tasks = [
            lambda g=k % count, s=k % NUMBERS, graphs=graphs: check(
                program, graphs[g], s, right[g, s], mode
            )
            for k in range(first, min(RUNS, first + ROUND))
        ]
        assert together(tasks, workers) == []


def test_programs_of_all_kinds_at_once(backend, mode):
    graphs = {name: make(3, backend) for name, (_, make) in PROGRAMS.items()}
    right = {name: answers(name, [graphs[name]], mode, 4) for name in PROGRAMS}
    graphs = {name: make(3, backend) for name, (_, make) in PROGRAMS.items()}
    tasks = [
        lambda name=name, s=s: check(PROGRAMS[name][0], graphs[name], s, right[name][0, s], mode)
        for s in range(4)
        for name in PROGRAMS
    ]
    assert together(tasks) == []


def test_to_thread(backend, mode):
    program, make = PROGRAMS["levels"]
    right = answers("levels", [make(0, backend)], mode)
    A = make(0, backend)

    async def run():
        tasks = (asyncio.to_thread(check, program, A, k % NUMBERS, right[0, k % NUMBERS], mode)
                 for k in range(RUNS))  # fmt: skip
        return await asyncio.gather(*tasks)

    with switching():
        assert [x for x in asyncio.run(run()) if x is not None] == []


def test_tasks_take_turns_in_one_thread(backend, mode):
    """Between two iterations, and between two statements of one."""
    A = kronecker(6, backend=backend)
    right = [algorithms.bfs_levels(A, s).to_dense(-1).tolist() for s in range(10)]

    async def search(s):
        f, levels = Vector(BOOL, A.nrows, like=A), Vector(INT32, A.nrows, like=A)
        f[s] = True
        with mode():
            for depth in loop(until_empty=f):
                levels(f.S) << depth
                await asyncio.sleep(0)
                f(~levels.S, replace=True) << semiring.any_pair(f @ A)
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [levels.to_dense(-1).tolist(), algorithms.bfs_levels(A, s).to_dense(-1).tolist()]

    async def run():
        return await asyncio.gather(*(search(s) for s in range(10)))

    assert asyncio.run(run()) == [[x, x] for x in right]


def test_a_loop_goes_from_thread_to_thread(backend, mode):
    """A generator that is begun by one thread, carried on by another and ended by a third."""
    A = kronecker(6, backend=backend)
    right = algorithms.bfs_levels(A, 1).to_dense(-1).tolist()

    def search(levels):
        f = Vector(BOOL, A.nrows, like=A)
        f[1] = True
        with mode():
            for depth in loop(until_empty=f):
                levels(f.S) << depth
                f(~levels.S, replace=True) << semiring.any_pair(f @ A)
                yield

    if mode is lagpu.eager:
        pytest.skip("a context variable is reset where it was set: eager() stays in one thread")
    levels = Vector(INT32, A.nrows, like=A)
    running = search(levels)
    while True:
        with ThreadPoolExecutor(1) as pool:
            if pool.submit(next, running, "over").result() == "over":
                break
    assert levels.to_dense(-1).tolist() == right


def test_a_recorded_loop_goes_to_another_thread(place):
    """What a second thread writes is not recorded for the first, and nothing is lost."""
    v, w = (Vector.from_dense([1, 2, 3], backend=place) for _ in range(2))
    turns = loop(times=2, until_unchanged=None)
    for _ in turns:
        v << v.apply("plus", 1)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(w.update, w.apply("plus", 1)).result()
    assert v.to_dense().tolist() == w.to_dense().tolist() == [3, 4, 5]


def test_threads_read_one_vector(backend):
    """Reading may change the form in which it is stored, and count its entries."""
    mask = algorithms.bfs_levels(kronecker(6, backend=backend), 0)
    right = (*(x.tolist() for x in mask.to_coo()), mask.nvals)
    for _ in range(max(1, RUNS // ROUND)):
        sparse = Vector.from_coo(*mask.to_coo(), size=mask.size, like=mask)
        new = sparse.apply("plus", 0).new()

        def read(sparse=sparse, new=new):
            w = Vector(INT64, mask.size, like=mask)
            w(sparse.S) << new
            found = (*(x.tolist() for x in w.to_coo()), new.nvals)
            return None if found == right and sparse.isequal(new) else found

        assert together([read] * ROUND) == []


def test_an_operator_is_compiled_for_many_threads(backend):
    """The first use of a user's operator, and of the table's, is by several threads at once."""
    for k in range(max(2, RUNS // 48)):
        name = f"threads_{k}_{id(backend)}"
        op = unary.register(name, lambda x: x * x + 1, "x * x + 1")
        u = Vector.from_dense([1, 2, 3], backend=backend)
        tasks = [
            lambda op=op, u=u: (
                None if u.apply(op).new().to_dense().tolist() == [2, 5, 10] else "wrong"
            )
        ] * 8
        assert together(tasks) == []


def test_one_name_is_registered_once():
    name = f"threads_{threading.get_ident()}_one"
    found = []

    def register():
        try:
            found.append(binary.register(name, lambda x, y: x + y, "x + y"))
        except InvalidValue:
            found.append(None)

    assert together([register] * 8) == []
    assert sum(x is not None for x in found) == 1


def test_a_backend_is_made_once(monkeypatch):
    made = []

    def make():
        made.append(1)
        threading.Event().wait(0.01)
        return GpuBackend("sim", SimDevice())

    monkeypatch.setattr(backends, "_loaded", {})
    monkeypatch.setattr("lagpu.backends.gpu.make_sim", make)
    found = []
    assert together([lambda: found.append(backends.get("sim"))] * 8) == []
    assert len(made) == len({id(x) for x in found}) == 1


# ------------------------------------------------------------------------- what each has alone
def test_a_trace_sees_its_own_thread(backend):
    A = kronecker(6, backend=backend)
    with lagpu.trace() as alone:
        algorithms.bfs_levels(A, 1)
    want = [(row.level, row.formula, row.nvals_out, row.edges) for row in alone.rows]
    totals = alone.totals()

    def traced():
        with lagpu.trace() as t:
            algorithms.bfs_levels(A, 1)
        found = [(row.level, row.formula, row.nvals_out, row.edges) for row in t.rows]
        if found != want or t.totals().bytes != totals.bytes:
            return found

    def untraced():
        algorithms.bfs_levels(A, 2)

    assert together([traced, untraced] * 8) == []


def test_a_trace_does_not_see_other_threads(backend):
    """Nor what `asyncio.to_thread` runs, whose thread has a copy of the context."""
    v, w = (Vector(INT32, 3, backend=backend) for _ in range(2))

    async def other():
        await asyncio.to_thread(w.update, 1)

    with lagpu.trace() as t:
        v << 1
        asyncio.run(other())
        v << 2
    assert [row.formula for row in t.rows] == ["v << 1", "v << 2"]
    assert w.nvals == 3


def test_each_thread_has_its_last_loop_and_product(place):
    A = path(20, backend=place)
    algorithms.bfs_levels(A, 0)
    u = Vector.from_coo([0], True, size=20, like=A)
    semiring.any_pair(u @ A, kernel="push_edge").new()
    mine = place.last_loop, place.last_product

    def other():
        if place.last_loop != "" or place.last_product is not None:
            return "it has another thread's"
        for _ in range(5):
            with lagpu.eager():
                algorithms.bfs_levels(A, 1)
            if place.last_loop != "eager: inside lagpu.eager()":
                return place.last_loop

    assert together([other], 1) == []
    assert mine[0].startswith("grid search")
    assert (place.last_loop, place.last_product) == mine


# -------------------------------------------------------------------------------- who holds what
@pytest.mark.parametrize("kind", [CpuBackend, GpuBackend])
def test_every_method_of_the_protocol_takes_the_lock(kind):
    for name, method in vars(Backend).items():
        if callable(method) and not name.startswith("_"):
            assert hasattr(vars(kind)[name], "__wrapped__"), name


class Watched(SimDevice):
    """A device that must not be used without its lock."""

    def run(self, *how):
        self.check()
        super().run(*how)

    def notification(self):
        self.check()
        return super().notification()

    def check(self):
        assert self.lock._is_owned(), "used without its lock"


def watched(name):
    def call(self, *args):
        self.check()
        return getattr(SimDevice, name)(self, *args)

    return call


for name in ("_from_host", "_to_host", "_read", "_wait_for"):
    setattr(Watched, name, watched(name))


@pytest.mark.each_value
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES)
def test_the_device_is_used_under_its_lock(mode, name, traced):
    place = GpuBackend("watched", Watched())
    program, make = PROGRAMS[name]
    A = make(0, place)
    with lagpu.trace() if traced else contextlib.nullcontext() as t, mode():
        program(A, 0)
    if traced:
        t.totals()
    total = Scalar(INT64)
    for _ in loop(times=3):
        total(accum=binary.plus) << A.reduce_rowwise("plus").new().reduce("plus")
    assert total.value is not None


# ----------------------------------------------------------------------------- several devices
def test_two_devices_share_nothing(monkeypatch):
    monkeypatch.setattr(backends, "_loaded", dict(backends._loaded))
    places = [backends.get(name) for name in ("sim", "sim:1")]
    assert [x.name for x in places] == ["sim", "sim:1"]
    assert backends.get("sim:0") is places[0]
    assert places[1] is backends.get("sim:1")
    assert "sim:1" not in backends.names()
    assert places[0].device is not places[1].device
    assert places[0].runtime.counters is not places[1].runtime.counters
    assert places[0].device.lock is not places[1].device.lock
    graphs = [kronecker(6, seed=2, backend=place) for place in places]
    right = algorithms.bfs_levels(graphs[0], 1).to_dense(-1).tolist()

    def search(k):
        found = algorithms.bfs_levels(graphs[k % 2], 1)
        if found.backend is not places[k % 2] or found.to_dense(-1).tolist() != right:
            return k

    assert together([lambda k=k: search(k) for k in range(RUNS)]) == []
    with pytest.raises(lagpu.errors.BackendMismatch, match="sim:1"):
        semiring.any_pair(Vector(BOOL, 64, backend="sim") @ graphs[1])


@pytest.mark.parametrize("name", ["cpu:1", "sim:", "sim:x", "sim:01", "gpu:-1", "sim:1:1"])
def test_a_device_has_a_number(name):
    with pytest.raises(InvalidValue, match="there is no"):
        backends.get(name)


def test_a_lock_is_free_again_after_an_error(backend):
    with contextlib.suppress(lagpu.errors.LagpuError):
        Vector(INT32, 3, backend=backend) << Vector(INT32, 4, backend=backend)
    u = Vector.from_dense(np.array([1, 2]), backend=backend)
    assert together([lambda: None if u.nvals == 2 else "wrong"], 1) == []
