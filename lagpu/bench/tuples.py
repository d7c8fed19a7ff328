"""The raw tuples of Graph500: whole or in slices, and the five rules proved on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.errors import CheckFailed
from lagpu.generators import device as on_device
from lagpu.generators import parts
from lagpu.generators.random import kronecker_tuples
from lagpu.io import csc

__all__ = ["Tuples"]

Array = Any  # numpy.ndarray or cupy.ndarray

_CHUNK = 1 << 25  # tuples at a time


class Tuples:
    """The raw tuples of a graph, self-loops and duplicates included.

    On a grid each piece has a slice of them, and nobody has the whole; what a method returns is the
    same in every process, and every process calls it.

    Parameters
    ----------
    place : Backend
        The backend.
    slices : dict
        (u, v), INT32, by the number of each piece of this process; of one backend, that of piece 0.
    """

    def __init__(self, place: Backend, slices: dict[int, tuple[Array, Array]]) -> None:
        self._place = place
        self._slices = slices

    @classmethod
    def drawn(cls, place: Backend, scale: int, edge_factor: int, seed: int) -> Tuples:
        """Return the tuples of `lagpu.generators.kronecker`."""
        if place.capabilities.parts is not None:
            return cls(place, parts.kronecker_tuples(scale, edge_factor, seed, place))
        return cls(place, {0: kronecker_tuples(scale, edge_factor, seed=seed, backend=place)})

    def matrix(self) -> Matrix:
        """Return the undirected graph, without self-loops and duplicates."""

        def largest(xp: Any, u: Array, v: Array) -> tuple[Array]:
            return (np.array([max((int(x.max()) for x in (u, v) if len(x)), default=-1)]),)

        n = 1 + max(int(x[0]) for (x,) in self._gather(largest))
        if self._place.capabilities.parts is not None:
            return parts.undirected(self._slices, n, self._place)
        if on_device.is_on_gpu(self._place):
            return on_device.undirected(*self._slices[0], n, self._place)
        return csc.undirected(*self._slices[0], n).matrix(self._place)

    def linked(self, n: int) -> Array:
        """Return the vertices with an edge to another one, rising, on the host."""

        def mark(xp: Any, u: Array, v: Array) -> tuple[Array]:
            marks, apart = xp.zeros(n, bool), u != v
            marks[u[apart]] = True
            marks[v[apart]] = True
            return (_host(xp.packbits(marks)),)

        return np.flatnonzero(_united(self._gather(mark), n))

    def validate(self, root: int, parents: Any) -> int:
        """Prove a search tree, and count the tuples of its component.

        Parameters
        ----------
        root : int
            The source of the search.
        parents : array of INT64, (n,)
            Each vertex's parent, or -1; on the host.

        Returns
        -------
        int
            Number of tuples with both ends in the tree: the m of TEPS.

        Raises
        ------
        CheckFailed
            At the first broken rule, with a vertex or tuple that breaks it.

        Notes
        -----
        Levels are the depths in the tree, so rule 2, levels of a tree edge differ by one, holds by
        construction.
        """

        def prove(xp: Any, u: Array, v: Array) -> tuple[Array, Array]:
            known, edges = _proved(xp, u, v, root, xp.asarray(parents))
            return _host(xp.packbits(known)), np.array([edges])

        found = self._gather(prove)
        known = _united([(bits,) for bits, _ in found], len(parents))
        rule = "5: a vertex and its parent are joined by an edge"
        _refuse_vertex(np, (parents >= 0) & ~known, rule)
        return sum(int(edges[0]) for _, edges in found)

    def _gather(self, work: Callable[[Any, Array, Array], Any]) -> list[Any]:
        """Return what ``work(xp, u, v)`` returns for each slice: arrays on the host."""

        def on_piece(home: Backend, piece: int) -> Any:
            device = home.device if on_device.is_on_gpu(home) else None
            with nullcontext() if device is None else device.alone():
                return work(np if device is None else device.xp, *self._slices[piece])

        if self._place.capabilities.parts is None:
            return [on_piece(self._place, 0)]
        return self._place.capabilities.parts.gather(on_piece)


def _host(array: Array) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = array.get() if hasattr(array, "get") else array
    return found


def _united(bits: list[tuple[Array]], n: int) -> Array:
    """Return which vertices any piece has marked, from packed bits."""
    union = np.bitwise_or.reduce([packed for (packed,) in bits])
    return np.unpackbits(union, count=n).astype(bool)


def _proved(xp: Any, u: Array, v: Array, root: int, parents: Array) -> tuple[Array, int]:
    """Return (vertices whose tree edge is among some tuples, how many tuples are in the tree)."""
    inside = parents >= 0
    depth = _depths(xp, root, parents, inside)
    known = xp.zeros(len(parents), bool)
    known[root] = True
    edges = 0
    for a, b in _chunks(u, v):
        in_a, in_b = inside[a], inside[b]
        _refuse(xp, in_a != in_b, a, b, "4: the tree spans the component")
        far = in_a & (xp.abs(depth[a] - depth[b]) > 1)
        _refuse(xp, far, a, b, "3: an edge joins levels that differ by at most one")
        known[a[parents[a] == b]] = True
        known[b[parents[b] == a]] = True
        edges += int(xp.count_nonzero(in_a))
    return known, edges


def _depths(xp: Any, root: int, parents: Array, inside: Array) -> Array:
    """Return each vertex's depth by pointer doubling, or raise unless the parents are a tree."""
    n = len(parents)
    vertex = xp.arange(n)
    if int(parents[root]) != root:
        raise CheckFailed(f"graph500: rule 1: the root {root} is not its own parent.")
    rule = "1: the parents form a tree"
    _refuse_vertex(xp, parents >= n, rule)
    jump = xp.where(inside, parents, vertex)
    _refuse_vertex(xp, inside & ~inside[jump], rule)
    depth = (jump != vertex).astype(np.int32)
    for _ in range(n.bit_length()):
        further = jump[jump]
        depth += depth[jump]
        if bool((further == jump).all()):
            break
        jump = further
    _refuse_vertex(xp, inside & (jump != root), rule)
    return depth


def _chunks(u: Array, v: Array) -> Iterator[tuple[Array, Array]]:
    for start in range(0, len(u), _CHUNK):
        yield u[start : start + _CHUNK], v[start : start + _CHUNK]


def _refuse(xp: Any, bad: Array, a: Array, b: Array, rule: str) -> None:
    if bool(bad.any()):
        k = int(xp.argmax(bad))
        raise CheckFailed(f"graph500: rule {rule}: broken by the tuple ({int(a[k])}, {int(b[k])}).")


def _refuse_vertex(xp: Any, bad: Array, rule: str) -> None:
    if bool(bad.any()):
        raise CheckFailed(f"graph500: rule {rule}: broken at vertex {int(xp.argmax(bad))}.")
