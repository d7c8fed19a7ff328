"""Every algorithm on random graphs, each result proved by a checker or compared with the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import Draw, Failed

from lagpu import algorithms, check
from lagpu.algebra.tables import binary
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import LagpuError

_SIZES = (1, 2, 5, 31, 32, 33)
_BIG_SIZES = (200, 1023, 1025)
_SLOW = ("betweenness", "remoteness", "diameter", "route", "triangle", "clustering", "transitivity")

# Text that raises CheckFailed for a wrong answer; A is directed, U the same both ways, W has
# lengths, D has no cycle; s is a vertex, t a vertex, many is a list of vertices.
PROVED = (
    "check.check_levels(A, s, a.bfs_levels(A, s))",
    "check.check_parents(A, s, a.bfs_parents(A, s))",
    "levels, parents = a.bfs(A, s); check.check_levels(A, s, levels); "
    "check.check_parents(A, s, parents, levels)",
    "check.check_paths(A, s, a.count_shortest_paths(A, s))",
    "check.check_levels_multi(A, many, a.bfs_levels_multi(A, many))",
    "check.check_parents_multi(A, many, a.bfs_parents_multi(A, many))",
    "check.check_levels_joint(A, many, a.bfs_levels_joint(A, many))",
    "check.check_k_hop(A, many, 2, a.k_hop(A, many, 2))",
    "check.check_components(U, a.connected_components(U))",
    "check.check_components(U, a.connected_components(U, method='bfs'))",
    "check.check_components(A, a.strongly_connected_components(A), strong=True)",
    "check.check_distances(W, s, a.sssp(W, s))",
    "check.check_distances(W, s, a.bellman_ford(W, s))",
    "check.check_distances(W, s, a.delta_stepping(W, s))",
    "check.check_distances(W, s, a.delta_stepping(W, s, 0.75))",
    "check.check_topological_levels(D, a.topological_levels(D))",
    "check.check_topological_order(D, a.topological_order(D))",
    "check.check_core_numbers(U, a.core_number(U))",
    "check.check_independent_set(U, a.maximal_independent_set(U, seed=s))",
    "check.check_pagerank(A, a.pagerank(A))",
    "check.check_betweenness(A, a.betweenness_centrality(A))",
    "check.check_betweenness(A, a.betweenness_centrality(A, endpoints=True), endpoints=True)",
    "check.check_edge_betweenness(A, a.edge_betweenness_centrality(A))",
    "check.check_remoteness(A, a.closeness_centrality(A), 'closeness')",
    "check.check_remoteness(A, a.harmonic_centrality(A), 'harmonic')",
    "check.check_triangle_count(S, a.triangle_count(S))",
    "check.check_triangles(S, a.triangles(S))",
    "check.check_clustering(S, a.clustering(S))",
    "check.check_transitivity(S, a.transitivity(S))",
    "sides, cycle = a.bipartite_sides(U); "
    "check.check_sides(U, sides) if cycle is None else check.check_odd_cycle(U, cycle)",
    "check.check_route(A, s, t, a.shortest_path(A, s, t))",
    "check.check_route(A, s, t, a.shortest_path(A, s, t, method='single'))",
)
# Text whose value is the same on the backend and on cpu.
COMPARED = (
    "a.has_path(A, s, t)",
    "a.neighborhood(A, many, 2)",
    "a.is_bipartite(U)",
    "a.k_core(U)",
    "a.average_clustering(S)",
    "a.eccentricity(U, s)",
    "a.diameter(U)",
    "a.radius(U)",
    "a.center(U)",
    "a.periphery(U)",
    "a.pseudo_diameter(U, s)",
    "a.betweenness_estimate(A, min(3, A.nrows), seed=s)",
)


def run(draw: Draw, backend: Backend, _seed: int) -> int:
    """Draw a graph and an algorithm, run it, prove or compare the result; return 1."""
    text = str(draw(st.sampled_from(PROVED + COMPARED), label="algorithm"))
    is_slow = any(word in text for word in _SLOW) or text in COMPARED
    n, edges = _graph(draw, _SIZES if is_slow else _SIZES + _BIG_SIZES)
    s, t = (draw(st.integers(0, n - 1), label="vertex") for _ in range(2))
    many = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=66), label="sources")
    found = [_outcome(text, n, edges, s, t, many, place) for place in (backend, "cpu")]
    if found[0] != found[1] and not (text in COMPARED and _close(*found)):
        raise Failed(
            "from lagpu import algorithms as a\nfrom lagpu import check\n"
            "from soak.algorithm_calls import matrices, plain\n\n\ndef test_soak():\n"
            f"    n, edges, s, t, many = {n}, {edges!r}, {s}, {t}, {many!r}\n"
            f"{_lines(text, backend)}    # {backend.name}: {found[0]!r}\n    # cpu: {found[1]!r}\n"
        )
    return 1


def matrices(
    n: int, edges: list[tuple[int, int, int]], place: Backend | str
) -> tuple[Matrix, Matrix, Matrix, Matrix, Matrix]:
    """Return the graphs of some edges: directed, both ways, simple, weighted, without cycles."""
    i, j, weights = np.array(edges, np.int64).reshape(-1, 3).T

    def made(rows: Any, cols: Any, values: Any = True) -> Matrix:
        dup_op = binary.lor if values is True else binary.min
        return Matrix.from_coo(rows, cols, values, nrows=n, ncols=n, dup_op=dup_op, backend=place)

    off = i != j
    up = i < j
    both = np.r_[i, j], np.r_[j, i]
    simple = np.r_[i[off], j[off]], np.r_[j[off], i[off]]
    lengths = weights / 4 if len(edges) % 2 else weights
    return made(i, j), made(*both), made(*simple), made(i, j, lengths), made(i[up], j[up])


def _graph(draw: Draw, sizes: tuple[int, ...]) -> tuple[int, list[tuple[int, int, int]]]:
    n = draw(st.sampled_from(sizes), label="n")
    if n <= _SIZES[-1]:
        vertex = st.integers(0, n - 1)
        edges = draw(
            st.lists(st.tuples(vertex, vertex, st.integers(0, 9)), max_size=3 * n), label="edges"
        )
        return n, [tuple(e) for e in edges]
    rng = np.random.default_rng(draw(st.integers(0, 2**16), label="seed"))
    m = n * draw(st.sampled_from((0, 1, 2, 12)), label="degree")
    i, j, w = rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 10, m)
    if draw(st.booleans(), label="hub"):
        i[: m // 4] = n // 2
    if draw(st.booleans(), label="deep"):
        j = np.minimum(i + 1 + j % 3, n - 1)
    return n, list(zip(i.tolist(), j.tolist(), w.tolist(), strict=True))


def _lines(text: str, backend: Backend) -> str:
    """Return the lines of a test for a text of `PROVED` or `COMPARED`."""
    made = "    A, U, S, W, D = matrices(n, edges, {!r})\n"
    if text in PROVED:
        return f"{made.format(backend.name)}    {text}\n"
    return (
        f"{made.format(backend.name)}    found = plain({text})\n"
        f"{made.format('cpu')}    assert found == plain({text})\n"
    )


def _outcome(
    text: str,
    n: int,
    edges: list[tuple[int, int, int]],
    s: int,
    t: int,
    many: list[int],
    place: Backend | str,
) -> Any:
    """Return the value of a compared text, None for a proved one, or the error as text."""
    names = dict(zip("AUSWD", matrices(n, edges, place), strict=True))
    scope = names | {"a": algorithms, "check": check, "s": s, "t": t, "many": many}
    try:
        if text in PROVED:
            exec(text, scope)
            return None
        return plain(eval(text, scope))
    except LagpuError as error:
        return f"{type(error).__name__}: {error}"


def plain(x: Any) -> Any:
    """Return a result as lists and numbers."""
    if isinstance(x, tuple):
        return [plain(part) for part in x]
    if isinstance(x, Vector):
        return [part.tolist() for part in x.to_coo()]
    return x


def _close(x: Any, y: Any) -> bool:
    """Return True if two results differ by the rounding of sums alone."""
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(_close, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return bool(np.isclose(x, y, rtol=1e-9, atol=1e-12, equal_nan=True))
    return bool(x == y)
