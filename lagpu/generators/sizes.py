"""Check the sizes of graphs before anything is allocated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue, NotSupported
from lagpu.host import memory

LARGEST_SCALE = 31  # vertices are numbered in 32 bits
_BYTES_PER_EDGE = 24  # peak memory, measured
_BYTES_PER_VERTEX = 60


def count(what: str, name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a number of the caller as an int, or raise if it is not whole or out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidValue(f"{what}: {name} {value!r} is not a whole number.") from None
    if number < least or (most is not None and number > most):
        limit = f">= {least}" if most is None else f"in {least} .. {most}"
        raise InvalidValue(f"{what}: {name} {number} is not {limit}.")
    return number


def is_on_gpu(place: Backend) -> bool:
    """Return True for a backend whose arrays are on a GPU; sim has them on the host."""
    return place.device is not None and place.device.xp is not np


def require(
    what: str, n: int, edges: int, extra: int = 0, backend: str | Backend | None = "cpu"
) -> None:
    """Raise if a graph of `n` vertices and at most `edges` edges, each stored twice, cannot fit.

    On a grid every process makes the whole, so all are asked before one of them begins.
    """
    nbytes, place = _BYTES_PER_EDGE * edges + _BYTES_PER_VERTEX * n + extra, backends.get(backend)
    if place.capabilities.parts is None:
        memory.require(nbytes, what)
    else:
        require_of_pieces(place, what, nbytes)
    require_numbers(what, n)


def require_of_pieces(
    grid: Backend,
    what: str,
    whole: int = 0,
    of_piece: Callable[[Any, int], tuple[int, int]] | None = None,
) -> None:
    """Ask for memory in all processes of a grid before one of them takes any.

    Parameters
    ----------
    grid : Backend
        The grid. Every process calls this.
    what : str
        The generator, with which the message begins.
    whole : int
        The bytes that each process takes on the host, whatever its pieces.
    of_piece : callable, optional
        ``of_piece(device, piece)`` returns the bytes that are taken while a part is made, one after
        the other, and how many of them stay; `device` is that of a GPU, or None for the host.

    Raises
    ------
    OutOfMemory
        In every process if one of them or its device has not so much, with the number of that one.
    """
    parts = grid.capabilities.parts
    assert parts is not None
    processes = parts.beside // len(parts.homes)
    left, most, kept = len(parts.homes), 0, whole

    def ask(home: Backend, piece: int) -> tuple[()]:
        nonlocal left, most, kept
        device = home.device if is_on_gpu(home) else None
        taken, stay = (0, 0) if of_piece is None else of_piece(device, piece)
        if device is None:
            most, kept = max(most, taken - stay), kept + stay
        else:
            device.require(taken, what)
        left -= 1
        if not left and most + kept:  # the last one of this process
            memory.require(most + kept, what, processes=processes)
        return ()

    parts.gather(ask)


def drawn(what: str, scale: int, edge_factor: int) -> tuple[int, int]:
    """Return (vertices, edges to draw) of a random graph; the caller asks for their memory."""
    # Beyond LARGEST_SCALE the error should be OutOfMemory, so `count` allows more here.
    n = 2 ** count(what, "scale", scale, 0, 60)
    return n, n * count(what, "edge_factor", edge_factor, 1)


def require_numbers(what: str, n: int) -> None:
    """Raise if there are more vertices than numbers for them."""
    if n > 2**LARGEST_SCALE:
        raise NotSupported(f"{what}: {n} vertices > 2**31. Make a smaller graph.")
