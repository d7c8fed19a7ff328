"""The graph of a command, how the user names its vertices, and the commands that describe one."""

from __future__ import annotations

import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.filesize import decimal

from lagpu import algorithms, backends, generators, io
from lagpu.backends.protocol import Backend
from lagpu.cli.commands import Options
from lagpu.cli.console import SAVED, busy, print_json, print_lines, require_file, show
from lagpu.core import Matrix
from lagpu.dtypes import Array
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.generators.load import Facts, is_random
from lagpu.generators.load import load as load_quietly
from lagpu.host.fitting import FittingTable
from lagpu.io.files import require_writable


@dataclass(frozen=True, eq=False)
class Names:
    """The vertices of a graph as the user writes and reads them."""

    ids: Array | None = None  # of each vertex if the graph was renumbered, (n,); else numbers

    @cached_property
    def _place(self) -> dict[str, int]:
        assert self.ids is not None
        return {str(name): k for k, name in enumerate(self.ids.tolist())}

    def vertex(self, text: str, option: str) -> int:
        """Return the number of the vertex that an option names, or raise if there is none."""
        if self.ids is None:
            try:
                return int(text)
            except ValueError:
                raise InvalidValue(
                    f"{option}: {text!r} is no vertex. Give a number, or --renumber if the "
                    "vertices of the file have names."
                ) from None
        if text not in self._place:
            some = f"{len(self.ids)} vertices, such as {', '.join(map(str, self.ids[:5].tolist()))}"
            raise InvalidValue(f"{option}: no line of the graph names {text!r}. It has {some}.")
        return self._place[text]

    def vertices(self, text: str, option: str = "--sources") -> list[int]:
        words = text.split(",")
        if self.ids is not None:
            return [self.vertex(word, option) for word in words]
        try:
            return [int(word) for word in words]
        except ValueError:
            fact = f"{text!r} is not a list of vertices"
            raise InvalidValue(f"{option}: {fact}. Write 0,5,9.") from None

    def shown(self, vertices: Any) -> Any:
        """Return the name of a vertex, or of each one in a list."""
        if isinstance(vertices, list):
            return [self.shown(vertex) for vertex in vertices]
        if self.ids is None or vertices is None:
            return vertices
        return self.ids[vertices : vertices + 1].tolist()[0]

    def of(self, vertices: Array) -> Array:
        """Return the ids of an array of vertices, (k,)."""
        return vertices if self.ids is None else self.ids[vertices]

    def places(self, ids: Sequence[Any], file: str) -> Array:
        """Return the vertices of the ids in a file, (k,), or raise if there is none."""
        found = [self._place.get(str(name), -1) for name in ids]
        if -1 in found:
            odd = ids[found.index(-1)]
            raise FileFormatError(
                f"read: {file}: the graph has no vertex {str(odd)[:60]!r}. Make the file from this "
                "graph, with --renumber."
            )
        return np.array(found, np.int64)


class Begin(NamedTuple):
    """The sources of a search: ``--source``, or ``--sources`` with or without ``--each``."""

    source: str | None = None
    sources: str | None = None
    each: bool = False

    @property
    def kind(self) -> str:
        """An empty string for one source; "jointly" or "of each" for several."""
        return "" if self.sources is None else "of each" if self.each else "jointly"

    def start(self, command: str, names: Names = Names()) -> int | list[int]:
        """Return the vertex, or the vertices, to search from."""
        self.require_one(command)
        if self.source is not None:
            return names.vertex(self.source, "--source")
        return names.vertices(self.sources or "")

    def require_one(self, command: str) -> None:
        """Raise unless one of `source` and `sources` is given, `each` only with the latter."""
        if (self.source is None) is (self.sources is None):
            raise InvalidValue(f"{command}: give one of --source 0 and --sources 0,5,9.")
        if self.each and self.sources is None:
            raise InvalidValue("--each: needs --sources. Give --sources 0,5,9.")


class Loaded(NamedTuple):
    """A graph, the names of its vertices, and the milliseconds that loading has taken."""

    A: Matrix
    names: Names
    ms: float


def load(
    options: Options, place: str | Backend = "", *, dup_op: str | None = None, seed_for: str = ""
) -> Loaded:
    """Make or read the graph of a command, and refuse options that this graph ignores."""
    # `place` replaces the backend of the options. `dup_op` combines the values of an edge that a
    # file gives twice; by default they are summed. A seed that makes no graph is refused unless
    # `seed_for` says what else it is for.
    start = time.perf_counter()
    graph, directed, backend = options.graph, options.directed, place or options.backend
    is_made = generators.is_spec(graph)
    if options.seed is not None and not seed_for:
        require_random(graph)
    if not is_made:
        require_no_device(Path(graph))
    elif directed is not None or options.renumber:
        option = {True: "--directed", False: "--undirected", None: "--renumber"}[directed]
        raise InvalidValue(f"{option}: {graph} is made, not read from a file. Leave it out.")
    names = Names()
    how: dict[str, Any] = {"directed": directed, "dup_op": dup_op}
    with busy(f"{'making' if is_made else 'reading'} {graph}"):
        if options.renumber:
            A, ids = io.read(graph, backend=backend, renumber=True, **how)
            names = Names(ids)
        else:
            A = load_quietly(graph, backend, seed=options.seed, **how)
    if options.orientation != "auto":
        A.orientation = str(options.orientation)
    return Loaded(A, names, (time.perf_counter() - start) * 1e3)


