"""Which recorded sweeps one kernel can run, and why others cannot."""

from __future__ import annotations

from typing import NamedTuple

from lagpu.backends.gpu.storage.forms import why_no_rows
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.protocol import Statement

__all__ = ["Matched", "inputs_of", "match"]

_ELEMENTWISE = frozenset(
    ("assign_scalar", "assign", "extract", "apply", "select", "ewise_add", "ewise_mult")
) | {"ewise_union"}


class Matched(NamedTuple):
    """A body that fits: statements at `here`, one product, statements at `above`.

    Attributes
    ----------
    before, after : list of Statement
        What stands before the product and behind it.
    product : Statement
        ``y(above.S, replace=True) << x (+.x) A``.
    replaced : list of VectorStore
        What has entries at `here` alone: x, and others written with replace.
    """

    before: list[Statement]
    product: Statement
    after: list[Statement]
    replaced: list[VectorStore]


def match(statements: list[Statement], here: VectorStore, above: VectorStore) -> Matched | str:
    """Return the parts of a sweep's body, or why it does not fit."""
    places = [k for k, s in enumerate(statements) if s.method == "mxv"]
    if len(places) != 1:
        return f"{len(places)} products in the body; a sweep has one"
    place = places[0]
    before, product, after = statements[:place], statements[place], statements[place + 1 :]
    for s in (*before, *after):
        if s.method not in _ELEMENTWISE:
            return f"{s.method} is no piece of a sweep"
        if s.method in ("assign_scalar", "assign", "extract") and s.args[1] is not None:
            return f"{s.method} has indices"
    if any(s.w is mask for s in statements for mask in (here, above)):
        return "the body writes a mask of the sweep"
    replaced = _at_here(before, here)
    if isinstance(replaced, str):
        return replaced
    why = _misfit(product, above, replaced, before) or _behind(after, product.w, above, replaced)
    return why or Matched(before, product, after, replaced)


def inputs_of(s: Statement) -> list[VectorStore]:
    """Return the vectors that an element-wise statement reads, beside its output."""
    return [x for x in s.args if isinstance(x, VectorStore)]


def _holds(x: VectorStore, vectors: list[VectorStore]) -> bool:
    return any(x is v for v in vectors)


def _stays_in(s: Statement, vectors: list[VectorStore]) -> bool:
    """Whether what a statement makes has entries only where one of these vectors has some."""
    inside = [_holds(x, vectors) for x in inputs_of(s)]
    return any(inside) if s.method == "ewise_mult" else bool(inside) and all(inside)


def _keeps_to(s: Statement, mask: VectorStore) -> bool:
    """Whether it is masked by this one, not by its complement: all its values are True."""
    return s.desc.mask is mask and not s.desc.complement


def _at_here(before: list[Statement], here: VectorStore) -> list[VectorStore] | str:
    """Return the vectors that are replaced at `here`, or why a statement does not fit."""
    replaced: list[VectorStore] = []
    seen: list[VectorStore] = []  # read or written before they are replaced
    for s in before:
        desc = s.desc
        inside = desc.mask is None and _stays_in(s, [here, *replaced])
        if not _keeps_to(s, here) and not (inside and desc.accum is not None):
            return f"{s.method} before the product is not masked by here"
        seen += inputs_of(s)
        if desc.replace and not _holds(s.w, replaced):
            if desc.accum is not None or _holds(s.w, seen):
                return f"{s.method} replaces what the body has read or written before"
            replaced.append(s.w)
        else:
            seen.append(s.w)
    return replaced


def _misfit(
    s: Statement, above: VectorStore, replaced: list[VectorStore], before: list[Statement]
) -> str:
    """Return why a product does not fit, or nothing."""
    A, x, how = s.args
    if not _keeps_to(s, above) or not s.desc.replace or s.desc.accum is not None:
        return "the product is not written to above alone, with replace"
    if not _holds(x, replaced):
        return "the product multiplies what may have entries outside of here"
    if any(s.w is b.w for b in before):
        return "the product writes what the statements before it write"
    if any(_holds(s.w, inputs_of(b)) for b in before) and s.w.nvals:
        return "the product's output has entries before the first turn, and the body reads them"
    if how.kernel is not None or how.policy is not None:
        return "the author chose the kernel"
    if max(A.shape) >= 2**31:
        return "the matrix has more than 2**31 rows"
    lacking = "" if how.transpose else why_no_rows(A)
    return lacking and f"it needs the matrix by rows too, and {lacking}"


def _behind(
    after: list[Statement], y: VectorStore, above: VectorStore, replaced: list[VectorStore]
) -> str:
    """Return why a statement behind the product does not fit, or nothing."""
    for s in after:
        desc = s.desc
        inside = desc.mask is None and _stays_in(s, [above, y])
        if not _keeps_to(s, above) and not (inside and (desc.accum is not None or s.w is y)):
            return f"{s.method} behind the product is not masked by above"
        if _holds(s.w, replaced):
            return f"{s.method} behind the product writes what is replaced at here"
        if desc.replace and s.w is not y:
            return f"{s.method} behind the product has replace"
    return ""
