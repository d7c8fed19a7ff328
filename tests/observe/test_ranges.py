"""A profiler sees statements and loops by their text, and the program is otherwise the same."""

import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import lagpu
from lagpu import BOOL, INT32, Vector, loop, semiring
from lagpu.backends.gpu.device.cuda import CudaDevice
from lagpu.backends.gpu.device.protocol import Device
from lagpu.generators import path


@pytest.fixture
def seen(place, monkeypatch):
    """The names of ranges as they open, with how many ranges they stand in, and `launch` inside."""
    found, depth = [], [0]

    @contextmanager
    def opened(device, name):
        found.append((depth[0], name))
        depth[0] += 1
        yield
        depth[0] -= 1

    def launched(device, *args, **how):
        found.append((depth[0], "launch"))
        return launch(device, *args, **how)

    launch = Device.launch
    monkeypatch.setattr(type(place.device), "range", opened)
    monkeypatch.setattr(Device, "launch", launched)
    return found


def levels_of(A):
    q, levels = Vector(BOOL, 4, like=A, name="q"), Vector(INT32, 4, like=A)
    q[0] = True
    for depth in loop(until_empty=q):
        levels(q.S) << depth
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
    return levels.to_dict()


def levels_by_statements(A):
    q, levels = Vector(BOOL, 4, like=A, name="q"), Vector(INT32, 4, like=A)
    q[0] = True
    for depth in loop(until_empty=q):
        levels(q.S) << depth
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
        assert q.nvals < 2  # a value is read on the host
    return levels.to_dict()


def names(seen):
    return [name.rsplit(":", 1)[0] for _, name in seen if name != "launch"]


def test_a_loop_that_is_one_kernel_is_one_range(place, seen):
    A = path(4, backend=place)
    with lagpu.ranges():
        found = levels_of(A)
    assert found == {0: 0, 1: 1, 2: 2, 3: 3}
    where = "(test_ranges.py"
    entry, fused = (name for _, name in seen if name != "launch")
    assert entry.startswith(f"q[0] = True {where}:")
    assert fused.startswith(place.last_loop.split(":")[0] + ": levels(q.S) << depth " + where)
    assert "; q(~levels.S, replace=True) << semiring.any_pair(q @ A) " + where in fused
    assert not place.last_loop.startswith("eager")


def test_statements_that_run_by_themselves_have_a_range_each(place, seen):
    A = path(4, backend=place)
    del seen[:]
    with lagpu.ranges():
        found = levels_by_statements(A)
    assert found == {0: 0, 1: 1, 2: 2, 3: 3}
    body = [
        "levels(q.S) << depth (test_ranges.py",
        "q(~levels.S, replace=True) << semiring.any_pair(q @ A) (test_ranges.py",
    ]
    assert names(seen) == ["q[0] = True (test_ranges.py", *4 * body]
    inside = {depth for depth, name in seen if name == "launch"}
    assert 1 in inside
    assert max(depth for depth, _ in seen) == 1


def test_without_ranges_none_is_opened(place, seen):
    levels_of(path(4, backend=place))
    with lagpu.ranges(), lagpu.trace():
        levels_of(path(4, backend=place))  # the trace sees the statements
    assert names(seen) == []


def test_backends_without_a_device_run_as_they_are():
    with lagpu.ranges():
        assert levels_of(path(4, backend="cpu")) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_a_gpu_opens_ranges_of_nvtx(monkeypatch):
    profiler = SimpleNamespace(time_range=lambda name: ("NVTX", name))
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(profiler=profiler))
    monkeypatch.setitem(sys.modules, "cupyx.profiler", profiler)
    assert CudaDevice.range(None, "q << 1") == ("NVTX", "q << 1")


@pytest.mark.ci
@pytest.mark.parametrize(("value", "on"), [("1", True), ("0", False), ("", False)])
def test_a_variable_switches_ranges_on_for_a_program(value, on, monkeypatch):
    monkeypatch.setenv("LAGPU_RANGES", value)
    text = "import lagpu; from lagpu.core.recorder import current_observer as c; print(c())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ("Ranges" in done.stdout) is on, done.stdout
