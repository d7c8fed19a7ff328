"""Constructors, conversions and changes: each line gives what python-graphblas gives."""

import math

import numpy as np
import pytest

import lagpu
from lagpu import FP64, INT64, Matrix, Scalar, Vector, agg, backends, binary
from lagpu.errors import (
    DimensionMismatch,
    DomainMismatch,
    EmptyObject,
    IndexOutOfBound,
    InvalidValue,
    UnknownOperator,
)

gb = pytest.importorskip("graphblas")  # a dependency of the cpu backend

#: An expression, or statements that leave their result in `out`.
LINES = """
Vector.from_scalar(3, 4)
Vector.from_scalar(1.5, 3, "FP32", name="w")
Vector.from_scalar(True, 2)
Vector.from_pairs([(3, 2.5), (0, 1.5)], size=6)
Vector.from_pairs([(1, 2), (1, 5)], dup_op="plus")
Vector.from_pairs([], "INT64", size=3)
Vector.from_dict({4: 2, 1: 7})
Vector.from_dict({4: 2, 1: 7}, "FP64", size=9)
Vector.from_dense([1, 0, 3], missing_value=0)
v.to_dict()
list(v)
[part.tolist() for part in v.to_coo("FP32")]
v.to_coo(indices=False)[0]
v.to_coo(values=False)[1]
v.dup(clear=True)
v.dup("INT64", mask=v.V)
v.dup(name="copy").name
v.diag(1, name="D").name
v.diag(-1)
v.isclose(v.dup("FP32"), check_dtype=True)
v.isequal(v.dup("FP32"), check_dtype=True)
v.wait().nvals
v.reposition(2).new()
v.reposition(-1, size=3).new()
v.reposition(1, size=8).new()
v.reposition(99).new()
3 in v, 2 in v
out = v.dup(); del out[3]
out = v.dup(); out.clear()
out = v.dup(); out.resize(2)
Matrix.from_scalar(2, 2, 3)
Matrix.from_scalar(True, 2, 2, "FP64")
Matrix.from_dense([[1, 2], [3, 4]])
Matrix.from_dense([[1, 0], [0, 4]], missing_value=0)
Matrix.from_dense(np.zeros((0, 3)))
Matrix.from_edgelist([(0, 1), (2, 3)], 1.0)
Matrix.from_edgelist([(0, 1, 7), (2, 3, 8)])
Matrix.from_edgelist(np.array([[0, 1], [2, 3]]), [7, 8], "FP32", nrows=5, ncols=6)
Matrix.from_edgelist([(0, 1, 7), (0, 1, 8)], dup_op="plus")
Matrix.from_dicts({0: {1: 2}, 3: {0: 5, 2: 7}})
Matrix.from_dicts({0: {1: 2}, 3: {0: 5}}, order="columnwise")
Matrix.from_dicts([{1: 2}, {}, {0: 5}, {}], ncols=3)
Matrix.from_dicts([{1: 2}, {}, {0: 5}, {}], "FP64", order="columnwise")
Matrix.from_dicts({1: {}})
Matrix.from_dicts({1: {}}, nrows=5, ncols=2)
Matrix.from_dicts({0: {2: 3}, 1: {}}, "INT64", order="columnwise")
Matrix.from_dcsr([2], [0, 0], [], [])
Matrix.from_dcsc([2], [0, 0], [], [], nrows=4)
v.reduce(agg.sum, allow_empty=False).new().value
Vector(int, 3).reduce(agg.sum, allow_empty=False).new().value
Vector(int, 3).reduce("max", allow_empty=False).new().value
Matrix(int, 3, 3).reduce_scalar(agg.prod, allow_empty=False).new().value
Vector(int, 3).reduce(agg.sum).new().value
np.array(Scalar.from_value(5)).dtype.name
np.array([Scalar.from_value(5), Scalar.from_value(6)]).tolist()
np.array(Scalar.from_value(5.5), dtype=int).tolist()
np.asarray(v.reduce("plus")).tolist()
np.asarray(v[0]).tolist()
max(v), sum(v), list(v + v), sorted(A)
nan.isclose(nan)
nan[0].new().isclose(nan[0].new())
Scalar.from_value(1.0).isclose(1.1, rel_tol=0.095)
v.isclose((v * 1.1).new(), rel_tol=0.095)
(v * 1.1).new().isclose(v, rel_tol=0.095)
v.isclose((v * 1.1).new(), rel_tol=0.08, abs_tol=0.2)
v.isclose((v + 1e-3).new(), abs_tol=2e-3)
Vector.from_coo([0], [2**62 + 1]).isclose(Vector.from_coo([0], [2**62]), rel_tol=0)
Vector.from_coo([0], [2**62 + 1]).isclose(Vector.from_coo([0], [2**62]))
Matrix.from_dcsr([1, 3], [0, 2, 3], [0, 2, 1], [5, 6, 7], nrows=5, ncols=4)
Matrix.from_dcsc([1, 3], [0, 2, 3], [0, 2, 1], [5, 6, 7], nrows=5, ncols=4)
[part.tolist() for part in A.to_dcsr()]
[part.tolist() for part in A.to_dcsc()]
A.to_dicts()
A.to_dicts("columnwise")
[part.tolist() for part in A.to_edgelist()]
A.to_edgelist(values=False)[1]
A.to_dense(0).tolist()
A.to_dense(-1, "INT64").tolist()
sorted(A)
(0, 1) in A, (1, 1) in A
A.to_coo(rows=False)[0]
A.to_coo("INT64", columns=False, values=False)[0].tolist()
A.dup(clear=True)
A.dup(mask=A.V)
A.dup("INT64", mask=~A.V)
A.diag(1, name="d").name
A.isclose(A.dup("FP32"))
A.isclose(A.dup("FP32"), check_dtype=True)
A.isclose(A.T.new())
A.reposition(1, -1).new()
A.reposition(0, 0, nrows=2, ncols=7).new()
out = A.dup(); out.clear()
out = A.dup(); out.resize(2, 7)
out = A.dup(); out.resize(6, 2)
out = A.dup(); del out[0, 1]
out = A.dup(); del out[3, 3]
out = A.dup(); out.setdiag(9)
out = A.dup(); out.setdiag([1, 2, 3, 4], 1)
out = A.dup(); out.setdiag(Vector.from_coo([0, 2], [5.0, 6.0], size=4))
out = A.dup(); out.setdiag(2, -2)
out = A.dup(); out.setdiag(10, accum="plus")
out = A.dup(); out.setdiag(7, mask=A.diag().V)
out = A.dup(); out.clear(); out.build([0, 1], [1, 2], [5, 6])
A.T.reduce_rowwise("plus").new()
A.T.reduce_columnwise("max").new()
A.T.reduce_scalar("plus").new().value
A.T[1, :].new()
A.T[:, 0].new()
A.T[1, 0].new().value
A.T[[0, 1], [0, 3]].new()
sorted(zip(*(part.tolist() for part in A.T.to_coo())))
[part.tolist() for part in A.T.to_csr()]
[part.tolist() for part in A.T.to_csc()]
A.T.to_dense(0).tolist()
A.T.to_dicts()
A.T.get(1, 0)
A.T.get(0, 1, -5)
(1, 0) in A.T
A.T.diag(1)
A.T.apply("ainv").new()
A.T.select("tril").new()
A.T.isequal(A.T)
A.T.isclose(A)
A.T.dup("FP32")
A.T.new("INT64", mask=A.T.new().V, name="B")
A.T[[0, 1], [0, 3]].new(mask=A.T[[0, 1], [0, 3]].new().S)
A.T.reposition(1, 0).new()
Scalar.from_value(3, "FP64", name="x").value
Scalar.from_value(3).get(7)
Scalar(int).get(7)
Scalar.from_value(2.5).dup("INT64").value
Scalar.from_value(2.5).dup(clear=True).value
Scalar.from_value(2).isequal(2)
Scalar.from_value(2).isequal(Scalar.from_value(2.0), check_dtype=True)
Scalar.from_value(2.0).isclose(2 + 1e-9)
Scalar.from_value(2).isequal(2, check_dtype=True), Scalar(int).isequal(None)
Scalar.from_value(2.0).wait().value
""".strip().splitlines()


