"""Tables of the files of ``docs/benchmarks`` in the pages.

A line ``<!-- rows FILE columns=graph,median_ms where=output:levels -->`` of a page becomes a table
with a row for each row of the file; ``<!-- pivot FILE index=graph columns=backend value=median_ms
-->``, on one line, a table with a column for each value of a field. A line with machine, date,
commit and versions follows.
"""

import functools
import json
import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "benchmarks"
KERNELS = ("*.cu", "*.cuh", "*.hpp")
_LINE = re.compile(r"^<!-- (rows|pivot) (\S+) (.*) -->$", re.M)
_NAMES = {
    "bytes": "GB",
    "networkx_s": "NetworkX s",
    "networkx_cpu_s": "NetworkX s",
    "cpu_convert_cpu_s": "conversion s",
    "gpu_convert_s": "conversion s",
    "cpu_cpu_s": "lagpu s",
    "gpu_s": "lagpu s",
    "wall_median_ms": "wall",
    "max_ms": "slowest",
}


def with_figures(text, page="benchmarks/README", folder=FOLDER):
    """Return the text of a page with its tables; `page` is its name, for the links to the files."""
    to_root = "../" * page.count("/")
    to_data = "" if page.startswith("benchmarks/") else f"{to_root}benchmarks/"

    def made(found):
        kind, file, words = found.groups()
        options = dict(word.split("=", 1) for word in words.split())
        whole = json.loads((folder / file).read_text("utf-8"))
        rows = [row for row in whole["rows"] if _chosen(row, options.get("where", ""))]
        columns = options["columns"].split(",")
        if kind == "rows":
            lines = [columns, *([_cell(row.get(c), c) for c in columns] for row in rows)]
        else:
            lines = _pivot(rows, options["index"].split(","), options["columns"], options["value"])
        head = [_NAMES.get(name, name.replace("_", " ")) for name in lines[0]]
        short = [name.removesuffix(" ms") for name in head]
        head = [x if short.count(x) == 1 else name for x, name in zip(short, head, strict=True)]
        columns = [*zip(*lines[1:], strict=True)]
        numbers = [any(re.match(r"[\d.,]+$", cell) for cell in column) for column in columns]
        rule = ["---:" if some else "---" for some in numbers]
        lacks = any(some and "-" in column for some, column in zip(numbers, columns, strict=True))
        table = [f"| {' | '.join(line)} |" for line in (head, rule, *lines[1:])]
        said = " Missing numbers were not measured." if lacks else ""
        return "\n".join([*table, "", _measured(whole, file, to_data + file) + said])

    return _LINE.sub(made, text)


def _chosen(row, where):
    pairs = (pair.split(":", 1) for pair in where.split(",") if pair)
    return all(str(row.get(field)) == value for field, value in pairs)


def _pivot(rows, index, column, value):
    names = list(dict.fromkeys(row[column] for row in rows))
    cells = {}
    for row in rows:
        key = tuple(str(row[field]) for field in index if row[field] != "")
        number, why = row.get(value), row.get("note", "").partition(":")[0]
        why = why.replace("LimitExceeded", "over FP64")
        cell = why if number is None and why else _cell(number, value)
        cells.setdefault(key, {})[row[column]] = cell
    lines = [
        [", ".join(key), *(found.get(n, "-") for n in names)]
        for key, found in cells.items()
        if {*found.values()} != {"-"}
    ]
    return [[index[0], *map(str, names)], *lines]


def _cell(value, field):
    if field == "bytes" and value is not None:
        return f"{value / 1e9:.2f}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return "-" if value in (None, "") else f"{value:,}" if isinstance(value, int) else str(value)


def _measured(whole, file, link):
    machine = whole["machine"]
    commit = f", commit {whole['commit'][:7]}" if whole.get("commit") else ""
    found = {k: v for k, v in whole.get("versions", {}).items() if k != "cusparse"}  # CuPy's
    known = [x for x in found.items() if x != ("cupy", None)]
    versions = ", ".join(f"{name} {number}" if number else name for name, number in known)
    device = " and ".join(machine[x] for x in ("device", "cpu") if machine.get(x))
    if machine.get("threads"):
        device += f", {machine['threads']} thread{'s' * (machine['threads'] != '1')}"
    is_old = commit and machine.get("device") and kernels_changed(whole["commit"])
    since = "; kernels have changed since" if is_old else ""
    when = f"{whole['date'][:10]}{commit}{since}"
    return f"[{file}]({link}): {device}, {when}{'; ' if versions else ''}{versions}."


@functools.cache
def kernels_changed(commit):
    """Return whether kernels have changed since a commit; False where the history lacks it."""
    asked = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", *KERNELS]
    try:
        ran = subprocess.run(asked, cwd=FOLDER.parents[1], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return int(ran.stdout) > 0
