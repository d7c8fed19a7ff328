"""Statements to which the processes of a job give different things, and what the error says."""

import functools
import tempfile
import types
from pathlib import Path

import numpy as np

from lagpu import (
    FP64,
    INT32,
    INT64,
    Matrix,
    Scalar,
    Vector,
    algorithms,
    binary,
    generators,
    indexunary,
    io,
    monoid,
    semiring,
    unary,
)
from lagpu.backends.guard import overridden

N = 40


def objects(place):
    """Return operands that every process makes alike, on its piece of a grid."""
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, N, 160), rng.integers(0, N, 160)
    make = functools.partial(Vector.from_coo, size=N, backend=place)
    values, shape = rng.integers(1, 9, 160), {"nrows": N, "ncols": N}
    A = Matrix.from_coo(rows, cols, values, INT64, **shape, dup_op=binary.min, backend=place)
    return types.SimpleNamespace(
        place=place,
        A=A,
        B=A.dup(),
        u=make(np.arange(0, N, 2), np.arange(20)),
        v=make(np.arange(0, N, 3), np.arange(14)),
        w=make(np.arange(N), np.arange(N)),
        m=make([1, 2, 3], [True, False, True]),
        q=make([3], True),
        s=Scalar(INT64, 5),
    )


def read(o):
    """Return what the objects hold; every process calls it."""
    found = [x.to_coo() for x in vars(o).values() if isinstance(x, (Vector, Matrix))]
    return [array.tolist() for arrays in found for array in arrays]


def _select(o, r):
    o.w << o.u.select(">", 3 + r)


def _defaults(o, r):
    o.w << binary.minus(o.u | o.v, left_default=r, right_default=0)


def _read_scalar(o, r):
    o.s << [3, 4][r]
    o.w(o.m.S) << o.s


def _to(o, r):
    other = Vector.from_dense(np.arange(N) + r, backend="cpu")
    return other.to(o.place)


def _policy(o, r):
    place = overridden(o.place, None, ["bfs2d:ratio=0", "bfs2d:ratio=0.5"][r])
    A = Matrix.from_coo([0, 1], [1, 2], True, nrows=N, ncols=N, backend=place)
    algorithms.bfs_levels(A, 0)


