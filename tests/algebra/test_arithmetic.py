"""Operators with the text of their functor: python-graphblas, NumPy's meaning and C++ agree."""

import itertools
import math

import numpy as np
import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile
from samples import picked
from strategies import TYPES

from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, binary, loop, monoid, semiring, unary
from lagpu.algebra.operators import BinaryOp, UnaryOp
from lagpu.backends.gpu.kernels import Prelude, from_source
from lagpu.dtypes import cast
from lagpu.errors import DomainMismatch

gb = pytest.importorskip("graphblas")  # a dependency of the cpu backend

INTEGERS = (0, 1, 2, 3, 7, 31, 33, 64)
SPECIAL = {
    "BOOL": (False, True),
    "INT32": (*INTEGERS, -1, -2, -7, 2**31 - 1, -(2**31)),
    "INT64": (*INTEGERS, -1, -2, -7, 2**40, 2**63 - 1, -(2**63)),
    "UINT32": (*INTEGERS, 2**32 - 1),
    "UINT64": (*INTEGERS, 2**64 - 1),
    "FP32": (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 7.25, np.inf, -np.inf, np.nan),
    "FP64": (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e300, np.inf, -np.inf, np.nan),
}
WITH_TEXT = [op for op in (*unary, *binary) if op.body and not op.cuda.startswith("User_")]
#: Where python-graphblas has Numba compile an operator, it divides by zero into memory that nothing
#: wrote, and a power or a count of ways may overflow: such pairs are not compared.
FREE = {
    "floordiv": lambda x, y: y == 0 or is_overflow(x, y),
    "rfloordiv": lambda x, y: x == 0 or is_overflow(y, x),
    "mod": lambda x, y: y in (0, -1),  # it divides the least number by -1, which ends Python
    "binom": lambda n, k: abs(float(n)) > 40,
    "ldexp": lambda x, y: not abs(float(y)) < 2**31,  # C casts it to int
}


def is_overflow(x, y):
    """Return True for -2**63 // -1, for which Numba says 0."""
    return x.dtype == np.int64 and int(x) == -(2**63) and y == -1


def operands(op, dtype):
    """All special values, or all pairs of them, as arrays of the type."""
    values = np.array(SPECIAL[dtype.name], dtype.numpy)
    if isinstance(op, UnaryOp):
        return (values,)
    pairs = itertools.product(values, repeat=2)
    free = FREE.get(op.name, lambda x, y: False)
    x, y = zip(*((x, y) for x, y in pairs if not free(x, y)), strict=True)
    return np.array(x, dtype.numpy), np.array(y, dtype.numpy)


def close(got, wanted, dtype):
    """Return where two arrays differ by more than the last bits; zeros have no sign here."""
    if not dtype.is_float:
        return ~(got == wanted)
    with np.errstate(all="ignore"):
        return ~np.isclose(
            got, wanted, rtol=2e-6 if dtype.name == "FP32" else 1e-12, equal_nan=True
        )


def python_graphblas(op):
    module = gb.binary if isinstance(op, BinaryOp) else gb.unary
    if op.name == "mod":  # Python's, which python-graphblas has as NumPy's alone
        return gb.binary.numpy.mod
    return getattr(module.ss if op.name in dir(module.ss) else module, op.name)


def called(op, arrays, library):
    if library is gb:
        vectors = [gb.Vector.from_dense(x) for x in arrays]
        found = python_graphblas(op)
        call = found(vectors[0] & vectors[1]) if len(arrays) == 2 else found(vectors[0])
        return call.new().to_coo()[1]
    vectors = [Vector.from_dense(x, backend=library) for x in arrays]
    call = vectors[0].ewise_mult(vectors[1], op) if len(arrays) == 2 else vectors[0].apply(op)
    return call.new().to_coo()[1]


EVERY_TYPE = pytest.mark.parametrize("dtype", TYPES, ids=str)
#: For each type Numba compiles some operators.
SOME_TYPES = pytest.mark.parametrize("dtype", picked(TYPES[1:], INT32, FP64), ids=str)


def differing(op, arrays, got, wanted, dtype):
    """Return what differs, as a list of one entry, or an empty list."""
    wrong = close(got, wanted, dtype)
    return [(op, *(x[wrong] for x in arrays), got[wrong], wanted[wrong])] if wrong.any() else []


