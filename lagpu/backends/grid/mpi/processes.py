"""Processes of a job that run one program in step, and check that they do."""

from __future__ import annotations

import functools
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from inspect import isfunction
from itertools import zip_longest
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from lagpu import errors
from lagpu.algebra.operators import Monoid, Operator, Semiring
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.handles import GridHandle
from lagpu.dtypes import DType
from lagpu.errors import LagpuError, ProcessFailed, plain
from lagpu.host.interrupt import uninterrupted
from lagpu.host.memory import require, shortage_named
from lagpu.operations import method_of

_COLUMNS = 509  # words: of a longer array the sums of so many columns are looked at
_FIRST, _LONGEST = 5, 60  # values and letters of an argument in an error


def checksum(x: Any) -> int:
    """Return a number that is the same in every process for the same argument of a statement.

    Objects of the grid count by the statement that made them, operators by name, text and code,
    arrays by type, length and values. Of what else there is, as functions, only the type counts.
    """
    return _OF[type(x)](x)


class _Checksums(dict[type, Callable[[Any], int]]):
    """The function for each type of argument, found when there is the first one."""

    def __missing__(self, kind: type) -> Callable[[Any], int]:
        of_kind = zlib.crc32(kind.__name__.encode())
        found: Callable[[Any], int] = lambda _x: of_kind  # noqa: E731
        if issubclass(kind, GridHandle):
            found = attrgetter("number")
        elif issubclass(kind, np.ndarray):
            found = _of_array
        elif issubclass(kind, np.generic):
            found = zlib.crc32
        elif issubclass(kind, (tuple, list)):
            # The hash of a tuple of numbers is the same everywhere, and quick.
            found = lambda x: hash((of_kind, *[_OF[type(part)](part) for part in x]))  # noqa: E731
        elif issubclass(kind, (Operator, Monoid, Semiring, DType)):
            found = _of_named
        elif issubclass(kind, (bool, int, float, str, type(None))):
            found = _of_text
        self[kind] = found
        return found


_OF = _Checksums()


@functools.lru_cache(maxsize=1024, typed=True)
def _of_text(x: Any) -> int:
    return zlib.crc32(repr(x).encode())


@functools.cache
def _of_named(x: Any) -> int:
    """Return the checksum of an operator or a type; both live as long as the program."""
    facts = [repr(x)]
    if isinstance(x, Semiring):
        facts += [str(_of_named(x.monoid)), str(_of_named(x.multiply))]
    elif isinstance(x, Monoid):
        facts += [str(_of_named(x.op))]
    elif isinstance(x, Operator):
        code = getattr(x.numpy, "__code__", None)  # of a user's function; of NumPy's the name says
        numbers = [] if code is None else [c for c in code.co_consts if isinstance(c, (int, float))]
        facts += [x.body, "" if code is None else f"{code.co_code!r} {code.co_names} {numbers}"]
    return zlib.crc32("\n".join(facts).encode())


def _of_array(x: np.ndarray[Any, Any]) -> int:
    """Return a checksum that costs little beside what a statement does with the array."""
    flat: Any = np.ascontiguousarray(x).reshape(-1)
    seen = zlib.crc32(f"{x.dtype.str} {x.shape}".encode())
    if flat.nbytes > 16 * _COLUMNS:
        rows = flat.nbytes // (8 * _COLUMNS)
        flat = flat.view(np.uint8)
        words = flat[: 8 * rows * _COLUMNS].view(np.uint64)
        seen = zlib.crc32(np.add.reduce(words.reshape(rows, _COLUMNS)), seen)
        flat = flat[len(words) * 8 :]
    return zlib.crc32(flat, seen)


