"""A product that a loop repeats: the device decides its direction, so the host need not wait."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lagpu.backends.gpu.device.protocol import Bound
from lagpu.backends.gpu.ops import spmv
from lagpu.backends.gpu.ops.elementwise import mask_words
from lagpu.backends.gpu.ops.planner import auto_alpha
from lagpu.backends.gpu.ops.spmv_launch import COUNTERS, bind_undecided
from lagpu.backends.gpu.storage.casts import cast_number
from lagpu.backends.gpu.storage.stats import Trail
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Descriptor, Product, Statement

if TYPE_CHECKING:
    from lagpu.backends.gpu.backend import GpuBackend

__all__ = ["RepeatedProduct", "repeats"]


def repeats(s: Statement) -> bool:
    """Whether a statement is a product that `RepeatedProduct` runs: planned by ``auto``, into w."""
    if s.method != "mxv":
        return False
    how: Product = s.args[2]
    return s.desc.is_fresh and how.kernel is None and how.policy in (None, "auto")


class RepeatedProduct:
    """Runs ``w<m, replace> = A (+.x) u``; see `repeats`.

    Between two levels of a search a planner asks the device for two numbers, and the device waits
    for what it decides. So where this product follows another one with the same matrix, and both
    forms of that are there, one kernel has both directions, and takes one by the rule of ``auto``
    from what the product before it counted; else the backend runs it as any other.

    Parameters
    ----------
    backend : GpuBackend
        Which runs it.
    A : MatrixStore
        The matrix.
    how : Product
        The product.

    Attributes
    ----------
    foreseen : int
        Iterations that the last loop with such a product needed, 0 if there was none: searches of
        one graph have nearly the same depth.
    """

    #: It is launched without a question, and a vector without entries gives none: a loop until
    #: that vector is empty may run some iterations too many.
    runs_ahead = True

    def __init__(self, backend: GpuBackend, A: MatrixStore, how: Product) -> None:
        self._backend = backend
        self._matrix = weakref.ref(A)
        self._alpha = auto_alpha(A.nvals / max(A.shape[1 if how.transpose else 0], 1))
        self._known = spmv.known_result(how)
        self._launches: dict[Any, Bound] = {}
        self._iterations = "iterations", how.semiring, how.transpose
        self.foreseen: int = A.kernels.get(self._iterations, 0)

    def took(self, iterations: int) -> None:
        """Note how many iterations a loop until the result is empty has needed."""
        A = self._matrix()
        if A is not None:
            A.kernels[self._iterations] = iterations

    def __call__(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> None:
        """Run it once."""
        trail, backend = u.trail, self._backend
        if (
            trail is None
            or trail.matrix is not self._matrix
            or trail.counts is None
            or u.form != "bitmap"
        ):
            backend.mxv(w, desc, A, u, how)
            return
        iso = spmv.iso_result(A, u, how) if self._known is None else self._known
        launch = self._launch(w, A, u, how, iso)
        if launch is None:
            backend.mxv(w, desc, A, u, how)
            return
        backend.plan = None  # it is not known here
        operand, mask, _, words, values, counts, signal = spmv.arguments(
            w, u, mask_words(desc), iso, w.dtype, COUNTERS
        )
        launch(
            *operand, *mask, trail.counts, trail.explored, trail.pulled,
            words, values, counts, signal.place, signal.serial, backend.edges,
        )  # fmt: skip
        value = None if iso is None else cast_number(iso, w.dtype)
        left = Trail(self._matrix, False, 0, 0, counts)
        w.hold_product(words, values, value, counts, signal, left)

    def _launch(
        self, w: VectorStore, A: MatrixStore, u: VectorStore, how: Product, iso: Any
    ) -> Bound | None:
        """Return what runs a product of such a vector, or None; it is kept with the matrix."""
        key = u.dtype, u.values is None, iso is None
        found = self._launches.get(key)
        if found is not None:
            return found
        if not A.symmetric and A.rows is None:
            return None
        if iso is None and how.semiring.monoid.name != "any" and how.result is not w.dtype:
            return None  # one direction would sum in another type than the other
        kept = "either", how.semiring, how.domain, how.transpose, how.flip, w.dtype, *key
        if kept not in A.kernels:
            A.kernels[kept] = bind_undecided(A, u, how, w.dtype, iso is not None, self._alpha)
        bound: Bound | None = A.kernels[kept]
        if bound is not None:
            self._launches[key] = bound
        return bound
