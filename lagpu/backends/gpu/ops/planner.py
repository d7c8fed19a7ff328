"""The planner: direction and kernel of one product, with the reason in numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from lagpu.backends.gpu.storage.forms import by_rows, can_turn, is_symmetric, why_not_turned
from lagpu.backends.gpu.storage.stats import Listing
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Descriptor, Product
from lagpu.errors import InvalidValue, NotSupported

__all__ = ["AUTO_BETA", "KERNELS", "POLICIES", "Plan", "auto_alpha", "choose"]

KERNELS = (
    "push_edge",
    "push_queue",
    "push_active",
    "push_virtual",
    "pull_active",
    "pull_scalar",
    "pull_warp",
    "pull_bitmap",
)

#: Frontier density at which ``turbobfs`` turns to pulling (Artiles and Saeed 2021, section III C).
TURBOBFS_DENSITY = 0.10
#: Mean column length from which a warp a column is faster than a thread (docs/design/planner.md).
WARP_LENGTH = 16.0
#: alpha and beta of Beamer, Asanovic and Patterson 2012, section 5.1, as each paper has them.
BEAMER, HIRAGUSHI = (14.0, 24.0), (48.0, 20.0)
#: ``auto``: alpha by mean column length: up to SHORT_LENGTH searches are long, from DENSE_LENGTH a
#: miss of a pull is dear; beta (docs/design/planner.md).
AUTO_ALPHA, AUTO_LONG_ALPHA, AUTO_DENSE_ALPHA, AUTO_BETA = 30.0, 14.0, 4.0, 24.0
SHORT_LENGTH, DENSE_LENGTH = 8.0, 128.0
#: Frontier over unvisited vertices from which ``bfs2d`` pulls (Bisson and Bernaschi, section 3.2,
#: leave it to the user to find).
BFS2D_RATIO = 0.05
#: Entries a group of ``push_virtual``, where the author gives none.
GROUP = 32


class Plan(NamedTuple):
    """What was chosen for one product.

    Attributes
    ----------
    direction : str
        ``"push"`` or ``"pull"``.
    kernel : str
        One of `KERNELS`.
    why : str or tuple
        The reason, or a text and the numbers to put into it once somebody asks.
    group : int
        Entries a group, for ``push_virtual``.
    keep : bool
        Whether ``push_active`` leaves its list of entries in the vector.
    listing : Listing or None
        The list that ``pull_active`` takes, instead of making one.
    """

    direction: str
    kernel: str
    why: Any
    group: int = GROUP
    keep: bool = False
    listing: Listing | None = None

    @property
    def reason(self) -> str:
        """Why, in numbers."""
        return self.why if isinstance(self.why, str) else self.why[0].format(*self.why[1:])


class Numbers(NamedTuple):
    """What a policy decides by.

    Attributes
    ----------
    size, nvals : int
        Size and entries of the vector that is multiplied: all vertices, and those of the frontier.
    leaving : int
        Matrix entries in the columns of these: the frontier's edges.
    exact : bool
        Whether `leaving` was counted; else it is `nvals` mean columns.
    unexplored, unvisited : int
        Matrix entries, and vertices, that neither this nor an earlier frontier has.
    length : float
        Mean entries a result.
    pulled : bool
        Whether the product before this one pulled.
    wanted : int or None
        Entries of the mask, if results are wanted at these alone.
    listing : Listing or None
        What an earlier product left in the mask.
    """

    size: int
    nvals: int
    leaving: int
    exact: bool
    unexplored: int
    unvisited: int
    length: float
    pulled: bool
    wanted: int | None = None
    listing: Listing | None = None


def choose(A: MatrixStore, u: VectorStore, how: Product, desc: Descriptor | None = None) -> Plan:
    """Return the plan of a product; `desc` has the mask.

    Raises
    ------
    InvalidValue
        For an unknown kernel or policy; the message lists the valid ones.
    NotSupported
        If the kernel needs rows that the matrix is told not to keep.
    """
    if how.kernel is not None:
        return _asked_for(A, how)
    policy = POLICIES.get("auto" if how.policy is None else how.policy)
    if policy is None:
        raise InvalidValue(f"policy: there is no {how.policy!r}. Use {_list(tuple(POLICIES))}.")
    numbers = _numbers(A, u, how)
    if policy is _active or policy is _mgbc:  # sweeps: both forms serve again
        plan: Plan = policy(_with_mask(numbers, A, how, desc, lists=policy is _mgbc))
        if _is_there(A, how, plan.direction) or can_turn(A):
            return plan
    plan = policy(numbers)
    return plan if A.symmetric or A.rows is not None else _with_forms(A, u, how, plan)


def _asked_for(A: MatrixStore, how: Product) -> Plan:
    """Return the plan that the author names, as ``push_queue`` or ``push_virtual:64``."""
    name, sized, size = str(how.kernel).partition(":")
    group = GROUP
    if sized and name == "push_virtual":
        if not re.fullmatch("[0-9]{1,4}", size) or not 1 <= int(size) <= 1024:
            raise InvalidValue(f"kernel: {how.kernel!r} has no group of 1 to 1024 entries.")
        group = int(size)
    elif sized or name not in KERNELS:
        raise InvalidValue(
            f"kernel: there is no {how.kernel!r}. Use {_list(KERNELS)}; "
            "push_virtual:64 takes groups of 64 entries."
        )
    plan = Plan(name.split("_")[0], name, "asked for", group)
    if name != "push_edge" and not (_is_there(A, how, plan.direction) or can_turn(A)):
        remedy = "free some memory" if A.turnable else "set orientation to auto"
        raise NotSupported(
            f"{name}: needs the other form of a directed matrix, and {why_not_turned(A)}. "
            f"Use push_edge, or {remedy}."
        )
    return plan


def _numbers(A: MatrixStore, u: VectorStore, how: Product) -> Numbers:
    nvals, size, trail = u.nvals, u.size, u.trail
    visited = before = 0
    leaving, exact, pulled = None, False, False
    if trail is not None:
        pulled = trail.pulled
        if trail.matrix() is A:  # made by a product with this matrix
            visited, before, leaving = trail.visited, trail.explored, u.leaving
    if leaving is None:
        leaving = A.nvals * nvals // max(size, 1)
        exact = nvals in (0, size)
    else:
        exact = True
    return Numbers(
        size,
        nvals,
        leaving,
        exact,
        max(A.nvals - before - leaving, 0),
        max(size - visited - nvals, 0),
        A.nvals / max(A.shape[1 if how.transpose else 0], 1),
        pulled,
    )


def _with_mask(
    x: Numbers, A: MatrixStore, how: Product, desc: Descriptor | None, lists: bool
) -> Numbers:
    """Return the numbers with those of the mask, and its list if `lists`."""
    mask = None if desc is None else desc.mask
    if mask is None or desc is None or desc.complement:
        return x
    listing: Listing | None = None
    if lists and desc.structure and mask.listing is not None:
        form = A if how.transpose or is_symmetric(A) else by_rows(A) if can_turn(A) else A.rows
        listing = None if form is None else mask.listing.of(form)
    return x._replace(wanted=mask.nvals, listing=listing)


def _turbobfs(x: Numbers) -> Plan:
    """Push while the frontier is sparse; from 10 % on pull, and never push again."""
    density = x.nvals / max(x.size, 1)
    if not x.pulled and density < TURBOBFS_DENSITY:
        return Plan("push", "push_edge", f"density {density:.2%} < {TURBOBFS_DENSITY:.0%}")
    kernel, by = _by_length(x)
    before = "pulled before" if x.pulled else f"density {density:.2%} >= {TURBOBFS_DENSITY:.0%}"
    return Plan("pull", kernel, f"{before}; {by}")


def _by_length(x: Numbers) -> tuple[str, str]:
    """Return a thread or a warp a column, and why."""
    kernel, sign = ("pull_warp", ">=") if x.length >= WARP_LENGTH else ("pull_scalar", "<")
    return kernel, f"column length {x.length:.1f} {sign} {WARP_LENGTH:.0f}"


def _pulls(
    nvals: int, size: int, leaving: int, unexplored: int, pulled: bool, alpha: float, beta: float
) -> bool:
    """Whether few edges are left beside the frontier's or, once pulled, still many vertices are."""
    return nvals * beta >= size if pulled else leaving * alpha > unexplored


