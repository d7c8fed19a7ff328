"""Processes that answer calls, and are ended in the middle of one."""

import multiprocessing
import os
import time

import pytest

from lagpu.bench import algorithms as workers
from lagpu.bench.algorithms import Failed, TimeUp, Worker


class Held:
    def add(self, x, y):
        return x + y

    def wait(self, seconds):
        time.sleep(seconds)

    def die(self):
        os._exit(3)


@pytest.fixture
def worker(monkeypatch):
    context = multiprocessing.get_context("forkserver")  # lagpu is imported once
    context.set_forkserver_preload([__name__])
    monkeypatch.setattr(workers, "_SPAWN", context)
    made = Worker(Held)
    yield made
    made.close()


def test_a_process_answers(worker):
    assert worker.call("add", [1], [2], limit=60) == [1, 2]
    with pytest.raises(Failed, match="TypeError") as caught:
        worker.call("add", 1, "2", limit=60)
    assert caught.value.kind == "TypeError"
    assert worker.call("add", 1, 2, limit=60) == 3


def test_a_process_is_ended_in_the_middle(worker):
    assert worker.process.is_alive()
    with pytest.raises(TimeUp):
        worker.call("wait", 600, limit=0.1)
    assert not worker.process.is_alive()
    with pytest.raises(Failed, match="Died"):
        worker.call("add", 1, 2, limit=60)


@pytest.mark.ci
def test_a_process_that_dies(worker):
    with pytest.raises(Failed, match="Died: the process ended with exit code 3"):
        worker.call("die", limit=60)
