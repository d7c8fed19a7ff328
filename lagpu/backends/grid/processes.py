"""The processes of a job: they run the same statements, check that they do, and send bytes."""

from __future__ import annotations

import functools
import json
import os
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
from lagpu.backends.grid.partition import MADE_BITS, GridHandle
from lagpu.dtypes import DType
from lagpu.errors import LagpuError, ProcessFailed, plain
from lagpu.host.interrupt import uninterrupted
from lagpu.host.memory import require, shortage_named
from lagpu.operations import method_of

_COLUMNS = 509  # words: of a longer array the sums of so many columns are looked at
_FIRST, _LONGEST = 5, 60  # values and letters of an argument in an error


def checksum(x: Any) -> int:
    """Return a number that is the same in every process for the same argument of a statement.

    It covers the statement that made an object of the grid; name, text and code of an operator;
    type, length and values of an array; only the type of anything else, such as a function.
    """
    return _OF[type(x)](x)


class _Checksums(dict[type, Callable[[Any], int]]):
    """The function for each type of argument, found at the first one."""

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
        made_in, shape = x.number >> MADE_BITS, "x".join(map(str, x.shape))
        return f"the {x.dtype} of shape {shape} made in statement {made_in}"
    if isinstance(x, np.ndarray):
        first = " ".join(map(str, x.reshape(-1)[:_FIRST].tolist()))
        return f"{x.size} {x.dtype} [{first}{' ...' * (x.size > _FIRST)}]"
    found = str(x) if isinstance(x, (str, np.generic)) else repr(x)
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}..."


# -------------- The processes synchronize before they send anything, so an error of one reaches all
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
T = TypeVar("T")
_INLINE = 168  # bytes: a short message is sent in the header
_HEADER = np.dtype(
    [
        ("state", np.int64),
        ("turn", np.int64),  # the statement
        ("call", np.int64),  # the synchronization in it
        ("method", "S48"),
        ("given", np.uint64),  # the checksum of what the statement is given
        ("nbytes", np.int64),  # of the message; of the longest one, if each process gets its own
        ("inline", np.uint8, (_INLINE,)),
    ]
)
_ALIKE = 80  # bytes at the beginning of the headers, the same in all where nothing is wrong
_PACK = struct.Struct(f"=3q48sQq{_INLINE}s").pack
_GOING, _FAILED, _ENDED, _ENDED_TOO = range(4)  # the last: by an error that another one reported

_PLACE = ("turn", "call", "method")
_CHUNK = 1 << 26  # bytes sent or received in one call of MPI, whose counts are 32-bit
_to_json = json.JSONEncoder(default=np.generic.item).encode
_NOTHING: Bytes = np.empty(0, np.uint8)
_SMALL = 1 << 20  # bytes that are allocated without a check of free memory
_LONGEST_TEXT = 4000  # bytes of an error's message
_REMEDY = "Use more hosts, or a smaller graph."
_END = "its end"  # the method of a process that has left its program


