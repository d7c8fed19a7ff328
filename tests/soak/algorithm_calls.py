"""Every algorithm on random graphs, each result proved by a checker or compared with the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import Draw, Failed

from lagpu.algebra.tables import binary
from lagpu.backends.protocol import Backend
from lagpu.catalog import ALGORITHMS
from lagpu.core.matrix import Matrix
from lagpu.errors import CheckFailed
from lagpu.selftest import algorithms
from lagpu.selftest.algorithms import Inputs
from lagpu.selftest.cases import difference

_SIZES = (1, 2, 5, 31, 32, 33)
_BIG_SIZES = (200, 1023, 1025)
_SLOW = ("betweenness", "diameter", "path", "triangle", "clustering", "transitivity")


def run(draw: Draw, backend: Backend, _seed: int) -> int:
    """Draw a graph and an algorithm, run it, prove and compare the result; return 1."""
    row = draw(st.sampled_from(ALGORITHMS), label="algorithm")
    is_slow = row.slow or row.check is None or any(word in row.name for word in _SLOW)
    n, edges = _graph(draw, _SIZES if is_slow else _SIZES + _BIG_SIZES)
    s, t = (draw(st.integers(0, n - 1), label="vertex") for _ in range(2))
    many = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=66), label="sources")
    found = []
    for place in (backend, "cpu"):
        try:
            found.append(outcome(row.key, place, n, edges, s, t, many))
        except CheckFailed as error:
            found.append(f"CheckFailed: {error}")
    if differs := difference(*found, rounded=True):
        raise Failed(
            "from lagpu.selftest.cases import difference\n"
            "from soak.algorithm_calls import outcome\n\n\ndef test_soak():\n"
            f"    given = {n}, {edges!r}, {s}, {t}, {many!r}\n"
            f"    found = outcome({row.key!r}, {backend.name!r}, *given)\n"
            f"    right = outcome({row.key!r}, 'cpu', *given)\n"
            "    assert not difference(found, right, rounded=True)\n"
            f"    # {differs}\n"
        )
    return 1


def outcome(
    key: str,
    place: Backend | str,
    n: int,
    edges: list[tuple[int, int, int]],
    source: int,
    target: int,
    sources: list[int],
) -> Any:
    """Return the outcome of a row of `ALGORITHMS` on the graphs of some edges."""
    (row,) = (row for row in ALGORITHMS if row.key == key)
    return algorithms.outcome(row, Inputs(_matrices(n, edges, place), source, target, sources))


def _matrices(n: int, edges: list[tuple[int, int, int]], place: Backend | str) -> dict[str, Matrix]:
    """Return the graphs of some edges, by `Algorithm.graph`."""
    i, j, weights = np.array(edges, np.int64).reshape(-1, 3).T

    def made(rows: Any, cols: Any, values: Any = True) -> Matrix:
        dup_op = binary.lor if values is True else binary.min
        return Matrix.from_coo(rows, cols, values, nrows=n, ncols=n, dup_op=dup_op, backend=place)

    up = i < j
    lengths = weights / 4 if len(edges) % 2 else weights
    return {
        "pattern": made(i, j),
        "undirected": made(np.r_[i, j], np.r_[j, i]),
        "weighted": made(i, j, lengths),
        "positive": made(i, j, lengths + 1),
        "acyclic": made(i[up], j[up]),
    }


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
