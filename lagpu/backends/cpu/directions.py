"""Directions of a product, and the stored forms that each needs."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from lagpu.algebra.operators import Monoid
from lagpu.backends.cpu.handles import (
    NULL,
    Box,
    check,
    count_entries,
    ffi,
    finish,
    gb,
    lib,
    store_as,
    usual_forms,
)
from lagpu.backends.cpu.workarounds import boxed
from lagpu.backends.policies import Policy, find_policy, number
from lagpu.dtypes import BOOL, DType
from lagpu.errors import NotSupported
from lagpu.host.memory import available_bytes, require
from lagpu.operations import Descriptor, Product

# Bytes of a transpose and of making it: an entry without its value, and a row or column; measured,
# docs/design/memory.md.
_ENTRY, _VERTEX = 9, 32
_LARGE = 1 << 16  # entries from which free memory is read


class Counts:
    """Counts of a matrix, made when a product needs them, and dropped when the matrix is written.

    `nvals` are its entries, `lacked` those that products looked at because the matrix lacks its
    transpose. By row (True) or by column (False), `degrees` are full vectors of python-graphblas,
    and `most` is the longest.
    """

    __slots__ = ("degrees", "lacked", "most", "nvals", "shape")

    def __init__(self, A: Box) -> None:
        self.nvals = int(A.gb.nvals)
        self.shape: tuple[int, int] = A.gb.shape
        self.lacked = 0
        self.degrees: dict[bool, Any] = {}
        self.most: dict[bool, int] = {}


def counts_of(A: Box) -> Counts:
    """Return the counts of a matrix."""
    if A.counts is None:
        A.counts = Counts(A)
    found: Counts = A.counts
    return found


def degrees(A: Box, by_row: bool) -> Any:
    """Return the entries of each row, or of each column, as a python-graphblas vector."""
    known = counts_of(A).degrees
    if by_row not in known:
        count = A.gb.reduce_rowwise("count") if by_row else A.gb.reduce_columnwise("count")
        full = gb.Vector("INT64", counts_of(A).shape[not by_row])
        full[:] = 0
        full(gb.binary.plus) << count
        known[by_row] = full
    return known[by_row]


def longest(A: Box, by_row: bool) -> int:
    """Return the entries of the longest row, or of the longest column."""
    most: dict[bool, int] = counts_of(A).most
    if by_row not in most:
        most[by_row] = int(degrees(A, by_row).reduce("max").new().value or 0)
    return most[by_row]


def degree_sum(A: Box, u: Box, by_row: bool) -> int:
    """Return the number of entries of the rows, or of the columns, at which a vector has some."""
    met = u.gb.inner(degrees(A, by_row), gb.semiring.plus_second["INT64"]).new()
    return int(met.value or 0)


# ---------------------------------------------------------------------------- the transpose
def transposed(A: Box) -> Box | None:
    """Return the transpose of a matrix if it is there; a symmetric matrix is its own."""
    return A if A.symmetric else A.transposed


def why_no_transpose(A: Box) -> str:
    """Return why the transpose of a matrix may not be made, or an empty string."""
    if not A.may_transpose:
        return "its orientation is csc"
    need, free = _bytes(A), available_bytes()
    if need > free and counts_of(A).nvals >= _LARGE:
        return f"making it needs {need / 1e6:,.1f} MB, {free / 1e6:,.1f} MB free"
    return ""


def make_transposed(A: Box) -> Box:
    """Return the transpose of a matrix, made now and kept; a symmetric matrix is its own."""
    known = transposed(A)
    if known is not None:
        return known
    if why := why_no_transpose(A):
        remedy = "free some memory" if A.may_transpose else "set orientation to auto"
        raise NotSupported(
            f"cpu: the other direction needs the matrix transposed, and {why}. "
            f"Use policy='auto', or {remedy}."
        )
    other = transpose_of(A)
    if A.symmetric is None:
        A.symmetric = A.gb.nrows == A.gb.ncols and bool(A.gb.isequal(other.gb))
    A.transposed = None if A.symmetric else other
    return A if A.symmetric else other


def transpose_of(A: Box) -> Box:
    """Return a new matrix, the transpose."""
    if counts_of(A).nvals >= _LARGE:
        require(_bytes(A), "transpose")
    new = gb.Matrix(A.dtype.name, A.gb.ncols, A.gb.nrows)
    new.ss.config["format"] = "by_row"
    check(lib.GrB_transpose(new.gb_obj[0], NULL, NULL, A.handle, NULL), "transpose")
    made = boxed(new, A.dtype)
    finish(made)
    return made


def _bytes(A: Box) -> int:
    """Return the bytes that making the transpose takes."""
    counts = counts_of(A)
    return counts.nvals * (_ENTRY + A.width) + _VERTEX * sum(counts.shape)


def memory_of(A: Box) -> str:
    """Return a line on what a matrix holds: its form by rows, and that by columns if it is kept."""
    columns = "" if A.transposed is None else f", by columns {_held(A.transposed)}"
    return f"by rows {_held(A)}{columns}"


def _held(A: Box) -> str:
    nbytes = ffi.new("size_t*")
    check(lib.GxB_Matrix_memoryUsage(nbytes, A.handle), "memoryUsage")
    return f"{nbytes[0] / 1e6:,.1f} MB"


# ------------------------------------------------------------------------- forms of vectors
@contextmanager
def stored_as_bitmap(v: Box) -> Iterator[None]:
    """Store a vector as bitmap or full, and let SuiteSparse choose its form again afterwards."""
    store_as(v.gb, lib.GxB_BITMAP | (lib.GxB_FULL if v.full else 0))
    try:
        yield
    finally:
        store_as(v.gb, usual_forms(v))


def as_bitmap_for(w: Box, desc: Descriptor) -> Any:
    """Store the output of an assignment as bitmap if its mask is a large frontier.

    Such a mask is a bitmap too. Into a sparse output, SuiteSparse writes each entry as a pending
    one, and sorts them later (docs/design/cpu.md).
    """
    mask = desc.mask
    if mask is None or mask.search is None or not mask.search.large or desc.accum is not None:
        return _AS_IT_IS
    return stored_as_bitmap(w)


_AS_IT_IS = nullcontext()


# ------------------------------------------------------------------------------------------
# The direction of a product of matrix and vector: push or pull, with the reason in numbers.
#
# SuiteSparse has a method for either direction, and by itself takes the one that suits the form
# in which the matrix is stored: by rows, ``u @ A`` is pushed and ``A @ u`` pulled. The other
# direction needs the transpose, which is the matrix itself if that is symmetric.


#: (alpha, beta) of Beamer, Asanovic and Patterson 2012, section 5.1: a search pulls from the level
#: on where (edges that leave the frontier) * alpha exceed the edges not looked at yet, and pushes
#: again where (vertices of the frontier) * beta are less than all.
BEAMER = (14.0, 24.0)
#: Alpha, the beta of the way back to pushing, and the beta of a second pull: LAGraph's search for
#: SuiteSparse, LG_BreadthFirstSearch_SSGrB_template.c.
ALPHA, BETA_PUSH, BETA_PULL = 8.0, 512, 8
#: Alpha of a pull that looks at every neighbour, since its sum needs all of them.
ALPHA_SUMS = 1.0
#: A matrix is transposed once products looked at so many times its entries for lack of that: by
#: then making it would have paid (docs/design/cpu.md).
PATIENCE = 6
#: A push along n / 16 edges may find enough for SuiteSparse to store them as a bitmap.
_LARGE_PUSH = 16

LAST = threading.local()  # plan: of this thread's last product


class Plan(NamedTuple):
    """The choice for one product.

    Attributes
    ----------
    direction : str
        ``"push"`` or ``"pull"``; an empty string where the choice is SuiteSparse's.
    why : str or tuple
        The reason, or a text and the numbers to put into it when it is read.
    edges, nvals : int
        Matrix entries that leave the frontier, about, and its vertices.
    lacks : bool
        Whether it would be the other direction if the transpose were there.
    makes : bool
        Whether the transpose is made first.
    """

    direction: str
    why: Any
    edges: int = 0
    nvals: int = 0
    lacks: bool = False
    makes: bool = False

    @property
    def kernel(self) -> str:
        """The method of SuiteSparse."""
        return _METHODS[self.direction]

    @property
    def reason(self) -> str:
        """Why, in numbers."""
        return self.why if isinstance(self.why, str) else self.why[0].format(*self.why[1:])


_METHODS = {"push": "SuiteSparse saxpy", "pull": "SuiteSparse dot", "": "SuiteSparse"}


class Search(NamedTuple):
    """What a product leaves in its result, for the choice of the next product.

    Attributes
    ----------
    matrix : weakref.ref of Box
        The matrix.
    explored, nvals : int
        Its entries that this and earlier frontiers met, about; entries of the vector.
    pulled, ever : bool
        Whether this product pulled, and whether it or an earlier one did.
    large : bool
        Whether SuiteSparse may have made the result as a bitmap.
    """

    matrix: Any = None
    explored: int = 0
    nvals: int = 0
    pulled: bool = False
    ever: bool = False
    large: bool = False


_NOTHING = Search()  # before the first product


class Numbers(NamedTuple):
    """The numbers by which a policy decides.

    Attributes
    ----------
    A, u, by_row : Box, Box, bool
        The operands, and whether the vector's entries are rows of the matrix.
    all_edges, size, nvals : int
        Entries of the matrix, size of the vector, and its entries: the frontier.
    before : Search
        What the product before left.
    alpha : float or None
        `ALPHA_SUMS` for a sum that needs every neighbour.
    """

    A: Box
    u: Box
    by_row: bool
    all_edges: int
    size: int
    nvals: int
    before: Search
    alpha: float | None

    @property
    def unexplored(self) -> int:
        """Matrix entries that no earlier frontier met."""
        return max(self.all_edges - self.before.explored, 0)

    def plan(self, pulls: bool, *why: Any) -> Plan:
        """Return a plan; its edges are as many as so many vertices have on average."""
        edges = self.all_edges * self.nvals // (self.size or 1)
        return Plan("pull" if pulls else "push", why, edges, self.nvals)

    def by_edges(self, alpha: float) -> Plan:
        """Pull if few edges are left beside the frontier's.

        The edges are counted only if they can be so many: a search of many levels has few in each.
        """
        alpha = alpha if self.alpha is None else self.alpha
        unexplored = self.unexplored
        most = self.nvals * longest(self.A, self.by_row)
        if self.nvals == self.size:
            plan, about = self.plan(False), ""
        elif most * alpha <= unexplored - most:
            plan, about = self.plan(False), "about "
        else:
            edges = degree_sum(self.A, self.u, self.by_row)
            plan, about = Plan("push", "", edges, self.nvals), ""
        left = max(unexplored - plan.edges, 0)
        if plan.edges * alpha > left:
            why = "edges {} > unexplored {} / {:g}", plan.edges, left, alpha
            return plan._replace(direction="pull", why=why)
        return plan._replace(
            why=("edges {}{} <= unexplored {} / {:g}", about, plan.edges, left, alpha)
        )


def choose(A: Box, u: Box, product: Product, desc: Descriptor | None = None) -> Plan:
    """Return the plan of a product; nothing is made or changed."""
    name, given = _policy_of("auto" if product.policy is None else product.policy)
    if 0 in counts_of(A).shape:
        return Plan("", "SuiteSparse chooses its own method: the matrix has a size of 0")
    monoid = product.semiring.monoid
    named = name in ("push", "pull")
    why = "" if named else _why_no_choice(monoid, product.result, desc)
    if why:
        return Plan("", why)
    plan: Plan = POLICIES[name].rule(_numbers(A, u, product), **given)
    if product.transpose is (plan.direction == "push") or transposed(A) is not None:
        return plan
    return plan._replace(makes=True) if named else _without_transpose(A, plan)


def _why_no_choice(monoid: Monoid, result: DType, desc: Descriptor | None) -> str:
    """Return why the direction is left to SuiteSparse, or an empty string."""
    if not (monoid.has_any_terminal or (monoid.is_exact(result) and not monoid.registered)):
        return f"SuiteSparse chooses its own method: {monoid.name} of {result} may round"
    if desc is None:
        return ""
    if desc.accum is not None:
        return "SuiteSparse chooses its own method: the result is accumulated"
    if desc.mask is not None and not desc.complement:
        return "SuiteSparse chooses its own method: the mask says where results are wanted"
    return ""


def _numbers(A: Box, u: Box, product: Product) -> Numbers:
    """Return the numbers of a product."""
    counts, by_row, before = counts_of(A), product.transpose, u.search
    if before is None or before.matrix() is not A:
        before = _NOTHING
    stops = product.semiring.monoid.has_any_terminal or product.result is BOOL
    return Numbers(
        A,
        u,
        by_row,
        counts.nvals,
        counts.shape[not by_row],
        count_entries(u),
        before,
        None if stops else ALPHA_SUMS,
    )


def _auto(x: Numbers) -> Plan:
    """Pull once a growing frontier has an eighth of the edges that are left, as LAGraph does."""
    nvals, before = x.nvals, x.before
    growing = nvals > before.nvals
    if before.pulled:
        pulls = growing or nvals * BETA_PUSH > x.size
        text = "pulled before; vertices {} after {}, and {} / {}"
        return x.plan(pulls, text, nvals, before.nvals, x.size, BETA_PUSH)
    if not growing:
        return x.plan(False, "vertices {} <= {} before", nvals, before.nvals)
    if x.unexplored < x.size:
        return x.plan(False, "unexplored {} < {} vertices", x.unexplored, x.size)
    if before.ever:
        pulls = nvals * BETA_PULL > x.size
        text = f"pulled once; vertices {{}} {'>' if pulls else '<='} {{}} / {{}}"
        return x.plan(pulls, text, nvals, x.size, BETA_PULL)
    return x.by_edges(ALPHA)


def _beamer(x: Numbers, alpha: float, beta: float) -> Plan:
    """Pull when few edges are left beside the frontier's, push again when few vertices are."""
    if not x.before.pulled:
        return x.by_edges(alpha)
    pulls = x.nvals * beta >= x.size
    text = f"pulled before; vertices {{}} {'>=' if pulls else '<'} {{}} / {{:g}}"
    return x.plan(pulls, text, x.nvals, x.size, beta)


