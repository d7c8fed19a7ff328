"""`for_all`, which runs a property on a backend, and what tests draw for it."""

import random

import hypothesis
import pytest
from hypothesis import strategies as st
from samples import picked

from lagpu import BOOL, FP64, INT32
from lagpu.selftest.reference import How
from lagpu.selftest.soak import draw as drawn
from lagpu.selftest.soak.draw import (  # noqa: F401
    ACCUMS,
    BIG_SIZES,
    BINARY,
    INDEXUNARY,
    MONOIDS,
    SELECTORS,
    SEMIRINGS,
    SIZES,
    TYPES,
    UNARY,
    VALUES,
    matrix,
    plain_matrix,
    plain_vector,
    vector,
)

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
    return drawn.combination(draw, pool, random.Random(",".join(choices)), **choices)


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
