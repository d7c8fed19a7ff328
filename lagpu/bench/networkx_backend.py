"""Functions of NetworkX beside the same functions of its backend lagpu, the conversion apart.

``python -m lagpu.bench.networkx_backend karate urand:16 -b cpu -b gpu --json networkx.json``

Each call is compared with NetworkX' result. Times are of the wall and of the processor: the second
ones count where other programs run on the machine and lagpu computes on it too.
"""

from __future__ import annotations

import functools
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import networkx as nx
import typer
from rich.console import Console
from rich.table import Table

from lagpu import backends
from lagpu.backends.processes import of_all
from lagpu.backends.protocol import Backend
from lagpu.bench import report
from lagpu.errors import CheckFailed, LagpuError
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json
from lagpu.io import to_networkx
from lagpu.nx import Graph, convert_from_nx, interface

__all__ = ["app", "graph_of", "measure", "show"]

DEFAULT_GRAPHS = ("karate", "urand:16")
SEED = 7
_ENOUGH = 2.0  # seconds after which a call is not repeated
_REPEATS = 3

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Times(NamedTuple):
    """Seconds of a call, medians."""

    wall: float
    cpu: float


# ------------------------------------------------------------------------------ what is called


def _calls(source: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return (function, arguments) by the text that names the call."""
    here, few = {"source": source}, {"k": 4, "seed": SEED}
    plain = ("connected_components", "core_number", "triangles")
    from_one = (
        "single_source_shortest_path_length",
        "bfs_edges",
        "single_source_dijkstra_path_length",
    )
    return {
        **{name: (name, here) for name in from_one},
        **{name: (name, {}) for name in plain},
        "pagerank": ("pagerank", {"tol": 1e-9, "max_iter": 500}),
        "closeness_centrality(u)": ("closeness_centrality", {"u": source}),
        "betweenness_centrality(k=4)": ("betweenness_centrality", few),
        "edge_betweenness_centrality(k=4)": ("edge_betweenness_centrality", few),
    }


def graph_of(text: str) -> Any:
    """Return an undirected graph without self-loops, with weights 1 to 9, of a file or a text.

    Parameters
    ----------
    text : str
        ``karate``, a file, or such as ``kron:16``.
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


# ----------------------------------------------------------------------------------- measuring


def measure(text: str, names: list[str]) -> list[dict[str, Any]]:
    """Measure one graph: a row for each call.

    Parameters
    ----------
    text : str
        As in `graph_of`.
    names : list of str
        Backends of lagpu.

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
            graphs[place] = _timed(lambda: _converted(G), backends.get())
    rows = []
    for call, (name, given) in _calls(source).items():
        row = {"graph": Path(text).name, "nodes": len(G), "edges": G.number_of_edges()}
        theirs = functools.partial(getattr(nx, name), G, backend="networkx", **given)
        wanted, times = _timed(theirs)
        row |= {"call": call, "networkx_s": times.wall, "networkx_cpu_s": times.cpu}
        for place, (converted, made) in graphs.items():
            with backends.use(place):
                ours = functools.partial(getattr(interface, name), converted, **given)
                _listed(ours())  # compiles, and makes a matrix
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
    """Return what a call gives, iterators as lists, and the median of its times.

    The processes of its `place` repeat it as often as the slowest of them.
    """
    times: list[Times] = []
    again = True
    while again and len(times) < _REPEATS:
        wall, cpu = time.perf_counter(), time.process_time()
        found = _listed(call())
        times.append(Times(time.perf_counter() - wall, time.process_time() - cpu))
        first = times[0].wall
        of_each = [[first]] if place is None else of_all(place, first)
        again = max(its for (its,) in of_each) < _ENOUGH
    return found, Times(*(float(f"{statistics.median(x):.3g}") for x in zip(*times, strict=True)))


def _listed(found: Any) -> Any:
    """Return a result, an iterator as a list."""
    return list(found) if isinstance(found, Iterator) else found


def _agree(found: Any, wanted: Any) -> bool:
    """Return True if two results are equal, floats but for rounding and the tolerance."""
    if isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_agree(found[v], wanted[v]) for v in wanted)
    if isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-6)
    return bool(found == wanted)


# ------------------------------------------------------------------------------------- running


def show(found: dict[str, Any], names: list[str], out: Console) -> None:
    """Print a report as a table, a line for each call."""
    table = Table("graph", "call", title="seconds; ratio of processor time, on gpu of wall time")
    table.add_column("NetworkX", justify="right")
    for place in names:
        for head in ("convert", place, "ratio"):
            table.add_column(head, justify="right")
    for row in found["rows"]:
        cells = [f"{row['networkx_s']:.3g}"]
        for place in names:
            kind = "" if place.startswith("gpu") else "cpu_"
            ratio = row[f"networkx_{kind}s"] / row[f"{place}_{kind}s"]
            times = (row[f"{place}_convert_s"], row[f"{place}_s"])
            cells += [*(f"{x:.3g}" for x in times), f"{ratio:.3g}"]
        table.add_row(row["graph"], row["call"], *cells)
    out.print(table)


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
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the record here.", show_default=False)
    ] = None,
) -> None:
    """Measure NetworkX beside its backend lagpu."""
    names = backend or ["cpu"]
    try:
        require_writable(json_file, "bench")
        places = [backends.get(name) for name in names]
        found: dict[str, Any] = {"benchmark": "networkx-backend"}
        found |= report.envelope(places, {"networkx": nx.__version__})
        found["rows"] = [row for text in graphs or DEFAULT_GRAPHS for row in measure(text, names)]
        if json_file is not None:
            write_json(found, json_file, "bench")
    except LagpuError as error:
        typer.echo(f"lagpu.bench: {error}", err=True)
        raise typer.Exit(1 if isinstance(error, CheckFailed) else 2) from error
    show(found, names, Console())


if __name__ == "__main__":
    app()
