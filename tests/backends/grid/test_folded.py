"""Partial results of vectors go from device to device to their owners, and masks the other way."""

import numpy as np
import pytest
from pieces_of_search import gpus_for

from lagpu import BOOL, FP64, INT64, Matrix, Vector, algorithms, binary, check, generators, semiring
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid.partition import block_cyclic
from lagpu.loops.loop import eager

GRIDS = [(2, 2), (2, 3), (3, 2), (1, 2)]  # one row of pieces, several


def checkerboard(shape, order=None):
    places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}")) for p in range(shape[0] * shape[1])]
    return grid.make(f"grid of {shape}", places, shape, order)


@pytest.fixture(scope="module")
def boards():
    return {shape: checkerboard(shape) for shape in GRIDS}


def drawn(n, count, seed):
    rng = np.random.default_rng(seed)
    at = np.sort(rng.choice(n, min(count, n), replace=False))
    return at, rng.integers(1, 9, len(at))


def results(place, n, count, masked, algebra):
    """Return products in both directions, as they are written with a mask and an accumulator."""
    i, j, w = np.random.default_rng(n).integers(0, n, (3, 4 * n))
    A = Matrix.from_coo(i, j, w % 5 + 1, INT64, nrows=n, ncols=n, dup_op=binary.plus, backend=place)
    u = Vector.from_coo(*drawn(n, count, 1), INT64, size=n, backend=place)
    r = Vector.from_coo(*drawn(n, n // 3, 2), INT64, size=n, backend=place)
    at, values = drawn(n, masked, 3)
    mask = Vector.from_coo(at, values % 2, INT64, size=n, backend=place)
    found = []
    for product in (algebra(u @ A), algebra(A @ u)):
        r << product
        found.append(r.to_coo())
        r(~mask.S, replace=True) << product
        found.append(r.to_coo())
        r(mask.V, accum=binary.plus) << product
        found.append(r.to_coo())
        r(~mask.V) << product
        found.append(r.to_coo())
    return [(indices.tolist(), values.tolist()) for indices, values in found]


@pytest.mark.each_value
@pytest.mark.parametrize("algebra", ["any_pair", "plus_times", "min_first", "min_secondi"])
@pytest.mark.parametrize("n", [1, 31, 33, 1000])
@pytest.mark.parametrize("shape", GRIDS)
def test_results_are_those_of_cpu(boards, shape, n, algebra):
    of = getattr(semiring, algebra)
    for count, masked in ((0, 0), (1, n), (n // 9, n // 2), (n, n // 9)):
        want = results("cpu", n, count, masked, of)
        assert results(boards[shape], n, count, masked, of) == want


@pytest.mark.gpu
def test_results_on_gpus():
    places = [GpuBackend("gpu", device) for device in gpus_for(4)]
    place = grid.make("four", places, (2, 2))
    for n in (33, 1000, 5000):
        for count, masked in ((1, n), (n // 9, n // 2), (n, n // 9)):
            want = results("cpu", n, count, masked, semiring.plus_times)
            assert results(place, n, count, masked, semiring.plus_times) == want


@pytest.mark.parametrize("order", ["random", "degree"])
def test_in_another_order(order):
    """By turns of the new numbers; in the order of degrees one by one, so as lists."""
    place = checkerboard((2, 2), order)
    for count in (1, 30, 500):
        want = results("cpu", 500, count, 200, semiring.plus_times)
        assert results(place, 500, count, 200, semiring.plus_times) == want


def level(place, n, count, algebra):
    """Return the step of a search from some vertices, and what it finds."""
    product = getattr(semiring, algebra)
    A = generators.uniform(10, 8, seed=2, backend=place)
    f = Vector.from_coo(drawn(n, count, 1)[0], True, BOOL, size=n, backend=place)
    seen = Vector.from_coo(drawn(n, 300, 4)[0], True, BOOL, size=n, backend=place)
    found = Vector(INT64, n, backend=place)

    def step():
        found(~seen.S, replace=True) << product(f @ A)

    return step, found


@pytest.mark.parametrize("algebra", ["any_pair", "min_secondi", "min_firstj"])
@pytest.mark.parametrize("count", [1, 200, 1024])
def test_nothing_goes_by_way_of_the_host(boards, monkeypatch, count, algebra):
    step, found = level(boards[2, 2], 1024, count, algebra)
    step()  # the host reads the degrees of a matrix once
    with monkeypatch.context() as patch:
        patch.setattr(SimDevice, "_to_host", lambda *_: pytest.fail("a copy by the host"))
        step()
    want_step, want = level("cpu", 1024, count, algebra)
    want_step()
    for mine, theirs in zip(found.to_coo(), want.to_coo(), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_each_owner_is_given_its_own_alone(boards):
    """Bits and values: half of a partial result stays, half is sent to the other owner."""
    n, place = 5000, boards[2, 2]
    i, j = np.random.default_rng(1).integers(0, n, (2, 20 * n))
    A = Matrix.from_coo(i, j, 1.0, FP64, nrows=n, ncols=n, dup_op=binary.any, backend=place)
    u = Vector(FP64, n, backend=place)
    r = Vector(FP64, n, backend=place)
    u << 2.0
    engine, before = place.pieces.engine, place.pieces.engine.sent
    r << semiring.plus_first(u @ A)
    partial = sum(
        (4 * -(-c // 32) + 8 * c) for c in (block_cyclic(n, 4).count(p) for p in range(4))
    )
    assert engine.sent - before == partial  # of the operand, one number, nothing


@pytest.mark.parametrize("shape", GRIDS)
def test_searches_and_path_counts(boards, shape):
    A = generators.kronecker(9, 8, seed=3, backend=boards[shape])
    with eager():
        levels, parents = algorithms.bfs_levels(A, 5), algorithms.bfs_parents(A, 5)
        paths = algorithms.count_shortest_paths(A, 5)
    check.check_levels(A, 5, levels)
    check.check_parents(A, 5, parents, levels)
    check.check_paths(A, 5, paths)
