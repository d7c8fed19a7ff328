"""`docs/benchmarks/papers.py`: the reports of a run are one file a paper."""

import copy
import importlib.util
import json
from pathlib import Path

import pytest

from lagpu.papers.experiments import experiments_of, paper_of
from lagpu.papers.run import Request, run


@pytest.fixture
def papers(monkeypatch, tmp_path):
    file = Path(__file__).parents[2] / "docs" / "benchmarks" / "papers.py"
    spec = importlib.util.spec_from_file_location("papers", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "kept")
    module.FOLDER.mkdir()
    return module


@pytest.fixture(scope="module")
def report():
    """A report of two graphs by two variants, as if of a GPU."""
    paper = paper_of("003")
    request = Request("cpu", quick=True, roots=1, only=["kmer-V1r", "twitter7"])
    found, _ = run(paper, experiments_of(paper, table="3"), request)
    (part,) = found["experiments"]
    part["rows"] = [row for row in part["rows"] if row["variant"] in ("busc", "buve")]
    machine = found["machine"] | {"device": "NVIDIA H200"}
    return found | {"quick": False, "machine": machine, "commit": "c"}


def of_graph(report, name, **more):
    found = copy.deepcopy(report) | more
    (part,) = found["experiments"]
    part["rows"] = [row for row in part["rows"] if row["graph"] == name]
    part["missing"] += ["not run: all others", name]
    return found


def write(folder, **reports):
    folder.mkdir(exist_ok=True)
    for name, report in reports.items():
        (folder / f"{name}.json").write_text(json.dumps(report), "utf-8")


def rows_in(file):
    found = json.loads(file.read_text("utf-8"))
    return [(r["graph"], r["variant"]) for part in found["experiments"] for r in part["rows"]]


def test_reports_of_some_graphs_are_joined_in_the_papers_order(papers, report, tmp_path, capsys):
    later = of_graph(report, "kmer-V1r", date="2999-01-01")
    write(tmp_path / "run", a=later, b=of_graph(report, "twitter7"), other={"rows": []})
    write(papers.FOLDER, old=report)
    papers.main(str(tmp_path / "run"))
    (file,) = papers.FOLDER.glob("*.json")
    assert file.name == "h200-003.json"
    assert rows_in(file) == [
        (graph, variant) for graph in ("kmer-V1r", "twitter7") for variant in ("busc", "buve")
    ]
    missing = json.loads(file.read_text("utf-8"))["experiments"][0]["missing"]
    assert {"kmer-V1r", "twitter7"} < {*missing}
    assert not any(text.startswith("not run") for text in missing)
    assert "old.json: all of its rows were measured again" in capsys.readouterr().out


def test_what_was_not_measured_again_stays(papers, report, tmp_path):
    write(papers.FOLDER, old=report)
    two = of_graph(report, "twitter7")
    for row in two["experiments"][0]["rows"]:
        row["backend"] = "grid:1x2:gpu"
    write(tmp_path / "run", a=of_graph(report, "twitter7"), b=two)
    papers.main(str(tmp_path / "run"))
    names = {file.name for file in papers.FOLDER.glob("*.json")}
    assert names == {"old.json", "h200-003.json", "h200x2-003.json"}


def test_reports_of_several_commits_are_not_joined(papers, report, tmp_path):
    write(tmp_path / "run", a=report, b=report | {"commit": "d"})
    with pytest.raises(SystemExit, match=r"several commits: [cd], [cd]"):
        papers.main(str(tmp_path / "run"))
