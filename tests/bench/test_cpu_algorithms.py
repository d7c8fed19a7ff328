"""`docs/benchmarks/cpu_algorithms.py` measures and proves what `lagpu bench` leaves out."""

import importlib.util
from pathlib import Path

import pytest

from lagpu import catalog
from lagpu.errors import CheckFailed

FILE = Path(__file__).parents[2] / "docs" / "benchmarks" / "cpu_algorithms.py"
spec = importlib.util.spec_from_file_location("cpu_algorithms", FILE)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)


def test_each_algorithm_has_a_row_or_is_measured_by_bench(monkeypatch):
    monkeypatch.setattr(program, "TURNS", 1)
    asked = program.left_out()
    by_bench = {row.name for row in catalog.ALGORITHMS if not row.measured_as}
    assert {row.name for row in asked} | by_bench == {row.name for row in catalog.ALGORITHMS}
    rows = program.measured("kron:5", asked)
    assert [row["algorithm"] for row in rows] == [row.name for row in asked]
    notes = {row["algorithm"]: row["note"] for row in rows if row["median_ms"] is None}
    assert notes == dict.fromkeys(("radius", "center", "periphery"), "NoPath")


def test_a_wrong_result_ends_the_measurement():
    right = next(row for row in catalog.ALGORITHMS if row.name == "triangles")
    wrong = catalog.Algorithm("triangles", check=right.check, call=lambda A, _: A.diag())
    with pytest.raises(CheckFailed):
        program.measured("kron:4", [wrong])
