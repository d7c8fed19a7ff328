"""Each function answers as NetworkX' own does: values, types, names, order, errors."""

import math
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st
from networkx.utils import backends as dispatch
from networkx_calls import (
    ANY_ORDER,
    IN_ORDER,
    OTHERS,
    PATHS,
    filled,
    function_of,
    measured,
    outcome,
    same,
)
from networkx_door import ROOT, door, entry_points, run  # noqa: F401
from strategies import for_all

import _lagpu_networkx
import lagpu
from lagpu import algorithms
from lagpu.nx import convert_from_nx, interface
from lagpu.nx.answers import DECLARED

FUNCTIONS = _lagpu_networkx.info()["functions"]
KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
NODE, OTHER = "node", "other"
CALLS = IN_ORDER | ANY_ORDER | PATHS


def test_all_that_is_claimed_is_there_and_compared():
    assert {*CALLS, *OTHERS} == set(FUNCTIONS) == set(DECLARED)
    both = dispatch._registered_algorithms.keys() & set(algorithms.__all__)
    assert both - set(FUNCTIONS) <= {"find_negative_cycle"}  # any node of it may come first
    for name in FUNCTIONS:
        parameters = [str(p.name) for p in DECLARED[name].signature.parameters.values()]
        wanted = dispatch._registered_algorithms[name].orig_func.__code__
        assert parameters == list(wanted.co_varnames[: wanted.co_argcount]), name


def drawn(draw, kinds=KINDS):
    """Draw a graph with named nodes in any order."""
    G = draw(st.sampled_from(kinds), label="kind")()
    n = draw(st.integers(1, 9), label="n")
    G.add_nodes_from(f"node {v}" for v in draw(st.permutations(range(n)), label="order"))
    node = st.sampled_from(list(G))
    edges = draw(st.lists(st.tuples(node, node, st.integers(0, 5)), max_size=2 * n), label="edges")
    for u, v, w in edges:
        G.add_edge(u, v, **({"w": w} if w else {}), sign=w - 1)
    if draw(st.booleans(), label="simple"):
        G.remove_edges_from(list(nx.selfloop_edges(G)))
    return G


@pytest.mark.usefixtures("door")
@for_all(cpu=900, compiled=8)
def test_answers_are_those_of_networkx(backend, draw):
    name = draw(st.sampled_from([*CALLS]), label="function")
    G, H = drawn(draw), None
    other = draw(st.sampled_from([*G, "none"]), label="other")
    function = function_of(name)
    for given in CALLS[name]:
        args = filled(given, G, other, H := H or G.copy())
        if interface.can_run(name, (G, *args), {}) is not True:
            continue
        # modularity_matrix divides 0 by 0 in a graph without edges
        with np.errstate(invalid="ignore"), lagpu.use(backend):
            wanted = outcome(lambda a=args: function(G, *a, backend="networkx"))
            found = outcome(lambda a=args: function(G, *a, backend="lagpu"))
        if found is not NotImplementedError:
            weight = next((x for x in given if x in ("w", "sign")), None)
            if name in PATHS and "weight" in DECLARED[name].signature.parameters:
                weight = weight or DECLARED[name].signature.parameters["weight"].default
            if name in PATHS and not isinstance(wanted, type):
                found, wanted = (measured(x, G, weight) for x in (found, wanted))
            assert same(found, wanted, name in IN_ORDER), (args, wanted)


NUMBERS = (0, 1, 2, 5, True, False, 0.5, 1e-300, 10**6, "lacks")
ODD_NUMBERS = (np.int64(3), -0.0, 1e300, math.inf, -math.inf, -1, -0.5, 2**63, 2**70, math.nan)
ODD = (*ODD_NUMBERS, None, "3", [1], 1j)
READ_WEIGHTS = {
    "pagerank": [(0.85, None, 500, 1e-10)],
    "single_source_dijkstra_path_length": [(NODE,), (NODE, 3)],
    "all_pairs_dijkstra_path_length": [()],
    "dijkstra_path_length": [(NODE, OTHER)],
    "single_source_bellman_ford_path_length": [(NODE,)],
    "all_pairs_bellman_ford_path_length": [()],
    "bellman_ford_path_length": [(NODE, OTHER)],
    "shortest_path_length": [(NODE,), (None, NODE), (NODE, OTHER), ()],
}


def test_all_that_read_weights_are_compared_over_odd_ones():
    for name in set(FUNCTIONS) - OTHERS:
        parameters = DECLARED[name].signature.parameters
        if "weight" in parameters and "weight" not in DECLARED[name].only:
            assert any("w" in given for given in CALLS[name]), name


