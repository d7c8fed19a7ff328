"""Searches from one frontier as one cooperative kernel: by levels, and by relaxation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, monoid
from lagpu.backends import match
from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared, may_last
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, Prelude, constant, kernel, macros_of
from lagpu.backends.gpu.ops import planner
from lagpu.backends.gpu.ops.elementwise import reduce_matrix
from lagpu.backends.gpu.ops.planner import SearchRule, alpha_of, beta_of, delta_of, gamma_of
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.profile import LoopLog, SearchRows, why_level
from lagpu.backends.gpu.storage import stores, workspaces
from lagpu.backends.gpu.storage.forms import csr_of, degree_behind_edges, why_no_csr
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, bytes_of, nwords
from lagpu.backends.match import MAX_ASSIGNMENTS, RelaxationBody, SearchBody, match_relaxation
from lagpu.dtypes import BOOL, INT32, index_kind
from lagpu.operations import RecordedBody, Rejection, Statements, Until

NO_LIMIT = np.uint32(2**32 - 1)
_LEFT = constant("kLeft")
NEW_LOG = constant("kNewLog")  # beside the bits of outputs that are blank
_MOST_KERNELS = 64  # launches and plans that a matrix keeps; one more, and all are made again
COUNT_BYTES = 8  #: Of a table of counts, a vertex: 4 for its own, and room for a flag at the end.
_GROUP_BYTES = constant("kGroupBytes")  # of shared memory for each warp of a pull
#: What each search has of its own, before the arrays of its outputs.
_EACH = (
    "v_words", "sources", "source_values", "f_iso", "source", "num_sources", "f_values", "f_words",
    "shift", "skips", "blank", "times", "result",
)  # fmt: skip
#: What an assignment writes, as kernels number it.
_WORDS = {match.DEPTH: "kDepth", match.VALUE: "kValue", match.NUMBER: "kNumber"}
WHAT = {what: str(constant(word)) for what, word in _WORDS.items()}
PLACED = constant("kPlaced")  # vertices of a list that have places

Saved = list[tuple[VectorStore, Any]]  #: Vectors, and the values that they had before a search.


class Workspace:
    """Arrays for the fused searches of one matrix, by one or both forms; made once and kept."""

    def __init__(self, successors: CscMatrix | None, predecessors: CscMatrix | None) -> None:
        form: Any = successors or predecessors
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
        self._device, self._push, self._n, self._place = device, push, n, kind
        self.parts = 0 if predecessors is None else workspaces.shared_parts(predecessors)
        self._made: dict[Any, list[Any]] = {}
        self.counters = xp.zeros(workspaces.SEARCH_COUNTERS, np.uint64)
        self.barrier = xp.zeros(GRID_BARRIER, np.uint32) if push is None else push.barrier
        self.result = xp.zeros(constant("kResults"), np.uint64)
        self.pinned = device.pinned_zeros(len(self.result))  # read without a copy
        self.launches: dict[Any, CheckedLaunch] = {}
        self.degree, self.behind = form.nvals / max(n, 1), 0.0
        if successors is not None and predecessors is not None:
            self.behind = degree_behind_edges(successors, predecessors)
        self.block = block_of(device, self.degree, kind.itemsize == 8)
        # Thread blocks that search small frontiers together, by each other's shared memory.
        self.cluster = device.cluster_blocks if self.degree <= planner.CLUSTER_DEGREE else 1
        solo = device.limits.cluster_solo if self.cluster > 1 else device.limits.solo
        room = device.dynamic_shared_bytes // (2 * entry)
        self.solo = min(solo, room, workspaces.MOST_ALONE // self.cluster)
        self.shared = 2 * entry * self.solo

    def lists(self, again: bool) -> dict[str, Any]:
        """Return the arrays of two lists, with all twice if a vertex may be in both `again`."""
        push, parts = self._push, self.parts
        if push is None:
            none = dict.fromkeys(("vertex", "start", "degree", "chunks_b"))
            chunks = self._arrays("parts", [(parts, np.uint64)])[0]
            return {**none, "chunks_a": chunks, "num_room": 0, "num_places": 0}
        room = 2 * self._n if again else len(push.vertex)
        places = min(room, 2 * PLACED)
        sizes = [(places, self._place), (places, np.uint32)]
        if again or parts > push.num_chunks:
            sizes += [(room, np.int32), (max(2 * push.num_chunks, parts), np.uint64)]
        start, degree, *own = self._arrays(("lists", again), sizes)
        vertex, chunks = own or (push.vertex, push.chunks)
        return {
            "vertex": vertex, "start": start, "degree": degree, "num_room": room,
            "num_places": places, "chunks_a": chunks, "chunks_b": chunks[-1:],
        }  # fmt: skip

    def both(self) -> dict[str, Any]:
        """Return two lists that may have all vertices each, with places, and all chunks."""
        names = ("vertex", "start", "degree", "chunks")
        first = {f"{name}_a": getattr(self._push, name) for name in names}
        second = self._arrays("both", [(len(x), x.dtype) for x in first.values()])
        return first | {f"{name}_b": x for name, x in zip(names, second, strict=True)}

    def found_in(self) -> Any:
        return self._arrays("found in", [(self._n, np.int32)])[0]

    def _arrays(self, what: Any, sizes: Sequence[tuple[int, Any]]) -> list[Any]:
        """Return arrays of these sizes and types, which are made at the first call."""
        if what not in self._made:
            nbytes = sum(count * np.dtype(kind).itemsize for count, kind in sizes)
            self._device.require(nbytes, "grid search")
            self.nbytes += nbytes
            self._made[what] = [self._device.xp.empty(count, kind) for count, kind in sizes]
        return self._made[what]


def form_arguments(side: str, form: CscMatrix | None, iso: bool) -> dict[str, Any]:
    """Return the arrays of a form as search kernels name them; `side` is ``in`` or ``out``."""
    names = f"{side}_ptr", f"{side}_idx", f"{side}_values"
    if form is None:
        return dict.fromkeys(names)
    return dict(zip(names, (form.col_ptr, form.row_idx, None if iso else form.values), strict=True))


def block_of(device: Device, degree: float, wide: bool = False) -> int:
    """Return the threads of a block; with 64-bit pointers (`wide`) it needs more registers."""
    limits = device.limits
    block = limits.wide_search_block if wide else limits.search_block
    return min(block, limits.long_search_block) if degree <= planner.LONG_SEARCH_DEGREE else block


def estimated_bytes(out_degree: Any, symmetric: bool, one_form: bool = False) -> tuple[int, int]:
    """Return the bytes of a matrix, and with a search for INT32 levels; see `bytes_on_gpu`."""
    n, entries, chunks = len(out_degree), int(out_degree.sum()), workspaces.num_chunks(out_degree)
    index, place = (np.dtype(index_kind(count)).itemsize for count in (n, entries))
    csc = entries * index + (n + 1) * place
    levels = n * INT32.numpy.itemsize + 4 * nwords(n)
    kept = workspaces.pull_bytes(n) + 12 * nwords(n)
    if not one_form:
        places = min(workspaces.list_room(n), 2 * PLACED)
        kept += workspaces.push_bytes(n, chunks) + (4 + place) * places
    return csc, (1 if symmetric or one_form else 2) * csc + kept + levels


def grid_search(
    body: SearchBody, times: int | None, rule: SearchRule | None = None
) -> GridSearch | Rejection:
    """Return the search of a vector as one kernel, or why it cannot be one.

    `rule` is of the policy that the author names. Without one the search has the rule of ``auto``,
    or one direction if the matrix has one form.
    """
    A, product = body.A, body.product
    lacking = why_no_csr(A)
    if lacking and rule is not None:
        return Rejection(f"{rule.why} needs the matrix by rows too, and {lacking}")
    if lacking:
        kind, does = ("kOnlyPulls", "pulls") if product.transpose else ("kOnlyPushes", "pushes")
        rule = SearchRule(kind, why=f"it only {does}, by columns alone: {lacking}")
    made = GridSearch(A, body.statements, body.written, times, rule, _Plan(body, times))
    made._body = body
    why = match.why_no_search(body) or match.why_no_values(body, made.plan.sums, made.plan.keep)
    why = why or _why_not_added(body, made.plan.added)
    if why:
        return Rejection(why)
    if rule is None and body.on_places is not None:
        if len(A.kernels) >= _MOST_KERNELS:  # bodies that are gone have left their plans
            A.kernels.clear()
        A.kernels[_key(body.on_places, body.frontier, times)] = made.plan
    return made


def _why_not_added(body: SearchBody, added: int) -> str:
    """Return why a search cannot assign its depth plus a number; a source gets its own later."""
    if added and not (body.assigns_first and body.frontier.single >= 0):
        return f"it assigns the counter plus {added}, and not from one vertex on"
    if added and not 0 <= added < 2**31 - body.frontier.size:
        return f"levels from {added} on may not fit"
    bools = any(a.what == match.DEPTH and a.target.dtype.is_bool for a in body.assignments)
    return f"true is no counter plus {added}" if added and bools else ""


def search_again(body: RecordedBody, frontier: Any, times: int | None) -> GridSearch | None:
    """Return the search of a recorded body that has been found on its matrix, or None."""
    of = body.record.found.get(search_again)
    if of is None or body.handles[of.frontier.number] is not frontier:
        return None
    A: CscMatrix = body.handles[of.A.number].csc()
    plan = A.kernels.get(_key(of, frontier, times))
    if plan is None or (plan.added and frontier.single < 0):
        return None
    return GridSearch(A, body, [body.handles[k] for k in plan.places], times, None, plan)


def _key(of: SearchBody, f: VectorStore, times: int | None) -> tuple[Any, ...]:
    """Return what decides the plan of a search on a matrix."""
    return id(of), f.values is None and f.number.item() == 1, times is None


class _Plan:
    """What is the same for all searches of a recorded body on one matrix, found once."""

    def __init__(self, body: SearchBody, times: int | None) -> None:
        self.of = of = body.on_places  # keeps its id from being reused
        #: Of the frontier and the outputs among the handles of a recorded body.
        self.places = [x.number for x in of.written] if of else []
        self.assigns_first, self.added = int(body.assigns_first), body.added
        self.iso = iso = is_one(body)  # whether every product is 1
        self.sums = not iso and body.sums  # whether the products of one level add up
        # Whether a frontier may be left: by `times`, or where an interrupt stops the search.
        self.stops = times is not None or (may_last(body.A) and (iso or body.assigns_first))
        # Whether the frontier's values are stored.
        self.keep = not iso and (self.sums or body.product.reads[0] or self.stops)
        self.ready: tuple[Workspace, CheckedLaunch] | None = None  # of a search without a log
        # Whether a search from one vertex leaves nothing but its outputs, if these were empty.
        self.plain = not (self.stops or self.keep)


def is_one(body: SearchBody) -> bool:
    """Whether every product of the loop is 1, whatever the frontier."""
    f = body.frontier
    if body.product.reads[0] and (f.values is not None or f.number.item() != 1):
        return False
    result = iso_result(body.A, f.values is not None, f.number, body.product)
    return result is not None and result.item() == 1  # items: NumPy scalars compare slowly


class GridSearch(KernelLoop):
    """A search from one frontier that one kernel runs; see search/grid.cu."""

    name = "grid search"
    why = "the body is a search from one frontier"
    keeps_log = True
    _depths: list[Any] | None = None  # where the next run is to keep its depth

    def __init__(
        self, A: CscMatrix, statements: Statements, written: list[VectorStore],
        times: int | None, rule: SearchRule | None, plan: _Plan,
    ) -> None:  # fmt: skip
        if rule is not None:
            self.why = f"{self.why}; {rule.why}"
        self.statements, self.device, self.written = statements, A.device, written
        self._A, self._times, self._rule, self.plan = A, times, rule, plan
        self.stops, self.final = plan.stops, times is None and not plan.added

    @functools.cached_property
    def _body(self) -> SearchBody:
        """The body on these objects, which a plain search again does not need."""
        recorded: Any = self.statements
        return self.plan.of.on(recorded, self._A)

    def count(self) -> Callable[[], int]:
        """Let the next run keep its depth; return what fetches the last value of the counter."""
        depths: list[Any] = []
        self._depths = depths
        return lambda: int(self.device.to_host(depths[0])[0]) - 1

    @property
    def nbytes(self) -> int:
        f, *targets = self.written
        saved = [targets[k] for k in self._body.overwrites(self.plan.sums)] if self.stops else []
        values = [*([f] if self.plan.keep else []), *(x for x in saved if x.known != 0)]
        assigned = sum(x.bytes_to_write for x in targets)
        return int(assigned + sum(x.dtype.numpy.itemsize * f.size for x in values))

    def _prepare(self, log: LoopLog | None) -> Prepared | None:
        times, plan, (f, *targets) = self._times, self.plan, self.written
        if times == 0:
            return None
        device, added, stops = self.device, plan.added, self.stops
        depths, self._depths = self._depths, None
        space, prepared = (plan.ready if log is None else None) or (self._workspace(), None)
        left_words = f.spare_words() if stops else None
        result, seen = space.pinned if stops else (space.result, None)
        if log is not None:
            result, seen = log.words, None
        num_sources, source = f.nvals, f.single
        plain = source >= 0 and not added and not [x for x in targets if x.known != 0]
        if prepared is not None and plan.plain and plain and depths is None:
            given = [
                *(None, None, None, f.number, source, 1, None, None), plan.assigns_first, 1,
                (1 << len(targets)) - 1, NO_LIMIT, result,
            ]  # fmt: skip
            for x in targets:
                x.to_blank()
                given += x.values, x.words

            def settle_plainly() -> None:
                f.set_empty()
                f.counters.allocate_ahead(targets)

            return functools.partial(prepared.run_with, given), settle_plainly
        body = self._body
        sources, source_values = (None, None) if source >= 0 else f.listed()
        excluded = None
        if body.excluded.nvals:
            body.excluded.to_bitmap()
            excluded = device.copy_of(body.excluded.words)  # it is written while it is read
        blank, outputs, had = outputs_of(targets, log)
        saved = save_values(body.overwrites(plan.sums), targets, blank) if stops else []
        f_values = f.spare_values(f.dtype) if plan.keep else None
        if prepared is None:
            prepared = self._launch(space, log, blank)
            if log is None:
                plan.ready = space, prepared
        # The kernel skips a last level that cannot find anything: not under a rule that the author
        # names, which shows every level, nor with `added`, where it does not know the source.
        skips = int(not added and (self._rule is None or self._rule.one_way))
        given = [
            excluded, sources, source_values, f.number, source, num_sources, f_values, left_words,
            body.assigns_first + added, skips,
            blank if log is None or not log.is_new else blank | NEW_LOG,
            NO_LIMIT if times is None else min(times, NO_LIMIT), result, *outputs.values(),
        ]  # fmt: skip
        late: list[VectorStore] = []
        if added:  # compiled now, as in `save_values`
            late = [x for x, what, _ in body.assignments if what == match.DEPTH]
            for x in late:
                device.load(stores.filling(x.dtype))

        def settle() -> None:
            for x in late:
                stores.fill(device, x.values[source : source + 1], added)
            if seen is not None:
                left = seen[_LEFT]
            else:
                left = workspaces.entries_left(device, result) if stops else 0
            if left:
                leave(f, left_words, f_values, left, saved)
            else:
                f.set_empty()
            if depths is not None:
                # the words are of every search on this matrix
                depths[:] = [device.copy_of(result[:1])]
            if log is not None:
                kind, alpha, beta, *_ = self._numbers(space)
                why = functools.partial(why_level, f.size, kind, alpha, beta)
                log.ran(SearchRows(body.statements, had, why))

        return functools.partial(prepared.run_with, given), settle

    def _forms(self) -> tuple[CscMatrix | None, CscMatrix | None]:
        """Return (successors, predecessors): the columns of each are a vertex's neighbours."""
        A, along = self._body.A, self._body.product.transpose
        other = None if self._rule is not None and self._rule.one_way else csr_of(A)
        return (other, A) if along else (A, other)

    def _workspace(self) -> Workspace:
        A, forms = self._body.A, self._forms()
        forward = self._body.product.transpose or forms[0] is forms[1]
        place = "grid search" if forward else "grid search against the edges"
        place += " by one form" if None in forms else ""
        return A.cache.get(place) or A.kept(place, lambda: Workspace(*forms))

    def _numbers(self, space: Workspace) -> tuple[str, Any, Any, float, float]:
        """Return the rule's constant, alpha, beta, gamma (0: it counts all edges), and delta."""
        if self._rule is None:
            alpha = alpha_of(space.degree, self._body.A.shape[0], self.plan.sums, wide=True)
            gamma = gamma_of(alpha, space.degree, space.behind)
            return "kByEdges", alpha, beta_of(self.plan.sums), gamma, delta_of(self.plan.sums)
        return *self._rule[:3], 0.0, planner.NO_DELTA

    def _launch(self, space: Workspace, log: LoopLog | None, blank: int) -> CheckedLaunch:
        body, product = self._body, self._body.product
        assigned = tuple([(a.what, a.target.dtype) for a in body.assignments])
        logs = logs_of(log, blank, len(assigned))
        key = (
            product.semiring, product.flip, product.domain, body.frontier.dtype, assigned,
            body.assigns_first, self.plan.sums, self.plan.iso, self.plan.keep, self.stops,
            tuple(logs.items()), self._rule and self._rule[:3],
        )  # fmt: skip
        if key not in space.launches:
            space.launches[key] = self._bound(space, logs)
        return space.launches[key]

    def _bound(self, space: Workspace, logs: dict[str, str]) -> CheckedLaunch:
        (successors, predecessors), body = self._forms(), self._body
        A, iso, device = body.A, self.plan.iso, self.device
        n = A.shape[0]
        kind, alpha, beta, gamma, delta = self._numbers(space)
        looks = self.plan.sums and space.degree > planner.LONG_SEARCH_DEGREE
        ranks = workspaces.NO_RANKS
        if looks and predecessors is not None and body.counts:  # a pull adds up by a table
            ranks = workspaces.ranked(predecessors, successors, COUNT_BYTES)
        made = self._kernel(space, logs, ranks.idx is not None)
        near = workspaces.near_words(device, n) if looks else 0
        shared = max(space.shared, 4 * (near + 1), pull_room(space.block, self.plan.sums))
        grid = device.max_cooperative_blocks(made, space.block, shared)
        if not grid:  # a part of a GPU may have no room for a cluster
            space.cluster = 1
            return self._bound(space, logs)
        unhinted = self.plan.sums or (not iso and body.product.reads[1] and A.values is not None)
        visited, words_a, words_b = space.words
        outputs = [name for k in range(len(body.assignments)) for name in (f"x{k}", f"x{k}_words")]
        return device.prepare(
            made, grid * space.block, block=space.block, cooperative=True, shared=shared,
            n=n, nvals_a=A.nvals, **form_arguments("out", successors, iso),
            **form_arguments("in", predecessors, iso), a_iso=False if iso else A.number,
            hint=None if unhinted else space.hint, empty=space.empty,
            **unused_outputs(len(body.assignments)),
            # A frontier that one block searches alone is not counted among those visited.
            solo=0 if kind == "kByUnvisited" else space.solo, num_targets=space.targets,
            alpha=alpha, beta=beta, gamma=gamma, delta=delta, visited=visited,
            words_a=words_a, words_b=words_b,
            found_in=space.found_in() if self.plan.sums else None,
            **space.lists(not body.assigns_first), counters=space.counters, barrier=space.barrier,
            near=near, ranked_idx=ranks.idx, rank=ranks.rank, counts=ranks.words,
            stop=device.stop[0] if self.stops else None, each=[*_EACH, *outputs],
        )  # fmt: skip

    def _kernel(self, space: Workspace, logs: dict[str, str], ranks: bool) -> Kernel:
        plan = self.plan
        macros, prelude = search_macros(self._body, self._body.A, plan.iso, plan.sums, plan.keep)
        macros |= {"BLOCK": str(space.block)} | logs
        if not self.stops:
            macros["STOPS"] = "0"
        if plan.sums and space.degree > planner.LONG_SEARCH_DEGREE:
            macros["RANKS" if ranks else "WIDE"] = "1"
        if self._rule is not None and self._rule.kind != "kByEdges":
            macros["RULE"] = self._rule.kind
        limits = self.device.limits
        if limits.placed is not None:
            macros["PLACED"] = str(limits.placed)
        if space.parts:
            macros["SPREAD"] = str(limits.spread)
        if space.cluster > 1:
            macros |= {"CLUSTER": str(space.cluster), "FEW": str(limits.few)}
        return kernel("search/grid.cu", "grid_search", prelude=prelude, **macros)


