"""Crosschecks of matrices: what `any` may choose, what sums may differ by, and what counts."""

from typing import NamedTuple

import numpy as np
import pytest
from crosschecked import BOTH, CPU
from faulty import difference, with_methods, with_operations

from lagpu import FP32, FP64, INT64, Matrix, algorithms, binary, crosscheck, semiring


def change(place, C, where, value):
    """Change one entry of a matrix that is there, or all if `where` is None."""
    ptr, idx, values = place.matrix_to_csc(C)
    values = values.copy()
    cols = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    chosen = slice(None) if where is None else (idx == where[0]) & (cols == where[1])
    values[chosen] = value(values[chosen]) if callable(value) else value
    place.set_values(C, values)


def changed(where, value):
    """Return an operation that writes the right matrix but for one entry, or for all."""

    def operation(place, right, s):
        right(s)
        change(place, s.out, where, value)

    return operation


def with_triplets(where, value):
    """Return a copy of sim that makes the right matrix of triplets but for one entry, or all."""

    def method(place, right, *args):
        C = right(*args)
        change(place, C, where, value)
        return C

    return with_methods(matrix_from_coo=method)


class Matrices(NamedTuple):
    """What programs get: `C` has old entries, `M` is a mask that keeps some."""

    A: Matrix
    B: Matrix
    C: Matrix
    M: Matrix


@pytest.fixture(scope="module")
def matrices():
    A = Matrix.from_coo([0, 0, 1, 2], [0, 1, 1, 2], [10, 11, 12, 13], nrows=3, ncols=3, **CPU)
    B = Matrix.from_coo([0, 1, 1, 2], [2, 2, 0, 1], [20, 21, 22, 23], nrows=3, ncols=3, **CPU)
    C = Matrix.from_coo([0, 2], [2, 2], [100, 101], nrows=3, ncols=3, **CPU)
    M = Matrix.from_coo([0, 0, 1], [2, 1, 2], [1, 0, 1], nrows=3, ncols=3, **CPU)
    return Matrices(A, B, C, M)


# A program of A, B, C and M; the operation, a place, values it may have there, one it may not.
CHOICES = {
    "left values": (
        lambda o: semiring.any_first(o.A @ o.B).new(),
        ("matrix_mxm", (0, 2), (10, 11), 12),
    ),
    "right values": (
        lambda o: semiring.any_second(o.A @ o.B).new(),
        ("matrix_mxm", (0, 2), (20, 21), 22),
    ),
    "products": (
        lambda o: semiring.any_times(o.A @ o.B).new(),
        ("matrix_mxm", (0, 2), (200, 231), 210),
    ),
    "index in the middle": (
        lambda o: semiring.any_secondi(o.A @ o.B).new(),
        ("matrix_mxm", (0, 2), (0, 1), 2),
    ),
    "row": (lambda o: semiring.any_firsti(o.A @ o.B).new(), ("matrix_mxm", (0, 2), (0,), 2)),
    "column": (lambda o: semiring.any_secondj(o.A @ o.B).new(), ("matrix_mxm", (0, 2), (2,), 0)),
    "transposed": (
        lambda o: semiring.any_first(o.B.T @ o.A.T).new(),
        ("matrix_mxm", (2, 0), (20, 21), 22),
    ),
    "masked and accumulated": (
        lambda o: o.C(o.M.V, accum=binary.plus) << semiring.any_first(o.A @ o.B),
        ("matrix_mxm", (0, 2), (110, 111), 11),
    ),
    "union": (
        lambda o: o.A.ewise_add(o.A.T, "any").new(),
        ("matrix_ewise_add", (0, 0), (10,), 11),
    ),
    "intersection": (
        lambda o: o.A.ewise_mult(o.B.T, "any").new(),
        ("matrix_ewise_mult", (0, 1), (11, 22), 10),
    ),
    "with defaults": (
        lambda o: o.A.ewise_union(o.B, "any", 7, 8).new(),
        ("matrix_ewise_union", (1, 0), (7, 22), 8),
    ),
    "bound operand": (
        lambda o: o.A.apply("any", 5).new(),
        ("matrix_apply", (1, 1), (5, 12), 10),
    ),
    "Kronecker product": (
        lambda o: o.A.kronecker(o.B.T, "any").new(),
        ("matrix_kronecker", (3 * 0 + 2, 3 * 1 + 1), (11, 21), 22),
    ),
    "accumulator": (
        lambda o: o.C(accum="any") << o.B,
        ("matrix_dup", (0, 2), (100, 20), 21),
    ),
    "accumulator of a sum": (
        lambda o: o.C(accum="any") << semiring.plus_times(o.A @ o.B),
        ("matrix_dup", (0, 2), (100, 431), 200),  # the product is there by then
    ),
    "accumulator of a part": (
        lambda o: o.C(accum="any")[[2, 0], [2, 1]] << o.A[[0, 1], [0, 1]].new(),
        ("matrix_assign", (2, 2), (101, 10), 12),
    ),
    "accumulated transpose": (
        lambda o: o.C(accum="any")[[0, 1, 2], [0, 1, 2]] << o.B.T,
        ("matrix_assign", (0, 1), (22,), 20),
    ),
    "accumulated number": (
        lambda o: o.C(accum="any")[[0, 1], [2]] << 5,
        ("matrix_assign_scalar", (0, 2), (100, 5), 101),
    ),
    "triplets": (
        lambda o: Matrix.from_coo([1, 1, 0], [0, 0, 1], [1, 2, 3], dup_op=binary.any, like=o.A),
        ("triplets", (1, 0), (1, 2), 3),
    ),
}