def world(library, **where):
    """The names that a line knows."""
    rows, cols, values = [0, 0, 1, 2, 3, 3], [1, 2, 2, 0, 3, 1], [1.0, 0.0, 2.5, 4.0, 3.0, -1.0]
    A = library.Matrix.from_coo(rows, cols, values, nrows=4, ncols=5, **where)
    v = library.Vector.from_coo([0, 3, 4], [2.0, 0.0, 5.5], size=6, **where)
    nan = library.Vector.from_coo([0], [np.nan], size=1, **where)
    names = {"A": A, "v": v, "nan": nan, "np": np, "int": int, "agg": library.agg}
    return names | {name: getattr(library, name) for name in ("Vector", "Matrix", "Scalar")}


def said(x):
    """What a result holds, in Python's own types."""
    if getattr(x, "ndim", None) in (1, 2) and hasattr(x, "to_coo"):
        entries = zip(*(part.tolist() for part in x.to_coo()), strict=True)
        return str(x.dtype), x.shape, sorted(entries)
    return x


def run(line, names):
    if not line.startswith("out ="):
        return said(eval(line, names))
    exec(line, names)
    return said(names["out"])


@pytest.fixture
def chosen(backend, monkeypatch):
    """The backend as the default one, so that constructors without `backend=` take it."""
    choose = backends.choose

    def chosen(like, name):
        return backend if like is None and name is None else choose(like, name)

    monkeypatch.setattr(backends, "choose", chosen)
    return backend