def pull_room(block: int, sums: bool) -> int:
    """Return the bytes of shared memory in which a block of so many threads pulls."""
    return 0 if sums else _GROUP_BYTES * block // 32


def unused_outputs(assignments: int) -> dict[str, Any]:
    """Return the arguments of a search kernel for the outputs that so many assignments lack."""
    lacking = range(assignments, MAX_ASSIGNMENTS)
    return {name: None for k in lacking for name in (f"x{k}", f"x{k}_words")}


def outputs_of(
    targets: Sequence[VectorStore], log: LoopLog | None = None
) -> tuple[int, dict[str, Any], list[Callable[[], int] | None]]:
    """Return (bits of the outputs whose words are not set, arguments, counts) of a search.

    With a log, `counts` has for each output a callable that returns its entries before the loop,
    or None for an output without entries.
    """
    blank = 0
    had: list[Callable[[], int] | None] = []
    arguments: dict[str, Any] = {}
    for k, x in enumerate(targets):
        new = x.to_blank()
        blank |= new << k
        if not new:
            x.to_writable()
        if log is not None:
            had.append(None if new else log.count_of(x))
        arguments[f"x{k}"], arguments[f"x{k}_words"] = x.values, x.words
        if not new:
            x.changes()
    return blank, arguments, had


def save_values(overwritten: Sequence[int], targets: Sequence[VectorStore], blank: int) -> Saved:
    """Copy the values of those outputs that a search may overwrite where it must not."""
    saved = [targets[k] for k in overwritten if not blank >> k & 1]
    for x in saved:  # compiled now: nothing may fail after the search
        x.device.load(kernel("elementwise/bitmap.cu", "copy_entries", U=x.dtype.ctype))
    return [(x, x.device.copy_of(x.values)) for x in saved]