@pytest.mark.parametrize("case", CHOICES)
def test_what_any_may_choose(matrices, case):
    statement, (name, where, may, may_not) = CHOICES[case]

    def place(value):
        if name == "triplets":
            return with_triplets(where, value)
        return with_operations(**{name: changed(where, value)})

    def program(*things):
        o = Matrices(*things)
        made = statement(o)
        return o.C if made is None else made

    results, chosen = [], 0
    for value in may:
        report = crosscheck(program, *matrices, backends=("cpu", place(value)))
        results.append(report.result.get(*where))
        chosen += report.rows[-1].chosen
        assert report.rows[-1].rule == "any of the candidates"
    assert len(set(results)) == 1, "the oracle's value stands"
    assert (chosen > 0) >= (len(may) > 1)
    found = difference(program, *matrices, faulty=place(may_not))
    assert (found.rows[0][0], found.rows[0][2], found.count) == (where, may_not, 1)


# Operations that make a matrix by something other than `any`, and those that do it by `any`.
MADE = {
    "matrix_mxm": lambda o: semiring.plus_times(o.A @ o.B.T),
    "matrix_ewise_add": lambda o: o.A.ewise_add(o.B.T, "plus"),
    "matrix_apply": lambda o: o.A.apply("plus", right=1),
    "matrix_select": lambda o: o.A.select("valuegt", 11),
    "matrix_extract": lambda o: o.A[[2, 1, 0], [2, 1, 0]],
}
CHOSEN = {
    "intersection": lambda o: o.A.ewise_mult(o.B.T, "any"),
    "with defaults": lambda o: o.A.ewise_union(o.B, "any", 7, 8),
    "bound operand": lambda o: o.A.apply("any", 5),
    "Kronecker product": lambda o: o.A[[0], [0]].new().kronecker(o.B, "any"),
}


def full_matrix():
    return Matrix.from_coo(*np.divmod(np.arange(9), 3), np.arange(100, 109), **CPU)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_any_may_keep_an_entry_or_take_what_was_made(matrices, name, masked):
    """Right backends differ here: cpu takes the new entry, sim keeps the old one."""

    def program(C, *things):
        o = Matrices(*things)
        C(~o.M.V if masked else None, accum="any") << MADE[name](o)
        return C

    report = crosscheck(program, full_matrix(), *matrices, backends=BOTH)
    (row,) = report.rows
    assert (row.rule, row.runs, report.statements) == ("any of the candidates", 1, 1)
    assert row.chosen > 0, "no freedom: the test shows nothing"
    for wrong, where in ((name, None), ("matrix_dup", (1, 1))):
        faulty = with_operations(**{wrong: changed(where, 200)})
        found = difference(program, full_matrix(), *matrices, faulty=faulty)
        assert found.what == {"matrix_dup": "matrix_write"}.get(wrong, wrong)
        assert found.rows[0][2] == 200


@pytest.mark.parametrize("case", CHOSEN)
def test_where_nothing_meets_the_old_entry_stays(matrices, case):
    def program(C, *things):
        C(accum="second") << CHOSEN[case](Matrices(*things))
        return C

    report = crosscheck(program, full_matrix(), *matrices, backends=BOTH)
    assert report.rows[-1].rule == "any of the candidates"
    assert report.result.get(2, 0) == 106


