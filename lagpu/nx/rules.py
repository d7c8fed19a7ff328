"""Which calls the backend can run, and which are worth it; each refusal is a sentence."""

from __future__ import annotations

from typing import Any

import networkx as nx

from lagpu.nx.answers import declared
from lagpu.nx.graph import Graph

_SEARCHES = 4  # of NetworkX, in the time of a conversion: docs/benchmarks, three to seven


def can_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True if lagpu has the function for these arguments, else why not.

    Parameters
    ----------
    name : str
        Name of the function.
    args, kwargs
        The arguments of the call; graphs are not converted yet.
    """
    rules = declared(name)
    try:
        given = rules.signature.bind(*args, **rules.known(kwargs))
    except TypeError as error:
        return f"{name}: {error}."
    given.apply_defaults()
    G = given.arguments["G"]
    if not isinstance(G, (nx.Graph, Graph)):
        return f"{type(G).__name__} is not a graph that lagpu converts."
    if "directed" in rules.not_for and G.is_directed():
        return f"{name} of lagpu is for undirected graphs."
    if "multigraph" in rules.not_for and G.is_multigraph():
        return f"{name} of lagpu is for graphs without parallel edges."
    for argument, values in rules.only.items():
        value = given.arguments[argument]
        if not any(value is x or (type(value) is type(x) and value == x) for x in values):
            return f"{name} of lagpu takes {argument}={' or '.join(map(repr, values))} alone."
    if callable(given.arguments.get("weight")):
        return f"{name} of lagpu takes the name of an edge attribute, not a function, as weight."
    return True


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True if the call is likely faster than NetworkX' own, else why not.

    Parameters
    ----------
    name, args, kwargs
        As in `can_run`, which has returned True.
    """
    rules = declared(name)
    G = rules.signature.bind(*args, **rules.known(kwargs)).arguments["G"]
    if isinstance(G, Graph):
        return True
    settings: Any = nx.config.backends["lagpu"]
    least, converted = settings.least_edges, _converted(G)
    edges = G.number_of_edges() if converted is None else converted.number_of_edges()
    if edges < least:
        return (
            f"the graph has {edges} edges, and below {least} NetworkX is about as fast; "
            "nx.config.backends.lagpu.least_edges sets the limit."
        )
    if rules.quick and converted is None and not _asked_often(G):
        return f"{name} of NetworkX takes less time than to convert the graph for one call."
    return True


def _converted(G: Any) -> Graph | None:
    """Return a converted graph that NetworkX keeps; it converts again if an attribute lacks."""
    cache = getattr(G, "__networkx_cache__", None) or {}
    kept = list(cache.get("backends", {}).get("lagpu", {}).values())
    return next((found for found in kept if isinstance(found, Graph)), None)


def _asked_often(G: Any) -> bool:
    """Return True if NetworkX has spent as much on searches of this graph as converting takes.

    Then a program has lost half its time at most, whether or not more searches follow.
    """
    cache = getattr(G, "__networkx_cache__", None)
    if cache is None:  # what is converted would not be kept
        return False
    before: int = cache.get("lagpu asked", 0)
    cache["lagpu asked"] = before + 1  # NetworkX clears it when the graph changes
    return before >= _SEARCHES
