"""Thresholds by which products and searches push or pull, each with its source.

Published rules have their papers' numbers. The others were best on an H200 over the seven graphs of
docs/benchmarks; docs/design/planner.md has the measurements.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lagpu.backends.gpu.kernels import constant

__all__ = [
    "BEAMER",
    "BFS2D_RATIO",
    "BITS_PUSH_COST",
    "CLUSTER_DEGREE",
    "EAGER_BETA",
    "HIRAGUSHI",
    "LONG_SEARCH_DEGREE",
    "PULL_FIRST",
    "PULL_SUMS",
    "RELAXED_AHEAD",
    "RELAXED_EDGES",
    "RELAXED_SHARE",
    "RELAXED_STEP",
    "SEARCH_PUSH_COST",
    "TURBOBFS_DENSITY",
    "WARP_LENGTH",
    "SearchRule",
    "alpha_of",
    "beta_of",
    "gamma_of",
]

# A search pulls from the level on where (edges that leave the frontier) * alpha exceeds the edges
# not looked at yet, and pushes again where (vertices of the frontier) * beta is less than n:
# Beamer, Asanovic and Patterson 2012, section 5.1. (alpha, beta) as each paper has them:
BEAMER, HIRAGUSHI = (14.0, 24.0), (48.0, 20.0)
# Product by product a push of a small frontier is cheaper; in one kernel see `beta_of`.
EAGER_BETA = 24.0
#: Mean degree up to which searches are taken to have many levels.
LONG_SEARCH_DEGREE = 8.0
#: Mean degree up to which a cluster of thread blocks searches frontiers of thousands of vertices:
#: with six edges a vertex its few multiprocessors take longer than all do (docs/design/speed.md).
CLUSTER_DEGREE = 4.0
_DENSE_DEGREE = 128.0  # from which a pull without a hit looks at very many predecessors
# The cost of pushing an edge, relative to a pull's look at one, where what it finds goes into words
# and where it goes into lists (H200, 2026-11-23); vertices that a pull's warps look at by turns.
_WIDE_COST, _LIST_COST, _PULLED_AT_ONCE = 8.0, 32.0, 16384
# Of the mean degree behind an edge: what a pushed one finds in Kronecker graphs (2026-11-26).
_FOUND_BEHIND = 0.3

#: Frontier density from which ``turbobfs`` pulls (Artiles and Saeed 2021, section III C).
TURBOBFS_DENSITY = 0.10
#: Frontier over unvisited vertices from which ``bfs2d`` pulls (Bernaschi and others 2018 leave it
#: to the user to find, section 3.3).
BFS2D_RATIO = 0.05
#: Mean column length from which a warp a column is faster than a thread.
WARP_LENGTH = 16.0

#: The cost of pushing one edge with k rows of bits, relative to a pull's look at one entry: in a
#: single product, and in a bit-parallel search (docs/design/bitmap.md).
BITS_PUSH_COST, SEARCH_PUSH_COST = 8, 4
#: A product in a generated loop pulls where the frontier's edges times this exceed all edges: of a
#: pull that ends at its first hit, and of one that adds up.
PULL_FIRST, PULL_SUMS = constant("kPullFirst"), constant("kPullSums")

#: A relaxation takes numbers up to a step beyond the last ones, in units of the largest value over
#: the mean degree; and the next ones as soon as fewer edges than this leave what is listed: so many
#: take no longer than a barrier. Of more than this share of all edges the nearest are relaxed first
#: (docs/design/speed.md).
RELAXED_STEP, RELAXED_EDGES, RELAXED_SHARE = 8.0, 16384, 4
#: Edges that a turn of a relaxation goes beyond the vertices that are listed, where the mean degree
#: is at most CLUSTER_DEGREE: with six edges a vertex it takes a third longer.
RELAXED_AHEAD = 1


class SearchRule(NamedTuple):
    """The rule by which a grid search chooses its directions, where that is not the one of `auto`.

    Attributes
    ----------
    kind : str
        The constant of the kernel: ``kByEdges``, ``kByUnvisited``, ``kByDensity``, ``kOnlyPushes``
        or ``kOnlyPulls``.
    alpha, beta : float
        Its numbers: the ratio is the alpha of ``kByUnvisited``, the density that of ``kByDensity``.
    why : str
        The policy as its author wrote it, or why there is one direction.
    """

    kind: str
    alpha: float = 0.0
    beta: float = 0.0
    why: str = ""

    @property
    def one_way(self) -> bool:
        """Whether the search has one direction, and needs one form of the matrix."""
        return self.kind in ("kOnlyPushes", "kOnlyPulls")


def alpha_of(degree: float, n: int, sums: bool = False, wide: bool = False) -> float:
    """Return alpha for a matrix of mean degree `degree` and `n` vertices.

    Where a part 1 / x of all edges leaves the frontier, a vertex that pulls looks at some x / 3 of
    its neighbours until it finds one: a push costs m / x, and a pull n x. Both are equal where x is
    the square root of m / n, times that of the cost of a pushed edge (docs/design/speed.md). Long
    searches keep 14: with 30 delaunay20 takes 3.1 ms and not 2.3.

    Parameters
    ----------
    degree : float
        Entries of a column, on average.
    n : int
        Vertices. In a matrix of few vertices and many edges, few warps have all of a pull's work.
    sums : bool
        Whether a pull looks at all edges, so that it is dearer: with its own alpha the slowest path
        count of mycielskian17 takes 0.42 ms and not 3.18.
    wide : bool
        Whether a push of many edges finds words, which a list's counter does not hold up.
    """
    if degree <= LONG_SEARCH_DEGREE:
        return 14.0
    if sums:
        return 2.0 if degree >= _DENSE_DEGREE else 14.0
    alpha = float(round(math.sqrt((_WIDE_COST if wide else _LIST_COST) * degree)))
    return max(4.0, min(alpha, n // _PULLED_AT_ONCE)) if degree >= _DENSE_DEGREE else alpha


def beta_of(sums: bool) -> float:
    """Return beta for a search by one kernel.

    Where few vertices are left a pull by groups of words is cheap, so a search that is nearly done
    is pulled to its end (docs/design/speed.md).

    Parameters
    ----------
    sums : bool
        Whether a pull adds up, and so takes words one by one.
    """
    return 64.0 if sums else 1024.0


def gamma_of(alpha: float, degree: float, behind: float) -> float:
    """Return gamma: a search pushes into words where frontier edges * gamma > unexplored edges.

    What such a push finds is pulled next. `alpha` would pull it if each of these edges found a
    vertex of so many edges as is said here: the mean, or a part of what is behind an edge, since a
    hub is found once however many edges lead to it (docs/design/speed.md). A wrong guess costs a
    pull of a frontier that is better pushed, which the last levels of a long search would pay:
    those push into lists.

    Parameters
    ----------
    alpha : float
        The search's.
    degree : float
        Entries of a column, on average.
    behind : float
        The mean out-degree of the vertex to which an edge leads, over all edges.
    """
    if degree <= LONG_SEARCH_DEGREE:
        return 0.0
    return alpha * max(degree, _FOUND_BEHIND * behind)
