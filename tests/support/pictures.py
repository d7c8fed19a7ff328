"""A small graph to draw, and vectors beside it."""

from lagpu import Matrix, Vector

ROWS, COLS, VALUES = [0, 0, 1, 2, 2], [1, 2, 2, 0, 2], [5.0, 0.0, 2.5, 1.0, 7.0]


def small(backend="cpu"):
    return Matrix.from_coo(ROWS, COLS, VALUES, nrows=3, ncols=3, name="A", backend=backend)


def world(backend):
    A = Matrix.from_coo(
        [0, 1, 1, 2, 3], [1, 0, 2, 3, 0], [1, 2, 0, 4, 5], nrows=4, ncols=4, name="A",
        backend=backend,
    )  # fmt: skip
    q = Vector.from_coo([1, 2], [1, 1], size=4, name="q", backend=backend)
    seen = Vector.from_coo([0], [True], size=4, name="seen", backend=backend)
    return A, q, seen
