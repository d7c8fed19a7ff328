"""A product that a loop repeats by itself: what stays the same each time is found once."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lagpu.backends.base import Descriptor, Product, Statement
from lagpu.backends.gpu import products
from lagpu.backends.gpu.elementwise import mask_words
from lagpu.backends.gpu.plan import Plan, auto_alpha, pulls_again
from lagpu.backends.gpu.products import Arguments, Prepared
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
    return s.desc.is_fresh and how.kernel is None and how.policy in (None, "auto")


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
        self._given: Arguments | None = None

    def ahead(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> None:
        """Get ready, while the entries of `u` are still counted; it is called next, or no more."""
        self._given = self._arguments(w, desc, A, u, how)

    def __call__(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> None:
        """Run it once."""
        given, self._given = self._given or self._arguments(w, desc, A, u, how), None
        pulls = None if given is None else pulls_again(A, u, self._alpha)
        if given is None or pulls is None:
            self._backend.mxv(w, desc, A, u, how)
            return
        self._backend.plan = plan = _PULL if pulls else _PUSH
        prepared = self._prepare(w, A, u, how, plan, given.iso)
        t = products.start(w, A, u, plan, prepared, given, self._backend.edges)
        self._backend.finish_product(w, desc, t)

    def _arguments(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> Arguments | None:
        """Return what the product takes, or None if the backend shall run it."""
        trail = u.trail
        both = A.symmetric or A.rows is not None
        if trail is None or trail.matrix is not self._matrix or u.form != "bitmap" or not both:
            return None
        iso = products.iso_result(A, u, how)
        if iso is None and how.semiring.monoid.name != "any" and how.result is not w.dtype:
            return None  # one direction would sum in another type than the other
        return products.arguments(w, u, mask_words(desc), iso, w.dtype, products.COUNTERS)

    def _prepare(
        self, w: VectorStore, A: MatrixStore, u: VectorStore, how: Product, plan: Plan, iso: Any
    ) -> Prepared:
        key = plan.direction, u.dtype, u.values is None, iso is None
        found = self._prepared.get(key)
        if found is None:
            found = products.prepare(A, u, how, plan, w.dtype, iso)
            self._prepared[key] = found
        return found
