"""Aggregators: every one gives what python-graphblas gives, over all, by rows and by columns."""

import math

import numpy as np
import pytest
from samples import picked

import lagpu
from lagpu import FP64, INT64, Matrix, Scalar, Vector, agg, binary, monoid
from lagpu.errors import DomainMismatch, InvalidValue, UnknownOperator

gb = pytest.importorskip("graphblas")  # a dependency of the cpu backend

COUNTS = {"count_nonzero", "count_zero", "L0norm"}  # theirs counts rows in the type of the values
BITS = {"bitwise_all", "bitwise_any"}
ROWS, COLS, VALUES = [0, 0, 0, 2, 3, 3], [4, 1, 3, 2, 0, 1], [3.0, 2.5, 1.5, -4.0, 7.0, 7.0]


def objects(library, name, **where):
    dtype = "UINT32" if name in BITS else "FP64"
    values = [int(abs(x)) for x in VALUES] if name in BITS else VALUES
    A = library.Matrix.from_coo(ROWS, COLS, values, dtype, nrows=4, ncols=5, **where)
    u = library.Vector.from_coo([1, 3, 4], values[:3], dtype, size=6, **where)
    return A, u, library.Vector(dtype, 3, **where)


def close(x, y):
    if x is None or y is None:
        return x is y
    return math.isclose(x, y, rel_tol=1e-12) or (math.isnan(x) and math.isnan(y))


def entries(w):
    return dict(zip(*(part.tolist() for part in w.to_coo()), strict=True))


PLAIN = ("sum", "count", "mean", "varp", "argmin", "last", "any_value")


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", picked([op.name for op in agg], *PLAIN, rest="exhaustive"))
def test_a_sum_is_that_of_python_graphblas(backend, name):
    (A, u, none), (B, v, nothing) = objects(lagpu, name, backend=backend), objects(gb, name)
    ours = agg[name]
    theirs = getattr(gb.agg.ss if name in dir(gb.agg.ss) else gb.agg, name)
    for x, y in ((u, v), (none, nothing)) if name != "any_value" else ():
        got, wanted = x.reduce(ours).new(), y.reduce(theirs).new()
        if name == "any_value" and y.nvals:  # which one is free
            assert got.value in x.to_coo()[1]
            continue
        assert close(got.value, wanted.value) or (not y.nvals and not wanted.value), name
    for way in ("reduce_rowwise", "reduce_columnwise"):
        got, wanted = getattr(A, way)(ours).new(), getattr(B, way)(theirs).new()
        if name == "any_value":
            assert set(entries(got)) == set(entries(wanted))
            continue
        assert got.dtype.name == ("INT64" if name in COUNTS else wanted.dtype.name), (name, way)
        assert entries(got).keys() == entries(wanted).keys(), (name, way)
        assert all(close(x, entries(wanted)[i]) for i, x in entries(got).items()), (name, way)
        turned = "reduce_columnwise" if way == "reduce_rowwise" else "reduce_rowwise"
        assert entries(getattr(A.T, turned)(ours).new()).keys() == entries(got).keys()


@pytest.mark.parametrize("dtype", ["INT32", "UINT32", "INT64", "FP32"])
def test_a_sum_that_overflows_does_not_spoil_a_mean(backend, dtype):
    largest = float(lagpu.dtypes.lookup(dtype).largest) if dtype != "FP32" else 3e38
    x = np.array([largest / 2, largest / 4, 2]).astype(dtype.lower().replace("fp", "float"))
    u = Vector.from_dense(x, backend=backend)
    A, x = Matrix.from_coo([0, 0, 0], [0, 1, 2], x, backend=backend), x.astype(float)
    wanted = {
        "mean": x.mean(),
        "geometric_mean": float(np.cbrt(x[0]) * np.cbrt(x[1]) * np.cbrt(x[2])),
        "varp": x.var(),
        "stds": x.std(ddof=1),
        "root_mean_square": np.sqrt((x * x).mean()),
        "L2norm": np.sqrt((x * x).sum()),
        "hypot": np.sqrt((x * x).sum()),
    }
    for name, right in wanted.items():
        found = u.reduce(name).new()
        assert (found.dtype, found.value) == (FP64, pytest.approx(right, rel=1e-12)), name
        assert A.reduce_rowwise(name).new().get(0) == pytest.approx(right, rel=1e-12), name


def test_a_sum_of_one_type_is_not_that_of_another(backend):
    """A GPU keeps the sum of a matrix."""
    values = np.array([2**32 - 1, 2**32 - 1, 4], np.uint32)
    A = Matrix.from_coo([0, 0, 1], [0, 1, 1], values, backend=backend)
    assert A.reduce(monoid.plus).new().value == 2
    assert (
        A.reduce(monoid.plus["INT64"]).new().value
        == A.reduce(agg.sum[FP64]).new().value
        == 2**33 + 2
    )
    assert A.reduce(agg.mean).new().value == (2**33 + 2) / 3
    assert A.reduce(monoid.max["BOOL"]).new().value is True
    assert A.reduce(monoid.max).new().value == 2**32 - 1


_WIDE = ("sum_of_squares", "sum_of_inverses", "logaddexp", "logaddexp2")