def described(given: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, words, checksum) of each argument, and of each field of a statement."""
    return [
        (name, _words(x), f"{checksum(x) % 2**32:08x}")
        for key, whole in given.items()
        for name, x in _parts(key, whole)
    ]


def _parts(name: str, x: Any) -> Iterator[tuple[str, Any]]:
    fields = getattr(x, "_fields", None)
    if fields is not None:
        if name == "operation":
            yield name, method_of(x, 1) or method_of(x, 2)
        for field, part in zip(fields, x, strict=True):
            yield from _parts(field, part)
    elif isinstance(x, (tuple, list)):
        for k, part in enumerate(x):
            yield from _parts(name if len(x) == 1 else f"{name}[{k}]", part)
    else:
        yield name, x


def _words(x: Any) -> str:
    if isinstance(x, GridHandle):
        return f"the {x.dtype} of shape {'x'.join(map(str, x.shape))} made in statement {x.made_in}"
    if isinstance(x, np.ndarray):
        first = " ".join(map(str, x.reshape(-1)[:_FIRST].tolist()))
        return f"{x.size} {x.dtype} [{first}{' ...' * (x.size > _FIRST)}]"
    found = str(x) if isinstance(x, (str, np.generic)) else repr(x)
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}..."


# ------------------------------------------------------------------------------------------
# Arrays as bytes: what one process sends to another.


Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_WORD = 8  # each array begins at a multiple of so many bytes, as the widest type needs


def packed(lists: Sequence[Arrays]) -> Bytes:
    """Return some pieces' arrays as one array of bytes, which tells their types and lengths.

    It begins with the number of pieces and the number of arrays of each; then come the type and
    the length of every array, and the arrays.
    """
    arrays = [np.ascontiguousarray(array) for one in lists for array in one]
    head = np.array([len(lists), len(lists[0])], np.int64)
    types = np.array([array.dtype.str.encode() for array in arrays], f"S{_WORD}")
    lengths = np.array([len(array) for array in arrays], np.int64)
    parts = [part.view(np.uint8) for part in (head, types.view(np.int64), lengths)]
    for array in arrays:
        parts += [array.view(np.uint8), np.zeros(-array.nbytes % _WORD, np.uint8)]
    return np.concatenate(parts)


def unpacked(message: Bytes) -> list[Arrays]:
    """Return the pieces' arrays, which share the message's memory and are read only."""
    pieces, width = message[: 2 * _WORD].view(np.int64).tolist()
    count = pieces * width
    types, lengths = message[2 * _WORD : (2 + 2 * count) * _WORD].reshape(2, -1)
    at, arrays = (2 + 2 * count) * _WORD, []
    for name, length in zip(types.view(f"S{_WORD}"), lengths.view(np.int64), strict=True):
        dtype = np.dtype(name.decode())
        array = message[at : at + length * dtype.itemsize].view(dtype)
        array.flags.writeable = False
        arrays.append(array)
        at += array.nbytes + -array.nbytes % _WORD
    return [tuple(arrays[p * width : (p + 1) * width]) for p in range(pieces)]


# ------------------------------------------------------------------------------------------
# The processes of a job: they meet before they send anything, so an error of one reaches all.


T = TypeVar("T")
_INLINE = 168  # bytes: a short message travels in the header
_HEADER = np.dtype(
    [
        ("state", np.int64),
        ("turn", np.int64),  # the statement
        ("call", np.int64),  # the meeting in it
        ("method", "S48"),
        ("given", np.uint64),  # the checksum of what the statement is given
        ("nbytes", np.int64),  # of the message; of the longest one, if each process gets its own
        ("inline", np.uint8, (_INLINE,)),
    ]
)
_ALIKE = 80  # bytes at the beginning of the headers, the same in all where nothing is wrong
_PACK = struct.Struct(f"=3q48sQq{_INLINE}s").pack
_GOING, _FAILED, _ENDED, _ENDED_TOO = range(4)  # the last one: by an error that another one told

_PLACE = ("turn", "call", "method")
_CHUNK = 1 << 26  # bytes sent or received in one call of MPI, whose counts are 32-bit
_NOTHING: Bytes = np.empty(0, np.uint8)
_SMALL = 1 << 20  # bytes for which nobody asks whether memory is left
_LONGEST_TEXT = 4000  # bytes of an error's message
_REMEDY = "Use more hosts, or a smaller graph."
_END = "its end"  # what a process runs that has left its program


class Processes:
    """What the processes of a job tell each other, over a communicator of MPI.

    Every exchange begins with a meeting: each process gives a header of 256 bytes, which says what
    it is about to do, or that it cannot. So a process that fails has only to come to the next
    meeting and say so; all others are on their way to it, and raise instead of going on. A process
    whose program ends comes to a last one.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        A communicator that nobody else uses.
    beside : int
        The number of processes on this host, with this one.
    chunk : int
        The most bytes that one call of MPI sends or receives.
    patience : float
        Seconds for which a process that ends by an error waits for the others to come.
    among : Processes, optional
        All processes of the job, of which these are a group; see `group`.
    """

    def __init__(
        self,
        comm: Any,
        beside: int = 1,
        chunk: int = _CHUNK,
        patience: float = 5.0,
        among: Processes | None = None,
    ) -> None:
        self._comm = comm
        self.size: int = comm.Get_size()
        self.rank: int = comm.Get_rank()
        self.beside = beside
        self._chunk = chunk
        self._step = max(8, chunk // self.size // 8 * 8)  # of one process to another in one call
        self._patience = patience
        self.turn = self._call = 0
        self._method = ""
        self._given: Mapping[str, Any] = {}
        self._checksum = 0
        self._over: LagpuError | None = None  # why no process meets any more
        self._speaker = 0  # of that error
        self.of_all = False  # whether every process has ended by an error of its own
        self._unmet = self._parted = False
        self._among = among
        self._first = 0 if among is None else among.rank - self.rank  # its number in the job
        self._groups: dict[int, Processes] = {}  # by their size
        self._within: Processes | None = None  # the group whose processes meet by themselves

    # ------------------------------------------------------------------------------- a statement
    def begin(self, method: str, given: Mapping[str, Any] | None = None) -> None:
        """Start a statement, which every process runs; `method` names it.

        What is `given` to it, by name, must be the same in every process.
        """
        self.turn, self._call, self._method = self.turn + 1, 0, method
        self._given = given or {}
        self._checksum = checksum(tuple(given.values())) % 2**64 if given else 0

    def agree(self) -> None:
        """Return when no process has failed in this statement.

        Raises
        ------
        LagpuError
            What another process has said: of the same class if its error is lagpu's, or memory was
            short, so that a program that goes on after it goes on everywhere; else `ProcessFailed`.
            That too if processes have given different things to the statement.
        """
        self._meet()
        self._given = {}  # which may be large

    def fail(self, error: BaseException) -> None:
        """Tell the others that this statement has failed here, unless they know."""
        if not _is_told(error) and self._over is None:
            self._meet(_text(error), _FAILED)
        self._given = {}

    # ------------------------------------------------------------------------------------ groups
    def group(self, size: int) -> Processes:
        """Return this process' group of `size` processes that follow each other.

        Every process calls it, and `size` divides their number.
        """
        if size not in self._groups:
            made: list[Any] = []
            with uninterrupted():
                self._meet()  # behind it nobody can fail before all have called MPI
                self._mpi(lambda: made.append(self._comm.Split(self.rank // size, self.rank)))
            self._groups[size] = Processes(made[0], self.beside, self._chunk, self._patience, self)
        return self._groups[size]

    def inside(self, work: Callable[[], T]) -> T:
        """Do some work whose statements are those of this group alone.

        However a process leaves the work, it comes to one last meeting of the group, or has heard
        at an earlier one that another process has left. So nobody waits for one that has gone.

        Raises
        ------
        LagpuError
            What another process has said, with its number: then that one has its own error.
        """
        assert self._among is not None
        if not self._unmet:
            self._over, self._parted, self.turn = None, False, 0
        self._among._within = self
        try:
            found = work()
        except BaseException as error:
            self._leave(_text(error), _ENDED_TOO if _is_told(error) else _ENDED)
            if self._parted and isinstance(error, LagpuError):
                error.process = None  # of nobody: each tells those outside of the group
            raise
        self._leave()
        return found

    def _leave(self, message: Bytes = _NOTHING, state: int = _GOING) -> None:
        """Meet the group for the last time, unless one of it has ended before."""
        assert self._among is not None
        with uninterrupted():
            self._among._within = None
            if self._over is None:
                self.begin(_END)
                self._meet(message, state)
            elif state == _GOING:
                raise self._over

    # ----------------------------------------------------------------------------------- messages
    def share(self, message: Bytes) -> list[Bytes]:
        """Return the message of every process, in their order."""
        with uninterrupted():  # who has met the others sends what they wait for
            headers = self._meet(message)
            return self._collected(message, headers)

    def swap(self, messages: Sequence[Bytes]) -> list[Bytes]:
        """Return what every process has for this one; `messages` has what this one has for each."""
        with uninterrupted():
            headers = self._meet(longest=max(map(len, messages)))
            coming = np.empty(self.size, np.int64)
            self._mpi(self._comm.Alltoall, np.array([len(m) for m in messages]), coming)
            most = int(headers["nbytes"].max())
            received = self._allocated(coming, most * self.size)

            def send(start: int, found: Any) -> None:
                cut = [message[start : start + self._step] for message in messages]
                self._comm.Alltoallv([np.concatenate(cut), list(map(len, cut))], found)

            self._receive(send, most, coming, received)
            return received

    def _collected(self, message: Bytes, headers: Any) -> list[Bytes]:
        """Return the messages whose lengths are in the headers; the own one must be given."""
        sizes = headers["nbytes"]
        most = int(sizes.max())
        if most <= _INLINE:
            return [headers["inline"][r, : sizes[r]].copy() for r in range(self.size)]
        received = self._allocated(sizes, int(sizes.sum()))

        def send(start: int, found: Any) -> None:
            self._comm.Allgatherv(message[start : start + self._step], found)

        self._receive(send, most, sizes, received)
        return received

    def _receive(
        self, send: Callable[[int, Any], None], most: int, sizes: Any, received: Sequence[Bytes]
    ) -> None:
        """Fill `received` chunk by chunk; `send` sends one and takes what comes at that time."""

        def step(start: int) -> None:
            counts = np.clip(sizes - start, 0, self._step)
            found, ends = np.empty(counts.sum(), np.uint8), np.cumsum(counts)
            send(start, [found, counts.tolist()])
            for message, end, count in zip(received, ends, counts, strict=True):
                message[start : start + count] = found[end - count : end]

        for start in range(0, most, self._step):
            self._mpi(step, start)

    def _allocated(self, sizes: Any, total: int) -> list[Bytes]:
        """Return memory for messages; if they are long, when every process has got its own."""
        if total <= _SMALL:
            return [np.empty(size, np.uint8) for size in sizes]
        with shortage_named("grid", _REMEDY):
            needed = int(sizes.sum()) + min(total, self._step * self.size)
            require(needed * self.beside, "grid", _REMEDY)
            received = [np.empty(size, np.uint8) for size in sizes]
        self._meet()
        return received

    # ---------------------------------------------------------------------------------- meetings
    def _meet(self, message: Bytes = _NOTHING, state: int = _GOING, longest: int = 0) -> Any:
        """Return the headers of all processes, which are at the same place and well."""
        if self._within is not None:  # left without a word, as by an interrupt at the wrong time
            said = message if state else _text(ProcessFailed("grid: it has left its sub-cluster."))
            self._within._leave(said, _ENDED)
        if self._over is not None:
            raise self._over
        self._call += 1
        nbytes, inline = longest or len(message), b""
        if len(message) <= _INLINE:
            inline = message.tobytes()
        method = self._method.encode()
        packed = _PACK(state, self.turn, self._call, method, self._checksum, nbytes, inline)
        mine, rows = np.frombuffer(packed, np.uint8), np.empty((self.size, len(packed)), np.uint8)
        with uninterrupted():
            self._mpi(self._comm.Allgather, mine, rows)
            headers = rows.view(_HEADER)[:, 0]
            if state != _GOING or (rows[:, :_ALIKE] != mine[:_ALIKE]).any():
                self._compare(headers, message, state)
        return headers

    def _compare(self, headers: Any, message: Bytes, state: int) -> None:
        """Take what a process has said; raise if there is none, and all are at different places.

        What was given to one statement is compared first: that it differs may have made one fail.
        """
        stopped = np.flatnonzero(headers["state"] != _GOING)
        alike = all((headers[name] == headers[name][0]).all() for name in _PLACE)
        if alike and (headers["given"] != headers["given"][0]).any():
            self._differ(headers["given"])
        elif len(stopped):
            self._hear(headers, stopped, message, state)
        else:
            self._part(headers)

    def _hear(self, headers: Any, stopped: Any, message: Bytes, state: int) -> None:
        """Take what the processes say that have failed or ended; raise it if this one has not."""
        states = headers["state"][stopped]
        first = int(stopped[np.lexsort((stopped, states == _ENDED_TOO))[0]])
        headers["nbytes"][np.arange(self.size) != first] = 0
        said = self._collected(message if self.rank == first else _NOTHING, headers)[first]
        kind, _, text = said.tobytes().decode(errors="replace").partition("\n")
        error = self._told(first, kind, text)
        self.of_all = bool((headers["state"] == _ENDED).all())
        ended = np.flatnonzero(headers["state"] >= _ENDED)
        if len(ended):
            others = headers["state"][ended] == _ENDED_TOO
            self._over, self._speaker = error, int(ended[np.lexsort((ended, others))[0]])
        if state == _GOING:
            raise error

    def _part(self, headers: Any) -> NoReturn:
        """Raise on all processes since they are at different places; they never meet again."""
        places = [tuple(headers[name][r] for name in _PLACE) for r in range(self.size)]
        other = next(r for r, place in enumerate(places) if place != places[0])
        where = [
            f"process {r + self._first} is at {places[r][2].decode()} (statement {places[r][0]})"
            for r in (0, other)
        ]
        going = [r for r, place in enumerate(places) if place[2].decode() != _END]
        self._speaker = min(going, default=0)
        self._parted = True
        self._over = self._told(
            other,
            "",
            f"grid: {', '.join(where)}. Run the same statements on every process.",
        )
        raise self._over

    def _differ(self, checksums: Any) -> NoReturn:
        """Raise on all processes since they have given different things to the statement.

        Nothing has changed, so they go on from here alike.
        """
        self._checksum, self._parted = 0, True
        text = np.frombuffer(json.dumps(described(self._given)).encode(), np.uint8)
        texts = [json.loads(one.tobytes()) for one in self.share(text)]
        other = int(np.flatnonzero(checksums != checksums[0])[0])
        pairs = zip_longest(texts[0], texts[other], fillvalue=("arguments", "others", ""))
        (name, *first), (_, *its) = next(pair for pair in pairs if pair[0] != pair[1])
        if first[0] == its[0]:  # as of two long arrays
            first, its = ([f"{words} (checksum {of})"] for words, of in (first, its))
        operations = [words for field, words, _ in texts[0] if field == "operation"]
        what = (operations or [self._method])[0]
        raise self._told(
            other,
            "",
            f"grid: {name} is {first[0]} in process {self._first} and {its[0]} in process "
            f"{other + self._first}, in {what} (statement {self.turn}). Give every process the "
            "same.",
        )

    def _mpi(self, call: Callable[..., Any], *args: Any) -> None:
        """Call MPI; where that fails, nothing can be agreed upon any more."""
        try:
            call(*args)
        except Exception as error:
            self._fail_for_ever(
                self._told(self.rank, "", f"grid: MPI failed: {plain(str(error))}.")
            )
            raise cast(LagpuError, self._over) from error

    def _fail_for_ever(self, error: LagpuError) -> None:
        """Note that MPI has failed, here and for all processes."""
        self._over, self._speaker, self._unmet = error, self.rank, True
        if self._among is not None:
            self._among._fail_for_ever(error)

    def _told(self, rank: int, kind: str, text: str) -> LagpuError:
        size = self.size if self._among is None else self._among.size
        return _told(rank + self._first, size, kind, text)

    # ----------------------------------------------------------------------------------- the end
    def end(self, error: BaseException) -> bool:
        """Tell the others that an error ends this process; return whether this one prints it.

        One of those whose error is their own does. If the others do not come within `patience`,
        this one prints, and `close` ends them.
        """
        if self._over is None:
            state = _ENDED_TOO if _is_told(error) else _ENDED
            self.begin("an error")
            # Another thread waits: this one must be able to give up.
            waiter = threading.Thread(
                target=self._meet_last, args=(_text(error), state), daemon=True
            )
            waiter.start()
            waiter.join(self._patience)
            self._unmet |= waiter.is_alive()
        return self._unmet or self._speaker == self.rank

    def close(self) -> None:
        """Wait until every process has come to its end; end those that cannot be reached."""
        if self._unmet:
            self.abort()
        elif self._over is None:
            self.begin(_END)
            self._meet_last()

    def _meet_last(self, *args: Any) -> None:
        with suppress(LagpuError):  # the others say it
            self._meet(*args)

    def abort(self) -> None:
        """End all processes of the job."""
        self._comm.Abort(1)


def _text(error: BaseException) -> Bytes:
    """Return the name and the message of an error, as others hear it."""
    kind = "OutOfMemory" if isinstance(error, MemoryError) else type(error).__name__
    text = plain(" ".join(str(error).split()))
    if not isinstance(error, LagpuError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return np.frombuffer(f"{kind}\n{text}".encode(errors="replace")[:_LONGEST_TEXT], np.uint8)


def _told(process: int, size: int, kind: str, text: str) -> LagpuError:
    """Return the error for what another process has said, with that process' number."""
    cls = getattr(errors, kind, None)
    if not isinstance(cls, type) or not issubclass(cls, LagpuError) or isfunction(cls.__init__):
        cls = ProcessFailed  # of no such name, or one that takes more than a message
    error = cls(f"process {process} of {size}: {text}" if kind else text)
    error.process = process
    return error


def _is_told(error: BaseException) -> bool:
    """Whether every process knows an error: it was raised at a meeting."""
    return isinstance(error, LagpuError) and error.process is not None
