"""Searches of pieces, for tests: grids of devices of their own, graphs, and loops that they run."""

import functools

import numpy as np
import pytest

from lagpu import BOOL, FP64, INT32, Matrix, Vector, backends, binary, loop, semiring
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.cuda import CudaDevice
from lagpu.backends.gpu.device.protocol import Peers
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.errors import BackendUnavailable, GridTimeout, OutOfMemory

PIECES = [2, 3]
RUNS = "search of pieces: the body is a search from one frontier; "


def gpus_for(pieces):
    """Return a device for each piece: GPUs of this host, or one that all share; or skip."""
    try:
        try:
            return [CudaDevice(number) for number in range(pieces)]
        except BackendUnavailable:
            return [CudaDevice(0, share=pieces) for _ in range(pieces)]
    except BackendUnavailable as error:
        pytest.skip(str(error))


def sims(pieces, **options):
    """Return a grid of simulated devices of its own."""
    places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}", **options)) for p in range(pieces)]
    return grid.make(f"grid of {pieces}", places)


@functools.cache
def sim_grid(pieces):
    return backends.get(f"grid:{pieces}:sim")


@functools.cache
def gpu_grid(pieces):
    """Return a grid of GPUs, which may be one."""
    places = [GpuBackend("gpu", device) for device in gpus_for(pieces)]
    return grid.make(f"grid of {pieces}", places)


def edges_of(kind, n):
    """Return the edges of a graph that hurts."""
    rng = np.random.default_rng(n)
    if kind == "path":  # every level is small; some 150 of them show it
        at = rng.permutation(n)[:150]
        return at[:-1], at[1:]
    m = 3 * n if kind == "random" else 12 * n
    i, j = rng.integers(0, n, m), rng.integers(0, n, m)
    if kind == "hubs":  # long rows and columns, self-loops, and a third without any edge
        i[: m // 3], j[m // 3 : m // 2] = n // 2, n - 1
        j[m // 2 : m // 2 + 9] = i[m // 2 : m // 2 + 9]
        keep = (i % 3 != 1) & (j % 3 != 1)
        i, j = i[keep], j[keep]
    if kind == "both ways":
        i, j = np.r_[i, j], np.r_[j, i]
    return i, j


def matrix(n, i, j, backend, values=True):
    return Matrix.from_coo(i, j, values, nrows=n, ncols=n, dup_op=binary.any, backend=backend)


def is_tree(i, j, levels, parents, source):
    """Whether parents are of the level before, by an edge."""
    edges = {*zip(i.tolist(), j.tolist(), strict=True)}
    for v, (level, parent) in enumerate(zip(levels.tolist(), parents.tolist(), strict=True)):
        if level <= 0:
            assert parent == (source if level == 0 else -1)
        else:
            assert levels[parent] == level - 1
            assert (parent, v) in edges
    return True


class Search:
    """A search whose outputs have entries of before."""

    types = INT32, BOOL
    had = True

    def __init__(self, place, n=90):
        i, j = edges_of("random", n)
        self.A = matrix(n, i, j, place)
        self.x, self.f = (Vector(dtype, n, backend=place) for dtype in self.types)
        self.f[11] = True
        if self.had:
            self.x[4] = 3
        self.before = self.state()

    def run(self):
        x, f, A = self.x, self.f, self.A
        for depth in loop(until_empty=f):
            x(f.S) << depth
            f(~x.S, replace=True) << semiring.any_pair(f @ A)

    def state(self):
        return self.x.to_dense(-1).tolist(), self.f.to_coo()[0].tolist()


class Alone(Search):
    """A search from one vertex that leaves nothing but outputs without entries before."""

    had = False


class Paths(Search):
    """A search that adds up, so values are sent."""

    types = FP64, FP64

    def run(self):
        x, f, A = self.x, self.f, self.A
        for _ in loop(until_empty=f):
            x(f.S) << f
            f(~x.S, replace=True) << semiring.plus_first(f @ A)


def fails_without(search, piece, monkeypatch):
    """Run a search in which the device of a piece never begins; it leaves all as it was."""
    run, turn = SimDevice.run_together, Peers.turn

    def some(self, launches):
        run(self, [launch for p, launch in enumerate(launches) if p != piece])

    with monkeypatch.context() as patch:
        patch.setattr(SimDevice, "run_together", some)
        patch.setattr(Peers, "turn", lambda self: {**turn(self), "patience": 10**8})
        # On a busy machine another piece may come too late, too.
        missing = rf"heard nothing of piece (\d and )*{piece}( and \d)* in turn 0. Nothing"
        with pytest.raises(GridTimeout, match=missing):
            search.run()
    assert search.state() == search.before


def fails_at_each_call(search, owner, method, error, monkeypatch):
    """Run a search; each call of a method of `owner` fails in turn, and leaves all as it was."""
    usual, calls = getattr(owner, method), [0]
    for at in range(40):
        calls[0] = 0

        def sometimes(self, *args, at=at):
            calls[0] += 1
            if calls[0] - 1 == at:
                raise error
            return usual(self, *args)

        with monkeypatch.context() as patch:
            patch.setattr(owner, method, sometimes)
            try:
                search.run()
                break
            except (KeyboardInterrupt, OutOfMemory):
                pass
        assert search.state() == search.before
    assert at > 0
