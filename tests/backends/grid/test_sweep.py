"""A sweep over a vector of a grid is one kernel on each device, each for its own vertices."""

import dataclasses
from contextlib import nullcontext

import numpy as np
import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile
from pieces_of_search import gpu_grid, sim_grid, sims
from sweeps import brandes, by_the_pulled, graph, heights, many

import lagpu
from lagpu import FP64, INT32, INT64, Vector, algorithms, backends, binary, loop, semiring, sweep
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.storage.bitmap import VectorLevels
from lagpu.backends.grid import program
from lagpu.errors import GridTimeout

ONE_KERNEL = "sweep of pieces: the levels are a vector; "
BODIES = [(brandes, FP64), (by_the_pulled, FP64), (heights, INT32), (many, INT64)]


def positions(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        pulled(above.S, replace=True) << semiring.min_secondi(A @ share)
        pulled << pulled.ewise_mult(above, binary.first)
        delta(accum=binary.max) << pulled


def unmasked(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        pulled << semiring.plus_first(share @ A.T)
        delta(above.S, accum=binary.plus) << pulled


def levels_written(A, levels, paths, delta, share, pulled):
    """No kernel for sweeps has a product without a mask, and the masks read no new levels."""
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        pulled << semiring.plus_first(share @ A.T)
        levels(above.S) << 9


def vectors(n, dtype, place):
    """Return `paths` and `delta` with most entries, and `share` and `pulled` with none."""
    rng, found = np.random.default_rng(n), []
    for part in (0.9, 0.8, 0, 0):
        at = np.flatnonzero(rng.random(n) < part)
        values = rng.integers(1, 6, len(at)).astype(dtype.numpy)
        found.append(Vector.from_coo(at, values, dtype, size=n, backend=place))
    return found


def compare(body, A, levels, dtype):
    """Run a body as it comes and eagerly, on copies; return how the first one ran."""
    made = [levels, *vectors(A.nrows, dtype, A.backend)]
    fused, eager = ([v.dup() for v in made] for _ in range(2))
    body(A, *fused)
    ran = A.backend.last_loop
    with lagpu.eager():
        body(A, *eager)
    for x, y in zip(fused, eager, strict=True):
        assert x.isclose(y, rel_tol=1e-12) if x.dtype is FP64 else x.isequal(y)
    return ran


@pytest.mark.parametrize("grid", ["2", "3", "5", "3-degree", "2-random"])
@pytest.mark.parametrize(("body", "dtype"), [*BODIES, (positions, INT64)])
def test_a_sweep_leaves_what_statements_leave(grid, body, dtype):
    place = backends.get(f"grid:{grid}:sim")
    for n in (2, 33, 300):
        A = graph(n, place, n, symmetric=n != 33)
        source = int(A.reduce_rowwise("plus").new().to_coo()[0][-1])
        for levels in (algorithms.bfs_levels(A, source), gaps(n, place)):
            ran = compare(body, A, levels, dtype)
            deep = (levels.reduce("max").new().value or 0) > 0
            by_slots = body is positions and ("-" in grid or n % 32)
            assert not deep or by_slots or ran.startswith(ONE_KERNEL), ran


def written_back(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        delta(above.S, replace=True) << semiring.plus_first(share @ A.T)


def counted_by_no_one(delta, paths):
    for _ in loop(times=1):
        delta(delta.S) << paths


def test_entries_are_counted_on_the_device_of_a_piece():
    """The product's output is read before it; where it has no entries a sweep would do."""
    place = backends.get("grid:2:sim")
    A, levels = graph(60, place, 1, symmetric=True), gaps(60, place)
    found = [vectors(60, INT64, A.backend) for _ in range(2)]
    for how, (paths, delta, *others) in zip((nullcontext, lagpu.eager), found, strict=True):
        with how():
            counted_by_no_one(delta, paths)
            written_back(A, levels, paths, delta, *others)
    for x, y in zip(*found, strict=True):
        assert x.isequal(y)


def gaps(n, place):
    """Return levels of no search: not all of 0 to 5, and on some pieces none."""
    rng = np.random.default_rng(n)
    at = np.flatnonzero(rng.random(n) < 0.8)
    values = rng.choice([0, 1, 2, 5], len(at)) % n
    return Vector.from_coo(at, values.astype(np.int32), size=n, backend=place)


@pytest.mark.parametrize("grid", ["2", "3-random"])
def test_a_body_that_writes_the_levels(grid):
    place = backends.get(f"grid:{grid}:sim")
    A = graph(60, place, 1, symmetric=True)
    assert compare(unmasked, A, gaps(60, place), INT64).startswith("generated loop of pieces: ")
    assert "pieces" not in compare(levels_written, A, algorithms.bfs_levels(A, 0), INT64)


def test_one_kernel_makes_no_masks(monkeypatch):
    place = backends.get("grid:2:sim")
    A = graph(60, place, 1, symmetric=True)
    levels, made = algorithms.bfs_levels(A, 0), vectors(60, FP64, place)
    monkeypatch.setattr(VectorLevels, "cut", None)
    brandes(A, levels, *made)
    assert place.last_loop.startswith(ONE_KERNEL)


@pytest.mark.parametrize("name", ["grid:2:sim", "grid:3-random:sim"])
def test_masks_that_are_read_after_their_iteration(name):
    def masks(backend):
        levels, kept = gaps(300, backends.get(backend)), []
        for here, above in sweep(levels):
            kept += here, above
        return [mask.to_coo()[0].tolist() for mask in reversed(kept)], kept[0].nvals

    assert masks(name) == masks("cpu")


def kept_kernels(monkeypatch):
    """Return the list that gets the kernel of each device's part of a sweep."""
    kernels, write = [], program.PieceSweep.write
    keep = lambda self: (write(self), kernels.append(self.kernel))[0]  # noqa: E731
    monkeypatch.setattr(program.PieceSweep, "write", keep)
    return kernels


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_sweeps_which_share_a_kernel(arch, monkeypatch):
    place, kernels = sim_grid(2), kept_kernels(monkeypatch)
    for n in (60, 100):
        A = graph(n, place, 1, symmetric=True)
        brandes(A, algorithms.bfs_levels(A, 0), *vectors(n, FP64, place))
    (kernel,) = set(kernels)
    macros = {"LG_BLOCK": str(CUDA_LIMITS.loop_block), "LG_PEERS": "2"}
    assert nvrtc_compile(dataclasses.replace(kernel, macros=tuple(macros.items())), arch)


@pytest.mark.gpu
def test_gpus_find_the_same():
    gpus, n = gpu_grid(2), 5000
    A, B = (graph(n, place, 3, symmetric=True) for place in (gpus, "cpu"))
    found = [
        algorithms.betweenness_centrality(x, sources=[0, 1, 7], pieces=pieces)
        for x, pieces in ((A, 2), (B, None))
    ]
    assert np.allclose(*(x.to_dense() for x in found), rtol=1e-9)


def test_a_device_that_gives_up_leaves_everything_as_it_was(monkeypatch):
    place = sims(2)
    A = graph(300, place, 2, symmetric=True)
    levels = algorithms.bfs_levels(A, 0)
    made = vectors(300, FP64, place)
    before = [x.to_coo() for x in made]
    brandes(A, levels, *(x.dup() for x in made))
    monkeypatch.setattr(program.Peers, "run", lambda *given: give_up())
    with pytest.raises(GridTimeout):
        brandes(A, levels, *made)
    for x, (at, values) in zip(made, before, strict=True):
        assert np.array_equal(x.to_coo()[0], at)
        assert np.array_equal(x.to_coo()[1], values)


def give_up():
    raise GridTimeout("grid: piece 0 has heard nothing")
