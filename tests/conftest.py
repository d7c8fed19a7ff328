"""The `backend` fixture and its option, hypothesis' profiles, and what several files need."""

import functools
import gc
import os
import signal
from pathlib import Path

import hypothesis
import pytest
from samples import MARKS, thin
from sharing import place_on_gpu
from world import World

from lagpu import backends, generators
from lagpu.backends.cpu import csgraph
from lagpu.core import recorder
from lagpu.errors import BackendUnavailable
from lagpu.loops import loop

pytest_plugins = ["pytester"]  # suites inside of tests

TESTS = Path(__file__).parent
ALL = ("cpu", "sim", "gpu")
GRID = "grid:3:cpu"
ON_A_GRID = (
    "test_bfs",
    "test_expr_masks",
)  # too; every test of a backend takes --backend grid:3:cpu
PLAIN_ARCHITECTURE = "sm_90"
#: What `pytest -m quick` runs of a plain run, in two minutes: folders and files of tests/.
QUICK = (
    "algebra",
    "loops",
    "check",
    "generators",
    "core/test_expr_masks.py",
    "core/test_matmul.py",
    "core/test_vector.py",
    "algorithms/test_bfs.py",
    "algorithms/test_components.py",
    "algorithms/test_sssp.py",
    "backends/cpu",
    "backends/test_backends.py",
    "backends/gpu/ops/test_planner.py",
    "docs/test_figures.py",
    "docs/test_names_in_pages.py",
    "docs/test_pictures.py",
    "test_errors.py",
    "test_layout.py",
    "test_operations.py",
)
MUST_IN_CI = ("cpu", "sim")  # a machine without a GPU still has these

# Most kernels of a test run are compiled for one small graph: compiling is what takes the time.
os.environ.setdefault("LAGPU_SIM_FLAGS", "-O0")

# Statements wait only in tests of that, which make the programs of batches at once.
recorder.HOT = 10**9

# cpu is the oracle of others: its long loops are a call of csgraph in tests of that alone.
csgraph.SMALL = 2**62

hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev")
)


def pytest_addoption(parser):
    parser.addoption(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="run on this backend only, and fail if it is missing (repeat it, or use commas)",
    )


def asked_for(config):
    """Names given with --backend, in order."""
    return [name for part in config.getoption("--backend") for name in part.split(",") if name]


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a background job
        signal.signal(signal.SIGINT, signal.default_int_handler)
    known = {*backends.names(), "grid"}  # and their devices and pieces, as in "grid:3:cpu"
    unknown = {name for name in asked_for(config) if name.partition(":")[0] not in known}
    if unknown:
        raise pytest.UsageError(f"--backend: there is no {', '.join(sorted(unknown))}")
    if not config.option.markexpr:  # no -m: a plain run, or one on a GPU, which nothing else tests
        on_gpu = any(name.partition(":")[0] == "gpu" for name in asked_for(config))
        config.option.markexpr = "not exhaustive" if on_gpu else "not exhaustive and not ci"


@functools.cache
def lacks_a_gpu():
    """Return why no test may run on a GPU here, or ""."""
    try:
        backends.get("gpu")
    except BackendUnavailable as error:
        return str(error)
    return ""


def pytest_report_header(config):
    if not asked_for(config) and (why := lacks_a_gpu()):
        return f"no test runs on backend gpu: {why}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """Give tests their backends; make no item of a case that the run leaves out anyway."""
    if "backend" in metafunc.fixturenames:
        also = (GRID,) if metafunc.module.__name__ in ON_A_GRID else ()
        # Thousands of tests that are skipped would take half a minute.
        every = [name for name in (*ALL, *also) if name != "gpu" or not lacks_a_gpu()]
        names = asked_for(metafunc.config) or every
        params = [pytest.param(n, marks=pytest.mark.gpu if n == "gpu" else ()) for n in names]
        metafunc.parametrize("backend", params, indirect=True, scope="session")
    yield
    function, calls = metafunc.definition, metafunc._calls  # pytest has no public name for them
    for call in calls:  # what is compiled for one GPU compiles for the others
        if call.params.get("arch", PLAIN_ARCHITECTURE) != PLAIN_ARCHITECTURE:
            call.marks.append(pytest.mark.exhaustive.mark)
    thin(function, calls)
    left_out = {name for name in MARKS if f"not {name}" in metafunc.config.option.markexpr}
    alone = not left_out.isdisjoint(mark.name for mark in function.iter_markers())
    kept = [call for call in calls if left_out.isdisjoint(mark.name for mark in call.marks)]
    calls[:] = calls[:1] if alone or not kept else kept  # a test without a call has no arguments


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    in_quick = functools.cache(lambda path: not quick.isdisjoint((path, *path.parents)))
    quick = {TESTS / place for place in QUICK}
    for item in items:
        if in_quick(item.path) and not {"ci", "exhaustive"} & {m.name for m in item.iter_markers()}:
            item.add_marker(pytest.mark.quick)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let a test that fills the GPU's memory run alone; `auto` may bring any test to the GPU."""
    names = getattr(item, "fixturenames", ())
    is_skipped = "gpu" in names and lacks_a_gpu()
    with place_on_gpu(alone="filled" in names and not is_skipped):
        return (yield)


@pytest.fixture(scope="session")
def backend(request):
    """Each backend in turn; one that was asked for by name is not skipped."""
    name = request.param
    must = name in asked_for(request.config) or (name in MUST_IN_CI and "CI" in os.environ)
    try:
        return backends.get(name)
    except BackendUnavailable as error:
        if must:
            raise
        pytest.skip(str(error))


@pytest.fixture
def place(backend):
    """A backend with kernels of ours, on which a loop may run as one kernel."""
    if not backend.capabilities.fuses:
        pytest.skip(f"{backend.name} runs each statement by itself")
    return backend


def pytest_collection_finish():
    """Let the collector leave out what every test holds: benchmarks collect before each timing."""
    gc.freeze()


@pytest.fixture
def own_garbage():
    """Let `gc.collect` look at what the test makes alone, not at what those before it left."""
    gc.freeze()


@pytest.fixture
def world(backend):
    """Some objects, with what they held at first."""
    return World(backend)


@pytest.fixture(scope="session")
def graph():
    """A Kronecker graph of 128 vertices on cpu."""
    return generators.kronecker(7, backend="cpu")


@pytest.fixture
def save(tmp_path):
    """Write a file: its path."""

    def save(content, name="graph"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return save


@pytest.fixture
def run(capsys):
    """Run a command in this process: (exit code, stdout, stderr)."""
    from lagpu.cli import main

    def call(*args):
        code = main([str(arg) for arg in args])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def refused(run):
    """Run a command that must end with 2, one line on stderr and nothing on stdout."""

    def call(*args):
        code, out, err = run(*args)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("lagpu: ")
        return err

    return call


@pytest.fixture
def opened(monkeypatch):
    """The recorders that were opened; no loop is known before."""
    monkeypatch.setattr(loop, "_known", {})
    recorders, inner = [], recorder.Recorder.open
    note = lambda self: (recorders.append(self), inner(self))[1]  # noqa: E731
    monkeypatch.setattr(recorder.Recorder, "open", note)
    return recorders
