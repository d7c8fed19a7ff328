"""A set of vertices is received as it was sent, and a message is as short as it can be."""

import numpy as np
import pytest

from lagpu.backends.grid import exchange
from lagpu.backends.grid.exchange import FORMS, length, packed, unpacked


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 1000])
def test_what_was_packed(size, form):
    rng = np.random.default_rng(size)
    for count in {0, min(1, size), size // 32, min(size // 32 + 1, size), size}:
        vertices = rng.permutation(size)[:count]
        message = packed(vertices, size, form)
        assert unpacked(message).tolist() == sorted(vertices.tolist())
        bits = -(-(int(vertices.max(initial=-1)) + 1) // 8)  # up to the last vertex
        nbytes = {"shorter": min(4 * count, bits), "list": 4 * count, "bitmap": bits}[form]
        assert message.nbytes == nbytes <= (length(count, size) if form == "shorter" else 10**9)
        is_list = form == "list" or (form == "shorter" and 4 * count < bits)
        assert message.dtype == (np.uint32 if is_list else np.uint8)


@pytest.mark.parametrize("count", [3, 60])
def test_more_positions_than_four_bytes_can_number(count, monkeypatch):
    """Numbers have eight bytes then."""
    assert packed(np.array([2**33]), 2**34, "list").dtype == np.uint64
    assert unpacked(packed(np.array([2**33, 5]), 2**34)).tolist() == [5, 2**33]
    monkeypatch.setattr(exchange, "_NARROW", 100)
    numbers = np.random.default_rng(1).permutation(700)[:count]
    message = packed(numbers, 700)
    assert message.dtype == (np.uint64 if count == 3 else np.uint8)
    assert unpacked(message).tolist() == sorted(numbers.tolist())