def _by_edges(x: Numbers, alpha: float, beta: float) -> Plan:
    """Pull when few edges are left beside the frontier's, push again when few vertices are."""
    numbers: tuple[Any, ...]
    pulls = _pulls(x.nvals, x.size, x.leaving, x.unexplored, x.pulled, alpha, beta)
    if x.pulled:
        numbers = x.nvals, x.size, beta
        text = f"pulled before; vertices {{}} {'>=' if pulls else '<'} {{}} / {{:g}}"
    else:
        numbers = "" if x.exact else "about ", x.leaving, x.unexplored, alpha
        text = f"edges {{}}{{}} {'>' if pulls else '<='} unexplored {{}} / {{:g}}"
    if pulls:
        return Plan("pull", "pull_bitmap", (text, *numbers))
    return Plan("push", "push_queue", (text, *numbers))


def _bfs2d(x: Numbers) -> Plan:
    """Push while the frontier is small against what is not visited, whatever came before."""
    ratio = x.nvals / x.unvisited if x.unvisited else float("inf")
    if ratio < BFS2D_RATIO:
        return Plan("push", "push_active", f"frontier / unvisited {ratio:.3g} < {BFS2D_RATIO:g}")
    kernel, by = _by_length(x)
    return Plan("pull", kernel, f"frontier / unvisited {ratio:.3g} >= {BFS2D_RATIO:g}; {by}")


