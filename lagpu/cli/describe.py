"""``lagpu info``, ``lagpu generate`` and ``lagpu backends``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.filesize import decimal

from lagpu import backends, generators, io
from lagpu.backends.protocol import Backend
from lagpu.cli.console import busy, console, print_json
from lagpu.cli.graphs import facts_of, load, load_named
from lagpu.cli.pages import SAVED, require_file
from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators.load import Facts, is_random, is_spec
from lagpu.io.files import require_writable


def describe(
    graph: str,
    backend: str,
    *,
    directed: bool | None,
    renumber: bool,
    seed: int | None,
    as_json: bool,
) -> None:
    """Print the sizes, the degrees and the memory of a graph, on a grid of each piece too."""
    A = load(graph, backend, directed=directed, renumber=renumber, seed=seed)
    facts = facts_of(A)
    found = _summary(graph, facts)
    pieces = _pieces(A)
    if pieces:
        found["pieces"] = pieces
    if as_json:
        print_json(found)
        return
    degrees = f"min {found['degree_min']}, mean {found['degree_mean']:.2f}"
    kind = "symmetric, so an undirected graph" if facts.symmetric else "not symmetric: directed"
    lines = {
        "graph": graph,
        "vertices": f"{found['vertices']:,}",
        "edges": f"{found['edges']:,} {facts.kind}",
        "entries": f"{found['entries']:,} stored, {kind}",
        "self-loops": f"{found['self_loops']:,}",
        "isolated": f"{found['isolated']:,} vertices without an edge to another",
        "out-degree": f"{degrees}, max {found['degree_max']:,}",
        "memory": f"{decimal(found['csc_bytes'])} as columns without values, "
        f"{decimal(found['bfs_bytes'])} with a search for levels on gpu",
    }
    if not facts.symmetric:
        one_form = decimal(found["bfs_bytes_csc"])
        lines["memory"] += f", {one_form} with one that only pulls (--orientation csc)"
    if pieces:
        entries, nbytes = (max(of[name] for of in pieces) for name in ("entries", "csc_bytes"))
        lines["pieces"] = (
            f"{len(pieces)} of {A.backend.name}, each with at most {entries:,} entries, "
            f"{decimal(nbytes)} as columns without values"
        )
    out = console()
    for name, text in lines.items():
        out.print(f"{name:>10}  {text}", markup=False, soft_wrap=True)


def _summary(graph: str, facts: Facts) -> dict[str, Any]:
    degree, loops = facts.out_degree, facts.has_loop
    csc, search = backends.bytes_on_gpu(degree, facts.symmetric)
    one_form = backends.bytes_on_gpu(degree, facts.symmetric, one_form=True)[1]
    return {
        "graph": graph,
        "vertices": facts.vertices,
        "edges": facts.edges,
        "edges_kind": facts.kind,
        "entries": facts.entries,
        "symmetric": facts.symmetric,
        "self_loops": int(loops.sum()),
        "isolated": int(np.count_nonzero((degree == loops) & (facts.in_degree == loops))),
        "degree_min": int(degree.min()),
        "degree_mean": float(degree.mean()),
        "degree_max": int(degree.max()),
        "csc_bytes": csc,
        "bfs_bytes": search,
        "bfs_bytes_csc": search if facts.symmetric else one_form,
    }


def _pieces(A: Matrix) -> list[dict[str, int]]:
    """Return entries and bytes of the part of each piece, in their order; none without a grid."""
    parts = A.backend.capabilities.parts
    if parts is None:
        return []
    columns = parts.columns(A.data)

    def of_piece(_home: Backend, piece: int) -> tuple[np.ndarray[Any, Any]]:
        entries = np.diff(columns.pop(piece)[0])
        return (np.array([entries.sum(), backends.bytes_on_gpu(entries, False)[0]]),)

    told = [numbers.tolist() for (numbers,) in parts.gather(of_piece)]
    return [{"entries": entries, "csc_bytes": nbytes} for entries, nbytes in told]


def make(spec: str, out: Path, *, seed: int | None) -> None:
    """Make a graph and write it; raise first if the file cannot be written."""
    require_writable(out)
    if seed is not None and is_spec(spec) and not is_random(spec):
        raise InvalidValue(f"--seed: nothing about {spec} is random. Leave it out.")
    with busy(f"making {spec}"):
        A = generators.from_spec(spec, seed=seed, backend="cpu")
    _write(A, out)


def convert(
    graph: str,
    out: Path,
    *,
    directed: bool | None,
    renumber: bool,
    ids: Path | None,
    seed: int | None,
) -> None:
    """Read a graph and write it, and the ids of its vertices if they are wanted."""
    require_writable(out)
    if ids is not None and not renumber:
        raise InvalidValue("--ids: vertices have no ids. Add --renumber, or leave it out.")
    require_file("--ids", ids, SAVED)
    A, names = load_named(graph, "cpu", directed=directed, renumber=renumber, seed=seed)
    _write(A, out)
    if ids is not None and names.ids is not None:
        io.write_vector(np.arange(A.nrows), names.ids, ids)


def _write(A: Matrix, out: Path) -> None:
    with busy(f"writing {out.name}"):
        io.write(A, out)
    console().print(
        f"{out}: {A.nrows:,} vertices, {A.nvals:,} entries", markup=False, soft_wrap=True
    )


def list_backends(*, as_json: bool) -> None:
    """Print each backend, and why it is unavailable."""
    found = backends.available()
    if as_json:
        print_json(found)
        return
    for name, state in found.items():
        console().print(f"{name:>5}  {state}", markup=False, soft_wrap=True)
