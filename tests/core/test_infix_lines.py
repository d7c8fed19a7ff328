"""Python's operators mean here what they mean in python-graphblas: one line, both libraries."""

import ast
import gc

import graphblas as gb
import numpy as np
import pytest
from both_libraries import converted, plain, same
from loop_names import GENERATED, loop_name
from samples import picked

import lagpu
from lagpu import BOOL, FP64, INT64, Matrix, Scalar, Vector, binary, monoid, semiring
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    InvalidValue,
    UnusedCall,
)


def their_objects():
    """Return small objects of python-graphblas, all with missing entries."""
    V, M = gb.Vector.from_coo, gb.Matrix.from_coo
    return {
        "x": V([0, 2], [3.0, -1.0], size=4, name="x"),
        "y": V([1, 2], [5.0, 2.0], size=4, name="y"),
        "i": V([0, 1], [7, 2], size=4, name="i"),
        "b": V([0, 1], [True, False], size=4, name="b"),
        "c": V([1, 2], [True, True], size=4, name="c"),
        "e": gb.Vector(float, 4, name="e"),
        "A": M([0, 0, 1, 3], [1, 2, 2, 0], [1.0, 4.0, 2.0, 0.5], nrows=4, ncols=4, name="A"),
        "B": M([0, 1, 2], [1, 1, 3], [2.0, 3.0, -6.0], nrows=4, ncols=4, name="B"),
        "C": M([0, 1], [1, 0], [True, False], nrows=4, ncols=4, name="C"),
        "s": gb.Scalar.from_value(2.5, name="s"),
        "none": gb.Scalar(float, name="none"),
    }


NAMES = (
    *("binary", "unary", "monoid", "semiring", "indexunary", "select", "replace"),
    *("Vector", "Scalar"),
)


def run(line, library, backend=None):
    """Run a line in one library, and return the value of `z`, then those of all objects."""
    objects = their_objects()
    if library is lagpu:
        seen = {}
        objects = {name: converted(x, backend, seen) for name, x in objects.items()}
    world = {name: getattr(library, name) for name in NAMES} | {"np": np, "z": None}
    world |= objects
    node = ast.parse(line).body[0]
    shift = isinstance(node, ast.Expr) and isinstance(getattr(node.value, "op", None), ast.LShift)
    exec(f"z = {line}" if isinstance(node, ast.Expr) and not shift else line, world)
    return [plain(world["z"]), *(plain(world[name]) for name in objects)]


