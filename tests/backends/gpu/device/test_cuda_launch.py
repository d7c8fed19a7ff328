"""What prepared launches are given fits the slots that CUDA's launch packs it into."""

import struct

import lagpu
from lagpu import algorithms
from lagpu.backends.gpu.device.cuda import SLOT
from lagpu.backends.gpu.device.protocol import CheckedLaunch
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
