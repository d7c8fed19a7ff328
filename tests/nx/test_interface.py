"""Each function answers as NetworkX' own does: values, types, names, order, errors."""

import itertools
import math
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st
from networkx.utils import backends as dispatch
from networkx_door import ROOT, door, entry_points, run  # noqa: F401
from strategies import for_all

import _lagpu_networkx
import lagpu
from lagpu import algorithms
from lagpu.nx import convert_from_nx, interface
from lagpu.nx.answers import declared

FUNCTIONS = _lagpu_networkx.info()["functions"]
KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)

# Arguments of each function, by a node that is there, one that may not be, and nodes; "in order":
# the keys or items come in NetworkX' order too.
NODE, OTHER, SOME = "node", "other", "some"
IN_ORDER = {
    "bfs_edges": [(NODE,), (NODE, False, 1), (OTHER,)],
    "bfs_predecessors": [(NODE,), (NODE, 2)],
    "bfs_successors": [(NODE,), (NODE, 0)],
    "bfs_layers": [(NODE,), (SOME,), (OTHER,)],
    "single_source_shortest_path_length": [(NODE,), (NODE, 1), (NODE, 0.5), (OTHER,)],
    "single_source_shortest_path": [(NODE,), (NODE, 2), (OTHER,)],
    "all_pairs_shortest_path_length": [(), (1,)],
    "topological_generations": [()],
    "topological_sort": [()],
    "connected_components": [()],
    "weakly_connected_components": [()],
    "pagerank": [(), (0.5, {NODE: 1}), (0.85, None, 100, 1e-6, None, "w"), (0.85, {OTHER: 0})],
    "betweenness_centrality": [(), (None, False), (None, True, None, True)],
    "edge_betweenness_centrality": [(), (None, False)],
    "closeness_centrality": [(), (NODE,), (None, None, False), (OTHER,)],
    "harmonic_centrality": [(), (SOME,), (None, None, SOME), (NODE,)],
    "triangles": [(), (NODE,), (SOME,)],
    "clustering": [(), (NODE,), (SOME,)],
    "eccentricity": [(), (NODE,), (SOME,)],
    "core_number": [()],
}
ANY_ORDER = {
    "single_target_shortest_path_length": [(NODE,), (NODE, 1), (OTHER,)],
    "single_source_dijkstra_path_length": [(NODE, None, "w"), (NODE, 3, "w"), (OTHER, None, "w")],
    "all_pairs_dijkstra_path_length": [(None, "w")],
    "dijkstra_path_length": [(NODE, OTHER, "w"), (NODE, NODE, "w"), (OTHER, NODE, "w")],
    "single_source_bellman_ford_path_length": [(NODE, "w"), (NODE, "sign"), (OTHER, "w")],
    "all_pairs_bellman_ford_path_length": [("w",)],
    "bellman_ford_path_length": [(NODE, OTHER, "w"), (OTHER, OTHER, "w")],
    "shortest_path_length": [
        *[(NODE,), (None, NODE), (NODE, OTHER), (), (NODE, None, "w"), (None, NODE, "w")],
        *[(NODE, OTHER, "w"), (NODE, OTHER, "w", "bellman-ford"), (None, None, "w")],
        *[(NODE, None, "w", "bellman-ford"), (None, None, "w", "bellman-ford")],
    ],
    "has_path": [(NODE, OTHER), (NODE, NODE)],
    "average_shortest_path_length": [()],
    "descendants": [(NODE,), (OTHER,)],
    "ancestors": [(NODE,), (OTHER,)],
    "descendants_at_distance": [(NODE, 1), (NODE, 7), (NODE, -1), (OTHER, 1)],
    "diameter": [()],
    "radius": [()],
    "center": [()],
    "periphery": [()],
    "average_clustering": [(), (SOME,), (None, None, False)],
    "transitivity": [()],
    "number_connected_components": [()],
    "number_weakly_connected_components": [()],
    "number_strongly_connected_components": [()],
    "is_connected": [()],
    "is_weakly_connected": [()],
    "is_strongly_connected": [()],
    "node_connected_component": [(NODE,)],
    "is_bipartite": [()],
    "color": [()],
    "sets": [()],
    "is_directed_acyclic_graph": [()],
    "bfs_tree": [(NODE,)],
    "k_core": [(), (1,), (2,)],
}
# These may choose among several right answers; NetworkX' own tests look at them, and those below.
OTHERS = {
    "bidirectional_shortest_path",
    "maximal_independent_set",
    "shortest_path",
    "single_target_shortest_path",
    "strongly_connected_components",
}
ERRORS = (nx.NetworkXException, ArithmeticError, LookupError, TypeError, ValueError)


def test_all_that_is_claimed_is_there_and_compared():
    assert {*IN_ORDER, *ANY_ORDER, *OTHERS} == set(FUNCTIONS)
    both = dispatch._registered_algorithms.keys() & set(algorithms.__all__)
    assert both - set(FUNCTIONS) == set()
    for name in FUNCTIONS:
        theirs = dispatch._registered_algorithms[name].__wrapped__
        parameters = [str(p.name) for p in declared(name).signature.parameters.values()]
        wanted = dispatch._registered_algorithms[name].orig_func.__code__
        assert parameters == list(wanted.co_varnames[: wanted.co_argcount]), name
        assert getattr(interface, name).__doc__ != theirs.__doc__


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


