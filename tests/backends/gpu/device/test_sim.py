"""What only the sim device tells: divergence, interleavings, accesses out of bounds."""

from __future__ import annotations

import functools
import re
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import test_device

from lagpu import Matrix, algorithms, eager
from lagpu.backends.gpu.device import sim as compiler
from lagpu.backends.gpu.device.sim import SimDevice, _load_runtime
from lagpu.backends.gpu.kernels import GRID_BARRIER, from_source
from lagpu.errors import InvalidValue, KernelLaunchError, OutOfMemory


@pytest.fixture
def sim():
    return SimDevice()


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("divergent_warp", r"64 wait at a warp vote, 64 wait at block_sync"),
        ("mixed_barriers", r"others of its block at"),
        ("exited_lane", r"a shuffle reads a lane that has exited"),
    ],
)
def test_divergence_is_an_error(sim, name, fact):
    x = np.zeros(32, np.int32)
    with pytest.raises(KernelLaunchError, match=fact):
        sim.launch(test_device.device_kernel(name), 128, x, block=128)
    sim.launch(test_device.device_kernel("fill"), 32, x, 32, 1)  # and the device works on
    assert (x == 1).all()


def test_exited_threads_do_not_hold_a_barrier(sim):
    x = np.zeros(1, np.int32)
    sim.launch(test_device.device_kernel("exited_threads"), 128, x, block=128)
    assert x[0] == 1


def test_exited_block_holds_the_grid(sim):
    barrier = np.zeros(GRID_BARRIER, np.uint32)
    with pytest.raises(KernelLaunchError, match=r"512 wait at grid_sync; .* exited: 1"):
        sim.launch(test_device.device_kernel("exited_block"), 768, barrier, cooperative=True)


def test_grid_sync_wants_a_cooperative_launch_and_a_barrier(sim):
    rounds = test_device.device_kernel("rounds")
    cells, barrier = np.zeros(8, np.uint64), np.zeros(GRID_BARRIER, np.uint32)
    with pytest.raises(KernelLaunchError, match="not cooperative"):
        sim.launch(rounds, 1, 1, cells, barrier)
    with pytest.raises(KernelLaunchError, match="null barrier"):
        sim.launch(rounds, 1, 1, cells, None, cooperative=True)


def test_clusters_want_a_cooperative_launch_and_shared_memory(sim):
    cluster = {"CLUSTER": str(sim.cluster_blocks)}
    neighbours = from_source(test_device.CLUSTERS, "neighbours", **cluster)
    with pytest.raises(KernelLaunchError, match="cluster_sync in a launch that is not cooperative"):
        sim.launch(neighbours, 96, np.zeros(96, np.uint64), 1, block=32, shared=8)
    text = """#include "common/prims.cuh"
    extern "C" __global__ void LG_CLUSTER_BLOCKS k(u64* x) {
      x[global_thread()] = *cluster_shared(x, 1);
    }"""
    with pytest.raises(KernelLaunchError, match="cluster_shared of what is not in shared memory"):
        sim.launch(from_source(text, "k", **cluster), 96, np.zeros(96, np.uint64), block=32,
                   cooperative=True)  # fmt: skip
    left = """#include "common/prims.cuh"
    extern "C" __global__ void LG_CLUSTER_BLOCKS k(u64* x) {
      if (cluster_rank() == 0) return;
      cluster_sync();
      x[0] = 1;
    }"""
    with pytest.raises(KernelLaunchError, match=r"64 wait at cluster_sync; .* exited: 1"):
        sim.launch(from_source(left, "k", **cluster), 96, np.zeros(96, np.uint64), block=32,
                   cooperative=True)  # fmt: skip
    assert SimDevice(blocks=5).max_cooperative_blocks(neighbours) == 3


def test_shared_memory_has_its_limit(sim):
    text = """#include "common/prims.cuh"
    extern "C" __global__ void k(f64* x) { LG_SHARED(f64, s, 8192); s[0] = x[0]; x[0] = s[0]; }"""
    with pytest.raises(KernelLaunchError, match="48 KiB"):
        sim.launch(from_source(text, "k"), 1, np.zeros(1))


def test_read_only_arrays_are_not_written(sim):
    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    with pytest.raises(KernelLaunchError, match=r"'x' \(i32\* x\): the array is read-only"):
        sim.launch(test_device.device_kernel("fill"), 4, x, 4, 1)


def interleaving(**options):
    order = np.zeros(768, np.uint32)
    SimDevice(**options).launch(
        test_device.device_kernel("arrive"), 768, np.zeros(1, np.uint32), order
    )
    assert (np.sort(order) == np.arange(768)).all()
    return order.tolist()


def test_seed_decides_the_interleaving(monkeypatch):
    assert interleaving(seed=1) == interleaving(seed=1)
    assert interleaving(seed=1) != interleaving(seed=2)
    assert interleaving(seed=1, preempt=1) != interleaving(seed=1, preempt=0)
    monkeypatch.setenv("LAGPU_SIM_SEED", "1")
    assert interleaving() == interleaving(seed=1)


@pytest.mark.parametrize("seed", range(5))
def test_sums_do_not_depend_on_the_seed(seed):
    test_device.test_atomics_under_contention(SimDevice(seed=seed, preempt=1), "i64")
    test_device.test_grid_sync(SimDevice(seed=seed, preempt=1), 64)


