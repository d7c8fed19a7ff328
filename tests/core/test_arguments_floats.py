"""Numbers beside integers: they count for the type, or they fit, or they are refused."""

import numpy as np
import pytest
from loop_names import GENERATED, loop_name

from lagpu import BOOL, FP32, FP64, INT32, INT64, UINT32, Matrix, Scalar, Vector, binary, loop
from lagpu.errors import DomainMismatch


def pair(backend, dtype=INT64):
    u = Vector.from_coo([0, 1], [1, 2], dtype, size=3, backend=backend)
    v = Vector.from_coo([1, 2], [10, 20], dtype, size=3, backend=backend)
    return u, v


def test_defaults_count_for_the_type(backend):
    """As the bound operand of `apply`."""
    u, v = pair(backend)
    w = u.ewise_union(v, "plus", 10.5, 20.5).new()
    assert (w.dtype, w.to_dense().tolist()) == (FP64, [21.5, 12.0, 30.5])
    assert u.apply("plus", 20.5).new().to_dense(0).tolist() == [21.5, 22.5, 0]
    C = u.diag().ewise_union(v.diag(), "plus", 10.5, 20).new()
    assert (C.dtype, C.to_coo()[2].tolist()) == (FP64, [21.0, 12.0, 30.5])
    narrow = pair(backend, INT32)
    w = narrow[0].ewise_union(narrow[1], binary.max, 0, 2**40).new()
    assert (w.dtype, w.to_dense().tolist()) == (INT64, [2**40, 10, 20])
    w = narrow[0].ewise_union(narrow[1], binary.max, 0, 3).new()
    assert (w.dtype, w.to_dense().tolist()) == (INT32, [3, 10, 20])
    w = narrow[0].ewise_union(narrow[1], binary.max, Scalar(FP64, 2.5), 0).new()
    assert (w.dtype, w.to_dense().tolist()) == (FP64, [1, 10, 20])
    floats = pair(backend, FP32)
    assert floats[0].ewise_union(floats[1], "plus", 0.5, 0.5).new().dtype is FP32


def unite(u, v, w):  # without assert, so that pytest leaves its code alone
    for _ in loop(times=2):
        w << u.ewise_union(v, "plus", 0.5, 0.25)


def test_defaults_count_in_a_loop(backend):
    u, v = pair(backend)
    w = Vector(FP64, 3, backend=backend)
    unite(u, v, w)
    assert w.to_dense().tolist() == [1.25, 12.0, 20.5]
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


def assign_all(u, x):
    u << x


def assign_some(u, x):
    u[[0, 2]] = x


def assign_one(u, x):
    u[1] = x


def assign_matrix(u, x):
    A = Matrix(u.dtype, 2, 2, like=u)
    A[0, 0] = x
    A << x


WRITTEN = {
    "all": assign_all,
    "some": assign_some,
    "one": assign_one,
    "matrix": assign_matrix,
    "fill": lambda u, x: u.to_dense(x, dtype=INT32),
    "from_coo": lambda u, x: Vector.from_coo([0], x, INT64, like=u),
    "scalar": lambda u, x: Scalar(u.dtype, x),
    "thunk": lambda u, x: u.select("indexle", x).new(),
    "forced": lambda u, x: u.apply(binary.plus["INT64"], x).new(),
    "forced default": lambda u, x: u.ewise_union(u, binary.plus["INT64"], x, 1).new(),
}


@pytest.mark.each_value
@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("x", [4.5, -0.25, np.inf, -np.inf, np.nan, 2.0**63, 1e300])
def test_a_float_that_does_not_fit_is_refused(backend, write, x):
    u = pair(backend)[0]
    with pytest.raises(DomainMismatch, match="does not fit INT"):
        write(u, x)
    with pytest.raises(DomainMismatch, match="does not fit INT"):
        write(u, np.float64(x))
    assert u.to_dense(0).tolist() == [1, 2, 0]


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
def test_a_whole_float_fits(backend, write):
    write(pair(backend)[0], 4.0)


@pytest.mark.parametrize("x", [-1, 2, 0.5, np.nan, 256, 0, -0.0])
def test_every_number_is_a_truth(backend, x):
    """As in python-graphblas: 0 is false."""
    w = Vector(BOOL, 2, backend=backend)
    w << x
    assert w.to_dense().tolist() == [x != 0] * 2
    w[1] = x
    assert w[1].value == Scalar(BOOL, x).value == (x != 0)
    assert Vector.from_coo([0], [x], BOOL, size=1, backend=backend).to_dense() == [x != 0]


def test_numbers_that_are_equal_are_not_taken_for_each_other(backend):
    """What is made of a number is kept: not of a zero, and with the number's type."""
    u = Vector.from_dense([1.0, 2.0], backend=backend)
    i = Vector.from_dense([1, 2], dtype=INT32, backend=backend)
    for zero, sign in ((0.0, False), (-0.0, True), (0, False), (0.0, False)):
        assert np.signbit((u * zero).new().to_dense()).tolist() == [sign] * 2
        assert (u > zero).new().to_dense().tolist() == [True] * 2
    for one, dtype in ((1, INT32), (1.0, FP64), (True, INT32), (1, INT32), (2**40, INT64)):
        assert (i + one).new().dtype is dtype
        assert (one + i).new().dtype is dtype
        assert i.select("valuege", one).new().nvals == (0 if one == 2**40 else 2)
    for left, right in ((2.0, None), (None, 2.0), (2.0, None)):
        found = u.apply(binary.minus, left=left, right=right).new()
        assert found.to_dense().tolist() == ([-1.0, 0.0] if left is None else [1.0, 0.0])
    for _ in range(2):
        with pytest.raises(DomainMismatch, match=r"Give one of left= and right="):
            u.apply(binary.minus, left=2.0, right=2.0)


def test_a_scalar_has_a_type_of_its_own(backend):
    """Its value is cast as a result is, here and on the device."""
    u = pair(backend)[0]
    u << Scalar(FP64, 4.5)
    assert u.to_dense().tolist() == [4, 4, 4]
    s = Vector.from_dense([2.25, 2.25], backend=backend).reduce("plus").new()
    u << s
    assert u.to_dense().tolist() == [4, 4, 4]
    b = Vector(BOOL, 2, backend=backend)
    b << 0.5
    assert b.to_dense().tolist() == [True, True]
    with pytest.raises(DomainMismatch, match="-1 does not fit UINT32"):
        Vector(UINT32, 1, backend=backend) << -1
