"""Statements as calls of the C library, and the direction of each product."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp, Monoid, UnaryOp
from lagpu.algebra.tables import unary
from lagpu.backends.cpu import handles, workarounds
from lagpu.backends.cpu.handles import NULL, Box, c_function, check, ffi, gb, lib, typed_operator
from lagpu.backends.policies import Policy, find_policy, number
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.errors import NotSupported
from lagpu.host.memory import available_bytes, require
from lagpu.operations import Descriptor

Shape = tuple[int, ...]

# Bytes of a transpose and of making it: an entry without its value, and a row or column; measured,
# docs/design/memory.md.
_ENTRY, _VERTEX = 9, 32
_LARGE = 1 << 16  # entries from which free memory is read


class Counts:
    """Counts of a matrix, made when a product needs them, and dropped when the matrix is written.

    `nvals` are its entries, `lacked` those that products looked at because the matrix lacks its
    transpose. By row (True) or by column (False), `degrees` are full vectors of python-graphblas,
    and `most` is the longest.
    """

    def __init__(self, A: Box) -> None:
        self.nvals = int(A.gb.nvals)
        self.lacked = 0
        self.degrees: dict[bool, Any] = {}
        self.most: dict[bool, int] = {}


def counts_of(A: Box) -> Counts:
    if A.counts is None:
        A.counts = Counts(A)
    return A.counts


def degrees(A: Box, by_row: bool) -> Any:
    """Return the entries of each row, or of each column, as a python-graphblas vector."""
    known = counts_of(A).degrees
    if by_row not in known:
        count = A.gb.reduce_rowwise("count") if by_row else A.gb.reduce_columnwise("count")
        full = gb.Vector("INT64", A.shape[not by_row])
        full[:] = 0
        full(gb.binary.plus) << count
        known[by_row] = full
    return known[by_row]


def longest(A: Box, by_row: bool) -> int:
    most: dict[bool, int] = counts_of(A).most
    if by_row not in most:
        most[by_row] = int(degrees(A, by_row).reduce("max").new().value or 0)
    return most[by_row]


def degree_sum(A: Box, u: Box, by_row: bool) -> int:
    """Return the number of entries of the rows, or of the columns, at which a vector has some."""
    return int(u.gb.inner(degrees(A, by_row), gb.semiring.plus_second["INT64"]).new().value or 0)


# ---- the transpose
def transposed(A: Box) -> Box | None:
    """Return the transpose of a matrix if it is there; a symmetric matrix is its own."""
    return A if A.symmetric else A.transposed


def why_no_transpose(A: Box) -> str:
    """Return why the transpose of a matrix may not be made, or an empty string."""
    if not A.may_transpose:
        return "its orientation is csc"
    need, free = _bytes(A), available_bytes()
    if need > free and counts_of(A).nvals >= _LARGE:
        return f"making it needs {need / 1e6:,.1f} MB, {free / 1e6:,.1f} MB free"
    return ""


def make_transposed(A: Box) -> Box:
    """Return the transpose of a matrix, made now and kept; a symmetric matrix is its own."""
    known = transposed(A)
    if known is not None:
        return known
    if why := why_no_transpose(A):
        remedy = "free some memory" if A.may_transpose else "set orientation to auto"
        raise NotSupported(
            f"cpu: the other direction needs the matrix transposed, and {why}. "
            f"Use policy='auto', or {remedy}."
        )
    other = transpose_of(A)
    if A.symmetric is None:
        A.symmetric = A.shape == other.shape and bool(A.gb.isequal(other.gb))
    A.transposed = None if A.symmetric else other
    return A if A.symmetric else other


def transpose_of(A: Box) -> Box:
    if counts_of(A).nvals >= _LARGE:
        require(_bytes(A), "transpose")
    new = gb.Matrix(A.dtype.name, *A.shape[::-1])
    new.ss.config["format"] = "by_row"
    check(lib.GrB_transpose(new.gb_obj[0], NULL, NULL, A.handle, NULL), "transpose")
    made = workarounds.boxed(new, A.dtype)
    handles.finish(made)
    return made


def _bytes(A: Box) -> int:
    return counts_of(A).nvals * (_ENTRY + A.width) + _VERTEX * sum(A.shape)


def memory_of(A: Box) -> str:
    """Return a line on what a matrix holds: its form by rows, and that by columns if it is kept."""
    nbytes, held = ffi.new("size_t*"), []
    for name, form in (("by rows", A), ("by columns", A.transposed)):
        if form is not None:
            check(lib.GxB_Matrix_memoryUsage(nbytes, form.handle), "memoryUsage")
            held.append(f"{name} {nbytes[0] / 1e6:,.1f} MB")
    return ", ".join(held)


# ---- forms of vectors
@contextmanager
def stored_as_bitmap(v: Box) -> Iterator[None]:
    """Store a vector as bitmap or full, and let SuiteSparse choose its form again afterwards."""
    handles.store_as(v.gb, lib.GxB_BITMAP | (lib.GxB_FULL if v.full else 0))
    try:
        yield
    finally:
        handles.store_as(v.gb, handles.usual_forms(v))


def as_bitmap_for(w: Box, desc: Descriptor) -> Any:
    """Store the output of an assignment as bitmap if its mask is a large frontier.

    Such a mask is a bitmap too. Into a sparse output, SuiteSparse writes each entry as a pending
    one, and sorts them later (docs/design/cpu.md).
    """
    mask = desc.mask
    if mask is None or mask.stats is None or not mask.stats.large or desc.accum is not None:
        return nullcontext()
    return stored_as_bitmap(w)


# ---- The direction of a product of matrix and vector: push or pull, with the reason in numbers.
#
# SuiteSparse has a method for either direction, and by itself takes the one that suits the form
# in which the matrix is stored: by rows, ``u @ A`` is pushed and ``A @ u`` pulled. The other
# direction needs the transpose, which is the matrix itself if that is symmetric.

#: (alpha, beta) of Beamer, Asanovic and Patterson 2012, section 5.1: a search pulls from the level
#: on where (edges that leave the frontier) * alpha exceed the edges not looked at yet, and pushes
#: again where (vertices of the frontier) * beta are less than all.
BEAMER = (14.0, 24.0)
#: Alpha, the beta of the way back to pushing, and the beta of a second pull: LAGraph's search for
#: SuiteSparse, LG_BreadthFirstSearch_SSGrB_template.c.
ALPHA, BETA_PUSH, BETA_PULL = 8.0, 512, 8
ALPHA_SUMS = 1.0  #: Alpha of a pull that looks at every neighbour, since its sum needs all of them.
#: A matrix is transposed once products have looked at this many times its entries because it was
#: not: by then the transpose would have paid (docs/design/cpu.md).
PATIENCE = 6
#: A push along n / 16 edges may find enough for SuiteSparse to store them as a bitmap.
_LARGE_PUSH = 16

LAST = threading.local()  # plan: of this thread's last product


class Plan(NamedTuple):
    """The choice for one product."""

    direction: str  #: ``"push"`` or ``"pull"``; an empty string where it is SuiteSparse's choice.
    why: Any  #: The reason, or a text and the numbers to put into it when it is read.
    edges: int = 0  #: Matrix entries that leave the frontier, about.
    nvals: int = 0  #: Vertices of the frontier.
    lacks: bool = False  #: Whether only the missing transpose rules out the other direction.

    @property
    def kernel(self) -> str:
        return _METHODS[self.direction]

    @property
    def reason(self) -> str:
        return self.why if isinstance(self.why, str) else self.why[0].format(*self.why[1:])


_METHODS = {"push": "SuiteSparse saxpy", "pull": "SuiteSparse dot", "": "SuiteSparse"}
ITS_OWN = Plan("", "SuiteSparse chooses its own method")
_NO_MASK = Descriptor()


class ProductStats(NamedTuple):
    """The statistics of a product, kept with its result for the choice of the next one."""

    matrix: Any = None  #: A weak reference to the matrix.
    explored: int = 0  #: Its entries that this and earlier frontiers met, about.
    nvals: int = 0  #: Entries of the vector.
    pulled: bool = False  #: Whether this product pulled.
    ever: bool = False  #: Whether it or an earlier one did.
    large: bool = False  #: Whether SuiteSparse may have made the result as a bitmap.


_NOTHING = ProductStats()  # before the first product


class Numbers:
    """The numbers by which a policy decides.

    `by_row` is whether the vector's entries are rows of the matrix, `all_edges` the entries of the
    matrix, `nvals` those of the vector: the frontier. `before` is what the product before left.
    """

    def __init__(self, A: Box, u: Box, product: ops.Product) -> None:
        self.A, self.u, self.by_row = A, u, product.transpose
        self.all_edges, self.size = counts_of(A).nvals, A.shape[not self.by_row]
        self.nvals = handles.count_entries(u)
        last: ProductStats | None = u.stats
        self.before = _NOTHING if last is None or last.matrix() is not A else last
        stops = product.semiring.monoid.has_any_terminal or product.result is BOOL
        self.alpha = None if stops else ALPHA_SUMS

    @property
    def unexplored(self) -> int:
        """Matrix entries that no earlier frontier met."""
        return max(self.all_edges - self.before.explored, 0)

    def plan(self, pulls: bool, *why: Any) -> Plan:
        """Return a plan; its edges are estimated from the mean degree."""
        edges = self.all_edges * self.nvals // (self.size or 1)
        return Plan("pull" if pulls else "push", why, edges, self.nvals)

    def by_edges(self, alpha: float) -> Plan:
        """Pull if few edges are left beside the frontier's; counted only if they may be many."""
        alpha = alpha if self.alpha is None else self.alpha
        unexplored = self.unexplored
        most = self.nvals * longest(self.A, self.by_row)
        if self.nvals == self.size:
            plan, about = self.plan(False), ""
        elif most * alpha <= unexplored - most:
            plan, about = self.plan(False), "about "
        else:
            plan, about = Plan("push", "", degree_sum(self.A, self.u, self.by_row), self.nvals), ""
        left = max(unexplored - plan.edges, 0)
        pulls = plan.edges * alpha > left
        text = f"edges {{}}{{}} {'>' if pulls else '<='} unexplored {{}} / {{:g}}"
        why = text, about, plan.edges, left, alpha
        return plan._replace(direction="pull" if pulls else "push", why=why)


