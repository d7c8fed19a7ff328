"""The arguments of policies: what is read, and what is refused."""

import pytest

from lagpu.backends.policies import Policy, choice, count, find_policy, number, read_arguments
from lagpu.errors import InvalidValue

KNOWN = {"kind": choice("a", "a", "b"), "alpha": number(14.0), "size": count(32, 4096)}


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("", {}),
        ("alpha=0", {"alpha": 0.0}),
        ("alpha=1e3,kind=b", {"alpha": 1000.0, "kind": "b"}),
        ("size=4096,alpha=inf", {"size": 4096, "alpha": float("inf")}),
    ],
)
def test_arguments_that_are_not_given_have_defaults(text, given):
    assert read_arguments("p", text, KNOWN) == {"kind": "a", "alpha": 14.0, "size": 32} | given


def test_the_first_argument_needs_no_name():
    assert read_arguments("p", "b,alpha=2", KNOWN, "kind")["kind"] == "b"
    assert read_arguments("p", "alpha=2,kind=b", KNOWN, "kind")["kind"] == "b"
    with pytest.raises(InvalidValue, match="kind= twice"):
        read_arguments("p", "b,kind=b", KNOWN, "kind")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("beta=1", "p has no argument 'beta=1'. Use kind=, alpha=, size=."),
        ("alpha", "no argument 'alpha'"),
        ("=3", "no argument '=3'"),
        ("alpha=", "alpha= is not a number of 0 or more."),
        ("alpha=-0.1", "alpha=-0.1 is not a number"),
        ("size=4097", "size=4097 is not a whole number from 1 to 4096."),
        ("size=+1", "size=+1 is not"),
        ("size=\u00b2", "is not a whole number"),
        ("size=" + "9" * 5000, "is not a whole number"),
        ("kind=c", "kind=c is not one of a, b."),
    ],
)
def test_wrong_arguments_are_named(text, words):
    with pytest.raises(InvalidValue) as error:
        read_arguments("p", text, KNOWN)
    assert words in str(error.value)


def test_policies_are_found_by_name():
    policies = {"one": Policy(min), "two": Policy(max, KNOWN, "size")}
    assert find_policy(policies, "two:7")[1]["size"] == 7
    assert find_policy(policies, "one") == ("one", {})
    for text in ("three", "", "One", "two:", " two"):
        with pytest.raises(InvalidValue, match="Use one or two"):
            find_policy(policies, text)
    with pytest.raises(InvalidValue, match="Use one alone"):
        find_policy(policies, "one:7")
