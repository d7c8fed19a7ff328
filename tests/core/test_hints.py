"""What Python would let pass quietly, or refuse without a hint, says what was probably meant."""

import gc

import numpy as np
import pytest

from lagpu import BOOL, INT64, Matrix, Scalar, Vector, binary, loop, monoid, semiring
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    LagpuError,
    NotComputed,
)

pytestmark = pytest.mark.usefixtures("own_garbage")


@pytest.fixture
def q(backend):
    return Vector.from_coo([0, 2], [1, 2], size=3, backend=backend, name="vector")


@pytest.fixture
def r(backend):
    return Vector.from_coo([1], [3], size=3, backend=backend, name="other")


@pytest.fixture
def A(backend):
    return Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=4, backend=backend, name="M")


def refusal(wrong):
    with pytest.raises(LagpuError) as caught:
        wrong()
    text = str(caught.value)
    assert text.endswith((".", "?")), text
    gc.collect()  # a call that was dropped with the error does not warn as well
    return type(caught.value), text


# Wrong line, and the line to write instead, in the names of the author.
VECTORS = {
    "q + r": "Write q.ewise_add(r, binary.plus), on the union, or ewise_mult, on the intersection.",
    "q - r": "Write q.ewise_union(r, binary.minus, 0, 0).",
    "q * r": "Write q.ewise_mult(r, binary.times), on the intersection, or ewise_add",
    "q / r": "Write q.ewise_mult(r, binary.truediv)",
    "q & r": "Write q.ewise_mult(r, binary.land)",
    "q | r": "Write q.ewise_add(r, binary.lor)",
    "q ^ r": "Write q.ewise_add(r, binary.lxor)",
    "q + 1": "Write q.apply(binary.plus, 1).",
    "1 - q": "Write q.apply(binary.minus, left=1).",
    "q / 2.5": "Write q.apply(binary.truediv, 2.5).",
    "2 * q": "Write q.apply(binary.times, left=2).",
    "np.int64(2) * q": "Write q.apply(binary.times, left=2).",
    "q ** 2": "There is no such operator: make one with binary.register",
    "q // 2": "There is no such operator",
    "q % 2": "There is no such operator",
    "-q": "Write q.apply(unary.ainv).",
    "abs(q)": "Write q.apply(unary.abs).",
    "~q": "As a mask, write ~q.S for where q has no entry",
    "q * A": "A product is semiring.plus_times(q @ A), or another semiring.",
    "A * q": "A product is semiring.plus_times(A @ q), or another semiring.",
    "q == r": "Write q.isequal(r) for one answer, q.ewise_mult(r, binary.eq) for one per entry.",
    "q != r": "Write not q.isequal(r) for one answer, q.ewise_mult(r, binary.ne) for",
    "q == 3": "Write q.select('valueeq', 3) to keep such entries, q.apply(binary.eq, 3) for",
    "q > 3": "Write q.select('valuegt', 3) to keep such entries, q.apply(binary.gt, 3) for",
    "q <= r": "Write q.ewise_mult(r, binary.le) for one answer per entry.",
    "3 < q": "Write q.select('valuegt', 3)",
    "q == None": "Write q is None.",
    "q != None": "Write q is not None.",
    "bool(q)": "Use q.nvals to ask for entries, q.isequal(u) to compare",
    "not q": "Use q.nvals to ask for entries",
    "q and r": "Use q.nvals to ask for entries",
    "len(q)": "Use q.size, q.nvals",
    "np.asarray(q)": "Use q.to_dense(fill_value), or q.to_coo() for indices and values.",
    "A + A": "Write A.ewise_add(A, binary.plus), on the union, or ewise_mult",
    "A * 3": "Write A.apply(binary.times, 3).",
    "A == A.T": "Write A.isequal(",
    "A != 3": "Write A.select('valuene', 3) to keep such entries",
    "A == q": "Matrix: has no ==",
    "bool(A)": "Use A.nvals to ask for entries, A.isequal(B) to compare.",
    "len(A)": "Use A.nrows, A.nvals",
    "np.asarray(A)": "lagpu.io.to_scipy(A).toarray()",
    "A.T + A": "Write A.T.ewise_add(A, binary.plus)",
    "A * A.T": "Write A.ewise_mult(A.T, binary.times), on the intersection",
    "A < A": "Write A.ewise_mult(A, binary.lt) for one answer per entry.",
    "~A": "As a mask, write ~A.S for where A has no entry",
    "bool(A.T)": "Use A.T.new() to make a matrix of it.",
}


