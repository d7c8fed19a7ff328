"""The same loops, other semirings: the algebra says what is asked."""

from lagpu import BOOL, FP64, INT64, Matrix, Vector, loop, semiring

print(semiring.plus_times)

A = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4, 5, 6],
    [1, 2, 3, 3, 4, 5, 5, 1, 0],
    nrows=7,
    ncols=7,
    name="A",
)


def first_arrivals(A, source, value, over, dtype):
    """Carry a value along the edges; a vertex keeps what arrives first."""
    found = Vector(dtype, A.nrows, like=A, name=over.name)
    frontier = Vector(dtype, A.nrows, like=A, name="frontier")
    frontier[source] = value
    for _ in loop(until_empty=frontier):
        found(frontier.S) << frontier
        frontier(~found.S, replace=True) << over(frontier @ A)
    return found


reached = first_arrivals(A, 0, True, semiring.any_pair, BOOL)
levels = first_arrivals(A, 0, 0, semiring.any_plus, INT64)
parents = first_arrivals(A, 0, 0, semiring.any_secondi, INT64)
paths = first_arrivals(A, 0, 1, semiring.plus_first, INT64)

roads = Matrix.from_coo(
    [0, 0, 1, 2, 2, 3, 4, 5, 6],
    [1, 2, 3, 3, 4, 5, 5, 1, 0],
    [7.0, 2.0, 1.0, 4.0, 3.0, 1.0, 6.0, 1.0, 5.0],
    nrows=7,
    ncols=7,
    name="roads",
)


def relax(A, source, value, over):
    """Pass values along the edges until none improves."""
    best = Vector(FP64, A.nrows, like=A, name=over.name)
    best[source] = value
    for _ in loop(until_unchanged=best):
        best(accum=over.monoid) << over(best @ A)
    return best


distance = relax(roads, 0, 0, semiring.min_plus)
width = relax(roads, 0, float("inf"), semiring.max_min)
print(distance)

everyone = Vector.from_dense([1] * 7, dtype=INT64, like=A)
roads_in = semiring.plus_pair(everyone @ A).new(name="roads_in")
nearest = semiring.min_second(everyone @ roads).new(name="nearest")

print("roads into each town:", roads_in.to_dense(0))
print("the shortest of them:", nearest.to_dense(float("inf")))