# Each line runs in both libraries; a line without an assignment is the value of `z`.
ENTRIES = """
x + y|x - y|x * y|x / y|y - x|x + 1|1 - x|x / 2.5|2 * x|-x|abs(x)
i + i|i / 2|b ^ c|~b|x == y|x != y|x > 0|x <= y|3 > x|x == 3|x * s|s - x
A + B|A - B|A * B|A / B|A * 3|2 - A|A.T + B|A - A.T|A * A.T|A < B|A == 2|-A|abs(B)
x + y * 2|(x + y) * (x - y)|2 * x / y + 1|abs(x - y)|-(x * y)|(A * B) + A|(x - 1) * x
s + 1|1 - s|s * s|s / 2|-s|abs(-s)|(s > 2).new()|(s + x[0]).new()
s == 2.5|s != 2.5
x[0] + 1|1 + x[0]|(x[0] * x[2]).new()|float(x[0])|int(x[0])|x[0] == 3|bool(x[0])|bool(x[1])
binary.plus(x \\| y)|binary.plus(x & y)|monoid.min(x \\| y)
monoid.times(x & y)|binary.minus(y \\| x)
binary.second(A \\| B)|binary.first(A & B)|monoid.max(x \\| y \\| i)|monoid.plus(x & y & x)
binary.minus(x \\| y, left_default=0, right_default=10)|binary.plus(2 * x \\| y)
binary.plus(x, 2)|binary.minus(2, x)|binary.times(-2.0, A)|binary.first(x, 3)|unary.abs(x - y)
(b \\| c).new()|(b & c).new()|(C \\| C.T).new()|(b \\| c).nvals
binary.times(x & A)|binary.second(x & A)|binary.times(A & x)|binary.first(A & x)
x * A|A * x|A / x|A - x|x + A|x == A|A.T * x|binary.plus(x \\| A)|binary.plus(A \\| y)
x.ewise_add(y)|x.ewise_mult(y)|A.ewise_mult(x)|x.ewise_mult(A)|A.ewise_add(B)|A.ewise_add(x)
A.ewise_union(x, binary.minus, 1, 2)|x.ewise_add(2 * y, binary.plus)|A.mxm(B)|A.mxv(x)|x.vxm(A)
"""
PRODUCTS = """
(x @ A).new()|(A @ x).new()|(A @ B).new()|(A.T @ A).new()|A.T @ A @ B|x @ (A * B)|(x + y) @ A
(x @ y).new()|(x @ y).get(0)|x.inner(y)|semiring.plus_times(x @ y)|semiring.min_plus(x @ y).value
semiring.any_pair(x @ e).value|bool(semiring.any_pair(x @ y))|bool(semiring.any_pair(x @ e))
semiring.plus_first(x @ y)|semiring.plus_second(x @ y)|semiring.plus_pair(x @ y)|float(x @ x)
x.outer(y)|x.outer(y, binary.minus)|x.outer(x).new(mask=A.S)|A.power(1)|A.power(2)|A.power(5)
A.power(3, semiring.min_plus)|semiring.plus_times(x @ A).nvals|semiring.min_plus(x @ A).to_coo()
semiring.min_plus(A @ B @ A)|semiring.min_plus(A @ (B @ A))|semiring.max_min(x @ A @ B)
semiring.min_plus(A @ (B @ x))|semiring.plus_first((x @ A) @ (A @ B))|semiring.max_plus(x @ A @ y)
semiring.min_plus((A @ B).new() @ A)|A.mxm(A @ B, semiring.min_plus)|(x @ A @ B @ A).new()
semiring.min_plus((A @ B + A) @ B)|semiring.min_plus((A @ B).T @ A)|semiring.min_plus(x @ A @ A.T)
binary.minus(x \\| y \\| i, left_default=1, right_default=2)|binary.minus(x \\| (y \\| i))
"""
SUMS = """
x.reduce().get(0)|x.reduce().value|x.reduce(monoid.max).new()|e.reduce().get(7)|e.reduce().value
x.reduce(allow_empty=False)|e.reduce(allow_empty=False)|e.reduce(monoid.min, allow_empty=False)
e.reduce(monoid.times, allow_empty=False).value|float(x.reduce())|bool(x.reduce())|bool(e.reduce())
A.reduce_rowwise().nvals|A.reduce_rowwise().to_coo()|A.reduce_scalar().get(0)|x.reduce() + 1
A.reduce_columnwise().reduce().value|2 * x.reduce() / A.reduce_scalar()|x / x.reduce()
x.reduce(binary.max)|b.reduce(binary.lor)|A.reduce_rowwise(binary.plus)
x.reduce() > 1|A.T.reduce_rowwise()|A.T.apply(unary.abs)|x.apply(binary.plus, x.reduce().value)
"""
KEPT = """
select.value(A > 1)|select.value(2 <= A)|select.value(A != 2)|select.value(x == 3)
select.row(A <= 1)|select.row(A < 1)|select.row(A >= 1)|select.row(A > 1)|select.row(1 < A)
select.column(A < 2)|select.column(A >= 2)|select.column(2 > A)|select.index(x < 2)
select.index(x >= 2)|select.index(i < 2)|select.index(b < 1)|select.row(x < 2)|select.row(A.T < 2)
select.value(A.T < 2)|select.value(A + A > 3)|select.value(x[[0, 2]] > 1)|select.index(A[0, :] < 2)
select.value(x > s)|x.select(x > 1)|A.select(A > 1)|A.select(1 < A)|x.select(b)|x.select(~b.S)
x.select(">", 1)|A.select("<=", 1)
A.select("row<=", 1)|A.select("col>", 1)|A.select("==", 2)|A.select(A.V)
A.select(A == A.T)|A.T.select(A.T == A)|A.select(C)|x << select.value(x > 0)
A(B.S) << select.column(A < 3)|x(binary.plus) << select.index(y >= 1)|x << x.select(x < y)
"""
ASKED = """
(x + y).to_dict()|(A + B).to_dicts()|(A + B).to_dicts("columnwise")|(A + B).to_edgelist()
(A * 2).reposition(1, 0).new()|(x + y).reposition(1).new()|(A + B).to_dcsr()|(A + B).to_dcsc()
(x + y).wait().nvals|x.isequal(y + x)|A.isequal(B.T)|A.T.isequal(A.T)|x[[0, 2]].to_dict()
A.isclose(A.T)|(x + y).isclose(y + x)|(A + B).isclose(B + A)
A[0, :].to_dict()|A[[0, 1], :].to_dicts()|(A @ B).to_edgelist()|(A @ x).to_dict()|(x * A).to_dicts()
A.T.to_dicts()|A.T.reposition(1, 1).new()|(x + y).to_dense(0)|(A + B).to_csr()
"""
PARTS = """
x[-1].value|x[-2].value|x.get(-2)|x[[-2, 0]].new()|A[-1, 0].value|A[0, [1, 2]].new()
A[[0, 1], 2].new()
A[0, :].nvals|A[:, 2].nvals|A[[0, 1], [1, 2]].nvals|A[0, :] + x|x[...].new()|A[0, :].get(1)
(~x.S).new()|(x.S & y.S).new()|(x.S \\| y.S).new()|(x.S & ~y.S).new()|(~x.S).parent|x.V.value
x.dup().apply(unary.abs)|A[1, :].reduce().value|A.T[2, :].new()|A.T[[0, 1], :].new()
"""
STATEMENTS = """
x += y|x -= y|x *= y|x /= y|x += 1|x -= 1|x *= 2|x /= 2|b |= c|b &= c|b ^= c|x += y * 2|A += B
A -= B|A *= B|A *= x|A /= 2|A += x|x += semiring.plus_times(x @ A)|s += 1|s *= 4|s -= x[0]
x << x + y|x << A @ y|x << y @ A|A << A.T @ B|s << x @ y|x << binary.min(x \\| y)|b << (b \\| c)
x('+') << y|x(binary.plus) << y|x(binary.min) << A @ y|x(y.S) << 3|x(y.S, binary.plus) << 3
x(binary.plus, y.S) << 3|x(y.S, replace) << y|x(~y.S, replace) << y|x(b) << 9|x(mask=y.S) << 9
x(y.S, binary.plus, replace) << y|x(binary.second, y.V, replace) << i|s(binary.plus) << x.reduce()
A(binary.plus) << B|A(B.S, replace) << A|A(binary.plus)[:, :] = 3|x(binary.plus)[:] = 2|A(C) << 7
x[:](mask=y.S) << i|x[:](y.S) << 3|x[...] << 4|x[[0, 1]](binary.plus) << 5|x[-1] << 8|x[-1] = 8
x[[1, 2, 3]](c[[0, 1, 2]].new().S) << 5|x[[1, 2]](b[[0, 1]].new().V, replace) << y[[0, 1]].new()
x[[0, 1]](~b[[0, 1]].new().V, binary.plus) << 4|A[[0, 1], [1, 2]](C[[0, 1], [0, 1]].new().S) << 5
A[0, :] << x|A[:, 1] << y|A[0, :] = x|A[2, [0, 1]] << y[[1, 2]].new()|A[-1, :] << x + y|A[...] << 3
A[0, :](binary.plus) << y|A[0, :](y.S) << x|A[:, 0](~y.S, replace) << x|A[[0, 1], 3] << x[[0, 1]]
x << semiring.min_plus(x @ A @ B)|x(y.S) << semiring.min_plus(A @ (B @ y))
A << semiring.max_plus(A @ B @ A)|A(~B.S, binary.min, replace) << semiring.min_plus(A.T @ A @ B)
s(binary.min) << semiring.min_plus(x @ A @ y)
x @= A|A @= B|A @= A|x @= A @ B|x @= y|x **= 2|i //= i|i //= 2|x **= y
x[:] << [1, 2, 3, 4]|x[...] << np.array([1.5, 0, 3, 4])|x[[0, 1]] << [8, 9]|A[0, :] << [1, 2, 3, 4]
x[1] = x[0] + 1|del x[-2]; z = 1|A[1, 2] << 5|x << x.reduce()|x << s|x(y.S) << s + 1
"""


