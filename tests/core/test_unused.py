"""What was begun and never used warns, with the text and the line that its author wrote."""

import gc
import inspect
import subprocess
import sys
import warnings
from inspect import getsourcelines

import pytest
from faults import Interrupts

from lagpu import (
    BOOL,
    INT64,
    Matrix,
    Scalar,
    Vector,
    backends,
    binary,
    indexunary,
    loop,
    semiring,
    unary,
)
from lagpu.errors import LagpuError, UnusedCall

pytestmark = pytest.mark.usefixtures("own_garbage")


@pytest.fixture
def q(backend):
    return Vector.from_coo([0, 2], [1, 2], size=3, backend=backend)


@pytest.fixture
def r(backend):
    return Vector.from_coo([1], [3], size=3, backend=backend)


@pytest.fixture
def A(backend):
    return Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=3, backend=backend)


@pytest.fixture
def B(backend):
    return Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=4, backend=backend)


def reported(program, *args):
    """Run a function that holds a line with ``# here``: what it warned, and all at that line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(*args)
        gc.collect()
    source, first = getsourcelines(program)
    line = next(k for k, text in enumerate(source, first) if "# here" in text)
    for warning in caught:
        assert (warning.category, warning.filename, warning.lineno) == (UnusedCall, __file__, line)
    return [str(warning.message) for warning in caught]


# --------------------------------------------------------------------------- a lone statement


def a_call(q, A):
    semiring.any_pair(q @ A)  # here


def a_product(q, A):
    q @ A  # here


def a_transposed_product(q, A):
    A.T @ q  # here


def an_updater(q, A):
    q(~q.S, accum=binary.plus, replace=True)  # here


def an_updater_of_a_part(q, A):
    q(q.S)[[0, 1]]  # here


def an_updater_of_a_matrix(q, A):
    A(A.S)  # here


def an_updater_of_a_scalar(q, A):
    total = Scalar(INT64)
    total(accum=binary.plus)  # here


def an_operator(q, A):
    unary.abs(q)  # here


WRITTEN = {
    a_call: "semiring.any_pair(q @ A) was never used. Write w << call, or call.new(); "
    "w = call only names it.",
    a_product: "q @ A has no semiring, and was never used. Write w << semiring.plus_times(q @ A).",
    a_transposed_product: "A.T @ q has no semiring, and was never used. "
    "Write w << semiring.plus_times(A.T @ q).",
    an_updater: "q(~q.S, accum=binary.plus, replace=True) writes nothing by itself. "
    "Write q(~q.S, accum=binary.plus, replace=True) << call.",
    an_updater_of_a_part: "q(q.S)[[0, 1]] writes nothing by itself. Write q(q.S)[[0, 1]] << call.",
    an_updater_of_a_matrix: "A(A.S) writes nothing by itself. Write A(A.S) << call.",
    an_updater_of_a_scalar: "total(accum=binary.plus) writes nothing by itself. "
    "Write total(accum=binary.plus) << call.",
    an_operator: "unary.abs(q) was never used. Write w << call, or call.new(); "
    "w = call only names it.",
}


@pytest.mark.parametrize("program", WRITTEN, ids=lambda program: program.__name__)
def test_a_lone_statement_warns_with_its_text_and_line(q, A, program):
    assert reported(program, q, A) == [WRITTEN[program]]


def test_a_loop_that_waits_for_a_forgotten_statement_says_so(A):
    """Nothing empties the frontier: without a word it would turn for ever."""

    def search(A):
        levels = Vector(INT64, 3, like=A)
        frontier = Vector.from_coo([0], True, size=3, like=A)
        for depth in loop(until_empty=frontier, times=3):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True)  # here

    assert len(reported(search, A)) == 3


def test_a_line_is_reported_once(q):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            q(q.S)
    assert len(caught) == 1


def test_without_a_source_there_are_the_authors_names(q, A):
    with pytest.warns(UnusedCall) as caught:
        exec("\n\nsemiring.any_pair(q @ A)\nq(~q.S, replace=True)\nq @ A\n")
    text = [str(warning.message).partition(" w")[0] for warning in caught]
    assert text == ["q any_pair A", "q(~q.S, replace)", "q @ A has no semiring, and"]
    assert [(w.filename, w.lineno) for w in caught] == [("<string>", k) for k in (3, 4, 5)]


# ------------------------------------------------------------------------------- named calls


def named_product(q, r, A):
    w = q
    w = semiring.any_pair(q @ A)  # here
    return w is None


def named_vxm(q, r, A):
    w = q.vxm(A, "any_pair")  # here
    return w is None


def named_mxv(q, r, A):
    w = A.mxv(q, "any_pair")  # here
    return w is None


def named_mxm(q, r, A):
    w = A.mxm(A.T, "any_pair")  # here
    return w is None


def named_matrix_product(q, r, A):
    w = semiring.any_pair(A @ A)  # here
    return w is None


def named_apply(q, r, A):
    w = q.apply(unary.abs)  # here
    return w is None


def named_select(q, r, A):
    w = A.select("tril")  # here
    return w is None


def named_reduce(q, r, A):
    w = q.reduce("plus")  # here
    return w is None


def named_rows(q, r, A):
    w = A.reduce_rowwise("plus")  # here
    return w is None


def named_columns(q, r, A):
    w = A.reduce_columnwise("plus")  # here
    return w is None


def named_add(q, r, A):
    w = q.ewise_add(r, "plus")  # here
    return w is None


def named_mult(q, r, A):
    w = q.ewise_mult(r, "plus")  # here
    return w is None


def named_union(q, r, A):
    w = q.ewise_union(r, "minus", 0, 0)  # here
    return w is None


def named_matrix_add(q, r, A):
    w = A.ewise_add(A, "plus")  # here
    return w is None


def named_matrix_mult(q, r, A):
    w = A.T.ewise_mult(A, "plus")  # here
    return w is None


def named_matrix_union(q, r, A):
    w = A.ewise_union(A, "minus", 0, 0)  # here
    return w is None


def named_kronecker(q, r, A):
    w = A.kronecker(A, "times")  # here
    return w is None


def named_operator(q, r, A):
    w = unary.abs(q)  # here
    return w is None


def named_index_operator(q, r, A):
    w = indexunary.rowindex(q)  # here
    return w is None


NAMED = [f for name, f in list(globals().items()) if name.startswith("named_")]


@pytest.mark.parametrize("program", NAMED, ids=lambda program: program.__name__)
def test_a_named_call_is_reported_where_it_was_written(q, r, A, program):
    """It is let go when the function has ended: in the caller's line, or in none."""
    (text,) = reported(program, q, r, A)
    source, _ = getsourcelines(program)
    written = next(line for line in source if "# here" in line).partition("#")[0].strip()
    assert text.partition(" was never used")[0] == written.removeprefix("w = ")


