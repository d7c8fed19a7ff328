"""The limit of a file: by its size, by a variable, none for a pipe."""

import io
import math
import os

import pytest

from lagpu.errors import InvalidValue, LimitExceeded
from lagpu.host import memory
from lagpu.io import opening


@pytest.fixture
def opened(save, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    return save("0 1\n", "a.txt")


def budget_of(source):
    with opening.opened(source) as found:
        return found.budget


def test_a_small_file_has_a_gigabyte(opened):
    budget = budget_of(opened)
    assert budget[:3] == ("a.txt", 4, 10**9)
    budget.require(10**9, "its text")
    with pytest.raises(LimitExceeded, match=r"read: a\.txt, its text: needs 1\.1 GB, more than"):
        budget.require(10**9, "its text", held=10**8)


def test_a_large_file_has_a_hundred_times_its_size(tmp_path):
    with (tmp_path / "large").open("wb+") as stream:
        stream.truncate(10**8)
        assert budget_of(stream).limit == 10**10
    assert budget_of(tmp_path / "large").limit == 10**10
    assert budget_of(io.BytesIO(bytes(10**8))).limit == 10**10
    assert budget_of(io.StringIO("0 1\n")).limit == 10**9


@pytest.mark.parametrize(
    ("text", "limit"), [("16e9", 16e9), ("5", 5), ("inf", math.inf), ("", 1e9)]
)
def test_the_variable_replaces_the_limit(opened, monkeypatch, text, limit):
    monkeypatch.setenv("LAGPU_READ_LIMIT", text)
    assert budget_of(opened).limit == limit


@pytest.mark.parametrize("text", ["much", "0", "-1", "nan"])
def test_a_variable_that_is_no_number_of_bytes(opened, monkeypatch, text):
    monkeypatch.setenv("LAGPU_READ_LIMIT", text)
    with pytest.raises(InvalidValue, match=rf"LAGPU_READ_LIMIT: '{text}' is not a number of bytes"):
        budget_of(opened)


def test_a_pipe_has_no_limit():
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        assert budget_of(stream).limit == math.inf
