"""Grids whose pieces share nothing, and operands for them."""

import types

import numpy as np

from lagpu import INT64, Matrix, Scalar, Vector, binary
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid import GridBackend
from lagpu.backends.grid.comm import LocalEngine
from lagpu.operations import AssignScalar, operands_of


class Own(CpuBackend):
    """A cpu backend that takes only handles of its own, and fails at a call if asked to."""

    def __init__(self, shared):
        self.made, self.shared = {}, shared
        for name in ("vector", "matrix", "vector_from_coo", "matrix_from_coo", "matrix_from_csc"):
            setattr(self, name, self._keeping(getattr(self, name)))
        self.dup = self._keeping(self.dup)

    def _keeping(self, make):
        def keep(*args, **kwargs):
            handle = make(*args, **kwargs)
            self.made[id(handle)] = handle
            return handle

        return keep

    def execute(self, statement):
        given = (statement.out, statement.desc.mask, *operands_of(statement.operation))
        assert all(x is None or id(x) in self.made for x in given)
        if isinstance(statement.operation, AssignScalar):
            lists = [of for of in statement.operation.indices or () if of is not None]
            assert all((np.diff(of) > 0).all() for of in lists)
        self.shared.calls += 1
        if self.shared.calls - 1 == self.shared.at:
            raise self.shared.error
        super().execute(statement)


class Checked(LocalEngine):
    """A local engine that notes the other pieces to which a piece sends."""

    def __init__(self, size):
        super().__init__(size)
        self.partners = [set() for _ in self.local]

    def gather(self, parts):
        for s in self.local:
            self.partners[s].update(d for d in self.local if d != s)
        return super().gather(parts)

    def exchange(self, parts, on_devices=False, among=None):
        for s, given in enumerate(parts):
            sent = [d for d, arrays in given.items() if d != s and any(map(len, arrays))]
            self.partners[s].update(sent)
        groups = [{*group} for group in among or [self.local]]
        assert all(
            {s, *given} <= next(of for of in groups if s in of) for s, given in enumerate(parts)
        )
        return super().exchange(parts, on_devices, among)


def own_grid(pieces, order=None):
    """A grid whose pieces share nothing, and what decides when one of them fails."""
    rows, columns = pieces if isinstance(pieces, tuple) else (pieces, 1)
    shared = types.SimpleNamespace(calls=0, at=None, error=None)
    engine = Checked(rows * columns)
    places = [Own(shared) for _ in engine.local]
    return GridBackend("grid", engine, places, (rows, columns), order), shared


class Few:
    """Operands of a size, with hubs, empty rows and columns, and another number of rows."""

    def __init__(self, place, n):
        rng = np.random.default_rng(n)
        self.n, self.m = n, (n * 2 + 2) // 3
        where = {"backend": place}

        def entries(rows, cols, seed):
            rng = np.random.default_rng(seed)
            count = 0 if 0 in (rows, cols) else min(4 * n, 900)
            i, j = rng.integers(0, rows or 1, count), rng.integers(0, cols or 1, count)
            j[: count // 4] = 0
            i[count // 4 : count // 2] = (rows or 1) - 1
            shape = {"nrows": rows, "ncols": cols}
            x = rng.integers(-3, 9, count)
            return Matrix.from_coo(i, j, x, INT64, dup_op=binary.min, **shape, **where)

        self.A, self.B = entries(n, n, 1), entries(n, n, 2)
        self.L, self.Q = entries(self.m, n, 3), entries(3, n, 4)

        def sparse(size, seed, dtype=INT64):
            rng = np.random.default_rng(seed)
            at = np.flatnonzero(rng.random(size) < 0.4)
            return Vector.from_coo(at, rng.integers(-4, 9, len(at)), dtype, size=size, **where)

        self.u, self.v, self.w, self.t = (sparse(n, k) for k in range(5, 9))
        self.short = sparse(self.m, 9)
        self.full = Vector.from_dense(rng.integers(0, 9, n).astype(np.int64), **where)
        self.f = Vector.from_dense(rng.integers(-1, n + 1, n).astype(np.int64), **where)
        self.shuffled = rng.permutation(n)
        self.some = np.sort(rng.permutation(n)[: n // 2])
        self.often = rng.integers(0, n or 1, n)


def plain(found):
    """What a program returned, without its backend."""
    if isinstance(found, (Vector, Matrix)):
        return found.dtype, found.shape, found.nvals, [x.tolist() for x in found.to_coo()]
    if isinstance(found, Scalar):
        return found.value
    if isinstance(found, (tuple, list)) or hasattr(found, "__next__"):
        return [plain(one) for one in found]
    return found
