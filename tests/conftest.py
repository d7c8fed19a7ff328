"""The `backend` fixture, the option that chooses backends, and hypothesis' profiles."""

import os

import hypothesis
import pytest

from lagpu import backends
from lagpu.errors import BackendUnavailable

ALL = ("cpu", "sim", "gpu")
MUST_IN_CI = ("cpu", "sim")  # a machine without a GPU still has these

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
    unknown = set(asked_for(config)) - set(backends.names())
    if unknown:
        raise pytest.UsageError(f"--backend: there is no {', '.join(sorted(unknown))}")


def pytest_generate_tests(metafunc):
    if "backend" not in metafunc.fixturenames:
        return
    names = asked_for(metafunc.config) or ALL
    params = [pytest.param(n, marks=pytest.mark.gpu if n == "gpu" else ()) for n in names]
    metafunc.parametrize("backend", params, indirect=True, scope="session")


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
