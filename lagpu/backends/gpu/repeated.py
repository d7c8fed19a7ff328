"""A product that a loop repeats by itself: what stays the same each time is found once."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lagpu.backends.base import Descriptor, Product, Statement
from lagpu.backends.gpu import products
from lagpu.backends.gpu.elementwise import mask_words
from lagpu.backends.gpu.plan import AUTO_BETA, Plan, auto_alpha, pulls_by_edges
from lagpu.backends.gpu.products import Prepared
from lagpu.backends.gpu.storage import MatrixStore, VectorStore

if TYPE_CHECKING:
    from lagpu.backends.gpu.backend import GpuBackend

__all__ = ["RepeatedProduct", "repeats"]

_PUSH, _PULL = Plan("push", "push_queue", ""), Plan("pull", "pull_bitmap", "")


def repeats(s: Statement) -> bool:
    """Whether a statement is a product that `RepeatedProduct` runs: planned by ``auto``, into w."""
    if s.method != "mxv":
        return False
    how: Product = s.args[2]
    fresh = s.desc.accum is None and (s.desc.replace or s.desc.mask is None)
    return fresh and how.kernel is None and how.policy in (None, "auto")


class RepeatedProduct:
    """Runs ``w<m, replace> = A (+.x) u``; see `repeats`.

    The host decides between two levels of a search, and the device waits for it. So where this
    product follows another one with the same matrix, and both forms of that are there, only the
    direction is decided, by the rule of the planner; else the backend runs it as any other.

    Parameters
    ----------
    backend : GpuBackend
        Which runs it.
    A : MatrixStore
        The matrix.
    how : Product
        The product.
    """

    def __init__(self, backend: GpuBackend, A: MatrixStore, how: Product) -> None:
        self._backend = backend
        self._matrix = weakref.ref(A)
        self._alpha = auto_alpha(A.nvals / max(A.shape[1 if how.transpose else 0], 1))
        self._prepared: dict[Any, Prepared] = {}

    def __call__(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> None:
        """Run it once."""
        nvals, trail, leaving = u.nvals, u.trail, u.leaving
        both = A.symmetric or A.rows is not None
        if trail is None or trail.matrix is not self._matrix or leaving is None or not both:
            self._backend.mxv(w, desc, A, u, how)
            return
        unexplored = max(A.nvals - trail.explored - leaving, 0)
        pulls = pulls_by_edges(
            nvals, u.size, leaving, unexplored, trail.pulled, self._alpha, AUTO_BETA
        )
        plan = _PULL if pulls else _PUSH
        iso = products.iso_result(A, u, how)
        key = plan.direction, u.dtype, u.values is None, iso is None
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = products.prepare(A, u, how, plan, w.dtype, iso)
            self._prepared[key] = prepared
        mask, edges = mask_words(desc), self._backend.edges
        t = products.start(w, A, u, how, plan, mask, prepared, iso, edges)
        self._backend.plan = plan
        self._backend.finish_product(w, desc, t, fresh=True)
