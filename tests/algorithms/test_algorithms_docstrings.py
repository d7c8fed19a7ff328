"""The examples in the docstrings of the algorithms give what they say."""

import doctest
import importlib

import pytest

from lagpu import algorithms


@pytest.mark.parametrize("name", algorithms.__all__)
def test_examples_of_algorithms(name):
    function = getattr(algorithms, name)
    module = importlib.import_module(function.__module__)
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs=vars(module).copy())
    assert test.examples, f"{name} has no example"
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", algorithms.__all__)
def test_docstrings_say_what_comes_in_and_out(name):
    text = getattr(algorithms, name).__doc__
    for part in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"{part}\n    ---" in text, part