@pytest.mark.parametrize("name", [s.name for s in semiring if s.monoid.name == "any"])
def test_no_choice_of_the_oracle_is_refused(name):
    """Terms, mask and accumulator as NumPy sees them hold whatever GraphBLAS takes of them."""
    rng = np.random.default_rng(len(name))

    def program(A, B, C, how):
        C(**how) << semiring[name](A @ B)
        return C

    def some(k):
        rows, cols = np.nonzero(rng.random((6, 6)) < 0.4)
        values = rng.integers(-3, 4, len(rows))
        return Matrix.from_coo(rows, cols, values, (INT64, FP32)[k], nrows=6, ncols=6, **CPU)

    for k in range(12):
        A, B, C = some(k % 2), some(k // 2 % 2), some(0)
        A, B = (A.T if k % 3 == 1 else A), (B.T if k % 4 == 2 else B)
        how = {"accum": (None, binary.plus, binary.any)[k % 3]}
        report = crosscheck(program, A, B, C, how, backends=("cpu", "cpu"))
        assert (report.rows[-1].rule, report.statements) == ("any of the candidates", 1)


def test_wrong_parents_of_several_searches(graph):
    faulty = with_operations(matrix_mxm=changed(None, lambda x: x + 1))
    found = difference(algorithms.bfs_parents_multi, graph, [1, 2, 3], faulty=faulty)
    assert (found.what, found.level) == ("matrix_mxm", 0)
    assert "any may choose one of" in found.rows[0][3]
    cpu, other = found.plans
    assert cpu.kernel.startswith("SuiteSparse")
    assert other.kernel == "bitmap_mxm_sums"


def test_parents_of_several_searches_may_differ(graph):
    report = crosscheck(algorithms.bfs_parents_multi, graph, [1, 2, 3], backends=BOTH)
    rules = {row.formula: row.rule for row in report.rows}
    product = "frontier(~parents.S, replace) << frontier any_secondi A"
    assert rules[product] == "any of the candidates"
    assert rules["parents(frontier.S) << frontier"] == "exactly"
    assert sum(row.chosen for row in report.rows) > 0, "no freedom: the test shows nothing"
    assert report.result.isequal(algorithms.bfs_parents_multi(graph, [1, 2, 3])), "the oracle's"


def test_terms_of_a_matrix_product_that_cancel():
    """1e16 + 1 - 1e16 is 0 or 1: relative to what was added, both are right."""

    def product(A, B):
        return semiring.plus_times(A @ B).new()

    A = Matrix.from_coo([0, 0, 0], [0, 1, 2], [1e16, 1.0, -1e16], **CPU)
    B = Matrix.from_coo([0, 1, 2], [0, 0, 0], [1.0, 1.0, 1.0], **CPU)
    for value in (0.0, 1.0, 1e5):
        other = with_operations(matrix_mxm=changed(None, value))
        assert crosscheck(product, A, B, backends=("cpu", other)).ok
    found = difference(product, A, B, faulty=with_operations(matrix_mxm=changed(None, 1e6)))
    assert found.rows[0][2] == 1e6


def test_triplets_of_floats_are_added_within_the_tolerance_of_their_type(matrices):
    def triplets(like, values, dtype, op):
        zeros = [0] * len(values)
        return Matrix.from_coo(zeros, zeros, values, dtype, dup_op=op, like=like)

    def run(values, dtype, op, factor):
        other = with_triplets(None, lambda x: x * dtype.numpy.type(factor))
        args = matrices.A, values, dtype, op
        return args, other

    for dtype, op, rule, fine, wrong in (
        (FP64, binary.plus, "within 1e-11", 1 + 1e-13, 1 + 5e-7),
        (FP32, binary.plus, "within 0.0001", 1 + 1e-6, 1.01),
        (FP64, binary.max, "exactly", 1, 1 + 1e-13),
        (INT64, binary.plus, "exactly", 1, 2),
    ):
        args, other = run([1, 2, 4], dtype, op, fine)
        report = crosscheck(triplets, *args, backends=("cpu", other))
        assert [row.rule for row in report.rows] == [rule]
        args, other = run([1, 2, 4], dtype, op, wrong)
        assert difference(triplets, *args, faulty=other).what == "matrix_from_coo"
    args, other = run([1e16, 1.0, -1e16], FP64, binary.plus, 0)
    assert crosscheck(triplets, *args, backends=("cpu", other)).ok, "terms that cancel"


def test_a_statement_counts_once(graph):
    def program(A):
        F = Matrix.from_coo([0], [0], [1.0], nrows=1, ncols=A.nrows, like=A)
        P = Matrix(FP64, 1, A.nrows, like=A)
        P(F.S) << F
        P(~F.S) << semiring.plus_first(F @ A)
        P(accum="any") << F
        w = P.reduce_rowwise("plus").new()
        w[0] << 3
        return w

    report = crosscheck(program, graph, backends=BOTH)
    assert report.statements == 6
    assert [(row.runs, row.rule) for row in report.rows] == [
        (1, "exactly"),
        (1, "exactly"),
        (1, "within 1e-11"),
        (1, "any of the candidates"),
        (1, "within 1e-11"),
        (1, "exactly"),
    ]
    faulty = with_operations(matrix_dup=changed((0, 0), 7.0))
    found = difference(program, graph, faulty=faulty)
    assert (found.number, found.what) == (2, "matrix_write")
    assert found.plans == ()
