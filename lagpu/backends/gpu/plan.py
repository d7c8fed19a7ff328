"""The planner: direction and kernel of one product, with the reason in numbers."""

from __future__ import annotations

from typing import NamedTuple

from lagpu.backends.base import Product
from lagpu.backends.gpu.build import is_symmetric
from lagpu.backends.gpu.storage import MatrixStore, VectorStore
from lagpu.errors import InvalidValue

__all__ = ["KERNELS", "POLICIES", "Plan", "choose"]

KERNELS = ("push_edge", "pull_scalar", "pull_warp")
POLICIES = ("auto", "turbobfs")

#: Frontier density at which ``turbobfs`` turns to pulling (Artiles and Saeed 2021, section III C).
TURBOBFS_DENSITY = 0.10
#: Mean column length from which a warp a column is faster than a thread (docs/design/planner.md).
WARP_LENGTH = 16.0


class Plan(NamedTuple):
    """What was chosen for one product.

    Attributes
    ----------
    direction : str
        ``"push"`` or ``"pull"``.
    kernel : str
        One of `KERNELS`.
    reason : str
        Why, in numbers.
    """

    direction: str
    kernel: str
    reason: str


def choose(A: MatrixStore, u: VectorStore, how: Product) -> Plan:
    """Return the plan of a product.

    Raises
    ------
    InvalidValue
        For an unknown kernel or policy; the message lists the valid ones.
    """
    if how.kernel is not None:
        if how.kernel not in KERNELS:
            raise InvalidValue(f"kernel: there is no {how.kernel!r}. Use {_list(KERNELS)}.")
        return Plan(how.kernel.split("_")[0], how.kernel, "asked for")
    if how.policy is not None and how.policy not in POLICIES:
        raise InvalidValue(f"policy: there is no {how.policy!r}. Use {_list(POLICIES)}.")
    return _turbobfs(A, u, how)


def _turbobfs(A: MatrixStore, u: VectorStore, how: Product) -> Plan:
    """Push while the frontier is sparse; from 10 % on pull, and never push again."""
    if not (how.transpose or A.rows is not None or is_symmetric(A)):
        return Plan("push", "push_edge", "A @ u of a directed matrix: columns serve pushes only")
    density = u.nvals / max(u.size, 1)
    if not u.pulled and density < TURBOBFS_DENSITY:
        return Plan("push", "push_edge", f"density {density:.2%} < {TURBOBFS_DENSITY:.0%}")
    length = A.nvals / max(A.shape[1 if how.transpose else 0], 1)
    kernel, sign = ("pull_warp", ">=") if length >= WARP_LENGTH else ("pull_scalar", "<")
    before = "pulled before" if u.pulled else f"density {density:.2%} >= {TURBOBFS_DENSITY:.0%}"
    return Plan("pull", kernel, f"{before}; column length {length:.1f} {sign} {WARP_LENGTH:.0f}")


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]
