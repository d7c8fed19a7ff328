"""Which GPUs run one kernel together: asked of a stand-in for CuPy, as a driver would answer."""

import contextlib
import types

import pytest

from lagpu.backends.gpu.device.cuda_peers import why_apart


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

    runtime = types.SimpleNamespace(
        CUDARuntimeError=RuntimeFailure,
        deviceCanAccessPeer=lambda one, other: access and one != other,
        deviceEnablePeerAccess=enable,
    )
    cuda = types.SimpleNamespace(runtime=runtime, Device=device)
    return types.SimpleNamespace(cuda=cuda), asked


@pytest.fixture(autouse=True)
def _not_blocking(monkeypatch):
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)


@pytest.mark.parametrize("status", [0, 704])  # 704: it was enabled before
def test_access_is_enabled_both_ways(status):
    cupy, asked = stand_in(status=status)
    assert why_apart(cupy, [0, 1, 3]) == ""
    assert sorted(asked) == [(0, 1), (0, 3), (1, 0), (1, 3), (3, 0), (3, 1)]


def test_why_gpus_stay_apart(monkeypatch):
    cupy, asked = stand_in(access=False)
    assert why_apart(cupy, [0, 1]) == "GPU 0 has no access to the memory of GPU 1"
    assert "two pieces are on one GPU" in why_apart(cupy, [0, 1, 0])
    assert asked == []
    refused = why_apart(stand_in(status=1)[0], [0, 1])
    assert refused == "GPU 0 is refused access to the memory of GPU 1: error 1"
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    cupy, asked = stand_in()
    assert "CUDA_LAUNCH_BLOCKING is set" in why_apart(cupy, [0, 1])
    assert asked == []
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")
    assert why_apart(cupy, [0, 1]) == ""