@pytest.mark.usefixtures("door")
@for_all(cpu=600, compiled=12)
def test_weights_of_any_kind_count_as_in_networkx(backend, draw):
    """Parallel edges, self-loops, and weights that lack or are no numbers, or not all."""
    name = draw(st.sampled_from([*READ_WEIGHTS]), label="function")
    G = draw(st.sampled_from((*KINDS, *KINDS[2:])), label="kind")()
    n, odd = draw(st.integers(1, 4), label="n"), draw(st.sampled_from([*ODD, "lacks"]), label="odd")
    G.add_nodes_from(draw(st.permutations(range(n)), label="order"))
    node, weights = st.integers(0, n - 1), st.sampled_from((*NUMBERS, odd))
    for u, v, w in draw(st.lists(st.tuples(node, node, weights), max_size=4 * n), label="edges"):
        G.add_edge(u, v, **({} if w == "lacks" else {"weight": w}))
    is_odd = any(not _is_number(w) for *_, w in G.edges(data="weight", default=1))
    words = {NODE: list(G)[-1], OTHER: draw(node, label="other")}
    function = getattr(nx, name)
    for given in READ_WEIGHTS[name]:
        args = [words.get(x, x) if isinstance(x, str) else x for x in given]
        for options in ({}, {"weight": None}, {"weight": "weight"}, {"weight": "none"}):
            call = {"method": "bellman-ford"} if name == "shortest_path_length" and n % 2 else {}
            call |= options
            bound = DECLARED[name].signature.bind(G, *args, **call)
            bound.apply_defaults()
            weight = bound.arguments["weight"]
            wanted = outcome(lambda a=args, c=call: function(G, *a, backend="networkx", **c))
            if wanted is ValueError:  # Dijkstra: it compares large integers with rounded floats
                continue

            with lagpu.use(backend):
                found = outcome(lambda a=args, c=call: function(G, *a, backend="lagpu", **c))
            refused = found is NotImplementedError
            assert refused or same(found, wanted, name == "pagerank"), (args, call, found, wanted)
            assert not refused or (is_odd and weight == "weight"), (args, call, wanted)


def _is_number(w):
    """Whether lagpu may not refuse a weight."""
    return isinstance(w, (int, float, np.number)) and 0 <= w < 2**63


def test_parallel_edges_each_count_without_a_weight(door):
    for kind in KINDS[2:]:
        G = kind([(0, 1), (0, 1), (1, 2), (1, 2), (2, 0), (1, 1), (1, 1)])
        for weight in (None, "weight", "none"):
            ours = nx.pagerank(G, weight=weight, backend="lagpu")
            assert ours == pytest.approx(nx.pagerank(G, weight=weight), rel=1e-9)
        hops = nx.single_source_dijkstra_path_length(G, 0, weight=None, backend="lagpu")
        assert hops == nx.single_source_dijkstra_path_length(G, 0, weight=None)


@pytest.mark.parametrize("odd", [math.nan, 2**53 + 1])
def test_what_a_matrix_would_pass_over_or_round_is_passed_on(door, odd):
    for others in ([1.5], [odd, 1.5]):
        G = nx.MultiGraph([(0, 1, {"weight": odd}), *((0, 1, {"weight": w}) for w in others)])
        with pytest.raises(NotImplementedError):
            nx.single_source_dijkstra_path_length(G, 0, backend="lagpu")


@for_all(cpu=60, compiled=2)
def test_one_of_several_right_answers(backend, draw):
    G = drawn(draw, (nx.Graph, nx.DiGraph))
    nodes, H = list(G), convert_from_nx(G)
    v = nodes[-1]
    with lagpu.use(backend):
        parts = list(interface.strongly_connected_components(H))
        back = interface.single_target_shortest_path(H, v)
        ahead = interface.shortest_path(H, v)
        free = outcome(lambda: interface.maximal_independent_set(H, [v], nx_seed()))
    D = nx.DiGraph(G)
    assert {*map(frozenset, parts)} == {*map(frozenset, nx.strongly_connected_components(D))}
    place = {node: k for k, part in enumerate(parts) for node in part}
    assert all(place[a] >= place[b] for a, b in G.edges) or not G.is_directed()
    assert {u: len(path) for u, path in back.items()} == {
        u: length + 1 for u, length in nx.single_target_shortest_path_length(G, v).items()
    }
    assert all(nx.is_path(G, path) and path[-1] == v for path in back.values())
    for u, path in ahead.items():
        with lagpu.use(backend):
            found = interface.bidirectional_shortest_path(H, v, u)
        assert nx.is_path(G, found)
        assert (found[0], found[-1], len(found)) == (v, u, len(path))
    if not G.is_directed() and not nx.number_of_selfloops(G):
        assert v in free if isinstance(free, set) else free[0] == v  # a set from NetworkX 3.7 on
        assert len(set(free)) == len(free)
        near = {u for node in free for u in G[node]}
        assert not near & set(free)
        assert near | set(free) == set(G)


def nx_seed():
    return nx.utils.create_py_random_state(None)


def test_graphs_without_nodes(door):
    for kind in KINDS:
        G = kind()
        for name in FUNCTIONS:
            cases = CALLS.get(name, [])
            if () not in cases or interface.can_run(name, (G,), {}) is not True:
                continue
            function = function_of(name)
            wanted = outcome(lambda f=function, G=G: f(G, backend="networkx"))
            found = outcome(lambda f=function, G=G: f(G, backend="lagpu"))
            refused = isinstance(found, type) and isinstance(wanted, type)
            assert refused or same(found, wanted, True), (name, kind)


