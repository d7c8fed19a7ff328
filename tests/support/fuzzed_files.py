"""Read many mutated files in a process of its own, with limits on memory and time.

``python fuzzed_files.py FIRST COUNT FOLDER KIND`` prints one line for each file that is not
answered by the right matrix (of a binary file: by any) or by an error of lagpu in one line, and
keeps the file's number in ``now`` while it is read.
"""

from __future__ import annotations

import faulthandler
import math
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 5  # of the processor; a machine may be busy
BYTES = 10**9
ANY = ".any"  # the suffix of a file that the plain reader does not know


def status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def same(found, expected) -> bool:
    """Whether two values are equal, as sums in another order and in 64 bits are."""
    if isinstance(expected, float) or isinstance(found, float):
        return found == expected or math.isclose(found, expected, rel_tol=1e-6) or (
            math.isnan(found) and (math.isnan(expected) or math.isinf(expected)))  # fmt: skip
    return (int(found) - int(expected)) % 2**64 == 0


def wrong(data: bytes, path: Path) -> str:
    """Return what is wrong with the answer to a file, or an empty string."""
    import plain_files

    from lagpu.errors import LagpuError
    from lagpu.io import read

    path.write_bytes(data)
    try:
        A = read(path, backend="cpu")
    except LagpuError as error:
        return "" if len(str(error).splitlines()) == 1 else f"several lines: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if path.suffix == ANY or A.nvals > 1000 or A.nrows > 10**7:
        return ""
    try:
        nrows, ncols, expected = plain_files.read(data, path.suffix)
    except Exception as error:
        return f"it is read, but {type(error).__name__}: {error}"
    rows, cols, values = (array.tolist() for array in A.to_coo())
    found = dict(zip(zip(rows, cols, strict=True), values, strict=True))
    if (A.nrows, A.ncols) != (nrows, ncols) or found.keys() != expected.keys():
        return f"{A.nrows} x {A.ncols} {found} != {nrows} x {ncols} {expected}"
    bad = [place for place in found if not same(found[place], expected[place])]
    return f"{bad[0]}: {found[bad[0]]} != {expected[bad[0]]}" if bad else ""


def main(first: int, count: int, folder: Path, kind: str) -> None:
    import file_mutations

    graph_file = getattr(file_mutations, f"{kind}_file")
    suffix = file_mutations.suffix if kind == "graph" else lambda _: ANY

    from lagpu.io import read

    for k in range(8):  # the first files load libraries and start threads
        wrong(graph_file(k, folder), folder / f"graph{suffix(k)}")
    (folder / "graph").write_text("0 1\n1 2\n")
    read(folder / "graph", backend="cpu")
    base = status("VmRSS:")
    faulthandler.register(signal.SIGPROF, chain=True)
    faulthandler.enable()
    most = status("VmSize:") + BYTES + (1 << 28)  # room for stacks, of which little is touched
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for k in range(first, first + count):
        data = graph_file(k, folder)
        (folder / "now").write_text(str(k))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        fault = wrong(data, folder / f"graph{suffix(k)}")
        signal.setitimer(signal.ITIMER_PROF, 0)
        if not fault and status("VmHWM:") - base > BYTES:
            fault = f"{(status('VmHWM:') - base) / 1e9:.1f} GB"
            base = math.inf
        if fault:
            print(k, fault[:300], repr(data[:200]), flush=True)


def faults(first: int, count: int, kind: str = "graph") -> list[str]:
    """Read `count` files of a kind from number `first` on: a line for each wrong answer."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while count > 0:
            done = subprocess.run(
                [sys.executable, "-W", "error", __file__, str(first), str(count), name, kind],
                capture_output=True, text=True, check=False, timeout=60 + count,
            )  # fmt: skip
            found += done.stdout.splitlines()
            if done.returncode == 0:
                break
            now = folder / "now"
            last = int(now.read_text()) if now.exists() else first
            found.append(f"{last} ended the process by {done.returncode}: {done.stderr[-800:]}")
            count -= last + 1 - first
            first = last + 1
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