TABLES = (ENTRIES, PRODUCTS, SUMS, KEPT, ASKED, PARTS, STATEMENTS)
ROWS = [row for table in TABLES for row in table.strip().splitlines()]
# The first `isclose` of python-graphblas in a process takes seconds: Numba compiles its operator.
QUICK = [row for row in ROWS if ".isclose(" not in row]


def lines(row):
    """Return the lines of a row, which | separates where it is no operator."""
    parts = row.replace("\\|", "\0").replace("|=", "\1").split("|")
    return [part.replace("\0", "|").replace("\1", "|=") for part in parts if part]


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("row", picked(ROWS, *QUICK))
def test_a_line_means_the_same_in_both_libraries(backend, row):
    for line in lines(row):
        found, expected = run(line, lagpu, backend), run(line, gb)
        assert same(found, expected), (line, found, expected)


# Lines that python-graphblas refuses, and lagpu's line for what they can only mean.
ONLY_HERE = {
    "np.int64(2) * x": "2 * x",
    "x << [1, 2, 3, 4]": "x << Vector.from_dense([1, 2, 3, 4], like=x)",
    "x << np.array([1, 2, 3, 4])": "x << Vector.from_dense([1, 2, 3, 4], like=x)",
    "x[0] += 1": "x[0] = x.get(0) + 1",
    "A << [[0, 1, 0, 0]] * 4": "A << 0; A[:, 1] << 1",
}


