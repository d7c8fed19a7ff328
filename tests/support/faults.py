"""Statements and loops that an error or an interrupt ends at any of their calls."""

import contextlib
import gc
import sys
from pathlib import Path

import numpy as np

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Scalar, Vector, binary, loop, semiring
from lagpu.host.source import operation_at

N = 40
PACKAGE = str(Path(lagpu.__file__).parent)


def _random(seed, count, most=N):
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(most, count, replace=False)), rng.integers(1, 9, count)


class Objects:
    """Operands and outputs in several forms, made again for each attempt."""

    def __init__(self, place):
        rng = np.random.default_rng(7)
        edges = rng.integers(0, N, 150), rng.integers(0, N, 150)
        where = {"backend": place}
        self.A = Matrix.from_coo(
            *edges, rng.integers(1, 9, 150), INT64, nrows=N, ncols=N, dup_op=binary.min, **where
        )
        self.B = Matrix.from_coo(*edges, nrows=N, ncols=N, dup_op=binary.lor, **where)
        self.u, self.w, self.m, self.f = (
            Vector.from_coo(*_random(k, 12), INT64, size=N, **where) for k in range(4)
        )
        self.full = Vector.from_dense(rng.random(N), **where)
        self.empty, self.depth = Vector(FP64, N, **where), Vector(INT32, N, **where)
        self.q = Vector.from_coo([3], True, size=N, **where)
        self.C = Matrix.from_coo([0, 5, 9], [1, 2, 39], [4, 5, 6], nrows=N, ncols=N, **where)
        rows = [0, 1, 2]
        self.Q = Matrix.from_coo(rows, [3, 5, 7], True, BOOL, nrows=3, ncols=N, **where)
        self.R = Matrix.from_coo(rows, [3, 5, 7], 1.0, FP64, nrows=3, ncols=N, **where)
        self.D = Matrix(INT32, 3, N, **where)
        self.more, self.s = self.full.dup(), Scalar(INT64, 5)
        self.w(self.m.S) << 2  # as a bitmap, where there are such

    def seen(self):
        """What each of them holds, read in more than one way."""
        found = []
        for x in vars(self).values():
            if isinstance(x, Scalar):
                found.append(x.value)
                continue
            arrays = [part.tolist() for part in x.to_coo()]
            assert x.nvals == len(arrays[0])
            again = [part.tolist() for part in x.dup().to_coo()]
            assert arrays == again
            found.append([x.shape, *arrays])
        return found


def _set(o):
    o.w[3] = 9


def _set_first(o):
    o.empty[3] = 9


def _delete(o):
    del o.w[int(o.w.to_coo()[0][0])]


def _values(o):
    o.w[[1, 5, 7]] << Vector.from_dense([7, 8, 9], like=o.w)


#: Single statements; each writes one object.
STATEMENTS = {
    "apply": lambda o: o.w << o.u.apply("ainv"),
    "apply to itself": lambda o: o.w(~o.m.S) << o.w.apply("plus", 1),
    "apply, masked": lambda o: o.w(o.m.V, accum=binary.plus, replace=True) << o.u.apply("plus", 2),
    "select": lambda o: o.w(o.m.S) << o.u.select("valuegt", 3),
    "ewise_add": lambda o: o.w(~o.m.S) << o.u.ewise_add(o.f, binary.times),
    "ewise_mult into a sum": lambda o: o.full(accum=binary.plus) << o.u.ewise_mult(o.full, "times"),
    "ewise over a full one": lambda o: o.full << o.u.ewise_add(o.m, "plus"),
    "fill": lambda o: o.w << 7,
    "fill, masked": lambda o: o.empty(o.m.S) << 7,
    "assign at indices": _values,
    "set": _set,
    "set the first": _set_first,
    "delete": _delete,
    "clear": lambda o: o.w.clear(),
    "product": lambda o: o.w << semiring.min_plus(o.A @ o.u),
    "product, masked": lambda o: o.w(~o.m.S, replace=True) << semiring.any_pair(o.q @ o.A),
    "product into a sum": lambda o: o.w(accum=binary.plus) << semiring.plus_times(o.A.T @ o.u),
    "product into its operand": lambda o: o.u << semiring.plus_times(o.u @ o.A),
    "selection": lambda o: o.w << semiring.min_second(o.u @ o.f.selection()),
    "rows": lambda o: o.w << o.A.reduce_rowwise("plus"),
    "column": lambda o: o.w(o.m.S) << o.A[:, 3],
    "extract": lambda o: o.w << o.u[np.arange(N)[::-1].copy()],
    "reduce": lambda o: o.s(accum=binary.plus) << o.u.reduce("plus"),
    "matrix, apply": lambda o: o.C << o.A.apply("ainv"),
    "matrix, masked product": lambda o: o.C(o.A.S) << semiring.plus_times(o.A @ o.A),
    "matrix, ewise": lambda o: o.C(accum=binary.plus) << o.A.ewise_add(o.A.T, "plus"),
    "matrix, fill": lambda o: o.C(o.A.S) << 5,
    "matrix, assign": lambda o: o.C[[1, 2], [3, 4]] << 8,
    "matrix, transpose": lambda o: o.C << o.A.T,
    "bitmap, product": lambda o: o.Q << semiring.any_pair(o.Q @ o.B),
    "bitmap, sums": lambda o: o.R(~o.Q.S, replace=True) << semiring.plus_first(o.R @ o.B),
    "bitmap, fill": lambda o: o.D(o.Q.S) << 3,
    "bitmap, apply": lambda o: o.R(accum=binary.plus) << o.R.apply("plus", 1),
}