def test_samples_are_those_that_networkx_draws(door):
    G = nx.karate_club_graph()
    for function in (nx.betweenness_centrality, nx.edge_betweenness_centrality):
        for seed in (5, None):
            ours = function(G, k=7, seed=seed or 3, backend="lagpu")
            assert ours == pytest.approx(function(G, k=7, seed=seed or 3), rel=1e-9)
    chosen = nx.maximal_independent_set(G, backend="lagpu")
    assert not G.subgraph(chosen).edges
    with pytest.raises(NotImplementedError):
        nx.maximal_independent_set(G, seed=1, backend="lagpu")


def test_errors_are_those_of_networkx(door):
    G = nx.path_graph(5)
    with pytest.raises(nx.NodeNotFound, match="Source 9 is not in G"):
        nx.single_source_shortest_path_length(G, 9, backend="lagpu")
    with pytest.raises(nx.NodeNotFound):
        nx.has_path(G, [1], 2, backend="lagpu")
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(G, max_iter=1, tol=1e-9, backend="lagpu")
    cycle = nx.DiGraph([(0, 1, {"weight": -2}), (1, 0), (1, 2)])
    for function in nx.bellman_ford_path_length, nx.single_source_bellman_ford:
        for target in 2, "not a node":
            with pytest.raises(nx.NetworkXUnbounded):
                function(cycle, 0, target, backend="lagpu")
    with pytest.raises(nx.NetworkXError, match="the graph is not connected"):
        nx.diameter(nx.empty_graph(2), backend="lagpu")
    with pytest.raises(nx.NetworkXNotImplemented, match="self loops"):
        nx.core_number(nx.Graph([(0, 0)]), backend="lagpu")
    late = nx.topological_sort(nx.DiGraph([(0, 1), (1, 0)]), backend="lagpu")
    with pytest.raises(nx.NetworkXUnfeasible):
        next(late)


def test_what_lagpu_refuses_is_passed_on(door):
    negative = nx.DiGraph([(0, 1, {"weight": -1})])
    with pytest.raises(NotImplementedError):
        nx.pagerank(negative, backend="lagpu")
    nx.config.backends.lagpu.least_edges = 0
    with nx.config.backend_priority(algos=["lagpu"]):
        assert nx.pagerank(negative) == nx.pagerank(negative, backend="networkx")
        lengths = dict(
            nx.all_pairs_dijkstra_path_length(nx.DiGraph([(0, 1, {"weight": math.nan})]))
        )
        assert list(lengths) == [0, 1]
    late = nx.all_pairs_bellman_ford_path_length(nx.Graph(negative), backend="lagpu")
    with pytest.raises(nx.NetworkXUnbounded):
        next(late)
    large = nx.gnp_random_graph(1100, 0.01, seed=1)
    with pytest.raises(NotImplementedError):
        nx.pagerank(large, alpha=0.999, max_iter=5, backend="lagpu")


def test_the_entry_points(tmp_path):
    """One environment variable speeds a script up; NetworkX alone imports nothing of lagpu."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, networkx as nx\n"
        "heavy = {'lagpu', 'numpy', 'scipy', 'graphblas'} & sys.modules.keys()\n"
        "G = nx.gnp_random_graph(500, 0.1, seed=1)\n"
        "ranks = nx.pagerank(G)\n"
        "print(sorted(heavy), 'lagpu.nx' in sys.modules, list(ranks) == list(G))\n"
    )
    done = run(tmp_path, script, NETWORKX_BACKEND_PRIORITY="lagpu")
    assert done.stdout.strip() == "[] True True", done.stderr
    done = run(tmp_path, script)
    assert done.stdout.strip() == "[] False True", done.stderr


@pytest.mark.ci
def test_the_page_runs(tmp_path):
    page = (ROOT / "docs" / "from_networkx.md").read_text("utf-8")
    *blocks, timing = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    timing = timing.replace("30_000, 300_000", "300, 3_000")
    script = tmp_path / "page.py"
    script.write_text(
        "\n".join([*blocks[-1:], *blocks[:-1], timing])
        + "assert 'lagpu.nx' in __import__('sys').modules\n"
    )
    done = run(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert "Using backend 'lagpu' for call to 'pagerank'" in done.stderr
    assert f"by default {_lagpu_networkx.info()['default_config']['least_edges']}." in page


def test_the_entry_points_name_what_is_there():
    points = entry_points()
    assert points["networkx.backends"] == {"lagpu": interface.__name__}
    assert points["networkx.backend_info"] == {"lagpu": "_lagpu_networkx:info"}
    for name in ("convert_from_nx", "convert_to_nx", "can_run", "should_run"):
        assert callable(getattr(interface, name))


def test_a_keyword_of_a_newer_networkx_is_left_out_while_no_call_gives_it(door):
    G = convert_from_nx(nx.path_graph(3))
    assert interface.closeness_centrality(G, newer=None) == nx.closeness_centrality(
        nx.path_graph(3)
    )
    with pytest.raises(TypeError, match="newer"):
        interface.closeness_centrality(G, newer=1)
