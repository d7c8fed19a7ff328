"""Sweeps over k rows, as the tests of per-source sweeps run them."""

import numpy as np
import pytest
from loop_names import PER_SOURCE_SWEEP, how_it_ran

import lagpu
from lagpu import FP64, Matrix, binary, semiring, sweep
from lagpu.backends.gpu.fused import search_many as policy

FUSED = PER_SOURCE_SWEEP


def fuses(backend):
    return backend.capabilities.fuses


@pytest.fixture(autouse=True)
def of_any_degree(monkeypatch):
    """Sweep per source whatever the matrix."""
    monkeypatch.setattr(policy, "MOST_DEGREE", 10**6)


def deleting(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << here
        delta(here.S) << 7
        pulled(above.S, replace=True) << semiring.any_pair(share @ A.T)
        paths(above.S) << pulled


def random_block(k, n, dtype, backend, rng, part, name):
    """A matrix with so great a part of its entries."""
    where = np.nonzero(rng.random((k, n)) < part)
    found = rng.integers(1, 6, len(where[0])).astype(dtype.numpy)
    return Matrix.from_coo(*where, found, dtype, nrows=k, ncols=n, backend=backend, name=name)


def operands(k, n, dtype, backend, seed, blank=True):
    """paths and delta with most entries; share and pulled with some, or with none if `blank`."""
    rng = np.random.default_rng(seed)
    parts = {"paths": 0.9, "delta": 0.8, "share": 0 if blank else 0.5, "pulled": 0 if blank else 1}
    return [random_block(k, n, dtype, backend, rng, part, of) for of, part in parts.items()]


def same(x, y):
    if x.dtype is not FP64:
        return x.isequal(y)
    mine, other = x.to_coo(), y.to_coo()
    return all(np.array_equal(mine[k], other[k]) for k in (0, 1)) and np.allclose(
        mine[2], other[2], rtol=1e-12, atol=0
    )


def compare(body, A, levels, made):
    """Run a body as it comes and eagerly; return how the first ran."""
    fused, eager = ([v.dup() for v in made] for _ in range(2))
    body(A, levels, *fused)
    ran = how_it_ran(A.backend)
    with lagpu.eager():
        body(A, levels, *eager)
    for x, y in zip(fused, eager, strict=True):
        assert x.nvals == y.nvals, (body.__name__, x.name)
        assert same(x, y), (body.__name__, x.name)
    for x in (fused, eager):  # what is left behind serves the next statement
        x[0](x[3].S, accum=binary.second) << x[2]
    assert same(fused[0], eager[0])
    return ran
