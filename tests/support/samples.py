"""Cases of which a plain run takes some, `.ci/run` more, and the exhaustive run all."""

import pytest

MARKS = {"ci": pytest.mark.ci, "exhaustive": pytest.mark.exhaustive}


def sampled(cases, every, ci=None):
    """Return parameters of a test: a plain run has the first case and every so many-th after it.

    `.ci/run` has every `ci`-th too, and the exhaustive run the others.
    Of cases that are a product of values, each value must be in the plain sample at least once;
    take another `every` if one is not, such as one prime to the number of values.
    """
    cases = _tuples(cases)
    if len(cases[0]) > 1:
        for k in range(len(cases[0])):
            if left := {case[k] for case in cases} - {case[k] for case in cases[::every]}:
                raise ValueError(f"sampled: argument {k}: no plain run has {left}.")
    others = ["ci" if ci and k % ci == 0 else "exhaustive" for k in range(len(cases))]
    return [
        _param(case, rest if k % every else "")
        for k, (case, rest) in enumerate(zip(cases, others, strict=True))
    ]


def covering(cases, *parts):
    """Return parameters of a test: a plain run has each case with a part that none before it has.

    A part is a function of a case, such as the monoid of a semiring.
    """
    met, found = [set() for _ in parts], []
    for case in cases:
        values = [part(case) for part in parts]
        new = any(value not in before for value, before in zip(values, met, strict=True))
        if new:
            for value, before in zip(values, met, strict=True):
                before.add(value)
        found.append(_param((case,), "" if new else "exhaustive"))
    return found


def picked(cases, *plain, rest="ci"):
    """Return parameters of a test: a plain run has the named cases, `.ci/run` the `rest`.

    With ``rest="exhaustive"`` the exhaustive run has the rest.
    """
    cases, plain = _tuples(cases), _tuples(plain)
    if missing := [case for case in plain if case not in cases]:
        raise ValueError(f"picked: {missing} are no cases.")
    return [_param(case, "" if case in plain else rest) for case in cases]


def _tuples(cases):
    return [case if isinstance(case, tuple) else (case,) for case in cases]


def _param(case, mark):
    return pytest.param(*case, marks=[MARKS[mark]] if mark else [])
