"""Recognise the recorded loops that backends run as one program: searches, relaxations, sweeps."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

import lagpu.operations as ops
from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.algebra.tables import binary, semiring

DEPTH, VALUE, NUMBER = 1, 2, 3  # what an assignment of a search writes
MAX_ASSIGNMENTS = 3  # of a search whose kernel makes the assignments itself


def method(s: ops.Statement) -> str:
    return ops.method_of(s.operation, 1)


def holds(vectors: Iterable[Any], x: Any) -> bool:
    return any(x is v for v in vectors)


def distinct(vectors: Iterable[Any]) -> list[Any]:
    return list({id(x): x for x in vectors}.values())


# ----------------------------------------------------------------------------------- searches
class Assignment(NamedTuple):
    """``x(f.S) << depth + number``, ``x(f.S) << f`` or ``x(f.S) << number``."""

    target: Any  #: ``x``.
    what: int  #: `DEPTH`, `VALUE` or `NUMBER`.
    number: Any = None


class SearchBody(NamedTuple):
    """The body of a search, from one frontier or several rows: assignments, and one product."""

    #: (n, n): the product's handle, for which a kernel's caller puts the matrix by columns.
    A: ops.Handle
    #: ``f`` and ``v`` of ``f(~v.S, replace=True) << f (+.x) A``; v is assigned in the body.
    frontier: Any
    excluded: Any
    product: ops.Product
    assignments: tuple[Assignment, ...]  #: The assignments at the frontier's entries.
    assigns_first: bool  #: Whether the assignments come before the product.
    statements: ops.Statements
    on_places: Any = None  #: The same search on the places of a record, which found it.

    @property
    def written(self) -> list[Any]:
        """The frontier and the outputs."""
        return [self.frontier, *[a.target for a in self.assignments]]

    @property
    def added(self) -> int:
        """The number that is added to each depth; 0 unless `match_search` allowed another one."""
        return next((a.number for a in self.assignments if a.what == DEPTH), 0) or 0

    @property
    def sums(self) -> bool:
        """Whether the products of one level add up; else the first one of a vertex counts."""
        return not self.product.semiring.monoid.has_any_terminal

    @property
    def counts(self) -> bool:
        """Whether products are the frontier's values, added up in a type that counts fit."""
        product = self.product
        return (
            product.semiring.monoid.op.cuda == "Plus"
            and product.semiring.multiply.cuda == ("First" if product.flip else "Second")
            and self.frontier.dtype == product.domain == product.result
            and product.result.name in ("FP64", "FP32", "INT64", "UINT64")
        )

    def overwrites(self, sums: bool) -> list[int]:
        """Return which outputs get values at vertices that a loop leaves in the frontier.

        A kernel assigns a vertex when it finds it, except sums, which is too early where the loop
        leaves a frontier and assigns first. It finds no vertex at which the mask has an entry.
        """
        if not self.assigns_first:
            return []
        return [
            k
            for k, a in enumerate(self.assignments)
            if a.target is not self.excluded and not (sums and a.what == VALUE)
        ]

    def on(self, body: ops.RecordedBody, form: ops.Handle = None) -> SearchBody:
        """Return the search of a recorded body; this one has places instead of its handles.

        `form` is the matrix by columns; else the search has the product's handle.
        """
        A, frontier, excluded, product, assignments, assigns_first, _, _ = self
        at: Any = body.handles
        made = [ops.new(Assignment, (at[x.number], what, n)) for x, what, n in assignments]
        return ops.new(SearchBody, (
            form or at[A.number], at[frontier.number], at[excluded.number], product, tuple(made),
            assigns_first, body, self,
        ))  # fmt: skip


F = TypeVar("F", bound=Callable[..., Any])


def matched(match: F) -> F:
    """Have ``match(statements, frontier)`` match the body of a record once, on its places."""

    @functools.wraps(match)
    def match_once(statements: ops.Statements, frontier: Any) -> Any:
        if not isinstance(statements, ops.RecordedBody) or statements.record.has_scalars:
            return match(statements, frontier)
        record, place = statements.record, statements.place_of(frontier)
        key = match_once, place
        if key not in record.found:
            record.found[key] = match(record.statements, place)
        found = record.found[key]
        return found if isinstance(found, ops.Rejection) else found.on(statements)

    return cast(F, match_once)


def match_search(
    statements: ops.Statements, frontier: Any, may_add: bool = False
) -> SearchBody | ops.Rejection:
    """Match the body of a search that runs until `frontier` is empty, or say why it is none.

    It assigns its counter or, if it `may_add`, the counter plus a whole number.
    """
    found: SearchBody | ops.Rejection = _match_search(statements, frontier)
    computes = not may_add and not isinstance(found, ops.Rejection) and found.added
    return _COMPUTED if computes else found


