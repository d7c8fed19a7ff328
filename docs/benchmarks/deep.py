"""Deep graphs on cpu: loops as calls of csgraph, by statement, and other libraries; and NetworkX.

The ways run by turns, on one thread. NetworkX calls run with and without lagpu as a backend in its
default configuration, on a new graph each time, so conversion is included.

    python docs/benchmarks/deep.py luxembourg_osm.mtx.gz email-Enron.txt.gz --json deep.json
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import graphblas
import networkx as nx
import numpy as np
import typer
from scipy import sparse
from scipy.sparse import csgraph

import lagpu
from lagpu import algorithms
from lagpu.bench.harness import Report, Row, envelope
from lagpu.core.matrix import Matrix
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Calls = dict[str, Callable[[], Any]]


def by_turns(calls: Calls, turns: int, clock: Callable[[], float]) -> dict[str, float]:
    """Return the median milliseconds of each call."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-1, turns):
        for name, call in calls.items():
            start = clock()
            call()
            found[name].extend([(clock() - start) * 1e3] if turn >= 0 else [])
    return {name: float(np.median(ms)) for name, ms in found.items()}


def by_statement(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call whose loops run statement by statement."""

    def eager() -> Any:
        with lagpu.eager():
            return call()

    return eager


def problems(A: Matrix) -> Iterator[tuple[str, Calls]]:
    """Yield what is computed, and the ways to do so, lagpu's first."""
    rows, cols, _ = A.to_coo()
    n, rng = A.nrows, np.random.default_rng(1)
    lengths = rng.integers(1, 256, len(rows))
    W = Matrix.from_coo(rows, cols, lengths, nrows=n, ncols=n, backend="cpu")
    S = sparse.csr_array((lengths.astype(float), (rows, cols)), shape=(n, n))
    hub = int(np.argmax(np.bincount(rows, minlength=n)))
    sources = algorithms.betweenness.sample(A, 4, 1)

    def scipy_levels() -> Any:
        order, above = csgraph.breadth_first_order(S, hub)
        return order, above

    yield "levels", {"lagpu": lambda: algorithms.bfs_levels(A, hub), "scipy": scipy_levels}
    yield (
        "distances",
        {
            "lagpu": lambda: algorithms.sssp(W, hub),
            "scipy": lambda: csgraph.dijkstra(S, indices=hub),
        },
    )
    others: Calls = {"scipy": lambda: csgraph.connected_components(S, directed=False)}
    between: Calls = {}
    once = rows < cols
    try:
        import igraph
    except ImportError:
        pass
    else:
        G = igraph.Graph(n=n, edges=np.stack([rows[once], cols[once]], 1))
        others["igraph"] = lambda: G.connected_components().membership
        between["igraph"] = lambda: G.betweenness(sources=sources)
    try:
        import networkit
    except ImportError:
        pass
    else:
        networkit.setNumberOfThreads(1)
        K = networkit.GraphFromCoo((rows[once], cols[once]), n)
        others["networkit"] = lambda: networkit.components.ConnectedComponents(K).run()
        between["networkit"] = lambda: networkit.centrality.EstimateBetweenness(K, 4).run()
    yield "components", {"lagpu": lambda: algorithms.connected_components(A), **others}
    yield (
        "betweenness, 4 sources",
        {"lagpu": lambda: algorithms.betweenness_centrality(A, 4, seed=1), **between},
    )


def libraries(graphs: list[str], turns: int) -> Iterator[Row]:
    """Yield a row for each graph, problem and other library; milliseconds of the processor."""
    place = lagpu.backends.get("cpu")
    for graph in graphs:
        A = load(graph, place)
        for what, calls in problems(A):
            place.last_loop = ""
            calls["lagpu"]()
            ran = place.last_loop
            found = by_turns(
                calls | {"statements": by_statement(calls["lagpu"])}, turns, time.process_time
            )
            for peer in found.keys() - {"lagpu", "statements"}:
                yield {
                    "kind": "library", "graph": Path(graph).name.partition(".")[0], "call": what,
                    "peer": peer, "peer_ms": found[peer], "statements_ms": found["statements"],
                    "lagpu_ms": found["lagpu"], "ratio": found["lagpu"] / found[peer], "ran": ran,
                }  # fmt: skip


def deep_graphs() -> dict[str, Callable[[], Any]]:
    """Return what makes NetworkX' deep graphs, by name."""

    def grid() -> Any:
        G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(110, 110))
        rng = np.random.default_rng(2)
        for _, _, edge in G.edges(data=True):
            edge["weight"] = int(rng.integers(1, 101))
        return G

    return {"grid": grid, "path": lambda: nx.path_graph(12_000, nx.DiGraph)}


