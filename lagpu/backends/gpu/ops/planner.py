"""Choose the kernel and direction of a product."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.ops.strategies import STRATEGIES
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric, may_make_csr, why_no_second_form
from lagpu.backends.gpu.storage.stores import CscMatrix, EdgeOffsets, VectorStore
from lagpu.backends.policies import Argument, Policy, choice, count, find_policy, number, one_of
from lagpu.errors import InvalidValue, NotSupported
from lagpu.operations import Descriptor, Product

# A search begins to pull when (edges that leave the frontier) * alpha > (unexplored edges), and to
# push again when (vertices of the frontier) * beta < n: Beamer, Asanovic and Patterson 2012,
# section 5.1. The (alpha, beta) of each paper:
BEAMER, HIRAGUSHI = (14.0, 24.0), (48.0, 20.0)
EAGER_BETA = 24.0  # The beta of products that run one by one; a search in one kernel has `beta_of`.
LONG_SEARCH_DEGREE = 8.0  #: Up to this mean degree a search is assumed to have many levels.
#: Up to this mean degree a cluster of thread blocks searches frontiers of thousands of vertices:
#: with six edges a vertex its few multiprocessors take longer than all do (docs/design/speed.md).
CLUSTER_DEGREE = 4.0
DENSE_DEGREE = 128.0  #: From this mean degree on a pull without a hit looks at very many edges.
# Cost of pushing an edge, over that of looking at one in a pull, if the vertices found are written
# as words and if they are listed (H200, 2026-11-23); vertices that a pull looks at in parallel.
_WIDE_COST, _LIST_COST, _PULLED_AT_ONCE = 8.0, 32.0, 16384
# Vertices up to which the atomics of a push that sums find their values in the L2 cache: it is
# cheaper than a pull then (zoo on an H100, 2026-11-28).
_SUMS_IN_CACHE = 1 << 19
# Edges that a pushed edge of a Kronecker graph newly reaches, as a share of the mean out-degree of
# the vertices that edges lead to (2026-11-26).
_FOUND_BEHIND = 0.3

NO_DELTA = 1e30  #: The delta of a rule that does not ask how a frontier grows.

#: Frontier density from which ``density`` pulls (Artiles and Saeed 2021, section III C).
PULL_DENSITY = 0.10
#: Frontier over unvisited vertices from which ``bfs2d`` pulls (Bernaschi and others 2018 leave it
#: to the user to find, section 3.3).
BFS2D_RATIO = 0.05
WARP_LENGTH = 16.0  #: Mean column length from which one warp per column beats one thread.

#: Cost of pushing one edge with k rows of bits, over that of looking at one entry in a pull: in a
#: single product, and in a bit-parallel search (docs/design/bitmap.md).
BITS_PUSH_COST, SEARCH_PUSH_COST = 8, 4
#: A product in a generated loop pulls if the frontier's edges times this exceed all edges: for a
#: pull that ends at its first hit, and for one that adds up.
PULL_FIRST, PULL_SUMS = constant("kPullFirst"), constant("kPullSums")

#: In a relaxation vertices beyond a limit wait (docs/design/fusing.md). When few edges are listed
#: (`Limits.relaxed_edges`) it moves on by this step, in units of the largest value over the mean
#: degree; when more than 1 / RELAXED_SHARE of all edges are listed it moves back.
RELAXED_STEP, RELAXED_SHARE = 8.0, 4
#: Edges that a turn of a relaxation follows beyond the listed vertices, if the mean degree is at
#: most CLUSTER_DEGREE: with six edges a vertex it takes a third longer.
RELAXED_AHEAD = 1


class SearchRule(NamedTuple):
    """The rule by which a fused search chooses its directions, if it is not that of `auto`."""

    #: The constant of the kernel: ``kByEdges``, ``kByUnvisited``, ``kByDensity``, ``kOnlyPushes``
    #: or ``kOnlyPulls``.
    kind: str
    #: Its numbers: the ratio is the alpha of ``kByUnvisited``, the density that of ``kByDensity``.
    alpha: float = 0.0
    beta: float = 0.0
    why: str = ""  #: The policy as its author wrote it, or why there is one direction.

    @property
    def one_way(self) -> bool:
        return self.kind in ("kOnlyPushes", "kOnlyPulls")


@functools.lru_cache(maxsize=256)
def alpha_of(degree: float, n: int, sums: bool = False, wide: bool = False) -> float:
    """Return alpha for a matrix of `n` vertices and `degree` entries of a column, on average.

    If 1 / x of all edges leaves the frontier, a vertex that pulls looks at about x / 3 neighbours
    until it finds one: a push costs m / x, a pull n x. They are equal if x is the square root of
    (m / n times the cost of a pushed edge); see docs/design/speed.md. Long searches keep 14:
    with 30 delaunay20 takes 3.1 ms, not 2.3. If few vertices have many edges alpha is less, since
    few warps do all of a pull's work.

    A pull that `sums` looks at all edges, and has an alpha of its own. A `wide` push writes what it
    finds as words, so it does not wait for the counter of a list.
    """
    if sums:
        return 2.0 if degree >= DENSE_DEGREE else 1.0 if n < _SUMS_IN_CACHE else 14.0
    if degree <= LONG_SEARCH_DEGREE:
        return 14.0
    alpha = float(round(math.sqrt((_WIDE_COST if wide else _LIST_COST) * degree)))
    return max(2.0, min(alpha, n // _PULLED_AT_ONCE)) if degree >= DENSE_DEGREE else alpha


def beta_of(sums: bool) -> float:
    """Return beta for a search by one kernel.

    If few vertices are left a pull by groups of words is cheap, so a search that is nearly done
    pulls to its end (docs/design/speed.md).
    """
    return 64.0 if sums else 1024.0


def delta_of(sums: bool) -> float:
    """Return delta: a search pulls only if its next frontier may have 1 / delta of the edges left.

    The estimate is that edges grow as they did last (`grows` in search/grid_push.cuh). After a pull
    it pushes again if delta times what it found is less than what may still be found. Pulls that
    add up look at all edges, whatever they find.
    """
    return NO_DELTA if sums else 8.0


def gamma_of(alpha: float, degree: float, behind: float) -> float:
    """Return gamma: a search pushes into words if frontier edges * gamma > unexplored edges.

    After such a push `alpha` chooses a pull, if each edge finds a vertex of max(degree, 0.3 behind)
    edges. `degree` is the mean degree, and `behind` the mean out-degree of the vertices that edges
    lead to. A part of it counts, since a hub is found once however many edges lead to it. If found
    vertices * gamma <= 1.5 unexplored edges, their words become lists. That would cost a long
    search more than it saves, so its pushes write lists (docs/design/speed.md).
    """
    return 0.0 if degree <= LONG_SEARCH_DEGREE else alpha * max(degree, _FOUND_BEHIND * behind)


GROUP = 32  #: Entries a group of ``push_virtual``, where the author gives none.
#: The largest group: the dense graphs of Wen and Zhang have up to 2028368 / 2048 edges a vertex,
#: and vertices of more than that.
MOST_GROUP = 4096


class Plan(NamedTuple):
    """The choice for one product."""

    direction: str  #: ``"push"`` or ``"pull"``.
    kernel: str  #: One of `STRATEGIES`.
    why: Any  #: The reason, or a text and the numbers to put into it once it is read.
    group: int = GROUP  #: Entries a group, for ``push_virtual``.
    keep: bool = False  #: Whether ``push_active`` leaves its list of entries in the vector.
    #: The list that ``pull_active`` takes, instead of making one.
    edge_offsets: EdgeOffsets | None = None
    #: The form of the kernel, of those that its strategy has; "" for the plain one.
    variant: str = ""

    @property
    def reason(self) -> str:
        return self.why if isinstance(self.why, str) else self.why[0].format(*self.why[1:])


class Numbers(NamedTuple):
    """The numbers by which a policy decides."""

    #: Size and entries of the vector that is multiplied: all vertices, and those of the frontier.
    size: int
    nvals: int
    frontier_edges: int  #: Matrix entries in the columns of these: the frontier's edges.
    exact: bool  #: Whether `frontier_edges` was counted; else it is `nvals` mean columns.
    #: Matrix entries, and vertices, that neither this nor an earlier frontier has.
    unexplored: int
    unvisited: int
    length: float  #: Mean entries a result.
    pulled: bool  #: Whether the product before this one pulled.
    wanted: int | None = None  #: Entries of the mask, if results are wanted at these alone.
    edge_offsets: EdgeOffsets | None = None  #: What an earlier product left in the mask.


def choose(A: CscMatrix, u: VectorStore, product: Product, desc: Descriptor | None = None) -> Plan:
    """Return the plan of a product; `desc` has the mask."""
    if product.kernel is not None:
        return _asked_for(A, product)
    name, given = policy_of("auto" if product.policy is None else product.policy)
    rule, numbers = POLICIES[name].rule, _numbers(A, u, product)
    if name in _SWEEPS:  # a sweep reuses both forms, so a missing one is made at once
        plan: Plan = rule(_with_mask(numbers, A, product, desc, lists=name == "mgbc"))
        if _is_there(A, product, plan.direction) or may_make_csr(A):
            return plan
    plan = rule(numbers, **given)
    return plan if A.symmetric or A.csr is not None else _with_forms(A, u, product, plan)


def _asked_for(A: CscMatrix, product: Product) -> Plan:
    """Return the plan of the kernel that the author has named."""
    plan = plan_of(str(product.kernel), "asked for")
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


def plan_of(kernel: str, why: Any) -> Plan:
    """Return the plan of a kernel by its name, as ``push_queue`` or ``push_virtual:64``."""
    name, colon, variant = kernel.partition(":")
    strategy = STRATEGIES.get(name)
    if strategy is None or (colon and not (strategy.variants or name == "push_virtual")):
        raise InvalidValue(
            f"kernel: there is no {kernel!r}. Use {one_of(tuple(STRATEGIES))}; "
            "push_virtual:64 takes groups of 64 entries."
        )
    plan = Plan(strategy.direction, name, why)
    if not colon:
        return plan
    if name == "push_virtual":
        group = count(GROUP, MOST_GROUP).read(variant)
        if group is None:
            fact = f"kernel: {kernel!r} does not name a group of 1 to {MOST_GROUP} entries."
            raise InvalidValue(fact)
        return plan._replace(group=group)
    if variant not in strategy.variants:
        known = one_of((name, *(f"{name}:{other}" for other in strategy.variants)))
        raise InvalidValue(f"kernel: there is no {kernel!r}. Use {known}.")
    return plan._replace(variant=variant)


def _numbers(A: CscMatrix, u: VectorStore, product: Product) -> Numbers:
    nvals, size, stats = u.nvals, u.size, u.stats
    visited = explored = 0
    frontier_edges = None
    if stats is not None and stats.matrix() is A:  # made by a product with this matrix
        visited, explored, frontier_edges = stats.visited, stats.explored, u.frontier_edges
    elif product.policy is not None:  # the rules of papers take exact numbers
        form = A if not product.transpose or A.symmetric else A.csr
        if form is not None:
            where, _ = u.listed()
            counted = form.col_ptr[where + 1] - form.col_ptr[where]
            frontier_edges = u.frontier_edges = int(counted.sum())
    exact = frontier_edges is not None or nvals in (0, size)
    if frontier_edges is None:
        frontier_edges = A.nvals * nvals // max(size, 1)
    unexplored = max(A.nvals - explored - frontier_edges, 0)
    unvisited = max(size - visited - nvals, 0)
    length = A.nvals / max(A.shape[1 if product.transpose else 0], 1)
    pulled = stats is not None and stats.pulled
    return Numbers(size, nvals, frontier_edges, exact, unexplored, unvisited, length, pulled)


def _with_mask(
    x: Numbers, A: CscMatrix, product: Product, desc: Descriptor | None, lists: bool
) -> Numbers:
    """Return the numbers with those of the mask, and its list if `lists`."""
    mask = None if desc is None else desc.mask
    if mask is None or desc is None or desc.complement:
        return x
    edge_offsets: EdgeOffsets | None = None
    if lists and desc.structure and mask.edge_offsets is not None:
        keeps = product.transpose or is_symmetric(A)
        form = A if keeps else csr_of(A) if may_make_csr(A) else A.csr
        edge_offsets = None if form is None else mask.edge_offsets(form)
    return x._replace(wanted=mask.nvals, edge_offsets=edge_offsets)


def _density(x: Numbers, threshold: float) -> tuple[bool, str]:
    """Return whether the frontier is dense, or was once; and why."""
    density = x.nvals / max(x.size, 1)
    if x.pulled:
        return True, "pulled before"
    sign = ">=" if density >= threshold else "<"
    return density >= threshold, f"density {density:.2%} {sign} {100 * threshold:g}%"


def _by_density(x: Numbers, threshold: float) -> Plan:
    """Push while the frontier is sparse; from the threshold on pull, and never push again."""
    dense, why = _density(x, threshold)
    if not dense:
        return Plan("push", "push_edge", why)
    kernel, by = _by_length(x)
    return Plan("pull", kernel, f"{why}; {by}")


_TDBU_KERNELS = {"scalar": "pull_scalar", "vector": "pull_warp"}


def _tdbu(x: Numbers, kernel: str, threshold: float) -> Plan:
    """Pull by every entry while the frontier is sparse; from then on up to the first hit."""
    name, by = _by_length(x) if kernel == "length" else (_TDBU_KERNELS[kernel], kernel)
    dense, why = _density(x, threshold)
    if not dense:
        return Plan("pull", f"{name}_all", f"top-down, {why}; {by}")
    if x.pulled:
        why = f"density once >= {100 * threshold:g}%"
    return Plan("pull", name, f"bottom-up, {why}; {by}")


def _vbfs(x: Numbers, group: int) -> Plan:
    """Push by virtual vertices, always."""
    return Plan("push", "push_virtual", ("groups of {}; vertices {}", group, x.nvals), group)


def _by_length(x: Numbers) -> tuple[str, str]:
    """Return one thread or one warp per column, and why."""
    kernel, sign = ("pull_warp", ">=") if x.length >= WARP_LENGTH else ("pull_scalar", "<")
    return kernel, f"column length {x.length:.1f} {sign} {WARP_LENGTH:.0f}"


def _by_edges(x: Numbers, alpha: float, beta: float) -> Plan:
    """Pull when few edges are left beside the frontier's, push again when few vertices are."""
    numbers: tuple[Any, ...]
    pulls = x.nvals * beta >= x.size if x.pulled else x.frontier_edges * alpha > x.unexplored
    if x.pulled:
        numbers = x.nvals, x.size, beta
        text = f"pulled before; vertices {{}} {'>=' if pulls else '<'} {{}} / {{:g}}"
    else:
        numbers = "" if x.exact else "about ", x.frontier_edges, x.unexplored, alpha
        text = f"edges {{}}{{}} {'>' if pulls else '<='} unexplored {{}} / {{:g}}"
    how = ("pull", "pull_bitmap") if pulls else ("push", "push_queue")
    return Plan(*how, (text, *numbers))


