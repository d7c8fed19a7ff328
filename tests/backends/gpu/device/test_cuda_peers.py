"""Which GPUs run one kernel together: asked of a stand-in for CuPy, as a driver would answer."""

import contextlib
import types

import pytest

from lagpu.backends.gpu.device import cuda as cuda_peers
from lagpu.backends.gpu.device.cuda import CudaDevice, why_apart, why_no_link


class RuntimeFailure(Exception):
    def __init__(self, status):
        super().__init__(f"error {status}")
        self.status = status


def stand_in(access=True, status=0):
    """Return a CuPy whose GPUs have access or not, and whose enabling ends with a status."""
    asked, current = [], []

    def enable(other):
        asked.append((current[-1], other))
        if status:
            raise RuntimeFailure(status)

    @contextlib.contextmanager
    def device(number):
        current.append(number)
        yield
        current.pop()

    def number_of(bus):
        if not bus.isdigit():
            raise RuntimeFailure(101)
        return int(bus)

    runtime = types.SimpleNamespace(
        CUDARuntimeError=RuntimeFailure,
        deviceGetByPCIBusId=number_of,
        deviceCanAccessPeer=lambda one, other: access and one != other,
        deviceEnablePeerAccess=enable,
    )
    cuda = types.SimpleNamespace(runtime=runtime, Device=device)
    return types.SimpleNamespace(cuda=cuda), asked


@pytest.fixture(autouse=True)
def atomics(monkeypatch):
    """Clear the variable; return what GPUs have no atomic operations on another one's memory."""
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    lacking = set()
    monkeypatch.setattr(cuda_peers, "has_atomics", lambda *pair: pair not in lacking)
    return lacking


@pytest.mark.parametrize("status", [0, 704])  # 704: it was enabled before
def test_access_is_enabled_both_ways(status):
    cupy, asked = stand_in(status=status)
    assert why_apart(cupy, [0, 1, 3]) == ""
    assert sorted(asked) == [(0, 1), (0, 3), (1, 0), (1, 3), (3, 0), (3, 1)]


def test_a_gpu_that_is_shared_needs_no_access_to_itself():
    cupy, asked = stand_in()
    assert why_apart(cupy, [0, 0], share=2) == ""
    assert asked == []
    assert why_apart(cupy, [0, 0, 1, 1], share=2) == ""
    assert sorted(asked) == [(0, 1), (1, 0)]


def test_without_atomic_operations_gpus_stay_apart(atomics):
    cupy, asked = stand_in()
    atomics.add((1, 0))
    why = why_apart(cupy, [0, 1])
    assert why == "GPU 1 has no atomic operations on the memory of GPU 0"
    assert asked == []


def test_why_gpus_stay_apart(monkeypatch):
    cupy, asked = stand_in(access=False)
    assert why_apart(cupy, [0, 1]) == "GPU 0 has no access to the memory of GPU 1"
    assert "two pieces are on one GPU" in why_apart(cupy, [0, 1, 0])
    assert "two pieces are on one GPU" in why_apart(cupy, [0, 0, 0], share=2)
    assert asked == []
    refused = why_apart(stand_in(status=1)[0], [0, 1])
    assert refused == "GPU 0 is refused access to the memory of GPU 1: error 1"
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    cupy, asked = stand_in()
    assert "CUDA_LAUNCH_BLOCKING is set" in why_apart(cupy, [0, 1])
    assert asked == []
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")
    assert why_apart(cupy, [0, 1]) == ""


def test_a_gpu_of_another_process_that_this_one_sees(atomics):
    cupy, asked = stand_in()
    assert why_no_link(cupy, "host 0", "host 1") == ""
    assert "two pieces are on one GPU" in why_no_link(cupy, "host 0", "host 0")
    assert why_no_link(cupy, "host 0", "other 1") == "GPU 1 is of another host"
    lacks = "GPU 0 has no atomic operations on the memory of GPU 1"
    assert why_no_link(stand_in(access=False)[0], "host 0", "host 1") == lacks
    atomics.add((0, 1))
    assert why_no_link(cupy, "host 0", "host 1") == lacks
    assert asked == []  # by enabling, which makes a context there


@pytest.mark.parametrize(
    ("found", "status", "why"),
    [(0, 0, ""), (0, 3, "no atomic operations"), (6, 0, "no atomic operations")],
)
def test_a_gpu_that_the_launcher_hides_is_asked_of_nvml(found, status, why, monkeypatch):
    seen = []

    def state(one, other, index, to):
        seen.append((one.value, other.value, index))
        to._obj.value = status
        return 0

    def handle(bus, to):
        to._obj.value = int(bus[1:]) + 100
        return found

    nvml = types.SimpleNamespace(
        nvmlInit_v2=lambda: 0,
        nvmlDeviceGetHandleByPciBusId_v2=handle,
        nvmlDeviceGetP2PStatus=state,
    )
    monkeypatch.setattr(cuda_peers.ctypes, "CDLL", lambda _name: nvml)
    said = why_no_link(stand_in()[0], "host x7", "host x8")
    assert why in said if why else said == ""
    assert seen == [(107, 108, 3)]


def test_without_nvml_a_hidden_gpu_stays_apart(monkeypatch):
    def missing(_name):
        raise OSError("no such file")

    monkeypatch.setattr(cuda_peers.ctypes, "CDLL", missing)
    assert why_no_link(stand_in()[0], "host x7", "host x8").endswith("no such file")


def test_a_copy_between_gpus_is_ordered_by_both_streams():
    done, current = [], [1]

    class Stream:
        def __init__(self, gpu):
            self.gpu, self.ptr = gpu, 70 + gpu

        def record(self):
            return f"event of {self.gpu}"

        def wait_event(self, event):
            done.append((self.gpu, event))

    @contextlib.contextmanager
    def device(number):
        current.append(number)
        yield
        current.pop()

    runtime = types.SimpleNamespace(memcpyPeerAsync=lambda *given: done.append(given))
    streams = [Stream(gpu) for gpu in range(2)]
    cuda = types.SimpleNamespace(
        runtime=runtime, Device=device, get_current_stream=lambda: streams[current[-1]]
    )
    made = types.SimpleNamespace(data=types.SimpleNamespace(ptr=5))
    cupy = types.SimpleNamespace(cuda=cuda, empty_like=lambda _: made)
    array = types.SimpleNamespace(
        data=types.SimpleNamespace(ptr=9), nbytes=48, copy=lambda: "a copy"
    )
    sender, receiver = (types.SimpleNamespace(number=number, xp=cupy) for number in range(2))
    assert CudaDevice.fetched(receiver, array, sender) is made
    assert done == [(1, "event of 0"), (5, 1, 9, 0, 48, 71), (0, "event of 1")]
    assert CudaDevice.fetched(receiver, array, receiver) == "a copy"
