"""Loops: when a recorded body ends, and the program that a backend makes of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from lagpu.operations.statements import Handle

__all__ = ["FusedLoop", "Levels", "Rejection", "Sweep", "Until"]


class Until(NamedTuple):
    """The conditions that end a loop; each that is not None is checked.

    Attributes
    ----------
    empty : Handle or None
        Before an iteration in which this vector or matrix has no entry.
    unchanged : Handle or None
        After an iteration that left this vector or matrix as it was.
    times : int or None
        After this many iterations.
    """

    empty: Handle | None = None
    unchanged: Handle | None = None
    times: int | None = None


class Levels(Protocol):
    """The entries of an integer vector or matrix, by value.

    Attributes
    ----------
    lowest, deepest : int
        Least and largest value; 0 and -1 if there are no entries.
    """

    lowest: int
    deepest: int

    def cut(self, d: int) -> Handle:
        """Return the BOOL vector or matrix that is True where the value is `d`."""


class Sweep(NamedTuple):
    """The iterations of a sweep: one for each level, the deepest first, down to level 1.

    Attributes
    ----------
    here, above : Handle
        The masks of the first iteration, which the body names: the deepest level, and the one
        before it.
    levels : Levels
        The levels as `Backend.levels` returned them; at least two.
    """

    here: Handle
    above: Handle
    levels: Levels


class FusedLoop(Protocol):
    """A loop that runs as one program."""

    @property
    def name(self) -> str:
        """How it runs, such as ``"grid search"``."""

    @property
    def why(self) -> str:
        """Why this way was chosen."""

    @property
    def nbytes(self) -> int:
        """Bytes that the loop allocates beside its operands."""

    def run(self) -> None:
        """Run the loop to its end; the host waits only if it must know a scalar or a count.

        Raises
        ------
        EmptyObject
            If a statement read a scalar without a value: all statements before it have run.
        """


class Rejection(NamedTuple):
    """Why a loop does not run as one program."""

    why: str
