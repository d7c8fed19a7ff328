"""Data sets in a folder of the user: by name, or downloaded once, with checksums."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from lagpu.errors import FileFormatError, FileMissing, InvalidValue
from lagpu.host import progress
from lagpu.host.files import os_errors_named, replacing
from lagpu.io.opening import stem

__all__ = ["fetch"]

_VARIABLE = "LAGPU_DATA"
_SUMS = "SHA256SUMS"  # in the folder, as the program sha256sum writes and checks it
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_PIECE = 1 << 20
_SECONDS = 60  # without an answer


def fetch(
    name_or_url: str, *, folder: str | os.PathLike[str] | None = None, sha256: str | None = None
) -> Path:
    """Return the path of a data set in a folder; a URL is downloaded if it is not there yet.

    Nothing is downloaded for a name. The checksum of a file is the one in the folder's file
    ``SHA256SUMS``, which a download adds to, and `sha256` if given.

    Parameters
    ----------
    name_or_url : str
        A name in the folder, whose suffixes may be left out; or a URL (``https``, ``http``, ``ftp``
        or ``file``); the last part of it is the name.
    folder : str or path, optional
        By default the environment variable ``LAGPU_DATA``. A download makes it.
    sha256 : str, optional
        The checksum of the file, 64 hexadecimal digits.

    Raises
    ------
    FileMissing
        If the folder has no such file, or the server has none.
    InvalidValue
        If there is no folder, no such address or no answer, or a name is that of several files.
    FileFormatError
        If the file has another checksum; a download is then not kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from lagpu import io
    >>> source = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> size = source.write_text("0 1")
    >>> path = io.fetch(source.as_uri(), folder=source.parent / "graphs")
    >>> io.read(io.fetch("two", folder=path.parent)).nvals
    1
    """
    given = folder if folder is not None else os.environ.get(_VARIABLE)
    if not given:
        raise InvalidValue(f"fetch: there is no folder. Give folder=..., or set {_VARIABLE}.")
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise InvalidValue(f"fetch: sha256 {sha256[:80]!r} is not 64 hexadecimal digits.")
    where = Path(given).expanduser()
    if "://" not in name_or_url:
        path = _named(where, name_or_url)
        _require_sum(path, _sum_of(path), sha256)
        return path
    parts = urllib.parse.urlsplit(name_or_url)
    path = where / _file_name(urllib.parse.unquote(parts.path), name_or_url)
    if path.exists():
        _require_sum(path, _sum_of(path), sha256)
        return path
    if parts.scheme not in ("https", "http", "ftp", "file"):
        raise InvalidValue(f"fetch: {parts.scheme}:// is not supported. Use https, http or ftp.")
    with os_errors_named("fetch", where):
        where.mkdir(parents=True, exist_ok=True)
    found = _download(name_or_url, path, sha256)
    sums = {**_sums(where), path.name: found}
    with os_errors_named("fetch", where / _SUMS), replacing(where / _SUMS) as file:
        file.write("".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode())
    return path


def _file_name(path: str, what: str) -> str:
    """Return the last part of a path, which must be the name of a file."""
    name = path.rpartition("/")[2]
    if not name.strip(".") or name == _SUMS or not name.isprintable() or "\\" in name:
        raise InvalidValue(f"fetch: {what} has no name of a file at its end.")
    return name


def _named(folder: Path, name: str) -> Path:
    """Return the file of a name, without or with its suffixes."""
    if not folder.is_dir():
        raise FileMissing(f"fetch: there is no folder {folder}. Create it, or give a URL.")
    if _file_name(name, repr(name)) != name:
        raise InvalidValue(f"fetch: {name!r} is a path, not a name. Give it to lagpu.io.read.")
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _SUMS)
    found = [x for x in files if x.name == name] or [x for x in files if stem(x) == name]
    if len(found) > 1:
        shown = ", ".join(x.name for x in found[:8])
        raise InvalidValue(f"fetch: {name} is {shown} in {folder}. Give the whole name of one.")
    if not found:
        raise FileMissing(f"fetch: there is no {name} in {folder}. Give a URL to download it.")
    return found[0]


def _sums(folder: Path) -> dict[str, str]:
    """Return the known checksums, by names of files."""
    with os_errors_named("fetch", folder / _SUMS):
        text = (folder / _SUMS).read_text() if (folder / _SUMS).exists() else ""
    lines = (_LINE.fullmatch(line) for line in text.splitlines())
    return {line[2]: line[1].lower() for line in lines if line}


def _require_sum(path: Path, found: str, sha256: str | None, remedy: str = "Remove it") -> None:
    """Raise unless a checksum equals the known one and the given one, if there are any."""
    for known in (sha256, _sums(path.parent).get(path.name)):
        if known is not None and known.lower() != found:
            raise FileFormatError(
                f"fetch: {path.name} has the SHA-256 {found}, not {known.lower()}. {remedy} if it "
                "is damaged, or correct the checksum."
            )


def _sum_of(path: Path) -> str:
    with os_errors_named("fetch", path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(url: str, path: Path, sha256: str | None) -> str:
    """Save a URL as a file, if its checksum is right, and return that."""
    digest = hashlib.sha256()
    try:
        with (
            urllib.request.urlopen(url, timeout=_SECONDS) as answer,
            os_errors_named("fetch", path),
            replacing(path) as file,
        ):
            size = int(answer.headers.get("Content-Length") or 0)
            copied = 0
            with progress.bar(f"downloading {path.name}", size or None) as done:
                while part := answer.read(_PIECE):
                    file.write(part)
                    digest.update(part)
                    copied += len(part)
                    done(copied)
            if size and copied != size:
                raise FileFormatError(f"fetch: {url} ended after {copied:,} of {size:,} bytes.")
            _require_sum(path, digest.hexdigest(), sha256, "Download it again")
    except urllib.error.HTTPError as error:
        kind = FileMissing if error.code in (404, 410) else InvalidValue
        raise kind(f"fetch: {url}: the server answers {error.code} {error.reason}.") from error
    except (urllib.error.URLError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, FileFormatError | InvalidValue):
            raise
        raise InvalidValue(f"fetch: {url}: {getattr(error, 'reason', error)}.") from error
    return digest.hexdigest()
