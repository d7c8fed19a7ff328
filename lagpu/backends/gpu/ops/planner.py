"""The planner: direction and kernel of one product, with the reason in numbers."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from lagpu.backends.gpu.ops.directions import (
    BEAMER,
    BFS2D_RATIO,
    EAGER_BETA,
    HIRAGUSHI,
    TURBOBFS_DENSITY,
    WARP_LENGTH,
    alpha_of,
)
from lagpu.backends.gpu.ops.strategies import STRATEGIES
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric, may_make_csr, why_no_second_form
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.stats import EdgeOffsets
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.policies import Argument, Policy, choice, count, find_policy, number
from lagpu.errors import InvalidValue, NotSupported
from lagpu.operations import Descriptor, Product

__all__ = ["POLICIES", "Plan", "choose", "named", "policy_of", "pulls_by_edges"]

#: Entries a group of ``push_virtual``, where the author gives none.
GROUP = 32
#: The largest group: the dense graphs of Wen and Zhang have up to 2028368 / 2048 edges a vertex,
#: and vertices of more than that.
MOST_GROUP = 4096


class Plan(NamedTuple):
    """The choice for one product.

    Attributes
    ----------
    direction : str
        ``"push"`` or ``"pull"``.
    kernel : str
        One of `STRATEGIES`.
    why : str or tuple
        The reason, or a text and the numbers to put into it once somebody asks.
    group : int
        Entries a group, for ``push_virtual``.
    variant : str
        The form of the kernel, of those that its strategy has; "" for the plain one.
    keep : bool
        Whether ``push_active`` leaves its list of entries in the vector.
    edge_offsets : EdgeOffsets or None
        The list that ``pull_active`` takes, instead of making one.
    """

    direction: str
    kernel: str
    why: Any
    group: int = GROUP
    keep: bool = False
    edge_offsets: EdgeOffsets | None = None
    variant: str = ""

    @property
    def reason(self) -> str:
        """Why, in numbers."""
        return self.why if isinstance(self.why, str) else self.why[0].format(*self.why[1:])


class Numbers(NamedTuple):
    """The numbers by which a policy decides.

    Attributes
    ----------
    size, nvals : int
        Size and entries of the vector that is multiplied: all vertices, and those of the frontier.
    frontier_edges : int
        Matrix entries in the columns of these: the frontier's edges.
    exact : bool
        Whether `frontier_edges` was counted; else it is `nvals` mean columns.
    unexplored, unvisited : int
        Matrix entries, and vertices, that neither this nor an earlier frontier has.
    length : float
        Mean entries a result.
    pulled : bool
        Whether the product before this one pulled.
    wanted : int or None
        Entries of the mask, if results are wanted at these alone.
    edge_offsets : EdgeOffsets or None
        What an earlier product left in the mask.
    """

    size: int
    nvals: int
    frontier_edges: int
    exact: bool
    unexplored: int
    unvisited: int
    length: float
    pulled: bool
    wanted: int | None = None
    edge_offsets: EdgeOffsets | None = None


def choose(A: CscMatrix, u: VectorStore, product: Product, desc: Descriptor | None = None) -> Plan:
    """Return the plan of a product; `desc` has the mask.

    Raises
    ------
    InvalidValue
        For an unknown kernel, policy or argument; the message lists the valid ones.
    NotSupported
        If the kernel needs rows that the matrix may not keep.
    """
    if product.kernel is not None:
        return _asked_for(A, product)
    name, given = policy_of("auto" if product.policy is None else product.policy)
    rule, numbers = POLICIES[name].rule, _numbers(A, u, product)
    if name in _SWEEPS:  # both forms serve again
        plan: Plan = rule(_with_mask(numbers, A, product, desc, lists=name == "mgbc"))
        if _is_there(A, product, plan.direction) or may_make_csr(A):
            return plan
    plan = rule(numbers, **given)
    return plan if A.symmetric or A.csr is not None else _with_forms(A, u, product, plan)


def _asked_for(A: CscMatrix, product: Product) -> Plan:
    """Return the plan that the author names, as ``push_queue`` or ``push_virtual:64``."""
    plan = named(str(product.kernel), "asked for")
    name = plan.kernel
    if STRATEGIES[name].needs_form and not (
        _is_there(A, product, plan.direction) or may_make_csr(A)
    ):
        remedy = "free some memory" if A.may_keep_csr else "set orientation to auto"
        raise NotSupported(
            f"{name}: needs the other form of a directed matrix, and {why_no_second_form(A)}. "
            f"Use push_edge, or {remedy}."
        )
    return plan


def named(kernel: str, why: Any) -> Plan:
    """Return the plan for a kernel by its name, as ``push_queue`` or ``push_virtual:64``.

    Raises
    ------
    InvalidValue
        If there is none of this name; the message lists the valid ones.
    """
    name, colon, variant = kernel.partition(":")
    strategy = STRATEGIES.get(name)
    if strategy is None or (colon and not (strategy.variants or name == "push_virtual")):
        raise InvalidValue(
            f"kernel: there is no {kernel!r}. Use {_list(tuple(STRATEGIES))}; "
            "push_virtual:64 takes groups of 64 entries."
        )
    plan = Plan(strategy.direction, name, why)
    if not colon:
        return plan
    if name == "push_virtual":
        if not re.fullmatch("[0-9]{1,4}", variant) or not 1 <= int(variant) <= MOST_GROUP:
            raise InvalidValue(
                f"kernel: {kernel!r} does not name a group of 1 to {MOST_GROUP} entries."
            )
        return plan._replace(group=int(variant))
    if variant not in strategy.variants:
        known = _list((name, *(f"{name}:{other}" for other in strategy.variants)))
        raise InvalidValue(f"kernel: there is no {kernel!r}. Use {known}.")
    return plan._replace(variant=variant)


def _numbers(A: CscMatrix, u: VectorStore, product: Product) -> Numbers:
    nvals, size, stats = u.nvals, u.size, u.stats
    visited = before = 0
    frontier_edges, exact, pulled = None, False, False
    if stats is not None:
        pulled = stats.pulled
        if stats.matrix() is A:  # made by a product with this matrix
            visited, before, frontier_edges = stats.visited, stats.explored, u.frontier_edges
    if frontier_edges is None:
        frontier_edges = A.nvals * nvals // max(size, 1)
        exact = nvals in (0, size)
    else:
        exact = True
    return Numbers(
        size,
        nvals,
        frontier_edges,
        exact,
        max(A.nvals - before - frontier_edges, 0),
        max(size - visited - nvals, 0),
        A.nvals / max(A.shape[1 if product.transpose else 0], 1),
        pulled,
    )


def _with_mask(
    x: Numbers, A: CscMatrix, product: Product, desc: Descriptor | None, lists: bool
) -> Numbers:
    """Return the numbers with those of the mask, and its list if `lists`."""
    mask = None if desc is None else desc.mask
    if mask is None or desc is None or desc.complement:
        return x
    edge_offsets: EdgeOffsets | None = None
    if lists and desc.structure and mask.edge_offsets is not None:
        form = (
            A if product.transpose or is_symmetric(A) else csr_of(A) if may_make_csr(A) else A.csr
        )
        edge_offsets = None if form is None else mask.edge_offsets.of(form)
    return x._replace(wanted=mask.nvals, edge_offsets=edge_offsets)


def _turbobfs(x: Numbers, threshold: float) -> Plan:
    """Push while the frontier is sparse; from the threshold on pull, and never push again."""
    density = x.nvals / max(x.size, 1)
    if not x.pulled and density < threshold:
        return Plan("push", "push_edge", f"density {density:.2%} < {100 * threshold:g}%")
    kernel, by = _by_length(x)
    before = "pulled before" if x.pulled else f"density {density:.2%} >= {100 * threshold:g}%"
    return Plan("pull", kernel, f"{before}; {by}")


_TDBU_KERNELS = {"scalar": "pull_scalar", "vector": "pull_warp"}


def _tdbu(x: Numbers, kernel: str, threshold: float) -> Plan:
    """Pull by every entry while the frontier is sparse; from then on up to the first hit."""
    name, by = _by_length(x) if kernel == "length" else (_TDBU_KERNELS[kernel], kernel)
    density = x.nvals / max(x.size, 1)
    if not x.pulled and density < threshold:
        return Plan(
            "pull", f"{name}_all", f"top-down, density {density:.2%} < {100 * threshold:g}%; {by}"
        )
    sign = "once" if x.pulled else f"{density:.2%}"
    return Plan("pull", name, f"bottom-up, density {sign} >= {100 * threshold:g}%; {by}")


def _vbfs(x: Numbers, group: int) -> Plan:
    """Push by virtual vertices, always."""
    return Plan("push", "push_virtual", ("groups of {}; vertices {}", group, x.nvals), group)


def _by_length(x: Numbers) -> tuple[str, str]:
    """Return a thread or a warp a column, and why."""
    kernel, sign = ("pull_warp", ">=") if x.length >= WARP_LENGTH else ("pull_scalar", "<")
    return kernel, f"column length {x.length:.1f} {sign} {WARP_LENGTH:.0f}"


def pulls_by_edges(
    nvals: int,
    size: int,
    frontier_edges: int,
    unexplored: int,
    pulled: bool,
    alpha: float,
    beta: float,
) -> bool:
    """Whether few edges are left beside the frontier's or, once pulled, still many vertices are."""
    return nvals * beta >= size if pulled else frontier_edges * alpha > unexplored


