"""The papers' systems of many GPUs as policies: their rules, their messages, their arguments."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from lagpu.backends.gpu.ops.directions import BEAMER, BFS2D_RATIO, HIRAGUSHI
from lagpu.backends.grid.travel.presence import FORMS
from lagpu.backends.policies import choice, number, read_arguments, require_policy
from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue

__all__ = ["SYSTEMS", "System", "policies_with_systems", "system_of"]

_CHOICES = {
    "rule": ("push", "ratio", "edges"),
    "messages": (*FORMS, "direction"),
    "parents": ("late", "sent"),
    "share": ("no", "yes"),
    "claims": ("atomic", "scatter", "sort"),
}
_NUMBERS = ("ratio", "alpha", "beta")


@dataclass(frozen=True)
class System:
    """A search of many pieces by a paper.

    Attributes
    ----------
    rule : str
        ``"push"`` at each level; ``"ratio"``: each piece by itself pulls where its frontier over
        its unvisited vertices is at least `ratio`; ``"edges"``: all pieces alike, by `alpha` and
        `beta` over the sums of all.
    ratio, alpha, beta : float
        See `rule`.
    messages : str
        Sets of vertices are sent as a ``"list"``, as a ``"bitmap"``, or as the ``"shorter"`` of the
        two, message by message; ``"direction"``: lists in a level that pushes, else bitmaps.
    parents : str
        ``"sent"`` with each vertex, or asked for ``"late"``: after the last level.
    share : str
        ``"yes"``: before it pulls, a row of pieces is told what the owners have visited.
    claims : str
        How a push has each vertex once: by ``"atomic"`` claims; by a ``"scatter"`` in which any
        source of a vertex wins, compacted; or the list of all neighbours is ``"sort"`` ed.
    kernels : tuple of str
        The kernels for a push and for a pull of few and of many entries a column, where the places
        offer a choice.
    """

    rule: str
    messages: str
    parents: str
    share: str
    kernels: tuple[str, str, str]
    ratio: float = BFS2D_RATIO
    alpha: float = BEAMER[0]
    beta: float = BEAMER[1]
    claims: str = "atomic"


#: Bisson and others 2016; Bernaschi and others 2018; Hiragushi and Takahashi 2013.
SYSTEMS = {
    "kepler": System(
        "push", "shorter", "late", "no", ("push_active", "pull_scalar", "pull_warp")
    ),
    "bfs2d": System(
        "ratio", "shorter", "late", "yes", ("push_active", "pull_scalar", "pull_warp")
    ),
    "hiragushi": System(
        "edges", "direction", "sent", "yes", ("push_queue", "pull_bitmap", "pull_bitmap"),
        alpha=HIRAGUSHI[0], beta=HIRAGUSHI[1],
    ),
}  # fmt: skip


_ARGUMENTS = {
    name: {key: choice(getattr(system, key), *words) for key, words in _CHOICES.items()}
    | {key: number(getattr(system, key)) for key in _NUMBERS}
    for name, system in SYSTEMS.items()
}


def policies_with_systems(place: Backend) -> tuple[str, ...]:
    """Return the names that a policy may have on a grid of such places."""
    return tuple(dict.fromkeys((*place.capabilities.policies, *SYSTEMS)))


def system_of(policy: str | None) -> System | None:
    """Return the system that a policy names, as ``"bfs2d:ratio=0.1,share=no"``, or None.

    Raises
    ------
    InvalidValue
        If the system has no such argument, or not this value of it, or its text is no policy.
    """
    name, _, text = (policy or "").partition(":")
    system = SYSTEMS.get(name)
    if policy is None or system is None:
        return None
    require_policy(tuple(SYSTEMS), policy)
    found = dataclasses.replace(system, **read_arguments(name, text, _ARGUMENTS[name]))
    if found.messages == "direction" and found.rule == "ratio":
        raise InvalidValue(
            "policy: messages=direction needs one direction for all pieces, which rule=ratio does "
            "not give. Use rule=edges, or messages=shorter."
        )
    return found
