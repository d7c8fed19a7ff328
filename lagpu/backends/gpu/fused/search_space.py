"""What the fused searches of a matrix keep between runs, and how an error undoes a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, named_error
from lagpu.backends.gpu.kernels import GRID_BARRIER, constant
from lagpu.backends.gpu.ops.planner import CLUSTER_DEGREE, LONG_SEARCH_DEGREE
from lagpu.backends.gpu.storage import workspaces
from lagpu.backends.gpu.storage.forms import degree_behind_edges
from lagpu.backends.gpu.storage.matrix import CscMatrix, index_type
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.dtypes import INT32
from lagpu.errors import LagpuError
from lagpu.host.interrupt import heard

PLACED = constant("kPlaced")  # vertices of a list that have places


def may_last(A: CscMatrix) -> bool:
    """Whether a search may take so long that a user wants to stop it; then the host waits for it.

    Elsewhere the host goes on while the search runs, which ends soon by itself.
    """
    n, limits = A.shape[0], A.device.limits
    if limits.lasts_by_entries:
        return n + A.nvals > limits.lasts
    return n > limits.lasts and A.nvals <= LONG_SEARCH_DEGREE * n


class Workspace:
    """Arrays for the fused searches of one matrix, by one or both forms; made once and kept.

    Attributes
    ----------
    empty, hint, targets
        As in `PullSpace`; without predecessors all vertices are targets.
    degree, behind : float
        The mean degree, and `degree_behind_edges`; 0 with one form.
    cluster : int
        Thread blocks that search small frontiers together, reading each other's shared memory.
    nbytes : int
        Bytes of the workspace, without the arrays that it shares with single products.
    """

    def __init__(self, successors: CscMatrix | None, predecessors: CscMatrix | None) -> None:
        form = successors or predecessors
        assert form is not None
        device, xp = form.device, form.device.xp
        n, words, kind = form.shape[0], nwords(form.shape[0]), form.col_ptr.dtype
        push = None if successors is None else workspaces.push_space(successors)
        pull = None if predecessors is None else workspaces.pull_space(predecessors, successors)
        entry = 8 + kind.itemsize  # a vertex with the place of its edges
        self.nbytes = 12 * words
        device.require(self.nbytes, "grid search")
        self.empty: Any = None if pull is None else pull.empty
        self.hint: Any = None if pull is None else pull.hint
        self.targets = n if pull is None else pull.targets
        self.words = [xp.empty(words, np.uint32) for _ in range(3)]
        self._push, self._n, self._place = push, n, kind
        self._lists: dict[bool, dict[str, Any]] = {}
        self._both: dict[str, Any] = {}
        self.counters = xp.zeros(workspaces.SEARCH_COUNTERS, np.uint64)
        self.barrier = xp.zeros(GRID_BARRIER, np.uint32) if push is None else push.barrier
        self.result = xp.zeros(constant("kResults"), np.uint64)
        self.launches: dict[Any, CheckedLaunch] = {}
        self._found_in: Any = None
        self.degree, self.behind = form.nvals / max(n, 1), 0.0
        if successors is not None and predecessors is not None:
            self.behind = degree_behind_edges(successors, predecessors)
        self.block = block_of(device, self.degree, form.col_ptr.dtype.itemsize == 8)
        self.cluster = device.cluster_blocks if self.degree <= CLUSTER_DEGREE else 1
        solo = device.limits.cluster_solo if self.cluster > 1 else device.limits.solo
        room = device.dynamic_shared_bytes // (2 * entry)
        self.solo = min(solo, room, workspaces.MOST_ALONE // self.cluster)
        self.shared = 2 * entry * self.solo

    def lists(self, again: bool) -> dict[str, Any]:
        """Return the arrays that two lists share, by name.

        If a vertex may be in both `again`, as sources that a search does not assign first, there is
        room for all twice.
        """
        push = self._push
        if push is None:
            none = dict.fromkeys(("vertex", "start", "degree", "chunks_a", "chunks_b"))
            return {**none, "num_room": 0, "num_places": 0}
        if again not in self._lists:
            room = 2 * self._n if again else len(push.vertex)
            places = place_room(room)
            sizes = [(places, self._place), (places, np.dtype(np.uint32))]
            if again:
                sizes += [(room, push.vertex.dtype), (2 * push.num_chunks, push.chunks.dtype)]
            start, degree, *own = self._arrays(sizes)
            vertex, chunks = own or (push.vertex, push.chunks)
            self._lists[again] = {
                "vertex": vertex, "start": start, "degree": degree, "num_room": room,
                "num_places": places, "chunks_a": chunks, "chunks_b": chunks[-1:],
            }  # fmt: skip
        return self._lists[again]

    def both(self) -> dict[str, Any]:
        """Return two lists that may have all vertices each, with places, and all chunks."""
        push = self._push
        assert push is not None
        if not self._both:
            names = ("vertex", "start", "degree", "chunks")
            first = [getattr(push, name) for name in names]
            second = self._arrays([(len(x), x.dtype) for x in first])
            for name, a, b in zip(names, first, second, strict=True):
                self._both |= {f"{name}_a": a, f"{name}_b": b}
        return self._both

    def _arrays(self, sizes: list[tuple[int, np.dtype[Any]]]) -> list[Any]:
        assert self._push is not None
        device, nbytes = self._push.device, sum(count * kind.itemsize for count, kind in sizes)
        device.require(nbytes, "grid search")
        self.nbytes += nbytes
        return [device.xp.empty(count, kind) for count, kind in sizes]

    def found_in(self, device: Device, n: int) -> Any:
        """Return room for the level that each vertex is found in; made at the first call."""
        if self._found_in is None:
            device.require(4 * n, "grid search")
            self._found_in = device.xp.empty(n, np.int32)
            self.nbytes += 4 * n
        return self._found_in


def form_arguments(side: str, form: CscMatrix | None, iso: bool) -> dict[str, Any]:
    """Return the arrays of a form as search kernels name them; `side` is ``in`` or ``out``."""
    names = f"{side}_ptr", f"{side}_idx", f"{side}_values"
    if form is None:
        return dict.fromkeys(names)
    values = None if iso else form.values
    return dict(zip(names, (form.col_ptr, form.row_idx, values), strict=True))


def block_of(device: Device, degree: float, wide: bool = False) -> int:
    """Return the threads of a block that searches a matrix of this mean degree.

    With 64-bit pointers (`wide`) the kernel had better have more registers.
    """
    limits = device.limits
    block = limits.wide_search_block if wide else limits.search_block
    return min(block, limits.long_search_block) if degree <= LONG_SEARCH_DEGREE else block


def place_room(room: int) -> int:
    """Return how many vertices of both lists have places, where these have `room` in all."""
    return min(room, 2 * PLACED)


def estimated_bytes(out_degree: Any, symmetric: bool, one_form: bool = False) -> tuple[int, int]:
    """Return the bytes of a matrix without values, and with a search for INT32 levels on it.

    `out_degree` has the entries of each row. If `symmetric`, rows and columns are the same arrays,
    else a search reads both, unless it only pulls, over the columns alone (`one_form`).
    """
    n, entries, chunks = len(out_degree), int(out_degree.sum()), workspaces.num_chunks(out_degree)
    index, place = (np.dtype(index_type(count)).itemsize for count in (n, entries))
    csc = entries * index + (n + 1) * place
    kept = workspaces.pull_bytes(n) + 12 * nwords(n)
    if not one_form:
        kept += workspaces.push_bytes(n, chunks) + (4 + place) * place_room(workspaces.list_room(n))
    return csc, csc * (
        1 if symmetric or one_form else 2
    ) + kept + n * INT32.numpy.itemsize + 4 * nwords(n)


# An interrupt (Ctrl-C) may come between any two lines of Python. Behind the launch of the loop's
# kernel there is no way back, so what is left to do is done before the interrupt goes on. While
# the host waits for a kernel, no line of Python sees an interrupt: the kernel itself looks for
# it.


#: (what launches the kernel of the loop, what takes its results over; that returns True if the
#: kernel was stopped, and what it wrote is of no use)
Prepared = tuple[Callable[[], None], Callable[[], bool | None]]


def run_whole(
    device: Device,
    name: str,
    written: Sequence[VectorStore],
    prepare: Callable[[], Prepared],
    stops: bool = False,
) -> None:
    """Prepare a loop, launch its kernel and take the results over, or leave all as it was.

    Parameters
    ----------
    device : Device
        Where the loop runs.
    name : str
        What errors call the loop.
    written : sequence of VectorStore
        The vectors that the loop writes in place.
    prepare : callable
        Allocates, compiles, and changes the form of vectors, or drops entries that the kernel will
        replace; it returns (launch, settle). `settle` may run twice: the second time it finishes
        what an interrupt has left.
    stops : bool
        Whether the kernel looks at the device's word `Device.stop`, which an interrupt sets. Then
        the host waits for the end of the loop.

    Raises
    ------
    KeyboardInterrupt
        When the kernel was stopped, in whatever thread; the vectors are what they were after some
        whole iteration, or before the loop.
    OutOfMemory, KernelCompileError, KernelLaunchError
        Before the kernel ran; the vectors are what they were.
    """
    before = [(x, x.state()) for x in written]

    def restore() -> None:
        for x, state in before:
            x.restore(state)

    try:
        try:
            prepared = prepare()
        except BaseException:
            restore()
            raise
        device.began = False
        with heard(device.stop[1]) if stops else nullcontext():
            _run(device, prepared, restore, stops)
    except Exception as error:
        named = named_error(device, error, name)
        if named is None:
            raise
        raise named from error


def _run(device: Device, prepared: Prepared, restore: Callable[[], None], waits: bool) -> None:
    """Launch a kernel, and take its results over, whatever interrupts that."""
    launch, settle = prepared

    def end() -> None:
        if waits:
            device.synchronize()
        if settle():
            restore()

    try:
        launch()
    except BaseException:
        if device.began:
            end()
        else:
            restore()
        raise
    try:
        end()
    except LagpuError:
        raise
    except BaseException:
        end()
        raise
