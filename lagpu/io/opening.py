"""Open what `read` is given: a path, an open file, a packed text, or an archive with the graph.

Nothing is unpacked to a disk, no name in an archive is a path here, and memory is requested for
each piece before it is unpacked, since a small file may unpack to any size.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import lzma
import math
import os
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from lagpu.errors import FileFormatError, InvalidValue, LagpuError
from lagpu.host.files import os_errors_named
from lagpu.io import formats, reading

MANY = 1 << 13  # bytes at the beginning that show what a file is
_ZIP = b"PK\x03\x04"
_USTAR = slice(257, 262)  # in the header of the first member of a tar archive
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
_MOST = 1000  # members of an archive
_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)


class Input(NamedTuple):
    """An open file, and what its name says of its format."""

    stream: Any  # a BufferedReader
    file: Path
    budget: reading.Budget


class _Handle(io.RawIOBase):
    """The bytes of any object with a method `read`; a text is encoded."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name, self._rest = file, name, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < MANY and (part := self._part(len(buffer))):
            self._rest += part
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def _part(self, size: int) -> bytes:
        try:
            part = self._file.read(size)
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"read: {self._name} is no text in {error.encoding}. Open it in binary mode."
            ) from error
        except ValueError as error:  # it is closed
            raise InvalidValue(f"read: {self._name}: {str(error).rstrip('.')}.") from error
        if not isinstance(part, str | bytes):
            raise InvalidValue(f"read: {self._name} returns {type(part).__name__}, not bytes.")
        return part.encode("utf-8", "replace") if isinstance(part, str) else part


def path_of(source: Any) -> Path:
    """Return a path, or the name of an open file; raise for what is neither."""
    if hasattr(source, "read"):
        name = getattr(source, "name", None)
        return Path(name if isinstance(name, str) and name[:1] != "<" else type(source).__name__)
    if not isinstance(source, str | os.PathLike):
        raise InvalidValue(
            f"read: {type(source).__name__} is no path. Give the path of a file, or an open file."
        )
    text = os.fspath(source)
    if "://" in text:
        raise InvalidValue(
            f"read: {text} is an address. Download it with lagpu.io.fetch(address, folder=...), "
            "which returns a path."
        )
    return Path(text)


@contextlib.contextmanager
def opened(source: Any) -> Iterator[Input]:
    """Open a path, the standard input for ``-``, or an open file, from where it is on."""
    # The block has lagpu's errors, also those of unpacking.
    file = path_of(source)
    with os_errors_named("read", file), damage_named(file.name), contextlib.ExitStack() as stack:
        stream: Any
        is_path = False
        if hasattr(source, "read"):
            stream = io.BufferedReader(_Handle(source, file.name))
        elif str(file) == "-":
            stream = getattr(sys.stdin, "buffer", io.BufferedReader(io.BytesIO()))  # or closed
        else:
            stream, is_path = stack.enter_context(file.open("rb")), True
        size = _size(source if hasattr(source, "read") else stream)

        def beside(suffix: str) -> bytes | None:
            for name in _names_beside(file.name, suffix) if is_path else ():
                if file.with_name(name).is_file():
                    with opened(file.with_name(name)) as other:
                        return content(unpacked(other.stream), other.budget)
            return None

        yield Input(stream, file, reading.Budget.of(file.name, size, beside))


def _names_beside(name: str, suffix: str) -> list[str]:
    """Return the names that a file with another suffix may have, which may be packed too."""
    path = PurePosixPath(name)
    path = path.with_suffix("") if path.suffix in formats.PACKINGS else path
    return [f"{path.with_suffix(suffix)}{more}" for more in ("", *formats.PACKINGS)]


def _size(stream: Any) -> float:
    """Return the bytes of an open file; a pipe has no size, and so no limit."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        facts = os.fstat(stream.fileno())
        return facts.st_size if stat.S_ISREG(facts.st_mode) else math.inf
    with contextlib.suppress(OSError, AttributeError, ValueError):
        at, size = stream.tell(), stream.seek(0, io.SEEK_END)
        stream.seek(at)
        return float(size)
    return math.inf


def packing_of(start: bytes) -> formats.Packing | None:
    """Return how a file is packed, by its first bytes."""
    return next((way for way in formats.PACKINGS.values() if start.startswith(way.magic)), None)


def unpacked(stream: Any) -> Any:
    """Return the buffered stream of what an open file holds, which may be packed."""
    packing = packing_of(stream.peek(8))
    return stream if packing is None else io.BufferedReader(packing.reader(stream))


@contextlib.contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Turn an error of unpacking into one of lagpu."""
    try:
        yield
    except LagpuError:  # some are OSErrors
        raise
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        fact = str(error).rstrip(".")
        raise FileFormatError(f"read: {name} is truncated or damaged: {fact}.") from error


