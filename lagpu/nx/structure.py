"""Components, cores, independent sets, two sides of a bipartite graph, topological orders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
from networkx.utils import create_py_random_state

from lagpu import algorithms
from lagpu.backends.processes import of_all
from lagpu.core.matrix import Matrix
from lagpu.errors import CycleFound
from lagpu.nx.answers import NETWORKX, answers
from lagpu.nx.graph import Graph
from lagpu.nx.paths import generations, levels_from

Array = np.ndarray[Any, Any]


def _labels(G: Graph) -> Array:
    """Return the least vertex of each vertex' component, (n,)."""
    found: Array = algorithms.connected_components(G.matrix()).to_dense()
    return found


def _sets(G: Graph, rank: Array) -> Iterator[set[Any]]:
    """Return an iterator over the sets of nodes of equal rank, the least rank first."""
    order = np.argsort(rank, kind="stable")
    cuts = np.flatnonzero(np.diff(rank[order])) + 1
    nodes = G.nodes
    names = [nodes[v] for v in order.tolist()]
    ends = [0, *cuts.tolist(), len(names)]
    return (set(names[a:b]) for a, b in itertools.pairwise(ends) if a < b)


@answers(quick=True, not_for=("directed",))
def connected_components(G: Graph) -> Iterator[set[Any]]:
    """Return an iterator over the components, in the order of their first nodes."""
    return _sets(G, _labels(G))


@answers(quick=True, not_for=("directed",))
def number_connected_components(G: Graph) -> int:
    """Return the number of components."""
    return len(np.unique(_labels(G)))


@answers(quick=True, not_for=("directed",))
def is_connected(G: Graph) -> bool:
    """Return True if there is one component."""
    return bool((levels_from(G, [0]) >= 0).all())


@answers(quick=True, not_for=("directed",))
def node_connected_component(G: Graph, n: Any) -> set[Any]:
    """Return the component of a node."""
    return G.where(levels_from(G, [G.index[n]]) >= 0)


@answers(quick=True)
def weakly_connected_components(G: Graph) -> Iterator[set[Any]]:
    """Return an iterator over the components without regard to direction."""
    return _sets(G, _labels(G))


@answers(quick=True)
def number_weakly_connected_components(G: Graph) -> int:
    """Return the number of weak components."""
    return len(np.unique(_labels(G)))


@answers(quick=True)
def is_weakly_connected(G: Graph) -> bool:
    """Return True if there is one weak component."""
    return not _labels(G).any()


@answers()
def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    """Return an iterator over the strong components; edges lead to those that came before."""
    labels = algorithms.strongly_connected_components(G.matrix()).to_dense()
    rows, cols = (labels[ends] for ends in G.along())
    between, n = rows != cols, len(G)
    pairs = np.unique(rows[between].astype(np.int64) * n + cols[between]) if n else rows
    merged = Matrix.from_coo(*np.divmod(pairs, max(n, 1)), nrows=n, ncols=n, like=G.matrix())
    levels = algorithms.topological_levels(merged).to_dense()[labels].astype(np.int64)
    return _sets(G, labels - levels * n)


@answers()
def number_strongly_connected_components(G: Graph) -> int:
    """Return the number of strong components."""
    return len(np.unique(algorithms.strongly_connected_components(G.matrix()).to_dense()))


@answers(quick=True)
def is_strongly_connected(G: Graph) -> bool:
    """Return True if there is one strong component."""
    return all((levels_from(G, [0], back=back) >= 0).all() for back in (False, True))


@answers(not_for=("multigraph",))
def core_number(G: Graph) -> dict[Any, int]:
    """Return the largest k such that a node is in the k-core, by nodes."""
    if G.has_loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    A = G.matrix()
    # Where each edge has its reverse, lagpu counts a neighbour once, NetworkX an edge in and out.
    times = 2 if G.is_directed() and A.is_symmetric else 1
    return G.named((algorithms.core_number(A).to_dense() * times).tolist())


@answers(not_for=("multigraph",))
def k_core(G: Graph, k: Any, core_number: Any) -> Any:
    """Return the k-core as a NetworkX graph with all attributes."""
    core = _core_number(G) if core_number is None else core_number
    least = max(core.values()) if k is None else k
    whole: Any = G.whole
    return whole.subgraph(v for v in core if core[v] >= least).copy()