def choose(A: Box, u: Box, product: ops.Product, desc: Descriptor = _NO_MASK) -> Plan:
    """Return the plan of a product; nothing is made or changed."""
    name, given = _policy_of("auto" if product.policy is None else product.policy)
    named, why = name in ("push", "pull"), ""
    if 0 in A.shape:
        why = "the matrix has a size of 0"
    elif not named:
        why = _why_no_choice(product.semiring.monoid, product.result, desc)
    if why:
        return Plan("", f"{ITS_OWN.why}: {why}")
    plan: Plan = POLICIES[name].rule(Numbers(A, u, product), **given)
    fits = product.transpose is (plan.direction == "push")
    return plan if fits or named or transposed(A) is not None else _without_transpose(A, plan)


def _why_no_choice(monoid: Monoid, result: DType, desc: Descriptor) -> str:
    if not (monoid.has_any_terminal or (monoid.is_exact(result) and not monoid.registered)):
        return f"{monoid.name} of {result} may round"
    if desc.accum is not None:
        return "the result is accumulated"
    masked = desc.mask is not None and not desc.complement
    return "the mask says where results are wanted" if masked else ""


def _auto(x: Numbers) -> Plan:
    """Pull once a growing frontier has an eighth of the edges that are left, as LAGraph does."""
    nvals, before = x.nvals, x.before
    growing = nvals > before.nvals
    if before.pulled:
        pulls = growing or nvals * BETA_PUSH > x.size
        text = "pulled before; vertices {} after {}, and {} / {}"
        return x.plan(pulls, text, nvals, before.nvals, x.size, BETA_PUSH)
    if not growing:
        return x.plan(False, "vertices {} <= {} before", nvals, before.nvals)
    if x.unexplored < x.size:
        return x.plan(False, "unexplored {} < {} vertices", x.unexplored, x.size)
    if before.ever:
        pulls = nvals * BETA_PULL > x.size
        text = f"pulled once; vertices {{}} {'>' if pulls else '<='} {{}} / {{}}"
        return x.plan(pulls, text, nvals, x.size, BETA_PULL)
    return x.by_edges(ALPHA)


