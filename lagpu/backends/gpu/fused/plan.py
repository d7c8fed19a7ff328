"""Choose the kernel that runs a recorded loop, or say why none does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from lagpu.backends.gpu.fused.loop import KernelLoop
from lagpu.backends.gpu.fused.program import run
from lagpu.backends.gpu.fused.search_grid import GridSearch, grid_search, relaxation, search_again
from lagpu.backends.gpu.fused.search_many import per_source_search, search_without_values
from lagpu.backends.gpu.fused.sweep import per_source_sweep, vector_sweep
from lagpu.backends.gpu.ops.planner import SearchRule, policy_of
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.storage.bitmap import BitmapLevels, BitmapMatrix, MatrixHandle, stride
from lagpu.backends.gpu.storage.stores import Counters, VectorStore, cast_number
from lagpu.backends.match import VALUE, SearchBody, match_search
from lagpu.operations import Multiply, RecordedBody, Rejection, Statements, Turns, Until, once


def plan_loop(counters: Counters, body: Statements, turns: Turns) -> KernelLoop | Rejection:
    """Return the kernel of a loop, one for searches or a generated one; see `Backend.plan_loop`."""
    if not isinstance(turns, Until):
        if isinstance(turns.levels, BitmapLevels):
            return per_source_sweep(counters, body, turns)
        swept = vector_sweep(body, turns)
        if isinstance(swept, Rejection):
            return run.generated_sweep(body, turns, swept.why)
        return swept
    why = "the loop has no frontier"
    if turns.empty is not None:
        is_plain = isinstance(body, RecordedBody) and not body.record.has_scalars
        recorded = cast(RecordedBody, body) if is_plain else None
        if recorded is not None:
            again = search_again(recorded, turns.empty, turns.times)
            if again is not None:
                return again
        search = _plan_search(counters, body, turns.empty, turns.times)
        if not isinstance(search, Rejection):
            if recorded is not None and isinstance(search, GridSearch):
                recorded.record.found[search_again] = search.plan.of
            return search
        why = search.why
    named = once(body, named_policy)  # after the search, which refuses one: most loops name none
    if named is not None:
        return _search_by_policy(body, turns, named)
    why = f"no search: {why}"
    if once(body, _writes_matrices):
        found = run.generated_bitmap_loop(counters, body, turns, why)
        if isinstance(found, Rejection):
            within = run.generated_pattern_loop(counters, body, turns, f"{why}; {found.why}")
            found = found if isinstance(within, Rejection) else within
        return found
    relaxed = relaxation(body, turns)
    if not isinstance(relaxed, Rejection):
        return relaxed
    return run.generated_loop(body, turns, relaxed.why or why)


def _writes_matrices(body: Statements) -> bool:
    return any(isinstance(s.out, MatrixHandle) for s in body)


# ------------------------------------------------------------------------- searches by policies
def _hiragushi(alpha: float, beta: float, push: str, pull: str) -> tuple[Any, ...] | str:
    if (push, pull) != ("queue", "bitmap"):
        return "a fused search has kernels of its own, and others are asked for"
    return "kByEdges", alpha, beta


#: What a policy's arguments are to the fused search, or why it cannot follow the policy.
SEARCH_RULES: dict[str, Callable[..., tuple[Any, ...] | str] | str] = {
    "beamer": lambda alpha, beta: ("kByEdges", alpha, beta),
    "hiragushi": _hiragushi,
    "bfs2d": lambda ratio: ("kByUnvisited", ratio),
    "density": lambda threshold: ("kByDensity", threshold),
    "tdbu": "its first steps pull by all entries of a column, which no fused search does",
    "vbfs": "its groups of entries are not those of a fused search",
    "active": "its lists of active edges are not those of a fused loop",
    "mgbc": "its lists of active edges are not those of a fused loop",
}
#: The policies by which a search may run as one kernel.
FUSED_POLICIES = ("auto", *(name for name, rule in SEARCH_RULES.items() if callable(rule)))


def named_policy(body: Statements) -> str | None:
    """Return the first policy that a product of the body names."""
    products = (s.operation.product for s in body if isinstance(s.operation, Multiply))
    return next((p.policy for p in products if p.policy is not None), None)


def _search_by_policy(body: Statements, until: Until, text: str) -> KernelLoop | Rejection:
    """Return the search with the directions of a policy, or why it runs statement by statement."""
    name, given = policy_of(text)
    rule = SEARCH_RULES.get(name, tuple)  # of `auto`, which takes nothing
    numbers = rule if isinstance(rule, str) else rule(**given)
    if isinstance(numbers, str):
        return Rejection(f"policy {name}: {numbers}")
    if not isinstance(until.empty, VectorStore):
        return Rejection(f"policy {name}: the loop has no frontier that is a vector")
    found = match_search(list(map(without_policy, body)), until.empty)
    if isinstance(found, Rejection):
        return Rejection(f"policy {name}: no search: {found.why}")
    by = SearchRule(*numbers)._replace(why=f"policy {text}") if numbers else None
    return grid_search(found._replace(A=found.A.csc()), until.times, by)


def without_policy(s: Any) -> Any:
    if not isinstance(s.operation, Multiply):
        return s
    product = s.operation.product._replace(policy=None)
    return s._replace(operation=s.operation._replace(product=product))


# ----------------------------------------------------------------------------------- searches
def _plan_search(
    counters: Counters, statements: Statements, frontier: Any, times: int | None
) -> KernelLoop | Rejection:
    body = match_search(statements, frontier, True)  # the counter plus a number, too
    if isinstance(body, Rejection):
        return body
    body = SearchBody(body.A.csc(), *body[1:])  # a fifth of the time of `_replace`
    if not isinstance(frontier, MatrixHandle):
        return grid_search(body, times)
    if body.added:
        return Rejection(f"the body assigns the counter plus {body.added}")
    if why := _why_no_bitmaps(body):
        return Rejection(why)
    number = _constant_value(body)
    if number is None or any(a.what == VALUE for a in body.assignments):
        return per_source_search(counters, body, times)
    return search_without_values(counters, body, times, number)


def _constant_value(body: SearchBody) -> Any:
    """Return the value of each entry of the frontier after any product, or None if it varies."""
    frontier: MatrixHandle = body.frontier
    store = frontier.store
    x = store.entries if isinstance(store, BitmapMatrix) else store
    has_values, number = x.values is not None, x.number
    for _ in range(2):
        found = iso_result(body.A, has_values, number, body.product)
        if found is None:
            return None
        before, has_values, number = number, False, cast_number(found, frontier.dtype)
    return number if before == number else None


def _why_no_bitmaps(body: SearchBody) -> str:
    k, n = body.frontier.shape
    if n * stride(k) // 32 >= 2**31:
        return "the frontier has 2**31 words or more"
    return run.why_no_bitmap([body.frontier, *(a.target for a in body.assignments)], 2)
