"""The fused search: all levels of a search from one frontier as one cooperative kernel."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from lagpu.backends.gpu.device.protocol import CheckedLaunch
from lagpu.backends.gpu.fused.match import (
    DEPTH,
    MAX_ASSIGNMENTS,
    Assignment,
    SearchBody,
    why_no_search,
    why_no_values,
)
from lagpu.backends.gpu.fused.search_space import (
    Prepared,
    Workspace,
    form_arguments,
    may_last,
    run_whole,
)
from lagpu.backends.gpu.kernels import Kernel, constant, kernel
from lagpu.backends.gpu.kernels.source import Prelude, macros_of
from lagpu.backends.gpu.ops.planner import (
    LONG_SEARCH_DEGREE,
    SearchRule,
    alpha_of,
    beta_of,
    gamma_of,
)
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.profile import LoopLog, SearchRows, why_level
from lagpu.backends.gpu.storage.forms import csr_of, why_no_csr
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.gpu.storage.workspaces import (
    Ranked,
    entries_left,
    index_types,
    near_words,
    ranked,
)
from lagpu.operations import Product, Rejection

NO_LIMIT = 2**32 - 1
NEW_LOG = constant("kNewLog")  # beside the bits of outputs that are blank
_RANKED_BYTES = 8  # a vertex: 4 that the search uses, and 4 in all
_GROUP_BYTES = constant("kGroupBytes")  # of shared memory for each warp of a pull

Saved = list[tuple[VectorStore, Any]]
"""Vectors, and the values that they had before a search."""


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
    why = why_no_search(body)
    if why:
        return Rejection(why)
    iso = _is_one(body)
    sums = not iso and body.sums
    keep = sums or (not iso and body.reads[0]) or (times is not None and not iso)
    why = why_no_values(body, sums, keep)
    if why:
        return Rejection(why)
    leaves = times is not None or (may_last(A) and (iso or body.assigns_first))
    return GridSearch(body, times, sums, iso, keep or (leaves and not iso), leaves, rule)


def levels_only(A: CscMatrix, f: VectorStore, levels: VectorStore, product: Product) -> SearchBody:
    """Return the search that assigns its depths to `levels`, and does nothing else."""
    return SearchBody(A, f, levels, product, (Assignment(levels, DEPTH),), True, ())


def _is_one(body: SearchBody) -> bool:
    """Whether every product of the loop is 1, whatever the frontier."""
    f = body.frontier
    if body.reads[0] and (f.values is not None or f.number.item() != 1):
        return False
    result = iso_result(body.A, f.values is not None, f.number, body.product)
    return result is not None and result.item() == 1  # items: NumPy scalars compare slowly


class GridSearch:
    """A search from one frontier that one kernel runs; see search/grid.cu and `FusedLoop`.

    Parameters
    ----------
    sums, iso, keep : bool
        Whether the products of one level add up; whether every product is 1; whether the frontier's
        values are stored.
    leaves : bool
        Whether a frontier may be left: by `times`, or where an interrupt stops the search.
    rule : SearchRule or None
        How directions are chosen; None as ``auto`` does.
    """

    name = "grid search"
    keeps_log = True

    def __init__(
        self,
        body: SearchBody,
        times: int | None,
        sums: bool,
        iso: bool,
        keep: bool,
        leaves: bool,
        rule: SearchRule | None = None,
    ) -> None:
        self._rule, self._leaves = rule, leaves
        self._body, self._times = body, times
        self._sums, self._iso, self._keep = sums, iso, keep
        self.statements = body.statements
        self._depths: list[Any] | None = None  # where the next run is to keep its depth

    def count(self) -> Callable[[], int]:
        """Let the next run keep its depth; return what fetches the last value of the counter."""
        depths: list[Any] = []
        self._depths = depths
        to_host = self._body.A.device.to_host
        return lambda: int(to_host(depths[0])[0]) - 1

    @property
    def why(self) -> str:
        """See `FusedLoop`."""
        found = "the body is a search from one frontier"
        return found if self._rule is None else f"{found}; {self._rule.why}"

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`."""
        assigned: int = sum(a.target.bytes_to_write for a in self._body.assignments)
        kept: int = self._body.frontier.dtype.numpy.itemsize * self._n if self._keep else 0
        targets = [a.target for a in self._body.assignments]
        saved = [targets[k] for k in self._body.overwrites(self._leaves, self._sums)]
        kept += sum(x.dtype.numpy.itemsize * self._n for x in saved if x.known != 0)
        return assigned + kept

    @property
    def _n(self) -> int:
        return self._body.A.shape[0]

    def run(self, log: LoopLog | None = None) -> None:
        """Run the loop to its end; the host waits only if a frontier may be left."""
        if self._times != 0:
            body, stops = self._body, self._leaves
            written = [body.frontier, *[a.target for a in body.assignments]]
            run_whole(body.A.device, self.name, written, lambda: self._prepared(log), stops)

    def _prepared(self, log: LoopLog | None) -> Prepared:
        body, times, f = self._body, self._times, self._body.frontier
        depths, self._depths = self._depths, None
        space, result_words = self._workspace(), f.spare_words() if self._leaves else None
        result = space.result if log is None else log.words
        num_sources, source = f.nvals, f.single
        sources, source_values = (None, None) if source >= 0 else f.listed()
        excluded = None
        if body.excluded.nvals:
            body.excluded.to_bitmap()
            excluded = body.excluded.words.copy()  # it is written while it is read
        targets = [a.target for a in body.assignments]
        blank, outputs, had = outputs_of(targets, log)
        saved = save_values(body.overwrites(self._leaves, self._sums), targets, blank)
        f_values = f.spare_values(f.dtype) if self._keep else None
        if self._keep:
            outputs["f_values"] = f_values
        if self._leaves:
            outputs["f_words"] = result_words
        given = {
            "v_words": excluded, "sources": sources, "source_values": source_values,
            "f_iso": f.number, "source": source, "num_sources": num_sources, **outputs,
            "blank": blank if log is None or not log.is_new else blank | NEW_LOG,
            "times": NO_LIMIT if times is None else times, "result": result,
        }  # fmt: skip
        launch = functools.partial(self._launch(space, log, blank), given)

        def settle() -> None:
            left = 0 if result_words is None else entries_left(body.A.device, result)
            if left:
                number = None if self._keep else f.dtype.numpy.type(1)
                f.set_bitmap(result_words, f_values, number, left)
                restore_values(saved, result_words)
            else:
                f.set_empty()
            if depths is not None:
                depths[:] = [result[:1].copy()]  # the words are of every search on this matrix
            if log is not None:
                log.ran(SearchRows(body.statements, had, self._why_level(space)))

        return launch, settle

    def _forms(self) -> tuple[CscMatrix | None, CscMatrix | None]:
        """Return (successors, predecessors): the columns of each are a vertex' neighbours."""
        A, along = self._body.A, self._body.product.transpose
        other = None if self._rule is not None and self._rule.one_way else csr_of(A)
        return (other, A) if along else (A, other)

    def _workspace(self) -> Workspace:
        A, (successors, predecessors) = self._body.A, self._forms()
        forward = self._body.product.transpose or successors is predecessors
        place = "grid search" if forward else "grid search against the edges"
        if successors is None or predecessors is None:
            place += " by one form"
        space: Workspace | None = A.cache.get(place)
        return space or A.kept(place, lambda: Workspace(successors, predecessors))

    def _numbers(self, space: Workspace) -> tuple[str, Any, Any, float]:
        """Return the rule's constant, alpha, beta, and gamma.

        A named rule counts the edges of every frontier that a push has found, so no
        push finds words.
        """
        if self._rule is None:
            alpha = alpha_of(space.degree, self._n, self._sums, wide=True)
            gamma = gamma_of(alpha, space.degree, space.behind)
            return "kByEdges", alpha, beta_of(self._sums), gamma
        return *self._rule[:3], 0.0

    def _why_level(self, space: Workspace) -> Callable[[Any, int], str]:
        kind, alpha, beta, _ = self._numbers(space)
        return functools.partial(why_level, self._n, kind, alpha, beta)

    def _launch(self, space: Workspace, log: LoopLog | None, blank: int) -> CheckedLaunch:
        """Return the prepared launch for loops of this structure; it is kept."""
        body, product = self._body, self._body.product
        assigned = tuple([(a.what, a.target.dtype) for a in body.assignments])
        logs = logs_of(log, blank, len(assigned))
        key = (
            product.semiring, product.flip, product.domain, body.frontier.dtype, assigned,
            body.assigns_first, self._sums, self._iso, self._keep, self._leaves,
            tuple(logs.items()), self._rule and self._rule[:3],
        )  # fmt: skip
        found = space.launches.get(key)
        if found is None:
            found = space.launches[key] = self._bound(space, logs)
        return found

    def _bound(self, space: Workspace, logs: dict[str, str]) -> CheckedLaunch:
        """Prepare the launch with the arguments that all loops of this structure share."""
        (successors, predecessors), body = self._forms(), self._body
        A, n, iso = body.A, self._n, self._iso
        device, (kind, alpha, beta, gamma) = A.device, self._numbers(space)
        looks = self._sums and space.degree > LONG_SEARCH_DEGREE
        ranks = self._ranks() if looks else Ranked(None, None, None)
        made = self._kernel(A, space, logs, ranks.idx is not None)
        near = near_words(device, n) if looks else 0
        shared = max(space.shared, 4 * (near + 1), pull_room(space.block, self._sums))
        grid = device.max_cooperative_blocks(made, space.block, shared)
        if not grid:  # a part of a GPU may have no room for a cluster
            space.cluster = 1
            return self._bound(space, logs)
        reads_matrix = not iso and body.reads[1]
        unhinted = self._sums or (reads_matrix and A.values is not None)
        visited, words_a, words_b = space.words
        unused = unused_outputs(len(body.assignments))
        if not self._keep:
            unused["f_values"] = None
        if not self._leaves:
            unused["f_words"] = None
        return device.prepare(
            made, grid * space.block, block=space.block, cooperative=True, shared=shared,
            n=n, nvals_a=A.nvals, **form_arguments("out", successors, iso),
            **form_arguments("in", predecessors, iso), a_iso=False if iso else A.number,
            hint=None if unhinted else space.hint, empty=space.empty, **unused,
            shift=int(body.assigns_first),
            # A frontier that one block searches alone is not counted among those visited.
            solo=0 if kind == "kByUnvisited" else space.solo, num_targets=space.targets,
            skips=int(self._rule is None or self._rule.one_way),
            alpha=alpha, beta=beta, gamma=gamma, visited=visited, words_a=words_a, words_b=words_b,
            found_in=space.found_in(device, n) if self._sums else None,
            **space.lists(not body.assigns_first), counters=space.counters, barrier=space.barrier,
            near=near, ranked_idx=ranks.idx, rank=ranks.rank, counts=ranks.words,
            stop=device.stop[0] if self._leaves else None,
        )  # fmt: skip

    def _ranks(self) -> Ranked:
        """Return the predecessors by ranks of degree, if a pull adds up counts by a table."""
        successors, predecessors = self._forms()
        if self._iso or predecessors is None or not self._body.counts:
            return Ranked(None, None, None)
        return ranked(predecessors, successors, _RANKED_BYTES)

    def _kernel(
        self, form: CscMatrix, space: Workspace, logs: dict[str, str], ranks: bool
    ) -> Kernel:
        macros, prelude = search_macros(self._body, form, self._iso, self._sums, self._keep)
        macros |= {"BLOCK": str(space.block)} | logs
        if not self._leaves:
            macros["STOPS"] = "0"
        if ranks:
            macros["RANKS"] = "1"
        if self._rule is not None and self._rule.kind != "kByEdges":
            macros["RULE"] = self._rule.kind
        limits = form.device.limits
        if limits.placed is not None:
            macros["PLACED"] = str(limits.placed)
        if space.cluster > 1:
            macros |= {"CLUSTER": str(space.cluster), "FEW": str(limits.few)}
        return kernel("search/grid.cu", "grid_search", prelude=prelude, **macros)