def _hiragushi(x: Numbers, alpha: float, beta: float, push: str, pull: str) -> Plan:
    """As `_by_edges`, with these kernels."""
    plan = _by_edges(x, alpha, beta)
    kernel = f"{plan.direction}_{push if plan.direction == 'push' else pull}"
    return plan if kernel == plan.kernel else plan_of(kernel, plan.why)


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


def _kernel_of(direction: str, default: str) -> Argument:
    """Return an argument of a policy: a kernel of a direction, named without the direction."""
    kernels = (
        f"{name.removeprefix(f'{direction}_')}{variant}"
        for name, strategy in STRATEGIES.items()
        if strategy.direction == direction
        for variant in ("", *(f":{one}" for one in strategy.variants))
    )
    return choice(default, *kernels)


_KERNELS = {"push": _kernel_of("push", "queue"), "pull": _kernel_of("pull", "bitmap")}
_AB = ("alpha", "beta")
_THRESHOLD = {"threshold": number(PULL_DENSITY)}
_TDBU = {"kernel": choice("length", "length", *_TDBU_KERNELS), **_THRESHOLD}

#: All policies by name, with the arguments that they take.
POLICIES: dict[str, Policy] = {
    # by the numbers that were best on an H200
    "auto": Policy(lambda x: _by_edges(x, alpha_of(x.length, x.size), EAGER_BETA)),
    "density": Policy(_by_density, _THRESHOLD),
    "tdbu": Policy(_tdbu, _TDBU, "kernel"),
    "beamer": Policy(_by_edges, dict(zip(_AB, map(number, BEAMER), strict=True))),
    "hiragushi": Policy(_hiragushi, dict(zip(_AB, map(number, HIRAGUSHI), strict=True)) | _KERNELS),
    "bfs2d": Policy(_bfs2d, {"ratio": number(BFS2D_RATIO)}),
    "vbfs": Policy(_vbfs, {"group": count(GROUP, MOST_GROUP)}, "group"),
    "active": Policy(_active),
    "mgbc": Policy(_mgbc),
}
_SWEEPS = ("active", "mgbc")
#: ``policy_of(text)`` is (name, arguments) of the policy that a text names; see `find_policy`.
policy_of = functools.lru_cache(maxsize=256)(functools.partial(find_policy, POLICIES))


def _with_forms(A: CscMatrix, u: VectorStore, product: Product, plan: Plan) -> Plan:
    """Return the plan, or another one if the matrix lacks the form that the plan needs."""
    # The second form of a matrix that is not symmetric is made at its second product.
    if not STRATEGIES[plan.kernel].needs_form or _is_there(A, product, plan.direction):
        return plan
    if A.multiplied and may_make_csr(A):
        return plan._replace(why=f"{plan.reason}; second form made")
    why = "one product alone does not make it" if may_make_csr(A) else why_no_second_form(A)
    if plan.direction == "push" and not u.nvals * 8 < u.size:
        kernel, by = _by_length(_numbers(A, u, product))
        return Plan("pull", kernel, f"{plan.reason}, but the second form is missing: {why}; {by}")
    other = "push_queue" if _is_there(A, product, "push") else "push_edge"
    return Plan("push", other, f"{plan.reason}, but the second form is missing: {why}")


def _is_there(A: CscMatrix, product: Product, direction: str) -> bool:
    """Whether the matrix has the form that a direction needs."""
    return A.csr is not None or product.transpose is (direction == "pull") or is_symmetric(A)