def require_random(graph: str) -> None:
    """Raise for a seed of a graph that has no random part."""
    if not is_random(graph):
        raise InvalidValue(f"--seed: nothing about {graph} is random. Leave it out.")


def require_no_device(file: Path) -> None:
    """Raise for a device, which has no end; a pipe, as in ``lagpu info <(zcat graph.gz)``, has."""
    try:
        mode = file.stat().st_mode
    except OSError:  # the reader of the file reports why
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InvalidValue(f"read: {file} is a device. Give a file.")


def facts_of(A: Matrix) -> Facts:
    with busy("counting degrees"):
        return Facts.of(A)


# ---- the commands


def info(options: Options, as_json: bool) -> None:
    """Print the sizes, the degrees and the memory of a graph, on a grid of each piece too."""
    A = load(options).A
    facts = facts_of(A)
    degree, loops = facts.out_degree, facts.has_loop
    csc, search = backends.bytes_on_gpu(degree, facts.symmetric)
    one_form = backends.bytes_on_gpu(degree, facts.symmetric, one_form=True)[1]
    found: dict[str, Any] = {
        "graph": options.graph, "vertices": facts.vertices, "edges": facts.edges,
        "edges_kind": facts.kind, "entries": facts.entries, "symmetric": facts.symmetric,
        "self_loops": int(loops.sum()),
        "isolated": int(np.count_nonzero((degree == loops) & (facts.in_degree == loops))),
        "degree_min": int(degree.min()), "degree_mean": float(degree.mean()),
        "degree_max": int(degree.max()), "csc_bytes": csc, "bfs_bytes": search,
        "bfs_bytes_csc": search if facts.symmetric else one_form,
    }  # fmt: skip
    found |= {"pieces": pieces} if (pieces := _pieces(A)) else {}
    if as_json:
        print_json(found)
        return
    degrees = f"min {found['degree_min']}, mean {found['degree_mean']:.2f}"
    kind = "symmetric, so an undirected graph" if facts.symmetric else "not symmetric: directed"
    lines = {
        "graph": options.graph,
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
        size = decimal(found["bfs_bytes_csc"])
        lines["memory"] += f", {size} with one that only pulls (--orientation csc)"
    if pieces:
        most, nbytes = (max(of[name] for of in pieces) for name in ("entries", "csc_bytes"))
        lines["pieces"] = (
            f"{len(pieces)} of {A.backend.name}, each with at most {most:,} entries, "
            f"{decimal(nbytes)} as columns without values"
        )
    print_lines(lines)


def _pieces(A: Matrix) -> list[dict[str, int]]:
    """Return entries and bytes of the part of each piece, in their order; none without a grid."""
    parts = A.backend.capabilities.parts
    if parts is None:
        return []
    columns = parts.columns(A.data)

    def of_piece(_home: Backend, piece: int) -> tuple[np.ndarray[Any, Any]]:
        entries = np.diff(columns.pop(piece)[0])
        return (np.array([entries.sum(), backends.bytes_on_gpu(entries, False)[0]]),)

    found = [numbers.tolist() for (numbers,) in parts.gather(of_piece)]
    return [{"entries": entries, "csc_bytes": nbytes} for entries, nbytes in found]


def generate(spec: str, out: Path, seed: int | None) -> None:
    require_writable(out)
    if seed is not None and generators.is_spec(spec):
        require_random(spec)
    with busy(f"making {spec}"):
        A = generators.from_spec(spec, seed=seed, backend="cpu")
    _write(A, out)


def convert(options: Options, out: Path, ids: Path | None) -> None:
    """Read a graph and write it, and the ids of its vertices if they are wanted."""
    require_writable(out)
    if ids is not None and not options.renumber:
        raise InvalidValue("--ids: vertices have no ids. Add --renumber, or leave it out.")
    require_file("--ids", ids, SAVED)
    A, names, _ = load(options)
    _write(A, out)
    if ids is not None and names.ids is not None:
        io.write_vector(np.arange(A.nrows), names.ids, ids)


def _write(A: Matrix, out: Path) -> None:
    with busy(f"writing {out.name}"):
        io.write(A, out)
    show(f"{out}: {A.nrows:,} vertices, {A.nvals:,} entries")


def list_backends(as_json: bool) -> None:
    found = backends.available()
    if as_json:
        print_json(found)
    else:
        print_lines({f"{name:>5}": state for name, state in found.items()})


def list_algorithms(as_json: bool) -> None:
    """Print each algorithm with the first line of its docstring."""
    docs = {name: getattr(algorithms, name).__doc__ or "" for name in algorithms.__all__}
    lines = {name: doc.strip().splitlines()[0] for name, doc in docs.items()}
    if as_json:
        print_json(lines)
        return
    table = FittingTable("algorithm", "result")
    for name, line in lines.items():
        table.add_row(name, line)
    show(table)
