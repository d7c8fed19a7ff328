"""Check the files that commands write, and write those of ``--trace`` and ``--step``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.host.files import replacing, require_writable
from lagpu.observe.step import step
from lagpu.observe.step.page import page, require_size
from lagpu.observe.trace import Trace

SAVED = (".npz", ".txt", ".csv")  # suffixes for a vector


def require_file(option: str, file: Path | None, suffixes: tuple[str, ...]) -> None:
    """Check, before any work, that a file has a valid suffix and can be written.

    Raises
    ------
    InvalidValue
        For another suffix, or if the file cannot be written.
    FileMissing
        If the file's folder does not exist.
    """
    if file is None:
        return
    if file.suffix not in suffixes:
        wanted = " or ".join(suffixes)
        raise InvalidValue(f"{option}: {file.name} does not end in {wanted}. Rename it.")
    require_writable(file, option)


def require_apart(trace_file: Path | None, step_file: Path | None) -> None:
    """Check that trace and step are different files.

    Raises
    ------
    InvalidValue
        If both are the same file.
    """
    if trace_file is None or step_file is None:
        return
    if trace_file.resolve() == step_file.resolve():
        raise InvalidValue(f"--step: {step_file} is also the file of --trace. Give another one.")


def write_trace(traced: Trace, file: Path, facts: Mapping[str, object]) -> None:
    """Write a trace in the format of the file's suffix."""
    with _writing("--trace", file):
        if file.suffix == ".json":
            traced.to_json(file)
        else:
            traced.to_html(file, title=f"lagpu bfs {facts['graph']}", facts=facts)


def require_numbers(step_file: Path | None, renumber: bool) -> None:
    """Raise if a page of steps would show vertices by numbers that the user does not know."""
    if renumber and step_file is not None:
        raise InvalidValue("--step: shows vertices by number. Leave --renumber out.")


def require_small(file: Path | None, A: Matrix) -> None:
    """Check, before any search, that a graph fits a page."""
    if file is not None:
        require_size(A.nrows, "the graph", "--step")


def write_steps(run: Callable[[], Any], title: str, A: Matrix, graph: str, file: Path) -> None:
    """Step through an algorithm on a graph and write the page."""
    steps = step(run)
    facts = {"graph": graph, "on": A.backend.name}
    html = page(steps, title, facts, what="--step")
    with _writing("--step", file), replacing(file) as stream:
        stream.write(html.encode())


@contextmanager
def _writing(option: str, file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidValue(f"{option}: {file}: {error.strerror or error}.") from error
