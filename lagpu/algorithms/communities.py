"""Communities: sets of vertices with many edges inside, as a label of each vertex.

For labels c, P has an entry (c(v), v) for each vertex. So ``A P'`` adds the edges from a vertex to
a community, and ``P A P'`` those between communities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms import inputs
from lagpu.core import Matrix, Vector
from lagpu.core.arguments import integer
from lagpu.dtypes import FP64, INT64, UINT64
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue

__all__ = ["contraction", "label_propagation", "louvain", "modularity"]

_ROUNDED = 1e-9  # of a vertex's weight: a gain that may be due to rounding


def contraction(A: Matrix, labels: Vector, op: str = "plus") -> tuple[Matrix, Vector]:
    """Return the quotient graph: a vertex for each label, joined as the vertices of the labels are.

    Parameters
    ----------
    A : Matrix, (n, n)
    labels : Vector, (n,), of an integer type
        The label of each vertex.
    op : str
        The monoid that combines the values of parallel edges.

    Returns
    -------
    quotient : Matrix, (k, k), FP64 or INT64
        Entry (a, b) combines the entries of `A` from the a-th label to the b-th; those within a
        label are on the diagonal. True counts 1.
    names : Vector, (k,)
        The label of each vertex of the quotient, in rising order.

    Raises
    ------
    InvalidValue
        If a vertex has no label.
    UnknownOperator
        If there is no such monoid.

    Notes
    -----
    ``P A P'``, where P has an entry (a, v) if vertex v has the a-th label: two products in work
    O(m). Source: Kepner and Gilbert 2011, chapter 6.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> labels = Vector.from_coo(range(4), [7, 7, 3, 3], backend="cpu")
    >>> quotient, names = contraction(path(4, backend="cpu"), labels)
    >>> names.to_dense().tolist(), [x.tolist() for x in quotient.to_coo()]
    ([3, 7], [[0, 0, 1, 1], [0, 1, 0, 1], [2, 1, 1, 2]])
    """
    inputs.require_square(A)
    place, names = _places(A, labels, "contraction")
    P = place.selection(nrows=names.size).new(name="P")
    values = A.dup(FP64 if A.dtype.is_float or A.dtype is UINT64 else INT64)
    rows = semiring[f"{op}_second"](P @ values).new(name="rows")
    return semiring[f"{op}_first"](rows @ P.T).new(name="quotient"), names


def _places(A: Matrix, labels: Any, what: str) -> tuple[Vector, Vector]:
    """Return the place of each vertex's label in their order, and the labels in order."""
    if not isinstance(labels, Vector) or labels.dtype.is_float or labels.dtype.is_bool:
        raise DomainMismatch(f"{what}: labels is not a Vector of integers.")
    if labels.size != A.nrows:
        raise DimensionMismatch(f"{what}: labels.size {labels.size} != {A.nrows} vertices.")
    if labels.nvals != A.nrows:
        raise InvalidValue(f"{what}: {A.nrows - labels.nvals} vertices have no label.")
    names, place = np.unique(labels.to_dense(), return_inverse=True)
    found = (place.astype(inputs.index_type(A).numpy), names)
    return tuple(Vector.from_dense(x, like=A) for x in found)  # type: ignore[return-value]


def modularity(
    A: Matrix, labels: Vector, *, weight: bool = True, resolution: float = 1,
    directed: bool | None = None,
) -> float:  # fmt: skip
    """Return the share of weight inside communities, less the share expected at random.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the edge i -> j and its weight; True counts 1.
    labels : Vector, (n,), of an integer type
        The community of each vertex.
    weight : bool
        Whether values are weights; otherwise each edge counts 1.
    resolution : float
        Weight of the expected part: larger for smaller communities.
    directed : bool, optional
        Whether the graph is directed, which matters to self-loops; by default it is if the weights
        are not symmetric.

    Returns
    -------
    float
        For ``resolution=1`` less than 1; 0 if all is one community.

    Raises
    ------
    InvalidValue
        If a weight is NaN or infinite, they sum to 0, or a vertex has no label.

    Notes
    -----
    With the quotient C of `contraction`, its trace tr(C), its sum t and a vector 1 of ones:
    ``tr(C) / t - resolution * (C 1)' (C' 1) / t**2``. The self-loops of an undirected graph count
    twice. Work O(m + n log n).
    Source: Newman 2004; Leicht and Newman 2008 (directed).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> labels = Vector.from_coo(range(4), [0, 0, 1, 1], backend="cpu")
    >>> round(modularity(path(4, backend="cpu"), labels), 6)
    0.166667
    """
    B = _weights(A, weight, "modularity", directed)
    if not B.reduce("plus").new().value:
        raise InvalidValue("modularity: the weights of all edges sum to 0.")
    return _quality(B, labels, inputs.number(resolution, "modularity: resolution"))