_COMPUTED = ops.Rejection("assign_scalar assigns a scalar, or what the counter computes")


@matched
def _match_search(statements: ops.Statements, frontier: Any) -> SearchBody | ops.Rejection:
    at = [k for k, s in enumerate(statements) if isinstance(s.operation, ops.Multiply)]
    if len(at) != 1:
        found = f"{len(at)} products in the body" if at else "no product with a stored matrix"
        return ops.Rejection(f"{found}; a search has one")
    (k,) = at
    out, desc, operation, _ = statements[k]
    assert isinstance(operation, ops.Multiply)
    if out is not frontier or operation.operand is not frontier or operation.transposed:
        return ops.Rejection("the product does not map the frontier to itself")
    matrix, product = operation.matrix, operation.product
    if matrix.shape[0] != matrix.shape[1] or any(s.out is matrix for s in statements):
        return ops.Rejection("the matrix is not square, or the body writes it")
    if product.is_named:
        return ops.Rejection("the product names a kernel or a policy")
    if desc.accum is not None or not desc.replace or desc.mask is None:
        return ops.Rejection("the product has an accumulator, or no mask with replace")
    if not (desc.structure and desc.complement):
        return ops.Rejection("the product's mask is not the complement of a structure")
    assigned = _assignments(statements, frontier)
    if isinstance(assigned, ops.Rejection):
        return assigned
    if not any(desc.mask is a.target for a in assigned):
        return ops.Rejection("the body does not assign to the mask of the product")
    assigns_first = k > 0
    if assigns_first and k != len(statements) - 1:
        return ops.Rejection("the body has assignments both before and after the product")
    return SearchBody(matrix, frontier, desc.mask, product, assigned, assigns_first, statements)


def _assignments(
    statements: ops.Statements, frontier: Any
) -> tuple[Assignment, ...] | ops.Rejection:
    found: list[Assignment] = []
    for s in statements:
        operation, desc = s.operation, s.desc
        if isinstance(operation, ops.Multiply):
            continue
        if desc.mask is not frontier or not desc.structure or desc.complement:
            return ops.Rejection(f"{method(s)} is not masked by the frontier's structure")
        if desc.accum is not None or desc.replace or s.out is frontier:
            fact = "has an accumulator or replace, or writes the frontier"
            return ops.Rejection(f"{method(s)} {fact}")
        if any(a.target is s.out for a in found):
            return ops.Rejection("a vector or matrix is assigned twice")
        kinds = (ops.Assign, ops.AssignScalar)
        if not isinstance(operation, kinds) or operation.indices is not None:
            return ops.Rejection(f"{method(s)} assigns neither depth, frontier nor one number")
        if isinstance(operation, ops.Assign):
            if operation.operand is not frontier or operation.transposed:
                return ops.Rejection("assign assigns neither depth, frontier nor one number")
            found.append(Assignment(s.out, VALUE))
        elif s.counters:
            found.append(Assignment(s.out, DEPTH, _added(operation.value.formula)))
        elif s.scalars:
            return _COMPUTED
        else:
            found.append(Assignment(s.out, NUMBER, operation.value))
    added = {a.number for a in found if a.what == DEPTH}
    return _COMPUTED if None in added or len(added) > 1 else tuple(found)


def _added(formula: Any) -> int | None:
    """Return the whole number that a formula adds to the counter; None if it is another one."""
    if formula is None:
        return 0
    sides = [x for x in formula[1:] if x is not None] if formula.sign == "+" else []
    return int(sides[0]) if len(sides) == 1 and isinstance(sides[0], np.integer) else None


def why_no_search(body: SearchBody) -> str:
    """Return why no kernel of a search makes a body's assignments, or an empty string."""
    if NUMBER in [a.what for a in body.assignments]:
        return "the body assigns a number; a grid search assigns only depth or frontier"
    if len(body.assignments) > MAX_ASSIGNMENTS:
        return f"{len(body.assignments)} assignments; at most {MAX_ASSIGNMENTS} fit"
    return ""


def why_no_values(body: SearchBody, sums: bool, keep: bool) -> str:
    """Return why a search cannot carry its frontier's values, or an empty string."""
    dtype, result = body.frontier.dtype, body.product.result
    if sums and dtype is not result:
        return f"sums of type {result} do not fit a frontier of {dtype}"
    if sums and dtype.numpy.itemsize < 4:
        return f"sums of type {dtype} have no atomic operation"
    if keep and not body.assigns_first:
        return "the frontier carries values, and the assignments follow the product"
    return ""