def leave(f: VectorStore, words: Any, values: Any, count: int, saved: Saved) -> None:
    """Leave vertices in a frontier, and give outputs back the values that they had there."""
    f.set_bitmap(words, values, None if values is not None else f.dtype.numpy.type(1), count)
    for x, before in saved:
        x.copy_entries(words, before)


def logs_of(log: LoopLog | None, blank: int, outputs: int) -> dict[str, str]:
    """Return the macros of a search that writes records, which counts new entries of outputs."""
    if log is None:
        return {}
    return {"LOG": str(log.capacity), "HAD": str(int(blank != (1 << outputs) - 1))}


def search_macros(
    body: SearchBody, form: CscMatrix, iso: bool, sums: bool, keep: bool
) -> tuple[dict[str, str], str]:
    """Return the macros that specialise the kernel of a search, and its prelude."""
    macros, prelude, f = workspaces.index_types(form), Prelude(), body.frontier.dtype
    if not iso:
        macros |= macros_of(body.product, f, form.dtype, prelude)[0]
    elif not f.is_bool:
        macros["U"] = f.ctype
    for k, assignment in enumerate(body.assignments):
        macros |= {f"X{k}": WHAT[assignment.what], f"X{k}_T": assignment.target.dtype.ctype}
    macros |= {"F": f.ctype, "SUM": str(int(sums)), "KEEP": str(int(keep))}
    return macros, prelude.text


