"""What a function of the backend declares of itself, and lagpu's errors as NetworkX has them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar, cast

import networkx as nx

from lagpu.errors import (
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
    LimitExceeded,
    OutOfMemory,
)

#: The version of NetworkX, as (3, 6).
NETWORKX = tuple(int(number) for number in nx.__version__.split(".")[:2])

P = ParamSpec("P")
R = TypeVar("R")

# What lagpu refuses NetworkX may take: it runs its own function, or raises its own error.
_PASSED_ON = (
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
    LimitExceeded,
    OutOfMemory,
)


@dataclass(frozen=True)
class Declared:
    """What a function of the backend can, and when it is worth while.

    Attributes
    ----------
    signature : inspect.Signature
        The arguments, named as in NetworkX.
    only : dict
        Arguments of which lagpu has some values alone: a tuple of them for each name.
    not_for : tuple of str
        ``"directed"``, ``"multigraph"``.
    quick : bool
        Whether NetworkX takes less time than the conversion of the graph.
    """

    signature: inspect.Signature
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    not_for: tuple[str, ...] = ()
    quick: bool = False

    def known(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords without those of a newer NetworkX that nobody has given."""
        own = self.signature.parameters
        return {name: x for name, x in kwargs.items() if name in own or x is not None}


_DECLARED: dict[str, Declared] = {}


def declared(name: str) -> Declared:
    """Return what the function of a name declares of itself."""
    return _DECLARED[name]


def answers(
    *,
    not_for: tuple[str, ...] = (),
    quick: bool = False,
    iterator: bool = False,
    **only: tuple[Any, ...],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that declares a function and passes on what lagpu refuses.

    Parameters
    ----------
    not_for, quick
        As in `Declared`.
    iterator : bool
        Whether NetworkX has a generator, which raises its errors when it is first asked.
    **only : tuple
        The values that lagpu has of an argument, such as ``weight=(None,)``.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        rules = _DECLARED[name] = Declared(inspect.signature(function), only, not_for, quick)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            graph: Any = args[0] if args else kwargs["G"]
            if not len(graph):  # what NetworkX says of it changes with its versions
                return cast(R, _of_networkx(name, graph, args[1:], kwargs))
            try:
                return function(*args, **rules.known(kwargs))
            except _PASSED_ON as error:
                raise NotImplementedError(f"lagpu: {error}") from error
            except nx.NetworkXException as error:
                if iterator:
                    return cast(R, _raising(error))
                raise

        return call

    return declare


def _of_networkx(name: str, graph: Any, args: Any, kwargs: Any) -> Any:
    """Return what NetworkX' own function returns of a graph without nodes."""
    function: Any = getattr(nx, name, None) or getattr(nx.bipartite, name)
    kinds: Any = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
    kind = kinds[2 * graph.is_multigraph() + graph.is_directed()]
    rest = {key: x for key, x in kwargs.items() if key != "G"}
    return function(kind(), *args, **rest, backend="networkx")


def _raising(error: Exception) -> Iterator[Any]:
    """Return an iterator that raises an error when it is first asked."""
    raise error
    yield