def _weights(A: Matrix, weight: bool, what: str, directed: bool | None = None) -> Matrix:
    """Return the `_scaled` weights, the diagonal doubled if the graph is undirected."""
    B = _scaled(A, weight, what)
    if not directed and (directed is False or B.is_symmetric):
        B(accum=binary.plus) << B.select("diag")
    return B


def _scaled(A: Matrix, weight: bool, what: str) -> Matrix:
    """Return the weights in FP64 over a power of two near the largest, so that sums are finite."""
    inputs.require_square(A)
    B: Matrix = (A if weight else A.apply("one").new(name="B")).dup(FP64, name="B")
    inputs.require_finite(B, what)
    largest = B.apply("abs").new().reduce("max").new().value
    if largest:
        power = math.ldexp(0.5, math.frexp(largest)[1])
        B << B.apply("truediv", right=power)
    return B


def _quality(B: Matrix, labels: Vector, resolution: float) -> float:
    C, _ = contraction(B, labels)
    inside, out = C.diag(), C.reduce_rowwise("plus").new(name="out")
    into = C.reduce_columnwise("plus").new(name="into")
    total = C.reduce("plus").new().value
    expected = out.ewise_mult(into, binary.times).new().reduce("plus").new().value or 0.0
    within = inside.reduce("plus").new().value or 0.0
    return float(within / total - resolution * expected / total / total)


def louvain(
    A: Matrix, *, weight: bool = True, resolution: float = 1, threshold: float = 1e-7,
    max_level: int | None = None, seed: int | None = None,
) -> Vector:  # fmt: skip
    """Return communities of large `modularity`.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entries (i, j) and (j, i) of one value >= 0 are the edge between i and j and its weight;
        True counts 1.
    weight, resolution
        As in `modularity`.
    threshold : float
        A level ends when no gain above this is found.
    max_level : int, optional
        Most levels, 1 or more; by default as many as gain something.
    seed : int, optional
        Seed of the order in which vertices move.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        The least vertex of each vertex's community. The same on every backend for one seed, if sums
        of weights are exact.

    Raises
    ------
    InvalidValue
        If an entry has no reverse of the same value, or a weight is negative, NaN or infinite.

    Notes
    -----
    In a level, random parts of the vertices move in turn: all of a part at once, each to the
    neighbouring community of most gain. If a round does not raise the modularity, the next one has
    twice as many parts. The communities are the vertices of the next level. A part takes some
    twenty statements; a round takes work O(m + parts n) and the memory of six graphs. NetworkX
    moves one vertex after another and finds other communities of about the same modularity.
    Source: Blondel and others 2008; Lu, Halappanavar and Kalyanaraman 2015 (parts).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3], 1, nrows=6, ncols=6,
    ...                     backend="cpu")
    >>> louvain(A.ewise_add(A.T, "max").new(), seed=1).to_dense().tolist()
    [0, 0, 0, 3, 3, 3]
    """
    B = _weights(A, weight, "louvain")
    if not B.is_symmetric or (B.reduce("min").new().value or 0) < 0:
        raise InvalidValue(
            "louvain: a weight is negative, or an entry has no reverse of the same value. "
            "Give an undirected graph, such as A.ewise_add(A.T, 'plus').new()."
        )
    most = A.nrows if max_level is None else integer(max_level, "louvain: max_level", 1)
    resolution = inputs.number(resolution, "louvain: resolution")
    threshold = inputs.number(threshold, "louvain: threshold")
    drawn = np.random.default_rng(inputs.random_seed(seed, "louvain", A))
    own = inputs.numbered(A, "own")
    labels = own.dup(name="labels")
    for _ in range(most if B.reduce("plus").new().value else 0):
        found = _level(B, resolution, threshold, drawn)
        place, names = _places(B, found, "louvain")
        if names.size == B.nrows:
            break
        labels << semiring.min_first(place @ labels.selection(nrows=B.nrows))
        B, _ = contraction(B, found)
    P = labels.selection()
    least = semiring.min_second(P @ own).new(name="least")
    labels << semiring.min_first(least @ P)
    return labels


def _level(B: Matrix, resolution: float, threshold: float, drawn: np.random.Generator) -> Vector:
    """Return the communities after moves of single vertices."""
    n, total = B.nrows, B.reduce("plus").new().value
    weight = Vector.from_scalar(0, n, FP64, like=B, name="weight")
    weight(accum=binary.plus) << B.reduce_rowwise("plus")
    others = B.select("offdiag").new(name="others")
    labels = inputs.numbered(B, "labels")
    quality, parts, W = _quality(B, labels, resolution), 2, weight.diag(name="W")
    while parts <= 4 * n:
        part_of, tried, gain = drawn.integers(0, parts, n), labels.dup(), 0.0
        for part in range(parts):
            movers = np.flatnonzero(part_of == part)
            D = Vector.from_coo(movers, True, size=n, like=B).diag()
            moves, gains = _moves(
                semiring.any_second(D @ others).new(), tried, weight, W, resolution / total
            )
            tried(moves.S) << moves
            gain += 2 * (gains.reduce("plus").new().value or 0.0) / total
        if gain <= threshold:
            break
        found = _quality(B, tried, resolution)
        if found - quality <= threshold:
            parts *= 2
        if found > quality:
            quality, labels = found, tried
    return labels


