"""The device layer: primitives, launches and memory, on the sim device and on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lagpu.backends.gpu.device.cuda import CudaDevice
from lagpu.backends.gpu.device.protocol import format_bytes
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, from_source, kernel
from lagpu.errors import (
    BackendUnavailable,
    KernelCompileError,
    KernelLaunchError,
    OutOfMemory,
)

KERNELS = (Path(__file__).parents[3] / "support" / "device_kernels.cu").read_text("utf-8")
TYPES = {
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
}


def device_kernel(name: str, **macros: str) -> Kernel:
    return from_source(KERNELS, name, file="device_kernels.cu", **macros)


def asked_for(config: pytest.Config, backend: str) -> bool:
    return backend in (config.getoption("backend", default=None) or ())


@pytest.fixture(scope="module", params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "sim":
        return SimDevice()
    try:
        return CudaDevice()
    except BackendUnavailable as error:
        if asked_for(request.config, "gpu"):
            raise
        pytest.skip(str(error))


def empty_like(device, *arrays):
    return [device.xp.zeros_like(array) for array in arrays]


# ---- primitives


@pytest.mark.parametrize("ctype", [*TYPES, "bool"])
def test_shuffles(device, ctype):
    lanes = np.arange(32)
    values = lanes % 3 == 0 if ctype == "bool" else lanes.astype(TYPES[ctype]) * 7
    if ctype in ("i64", "u64"):
        values <<= 32  # both halves must be moved
    x = device.from_host(values)
    up, down, flipped, from_3 = empty_like(device, x, x, x, x)
    device.launch(
        device_kernel("warp_shuffles", S=ctype), 32, x, up, down, flipped, from_3, block=32
    )
    assert (device.to_host(up) == values[np.maximum(lanes - 1, 0)]).all()
    assert (device.to_host(down) == values[np.where(lanes < 30, lanes + 2, lanes)]).all()
    assert (device.to_host(flipped) == values[lanes ^ 5]).all()
    assert (device.to_host(from_3) == values[3]).all()


@pytest.mark.parametrize("yes", [[], [0], [31], [1, 5, 30], range(32)])
def test_warp_votes(device, yes):
    values = np.isin(np.arange(32), list(yes))
    pred = device.from_host(values)
    ballot = device.xp.zeros(32, np.uint32)
    any_, all_, rank = device.xp.zeros(32, bool), device.xp.zeros(32, bool), ballot.copy()
    device.launch(device_kernel("warp_votes"), 32, pred, ballot, any_, all_, rank, block=32)
    assert (device.to_host(ballot) == sum(1 << lane for lane in yes)).all()
    assert (device.to_host(any_) == values.any()).all()
    assert (device.to_host(all_) == values.all()).all()
    assert (device.to_host(rank) == np.cumsum(values) - values).all()


@pytest.mark.parametrize("yes", [0, 1, 127, 128])
def test_block_votes(device, yes):
    pred = device.from_host(np.arange(128) < yes)
    any_, all_ = empty_like(device, pred, pred)
    count = device.xp.zeros(128, np.uint32)
    device.launch(device_kernel("block_votes"), 128, pred, any_, all_, count, block=128)
    assert (device.to_host(any_) == (yes > 0)).all()
    assert (device.to_host(all_) == (yes == 128)).all()
    assert (device.to_host(count) == yes).all()


@pytest.mark.parametrize("block", [32, 96, 1024])
def test_shared_memory(device, block):
    x = device.from_host(np.arange(block, dtype=np.int32))
    device.launch(device_kernel("reverse"), block, x, block=block)
    assert (device.to_host(x) == np.arange(block)[::-1]).all()


def test_a_kernel_may_ask_for_more_and_less_shared_memory_by_turns(device):
    total = device.xp.zeros(1, np.uint64)
    summed = device_kernel("sum_dynamic")
    for count in (10_000, 100, 10_000, 16_000, 3, 16_000):
        device.launch(summed, 256, count, total, cooperative=True, shared=4 * count)
        assert device.read(total) == count * (count - 1) // 2


@pytest.mark.each_value
@pytest.mark.parametrize("block", [32, 96, 1024])
@pytest.mark.parametrize("ctype", TYPES)
def test_block_reduce_and_warp_scan(device, ctype, block):
    values = np.random.default_rng(block).integers(0, 9, block).astype(TYPES[ctype])
    x = device.from_host(values)
    total, scanned = empty_like(device, x, x)
    device.launch(device_kernel("fold", X=ctype), block, x, total, scanned, block=block)
    assert (device.to_host(total) == values.sum()).all()
    assert (device.to_host(scanned).reshape(-1, 32) == values.reshape(-1, 32).cumsum(1)).all()


@pytest.mark.parametrize("ctype", TYPES)
def test_atomics_under_contention(device, ctype):
    n = 3000
    cells = [device.from_host(np.array([start], TYPES[ctype])) for start in (0, 77, 2, 5, 0)]
    device.launch(device_kernel("contend", X=ctype), n, n, *cells)
    assert [device.read(cell) for cell in cells] == [n // 100 * 4950, 0, 99, n + 5, n]


def test_bitwise_atomics_under_contention(device):
    n = 1000
    cells = [device.from_host(np.array([x], np.uint64)) for x in (0, 2**64 - 1, 0, n)]
    device.launch(device_kernel("contend_bits"), n, n, *cells)
    ored, anded, xored, last = map(device.read, cells)
    assert (ored, anded) == (2**64 - 1, 0)
    assert xored == np.bitwise_xor.reduce(np.arange(n))
    assert 0 <= last < n


def test_bool_atomics_share_words(device):
    cells, winners = device.xp.zeros(8, bool), device.xp.zeros(1, np.uint32)
    device.launch(device_kernel("contend_bools"), 512, cells, winners)
    assert device.to_host(cells).all()
    assert device.read(winners) == 8


def test_bits(device):
    values = np.array([0, 1, 1 << 31, 1 << 32, 2**64 - 1, *range(3, 30)], np.uint64)
    x = device.from_host(values)
    popc, ffs, clz = (device.xp.zeros(32, np.uint32) for _ in range(3))
    device.launch(device_kernel("bits"), 32, x, popc, ffs, clz, block=32)
    pairs = [(int(v), int(v) & 0xFFFFFFFF) for v in values]
    assert device.to_host(popc).tolist() == [v.bit_count() + w.bit_count() for v, w in pairs]
    assert device.to_host(ffs).tolist() == [
        (v & -v).bit_length() + (w & -w).bit_length() for v, w in pairs
    ]
    assert device.to_host(clz).tolist() == [
        (64 - v.bit_length()) + (32 - w.bit_length()) for v, w in pairs
    ]


def test_count_bits(device):
    words = np.random.default_rng(1).integers(0, 2**32, 10_001, dtype=np.uint32)
    total = device.xp.zeros(1, np.uint64)
    count = kernel("elementwise/bitmap.cu", "count_bits")
    device.launch(count, words.size, device.from_host(words), words.size, total)
    assert device.read(total) == np.bitwise_count(words).sum()


@pytest.mark.parametrize("block", [32, 256])
def test_grid_sync(device, block):
    rounds, barrier = device_kernel("rounds"), device.xp.zeros(GRID_BARRIER, np.uint32)
    blocks = min(3, device.max_cooperative_blocks(rounds, block))
    for nrounds in (7, 4):  # odd and even: the barrier is fit for the next launch either way
        cells = device.xp.zeros((nrounds + 1) * blocks, np.uint64)
        device.launch(
            rounds, blocks * block, nrounds, cells, barrier, block=block, cooperative=True
        )
        expected = 0
        for _ in range(nrounds):
            expected = blocks * expected + 1
        assert (device.to_host(cells)[-blocks:] == expected).all()


CLUSTERS = """#include "common/prims.cuh"
extern "C" __global__ void LG_CLUSTER_BLOCKS neighbours(u64* sums, u32 rounds) {
  LG_SHARED(u64, mine, 2);
  LG_DYNAMIC_SHARED(u32, more);
  u64 sum = 0;
  for (u32 round = 0; round < rounds; ++round) {
    if (block_thread() == 0) {
      mine[round % 2] = 100 * round + block_index();
      more[round % 2] = 1000;
    }
    cluster_sync();
    for (u32 rank = 0; rank < LG_CLUSTER; ++rank)
      sum += *cluster_shared(&mine[round % 2], rank) + *cluster_shared(&more[round % 2], rank);
  }
  sums[global_thread()] = sum * 10 + cluster_rank();
  cluster_sync();
}"""


@pytest.mark.parametrize("block", [32, 96])
def test_blocks_of_a_cluster_read_each_other(device, block):
    size, rounds = device.cluster_blocks, 3
    neighbours = from_source(CLUSTERS, "neighbours", CLUSTER=str(size))
    assert neighbours.cluster == size
    blocks = min(2 * size, device.max_cooperative_blocks(neighbours, block, 8))
    sums = device.xp.zeros(blocks * block, np.uint64)
    device.launch(neighbours, blocks * block, sums, rounds, block=block, cooperative=True, shared=8)
    for index in range(blocks):
        first = index // size * size
        each = [
            100 * round + k + 1000 for round in range(rounds) for k in range(first, first + size)
        ]
        assert (
            device.to_host(sums).reshape(blocks, block)[index] == sum(each) * 10 + index % size
        ).all()


def test_waiting_threads_let_others_run(device):
    flag, seen = device.xp.zeros(1, np.uint32), device.xp.zeros(1, np.uint32)
    device.launch(device_kernel("spin"), 192, flag, seen, block=64, cooperative=True)
    assert device.read(seen) == 192


# ---- launches


def test_scalars_arrive_exactly(device):
    out = device.xp.zeros(7, np.float64)
    args = (True, -(2**31), 2**32 - 1, -(2**53), np.uint64(2**53), 0.5, np.float32(0.1))
    device.launch(device_kernel("scalars"), 1, *args, out)
    assert device.to_host(out).tolist() == [float(x) for x in args]


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, 2), (1, 2**31), (1, 0.5), (2, -1), (3, 2**63), (4, -1), (5, 1e39), (6, "x"), (6, None)],
)
def test_scalars_that_do_not_fit(device, place, value):
    args = [True, 0, 0, 0, 0, 0.0, 0.0, None]
    args[place] = value
    with pytest.raises(KernelLaunchError, match=rf"scalars: parameter '{'biulkfd'[place]}'"):
        device.launch(device_kernel("scalars"), 1, *args)


def test_infinity_and_nan_are_floats(device):
    out = device.xp.zeros(7, np.float64)
    device.launch(device_kernel("scalars"), 1, False, 0, 0, 0, 0, float("-inf"), float("nan"), out)
    assert device.to_host(out)[5] == -np.inf
    assert np.isnan(device.to_host(out)[6])


def test_none_is_a_null_pointer(device):
    answer = device.xp.zeros(1, bool)
    device.launch(device_kernel("is_null"), 1, None, answer)
    assert device.read(answer) is True
    device.launch(device_kernel("is_null"), 1, device.xp.zeros(1, np.int32), answer)
    assert device.read(answer) is False


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda xp: xp.zeros(8, np.int64), "dtype int64 != int32"),
        (lambda xp: xp.zeros(8, np.int32)[::2], "not contiguous"),
        (lambda xp: [0] * 8, "list is no"),
        (lambda xp: 7, "int is no"),
    ],
)
def test_arrays_that_do_not_fit(device, make, fact):
    with pytest.raises(KernelLaunchError, match=rf"parameter 'x' \(i32\* x\): .*{fact}"):
        device.launch(device_kernel("fill"), 8, make(device.xp), 8, 1)


def test_number_of_arguments(device):
    with pytest.raises(KernelLaunchError, match=r"fill: 1 arguments != 3 parameters"):
        device.launch(device_kernel("fill"), 8, 1)


def test_arguments_by_name(device):
    x, fill = device.xp.zeros(4, np.int32), device_kernel("fill")
    first, *others = fill.names
    device.launch(fill, 4, x, **dict(zip(others, (4, 7), strict=True)))

    def prepared():
        return device.prepare(fill, 4, **{first: x, others[0]: 2})

    prepared()({others[1]: 5})
    assert device.to_host(x).tolist() == [5, 5, 7, 7]
    with pytest.raises(KernelLaunchError, match=r"fill: arguments unexpected: y; missing: "):
        device.launch(fill, 4, x, y=4)
    with pytest.raises(KernelLaunchError, match=r"fill: arguments unexpected: y. It takes "):
        device.prepare(fill, 4, y=x)
    with pytest.raises(KernelLaunchError, match=f"unexpected: {first}"):
        prepared()({first: x, others[1]: 5})  # CUDA checks the first call alone
    with pytest.raises(KernelLaunchError, match=f"missing: {others[1]}"):
        prepared()({})


@pytest.mark.parametrize("block", [0, 31, 48, 2048])
def test_blocks_are_whole_warps(device, block):
    with pytest.raises(KernelLaunchError, match="Use a multiple of 32"):
        device.launch(device_kernel("fill"), 8, None, 0, 1, block=block)


@pytest.mark.parametrize("n", [0, 1, 31, 100_000])
def test_grids_cover_any_size(device, n):
    x = device.xp.zeros(n, np.int32)
    device.launch(device_kernel("fill"), n, x, n, 5)
    assert (device.to_host(x) == 5).all()


def test_compile_error_names_file_macros_and_line(device):
    text = '#include "common/prims.cuh"\n#define LG_X i32\n'
    text += 'extern "C" __global__ void k() { undeclared; }'
    with pytest.raises(KernelCompileError) as caught:
        device.launch(from_source(text, "k", file="bad.cu"), 1)
    assert "bad.cu:k()" in str(caught.value)
    assert "undeclared" in str(caught.value)
    assert "bad.cu:3" in str(caught.value) or "bad.cu(3)" in str(caught.value)


# ---- memory and reports


def test_copies_are_copies(device):
    host = np.arange(6).reshape(2, 3)
    there = device.from_host(host.T)
    assert there.flags.c_contiguous
    host[:] = 0
    back = device.to_host(there)
    assert (back == np.arange(6).reshape(2, 3).T).all()
    back[:] = 0
    assert device.to_host(there).any()


@pytest.mark.parametrize("value", [np.bool_(True), np.int32(-3), np.uint64(2**64 - 1), 0.25])
def test_read(device, value):
    got = device.read(device.from_host(np.array([value])))
    assert got == value
    assert type(got) is type(np.asarray(value).item())


def total_bytes(device):
    if device.name == "sim":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return device.xp.cuda.runtime.memGetInfo()[1]


def test_require(device):
    assert 0 < device.free_bytes() <= total_bytes(device)
    device.require(0, "nothing")
    with pytest.raises(OutOfMemory, match=r"^bfs: needs 1000000.0 TB, .* free on .*\. Use less\.$"):
        device.require(10**18, "bfs", "Use less.")


def test_format_bytes():
    sizes = {999: "999 B", 1000: "1.0 kB", 12_400_000_000: "12.4 GB", 2 * 10**15: "2000.0 TB"}
    assert {n: format_bytes(n) for n in sizes} == sizes


def test_timer(device):
    x = device.xp.zeros(1000, np.int32)
    with device.timer() as timer:
        device.launch(device_kernel("fill"), 1000, x, 1000, 1)
    assert timer.elapsed_ms > 0
    assert timer.elapsed_ms == timer.elapsed_ms
    device.synchronize()


def test_describe(device):
    said = device.describe()
    assert "device" in said
    assert all(isinstance(fact, str) and fact for fact in said.values())


# ---- in a process of its own


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_device_cuda_is_unavailable():
    done = run_python(
        "from lagpu.backends.gpu.device.cuda import CudaDevice; CudaDevice()",
        CUDA_VISIBLE_DEVICES="-1",
    )
    assert "BackendUnavailable: gpu: " in done.stderr
    assert 'pip install "lagpu[gpu]"' in done.stderr


def test_the_device_layer_does_not_import_cupy():
    done = run_python(
        "import lagpu.backends.gpu.device.cuda, lagpu.backends.gpu.device.sim, sys; "
        "assert 'cupy' not in sys.modules"
    )
    assert done.returncode == 0, done.stderr


# ---- parts of the array library


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 33, 5000])
def test_orders_and_sums_of_integers(device, kind, count):
    """Sorting is stable, and leaves the keys as they are; sums are INT64."""
    keys = np.random.default_rng(count).integers(0, 1 + count // 4, count).astype(kind)
    given = device.from_host(keys)
    order, sums = device.order_of(given), device.running_sum(given)
    assert order.dtype == sums.dtype == np.int64
    assert (device.to_host(order) == np.argsort(keys, kind="stable")).all()
    assert (device.to_host(sums) == np.cumsum(keys, dtype=np.int64)).all()
    assert (device.to_host(given) == keys).all()


def test_orders_and_sums_of_negative_and_large_integers(device):
    keys = np.array([5, -(2**62), 2**61, -1, 5, 0], np.int64)
    assert device.to_host(device.order_of(device.from_host(keys))).tolist() == [1, 3, 5, 0, 4, 2]
    sums = device.to_host(device.running_sum(device.from_host(keys)))
    assert sums.tolist() == np.cumsum(keys).tolist()


@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_a_copy_is_of_its_own(device, kind, count):
    array = np.arange(count).astype(kind)
    for part in (slice(None), slice(count // 2, None), slice(None, None, 3)):
        given = device.from_host(array)[part]
        copy = device.copy_of(given)
        given.fill(0)
        assert copy.dtype == kind
        assert (device.to_host(copy) == array[part]).all()
