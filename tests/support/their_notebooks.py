"""What the notebooks of python-graphblas do, as programs of ours: one statement, one operation.

The installed package does not hold those notebooks, so a program here is written from what its
notebook uses: the same constructors, methods, operators, masks and accumulators in the same order,
on small graphs of our own. What only shows a value is left out: every value is compared anyway.
Random order is drawn from seeds, since each statement runs once in either library.
"""

import random

import graphblas as gb
import networkx as nx
import numpy as np
from graphblas import Matrix, Scalar, Vector, binary, dtypes, monoid, op, semiring, unary
from scipy.sparse import coo_array

# Nine vertices in three parts; the second edge list has a way from vertex 1 to every vertex.
PARTS = ([0, 0, 1, 2, 4, 6, 5], [1, 3, 2, 3, 8, 8, 7])
WAYS = ([1, 1, 6, 6, 6, 4, 5, 5, 2, 3, 3, 0], [4, 6, 2, 3, 4, 5, 2, 6, 5, 0, 2, 3])
LENGTHS = [8, 4, 5, 7, 3, 7, 1, 2, 1, 3, 3, 3]
FRIENDS = ([0, 0, 0, 1, 1, 3, 2, 2, 2, 5], [1, 3, 4, 3, 4, 4, 4, 5, 6, 6])


def symmetric(edges, size):
    """Return the SciPy matrix of undirected edges."""
    rows, cols = (np.array([*a, *b]) for a, b in (edges, edges[::-1]))
    return coo_array((np.ones(rows.size, int), (rows, cols)), shape=(size, size))


def fast_sv(edges, size):
    """Connected components, statement by statement."""
    A = gb.io.from_scipy_sparse(symmetric(edges, size), name="A")
    gb.viz.draw(A)
    n = A.nrows
    stored = A.nvals
    parent = Vector(dtype=np.uint32, size=n, name="parents")
    next_grand = Vector(dtype=np.uint32, size=n, name="grandparents")
    differs = Vector(dtype=bool, size=n, name="modified?")
    where = np.arange(n)
    parent.build(where, where.astype(np.uint32))
    grand = parent.dup()
    least = parent.dup(name="Minimum grandparent")
    changed = Scalar(dtype=bool, name="changed?")
    goes_on = Scalar.from_value(True, dtype=bool, name="goes on?")
    while goes_on:
        least(binary.min) << op.min_second(A @ grand)
        parent(binary.min)[where] << least
        parent << op.min(parent | least)
        parent(binary.min) << op.min(least | grand)
        _, where = parent.to_coo()
        where = where.astype(np.int64)
        next_grand << parent[where]
        differs << next_grand.ewise_mult(grand, binary.ne)
        changed << differs.reduce(binary.lor)
        differs << op.ne(next_grand & grand)
        goes_on << differs.reduce(binary.lor)
        grand, next_grand = next_grand, grand
    return parent, changed.value, stored


def permuted(edges, size):
    """A graph with its vertices renamed, and back again."""
    A = gb.io.from_scipy_sparse(symmetric(edges, size))
    order = np.random.default_rng(3).permutation(A.shape[0])
    P = Matrix.from_coo(np.arange(size), order, np.full_like(order, fill_value=1), name="P")
    B = A.dup(name="AA")
    B << P.T @ A @ P
    back = A.dup()
    back << P @ B @ P.T
    G = nx.convert_matrix.from_scipy_sparse_array(gb.io.to_scipy_sparse(B, format="csr"))
    return back.isequal(A), sorted(G.degree)


def level_bfs(edges, source):
    """Levels of a search by loop, and its first level once more."""
    A = Matrix.from_coo(edges[0], edges[1], [True for _ in edges[0]])
    gb.viz.draw(A)
    level = Vector(dtypes.INT32, A.nrows)
    frontier = Vector(bool, A.nrows)
    frontier[source] << True
    more = Scalar(bool)
    depth = 0
    while True:
        depth += 1
        level[:](mask=frontier.V) << depth
        frontier(~level.S, replace=True) << frontier.vxm(A, semiring.lor_land)
        more << frontier.reduce(monoid.lor, allow_empty=False)
        if not more:
            break
    level.clear()
    frontier.clear()
    frontier[source] << True
    level[:](mask=frontier.V) << 1
    frontier(~level.S, replace=True) << frontier.vxm(A, semiring.lor_land)
    more << frontier.reduce(monoid.lor, allow_empty=False)
    return level, "on" if more else "done"