def networkx_calls(name: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield calls of NetworkX on a graph, by their text."""
    sources = [97 * k for k in range(10)]
    if name == "grid":
        yield (
            "10 x single_source_dijkstra_path_length, cutoff=300",
            lambda G: [nx.single_source_dijkstra_path_length(G, s, cutoff=300) for s in sources],
        )
        yield (
            "10 x dijkstra_path_length of near pairs",
            lambda G: [nx.dijkstra_path_length(G, s, s + 3) for s in sources],
        )
        yield (
            "single_source_dijkstra_path_length",
            lambda G: nx.single_source_dijkstra_path_length(G, 0),
        )
        yield (
            "10 x single_source_dijkstra_path_length",
            lambda G: [nx.single_source_dijkstra_path_length(G, s) for s in sources],
        )
        yield (
            "20 x shortest path lengths in edges",
            lambda G: [nx.single_source_shortest_path_length(G, s) for s in sources * 2],
        )
        yield (
            "10 x closeness_centrality of a node",
            lambda G: [nx.closeness_centrality(G, s) for s in sources],
        )
        yield "eccentricity of 10 nodes", lambda G: nx.eccentricity(G, sources)
        yield "core_number", lambda G: nx.core_number(G)
    else:
        yield (
            "single_source_dijkstra_path_length, cutoff=5",
            lambda G: nx.single_source_dijkstra_path_length(G, 0, cutoff=5),
        )
        yield (
            "10 x number_strongly_connected_components",
            lambda G: [nx.number_strongly_connected_components(G) for _ in range(10)],
        )
        yield (
            "10 x is_directed_acyclic_graph",
            lambda G: [nx.is_directed_acyclic_graph(G) for _ in range(10)],
        )
        yield (
            "10 x bfs_edges, depth_limit=5",
            lambda G: [list(nx.bfs_edges(G, s, depth_limit=5)) for s in sources],
        )
        yield "10 x bfs_edges", lambda G: [list(nx.bfs_edges(G, s)) for s in sources]
    yield "betweenness_centrality, k=5", lambda G: nx.betweenness_centrality(G, k=5, seed=1)


def backends(turns: int) -> Iterator[Row]:
    """Yield a row for each call of NetworkX; seconds of the processor."""
    nx.config.warnings_to_ignore.add("cache")
    for name, make in deep_graphs().items():
        for text, call in networkx_calls(name):
            seconds: dict[str, list[float]] = {"networkx": [], "lagpu": []}
            for _ in range(turns + 1):
                for way, found in seconds.items():
                    G = make()
                    with nx.config(backend_priority=[way] if way == "lagpu" else []):
                        start = time.process_time()
                        call(G)
                        found.append(time.process_time() - start)
            found_s = {way: float(np.median(times[1:])) for way, times in seconds.items()}
            yield {
                "kind": "networkx", "graph": name, "call": text, "networkx_s": found_s["networkx"],
                "lagpu_s": found_s["lagpu"], "ratio": found_s["lagpu"] / found_s["networkx"],
            }  # fmt: skip


@app.command()
def main(
    graphs: Annotated[list[str], typer.Argument(help="Files, or graphs such as kron:16.")],
    turns: Annotated[int, typer.Option(help="Turns of each way.")] = 7,
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Print a row for each call and each other library."""
    require_writable(json, "bench")
    graphblas.ss.config["nthreads"] = 1
    found: Report = envelope([lagpu.backends.get("cpu")], {}) | {"rows": []}
    for row in (*libraries(graphs, turns), *backends(max(1, turns // 2))):
        found["rows"].append(row)
        print(*(f"{x:.3g}" if isinstance(x, float) else x for x in row.values()), sep="  ")
    if json is not None:
        write_json(found, json, "bench")


if __name__ == "__main__":
    app()
