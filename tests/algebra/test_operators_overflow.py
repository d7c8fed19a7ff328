"""Integers that overflow in registered operators wrap on every backend (types, rule 10)."""

import functools
import itertools

import numpy as np
import pytest
from loop_names import GENERATED, loop_name
from samples import sampled

from lagpu import (
    INT32,
    INT64,
    UINT32,
    UINT64,
    Matrix,
    Scalar,
    Vector,
    binary,
    loop,
    monoid,
    semiring,
)

FUNCTIONS = {
    "plus": (lambda x, y: x + y, "x + y", 0),
    "minus": (lambda x, y: x - y, "x - y", None),
    "times": (lambda x, y: x * y, "x * y", 1),
    "all three": (lambda x, y: x * y - x + 3 * y, "x * y - x + 3 * y", None),
}


@functools.cache
def ours(name):
    """The operator; registered by the first test, since tests of the tables take all that are."""
    python, cuda, _ = FUNCTIONS[name]
    return binary.register(f"wrapping_{name.replace(' ', '_')}", python, cuda)


@functools.cache
def our_monoid(name):
    return monoid.register(f"wrapping_{name}", ours(name), FUNCTIONS[name][2])


@functools.cache
def our_semiring():
    return semiring.register(our_monoid("plus"), ours("times"))


TYPES = (INT32, INT64, UINT32, UINT64)


def pairs(dtype):
    """Each pair of extremes and of what is near them."""
    low, high = int(dtype.smallest), int(dtype.largest)
    signed = () if low == 0 else (-2, -1, low // 2)
    values = (low, low + 1, *signed, 0, 1, 2, 3, high // 3, high // 2, high - 1, high)
    both = list(itertools.product(values, repeat=2))
    return (np.array([pair[side] for pair in both], dtype.numpy) for side in (0, 1))


def exact(name, x, y, dtype):
    """What the function gives without overflow, brought into the type: a definition of wrapping."""
    function = FUNCTIONS[name][0]
    found = [function(a, b) % 2 ** (8 * dtype.numpy.itemsize) for a, b in zip(x, y, strict=True)]
    return np.array(found, np.uint64).astype(dtype.numpy)


def accumulate(w, op, v):  # without assert, so that pytest leaves its code alone
    for _ in loop(times=1):
        w(accum=op) << v


@pytest.mark.few_on_sim(3)
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "dtype"), sampled(itertools.product(FUNCTIONS, TYPES), 3), ids=str
)
def test_results_wrap(backend, name, dtype):
    x, y = pairs(dtype)
    right, op = exact(name, x.tolist(), y.tolist(), dtype).tolist(), ours(name)
    assert op.evaluate(dtype, x, y).tolist() == right
    u, v = (Vector.from_dense(values, backend=backend) for values in (x, y))
    assert u.ewise_mult(v, op).new().to_dense().tolist() == right
    w = u.dup()
    w(accum=op) << v
    assert w.to_dense().tolist() == right
    w = u.dup()
    accumulate(w, op, v)
    assert w.to_dense().tolist() == right
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TYPES, ids=repr)
@pytest.mark.parametrize("name", ["plus", "times"])
def test_sums_wrap(backend, name, dtype):
    x, y = pairs(dtype)
    op = our_monoid(name)
    for a, b in ((x, y), (x[-3:], y[-3:])):
        terms = np.concatenate((a, b)).tolist()
        total = terms[0]
        for term in terms[1:]:
            total = int(exact(name, [total], [term], dtype)[0])
        u = Vector.from_dense(np.array(terms, dtype.numpy), backend=backend)
        assert u.reduce(op).new().value == total
        s = Scalar(dtype, terms[0])
        for term in terms[1:]:
            s(accum=ours(name)) << Vector.from_dense(np.array([term], dtype.numpy), like=u)[0]
        assert s.value == total


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("dtype", TYPES, ids=repr)
def test_products_wrap(backend, dtype):
    x, y = pairs(dtype)
    k, sums = len(x), our_semiring()
    A = Matrix.from_coo(range(k), [0] * k, x, dtype, nrows=k, ncols=1, backend=backend)
    u = Vector.from_dense(y, like=A)
    right = sum(a * b for a, b in zip(x.tolist(), y.tolist(), strict=True))
    right = int(np.array(right % 2 ** (8 * dtype.numpy.itemsize), np.uint64).astype(dtype.numpy))
    assert sums(u @ A).new()[0].new().value == right
    assert sums(A.T @ A).new().nvals == 1
    assert sums(A.T @ u).new()[0].new().value == right


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_exponents_beyond_an_int_of_c(backend, dtype):
    """C does not define the cast of such a float, or of NaN, to the exponent of ldexp."""
    kind = np.float32 if dtype == "FP32" else np.float64
    exponents = np.array([np.nan, np.inf, -np.inf, 2.0**31, -1e10, 1e30, 3.7, -3.7], kind)
    y = Vector.from_dense(exponents, backend=backend)
    x = Vector.from_dense(np.full(8, 3, kind), like=y)
    wanted = [3, np.inf, 0, np.inf, 0, np.inf, 24, 0.375]
    assert x.ewise_mult(y, binary.ldexp).new().to_dense().tolist() == wanted
    assert binary.ldexp.evaluate(x.dtype, np.full(8, 3, kind), exponents).tolist() == wanted
