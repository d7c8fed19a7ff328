"""Calls of every algorithm whose kernels are compiled before they are needed."""

from types import SimpleNamespace

import pytest

from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.catalog import ALGORITHMS
from lagpu.errors import InvalidValue
from lagpu.selftest import kernels


def test_shares_are_all_calls_once(monkeypatch):
    made = []
    names = [row.key for row in ALGORITHMS] * 2
    calls = [(key, lambda k=k: made.append(k)) for k, key in enumerate(names)]
    monkeypatch.setattr(kernels, "calls", lambda place: calls)
    for share in range(3):
        before = len(made)
        kernels._make_share("cpu", 3, share)
        assert len(made) > before
    assert sorted(made) == list(range(len(names)))


def test_a_device_is_as_it_was_after_the_calls_for_large_graphs():
    device = SimpleNamespace(limits=CUDA_LIMITS, dynamic_shared_bytes=1)
    with kernels._for_large(device):
        assert device.limits.lasts == 0
    assert (device.limits, device.dynamic_shared_bytes) == (CUDA_LIMITS, 1)


def test_what_compiles_nothing_is_refused():
    with pytest.raises(InvalidValue, match="cpu has no kernels"):
        kernels.compile_all("cpu", 1)
