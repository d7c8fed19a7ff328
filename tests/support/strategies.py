"""Random vectors, masks, matrices, operators; and `for_all`, which runs a property on a backend.

A backend that compiles (sim, gpu) pays for each new combination of operators and types, so there
combinations come from a fixed pool; on cpu they are drawn from all of them.
"""

import random

import hypothesis
import numpy as np
from hypothesis import strategies as st
from reference import Grid, How, Plain

import lagpu
from lagpu import Matrix, Vector, dtypes

SIZES = (0, 1, 2, 3, 5, 8, 31, 32, 33, 65)
BIG_SIZES = (1023, 1024, 1025)
POOL = 16

_INTEGERS = (0, 0, 1, 1, 2, 3, 5, 7)
_FLOATS = (0.0, 0.0, 1.0, -1.0, 0.5, 2.25, -7.0, 3.0)
VALUES = {
    "BOOL": (False, True),
    "INT32": (*_INTEGERS, -1, -4, 2**31 - 1, -(2**31)),
    "INT64": (*_INTEGERS, -1, -4, 2**40, 2**63 - 1, -(2**63)),
    "UINT32": (*_INTEGERS, 2**31, 2**32 - 1),
    "UINT64": (*_INTEGERS, 2**63 + 2**12, 2**64 - 1),
    "FP32": (*_FLOATS, float("inf"), float("-inf"), float("nan"), 1e30),
    "FP64": (*_FLOATS, float("inf"), float("-inf"), float("nan"), 1e300),
}

# The table as lagpu ships it: a test module may register more.


def _built_in(table):
    """The rows that no test has registered, whichever files were collected before."""
    return tuple(row for row in table if not row.name.startswith("test_"))


UNARY = _built_in(lagpu.unary)
BINARY = tuple(op for op in _built_in(lagpu.binary) if not op.positional)
INDEXUNARY = _built_in(lagpu.indexunary)
SELECTORS = tuple(op for op in INDEXUNARY if op.result(lagpu.BOOL) is lagpu.BOOL)
MONOIDS = _built_in(lagpu.monoid)
SEMIRINGS = _built_in(lagpu.semiring)


def for_all(cpu=150, compiled=24):
    """Run ``check(backend, draw)`` on drawn data: so many times on cpu, or where it compiles."""

    def decorate(check):
        def test(backend):
            def inner(data):
                check(backend, data.draw)

            inner.__name__ = check.__name__  # so that each keeps its own examples
            count = cpu if backend.name == "cpu" else compiled
            quiet = hypothesis.settings(
                max_examples=count, suppress_health_check=list(hypothesis.HealthCheck)
            )
            quiet(hypothesis.given(data=st.data())(inner))()

        test.__name__, test.__module__ = check.__name__, check.__module__
        return test

    return decorate


def combination(draw, backend, **choices):
    """Draw one of each choice, on a compiling backend as one of a fixed pool of combinations."""
    if backend.name == "cpu":
        return {name: draw(st.sampled_from(values), label=name) for name, values in choices.items()}
    generator = random.Random(",".join(choices))
    pool = [
        {name: generator.choice(values) for name, values in choices.items()} for _ in range(POOL)
    ]
    return draw(st.sampled_from(pool), label="combination")


def sizes():
    return st.sampled_from(SIZES)


def _generator(draw):
    return np.random.default_rng(draw(st.integers(0, 2**16), label="seed"))


def _values(generator, dtype, count):
    chosen = generator.integers(0, len(VALUES[dtype.name]), count)
    return np.array(VALUES[dtype.name], dtype.numpy)[chosen]


def plain_vector(draw, size, dtype):
    """Draw a vector: empty, sparse or full."""
    generator = _generator(draw)
    density = draw(st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)), label="density")
    indices = np.flatnonzero(generator.random(size) < density)
    values = _values(generator, dtype, len(indices))
    return Plain(size, dtype, dict(zip(indices.tolist(), values, strict=True)))


def plain_matrix(draw, nrows, ncols, dtype, *, iso=False, most=None):
    """Draw a matrix, of `most` entries at most; `iso` gives all entries one value."""
    generator = _generator(draw)
    density = draw(st.sampled_from((0.0, 0.05, 0.3, 1.0)), label="density")
    rows, cols = np.nonzero(generator.random((nrows, ncols)) < density)
    if most is not None and len(rows) > most:
        kept = np.sort(generator.choice(len(rows), most, replace=False))
        rows, cols = rows[kept], cols[kept]
    values = _values(generator, dtype, 1 if iso else len(rows))
    where = zip(rows.tolist(), cols.tolist(), strict=True)
    return Grid(nrows, ncols, dtype, dict(zip(where, np.resize(values, len(rows)), strict=True)))


def how_written(draw, size, accum, *, masks=(None, "S", "V", "~S", "~V")):
    """Draw mask, complement and replace; the mask has zeros among its values."""
    kind = draw(st.sampled_from(masks), label="mask")
    replace = draw(st.booleans(), label="replace")
    if kind is None:
        return How(accum=accum, replace=replace)
    dtype = draw(st.sampled_from((lagpu.BOOL, lagpu.INT32, lagpu.FP64)), label="mask type")
    mask = plain_vector(draw, size, dtype)
    return How(mask, "S" in kind, "~" in kind, accum, replace)


def how_matrix_written(draw, shape, accum):
    """Draw mask, complement and replace for a matrix."""
    kind = draw(st.sampled_from((None, "S", "V", "~S", "~V")), label="mask")
    replace = draw(st.booleans(), label="replace")
    if kind is None:
        return How(accum=accum, replace=replace)
    dtype = draw(st.sampled_from((lagpu.BOOL, lagpu.INT32, lagpu.FP64)), label="mask type")
    mask = plain_matrix(draw, *shape, dtype, iso=draw(st.booleans(), label="iso mask"))
    return How(mask, "S" in kind, "~" in kind, accum, replace)


def updater(C, how, backend, make=None):
    """``C(mask, accum, replace)``, the mask made by `make`."""
    mask = how.mask and (make or matrix)(how.mask, backend)
    return C(mask_of(how, mask), accum=how.accum, replace=how.replace)


def vector(plain, backend):
    """The lagpu vector of a `Plain`."""
    indices = np.array(list(plain.entries), np.int64)
    values = np.array(list(plain.entries.values()), plain.dtype.numpy)
    return Vector.from_coo(indices, values, plain.dtype, size=plain.size, backend=backend)


def matrix(grid, backend):
    """The lagpu matrix of a `Grid`, iso-valued if all its entries are the same."""
    rows = np.array([i for i, _ in grid.entries], np.int64)
    cols = np.array([j for _, j in grid.entries], np.int64)
    values = np.array(list(grid.entries.values()), grid.dtype.numpy)
    if len(values) and (values == values[0]).all():
        values = values[0]
    return Matrix.from_coo(
        rows, cols, values, grid.dtype, nrows=grid.nrows, ncols=grid.ncols, backend=backend
    )


def mask_of(how, m):
    """The mask of a lagpu vector that `how` describes, or None."""
    if m is None:
        return None
    mask = m.S if how.structure else m.V
    return ~mask if how.complement else mask


ACCUMS = (
    None,
    None,
    *(getattr(lagpu.binary, n) for n in ("plus", "min", "second", "times", "lor", "minus")),
)
TYPES = dtypes.ALL