def pull_room(block: int, sums: bool) -> int:
    """Return the bytes of shared memory in which a block of so many threads pulls."""
    return 0 if sums else _GROUP_BYTES * block // 32


def unused_outputs(assignments: int) -> dict[str, Any]:
    """Return the arguments of a search kernel for the outputs that so many assignments lack."""
    names = ((f"x{k}", f"x{k}_words") for k in range(assignments, MAX_ASSIGNMENTS))
    return dict.fromkeys(itertools.chain.from_iterable(names))


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
        if new:
            blank |= 1 << k
        else:
            x.to_writable()
        if log is not None:
            had.append(None if new else log.count_of(x))
        arguments[f"x{k}"], arguments[f"x{k}_words"] = x.values, x.words
        x.counted(None)
    return blank, arguments, had


def save_values(overwritten: Sequence[int], targets: Sequence[VectorStore], blank: int) -> Saved:
    """Copy the values of those outputs that a search may overwrite where it must not."""
    saved = [targets[k] for k in overwritten if not blank >> k & 1]
    for x in saved:  # compiled now: nothing may fail after the search
        x.device.load(kernel("elementwise/bitmap.cu", "copy_entries", U=x.dtype.ctype))
    return [(x, x.values.copy()) for x in saved]


def restore_values(saved: Saved, left: Any) -> None:
    """Give outputs back their values at the vertices, by presence words, that are left."""
    for x, values in saved:
        x.copy_entries(left, values)


def logs_of(log: LoopLog | None, blank: int, outputs: int) -> dict[str, str]:
    """Return the macros of a search that writes records, which counts new entries of outputs."""
    if log is None:
        return {}
    return {"LOG": str(log.capacity), "HAD": str(int(blank != (1 << outputs) - 1))}


def search_macros(
    body: SearchBody, form: CscMatrix, iso: bool, sums: bool, keep: bool
) -> tuple[dict[str, str], str]:
    """Return the macros that specialise the kernel of a search, and its prelude."""
    macros, prelude = index_types(form), Prelude()
    if iso:
        if not body.frontier.dtype.is_bool:
            macros |= {"U": body.frontier.dtype.ctype}
    else:
        types, _ = macros_of(body.product, body.frontier.dtype, form.dtype, prelude)
        macros |= types
    for k, assignment in enumerate(body.assignments):
        macros |= {f"X{k}": str(assignment.what), f"X{k}_T": assignment.target.dtype.ctype}
    macros |= {"F": body.frontier.dtype.ctype}
    macros |= {"SUM": str(int(sums)), "KEEP": str(int(keep))}
    return macros, prelude.text
