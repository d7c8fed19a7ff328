"""Free memory: the least of the machine, the control groups and the limits of the process."""

import resource
import subprocess
import sys

import pytest
from command import ONE_THREAD

from lagpu.errors import OutOfMemory
from lagpu.host import memory

MACHINE = 64 << 30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 64 GB without limits; control groups are folders that a test writes."""
    info, membership = tmp_path / "meminfo", tmp_path / "cgroup"
    info.write_text(f"MemTotal: 99 kB\nMemAvailable: {MACHINE >> 10} kB\n")
    membership.write_text("")
    monkeypatch.setattr(memory, "_MEMINFO", info)
    monkeypatch.setattr(memory, "_MEMBERSHIP", membership)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)

    def group(folder, limit, used, cache=0, version=2):
        place = tmp_path / "groups" / folder
        place.mkdir(parents=True, exist_ok=True)
        names = memory._V2 if version == 2 else memory._V1
        (place / names[0]).write_text(f"{limit}\n")
        (place / names[1]).write_text(f"{used}\n")
        if cache is not None:
            (place / "memory.stat").write_text(f"anon 5\n{names[2]} {cache}\n")

    group.member = membership.write_text
    return group


def test_a_machine_without_limits(machine):
    assert memory.available_bytes() == MACHINE
    machine.member("0::/user\n")
    machine("user", "max", 5 << 30)
    assert memory.available_bytes() == MACHINE


def test_a_container_of_version_2(machine):
    """Inside it the path of the group is ``/``."""
    machine.member("0::/\n")
    machine("", 1_100_000_000, 300_000_000, 100_000_000)
    assert memory.available_bytes() == 900_000_000
    with pytest.raises(OutOfMemory, match=r"read: x: needs 1\.6 GB, 900\.0 MB free"):
        memory.require(1_560_000_000, "read: x")


def test_processes_share_the_memory_of_their_machine(machine, monkeypatch):
    """But not what the limits of one process leave it."""
    memory.require(MACHINE // 3, "x", processes=3)
    with pytest.raises(OutOfMemory, match=r"^x: needs 85\.9 GB, 68\.7 GB free"):
        memory.require(MACHINE * 5 // 12, "x", processes=3)
    monkeypatch.setattr(memory, "_process_bytes", lambda: [1000])
    memory.require(1000, "x", processes=3)
    with pytest.raises(OutOfMemory, match=r"^x: needs 0\.0 MB, 0\.0 MB free"):
        memory.require(1001, "x", processes=3)


def test_the_least_of_nested_groups_counts(machine):
    machine.member("0::/outer/inner\n")
    machine("outer/inner", 8 << 30, 1 << 30)
    machine("outer", 4 << 30, 3 << 30)
    assert memory.available_bytes() == 1 << 30
    machine("outer", 4 << 30, 5 << 30)
    assert memory.available_bytes() == 0


@pytest.mark.parametrize("group", ["/docker/abc", "/"])
def test_a_container_of_version_1(machine, group):
    """The path may be one of the host, of which the container sees only the end."""
    machine.member(f"4:memory:{group}\n3:cpu,cpuacct:/\n0::/\n")
    machine("memory", 2 << 30, 1 << 30, 1 << 20, version=1)
    assert memory.available_bytes() == (1 << 30) + (1 << 20)


def test_a_group_without_statistics_has_its_limit_all_the_same(machine):
    machine.member("0::/\n")
    machine("", 2 << 30, 1 << 30, None)
    assert memory.available_bytes() == 1 << 30


@pytest.mark.parametrize(("kind", "column"), memory._LIMITS)
def test_the_limits_of_the_process_count(machine, monkeypatch, tmp_path, kind, column):
    pages = ["0"] * 7
    pages[column] = "1000"
    (tmp_path / "statm").write_text(" ".join(pages))
    monkeypatch.setattr(memory, "_STATM", tmp_path / "statm")
    limits = {kind: (1 << 30, resource.RLIM_INFINITY)}
    monkeypatch.setattr(
        memory.resource, "getrlimit", lambda k: limits.get(k, (resource.RLIM_INFINITY,) * 2)
    )
    assert memory.available_bytes() == (1 << 30) - 1000 * resource.getpagesize()


def test_a_failed_allocation_is_named_with_its_cause():
    with (
        pytest.raises(OutOfMemory, match=r"^it: Unable to allocate 5 GiB\. Use less\.$") as caught,
        memory.shortage_named("it", "Use less."),
    ):
        raise MemoryError("Unable to allocate 5 GiB.")
    assert type(caught.value.__cause__) is MemoryError
    ours = OutOfMemory("reported already")
    with pytest.raises(OutOfMemory, match="reported already"), memory.shortage_named("it"):
        raise ours


LIMITED = """
import resource, sys
import lagpu
from lagpu.errors import OutOfMemory
lagpu.io.read(sys.argv[1], backend="cpu")
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
for path in sys.argv[2:]:
    try:
        print(lagpu.io.read(path, backend="cpu").nrows)
    except OutOfMemory as error:
        print(error)
"""


def test_reading_under_a_limit_of_the_process_refuses_before_it_allocates(tmp_path):
    """In another process: the limit holds for all of it."""
    contents = ["0 1\n", "0 1\n1 1000000000\n", "500000000 5\n", "0 120000000\n", "1 2\n"]
    paths = [tmp_path / f"{k}.txt" for k in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, paths)],
        capture_output=True, text=True, check=False,
        env=ONE_THREAD | {"LAGPU_READ_LIMIT": "inf"},
    )  # fmt: skip
    reported = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(reported) == 4
    for line, vertex in zip(reported, ("1000000000", "500000000", "120000000"), strict=False):
        assert f"vertex {vertex} in line" in line
        assert "GB free. Give renumber=True" in line
    assert reported[3] == "3"