_core_number = core_number  # the function; an argument of `k_core` hides its name


@answers(not_for=("directed",))
def maximal_independent_set(G: Graph, nodes: Any, seed: Any) -> Any:
    """Return nodes that no edge joins, and to which none can be added.

    They are a list that begins with `nodes`, and a set from NetworkX 3.7 on.
    """
    if seed is not create_py_random_state(None):
        raise NotImplementedError("lagpu: a seed stands for the set that NetworkX draws")
    if G.has_loops:
        raise NotImplementedError("lagpu: an independent set of a graph with self-loops")
    # Each process of a grid has a generator of its own: what the first has drawn is all others'.
    drawn = 0 if nodes else seed.choice(range(len(G))), seed.randint(0, 2**31 - 1)
    one, number = map(int, of_all(G.matrix().backend, *drawn)[0])
    wanted = set(nodes) if nodes else {G.nodes[one]}
    if any(node not in G for node in wanted):
        raise nx.NetworkXUnfeasible(f"{wanted} is not a subset of the nodes of G")
    first = [G.index[node] for node in wanted]
    rows, cols = G.along()
    chosen = np.zeros(len(G), bool)
    chosen[first] = True
    if (chosen[rows] & chosen[cols]).any():
        raise nx.NetworkXUnfeasible(f"{wanted} is not an independent set of G")
    found = algorithms.maximal_independent_set(G.matrix(), first, seed=number)
    members = found.to_coo()[0]
    others = members[~chosen[members]].tolist()
    independent = [G.nodes[v] for v in (*first, *others)]
    return independent if NETWORKX < (3, 7) else set(independent)


@answers(quick=True)
def is_bipartite(G: Graph) -> bool:
    """Return True if each edge joins two sides."""
    return algorithms.is_bipartite(G.matrix())


@answers(quick=True)
def color(G: Graph) -> dict[Any, int]:
    """Return 0 or 1 by nodes, 1 for the first node of each component that has an edge."""
    sides, _ = algorithms.bipartite_sides(G.matrix())
    if sides is None:
        raise nx.NetworkXError("Graph is not bipartite.")
    side = sides.to_dense()
    labels = algorithms.connected_components(G.matrix()).to_dense()
    rows, cols = G.along()
    first = np.full(len(G), len(G))
    np.minimum.at(first, labels[rows], rows)  # the first node with an edge out of each component
    alone = np.full(len(G), True)
    alone[rows] = alone[cols] = False
    own = first[labels]
    same = side == side[np.minimum(own, len(G) - 1)]
    return G.named(np.where(alone, 0, same).tolist())


@answers(quick=True)
def sets(G: Graph) -> tuple[set[Any], set[Any]]:
    """Return the two sides of a connected bipartite graph."""
    if algorithms.connected_components(G.matrix()).to_dense().any():
        raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
    found = color(G)
    top = {node for node, side in found.items() if side}
    return top, set(found) - top


def _generations(G: Graph) -> list[list[Any]]:
    """Return the nodes of each generation, or raise as NetworkX does."""
    if not G.is_directed():
        raise nx.NetworkXError("Topological sort not defined on undirected graphs.")
    try:
        levels = algorithms.topological_levels(G.matrix()).to_dense()
    except CycleFound as error:
        raise nx.NetworkXUnfeasible(
            "Graph contains a cycle or graph changed during iteration"
        ) from error
    nodes = G.nodes
    return [[nodes[v] for v in part.tolist()] for part in generations(*G.along(), levels)]


@answers(quick=True, iterator=True)
def topological_generations(G: Graph) -> Iterator[list[Any]]:
    """Return an iterator over the nodes of each generation."""
    return iter(_generations(G))


@answers(quick=True, iterator=True)
def topological_sort(G: Graph) -> Iterator[Any]:
    """Return an iterator over the nodes, each after those that lead to it."""
    return itertools.chain.from_iterable(_generations(G))


@answers(quick=True)
def is_directed_acyclic_graph(G: Graph) -> bool:
    """Return True for a directed graph without cycles."""
    if not G.is_directed():
        return False
    try:
        algorithms.topological_levels(G.matrix())
    except CycleFound:
        return False
    return True
