"""All that NetworkX calls of its backend lagpu, the entry point ``networkx.backends``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lagpu.nx import measures as _measures  # noqa: F401, it declares its functions
from lagpu.nx import paths as _paths  # noqa: F401
from lagpu.nx import structure as _structure  # noqa: F401
from lagpu.nx.answers import can_run, declared, should_run
from lagpu.nx.graph import convert_from_nx, convert_to_nx

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]


def __getattr__(name: str) -> Callable[..., Any]:
    """Return a function of the backend: those that `answers` declares."""
    try:
        return declared(name).function
    except KeyError:
        raise AttributeError(f"the NetworkX backend of lagpu has no {name}") from None
