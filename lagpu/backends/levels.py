"""What a backend that runs loops as one program does with the levels of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lagpu.backends.protocol import Statement

__all__ = ["LevelOperations", "Levels"]

Data = Any


class Levels(Protocol):
    """The entries of an integer vector or matrix, by value.

    Attributes
    ----------
    lowest, deepest : int
        Least and largest value; 0 and -1 if there are no entries.
    """

    lowest: int
    deepest: int

    def cut(self, d: int) -> Data:
        """Return the BOOL vector or matrix that is True where the value is `d`."""


class LevelOperations(Protocol):
    """Operations on levels; only a backend that runs loops as one program needs them."""

    def vector_levels(self, v: Data) -> Levels:
        """Return the entries of an integer vector by value, cut out of one ordering."""

    def block_levels(self, A: Data) -> Levels | None:
        """Return the entries of an integer matrix by value, if it is stored position by position.

        They are those it has now, whatever becomes of it.
        """

    def run_sweep(
        self, statements: list[Statement], here: Data, above: Data, levels: Levels
    ) -> bool:
        """Run recorded statements for each level as one program, the farthest first.

        They name `here` and `above`, the masks of the first turn; `levels` is what `vector_levels`
        or `block_levels` has returned. Returns False, with nothing done, if they do not fit a
        program.
        """
