"""The engine of NCCL, over a substitute whose ranks are threads; on a GPU with one rank."""

import os
import threading

import numpy as np
import pytest
from ranks import on_ranks
from wires import Binding, Wires

from lagpu import FP64, Matrix, Vector, backends, binary, semiring
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid import comm
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import MpiEngine, NcclEngine, connected
from lagpu.errors import GridTimeout, ProcessFailed


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr(comm, "PATIENCE", 120.0)  # never spent
    monkeypatch.setattr(comm, "PATIENCE_TO_MEET", 120.0)


def on_engines(ranks, pieces, program):
    """Run ``program(engine, devices)`` on each rank; return what they found, and the wires."""
    wires = Wires()

    def run(processes):
        devices = [SimDevice() for _ in range(pieces)]
        processes.begin("a test")
        engine = connected(MpiEngine(processes, pieces), devices, wires.binding())
        return program(engine, devices)

    return on_ranks(ranks, run)[0], wires


def shared(engine, parts, groups):
    """Send the same arrays to all of a group."""
    group = {p: group for group in groups for p in group}
    to_each = [dict.fromkeys(group[p], x) for p, x in zip(engine.local, parts, strict=True)]
    return engine.exchange(to_each, on_devices=True)


def arrays_of(p):
    return np.full(p, p, np.int64), np.arange(3 + p) / 2