def _beamer(x: Numbers, alpha: float, beta: float) -> Plan:
    """Pull when few edges are left beside the frontier's, push again when few vertices are."""
    if not x.before.pulled:
        return x.by_edges(alpha)
    pulls = x.nvals * beta >= x.size
    text = f"pulled before; vertices {{}} {'>=' if pulls else '<'} {{}} / {{:g}}"
    return x.plan(pulls, text, x.nvals, x.size, beta)


POLICIES: dict[str, Policy] = {
    "auto": Policy(_auto),
    "beamer": Policy(_beamer, {"alpha": number(BEAMER[0]), "beta": number(BEAMER[1])}),
    "push": Policy(lambda x: x.plan(False, "asked for")),
    "pull": Policy(lambda x: x.plan(True, "asked for")),
}


_policy_of = functools.lru_cache(maxsize=256)(functools.partial(find_policy, POLICIES))


def _without_transpose(A: Box, plan: Plan) -> Plan:
    """Return the plan of a product whose direction needs the transpose, which is not there."""
    counts = counts_of(A)
    if A.may_transpose and counts.lacked <= PATIENCE * counts.nvals:
        why = f"{counts.lacked} of {PATIENCE} x {counts.nvals} entries looked at for lack of it"
    else:
        why = why_no_transpose(A)
    if not why:
        return plan._replace(why=f"{plan.reason}; second form made")
    other = "push" if plan.direction == "pull" else "pull"
    reason = f"{plan.reason}, but the second form is missing: {why}"
    return plan._replace(direction=other, why=reason, lacks=True)


