"""The examples in the docstrings give what they say, and the errors are those of the package."""

import doctest
import importlib
from types import SimpleNamespace

import pytest

from lagpu import Matrix, Vector, algorithms, generators
from lagpu.catalog import ALGORITHMS
from lagpu.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound, InvalidValue


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
    for part in ("Parameters", "Returns", "Examples"):
        assert f"{part}\n    ---" in text, part


WIDE = Matrix.from_coo([0, 1], [3, 2], [1.0, 2.0], nrows=3, ncols=4, backend="cpu")
SQUARE = generators.path(4, backend="cpu")
FACTS = SimpleNamespace(source=0, target=1, sources=[0, 1], few=[0], radius=1, sampled=1)
LABELS = {"labels": Vector.from_coo(range(4), [0, 0, 1, 1], backend="cpu")}
MORE = {"contraction": LABELS, "modularity": LABELS}
ROWS = {row.name: row for row in reversed(ALGORITHMS)}


@pytest.mark.parametrize("name", algorithms.__all__)
def test_errors_that_the_package_names(name):
    def call(A, **changed):
        facts = SimpleNamespace(**vars(FACTS) | changed)
        given = [facts.sources] if name == "path_weight" else ROWS[name].arguments(facts)
        return getattr(algorithms, name)(A, *given, **ROWS[name].options, **MORE.get(name, {}))

    with pytest.raises(DimensionMismatch):
        call(WIDE)
    with pytest.raises(DomainMismatch):
        call([[0, 1], [1, 0]])
    if {"source", "sources", "few"} & {*ROWS[name].given}:
        with pytest.raises(IndexOutOfBound):
            call(SQUARE, source=4, sources=[0, 4], few=[4])
        with pytest.raises(DomainMismatch):
            call(SQUARE, source=0.5, sources=[0.5], few=[0.5])
    if {"sources", "few"} & {*ROWS[name].given}:
        for some in ([], [1, 1]):
            with pytest.raises(InvalidValue):
                call(SQUARE, sources=some, few=some)