def outcome(call):
    """Return what a call gives, iterators as lists, or the kind of its error."""
    try:
        found = call()
        if isinstance(found, itertools.chain) or hasattr(found, "__next__"):
            found = list(found)
        return found
    except NotImplementedError:
        return NotImplementedError
    except ERRORS as error:
        return type(error)


def same(found, wanted, in_order):
    """Whether two results are equal, floats but for rounding, without types of NumPy."""
    assert type(found).__module__ != "numpy"
    if isinstance(wanted, nx.Graph):
        return nx.utils.graphs_equal(found, wanted)
    if isinstance(wanted, dict):
        right = list(found) == list(wanted) if in_order else found.keys() == wanted.keys()
        return right and all(same(found[key], x, in_order) for key, x in wanted.items())
    if isinstance(wanted, (list, tuple)) and not isinstance(found, type):
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(same(x, y, in_order) for x, y in pairs)
    if isinstance(wanted, float) and isinstance(found, (int, float)):
        both_nan = found != found and wanted != wanted
        return both_nan or math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)
    return found == wanted


@for_all(cpu=900, compiled=12)
def test_answers_are_those_of_networkx(backend, draw):
    name = draw(st.sampled_from([*IN_ORDER, *ANY_ORDER]), label="function")
    G = drawn(draw)
    nodes = list(G)
    words = {NODE: nodes[-1], OTHER: draw(st.sampled_from([*nodes, "none"]), label="other")}
    words[SOME] = nodes[::2]

    def filled(x):
        if isinstance(x, dict):
            return {filled(k): v for k, v in x.items()}
        return words.get(x, x) if isinstance(x, str) else x

    function = getattr(nx, name, None) or getattr(nx.bipartite, name)
    for given in {**IN_ORDER, **ANY_ORDER}[name]:
        args = [filled(x) for x in given]
        if interface.can_run(name, (G, *args), {}) is not True:
            continue
        wanted = outcome(lambda a=args: function(G, *a, backend="networkx"))
        whole = name == "k_core"
        H = convert_from_nx(
            G, edge_attrs={"w": 1, "sign": 1, "weight": 1}, preserve_edge_attrs=whole
        )
        with lagpu.use(backend):
            found = outcome(lambda a=args, H=H: getattr(interface, name)(H, *a))
        if wanted is nx.NetworkXNotImplemented and name != "core_number":
            continue  # a decorator outside of the dispatch refuses it
        assert found is NotImplementedError or same(found, wanted, name in IN_ORDER), (args, wanted)
        if found is NotImplementedError and not isinstance(wanted, type):
            assert name == "bfs_edges" or "sign" in args, (args, wanted)


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
    parameters = {name: declared(name).signature.parameters for name in FUNCTIONS}
    free = {name for name in FUNCTIONS if "weight" not in declared(name).only}
    assert {name for name in free if "weight" in parameters[name]} == set(READ_WEIGHTS)


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
            bound = declared(name).signature.bind(G, *args, **call)
            bound.apply_defaults()
            weight = bound.arguments["weight"]
            wanted = outcome(lambda a=args, c=call: function(G, *a, backend="networkx", **c))
            if wanted is ValueError:  # Dijkstra: it compares large integers with rounded floats
                continue

            def ours(a=args, c=call, weight=weight):
                H = convert_from_nx(G, edge_attrs=None if weight is None else {weight: 1})
                return getattr(interface, name)(H, *a, **c)

            with lagpu.use(backend):
                found = outcome(ours)
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
            cases = {**IN_ORDER, **ANY_ORDER}.get(name, [])
            if () not in cases or interface.can_run(name, (G,), {}) is not True:
                continue
            function = getattr(nx, name, None) or getattr(nx.bipartite, name)
            wanted = outcome(lambda f=function, G=G: f(G, backend="networkx"))
            found = outcome(lambda f=function, G=G: f(G, backend="lagpu"))
            refused = isinstance(found, type) and isinstance(wanted, type)
            assert refused or found == wanted, (name, kind)


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
    with pytest.raises(nx.NetworkXUnbounded):
        nx.bellman_ford_path_length(
            nx.DiGraph([(0, 1, {"weight": -2}), (1, 0), (1, 2)]), 0, 2, backend="lagpu"
        )
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
    for name in ("convert_from_nx", "convert_to_nx", "can_run", "should_run", "on_start_tests"):
        assert callable(getattr(interface, name))


def test_a_keyword_of_a_newer_networkx_is_left_out_while_no_call_gives_it(door):
    G = convert_from_nx(nx.path_graph(3))
    assert interface.closeness_centrality(G, newer=None) == nx.closeness_centrality(
        nx.path_graph(3)
    )
    with pytest.raises(TypeError, match="newer"):
        interface.closeness_centrality(G, newer=1)
