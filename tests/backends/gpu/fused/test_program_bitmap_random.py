"""Random loops over blocks: fused or not, and on cpu, the same; and what they compile to."""

import contextlib
import dataclasses
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
from bitmap_programs import LOOPS, PROGRAM, random_graph
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from programs import NAMES, PRODUCTS, WHOLE, load, ways_to_write
from strategies import for_all

import lagpu
from lagpu import Matrix
from lagpu.backends.gpu.fused import policy, program


@st.composite
def statements(draw):
    w = draw(st.sampled_from(list(NAMES)))
    u, v, m = (draw(st.sampled_from(WHOLE)) for _ in range(3))
    options = draw(ways_to_write(m))
    op = draw(st.sampled_from((*PRODUCTS, "min_secondi", "max_firstj", "plus_secondj")))
    what = draw(
        st.sampled_from(
            (
                f"semiring.{op}({u} @ A)",
                f"semiring.{op}({u} @ A.T)",
                f"{u}.ewise_add({v}, binary.min)",
                f"{u}.ewise_mult({v}, binary.plus)",
                f"{u}.ewise_union({v}, binary.minus, left_default=1, right_default=2)",
                f"{u}.apply(unary.ainv)",
                f"{u}.apply(binary.minus, left=3)",
                f"{u}.select(indexunary.valuegt, 1)",
                u,
                "2",
                "depth",
            )
        )
    )
    return f"{w}({options}) << {what}" if options else f"{w} << {what}"


@st.composite
def loops(draw):
    body = draw(st.lists(statements(), min_size=1, max_size=5))
    until = draw(st.sampled_from(("", "until_unchanged=x, ", "until_empty=y, ", "until_empty=b, ")))
    times = draw(st.integers(1, 3))
    head = f"def run(A, x, y, z, b, f):\n    for depth in loop({until}times={times}):\n"
    return head + textwrap.indent("\n".join(body), " " * 8) + "\n"


@for_all(cpu=3, compiled=40)
def test_random_bodies(backend, draw):
    """On matrices that are blocks from the first, or by columns, of several numbers of rows."""
    source = draw(loops(), label="loop")
    k = draw(st.sampled_from((1, 2, 31, 33, 64, 65)), label="k")
    n = 2 * k + draw(st.sampled_from((0, 1, 33)), label="n")
    seed = draw(st.integers(0, 99), label="seed")
    hub = draw(st.sampled_from((0, n)), label="hub")
    graph = random_graph(n, 2, seed % 2 == 0, seed, hub)
    if draw(st.booleans(), label="one value"):
        graph = graph.apply("times", 0).new().apply("plus", 3).new()
    run = load(source, Path(tempfile.mkdtemp()) / "body.py")

    def end(A):
        rng = np.random.default_rng(seed)
        made = []
        for kind in NAMES.values():
            where = np.nonzero(rng.random((k, n)) < rng.choice([0, 0.1, 0.5]))
            values = rng.integers(0, 4, len(where[0])).astype(kind.numpy)
            made.append(Matrix.from_coo(*where, values, kind, nrows=k, ncols=n, like=A))
        run(A, *made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "MOST_DEGREE", 0)
        found = end(graph.to(backend))
        if backend.name != "cpu":
            assert loop_name(backend) in (GENERATED, "no iteration"), backend.last_loop
    with lagpu.eager():
        eager = end(graph.to(backend))
    expected = end(graph)
    for name, x, y, z in zip(NAMES, found, eager, expected, strict=True):
        assert x.to("cpu").isequal(z), (name, x.to_coo(), z.to_coo())
        assert y.to("cpu").isequal(z), (name, y.to_coo(), z.to_coo())
        assert x.nvals == z.nvals


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_programs(arch, traced, monkeypatch):
    """Some of them, and with the log of a trace."""
    kernels, real = [], program.from_source
    told = lambda *args, **macros: kernels.append(real(*args, **macros)) or kernels[-1]  # noqa: E731
    monkeypatch.setattr(program, "from_source", told)
    monkeypatch.setattr(policy, "MOST_DEGREE", 0)
    place = lagpu.backends.get("sim")
    A = random_graph(70, 2).to(place)
    every = (("distances", 3), ("counts", 3), ("by value", 3), ("by value", 33))
    chosen = every if arch == "sm_90" else (("filled", 3),)
    for name, k in chosen:
        with lagpu.trace() if traced else contextlib.nullcontext():
            LOOPS[name](k)(A)
        assert loop_name(place) == PROGRAM
    assert len(kernels) == len(chosen)
    for kernel in kernels:
        macros = dict(kernel.macros) | {"LG_BLOCK": str(program.BLOCK)}
        made = dataclasses.replace(kernel, macros=tuple(macros.items()))
        assert ("LG_LOG" in macros) == traced
        assert nvrtc_compile(made, arch)
