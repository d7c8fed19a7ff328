"""Every error that lagpu raises; each also derives from the nearest built-in exception.

A message has the form ``operation: fact != fact. What to do.``
"""

import re
from typing import Any

# Control characters but for tab and newline, with which a name could steer a terminal, and the
# halves of characters by which Python reads a file name that is not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BREAKS = re.compile("[\n\u2028\u2029]")


def plain(text: str) -> str:
    """Return a text in which control characters are written out: an escape is four letters."""
    return _UNPRINTABLE.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


class LagpuError(Exception):
    """Base of every error raised by lagpu; its message is one line, but for reports and logs.

    Attributes
    ----------
    process : int or None
        The number of the process of a grid in which the error arose, if that is not this one.
    """

    process: int | None = None
    _has_lines = False

    def __str__(self) -> str:
        text = plain(BaseException.__str__(self))  # KeyError has quotation marks
        return text if self._has_lines else _BREAKS.sub(_written_out, text)


class DimensionMismatch(LagpuError, ValueError):
    """Shapes do not fit together."""


class DomainMismatch(LagpuError, TypeError):
    """A type or an operator does not fit its operands."""


class NoDomain(DomainMismatch, KeyError):
    """An operator does not work with a type."""


class UnknownType(DomainMismatch, ValueError):
    """No type of values has this name."""


class IndexOutOfBound(LagpuError, IndexError):
    """A vertex or an index lies outside ``0 .. n-1``."""


class InvalidValue(LagpuError, ValueError):
    """An argument is wrong in a way that no type or shape rule covers."""


class NameTaken(InvalidValue, AttributeError):
    """A table has an operator, or a group of operators, of this name already."""


class EmptyObject(LagpuError, ValueError):
    """A value was read from a scalar that holds none."""


class CycleFound(LagpuError, ValueError):
    """There is a cycle where none may be; `cycle` has its vertices in the order of its edges."""

    def __init__(self, message: str, cycle: list[int]) -> None:
        super().__init__(message)
        self.cycle = cycle


class NoPath(LagpuError, ValueError):
    """There is no path from one vertex to another."""


class NotConverged(LagpuError, ArithmeticError):
    """An iteration did not reach its tolerance within its limit of steps."""


class UnknownOperator(LagpuError, AttributeError, ValueError):
    """No table holds an operator of this name."""


class NotComputed(DomainMismatch, AttributeError):
    """A value was read from a mask, or one number from many: make a vector of it first."""


class BackendMismatch(LagpuError, TypeError):
    """Operands live on different backends; nothing is copied silently."""


class BackendUnavailable(LagpuError, ImportError):
    """A backend's package, device or compiler is missing."""


class NotSupported(LagpuError, NotImplementedError):
    """The backend or strategy lacks the operation; lagpu never falls back silently."""


class LimitExceeded(LagpuError, RuntimeError):
    """A size or a count exceeds a limit that the message states."""


class OutOfMemory(LagpuError, MemoryError):
    """An operation needs more memory than is free; raised before anything is allocated."""


class FileFormatError(LagpuError, ValueError):
    """A file is malformed or truncated, or its content contradicts its header."""


class FileMissing(LagpuError, FileNotFoundError):
    """There is no such file."""


class ProcessFailed(LagpuError, RuntimeError):
    """Another process of a grid failed, ended, or runs another statement or other values.

    If processes give different values to one statement, objects stay as they were before it, and
    a program that catches the error in every process goes on; after different statements it cannot.
    """

    _has_lines = True  # those of its error


class CheckFailed(LagpuError, AssertionError):
    """A checker rejects a result."""


class CrosscheckFailed(CheckFailed):
    """Two backends, or two ways to run, disagree; `report` has the first difference."""

    report: Any = None
    _has_lines = True


class KernelCompileError(LagpuError, RuntimeError):
    """The compiler rejects a kernel; the message has file, macros and log."""

    _has_lines = True


class KernelLaunchError(LagpuError, RuntimeError):
    """Arguments do not fit a kernel's signature, or the launch failed."""


class GridTimeout(LagpuError, TimeoutError):
    """A piece of a grid has waited too long for another one; nothing was written."""


class UnusedCall(UserWarning):
    """A call, an output ``w(mask)`` or a product ``q @ A`` was dropped without being used."""
