"""Policies of the paper systems."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lagpu.backends.gpu.ops.planner import BEAMER, BFS2D_RATIO, HIRAGUSHI
from lagpu.backends.grid.dealing import Shuffle, layout
from lagpu.backends.grid.engine import Engine
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.local import LocalEngine
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.systems.exchange import copied, may_gather, on_one_device
from lagpu.backends.grid.travel import FORMS
from lagpu.backends.policies import choice, number, read_arguments, require_policy
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL
from lagpu.errors import InvalidValue, LagpuError
from lagpu.operations import Handle

_CHOICES = {
    "rule": ("push", "ratio", "edges"),
    "messages": (*FORMS, "direction"),
    "parents": ("late", "sent"),
    "share": ("no", "yes"),
    "claims": ("atomic", "scatter", "sort"),
}
_NUMBERS = ("ratio", "alpha", "beta")


@dataclass(frozen=True)
class System:
    """A search of many pieces by a paper.

    Attributes
    ----------
    rule : str
        ``"push"`` at each level; ``"ratio"``: each piece by itself pulls where its frontier over
        its unvisited vertices is at least `ratio`; ``"edges"``: all pieces alike, by `alpha` and
        `beta` over the sums of all.
    ratio, alpha, beta : float
        See `rule`.
    messages : str
        Sets of vertices are sent as a ``"list"``, as a ``"bitmap"``, or as the ``"shorter"`` of the
        two, message by message; ``"direction"``: lists in a level that pushes, else bitmaps.
    parents : str
        ``"sent"`` with each vertex, or asked for ``"late"``: after the last level.
    share : str
        ``"yes"``: before it pulls, a row of pieces is told what the owners have visited.
    claims : str
        How a push has each vertex once: by ``"atomic"`` claims; by a ``"scatter"`` in which any
        source of a vertex wins, compacted; or the list of all neighbours is ``"sort"`` ed.
    kernels : tuple of str
        The kernels for a push and for a pull of few and of many entries a column, where the places
        offer a choice.
    """

    rule: str
    messages: str
    parents: str
    share: str
    kernels: tuple[str, str, str]
    ratio: float = BFS2D_RATIO
    alpha: float = BEAMER[0]
    beta: float = BEAMER[1]
    claims: str = "atomic"


#: Bisson and others 2016; Bernaschi and others 2018; Hiragushi and Takahashi 2013.
SYSTEMS = {
    "kepler": System(
        "push", "shorter", "late", "no", ("push_active", "pull_scalar", "pull_warp")
    ),
    "bfs2d": System(
        "ratio", "shorter", "late", "yes", ("push_active", "pull_scalar", "pull_warp")
    ),
    "hiragushi": System(
        "edges", "direction", "sent", "yes", ("push_queue", "pull_bitmap", "pull_bitmap"),
        alpha=HIRAGUSHI[0], beta=HIRAGUSHI[1],
    ),
}  # fmt: skip


_ARGUMENTS = {
    name: {key: choice(getattr(system, key), *words) for key, words in _CHOICES.items()}
    | {key: number(getattr(system, key)) for key in _NUMBERS}
    for name, system in SYSTEMS.items()
}


def policies_with_systems(place: Backend) -> tuple[str, ...]:
    """Return the names that a policy may have on a grid of such places."""
    return tuple(dict.fromkeys((*place.capabilities.policies, *SYSTEMS)))


def system_of(policy: str | None) -> System | None:
    """Return the system that a policy names, as ``"bfs2d:ratio=0.1,share=no"``, or None.

    Raises
    ------
    InvalidValue
        If the system has no such argument, or not this value of it, or its text is no policy.
    """
    name, _, text = (policy or "").partition(":")
    system = SYSTEMS.get(name)
    if policy is None or system is None:
        return None
    require_policy(tuple(SYSTEMS), policy)
    found = dataclasses.replace(system, **read_arguments(name, text, _ARGUMENTS[name]))
    if found.messages == "direction" and found.rule == "ratio":
        raise InvalidValue(
            "policy: messages=direction needs one direction for all pieces, which rule=ratio does "
            "not give. Use rule=edges, or messages=shorter."
        )
    return found


# ------------------------------------------------------------------------------------------
# Sub-clusters of a grid: groups of pieces with a copy of the graph each, which share out sources.
#
# A group has some pieces of a process, or some processes.
#
# Paper: Bernaschi and others 2018, section 4.2.


Array = np.ndarray[Any, Any]
T = TypeVar("T")

# Bytes of a copy, roughly: an entry in both forms, and as it arrives; a vertex in the pointers
# and in the vectors of a search and its sweep.
_ENTRY, _VERTEX = 24, 120


def cluster_size(pieces: Pieces, A: GridMatrix, asked: int | None, free: int) -> int:
    """Return the number of pieces of a sub-cluster: as asked for, or the smallest that fits.

    A sub-cluster is a part of a process, or some processes.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    A : GridMatrix
        The graph.
    asked : int or None
        The number.
    free : int
        Free bytes of the piece that has least.

    Raises
    ------
    InvalidValue
        If there are no sub-clusters of so many pieces.
    """
    count, here = pieces.engine.size, len(pieces.engine.local)
    sizes = [d for d in range(1, here + 1) if here % d == 0]
    sizes += [here * m for m in range(2, count // here + 1) if count // here % m == 0]
    if asked is not None:
        if asked not in sizes:
            raise InvalidValue(
                f"pieces: the graph cannot be shared by {asked} of {count} pieces, of which each "
                f"process has {here}. Use one of {', '.join(map(str, sizes))}."
            )
        return asked
    needed = _ENTRY * pieces.nvals(A) + _VERTEX * A.shape[0]
    devices = [place.device for place in pieces.places]
    on_host = any(device is None or device.name == "sim" for device in devices)
    own = (np.array([pieces.engine.beside]),)  # hosts may have more processes and fewer
    most = max(int(its[0]) for (its,) in pieces.engine.gather([own] * here)[0])
    beside = here * most if on_host else 1
    fitting = [d for d in sizes if 2 * beside * needed // d <= free]
    return fitting[0] if fitting else count


def _on_one_device(pieces: Pieces, A: GridMatrix, home: Backend, k: int) -> Handle:
    """Return the copy on a device, which the matrix keeps if another half of it would fit.

    Searches keep their workspaces with it.
    """
    found = A.copies.get(k)
    if found is None:
        made = on_one_device(pieces, A, home)
        if 2 * home.free_bytes() > made.csc().nbytes:
            A.copies[k] = made
        found = made
    return found


class GridClusters:
    """The sub-clusters of a grid of which this process has some; see `Clusters`.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    size : int
        Pieces of a sub-cluster: a divisor of those of a process, or a multiple.
    make : callable
        Returns the backend over some places, and the engine of all of its pieces.
    """

    def __init__(
        self, pieces: Pieces, size: int, make: Callable[[Engine, Sequence[Backend]], Backend]
    ) -> None:
        self._pieces, self._size, self._here = pieces, size, len(pieces.engine.local)
        first, here = pieces.engine.local[0], self._here
        self.count = pieces.engine.size // size
        last = first + max(here, size)
        self.numbers: Sequence[int] = range(first // size, last // size)
        self._group = pieces.engine.group(size) if size > here else None
        places = [pieces.places[k : k + size] for k in range(0, here, size)]
        self.backends: Sequence[Backend] = [
            group[0] if size == 1 else make(self._group or LocalEngine(size), group)
            for group in places
        ]

    @property
    def apart(self) -> bool:
        """See `Clusters`."""
        if len(self.backends) == 1:
            return False
        devices = [place.device for place in self._pieces.places]
        return None not in devices and len({id(device) for device in devices}) == len(devices)

    def run(self, work: Callable[[], T]) -> T:
        """See `Clusters`."""
        return self._pieces.changes.run("clusters", work)

    def inside(self, work: Callable[[], T]) -> T:
        """See `Clusters`."""
        if self._group is None:
            return work()
        try:
            return self._group.inside(work)
        except LagpuError as error:
            if error.process is not None:
                self._pieces.engine.agree()  # the one whose error it is tells all
            raise

    def copy(self, A: GridMatrix, k: int) -> Handle:
        """See `Clusters`."""
        return self.run(lambda: self._copy(A, k))

    def _copy(self, A: GridMatrix, k: int) -> Handle:
        pieces, size = self._pieces, self._size
        if size == 1 and may_gather(pieces, A):
            with pieces.lock:
                return _on_one_device(pieces, A, self.backends[k], k)
        each = len(self.numbers)  # in every process
        chosen = range(self.count)
        if size <= self._here:
            chosen = range(k, self.count, each)
        new = tuple(map(Shuffle, A.shape)) if pieces.order == "random" and size > 1 else None
        by = layout(A.shape, (size, 1), new)
        with pieces.lock:
            own = copied(pieces, A, by, chosen)
        shape = (A.shape[0], A.shape[1])
        symmetric = True if A.symmetric else None
        place, first = self.backends[k], self.numbers[k] * size

        def part(home: Backend, local: Any, q: int) -> Handle:
            col_ptr, row_idx = own.pop(first + q)
            return home.matrix_from_csc(
                col_ptr, row_idx, np.True_, BOOL, local.shape(q), symmetric if size == 1 else None
            )

        parts = place.capabilities.parts
        if parts is None:
            return part(place, by, 0)
        return self.inside(lambda: parts.matrix(part, BOOL, shape, symmetric))

    def total(self, parts: Sequence[Array]) -> Array:
        """See `Clusters`."""
        nothing = np.zeros(0)
        first = self.numbers[0]
        given = [
            (parts[p // self._size - first] if p % self._size == 0 else nothing,)
            for p in self._pieces.engine.local
        ]
        received = [of for (of,) in self._pieces.engine.gather(given)[0]][:: self._size]
        total = np.zeros_like(received[0])
        for of in received:
            total += of
        return total