def parent_bfs(edges, source):
    """Parents of a search by loop, and its first level once more."""
    A = Matrix.from_coo(edges[0], edges[1], [True for _ in edges[0]])
    n = A.nrows
    own = Vector(dtypes.UINT64, n)
    own.build(range(n), range(n))
    parent = Vector(dtypes.UINT64, n)
    parent[source] << source
    front = Vector(dtypes.UINT64, n)
    front[source] << 1
    while front.nvals > 0:
        front << own.ewise_mult(front, binary.first)
        front(~parent.S, replace=True) << front.vxm(A, semiring.min_first)
        parent(binary.plus) << front
    parent.clear()
    parent[source] << source
    front.clear()
    front[source] << 1
    state = "on" if front.nvals > 0 else "done"
    front << own.ewise_mult(front, binary.first)
    front(~parent.S, replace=True) << front.vxm(A, semiring.min_first)
    parent(binary.plus) << front
    return parent, state


def shortest_paths(edges, lengths, source):
    """Distances, with an accumulator and with a diagonal of zeros."""
    rows, cols = edges
    m = Matrix.from_coo(rows, cols, lengths)
    gb.viz.draw(m)
    v = Vector.from_coo([source], [0], dtype=m.dtype, size=m.nrows)
    v = Vector(m.dtype, m.nrows)
    v[source] << 0
    w = v.dup()
    w << v.vxm(m, semiring.min_plus)
    w = v.dup()
    w(binary.min) << v.vxm(m, semiring.min_plus)
    w(binary.min) << w.vxm(m, semiring.min_plus)
    w = v.dup()
    while True:
        before = w.dup()
        w(binary.min) << w.vxm(m, semiring.min_plus)
        if w.isequal(before):
            break
    same = Matrix.from_coo(range(7), range(7), [0] * 7)
    v.clear()
    v.build([source], [0])
    v << v.vxm(same, semiring.min_plus)
    v.clear()
    v.build([0, 1, 4], [14, 0, 77])
    v << v.vxm(same, semiring.min_plus)
    for i in range(m.nrows):
        m[i, i] << 0
    v.clear()
    v[source] << 0
    v << v.vxm(m, semiring.min_plus)
    while True:
        w = v.dup()
        v << v.vxm(m, semiring.min_plus)
        if v.isequal(w):
            break
    return v


def modularity(A, groups):
    """How good groups of vertices are: one row of `groups` for each, one column a vertex."""
    nc = groups.nrows
    twice = A.reduce_scalar(monoid.plus, allow_empty=False).new()
    between = Matrix(A.dtype, nrows=nc, ncols=A.nrows)
    links = Matrix(A.dtype, nrows=nc, ncols=nc)
    places = Matrix.from_coo(
        range(nc), range(nc), [True] * nc, nrows=nc, ncols=nc, dtype=dtypes.BOOL
    )
    diagonal = Matrix(A.dtype, nrows=nc, ncols=nc)
    inside = Vector(A.dtype, size=nc)
    found = Vector(dtypes.FP64, size=nc)
    between << groups.mxm(A)
    links << between.mxm(groups.T)
    diagonal(places.S) << links
    inside << diagonal.reduce_columnwise()
    found << links.reduce_columnwise(binary.plus)
    found << found.ewise_mult(found, binary.times)
    found << found.apply(binary.truediv, right=twice)
    found << found.apply(binary.times, left=-1)
    found << inside.ewise_add(found, monoid.plus)
    found << found.apply(binary.truediv, right=twice)
    return found.reduce(monoid.plus, allow_empty=False).new()


def best_group(A, groups, vertex):
    """Move a vertex to the neighbour's group that gains most; whether it moved."""
    nn, nc = A.nrows, groups.nrows
    beyond = Vector.from_coo([nn], [1], size=nc)
    between = Matrix(A.dtype, nrows=nc, ncols=nn)
    links = Matrix(A.dtype, nrows=nc, ncols=nc)
    degree = Vector(dtypes.FP64, size=nn)
    degree << A.reduce_columnwise(monoid.plus)
    total, gain = Vector(dtypes.FP64, size=nc), Vector(dtypes.FP64, size=nc)
    highest, chosen = Scalar(dtypes.FP64), Vector(dtypes.BOOL, size=nc)
    held = Vector(dtypes.INT64, size=nc)
    held << groups[:, vertex]
    own = held.to_coo()[0][0]
    at_first = modularity(A, groups)
    groups[:, vertex] << beyond
    alone = modularity(A, groups)
    twice = A.reduce_scalar(monoid.plus, allow_empty=False).new().value
    k = degree[vertex].value
    between << groups.mxm(A)
    links << between.mxm(groups.T)
    total << links.reduce_columnwise(monoid.plus)
    gain(~beyond.S, replace=True) << beyond.vxm(links)
    gain << gain.apply(binary.times, right=2 / twice)
    total << total.apply(binary.times, right=-2 * k / twice**2)
    gain << gain.ewise_mult(total, binary.plus)
    highest << gain.reduce(monoid.max, allow_empty=False)
    if highest.value > at_first.value - alone.value:
        chosen << gain.apply(binary.eq, right=highest)
        gain(chosen.V, replace=True) << gain
        indices, _ = gain.to_coo()
        best = indices[0]
        if best != own and best != nn:
            held << groups[:, best]
            groups[:, vertex] << held
            return True
    groups[:, vertex] << held
    return False


