"""A sample of cases: what a plain run takes, what is left to `.ci/run` and the exhaustive one."""

from itertools import product
from types import SimpleNamespace

import pytest
from samples import covering, picked, sampled, thin


def test_the_first_and_every_so_many_th_are_in_a_plain_run():
    found = sampled("abcde", 2)
    assert [param.values for param in found] == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert [bool(param.marks) for param in found] == [False, True, False, True, False]
    assert {mark.name for param in found for mark in param.marks} == {"exhaustive"}


def test_each_value_of_a_product_is_in_a_plain_run():
    plain = [p.values for p in sampled(product("abc", (1, 2, 3)), 2) if not p.marks]
    assert plain == [("a", 1), ("a", 3), ("b", 2), ("c", 1), ("c", 3)]


def test_a_sample_without_one_of_the_values_is_refused():
    with pytest.raises(ValueError, match=r"argument 1: no plain run has \{2\}"):
        sampled(product("abc", (1, 2)), 2)


def test_each_part_of_a_case_is_in_a_plain_run():
    words = ["ax", "bx", "ay", "by", "cy"]
    plain = [p.values[0] for p in covering(words, lambda w: w[0], lambda w: w[1]) if not p.marks]
    assert plain == ["ax", "bx", "ay", "cy"]
    assert len(covering(words, len)) == len(words)


def marks(params):
    """Return what leaves each case out of a plain run."""
    return ["".join(mark.name for mark in param.marks) for param in params]


def test_a_case_is_in_a_plain_run_or_in_ci_or_in_the_exhaustive_run():
    assert marks(sampled("abcdefg", 6, ci=3)) == [
        "",
        *2 * ["exhaustive"],
        "ci",
        *2 * ["exhaustive"],
        "",
    ]
    assert marks(sampled("abc", 3, ci=1)) == ["", "ci", "ci"]


def test_a_plain_run_has_the_cases_that_are_picked():
    assert marks(picked("abc", "b")) == ["ci", "", "ci"]
    assert marks(picked("abc", "b", rest="exhaustive")) == ["exhaustive", "", "exhaustive"]
    found = picked([("a", 1), ("a", 2)], ("a", 2))
    assert [param.values for param in found] == [("a", 1), ("a", 2)]
    assert marks(found) == ["ci", ""]


def test_what_is_picked_must_be_a_case():
    with pytest.raises(ValueError, match="d"):
        picked("abc", "a", "d")


EACH, FEW = pytest.mark.each_value, pytest.mark.few_on_sim(2)


def call(*marks, indices=None, **params):
    marks = [mark.mark for mark in marks]
    return SimpleNamespace(params=params, indices=indices or params, marks=marks)


def stay(marks, calls):
    """Return the arguments of those calls of a test with some marks that a plain run has."""
    named, calls = {mark.name: mark for mark in marks}, list(calls)
    thin(SimpleNamespace(get_closest_marker=named.get), calls)
    exhaustive = pytest.mark.exhaustive.mark
    return [tuple(call.params.values()) for call in calls if exhaustive not in call.marks]


def test_each_value_stays_on_each_backend():
    cases = product(("cpu", "sim"), "abc", (1, 2, [3]))
    found = stay([EACH], [call(backend=b, x=x, y=y) for b, x, y in cases])
    assert found == [(b, x, y) for b in ("cpu", "sim") for x, y in (("a", 1), ("b", 2), ("c", [3]))]


def test_values_that_are_equal_but_of_another_type_are_two():
    assert len(stay([EACH], [call(x=x) for x in (1, True, 1.0)])) == 3


def test_a_test_without_the_mark_has_each_case_of_each_list():
    cases = product(("cpu", "sim"), (0, 1), (0, 1, 2))
    calls = [
        call(backend=b, x="ab"[k], y=k, z=j, indices={"x": k, "y": k, "z": j}) for b, k, j in cases
    ]
    found = stay([], calls)
    assert found == [
        (b, *x, z) for b in ("cpu", "sim") for *x, z in (("a", 0, 0), ("a", 0, 2), ("b", 1, 1))
    ]


def test_a_test_without_arguments_stays():
    assert stay([], [call()]) == [()]


def test_a_list_of_cases_stays_whole():
    cases = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    calls = [call(x=x, y=y, indices={"x": k, "y": k}) for k, (x, y) in enumerate(cases)]
    assert stay([], calls) == cases


def test_a_test_that_a_plain_run_leaves_out_is_not_sampled():
    assert len(stay([EACH, pytest.mark.ci], [call(x=x, y=y) for x, y in product("ab", "ab")])) == 4


def test_a_case_that_a_plain_run_leaves_out_stands_for_no_value():
    left_out = call(pytest.mark.ci, x="a", y="b")
    found = stay([EACH], [left_out, call(x="a", y="c"), call(x="d", y="b")])
    assert found == [("a", "b"), ("a", "c"), ("d", "b")]


def test_every_so_many_th_case_stays_on_sim():
    found = stay([FEW], [call(backend=b, x=x) for b, x in product(("cpu", "sim", "gpu"), "abc")])
    assert found == [*product(["cpu"], "abc"), ("sim", "a"), ("sim", "c"), *product(["gpu"], "abc")]


def test_both_marks_take_from_what_the_first_leaves():
    cases = product(("cpu", "sim", "gpu"), "abc", "de")
    found = stay([EACH, FEW], [call(backend=b, x=x, y=y) for b, x, y in cases])
    assert [b for b, _, _ in found] == 3 * ["cpu"] + 2 * ["sim"] + 6 * ["gpu"]