# -------------------------------------------------------------------------------- relaxations
# By semiring: the comparison that says "is not better", and whether no product is better than the
# number it is made of, from the least and the largest value of the matrix.
ORDERED: dict[Semiring, tuple[BinaryOp, Callable[[Any, Any], bool]]] = {
    semiring.min_plus: (binary.ge, lambda least, _: least >= 0),
    semiring.max_plus: (binary.le, lambda _, largest: largest <= 0),
    semiring.min_max: (binary.ge, lambda *_: True),
    semiring.max_min: (binary.le, lambda *_: True),
}


class RelaxationBody(NamedTuple):
    """The body of a relaxation."""

    A: ops.Handle  #: (n, n): as in `SearchBody`.
    #: ``f``, ``d`` and ``worse`` of ``f(~worse.V, replace=True) << f``, ``d(f.S) << f``, ``f << f
    #: (+.x) A`` and ``worse << f.ewise_mult(d, "is not better")``.
    frontier: ops.Handle
    numbers: ops.Handle
    worse: ops.Handle
    product: ops.Product
    statements: ops.Statements

    def on(self, body: ops.RecordedBody) -> RelaxationBody:
        """Return the relaxation of a recorded body; this one has places instead of its handles."""
        A, frontier, numbers, worse, product, _ = self
        places: tuple[Any, ...] = (A, frontier, numbers, worse)
        A, frontier, numbers, worse = [body.handles[x.number] for x in places]
        return RelaxationBody(A, frontier, numbers, worse, product, body)


_NONE = ops.Rejection("")


@matched
def match_relaxation(statements: ops.Statements, frontier: Any) -> RelaxationBody | ops.Rejection:
    """Return the parts of a relaxation that runs until `frontier` is empty, or a rejection."""
    if len(statements) != 4 or not isinstance(statements[2].operation, ops.Multiply):
        return _NONE
    f, d, multiply, worse = frontier, statements[1].out, statements[2].operation, statements[3].out
    product = multiply.product
    ordered = ORDERED.get(product.semiring)
    if ordered is None or product.is_named:
        return _NONE
    expected = [
        (f, ops.Descriptor(worse, False, True, None, True), ops.Assign(f)),
        (d, ops.Descriptor(f, True, False, None, False), ops.Assign(f)),
        (f, None, multiply._replace(operand=f)),
        (worse, None, ops.Ewise("ewise_mult", f, d, ordered[0])),
    ]
    plain = [s.desc.mask is None and s.desc.is_fresh for s in statements]
    each = zip(statements, plain, strict=True)
    found = [(s.out, None if is_plain else s.desc, s.operation) for s, is_plain in each]
    if found != expected or len({id(f), id(d), id(worse)}) != 3:
        return _NONE
    return RelaxationBody(multiply.matrix, f, d, worse, product, statements)


# ------------------------------------------------------------------------------------- sweeps
class SweepBody(NamedTuple):
    """The body of a sweep: statements at `here`, one product, statements at `above`.

    All operands are vectors; for a sweep over a matrix, those that store its entries. The product
    is ``y(above.S, replace=True) << x (+.x) A``, and `multiply` its operation; `replaced` are the
    vectors that have entries at `here` alone: x, and others written with replace.
    """

    statements: ops.Statements
    before: ops.Statements
    product: ops.Statement
    multiply: ops.Multiply
    after: ops.Statements
    replaced: list[ops.Handle]

    def on(self, statements: ops.Statements) -> SweepBody:
        """Return it of the same statements on other handles."""
        places = {id(s.out): k for k, s in enumerate(self.before)}
        replaced = [statements[places[id(x)]].out for x in self.replaced]
        return _of_sweep(statements, len(self.before), replaced)


def _of_sweep(statements: ops.Statements, place: int, replaced: list[ops.Handle]) -> SweepBody:
    before, product, after = statements[:place], statements[place], statements[place + 1 :]
    multiply = cast(ops.Multiply, product.operation)
    return SweepBody(statements, before, product, multiply, after, replaced)


_OF_SWEEPS = (ops.AssignScalar, ops.Assign, ops.Extract, ops.Apply, ops.Select, ops.Ewise)