# ------------------------------------------------------------------------------------ relaxation
def why_not_in_any_order(body: RelaxationBody, until: Until) -> str:
    """Return why the order of relaxing may change the result, or an empty string.

    It does not where it begins at one vertex, no product is better than the number it is made of,
    and each number is better than none. Then n iterations relax all shortest paths, and one more
    finds that nothing is left.
    """
    A, f, d, product = body.A, body.frontier, body.numbers, body.product
    if body.worse.dtype is not BOOL:
        return f"marks are of {body.worse.dtype}"
    if f.dtype is not d.dtype or f.dtype is not product.result or f.dtype.numpy.itemsize < 4:
        return f"numbers of {f.dtype}, {d.dtype} and {product.result} are not of one wide type"
    if A.shape[0] >= 2**31:
        return "the matrix has 2**31 rows or more"
    if until.times is not None and until.times <= A.shape[0]:
        return f"at most {until.times} iterations, where {A.shape[0] + 1} reach every number"
    if f.single < 0 or d.known != 0 or body.worse.known != 0:
        return "it does not begin with one vertex alone"
    lacking = "" if not product.transpose else why_no_csr(A)
    if lacking:
        return f"relaxing edges needs the matrix by rows, and {lacking}"
    least, largest = values = extreme_values(A)
    if not match.ORDERED[product.semiring][1](least, largest):
        return f"a product may be better than its vertex, with values of {least} to {largest}"
    return _why_worse_than_none(body, values)


