"""A shortest path between two vertices: searches from both ends until they meet, or one search.

The smaller frontier takes a step: along the edges from the source, against them from the target::

    q<!s(p)> = q (any.secondi) A        r<!s(c)> = r (any.secondi) A'

One search from the source is `bfs_parents`, a single kernel on backends that fuse loops.
"""

from __future__ import annotations

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.bfs import bfs_levels, bfs_parents
from lagpu.algorithms.inputs import index_type, source_vertex
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import InvalidValue, NoPath

__all__ = ["has_path", "shortest_path"]

_METHODS = ("bidirectional", "single")
_STEPS = 64  # steps of a path that are read one by one, before all parents are copied


def shortest_path(A: Matrix, source: int, target: int, *, method: str | None = None) -> list[int]:
    """Return the vertices of a shortest path, `source` and `target` included.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    source, target : int
        Vertices ``0 .. n-1``.
    method : str, optional
        ``"bidirectional"``, searches from both ends, or ``"single"``, one search of all vertices
        that the source reaches; by default ``"single"`` on backends that fuse loops.

    Returns
    -------
    list of int
        One of the paths with fewest edges; ``[source]`` if it is the target.

    Raises
    ------
    NoPath
        If there is no path.
    InvalidValue
        If there is no such method.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or an end is not a vertex.

    Notes
    -----
    In a graph that widens evenly, two searches visit about the square root of the vertices that one
    search visits, but Python decides after each level which search goes on.
    Source: Pohl 1971.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> shortest_path(path(9, backend="cpu"), 2, 5)
    [2, 3, 4, 5]
    """
    source, target = source_vertex(A, source), source_vertex(A, target, "target")
    if _is_single(A, method):
        before = bfs_parents(A, source)
        after, middle = before, target if before.get(target) is not None else None
    else:
        before, after, middle = _meet(A, source, target)
    if middle is None:
        raise NoPath(f"shortest_path: there is no path from {source} to {target}.")
    return [*_followed(before, middle, source)[:0:-1], *_followed(after, middle, target)]


def has_path(A: Matrix, source: int, target: int, *, method: str | None = None) -> bool:
    """Return True if there is a path from `source` to `target`.

    Parameters
    ----------
    A, source, target, method
        As in `shortest_path`.

    Returns
    -------
    bool
        True for a vertex and itself.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch, IndexOutOfBound
        As `shortest_path`.

    Examples
    --------
    >>> A = Matrix.from_coo([0], [1], nrows=2, ncols=2, backend="cpu")
    >>> has_path(A, 0, 1), has_path(A, 1, 0)
    (True, False)
    """
    source, target = source_vertex(A, source), source_vertex(A, target, "target")
    if _is_single(A, method):
        return bfs_levels(A, source).get(target) is not None
    return _meet(A, source, target)[2] is not None


def _is_single(A: Matrix, method: str | None) -> bool:
    """Return True to search from the source alone."""
    if method is None:
        return A.backend.capabilities.fuses  # otherwise visiting fewer vertices pays
    if method not in _METHODS:
        raise InvalidValue(
            f"shortest_path: there is no method {method!r}. Use {' or '.join(_METHODS)}."
        )
    return method == "single"


def _followed(links: Vector, begin: int, end: int) -> list[int]:
    """Return the vertices from `begin` to `end`, where ``links`` has the successor of each."""
    route = [begin]
    while route[-1] != end and len(route) <= _STEPS:
        route.append(links.get(route[-1]))
    if route[-1] != end:
        all_links = links.to_dense(-1)
        while route[-1] != end:
            route.append(int(all_links[route[-1]]))
    return route


def _meet(A: Matrix, source: int, target: int) -> tuple[Vector, Vector, int | None]:
    """Return predecessors, successors, and a vertex at which the searches meet (None: no path)."""
    kind = index_type(A)
    before, after, forth, back, met = (Vector(kind, A.nrows, like=A) for _ in range(5))
    before[source] = forth[source] = source
    after[target] = back[target] = target
    if source == target:
        return before, after, source
    against = A if A.is_symmetric else A.T  # every backend can push along the edges of A
    while forth.nvals and back.nvals:
        if forth.nvals <= back.nvals:
            forth(~before.S, replace=True) << semiring.any_secondi(forth @ A)
            before(forth.S) << forth
            met << after.ewise_mult(forth, binary.pair)
        else:
            back(~after.S, replace=True) << semiring.any_secondi(back @ against)
            after(back.S) << back
            met << before.ewise_mult(back, binary.pair)
        if met.nvals:
            return before, after, int(met.to_coo()[0][0])
    return before, after, None
