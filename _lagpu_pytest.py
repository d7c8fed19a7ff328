"""The pytest plugin of lagpu: ``pytest --lagpu-crosscheck=cpu,sim``.

Every statement of the test suite then runs on each of these backends, in lockstep, and a loop that
one of them runs as one program runs in both ways; a test fails at the first difference. Without the
option nothing of lagpu is imported.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

__all__: list[str] = []

_OPTION = "--lagpu-crosscheck"
_COUNTS = "lagpu-crosscheck"  # the property of a test with its statements and fused loops


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("lagpu").addoption(
        _OPTION,
        metavar="BACKENDS",
        help="run every lagpu statement on each of these backends, such as cpu,sim, and fail a "
        "test at the first difference",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before conftest files make vectors and matrices."""
    _begin(early_config, getattr(early_config.known_args_namespace, "lagpu_crosscheck", None))


def pytest_configure(config: pytest.Config) -> None:
    """Begin, if this plugin was loaded after the conftest files."""
    _begin(config, config.getoption("lagpu_crosscheck"))


def _begin(config: pytest.Config, names: str | None) -> None:
    """Let the names of some backends, and the default, mean all of them in lockstep."""
    if names is None or config.pluginmanager.has_plugin(_COUNTS):
        return
    from lagpu import backends
    from lagpu.crosscheck import places_of
    from lagpu.crosscheck.lockstep import Crosscheck
    from lagpu.crosscheck.report import Report
    from lagpu.errors import LagpuError

    words = [name.strip() for name in names.split(",")]
    if not all(words):
        raise pytest.UsageError(f"{_OPTION}={names}: a name is empty. Give {_OPTION}=cpu,sim.")
    try:
        places = places_of(words)
    except LagpuError as error:
        raise pytest.UsageError(f"{_OPTION}={names}: {error}") from None
    lockstep: Any = Crosscheck(places, Report("", ()))
    lockstep.counts = True
    lockstep.meter = _skip_trace
    lockstep.entered = f"{{0}} is on a backend that {_OPTION} does not name. Name it there too."
    patch, stack = pytest.MonkeyPatch(), ExitStack()
    for word in (*words, "auto", lockstep.name):
        patch.setitem(backends._loaded, word, lockstep)
    backends._add(lockstep.name, lockstep)  # so that its objects can be pickled
    stack.callback(patch.undo)
    stack.enter_context(backends.use(lockstep))
    stack.enter_context(lockstep)
    config.add_cleanup(stack.close)
    config.pluginmanager.register(_Suite(lockstep), _COUNTS)


def _skip_trace() -> None:
    pytest.skip(f"{_OPTION}: a traced program is not crosschecked")


def _leave_out_lagpu(error: pytest.ExceptionInfo[BaseException]) -> None:
    """End the traceback of a difference at the author's statement."""
    from lagpu.errors import CrosscheckFailed
    from lagpu.host.source import is_notation

    last, tb = error.tb, error.tb.tb_next
    while tb is not None:
        last, tb = last if is_notation(tb.tb_frame) else tb, tb.tb_next
    if isinstance(error.value, CrosscheckFailed):
        last.tb_next = None


class _Suite:
    """A test suite whose lagpu statements run in lockstep."""

    def __init__(self, lockstep: Any) -> None:
        self._lockstep = lockstep
        self._counts = [0, 0]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._lockstep.begin(item.name)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        result = yield
        found = self._lockstep.report
        if found.difference is not None:  # the test has caught the error
            raise found.failed(found.difference)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.excinfo is not None:
            _leave_out_lagpu(call.excinfo)
        report = yield
        if report.when == "teardown":
            found = self._lockstep.report
            counts = found.statements, sum(row.runs for row in found.loops)
            report.user_properties.append((_COUNTS, counts))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the counts of a test, which another process may have run."""
        properties: list[Any] = [*report.user_properties]
        for name, counts in properties:
            if name == _COUNTS:
                self._counts = [x + y for x, y in zip(self._counts, counts, strict=True)]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print how much was compared: a suite may use lagpu less than its author believes."""
        statements, loops = self._counts
        where = " and ".join(place.name for place in self._lockstep.places)
        terminalreporter.write_sep("=", "lagpu crosscheck")
        terminalreporter.write_line(
            f"compared on {where}: statements {statements:,}, loops as one program {loops:,}"
        )
