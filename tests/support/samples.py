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


def thin(function, calls):
    """Mark as exhaustive the calls of a test that a plain run need not have.

    Of a product of several lists of cases stay some that have each case of each list on each
    backend. Of a test marked `each_value` stay cases that have each value of each argument, in
    whichever list, as far as plain cases have it; of one marked `few_on_sim`, where most cases
    compile kernels of their own, every so many-th of those on sim. A run on a GPU has all.
    """
    if any(map(function.get_closest_marker, MARKS)):
        return
    groups = {}
    for call in calls:
        place = str(call.params.get("backend"))
        if place != "gpu" and not MARKS.keys() & {mark.name for mark in call.marks}:
            groups.setdefault(place, []).append(call)
    for place, group in groups.items():
        # pytest gives all arguments of one list the index of the case in it.
        parts = [list(call.indices.items()) for call in group]
        if function.get_closest_marker("each_value"):
            parts = [[_named(pair) for pair in call.params.items()] for call in group]
        stay = _cover(parts)
        if place == "sim" and (mark := function.get_closest_marker("few_on_sim")):
            stay = set(sorted(stay)[:: mark.args[0]])
        for k in set(range(len(group))) - stay:
            group[k].marks.append(MARKS["exhaustive"].mark)


def _cover(cases):
    """Return the places of some cases that together have all values of all, as even as may be."""
    met = dict.fromkeys((value for case in cases for value in case), 0)
    stay = {k for k, case in enumerate(cases) if not case}
    while not all(met.values()):
        # Most values that none has so far; of equals, those whose others were met least.
        new = [(sum(not met[value] for value in case), -sum(map(met.get, case))) for case in cases]
        best = max(range(len(cases)), key=new.__getitem__)
        stay.add(best)
        for value in cases[best]:
            met[value] += 1
    return stay


def _named(pair):
    """Return an argument and its value, by what it is equal to, or which object it is."""
    name, value = pair
    try:
        hash(value)
    except TypeError:
        return name, id(value)
    return name, type(value), value


def _tuples(cases):
    return [case if isinstance(case, tuple) else (case,) for case in cases]


def _param(case, mark):
    return pytest.param(*case, marks=[MARKS[mark]] if mark else [])