@SOME_TYPES
def test_the_numpy_meaning_is_that_of_the_c_library(dtype):
    found = []
    for op in WITH_TEXT:
        if dtype in op:
            domain, result = op.types(dtype)
            arrays = operands(op, dtype)
            got = called(op, arrays, "cpu")
            assert got.dtype == result.numpy
            found += differing(op, arrays, got, op.evaluate(domain, *arrays), result)
    assert not found


@pytest.mark.parametrize("compiled", picked([False, True], False, rest="exhaustive"))
@SOME_TYPES
def test_values_are_those_of_python_graphblas(dtype, compiled):
    """And so is the type, but where docs/design/types.md says that it differs.

    Numba takes 30 s for what it compiles of theirs.
    """
    found = []
    for op in WITH_TEXT:
        if op.of_numbers is not compiled:
            continue
        theirs = python_graphblas(op)
        if dtype in op and gb.dtypes.lookup_dtype(dtype.name) in theirs.types:
            if op.name == "rpow" and not dtype.is_float:
                continue  # theirs wraps, and its negative powers mean nothing; ours is FP64
            arrays = operands(op, dtype)
            wanted, got = called(op, arrays, gb), called(op, arrays, "cpu")
            assert got.dtype == wanted.dtype, op
            found += differing(op, arrays, got, wanted, op.types(dtype)[1])
    assert not found


def kernel_of_all(dtype):
    """One kernel of all operators, each of which would take seconds to compile by itself.

    Returns it with (operator, domain, result, its part of the arrays, its operands) of each.
    """
    prelude, lines, cases, at = Prelude(), [], [], 0
    for op in WITH_TEXT:
        if dtype in op:
            domain, result = op.types(dtype)
            arrays = [cast(x, domain) for x in operands(op, dtype)]
            where = slice(at, at + len(arrays[0]))
            types = f"{prelude.functor(op)}, {result.ctype}, {domain.ctype}"
            lines.append(f"for (i64 k = {at}; k < {where.stop}; k++) one<{types}>(x, y, out, k);")
            cases.append((op, domain, result, where, arrays))
            at = where.stop
    text = [
        '#include "common/algebra.cuh"',
        prelude.text,
        "template <class T> union Word { u64 bits; T value; };",
        "template <class Op, class Z, class T>",
        "LG_DEVICE void one(const u64* x, const u64* y, u64* out, i64 k) {",
        "  Word<T> a, b; a.bits = x[k]; b.bits = y[k]; Word<Z> z; z.bits = 0;",
        "  z.value = Op::template call<Z, T>(a.value, b.value, 0, 0, 0); out[k] = z.bits;",
        "}",
        'extern "C" __global__ void functors(const u64* x, const u64* y, u64* out) {',
        "  if (global_thread() != 0) return;",
        *lines,
        "}",
    ]
    return from_source("\n".join(text), "functors"), cases


@EVERY_TYPE
def test_functors_are_their_numpy_meaning(backend, dtype):
    if not backend.capabilities.kernels:
        pytest.skip("no kernels")
    made, cases = kernel_of_all(dtype)
    device = backend.runtime.device
    left, right = (np.concatenate([words(arrays[k]) for *_, arrays in cases]) for k in (0, -1))
    out = device.from_host(np.zeros(len(left), np.uint64))
    device.launch(made, 1, device.from_host(left), device.from_host(right), out)
    out, found = device.to_host(out), []
    for op, domain, result, where, arrays in cases:
        size = result.numpy.itemsize
        got = out[where].copy().view(np.uint8).reshape(-1, 8)[:, :size].copy().view(result.numpy)
        found += differing(op, arrays, got.ravel(), op.evaluate(domain, *arrays), result)
    assert not found


@pytest.mark.parametrize("dtype", [INT32, FP64], ids=str)
def test_functors_compile_for_a_gpu(dtype):
    assert nvrtc_compile(kernel_of_all(dtype)[0], ARCHITECTURES[0])


def words(values):
    """Return each value in the low bytes of a word."""
    wide = np.zeros((len(values), 8), np.uint8)
    wide[:, : values.itemsize] = values.view(np.uint8).reshape(len(values), -1)
    return wide.view(np.uint64).ravel()


