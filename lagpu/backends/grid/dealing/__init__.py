"""Who has which indices and entries of a grid's objects, and how a matrix is dealt anew."""

from lagpu.backends.grid.dealing.anew import dealt_anew, order_by_degree
from lagpu.backends.grid.dealing.partition import (
    Dealt,
    Layout,
    Numbering,
    Partition,
    Ranks,
    Relabelled,
    Shuffle,
    dealt,
    layout,
)

__all__ = [
    "Dealt",
    "Layout",
    "Numbering",
    "Partition",
    "Ranks",
    "Relabelled",
    "Shuffle",
    "dealt",
    "dealt_anew",
    "layout",
    "order_by_degree",
]
