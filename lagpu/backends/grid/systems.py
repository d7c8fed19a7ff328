"""The papers' systems of many GPUs: their arguments, and which searches they are for."""

from __future__ import annotations

from typing import NamedTuple

from lagpu import operations as ops
from lagpu.backends.gpu.fused.plan import named_policy, without_policy
from lagpu.backends.gpu.ops import planner
from lagpu.backends.grid.exchange import FORMS
from lagpu.backends.match import SearchBody
from lagpu.backends.policies import choice, number, read_arguments, require_policy
from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue

SPACE = "search of pieces"  # what a search that names no system is called


# ----------------------------------------------------------------------------------------- Policies
_CHOICES = {
    "rule": ("push", "ratio", "edges"),
    "messages": (*FORMS, "direction"),
    "parents": ("late", "sent"),
    "share": ("no", "yes"),
}
_NUMBERS = ("ratio", "alpha", "beta")


class System(NamedTuple):
    """A search of many pieces by a paper."""

    #: ``"push"`` at each level; ``"ratio"``: each piece by itself pulls where its frontier over its
    #: unvisited vertices is at least `ratio`; ``"edges"``: all pieces alike, by `alpha` and `beta`
    #: over the sums of all.
    rule: str
    #: Sets of vertices are sent as a ``"list"``, as a ``"bitmap"``, or as the ``"shorter"`` of the
    #: two, message by message; ``"direction"``: lists in a level that pushes, else bitmaps.
    messages: str
    parents: str  #: ``"sent"`` with each vertex, or requested ``"late"``: after the last level.
    #: ``"yes"``: before it pulls, a row of pieces gets the vertices that the owners have visited.
    share: str
    ratio: float = planner.BFS2D_RATIO
    alpha: float = planner.BEAMER[0]
    beta: float = planner.BEAMER[1]


#: Bisson and others 2016; Bernaschi and others 2018; Hiragushi and Takahashi 2013.
SYSTEMS = {
    "kepler": System("push", "shorter", "late", "no"),
    "bfs2d": System("ratio", "shorter", "late", "yes"),
    "hiragushi": System(
        "edges", "direction", "sent", "yes",
        alpha=planner.HIRAGUSHI[0], beta=planner.HIRAGUSHI[1],
    ),
}  # fmt: skip


#: A search that names none, on rows and columns of pieces with kernels.
AUTO = System("edges", "shorter", "late", "yes")
_ARGUMENTS = {
    name: {key: choice(getattr(system, key), *words) for key, words in _CHOICES.items()}
    | {key: number(getattr(system, key)) for key in _NUMBERS}
    for name, system in SYSTEMS.items()
}


def policies_with_systems(place: Backend) -> tuple[str, ...]:
    """Return the names that a policy may have on a grid of such places."""
    return tuple(dict.fromkeys((*place.capabilities.policies, *SYSTEMS)))


def system_of(policy: str | None) -> System | None:
    """Return the system that a policy such as ``"bfs2d:ratio=0.1,share=no"`` names, or None."""
    name, _, text = (policy or "").partition(":")
    system = SYSTEMS.get(name)
    if policy is None or system is None:
        return None
    require_policy(tuple(SYSTEMS), policy)
    found = system._replace(**read_arguments(name, text, _ARGUMENTS[name]))
    if found.messages == "direction" and found.rule == "ratio":
        raise InvalidValue(
            "policy: messages=direction needs one direction for all pieces, which rule=ratio does "
            "not give. Use rule=edges, or messages=shorter."
        )
    return found


def on_one_piece(system: System, place: Backend, product: ops.Product) -> ops.Product:
    """Return a system's product of one piece, which chooses its direction by itself."""
    if not place.capabilities.kernels:
        return product._replace(policy=None)
    if system.rule == "push":
        return product._replace(policy=None, kernel="push_active")
    ratio = f"bfs2d:ratio={system.ratio}"
    edges = f"hiragushi:alpha={system.alpha},beta={system.beta}"
    return product._replace(policy=ratio if system.rule == "ratio" else edges)


# -------------------------------------------------------------------- Which loops are such a search
def without_system(statements: ops.Statements) -> tuple[str, System | None, ops.Statements]:
    """Return what a search is called, the system that a loop names, and the loop without it."""
    policy = ops.once(statements, named_policy)
    system = system_of(policy)
    if policy is None or system is None:
        return SPACE, None, statements
    return policy, system, list(map(without_policy, statements))


def why_no_system_search(body: SearchBody) -> str:
    """Return why a body is no search for levels or parents, or an empty string."""
    multiply, monoid = body.product.semiring.multiply, body.product.semiring.monoid
    if body.sums:
        return "products of a level add up"
    if multiply.positional == "k" and monoid.op.name == "any":
        return ""
    if multiply.positional or any(body.product.reads) or not monoid.idempotent:
        return "the values of the product are neither ones nor predecessors"
    return ""