@pytest.mark.parametrize("line", ONLY_HERE)
def test_a_line_of_lagpu_alone(backend, line):
    assert same(run(line, lagpu, backend), run(ONLY_HERE[line], lagpu, backend))


REFUSED = {
    "y << (x | y)": (DomainMismatch, "no operator, and its types FP64 and FP64 are not both BOOL"),
    "None | y": (DomainMismatch, "To the right of << write brackets"),
    "None > y": (DomainMismatch, "To the right of << write brackets"),
    "~i": (DomainMismatch, "Of bits, write unary.bnot(i)."),
    "x | b & c": (DomainMismatch, "two meanings"),
    "(b | c) & b": (DomainMismatch, "two meanings"),
    "binary.plus(x, y)": (DomainMismatch, "Write binary.plus(u | v), binary.plus(u & v)"),
    "binary.plus(x & y, left_default=0, right_default=0)": (
        DomainMismatch,
        "takes no left_default",
    ),
    "x ^ y": (DomainMismatch, "has no ^ for"),
    "~x": (DomainMismatch, "has no ~ for FP64. As a mask, write ~x.S for where x has no entry"),
    "x == None": (DomainMismatch, "Write x is None."),
    "x != None": (DomainMismatch, "Write x is not None."),
    "bool(x)": (DomainMismatch, "Use x.nvals to ask for entries, x.isequal(u) to compare"),
    "bool(x + y)": (DomainMismatch, "has no truth value"),
    "bool(x == y)": (DomainMismatch, "has no truth value"),
    "x in [y]": (DomainMismatch, "has no truth value"),
    "float(x + y)": (DomainMismatch, "is not a number"),
    "int(x[[0, 1]])": (DomainMismatch, "is not a number"),
    "float(none)": (lagpu.errors.EmptyObject, "no value"),
    "x + none": (lagpu.errors.EmptyObject, "no value"),
    "len(x + y)": (DomainMismatch, "has no len()"),
    "x + 'a'": (DomainMismatch, "str is not a number"),
    "x + np.ones(4)": (DomainMismatch, "ndarray is not a Vector"),
    "x + Vector(float, 9)": (DimensionMismatch, "ewise_add: x.size 4 != 9"),
    "(x @ Vector(float, 9)).new()": (DimensionMismatch, "inner: x.size 4 != v"),
    "x * A[[0, 1], :].new()": (DimensionMismatch, "on the left counts for the rows"),
    "A[[0, 1], :].new().T * x": (DimensionMismatch, "on the right for its columns"),
    "x.S.nvals": (lagpu.errors.NotComputed, "Mask: x.S has no values. Use it as w(mask) << call"),
    "x.S | y": (DomainMismatch, "Vector is not a mask"),
    "x.S + 1": (DomainMismatch, "Mask: has no +"),
    "A.power(-1)": (InvalidValue, "power: n -1 < 0"),
    "x(y) << 1": (
        DomainMismatch,
        "x(...): Vector is not a mask. Write y.S for where",
    ),
    "x(y.S, x.S) << 1": (DomainMismatch, "x(...): takes one mask, not two"),
    "x(binary.plus, monoid.min) << 1": (DomainMismatch, "takes one accumulator, not two"),
    "x(3) << 1": (DomainMismatch, "x(...): int is no mask, accumulator or replace"),
    "s(y.S) << 1": (lagpu.errors.DomainMismatch, "a scalar has no mask"),
    "A << x": (DomainMismatch, "Write A[i, :] << v for a row, A[:, j] << v for a column"),
    "A << x + y": (DomainMismatch, "Write A[i, :] << v for a row"),
    "x << A": (DomainMismatch, "Matrix: is neither a vector nor a number"),
    "x << y.S": (DomainMismatch, "Mask: is not a result"),
    "x << np.ones((2, 2))": (DomainMismatch, "Matrix: is neither a vector nor a number"),
    "x <<= y": (DomainMismatch, "<<= would bind x to something else. Write << alone."),
    "s <<= 1": (DomainMismatch, "Write << alone."),
    "A @= x": (DomainMismatch, "is not the shape of a matrix"),
    "x @= 3": (DomainMismatch, "int is neither a Vector nor a Matrix"),
    "T = A.T; T @= B": (DomainMismatch, "TransposedMatrix: cannot be written to"),
    "A.T[:, :] << B": (DomainMismatch, "A.T cannot be written to, nor can its parts"),
    "A.T[[0, 1], :] << B[[0, 1], :].new()": (DomainMismatch, "as in A[J, I] << B.T"),
    "A.T[:, [1]](binary.plus) << B[:, [1]].new()": (DomainMismatch, "cannot be written to"),
    "A.T[:, :](B.S) << 3": (DomainMismatch, "A.T cannot be written to"),
    "(x + y)[0] << 3": (DomainMismatch, "cannot be written to, nor can its parts"),
    "(A @ B)[0, :] << x": (DomainMismatch, "A @ B cannot be written to"),
    "A[0, :][0] << 3": (DomainMismatch, "A[0, :] cannot be written to"),
    "x[[0, 1]][0].update(3)": (DomainMismatch, "cannot be written to"),
    "i.selection()[:, 0] << x": (DomainMismatch, "cannot be written to"),
    "i.selection().T[0, :] << x": (DomainMismatch, "cannot be written to"),
    "x @ 3": (DomainMismatch, "int is neither a Vector nor a Matrix"),
    "s @ x": (DomainMismatch, "Scalar is neither"),
    "s | x": (DomainMismatch, "Scalar is neither a Vector nor a Matrix"),
    "x @ A @ A @ 3": (DomainMismatch, "int is neither a Vector nor a Matrix"),
}


