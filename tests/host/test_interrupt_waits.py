"""An interrupt waits for a block that must end."""

import signal
import threading

import pytest

from lagpu.host.interrupt import uninterrupted


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_comes_behind_the_block():
    done = []

    def work():
        with uninterrupted():
            interrupt()
            with uninterrupted():
                interrupt()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_an_error_in_the_block_is_the_cause():
    def work():
        with uninterrupted():
            interrupt()
            raise ValueError("boom")

    with pytest.raises(KeyboardInterrupt) as seen:
        work()
    assert isinstance(seen.value.__context__, ValueError)
    with pytest.raises(ValueError, match="boom"), uninterrupted():
        raise ValueError("boom")


def test_what_ends_the_process_is_not_put_off(monkeypatch):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        with uninterrupted():
            interrupt()
            assert seen == [True]
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_is_not_interrupted_anyway():
    done = []

    def work():
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
