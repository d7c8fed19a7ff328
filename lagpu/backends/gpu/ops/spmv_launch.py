"""Binding the kernels of masked products: types, forms of the matrix, and what stands."""

from __future__ import annotations

from typing import Any, NamedTuple

from lagpu.backends.gpu.device.protocol import VARIES, Bound
from lagpu.backends.gpu.kernels import Kernel, kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor, reads
from lagpu.backends.gpu.ops.planner import AUTO_BETA, Plan
from lagpu.backends.gpu.storage.forms import by_rows, is_symmetric
from lagpu.backends.gpu.storage.stats import PULLED
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import PullSpace, index_types, pull_space, push_space
from lagpu.backends.protocol import Product
from lagpu.dtypes import DType
from lagpu.errors import NotSupported

__all__ = [
    "COUNTERS",
    "Job",
    "Prepared",
    "bind_product",
    "bind_undecided",
    "by_inputs",
    "by_outputs",
]

LINE = 16  # as in spmv/push.cu
COUNTERS = 3 * LINE  # the most that a product takes


class Prepared(NamedTuple):
    """All of a product that serves the next one like it.

    Attributes
    ----------
    launch : Bound
        Takes the vector as (words, values, number), the mask as (words, complement), then lists if
        the kernel has such, then words and values of the result, counters, the place and the
        serial of a signal, and the edge counter.
    dtype : DType
        Type of the values that it writes.
    counters : int
        How many it needs.
    reset : Bound or None
        Clears words and values of the result before.
    lists : tuple
        The lists of the matrix' workspace.
    """

    launch: Bound
    dtype: DType
    counters: int = PULLED + 1
    reset: Bound | None = None
    lists: tuple[Any, ...] = ()


class Job(NamedTuple):
    """What a product's launch is specialised by; see `multiply`."""

    A: MatrixStore
    u: VectorStore
    how: Product
    plan: Plan
    dtype: DType
    iso: bool


def bind_product(job: Job) -> Prepared:
    """Bind the kernel that a product's plan names."""
    return _LAUNCH[job.plan.kernel](job)


def bind_undecided(
    A: MatrixStore, u: VectorStore, how: Product, dtype: DType, iso: bool, alpha: float
) -> Bound | None:
    """Bind the product whose direction the device decides, as ``auto`` would; see spmv/either.cu.

    It takes what `Prepared` says, and behind the mask what the vector's product left: counters,
    and from the host explored entries and whether it pulled. None if the vector's product could
    not count what leaves it.
    """
    pulled, pushed = by_outputs(A, how), by_inputs(A, how)
    lengths = _lengths(A, how, pulled)
    if lengths is None or pushed.shape[1] >= 2**31:
        return None
    lists, space = push_space(pushed), _pull_space(A, pulled)
    run = _kernel("spmv/either.cu", "spmv_either", pulled, u, how, iso, W=dtype.ctype)
    return A.device.bound(
        run, _cooperative(A, run, whole=True), *pushed.shape[::-1], A.nvals, alpha, AUTO_BETA,
        pulled.col_ptr, pulled.row_idx, _matrix(pulled, iso)[0],
        pushed.col_ptr, pushed.row_idx, *_matrix(pushed, iso), *_IN, *(VARIES,) * 3,
        space.empty, _hint(pulled, how, iso, space.hint), lengths,
        lists.vertex, lists.start, lists.degree, lists.chunks, *_OUT, lists.barrier,
        cooperative=True,
    )  # fmt: skip


def _kernel(
    file: str, name: str, A: MatrixStore, u: VectorStore, how: Product, iso: bool, **more: str
) -> Kernel:
    """Return the kernel for these types; what it does not read does not specialise it."""
    indices = index_types(A)
    if iso:
        return kernel(file, name, **indices, **{k: v for k, v in more.items() if k != "W"})
    add, add_text = monoid_functor(how.semiring.monoid)
    mul, mul_text = operator_functor(how.semiring.multiply)
    return kernel(
        file,
        name,
        prelude=add_text + mul_text,
        ADD=add,
        MUL=mul,
        U=u.dtype.ctype,
        A=A.dtype.ctype,
        T=how.domain.ctype,
        Z=how.result.ctype,
        FLIP=str(int(how.flip)),
        ISO="0",
        **indices,
        **more,
    )


def _matrix(A: MatrixStore, iso: bool) -> tuple[Any, Any]:
    """Return (values, iso) of the matrix for a kernel."""
    return (None, False) if iso else (A.values, A.number)


def by_outputs(A: MatrixStore, how: Product) -> MatrixStore:
    """Return the form whose columns are the output's entries, made and kept if need be."""
    return A if how.transpose else by_rows(A)


def by_inputs(A: MatrixStore, how: Product) -> MatrixStore:
    """Return the form whose columns are the input's entries, made and kept if need be."""
    return by_rows(A) if how.transpose else A


def _lengths(A: MatrixStore, how: Product, form: MatrixStore) -> Any:
    """Return where to read the edges that leave an output, if it can be the next input."""
    if A.shape[0] != A.shape[1]:
        return None
    rows = A if not how.transpose or is_symmetric(A) else A.rows
    if rows is None or rows.col_ptr.dtype != form.col_ptr.dtype:
        return None
    return rows.col_ptr