def _active(x: Numbers) -> Plan:
    """Active edges in both directions: the mask's, if it says where results are wanted."""
    if x.wanted is not None:
        return Plan("pull", "pull_active", ("wanted at {} entries of the mask", x.wanted))
    return Plan("push", "push_active", ("wanted everywhere but at the mask; vertices {}", x.nvals))


def _mgbc(x: Numbers) -> Plan:
    """As `_active`; the backward sweep takes the lists that the forward sweep kept."""
    plan = _active(x)
    if plan.direction == "push":
        return plan._replace(keep=True)
    if x.listing is None:
        return plan
    why = "wanted at {} entries of the mask, listed by an earlier product", x.wanted
    return plan._replace(listing=x.listing, why=why)


def auto_alpha(length: float) -> float:
    """Return the alpha of ``auto`` for a mean column length."""
    if length <= SHORT_LENGTH:
        return AUTO_LONG_ALPHA
    return AUTO_DENSE_ALPHA if length >= DENSE_LENGTH else AUTO_ALPHA


def _auto(x: Numbers) -> Plan:
    """As `_by_edges`, with the numbers that were best on an H200."""
    return _by_edges(x, auto_alpha(x.length), AUTO_BETA)


POLICIES: dict[str, Callable[[Numbers], Plan]] = {
    "auto": _auto,
    "turbobfs": _turbobfs,
    "beamer": lambda x: _by_edges(x, *BEAMER),
    "hiragushi": lambda x: _by_edges(x, *HIRAGUSHI),
    "bfs2d": _bfs2d,
    "active": _active,
    "mgbc": _mgbc,
}


def _with_forms(A: MatrixStore, u: VectorStore, how: Product, plan: Plan) -> Plan:
    """Return the plan, or another one if the form of the matrix that it needs is not to be had.

    The second form of a directed matrix is made when a product follows another one, so that it
    will serve again.
    """
    if plan.kernel == "push_edge" or _is_there(A, how, plan.direction):
        return plan
    if u.trail is not None and can_turn(A):
        return plan._replace(why=f"{plan.reason}; second form made")
    why = "it is not made for one product" if can_turn(A) else why_not_turned(A)
    if plan.direction == "push" and not u.nvals * 8 < u.size:
        kernel, by = _by_length(_numbers(A, u, how))
        return Plan("pull", kernel, f"{plan.reason}, but the second form is missing: {why}; {by}")
    other = "push_queue" if _is_there(A, how, "push") else "push_edge"
    return Plan("push", other, f"{plan.reason}, but the second form is missing: {why}")


def _is_there(A: MatrixStore, how: Product, direction: str) -> bool:
    """Whether the form of the matrix is there that a direction needs."""
    if A.rows is not None or how.transpose is (direction == "pull"):
        return True
    return is_symmetric(A)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]
