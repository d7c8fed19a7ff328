"""Times of work on a CUDA device, between pairs of events that are used again."""

from __future__ import annotations

from typing import Any

__all__ = ["EventTimer", "Events"]

_Pair = tuple[Any, Any]


class Events:
    """Pairs of events for timers, those of timers that are gone first.

    All that were ever made are kept. A timer in a cycle, such as an exception makes with its
    frames, is collected together with what it has: CuPy's events end themselves then, although the
    timer has just given them to the next.

    Parameters
    ----------
    cuda : module
        ``cupy.cuda``.
    """

    def __init__(self, cuda: Any) -> None:
        self.cuda = cuda
        self._made: list[_Pair] = []
        self._spare: list[_Pair] = []

    def take(self) -> _Pair:
        """Return a pair that nobody has."""
        try:
            return self._spare.pop()
        except IndexError:
            pair = self.cuda.Event(), self.cuda.Event()
            self._made.append(pair)
            return pair

    def give_back(self, pair: _Pair) -> None:
        """Take a pair for the next."""
        self._spare.append(pair)


class EventTimer:
    """A context manager that measures by events on the current stream; see `Timer`."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._pair = events.take()

    def __del__(self) -> None:
        if hasattr(self, "_pair"):
            self._events.give_back(self._pair)

    def __enter__(self) -> EventTimer:
        self._pair[0].record()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._pair[1].record()

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds between both; waits for the second."""
        begin, end = self._pair
        end.synchronize()
        return float(self._events.cuda.get_elapsed_time(begin, end))
