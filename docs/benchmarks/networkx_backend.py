"""Functions of NetworkX beside the same functions of its backend lagpu, the conversion apart.

    OMP_NUM_THREADS=1 python docs/benchmarks/networkx_backend.py karate urand:14 --json found.json

Each result is compared with NetworkX' own. Times are of the wall and of the processor; the second
ones count where other programs run on the machine and lagpu computes on it too.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import networkx as nx
import typer

import lagpu
from lagpu.bench.harness import Report, Row, envelope
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json
from lagpu.io import to_networkx
from lagpu.nx.graph import convert_from_nx

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Calls = dict[str, Callable[[Any, dict[str, Any]], Any]]
ENOUGH = 2.0  # seconds after which a call is not repeated
TURNS = 3


def calls_on(G: Any) -> Calls:
    """Return the calls, by name, with results that can be compared."""
    s, t = sorted(G, key=lambda v: (-G.degree(v), v))[:2]
    pairs = [(s, v) for v in list(G)[:1000] if v != s]
    community = nx.community
    few: dict[str, Any] = {"k": 4, "seed": 1}

    def edges(H: Any) -> int:
        return len(H.edges)

    return {
        "single_source_shortest_path_length": lambda G, b: nx.single_source_shortest_path_length(
            G, s, **b
        ),
        "bfs_edges": lambda G, b: list(nx.bfs_edges(G, s, **b)),
        "single_source_dijkstra_path_length": lambda G, b: nx.single_source_dijkstra_path_length(
            G, s, **b
        ),
        "dijkstra_path_length": lambda G, b: nx.dijkstra_path_length(G, s, t, **b),
        "connected_components": lambda G, b: {*map(frozenset, nx.connected_components(G, **b))},
        "core_number": lambda G, b: nx.core_number(G, **b),
        "triangles": lambda G, b: nx.triangles(G, **b),
        "clustering": lambda G, b: nx.clustering(G, **b),
        "pagerank": lambda G, b: nx.pagerank(G, tol=1e-9, max_iter=500, **b),
        "hits": lambda G, b: nx.hits(G, tol=1e-9, max_iter=500, **b),
        "eigenvector_centrality": lambda G, b: nx.eigenvector_centrality(G, max_iter=500, **b),
        "katz_centrality": lambda G, b: nx.katz_centrality(G, alpha=0.002, **b),
        "closeness_centrality(u)": lambda G, b: nx.closeness_centrality(G, s, **b),
        "betweenness_centrality(k=4)": lambda G, b: nx.betweenness_centrality(G, **few, **b),
        "edge_betweenness_centrality(k=4)": lambda G, b: nx.edge_betweenness_centrality(
            G, **few, **b
        ),
        "k_truss(k=4)": lambda G, b: edges(nx.k_truss(G, 4, **b)),
        "minimum_spanning_tree": lambda G, b: nx.minimum_spanning_tree(G, **b).size("weight"),
        "jaccard_coefficient": lambda G, b: list(nx.jaccard_coefficient(G, pairs, **b)),
        "label_propagation_communities": lambda G, b: {
            *map(frozenset, community.label_propagation_communities(G, **b))
        },
        "louvain_communities": lambda G, b: community.louvain_communities(G, **b),
    }


def graph_of(text: str) -> Any:
    """Return ``karate``, a file or such as ``kron:16``, undirected, with weights from 1 to 9."""
    if text == "karate":
        G: Any = nx.Graph(nx.karate_club_graph().edges)
    else:
        G = nx.Graph(to_networkx(load(text, lagpu.backends.get("cpu"))))
        G.remove_edges_from(list(nx.selfloop_edges(G)))
    drawn = random.Random(1)
    for *_, data in G.edges(data=True):
        data["weight"] = drawn.randint(1, 9)
    return G


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a call, and the medians of its seconds of the wall and processor."""
    walls: list[float] = []
    cpus: list[float] = []
    while len(walls) < TURNS and (not walls or walls[0] < ENOUGH):
        wall, cpu = time.perf_counter(), time.process_time()
        found = call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return found, *(float(f"{statistics.median(x):.3g}") for x in (walls, cpus))


def agree(name: str, G: Any, found: Any, wanted: Any) -> bool:
    """Return whether two results are equal, floats but for rounding and the tolerance."""
    if name == "louvain_communities":  # drawn at random
        found, wanted = (nx.community.modularity(G, x) for x in (found, wanted))
        return bool(found > wanted - 0.05)
    if isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(
            agree("", G, found[v], wanted[v]) for v in wanted
        )
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(
            agree("", G, x, y) for x, y in zip(found, wanted, strict=True)
        )
    if isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-4, abs_tol=1e-4)
    return bool(found == wanted)


def measured(text: str, names: list[str]) -> list[Row]:
    """Return a row for each call on a graph."""

    def converted() -> Any:
        H = convert_from_nx(G, edge_attrs={"weight": 1}, preserve_edge_attrs=True)
        H.matrix()
        return H

    G, rows = graph_of(text), []
    graphs = {}
    for place in names:
        with lagpu.use(place):
            graphs[place] = timed(converted)
    for name, call in calls_on(G).items():
        row: Row = {"graph": Path(text).name, "nodes": len(G), "edges": len(G.edges), "call": name}
        wanted, row["networkx_s"], row["networkx_cpu_s"] = timed(
            lambda call=call: call(G, {"backend": "networkx"})
        )
        for place, (H, wall, cpu) in graphs.items():
            row |= {f"{place}_convert_s": wall, f"{place}_convert_cpu_s": cpu}
            with lagpu.use(place):
                call(H, {})  # compiles, and makes a matrix
                found, row[f"{place}_s"], row[f"{place}_cpu_s"] = timed(
                    lambda call=call, H=H: call(H, {})
                )
            if not agree(name, G, found, wanted):
                raise SystemExit(f"{name} on {place} differs from NetworkX on {text}.")
        rows.append(row)
        print(
            *(x if isinstance(x, str) else f"{x:.3g}" for x in row.values()), sep="  ", flush=True
        )
    return rows


@app.command()
def main(
    graphs: Annotated[list[str], typer.Argument(help="karate, files, or such as kron:16.")],
    backend: Annotated[list[str], typer.Option("-b", help="Backends of lagpu.")] = ["cpu"],  # noqa: B006
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Print a row for each call: seconds of NetworkX, of the conversion, and of lagpu."""
    require_writable(json, "bench")
    found: Report = {"benchmark": "networkx-backend"}
    places = [lagpu.backends.get(name) for name in backend]
    found |= envelope(places, {"networkx": nx.__version__})
    found["rows"] = [row for text in graphs for row in measured(text, backend)]
    if json is not None:
        write_json(found, json, "bench")


if __name__ == "__main__":
    app()