@pytest.mark.few_on_sim(3)
@pytest.mark.usefixtures("own_garbage")
@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_is_refused_changes_nothing(backend, line):
    objects = {name: converted(x, backend, {}) for name, x in their_objects().items()}
    before = {name: plain(x) for name, x in objects.items()}
    error, hint = REFUSED[line]

    def author():
        world = {"np": np, "binary": binary, "monoid": monoid, "Vector": _on(backend), **objects}
        exec(line, world)

    with pytest.raises(error) as caught:
        author()
    text = str(caught.value)
    assert hint in text, text
    del caught
    gc.collect()  # what was dropped with the error does not warn as well
    assert all(same(plain(x), before[name]) for name, x in objects.items())


# Wrong line -> (what the message says to write, that line for these objects). Run in lagpu, it
# gives what python-graphblas gives for it.
ADVICE = {
    "x(y) << 1": ("y.S", "x(y.S) << 1"),
    "x(mask=i) << 1": ("i.V", "x(mask=i.V) << 1"),
    "x(3) << 1": ("binary.plus", "x(binary.plus) << 1"),
    "A << x": ("A[i, :] << v", "A[0, :] << x"),
    "A << y + x": ("A[:, j] << v", "A[:, 1] << y + x"),
    "y << (x | y)": ("binary.plus(x | y)", "y << binary.plus(x | y)"),
    "y << (x & y)": ("binary.times(x & y)", "y << binary.times(x & y)"),
    "binary.minus(x, y)": ("binary.minus(u | v)", "binary.minus(x | y)"),
    "binary.minus(y, x)": ("binary.minus(u & v)", "binary.minus(y & x)"),
    "monoid.max(x)": ("binary.max(u, 3)", "binary.max(x, 3)"),
    "x | 2": ("binary.plus(u, x)", "binary.plus(x, 2)"),
    "x & 2": ("binary.times(u, x)", "binary.times(x, 2)"),
    "~x": ("~x.S", "y(~x.S) << 1"),
    "~A": ("~A.V", "B(~A.V) << 1"),
    "semiring.min_plus(x, A)": ("min_plus(q @ A)", "semiring.min_plus(x @ A)"),
    "A.T << B": ("A << B.T", "A << B.T"),
    "x.S << 1": ("w(x.S) << 1", "y(x.S) << 1"),
    "x[y] << 1": ("x(y.S) << x", "x(y.S) << 1"),
    "x[y.S] << 1": ("x(y.S) << x", "x(y.S) << 1"),
    "x <<= y": ("Write << alone", "x << y"),
    "x.ewise_add(3)": ("x.apply(op, x)", "x.apply(binary.plus, 3)"),
    "bool(x)": ("x.nvals", "x.nvals"),
    "bool(x == y)": (".isequal(u)", "x.isequal(y)"),
    "x @ 3": ("from_dense or from_coo", "x @ Vector.from_coo([0, 2], [3.0, 3.0], size=4)"),
}


