"""Graph files read once more, word by word in plain Python: slow, strict, and on its own."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import zipfile
import zlib

import numpy as np
import scipy.sparse as sp

WHOLE = re.compile(rb"[+-]?[0-9]+")
REAL = re.compile(
    rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)


DIMACS = re.compile(
    rb"(c([ \t][^\n]*)?\r?\n|[ \t]*\r?\n)*p[ \t]+[a-z]+([ \t]+[0-9]{1,18}){2}[ \t\r]*(\n|$)"
)


KONECT = re.compile(rb"%[ \t]*(sym|asym|bip)([ \t]+([a-z]+))?[ \t\r\v\f]*\n")


class Refused(Exception):
    """The file is no graph."""


def read(data: bytes, suffix: str = ""):
    """Return (n rows, n columns, {(i, j): value}); a pattern has the value True."""
    if data.startswith(b"PK"):
        return archive(data)
    for mark, unpack in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)):
        if data.startswith(mark):
            try:
                data = unpack.decompress(data)
                break
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise Refused from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    data += b"" if data.endswith(b"\n") else b"\n"
    if data.startswith(b"%%MatrixMarket"):
        return matrix_market(data)
    if DIMACS.match(data):
        return dimacs(data)
    if KONECT.match(data):
        return konect(data)
    if suffix == ".graph":
        return metis(data)
    first = next((line for line in data.split(b"\n")
                  if line.strip() and line.strip()[:1] not in b"#%"), b"")  # fmt: skip
    if b"," in first or b";" in first or (b"\t" in first and b"source" in first.lower()):
        return table(data)
    return edge_list(data)


def dimacs(data: bytes):
    """Arcs, or edges in both directions."""
    top, width, count, entries = None, 0, 0, {}
    for line in data.split(b"\n"):
        words = line.split()
        if not words or line == b"c" or line[:2] in (b"c ", b"c\t", b"c\r"):
            continue
        if top is None:
            top = words[1], *(number(word, True) for word in words[2:])
            width = 4 if top[0] == b"sp" else 3
            continue
        if words[0] != (b"a" if width == 4 else b"e") or len(words) != width:
            raise Refused(line)
        i, j = (number(word, True) - 1 for word in words[1:3])
        if not (0 <= i < top[1] and 0 <= j < top[1]):
            raise Refused(line)
        value = True
        if width == 4:
            value = value_of(words[3], WHOLE.fullmatch(words[3]) is not None)
        add(entries, (i, j), value)
        count += 1
    if count != top[2] and (width == 4 or count != 2 * top[2]):
        raise Refused(count)
    if width == 3:
        entries |= dict.fromkeys([(j, i) for i, j in entries], True)
    return top[1], top[1], entries


def konect(data: bytes):
    """Vertices 1 .. n, with weights unless there are none, and times that do not count."""
    shape, _, kind = KONECT.match(data).groups()
    if shape == b"bip" or kind == b"dynamic":
        raise Refused(shape)
    lines = [line.strip() for line in data.split(b"\n")]
    sizes = re.fullmatch(rb"%[ \t]*[0-9]{1,18}[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})", lines[1])
    n = max(map(int, sizes.groups())) if sizes else 0
    rows = [line.split() for line in lines if line and not line.startswith((b"#", b"%"))]
    width = {len(row) for row in rows}
    if len(width) > 1 or not width <= {2, 3, 4}:
        raise Refused(width)
    if width and max(width) > 2:
        rows = [[*row[:2], *map(fortran, row[2:])] for row in rows]
    whole = all(WHOLE.fullmatch(row[2]) for row in rows if len(row) > 2)
    weighted = width and max(width) > 2 and kind != b"unweighted"
    entries: dict = {}
    for row in rows:
        i, j = (number(word, False) - 1 for word in row[:2])
        if i % 1 or j % 1 or min(i, j) < 0 or (sizes and max(i, j) >= n):
            raise Refused(row)
        add(entries, (int(i), int(j)), number(row[2], whole) if weighted else True)
    n = max([n, *(1 + max(place) for place in entries)])
    return n, n, both_ways(entries) if shape == b"sym" else entries


def metis(data: bytes):
    lines = [line for line in data.split(b"\n") if not line.strip().startswith(b"%")]
    while not lines[0].strip():
        lines.pop(0)
    head = lines.pop(0).split()
    flags = head[2].zfill(3) if len(head) > 2 else b"000"
    n, m = (number(word, True) for word in head[:2])
    skip = flags[0] - 48 + (int(head[3]) if len(head) > 3 else 1) * (flags[1] - 48)
    if len(lines) < n or any(line.strip() for line in lines[n:]):
        raise Refused("lines")
    entries: dict = {}
    count = 0
    for i, line in enumerate(lines[:n]):
        words = [number(word, True) for word in line.split()]
        if len(words) < skip:
            raise Refused(line)
        words = words[skip:]
        pairs = zip(words[::2], words[1::2], strict=True) if flags[2] == 49 else (
            (word, True) for word in words)  # fmt: skip
        for j, value in pairs:
            if not 1 <= j <= n:
                raise Refused(line)
            add(entries, (i, j - 1), value)
            count += 1
    if count != 2 * m or any(entries.get((j, i)) != value for (i, j), value in entries.items()):
        raise Refused("not both directions")
    return n, n, entries


def table(data: bytes):
    """A table of numbers with two or three columns, or with usual names."""
    lines = data.split(b"\n")
    while not lines[0].strip() or lines[0].strip()[:1] in (b"#", b"%"):
        lines.pop(0)
    n, undirected = comments(data)
    rows = csv_rows(b"\n".join(lines))
    top = [field.strip().lower() for field in rows[0]]
    kinds = {REAL.fullmatch(fortran(field.encode())) is not None for field in top}
    if len(kinds) > 1:
        raise Refused(top)
    numbered = kinds == {True}
    if not numbered:
        rows.pop(0)
    places = [0, 1, 2][: len(top)] if numbered else columns(top)
    if numbered and len(top) not in (2, 3):
        raise Refused(top)
    entries: dict = {}
    whole = len(places) < 3 or all(
        len(row) > places[2] and WHOLE.fullmatch(row[places[2]].strip().encode())
        for row in rows)  # fmt: skip
    for row in rows:
        if len(row) != len(top):
            raise Refused(row)
        words = [row[place].strip().encode() for place in places]
        ends = [number(word, False) for word in words[:2]]
        if any(end < 0 or end % 1 for end in ends):
            raise Refused(row)
        i, j = (int(word) if WHOLE.fullmatch(word) else int(float(word)) for word in words[:2])
        add(entries, (i, j), value_of(words[2], whole) if len(words) == 3 else True)
        n = max(n, i + 1, j + 1)
    return n, n, both_ways(entries) if undirected else entries


def columns(top: list[str]) -> list[int]:
    """Return the places of the ends and of a column that is called as weights are."""
    names = ({"source", "i", "u"}, {"target", "j", "v"}, {"weight", "w", "value", "data"})
    found = [[k for k, word in enumerate(top) if word in usual] for usual in names]
    weight = found[2] if len(top) > 2 else []
    ends = found[0] + found[1]
    if len(ends) < 2:
        ends = [k for k, word in enumerate(top) if k not in weight and word]
    if len(ends) != 2 or (found[0] or ends[:1]) != ends[:1] or (found[1] or ends[1:]) != ends[1:]:
        raise Refused(top)
    return [*ends, *weight]


def csv_rows(data: bytes) -> list[list[str]]:
    first = data.split(b"\n")[0].strip()
    if re.search(rb"\r(?!\n)", data):
        raise Refused("a carriage return alone")
    counts = {mark: first.count(mark.encode()) for mark in "\t,;"}
    separator = max(counts, key=lambda mark: counts[mark])
    lines = io.StringIO(data.decode(), newline="")
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return [row for row in rows if row and (len(row) > 1 or row[0].strip())]


def number(word: bytes, whole: bool):
    if not (WHOLE if whole else REAL).fullmatch(word):
        raise Refused(word)
    return int(word) if whole else float(word)


def fortran(word: bytes) -> bytes:
    return re.sub(rb"(?<=[0-9.])[dD](?=[+-]?[0-9]+$)", b"e", word)


def value_of(word: bytes, whole: bool):
    return number(word if whole else fortran(word), whole)


def comments(data: bytes) -> tuple[int, bool]:
    """Return what the comments above the first edge say: the vertices, and whether undirected."""
    leading = []
    for line in data.split(b"\n"):
        if line.strip() and line.strip()[:1] not in b"#%":
            break
        leading += [line] * line.startswith((b"#", b"%"))
    nodes = [re.search(rb"\bnodes:[ \t]*([0-9]+)\b", line, re.IGNORECASE) for line in leading]
    undirected = any(re.match(rb"[#%]\s*undirected graph", line, re.IGNORECASE) for line in leading)
    return next((int(found[1]) for found in nodes if found), 0), undirected


def both_ways(entries: dict) -> dict:
    return {(j, i): value for (i, j), value in entries.items()} | entries


def add(entries: dict, place: tuple[int, int], value) -> None:
    if value is True or place not in entries:
        entries[place] = value
    else:
        entries[place] += value


def matrix_market(data: bytes):
    top, *lines = data.split(b"\n")
    _, what, layout, field, symmetry = top.lower().split()
    assert (what, layout) == (b"matrix", b"coordinate")
    while not lines[0].strip() or lines[0].startswith(b"%"):
        lines.pop(0)
    nrows, ncols, nvals = (number(word, True) for word in lines.pop(0).split())
    entries: dict = {}
    rows = [line.split() for line in lines if line.strip()]
    if len(rows) != nvals:
        raise Refused(f"{len(rows)} rows")
    whole = field in (b"integer", b"unsigned-integer")
    for row in rows:
        if len(row) != (2 if field == b"pattern" else 3):
            raise Refused(row)
        i, j = (number(word, True) - 1 for word in row[:2])
        if not (0 <= i < nrows and 0 <= j < ncols):
            raise Refused(row)
        value = True if field == b"pattern" else value_of(row[2], whole)
        add(entries, (i, j), value)
        if i != j and symmetry != b"general":
            add(entries, (j, i), -value if symmetry == b"skew-symmetric" else value)
    return nrows, ncols, entries


def edge_list(data: bytes):
    lines = [line.strip() for line in data.split(b"\n")]
    any_comment = any(line.startswith((b"#", b"%")) for line in lines)
    rows = [line.split() for line in lines if line and not line.startswith((b"#", b"%"))]
    n, undirected = comments(data)
    width = {len(row) for row in rows[1:]} or {len(row) for row in rows[:1]}
    if len(width) > 1 or not (width <= {2, 3}) or not (rows or any_comment):
        raise Refused(width)
    rows = [[*row[:2], *map(fortran, row[2:])] for row in rows]
    numbers = [[float(number(word, False)) for word in row] for row in rows]
    whole = all(WHOLE.fullmatch(word) for row in rows for word in row)
    below = [max(row[:2]) < numbers[0][0] for row in numbers[1:]]
    if len(rows) > 1 and len(rows[0]) == 2 and numbers[0][1] == len(rows) - 1 and all(below):
        n = max(n, int(rows.pop(0)[0]))
    entries: dict = {}
    for row in rows:
        i, j = (int(float(word)) if b"." in word or b"e" in word.lower() else int(word)
                for word in row[:2])  # fmt: skip
        value = number(row[2], whole) if len(row) == 3 else True
        add(entries, (i, j), value)
        n = max(n, i + 1, j + 1)
    return n, n, both_ways(entries) if undirected else entries


def archive(data: bytes):
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        ours = "lagpu_format.npy" in members.namelist()
    if not ours:
        S = sp.coo_array(scipy_archive(data))
        S.sum_duplicates()
        places = zip(S.row.tolist(), S.col.tolist(), strict=True)
        return *S.shape, dict(zip(places, S.data.tolist(), strict=True))
    with np.load(io.BytesIO(data)) as kept:
        (nrows, ncols), ptr, rows = kept["shape"].tolist(), kept["col_ptr"], kept["row_idx"]
        values = kept["values"] if "values" in kept else np.full(len(rows), kept["iso"])
        if str(kept["dtype"]) == "BOOL":
            values = values.astype(bool)
    places = [(int(i), j) for j in range(ncols) for i in rows[int(ptr[j]) : int(ptr[j + 1])]]
    return nrows, ncols, dict(zip(places, values.tolist(), strict=True))


def scipy_archive(data: bytes):
    """What `scipy.sparse.load_npz` returns, whatever the archive says of arrays and matrices."""
    with np.load(io.BytesIO(data)) as loaded:
        kept = {name: x.astype(x.dtype.newbyteorder("=")) for name, x in loaded.items()}
        form, shape = kept["format"].item(), tuple(kept["shape"].tolist())
        form = form if isinstance(form, str) else form.decode()
        if form == "coo":
            return sp.coo_array((kept["data"], (kept["row"], kept["col"])), shape=shape)
        more = ("offsets",) if form == "dia" else ("indices", "indptr")
        make = getattr(sp, f"{form}_array")
        return make((kept["data"], *(kept[name] for name in more)), shape=shape)
