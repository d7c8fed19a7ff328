"""The relaxation: a loop that improves the numbers of vertices along edges, as one kernel."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, monoid
from lagpu.backends.gpu.device.protocol import PER_CALL, PreparedLaunch
from lagpu.backends.gpu.fused.relaxation.match import (
    RelaxationBody,
    match_relaxation,
    why_not_in_any_order,
)
from lagpu.backends.gpu.fused.search_space import Workspace, may_last
from lagpu.backends.gpu.fused.whole import Prepared, run_whole
from lagpu.backends.gpu.kernels import Kernel, constant, kernel
from lagpu.backends.gpu.kernels.functors import Prelude, macros_of
from lagpu.backends.gpu.ops.directions import (
    CLUSTER_DEGREE,
    RELAXED_AHEAD,
    RELAXED_EDGES,
    RELAXED_SHARE,
    RELAXED_STEP,
)
from lagpu.backends.gpu.ops.elementwise import reduce_matrix
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.profile.log import LoopLog
from lagpu.backends.gpu.storage.vector import bytes_of
from lagpu.backends.gpu.storage.workspaces import index_types
from lagpu.operations import Rejection, Statement, Until

__all__ = ["Relaxation", "relaxation"]

SMALL = constant("kSmall")
STOPPED = 3  # its place in the result
NARROW = 1024  # a step is at most so many times the least distance of two limits
SIM_EDGES = 64  # in place of RELAXED_EDGES, so that small graphs get beyond it


def relaxation(statements: Sequence[Statement], until: Until) -> Relaxation | Rejection:
    """Return the relaxation of a loop as one kernel, or why it is none; see search/relax.cu."""
    body = match_relaxation(statements, until.empty)
    if isinstance(body, Rejection):
        return body
    handle: Any = body.A
    body = body._replace(A=handle.csc())
    why = why_not_in_any_order(body, until)
    return Rejection(f"no relaxation: {why}") if why else Relaxation(body)


class Relaxation:
    """A relaxation that one kernel runs; see search/relax.cu and `FusedLoop`.

    Parameters
    ----------
    body : RelaxationBody
        The loop's body; edges may be relaxed in any order.
    """

    name = "relaxation"
    why = "edges may be relaxed in any order"
    keeps_log = False

    def __init__(self, body: RelaxationBody) -> None:
        self._body, self._stops = body, may_last(body.A)
        self.statements = body.statements

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: words and values of the numbers."""
        d = self._body.numbers
        return bytes_of(d.size, d.dtype)

    def run(self, _log: LoopLog | None = None) -> None:
        """Run the loop to its end; the host waits only if somebody may want to stop it."""
        body = self._body
        written = [body.frontier, body.numbers, body.worse]
        run_whole(body.A.device, self.name, written, self._prepared, self._stops)

    def _prepared(self) -> Prepared:
        f, d = self._body.frontier, self._body.numbers
        run, source, number = self._launch(), f.single, f.number
        d.to_blank()
        device, result = self._body.A.device, self._space().result
        stop = device.stop[0] if self._stops else None
        launch = functools.partial(run, np.int64(source), number, d.values, d.words, stop)

        def settle() -> bool:
            if self._stops and device.read(result[STOPPED : STOPPED + 1]):
                return True
            f.set_empty()
            return False

        return launch, settle

    def _space(self) -> Workspace:
        A, product = self._body.A, self._body.product
        place = f"relaxation {'along' if product.transpose else 'against'} the edges"
        if place not in A.cache:
            A.cache[place] = Workspace(by_inputs(A, product), None)
        space: Workspace = A.cache[place]
        return space

    def _launch(self) -> PreparedLaunch:
        """Return the prepared launch for loops of this structure; it is kept."""
        product, kind, space = self._body.product, self._body.frontier.dtype, self._space()
        key = (product.semiring, product.flip, product.domain, kind)
        if key not in space.launches:
            space.launches[key] = self._bound(space)
        return space.launches[key]

    def _bound(self, space: Workspace) -> PreparedLaunch:
        """Prepare the launch with the arguments that all loops of this structure share."""
        A, kind = self._body.A, self._body.frontier.dtype
        form, device, n = by_inputs(A, self._body.product), A.device, A.shape[0]
        made = self._kernel(space)
        grid = device.max_cooperative_blocks(made, space.block)
        few = SIM_EDGES if device.name == "sim" else RELAXED_EDGES
        many = max(A.nvals // RELAXED_SHARE, 8 * few)
        step = kind.numpy.type(self._step(space.degree))
        narrow = kind.numpy.type(step / NARROW) if kind.is_float else np.sign(step)
        short = np.uint64(min(max(space.degree, 1), SMALL // 4))
        return device.prepare(
            made, grid * space.block,
            np.int64(n), form.col_ptr, form.row_idx, form.values, form.number, PER_CALL, PER_CALL,
            step, narrow, short, np.uint64(few), np.uint64(many), PER_CALL, PER_CALL,
            space.levels(device, n), space.words[0], *space.both(), space.counters, space.barrier,
            PER_CALL, space.result,
            block=space.block, cooperative=True,
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
        step = min(RELAXED_STEP * farthest / max(degree, 1), float(info.max) / 2)
        step = step if kind.is_float else max(1, int(step))
        return step if least else -step

    def _kernel(self, space: Workspace) -> Kernel:
        body, prelude = self._body, Prelude()
        macros, _ = macros_of(body.product, body.frontier.dtype, body.A.dtype, prelude)
        macros |= index_types(body.A)
        macros |= {"F": body.frontier.dtype.ctype, "BLOCK": str(space.block)}
        if space.degree <= CLUSTER_DEGREE:
            macros["AHEAD"] = str(RELAXED_AHEAD)
        macros |= {"STEPS": str(int(body.product.semiring.multiply is binary.plus))}
        return kernel("search/relax.cu", "relax", prelude=prelude.text, **macros)
