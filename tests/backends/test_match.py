"""Bodies that are nearly a search: each is refused as one, with its reason, before it runs."""

import pytest

from lagpu import BOOL, INT32, Matrix, Scalar, Vector, binary, loop, semiring
from lagpu.backends import match
from lagpu.backends.gpu.fused import plan
from lagpu.backends.gpu.kernels import constant
from lagpu.operations import Rejection

# ---- loops: functions of their own, without assert, so that pytest leaves their code alone


def search(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def two_products(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y << semiring.plus_times(y @ A)
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def into_another(A, f, x, g, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        g(~x.S, replace=True) << semiring.any_pair(f @ A)


def from_another(A, f, x, g, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(g @ A)


def by_a_kernel(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A, kernel="push_edge")


def by_a_policy(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A, policy="beamer")


def accumulated(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, accum=binary.lor, replace=True) << semiring.any_pair(f @ A)


def not_replaced(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S) << semiring.any_pair(f @ A)


def not_masked(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f << semiring.any_pair(f @ A)


def masked_by_values(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.V, replace=True) << semiring.any_pair(f @ A)


def masked_by_entries(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(x.S, replace=True) << semiring.any_pair(f @ A)


def masked_by_another(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~y.S, replace=True) << semiring.any_pair(f @ A)


def on_both_sides(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)
        y(f.S) << depth


def assigned_at_another(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(x.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_at_values(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(f.V) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_elsewhere(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(~f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_by_sums(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(f.S, accum=binary.plus) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_alone(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(f.S, replace=True) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_to_itself(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(f.S) << True
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_twice(A, f, x, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        x(f.S) << 1
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def applied(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(f.S) << x.apply(binary.plus, right=1)
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_another(A, f, x, y, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(f.S) << x
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_a_scalar(A, f, x, y, total, **_):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        y(f.S) << total
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def into_the_matrix(A, F, **_):
    for _ in loop(until_empty=F):
        A(F.S) << True
        F(~A.S, replace=True) << semiring.any_pair(F @ A)


ITSELF = "the product does not map the frontier to itself"
CHOICE = "the product names a kernel or a policy"
REPLACE = "the product has an accumulator, or no mask with replace"
COMPLEMENT = "the product's mask is not the complement of a structure"
MASKED = "assign_scalar is not masked by the frontier's structure"
PLAIN = "assign_scalar has an accumulator or replace, or writes the frontier"
NEITHER = "assigns neither depth, frontier nor one number"
WHY = {
    search: "a search",
    two_products: "2 products in the body; a search has one",
    into_another: ITSELF,
    from_another: ITSELF,
    by_a_kernel: CHOICE,
    by_a_policy: CHOICE,
    accumulated: REPLACE,
    not_replaced: REPLACE,
    not_masked: REPLACE,
    masked_by_values: COMPLEMENT,
    masked_by_entries: COMPLEMENT,
    masked_by_another: "the body does not assign to the mask of the product",
    on_both_sides: "the body has assignments both before and after the product",
    assigned_at_another: MASKED,
    assigned_at_values: MASKED,
    assigned_elsewhere: MASKED,
    assigned_by_sums: PLAIN,
    assigned_alone: PLAIN,
    assigned_to_itself: PLAIN,
    assigned_twice: "a vector or matrix is assigned twice",
    applied: f"apply {NEITHER}",
    assigned_another: f"assign {NEITHER}",
    assigned_a_scalar: "assign_scalar assigns a scalar, or what the counter computes",
    into_the_matrix: "the matrix is not square, or the body writes it",
}


class Planned(Exception):
    """Ends a loop once the planner has decided."""


def telling(monkeypatch, what):
    """Let the planner end the loop with what is said of the search that it finds."""

    def recorded(found):
        raise Planned(found.why if isinstance(found, Rejection) else what(found))

    match = plan.match_search
    monkeypatch.setattr(plan, "match_search", lambda *given: recorded(match(*given)))


@pytest.mark.parametrize("body", WHY, ids=lambda body: body.__name__)
def test_a_body_that_is_nearly_a_search(place, monkeypatch, body):
    telling(monkeypatch, lambda found: "a search")
    for _ in range(3):  # the second and the third time by the record, if it was kept
        A = Matrix.from_coo([0, 1], [1, 2], nrows=9, ncols=9, backend=place)
        f, g = (Vector.from_coo([0], True, BOOL, size=9, backend=place) for _ in "fg")
        x, y = (Vector(INT32, 9, backend=place) for _ in "xy")
        F = Matrix.from_coo([0], [0], True, BOOL, nrows=9, ncols=9, backend=place)
        with pytest.raises(Planned) as caught:
            body(A=A, f=f, g=g, x=x, y=y, F=F, total=Scalar(INT32))
        assert str(caught.value) == WHY[body]
        assert (A.nvals, f.nvals, x.nvals, y.nvals) == (2, 1, 0, 0)


def forwards(A, f, x, ring):
    for _ in loop(until_empty=f):
        x(f.S) << f
        f(~x.S, replace=True) << ring(f @ A)


def backwards(A, f, x, ring):
    for _ in loop(until_empty=f):
        x(f.S) << f
        f(~x.S, replace=True) << ring(A @ f)


def test_which_searches_add_up_counts(place, monkeypatch):
    telling(monkeypatch, lambda found: found.counts)
    wide = ("FP64", "FP32", "INT64", "UINT64")
    for body, ring, of_f, of_A, counts in (
        *((forwards, "plus_first", t, t, True) for t in wide),
        *((forwards, "plus_first", t, t, False) for t in ("INT32", "UINT32")),
        (forwards, "plus_second", "FP64", "FP64", False),  # the matrix' values
        (forwards, "min_first", "FP64", "FP64", False),
        (forwards, "plus_first", "INT64", "FP64", False),  # added up in another type
        (backwards, "plus_second", "INT64", "INT64", True),
        (backwards, "plus_first", "INT64", "INT64", False),
    ):
        A = Matrix.from_coo([0], [1], [1], of_A, nrows=2, ncols=2, backend=place)
        f, x = Vector.from_coo([0], 1, of_f, size=2, like=A), Vector(of_f, 2, like=A)
        with pytest.raises(Planned) as caught:
            body(A, f, x, semiring[ring])
        assert caught.value.args == (counts,), (body.__name__, ring, of_f, of_A)


@pytest.mark.parametrize(
    ("ring", "values", "weight", "constant"),
    [
        ("any_pair", 5, 3, 1),
        ("any_pair", [5, 6], 3, 1),
        ("any_first", 5, 3, 5),
        ("any_first", [5, 6], 3, None),
        ("any_second", 5, 3, 3),
        ("any_second", 5, [3, 4], None),
        ("any_plus", 5, 3, None),  # 8, and then 11
        ("plus_pair", 1, 3, None),
    ],
)
def test_which_value_every_product_has(place, monkeypatch, ring, values, weight, constant):
    telling(monkeypatch, lambda found: plan._constant_value(found._replace(A=found.A.csc())))
    A = Matrix.from_coo([0, 1], [1, 2], weight, INT32, nrows=9, ncols=9, backend=place)
    F = Matrix.from_coo([0, 1], [0, 0], values, INT32, nrows=2, ncols=9, backend=place)
    with pytest.raises(Planned) as caught:
        forwards(A, F, Matrix(INT32, 2, 9, like=A), semiring[ring])
    assert caught.value.args == (constant,)


def test_assignments_have_the_numbers_of_the_kernels():
    numbers = [constant(name) for name in ("kDepth", "kValue", "kNumber")]
    assert numbers == [match.DEPTH, match.VALUE, match.NUMBER]
