"""NetworkX beside its backend lagpu: the rows, the record, and a wrong answer."""

import json

import networkx as nx
import pytest

from lagpu.bench import networkx_backend as bench
from lagpu.errors import CheckFailed


def test_the_command(tmp_path, capsys):
    file = tmp_path / "found.json"
    bench.app(["karate", "-b", "cpu", "--json", str(file)], standalone_mode=False)
    assert "single_source" in capsys.readouterr().out
    found = json.loads(file.read_text())
    assert {"benchmark", "machine", "commit", "date", "versions", "rows"} == set(found)
    assert found["versions"]["networkx"] == nx.__version__
    for row in found["rows"]:
        assert (row["graph"], row["nodes"], row["edges"]) == ("karate", 34, 78)
        assert all(x >= 0 for key, x in row.items() if key.endswith("_s"))
        assert min(row["networkx_s"], row["cpu_s"], row["cpu_convert_s"]) > 0


def test_graphs():
    G = bench.graph_of("kron:4")
    assert not nx.number_of_selfloops(G)
    assert {data["weight"] for *_, data in G.edges(data=True)} <= set(range(1, 10))
    assert type(G) is nx.Graph


def test_a_wrong_answer_ends_the_measurement(monkeypatch):
    monkeypatch.setattr(bench.interface, "core_number", lambda H: dict.fromkeys(H, 1))
    with pytest.raises(CheckFailed, match="core_number on cpu differs from NetworkX on karate"):
        bench.measure("karate", ["cpu"])
