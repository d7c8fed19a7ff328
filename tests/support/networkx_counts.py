"""A plugin for NetworkX' own tests: which tests and calls the backend lagpu has answered."""

import collections
import json
import os
from pathlib import Path

import networkx as nx
import pytest

ANSWERED, PASSED_ON = "answered", "passed on"
calls = collections.defaultdict(collections.Counter)  # name -> how often
here = collections.Counter()  # in the test that runs
tests = collections.Counter()
reasons = collections.Counter()  # why calls are passed on
inside = []  # the functions that run: what their text calls is not counted


#: Why a test of NetworkX fails with lagpu, by the end of its name.
EXPECTED = {}
if tuple(map(int, nx.__version__.split(".")[:2])) >= (3, 7):
    EXPECTED |= dict.fromkeys(
        (
            "test_bfs.py::TestBFS::test_predecessor",
            "test_bfs.py::TestBreadthLimitedSearch::test_limited_bfs_predecessor",
        ),
        "a warning of NetworkX' own function, which does not run",
    )


def pytest_collection_modifyitems(items):
    for item in items:
        for name, reason in EXPECTED.items():
            if item.nodeid.endswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def counted(name, function):
    """Return the function of the backend, which counts what it answers."""

    def call(*args, **kwargs):
        inside.append(name)
        why = None  # also an error of NetworkX is an answer
        try:
            return function(*args, **kwargs)
        except NotImplementedError as error:
            why = f"{name}: {error}"
            raise
        finally:
            inside.pop()
            note(name, why)

    return call


def note(name, why=None):
    if inside:
        return
    how = PASSED_ON if why else ANSWERED
    reasons.update([why] if why else [])
    calls[name][how] += 1
    here[how] += 1


def pytest_collection_finish(session):
    from lagpu.nx import interface

    for name in nx.utils.backends.backend_info["lagpu"]["functions"]:
        setattr(interface, name, counted(name, getattr(interface, name)))
    allowed = interface.can_run

    def can_run(name, args, kwargs):
        found = allowed(name, args, kwargs)
        if found is not True:
            note(name, found)
        return found

    interface.can_run = can_run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    here.clear()
    try:
        return (yield)
    finally:
        tests[ANSWERED] += bool(here[ANSWERED])
        tests[PASSED_ON] += not here[ANSWERED] and bool(here[PASSED_ON])
        tests["without"] += not here


def pytest_sessionfinish(session):
    if "NETWORKX_COUNTS" in os.environ:
        found = {"tests": tests, "calls": calls, "reasons": reasons}
        Path(os.environ["NETWORKX_COUNTS"]).write_text(json.dumps(found))