@pytest.mark.parametrize("line", VECTORS)
def test_python_operators(q, r, A, line):
    def wrong():
        names = {"q": q, "r": r, "A": A}
        exec(f"def author(q, r, A):\n    {line}", {"np": np}, names)
        names["author"](q, r, A)

    error, text = refusal(wrong)
    assert error is DomainMismatch
    assert VECTORS[line] in text


INPLACE = {
    "q += r": "Write q(accum=binary.plus) << r.",
    "q -= 1": "Write q(accum=binary.minus) << 1.",
    "q *= r": "Write q(accum=binary.times) << r.",
    "q |= r": "Write q(accum=binary.lor) << r.",
    "q &= r": "Write q(accum=binary.land) << r.",
    "q <<= r": "<<= would bind q to something else. Write << alone.",
    "q[0] <<= 1": "Write << alone.",
    "s += 1": "Write s << s.value + 1.",
    "s <<= 1": "<<= would bind s to something else",
}


@pytest.mark.parametrize("line", INPLACE)
def test_python_assignments(q, r, line):
    def wrong():
        names = {}
        exec(f"def author(q, r, s):\n    {line}", {}, names)
        names["author"](q, r, Scalar(INT64, 2))

    error, text = refusal(wrong)
    assert error is DomainMismatch
    assert INPLACE[line] in text
    assert q.nvals == 2, "nothing has changed"


def test_the_authors_names_are_those_in_the_function_that_runs(q, r):
    frontier, levels = q, r
    assert "Write frontier.ewise_add(levels, binary.plus)" in refusal(lambda: frontier + levels)[1]
    pair = {"left": q}
    assert "Write vector.ewise_add(levels" in refusal(lambda: pair["left"] + levels)[1]


def test_one_entry_is_no_number(q):
    for wrong, hint in (
        (lambda: q[0] == 1, "For one entry, write q[0].value == 1."),
        (lambda: q[0] + 1, "For one entry, write q[0].value + 1."),
        (lambda: 1 + q[0], "For one entry, write 1 + q[0].value."),
        (lambda: q[0] > 3, "write q[0].value > 3."),
        (lambda: int(q[0]), "is not a number. For one entry, write q[0].value."),
        (lambda: float(q[0]), "q[0].value"),
        (lambda: range(q[0]), "q[0].value"),
        (lambda: bool(q[0]), "w[i].value"),
    ):
        error, text = refusal(wrong)
        assert error is DomainMismatch
        assert hint in text


def test_what_is_no_index(q, r, A):
    masked = r
    for wrong, hint in (
        (lambda: q[...], "is not an index. Write q[:], or q << x."),
        (
            lambda: q[masked],
            "a vector is not an index. Write q(masked.S) << x to write where masked",
        ),
        (lambda: q[masked.S], "a mask is not an index. Write q(masked.S) << x to write there."),
    ):
        error, text = refusal(lambda wrong=wrong: wrong().new())
        assert (error, hint in text) == (DomainMismatch, True), text
    for indices in (..., masked, masked.S):
        with pytest.raises(DomainMismatch, match="index"):
            q[indices] = 1
        with pytest.raises(DomainMismatch, match="index"):
            q[indices] << semiring.any_first(A @ Vector(INT64, 4, like=A))
    assert q.nvals == 2
    gc.collect()


def test_what_is_no_right_hand_side(q, A):
    def line(value):
        q << value

    for value, hint in (
        (lambda: q @ A, "MatMul: is not a result. Write semiring.plus_times(q @ M), or another"),
        (lambda: ~q.S, "Mask: is not a result. Use it as w(mask) << call, or make a vector"),
        (lambda: [1, 2, 3], "a list is not a number. Write q << Vector.from_dense(x, like=w)."),
        (lambda: np.arange(3), "is neither a vector nor a number. Make a vector with Vector.fr"),
        (lambda: A, "Matrix: is neither a vector nor a number"),
    ):
        error, text = refusal(lambda value=value: line(value()))
        assert (error, hint in text) == (DomainMismatch, True), text