# Grids of a pull, as often as they are resident: each block more adds to the same counters.
_PULL_WAVES = 2
# What each run gives: the vector, the mask, and behind what stands the result and its counts.
_IN, _OUT = (VARIES,) * 5, (VARIES,) * 6


def _cooperative(A: MatrixStore, run: Kernel, whole: bool) -> int:
    """Return threads of a cooperative launch; half of the blocks meet sooner at a barrier."""
    blocks = A.device.max_cooperative_blocks(run)
    return 256 * (blocks if whole else max(1, blocks // 2))


def _pull(job: Job) -> Prepared:
    """Bind ``pull_scalar``, ``pull_warp`` or ``pull_bitmap``."""
    A, u, how, plan, dtype, iso = job
    form = by_outputs(A, how)
    n = form.shape[1]
    name, threads = "spmv_csc_scalar", nwords(n) * 32
    extra: tuple[Any, ...] = ()
    if plan.kernel == "pull_warp":
        name, threads = "spmv_csc_warp", nwords(n) * 256
    elif plan.kernel == "pull_bitmap":
        space = _pull_space(A, form)
        name, extra = "spmv_csc_bitmap", (space.empty, _hint(form, how, iso, space.hint))
        threads = min(threads, _PULL_WAVES * A.device.resident_threads)
    run = _kernel("spmv/pull.cu", name, form, u, how, iso, W=dtype.ctype)
    launch = A.device.bound(
        run, threads, n, form.col_ptr, form.row_idx, *_matrix(form, iso), *_IN, *extra,
        _lengths(A, how, form), *_OUT,
    )  # fmt: skip
    return Prepared(launch, dtype)


def _pull_space(A: MatrixStore, form: MatrixStore) -> PullSpace:
    return pull_space(form, A if form is not A else A.rows if not is_symmetric(A) else A)


def _hint(form: MatrixStore, how: Product, iso: bool, hint: Any) -> Any:
    """Return the hint if one product, whose matrix entry need not be known, is a whole sum."""
    if iso:
        return hint
    reads_matrix = reads(how.semiring.multiply)[1 if how.flip else 0]
    if how.semiring.monoid.name != "any" or (reads_matrix and form.values is not None):
        return None
    return hint


def _push_edge(job: Job) -> Prepared:
    """Bind ``push_edge``, and what clears its result before."""
    A, u, how, _, _, iso = job
    more = {"TRANSPOSE": str(int(how.transpose))}
    bound, size = A.device.bound, A.shape[1 if how.transpose else 0]
    reset = _kernel("spmv/edge.cu", "spmv_edge_reset", A, u, how, iso, **more)
    run = _kernel("spmv/edge.cu", "spmv_csc_edge", A, u, how, iso, **more)
    launch = bound(
        run, A.nvals, A.shape[0], A.shape[1], A.nvals, A.col_ptr, A.row_idx, *_matrix(A, iso),
        *_IN, _lengths(A, how, A), *_OUT,
    )  # fmt: skip
    return Prepared(launch, job.dtype, reset=bound(reset, size, size, VARIES, VARIES))


def _listed(job: Job) -> Prepared:
    """Bind ``push_queue``, ``push_active``, ``push_virtual`` or ``pull_active``."""
    A, u, how, plan, dtype, iso = job
    pulls = plan.kernel == "pull_active"
    form = by_outputs(A, how) if pulls else by_inputs(A, how)
    if form.shape[1] >= 2**31:
        raise NotSupported(f"{plan.kernel}: lists at most 2**31 columns. Use push_edge.")
    space = push_space(form)
    stand: tuple[Any, ...] = (space.vertex, space.start, space.degree, space.chunks)
    lists: tuple[Any, ...] = ()
    more = {"W": dtype.ctype}
    if plan.kernel in ("push_active", "pull_active"):
        lists = (-1,) * pulls + (space.vertex, space.start)
        stand = (space.shares,) + (VARIES,) * len(lists)
    elif plan.kernel == "push_virtual":
        stand = (space.groups(plan.group),)
        more["GROUP"] = str(plan.group)
    run = _kernel("spmv/push.cu", f"spmv_{plan.kernel}", form, u, how, iso, **more)
    threads = _cooperative(A, run, whole=plan.kernel != "push_queue")
    launch = A.device.bound(
        run, threads, *(form.shape[1:] if pulls else form.shape[::-1]), form.col_ptr,
        form.row_idx, *_matrix(form, iso), *_IN, _lengths(A, how, form), *stand, *_OUT,
        space.barrier, cooperative=True,
    )  # fmt: skip
    return Prepared(launch, dtype, counters=COUNTERS, lists=lists)


_LAUNCH = {
    "pull_scalar": _pull,
    "pull_warp": _pull,
    "pull_bitmap": _pull,
    "push_edge": _push_edge,
    "push_queue": _listed,
    "push_active": _listed,
    "push_virtual": _listed,
    "pull_active": _listed,
}
