"""One shape of a command: check options, load, run, check the result, save it, and print it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lagpu import backends, io, versions
from lagpu.backends.guard import overridden
from lagpu.backends.processes import of_all
from lagpu.catalog import PROOFS
from lagpu.cli.algorithms import TOP, Job
from lagpu.cli.commands import Options
from lagpu.cli.console import (
    SAVED,
    busy,
    console,
    print_json,
    print_lines,
    print_written,
    require_file,
)
from lagpu.cli.graphs import Names, facts_of, load
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.generators.load import Facts
from lagpu.host.files import replacing
from lagpu.host.fitting import FittingTable
from lagpu.observe.step import step
from lagpu.observe.step.drawing import page, require_size
from lagpu.observe.trace import Trace

# The longest run that is repeated, to be timed without what only the first one does; and where
# that compiles kernels.
_AGAIN_MS, _AGAIN_COMPILED_MS = 1000.0, 10_000.0
_HEADINGS = {"farthest": "distance"}
_VERDICTS = {None: "not requested (--check)", True: "passed", False: "FAILED"}
# Facts whose values are vertices, or lists of these.
_VERTICES = ("source", "target", "begin", "end", "path", "odd_cycle")
_APART = ("algorithm", "edges_kind", "warm", "load_ms", "ms", "backend", "checked", "versions")


def run(options: Options, job: Job, check: bool, as_json: bool, **files: Path | None) -> None:
    """Run the command of an algorithm."""
    Command(options, job).run(check=check, as_json=as_json, **files)


@dataclass(eq=False)
class Measured:
    """A result, its time, and the facts to print: first `facts`, then the time, `rates`, `rows`.

    `trace` is that of another run, and `compile_ms` the time to compile in the run before it.
    """

    result: Any
    ms: float
    facts: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, Any] = field(default_factory=dict)
    trace: Trace | None = None
    compile_ms: float = 0.0


class Command:
    """A command that runs one algorithm; `run` is its shape, other methods are its steps."""

    saved_as: tuple[str, ...] = SAVED  # suffixes of a result's file

    def __init__(self, options: Options, job: Job) -> None:
        self.options, self.job = options, job

    def run(
        self,
        *,
        check: bool,
        as_json: bool,
        save: Path | None = None,
        step_file: Path | None = None,
        trace_file: Path | None = None,
    ) -> None:
        """Run the algorithm, prove and save the result if requested, and print it.

        Raises
        ------
        CheckFailed
            After printing, and without saving, if the result is wrong.
        LagpuError
            For bad options, before the graph is read.
        """
        options, job = self.options, self.job
        require_file("--trace", trace_file, (".html", ".json"))
        require_file("--step", step_file, (".html",))
        if trace_file and step_file and trace_file.resolve() == step_file.resolve():
            raise InvalidValue(
                f"--step: {step_file} is also the file of --trace. Give another one."
            )
        if options.renumber and step_file is not None:
            raise InvalidValue("--step: shows vertices by number. Leave --renumber out.")
        self.require(save, step_file)
        if not options.renumber:
            self.start(Names())
        require_file("--save", save, self.saved_as)
        place = overridden(backends.get(options.backend), options.kernel, options.policy)
        A, names, load_ms = load(options, place, dup_op=job.dup_op, seed_for=job.seed_for)
        start = self.start(names)
        self.require_vertices(A, start)
        if step_file is not None:
            require_size(A.nrows, "the graph", "--step")
        facts = facts_of(A)
        with busy(f"{job.algorithm} on {A.backend.name}"):
            measured = self.measure(A, start, facts)
        refusal = self.refusal(A, start, measured.result) if check else None
        found = {
            "graph": options.graph,
            "vertices": facts.vertices,
            "edges": facts.edges,
            "edges_kind": facts.kind,
            **_named(measured.facts, names),
            "load_ms": load_ms,
            "ms": measured.ms,
            **measured.rates,
            "backend": A.backend.name,
            "checked": None if not check else refusal is None,
            **measured.rows,
            "versions": versions.versions(),
        }
        saved = save if refusal is None and self.write(measured.result, save, names) else None
        if as_json:
            print_json(found)
        else:
            self.print(found)
        if trace_file is not None and measured.trace is not None:
            _write_trace(measured.trace, trace_file, self.head(found, measured))
        if step_file is not None:
            title = self.title(start)
            _write_steps(lambda: job.run(A, *start), title, A, options.graph, step_file)
        files = {"--save": saved, "--trace": trace_file, "--step": step_file}
        print_written(files, as_json=as_json)
        if refusal is not None:
            raise refusal

    def require(self, save: Path | None, step_file: Path | None) -> None:
        """Raise for options that do not fit together."""

    def start(self, names: Names) -> tuple[Any, ...]:
        """Return the arguments of the algorithm after the graph."""
        return tuple(names.vertex(text, option) for option, text in self.job.vertices.items())

    def require_vertices(self, A: Matrix, start: tuple[Any, ...]) -> None:
        """Raise for vertices that the graph does not have; most algorithms do so themselves."""

    def measure(self, A: Matrix, start: tuple[Any, ...], facts: Facts) -> Measured:
        """Run the algorithm, twice if that takes little time, and time the last run."""
        result, ms = self.timed(A, start)
        compiles = A.backend.capabilities.sources_hash
        slowest = max(its for (its,) in of_all(A.backend, ms))
        warm = slowest <= (_AGAIN_COMPILED_MS if compiles else _AGAIN_MS)
        if warm:
            result, ms = self.timed(A, start)
        said = {"algorithm": self.job.algorithm, **self.job.facts(result, *start)}
        return Measured(result, ms, said, {"warm": warm})

    def timed(self, A: Matrix, start: tuple[Any, ...]) -> tuple[Any, float]:
        """Return the complete result of the algorithm and its milliseconds."""
        begin = time.perf_counter()
        result = self.job.run(A, *start)
        if isinstance(result, Vector):  # the loop has counted the entries of a matrix
            result.wait()
        return result, (time.perf_counter() - begin) * 1e3

    def refusal(self, A: Matrix, start: tuple[Any, ...], result: Any) -> CheckFailed | None:
        """Return why the result is wrong, or None."""
        prove = self.job.prove or PROOFS[self.job.algorithm]
        with busy(f"checking {self.job.algorithm}"):
            try:
                prove(A, *start, result)
            except CheckFailed as error:
                return error
        return None

    def write(self, result: Any, save: Path | None, names: Names) -> bool:
        """Write a result to a file; return whether there are both."""
        entries = self.job.vector(result)
        if save is None or entries is None:
            return False
        if isinstance(entries, Matrix):
            io.write(entries, save)
            return True
        indices, values = entries.to_coo()
        values = names.of(values) if self.job.of_vertices else values
        io.write_vector(names.of(indices), values, save)
        return True

    def title(self, start: tuple[Any, ...]) -> str:
        """Return the title of a page of steps."""
        return self.job.algorithm

    def head(self, found: dict[str, Any], measured: Measured) -> dict[str, object]:
        """Return the facts at the head of a trace."""
        return {}

    def print(self, found: dict[str, Any]) -> None:
        """Print a result for a reader."""
        lines = {name: value for name, value in found.items() if name not in _APART}
        lines["edges"] = f"{found['edges']:,} {found['edges_kind']}"
        lines |= load_and_time(found, found["algorithm"])
        lines["time"] += "after a warm-up" if found["warm"] else "the first run"
        lines["check"] = verdict(found)
        rankings = {name: value for name, value in lines.items() if _is_ranking(value)}
        width = max(map(len, lines))
        print_lines(
            {
                f"{name.replace('_', ' '):>{width}}": _shown(value)
                for name, value in lines.items()
                if name not in rankings
            }
        )
        if rankings:
            console().print(_ranked(rankings))


def load_and_time(found: dict[str, Any], what: str) -> dict[str, str]:
    """Return how long the graph and the algorithm took, in words; the last one goes on."""
    place = found["backend"]
    return {
        "load": f"{found['load_ms']:,.3f} ms to make or read the graph and bring it to {place}",
        "time": f"{found['ms']:,.3f} ms for {what} on {place}, ",
    }


def verdict(found: dict[str, Any]) -> str:
    """Return the result of the check in words."""
    return _VERDICTS[found["checked"]]


def _named(found: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return facts with the user's names of the vertices."""

    def shown(name: str, value: Any) -> Any:
        if _is_ranking(value):
            return [[names.shown(pair[0]), *pair[1:]] for pair in value]
        is_list = name == "sources" and isinstance(value, list)  # else it is a count
        return names.shown(value) if name in _VERTICES or is_list else value

    return {name: shown(name, value) for name, value in found.items()}