@pytest.mark.parametrize(("ranks", "pieces"), [(2, 1), (3, 1), (2, 2)])
def test_each_piece_has_what_its_group_gives(ranks, pieces):
    size = ranks * pieces
    groups = [range(size)] if size % 2 else [range(size // 2), range(size // 2, size)]

    def program(engine, _devices):
        assert isinstance(engine, NcclEngine)
        assert engine.between_devices
        before = engine.sent
        shared(engine, [(np.empty(0, np.int64), np.empty(0)) for _ in engine.local], groups)
        lengths = engine.sent - before  # which all gather
        found = shared(engine, [arrays_of(p) for p in engine.local], groups)
        engine.close()
        return [*engine.local], found, engine.sent - before - 2 * lengths

    results, wires = on_engines(ranks, pieces, program)
    for local, found, sent in results:
        to_send = 0
        for p, received in zip(local, found, strict=True):
            group = next(group for group in groups if p in group)
            to_send += (len(group) - 1) * sum(x.nbytes for x in arrays_of(p))
            assert [*received] == [*group]
            for s, arrays in received.items():
                for mine, want in zip(arrays, arrays_of(s), strict=True):
                    assert mine.dtype == want.dtype
                    assert mine.tolist() == want.tolist()
        assert sent == to_send
    assert all(p != s for p, s in wires.sent), "no piece sends to itself"
    assert sorted(wires.met) == [(size, p) for p in range(size)]
    assert sorted(wires.ended) == [*range(size)]
    assert wires.aborted == []
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"


def test_without_nccl_or_with_a_gpu_twice_the_engine_stays():
    def program(processes):
        processes.begin("a test")
        joined = MpiEngine(processes)
        some = Wires().binding() if processes.rank == 0 else None  # the other one has no NCCL
        return [
            connected(joined, [SimDevice()]) is joined,
            connected(joined, [ONE], Wires().binding()) is joined,
            connected(joined, [SimDevice()], some) is joined,
        ]

    assert on_ranks(2, program)[0] == [[True, True, True]] * 2
    alone = on_ranks(1, lambda p: connected(MpiEngine(p), [ONE], Wires().binding()))[0]
    assert type(alone[0]) is MpiEngine


ONE = SimDevice()


def products(place, n=700):
    """Return products of vectors as lists, bits, of one value, and of a matrix of few rows."""
    i, j, w = np.random.default_rng(n).integers(0, n, (3, 4 * n))
    A = Matrix.from_coo(i, j, w % 5 + 1.0, nrows=n, ncols=n, dup_op=binary.plus, backend=place)
    found = []
    for at, values in (
        (np.array([3]), 2.0),
        (np.arange(0, n, 2), 3.0),
        (np.arange(n), np.arange(n) * 1.0),
        (np.arange(5), np.arange(5) * 1.0),
    ):
        u = Vector.from_coo(at, values, size=n, dtype=FP64, backend=place)
        r = Vector(FP64, n, backend=place)
        r << semiring.plus_times(u @ A)
        found.append([x.tolist() for x in r.to_coo()])
    Q = Matrix.from_coo([0, 1, 2], [9, 99, 650], 1.0, nrows=3, ncols=n, dtype=FP64, backend=place)
    C = Matrix(FP64, 3, n, backend=place)
    C << semiring.plus_times(Q @ A)
    found.append([x.tolist() for x in C.to_coo()])
    return found


@pytest.mark.parametrize(("ranks", "pieces", "grid"), [(2, 1, None), (2, 2, (2, 2))])
def test_products_of_a_grid(ranks, pieces, grid):
    def program(engine, devices):
        places = [GpuBackend(f"s{k}", device) for k, device in enumerate(devices)]
        place = GridBackend("grid", engine, places, grid)
        exchange, calls = engine.exchange, []

        def noted(parts, on_devices=False, among=None):
            calls.append(on_devices)
            return exchange(parts, on_devices, among)

        engine.exchange = noted
        return products(place), sum(calls)

    results, _ = on_engines(ranks, pieces, program)
    want = products(CpuBackend())
    for found, calls in results:
        assert found == want
        assert calls == (9 if grid else 5)  # of vectors; partial results are sent to their owners


@pytest.mark.parametrize("where", ["in NCCL", "in an exchange", "on the device"])
def test_who_waits_for_others_gives_up(where, monkeypatch):
    monkeypatch.setattr(comm, "PATIENCE", 0.2)
    never = threading.Event()
    if where == "in NCCL":
        monkeypatch.setattr(comm, "PATIENCE_TO_MEET", 0.2)
        monkeypatch.setattr(Wires, "binding", lambda self: slow(self, "NcclCommunicator", never))
    elif where == "in an exchange":
        monkeypatch.setattr(Wires, "binding", lambda self: slow(self, "groupEnd", never, 1))
    else:
        monkeypatch.setattr(SimDevice, "mark", lambda self: lambda: False)

    def program(engine, _devices):
        with pytest.raises(GridTimeout, match="did not come in an exchange for"):
            shared(engine, [arrays_of(p) for p in engine.local], [range(2)])
        with pytest.raises(GridTimeout, match="NCCL was given up before"):
            shared(engine, [arrays_of(p) for p in engine.local], [range(2)])
        return "gave up"

    results, wires = on_engines(2, 1, program)
    never.set()
    if where == "in NCCL":
        assert all(isinstance(x, GridTimeout) and "in NCCL for 0.2" in str(x) for x in results)
    else:
        assert results == ["gave up"] * 2
        assert wires.come(lambda: sorted(wires.aborted) == [0, 1])  # no one waits for it


@pytest.mark.parametrize("method", ["groupEnd", "check_async_error"])
def test_an_error_of_nccl_ends_an_exchange(method, monkeypatch):
    def fail(where):
        if method == "groupEnd" and not where.waiting:
            return end(where)  # as all start
        raise RuntimeError("unhandled")

    end = Binding.groupEnd
    if method == "groupEnd":
        monkeypatch.setattr(Binding, method, fail)
    else:
        monkeypatch.setattr(Wires, "check", fail)
        monkeypatch.setattr(SimDevice, "mark", lambda self: lambda: False)

    def program(engine, _devices):
        with pytest.raises(RuntimeError, match="unhandled"):
            shared(engine, [arrays_of(p) for p in engine.local], [range(2)])

    results, wires = on_engines(2, 1, program)
    assert results == [None] * 2
    assert sorted(wires.aborted) == [0, 1]


def test_no_process_sends_where_one_has_no_room():
    def program(engine, devices):
        rank, error = engine.local[0], None
        if rank == 1:
            devices[0].entered = None
        try:
            shared(engine, [arrays_of(p) for p in engine.local], [range(2)])
        except Exception as raised:
            error = raised
            engine._processes.fail(error)
        return type(error), error is not None and "process 1 of 2: TypeError" in str(error)

    results, wires = on_engines(2, 1, program)
    assert results == [(ProcessFailed, True), (TypeError, False)]
    assert not any(wires.sent.values())


def test_the_child_of_a_fork_ends_nothing():
    def program(engine, _devices):
        comm._close(engine, os.getpid() - 1)  # the process of its parent
        return engine._communicators != []

    results, wires = on_engines(1, 2, program)
    assert results == [True]
    assert wires.ended == []


def slow(wires, method, until, after=0):
    """Return a binding one of whose methods waits, after some calls."""
    made, calls = Binding(wires), []
    usual = getattr(made, method)

    def waits(*given):
        calls.append(1)
        if len(calls) > after:
            until.wait(20)
            return None
        return usual(*given)

    setattr(made, method, waits)
    return made


@pytest.mark.gpu
def test_one_rank_on_a_gpu():
    """What can be seen of NCCL with one GPU: it starts, sends to itself, and ends."""
    binding = pytest.importorskip("cupy.cuda.nccl")
    device = backends.get("gpu").device

    def program(processes):
        processes.begin("a test")
        engine = NcclEngine(MpiEngine(processes), [device], binding)
        with device.lock, device.entered():
            given = (device.from_host(np.arange(1000)),)
            found = shared(engine, [given], [range(1)])
            by, to = engine._communicators[0], device.xp.empty(1000, np.int64)
            how = 8000, binding.NCCL_UINT8, 0, device.stream
            binding.groupStart()
            by.send(device.address(given[0]), *how)
            by.recv(device.address(to), *how)
            binding.groupEnd()
            engine._wait([device.mark()])
            engine.close()
            return found[0][0][0] is given[0], device.to_host(to).tolist()

    assert on_ranks(1, program)[0] == [(True, list(range(1000)))]