def stats_after(A: Box, plan: Plan, before: ProductStats | None) -> ProductStats:
    explored, pulled = plan.edges, plan.direction == "pull"
    ever = pulled
    if before is not None and before.matrix() is A:
        explored, ever = explored + before.explored, ever or before.ever
    large = pulled or plan.edges * _LARGE_PUSH > max(A.shape)
    return ProductStats(weakref.ref(A), explored, plan.nvals, pulled, ever, large)


# ---- Statements as calls of the C library, on vectors and on matrices
def require_no_choice(product: ops.Product, *, has_policies: bool = False) -> None:
    """Raise `NotSupported` if the author names a kernel, or a policy unless there are some."""
    chosen = product.policy if product.kernel is None and not has_policies else product.kernel
    if chosen is not None:
        other = "out, or give policy='push' or 'pull'" if has_policies else "and policy= out"
        fact = f"cpu: SuiteSparse chooses its own kernels, not {chosen!r}. Leave kernel= {other}."
        raise NotSupported(fact)


def element(x: Box, index: tuple[int, ...]) -> Any:
    value = handles.place_for(x.dtype)
    info = c_function(f"{x.kind}_extractElement", x.dtype)(value, x.handle, *index)
    if info == lib.GrB_NO_VALUE:
        return None
    check(info, "extractElement")
    return value[0]


def reduced(u: Box, monoid: Monoid) -> Any:
    result = monoid.types(u.dtype)[1]
    value = handles.place_for(result)
    call = c_function(f"{u.kind}_reduce", result)
    check(call(value, NULL, handles.c_monoid(monoid, u.dtype), u.handle, NULL), "reduce")
    return value[0]


def selection_matrix(f: Box, nrows: int, transposed: bool) -> Box:
    """Return the matrix of `SelectionToMatrix`, from arrays of the transpose, which are sorted."""
    indices, values = f.gb.to_coo()
    inside = (values >= 0) & (values < nrows)
    rows = values[inside].astype(np.uint64)
    ptr = np.zeros(f.size + 1, np.uint64)
    ptr[1:][indices[inside]] = 1
    by_row = gb.Matrix.ss.import_csr(
        nrows=f.size, ncols=nrows, indptr=np.cumsum(ptr), col_indices=rows,
        values=np.ones(1, bool), is_iso=True, sorted_cols=True, take_ownership=True,
    )  # fmt: skip
    made = workarounds.boxed(by_row, BOOL)
    return made if transposed else transpose_of(made)


# ---- Products
def multiply(w: Box, desc: Descriptor, op: ops.Multiply, plan: Plan | None = None) -> None:
    """``w<m> = A (+.x) u`` or ``A' (+.x) u``; without a plan, one is chosen and remembered."""
    A, u, product = op.matrix, op.operand, op.product
    if plan is None:
        require_no_choice(product, has_policies=True)
        LAST.plan = plan = choose(A, u, product, desc)
    stats = stats_after(A, plan, u.stats) if plan.direction else None
    stored, transpose = _form(A, plan, product)
    pulls = plan.direction == "pull"
    method = lib.GxB_AxB_DOT if pulls else lib.GxB_AxB_SAXPY if plan.direction else 0
    if method == lib.GxB_AxB_SAXPY and desc.mask is not None and desc.complement:
        # Left to itself, SuiteSparse takes Gustavson's method from n / 16 products on, which looks
        # at all n places (docs/design/cpu.md).
        method = lib.GxB_AxB_HASH
    threads = _threads(w, desc, op, plan) if pulls else 0
    with stored_as_bitmap(u) if pulls else nullcontext():
        info = _call(w, desc, stored, u, product, (transpose, method, threads))
    if info:
        check(info, "mxv")
    w.stats = stats


