"""Random loops over blocks: fused or not, and on cpu, the same; and what they compile to."""

import contextlib
import dataclasses
import tempfile
from pathlib import Path

import pytest
from bitmap_programs import LOOPS, PROGRAM, random_graph
from drawn_loops import bitmap_loops, compare, load
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from samples import picked
from strategies import for_all

import lagpu
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.fused import search_many as policy
from lagpu.backends.gpu.fused.program import text


@for_all(cpu=3, compiled=40)
def test_random_bodies(backend, draw):
    """On matrices that are bitmaps from the first, or by columns, of several numbers of rows."""
    source = draw(bitmap_loops(), label="loop")
    k = draw(st.sampled_from((1, 2, 31, 33, 64, 65)), label="k")
    n = 2 * k + draw(st.sampled_from((0, 1, 33)), label="n")
    run = load(source, Path(tempfile.mkdtemp()) / "body.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "MOST_DEGREE", 0)
        found = compare(run, backend, n, k, draw(st.integers(0, 99), label="seed"))
    if backend.name != "cpu" and not isinstance(found, str):
        assert loop_name(backend) in (GENERATED, "no iteration"), backend.last_loop


@pytest.mark.parametrize("traced", picked([False, True], True))
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_programs(arch, traced, monkeypatch):
    """Some of them, and with the log of a trace."""
    kernels, real = [], text.from_source
    recorded = lambda *args, **macros: kernels.append(real(*args, **macros)) or kernels[-1]  # noqa: E731
    monkeypatch.setattr(text, "from_source", recorded)
    monkeypatch.setattr(policy, "MOST_DEGREE", 0)
    place = lagpu.backends.get("sim")
    A = random_graph(70, 2).to(place)
    every = (("distances", 3), ("counts", 3), ("by value", 3), ("by value", 33))
    some = every[1::2] if traced else every  # the plain run is traced
    chosen = some if arch == "sm_90" else (("filled", 3),)
    for name, k in chosen:
        with lagpu.trace() if traced else contextlib.nullcontext():
            LOOPS[name](k)(A)
        assert loop_name(place) == PROGRAM
    assert len(kernels) == len(chosen)
    for kernel in kernels:
        macros = dict(kernel.macros) | {"LG_BLOCK": str(CUDA_LIMITS.loop_block)}
        made = dataclasses.replace(kernel, macros=tuple(macros.items()))
        assert ("LG_LOG" in macros) == traced
        assert nvrtc_compile(made, arch)
