"""A shortest path between two vertices: searches from both ends, until they meet.

The smaller frontier takes a step: along the edges from the source, against them from the target::

    q<!s(p)> = q (any.secondi) A        r<!s(c)> = r (any.secondi) A'
"""

from __future__ import annotations

from lagpu.algebra import binary, semiring
from lagpu.algorithms.source import index_type, source_vertex
from lagpu.errors import NoPath
from lagpu.matrix import Matrix
from lagpu.vector import Vector

__all__ = ["has_path", "shortest_path"]


def shortest_path(A: Matrix, source: int, target: int) -> list[int]:
    """Return the vertices of a shortest path, `source` and `target` included.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    source, target : int
        Vertices ``0 .. n-1``.

    Returns
    -------
    list of int
        One of the paths with fewest edges; ``[source]`` if it is the target.

    Raises
    ------
    NoPath
        If there is none.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or an end is no vertex.

    Notes
    -----
    The two searches together see about the square root of what one would in a graph that widens
    evenly. Source: Pohl 1971.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> shortest_path(path(9, backend="cpu"), 2, 5)
    [2, 3, 4, 5]
    """
    source, target = source_vertex(A, source), source_vertex(A, target, "target")
    before, behind, middle = _meet(A, source, target)
    if middle is None:
        raise NoPath(f"shortest_path: there is no path from {source} to {target}.")
    route = [middle]
    while route[-1] != source:
        route.append(before.get(route[-1]))
    route.reverse()
    while route[-1] != target:
        route.append(behind.get(route[-1]))
    return route


def has_path(A: Matrix, source: int, target: int) -> bool:
    """Whether there is a path from `source` to `target`.

    Parameters
    ----------
    A, source, target
        As in `shortest_path`.

    Returns
    -------
    bool
        True for a vertex and itself.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        As `shortest_path`.

    Examples
    --------
    >>> A = Matrix.from_coo([0], [1], nrows=2, ncols=2, backend="cpu")
    >>> has_path(A, 0, 1), has_path(A, 1, 0)
    (True, False)
    """
    source, target = source_vertex(A, source), source_vertex(A, target, "target")
    return _meet(A, source, target)[2] is not None


def _meet(A: Matrix, source: int, target: int) -> tuple[Vector, Vector, int | None]:
    """Return who comes before each vertex, who behind it, and a vertex where the searches meet."""
    kind = index_type(A)
    before, behind, forth, back, met = (Vector(kind, A.nrows, like=A) for _ in range(5))
    before[source] = forth[source] = source
    behind[target] = back[target] = target
    if source == target:
        return before, behind, source
    against = A if A.is_symmetric else A.T  # a step along edges is pushed on every backend
    while forth.nvals and back.nvals:
        if forth.nvals <= back.nvals:
            forth(~before.S, replace=True) << semiring.any_secondi(forth @ A)
            before(forth.S) << forth
            met << behind.ewise_mult(forth, binary.pair)
        else:
            back(~behind.S, replace=True) << semiring.any_secondi(back @ against)
            behind(back.S) << back
            met << before.ewise_mult(back, binary.pair)
        if met.nvals:
            return before, behind, int(met.to_coo()[0][0])
    return before, behind, None
