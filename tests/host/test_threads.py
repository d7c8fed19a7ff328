"""Tests of work in threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from lagpu.host import memory


def test_results_come_in_order_and_threads_share_the_work(monkeypatch):
    monkeypatch.setattr(memory, "_cores", lambda: 2)
    both = threading.Barrier(2, timeout=60)  # passed only by two threads at a time

    def work(item):
        both.wait()
        return item * item

    assert memory.mapped(work, range(4)) == [0, 1, 4, 9]
    assert memory.mapped(work, []) == []


def test_each_thread_sees_the_callers_errstate(monkeypatch):
    monkeypatch.setattr(memory, "_cores", lambda: 2)
    with np.errstate(over="raise"):
        assert memory.mapped(lambda _: np.geterr()["over"], range(3)) == ["raise"] * 3


def test_an_error_of_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(memory, "_cores", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        memory.mapped(lambda x: 1 // x, [1, 0, 1])
