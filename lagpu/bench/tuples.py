"""Prove the five rules of Graph500 on the raw tuples, without any data of kernel 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.errors import CheckFailed

__all__ = ["validate"]

Array = Any  # numpy.ndarray or cupy.ndarray

_CHUNK = 1 << 25  # tuples at a time


def validate(xp: Any, u: Array, v: Array, root: int, parents: Array) -> int:
    """Prove a search tree, and count the tuples of its component.

    Parameters
    ----------
    xp : module
        ``cupy`` or ``numpy``, the library of the arrays.
    u, v : array of int, (m,)
        The tuples, self-loops and duplicates included.
    root : int
        The source of the search.
    parents : array of INT64, (n,)
        Each vertex's parent, or -1.

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
    inside = parents >= 0
    depth = _depths(xp, root, parents, inside)
    known = xp.zeros(len(parents), bool)  # vertices whose tree edge is among the tuples
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
    _refuse_vertex(xp, inside & ~known, "5: a vertex and its parent are joined by an edge")
    return edges


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