@pytest.mark.usefixtures("own_garbage")
@pytest.mark.parametrize("line", ADVICE)
def test_what_a_message_says_to_write_is_right(line):
    advice, instead = ADVICE[line]
    world = {name: converted(x, "cpu", {}) for name, x in their_objects().items()}
    world |= {"binary": binary, "monoid": monoid, "semiring": semiring}
    with pytest.raises(lagpu.errors.LagpuError) as caught:
        exec(line, world)
    assert advice in str(caught.value), str(caught.value)
    del caught
    gc.collect()
    with lagpu.use("cpu"):
        found = run(instead, lagpu, "cpu")
    assert same(found, run(instead, gb)), instead


@pytest.mark.parametrize(
    "part", ["x['a']", "x[1.5]", "x[9]", "x[y]", "x[y.S]", "A[0]", "A['a', 0]", "A[0, 9]"]
)
def test_a_wrong_index_is_refused_where_it_is_written(backend, part):
    world = {name: converted(x, backend, {}) for name, x in their_objects().items()}
    with pytest.raises(lagpu.errors.LagpuError):
        exec(part, world)


def _on(backend):
    return lambda dtype, size: Vector(dtype, size, backend=backend)


def test_a_result_is_computed_once_when_it_is_asked_for(backend):
    u = Vector.from_coo([0, 2], [1, 2], size=3, backend=backend)
    total = u + 1
    assert total.nvals == 2
    u[1] = 5
    assert total.nvals == 2, "as it was when first asked for"
    w = Vector(INT64, 3, like=u)
    w << total
    assert w.to_coo()[1].tolist() == [2, 6, 3], "a statement reads its operands when it runs"


