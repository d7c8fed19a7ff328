"""The tree of errors, and errors that teach: no truth value, calls that were not used, scalars."""

import gc

import pytest
from builtin_names import BUILT_IN

import lagpu
from lagpu import (
    BOOL,
    INT32,
    INT64,
    Scalar,
    Vector,
    binary,
    errors,
    semiring,
    unary,
)
from lagpu.errors import (
    DimensionMismatch,
    DomainMismatch,
    EmptyObject,
    LagpuError,
    NotComputed,
    UnusedCall,
)

pytestmark = pytest.mark.usefixtures("own_garbage")


def test_the_tree_of_errors():
    classes = {n: c for n, c in vars(errors).items() if isinstance(c, type)}
    mine = {n for n, c in classes.items() if issubclass(c, LagpuError)} - {"LagpuError"}
    assert mine == set(BUILT_IN)
    for name, built_in in BUILT_IN.items():
        assert issubclass(classes[name], built_in)
        assert classes[name].__doc__
    assert issubclass(UnusedCall, UserWarning)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_message_is_one_line_unless_it_has_a_report(name):
    kind = getattr(errors, name)
    error = kind("read: a\nb\u2028c.csv", *([[0]] if name == "CycleFound" else []))
    lines = name in ("CrosscheckFailed", "KernelCompileError", "ProcessFailed")
    assert str(error) == ("read: a\nb\u2028c.csv" if lines else r"read: a\nb\u2028c.csv")


# ------------------------------------------------------------------------- errors that teach


def test_calls_and_masks_have_no_truth(world):
    call = world.u.apply("ainv")
    with pytest.raises(DomainMismatch, match=r"Vector: has no truth value\. Use v_[0-9]+\.nvals"):
        bool(call)
    call.new()
    with pytest.raises(NotComputed, match=r"Mask: u\.S has no values. Use it as w\(mask\)"):
        bool(world.u.S)
    assert bool(world.u[2]) is (world.u.get(2) not in (None, 0))  # one entry is a number
    with pytest.raises(DomainMismatch, match=r"A\.T\.new\(\)"):
        bool(world.A.T)
    with pytest.raises(DomainMismatch, match="is a vector, not one entry"):
        _ = world.u[[0, 1]].value


def test_a_conditional_statement_is_caught(world):
    """``w << a if c else b`` evaluates to nothing; a vector as `c` says so."""
    with pytest.raises(DomainMismatch, match="has no truth value"):
        world.w << world.u if world.bits else world.u


def test_an_unused_call_warns(world):
    with pytest.warns(UnusedCall, match=r"apply\(unary.abs\) was never used. Write"):
        world.u.apply(unary.abs)
    with pytest.warns(UnusedCall, match=r"^semiring.any_pair\(world.u @ world.S\) was"):
        semiring.any_pair(world.u @ world.S)


def test_a_used_call_does_not_warn(world, recwarn):
    call = world.u.apply(unary.abs)
    world.w << call
    world.w(world.u.S) << world.u.apply(unary.abs)
    world.u.apply(unary.abs).new()
    _ = world.u[0].value
    world.w.update(world.u.ewise_add(world.u, binary.plus))
    del call
    gc.collect()
    assert not recwarn.list


def test_the_mask_repr_is_what_one_writes(world):
    assert [repr(m) for m in (world.u.S, world.u.V, ~world.u.S, ~~world.u.V)] == [
        "u.S",
        "u.V",
        "~u.S",
        "u.V",
    ]


def test_scalars():
    empty = Scalar(INT32)
    assert (empty.is_empty, empty.nvals, empty.value) == (True, 0, None)
    assert not empty  # as the sum of no entries is nothing, also in python-graphblas
    for ask in (int, float, range):
        with pytest.raises(EmptyObject, match=r"has no value\. Check is_empty first"):
            ask(empty)
    five = Scalar.from_value(5)
    assert (five.dtype, five.nvals, int(five), float(five), bool(five)) == (INT64, 1, 5, 5.0, True)
    assert five == 5
    assert five == Scalar(INT32, 5)
    assert list(range(five)) == [0, 1, 2, 3, 4]
    five.clear()
    assert five.is_empty
    with pytest.raises(DomainMismatch, match=r"2\.9 does not fit INT64"):
        five << 2.9
    assert five.is_empty
    five << 2.0
    assert (five.value, type(five.value)) == (2, int)
    assert repr(Scalar(BOOL, True)) == "Scalar(BOOL, True)"
    with pytest.raises(DomainMismatch, match="does not fit INT32"):
        empty << 2**40
    with pytest.raises(DomainMismatch, match="a scalar has no indices"):
        empty()[0] << 1
    with pytest.raises(DomainMismatch, match="list is not a number"):
        empty << [1]


def test_scalars_from_calls(world):
    s = Scalar(INT64)
    s << world.u.reduce("plus")
    assert s == 3
    s(accum=binary.times) << world.u.reduce("max")
    assert s == 6
    s(accum=binary.plus) << world.empty.reduce("plus")  # nothing to add
    assert s == 6
    s << world.u[2]
    assert s == 2
    s << world.A[1, 2]
    assert s == 2
    s << world.u[1]
    assert s.is_empty
    s << world.empty.reduce("plus")
    assert s.is_empty
    with pytest.raises(DimensionMismatch, match=r"s has shape \(\) != \(3,\)"):
        s << world.u.apply("ainv")
    narrow = Scalar(INT32)
    narrow << Vector.from_dense([2**31], backend=world.backend).reduce("plus")
    assert narrow.value == -(2**31)  # as a result is cast into a vector


def test_reprs(world):
    assert repr(world.A @ world.A.T) == "A @ A'"
    assert repr(world.u[[0, 1]]) == "u[[0, 1]]"
    assert repr(world.A[0, 1]) == "A[0, 1]"
    assert repr(world.A[0, :]) == "A[0, :]"
    assert repr(world.A[[0, 1], 1:3:2]) == "A[[0, 1], 1:3:2]"
    assert repr(world.u[list(range(9))]) == "u[I]"
    assert lagpu.__version__
