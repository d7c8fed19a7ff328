"""What `docs/benchmarks/constants.py` does: one half of the zoo chooses, the other judges."""

import json
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lagpu import algorithms, generators
from lagpu.backends.gpu.fused import search_grid

FILE = Path(__file__).parents[2] / "docs" / "benchmarks" / "constants.py"
SPEC = spec_from_file_location("measured_constants", FILE)
constants = module_from_spec(SPEC)
SPEC.loader.exec_module(constants)


def test_each_constant_has_a_row_and_is_restored(tmp_path, monkeypatch):
    before = search_grid.alpha_of, search_grid.delta_of
    two = [("a", "two", "kron:7:8"), ("b", "two", "urand:7:4")]
    monkeypatch.setattr(constants, "named", lambda _: two)
    monkeypatch.setattr(constants, "FACTORS", {"alpha": (1e-6, 1e6), "delta": (1.0,)})
    file = tmp_path / "constants.json"
    said = CliRunner().invoke(constants.app, ["sim", "--json", str(file)])
    assert said.exit_code == 0, said.output
    report = json.loads(file.read_text("utf-8"))
    assert [(x["half"], x["output"]) for x in report["searches"]] == [
        (half, output) for half in (0, 1) for output in ("levels", "parents", "paths")
    ]
    costs = report["searches"][0]["costs"]
    assert costs["alpha * 1e-06"] != costs["alpha * 1e+06"]  # it pushes, or pulls
    assert costs["delta * 1"] == costs["as it is"]
    assert [row["constant"] for row in report["rows"]] == ["alpha", "delta"] * 2
    assert (search_grid.alpha_of, search_grid.delta_of) == before


def test_a_search_that_ran_before_has_the_changed_constant(monkeypatch):
    """Its plan and its launch, which have the numbers, are kept with the matrix."""
    seen, numbers = [], search_grid.GridSearch._numbers

    def keep(*given):
        seen.append(numbers(*given)[1])
        return numbers(*given)

    monkeypatch.setattr(search_grid.GridSearch, "_numbers", keep)
    A = generators.kronecker(8, 8, backend="sim")
    for factor in (1.0, 4.0):
        with constants.times("alpha", factor):
            constants.forget(A)
            for _ in range(3):
                algorithms.bfs_levels(A, 1)
    assert seen == [seen[0], 4 * seen[0]]


def test_the_first_half_chooses_and_the_second_judges(monkeypatch):
    monkeypatch.setattr(constants, "FACTORS", {"alpha": (2.0, 4.0)})
    row = partial(dict, output="levels")
    costs = [(8.0, 4.0, 16.0), (1.0, 3.0, 0.5), (2.0, 1.0, 4.0), (1.0, 3.0, 0.5)]
    searches = [
        row(half=k % 2, costs=dict(zip(("as it is", "alpha * 2", "alpha * 4"), its, strict=True)))
        for k, its in enumerate(costs)
    ]
    (found,) = constants.chosen([*searches])
    assert (found["factor"], found["graphs"]) == ("2", 4)
    assert (found["first"], found["second"], found["least"]) == pytest.approx((0.5, 3.0, 0.5))