def test_a_call_kept_to_the_end_has_its_line(tmp_path, backend):
    program = tmp_path / "kept.py"
    program.write_text(
        "from lagpu import *\n"
        f"u = Vector(BOOL, 3, backend={backend.name!r})\n"
        "w = u.apply(unary.abs)\n"
    )
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert ran.stderr.startswith(f"{program}:3: UnusedCall: u.apply(unary.abs) was never used.")


# ------------------------------------------------------------------------------ what is silent


def test_what_is_only_looked_at_does_not_warn(q, A, recwarn):
    q[0]  # a read that is not wanted is no half statement
    A[0, :]
    q.S  # noqa: B018
    A.T  # noqa: B018
    to = q(q.S)  # a name for it, as for a slice
    del to
    print(q(q.S), q @ A)
    gc.collect()
    assert [str(w.message) for w in recwarn] == []


def test_an_error_right_of_an_output_is_enough(q, A, recwarn):
    w = Vector(INT64, 3, like=q)
    short = Vector(INT64, 2, like=q)
    for wrong in (
        lambda: w(q.S) << missing,  # noqa: F821
        lambda: w(q.S)[[0, 1]] << 1 / 0,
        lambda: w(q.S) << semiring.any_pair(short @ A),
        lambda: w(q.S) << semiring.any_pair(q @ A, kernel=missing),  # noqa: F821
        lambda: w(q.S) << (q | q),
        lambda: w(q.S) << binary.plus(q | short),
        lambda: w(q.S) << q + short,
        lambda: w(q.S) + q,
        lambda: w(short.S) << q,
        lambda: w(q.S)[[7]] << 1,
        lambda: w(q.S, q.S) << 1,
        lambda: w(q) << 1,
        lambda: w(accum="none") << 1,
        lambda: semiring.any_pair(q @ A, 3),
        lambda: semiring.any_pair(q.apply(unary.abs), A),
        lambda: semiring.any_pair(q @ short),
        lambda: backends.get(q @ A),
    ):
        with pytest.raises((LagpuError, NameError, ZeroDivisionError)):
            wrong()
        gc.collect()
    assert [str(w.message) for w in recwarn] == []


