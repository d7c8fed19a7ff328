"""Recorded statements on blocks as statements on the vectors that their entries are."""

from __future__ import annotations

from typing import Any, NamedTuple

from lagpu.backends.gpu.storage.bitmap import BlockStore, as_block, fits, own
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Product, Statement

__all__ = ["OnEntries", "on_entries"]

_OF_ONE = frozenset(("matrix_apply", "matrix_select", "matrix_dup"))
_NO_BLOCK = "a matrix is no block, and does not fit as one"
_OF_TWO = frozenset(("matrix_ewise_add", "matrix_ewise_mult", "matrix_ewise_union"))


class OnEntries(NamedTuple):
    """Statements that say of the entries of blocks what others said of the blocks.

    Attributes
    ----------
    statements : list of Statement
        `w`, masks and operands are vectors; a product is ``mxv`` with the same matrix.
    outputs : list of (object, BlockStore)
        Whose attribute `data` is to be which block once they have run.
    blocks : dict
        The block of each matrix, by the matrix' ``id``.
    """

    statements: list[Statement]
    outputs: list[tuple[Any, BlockStore]]
    blocks: dict[int, BlockStore]


def on_entries(
    counters: Counters,
    statements: list[Statement],
    read: tuple[MatrixStore, ...],
    shape: tuple[int, int] | None = None,
) -> OnEntries | str:
    """Return statements on entries, or why there are none.

    Parameters
    ----------
    counters : Counters
        For vectors that are made.
    statements : list of Statement
        As recorded; each writes a matrix.
    read : tuple of MatrixStore
        What is read besides, by a sweep or by a loop's condition.
    shape : tuple of int, optional
        What all blocks must have.
    """
    for s in statements:
        why = _misfit(s, shape)
        if why:
            return why
    if not all(_may_be_block(A) for A in read):
        return _NO_BLOCK
    blocks: dict[int, BlockStore] = {}
    for s in statements:
        if id(s.w) not in blocks:
            blocks[id(s.w)] = own(counters, s.w)
    for A in (*read, *(A for s in statements for A in _operands(s))):
        if id(A) not in blocks:
            blocks[id(A)] = as_block(counters, A)
    outputs = {id(s.out): (s.out, blocks[id(s.w)]) for s in statements}
    entries = {of: A.entries for of, A in blocks.items()}
    on = [_on_entries(s, entries) for s in statements]
    return OnEntries(on, list(outputs.values()), blocks)


def _operands(s: Statement) -> tuple[MatrixStore, ...]:
    """Return what a statement that fits reads position by position."""
    mask = () if s.desc.mask is None else (s.desc.mask,)
    if s.method == "matrix_mxm" or s.method in _OF_ONE:
        return (s.args[0], *mask)
    return (*s.args[:2], *mask) if s.method in _OF_TWO else mask


def _may_be_block(A: MatrixStore) -> bool:
    return isinstance(A, BlockStore) or fits(A.device, A.dtype, A.shape)


def _misfit(s: Statement, shape: tuple[int, int] | None) -> str:
    """Return why a statement has no equal on entries, or nothing."""
    what = s.method.removeprefix("matrix_")
    if s.method == "matrix_assign_scalar":
        if s.args[1:] != (None, None):
            return "assign_scalar has indices"
    elif s.method == "matrix_mxm" or s.method in _OF_TWO:
        turned = s.args[3]
        if turned[0] or (turned[1] and s.method != "matrix_mxm"):
            return f"{what} transposes what is no matrix of a product"
    elif s.method not in _OF_ONE:
        return f"{what} is no statement on a block's entries"
    for A in (s.w, *_operands(s)):
        if shape is not None and A.shape != shape:
            return f"{what} has an operand that is no row for each row of the levels"
        if not _may_be_block(A):
            return _NO_BLOCK
    return ""


def _on_entries(s: Statement, entries: dict[int, VectorStore]) -> Statement:
    """Return one statement on entries."""
    method, args = s.method.removeprefix("matrix_"), s.args
    if s.method == "matrix_mxm":
        Q, A, semiring, turned = args
        domain, result = semiring.types(Q.dtype, A.dtype)
        method = "mxv"
        args = (A, entries[id(Q)], Product(semiring, domain, result, not turned[1], True))
    elif s.method == "matrix_dup":
        method, args = "assign", (entries[id(args[0])], None)
    elif s.method == "matrix_assign_scalar":
        args = (args[0], None)
    elif s.method in _OF_ONE:
        args = (entries[id(args[0])], *args[1:])
    else:
        left, right, op, _, *defaults = args
        args = (entries[id(left)], entries[id(right)], op, *defaults)
    mask = s.desc.mask
    desc = s.desc if mask is None else s.desc._replace(mask=entries[id(mask)])
    return s._replace(method=method, w=entries[id(s.w)], desc=desc, args=args)