def _by_edges(x: Numbers, alpha: float, beta: float) -> Plan:
    """Pull when few edges are left beside the frontier's, push again when few vertices are."""
    numbers: tuple[Any, ...]
    pulls = pulls_by_edges(x.nvals, x.size, x.frontier_edges, x.unexplored, x.pulled, alpha, beta)
    if x.pulled:
        numbers = x.nvals, x.size, beta
        text = f"pulled before; vertices {{}} {'>=' if pulls else '<'} {{}} / {{:g}}"
    else:
        numbers = "" if x.exact else "about ", x.frontier_edges, x.unexplored, alpha
        text = f"edges {{}}{{}} {'>' if pulls else '<='} unexplored {{}} / {{:g}}"
    if pulls:
        return Plan("pull", "pull_bitmap", (text, *numbers))
    return Plan("push", "push_queue", (text, *numbers))


def _hiragushi(x: Numbers, alpha: float, beta: float, push: str, pull: str) -> Plan:
    """As `_by_edges`, by the kernels that are named."""
    plan = _by_edges(x, alpha, beta)
    kernel = f"{plan.direction}_{push if plan.direction == 'push' else pull}"
    return plan if kernel == plan.kernel else named(kernel, plan.why)


def _bfs2d(x: Numbers, ratio: float) -> Plan:
    """Push while the frontier is small against what is not visited, whatever came before."""
    share = x.nvals / x.unvisited if x.unvisited else float("inf")
    if share < ratio:
        return Plan("push", "push_active", f"frontier / unvisited {share:.3g} < {ratio:g}")
    kernel, by = _by_length(x)
    return Plan("pull", kernel, f"frontier / unvisited {share:.3g} >= {ratio:g}; {by}")