def match_sweep(
    statements: ops.Statements, here: ops.Handle, above: ops.Handle,
    nvals: Callable[[Any], int] = operator.attrgetter("nvals"),
) -> SweepBody | ops.Rejection:  # fmt: skip
    """Match the body of a sweep, or say why it does not fit."""
    if isinstance(statements, ops.RecordedBody):  # its last places are the masks
        known = ops.once(statements, _sweep_of_places)
        if isinstance(known, SweepBody):
            return known.on(statements)
    places = [k for k, s in enumerate(statements) if isinstance(s.operation, ops.Multiply)]
    if len(places) != 1:
        return ops.Rejection(f"{len(places)} products in the body; a sweep has one")
    place = places[0]
    before, after = statements[:place], statements[place + 1 :]
    for s in (*before, *after):
        if not isinstance(s.operation, _OF_SWEEPS):
            return ops.Rejection(f"{method(s)} is not among the operations of a fused sweep")
        if getattr(s.operation, "indices", None) is not None:
            return ops.Rejection(f"{method(s)} has indices")
    if any(s.out is mask for s in statements for mask in (here, above)):
        return ops.Rejection("the body writes a mask of the sweep")
    replaced = _replaced_at_here(before, here)
    if isinstance(replaced, ops.Rejection):
        return replaced
    body = _of_sweep(statements, place, replaced)
    why = _why_no_product(body, above, nvals) or _why_not_after(body, above)
    return ops.Rejection(why) if why else body


def _sweep_of_places(statements: ops.Statements) -> SweepBody | ops.Rejection:
    """Match the body of a record, whatever entries its vectors have."""
    record = cast(ops.RecordedBody, statements).record
    here, above = record.places[-2:]
    return match_sweep(record.statements, here, above, lambda _: 1)


def _stays_in(s: ops.Statement, vectors: list[ops.Handle]) -> bool:
    """Whether a statement's result has entries only where one of these vectors has some."""
    inside = [holds(vectors, x) for x in ops.operands_of(s.operation)]
    intersects = isinstance(s.operation, ops.Ewise) and s.operation.kind == "ewise_mult"
    return any(inside) if intersects else bool(inside) and all(inside)


def _keeps_to(s: ops.Statement, mask: ops.Handle) -> bool:
    """Whether a statement is masked by `mask`, whose values are all True, not by ``~mask``."""
    return s.desc.mask is mask and not s.desc.complement


def _replaced_at_here(before: ops.Statements, here: ops.Handle) -> list[ops.Handle] | ops.Rejection:
    """Return the vectors that are replaced at `here`, or why a statement does not fit."""
    replaced: list[ops.Handle] = []
    seen: list[ops.Handle] = []  # read or written before they are replaced
    for s in before:
        desc = s.desc
        inside = desc.mask is None and _stays_in(s, [here, *replaced])
        if not _keeps_to(s, here) and not (inside and desc.accum is not None):
            return ops.Rejection(f"{method(s)} before the product is not masked by here")
        seen += ops.operands_of(s.operation)
        if desc.replace and not holds(replaced, s.out):
            if desc.accum is not None or holds(seen, s.out):
                why = f"{method(s)} replaces a vector that the body reads or writes earlier"
                return ops.Rejection(why)
            replaced.append(s.out)
        else:
            seen.append(s.out)
    return replaced


def _why_no_product(body: SweepBody, above: ops.Handle, nvals: Callable[[Any], int]) -> str:
    s, before = body.product, body.before
    A, x, product = body.multiply.matrix, body.multiply.operand, body.multiply.product
    if not _keeps_to(s, above) or not s.desc.replace or s.desc.accum is not None:
        return "the product is not written to above alone, with replace"
    if not holds(body.replaced, x):
        return "the product's operand may have entries outside of here"
    if any(s.out is b.out for b in before):
        return "the product and a statement before it write the same vector"
    if any(holds(ops.operands_of(b.operation), s.out) for b in before) and nvals(s.out):
        return "the product's output has entries before the sweep, and the body reads them"
    if product.is_named:
        return "the product names a kernel or a policy"
    return "the matrix has more than 2**31 rows" if max(A.shape) >= 2**31 else ""


def _why_not_after(body: SweepBody, above: ops.Handle) -> str:
    y = body.product.out
    for s in body.after:
        inside = s.desc.mask is None and _stays_in(s, [above, y])
        if not _keeps_to(s, above) and not (inside and (s.desc.accum is not None or s.out is y)):
            return f"{method(s)} after the product is not masked by above"
        if holds(body.replaced, s.out):
            return f"{method(s)} after the product writes a vector that is replaced at here"
        if s.desc.replace and s.out is not y:
            return f"{method(s)} after the product has replace"
    return ""
