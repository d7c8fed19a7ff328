"""Graphs from a short text, as on the command line.

==========================  ========================================
``kron:S``, ``kron:S:E``    `kronecker`, scale S, edge factor E
``urand:S``, ``urand:S:E``  `uniform`
``gnm:N:M``                 `gnm`, directed
``road:K``                  `road`
``grid:RxC``                `grid2d`
``delaunay:S``              `delaunay`
``mycielskian:K``           `mycielskian`
``path:N``, ``cycle:N``     `path`, `cycle`
``star:N``, ``complete:N``  `star`, `complete`
==========================  ========================================

The names of benchmarks are texts too: ``kron16`` is ``kron:16``, ``kron16e8`` is ``kron:16:8``.
A file of such a name is ``./kron16``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators.random import delaunay, gnm, kronecker, road, uniform
from lagpu.generators.shapes import complete, cycle, grid2d, mycielskian, path, star


class _Kind(NamedTuple):
    make: Callable[..., Matrix]
    numbers: str  # a regular expression, a group for each number
    form: str  # for messages, and
    example: str
    seeded: bool = False


_KINDS = {
    "kron": _Kind(kronecker, "([0-9]+)(?::([0-9]+))?", "kron:S or kron:S:E", "kron:16", True),
    "urand": _Kind(uniform, "([0-9]+)(?::([0-9]+))?", "urand:S or urand:S:E", "urand:16", True),
    "gnm": _Kind(gnm, "([0-9]+):([0-9]+)", "gnm:N:M", "gnm:128:2874", True),
    "road": _Kind(road, "([0-9]+)", "road:K", "road:512", True),
    "grid": _Kind(grid2d, "([0-9]+)x([0-9]+)", "grid:RxC", "grid:30x40"),
    "delaunay": _Kind(delaunay, "([0-9]+)", "delaunay:S", "delaunay:16", True),
    "mycielskian": _Kind(mycielskian, "([0-9]+)", "mycielskian:K", "mycielskian:11"),
    "path": _Kind(path, "([0-9]+)", "path:N", "path:9"),
    "cycle": _Kind(cycle, "([0-9]+)", "cycle:N", "cycle:9"),
    "star": _Kind(star, "([0-9]+)", "star:N", "star:9"),
    "complete": _Kind(complete, "([0-9]+)", "complete:N", "complete:9"),
}

# kron16, kron16e8, grid30x40
_SHORT = re.compile(f"({'|'.join(_KINDS)})([0-9]+)(?:e([0-9]+)|(x[0-9]+))?")


def _with_colons(text: str) -> str:
    """Return ``kron:16:8`` for ``kron16e8``, and any other text as it is."""
    found = _SHORT.fullmatch(text)
    if found is None:
        return text
    name, first, second, by = found.groups()
    return ":".join(part for part in (name, first + (by or ""), second) if part)


def canonical(text: str) -> str:
    """Return one text for each graph: ``kron:16:16`` for ``kron16``, and what is no text as it is.

    Generators with an edge factor have 16 by default.
    """
    long = _with_colons(text)
    return f"{long}:16" if re.fullmatch("(kron|urand):[0-9]+", long) else long


def is_spec(text: str) -> bool:
    """Return True if a text is meant for `from_spec`, correctly spelled or not, and not as a file.

    Such a text is a known name and numbers, or begins with a known name and a colon, or is a word,
    a colon and numbers.
    """
    name, colon, _ = _with_colons(text).partition(":")
    known = colon and name in _KINDS
    return bool(known or re.fullmatch(r"[A-Za-z]\w+:[0-9]+([:x][0-9]+)*", text))


def is_random(text: str) -> bool:
    """Return True if a text names a graph that a seed changes."""
    kind = _KINDS.get(_with_colons(text).partition(":")[0])
    return kind is not None and kind.seeded


def from_spec(
    text: str, *, seed: int | None = None, backend: str | Backend | None = None
) -> Matrix:
    """Return the graph that a text specifies.

    Parameters
    ----------
    text : str
        A text such as ``kron:16``, ``kron:16:32`` (edge factor), ``road:512`` or ``grid:30x40``.
    seed : int, optional
        The seed of a random graph; by default that of the generator.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    InvalidValue
        If there is no such kind of graph, or its numbers are wrong; the message lists the kinds.
    OutOfMemory
        If the graph does not fit.
    """
    name, _, numbers = _with_colons(text).partition(":")
    kind = _KINDS.get(name)
    if kind is None:
        forms = ", ".join(kind.form for kind in _KINDS.values())
        raise InvalidValue(f"generate: there is no graph {text!r}. Use one of {forms}.")
    found = re.fullmatch(kind.numbers, numbers)
    if found is None or len(numbers) > 40:  # no size has so many digits
        raise InvalidValue(
            f"generate: {text[:60]!r} does not have the form {kind.form}. Write {kind.example}."
        )
    given = [int(number) for number in found.groups() if number]
    if kind.seeded and seed is not None:
        return kind.make(*given, seed=seed, backend=backend)
    return kind.make(*given, backend=backend)