@pytest.mark.parametrize("name", _WIDE)
@pytest.mark.parametrize("dtype", ["INT32", "INT64", "UINT32", "UINT64", "FP32", "FP64"])
def test_a_sum_of_wide_parts_has_the_type_of_python_graphblas(backend, name, dtype):
    """Squares that the type of the values does not hold, and float parts in FP64."""
    large = {"INT32": 70_000, "UINT32": 2**31, "UINT64": 2**33, "FP32": 1e30}.get(dtype, 9)
    values = np.array([1, large, 3] if name == "sum_of_squares" else [1, 2, 3.5]).astype(
        dtype.lower().replace("fp", "float")
    )
    theirs = gb.Vector.from_coo([0, 1, 2], values).reduce(getattr(gb.agg, name)).new()
    ours = Vector.from_dense(values, backend=backend).reduce(agg[name]).new()
    assert (ours.dtype.name, ours.value) == (theirs.dtype.name, pytest.approx(theirs.value))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("BOOL", [True, False]),
        ("INT32", [-7, 2]),
        ("UINT64", [2**64 - 1, 2**53 + 1]),
        ("FP32", [0.1, 2]),
    ],
)
@pytest.mark.parametrize(("name", "at"), [("first", 0), ("last", 1)])
def test_a_value_by_its_place_is_as_it_was(backend, dtype, values, name, at):
    """And not first of a type that holds indices, too."""
    u = Vector.from_coo([1, 4], values, dtype, size=6, backend=backend)
    A = Matrix.from_coo([0, 2], [1, 3], values, dtype, nrows=3, ncols=4, backend=backend)
    for x in (u, A):
        found = x.reduce(agg[name]).new()
        assert found.dtype is u.dtype
        assert found.value == u.to_coo()[1][at]
    rows = A.reduce_rowwise(agg[name]).new()
    assert rows.dtype is u.dtype
    assert rows.to_coo()[1].tolist() == u.to_coo()[1].tolist()


def test_every_aggregator_is_there():
    theirs = {n for n in dir(gb.agg) if not n.startswith("_")} - {"ss", "Aggregator"}
    theirs -= {"TypedAggregator", "dtypes", "from_string", "namedtuple", "Scalar"}
    assert theirs <= {op.name for op in agg}


def test_a_reduction_is_written_in_every_way(backend):
    A, u, _ = objects(lagpu, "mean", backend=backend)
    w, s = Vector(FP64, 4, backend=backend), Scalar(INT64)
    w << A.reduce_rowwise("count")
    assert w.to_coo()[1].tolist() == [3.0, 1.0, 2.0]
    w(accum=binary.plus) << A.reduce_rowwise(agg.mean)
    s << u.reduce("argmax")
    assert s.value == 1
    assert A.reduce("count").new().value == 6
    assert u.reduce(binary.plus).new().value == u.reduce(monoid.plus).new().value
    assert u.reduce(binary.plus["INT64"]).new().value == 6


def test_what_cannot_be_is_refused():
    A = Matrix(FP64, 2, 2, backend="cpu")
    with pytest.raises(InvalidValue, match="Write reduce_rowwise or reduce_columnwise"):
        A.reduce(agg.argmin)
    with pytest.raises(DomainMismatch, match=r"agg\.mean: int is neither a Vector nor a Matrix"):
        agg.mean(3)
    with pytest.raises(InvalidValue, match="give one of rowwise= and columnwise="):
        agg.mean(A, rowwise=True, columnwise=True)
    with pytest.raises(DomainMismatch, match="is not a Monoid"):
        A.reduce(binary.minus)
    with pytest.raises(UnknownOperator, match="mean"):
        agg.meann  # noqa: B018


def test_in_a_loop_it_reads_what_the_loop_has_written(backend):
    u = Vector.from_coo([0, 2], [1.0, 3.0], size=4, backend=backend)
    s = Scalar(FP64)
    for _ in lagpu.loop(times=3):
        u << u.apply(binary.plus, 1)
        s << u.reduce(agg.mean)
    assert s.value == 5


def places(u, found, s):
    for _ in lagpu.loop(times=3):
        s << u.reduce(agg.argmax)
        found << found * 10 + s
        u << u.apply(binary.minus, left=3)


def test_in_a_loop_an_index_may_grow(backend):
    u = Vector.from_dense([3.0, 0.0, 1.0], backend=backend)
    found = Vector.from_scalar(0, 3, INT64, like=u)
    with lagpu.fused():
        places(u, found, Scalar(INT64))
    assert found.to_dense().tolist() == [10, 10, 10], "0, then 1, then 0"


def test_one_of_ones_own_combines_others(backend):
    A, u, empty = objects(lagpu, "mean", backend=backend)
    own = agg.Aggregator("own", composite=[agg.varp, agg.count], finalize=lambda x, y, _: x + y)
    assert repr(own) == "agg.own"
    assert u.reduce(own).new() == u.reduce(agg.varp).new() + u.reduce(agg.count).new()
    assert empty.reduce(own).new().is_empty
    rows = A.reduce_rowwise(agg.varp).new() + A.reduce_rowwise(agg.count).new()
    assert A.reduce_rowwise(own).new().isclose(rows)
