"""Maximal independent set: Luby's algorithm.

A candidate whose score is above the scores of all neighbours joins, and its neighbours drop out::

    b<s(c)> = c (max.first) A;  members<c > b> = true
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import random_seed, source_vertices, undirected
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT64
from lagpu.errors import InvalidValue
from lagpu.loops.loop import loop

__all__ = ["maximal_independent_set"]


def maximal_independent_set(A: Matrix, nodes: Any = None, *, seed: int | None = None) -> Vector:
    """Return a set of vertices that no edge joins, and that no vertex can be added to.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value joins i and j, in either direction; self-loops do not count.
    nodes : int or list of int, optional
        Distinct vertices that must be members, not joined by an edge; none by default.
    seed : int, optional
        Seed of the scores.

    Returns
    -------
    Vector, (n,), BOOL
        True at the members; no entry elsewhere. The same on every backend for one seed.

    Raises
    ------
    InvalidValue
        If an edge joins two of `nodes`, one is given twice, or `seed` is negative.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `nodes` contains a number that is not a vertex.

    Notes
    -----
    About log(n) rounds of two products. The scores are a random order of the vertices, drawn once:
    rounds do not need new scores. Source: Luby 1986; Blelloch, Fineman and Shun 2012.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> maximal_independent_set(star(4, backend="cpu"), 2).to_coo()[0].tolist()
    [1, 2, 3]
    """
    A = undirected(A).select("offdiag").new(name="A")
    scores = _scores(A, random_seed(seed, "maximal_independent_set", A))
    members = Vector(BOOL, A.nrows, like=A, name="members")
    near = Vector(BOOL, A.nrows, like=A, name="near")
    best = Vector(INT64, A.nrows, like=A, name="best")
    nodes = list(nodes) if isinstance(nodes, (set, frozenset)) else nodes
    if nodes is not None and np.size(nodes):
        members[source_vertices(A, nodes, "maximal_independent_set: nodes")] = True
        near << semiring.any_pair(members @ A)
        joined = near.ewise_mult(members, binary.pair).new().to_coo()[0].tolist()
        if joined:
            raise InvalidValue(f"maximal_independent_set: edges join the nodes {joined}.")
        scores(~members.S, replace=True) << scores
        scores(~near.S, replace=True) << scores
    for _ in loop(until_empty=scores):
        best << semiring.max_first(scores @ A)
        best << scores.ewise_union(best, binary.minus, left_default=0, right_default=-1)
        best(scores.S, replace=True) << best.select("valuegt", 0)
        members(best.S) << True
        near << semiring.any_pair(best @ A)
        scores(~members.S, replace=True) << scores
        scores(~near.S, replace=True) << scores
    return members


def _scores(A: Matrix, seed: int) -> Vector:
    """Return random scores, distinct because their low bits are the vertex number."""
    low = A.nrows.bit_length()
    drawn = np.random.default_rng(seed).integers(0, 2**32, A.nrows, np.uint32)
    drawn >>= max(0, low - 30)  # so that scores fit 62 bits
    high = Vector.from_dense(drawn, like=A)
    scores: Vector = high.apply(binary.times, right=np.int64(1 << low)).new(name="scores")
    scores(accum=binary.plus) << high.apply("index")
    return scores
