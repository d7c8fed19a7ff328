"""The converted graph: kept until the graph changes, one matrix a backend, and the way back."""

import copy
import pickle

import networkx as nx
import pytest
from networkx_door import door  # noqa: F401

import lagpu
from lagpu.nx import Graph, convert_from_nx, convert_to_nx


def kept(G):
    return list(G.__networkx_cache__.get("backends", {}).get("lagpu", {}).values())


def test_a_graph_is_converted_once_until_it_changes(door):
    G = nx.path_graph(4)
    assert nx.shortest_path_length(G, 0, 3, backend="lagpu") == 3
    (first,) = kept(G)
    nx.connected_components(G, backend="lagpu")
    assert kept(G) == [first]
    G.add_edge(0, 3)
    assert nx.shortest_path_length(G, 0, 3, backend="lagpu") == 1
    assert kept(G) != [first]
    G.add_edge(0, 3, weight=9)
    found = nx.single_source_dijkstra_path_length(G, 0, backend="lagpu")
    assert found == {0: 0, 1: 1, 2: 2, 3: 3}
    G.remove_node(1)
    assert nx.single_source_dijkstra_path_length(G, 0, backend="lagpu") == {0: 0, 3: 9, 2: 10}


def test_attributes_that_a_function_reads(door):
    G = nx.MultiGraph()
    G.add_weighted_edges_from([(0, 1, 5), (0, 1, 2), (1, 2, 1)])
    assert nx.dijkstra_path_length(G, 0, 2, backend="lagpu") == 3
    assert nx.dijkstra_path_length(G, 0, 2, weight="none", backend="lagpu") == 2
    ours = nx.pagerank(G, tol=1e-12, max_iter=500, backend="lagpu")
    assert ours == pytest.approx(nx.pagerank(G, tol=1e-12, max_iter=500), rel=1e-9)
    G.add_edge(2, 3, weight=True)
    G.add_edge(3, 4, weight=False)
    assert nx.dijkstra_path_length(G, 0, 4, backend="lagpu") == 4
    flags = nx.Graph([(0, 1, {"weight": True}), (1, 2, {"weight": False})])
    found = nx.single_source_dijkstra_path_length(flags, 0, backend="lagpu")
    assert found == nx.single_source_dijkstra_path_length(flags, 0)
    G.add_edge(1, 2, weight="long")
    with pytest.raises(NotImplementedError):
        nx.pagerank(G, backend="lagpu")
    assert nx.has_path(G, 0, 2, backend="lagpu")
    H = convert_from_nx(plain := nx.path_graph(2))
    assert H.weights("w").tolist() == [1, 1]  # NetworkX did not say that it is read
    assert pickle.loads(pickle.dumps(H)).weights("w2").tolist() == [1, 1]
    turned = convert_from_nx(plain.to_directed()).reverse()
    with pytest.raises(NotImplementedError, match="'other' was not converted"):
        turned.matrix("other")
    plain.add_edge(1, 2)
    with pytest.raises(NotImplementedError, match="changed"):
        H.matrix("other")
    moved = nx.DiGraph([(0, 2), (1, 2)])
    H = convert_from_nx(moved)
    moved.remove_edge(0, 2)
    moved.add_edge(1, 2, w=7)
    moved.add_edge(2, 2)
    with pytest.raises(NotImplementedError, match="changed"):
        H.matrix("w")


def test_a_whole_graph_serves_every_function(door):
    G = nx.karate_club_graph()
    core = nx.k_core(G, backend="lagpu")
    assert nx.utils.graphs_equal(core, nx.k_core(G))
    wanted = nx.single_source_dijkstra_path_length(G, 0, weight="weight")
    ours = nx.single_source_dijkstra_path_length(G, 0, weight="weight", backend="lagpu")
    assert ours == wanted
    assert len(kept(G)) == 1


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
@pytest.mark.parametrize("data", [True, False, None, "w", "other"])
def test_a_whole_graph_knows_what_edges_lack(door, kind, data):
    G = kind([(0, 1, {"w": 2}), (1, 2, {}), (1, 3, {"w": 1.5}), (3, 0, {"w": 7})])
    for default in (None, 5):
        wanted = list(nx.edge_boundary(G, [1, 0], data=data, default=default))
        nx.ego_graph(G, 0, backend="lagpu")  # its conversion is kept
        try:
            found = list(nx.edge_boundary(G, [1, 0], data=data, default=default, backend="lagpu"))
        except NotImplementedError:
            assert kind is nx.MultiGraph
            assert data not in (False, None)
            continue
        assert found == wanted


def test_a_matrix_for_each_backend():
    H = convert_from_nx(nx.DiGraph([("a", "b")]))
    with lagpu.use("cpu"):
        A = H.matrix()
        assert H.matrix() is A
        assert H.matrix(back=True).get(1, 0) is True
    with lagpu.use("grid:2:cpu"):
        assert H.matrix().backend.name == "grid:2:cpu"
    assert (A.backend.name, A.get(0, 1), A.nvals) == ("cpu", True, 1)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda G: pickle.loads(pickle.dumps(G))])
