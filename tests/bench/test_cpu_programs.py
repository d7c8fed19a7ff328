"""What `statements.py` and `threads.py` of docs/benchmarks measure without a GPU."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import graphblas
import pytest
from typer.testing import CliRunner

import lagpu
from lagpu.backends.cpu import handles

FOLDER = Path(__file__).parents[2] / "docs" / "benchmarks"


def program(name):
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # as where Python runs it
    spec = spec_from_file_location(f"measured_{name}", FOLDER / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report_of(module, file, *words):
    said = CliRunner().invoke(module.app, [*words, "--json", str(file)])
    assert said.exit_code == 0, said.output
    return json.loads(file.read_text("utf-8"))


@pytest.mark.parametrize("place", ["cpu", "sim"])
def test_each_statement_has_a_row(tmp_path, place):
    statements = program("statements")
    few = "-b", place, "--what", "line", "--size", "20", "--turns", "2", "--count", "2"
    rows = report_of(statements, tmp_path / "x.json", *few)["rows"]
    assert [row["line"] for row in rows] == [*statements.LINES.values()]
    assert {row["backend"] for row in rows} == {place}
    assert all(min(row["us"], row["graphblas_us"], row["ratio"]) > 0 for row in rows)


@pytest.mark.parametrize(("place", "kinds"), [("cpu", "loop known"), ("sim", "known statement")])
def test_each_kind_has_rows(tmp_path, place, kinds):
    words = [word for kind in kinds.split() for word in ("--what", kind)]
    words += ["--host"] if place == "sim" else []
    rows = report_of(
        program("statements"), tmp_path / "x.json", "kron:5:4", "-b", place, "--turns", "1", *words
    )["rows"]
    waiting = [("statement", name) for name in ("union", "numbers", "masks", "calls", "level")]
    loops = [("pagerank", None), ("levels", None), ("known", None)]
    named = [(row["what"], row.get("name")) for row in rows]
    assert named == (loops if place == "cpu" else [*loops[2:], *waiting])
    assert all(row["host"] == (place == "sim") for row in rows if "host" in row)
    times = [x for row in rows for key, x in row.items() if key.endswith(("us", "_ms"))]
    assert min(times) > 0


def test_nothing_is_launched_where_the_host_alone_is_measured(monkeypatch):
    statements, place, ran = program("statements"), lagpu.backends.get("sim"), []
    v = lagpu.Vector.from_dense([1.0, 2.0, 3.0], backend=place)
    device = type(place.device)
    inner = device.run
    monkeypatch.setattr(device, "run", lambda *given: (ran.append(given[1]), inner(*given)))
    for count, where in ((0, statements.idle(place)), (1, lagpu.use(place))):
        with where:
            lagpu.Vector(lagpu.FP64, 3, like=v) << v + 1.0
        assert len(ran) == count


def test_a_line_does_the_same_in_both_libraries():
    statements = program("statements")
    with lagpu.use("cpu"):
        both = [statements.names_of(library, 20) for library in (lagpu, graphblas)]
    for what, line in statements.LINES.items():
        for names in both:
            statements.timer(line, names)(3)
        for name in "uvwqp":
            (i, x), (j, y) = (names[name].to_coo() for names in both)
            assert i.tolist() == j.tolist(), (what, name)
            assert x.tolist() == y.tolist(), (what, name)
        assert both[0]["s"].value == both[1]["s"].value, what


def test_each_way_has_its_times(tmp_path):
    rule, allowed = handles.by_threads, handles.allowed_threads()
    found = report_of(
        program("threads"), tmp_path / "x.json", "kron:8", "--busy", "0", "--turns", "2"
    )
    (row,) = found["rows"]
    assert {"one_thread_ms", "suitesparse_ms", "lagpu_ms", "lagpu_cpu_ms"} <= row.keys()
    assert (handles.by_threads, handles.allowed_threads()) == (rule, allowed)
    assert found["machine"]["threads"] == str(allowed)
