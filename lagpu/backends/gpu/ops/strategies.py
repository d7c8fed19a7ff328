"""The strategies of a masked product: one row each, with the kernel that runs it.

A strategy binds its kernel to a matrix once: types, forms of the matrix and workspaces. What is
left for each product is the vector, the mask and the output; see `ProductLaunch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, constant, kernel, macros_of
from lagpu.backends.gpu.storage import workspaces
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, nwords
from lagpu.dtypes import BOOL, DType
from lagpu.errors import NotSupported
from lagpu.operations import Product


class ProductLaunch(NamedTuple):
    """A product bound to a matrix, to be launched for each vector."""

    #: Takes the vector, the mask, the result, counters, the memory and the serial of a
    #: notification, the edge counter, and the lists if the kernel has some.
    launch: CheckedLaunch
    counters: int = 3  #: How many counters it needs.
    reset: CheckedLaunch | None = None  #: Clears words and values of the result before.
    #: The lists of the matrix' workspace, by parameter.
    lists: Mapping[str, Any] = MappingProxyType({})


class Job(NamedTuple):
    """What a launch on a matrix is specialised by: the key under which it is kept."""

    kernel: str  #: One of `STRATEGIES`.
    product: Product
    u: DType  #: Type of the vector's values.
    u_iso: bool  #: Whether they are all equal, so that none is stored.
    dtype: DType  #: Type of the values that are written.
    iso: bool  #: Whether all sums have one known value, so that none is computed.
    group: int = 0  #: Entries a group, for ``push_virtual``.
    variant: str = ""  #: The form of the kernel, one of the strategy's `variants`.
    #: ``"all"`` if all sums are wanted and take every entry of the matrix; ``"equal"`` if also all
    #: products are equal, so that a sum follows from the length of its column.
    sums: str = ""


class Strategy(NamedTuple):
    """One way to compute ``w<m> = A (+.x) u``; docs/kernels has a page for each."""

    name: str  #: What authors and policies call it.
    kernel: str  #: The kernel's name, in a file of ``kernels/spmv/``.
    bind: Callable[[CscMatrix, Job], ProductLaunch]  #: Binds the kernel for a job.
    #: For each array that the kernel moves only in part: what its bytes are proportional to
    #: (``edges`` looked at, entries ``in`` the vector or ``out``), and how many elements for each.
    #: All other arrays count whole.
    traffic: Mapping[str, tuple[str, float]]
    #: Whether sums are made by atomics, in the type of the sum and not in that of the output.
    atomic: bool = False
    any_order: bool = False  #: Whether atomics choose the value of `any` too.
    #: Whether it needs the matrix in the form of its direction; else either form will do.
    needs_form: bool = True
    #: Whether it looks at every entry of a column, even if the first hit is the sum.
    every_entry: bool = False
    #: Other forms of the kernel: an author names one after a colon, as ``pull_scalar:order``.
    variants: tuple[str, ...] = ()

    @property
    def direction(self) -> str:
        return self.name.partition("_")[0]

    def result_type(self, product: Product, wanted: DType) -> DType:
        """Return the type of the values that it writes, for an output of type `wanted`."""
        is_any = product.semiring.monoid.name == "any"
        return product.result if self.any_order or (self.atomic and not is_any) else wanted


def by_outputs(A: CscMatrix, product: Product) -> CscMatrix:
    """Return the form whose columns are the output's entries, made and kept if need be."""
    return A if product.transpose else csr_of(A)


def by_inputs(A: CscMatrix, product: Product) -> CscMatrix:
    """Return the form whose columns are the input's entries, made and kept if need be."""
    return csr_of(A) if product.transpose else A


def edges_of_outputs(A: CscMatrix, product: Product, form: CscMatrix) -> Any:
    """Return offsets for an output's out-degree, or None: they count the next frontier's edges."""
    if A.shape[0] != A.shape[1]:
        return None
    rows = A if not product.transpose or is_symmetric(A) else A.csr
    return rows.col_ptr if rows is not None and rows.col_ptr.dtype == form.col_ptr.dtype else None


def _kernel(file: str, name: str, form: CscMatrix, job: Job, **more: str) -> Kernel:
    """Return the kernel for these types; what it does not read does not specialise it."""
    macros, prelude = workspaces.index_types(form), ""
    if not job.iso:
        types, prelude = macros_of(job.product, job.u, form.dtype)
        macros = {**macros, **types, "W": job.dtype.ctype}
    return kernel(file, name, prelude=prelude, **macros, **more)


