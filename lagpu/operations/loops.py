"""Recorded loops: their statements, vectors, matrices and scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from lagpu.operations.statements import Descriptor, Handle, Statement


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


# ------------------------------------------------------------------------------------------
# The record of a loop's body: its statements on places, which other handles take another time.


T = TypeVar("T")


class Place:
    """What stands in a record where a recorded statement had a handle.

    Attributes
    ----------
    number : int
        Which of the record's handles stands here.
    shape : tuple of int
        The shape that each of these handles has.
    """

    __slots__ = ("number", "shape")

    def __init__(self, number: int, shape: tuple[int, ...]) -> None:
        self.number, self.shape = number, shape


class Record:
    """The statements of a loop's body, on places.

    Parameters
    ----------
    statements : sequence of Statement
        As they were recorded.
    handles : list of Handle
        All handles in them, each of them once.
    shapes : list of tuple
        The shape of each.

    Attributes
    ----------
    places : list of Place
        One for each handle.
    statements : list of Statement
        The statements, with places instead of handles.
    found : dict
        What a backend has found out that holds on any handles, by who found it.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        handles: Sequence[Handle],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self.places = [Place(k, shape) for k, shape in enumerate(shapes)]
        of = {id(x): place for x, place in zip(handles, self.places, strict=True)}
        self.statements = [_moved(s, of) for s in statements]
        self.found: dict[Any, Any] = {}


class RecordedBody(Sequence[Statement]):
    """The statements of a record on handles; they are made when one of them is asked for.

    Attributes
    ----------
    record : Record
        The record.
    handles : list of Handle
        For each place another handle, of the same type and shape as at the first time.
    """

    def __init__(self, record: Record, handles: list[Handle]) -> None:
        self.record, self.handles = record, handles
        self._statements: list[Statement] | None = None

    def _made(self) -> list[Statement]:
        if self._statements is None:
            of = {id(p): x for p, x in zip(self.record.places, self.handles, strict=True)}
            self._statements = [_moved(s, of) for s in self.record.statements]
        return self._statements

    def __len__(self) -> int:
        return len(self.record.statements)

    def __getitem__(self, k: Any) -> Any:
        return self._made()[k]

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._made())

    def place_of(self, handle: Handle) -> Place | None:
        """Return the place where a handle stands; None if it stands nowhere."""
        for place, x in zip(self.record.places, self.handles, strict=True):
            if x is handle:
                return place
        return None


def once(statements: Sequence[Statement], find: Callable[[Sequence[Statement]], T]) -> T:
    """Return ``find(statements)``; for the body of a record it is found once, and kept.

    What is found may depend on operations, types and shapes, not on what handles are or hold.
    """
    if not isinstance(statements, RecordedBody):
        return find(statements)
    kept = statements.record.found
    if find not in kept:
        kept[find] = find(statements)
    found: T = kept[find]
    return found


def _moved(s: Statement, of: Mapping[int, Any]) -> Statement:
    """Return a statement on other handles, which `of` has by the ``id`` of those that it has."""
    out, desc, operation, dtype = s
    moved_desc = Descriptor(of.get(id(desc.mask)), *desc[1:])
    moved = type(operation)(*(of.get(id(x), x) for x in operation))
    return Statement(of[id(out)], moved_desc, moved, dtype)
