"""Selection matrices: their operands, and loops that use them."""

import numpy as np

from lagpu import INT64, Vector, binary, loop


def scatter_all(P, u, w, m, op):
    for _ in loop(times=2):
        w << op(P @ u)
        w(m.V, accum=binary.max) << op(u @ P.T)
        u(~m.S) << op(P @ u)


def shortcut(f, op):
    """Each statement writes what the view is of."""
    n = f.size
    for _ in loop(until_unchanged=f):
        f << op(f @ f.selection(nrows=n))


def shortcut_by_name(f, op):
    P = f.selection()
    for _ in loop(until_unchanged=f):
        f << op(f @ P)


def operands(place, n, kind, dtype):
    rng = np.random.default_rng(n)
    f = rng.integers(-2, n + 3, n)
    if kind == "hub":
        f[:] = n // 2
    kept = np.flatnonzero(rng.random(n) < 0.7) if kind != "empty" else np.arange(0)
    f = Vector.from_coo(kept, f[kept], INT64, size=n, backend=place)
    values = rng.integers(0, 5, n).astype(dtype.numpy)
    u = Vector.from_coo(np.flatnonzero(values), values[values != 0], size=n, backend=place)
    m = Vector.from_coo(np.arange(0, n, 2), np.arange(0, n, 2) % 3, size=n, backend=place)
    return f, u, Vector(dtype, n, backend=place), m
