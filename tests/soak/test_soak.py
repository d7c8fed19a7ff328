"""The soak finds planted faults, prints a test that fails, and nothing where there is no fault."""

import json

import drawn_loops as loops
import faulty
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import sampled
from strategies import Failed
from typer.testing import CliRunner

import lagpu
from lagpu import INT64
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.catalog import ALGORITHMS
from soak import algorithm_calls as graphs
from soak import python_loops, statements
from soak.__main__ import app, soak
from soak.statements import Program

#: Algorithms that refuse a graph in parts.
MAY_REFUSE = (
    "diameter",
    "radius",
    "center",
    "periphery",
    "eccentricity",
    "shortest_path",
    "path_weight",
)
KINDS = ("statements", "waiting", "python", "loops", "searches", "graphs")


def failure(place, kind, rounds=6):
    """The failing test that some rounds of a kind print."""
    for seed in range(rounds):
        found = soak(place, 0.01, seed, [kind])["failure"]
        if found:
            return found
    raise AssertionError(f"no round of {kind} found the fault")


def run(text, tmp_path, place, monkeypatch):
    """Run a printed test, whose backend is called "faulty"."""
    real = lagpu.backends.get
    monkeypatch.setattr(lagpu.backends, "get", lambda n="auto": place if n == "faulty" else real(n))
    path = tmp_path / "test_pasted.py"
    path.write_text(text, "utf-8")  # a fused loop is read from its file
    scope = {"__name__": "test_pasted", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), scope)
    scope["test_soak"]()


def without_the_last(backend, right, s):
    """Run a statement, then lose the last entry of a vector."""
    right(s)
    if isinstance(s.out, VectorStore) and s.out.size:
        backend.vector_remove(s.out, s.out.size - 1)


@pytest.mark.exhaustive
def test_a_wrong_statement_is_printed_as_a_test_that_fails(tmp_path, monkeypatch):
    place = faulty.with_operations(apply=without_the_last, select=without_the_last)
    text = failure(place, "statements")
    assert ".apply(" in text or ".select(" in text, text
    # One would be enough, which Hypothesis, that draws other data in other processes, may not find.
    assert text.count(" << ") <= 4, f"of up to a dozen statements these are left:\n{text}"
    with pytest.raises(AssertionError):
        run(text, tmp_path, place, monkeypatch)
    run(text, tmp_path, lagpu.backends.get("sim"), monkeypatch)


@pytest.mark.exhaustive
def test_a_wrong_loop_of_python_is_printed_as_a_test_that_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(python_loops, "_SIZES", (33,))
    place = faulty.with_operations(apply=without_the_last, select=without_the_last)
    text = failure(place, "python")
    with pytest.raises(Failed, match="faulty, run 0"):
        run(text, tmp_path, place, monkeypatch)
    run(text, tmp_path, lagpu.backends.get("sim"), monkeypatch)


@pytest.mark.parametrize("late", [False, True])
def test_a_program_looks_at_each_output_at_once_or_late(late):
    """Late is after the last statement, when a backend has done what it had put off."""

    @settings(max_examples=1, database=None, deadline=None)
    @given(st.data())
    def program_of_two_statements(data):
        program = Program(data.draw, lagpu.backends.get("cpu"), 0)
        program._looks_late = late
        name, _ = program.vector(3, INT64)
        program.run(f"{name}[:] << 2", name, {i: [2] for i in range(3)}, INT64)
        program.finish()
        wrong = name, {i: [1] for i in range(3)}, INT64
        if late:
            program.run(f"{name}[:] << 3", *wrong)  # not read yet
        with pytest.raises(Failed, match=rf"assert not difference\({name}, "):
            program.finish() if late else program.run(f"{name}[:] << 3", *wrong)

    program_of_two_statements()


def test_the_statements_end_with_the_late_look(monkeypatch):
    ended = []
    monkeypatch.setattr(Program, "finish", lambda program: ended.append(program._lines))

    @settings(max_examples=5, database=None, deadline=None, derandomize=True)
    @given(st.data())
    def programs(data):
        statements.run(data.draw, lagpu.backends.get("cpu"), 0)

    programs()
    assert len(ended) == 5
    assert any(ended)


@pytest.mark.parametrize("kind", ["vectors", "two sizes"])
def test_a_wrong_fused_loop_is_printed_as_a_test_that_fails(tmp_path, monkeypatch, kind):
    def spoil(backend, out):
        if isinstance(out, VectorStore):
            backend.vector_clear(out)

    monkeypatch.setattr(loops, "_KINDS", (kind,))
    place = faulty.with_loops(spoil)
    text = failure(place, "loops")
    assert (", size=" in text) == (kind == "two sizes")
    with pytest.raises(Failed, match="faulty fused"):
        run(text, tmp_path, place, monkeypatch)
    run(text, tmp_path, lagpu.backends.get("sim"), monkeypatch)


def test_a_wrong_algorithm_is_printed_as_a_test_that_fails(tmp_path, monkeypatch):
    place = faulty.with_operations(reduce=lambda backend, right, s: right(s))
    real = lagpu.algorithms.bfs_levels

    def wrong(A, source):
        levels = real(A, source)
        if A.backend is place and levels.nvals > 2:
            levels[source] = 1
        return levels

    monkeypatch.setattr(lagpu.algorithms, "bfs_levels", wrong)
    monkeypatch.setattr(graphs, "ALGORITHMS", ALGORITHMS[:1])
    text = failure(place, "graphs")
    with pytest.raises(lagpu.errors.CheckFailed):
        run(text, tmp_path, place, monkeypatch)
    run(text, tmp_path, lagpu.backends.get("sim"), monkeypatch)


@pytest.mark.parametrize("share", sampled([3, 1], 2))
@pytest.mark.parametrize(
    ("program", "cpu", "compiled"),
    [
        (statements.run, 60, 12),
        (statements.waiting, 3, 12),
        (python_loops.run, 3, 6),
        (loops.run, 3, 3),
        (loops.searches, 3, 3),
        (graphs.run, 40, 8),
    ],
    ids=KINDS,
)
def test_no_program_differs(backend, program, cpu, compiled, share):
    count = []

    @settings(
        max_examples=(compiled if backend.capabilities.kernels else cpu) // share,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        deadline=None,
    )
    @given(st.data())
    def programs(data):
        count.append(program(data.draw, backend, 0))

    programs()
    assert min(count) > 0


@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row.key)
def test_every_algorithm_runs(row):
    rng = np.random.default_rng(5)
    edges = [tuple(e) for e in rng.integers(0, 9, (20, 3)).tolist()]
    found = graphs.outcome(row.key, "cpu", 9, edges, 1, 2, [0, 3])
    assert not isinstance(found, str) or row.name in MAY_REFUSE, found


def test_the_command(tmp_path):
    report = tmp_path / "soak.json"
    runner = CliRunner()
    done = runner.invoke(
        app, ["--minutes", "0.001", "--backend", "cpu", "--only", "graphs", "--json", str(report)]
    )
    assert done.exit_code == 0, done.output
    assert "no difference" in done.output
    figures = json.loads(report.read_text("utf-8"))
    assert figures["kinds"]["graphs"]["count"] == 50
    assert figures["failure"] == ""
    for words in (["--only", "loop"], ["--backend", "nowhere"], ["--minutes", "-1"]):
        assert runner.invoke(app, words).exit_code == 2
