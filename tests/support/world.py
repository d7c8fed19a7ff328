"""Some objects on a backend, for tests of what they refuse."""

from lagpu import (
    INT32,
    INT64,
    Matrix,
    Scalar,
    Vector,
)


class World:
    """Some objects on a backend, with what they held at first."""

    def __init__(self, backend):
        where = {"backend": backend}
        self.backend = backend
        self.u = Vector.from_coo([0, 2], [1, 2], size=3, name="u", **where)
        self.w = Vector.from_coo([1], [7], size=3, name="w", **where)
        self.short = Vector.from_dense([1, 2], name="short", **where)
        self.bits = Vector.from_dense([True, False, True], name="bits", **where)
        self.empty = Vector(INT32, 3, name="empty", **where)
        self.A = Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=4, name="A", **where)
        self.S = Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=3, name="S", **where)
        self.s = Scalar(INT64, 5, name="s")
        self.before = self.contents()

    def contents(self):
        vectors = [v.to_coo() for v in (self.u, self.w, self.short, self.bits, self.empty)]
        matrices = [m.to_coo() for m in (self.A, self.S)]
        return [[x.tolist() for x in arrays] for arrays in vectors + matrices] + [self.s.value]
