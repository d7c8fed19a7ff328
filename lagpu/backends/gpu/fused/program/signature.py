"""What decides the text of a program: two bodies with one signature have the same text.

A record keeps its program (`RecordedBody`), but a loop with scalars is not kept as a record, and
writing the text takes longer than a short loop runs. So programs of such loops are kept by this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType
from lagpu.operations import Handle, ScalarRef, ScalarValue, Statement

__all__ = ["signature"]

# Parts of a statement that are their own signature; others are numbers, scalars or handles.
_ITSELF = frozenset(
    {type(None), str, bool, BinaryOp, DType, IndexUnaryOp, Monoid, Semiring, UnaryOp}
)


def signature(
    statements: Sequence[Statement], *ends: VectorStore | None
) -> tuple[tuple[Any, ...], list[Handle]]:
    """Return (the signature, vectors and matrices in their order) of a body and its condition.

    The signature has operators and types themselves, and numbers by their bits.
    """
    handles: list[Handle] = []
    places: dict[int, int] = {}
    scalars: list[Any] = []

    def scalar(x: ScalarValue) -> Any:
        place = places.get(id(x))
        if place is None:
            place = places[id(x)] = -1 - len(scalars)
            scalars.append((x.dtype, x.location is None and x.get() is not None))
        return place

    def part(x: Any) -> Any:
        if type(x) in _ITSELF:
            return x
        place = places.get(id(x))
        if place is not None:
            return place
        if isinstance(x, np.generic):
            return x.dtype.char, x.tobytes()
        if type(x) is ScalarRef:
            return scalar(x.scalar), x.dtype
        if type(x) is ScalarValue:
            return scalar(x)
        if isinstance(x, tuple):
            return type(x), *map(part, x)
        place = places[id(x)] = len(handles)
        handles.append(x)
        return place

    body = tuple(map(part, statements))
    parts = (*body, *map(part, ends))
    return (*parts, *((type(x), x.dtype, x.shape) for x in handles), *scalars), handles
