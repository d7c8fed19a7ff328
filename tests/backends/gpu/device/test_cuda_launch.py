"""What prepared launches are given fits the slots that CUDA's launch packs it into."""

import ctypes
import operator
import struct
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

import lagpu
from lagpu import algorithms
from lagpu.backends.gpu.device.cuda import SLOT, CudaDevice, CudaLaunch, Packed
from lagpu.backends.gpu.device.protocol import CheckedLaunch
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.kernels import from_source
from lagpu.generators import kronecker


def test_arguments_of_prepared_launches_can_be_packed(monkeypatch):
    packed, run = set(), CheckedLaunch.__call__

    def packing(prepared, new):
        args = prepared.all(new)
        slots = prepared.kernel.slots
        numbers = [0 if pointer else x for x, (_, pointer, _) in zip(args, slots, strict=True)]
        codes = [SLOT[pointer or dtype] for _, pointer, dtype in slots]
        struct.pack("<" + "".join(codes), *numbers)
        for x, (param, pointer, _) in zip(args, slots, strict=True):
            assert not pointer or x is None or hasattr(x, "dtype") or type(x) is int, param
        packed.add(prepared.kernel.name)
        run(prepared, new)

    monkeypatch.setattr(CheckedLaunch, "__call__", packing)
    A = kronecker(6, 8, backend="sim")
    for watched in (lagpu.eager(), lagpu.trace(), lagpu.trace(fuse=False)):
        with watched:
            algorithms.bfs_levels(A, 0)
        algorithms.bfs_levels(A, 0)
        algorithms.count_shortest_paths(A, 0)
        algorithms.bfs_levels_multi(A, [0, 1, 2])
    fused = {"grid_search", "bits_search", "bitmap_expand"}
    assert fused | {"spmv_push_queue", "spmv_csc_bitmap", "fill"} <= packed


def test_a_launch_again_packs_only_what_each_launch_has():
    """A driver that is none gets the buffer: eight bytes for each argument, by its address."""
    kernel = from_source(
        'extern "C" __global__ void f(i32 a, const u32* b, f64 c, u64* d, i64 e) {}', "f"
    )
    seen = []

    def start(function, grid, *given):
        addresses = (ctypes.c_uint64 * 5).from_address(given[-1])
        seen.append([ctypes.c_uint64.from_address(at).value for at in addresses])

    cuda = SimpleNamespace(
        driver=SimpleNamespace(launchCooperativeKernel=start, CUDADriverError=RuntimeError),
        get_current_stream=lambda: SimpleNamespace(ptr=0),
    )
    device = SimpleNamespace(xp=SimpleNamespace(cuda=cuda), launching=nullcontext())
    launch = CudaLaunch(device, kernel, 32, {"a": np.int32(1)}, (32, True, 0), ("d", "c"))
    assert launch.varying == ("b", "e", "d", "c")
    arrays = [SimpleNamespace(data=SimpleNamespace(ptr=ptr)) for ptr in (64, 128, 192)]
    launch.packed = Packed(device, kernel, 7, (32, True, 0), 1, (*launch.varying, "a"), [1], 2)
    launch._grid, launch._in_order = 1, operator.itemgetter(*launch.varying)
    assert not launch.repeats
    launch._launch(launch.packed, {"b": arrays[0], "c": 0.0, "d": arrays[1], "e": 5})
    assert launch.repeats
    launch.again([arrays[2], 1.0])
    launch.again([None, 0.0])
    one = struct.unpack("<Q", struct.pack("<d", 1.0))[0]
    assert seen == [[1, 64, 0, 128, 5], [1, 64, one, 192, 5], [1, 64, 0, 0, 5]]


def test_launches_together_take_arguments_by_name_or_in_order():
    seen = []

    class Launch:
        packed = True

        def __init__(self, name):
            def enter():
                seen.append(f"enter {name}")

            self.device = SimpleNamespace(enter=enter, beside=lambda: None)

        def __call__(self, new):
            seen.append(new)

        def run_with(self, values):
            seen.append(values)

    CudaDevice.run_together(None, [(Launch("a"), [1, 2]), (Launch("b"), {"x": 1})])
    assert seen == ["enter a", [1, 2], "enter b", {"x": 1}]


def test_arguments_of_searches_of_pieces_can_be_packed(monkeypatch):
    """A launch that comes again packs these alone, so they are all that vary."""
    run, packed = SimDevice.run_together, []

    def packing(device, launches):
        for launch, values in launches:
            slots = dict(zip(launch.kernel.names, launch.kernel.slots, strict=True))
            own = [slots[name] for name in launch.varying]
            numbers = [0 if slot[1] else x for slot, x in zip(own, values, strict=True)]
            struct.pack("<" + "".join(SLOT[slot[1] or slot[2]] for slot in own), *numbers)
            packed.append(launch.each == len(launch.varying))
        run(device, launches)

    monkeypatch.setattr(SimDevice, "run_together", packing)
    A = kronecker(6, 8, backend="grid:2:sim")
    for search in (algorithms.bfs_levels, algorithms.bfs_parents, algorithms.count_shortest_paths):
        for source in (0, 1, 2):
            search(A, source)
            assert A.backend.last_loop.startswith("search of pieces")
    with lagpu.trace():
        algorithms.bfs_levels(A, 0)
    assert packed == [True] * 20