def _fixed(A: CscMatrix, form: CscMatrix, job: Job) -> dict[str, Any]:
    """Return the arguments that every kernel of a product has; unread values are null."""
    given = _arrays(form, job) | {"lengths": edges_of_outputs(A, job.product, form)}
    return given | ({"u_values": None, "u_iso": False} if job.iso else {})


def _arrays(form: CscMatrix, job: Job) -> dict[str, Any]:
    values, number = (None, False) if job.iso else (form.values, form.number)
    return {"col_ptr": form.col_ptr, "row_idx": form.row_idx, "values": values, "a_iso": number}


# Thread blocks of a pull, over those that are resident at once: more would contend for counters.
_PULL_WAVES = 2


def _cooperative(A: CscMatrix, run: Kernel, all_blocks: bool) -> int:
    """Return threads of a cooperative launch; half of the blocks meet at a barrier sooner."""
    blocks = A.device.max_cooperative_blocks(run)
    return 256 * (blocks if all_blocks else max(1, blocks // 2))


def form_beside(A: CscMatrix, form: CscMatrix) -> CscMatrix | None:
    """Return the form whose columns are the rows of `form`, if it is there."""
    return A if form is not A or is_symmetric(A) else A.csr


def _bind_pull(A: CscMatrix, job: Job) -> ProductLaunch:
    form, name, strategy = by_outputs(A, job.product), job.kernel, STRATEGIES[job.kernel]
    if job.sums:
        return _bind_sums(A, form, job)
    # Whether one product is the sum and needs no matrix value, so that rows may be reordered.
    reads_matrix = job.product.reads[1] and form.values is not None
    any_row = job.iso or (job.product.semiring.monoid.name == "any" and not reads_matrix)
    words = nwords(form.shape[1])
    given = _fixed(A, form, job) | {"n": form.shape[1]}
    if job.variant == "order":
        if not any_row:
            raise NotSupported(
                f"{name}:order: {job.product.semiring.name} needs more of a column than its "
                f"first row with an entry. Use {name}."
            )
        given["row_idx"] = workspaces.rows_by_degree(form)
    file, threads, most = "spmv/pull.cu", words * 32, _PULL_WAVES * A.device.resident_threads
    if name.startswith("pull_warp"):
        threads = words * 256
    elif name == "pull_bitmap":
        space = workspaces.pull_space(form, form_beside(A, form))
        given["empty"] = space.empty
        given["hint"] = space.hint if any_row and not job.variant else None
        threads = min(threads, most)
    elif name == "pull_gather":
        given["empty"] = workspaces.pull_space(form, form_beside(A, form)).empty
        file = "spmv/gather.cu"
        threads = min(words * 8, most)  # a block for 32 words at least
    more = {"WHOLE": "1"} if strategy.every_entry else {}
    run = _kernel(file, strategy.kernel, form, job, **more)
    return ProductLaunch(A.device.prepare(run, threads, **given))


def _bind_sums(A: CscMatrix, form: CscMatrix, job: Job) -> ProductLaunch:
    """Bind the kernel of ``pull_bitmap`` for sums of all entries."""
    device, xp, square = A.device, A.device.xp, A.shape[0] == A.shape[1]
    given = {"n": form.shape[1], "nvals": form.nvals, **_arrays(form, job)}
    edges = form.nvals if square else 0  # at most; exactly if the matrix is symmetric
    if job.sums == "equal":
        run = _kernel("spmv/sums.cu", "spmv_csc_equal", form, job)
        given = {name: x for name, x in given.items() if name in run.names}
        return ProductLaunch(device.prepare(run, form.shape[1], frontier_edges=edges, **given))
    heads, ranks = workspaces.heads_of(form), workspaces.NO_RANKS
    assert heads is not None  # as `sums_kind` has found
    if not job.u_iso:
        ranks = workspaces.ranked(form, form_beside(A, form), job.u.numpy.itemsize)
        lengths = edges_of_outputs(A, job.product, form)
        if lengths is not None and not A.symmetric:
            edges = workspaces.entries_of(device, heads.there, lengths)
    run = _kernel("spmv/sums.cu", "spmv_csc_sums", form, job)
    threads = _cooperative(A, run, all_blocks=True)
    by_rank = None if ranks.words is None else ranks.words.view(job.u.numpy)
    given["row_idx"] = form.row_idx if ranks.idx is None else ranks.idx
    launch = device.prepare(
        run, threads, cooperative=True, **given, nrows=form.shape[0],
        heads=heads.bits, before=heads.before, column=heads.column, there=heads.there,
        are_short=heads.are_short, nw=len(heads.column), frontier_edges=edges,
        parts=xp.empty(threads // 32, job.product.result.numpy), rank=ranks.rank, by_rank=by_rank,
        barrier=xp.zeros(GRID_BARRIER, np.uint32),
    )  # fmt: skip
    return ProductLaunch(launch)


def _bind_push_edge(A: CscMatrix, job: Job) -> ProductLaunch:
    """Bind ``push_edge`` or ``push_cooc``, and what clears its result before."""
    product, prepare, given = job.product, A.device.prepare, _fixed(A, A, job)
    more = {"TRANSPOSE": str(int(product.transpose))}
    reset = _kernel("spmv/edge.cu", "spmv_edge_reset", A, job, **more)
    if job.kernel == "push_cooc":
        del given["col_ptr"]
        given["col_idx"] = columns = workspaces.columns_of(A)
        more["COL"] = workspaces.index_ctype(columns)
    run = _kernel("spmv/edge.cu", STRATEGIES[job.kernel].kernel, A, job, **more)
    launch = prepare(run, A.nvals, nrows=A.shape[0], ncols=A.shape[1], nvals_a=A.nvals, **given)
    size = A.shape[1 if product.transpose else 0]
    return ProductLaunch(launch, reset=prepare(reset, size, size=size))


def _bind_listed(A: CscMatrix, job: Job) -> ProductLaunch:
    """Bind a strategy of one cooperative launch; most list columns first."""
    name, strategy = job.kernel, STRATEGIES[job.kernel]
    pulls = strategy.direction == "pull"
    form = by_outputs(A, job.product) if pulls else by_inputs(A, job.product)
    if form.shape[1] >= 2**31:
        raise NotSupported(f"{name}: lists at most 2**31 columns. Use push_edge.")
    more = {"GROUP": str(job.group)} if name == "push_virtual" else {}
    if job.variant:
        more["EACH"] = job.variant
    file = _LISTED_FILES.get(name, "spmv/push.cu")
    run, space = _kernel(file, strategy.kernel, form, job, **more), workspaces.push_space(form)
    given, (n_w, n_u) = _fixed(A, form, job), form.shape
    sizes = {"n": n_u, "n_u": n_u, "n_w": n_w}
    given |= {param: sizes[param] for param in run.names if param in sizes}
    given |= {param: getattr(space, param) for param in run.names if param in _ROOMS}
    if "offset" in run.names:
        given["offset"] = space.start
    if "groups" in run.names:
        given["groups"] = space.groups(job.group)
    if "edge_row" in run.names:
        given |= workspaces.edge_frontier(form, sums=not job.iso)
    if "map" in run.names:
        given |= workspaces.scatter_space(form)
    lists = {}
    if name in ("push_active", "pull_active"):  # each call gives these
        lists = {param: given.pop(param) for param in ("vertex", "offset")}
        lists |= {"listed": -1} if pulls else {}
    threads = _cooperative(A, run, all_blocks=name != "push_queue")
    launch = A.device.prepare(run, threads, cooperative=True, **given)
    return ProductLaunch(launch, counters=3 * constant("kCounterStride"), lists=lists)


_ROOMS = ("barrier", "vertex", "chunks", "shares", "start", "degree")  # of a `PushSpace`
_LISTED_FILES = {"push_merrill": "spmv/merrill.cu", "push_scatter": "spmv/scatter.cu"}


def sums_every_entry(product: Product) -> bool:
    """Whether a sum takes every product there is, whose operands' positions do not matter."""
    takes_all = product.semiring.monoid.name != "any" and not product.semiring.multiply.positional
    return takes_all and product.result is not BOOL  # whose sums end at a terminal value


def sums_kind(A: CscMatrix, u: VectorStore, product: Product) -> str:
    """Return `Job.sums` of a pull for all outputs whose sums are not known beforehand."""
    if u.form != "full" or not sums_every_entry(product):
        return ""
    if _has_equal_products(A, u, product):
        return "equal"
    return "all" if workspaces.heads_of(by_outputs(A, product)) is not None else ""


def _has_equal_products(A: CscMatrix, u: VectorStore, product: Product) -> bool:
    """Whether all products are equal, and adding n of them is n times one, bit for bit."""
    semiring, (reads_u, reads_a) = product.semiring, product.reads
    differ = (reads_u and u.values is not None) or (reads_a and A.values is not None)
    if semiring.monoid.name != "plus" or differ:
        return False
    if not product.result.is_float:
        return True
    # Of floating-point numbers only 1 is known to be added without rounding.
    ones = (not reads_u or u.number == 1) and (not reads_a or A.number == 1)
    multiplies = semiring.multiply.name in ("times", "first", "second", "pair")
    return ones and multiplies and A.nvals < 2 ** int(np.finfo(product.result.numpy).nmant)


_EACH_EDGE = {"row_idx": ("edges", 1.0), "values": ("edges", 1.0)}
_PULL = {**_EACH_EDGE, "lengths": ("out", 2.0)}
_PUSH = {
    **_PULL,
    "u_values": ("in", 1.0),
    **dict.fromkeys(("col_ptr", "vertex", "start", "offset", "degree", "groups"), ("in", 2.0)),
    "chunks": ("edges", 2 / workspaces.CHUNK),  # one for CHUNK edges, written and read
    "shares": ("in", 0.0),
}
_PUSH_EDGES = {**_PUSH, **dict.fromkeys(("edge_row", "edge_column", "edge_place"), ("edges", 2.0))}
_PUSH_SCATTER = {**_PUSH_EDGES, "map": ("edges", 2.0), "chosen": ("out", 2.0)}
_LISTED = dict.fromkeys(("col_ptr", "vertex", "offset"), ("out", 2.0))
_PULL_ACTIVE = {**_PULL, **_LISTED, "shares": ("in", 0.0)}
_PUSH_EDGE = {"lengths": ("out", 2.0)}

#: All strategies by name, in the order of docs/kernels.
STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            "push_edge", "spmv_csc_edge", _bind_push_edge, _PUSH_EDGE,
            atomic=True, any_order=True, needs_form=False,
        ),
        Strategy(
            "push_cooc", "spmv_csc_cooc", _bind_push_edge, _PUSH_EDGE,
            atomic=True, any_order=True, needs_form=False,
        ),
        Strategy("push_queue", "spmv_push_queue", _bind_listed, _PUSH, atomic=True),
        Strategy(
            "push_active", "spmv_push_active", _bind_listed, _PUSH, atomic=True,
            variants=("1", "2", "4", "8"),
        ),
        Strategy("push_virtual", "spmv_push_virtual", _bind_listed, _PUSH, atomic=True),
        Strategy("push_vertex", "spmv_push_vertex", _bind_listed, _PUSH, atomic=True),
        Strategy("push_merrill", "spmv_push_merrill", _bind_listed, _PUSH_EDGES, atomic=True),
        Strategy("push_scatter", "spmv_push_scatter", _bind_listed, _PUSH_SCATTER, atomic=True),
        Strategy("pull_active", "spmv_pull_active", _bind_listed, _PULL_ACTIVE, atomic=True),
        Strategy("pull_scalar", "spmv_csc_scalar", _bind_pull, _PULL, variants=("order",)),
        Strategy("pull_warp", "spmv_csc_warp", _bind_pull, _PULL, variants=("order",)),
        Strategy("pull_scalar_all", "spmv_csc_scalar", _bind_pull, _PULL, every_entry=True),
        Strategy("pull_warp_all", "spmv_csc_warp", _bind_pull, _PULL, every_entry=True),
        Strategy("pull_bitmap", "spmv_csc_bitmap", _bind_pull, _PULL, variants=("order", "plain")),
        Strategy("pull_gather", "spmv_pull_gather", _bind_pull, _PULL, variants=("order",)),
    )
}  # fmt: skip
#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, Mapping[str, tuple[str, float]]] = {
    **{strategy.kernel: strategy.traffic for strategy in STRATEGIES.values()},
    "spmv_edge_reset": {},
    "spmv_csc_sums": {},
    "spmv_csc_equal": {},
}
