"""The program of a loop with scalars serves again for bodies that would have the same text."""

from contextlib import nullcontext

import pytest

import lagpu
from lagpu import FP64, INT32, INT64, Matrix, Scalar, Vector, binary, indexunary, loop, semiring
from lagpu.errors import EmptyObject


def adds(x, y, total, least):
    for _ in loop(times=2):
        x(y.S, accum=binary.plus) << y.apply(binary.times, right=least)
        y << x.select(indexunary.valuegt, least)
        total << y.reduce("plus")
        x(accum=binary.max) << total


def reads(x, total, few):
    for _ in loop(times=2):
        x(accum=binary.plus) << total
        total(accum=binary.max) << x.reduce("max")
        few << total


def follows(A, x, total):
    for _ in loop(times=2):
        x << semiring.plus_times(x @ A)
        total << x.reduce("plus")
        x << x.apply(binary.minus, right=total)


@pytest.fixture
def written(monkeypatch, backend):
    """The programs that are written from now on."""
    if backend.name == "cpu":
        pytest.skip("cpu has no programs")
    from lagpu.backends.gpu.fused.program import run

    found, inner = [], run.write_program
    monkeypatch.setattr(run, "_programs", {})
    monkeypatch.setattr(run, "write_program", lambda *given: found.append(given) or inner(*given))
    return found


def vectors(backend, n=70, dtype=INT64):
    x = Vector.from_coo(range(0, n, 3), range(0, n, 3), dtype, size=n, backend=backend)
    return x, Vector.from_coo(range(0, n, 2), 3, dtype, size=n, backend=backend)


def outcome(function, *args):
    """What a loop leaves, fused, after the same on copies, eagerly."""
    dups = {id(x): x.dup() for x in args if isinstance(x, Vector)}
    copies = [dups.get(id(x), x) for x in args]
    copies = [Scalar(x.dtype, x.value) if isinstance(x, Scalar) else x for x in copies]
    with lagpu.eager():
        function(*copies)
    function(*args)
    for x, y in zip(args, copies, strict=True):
        if isinstance(x, Vector):
            assert x.isequal(y)
        if isinstance(x, Scalar):
            assert x.value == y.value


def test_the_same_body_is_written_once(backend, written):
    for _ in range(3):
        outcome(adds, *vectors(backend), Scalar(INT64), 2)
    assert len(written) == 1


@pytest.mark.parametrize("before", [{}, {"least": 3}, {"n": 71}, {"dtype": INT32}, {"one": True}])
def test_other_types_sizes_and_places_are_other_texts(backend, written, before):
    """Other numbers are other arguments."""
    outcome(adds, *vectors(backend), Scalar(INT64), 2)
    x, y = vectors(backend, before.get("n", 70), before.get("dtype", INT64))
    total = Scalar(INT32 if "dtype" in before else INT64)
    outcome(adds, x, x if "one" in before else y, total, before.get("least", 2))
    assert len(written) == (1 if before.keys() <= {"least"} else 2)


def test_minus_zero_is_another_number(backend, written):
    def signs(zero):
        x = Vector.from_coo([0], [-5.0], FP64, size=40, backend=backend)
        y, total = Vector(FP64, 40, like=x), Scalar(FP64)
        multiplies(x, y, total, zero)
        return str(total.value)

    assert [signs(zero) for zero in (0.0, -0.0, 0.0)] == ["-0.0", "0.0", "-0.0"]


def multiplies(x, y, total, zero):
    for _ in loop(times=1):
        y << x.apply(binary.times, right=zero)
        total << y.reduce("min")


def test_a_scalar_may_be_empty_known_or_on_the_device(backend, written):
    """What the host knows of a scalar decides whether the kernel looks for its value."""
    few = Vector(INT64, 1, backend=backend)
    total = Scalar(INT64, 4)
    x, _ = vectors(backend)
    outcome(reads, x, total, few)  # known
    reads(x, total, few)  # on the device
    reads(x, total, few)
    assert len(written) == 2
    before = x.dup()
    with pytest.raises(EmptyObject):
        reads(x, Scalar(INT64), few)
    assert x.isequal(before)
    outcome(reads, x, Scalar(INT64, -7), few)


def test_results_of_one_run_are_not_those_of_the_next(backend, written):
    """Each run has its own room for what it leaves on the device."""
    found = []
    for k in (1, 2, 3):
        x, y = vectors(backend)
        x << k
        total = Scalar(INT64)
        adds(x, y, total, 2)
        found.append(total)
    values = [total.value for total in found]
    assert len(set(values)) == 3
    assert len(written) == 1


def test_other_matrices_and_forms_serve_too(backend, written):
    for directed in (False, True):
        for n in (40, 40):
            rows, cols = list(range(n - 1)), list(range(1, n))
            if not directed:
                rows, cols = rows + cols, cols + rows
            A = Matrix.from_coo(rows, cols, 1, INT64, nrows=n, ncols=n, backend=backend)
            x = Vector.from_coo(range(n), 1, INT64, size=n, backend=backend)
            outcome(follows, A, x, Scalar(INT64))
    assert len(written) == 1


def until_nothing(x, y, total):
    for _ in loop(until_empty=y, times=3):
        total << x.reduce("plus")
        x << x.select(indexunary.valuelt, total)
        y << x.select(indexunary.valuegt, 90)


def until_the_same(x, y, total):
    for _ in loop(until_unchanged=y, times=3):
        total << x.reduce("plus")
        x << x.select(indexunary.valuelt, total)
        y << x.select(indexunary.valuegt, 90)


def three_times(x, y, total):
    for _ in loop(times=3):
        total << x.reduce("plus")
        x << x.select(indexunary.valuelt, total)
        y << x.select(indexunary.valuegt, 90)


def test_one_body_with_other_ends(backend, written):
    for function in (until_nothing, until_the_same, three_times):
        outcome(function, *vectors(backend), Scalar(INT64))
    assert len(written) == 3


def copies(x, y, total):
    for _ in loop(times=1):
        y << x
        total << x.reduce("plus")


def test_an_output_of_another_type_is_another_text(backend, written):
    for dtype in (INT64, FP64, INT64):
        x, _ = vectors(backend)
        outcome(copies, x, Vector(dtype, 70, like=x), Scalar(INT64))
    assert len(written) == 2


def test_a_trace_has_a_text_of_its_own(backend, written):
    for traced in (False, True, False):
        with lagpu.trace() if traced else nullcontext():
            adds(*vectors(backend), Scalar(INT64), 2)
    assert len(written) == 2