def test_a_graph_is_copied_without_its_matrices(door, again):
    G = nx.path_graph(4)
    nx.connected_components(G, backend="lagpu")
    other = again(G)
    assert nx.shortest_path_length(other, 0, 3, backend="lagpu") == 3


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_the_way_back(kind):
    G = kind()
    G.add_nodes_from("dcba")
    G.add_weighted_edges_from([("a", "b", 2), ("b", "a", 2), ("c", "c", 4), ("a", "c", 1)])
    back = convert_to_nx(convert_from_nx(G, edge_attrs={"weight": 1}))
    assert type(back) is kind
    assert list(back) == list("dcba")
    assert sorted(back.edges(data="weight")) == sorted(G.edges(data="weight")) or (
        not G.is_directed() and back.number_of_edges() == G.number_of_edges()
    )
    whole = convert_from_nx(G, preserve_edge_attrs=True)
    assert convert_to_nx(whole) is G
    assert convert_to_nx(7) == 7


def test_what_is_no_graph():
    H = convert_from_nx(nx.path_graph(3))
    assert convert_from_nx(H) is H
    assert isinstance(H, Graph)
    assert (len(H), list(H), 2 in H, 9 in H, [] in H) == (3, [0, 1, 2], True, False, False)
    with pytest.raises(NotImplementedError, match="list is not a graph"):
        convert_from_nx([])
    with pytest.raises(nx.NetworkXError, match="Node 9 is not in the graph"):
        H.bunch(9)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_what_the_text_of_networkx_reads(kind):
    G = kind([("c", "a", {"w": 2}), ("a", "b", {"w": 0.5}), ("b", "b", {"w": 3}), ("b", "a")])
    G.add_edges_from([("a", "b"), ("b", "b")])
    G.add_node("alone")
    H = convert_from_nx(G, edge_attrs={"w": 1})
    assert (len(H), H.order(), H.number_of_nodes()) == (4, 4, 4)
    assert H.number_of_edges() == G.number_of_edges()
    assert (H.degree, H["b"], H.nodes) == (G.degree, G["b"], G.nodes)
    assert list(H.nbunch_iter(["b", "b", "none"])) == list(G.nbunch_iter(["b", "b", "none"]))
    with pytest.raises(nx.NetworkXError):
        H.neighbors("none")
    assert not hasattr(H, "none")
    if G.is_directed():
        back = convert_to_nx(H.reverse())
        assert sorted(back.edges(data="w")) == sorted(
            (v, u, data.get("w", 1)) for u, v, data in G.edges(data=True)
        )
        assert H.reverse() is H.reverse(copy=False)


def test_sums_of_weights_that_may_overflow_are_refused():
    for weights in ([2**62, 2**62], [2**63, 1], [1j, 1]):
        G = nx.Graph([(0, 1, {"w": weights[0]}), (1, 2, {"w": weights[1]})])
        with pytest.raises(NotImplementedError):
            convert_from_nx(G, edge_attrs={"w": 1}).numbers("w")


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_an_undirected_view_whose_edges_differ_by_direction_is_left_to_networkx(door, kind):
    G = kind([(0, 1, {"w": 1}), (1, 0, {"w": 5}), (1, 2, {"w": 2}), (2, 0, {"w": 7})])
    view = G.to_undirected(as_view=True).subgraph([0, 1, 2])
    expected = nx.closeness_centrality(view, distance="w")
    with pytest.raises(NotImplementedError, match="differ by direction"):
        convert_from_nx(view, edge_attrs={"w": 1}).numbers("w")
    with nx.config(backend_priority=["lagpu"]):
        assert nx.closeness_centrality(view, distance="w") == expected
    assert nx.closeness_centrality(view, backend="lagpu") == nx.closeness_centrality(view)
    G.add_edge(1, 0, **({"key": 0} if G.is_multigraph() else {}), w=1)
    found = nx.closeness_centrality(view, distance="w", backend="lagpu")
    assert found == pytest.approx(nx.closeness_centrality(view, distance="w"))


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiDiGraph])
def test_a_view_is_converted_again_when_the_graph_behind_it_changes(door, kind):
    """NetworkX keeps the converted view, since it empties the cache of the graph alone."""
    G = nx.path_graph(6, kind)
    views = G.subgraph(range(5)), nx.subgraph_view(G.subgraph(range(5)), filter_node=bool)
    for change in (lambda: None, lambda: G.add_edge(1, 4, w=3), lambda: G.remove_node(3)):
        change()
        for view in (*views, G):
            for weight in (None, "w"):
                how = {"weight": weight}
                found = nx.single_source_dijkstra_path_length(view, 1, **how, backend="lagpu")
                assert found == nx.single_source_dijkstra_path_length(view, 1, **how)
    view = views[0]
    first = kept(view)[0].stored
    assert nx.has_path(view, 1, 4, backend="lagpu")
    assert kept(view)[0].stored is first
    G.__networkx_cache__ = None
    G.remove_edge(1, 4)
    assert not nx.has_path(view, 1, 4, backend="lagpu")
