"""Cases of which a plain run takes some, and the exhaustive run the others."""

import pytest


def sampled(cases, every):
    """Return parameters of a test: a plain run has the first case and every so many-th after it.

    Of cases that are a product of values, each value must be in the sample at least once; take
    another `every` if one is not, such as one prime to the number of values.
    """
    cases = [case if isinstance(case, tuple) else (case,) for case in cases]
    if len(cases[0]) > 1:
        for k in range(len(cases[0])):
            if left := {case[k] for case in cases} - {case[k] for case in cases[::every]}:
                raise ValueError(f"sampled: argument {k}: no plain run has {left}.")
    return [
        pytest.param(*case, marks=[pytest.mark.exhaustive] * (k % every > 0))
        for k, case in enumerate(cases)
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
        found.append(pytest.param(case, marks=[pytest.mark.exhaustive] * (not new)))
    return found