def test_what_is_no_product(q, r, A):
    def one(x):
        return semiring.any_pair(x)

    for wrong, hint in (
        (
            lambda: semiring.any_pair(q, A),
            "takes one product, not 2 operands. Write any_pair(q @ A)",
        ),
        (lambda: q @ A @ A, "Write w << semiring.plus_times(q @ A), then w @ A."),
        (lambda: np.ones(3) @ A, "ndarray is neither a Vector nor a Matrix"),
        (lambda: one(q @ A) @ A, "Call: has no @. Assign it with w << call first"),
        (lambda: A @ one(q @ A), "Call is neither a Vector nor a Matrix. Assign it with w << call"),
        (lambda: binary.plus(q, r), "Write u.ewise_add(v, binary.plus), on the union, or ewise_m"),
        (lambda: monoid.plus(q), "Write u.reduce(monoid.plus), or u.ewise_add(v, binary.plus)"),
        (
            lambda: q.ewise_add(3, "plus"),
            "int is not a Vector. With a number, write q.apply(op, x)",
        ),
        (
            lambda: q.ewise_add(r.apply("abs"), "plus"),
            "Call is not a Vector. Assign it with w << c",
        ),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DomainMismatch, True), text


def test_the_product_that_fits_is_named(q, A):
    long = Vector(BOOL, 4, like=q)
    for wrong, hint in (
        (lambda: semiring.any_pair(A @ q), "Did you mean A.T @ q or q @ A?"),
        (lambda: semiring.any_pair(long @ A), "Did you mean long @ A.T or A @ long?"),
        (lambda: q.vxm(A.T, "any_pair"), "Did you mean q @ A or A.T @ q?"),
        (lambda: semiring.any_pair(A.T @ long), "Did you mean A @ long or long @ A.T?"),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DimensionMismatch, True), text
    text = refusal(lambda: semiring.any_pair(Vector(BOOL, 9, like=q) @ A))[1]
    assert "you mean" not in text, "neither way fits"


