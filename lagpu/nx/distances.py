"""Eccentricities, and what follows from them: diameter, radius, center, periphery."""

from __future__ import annotations

from typing import Any

import networkx as nx

from lagpu import algorithms
from lagpu.errors import NoPath
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph


def _error(G: Graph) -> nx.NetworkXError:
    kind = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
    return nx.NetworkXError(f"Found infinite path length because the {kind}")


@answers(sp=(None,), weight=(None,))
def eccentricity(G: Graph, v: Any = None, sp: None = None, weight: None = None) -> Any:
    """Return the distance from a node, or by nodes from each, to the farthest node."""
    chosen = G.bunch(v)
    if not chosen:
        return {}
    try:
        found = algorithms.eccentricity(G.matrix(), chosen)
    except NoPath as error:
        raise _error(G) from error
    values = found.to_dense(-1)[chosen].tolist()
    return values[0] if v is not None and v in G else G.named(values, chosen)


@answers(e=(None,), weight=(None,))
def diameter(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    """Return the largest eccentricity."""
    try:
        return algorithms.diameter(G.matrix())
    except NoPath as error:
        raise _error(G) from error


@answers(e=(None,), weight=(None,))
def radius(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> int:
    """Return the least eccentricity."""
    return int(min(eccentricity(G).values()))


@answers(e=(None,), weight=(None,))
def center(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    """Return the nodes of the least eccentricity."""
    found = eccentricity(G)
    least = min(found.values())
    return [node for node, value in found.items() if value == least]


@answers(e=(None,), weight=(None,))
def periphery(G: Graph, e: None = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    """Return the nodes of the largest eccentricity."""
    found = eccentricity(G)
    most = max(found.values())
    return [node for node, value in found.items() if value == most]
