"""What Python would let pass quietly, or refuse without a hint, says what was probably meant."""

import gc

import numpy as np
import pytest

import lagpu
from lagpu import BOOL, INT64, Matrix, Vector, binary, loop, monoid, semiring
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    EmptyObject,
    InvalidValue,
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
    "~q": "As a mask, write ~q.S for where q has no entry",
    "q == None": "Write q is None.",
    "q != None": "Write q is not None.",
    "bool(q)": "Use q.nvals to ask for entries, q.isequal(u) to compare",
    "not q": "Use q.nvals to ask for entries",
    "q and r": "Use q.nvals to ask for entries",
    "len(q)": "Use q.size, q.nvals",
    "np.asarray(q)": "Use q.to_dense(fill_value), or q.to_coo() for indices and values.",
    "bool(A)": "Use A.nvals to ask for entries, A.isequal(B) to compare.",
    "len(A)": "Use A.nrows, A.nvals",
    "np.asarray(A)": "lagpu.io.to_scipy(A).toarray()",
    "~A": "As a mask, write ~A.S for where A has no entry",
    "bool(A.T)": "Use A.T.new() to make a matrix of it.",
    "q <<= r": "<<= would bind q to something else. Write << alone.",
    "q[0] <<= 1": "Write << alone.",
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
    assert q.nvals == 2, "nothing has changed"


def test_the_authors_names_are_those_in_the_function_that_runs(q, r):
    frontier, _levels = q, r
    assert "Use frontier.nvals to ask" in refusal(lambda: bool(frontier))[1]
    pair = {"left": q}
    assert "Use vector.nvals to ask" in refusal(lambda: bool(pair["left"]))[1]


def test_what_is_no_index(q, r, A):
    masked, there = r, r.dup("BOOL")
    for wrong, hint in (
        (
            lambda: q[there],
            "a vector is not an index. Write q(there.S) << x to write where there",
        ),
        (lambda: q[masked.S], "a mask is not an index. Write q(masked.S) << x to write there."),
    ):
        error, text = refusal(lambda wrong=wrong: wrong().new())
        assert (error, hint in text) == (DomainMismatch, True), text
    for indices in (masked, masked.S):
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
        (lambda: ~q.S, "Mask: is not a result. Use it as w(mask) << call, or make a vector"),
        (lambda: A, "Matrix: is neither a vector nor a number"),
    ):
        error, text = refusal(lambda value=value: line(value()))
        assert (error, hint in text) == (DomainMismatch, True), text