def test_what_waits_has_no_values(q, A):
    call = semiring.any_first(q @ A)
    for wrong, hint in (
        (lambda: call.nvals, "Call: vector any_first M is not computed yet and has no nvals. Ass"),
        (lambda: call.reduce("plus"), "has no reduce. Assign it with w << call first, or make an"),
        (lambda: (q @ A).new(), "MatMul: q @ A is not computed yet and has no new. Write semiring"),
        (lambda: q[[0, 1]].nvals, "is not computed yet and has no nvals. Use w[i].value"),
        (lambda: q.S.nvals, "Mask: q.S is not computed yet and has no nvals. Use it as w(mask)"),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (NotComputed, True), text
    assert not hasattr(call, "nvals")
    for wrong in (lambda: call + 1, lambda: call == call, lambda: list(call), lambda: len(call)):
        assert "Assign it with w << call first" in refusal(wrong)[1]
    call.new()


def test_a_loop_without_a_name(q):
    def program(frontier):
        for _ in loop(frontier):
            pass

    error, text = refusal(lambda: program(q))
    assert error is DomainMismatch
    assert text.endswith("Write loop(until_empty=frontier).")
    assert "Write loop(times=5)." in refusal(lambda: loop(5))[1]


def test_scalars_are_not_added():
    s = Scalar(INT64, 2)
    for wrong, hint in (
        (lambda: s + 1, "Scalar: has no +. Write s.value + 1."),
        (lambda: 1 - s, "Write 1 - s.value."),
        (lambda: s * s, "Write s.value * s."),
    ):
        assert hint in refusal(wrong)[1]
    assert s == 2


def test_scalars_are_not_ordered():
    s = Scalar(INT64, 2)
    for wrong, hint in (
        (lambda: s > 3, "Scalar: has no >. Write s.value > 3."),
        (lambda: s <= 3, "Write s.value <= 3."),
        (lambda: s >= s, "Write s.value >= s."),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DomainMismatch, True), text


def test_an_operator_is_asked_for(q, r, A):
    for wrong, hint in (
        (
            lambda: q.ewise_add(r),
            "ewise_add: has no operator. Write q.ewise_add(r, binary.plus)",
        ),
        (lambda: q.ewise_mult(r), "Write q.ewise_mult(r, binary.times), or another operator."),
        (lambda: q.ewise_mult(A), "ewise_mult: Matrix is not a Vector."),
        (lambda: A.ewise_add(q), "ewise_add: Vector is not a Matrix."),
        (lambda: A.ewise_add(A.T), "Write A.ewise_add(A.T, binary.plus), or another operator."),
        (lambda: A.T.ewise_mult(A), "Write A.T.ewise_mult(A, binary.times), or another operator."),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DomainMismatch, True), text


def test_an_output_takes_one_mask(q, r, A):
    for wrong, hint in (
        (
            lambda: q(q.S, r.S),
            "q(...): takes one mask, not 2. Write an operator as accum=binary",
        ),
        (lambda: q(q.S, binary.plus, True), "q(...): takes one mask, not 3."),
        (lambda: A(A.S, A.S), "A(...): takes one mask, not 2."),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DomainMismatch, True), text


def test_what_cannot_be_written_names_the_output(q, r, A):
    P = q.selection()
    for wrong, hint in (
        (lambda: A.T << A.T, "It is a view. Write A << A."),
        (lambda: A.T << A, "TransposedMatrix: cannot be written to. It is a view. Write A << A.T."),
        (lambda: A.T << 3, "It is a view. Write A << 3."),
        (lambda: P << A, "It is a view. Write to the viewed object instead."),
        (lambda: A.T(A.S) << 3, "TransposedMatrix: cannot be written to. It is a view. Write to t"),
        (
            lambda: P(mask=A.S, replace=True) << A,
            "It is a view. Write to the viewed object instead.",
        ),
        (lambda: P.T << A, "It is a view. Write to the viewed object instead."),
        (lambda: q.S << True, "Mask: cannot be written to. Write w(q.S) << True."),
        (lambda: ~q.S << r, "Write w(~q.S) << r."),
        (lambda: q.apply("abs") << r, "Call: cannot be written to. Write r << call, with the o"),
        (lambda: q.apply("abs") << 3, "Write w << call, with the output on the left."),
        (lambda: q @ A << r, "MatMul: cannot be written to. Write r << semiring.plus_times(q @ A)"),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DomainMismatch, True), text


def test_shapes_are_told_in_the_authors_names(q, A):
    for wrong, text in (
        (
            lambda: A.mxm(A, "plus_times"),
            "mxm: A.ncols 4 != A.nrows 3. Did you mean A.T?",
        ),
        (
            lambda: semiring.plus_times(A.T @ A.T),
            "mxm: A.T.ncols 3 != A.T.nrows 4. Did you mean A?",
        ),
        (
            lambda: A.ewise_add(A.T, "plus"),
            "ewise_add: A has shape (3, 4) != (4, 3) of A.T. Did you mean A?",
        ),
        (
            lambda: semiring.plus_times(A @ q),
            "mxv: q.size 3 != A.ncols 4. Did you mean A.T @ q or q @ A?",
        ),
    ):
        assert refusal(wrong) == (DimensionMismatch, text)


def test_mixed_backends_are_told_in_the_authors_names(backend):
    """Names of their own are all alike: `v` and `A`."""
    here, there = backend.name, "sim" if backend.name == "cpu" else "cpu"
    q, w = (Vector(BOOL, 3, backend=place) for place in (here, there))
    graph = Matrix(BOOL, 3, 3, backend=here)
    error, text = refusal(lambda: w << semiring.any_pair(q @ graph))
    assert error is BackendMismatch
    assert text.startswith(f"mxv: w is on {there}, graph is on {here}, q is on {here}. Move one")


def test_mixed_backends_name_the_move(q, backend):
    other = Vector(BOOL, 3, backend="sim" if backend.name == "cpu" else "cpu")
    error, text = refusal(lambda: q.ewise_add(other, "lor"))
    assert error is BackendMismatch
    assert f"as in other.to('{backend.name}'); nothing is copied for you." in text
