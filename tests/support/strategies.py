"""What tests and the soak draw: types, operators, small vectors and matrices; and `for_all`.

A backend that compiles (sim, gpu) pays for each new combination of operators and types, so there
combinations come from a pool; on cpu they are drawn from all of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from reference import How, PlainMatrix, PlainVector
from samples import picked

from lagpu import BOOL, FP64, INT32, dtypes
from lagpu.algebra.operators import BinaryOp, Monoid, Semiring
from lagpu.algebra.tables import binary, indexunary, monoid, semiring, unary
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import DType

Draw: TypeAlias = Callable[..., Any]
"""``data.draw`` of Hypothesis."""


class Failed(Exception):
    """A drawn program gave a wrong answer; the message is a test to paste."""


TYPES = dtypes.ALL
SIZES = (0, 1, 2, 3, 5, 8, 31, 32, 33, 65)
BIG_SIZES = (1023, 1024, 1025)

_TAMEST = 64
_INTEGERS = (0, 0, 1, 1, 2, 3, 5, 7)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.25, -7.0, 3.0, float("inf"), float("-inf"), float("nan"))
#: The values of each type, special ones among them.
VALUES: dict[str, tuple[Any, ...]] = {
    "BOOL": (False, True),
    "INT32": (*_INTEGERS, -1, -4, 2**31 - 1, -(2**31)),
    "INT64": (*_INTEGERS, -1, -4, 2**40, 2**63 - 1, -(2**63)),
    "UINT32": (*_INTEGERS, 2**31, 2**32 - 1),
    "UINT64": (*_INTEGERS, 2**63 + 2**12, 2**64 - 1),
    "FP32": (*_FLOATS, 1e30, 2.0**-149),
    "FP64": (*_FLOATS, 1e300, 2.0**-1074),
}


def _built_in(table: Any) -> tuple[Any, ...]:
    """Return the rows whose functor is in ``common/algebra.cuh``, and that no test registered."""

    def has_text(row: Any) -> bool:
        parts = (row, *(getattr(row, part, None) for part in ("op", "multiply")))
        return any(getattr(part, "body", "") for part in (*parts, getattr(row, "monoid", row)))

    return tuple(row for row in table if not (has_text(row) or row.name.startswith("test_")))


UNARY = _built_in(unary)
BINARY = tuple(op for op in _built_in(binary) if not op.positional)
INDEXUNARY = _built_in(indexunary)
SELECTORS = tuple(op for op in INDEXUNARY if op.result(BOOL) is BOOL)
MONOIDS = _built_in(monoid)
#: Without those that cast each product, as plus_land does, which Numba compiles for cpu.
SEMIRINGS = tuple(s for s in _built_in(semiring) if not s.casts)
ACCUMS: tuple[BinaryOp | None, ...] = (
    None,
    None,
    *(getattr(binary, n) for n in ("plus", "min", "second", "times", "lor", "minus")),
)


def chosen_together(
    draw: Draw, pool: int, generator: random.Random, **choices: Sequence[Any]
) -> dict[str, Any]:
    """Draw one of each choice.

    Parameters
    ----------
    draw : callable
        ``data.draw``.
    pool : int
        If not 0, the result is one of so many combinations.
    generator : random.Random
        Makes the pool; the same state gives the same pool.
    **choices : sequence
        The values of each name.
    """
    if not pool:
        return {name: draw(st.sampled_from(values)) for name, values in choices.items()}
    made = [{k: generator.choice(values) for k, values in choices.items()} for _ in range(pool)]
    chosen: dict[str, Any] = draw(st.sampled_from(made))
    return dict(chosen)


def inexact(op: Semiring, left: DType, right: DType) -> bool:
    """Return True if the order of a float sum shows, so that a cast to an integer may differ."""
    return op.multiply.name == "truediv" or not op.monoid.is_exact(op.types(left, right)[1])


def is_tame(x: Any, monoid: str) -> bool:
    """Return True if sums of such values are exact in any order, in FP32 too.

    `monoid` is plus or times, the two whose rounding shows the order of a sum of floats; a sum of
    large values may cancel until only that is left. An empty string allows all values.
    """
    if not monoid:
        return True
    x = float(x)
    if monoid == "times":
        return math.isnan(x) or x in (0, 1, -1)
    return not math.isfinite(x) or (abs(x) <= _TAMEST and (4 * x).is_integer())


def summed(monoid: Monoid, dtype: DType) -> str:
    """Return what `is_tame` needs to know of a sum of `dtype`."""
    return "" if monoid.is_exact(dtype) else monoid.name


def plain_vector(draw: Draw, size: int, dtype: DType, tame: str = "") -> PlainVector:
    """Draw a vector: empty, sparse or full; see `is_tame`."""
    generator = _generator(draw)
    density = draw(st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)))
    indices = np.flatnonzero(generator.random(size) < density)
    values = _values(generator, dtype, len(indices), tame)
    return PlainVector(size, dtype, dict(zip(indices.tolist(), values, strict=True)))


def plain_matrix(
    draw: Draw,
    nrows: int,
    ncols: int,
    dtype: DType,
    *,
    iso: bool = False,
    most: int | None = None,
    tame: str = "",
) -> PlainMatrix:
    """Draw a matrix, of `most` entries at most, all of one value if `iso`; see `is_tame`."""
    generator = _generator(draw)
    density = draw(st.sampled_from((0.0, 0.05, 0.3, 1.0)))
    rows, cols = np.nonzero(generator.random((nrows, ncols)) < density)
    if most is not None and len(rows) > most:
        kept = np.sort(generator.choice(len(rows), most, replace=False))
        rows, cols = rows[kept], cols[kept]
    values = _values(generator, dtype, 1 if iso else len(rows), tame)
    where = zip(rows.tolist(), cols.tolist(), strict=True)
    return PlainMatrix(
        nrows, ncols, dtype, dict(zip(where, np.resize(values, len(rows)), strict=True))
    )


def _generator(draw: Draw) -> np.random.Generator:
    return np.random.default_rng(draw(st.integers(0, 2**16)))


def _values(generator: np.random.Generator, dtype: DType, count: int, tame: str) -> Any:
    values = np.array([x for x in VALUES[dtype.name] if is_tame(x, tame)], dtype.numpy)
    return values[generator.integers(0, len(values), count)]


def vector(plain: PlainVector, backend: Backend | str) -> Vector:
    """Return the lagpu vector of a `PlainVector`."""
    indices = np.array(list(plain.entries), np.int64)
    values = np.array(list(plain.entries.values()), plain.dtype.numpy)
    return Vector.from_coo(indices, values, plain.dtype, size=plain.size, backend=backend)


def matrix(plain: PlainMatrix, backend: Backend | str) -> Matrix:
    """Return the lagpu matrix of a `PlainMatrix`, iso-valued if all its entries are the same."""
    rows = np.array([i for i, _ in plain.entries], np.int64)
    cols = np.array([j for _, j in plain.entries], np.int64)
    values = np.array(list(plain.entries.values()), plain.dtype.numpy)
    if len(values) and (values == values[0]).all():
        values = values[0]
    return Matrix.from_coo(
        rows, cols, values, plain.dtype, nrows=plain.nrows, ncols=plain.ncols, backend=backend
    )


# ---- properties on each backend

POOL = 16
#: A plain run takes one in so many examples, the exhaustive one all; of few each takes `FEW`.
EACH = [6, *picked([1], rest="exhaustive")]
FEW = 4
COMPILED = 2  # each example may compile kernels of its own: a plain run takes one in so many of it


def for_all(cpu=150, compiled=24):
    """Run ``check(backend, draw)`` on drawn data: so many times on cpu, or where it compiles.

    These are the counts of the exhaustive run.
    """

    def decorate(check):
        @pytest.mark.parametrize("every", EACH)
        def test(backend, every):
            def inner(data):
                check(backend, data.draw)

            inner.__name__ = check.__name__  # so that each keeps its own examples
            most, part = (compiled, COMPILED) if backend.capabilities.kernels else (cpu, 1)
            count = most if every == 1 else max(most // every, min(most, FEW)) // part
            quiet = hypothesis.settings(
                max_examples=count, suppress_health_check=list(hypothesis.HealthCheck)
            )
            quiet(hypothesis.given(data=st.data())(inner))()

        test.__name__, test.__module__ = check.__name__, check.__module__
        return test

    return decorate


def combination(draw, backend, **choices):
    """Draw one of each choice, on a compiling backend as one of a fixed pool of combinations."""
    pool = POOL if backend.capabilities.kernels else 0
    return chosen_together(draw, pool, random.Random(",".join(choices)), **choices)


def updater(C, how, backend, make=None):
    """``C(mask, accum, replace)``, the mask made by `make`."""
    mask = how.mask and (make or matrix)(how.mask, backend)
    return C(mask_of(how, mask), accum=how.accum, replace=how.replace)


def mask_of(how, m):
    """The mask of a lagpu vector that `how` describes, or None."""
    if m is None:
        return None
    mask = m.S if how.structure else m.V
    return ~mask if how.complement else mask


def sizes():
    return st.sampled_from(SIZES)


def how_written(draw, size, accum, *, masks=(None, "S", "V", "~S", "~V")):
    """Draw mask, complement and replace; the mask has zeros among its values."""
    kind = draw(st.sampled_from(masks))
    replace = draw(st.booleans())
    if kind is None:
        return How(accum=accum)
    dtype = draw(st.sampled_from((BOOL, INT32, FP64)))
    mask = plain_vector(draw, size, dtype)
    return How(mask, "S" in kind, "~" in kind, accum, replace)


def how_matrix_written(draw, shape, accum):
    """Draw mask, complement and replace for a matrix."""
    kind = draw(st.sampled_from((None, "S", "V", "~S", "~V")))
    replace = draw(st.booleans())
    if kind is None:
        return How(accum=accum)
    dtype = draw(st.sampled_from((BOOL, INT32, FP64)))
    mask = plain_matrix(draw, *shape, dtype, iso=draw(st.booleans()))
    return How(mask, "S" in kind, "~" in kind, accum, replace)