def _ranked(rankings: dict[str, list[list[Any]]]) -> FittingTable:
    """Return the table of a ranking, with further numbers of the same vertices."""
    names = [_HEADINGS.get(name, name.replace("_", " ")) for name in rankings]
    table = FittingTable("vertex", *names)
    for pairs in zip(*rankings.values(), strict=True):
        table.add_row(str(pairs[0][0]), *(_shown(number) for _, number in pairs))
    if table.row_count == TOP:
        table.caption = f"the {TOP} largest"
    return table


def _is_ranking(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def _write_trace(traced: Trace, file: Path, facts: dict[str, object]) -> None:
    """Write a trace in the format of the file's suffix."""
    with _writing("--trace", file):
        if file.suffix == ".json":
            traced.to_json(file)
        else:
            traced.to_html(file, title=f"lagpu bfs {facts['graph']}", facts=facts)


def _write_steps(run: Callable[[], Any], title: str, A: Matrix, graph: str, file: Path) -> None:
    """Step through an algorithm on a graph and write the page."""
    steps = step(run)
    html = page(steps, title, {"graph": graph, "on": A.backend.name}, what="--step")
    with _writing("--step", file), replacing(file) as stream:
        stream.write(html.encode())


@contextmanager
def _writing(option: str, file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidValue(f"{option}: {file}: {error.strerror or error}.") from error