CLOSE = [line for line in LINES if ".isclose(" in line]


@pytest.mark.parametrize("line", [line for line in LINES if line not in CLOSE])
def test_a_line_gives_what_python_graphblas_gives(chosen, line):
    assert run(line, world(lagpu, backend=chosen)) == run(line, world(gb))


@pytest.mark.ci
@pytest.mark.parametrize("line", CLOSE)
def test_closeness_is_that_of_python_graphblas(line):
    """Not on each backend: lagpu compares on the host; theirs takes 2 s for each tolerance."""
    assert run(line, world(lagpu, backend="cpu")) == run(line, world(gb))


def test_a_missing_value_may_be_nan():
    """Theirs keeps NaN, which equals nothing."""
    A = Matrix.from_dense([[1.0, np.nan]], missing_value=np.nan, backend="cpu")
    assert A.nvals == 1
    assert Vector.from_dense([1.0, np.nan], missing_value=np.nan, backend="cpu").to_dict() == {0: 1}


def test_type_and_place_follow(backend):
    like = Vector(FP64, 2, backend=backend)
    assert Matrix.from_dense([[1]], like=like).backend is backend
    assert Vector.from_dict({1: 2}, backend=backend).dtype is INT64
    assert Vector.from_scalar(2, 3, like=like, name="w").name == "w"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A: Matrix.from_dense([1, 2]), DimensionMismatch, "1-D, not 2-D. Write Vector"),
        (lambda A: Matrix.from_edgelist([(0, 1), (1, 2, 3)]), DimensionMismatch, "Give pairs"),
        (lambda A: Matrix.from_edgelist([(0, 1, 2)], [3]), DomainMismatch, "Leave out values"),
        (lambda A: Matrix.from_edgelist(np.zeros((2, 3), int)), DimensionMismatch, "as values="),
        (lambda A: A.to_dense(), DomainMismatch, "Give fill_value="),
        (lambda A: A.to_dicts("diagonal"), InvalidValue, "Use rowwise or columnwise"),
        (lambda A: 3 in A, DomainMismatch, r"Write \(i, j\) in A"),
        (lambda A: A.setdiag([1, 2]), DimensionMismatch, "2 values != 4 places"),
        (lambda A: A.setdiag(1, 9), IndexOutOfBound, "outside"),
        (lambda A: A.build([0], [0]), InvalidValue, "Clear it"),
        (lambda A: A.resize(-1, 2), DimensionMismatch, "size -1"),
        (lambda A: A.reposition(0.5, 1), DomainMismatch, "is not an integer"),
        (lambda A: Matrix.from_dcsr([1], [0], [0]), DimensionMismatch, "pointer"),
        (lambda A: Matrix.from_dicts({-1: {}}), IndexOutOfBound, "row -1 is outside"),
        (lambda A: Matrix.from_dicts({4: {}}, nrows=3), IndexOutOfBound, "row 4 is outside 0 .. 2"),
        (lambda A: A.reduce(agg.mean, allow_empty=False), InvalidValue, "agg.mean has no identity"),
        (
            lambda A: A.to_dense(Scalar(FP64, 6.5), "INT64"),
            DomainMismatch,
            "6.5 does not fit INT64",
        ),
        (lambda A: A[0, :].new().to_dense(Scalar(FP64, 0.5), "INT64"), DomainMismatch, "not fit"),
        (lambda A: A.to_dense(Scalar(FP64)), EmptyObject, "no value"),
        (lambda A: np.asarray(Scalar(FP64)), EmptyObject, "no value"),
        (lambda A: Scalar(FP64, 1).isequal("a"), DomainMismatch, "str is not a number"),
        (lambda A: Scalar(FP64).__array__(copy=False), InvalidValue, "Leave out copy="),
        (lambda A: Vector.from_coo([0, 1], [1, 2], dup_op="max_of_all"), UnknownOperator, "max"),
        (lambda A: Vector.from_dense([1], missing_value="a"), DomainMismatch, "not a number"),
        (lambda A: Matrix.from_dense([[1]], missing_value="a"), DomainMismatch, "not a number"),
        (lambda A: np.asarray(A + A), DomainMismatch, "is not a NumPy array"),
        (lambda A: A.wait("nonsense"), InvalidValue, "Use materialize or complete"),
        (lambda A: A.T.wait("nonsense"), InvalidValue, "Use materialize or complete"),
        (lambda A: A[0, :].wait("nonsense"), InvalidValue, "Use materialize or complete"),
        (lambda A: Scalar(FP64).wait("nonsense"), InvalidValue, "Use materialize or complete"),
        (lambda A: A.select(A.V, 777), DomainMismatch, "takes no thunk, here 777"),
        (lambda A: A.select(A > 2, 0), DomainMismatch, "takes no thunk, here 0"),
        (lambda A: A.select(A[0, :].new().S), DomainMismatch, r"shape \(5,\) != \(4, 5\)"),
        (lambda A: A[0, :].new().select(A.S), DomainMismatch, r"shape \(4, 5\) != \(5,\)"),
        *(
            (lambda A, text=text: binary.from_string(text), UnknownOperator, "brackets")
            for text in ("plus[int", "plus[int]]", "plus]int]", "plus[int]x")
        ),
        (lambda A: A(replace=True) << A, DomainMismatch, "there is no mask"),
        (lambda A: A[0, :](replace=True) << 1, DomainMismatch, "there is no mask"),
        (lambda A: A(binary.plus, lagpu.replace)[0, 0] << 1, DomainMismatch, "there is no mask"),
    ],
)
def test_errors_name_the_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call(world(lagpu, backend="cpu")["A"])


