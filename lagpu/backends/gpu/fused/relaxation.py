"""Relaxation: a loop that improves the numbers of vertices along edges, as one kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import lagpu.operations as ops
from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.algebra.tables import binary, monoid, semiring
from lagpu.backends.gpu.device.protocol import CheckedLaunch
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared, may_last
from lagpu.backends.gpu.fused.match import matched
from lagpu.backends.gpu.fused.search_grid import Workspace, form_arguments
from lagpu.backends.gpu.kernels import Kernel, Prelude, constant, kernel, macros_of
from lagpu.backends.gpu.ops import planner
from lagpu.backends.gpu.ops.elementwise import reduce_matrix
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.forms import why_no_csr
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, bytes_of
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.dtypes import BOOL
from lagpu.operations import Descriptor, Product, RecordedBody, Rejection, Statement, Until

# By semiring: the comparison that says "is not better", and whether no product is better than the
# number it is made of, from the least and the largest value of the matrix.
_ORDERED: dict[Semiring, tuple[BinaryOp, Callable[[Any, Any], bool]]] = {
    semiring.min_plus: (binary.ge, lambda least, _: least >= 0),
    semiring.max_plus: (binary.le, lambda _, largest: largest <= 0),
    semiring.min_max: (binary.ge, lambda *_: True),
    semiring.max_min: (binary.le, lambda *_: True),
}


class RelaxationBody(NamedTuple):
    """The body of a relaxation."""

    #: CscMatrix, (n, n): the matrix by columns; of a body that `match_relaxation` returns, the
    #: product's handle.
    A: CscMatrix
    #: ``f``, ``d`` and ``worse`` of ``f(~worse.V, replace=True) << f``, ``d(f.S) << f``, ``f << f
    #: (+.x) A`` and ``worse << f.ewise_mult(d, "is not better")``.
    frontier: VectorStore
    numbers: VectorStore
    worse: VectorStore
    product: Product
    statements: Sequence[Statement]

    def on(self, body: RecordedBody) -> RelaxationBody:
        """Return the relaxation of a recorded body; this one has places instead of its handles."""
        A, frontier, numbers, worse, product, _ = self
        places: tuple[Any, ...] = (A, frontier, numbers, worse)
        A, frontier, numbers, worse = [body.handles[x.number] for x in places]
        return RelaxationBody(A, frontier, numbers, worse, product, body)


_NONE = Rejection("")


@matched
def match_relaxation(statements: Sequence[Statement], frontier: Any) -> RelaxationBody | Rejection:
    """Return the parts of a relaxation that runs until `frontier` is empty, or a rejection.

    The caller puts the matrix by columns in the place of the product's handle.
    """
    if len(statements) != 4 or not isinstance(statements[2].operation, ops.Multiply):
        return _NONE
    f, d, multiply, worse = frontier, statements[1].out, statements[2].operation, statements[3].out
    product = multiply.product
    ordered = _ORDERED.get(product.semiring)
    if ordered is None or product.kernel is not None or product.policy is not None:
        return _NONE
    expected = [
        (f, Descriptor(worse, False, True, None, True), ops.Assign(f)),
        (d, Descriptor(f, True, False, None, False), ops.Assign(f)),
        (f, None, multiply._replace(operand=f)),
        (worse, None, ops.Ewise("ewise_mult", f, d, ordered[0])),
    ]
    plain = [s.desc.mask is None and s.desc.is_fresh for s in statements]
    found = [
        (s.out, None if is_plain else s.desc, s.operation)
        for s, is_plain in zip(statements, plain, strict=True)
    ]
    if found != expected or len({id(f), id(d), id(worse)}) != 3:
        return _NONE
    handle: Any = multiply.matrix
    return RelaxationBody(handle, f, d, worse, product, statements)


def why_not_in_any_order(body: RelaxationBody, until: Until) -> str:
    """Return why the order of relaxing may change the result, or an empty string.

    It does not where it begins at one vertex, no product is better than the number it is made of,
    and each number is better than none. Then n iterations relax all shortest paths, and one more
    finds that nothing is left.
    """
    A, f, d, product = body.A, body.frontier, body.numbers, body.product
    if body.worse.dtype is not BOOL:
        return f"marks are of {body.worse.dtype}"
    if f.dtype is not d.dtype or f.dtype is not product.result or f.dtype.numpy.itemsize < 4:
        return f"numbers of {f.dtype}, {d.dtype} and {product.result} are not of one wide type"
    if A.shape[0] >= 2**31:
        return "the matrix has 2**31 rows or more"
    if until.times is not None and until.times <= A.shape[0]:
        return f"at most {until.times} iterations, where {A.shape[0] + 1} reach every number"
    if f.single < 0 or d.known != 0 or body.worse.known != 0:
        return "it does not begin with one vertex alone"
    lacking = "" if not product.transpose else why_no_csr(A)
    if lacking:
        return f"relaxing edges needs the matrix by rows, and {lacking}"
    least, largest = values = _values(A)
    if not _ORDERED[product.semiring][1](least, largest):
        return f"a product may be better than its vertex, with values of {least} to {largest}"
    return _why_worse_than_none(body, values)


def _why_worse_than_none(body: RelaxationBody, values: tuple[Any, Any]) -> str:
    """Return why a number may be no better than none at all, or an empty string."""
    number, kind, n = body.frontier.number.item(), body.frontier.dtype, body.A.shape[0]
    reached = [number, *values]
    if body.product.semiring.multiply is binary.plus:  # a half: room for rounding
        reached += [2 * (number + n * value) for value in values]
    low, high = kind.smallest, kind.largest
    if body.product.semiring.monoid is monoid.min:  # its "none" is the largest number
        fits = all(low <= x < high for x in reached)
    else:
        fits = all(low < x <= high for x in reached)
    return "" if fits else f"numbers up to {max(map(abs, reached))} may not fit {kind}"


def _values(A: CscMatrix) -> tuple[Any, Any]:
    """Return the least and the largest value; NaN for both if one is not a finite number."""
    if A.dtype.is_bool or not A.nvals:
        return 0, int(A.nvals > 0)
    if A.dtype.is_float and not math.isfinite(reduce_matrix(A, monoid.plus)):
        return math.nan, math.nan
    return reduce_matrix(A, monoid.min), reduce_matrix(A, monoid.max)


SMALL = constant("kSmall")
STOPPED = 3  # its place in the result
NARROW = 1024  # a step is at most so many times the least distance of two limits


def relaxation(statements: Sequence[Statement], until: Until) -> Relaxation | Rejection:
    """Return the relaxation of a loop as one kernel, or why it is none; see search/relax.cu."""
    body = match_relaxation(statements, until.empty)
    if isinstance(body, Rejection):
        return body
    handle: Any = body.A
    body = body._replace(A=handle.csc())
    why = why_not_in_any_order(body, until)
    return Rejection(f"no relaxation: {why}") if why else Relaxation(body)


class Relaxation(KernelLoop):
    """A relaxation that one kernel runs; see search/relax.cu."""

    name = "relaxation"
    why = "edges may be relaxed in any order"

    def __init__(self, body: RelaxationBody) -> None:
        self.device, self.statements, self.stops = body.A.device, body.statements, may_last(body.A)
        self._body, self.written = body, [body.frontier, body.numbers, body.worse]

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: words and values of the numbers."""
        d = self._body.numbers
        return bytes_of(d.size, d.dtype)

    def _prepare(self, log: LoopLog | None) -> Prepared:
        f, d = self._body.frontier, self._body.numbers
        space = self._space()
        launch, source, number = self._launch(space), f.single, f.number
        d.to_blank()
        given = {"source": source, "number": number, "d": d.values, "d_words": d.words}

        def settle() -> bool:
            if self.stops and self.device.read(space.result[STOPPED : STOPPED + 1]):
                return True
            f.set_empty()
            return False

        return functools.partial(launch, given), settle

    def _space(self) -> Workspace:
        A, product = self._body.A, self._body.product
        place = f"relaxation {'along' if product.transpose else 'against'} the edges"
        return A.kept(place, lambda: Workspace(by_inputs(A, product), None))

    def _launch(self, space: Workspace) -> CheckedLaunch:
        """Return the prepared launch for loops of this structure; it is kept."""
        product, kind = self._body.product, self._body.frontier.dtype
        key = (product.semiring, product.flip, product.domain, kind)
        if key not in space.launches:
            space.launches[key] = self._bound(space)
        return space.launches[key]

    def _bound(self, space: Workspace) -> CheckedLaunch:
        """Prepare the launch with the arguments that all loops of this structure share."""
        A, kind = self._body.A, self._body.frontier.dtype
        form, device, n = by_inputs(A, self._body.product), A.device, A.shape[0]
        made = self._kernel(space)
        grid = device.max_cooperative_blocks(made, space.block)
        few = device.limits.relaxed_edges
        step = kind.numpy.type(self._step(space.degree))
        narrow = kind.numpy.type(step / NARROW) if kind.is_float else np.sign(step)
        return device.prepare(
            made, grid * space.block, block=space.block, cooperative=True,
            n=n, **form_arguments("out", form, iso=False), a_iso=form.number,
            step=step, narrow=narrow, degree=int(min(max(space.degree, 1), SMALL // 4)),
            few=few, many=max(A.nvals // planner.RELAXED_SHARE, 8 * few),
            listed=space.found_in(), waiting=space.words[0], **space.both(),
            counters=space.counters, barrier=space.barrier,
            stop=device.stop[0] if self.stops else None, result=space.result,
        )  # fmt: skip

    def _step(self, degree: float) -> Any:
        """Return how far numbers are relaxed together at first: negative where they decrease."""
        A, product = self._body.A, self._body.product
        if product.semiring.multiply is not binary.plus:
            return 0
        least = product.semiring.monoid is monoid.min
        farthest = abs(float(reduce_matrix(A, monoid.max if least else monoid.min) or 0))
        kind = self._body.frontier.dtype
        info = np.finfo(kind.numpy) if kind.is_float else np.iinfo(kind.numpy)
        step = min(planner.RELAXED_STEP * farthest / max(degree, 1), float(info.max) / 2)
        step = step if kind.is_float else max(1, int(step))
        return step if least else -step

    def _kernel(self, space: Workspace) -> Kernel:
        body, prelude = self._body, Prelude()
        macros, _ = macros_of(body.product, body.frontier.dtype, body.A.dtype, prelude)
        macros |= {"F": body.frontier.dtype.ctype, "BLOCK": str(space.block)}
        macros["STEPS"] = str(int(body.product.semiring.multiply is binary.plus))
        if space.degree <= planner.CLUSTER_DEGREE:
            macros["AHEAD"] = str(planner.RELAXED_AHEAD)
        macros |= index_types(body.A)
        return kernel("search/relax.cu", "relax", prelude=prelude.text, **macros)
