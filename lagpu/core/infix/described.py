"""Mask, accumulator and `replace` by position: ``w(binary.min, m.S, replace) << call``."""

from __future__ import annotations

from typing import Any

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.core.expr import kind_of
from lagpu.core.hints import NoTruth, name_of
from lagpu.errors import DomainMismatch

__all__ = ["Replace", "described", "replace"]


class Replace:
    """`lagpu.replace`: delete the output's entries outside the mask, as in ``w(m.S, replace)``."""

    def __repr__(self) -> str:
        return "replace"

    def __bool__(self) -> bool:  # w(m.S, replace=lagpu.replace)
        return True

    def __reduce__(self) -> str:
        return "replace"  # pickled by its name: there is one


replace = Replace()


def described(
    out: Any, given: tuple[Any, ...], mask: Any, accum: Any, replaces: bool
) -> tuple[Any, Any, bool]:
    """Return (mask, accumulator, replace) of an output that was called with `given` by position.

    Raises
    ------
    DomainMismatch
        If one of them is given twice, or something else is.
    """
    for x in given:
        if x is None:
            continue
        if x is replace:
            replaces = True
        elif isinstance(x, (BinaryOp, Monoid, str)):
            accum = _only(out, "accumulator", accum, x)
        elif isinstance(x, NoTruth):
            mask = _only(out, "mask", mask, x)
        else:
            raise DomainMismatch(
                f"{name_of(out)}(...): {kind_of(x)} is no mask, accumulator or replace. "
                "Write m.S for the entries of m, m.V for those that are not zero, binary.plus for "
                "an accumulator."
            )
    return mask, accum, replaces


def _only(out: Any, what: str, before: Any, x: Any) -> Any:
    if before is not None:
        raise DomainMismatch(f"{name_of(out)}(...): takes one {what}, not two. Leave one out.")
    return x