@pytest.mark.parametrize("op", [binary.band, binary.bshift, unary.bnot], ids=str)
def test_bits_are_those_of_integers(op):
    with pytest.raises(DomainMismatch, match=f"{op.name}: it takes integers, not FP32"):
        op.types(TYPES[5])
    assert op.types(BOOL)[0] is INT64


@pytest.mark.parametrize("m", [monoid.bor, monoid.band, monoid.bxor, monoid.bxnor], ids=str)
def test_monoids_of_bits_reduce(backend, m):
    values = np.array([12, 10, 6, 2**31 + 8], np.uint32)
    u = Vector.from_coo([0, 3, 4, 9], values, size=12, backend=backend)
    assert u.reduce(m).new().value == m.reduce(values, u.dtype)
    signed = u.dup("INT64")
    assert signed.reduce(m).new().value == m.reduce(values.astype(np.int64), signed.dtype)
    assert Vector("INT32", 3, backend=backend).reduce(m).new().value is None


@pytest.mark.parametrize("dtype", [INT32, INT64], ids=str)
def test_the_least_number_divided_by_minus_one_wraps(backend, dtype):
    """As rule 10 of the page on types says of every overflow."""
    least = int(np.iinfo(dtype.numpy).min)
    u = Vector.from_coo([0, 1], [least, 7], dtype, size=2, backend=backend)
    v = Vector.from_coo([0, 1], [-1, -1], dtype, size=2, backend=backend)
    for quotient in (binary.floordiv(u & v), binary.rfloordiv(v & u), u // -1):
        assert quotient.new().to_dict() == {0: least, 1: -7}


def test_counts_of_ways_are_exact_and_saturate(backend):
    """C(64, 32) fits INT64, though not the products on the way; no loop is long."""
    pairs = [(64, 32), (66, 33), (67, 33), (2**32, 2), (2**62, 1), (2**62, 2**61)]
    ways = [*(min(math.comb(*pair), 2**63 - 1) for pair in pairs[:5]), 2**63 - 1]
    n, k = np.array(pairs).T
    u, v = (Vector.from_dense(x, backend=backend) for x in (n, k))
    assert binary.binom(u & v).new().to_coo()[1].tolist() == ways
    assert binary.binom.evaluate(INT64, n, k).tolist() == ways


def test_operators_with_text_run_in_statements(backend):
    """As products, accumulators, maps and sums, of which each has kernels of its own."""
    A = Matrix.from_coo(
        [0, 0, 1, 2], [1, 2, 2, 0], [7, -7, 3, 5], nrows=3, ncols=3, backend=backend
    )
    u = Vector.from_coo([0, 1], [2, -3], size=3, backend=backend)
    assert semiring.plus_floordiv(A @ u).new().to_coo()[1].tolist() == [-3, 2]
    assert semiring.max_cdiv(u @ A).new().to_coo()[1].tolist() == [0, 0]
    bits = semiring.bor_band(A.dup("UINT32") @ u.dup("UINT32")).new()
    assert bits.to_coo()[1].tolist() == [7 & (2**32 - 3), 5 & 2]
    u(accum=binary.floordiv) << u.apply(binary.minus, right=5)
    assert u.to_coo()[1].tolist() == [2 // -3, -3 // -8]
    assert u.apply(unary.floor).new().dtype.name == "FP64"
    assert u.apply(binary.pow, right=2).new().to_coo()[1].tolist() == [1, 0]


def test_operators_with_text_run_in_a_loop(backend):
    """As one kernel where the backend fuses loops, with what one backend says."""

    def run(place):
        u = Vector.from_coo([0, 1, 3], [100, -77, 9], size=5, backend=place)
        A = Matrix.from_coo([0, 1, 3], [1, 3, 4], [3, 5, 7], nrows=5, ncols=5, backend=place)
        w = Vector(INT64, 5, backend=place)
        for _ in loop(times=3):
            w(accum=binary.bxor) << semiring.bor_band(u @ A)
            u << u.apply(binary.floordiv, 2)
        return u, w

    for mine, theirs in zip(run(backend), run("cpu"), strict=True):
        assert mine.to("cpu").isequal(theirs, check_dtype=True)
    if backend.capabilities.fuses:
        assert not backend.last_loop.startswith("eager"), backend.last_loop