def test_indices_may_be_uint64(backend):
    """Beside INT64, NumPy computes with UINT64 in floats."""
    rows, cols = np.arange(3, dtype=np.uint64), np.array([3, 4, 9], np.uint64)
    D = Matrix.from_coo(rows, cols, 0, int, nrows=3, ncols=34, backend=backend)
    Q = lagpu.unary.one[bool](D).new()
    assert Q.to_coo()[1].tolist() == [3, 4, 9]
    assert D[rows, cols].nvals == 3


def test_a_comparison_selects(backend):
    u = Vector.from_coo([0, 2, 3], [1, 5, 3], size=4, backend=backend)
    A = u.diag()
    for mine, theirs in (
        (u > 2, u.select("valuegt", 2)),
        (u <= 3, u.select("valuele", 3)),
        (A > 2, A.select("valuegt", 2)),
        (A != 5, A.select("valuene", 5)),
    ):
        assert mine.kept().new().isequal(theirs.new())
    for wrong in (lambda: (u + 1).kept(), lambda: (u > u).kept(), lambda: u.reduce().kept()):
        with pytest.raises(DomainMismatch, match="is no comparison with a number"):
            wrong()
    with pytest.raises(DomainMismatch, match="row has no eq"):
        lagpu.select.row(A == 1)
    with pytest.raises(DomainMismatch, match=r"select\.row: int is no comparison"):
        lagpu.select.row(3)
    with pytest.raises(DomainMismatch, match="comparing index with nan is not exact"):
        lagpu.select.index(u < np.nan)


def test_a_place_is_compared_with_a_number_between_two(backend):
    u = Vector.from_coo(range(5), 1.5, backend=backend)
    for call, kept in (
        (lagpu.select.index(u < 2.5), [0, 1, 2]),
        (lagpu.select.index(u <= 2.5), [0, 1, 2]),
        (lagpu.select.index(u > 2.5), [3, 4]),
        (lagpu.select.index(u >= 2.5), [3, 4]),
    ):
        assert call.new().to_coo()[0].tolist() == kept
    f = u.dup("FP32")
    with pytest.raises(DomainMismatch, match="is not exact"):  # FP32 has no 2**24 + 1
        lagpu.select.index(f <= 2**24 + 1)


def select_in_a_loop(w, u, s, q, A):  # without assert, so that pytest leaves its code alone
    for _ in lagpu.loop(until_empty=q):
        w << lagpu.select.value(u > s)
        w(accum=binary.plus) << lagpu.select.indexle(u, 1)
        q << semiring.any_pair(q @ A)


def test_select_is_part_of_a_loop(backend):
    s = Scalar(INT64, 2)
    u = Vector.from_coo([0, 1, 2, 3], [1, 5, 3, 4], size=5, backend=backend)
    A = Matrix.from_coo([0, 1], [1, 2], True, nrows=5, ncols=5, backend=backend)
    w, q = Vector(INT64, 5, like=u), Vector.from_coo([0], True, size=5, backend=backend)
    select_in_a_loop(w, u, s, q, A)
    assert w.to_coo()[0].tolist() == [0, 1, 2, 3]
    assert w.to_coo()[1].tolist() == [1, 10, 3, 4]
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


def chains_in_a_loop(w, v, q, A):
    for _ in lagpu.loop(until_empty=q, times=3):
        w << semiring.min_plus(q @ A @ A)
        v(accum=binary.min) << semiring.max_plus(A @ (A @ q))
        q << semiring.min_plus(q @ A)


def test_a_semiring_governs_a_chain_in_a_loop_too(backend):
    A = Matrix.from_coo([0, 1, 2, 3], [1, 2, 3, 0], [2, 5, 7, 1], nrows=4, ncols=4, backend=backend)
    q = Vector.from_coo([0], [3], size=4, backend=backend)
    w, v = Vector(INT64, 4, like=q), Vector(INT64, 4, like=q)
    chains_in_a_loop(w, v, q, A)
    assert w.to_dict() == {0: 18}, "3 + 2 + 5 + 7 + 1, from vertex 2 of the third turn"
    assert v.to_dict() == {2: 11, 3: 8, 0: 17}
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


