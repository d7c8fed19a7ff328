"""The GPU at its limits: memory that is full, a search that somebody interrupts."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import lagpu
from lagpu import BOOL, FP64, INT32, Matrix, Vector, algorithms, backends, semiring
from lagpu.backends.gpu.device import cuda
from lagpu.backends.gpu.kernels import kernel
from lagpu.errors import OutOfMemory
from lagpu.generators import path


@pytest.fixture(scope="module")
def gpu():
    try:
        return backends.get("gpu")
    except Exception as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("limit", "free"), [(0, 90), (1000, 90), (50, 20), (30, 0), (10, 0)])
def test_free_memory_honours_the_limit_of_the_pool(limit, free):
    pool = SimpleNamespace(total_bytes=lambda: 50, used_bytes=lambda: 30, get_limit=lambda: limit)
    device = object.__new__(cuda.CudaDevice)
    device.xp = SimpleNamespace(get_default_memory_pool=lambda: pool)
    device._device = SimpleNamespace(mem_info=(70, 100))
    assert device.free_bytes() == free


def test_a_limit_of_memory_ends_with_its_context():
    said = []
    pool = SimpleNamespace(
        free_all_blocks=lambda: said.append("free"),
        get_limit=lambda: 7,
        set_limit=lambda size: said.append(size),
    )
    device = object.__new__(cuda.CudaDevice)
    device.xp = SimpleNamespace(get_default_memory_pool=lambda: pool)
    with pytest.raises(KeyError), device.limited(50):
        raise KeyError
    assert said == ["free", 50, 7]


def test_only_the_main_thread_glances_at_a_notification(monkeypatch):
    """Two threads with a GPU each took as long as one with both: Python ran one at a time."""
    host, waits = memoryview(np.array([5, 6, 0, 0], np.uint64)), []

    def arrives(way):
        waits.append(way)
        host[2] = 9

    device = object.__new__(cuda.CudaDevice)
    device._ahead = 1
    monkeypatch.setattr(device, "_synchronize", lambda: arrives("stream"))
    monkeypatch.setattr(cuda.protocol, "give_way", lambda: arrives("glance"))
    notification = cuda.HostNotification(None, host, 9)
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(device._wait_for, notification, None).result()
    host[2] = 0
    assert device._wait_for(notification, None) == found == (5, 6)
    assert waits == ["stream", "glance"]


def test_a_limit_of_memory_refuses_what_is_larger(gpu):
    with gpu.device.limited(gpu.device.used_bytes() + (8 << 20)):
        assert gpu.device.free_bytes() <= 8 << 20
        with pytest.raises(OutOfMemory):
            Vector.from_dense(np.ones(1 << 22), backend=gpu)
    assert gpu.device.free_bytes() > 64 << 20


def test_a_directed_graph_keeps_one_form_under_the_limit_of_the_pool(gpu):
    pool = gpu.device.xp.get_default_memory_pool()
    rng = np.random.default_rng(5)
    rows, cols = rng.integers(0, 1 << 18, (2, 1 << 22))
    A = Matrix.from_coo(rows, cols, True, nrows=1 << 18, dup_op=lagpu.binary.first, backend=gpu)
    A.orientation = "csc"
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + (8 << 20))  # less than a second form
    try:
        levels = algorithms.bfs_levels(A, 0)
    finally:
        pool.set_limit(size=0)
    assert levels.to("cpu").isequal(algorithms.bfs_levels(A.to("cpu"), 0))


@pytest.fixture
def filled(gpu):
    """All but some 30 MB of the GPU's memory taken; such a test runs alone (conftest)."""
    xp = gpu.device.xp
    pool = xp.get_default_memory_pool()
    pool.free_all_blocks()
    held, size = [], 1 << 34
    while size >= 1 << 24:
        try:
            held.append(xp.empty(size, np.uint8))
        except xp.cuda.memory.OutOfMemoryError:
            size //= 2
    yield held
    held.clear()
    pool.free_all_blocks()