def content(source: IO[bytes], budget: reading.Budget, held: int = 0) -> bytes:
    """Read to the end without a byte order mark, and end the last line of a text."""
    # `held` bytes are taken already. A file that is not packed is read at once.
    size = reading.PIECE if budget.size == math.inf else max(reading.PIECE, int(budget.size) + 1)
    budget.require(size, "its text", held=held)
    part = source.read(size)
    # `getvalue` returns what is held, without a copy.
    found = io.BytesIO(part.removeprefix(reading.BYTE_ORDER_MARK))
    have = found.seek(0, io.SEEK_END)
    while len(part) == size:
        # Growing, the content may be moved: old and new exist at the same time.
        size = reading.PIECE
        budget.require(size + have // 8, "its text", held=have + held)
        part = source.read(size)
        have += found.write(part)
    data = found.getvalue()
    if data and not data.endswith(b"\n") and not reading.is_binary(data[: 1 << 16]):
        del data  # `found` would make a copy of it
        found.write(b"\n")
        data = found.getvalue()
    return data


# ---- Archives. The SuiteSparse Collection has ``name/name.mtx`` beside matrices of right-hand
# sides, KONECT ``name/out.name`` beside descriptions, LDBC ``name.e`` beside ``name.v``.


class _Member(NamedTuple):
    name: str
    open: Callable[[], Any]


def graph_in(given: Input) -> Input:
    """Return the graph in an archive, unpacked as far as need be; any other file as it is."""
    stream, budget = given.stream, given.budget
    start = stream.peek(MANY)[:MANY]
    if start.startswith(_ZIP):
        whole = stream if stream.seekable() else io.BytesIO(content(stream, budget))
        with reading.errors_named(f"read: {budget.name} is not a matrix archive"):
            archive = zipfile.ZipFile(whole)
            names = archive.namelist()
        if not names or any(name.endswith(".npy") for name in names):
            whole.seek(0)
            return given if whole is stream else given._replace(stream=io.BufferedReader(whole))
        return _chosen(_zipped(archive), given, "a .zip archive")
    stream = unpacked(stream)
    start = stream.peek(MANY)
    if len(start) < _USTAR.stop:  # of a packed file a peek may be short
        stream = io.BufferedReader(io.BytesIO(content(stream, budget)))
        start = stream.peek(MANY)
    if start[_USTAR] != b"ustar":
        return given._replace(stream=stream)
    data = content(stream, budget)
    return _chosen(_tarred(data, budget), given, "a tar archive", held=len(data))


def _zipped(archive: zipfile.ZipFile) -> list[_Member]:
    """Return the files in a .zip archive that can be unpacked piece by piece."""

    def opened(info: zipfile.ZipInfo) -> IO[bytes]:
        if info.compress_type not in _PLAIN or info.flag_bits & _ENCRYPTED:
            # A few bytes would unpack to gigabytes at once.
            raise ValueError("it is encrypted, or not packed by deflate. Unpack it first")
        return archive.open(info)

    files = (x for x in archive.infolist() if not x.is_dir())
    return [_Member(x.filename, functools.partial(opened, x)) for x in files]


def _tarred(data: bytes, budget: reading.Budget) -> list[_Member]:
    """Return the regular files in a tar archive."""
    files: list[_Member] = []
    with reading.errors_named(f"read: {budget.name} is a damaged tar archive"):
        archive = tarfile.open(fileobj=io.BytesIO(data), mode="r:")  # noqa: SIM115 (it is in memory)
        for member in archive:
            if member.size < 0 or len(files) == _MOST:  # Python might never end
                raise ValueError(f"it has a size below 0, or more than {_MOST} files")
            if member.isreg():
                files.append(_Member(member.name, functools.partial(archive.extractfile, member)))
    return files


def _chosen(members: list[_Member], given: Input, kind: str, held: int = 0) -> Input:
    """Return the member that is the graph: see :doc:`/files`."""
    name, file = given.budget.name, given.file
    # Not the notes that an operating system adds to an archive.
    paths = ((x, PurePosixPath(x.name)) for x in members)
    own = [x for x, at in paths if not at.name.startswith(".") and "__MACOSX" not in at.parts]
    found = _graph_of([x.name for x in own], file)
    if len(found) != 1:
        what = "which of them is the graph is not clear" if own else "there is no file in it"
        shown = ", ".join(repr(x.name[:60]) for x in own[:8]) + ", ..." * (len(own) > 8)
        raise FileFormatError(
            f"read: {name} is {kind} ({shown}), and {what}. Give an open file of the one, such as "
            "zipfile.ZipFile(path).open(name), or unpack it."
        )
    (chosen,) = found
    path = PurePosixPath(chosen)
    named = f"{name} ({ascii(path.name[:60])[1:-1]})"

    def beside(suffix: str) -> bytes | None:
        names = _names_beside(chosen, suffix)
        return next((unpack(x, x.name) for x in own if x.name in names), None)

    budget = given.budget._replace(name=named, beside=beside)

    def unpack(member: _Member, what: str) -> bytes:
        with reading.errors_named(f"read: {name}: {ascii(what[:60])[1:-1]}"), member.open() as text:
            return content(unpacked(io.BufferedReader(text)), budget, held)

    data = unpack(next(x for x in own if x.name == chosen), chosen)
    return Input(io.BufferedReader(io.BytesIO(data)), Path(path.name), budget)


def _graph_of(names: list[str], archive: Path) -> list[str]:
    """Return the members of the first group that has any; the graph, if it is one alone."""
    paths = {name: Path(PurePosixPath(name).name) for name in names}
    known = [x for x in names if formats.by_suffix(paths[x]) and not _is_note(paths[x])]
    own = stem(archive)
    groups = (
        [x for x in known if own in (stem(paths[x]), f"download.tsv.{stem(paths[x])}")],
        [x for x in names if paths[x].name.startswith("out.")],
        known,
        [x for x in names if not _is_note(paths[x])],
    )
    return next((group for group in groups if group), [])


def _is_note(file: Path) -> bool:
    return file.name.lower().startswith(("readme", "license", "copying"))


def stem(file: Path) -> str:
    """Return a name without suffixes of archives, of packing and of a format."""
    while file.suffix.lower() in (".zip", ".tar", ".tgz", ".tbz", ".txz", *formats.PACKINGS):
        file = file.with_suffix("")
    return (file.with_suffix("") if formats.by_suffix(file) else file).name
