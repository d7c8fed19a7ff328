"""The graph of a command: how it is loaded, and how the user names its vertices."""

from __future__ import annotations

import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lagpu import generators, io
from lagpu.backends.protocol import Backend
from lagpu.cli.commands import Options
from lagpu.cli.console import busy
from lagpu.core.matrix import Matrix
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.generators.load import Facts, is_random
from lagpu.generators.load import load as load_quietly

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Names:
    """The vertices of a graph as the user writes and reads them.

    Attributes
    ----------
    ids : ndarray, (n,), optional
        Id of each vertex if the graph was renumbered; without it vertices are numbers.
    """

    ids: Array | None = None

    @cached_property
    def _place(self) -> dict[str, int]:
        assert self.ids is not None
        return {str(name): k for k, name in enumerate(self.ids.tolist())}

    def vertex(self, text: str, option: str) -> int:
        """Return the number of the vertex that an option names.

        Raises
        ------
        InvalidValue
            If the text is no number, or no id of the graph.
        """
        if self.ids is None:
            try:
                return int(text)
            except ValueError:
                raise InvalidValue(
                    f"{option}: {text!r} is no vertex. Give a number, or --renumber if the "
                    "vertices of the file have names."
                ) from None
        found = self._place.get(text)
        if found is None:
            some = ", ".join(map(str, self.ids[:5].tolist()))
            raise InvalidValue(
                f"{option}: no line of the graph names {text!r}. It has {len(self.ids)} vertices, "
                f"such as {some}."
            )
        return found

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
        """Return the vertices of the ids in a file, (k,).

        Raises
        ------
        FileFormatError
            If the graph does not have one of them.
        """
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
        if self.sources is None:
            return ""
        return "of each" if self.each else "jointly"

    def start(self, command: str, names: Names = Names()) -> int | list[int]:
        """Return the vertex, or the vertices, to search from.

        Raises
        ------
        InvalidValue
            If `require_one` raises it, `sources` is not a list, or there is no such vertex.
        """
        self.require_one(command)
        if self.source is not None:
            return names.vertex(self.source, "--source")
        words = (self.sources or "").split(",")
        if names.ids is not None:
            return [names.vertex(word, "--sources") for word in words]
        try:
            return [int(word) for word in words]
        except ValueError:
            raise InvalidValue(
                f"--sources: {self.sources!r} is not a list of vertices. Write 0,5,9."
            ) from None

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
    options: Options,
    place: str | Backend = "",
    *,
    dup_op: str | None = None,
    seed_for: str = "",
) -> Loaded:
    """Make or read the graph of a command.

    Parameters
    ----------
    options : Options
        The options of the command.
    place : str or Backend
        The backend, in place of the one in the options.
    dup_op : str, optional
        Combines the values of an edge that a file gives twice; by default they are summed.
    seed_for : str
        What else the seed is for; without it a seed that makes no graph is refused.

    Raises
    ------
    InvalidValue
        For an option that this graph ignores, and for a device such as ``/dev/zero``.
    LagpuError
        If the graph cannot be read or made.
    """
    start = time.perf_counter()
    graph, directed, backend = options.graph, options.directed, place or options.backend
    is_made = generators.is_spec(graph)
    if options.seed is not None and not seed_for:
        require_random(graph)
    if is_made and directed is not None:
        option = "--directed" if directed else "--undirected"
        raise InvalidValue(f"{option}: {graph} is made, not read from a file. Leave it out.")
    if is_made and options.renumber:
        raise InvalidValue(f"--renumber: {graph} is made, not read from a file. Leave it out.")
    if not is_made:
        require_no_device(Path(graph))
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
    """Return the sizes and the degrees of a graph."""
    with busy("counting degrees"):
        return Facts.of(A)
