"""Loops that run as generated loops, and random bodies of them as text."""

import importlib.util

import numpy as np
from hypothesis import strategies as st

from lagpu import BOOL, FP64, INT32, INT64, Matrix, binary, loop, semiring, unary


def random_graph(n, m, backend, seed=1, directed=True):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, m), rng.integers(0, n, m)
    rows[: m // 4] = n // 2  # a hub
    if not directed:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    values = np.arange(len(rows)) % 7 + 1
    return Matrix.from_coo(
        rows, cols, values, INT64, nrows=n, ncols=n, dup_op=binary.first, backend=backend
    )


def components(A, label):
    for _ in loop(until_unchanged=label):
        label(accum=binary.min) << semiring.min_second(A @ label)


def within(A, reached, frontier, k):
    for depth in loop(times=k):
        reached(frontier.S) << depth
        frontier << semiring.any_pair(frontier @ A)


def walks(A, x, total, k):
    for _ in loop(times=k):
        x << semiring.plus_times(x @ A)
        total(accum=binary.plus) << x


def relax(A, d, changed, new):
    for _ in loop(until_empty=changed):
        new << semiring.min_plus(changed @ A)
        changed << new.ewise_mult(d, binary.lt)
        changed(changed.V, replace=True) << new
        changed(~d.S) << new
        d(accum=binary.min) << new


def normalise(A, x, y, k):
    for _ in loop(times=k):
        y(~x.V, replace=True) << 7
        y << x.apply(binary.minus, right=1)
        x(y.V, accum=binary.plus) << y.apply(unary.abs)
        x(x.S, replace=True) << x.ewise_union(y, binary.max, left_default=0, right_default=3)
        y << semiring.max_plus(A @ x)


# Sizes at which a warp of a program takes 2, 4 and 32 words at once; on a GPU 2 and 32.
TILED = {"sim": (2049, 4127, 33_001), "gpu": (300_001, 4_400_001), "cpu": ()}


NAMES = {"x": INT64, "y": INT64, "z": INT32, "b": BOOL, "f": FP64}


PRODUCTS = (
    "plus_times",
    "min_plus",
    "max_second",
    "any_pair",
    "plus_first",
    "lor_land",
    "min_first",
)


WHOLE = ("x", "y", "z", "b")  # sums of floats depend on their order


@st.composite
def ways_to_write(draw, m):
    """How an output is written: nothing, or a mask of `m`, an accumulator, replace."""
    mask = draw(st.sampled_from(("", f"{m}.S", f"~{m}.S", f"{m}.V", f"~{m}.V")))
    accum = draw(st.sampled_from(("", "accum=binary.min", "accum=binary.plus", "accum=binary.max")))
    replace = "replace=True" if mask and draw(st.booleans()) else ""
    return ", ".join(x for x in (mask, accum, replace) if x)


def load(source, path):
    """The function `run` of a source file that stays, as a fuser wants to read it."""
    path.write_text(
        "from lagpu import binary, indexunary, loop, semiring, unary\n\n\n" + source, "utf-8"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run