class Processes:
    """The processes of a job, or a group `among` them, over a communicator of MPI.

    Before they send, processes synchronize: each gathers from all a header of 256 bytes with the
    statement that it runs, or the state *failed*. So a process that fails reports that at its next
    synchronization, and all others raise there. A process whose program ends reports that too.

    After the first synchronization in a statement some may exchange by a communicator of their own,
    a *line*, such as a column: these alone synchronize then. Which lines a statement uses follows
    from its arguments, which are compared there. A process that fails or learns of a failure sends
    a header on every line, without waiting for one after the other, and then on all: so every one
    that waits learns of it, and each line has had as many calls in all of its processes.

    `beside` processes are on this host; a call of MPI sends or receives `chunk` bytes at most; a
    process that ends by an error waits for the others for `patience` seconds.
    """

    def __init__(
        self, comm: Any, beside: int = 1, chunk: int = _CHUNK,
        patience: float = 5.0, among: Processes | None = None,
    ) -> None:  # fmt: skip
        self._comm = comm
        self.size: int = comm.Get_size()
        self.rank: int = comm.Get_rank()
        self.beside = beside
        self._chunk = chunk
        self._step = max(8, chunk // self.size // 8 * 8)  # of one process to another in one call
        self._patience = patience
        self.turn = self._call = self._last = 0
        self._method = ""
        self._given: Mapping[str, Any] = {}
        self._checksum = 0
        given = os.environ.get("LAGPU_COMPARE") or "100"
        self._compared = np.inf if given == "all" else int(given)  # statements
        self._over: LagpuError | None = None  # why no process synchronizes any more
        self._speaker = 0  # the process that prints that error
        self.of_all = False  # whether every process has ended by an error of its own
        self._unreachable = self._diverged = False
        self._among = among
        self._first = 0 if among is None else among.rank - self.rank  # its number in the job
        self._groups: dict[int, Processes] = {}  # by their size
        self._lines: dict[tuple[int, ...], Any] = {}  # communicators, by the colours of all
        self._failed = 0  # the last statement whose failure this process has sent on the lines
        self._within: Processes | None = None  # the group whose work runs

    # ------------------------------------------------------------------------------- a statement
    def begin(self, method: str, given: Mapping[str, Any] | None = None) -> None:
        """Start a statement of this name; what is `given` to it must be the same everywhere.

        It is compared in the first statements, as a program whose processes differ mostly does
        soon; in all that synchronize once there are lines.
        """
        self.turn, self._call, self._last, self._method = self.turn + 1, 0, 0, method
        self._given = given or {}

    @property
    def is_silent(self) -> bool:
        """Whether nothing has been sent in this statement, and its arguments are not compared.

        If it changes nothing either, its end needs no synchronization: an error is reported at
        the next one. So it is after what `agree` has called the last.
        """
        return self._call == self._last and self._is_past

    @property
    def _is_past(self) -> bool:
        """Whether the statements are over whose arguments are compared in any case."""
        return self.turn > self._compared

    def all(self, holds: bool) -> bool:
        return bool(self._synchronize(np.array([holds], np.uint8))[:, -_INLINE].all())

    def agree(self, last: bool = False) -> None:
        """Return when no process has failed in this statement; else raise the error of one.

        It has the same class if it is lagpu's, or memory was short, so that a program that goes on
        after it goes on everywhere; else it is `ProcessFailed`, as if the arguments differ. After
        the `last` call of a statement each process ends by itself.
        """
        self._synchronize()
        self._given = {}  # which may be large
        if last:
            self._last = self._call

    def fail(self, error: BaseException) -> None:
        """Report to the others that this statement has failed here, unless they know."""
        if not _is_reported(error) and self._over is None:
            self._synchronize(_text(error), _FAILED)
        self._given = {}

    # ------------------------------------------------------------------------------------ groups
    def group(self, size: int) -> Processes:
        """Return this process' group of `size` processes that follow each other; a collective."""
        if size not in self._groups:
            with uninterrupted():
                self._synchronize()  # after this no process can fail before all have called MPI
                made = self._mpi(self._comm.Split, self.rank // size, self.rank)
            self._groups[size] = Processes(made, self.beside, self._chunk, self._patience, self)
        return self._groups[size]

    def inside(self, work: Callable[[], T]) -> T:
        """Do some work whose statements are those of this group alone.

        However a process leaves the work, it synchronizes with the group once more, or has learned
        before that another process has left. So none waits for a process that is gone. An error of
        another process has its number.
        """
        assert self._among is not None
        if not self._unreachable:
            self._over, self._diverged, self.turn = None, False, 0
        self._among._within = self
        try:
            found = work()
        except BaseException as error:
            self._leave(_text(error), _ENDED_TOO if _is_reported(error) else _ENDED)
            if self._diverged and isinstance(error, LagpuError):
                error.process = None  # each process reports it to those outside of the group
            raise
        self._leave()
        return found

    def _leave(self, message: Bytes = _NOTHING, state: int = _GOING) -> None:
        """Synchronize with the group for the last time, unless one of it has ended before."""
        assert self._among is not None
        with uninterrupted():
            self._among._within = None
            if self._over is None:
                self.begin(_END)
                self._synchronize(message, state)
            elif state == _GOING:
                raise self._over

    # ----------------------------------------------------------------------------------- messages
    def gather(self, message: Bytes) -> list[Bytes]:
        """Return the message of every process, in their order."""
        with uninterrupted():  # the others wait for the message from now on
            return self._collected(message, _headers(self._synchronize(message)))

    def gather_objects(self, given: Any) -> list[Any]:
        """Return the numbers, texts and lists of such that every process gives."""
        text = _to_json(given).encode()
        return [json.loads(one.tobytes()) for one in self.gather(np.frombuffer(text, np.uint8))]

    def line(self, colours: tuple[int, ...]) -> Any:
        """Return the communicator of the processes of the same colour as this one; a collective."""
        if colours not in self._lines:
            with uninterrupted():
                self._synchronize()
                self._lines[colours] = self._mpi(self._comm.Split, colours[self.rank], self.rank)
        return self._lines[colours]

    def exchange(self, messages: Sequence[Bytes], line: Any = None) -> list[Bytes]:
        """Return the message of each process of a line, or of all, to this one, in their order."""
        comm = line or self._comm
        with uninterrupted():
            headers = _headers(self._synchronize(longest=max(map(len, messages)), line=line))
            coming = np.empty(len(messages), np.int64)
            self._mpi(comm.Alltoall, np.array([len(m) for m in messages]), coming)
            most = int(headers["nbytes"].max())

            def send(start: int, found: Any) -> None:
                cut = [message[start : start + self._step] for message in messages]
                comm.Alltoallv([np.concatenate(cut), list(map(len, cut))], found)

            return self._received(send, coming, most, most * len(messages), line)

    def _collected(self, message: Bytes, headers: Any) -> list[Bytes]:
        """Return the messages whose lengths are in the headers, one of them the own."""
        sizes = headers["nbytes"]
        most = int(sizes.max())
        if most <= _INLINE:
            return [headers["inline"][r, : sizes[r]].copy() for r in range(self.size)]

        def send(start: int, found: Any) -> None:
            self._comm.Allgatherv(message[start : start + self._step], found)

        return self._received(send, sizes, most, int(sizes.sum()))

    def _received(
        self, send: Callable[[int, Any], None], sizes: Any, most: int, total: int, line: Any = None
    ) -> list[Bytes]:
        """Return messages of these sizes; the longest in any process has `most` bytes.

        ``send(start, buffer)`` sends one chunk and receives one. If the `total` is large, nothing
        is sent before every process has allocated its memory.
        """
        with shortage_named("grid", _REMEDY):
            if total > _SMALL:
                needed = int(sizes.sum()) + min(total, self._step * self.size)
                require(needed * self.beside, "grid", _REMEDY)
            received = [np.empty(size, np.uint8) for size in sizes]
        if total > _SMALL:
            self._synchronize(line=line)

        def step(start: int) -> None:
            counts = np.clip(sizes - start, 0, self._step)
            found, ends = np.empty(counts.sum(), np.uint8), np.cumsum(counts)
            send(start, [found, counts.tolist()])
            for message, end, count in zip(received, ends, counts, strict=True):
                message[start : start + count] = found[end - count : end]

        for start in range(0, most, self._step):
            self._mpi(step, start)
        return received

    # --------------------------------------------------------------------------- synchronization
    def _synchronize(
        self, message: Bytes = _NOTHING, state: int = _GOING, longest: int = 0, line: Any = None
    ) -> Any:
        """Return the headers of all processes, or those of a line: they run one statement."""
        if self._within is not None:  # left without a report, as by an interrupt at a bad time
            said = message if state else _text(ProcessFailed("grid: it has left its sub-cluster."))
            self._within._leave(said, _ENDED)
        if self._over is not None:
            raise self._over
        if not self._call:
            given = tuple(self._given.values()) if self._lines or not self._is_past else ()
            self._checksum = checksum(given) % 2**64 if given else 0
            if line is not None:
                self._synchronize()
        on_lines = self._on_lines() if state and self._call else []
        self._call += 1
        method, nbytes = self._method.encode(), longest or len(message)
        inline = message[:_INLINE].tobytes()  # a longer message follows
        packed = _PACK(state, self.turn, self._call, method, self._checksum, nbytes, inline)
        comm = line or self._comm
        mine, rows = np.frombuffer(packed, np.uint8), np.empty((comm.size, len(packed)), np.uint8)
        with uninterrupted():
            if line is None:
                self._mpi(comm.Allgather, mine, rows)
            else:  # a call that waits would not match that of `_on_lines`
                self._mpi(lambda: comm.Iallgather(mine, rows).Wait())
            self._wait(on_lines)
            found, same = rows.tobytes(), packed[:_ALIKE]
            alike = all(found.startswith(same, at) for at in range(0, len(found), len(packed)))
            if state != _GOING or not alike:
                on_lines = self._on_lines(line) if self._call > 1 else []
                try:
                    if line is not None:
                        self._synchronize()  # where the process that failed reports its error
                finally:
                    self._wait(on_lines)
                self._compare(_headers(rows), message, state)
        return rows

    def _on_lines(self, seen: Any = None) -> list[Any]:
        """Send, once in a statement, a failure on the lines but one where it was seen."""
        if self._failed == self.turn:
            return []
        self._failed, found = self.turn, []
        packed = _PACK(_FAILED, self.turn, 0, b"", 0, 0, b"")
        for line in self._lines.values():
            if line is not seen:
                both = np.frombuffer(packed, np.uint8), np.empty(line.size * len(packed), np.uint8)
                found.append((self._mpi(line.Iallgather, *both), *both))
        return found

    def _wait(self, requests: Sequence[Any]) -> None:
        for request, *_ in requests:
            self._mpi(request.Wait)

    def _compare(self, headers: Any, message: Bytes, state: int) -> None:
        """Take the error of a process, or raise that arguments or statements differ."""
        stopped = np.flatnonzero(headers["state"] != _GOING)
        alike = all((headers[name] == headers[name][0]).all() for name in _PLACE)
        if alike and (headers["given"] != headers["given"][0]).any():
            self._compare_arguments(headers["given"])
        elif len(stopped):
            self._take_error(headers, stopped, message, state)
        else:
            self._diverge(headers)

    def _take_error(self, headers: Any, stopped: Any, message: Bytes, state: int) -> None:
        """Take the error of the processes that failed or ended; raise it if this one has not."""
        first = int(stopped[np.lexsort((stopped, headers["state"][stopped] == _ENDED_TOO))[0]])
        headers["nbytes"][np.arange(self.size) != first] = 0
        said = self._collected(message if self.rank == first else _NOTHING, headers)[first]
        kind, _, text = said.tobytes().decode(errors="replace").partition("\n")
        error = self._reported(first, kind, text)
        self.turn = int(headers["turn"].max())  # some may have gone on in silence
        self.of_all = bool((headers["state"] == _ENDED).all())
        ended = np.flatnonzero(headers["state"] >= _ENDED)
        if len(ended):
            others = headers["state"][ended] == _ENDED_TOO
            self._over, self._speaker = error, int(ended[np.lexsort((ended, others))[0]])
        if state == _GOING:
            raise error

    def _diverge(self, headers: Any) -> NoReturn:
        """Raise on all processes that they run different statements; they cannot go on."""
        places = [tuple(headers[name][r] for name in _PLACE) for r in range(self.size)]
        other = next(r for r, place in enumerate(places) if place != places[0])
        where = [
            f"process {r + self._first} is at {places[r][2].decode()} (statement {places[r][0]})"
            for r in (0, other)
        ]
        going = [r for r, place in enumerate(places) if place[2].decode() != _END]
        self._speaker = min(going, default=0)
        self._diverged = True
        fact = f"grid: {', '.join(where)}. Run the same statements on every process."
        self._over = self._reported(other, "", fact)
        raise self._over

    def _compare_arguments(self, checksums: Any) -> NoReturn:
        """Raise on all processes that the statement's arguments differ; nothing has changed."""
        self._checksum, self._diverged = 0, True
        texts = self.gather_objects(described(self._given))
        other = int(np.flatnonzero(checksums != checksums[0])[0])
        pairs = zip_longest(texts[0], texts[other], fillvalue=("arguments", "others", ""))
        (name, *first), (_, *its) = next(pair for pair in pairs if pair[0] != pair[1])
        if first[0] == its[0]:  # as of two long arrays
            first, its = ([f"{words} (checksum {of})"] for words, of in (first, its))
        operations = [words for field, words, _ in texts[0] if field == "operation"]
        what = (operations or [self._method])[0]
        raise self._reported(
            other,
            "",
            f"grid: {name} is {first[0]} in process {self._first} and {its[0]} in process "
            f"{other + self._first}, in {what} (statement {self.turn}). Give every process the "
            "same.",
        )

    def _mpi(self, call: Callable[..., Any], *args: Any) -> Any:
        """Return what MPI does; after a failure the processes cannot synchronize."""
        try:
            return call(*args)
        except Exception as error:
            self._lose_mpi(self._reported(self.rank, "", f"grid: MPI failed: {plain(str(error))}."))
            raise cast(LagpuError, self._over) from error

    def _lose_mpi(self, error: LagpuError) -> None:
        """Note that MPI has failed, here and for all processes."""
        self._over, self._speaker, self._unreachable = error, self.rank, True
        if self._among is not None:
            self._among._lose_mpi(error)

    def _reported(self, rank: int, kind: str, text: str) -> LagpuError:
        """Return the error that another process has reported, with that process' number."""
        cls = getattr(errors, kind, None)
        if not isinstance(cls, type) or not issubclass(cls, LagpuError) or isfunction(cls.__init__):
            cls = ProcessFailed  # there is no such class, or it takes more than a message
        process, size = rank + self._first, (self._among or self).size
        error = cls(f"process {process} of {size}: {text}" if kind else text)
        error.process = process
        return error

    # ----------------------------------------------------------------------------------- the end
    def end(self, error: BaseException) -> bool:
        """Report to the others that an error ends this process; return whether this one prints it.

        One of those whose error is their own does. If the others do not synchronize within
        `patience`, this one prints, and `close` ends them.
        """
        if self._over is None:
            state = _ENDED_TOO if _is_reported(error) else _ENDED
            self.begin("an error")
            # Another thread waits: this one must be able to give up.
            given = _text(error), state
            waiter = threading.Thread(target=self._synchronize_last, args=given, daemon=True)
            waiter.start()
            waiter.join(self._patience)
            self._unreachable |= waiter.is_alive()
        return self._unreachable or self._speaker == self.rank

    def close(self) -> None:
        """Wait until every process has come to its end; end those that cannot be reached."""
        if self._unreachable:
            self._comm.Abort(1)
        elif self._over is None:
            self.begin(_END)
            self._synchronize_last()

    def _synchronize_last(self, *args: Any) -> None:
        with suppress(LagpuError):  # the others print it
            self._synchronize(*args)


def _headers(rows: Bytes) -> Any:
    return rows.view(_HEADER)[:, 0]


def _text(error: BaseException) -> Bytes:
    kind = "OutOfMemory" if isinstance(error, MemoryError) else type(error).__name__
    text = plain(" ".join(str(error).split()))
    if not isinstance(error, LagpuError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return np.frombuffer(f"{kind}\n{text}".encode(errors="replace")[:_LONGEST_TEXT], np.uint8)


def _is_reported(error: BaseException) -> bool:
    """Whether every process knows an error: it was raised by a synchronization."""
    return isinstance(error, LagpuError) and error.process is not None
