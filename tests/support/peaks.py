"""The most memory that one task takes, and the most that lagpu asked for: in a fresh process.

``python peaks.py TASK BACKEND VERTICES EDGES`` prints both, in bytes; the table of
docs/design/memory.md is made of such lines.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

READING = ["edges", "weighted edges", "edges gz", "pattern mtx", "real mtx", "npz", "real npz",
           "csv", "weighted gr", "metis", "renumbered edges", "renumbered names"]  # fmt: skip
MAKING = ["from_coo", "from_coo weighted"]
GENERATING = ["kron", "urand", "delaunay", "road", "path", "directed path", "star", "complete"]
CONVERTING = ["to scipy", "to sim", "to cpu", "transpose", "to networkx", "to networkx weighted",
              "from networkx"]  # fmt: skip


def status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def measured(task: str, backend: str, n: int, m: int) -> tuple[int, int]:
    """Return (peak, asked) of a task in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, task, backend, str(n), str(m)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def saved(task: str, n: int, m: int, folder: str) -> Path:
    """A random graph in a file, which another process writes."""
    ends = {"edges": "txt", "weighted edges": "txt", "edges gz": "txt.gz", "npz": "npz",
            "real npz": "npz", "pattern mtx": "mtx", "real mtx": "mtx", "csv": "csv",
            "weighted gr": "gr", "metis": "graph", "renumbered edges": "txt",
            "renumbered names": "txt"}  # fmt: skip
    path = Path(folder) / f"graph.{ends[task]}"
    if os.fork() == 0:
        import scipy.sparse as sp

        from lagpu import io

        A = random_matrix(n, m, "weighted" in task or "real" in task, "cpu")
        if task in ("csv", "renumbered names"):  # which have no place for vertices alone
            mark = "," if task == "csv" else " v"
            rows, cols, _ = A.to_coo()
            lines = (f"{i}{mark}{j}\n" for i, j in zip(rows.tolist(), cols.tolist(), strict=True))
            path.write_text("".join(lines))
        elif task == "metis":
            rows, cols, _ = A.to_coo()
            ends = rows[rows != cols], cols[rows != cols]
            B = io.from_scipy(sp.coo_array((ends[0] >= 0, ends), shape=(n, n)), backend="cpu")
            both = io.from_scipy(io.to_scipy(B) + io.to_scipy(B).T, backend="cpu")
            io.write(both, path)
        else:
            io.write(A, path)
        os._exit(0)
    os.wait()
    return path


def random_matrix(n: int, m: int, weighted: bool, backend: str):
    import numpy as np
    import scipy.sparse as sp

    from lagpu import io

    rng = np.random.default_rng(1)
    values = rng.random(m) if weighted else np.ones(m, bool)
    places = rng.integers(0, n, (2, m), np.int32)
    return io.from_scipy(sp.coo_array((values, tuple(places)), shape=(n, n)), backend=backend)


def task_of(task: str, backend: str, n: int, m: int, folder: str):
    """Return a function without arguments, with all that it needs already there."""
    import numpy as np

    from lagpu import Matrix, generators, io

    scale, side = max(2, n.bit_length() - 1), math.isqrt(n)
    weighted = "weighted" in task
    if task in READING:
        path = saved(task, n, m, folder)
        return lambda: io.read(path, backend=backend, renumber="renumbered" in task)
    if task in MAKING:
        rng = np.random.default_rng(1)
        u, v = rng.integers(0, n, (2, m))
        values, op = (rng.random(m), "plus") if weighted else (True, "lor")
        return lambda: Matrix.from_coo(u, v, values, nrows=n, ncols=n, dup_op=op, backend=backend)
    if task in GENERATING:
        return {
            "kron": lambda: generators.kronecker(scale, max(1, m // n), backend=backend),
            "urand": lambda: generators.uniform(scale, max(1, m // n), backend=backend),
            "delaunay": lambda: generators.delaunay(scale, backend=backend),
            "road": lambda: generators.road(side, backend=backend),
            "path": lambda: generators.path(n, backend=backend),
            "directed path": lambda: generators.path(n, True, backend=backend),
            "star": lambda: generators.star(n, backend=backend),
            "complete": lambda: generators.complete(math.isqrt(m), backend=backend),
        }[task]
    A = random_matrix(n, m, weighted, backend)
    if task == "from networkx":
        G = io.to_networkx(A)
        return lambda: io.from_networkx(G, backend=backend)
    return {
        "to scipy": lambda: io.to_scipy(A),
        "to sim": lambda: A.to("sim"),
        "to cpu": lambda: A.to("cpu"),
        "transpose": A.T.new,
        "to networkx": lambda: io.to_networkx(A),
        "to networkx weighted": lambda: io.to_networkx(A),
    }[task]


def main(task: str, backend: str, n: int, m: int) -> None:
    from lagpu import generators, io
    from lagpu.backends.gpu.device import sim
    from lagpu.host import memory

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(ImportError):
            importlib.import_module("pyarrow.csv")
        for place in {backend, "cpu", "sim"}:  # loads the libraries
            small = generators.path(10, backend=place)
            io.to_scipy(small)
            io.to_networkx(small)
        if task == "delaunay":
            generators.delaunay(3, backend=backend)
        run = task_of(task, backend, n, m, folder)
        base = status("VmRSS:")
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
        asked = [0]

        def noted(right):
            def require(*args, **how):
                asked.append(status("VmRSS:") - base + int(next(x for x in args if type(x) is int)))
                return right(*args, **how)

            return require

        memory.require = noted(memory.require)
        import lagpu.backends.cpu.backend as cpu

        cpu.require = noted(cpu.require)
        sim.SimDevice.require = noted(sim.SimDevice.require)
        kept = run()
        print(json.dumps([status("VmHWM:") - base, max(asked)]))
        del kept


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