def _read(o, **options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "edges.txt"
        file.write_text("0 1\n1 2\n")
        return io.read(file, backend=o.place, **options)


LONG = np.arange(9000)


def _long(o, r):
    values = LONG.copy()
    values[4321] += r
    return Vector.from_dense(values, backend=o.place)


def _order(o, r):
    indices = LONG[::-1].copy() if r else LONG
    v = Vector.from_dense(LONG, backend=o.place)
    return v[indices].new()


#: By a name: what runs with the objects and the rank, what the error names, and its two values.
KINDS = {
    # those of the review
    "a number": (lambda o, r: o.w << 1 + r, "value is 1 in process 0 and 2 in process 1"),
    "a number at a mask": (lambda o, r: o.w(o.m.S).__lshift__(-1 - r), "value is -1 .* and -2 "),
    "a source": (lambda o, r: algorithms.bfs_levels(o.A, [1, 2][r]), "i is 1 in .* and 2 in"),
    "a semiring": (
        lambda o, r: o.w << [semiring.min_plus, semiring.max_plus][r](o.u @ o.A),
        "semiring is semiring.min_plus in process 0 and semiring.max_plus in process 1",
    ),
    "an operator": (
        lambda o, r: o.w << [binary.plus, binary.times][r](o.u | o.v),
        "op is binary.plus in .* and binary.times in process 1, in ewise_add",
    ),
    "a unary operator": (
        lambda o, r: o.w << [unary.ainv, unary.abs][r](o.u),
        "op is unary.ainv .* unary.abs",
    ),
    "a bound number": (lambda o, r: o.w << o.u.apply(binary.plus, 2 + r), "right is 2 .* 3 in"),
    "a thunk": (_select, "thunk is 3 .* 4 in"),
    "the sense of a mask": (
        lambda o, r: o.w([o.m.S, ~o.m.S][r]).__lshift__(o.u),
        "complement is False .* True in",
    ),
    "the structure of a mask": (
        lambda o, r: o.w([o.m.S, o.m.V][r]).__lshift__(o.u),
        "structure is True .* False in",
    ),
    "a mask or none": (lambda o, r: (o.w(o.m.S) if r else o.w()).__lshift__(o.u), "mask is None"),
    "replace": (lambda o, r: o.w(o.m.S, replace=bool(r)).__lshift__(o.u), "replace is False"),
    "an accumulator": (
        lambda o, r: o.w(accum=[binary.plus, binary.min][r]).__lshift__(o.u),
        "accum is binary.plus .* binary.min",
    ),
    "an index list": (
        lambda o, r: o.w[[1, 2 + r]].__lshift__(4),
        r"indices is 2 int64 \[1 2\] .* 2 int64 \[1 3\]",
    ),
    "values of an array": (
        lambda o, r: Vector.from_coo([1, 2], [5, 6 + r], size=N, backend=o.place),
        r"values is 2 int64 \[5 6\] .* \[5 7\]",
    ),
    "indices of an array": (
        lambda o, r: Vector.from_coo([1, 2 + r], [5, 6], size=N, backend=o.place),
        r"indices is 2 int64 \[1 2\] .* \[1 3\]",
    ),
    "entries of a matrix": (
        lambda o, r: Matrix.from_coo([0], [r], 1, nrows=N, ncols=N, backend=o.place),
        r"cols is 1 int64 \[0\] .* \[1\]",
    ),
    # further ones
    "an operand": (
        lambda o, r: o.w << semiring.plus_times([o.u, o.v][r] @ o.A),
        r"operand is the INT64 of shape 40 made in statement \d+ in process 0 and the INT64 .* \d+",
    ),
    "an equal matrix": (lambda o, r: o.w << semiring.any_pair(o.u @ [o.A, o.B][r]), "matrix is"),
    "an output": (lambda o, r: [o.w, o.v][r].__lshift__(7), "out is the INT64 of shape 40 made in"),
    "a transpose": (lambda o, r: o.w << semiring.any_pair(o.u @ [o.A, o.A.T][r]), "transpose is"),
    "another kind of statement": (
        lambda o, r: o.w << (o.u.apply(unary.abs) if r else o.u),
        "operation is assign in process 0 and apply in process 1",
    ),
    "defaults": (_defaults, "defaults"),
    "a monoid": (lambda o, r: o.w.reduce([monoid.min, monoid.max][r]).new().value, "monoid is"),
    "an aggregator": (lambda o, r: o.A.reduce_rowwise(["min", "max"][r]).new(), "monoid is"),
    "an element read": (lambda o, r: o.w[3 + r].new().value, r"position is 3 in .* 4 in"),
    "an element of a matrix": (lambda o, r: o.A.get(1, 2 + r), r"position\[1\] is 2 in"),
    "an element set": (lambda o, r: o.w.__setitem__(3, 8 + r), "value is 8 .* 9 in"),
    "an element deleted": (lambda o, r: o.w.__delitem__(3 + r), "i is 3 in .* 4 in"),
    "an index operator": (
        lambda o, r: o.w << [indexunary.rowindex, indexunary.rowle][r](o.u, 1),
        "op is indexunary.rowindex",
    ),
    "a column": (lambda o, r: o.w << o.A[:, r], "column is 0 .* 1 in"),
    "a type": (
        lambda o, r: Vector([INT64, INT32][r], N, backend=o.place),
        "dtype is INT64 .* INT32",
    ),
    "a size": (lambda o, r: Vector(INT64, N + r, backend=o.place), "size is 40 .* 41 in"),
    "a shape": (
        lambda o, r: Matrix(INT64, N, N + r, backend=o.place),
        r"shape\[1\] is 40 .* 41 in",
    ),
    "a size of entries": (
        lambda o, r: Vector.from_coo([0], [1], size=[256, 512][r], backend=o.place),
        "size is 256 .* 512 in",
    ),
    "a shape of entries": (
        lambda o, r: Matrix.from_coo(
            [9], [[9, 500][r]], 1, nrows=[256, 512][r], ncols=512, backend=o.place
        ),
        "cols is|shape",
    ),
    "a new size": (lambda o, r: o.w.resize(N + 1 + r), "size is 41 .* 42 in"),
    "the type of a copy": (lambda o, r: o.w.dup(dtype=[FP64, INT32][r]), "dtype is FP64"),
    "a duplicate's operator": (
        lambda o, r: Matrix.from_coo(
            [0, 0],
            [1, 1],
            [2, 3],
            nrows=N,
            ncols=N,
            backend=o.place,
            dup_op=[binary.min, binary.max][r],
        ),
        "dup_op is binary.min",
    ),
    "a policy": (
        _policy,
        "policy is bfs2d:ratio=0 in process 0 and bfs2d:ratio=0.5 in process 1, in mxv",
    ),
    "the direction of a file": (
        lambda o, r: _read(o, directed=bool(r)),
        "directed is False .* True in process 1, in read",
    ),
    "the names in a file": (lambda o, r: _read(o, renumber=bool(r)), "renumber is False"),
    "what is compared": (lambda o, r: o.w.isequal([o.u, o.v][r]), "y is the"),
    "a diagonal": (lambda o, r: o.A.diag(r).nvals, "k is 0 in .* 1 in"),
    "a scalar": (_read_scalar, "value is 3 .* 4 in"),
    "a damping factor": (lambda o, r: algorithms.pagerank(o.A, 0.8 + r / 10), "left is "),
    "how many sources": (
        lambda o, r: algorithms.betweenness_centrality(o.A, 2 + r, seed=1),
        "sources is 2 int64 .* 3 int64 .*, in betweenness",
    ),
    "pieces of a sub-cluster": (
        lambda o, r: algorithms.betweenness_centrality(o.A, 2, seed=1, pieces=1 + r),
        "pieces is 1 in process 0 and 2 in process 1, in clusters",
    ),
    "the seed of a graph": (
        lambda o, r: generators.kronecker(4, seed=r, backend=o.place),
        "seed is 0 in process 0 and 1 in process 1, in kronecker",
    ),
    "the size of a graph": (
        lambda o, r: generators.kronecker(4 + r, backend=o.place),
        "scale is 4",
    ),
    "a seed of sources": (
        lambda o, r: algorithms.betweenness_centrality(o.A, 3, seed=r),
        "sources is 3 int64",
    ),
    "a copy from the host": (_to, "values is 40 int64"),
    "one value of many": (
        _long,
        r"values is 9000 int64 \[0 1 2 3 4 ...\] \(checksum [0-9a-f]{8}\)",
    ),
    "the order of many": (_order, r"indices is 9000 int64"),
}
