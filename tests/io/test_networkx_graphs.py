"""NetworkX graphs in and out: names, weights, direction, parallel edges, wrong types."""

import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from readback import edges, entries

from lagpu.dtypes import BOOL, FP32, UINT32
from lagpu.errors import BackendUnavailable, DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.io import from_arrays, from_networkx, from_scipy, to_networkx


def test_networkx_order_and_direction():
    G = nx.Graph([("b", "a"), ("b", "b")])
    assert edges(from_networkx(G, backend="cpu")) == [(0, 0), (0, 1), (1, 0)]
    D = nx.DiGraph([("b", "a"), ("a", "c")])
    assert edges(from_networkx(D, backend="cpu")) == [(0, 1), (1, 2)]
    assert from_networkx(nx.empty_graph(3), backend="cpu").nvals == 0


def test_networkx_weights():
    loop = nx.Graph([(0, 0, {"w": 2}), (0, 1, {"w": 3})])
    assert entries(from_networkx(loop, weight="w", backend="cpu")) == [
        (0, 0, 2),
        (0, 1, 3),
        (1, 0, 3),
    ]
    G = nx.MultiDiGraph([(0, 1, {"w": 2}), (0, 1, {"w": 3}), (1, 0)])
    assert entries(from_networkx(G, weight="w", backend="cpu")) == [(0, 1, 5), (1, 0, 1)]
    assert entries(from_networkx(G, backend="cpu")) == [(0, 1, 2), (1, 0, 1)]
    assert from_networkx(loop, backend="cpu").dtype is BOOL
    with pytest.raises(DomainMismatch, match="not always a number"):
        from_networkx(nx.Graph([(0, 1, {"w": "x"})]), weight="w", backend="cpu")
    G = nx.DiGraph([(0, 1, {"w": 2**63 + 1}), (1, 2, {"w": 1})])
    assert entries(from_networkx(G, weight="w", backend="cpu")) == [(0, 1, 2**63 + 1), (1, 2, 1)]
    G.add_edge(1, 2, w=0.5)
    with pytest.raises(DomainMismatch, match=r"integers beyond 2\*\*53"):
        from_networkx(G, weight="w", backend="cpu")


@pytest.mark.parametrize("kind", ["UINT8", np.uint8, UINT32])
def test_a_type_may_be_asked_for(kind):
    A = from_networkx(nx.path_graph(2), dtype=kind, name="P", backend="cpu")
    assert (A.name, A.dtype, entries(A)) == ("P", UINT32, [(0, 1, 1), (1, 0, 1)])
    G = nx.Graph([(0, 1, {"w": 2})])
    assert from_networkx(G, weight="w", dtype=FP32, backend="cpu").dtype is FP32


def test_to_networkx():
    A = from_scipy(sp.coo_array(([2.5], ([0], [1])), shape=(3, 3)), backend="cpu")
    G = to_networkx(A)
    assert list(G) == [0, 1, 2]
    assert list(G.edges(data="weight")) == [(0, 1, 2.5)]
    with pytest.raises(InvalidValue, match="not symmetric"):
        to_networkx(A, directed=False)
    C = from_networkx(nx.cycle_graph(4), backend="cpu")
    assert nx.utils.graphs_equal(to_networkx(C, directed=False), nx.cycle_graph(4))
    rectangle = from_scipy(sp.coo_array(([1], ([0], [1])), shape=(1, 3)), backend="cpu")
    with pytest.raises(InvalidValue, match="nrows 1 != ncols 3"):
        to_networkx(rectangle)


def test_networkx_that_is_not_installed(monkeypatch):
    A = from_arrays([0], [1], nrows=2, ncols=2, backend="cpu")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(BackendUnavailable, match=r"networkx, which is missing. Install it"):
        to_networkx(A)


def test_the_names_of_nodes_come_back():
    G = nx.Graph([("Ann", "Bob", {"weight": 2}), ("Bob", "Cem", {"weight": 3}), ("Cem", "Cem")])
    A, nodes = from_networkx(G, weight="weight", return_nodes=True, backend="cpu")
    assert nodes == ["Ann", "Bob", "Cem"]
    back = to_networkx(A, nodes=nodes)
    G.edges["Cem", "Cem"]["weight"] = 1  # as NetworkX counts an edge without it
    assert nx.utils.graphs_equal(back, G)
    assert to_networkx(A, nodes=nodes, weight="w").edges["Ann", "Bob"] == {"w": 2}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_direction_comes_back(kind):
    G = kind(nx.karate_club_graph().edges)
    back = to_networkx(from_networkx(G, backend="cpu"))
    assert type(back) is kind
    assert back.number_of_edges() == 78
    both = from_networkx(nx.path_graph(3), backend="cpu")
    assert to_networkx(both, directed=True).number_of_edges() == 4


def test_a_list_of_nodes_has_their_order_and_edges_alone():
    G = nx.MultiDiGraph([("a", "b", {"w": 4}), ("a", "b", {"w": 5}), ("b", "c"), ("c", "a")])
    A, nodes = from_networkx(
        G, weight="w", nodelist=(v for v in "ba"), return_nodes=True, backend="cpu"
    )
    assert (nodes, entries(A)) == (["b", "a"], [(1, 0, 9)])
    theirs = nx.to_scipy_sparse_array(G, nodelist=["b", "a"], weight="w")
    assert (theirs.toarray() == [[0, 0], [9, 0]]).all()
    with pytest.raises(InvalidValue, match="node 'z' of nodelist is not in the graph"):
        from_networkx(G, nodelist="az")
    with pytest.raises(InvalidValue, match="nodelist has 'a' twice"):
        from_networkx(G, nodelist="aba")


def test_views_are_graphs():
    G = nx.DiGraph([(0, 1), (1, 2), (2, 3)])
    assert edges(from_networkx(G.reverse(copy=False), backend="cpu")) == [(1, 0), (2, 1), (3, 2)]
    assert edges(from_networkx(G.subgraph([1, 2, 3]), backend="cpu")) == [(0, 1), (1, 2)]
    assert from_networkx(G.to_undirected(as_view=True), backend="cpu").nvals == 6


def test_wrong_names():
    A = from_networkx(nx.path_graph(3), backend="cpu")
    with pytest.raises(DimensionMismatch, match="2 nodes != 3 vertices"):
        to_networkx(A, nodes="ab")
    with pytest.raises(InvalidValue, match="a name is given twice"):
        to_networkx(A, nodes="aba")


def test_what_is_no_graph_is_named():
    class Graph:
        """As igraph's shows itself."""

        def get_edgelist(self):
            return []

    with pytest.raises(DomainMismatch, match=r"igraph's Graph is not .* io.from_igraph\(graph\)"):
        from_networkx(Graph())
    with pytest.raises(DomainMismatch, match=r"coo_array is not a NetworkX graph\. Use from_scipy"):
        from_networkx(sp.coo_array((2, 2)))
    with pytest.raises(DomainMismatch, match="list is not a NetworkX graph"):
        from_networkx([(0, 1)])
    with pytest.raises(DomainMismatch, match="matrix already"):
        from_networkx(from_networkx(nx.path_graph(3), backend="cpu"))
    with pytest.raises(DomainMismatch, match="ndarray is not a Matrix"):
        to_networkx(np.eye(2))
    with pytest.raises(DomainMismatch, match="not always a number"):
        from_networkx(nx.Graph([(0, 1, {"w": [1]}), (1, 2, {"w": [2, 3]})]), weight="w")