def _moves(
    E: Matrix, labels: Vector, weight: Vector, W: Matrix, factor: float
) -> tuple[Vector, Vector]:
    """Return the best other label of each vertex with an edge in E that gains by it, and the gain.

    A vertex v with weight w(v) belongs to a label c by ``(E P')(v, c) - factor w(v) t(c)``, where t
    is the weight of the label without v. W is the diagonal matrix of `weight`.
    """
    P = labels.selection()
    Q = P.T.new(name="Q")
    K = semiring.plus_first(E @ Q).new(name="K")
    inside = K.ewise_mult(Q, binary.first).new().reduce_rowwise("plus").new(name="inside")
    totals = semiring.plus_second(P @ weight).new(name="totals")
    without = semiring.min_first(totals @ P).new(name="without")
    without << without.ewise_mult(weight, binary.minus)
    without << without.ewise_mult(weight, binary.times)
    inside << inside.ewise_union(
        without.apply(binary.times, right=factor).new(), binary.minus, 0.0, 0.0
    )
    expected = semiring.any_first(W @ K).new()
    expected << semiring.any_times(expected @ totals.diag())
    expected << expected.apply(binary.times, right=factor)
    worth = Matrix(FP64, *K.shape, like=K, name="worth")
    worth(~Q.S) << K.ewise_mult(expected, binary.minus)
    best = worth.reduce_rowwise("max").new(name="best")
    gains = best.ewise_mult(inside, binary.minus).new(name="gains")
    share = gains.ewise_mult(weight, binary.truediv).new().select("valuegt", _ROUNDED).new()
    gains(share.S, replace=True) << gains
    moves = _places_of(worth, best).reduce_rowwise("min").new(labels.dtype, name="moves")
    moves(gains.S, replace=True) << moves
    return moves, gains


def _places_of(K: Matrix, best: Vector) -> Matrix:
    """Return the column number of each entry of K that is the best of its row."""
    E = semiring.any_eq(best.diag() @ K).new().select("valueeq", True).new()
    return E.apply("colindex").new(name="places")


def label_propagation(
    A: Matrix, colors: Vector | None = None, *, max_iter: int = 100, weight: bool = False
) -> Vector:
    """Return communities in which most neighbours of a vertex have its label.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) >= 0 joins i and j; in a graph that is not symmetric both directions count. A
        self-loop makes a vertex its own neighbour.
    colors : Vector, (n,), of an integer type, optional
        Vertices of one colour change their labels together, colour after colour (semi-synchronous);
        no edge should join two of one colour. By default all change together (synchronous).
    max_iter : int
        Most rounds, 1 or more; synchronous labels may change forever.
    weight : bool
        Whether values are weights; otherwise each edge counts 1.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        Labels; each is the number of the vertex from which it spread. The same on every backend, if
        sums of weights are exact.

    Raises
    ------
    InvalidValue
        If a weight is NaN or infinite, or a vertex has no colour.

    Notes
    -----
    Each vertex takes the label of most weight among its neighbours. Without colours the least of
    equal labels wins, as in CDLP of LDBC Graphalytics; with colours the vertex's own, else the
    largest, as in NetworkX' ``label_propagation_communities`` with colours of ``greedy_color``.
    A round is one product of work O(m) for each colour; memory of two matrices.
    Source: Raghavan, Albert and Kumara 2007; Cordasco and Gargano 2012 (colours); Iosup and others
    2016 (CDLP).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0], 1, nrows=4, ncols=4,
    ...                     backend="cpu")
    >>> label_propagation(A).to_dense().tolist()
    [0, 0, 0, 3]
    """
    B = _scaled(A, weight, "label_propagation")
    if not B.is_symmetric:
        B = B.ewise_add(B.T, binary.plus).new(name="B")
    rounds, parts = integer(max_iter, "label_propagation: max_iter", 1), [B]
    if colors is not None:
        place, names = _places(A, colors, "label_propagation")
        some = (place.select("valueeq", k).new() for k in range(names.size))
        parts = [semiring.any_second(v.diag() @ B).new() for v in some]
    labels = inputs.numbered(A, "labels")
    for _ in range(rounds):
        before = labels.dup()
        for E in parts:
            Q = labels.selection().T.new(name="Q")
            K = semiring.plus_first(E @ Q).new(name="K")
            best = K.reduce_rowwise("max").new(name="best")
            places = _places_of(K, best)
            chosen = places.reduce_rowwise("min" if colors is None else "max").new(labels.dtype)
            if colors is not None:
                kept = places.ewise_mult(Q, binary.pair).new().reduce_rowwise("any").new()
                chosen(~kept.S, replace=True) << chosen
            labels(chosen.S) << chosen
        if labels.isequal(before):
            break
    return labels