def test_what_is_no_product(q, r, A):
    for wrong, hint in (
        (
            lambda: semiring.any_pair(q, A),
            "takes one product, not 2 operands. Write any_pair(q @ A)",
        ),
        (lambda: np.ones(3) @ A, "ndarray is neither a Vector nor a Matrix"),
        (lambda: monoid.plus(q), "(u & v) or binary.plus(u, 3), or u.reduce(monoid.plus)."),
        (
            lambda: q.ewise_add(3, "plus"),
            "int is not a Vector. With a number, write q.apply(op, x)",
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


def test_what_a_mask_has_no_values_of(q, A):
    for wrong in (lambda: q.S.nvals, lambda: (~A.V).to_coo(), lambda: q.S.reduce("plus")):
        error, text = refusal(wrong)
        assert error is NotComputed
        assert "has no values. Use it as w(mask) << call, or make a vector of it" in text
    assert not hasattr(q.S, "nvals")


def test_a_loop_without_a_name(q):
    def program(frontier):
        for _ in loop(frontier):
            pass

    error, text = refusal(lambda: program(q))
    assert error is DomainMismatch
    assert text.endswith("Write loop(until_empty=frontier).")
    assert "Write loop(times=5)." in refusal(lambda: loop(5))[1]


def test_an_operand_is_of_the_right_kind(q, A):
    for wrong, hint in (
        (lambda: q.inner(A), "inner: Matrix is not a Vector."),
        (lambda: q.outer(3), "outer: int is not a Vector."),
        (lambda: A.ewise_add(3), "ewise_add: int is not a Matrix."),
        (lambda: A.mxm(q), "mxm: Vector is not a Matrix."),
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
        (lambda: (q | r) << r, "Joined: cannot be written to. Write r << binary.plus(q | r)"),
    ):
        error, text = refusal(wrong)
        assert (error, hint in text) == (DomainMismatch, True), text


def test_shapes_are_reported_in_the_authors_names(q, A):
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


def test_mixed_backends_are_reported_in_the_authors_names(backend):
    """Which are not those of the objects."""
    here, there = backend.name, "sim" if backend.name == "cpu" else "cpu"
    q, w = (Vector(BOOL, 3, backend=place) for place in (here, there))
    graph = Matrix(BOOL, 3, 3, backend=here)
    error, text = refusal(lambda: w << semiring.any_pair(q @ graph))
    assert error is BackendMismatch
    assert text.startswith(f"vxm: w is on {there}, graph is on {here}, q is on {here}. Move one")


def test_mixed_backends_name_the_move(q, backend):
    other = Vector(BOOL, 3, backend="sim" if backend.name == "cpu" else "cpu")
    error, text = refusal(lambda: q.ewise_add(other, "lor"))
    assert error is BackendMismatch
    assert f"as in other.to('{backend.name}'); nothing is copied for you." in text


def test_objects_that_no_variable_names_are_distinguished(backend):
    pair = [Vector(BOOL, size, backend=backend) for size in (3, 4)]
    _error, text = refusal(lambda: pair[0].ewise_add(pair[1]))
    first, second = (x.name for x in pair)
    assert first != second
    assert f"{first}.size 3 != 4 of {second}" in text
    assert refusal(lambda: pair[0].ewise_add(pair[1]))[1] == text
    assert repr(pair[1].S) == f"{second}.S"


def test_without_autocompute_no_line_makes_a_temporary(backend):
    u = Vector.from_coo([0, 2], [1, 3], size=3, backend=backend)
    A = u.diag()
    refused = [
        lambda: (u + u).nvals,
        lambda: u.reduce().value,
        lambda: u[0].value,
        lambda: A.mxv(u + u),
        lambda: u.isequal(u + u),
        lambda: u[[0, 2]][0],
        lambda: u.update(u @ u),
        lambda: u.reduce() == 4,
    ]
    with lagpu.config.set(autocompute=False):
        for line in refused:
            with pytest.raises(DomainMismatch, match="config has autocompute off"):
                line()
        w = binary.plus(u | u | u).new()  # an operator of a chain is not hidden
        assert w.to_dict() == {0: 3, 2: 9}
        assert (u @ A).size == (A @ A).ncols == 3
        assert (u @ (u @ A)).new().value == 28
        u << u + u
    assert lagpu.config["autocompute"]
    assert A.mxv(u + u).nvals == 2
    with pytest.raises(InvalidValue, match="config: there is no 'nothing'"):
        lagpu.config.set(nothing=True)


def test_numbers_are_formatted_as_pythons(q):
    s = q.reduce("plus").new()
    assert f"{s:.2f} {q @ q:5.1e} {q[2]:03d}" == "3.00 5.0e+00 002"
    assert f"{s}" == str(s)
    with pytest.raises(EmptyObject):
        format(q[1].new(), ".2f")


def test_names_of_other_libraries_say_what_to_write(q, A):
    wanted = {"nnz": "nvals", "copy": "dup", "sum": r"reduce\(.plus", "toarray": "to_dense"}
    for x in (q, A):
        for name, hint in wanted.items():
            with pytest.raises(AttributeError, match=f"Use .*{hint}"):
                getattr(x, name)


def test_an_array_on_the_left_is_refused_as_one_on_the_right(q):
    for wrong in (lambda: np.ones(3) + q, lambda: np.ones(3) - q, lambda: q * np.ones(3)):
        assert "ndarray is not a Vector" in refusal(wrong)[1]