POLICIES: dict[str, Policy] = {
    "auto": Policy(_auto),
    "beamer": Policy(_beamer, {"alpha": number(BEAMER[0]), "beta": number(BEAMER[1])}),
    "push": Policy(lambda x: x.plan(False, "asked for")),
    "pull": Policy(lambda x: x.plan(True, "asked for")),
}


@functools.lru_cache(maxsize=256)
def _policy_of(text: str) -> tuple[str, dict[str, Any]]:
    return find_policy(POLICIES, text)


def _without_transpose(A: Box, plan: Plan) -> Plan:
    """Return the plan of a product whose direction needs the transpose, which is not there."""
    counts = counts_of(A)
    if A.may_transpose and counts.lacked <= PATIENCE * counts.nvals:
        why = f"{counts.lacked} of {PATIENCE} x {counts.nvals} entries looked at for lack of it"
    else:
        why = why_no_transpose(A)
    if not why:
        return plan._replace(why=f"{plan.reason}; second form made", makes=True)
    other = "push" if plan.direction == "pull" else "pull"
    reason = f"{plan.reason}, but the second form is missing: {why}"
    return plan._replace(direction=other, why=reason, lacks=True)


def after(A: Box, plan: Plan, before: Search | None) -> Search:
    """Return what a product leaves in its result."""
    explored, pulled = plan.edges, plan.direction == "pull"
    ever = pulled
    if before is not None and before.matrix() is A:
        explored, ever = explored + before.explored, ever or before.ever
    large = pulled or plan.edges * _LARGE_PUSH > max(counts_of(A).shape)
    return Search(weakref.ref(A), explored, plan.nvals, pulled, ever, large)
