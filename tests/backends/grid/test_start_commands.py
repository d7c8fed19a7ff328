"""Commands under mpirun: what one process lacks is one line, with the number of that process."""

import json

import pytest
from test_start import Job, commands, real, said

# All libraries are imported before: OpenBLAS would try to allocate its memory without an end.
SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
from lagpu import backends
from lagpu.cli import main, run
from lagpu.host.job import launched

backends.get("grid:cpu")
if launched().rank == 1:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + 60_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.exit(main("bfs kron:18 --source 1 --grid all:cpu".split()))
"""


@real
@pytest.mark.ci
def test_a_process_short_of_memory_is_named():
    code, out, err = Job(3, SHORT_OF_MEMORY).ended()
    assert (code, out) == (2, ""), err
    (line,) = said(err)
    assert line.startswith("lagpu: process 1 of 3: kronecker: needs 79.3 MB, "), err


@real
@pytest.mark.ci
def test_what_all_processes_refuse_is_that_of_none():
    code, out, err = commands(*["bfs kron:6 --source 99 --grid all:cpu"] * 2)
    assert (code, out) == (2, ""), err
    (line,) = said(err)
    assert line.startswith("lagpu: source: index 99"), err


@real
@pytest.mark.ci
def test_processes_without_a_grid_are_reported():
    code, out, err = commands(*["bfs kron:6 --source 1 -b cpu --json"] * 2)
    assert (code, json.loads(out)["reached"]) == (0, 62), err
    assert said(err) == ["lagpu: 2 processes each do all of this; --grid all shares it out."]
