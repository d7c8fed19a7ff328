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


def counted(name, function):
    """Return the function of the backend, which counts what it answers."""

    def call(*args, **kwargs):
        try:
            result = function(*args, **kwargs)
        except NotImplementedError:
            note(name, PASSED_ON)
            raise
        except BaseException:
            note(name, ANSWERED)  # an error of NetworkX is an answer
            raise
        note(name, ANSWERED)
        return result

    return call


def note(name, how):
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
            note(name, PASSED_ON)
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
        found = {"tests": tests, "calls": calls}
        Path(os.environ["NETWORKX_COUNTS"]).write_text(json.dumps(found))
