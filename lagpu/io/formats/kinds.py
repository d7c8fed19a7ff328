"""Kinds of files by their first bytes, and the libraries that some need."""

from __future__ import annotations

import importlib
import re
from typing import Any

from lagpu.errors import BackendUnavailable

_PICTURE = "a picture. Give the graph that it shows"
_PACKED = "Unpack it first; gzip (.gz) and .tar.gz are read as they are"
# First bytes, and what they are the beginning of.
_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF document. Give the data that it shows"),
    (b"\x89PNG", _PICTURE),
    (b"\xff\xd8\xff", _PICTURE),
    (b"GIF8", _PICTURE),
    (b"BZh", f"packed by bzip2. {_PACKED}"),
    (b"\xfd7zXZ\x00", f"packed by xz. {_PACKED}"),
    (b"\x28\xb5\x2f\xfd", f"packed by zstd. {_PACKED}"),
    (b"7z\xbc\xaf\x27\x1c", f"packed by 7-Zip. {_PACKED}"),
    (b"\x93NUMPY", "one NumPy array (.npy). Use lagpu.io.from_edgelist(numpy.load(path))"),
    (b"SQLite format 3\x00", "an SQLite database. Export its table as CSV"),
    (b"ARROW1", "an Arrow (Feather) table. Write it as Parquet, or use from_pandas_edgelist"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file. Use scipy.io.loadmat and lagpu.io.from_scipy"),
    (b"\x80\x04\x95", "a Python pickle, which is not read. Use lagpu.io.from_scipy or the like"),
    (b"\x80\x05\x95", "a Python pickle, which is not read. Use lagpu.io.from_scipy or the like"),
    (b"\xff\xfe", "text in UTF-16. Convert the file to UTF-8"),
    (b"\xfe\xff", "text in UTF-16. Convert the file to UTF-8"),
)
_NX = "Read it by NetworkX and use lagpu.io.from_networkx"
_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(rb"\s*+(?:" + pattern + rb")", re.IGNORECASE | re.DOTALL), what)
    for pattern, what in (
        (rb"(?:<\?xml[^>]*>|<!--.*?-->|\s)*+<gexf\b", f"GEXF. {_NX}"),
        (rb"<!doctype html|<html\b", "a web page. Download the file that it offers"),
        (rb"<", "XML, but no GraphML"),
        (rb"(?:strict\s+)?(?:di)?graph\b[^\[\n]*\{", f"a DOT file of Graphviz. {_NX}"),
        (rb"\*(?:vertices|network)\b", f"a Pajek file. {_NX}"),
        (rb"[\[{]\s*[\"\[{}\]]", "JSON. Use lagpu.io.from_edgelist with what json.load returns"),
    )
)


def kind_of(start: bytes) -> str:
    """Return what the first bytes of a file are, with what to do; an empty string if unknown."""
    return next((what for mark, what in _BYTES if start.startswith(mark)), "")


def kind_of_text(data: bytes) -> str:
    """Return the same for a text."""
    start = data[: 1 << 14]
    return next((what for pattern, what in _TEXTS if pattern.match(start)), "")


# ------------------------------------------------------------------------------------------
# Libraries that some formats need, by the extra of lagpu that installs them.


_MODULES = {
    "nx": "networkx",
    "parquet": "pyarrow.parquet",
    "hdf5": "h5py",
    "igraph": "igraph",
}


def needed(extra: str, what: str) -> Any:
    """Return the module of an extra.

    Parameters
    ----------
    extra : str
        The extra of lagpu that installs it.
    what : str
        The operation, with which the message begins.

    Raises
    ------
    BackendUnavailable
        If the module cannot be imported.
    """
    module = _MODULES[extra]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BackendUnavailable(
            f"{what} needs {package}, which is missing. "
            f'Install it with: pip install "lagpu[{extra}]"'
        ) from error
