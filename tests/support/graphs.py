"""Small graphs for the tests of algorithms: drawn, awkward, and as NetworkX has them."""

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from lagpu import Matrix, binary

WEIGHTS = {
    "ones": st.just(1),
    "whole": st.integers(0, 9),
    "float": st.floats(0, 4, allow_subnormal=False),
}


def drawn(draw, backend, *, directed=None, max_n=16, weights="ones", loops=True, degree=3):
    """Draw a matrix: parallel edges merged to the least weight, some self-loops, any components."""
    n = draw(st.integers(1, max_n), label="n")
    vertex = st.integers(0, n - 1)
    edge = st.tuples(vertex, vertex, WEIGHTS[weights])
    edges = draw(st.lists(edge, max_size=degree * n), label="edges")
    if directed is None:
        directed = draw(st.booleans(), label="directed")
    if not directed:
        edges += [(v, u, w) for u, v, w in edges]
    edges = [e for e in edges if loops or e[0] != e[1]]
    return matrix(n, edges, backend, weights=weights)


def matrix(n, edges, backend, *, weights="ones"):
    """Return the matrix of (u, v) or (u, v, weight) triples."""
    rows, cols = ([e[k] for e in edges] for k in (0, 1))
    values = True
    if weights != "ones":
        values = np.array([e[2] for e in edges], np.int64 if weights == "whole" else np.float64)
    return Matrix.from_coo(
        np.array(rows, np.int64),
        np.array(cols, np.int64),
        values,
        nrows=n,
        ncols=n,
        dup_op=binary.land if weights == "ones" else binary.min,
        backend=backend,
    )


def both_ways(edges):
    return [*edges, *((v, u, *w) for u, v, *w in edges)]


def networkx_of(A, *, directed=True):
    """Return the graph over 0 .. n-1 with the values as weights."""
    rows, cols, values = A.to_coo()
    G = nx.DiGraph() if directed else nx.Graph()
    G.add_nodes_from(range(A.nrows))
    edges = zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True)
    G.add_weighted_edges_from((u, v, int(w) if w is True else w) for u, v, w in edges)
    return G


def entries(v):
    return dict(zip(*(x.tolist() for x in v.to_coo()), strict=True))


def random_edges(n, count, seed):
    generator = np.random.default_rng(seed)
    return [tuple(e) for e in generator.integers(0, n, (count, 2)).tolist()]


#: Graphs that hurt, by name: (n, undirected edges).
AWKWARD = {
    "one vertex": (1, []),
    "one self-loop": (1, [(0, 0)]),
    "no edges": (5, []),
    "self-loops": (4, [(v, v) for v in range(4)]),
    "path": (9, [(v, v + 1) for v in range(8)]),
    "backward path": (9, [(v + 1, v) for v in range(8)]),
    "odd cycle": (7, [(v, (v + 1) % 7) for v in range(7)]),
    "even cycle": (8, [(v, (v + 1) % 8) for v in range(8)]),
    "star": (34, [(0, v) for v in range(1, 34)]),
    "complete": (5, [(u, v) for u in range(5) for v in range(u)]),
    "two parts": (10, [(0, 4), (4, 8), (8, 0), (9, 3), (3, 1)]),
    "isolated source": (6, [(1, 2), (2, 3), (3, 1)]),
    "grid": (12, [(v, v + 1) for v in range(12) if v % 4 < 3] + [(v, v + 4) for v in range(8)]),
    "random": (33, random_edges(33, 60, 1)),
}