def inplace_in_a_loop(w, v, u, q, A):
    for _ in lagpu.loop(until_empty=q, times=3):
        w @= A
        v **= 2
        u //= 2
        q << semiring.any_pair(q @ A)


def test_what_is_written_in_place_is_written_in_a_loop_too(backend):
    A = Matrix.from_coo([0, 1, 2, 3], [1, 2, 3, 0], [2, 5, 7, 1], nrows=4, ncols=4, backend=backend)
    q = Vector.from_coo([0], [True], size=4, backend=backend)
    w, v, u = (Vector.from_coo([0, 1], [3, 16], size=4, like=q) for _ in range(3))
    inplace_in_a_loop(w, v, u, q, A)
    assert w.to_dict() == {3: 3 * 70, 0: 16 * 35}
    assert v.to_dict() == {0: 3**8, 1: 16**8}
    assert u.to_dict() == {0: 0, 1: 2}
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED


def test_a_chain_counts_in_the_type_of_all_its_operands(backend):
    u = Vector.from_coo([0], [2**31 - 1], "INT32", size=1, backend=backend)
    v = Vector.from_coo([0], [1], size=1, backend=backend)
    assert binary.plus(u | u | v).new().to_dict() == {0: 2**32 - 1}
    assert monoid.plus(v | (u | u)).new().to_dict() == {0: 2**32 - 1}
    a = u.diag()
    assert semiring.plus_plus(a @ a @ v).new().to_dict() == {0: 2**32 - 1}


def test_a_type_is_what_python_calls_it(backend):
    u = Vector(INT64, 3, backend=backend)
    assert u.dtype == INT64
    assert u.dtype == int
    assert u.dtype != bool
    assert u.dtype != None  # noqa: E711
    assert u.dtype == np.int64
    assert u.dtype != "no type"
    assert {INT64: 1}[u.dtype] == 1


def test_an_expression_is_indexed_as_its_result(backend):
    u = Vector.from_coo([0, 2, 3], [1, 5, 3], size=4, backend=backend)
    assert (u + 1)[2].value == 6
    assert 2 in u + 1
    assert 1 not in u + 1
    assert (u.diag() * 2)[3, :].new().to_coo()[1].tolist() == [6]


def test_types_are_lagpus_own(backend):
    i = Vector.from_coo([0], [7], dtype="INT32", size=2, backend=backend)
    assert (i + 1).new().dtype is i.dtype
    assert (i / 2).new().dtype is FP64
    assert (i == 7).new().dtype is BOOL
    assert (i + 1.5).new().dtype is FP64
    assert (Scalar(INT64, 2) * 3).new().dtype is INT64


@pytest.mark.usefixtures("own_garbage")
def test_two_backends_do_not_mix(backend):
    u = Vector(FP64, 3, backend=backend)
    v = Vector(FP64, 3, backend="sim" if backend.name == "cpu" else "cpu")
    A = Matrix(FP64, 3, 3, like=v)
    for wrong in (
        lambda: u + v, lambda: binary.plus(u | v), lambda: u.inner(v), lambda: u * A,
        lambda: u.outer(v), lambda: u.__iadd__(v), lambda: u[:](v.S) << 1,
    ):  # fmt: skip
        with pytest.raises(BackendMismatch):
            wrong()
        gc.collect()


@pytest.mark.usefixtures("own_garbage")
@pytest.mark.parametrize("line", ["u + u", "2 * u", "u | u", "u @ u", "-u", "u == u", "u * 2 + u"])
def test_an_expression_that_is_not_used_warns(backend, line, tmp_path):
    u = Vector.from_coo([0, 2], [1, 2], size=3, backend=backend)
    path = tmp_path / "program.py"
    path.write_text(f"def program(u):\n    {line}\n", "utf-8")
    world = {}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), world)
    with pytest.warns(UnusedCall, match="was never used"):
        world["program"](u)


def test_the_modules_of_operators_can_be_imported_from():
    from lagpu.semiring import min_plus

    assert min_plus is semiring.min_plus
