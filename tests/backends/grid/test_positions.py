"""A set of vertices is received as it was sent, and a message is as short as it can be."""

import numpy as np
import pytest

from lagpu.backends.grid import exchange
from lagpu.backends.grid.exchange import FORMS, form_of, length, packed, summed, unpacked
from lagpu.backends.protocol import Sent


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 1000])
def test_what_was_packed(size, form):
    rng = np.random.default_rng(size)
    for count in {0, min(1, size), size // 32, min(size // 32 + 1, size), size}:
        vertices = rng.permutation(size)[:count]
        message = packed(vertices, size, form)
        assert message.dtype == np.uint32
        assert unpacked(message, size, form).tolist() == sorted(vertices.tolist())
        words = -(-size // 32)
        length = {"shorter": min(count, words), "list": count, "bitmap": words}[form]
        assert len(message) == length
        if form == "shorter" and size:
            assert form_of(message, size, form) == ("list" if count < words else "bitmap")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("used", [0, 1, 32, 33, 200, 320])
def test_vertices_without_edges_need_no_bits(form, used):
    """Unless one of them is to be sent, as a source may be."""
    size, words = 320, -(-used // 32)
    rng = np.random.default_rng(used)
    for most in {used, size}:
        for count in {0, min(1, most), min(words, most), most}:
            vertices = rng.permutation(most)[:count]
            message = packed(vertices, size, form, used)
            assert unpacked(message, size, form, used).tolist() == sorted(vertices.tolist())
            if form_of(message, size, form, used) == "bitmap" and most == used:
                assert len(message) == words


def test_messages_by_form():
    given = [("list", 8), ("bitmap", 16), ("list", 0), ("list", 4)]
    assert summed(given) == (Sent("bitmap", 1, 16), Sent("list", 2, 12))


@pytest.mark.parametrize("count", [3, 60])
def test_more_positions_than_four_bytes_can_number(count, monkeypatch):
    """Numbers and words have eight bytes then, and the length still decides which they are."""
    assert packed(np.array([2**33]), 2**34).dtype == np.uint64
    assert unpacked(packed(np.array([2**33, 5]), 2**34), 2**34).tolist() == [5, 2**33]
    monkeypatch.setattr(exchange, "_NARROW", 100)
    numbers = np.random.default_rng(1).permutation(700)[:count]
    message = packed(numbers, 700)
    assert (message.dtype, len(message)) == (np.uint64, min(count, 11))
    assert unpacked(message, 700).tolist() == sorted(numbers.tolist())


@pytest.mark.parametrize("size", [1, 33, 1000])
def test_the_length_is_known_beforehand(size):
    for count in range(0, size + 1, 7):
        assert length(count, size) == packed(np.arange(count), size).nbytes