def _active(x: Numbers) -> Plan:
    """Take active edges in both directions: the mask's, if the mask names the wanted results."""
    if x.wanted is not None:
        return Plan("pull", "pull_active", ("wanted at {} entries of the mask", x.wanted))
    return Plan("push", "push_active", ("wanted everywhere but at the mask; vertices {}", x.nvals))


def _mgbc(x: Numbers) -> Plan:
    """As `_active`; the backward sweep takes the lists that the forward sweep kept."""
    plan = _active(x)
    if plan.direction == "push":
        return plan._replace(keep=True)
    if x.edge_offsets is None:
        return plan
    why = "wanted at {} entries of the mask, listed by an earlier product", x.wanted
    return plan._replace(edge_offsets=x.edge_offsets, why=why)


def _auto(x: Numbers) -> Plan:
    """As `_by_edges`, with the numbers that were best on an H200."""
    return _by_edges(x, alpha_of(x.length, x.size), EAGER_BETA)


def _alpha_beta(alpha: float, beta: float) -> dict[str, Argument]:
    return {"alpha": number(alpha), "beta": number(beta)}


def _kernel_of(direction: str, default: str) -> Argument:
    """Return an argument that is a kernel of a direction by its name without that."""
    kernels = (
        f"{name.removeprefix(f'{direction}_')}{variant}"
        for name, strategy in STRATEGIES.items()
        if strategy.direction == direction
        for variant in ("", *(f":{one}" for one in strategy.variants))
    )
    return choice(default, *kernels)


_KERNELS = {"push": _kernel_of("push", "queue"), "pull": _kernel_of("pull", "bitmap")}
_THRESHOLD = {"threshold": number(TURBOBFS_DENSITY)}
_TDBU = {"kernel": choice("length", "length", *_TDBU_KERNELS), **_THRESHOLD}

#: All policies by name, with the arguments that they take.
POLICIES: dict[str, Policy] = {
    "auto": Policy(_auto),
    "turbobfs": Policy(_turbobfs, _THRESHOLD),
    "tdbu": Policy(_tdbu, _TDBU, "kernel"),
    "beamer": Policy(_by_edges, _alpha_beta(*BEAMER)),
    "hiragushi": Policy(_hiragushi, {**_alpha_beta(*HIRAGUSHI), **_KERNELS}),
    "bfs2d": Policy(_bfs2d, {"ratio": number(BFS2D_RATIO)}),
    "vbfs": Policy(_vbfs, {"group": count(GROUP, MOST_GROUP)}, "group"),
    "active": Policy(_active),
    "mgbc": Policy(_mgbc),
}
_SWEEPS = ("active", "mgbc")


@functools.lru_cache(maxsize=256)
def policy_of(text: str) -> tuple[str, dict[str, Any]]:
    """Return (name, arguments) of the policy that a text names; see `find_policy`."""
    return find_policy(POLICIES, text)


def _with_forms(A: CscMatrix, u: VectorStore, product: Product, plan: Plan) -> Plan:
    """Return the plan, or another one if the matrix lacks the form that the plan needs.

    The second form of a directed matrix is made when a product follows another one, so that it
    will serve again.
    """
    if not STRATEGIES[plan.kernel].needs_form or _is_there(A, product, plan.direction):
        return plan
    if u.stats is not None and may_make_csr(A):
        return plan._replace(why=f"{plan.reason}; second form made")
    why = "one product alone does not make it" if may_make_csr(A) else why_no_second_form(A)
    if plan.direction == "push" and not u.nvals * 8 < u.size:
        kernel, by = _by_length(_numbers(A, u, product))
        return Plan("pull", kernel, f"{plan.reason}, but the second form is missing: {why}; {by}")
    other = "push_queue" if _is_there(A, product, "push") else "push_edge"
    return Plan("push", other, f"{plan.reason}, but the second form is missing: {why}")


def _is_there(A: CscMatrix, product: Product, direction: str) -> bool:
    """Whether the form of the matrix is there that a direction needs."""
    if A.csr is not None or product.transpose is (direction == "pull"):
        return True
    return is_symmetric(A)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]