def _search(o, times=None):
    for depth in loop(until_empty=o.q, times=times):
        o.depth(o.q.S) << depth
        o.q(~o.depth.S, replace=True) << semiring.any_pair(o.q @ o.B)


def _relax(o):
    for _ in loop(until_unchanged=o.w):
        o.w(accum=binary.min) << semiring.min_plus(o.w @ o.A)


def _sums(o):
    for _ in loop(times=3):
        o.full << semiring.plus_first(o.full @ o.B)
        o.s << o.full.reduce("plus")
        o.empty << o.full.apply("times", 2)


def _bits(o):
    for depth in loop(until_empty=o.Q):
        o.D(o.Q.S) << depth
        o.Q(~o.D.S, replace=True) << semiring.any_pair(o.Q @ o.B)


def _paths(o, times=None):
    for depth in loop(until_empty=o.R, times=times):
        o.D(o.R.S) << depth
        o.R(~o.D.S, replace=True) << semiring.plus_first(o.R @ o.B)


def _steps(o):
    for _ in loop(times=2):
        o.R(accum=binary.plus) << o.R.apply("times", 2)
        o.D << o.R.apply("plus", 1)


def _backwards(o):
    levels = Vector.from_coo(np.arange(N), np.arange(N) // 8, INT32, size=N, like=o.w)
    for here, above in lagpu.sweep(levels):
        o.empty(here.S, replace=True) << o.full.apply("plus", 1)
        o.more(above.S, replace=True) << semiring.plus_second(o.B @ o.empty)
        o.full(accum=binary.plus) << o.more


def _rows_backwards(o):
    where = np.repeat(np.arange(3), N), np.tile(np.arange(N), 3)
    levels = Matrix.from_coo(*where, where[1] // 8, INT32, nrows=3, ncols=N, like=o.w)
    share, pulled = (Matrix(FP64, 3, N, like=o.w) for _ in range(2))
    for here, above in lagpu.sweep(levels):
        share(here.S, replace=True) << o.R.apply("plus", 1)
        pulled(above.S, replace=True) << semiring.plus_first(share @ o.B)
        o.R(accum=binary.plus) << pulled.apply("times", 2)


#: Loops that run as one program, where there is such.
LOOPS = {
    "search": _search,
    "search, bounded": lambda o: _search(o, 2),
    "relax": _relax,
    "sums": _sums,
    "bits": _bits,
    "paths": _paths,
    "paths, bounded": lambda o: _paths(o, 2),
    "steps": _steps,
    "sweep": _backwards,
    "sweep of rows": _rows_backwards,
}


class Interrupts:
    """Raises an error at one of the places where Python may look for a signal.

    Those are the beginnings of functions and the ends of calls of compiled code. What runs by
    itself, as finalizers do, is left out: an error there is lost. So is a generator
    expression that goes on: where `any` or `next` leaves it early, Python closes it, for which it
    calls its profiler but does not look for signals, and otherwise an error there is one of `any`.
    """

    def __init__(self, at, error=KeyboardInterrupt):
        self.at, self.error, self.seen = at, error, 0

    def __call__(self, frame, event, _argument):
        if event not in ("call", "c_return"):
            return
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or _in_finalizer(frame):
            return
        if event == "call" and code.co_name == "<genexpr>" and operation_at(frame) == "YIELD_VALUE":
            return
        self.seen += 1
        if self.seen - 1 == self.at:
            sys.setprofile(None)
            raise self.error("injected")

    def __enter__(self):
        gc.disable()
        sys.setprofile(self)
        return self

    def __exit__(self, *exc_info):
        sys.setprofile(None)
        gc.enable()


def _in_finalizer(frame):
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def nothing():
    yield
