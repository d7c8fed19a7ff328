"""Papers and their parts by name, and what is said of names that are not there."""

import re

import pytest

from lagpu.errors import InvalidValue
from lagpu.generators import is_spec
from lagpu.papers.experiments import BEST, PAPERS, experiments_of, on_gpus, paper_of, sentence

EXPERIMENTS = [(paper, one) for paper in PAPERS for one in paper.experiments]
NAMES = [f"{paper.number}, {one.part}" for paper, one in EXPERIMENTS]


def test_names():
    for paper in PAPERS:
        for name in (paper.number, *paper.names, paper.names[0].upper()):
            assert paper_of(name) is paper
    with pytest.raises(InvalidValue, match=r"no '005'. Use .*003 \(turbobfs\)"):
        paper_of("005")


def test_parts():
    paper = paper_of("turbobfs")
    assert experiments_of(paper) == paper.experiments
    assert [one.part for one in experiments_of(paper, table="2")] == ["table 2"]
    with pytest.raises(InvalidValue, match=r"no table 9 to run\. Use --table 1, --table 2"):
        experiments_of(paper, table="9")
    with pytest.raises(InvalidValue, match="figure 4 is left out: the speed-ups of table 3"):
        experiments_of(paper, figure="4")
    with pytest.raises(InvalidValue, match="Give one of them"):
        experiments_of(paper, table="2", figure="4")


def test_experiments_on_several_gpus():
    found = {
        paper.number: [one.part for one in on_gpus(paper.experiments, 2)]
        for paper in PAPERS
        if any(graph.gpus for one in paper.experiments for graph in one.graphs)
    }
    assert found == {
        "000": ["figure 5a", "figure 5b"],
        "002": ["figure 8", "figure 9", "figure 10"],
        "004": ["figure 4", "figure 5", "figure 7", "figure 10", "figure 11", "table 3"],
    }
    (five, _) = on_gpus(paper_of("000").experiments, 4)
    assert [graph.pieces for graph in five.graphs] == ["1x1", "1x2", "2x2"]
    for paper, gpus in (("000", 0), ("001", 2)):
        with pytest.raises(InvalidValue, match=f"--gpus: no graph here is on a grid of .* {gpus}"):
            on_gpus(paper_of(paper).experiments, gpus)


@pytest.mark.parametrize(("paper", "experiment"), EXPERIMENTS, ids=NAMES)
def test_experiments_are_whole(paper, experiment):
    assert re.fullmatch("(table|figure|section) [0-9.]+[a-z]?", experiment.part)
    names = [variant.name for variant in experiment.variants]
    assert len(set(names)) == len(names)
    graphs = [graph.name for graph in experiment.graphs]
    assert len(set(graphs)) == len(graphs)
    assert any(graph.made for graph in experiment.graphs)
    assert any(graph.quick for graph in experiment.graphs)
    for graph in experiment.graphs:
        assert all(is_spec(text) for text in (graph.made, graph.quick) if text)
        assert graph.made or not graph.why
        assert all(value > 0 for value in graph.reported.values())
    for claim in experiment.claims:
        of = claim.get("of", BEST)
        said = {*(of if isinstance(of, list) else (of,)), claim.get("to", BEST)}
        assert said.union(claim.get("expected", ())) <= {*names, BEST}
        kinds = {kind for graph in experiment.graphs for kind in graph.kind.split(", ")}
        assert claim.get("kind", "") in {*kinds, ""}
        assert sentence(claim, []) == ""
