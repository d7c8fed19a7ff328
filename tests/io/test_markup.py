"""GraphML and GML: nodes, labels, weights and directions as NetworkX means them."""

import networkx as nx
import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import BackendUnavailable, FileFormatError, LimitExceeded
from lagpu.host import memory

BOTH = pytest.mark.parametrize(
    ("suffix", "save_as"), [(".graphml", nx.write_graphml), (".gml", nx.write_gml)]
)


@BOTH
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_graphs_of_networkx(tmp_path, suffix, save_as, kind):
    G = kind([(2, 1), (1, 0), (3, 3)])
    save_as(G, tmp_path / f"a{suffix}")
    A = read_cpu(tmp_path / f"a{suffix}")
    assert (A.dtype, A.nrows) == (BOOL, 4)
    expected = nx.to_numpy_array(G, nodelist=range(4)) > 0
    assert {(i, j) for i, j, _ in entries(A)} == set(zip(*expected.nonzero(), strict=True))


@BOTH
def test_weights(tmp_path, suffix, save_as):
    path = tmp_path / f"a{suffix}"
    save_as(nx.DiGraph([(0, 1, {"weight": 3}), (1, 2, {"weight": 4})]), path)
    A = read_cpu(path)
    assert (A.dtype, entries(A)) == (INT64, [(0, 1, 3), (1, 2, 4)])
    G = nx.MultiGraph()
    G.add_weighted_edges_from([(0, 1, 0.5), (1, 0, 2.0)])
    G.add_edge(1, 2)  # counts 1, as in NetworkX
    save_as(G, path)
    A = read_cpu(path)
    assert (A.dtype, entries(A)) == (FP64, [(0, 1, 2.5), (1, 0, 2.5), (1, 2, 1), (2, 1, 1)])
    assert entries(read_cpu(path, dup_op="min"))[0] == (0, 1, 0.5)
    save_as(nx.DiGraph([(0, 1, {"weight": "heavy"})]), path)
    with pytest.raises(FileFormatError, match=r"a weight is no number"):
        read_cpu(path)


@BOTH
def test_names(tmp_path, suffix, save_as):
    G = nx.Graph([("bob", "alice")])
    G.add_node("carol")
    path = tmp_path / f"a{suffix}"
    save_as(G, path)
    if suffix == ".graphml":
        with pytest.raises(
            FileFormatError, match=r"node 'bob' is no whole number .* renumber=True"
        ):
            read_cpu(path)
    A, ids = read_cpu(path, renumber=True)
    assert ids.tolist() == ["alice", "bob", "carol"]
    assert entries(A) == [(0, 1, 1), (1, 0, 1)]


def test_nodes_as_igraph_numbers_them(save):
    text = (
        '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<graph edgedefault="directed"><node id="n0"/><node id="n1"/><node id="n2"/>'
        '<edge source="n2" target="n0"/></graph></graphml>'
    )
    A = read_cpu(save(text, "a.txt"))
    assert (A.nrows, entries(A)) == (3, [(2, 0, True)])


@pytest.mark.parametrize(
    "text",
    [
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph',
        "<graphml></graphml>",
        "graph [ node [ id 0 ] edge [ source 0 target 7 ] ]\n",
        "graph [ " + "a [ " * 5000,
        "graph [ node [ id zero ] ]\n",
    ],
)
def test_damaged(save, text):
    with pytest.raises(FileFormatError, match=r"read: graph: "):
        read_cpu(save(text))


def test_entities_that_multiply(save):
    entities = "".join(
        f'<!ENTITY e{k} "{f"&e{k - 1};" * 10 if k else "x" * 100}">' for k in range(9)
    )
    text = (
        f'<?xml version="1.0"?><!DOCTYPE graphml [{entities}]><graphml '
        'xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
        '<node id="0"><desc>&e8;</desc></node></graph></graphml>'
    )
    with pytest.raises(FileFormatError):
        read_cpu(save(text), format=".graphml")


def test_what_is_missing_or_too_large_is_said_before_reading(save, monkeypatch):
    path = save("graph [\n]\n")
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    monkeypatch.setenv("LAGPU_READ_LIMIT", "20e6")
    with pytest.raises(LimitExceeded):
        read_cpu(save("graph [\n" + " " * 1_000_000 + "]\n", "large"))
    monkeypatch.delenv("LAGPU_READ_LIMIT")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(BackendUnavailable, match=r'GML, and needs networkx, .* "lagpu\[nx\]"'):
        read_cpu(path)
