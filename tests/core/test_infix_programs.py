"""Programs of graphblas-algorithms run on lagpu with their imports changed alone."""

import warnings

import pytest

pytest.importorskip("graphblas_algorithms")  # of the group test
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from line_by_line import Changed, Line, Run, measured
    from their_algorithms import calls, graphs


def test_programs_for_python_graphblas_run_unchanged():
    """Every figure is of this run; what fails is printed, and has a row in docs/notation.md."""
    found = measured(calls(), graphs(), "cpu")
    print(*found.failed, found.summary, sep="\n")
    assert (found.lines, found.functions) == (957, 81), "the programs themselves"
    assert found.lines_whole == 957, found.failed
    assert found.functions_whole == 81, found.failed


@pytest.mark.exhaustive
def test_programs_for_python_graphblas_run_on_the_simulated_gpu():
    on_cpu, on_sim = (measured(calls(), graphs(), place) for place in ("cpu", "sim"))
    assert on_sim.failed == on_cpu.failed


def test_the_measure_can_fail(tmp_path, monkeypatch):
    """A line that computes something else in lagpu, or does not run, is counted once."""
    path = tmp_path / "of_the_test.py"
    path.write_text(
        "from graphblas import binary, missing_here\n\n\n"
        "def program(G, x):\n"
        "    x << x + 1\n"
        "    if x.nvals > 5:\n"
        "        return x\n"
        "    for _ in range(2):\n"
        "        y = missing_here(x)\n"
        "    return binary.plus(x | y)\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    import graphblas
    from graphblas import Vector

    monkeypatch.setattr(graphblas, "missing_here", lambda x: x.dup(), raising=False)
    x = Vector.from_coo([0], [1.0], size=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Run("of_the_test", "program", Changed(), "cpu", [graphs()["cycle"], x], {})
    assert sorted(run.lines) == [5, 6, 8, 9, 10]
    assert [line[:3] for line in run.failed.values()] == [
        Line("program", 9, "y = missing_here(x)", "")[:3]
    ]