def louvain(table):
    """Groups of a graph, of the graph of its groups, and so on, with the gain of each round."""
    A = Matrix.from_dense(np.array(table), missing_value=0)
    gb.viz.draw(A)
    scores, sizes = [], []
    while True:
        n = A.nrows
        groups = Matrix.from_coo(range(n), range(n), [1] * n, nrows=n + 1, ncols=n)
        scores.append(modularity(A, groups).value)
        groups = groups.dup()
        for turn in range(20):
            order = random.Random(turn).sample(range(n), n)
            moved = [best_group(A, groups, vertex) for vertex in order]
            if not any(moved):
                break
        rows, _, _ = groups.to_coo()
        kept = sorted(set(rows))
        small = Matrix(groups.dtype, nrows=len(kept), ncols=n)
        small << groups[kept, :]
        sizes.append(small.nrows)
        if small.nrows >= n:
            break
        half = Matrix(A.dtype, nrows=small.nrows, ncols=n)
        half << small.mxm(A)
        A = Matrix(A.dtype, nrows=small.nrows, ncols=small.nrows)
        A << half.mxm(small.T)
    return scores, sizes


def page_rank(A, degree, tol=1e-4):
    """Ranks in FP32 by two vectors that change places."""
    n, damping = A.nrows, 0.85
    base = (1 - damping) / n
    old, rank = Vector(dtypes.FP32, n), Vector(dtypes.FP32, n)
    sent = Vector(dtypes.FP32, n)
    rank[:] << 1.0 / n
    scaled = degree.dup(dtype="FP32")
    scaled(accum=binary.truediv)[:] << damping
    change = 1
    for _turn in range(100):
        if change <= tol:
            break
        rank, old = old, rank
        sent << old.ewise_mult(scaled, binary.truediv)
        rank[:] << base
        rank(binary.plus) << A.T.mxv(sent, semiring.plus_second)
        old(binary.minus)[:] << rank
        old << old.apply(unary.abs)
        change = round(old.reduce(monoid.plus).value, 6)  # a sum of FP32
    return rank, _turn


def page_rank_demo():
    """Ranks of a small graph and of one from NetworkX, beside NetworkX' own."""
    A = Matrix.from_coo(
        [0, 0, 1, 2, 2, 3, 4], [2, 1, 3, 4, 3, 4, 0], [9.5, 1.5, 4.25, 0.5, 7, 6.75, 2]
    )
    gb.viz.draw(A)
    v = Vector(dtypes.FP64, 5)
    v << A.reduce_columnwise(monoid.max)
    first = A.mxv(v, semiring.min_plus).new(name="μ_0")
    A << A.apply(unary.one)
    degree = A.reduce_rowwise(monoid.plus).new()
    ranks, turns = page_rank(A, degree)
    edges = sorted(gb.io.to_networkx(A).edges())
    G = nx.erdos_renyi_graph(100, 0.1, directed=True, seed=2)
    expected = nx.pagerank(G, tol=1e-6)
    B = gb.io.from_networkx(G, dtype="UINT8")
    degree = B.reduce_rowwise(monoid.plus).new()
    found, turns = page_rank(B, degree, tol=1e-6)
    agree = all(abs(found[i].value - expected[i]) < 1e-5 for i in range(100))
    return first, ranks, edges, agree, turns


def notebooks():
    """Return each notebook's programs: (function, arguments), on objects of python-graphblas."""
    A = Matrix.from_coo(*symmetric(FRIENDS, 7).coords, 1, nrows=7, ncols=7)
    alone = Matrix.from_coo(range(7), range(7), [1] * 7, nrows=8, ncols=7)
    paired = Matrix.from_coo([0, 0, 2, 0, 2, 5, 7], range(7), [1] * 7, nrows=8, ncols=7)
    table = symmetric(FRIENDS, 7).toarray().tolist()
    one = A.apply(unary.one).new()
    return {
        "Connected Components -- FastSV": [(fast_sv, PARTS, 9), (permuted, PARTS, 9)],
        "Example B.1 -- Level BFS": [(level_bfs, WAYS, 1)],
        "Example B.3 -- Parent BFS": [(parent_bfs, WAYS, 1)],
        "Intro to GraphBLAS + SSSP example": [(shortest_paths, WAYS, LENGTHS, 1)],
        "Louvain": [
            (modularity, A, alone),
            *((best_group, A, alone.dup(), k) for k in range(7)),
            (best_group, A, paired, 4),
            (louvain, table),
        ],
        "Pagerank Demo": [(page_rank, one, one.reduce_rowwise().new()), (page_rank_demo,)],
    }
