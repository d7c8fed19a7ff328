"""Memory that runs out inside a library: an error of lagpu with its cause, and life goes on."""

import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
from command import ONE_THREAD
from samples import picked

from lagpu import INT32, Matrix, Vector, algorithms, backends, semiring
from lagpu.errors import OutOfMemory
from lagpu.generators import path
from lagpu.host import memory


class Shortage(MemoryError):
    """As CuPy's OutOfMemoryError, which derives from MemoryError."""


@pytest.fixture
def short(monkeypatch):
    """A simulated device whose arrays can no longer be made."""

    class Scarce:
        def __init__(self):
            self.scarce = False

        def __getattr__(self, name):
            if self.scarce and name in ("empty", "zeros", "full", "arange", "ones"):
                raise Shortage("Out of memory allocating 512 bytes (allocated so far: 8 GB).")
            return getattr(np, name)

    place = backends.get("sim")
    monkeypatch.setattr(place.device, "xp", Scarce())
    yield place
    place.device.xp.scarce = False


def test_a_device_whose_allocation_fails_says_so_and_stays_usable(short):
    A = path(50, backend=short)
    q, w = Vector.from_coo([0, 3], True, size=50, like=A), Vector(INT32, 50, like=A)
    before = w.to_coo()[0].tolist()
    short.device.xp.scarce = True
    for attempt in (
        lambda: Matrix.from_coo([0], [1], nrows=5000, ncols=5000, backend=short),
        lambda: w << semiring.plus_pair(q @ A),
        lambda: algorithms.bfs_levels(A, 0),
    ):
        with pytest.raises(OutOfMemory, match=r": Out of memory allocating 512 bytes \(") as caught:
            attempt()
        assert isinstance(caught.value.__cause__, Shortage)
    short.device.xp.scarce = False
    assert w.to_coo()[0].tolist() == before
    w << semiring.plus_pair(q @ A)
    assert w.nvals == 3
    assert algorithms.bfs_levels(A, 0).nvals == 50


UNDER_A_LIMIT = """
import resource, lagpu
from lagpu import Matrix, semiring
from lagpu.errors import OutOfMemory
import numpy as np
n = 3000
i = np.repeat(np.arange(n), 20)
A = Matrix.from_coo(i, (i * 7 + np.tile(np.arange(20), n)) % n, nrows=n, ncols=n, backend="cpu",
                    dup_op="lor")
B = Matrix.from_coo(np.arange(n), np.zeros(n, int), nrows=n, ncols=n, backend="cpu")
semiring.plus_pair(A @ A).new()
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (40 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
full = lambda: semiring.plus_pair(B @ B.T).new()
for attempt in (full, lambda: lagpu.generators.path(2 * 10**6, backend="cpu")):
    try:
        attempt()
        print("it fits")
    except OutOfMemory as error:
        print("ours", error)
print(semiring.plus_pair(A @ B).new().nvals > 0)
"""


def test_the_cpu_backend_under_a_limit_of_the_process():
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT],
        capture_output=True, text=True, check=False, env=ONE_THREAD,
    )  # fmt: skip
    reported = done.stdout.splitlines()
    assert [line.split()[0] for line in reported] == ["ours", "ours", "True"], done


def test_the_cpu_backend_asks_before_it_makes_or_reads_a_matrix(monkeypatch):
    A = path(100_000, backend="cpu")
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    rows = np.arange(100_000)
    for attempt in (
        A.to_csc,
        lambda: Matrix.from_coo(rows, rows, backend="cpu"),
        lambda: Matrix.from_csc(np.arange(100_001), rows, nrows=100_000, backend="cpu"),
    ):
        with pytest.raises(OutOfMemory, match=r"(to_csc|from_coo|Matrix): needs .* free"):
            attempt()


@pytest.mark.parametrize("limit", picked([300_000, 450_000, 650_000], 300_000))
def test_a_command_under_a_limit_of_the_process_ends_with_one_line(limit):
    """The graph is refused, or GraphBLAS cannot be loaded, or it runs out of memory."""
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v {limit}; exec {sys.executable} -m lagpu info kron:18"],
        capture_output=True, text=True, check=False, env=ONE_THREAD,
    )  # fmt: skip
    if limit == 650_000 and done.returncode == 0:  # with smaller libraries it fits
        assert done.stderr == ""
        return
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert re.match(r"lagpu: .*(needs .* free|be loaded|out of memory)", done.stderr), done.stderr


def test_a_library_whose_import_runs_out_of_memory(monkeypatch):
    def imported(module):
        raise SystemError("error return without exception set")

    monkeypatch.setattr(importlib, "import_module", imported)
    with pytest.raises(OutOfMemory, match=r"sim cannot be loaded: out of memory"):
        backends.get("sim:7")


def test_an_error_of_ours_is_not_named_twice():
    with pytest.raises(OutOfMemory, match=r"^path: needs"):
        path(10**14, backend="cpu")
