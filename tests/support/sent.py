"""What another process does with the objects that it is sent, and what it sends back."""

import os
import pickle

import lagpu
from lagpu import Matrix, Vector, binary

DOUBLED = "sent_doubled"


def step(A, q, op):
    """One product there, and who has made it."""
    w = op(q @ A).new(name="w")
    return w, w.backend.name, os.getpid()


def reached(A, source):
    q = Vector(bool, A.nrows, like=A)
    q[source] = True
    levels = lagpu.algorithms.bfs_levels(A, source)
    return levels, levels.to_coo()[1].max().item()


def register():
    return binary.register(DOUBLED, lambda x, y: x + 2 * y, "x + 2 * y")


def unpickled(data):
    return repr(pickle.loads(data))


def unpickled_on(data, backend):
    with lagpu.use(backend):
        return pickle.loads(data).backend.name


def error_of(data):
    """The error in words: a worker that fails as it reads its task would break the pool."""
    try:
        pickle.loads(data)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def graph(backend):
    return Matrix.from_coo([0, 1, 2], [1, 2, 0], [1.5, 2.5, 3.5], backend=backend, name="ring")
