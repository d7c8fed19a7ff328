"""A sample of cases: what a plain run takes, what is left to the exhaustive one."""

from itertools import product

import pytest
from samples import covering, sampled


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
