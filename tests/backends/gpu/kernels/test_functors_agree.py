"""Rows of the operator tables have the identity, the end and the idempotence of their functors."""

import numpy as np
import pytest

from lagpu import BOOL, FP32, FP64, INT32, binary, monoid
from lagpu.algebra.operators import Monoid
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.kernels import Prelude, from_source


def flags(lines, count, ctype="i32", dtype=np.int32, prelude=""):
    """Return what lines of C++ write to ``out`` on the sim device."""
    text = "\n".join(
        [
            '#include "common/algebra.cuh"',
            prelude,
            f'extern "C" __global__ void flags({ctype}* out) {{',
            "if (global_thread() != 0) return;",
            *lines,
            "}",
        ]
    )
    out = np.zeros(count, dtype)
    SimDevice().launch(from_source(text, "flags"), 1, out)
    return out


@pytest.mark.parametrize("dtype", [BOOL, INT32, FP64], ids=str)
def test_a_monoid_has_the_identity_and_the_end_of_its_functor(dtype):
    rows = [m for m in monoid if not m.registered and dtype in m]
    prelude = Prelude()
    functors = [prelude.functor(m) for m in rows]
    kinds = [m.types(dtype)[1] for m in rows]
    lines = []
    for k, (m, z, functor) in enumerate(zip(rows, kinds, functors, strict=True)):
        lines.append(f"out[{2 * k}] = f64({functor}::identity<{z.ctype}>());")
        end = m.terminal(z) if m.terminal is not None else m.identity(z)
        number = {np.inf: "Limits<f64>::largest()", -np.inf: "Limits<f64>::smallest()"}
        text = number.get(float(end), repr(float(end)))
        lines.append(f"out[{2 * k + 1}] = {functor}::is_terminal<{z.ctype}>({z.ctype}({text}));")
    found = flags(lines, 2 * len(rows), "f64", np.float64, prelude.text).reshape(-1, 2)
    for m, z, (identity, ends) in zip(rows, kinds, found, strict=True):
        if not m.has_any_terminal:  # the identity of `any` is never seen
            assert float(m.identity(z)) == identity, m.name
        assert bool(ends) == (m.terminal is not None or m.has_any_terminal), m.name


@pytest.mark.parametrize("m", [m for m in monoid if not m.registered], ids=lambda m: m.name)
def test_an_idempotent_monoid_keeps_equal_values(m):
    z = m.types(INT32)[1]
    keeps = all(m.op.evaluate(z, z.numpy.type(x), z.numpy.type(x)) == x for x in (0, 1, 2))
    assert m.idempotent == (
        keeps
        if not z.is_bool
        else all(m.op.evaluate(z, z.numpy.type(x), z.numpy.type(x)) == bool(x) for x in (0, 1))
    )


@pytest.mark.parametrize("like", [monoid.min, monoid.max], ids=str)
def test_an_operator_with_text_takes_the_identity_of_each_type(like):
    m = Monoid("of_text", binary.hypot, like.identity, terminal=like.terminal, registered=True)
    prelude = Prelude()
    functor = prelude.functor(m)
    lines = [
        f"out[0] = f64({functor}::identity<f32>());",
        f"out[1] = {functor}::is_terminal<f64>(f64({functor}::identity<f64>() * -1));",
    ]
    found = flags(lines, 2, "f64", np.float64, prelude.text)
    assert found.tolist() == [float(like.identity(FP32)), 1]
