"""The bodies of `docs/benchmarks/authors.py` mean the same everywhere, and run as it says."""

import importlib.util
from pathlib import Path

import pytest
from batches import batches_at_once

from lagpu import Matrix, backends
from lagpu.generators.load import load

FILE = Path(__file__).parents[2] / "docs" / "benchmarks" / "authors.py"
_spec = importlib.util.spec_from_file_location("authors", FILE)
authors = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(authors)
KERNELS = {body.__name__ for body in authors.BODIES} - {"found", "tolerance"}  # which break


def graph(place):
    return authors.scaled(load("kron:5:4", backends.get(place)))


@pytest.mark.parametrize("body", authors.BODIES, ids=lambda body: body.__name__)
def test_a_body_means_the_same_and_runs_as_the_page_says(body):
    expected, A = body(graph("cpu")), graph("sim")
    with batches_at_once():
        for _ in range(4):
            names, how = authors._run(A, body)
        found = body(A).to("cpu")
    assert found.isclose(expected, rel_tol=1e-9)
    fused = bool(how) and not how.startswith("eager")
    assert fused == (body.__name__ in KERNELS)
    if not fused:
        programs = names.count("program")
        assert programs > 1
        assert len(names) - programs < 8


def test_the_loops_of_python_give_the_answer_of_the_kernels(monkeypatch):
    monkeypatch.setattr(authors, "median_ms", lambda run, count=1: (run(), 1.0)[1])
    A = load("kron:6:4", backends.get("sim"))
    assert isinstance(A, Matrix)
    for row in authors.whole(A, "kron:6:4"):
        assert row["same"]
