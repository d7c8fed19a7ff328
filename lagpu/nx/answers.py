"""Which calls lagpu answers for NetworkX, and which are worth it; each refusal is a sentence."""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import networkx as nx
from networkx.utils import backends as dispatch

from lagpu import backends, errors
from lagpu.nx.graph import WEIGHED, Graph, noted

#: The version of NetworkX, as (3, 6).
NETWORKX = tuple(int(number) for number in nx.__version__.split(".")[:2])

R = TypeVar("R")

#: Ends of modules of NetworkX that call a function given as weight; to others it is a name.
_OF_FUNCTIONS = "weighted", "generic", "betweenness", "subset", "closeness", "harmonic", "measures"

# After these NetworkX runs its own function, which may have an answer or another error.
_PASSED_ON = (
    errors.CycleFound, errors.DimensionMismatch, errors.DomainMismatch, errors.IndexOutOfBound,
    errors.InvalidValue, errors.LimitExceeded, errors.NotConverged, errors.OutOfMemory,
)  # fmt: skip

#: Arguments with which NetworkX' own function may stop before it has seen the whole graph, and
#: whether they are numbers.
_LIMITS = {"cutoff": True, "depth_limit": True, "distance": True} | dict.fromkeys(
    ("source", "target", "ebunch"), False
)


