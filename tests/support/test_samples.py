"""A sample of cases: what a plain run takes, what is left to `.ci/run` and the exhaustive one."""

from itertools import product

import pytest
from samples import covering, picked, sampled


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
