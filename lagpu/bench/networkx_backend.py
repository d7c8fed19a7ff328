"""Functions of NetworkX beside the same functions of its backend lagpu, the conversion apart.

Each call is compared with NetworkX' result. Times are of the wall and of the processor; the second
ones count where other programs run on the machine and lagpu computes on it too.
"""

from __future__ import annotations

import functools
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import networkx as nx
import typer
from rich.console import Console

from lagpu import backends
from lagpu.backends.processes import of_all
from lagpu.backends.protocol import Backend
from lagpu.bench import harness
from lagpu.bench.harness import SEED, Report, Row, listed
from lagpu.errors import CheckFailed
from lagpu.generators.load import load
from lagpu.host.fitting import FittingTable
from lagpu.io import to_networkx
from lagpu.nx import Graph, convert_from_nx, interface

DEFAULT_GRAPHS = ("karate", "urand:16")
_ENOUGH = 2.0  # seconds after which a call is not repeated
_REPEATS = 3

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Times(NamedTuple):
    """Seconds of a call, medians."""

    wall: float
    cpu: float


def _calls(source: Any) -> dict[str, dict[str, Any]]:
    """Return the arguments of each call, by its function, which a note in brackets may follow."""
    from_source, few = {"source": source}, {"k": 4, "seed": SEED}
    return {
        "single_source_shortest_path_length": from_source,
        "bfs_edges": from_source,
        "single_source_dijkstra_path_length": from_source,
        "connected_components": {},
        "core_number": {},
        "triangles": {},
        "pagerank": {"tol": 1e-9, "max_iter": 500},
        "closeness_centrality(u)": {"u": source},
        "betweenness_centrality(k=4)": few,
        "edge_betweenness_centrality(k=4)": few,
    }


def graph_of(text: str) -> Any:
    """Return ``karate``, a file or such as ``kron:16``, undirected and without self-loops.

    Its weights are 1 to 9.
    """
    if text == "karate":
        G: Any = nx.Graph(nx.karate_club_graph().edges)
    else:
        G = nx.Graph(to_networkx(load(text, "cpu")))
        G.remove_edges_from(list(nx.selfloop_edges(G)))
    drawn = random.Random(SEED)
    for *_, data in G.edges(data=True):
        data["weight"] = drawn.randint(1, 9)
    return G


def measure(text: str, names: list[str]) -> list[Row]:
    """Measure a graph of `graph_of` on backends of lagpu: a row for each call.

    Raises
    ------
    CheckFailed
        If a result differs from NetworkX'.
    """
    G = graph_of(text)
    source = max(G, key=G.degree)
    graphs = {}
    for place in names:
        with backends.use(place):
            graphs[place] = _timed(functools.partial(_converted, G), backends.get())
    rows = []
    for call, given in _calls(source).items():
        name = call.partition("(")[0]
        row = {"graph": Path(text).name, "nodes": len(G), "edges": G.number_of_edges()}
        theirs = functools.partial(getattr(nx, name), G, backend="networkx", **given)
        wanted, times = _timed(theirs)
        row |= {"call": call, "networkx_s": times.wall, "networkx_cpu_s": times.cpu}
        for place, (converted, made) in graphs.items():
            with backends.use(place):
                ours = functools.partial(getattr(interface, name), converted, **given)
                listed(ours())  # compiles, and makes a matrix
                found, times = _timed(ours, backends.get())
            if not _agree(found, wanted):
                raise CheckFailed(f"bench: {name} on {place} differs from NetworkX on {text}.")
            row |= {
                f"{place}_convert_s": made.wall,
                f"{place}_convert_cpu_s": made.cpu,
                f"{place}_s": times.wall,
                f"{place}_cpu_s": times.cpu,
            }
        rows.append(row)
    return rows


def _converted(G: Any) -> Graph:
    """Return the graph with its weights, and a matrix on the default backend."""
    converted = convert_from_nx(G, edge_attrs={"weight": 1})
    converted.matrix()
    return converted


def _timed(call: Callable[[], Any], place: Backend | None = None) -> tuple[Any, Times]:
    """Return the result of a call, iterators as lists, and the median of its times.

    The processes of its `place` repeat it as often as the slowest of them.
    """
    times: list[Times] = []
    again = True
    while again and len(times) < _REPEATS:
        wall, cpu = time.perf_counter(), time.process_time()
        found = listed(call())
        times.append(Times(time.perf_counter() - wall, time.process_time() - cpu))
        first = times[0].wall
        of_each = [[first]] if place is None else of_all(place, first)
        again = max(its for (its,) in of_each) < _ENOUGH
    return found, Times(*(float(f"{statistics.median(x):.3g}") for x in zip(*times, strict=True)))


def _agree(found: Any, wanted: Any) -> bool:
    """Return True if two results are equal, floats but for rounding and the tolerance."""
    if isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_agree(found[v], wanted[v]) for v in wanted)
    if isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-6)
    return bool(found == wanted)


def _table(rows: list[Row], names: list[str]) -> FittingTable:
    """Return the rows as a table, a line for each call."""

    def ratio(place: str) -> Callable[[Row], str]:
        kind = "" if place.startswith("gpu") else "cpu_"
        return lambda row: f"{row[f'networkx_{kind}s'] / row[f'{place}_{kind}s']:.3g}"

    numbers: list[tuple[str, str | Callable[[Row], str]]] = [("NetworkX", "{networkx_s:.3g}")]
    for place in names:
        times = ("convert", f"{{{place}_convert_s:.3g}}"), (place, f"{{{place}_s:.3g}}")
        numbers += [*times, ("ratio", ratio(place))]
    title = "seconds; ratio of processor time, on gpu of wall time"
    return harness.table(rows, (("graph", "{graph}"), ("call", "{call}")), numbers, title=title)


@app.command()
def run(
    graphs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GRAPH]...", help="karate, files, or such as kron:16.", show_default=False
        ),
    ] = None,
    backend: Annotated[
        list[str] | None, typer.Option("-b", "--backend", help="A backend of lagpu; repeat it.")
    ] = None,
    json_file: harness.JsonFile = None,
) -> None:
    """Measure NetworkX beside its backend lagpu."""
    names = backend or ["cpu"]
    with harness.program(json_file) as keep:
        places = [backends.get(name) for name in names]
        found: Report = {"benchmark": "networkx-backend"}
        found |= harness.envelope(places, {"networkx": nx.__version__})
        found["rows"] = [row for text in graphs or DEFAULT_GRAPHS for row in measure(text, names)]
        keep(found)
    Console().print(_table(found["rows"], names))


if __name__ == "__main__":
    app()
