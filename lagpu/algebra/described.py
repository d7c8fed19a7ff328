"""A docstring for each operator, and one for its class: what ``help()`` shows of either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lagpu.dtypes import ALL, DType
from lagpu.errors import DomainMismatch

__all__ = ["by_type", "describe"]


def by_type(describe: Callable[[DType], str]) -> str:
    """Return the distinct descriptions of all types; a type that raises is left out."""
    descriptions = []
    for dtype in ALL:
        try:
            descriptions.append(describe(dtype))
        except DomainMismatch:
            continue
    return ", ".join(dict.fromkeys(descriptions))


class _Described:
    """The docstring of a class, and of each operator of it: what ``help(binary.plus)`` shows."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, op: Any, owner: type) -> str | None:
        return self.text if op is None else "\n\n".join(op.described())


def describe(kind: type) -> None:
    """Give each operator of a kind a docstring of its own."""
    kind.__doc__ = _Described(kind.__doc__)  # type: ignore[assignment]