def _form(A: Box, plan: Plan, product: ops.Product) -> tuple[Box, bool]:
    """Return the matrix to multiply by, and whether it is used transposed."""
    if plan.lacks:
        counts_of(A).lacked += max(plan.edges, A.shape[not product.transpose])
    if not plan.direction or product.transpose is (plan.direction == "push"):
        return A, product.transpose
    return make_transposed(A), not product.transpose


#: Entries and results of a pull for each of its threads: some milliseconds of work. Where
#: other programs are busy, threads wait as long for one another (docs/design/cpu.md).
_A_THREAD = 1 << 19


def _threads(w: Box, desc: Descriptor, op: ops.Multiply, plan: Plan) -> int:
    """Return the threads of a pull, by the entries that it will look at.

    SuiteSparse counts all entries of the matrix, also where a sum ends at its first one. Of the
    edges that are left, as many lead to the frontier as of any vertex without a result.
    """
    x, wanted = Numbers(*op[:3]), w.size
    if desc.mask is not None and desc.complement:
        wanted -= handles.count_entries(desc.mask)
    looked = max(x.unexplored - plan.edges, 0)
    if x.alpha is None:  # a sum ends early
        looked = min(looked, wanted * x.unexplored // max(plan.edges, 1))
    return max(1, (looked + wanted) // _A_THREAD)


def _call(w: Box, desc: Descriptor, A: Box, u: Box, product: ops.Product, how: Any) -> Any:
    """Return the status of the call by `how`: (whether A is transposed, method, threads or 0)."""
    transpose, method, threads = how
    semiring = handles.c_semiring(product.semiring, product.domain)
    workarounds.without_hyperlists(product.semiring.multiply, A)
    mask, structure = workarounds.mask_handle(desc, A)
    plus = workarounds.accumulator(w, desc.accum, product.result)
    turned = ("" if transpose else "T1") if product.flip else "T0" if transpose else ""
    d = handles.descriptor(desc.replace, structure, desc.complement, turned, method)
    call, left, right = (lib.GrB_vxm, u, A) if product.flip else (lib.GrB_mxv, A, u)
    arguments = w.handle, mask, plus, semiring, left.handle, right.handle, d
    return handles.by_threads(threads, call, *arguments) if threads else call(*arguments)


def _multiply_selection(w: Box, desc: Descriptor, op: ops.MultiplySelection) -> None:
    """``w<m> = P (+.x) u`` or ``P' (+.x) u``, through P', whose rows need no sorting."""
    product = op.product
    require_no_choice(product)
    nrows = op.operand.size if product.transpose else w.size
    transposed = selection_matrix(op.indices, nrows, True)
    with_transpose = product._replace(transpose=not product.transpose)
    multiply(w, desc, ops.Multiply(transposed, op.operand, with_transpose), _AS_IT_IS)
    LAST.plan = None


_AS_IT_IS = Plan("", "the matrix serves once")


def _matrix_product(C: Box, desc: Descriptor, op: ops.Multiply) -> None:
    """``C<M> = A (+.x) B``."""
    A, B, product = op.operand, op.matrix, op.product
    mask, structure = workarounds.mask_handle(desc, B)
    plus = workarounds.accumulator(C, desc.accum, product.result)
    turned = _TRANSPOSES[op.transposed, not product.transpose]
    d = handles.descriptor(desc.replace, structure, desc.complement, turned)
    workarounds.without_hyperlists(product.semiring.multiply, A, B)
    plus_times = handles.c_semiring(product.semiring, product.domain)
    check(lib.GrB_mxm(C.handle, mask, plus, plus_times, A.handle, B.handle, d), "mxm")
    LAST.plan = ITS_OWN


# ---- Other statements, on vectors and matrices alike
def _written(
    w: Box, desc: Descriptor, result: DType, transposes: str = ""
) -> tuple[tuple[Any, Any, Any], Any]:
    """Return the first arguments of a call, (output, mask, accumulator), and its descriptor."""
    mask, structure = NULL, True
    if desc.mask is not None:
        mask, structure = workarounds.mask_handle(desc)
    plus = NULL if desc.accum is None else workarounds.accumulator(w, desc.accum, result)
    d = handles.descriptor(desc.replace, structure, desc.complement, transposes)
    return (w.handle, mask, plus), d


def _at(call: Any, indices: ops.Indices, shape: Shape) -> tuple[Any, list[Any], list[Any]]:
    """Return a C function for these index lists, its arguments for them, and their owners."""
    where, owners = [], []
    for chosen, size in zip(indices or [None] * len(shape), shape, strict=True):
        pointer, count, owner = handles.index_list(chosen, size)
        call = workarounds.at_indices(call, chosen, size)
        where += [pointer, count]
        owners.append(owner)
    return call, where, owners


def _ewise(w: Box, desc: Descriptor, op: ops.Ewise | ops.Kronecker) -> None:
    u, v = op.left, op.right
    kind = op.kind if type(op) is ops.Ewise else "kronecker"
    call, operator, domain, result = _combining(kind, w.kind, op.op, u.dtype, v.dtype)
    to, d = _written(w, desc, result, _TRANSPOSES[op.transposed])
    if type(op) is ops.Ewise and op.defaults is not None:
        x, y = (gb.Scalar.from_value(x, domain.name) for x in op.defaults)
        check(call(*to, operator, u.handle, x.gb_obj[0], v.handle, y.gb_obj[0], d), kind)
        return
    emptied = workarounds.is_emptied_first(w, desc, u, v)
    try:
        if emptied:
            workarounds.empty(w)
        info = call(*to, operator, u.handle, v.handle, d)
    except BaseException:  # an interrupt: the output may be empty already
        if emptied:
            workarounds.empty(w)
            call(*to, operator, u.handle, v.handle, d)
        raise
    check(info, kind)


@functools.cache
def _combining(kind: str, of: str, op: BinaryOp, left: DType, right: DType) -> tuple[Any, ...]:
    """Return the C function, the C operator, its domain and its result type."""
    operator = handles.binary_operator(op, left, right)
    return getattr(lib, _EWISE[kind].format(of)), operator, *op.types(left, right)


_EWISE = {
    "ewise_add": "GrB_{}_eWiseAdd_BinaryOp",
    "ewise_mult": "GrB_{}_eWiseMult_BinaryOp",
    "ewise_union": "GxB_{}_eWiseUnion",
    "kronecker": "GrB_{}_kronecker_BinaryOp",
}


def _apply(w: Box, desc: Descriptor, op: ops.Apply) -> None:
    u, (f, domain, result, left, right) = op.operand, op.function
    to, d = _written(w, desc, result)
    operator = typed_operator(f, domain).gb_obj
    if isinstance(f, UnaryOp):
        info = handles.method(w.kind, "apply")(*to, operator, u.handle, d)
    elif left is not None:
        call = c_function(f"{w.kind}_apply_BinaryOp1st", domain)
        info = call(*to, operator, left.item(), u.handle, d)
    else:
        name = "BinaryOp2nd" if isinstance(f, BinaryOp) else "IndexOp"
        call = c_function(f"{w.kind}_apply_{name}", domain)
        info = call(*to, operator, u.handle, right.item(), d)
    check(info, "apply")


def _select(w: Box, desc: Descriptor, op: ops.Select) -> None:
    u, domain = op.operand, lookup(op.thunk.dtype)
    # GraphBLAS casts the thunk to the type of the entries: -1 would equal the UINT32 4294967295.
    if not op.op.uses_value or op.op.body or domain is u.dtype:
        to, d = _written(w, desc, u.dtype)
        call = c_function(f"{w.kind}_select", domain)
        operator = typed_operator(op.op, domain).gb_obj
        check(call(*to, operator, u.handle, op.thunk.item(), d), "select")
    else:
        kept, chosen = _copy(u, domain), _new(u.dtype, u.shape)
        _select(kept, Descriptor(), ops.Select(kept, op.op, op.thunk))
        _assign(chosen, Descriptor(kept), ops.Assign(u))
        _assign(w, desc, ops.Assign(chosen))


def _assign_scalar(w: Box, desc: Descriptor, op: ops.AssignScalar) -> None:
    to, d = _written(w, desc, w.dtype)
    workarounds.finish_deletions(w, desc)
    call, where, _owners = _at(c_function(f"{w.kind}_assign", w.dtype), op.indices, w.shape)
    with as_bitmap_for(w, desc):
        check(call(*to, op.value.item(), *where, d), "assign")


def _assign(w: Box, desc: Descriptor, op: ops.Assign) -> None:
    u = transpose_of(op.operand) if op.transposed else op.operand
    if workarounds.crashes_on_full(desc, u):
        if op.indices is not None:  # scatter first, so that only one call accumulates
            given, u = u, _new(u.dtype, w.shape)
            _assign(u, Descriptor(), ops.Assign(given, op.indices))
        _apply(w, desc, ops.Apply(u, ops.BoundOperator(unary.identity, u.dtype, u.dtype)))
        return
    to, d = _written(w, desc, u.dtype)
    call, where, _owners = _at(handles.method(w.kind, "assign"), op.indices, w.shape)
    with as_bitmap_for(w, desc):
        check(call(*to, u.handle, *where, d), "assign")


def _extract(w: Box, desc: Descriptor, op: ops.Extract) -> None:
    to, d = _written(w, desc, op.operand.dtype)
    call, where, _owners = _at(handles.method(w.kind, "extract"), op.indices, op.operand.shape)
    check(call(*to, op.operand.handle, *where, d), "extract")


def _extract_column(w: Box, desc: Descriptor, op: ops.ExtractColumn) -> None:
    to, d = _written(w, desc, op.matrix.dtype, "T0" if op.transposed else "")
    where = lib.GrB_ALL, op.matrix.shape[op.transposed], op.column
    check(lib.GrB_Col_extract(*to, op.matrix.handle, *where, d), "extract")


def _reduce_rows(w: Box, desc: Descriptor, op: ops.ReduceRows) -> None:
    A, result = op.matrix, op.monoid.types(op.matrix.dtype)[1]
    to, d = _written(w, desc, result, "T0" if op.transposed else "")
    info = lib.GrB_Matrix_reduce_Monoid(*to, handles.c_monoid(op.monoid, A.dtype), A.handle, d)
    check(info, "reduce")


#: Each operation with the function that runs it: ``run(w, desc, operation)``.
RUN: dict[type, Callable[[Box, Descriptor, Any], None]] = {
    ops.Multiply: multiply,
    ops.MultiplySelection: _multiply_selection,
    ops.Ewise: _ewise,
    ops.Kronecker: _ewise,
    ops.Apply: _apply,
    ops.Select: _select,
    ops.Assign: _assign,
    ops.AssignScalar: _assign_scalar,
    ops.Extract: _extract,
    ops.ExtractColumn: _extract_column,
    ops.ReduceRows: _reduce_rows,
}


def run_on_matrix(statement: ops.Statement) -> None:
    """Run a statement on a new matrix, which the output becomes: an error leaves that as it was."""
    C, desc, operation, _ = statement
    if 0 in C.shape:  # there is nothing to write
        return
    if isinstance(operation, ops.SelectionToMatrix):
        operation = ops.Assign(selection_matrix(*operation))
    in_part = isinstance(operation, ops.AssignScalar) or (
        isinstance(operation, ops.Assign) and operation.indices is not None
    )
    kept = desc.accum is not None or (desc.mask is not None and not desc.replace)
    if isinstance(operation, ops.Assign) and not (in_part or kept or desc.mask is not None):
        out = transpose_of(operation.operand) if operation.transposed else operation.operand
        if not operation.transposed or out.dtype is not C.dtype:
            out = _copy(out, C.dtype)
    else:
        out = _copy(C, C.dtype) if in_part or (kept and C.gb.nvals) else _new(C.dtype, C.shape)
        if isinstance(operation, ops.Multiply):
            _matrix_product(out, desc, operation)
        else:
            RUN[type(operation)](out, desc, operation)
    C.become(out)


def _new(dtype: DType, shape: Shape) -> Box:
    return Box(handles.made(dtype, *shape), dtype)


def _copy(x: Box, dtype: DType) -> Box:
    return workarounds.boxed(x.gb.dup(dtype.name), dtype)


#: The part of a descriptor's name that transposes the first operand, and the second.
_TRANSPOSES = {(i, j): "T0" * i + "T1" * j for i in (False, True) for j in (False, True)}