def _why_worse_than_none(body: RelaxationBody, values: tuple[Any, Any]) -> str:
    number, kind, n = body.frontier.number.item(), body.frontier.dtype, body.A.shape[0]
    reached = [number, *values]
    if body.product.semiring.multiply is binary.plus:  # a half: room for rounding
        reached += [2 * (number + n * value) for value in values]
    low, high = kind.smallest, kind.largest
    if body.product.semiring.monoid is monoid.min:  # its "none" is the largest number
        fits = all(low <= x < high for x in reached)
    else:
        fits = all(low < x <= high for x in reached)
    return "" if fits else f"numbers up to {max(map(abs, reached))} may not fit {kind}"


def extreme_values(A: CscMatrix) -> tuple[Any, Any]:
    """Return the least and the largest value; NaN for both if one is not a finite number."""
    if not A.nvals:
        return 0, 0
    if A.dtype.is_float and not math.isfinite(reduce_matrix(A, monoid.plus)):
        return math.nan, math.nan
    return reduce_matrix(A, monoid.min), reduce_matrix(A, monoid.max)


SMALL = constant("kSmall")
STOPPED = 3  # its place in the result
NARROW = 1024  # a step is at most so many times the least distance of two limits


def relaxation(statements: Statements, until: Until) -> Relaxation | Rejection:
    """Return the relaxation of a loop as one kernel, or why it is none; see search/relax.cu."""
    body = match_relaxation(statements, until.empty)
    if isinstance(body, Rejection):
        return body
    body = body._replace(A=body.A.csc())
    why = why_not_in_any_order(body, until)
    return Rejection(f"no relaxation kernel: {why}") if why else Relaxation(body)