def test_portable_context_switch():
    device = SimDevice(flags=("-DLAGPU_SIM_UCONTEXT",))
    test_device.test_block_reduce_and_warp_scan(device, "i32", 96)
    test_device.test_grid_sync(device, 64)
    test_divergence_is_an_error(device, "mixed_barriers", "others of its block")


OUT_OF_BOUNDS = """
import numpy as np
from lagpu.backends.gpu.kernels import from_source
from lagpu.backends.gpu.device.sim import SimDevice
text = '''#include "common/prims.cuh"
extern "C" __global__ void k(i32* x, i64 n) {
  warp_sync();
  for (i64 i = global_thread(); i < n; i += global_threads()) x[i] = 1;
}'''
x = np.zeros(5000, np.int32)
SimDevice().launch(from_source(text, "k"), 5000, x, 5000)
print("inside", flush=True)
SimDevice().launch(from_source(text, "k"), 5000, x, 5001)
"""


@pytest.mark.ci
def test_address_sanitizer_finds_accesses_out_of_bounds():
    command = compiler.compiler()[0]
    found = subprocess.run(
        [*command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    library = found.stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("the compiler has no libasan.so")
    done = test_device.run_python(
        OUT_OF_BOUNDS,
        LD_PRELOAD=library,
        ASAN_OPTIONS="detect_leaks=0",
        LAGPU_SIM_FLAGS="-fsanitize=address",
    )
    assert done.returncode != 0
    assert done.stdout == "inside\n"
    assert "heap-buffer-overflow" in done.stderr


def test_shared_memory_of_one_kernel_does_not_overlap_because_of_another():
    """Both use block_reduce, which has its place in shared memory; one has an array before it."""
    head = '#include "common/collectives.cuh"\n'
    plain = head + (
        'extern "C" __global__ void plain(u64* out) '
        "{ out[block_thread()] = block_reduce(u64(1), u64(0), LgPlus()); }"
    )
    mixed = head + (
        'extern "C" __global__ void mixed(u64* out) {\n'
        "  LG_SHARED(u64, own, 4);\n"
        "  if (block_thread() < 4) own[block_thread()] = 7;\n"
        "  block_sync();\n"
        "  const u64 sum = block_reduce(u64(1), u64(0), LgPlus());\n"
        "  out[block_thread()] = sum + own[block_thread() % 4];\n"
        "}"
    )
    device = SimDevice()
    out = np.zeros(256, np.uint64)
    device.launch(from_source(plain, "plain"), 256, out)
    assert (out == 256).all()
    device.launch(from_source(mixed, "mixed"), 256, out)
    assert (out == 263).all()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("fused", [True, False])
def test_a_search_without_memory_says_so_and_leaves_the_matrix_usable(monkeypatch, directed, fused):
    """Whatever is asked for first: the rows of the matrix, or the lists of the search."""
    u, v = ([0, 1, 2], [1, 2, 3]) if directed else ([0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2])
    A = Matrix.from_coo(u, v, nrows=4, ncols=4, backend="sim")
    search = functools.partial(algorithms.bfs_levels, A, 0)
    with nullcontext() if fused else eager():
        for free in range(0, 400, 8):
            with monkeypatch.context() as patch:
                patch.setattr(SimDevice, "pooled_bytes", lambda _self: 0)
                patch.setattr(SimDevice, "free_bytes", lambda _self, free=free: free)
                if not (reported := refused(search)):
                    break
                assert re.fullmatch(r"[a-z ]+: needs \d.*B, \d.*B free on sim\. Use a .*", reported)
        assert free > 0
        assert search().to_coo()[1].tolist() == [0, 1, 2, 3]


def refused(search):
    """Return what is out of memory, or nothing."""
    try:
        search()
    except OutOfMemory as error:
        return str(error)
    return ""


def test_a_seed_that_is_no_number_is_reported(monkeypatch):
    monkeypatch.setenv("LAGPU_SIM_SEED", "x")
    with pytest.raises(InvalidValue, match="LAGPU_SIM_SEED 'x' is not a whole number"):
        SimDevice()


def test_the_runtime_is_optimized_whatever_is_asked_for(monkeypatch):
    """Each barrier of threads runs it."""
    asked = []

    def shared_object(source, what, flags):
        asked.append((what, flags))
        raise FileNotFoundError

    monkeypatch.setattr(compiler, "shared_object", shared_object)
    with pytest.raises(FileNotFoundError):
        _load_runtime.__wrapped__(("-O0",))
    assert asked == [("runtime.cpp", ("-O0", "-O1"))]


def test_a_thread_that_has_entered_another_device_cannot_use_this_one():
    """A GPU would copy and allocate on the other one, and mix their events."""
    one, other = SimDevice(), SimDevice()
    x = other.from_host(np.arange(3))
    for use in (one.from_host, one.to_host, lambda x: one.read(x[:1]), lambda _: one.timer()):
        with pytest.raises(KernelLaunchError, match="has entered another device"):
            use(x)
        with one.lock, one.entered():
            use(x)
        with other.lock, other.entered():
            assert other.to_host(x).tolist() == [0, 1, 2]