def refusal(wrong):
    with pytest.raises(LagpuError):
        wrong()
    gc.collect()  # a call that was dropped with the error does not warn as well


def test_a_call_in_use_does_not_warn(q, r, B):
    w = Vector(INT64, 4, like=q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = semiring.any_first(q @ B)  # kept, and used later
        w << semiring.any_first(q @ B)
        w(w.S, accum=binary.plus, replace=True) << semiring.any_first(q @ B)
        w.update(semiring.any_first(q @ B))
        w[[0, 1, 2]] << q.apply(unary.abs)
        w[0] = q.reduce("plus")
        w[1] << q[0]
        semiring.any_first(q @ B).new(mask=w.S)
        Scalar(INT64) << q.reduce("max")
        q.ewise_add(r, "plus").new(dtype=BOOL)
        w << kept
        del kept
        gc.collect()


def test_an_error_beside_a_call_is_enough(q, B, backend):
    w = Vector(INT64, 4, like=q)
    other = Vector(INT64, 4, backend="sim" if backend.name == "cpu" else "cpu")
    for wrong in (
        lambda: q << semiring.any_first(q @ B),  # sizes differ
        lambda: w[[9]] << semiring.any_first(q @ B),
        lambda: other << semiring.any_first(q @ B),
        lambda: w(q.S) << semiring.any_first(q @ B),
        lambda: w[0] << semiring.any_first(q @ B),
        lambda: Scalar(INT64) << semiring.any_first(q @ B),
        lambda: B << semiring.any_first(q @ B),
        lambda: q.isequal(B.apply("abs")),
        lambda: w(q.apply("abs")) << 1,
    ):
        refusal(wrong)
    assert backends.get(backend) is backend


def interrupted_assignment(q, A, at):
    """Run a statement that an interrupt ends at one of its calls; return whether it came so far."""
    w = Vector(INT64, 3, like=q)
    interrupts = Interrupts(at)
    try:
        with interrupts:
            w(~q.S) << semiring.min_plus(q @ A)  # here
    except KeyboardInterrupt:
        pass
    return interrupts.seen > at


def test_an_interrupt_is_no_unused_call(q, A):
    """Nor is it lost in a finalizer, where errors are lost (pytest would tell)."""
    at = 0
    while interrupted_assignment(q, A, at):
        assert reported(interrupted_assignment, q, A, at) == []
        at += 3
    assert at > 10


def _assigned(w, q, A):
    w(~q.S) << semiring.min_plus(q @ A)


def _assigned_at_indices(w, q, A):
    w[[0, 2]] = q[[1, 2]].new().apply("plus", 1)
    w(q.S)[[0, 2]] = semiring.min_plus(q @ A[:, [0, 2]].new())


def _made(w, q, A):
    semiring.min_plus(q @ A).new()
    return unary.abs(q).new(name="absolute")


def _updated(w, q, A):
    w.update(q.apply("ainv"))
    w(accum=binary.plus).update(q.select("valuegt", 1))


@pytest.mark.parametrize("write", [_assigned, _assigned_at_indices, _made, _updated])
def test_an_interrupt_whose_error_is_kept_is_no_unused_call(q, A, write):
    """Its frames hold the call, which is dropped with the error, wherever that is."""
    at, ended = 0, False
    while not ended:
        w, interrupts, kept = Vector(INT64, 3, like=q), Interrupts(at), []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with interrupts:
                    write(w, q, A)
            except KeyboardInterrupt as error:
                kept.append(error)
            kept.clear()
            gc.collect()
        assert [str(warning.message) for warning in caught] == []
        ended = interrupts.seen <= at
        at += 1 if q.backend.name == "cpu" else 37  # the front end is the same on all of them


def test_what_is_used_has_no_finalizer_in_python(q, A):
    product = q @ A
    call = semiring.min_plus(product)
    w = Vector(INT64, 3, like=q)
    update = w(~q.S)
    update << call
    for x in (product, call, update):
        assert not inspect.isfunction(type(x).__del__)
    assert type(call).__name__ == "Call"
    w << call  # again
    assert w.isequal(semiring.min_plus(q @ A).new())