class Relaxation(KernelLoop):
    """A relaxation that one kernel runs; see search/relax.cu."""

    name = "relaxation"
    why = "edges may be relaxed in any order"

    def __init__(self, body: RelaxationBody) -> None:
        self.device, self.statements, self.stops = body.A.device, body.statements, may_last(body.A)
        self._body, self.written = body, [body.frontier, body.numbers, body.worse]

    @property
    def nbytes(self) -> int:
        d = self._body.numbers
        return bytes_of(d.size, d.dtype)

    def _prepare(self, log: LoopLog | None) -> Prepared:
        A, f, d, product = self._body.A, self._body.frontier, self._body.numbers, self._body.product
        place = f"relaxation {'along' if product.transpose else 'against'} the edges"
        space = A.kept(place, lambda: Workspace(by_inputs(A, product), None))
        key = product.semiring, product.flip, product.domain, f.dtype
        if key not in space.launches:
            space.launches[key] = self._bound(space)
        launch, source, number = space.launches[key], f.single, f.number
        d.to_blank()
        given = {"source": source, "number": number, "d": d.values, "d_words": d.words}

        def settle() -> bool:
            if self.stops and self.device.read(space.result[STOPPED : STOPPED + 1]):
                return True
            f.set_empty()
            return False

        return functools.partial(launch, given), settle

    def _bound(self, space: Workspace) -> CheckedLaunch:
        A, product, kind = self._body.A, self._body.product, self._body.frontier.dtype
        form, device, n = by_inputs(A, product), A.device, A.shape[0]
        macros, prelude = macros_of(product, kind, A.dtype)
        macros |= {"F": kind.ctype, "BLOCK": str(space.block)} | workspaces.index_types(A)
        macros["STEPS"] = str(int(product.semiring.multiply is binary.plus))
        if space.degree <= planner.CLUSTER_DEGREE:
            macros["AHEAD"] = str(planner.RELAXED_AHEAD)
        made = kernel("search/relax.cu", "relax", prelude=prelude, **macros)
        grid = device.max_cooperative_blocks(made, space.block)
        few = device.limits.relaxed_edges
        step = kind.numpy.type(self._step(space.degree))
        narrow = kind.numpy.type(step / NARROW) if kind.is_float else np.sign(step)
        return device.prepare(
            made, grid * space.block, block=space.block, cooperative=True,
            n=n, **form_arguments("out", form, iso=False), a_iso=form.number,
            step=step, narrow=narrow, degree=int(min(max(space.degree, 1), SMALL // 4)),
            few=few, many=max(A.nvals // planner.RELAXED_SHARE, 8 * few),
            listed=space.found_in(), waiting=space.words[0], **space.both(),
            counters=space.counters, barrier=space.barrier,
            stop=device.stop[0] if self.stops else None, result=space.result,
        )  # fmt: skip

    def _step(self, degree: float) -> Any:
        """Return how far numbers are relaxed together at first: negative where they decrease."""
        A, product = self._body.A, self._body.product
        if product.semiring.multiply is not binary.plus:
            return 0
        least = product.semiring.monoid is monoid.min
        farthest = abs(float(reduce_matrix(A, monoid.max if least else monoid.min) or 0))
        kind = self._body.frontier.dtype
        info = np.finfo(kind.numpy) if kind.is_float else np.iinfo(kind.numpy)
        step = min(planner.RELAXED_STEP * farthest / max(degree, 1), float(info.max) / 2)
        step = step if kind.is_float else max(1, int(step))
        return step if least else -step