@pytest.mark.parametrize("asks", ["a launch", "a cooperative launch", "who counts blocks"])
def test_more_shared_memory_is_allowed_before_it_is_asked_for(monkeypatch, asks):
    """The driver refuses more than 48 KiB of a kernel that was not allowed to have them."""
    allowed = []

    def blocks(_function, _block, shared):
        return int(any(shared <= most for *_, most in allowed))

    driver = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
        funcSetAttribute=lambda *how: allowed.append(how),
        occupancyMaxActiveBlocksPerMultiprocessor=blocks,
        launchKernel=None,
        launchCooperativeKernel=None,
        CUDADriverError=RuntimeError,
    )
    device = object.__new__(cuda.CudaDevice)
    device.xp = SimpleNamespace(cuda=SimpleNamespace(driver=driver, get_current_stream=None))
    device.dynamic_shared_bytes, device.resident_threads, device._processors = 1 << 17, 2048, 1
    device.share, device._ready, device._shared_allowed = 1, {}, {}
    device._cooperative_blocks = {}
    monkeypatch.setattr(device, "_function", lambda _kernel: SimpleNamespace(ptr=77))
    run = kernel("spgemm/dots.cu", "table_products")
    for shared in (3 << 15, 3 << 13, 3 << 15):
        if asks == "who counts blocks":
            assert device.max_cooperative_blocks(run, 256, shared) == 1
        else:
            device.ready(run, (256, asks == "a cooperative launch", shared))
    assert allowed == [(77, 8, 3 << 15)]


@pytest.mark.gpu
def test_a_full_memory_is_reported_and_stays_usable(gpu, filled):
    n = 1 << 24
    with pytest.raises(OutOfMemory, match=r"needs \d.*, .* free on cuda:0"):
        Vector(FP64, n, backend=gpu)
    rows = np.arange(n)
    with pytest.raises(OutOfMemory, match=r"needs \d.*, .* free on cuda:0"):
        Matrix.from_coo(rows, np.roll(rows, 1), nrows=n, ncols=n, backend=gpu)
    del filled[-1]
    gpu.device.xp.get_default_memory_pool().free_all_blocks()
    A = Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3, backend=gpu)
    assert algorithms.bfs_levels(A, 0).to_coo()[1].tolist() == [0, 1, 2]
    assert semiring.plus_pair(A @ A.reduce_rowwise().new()).new().nvals == 1


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["fused", "eager"])
def test_an_interrupt_stops_a_long_search(gpu, tmp_path, mode):
    """A path of millions of vertices is searched level by level."""
    file = tmp_path / "out.json"
    args = ("bench", "path:3000000", "-b", "gpu", "--roots", "1", "--mode", mode, "--json", file)
    with subprocess.Popen(
        [sys.executable, "-m", "lagpu", *map(str, args)], stderr=subprocess.PIPE, text=True
    ) as run:
        time.sleep(15)  # it is searching by now: 3 million levels
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)  # at rest within a second; leave room for a busy machine
    assert run.returncode != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gpu
def test_an_eager_loop_allocates_nothing_after_its_first_levels(gpu):
    """A long path, so that blocks of counters run out too."""
    xp = gpu.device.xp

    sizes = []

    class Count(xp.cuda.MemoryHook):
        name = "count"

        def malloc_preprocess(self, **how):
            sizes.append(how["size"])

    A = path(2000, backend=gpu)
    with lagpu.eager():  # both directions make what they keep with the matrix
        algorithms.bfs_levels(A, 0)
    levels, frontier = Vector(INT32, 2000, like=A), Vector(BOOL, 2000, like=A)
    frontier[0] = True
    with lagpu.eager(), Count():
        for depth in lagpu.loop(until_empty=frontier):
            if depth == 200:
                sizes.clear()
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    assert levels.nvals == 2000
    assert sizes == []