@dataclass
class Declared:
    """What a function of the backend supports, and when it is worth calling."""

    function: Callable[..., Any]
    signature: inspect.Signature  # NetworkX' own
    graphs: tuple[str, ...]  # the arguments that are graphs
    only: Mapping[str, tuple[Any, ...]]  # supported values of arguments that lagpu restricts
    not_for: tuple[str, ...]  # of "directed", "multigraph"
    text: tuple[str, ...]  # restricted arguments whose other values run NetworkX' own text
    quick: bool  # NetworkX takes less time than the conversion of the graph
    short: bool  # NetworkX takes less time than a call of any backend
    by_level: bool  # on cpu each level costs time, which NetworkX does not count

    def __post_init__(self) -> None:
        own = self.signature.parameters
        self.names = tuple(own)
        self.places = [(x, self.names.index(x)) for x in self.graphs]
        self._known = frozenset(own)
        self._defaults = {name: x.default for name, x in own.items() if x.default is not x.empty}
        self._positional = sum(x.kind is x.POSITIONAL_OR_KEYWORD for x in own.values())
        # Keywords that a plain call of 0, 1, ... positional arguments needs, and may have.
        after = [frozenset(self.names[count:]) for count in range(self._positional + 1)]
        self._keywords = [(x - self._defaults.keys(), x - self.only.keys()) for x in after]
        self._fixed = [(self.names.index(x), values[0]) for x, values in self.only.items()]
        self._limits = [(x, k, _LIMITS[x]) for k, x in enumerate(self.names) if x in _LIMITS]

    def bind(self, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name; a keyword that NetworkX lacks may be given as None."""
        names, count = self.names, len(args)
        found = {**self._defaults, **dict(zip(names, args, strict=False)), **kwargs}
        once = count <= self._positional and kwargs.keys().isdisjoint(names[:count])
        if once and found.keys() == self._known:
            return found
        known = {k: x for k, x in kwargs.items() if k in names or x is not None}
        given = self.signature.bind(*args, **known)  # which says what is wrong
        given.apply_defaults()
        return given.arguments

    def plain(self, args: Any, kwargs: Mapping[str, Any]) -> bool:
        """Return True for a call with all arguments that it needs and none that lagpu restricts."""
        # Calls that lagpu leaves to NetworkX often take no longer than `bind`.
        count = len(args)
        if count >= len(self._keywords):
            return False
        for place, value in self._fixed:
            if place < count and args[place] is not value:
                return False
        needed, allowed = self._keywords[count]
        return needed <= kwargs.keys() <= allowed

    def limits(self, args: Any, kwargs: Mapping[str, Any]) -> list[str]:
        """Return those of the arguments `_LIMITS` that a call gives; None and infinity are none."""
        found = []
        for name, place, number in self._limits:
            value = args[place] if place < len(args) else kwargs.get(name)
            if value is not None and not (number and value == math.inf):
                found.append(name)
        return found

    def restricted(self, given: Mapping[str, Any]) -> list[str]:
        """Return the arguments whose values lagpu's own function lacks."""
        found = []
        for name, values in self.only.items():
            value = given[name]
            if value is not values[0] and not any(
                value is x or (type(value) is type(x) and value == x) for x in values
            ):
                found.append(name)
        return found


#: The functions of the backend by name.
DECLARED: dict[str, Declared] = {}


def answers(
    *, name: str | None = None, not_for: tuple[str, ...] = (), text: tuple[str, ...] = (),
    quick: bool = False, short: bool = False, by_level: bool = False, iterator: bool = False,
    **only: tuple[Any, ...],
) -> Callable[[Callable[..., R]], Callable[..., R]]:  # fmt: skip
    """Return a decorator that declares a function, and leaves to NetworkX what lagpu refuses."""
    # The function is called with those of NetworkX' arguments that it names; others must have their
    # defaults. The arguments here are those of `Declared`, such as ``weight=(None,)``; `iterator`:
    # NetworkX has a generator, which raises its errors at the first ``next``.

    def declare(function: Callable[..., R]) -> Callable[..., R]:
        known, own = name or function.__name__, inspect.signature(function).parameters
        theirs = registered(known)
        every = inspect.signature(theirs).parameters.values()
        parameters = [x for x in every if "backend" not in x.name]
        fixed = {x.name: (x.default,) for x in parameters if x.name not in own}
        by_name = short or not theirs.orig_func.__module__.endswith(_OF_FUNCTIONS)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = rules.bind(args, kwargs)
            for x in rules.graphs:
                given[x].renew()
            graph: Any = given[rules.graphs[0]]
            if not len(graph) and len(rules.graphs) == 1:
                # Its error changes with the version of NetworkX.
                given[rules.graphs[0]] = graph.networkx
                return theirs(**given, backend="networkx")
            try:
                for x in () if by_name else ("weight", "distance"):
                    if callable(given.get(x)):
                        given[rules.graphs[0]] = graph.weighed(given[x])
                        given[x] = WEIGHED
                if rules.restricted(given):
                    return _started(theirs.orig_func(**given))
                return _started(function(**{name: given[name] for name in own}))
            except _PASSED_ON as error:
                raise NotImplementedError(f"lagpu: {error}") from error
            except errors.NoPath as error:
                kind = "digraph is not strongly" if graph.is_directed() else "graph is not"
                fact = f"Found infinite path length because the {kind} connected"
                raise nx.NetworkXError(fact) from error
            except nx.NetworkXException as error:
                if iterator:
                    return _raising(error)
                raise

        call.__doc__ = theirs.orig_func.__doc__
        signature = inspect.Signature(parameters)
        graphs, only_these = tuple(theirs.graphs), fixed | only
        rules = Declared(call, signature, graphs, only_these, not_for, text, quick, short, by_level)
        DECLARED[known] = rules
        return call

    return declare


def registered(name: str) -> Any:
    """Return NetworkX' own function by the name with which it calls a backend."""
    algorithms: Any = dispatch
    return algorithms._registered_algorithms[name]


def by_text(*names: str, **rules: Any) -> None:
    """Declare functions that are NetworkX' own text, over lagpu's graph and functions."""
    # NetworkX runs the functions that the text calls by lagpu, whose graph it is.
    for name in names:
        answers(name=name, **rules)(registered(name).orig_func)


def by_networkx(*names: str) -> None:
    """Declare functions that NetworkX computes on its own graph in less time than lagpu."""
    for name in names:
        answers(name=name, short=True)(_on_its_graph(registered(name)))


def _on_its_graph(theirs: Any) -> Callable[..., Any]:
    """Return NetworkX' own function, for lagpu's graph, which has NetworkX' own."""

    @functools.wraps(theirs.orig_func)
    def call(**given: Any) -> Any:
        return theirs.orig_func(**given | {x: given[x].networkx for x in theirs.graphs})

    return call


def _started(found: Any) -> Any:
    """Return a generator of NetworkX' text with its first item found, or anything else as it is."""
    # So what lagpu refuses is refused before anything is taken; other errors come at ``next``.
    if not inspect.isgenerator(found):
        return found
    try:
        return itertools.chain(list(itertools.islice(found, 1)), found)
    except nx.NetworkXException as error:
        return _raising(error)


def _raising(error: Exception) -> Iterator[Any]:
    raise error
    yield


_SEARCHES = 4  # of NetworkX, in the time of a conversion: docs/benchmarks, three to seven


def can_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True if lagpu has the function for these arguments, else why not."""
    # NetworkX calls this before it converts graphs.
    rules = DECLARED[name]
    plain = rules.plain(args, kwargs)
    if not plain:
        try:
            given = rules.bind(args, kwargs)
        except TypeError as error:
            return f"{name}: {error}."
    for x, place in rules.places:
        G = args[place] if place < len(args) else kwargs.get(x)
        if not isinstance(G, (nx.Graph, Graph)):
            return f"{type(G).__name__} is not a graph that lagpu converts."
        if "directed" in rules.not_for and G.is_directed():
            return f"{name} of lagpu is for undirected graphs."
        if "multigraph" in rules.not_for and G.is_multigraph():
            return f"{name} of lagpu is for graphs without parallel edges."
    for argument in () if plain else rules.restricted(given):
        if argument not in rules.text:
            values = " or ".join(map(repr, rules.only[argument]))
            return f"{name} of lagpu takes {argument}={values} alone."
    return True


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return True if a call that can run is likely faster than NetworkX' own, else why not."""
    rules = DECLARED[name]
    why = _ends_early(rules.limits(args, kwargs))  # first: such a call takes as long as this one
    if why and not isinstance(args[0] if args else kwargs[rules.graphs[0]], Graph):
        return f"{name} of NetworkX ends early {why}."
    given = rules.bind(args, kwargs)
    G = given[rules.graphs[0]]
    if isinstance(G, Graph):
        return True
    if any(isinstance(x, Iterator) for x in given.values()):
        return f"{name} of NetworkX could not take an iterator again, if lagpu refused the call."
    if _is_node(G, given.get("nodes")):
        return f"{name} of NetworkX ends early with one node."
    if rules.short or any(given.get(x) is not None for x in _RESULTS):
        return f"{name} of NetworkX takes less time than a call of a backend."
    if callable(given.get("weight")) or callable(given.get("distance")):
        return "a function as weight is called for all edges, by NetworkX for those it meets."
    settings: Any = nx.config.backends["lagpu"]
    least, converted = settings.least_edges, _converted(G)
    edges = noted(G, "lagpu edges", G.number_of_edges)
    if edges < least:
        return (
            f"the graph has {edges} edges, and below {least} NetworkX is about as fast; "
            "nx.config.backends.lagpu.least_edges sets the limit."
        )
    quick = rules.quick or any(_is_node(G, given.get(x)) for x in ("u", "v", "nbunch"))
    if quick and converted is None and not _searched_often(G):
        return f"{name} of NetworkX takes less time than to convert the graph for one call."
    on_host = rules.by_level and backends.get().device is None
    few = itertools.islice(G, 0, None, max(1, len(G) // 3))  # nodes, to search a little from
    if on_host and noted(G, "lagpu deep", lambda: any(_levels_of_few(G, v) >= _DEEP for v in few)):
        return f"the graph is deep, and {name} of lagpu takes time for each level."
    return True


#: Arguments that are the result of another call, after which little is left to do.
_RESULTS = ("e", "sp", "core_number")


def _is_node(G: Any, x: Any) -> bool:
    try:
        return x is not None and x in G
    except TypeError:  # not hashable: a list of nodes
        return False


def _ends_early(limits: Sequence[str]) -> str:
    """Return where NetworkX' own function may stop before it has seen the whole graph, or ""."""
    for limit in limits:
        if _LIMITS[limit]:
            return f"at its {limit}"
    if "source" in limits and "target" in limits:
        return "at its target"
    return "with some pairs of nodes" if "ebunch" in limits else ""


_PROBED, _DEEP = 512, 16  # nodes that a search may find, and levels that they have in a deep graph


def _levels_of_few(G: Any, node: Any) -> int:
    """Return the levels of a search that ends when it has met some nodes."""
    seen, layer, levels = {node}, [node], 0
    while layer:
        found = []
        for v in layer:
            for w in G.adj[v]:
                if len(seen) >= _PROBED:
                    return levels
                if w not in seen:
                    seen.add(w)
                    found.append(w)
        layer, levels = found, levels + 1
    return levels


def _converted(G: Any) -> Graph | None:
    """Return a converted graph that NetworkX keeps, perhaps without the attribute of this call."""
    cache = getattr(G, "__networkx_cache__", None) or {}
    kept = list(cache.get("backends", {}).get("lagpu", {}).values())
    return next((found for found in kept if isinstance(found, Graph)), None)


def _searched_often(G: Any) -> bool:
    """Return True if searches of this graph have cost NetworkX as much as a conversion."""
    # A program then loses half its time at most, whether or not more searches follow.
    cache = getattr(G, "__networkx_cache__", None)
    if cache is None:  # a converted graph would not be kept
        return False
    before: int = cache.get("lagpu searches", 0)
    cache["lagpu searches"] = before + 1  # NetworkX clears it when the graph changes
    return before >= _SEARCHES
