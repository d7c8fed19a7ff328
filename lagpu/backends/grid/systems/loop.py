"""A recorded loop as a search by a paper's system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.fused.match import DEPTH, NUMBER, SearchBody, match_search
from lagpu.backends.grid.handles import GridHandle, GridVector
from lagpu.backends.grid.pieces import Entries, Pieces, from_entries
from lagpu.backends.grid.systems.policy import System, policies_with_systems, system_of
from lagpu.backends.grid.systems.search import Search
from lagpu.backends.policies import require_policy
from lagpu.backends.profile import LoopRow, Measured
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.errors import NotSupported
from lagpu.host.interrupt import uninterrupted
from lagpu.operations import (
    Assign,
    Descriptor,
    Handle,
    Multiply,
    Rejection,
    Statement,
    Sweep,
    Until,
    once,
)

__all__ = ["SystemLoop", "plan_system", "require_no_system"]

Array = np.ndarray[Any, Any]
_Assigned = list[tuple[int, Array]]  # the depth and the own vertices of each frontier


def plan_system(
    pieces: Pieces, statements: Sequence[Statement], turns: Until | Sweep
) -> SystemLoop | None:
    """Return the loop as a search by the system that its product names; None if it names none.

    Raises
    ------
    InvalidValue
        If the system has no such argument.
    NotSupported
        If the loop is not such a search.
    """
    policy = once(statements, _policy_of)
    system = None if policy is None else system_of(policy)
    if system is None:
        return None
    body: SearchBody | Rejection
    if isinstance(turns, Sweep) or not isinstance(turns.empty, GridVector):
        body = Rejection("the loop has no frontier that is a vector")
    else:
        body = match_search(list(map(_without_policy, statements)), turns.empty)
    why = body.why if isinstance(body, Rejection) else _why_no_search(body)
    if why:
        raise _refused(str(policy), why)
    assert isinstance(body, SearchBody)
    assert isinstance(turns, Until)
    return SystemLoop(pieces, body, system, str(policy), turns.times)


def _policy_of(statements: Sequence[Statement]) -> str | None:
    """Return the policy of the first product."""
    products = (s.operation.product for s in statements if isinstance(s.operation, Multiply))
    return next((product.policy for product in products), None)


def require_no_system(place: Backend, policy: str | None) -> None:
    """Raise `NotSupported` if a product by itself names a system; `InvalidValue` if no policy."""
    if policy is not None:
        require_policy(policies_with_systems(place), policy)
    if system_of(policy) is not None:
        raise _refused(str(policy), "a product that runs by itself is no search")


def _refused(policy: str, why: str) -> NotSupported:
    return NotSupported(
        f"policy {policy}: {why}. Search for levels or parents from one vertex by a loop that is "
        "recorded, on a grid that lagpu.grid(policy=...) or --policy gave it, or leave it out."
    )


def _without_policy(s: Statement) -> Statement:
    if not isinstance(s.operation, Multiply):
        return s
    product = s.operation.product._replace(policy=None)
    return s._replace(operation=s.operation._replace(product=product))


def _why_no_search(body: SearchBody) -> str:
    """Return why a body is no search for levels or parents, or an empty string."""
    multiply, monoid = body.product.semiring.multiply, body.product.semiring.monoid
    if body.sums:
        return "products of a level add up"
    if multiply.positional == "k" and monoid.op.name == "any":
        return ""
    if multiply.positional or any(body.reads) or not monoid.idempotent:
        return "the values of the product are neither ones nor predecessors"
    return ""


class SystemLoop:
    """A search that runs by a system; see `FusedLoop`.

    It makes new parts, which the handles take once no process can fail any more.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    body : SearchBody
        The loop's body, on handles of the grid.
    system : System
        How it runs.
    policy : str
        The name and arguments of the system, as given.
    times : int or None
        Iterations, at most.
    """

    def __init__(
        self, pieces: Pieces, body: SearchBody, system: System, policy: str, times: int | None
    ) -> None:
        self._pieces, self._body, self._system, self._times = pieces, body, system, times
        self._search: Search | None = None
        R, C = pieces.grid
        self.name = policy
        self.why = f"the body is a search from one frontier; {R} x {C} pieces"
        self.nbytes = 0  # on the places: they ask for it themselves

    def run(self) -> None:
        """See `FusedLoop`."""
        body = self._body._replace(statements=())  # of which the other fields are made
        given = {"policy": self.name, "body": body, "times": self._times}
        self._pieces.changes.run("search", self._run, given)

    def _run(self) -> None:
        if self._times == 0:
            return
        body = self._body
        given: Any = body.A
        A = given if body.product.transpose else self._pieces.turned(given)
        numbered = body.product.semiring.multiply.positional == "k"
        search = self._search = Search(self._pieces, A, self._system, numbered)
        first = [place.vector_to_coo(body.frontier.parts[k]) for k, _, place in self._pieces]
        self._begin(search, first)
        assigned: list[_Assigned] = [[] for _ in first]
        while search.total and len(search.levels) != self._times:
            depth = len(search.levels)
            if body.assigns_first:
                _note(assigned, search, depth)
            search.advance()
            if not body.assigns_first:
                _note(assigned, search, depth)
        self._write(search, assigned, self._values(search, first, numbered))

    def _begin(self, search: Search, first: Sequence[Entries]) -> None:
        """Give the search the frontier, and what the mask of the first product leaves out."""
        visited = []
        for (k, _, place), (front, _values) in zip(self._pieces, first, strict=True):
            excluded = place.vector_to_coo(self._body.excluded.parts[k])[0]
            visited.append(np.union1d(excluded, front) if self._body.assigns_first else excluded)
        search.begin([front for front, _ in first], visited)

    def _values(self, search: Search, first: Sequence[Entries], numbered: bool) -> list[Array]:
        """Return the value in the frontier of each own vertex that was in one, by local piece."""
        dtype, found = self._body.frontier.dtype.numpy, []
        parents = search.parents() if numbered else [1] * len(first)
        for piece, (front, values), of in zip(search.local, first, parents, strict=True):
            own = np.empty(piece.size, dtype)
            own[:] = of
            given = piece.giver[front] < 0  # not found once more
            own[front[given]] = values[given]
            found.append(own)
        return found

    def _write(self, search: Search, assigned: list[_Assigned], values: list[Array]) -> None:
        """Make the new parts of the frontier and of what is assigned; the handles take them."""
        body, pieces = self._body, self._pieces
        frontier = pieces.empty(body.frontier.dtype, body.frontier.shape)
        targets = [pieces.empty(a.target.dtype, a.target.shape) for a in body.assignments]
        for k, _, place in pieces:
            size, at = len(values[k]), search.local[k].front
            frontier.parts[k] = _vector(place, at, values[k][at], frontier.dtype, size)
            at = np.concatenate([at[:0], *(front for _, front in assigned[k])])
            depths = np.repeat([d for d, _ in assigned[k]], [len(f) for _, f in assigned[k]])
            for a, target in zip(body.assignments, targets, strict=True):
                given = depths if a.what == DEPTH else values[k][at]
                if a.what == NUMBER:
                    given = np.full(len(at), a.number)
                part = _vector(place, at, given, target.dtype, size)
                target.parts[k] = _added(place, a.target.parts[k], part, target.dtype)
        written = [body.frontier, *(a.target for a in body.assignments)]
        new = list(zip(written, [frontier, *targets], strict=True))
        pieces.changes.make(lambda: _take(new))

    def rows(self, products: Sequence[Measured]) -> list[LoopRow]:
        """Return a row for each statement and level, once the loop has run.

        Parameters
        ----------
        products : sequence of Measured
            The local products in their order, level by level.
        """
        assert self._search is not None
        found, local, done = [], len(self._search.local), 0
        for depth, level in enumerate(self._search.levels):
            parts = products[done : done + level.products]
            done += level.products
            edges = [level.listed, *(part.edges for part in parts)]
            known = all(count is not None for count in edges)
            measured = Measured(
                kernel_ms=sum(phase.ms for phase in level.phases),
                host_ms=None,
                direction={0: "push", local: "pull"}.get(level.pulls, "both"),
                kernel=(parts[0].kernel if parts else "") or self.name,
                reason=f"{level.why}; {level.pulls} of {local} pieces pull",
                edges=sum(count or 0 for count in edges) if known else None,
                phases=level.phases,
            )
            assigned = Measured(0.0, None, reason="timed with the product")
            for k, s in enumerate(self._body.statements):
                is_product = isinstance(s.operation, Multiply)
                out = level.found if is_product else level.frontier
                of = measured if is_product else assigned
                found.append(LoopRow(k, depth, level.frontier, out, of))
        return found


def _note(assigned: list[_Assigned], search: Search, depth: int) -> None:
    for noted, piece in zip(assigned, search.local, strict=True):
        noted.append((depth, piece.front))


def _take(new: Sequence[tuple[GridHandle, GridHandle]]) -> None:
    with uninterrupted():
        for x, found in new:
            x.become(found)


def _vector(place: Backend, at: Array, values: Array, dtype: DType, size: int) -> Handle:
    return from_entries(place, (at, values.astype(dtype.numpy)), dtype, (size,))


def _added(place: Backend, x: Handle, part: Handle, dtype: DType) -> Handle:
    """Return a vector with the entries of `part`, and elsewhere those of `x`."""
    if not place.nvals(x):
        return part
    made = place.dup(x, dtype)
    place.execute(Statement(made, Descriptor(part), Assign(part), dtype))
    return made