@pytest.mark.parametrize("kind", ["Vector", "Matrix", "Scalar", "binary"])
@pytest.mark.parametrize("dtype", ["INT64", "FP64", "FP32"])
def test_close_is_one_rule(backend, kind, dtype):
    numbers = [float("nan"), float("inf"), -float("inf"), 0.0, 1.0, 1.0625, 1.125, -3.0, 2.0**20]
    for x in numbers if dtype != "INT64" else numbers[3:]:
        for y in numbers if dtype != "INT64" else numbers[3:]:
            u, v = (Vector.from_coo([0], [z], size=1, backend=backend).dup(dtype) for z in (x, y))
            for tolerance in ((0.0625, 0.0), (0.0, 0.125), (1e-7, 0.0)):
                given = dict(zip(("rel_tol", "abs_tol"), tolerance, strict=True))
                close = math.isclose(u.get(0), v.get(0), **given)
                if kind == "binary":
                    found = u.ewise_mult(v, lagpu.binary.isclose(*tolerance)).new().get(0)
                elif kind == "Scalar":
                    found = u[0].new().isclose(v[0].new(), **given)
                else:
                    parts = (u, v) if kind == "Vector" else (u.diag(), v.diag())
                    found = parts[0].isclose(parts[1], **given)
                assert found == close, (kind, x, y, tolerance)


def test_what_is_resized_keeps_its_loops(backend):
    """A statement after `resize` and `clear` reads the new object."""
    A = world(lagpu, backend=backend)["A"]
    A.resize(3, 3)
    assert A.shape == (3, 3)
    assert lagpu.semiring.plus_times(A @ A).new().shape == (3, 3)
    A.clear()
    assert A.nvals == 0
    s = Scalar(INT64)
    s << A.T.reduce("plus")
    assert s.is_empty


@pytest.mark.parametrize("name", ["ss", "gb_obj"])
def test_what_is_the_c_librarys_says_what_to_use(name):
    for x in (Vector(FP64, 2, backend="cpu"), Matrix(FP64, 2, 2, backend="cpu")):
        with pytest.raises(AttributeError, match=f"there is no '{name}'. .*to_csr"):
            getattr(x, name)
        with pytest.raises(AttributeError, match=r"there is no 'nvalls'\.$"):
            x.nvalls  # noqa: B018
