"""The shares of a text are whole lines, each line once, in the order of the pieces."""

import gzip

import pytest

from lagpu.errors import FileFormatError
from lagpu.io import reading, slices
from lagpu.io.slices import Text

LINES = [b"x" * (k % 7) + b"%d\n" % k for k in range(60)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(reading, "PIECE", 50)
    monkeypatch.setattr(slices, "_BLOCK", 5)


def read(path, start, packed, count):
    text = Text(path, start, packed, None)
    found = [x for piece in range(count) for x in text.texts([piece], count)]
    assert sorted(found) == sorted(text.texts(range(count), count))
    assert len({key for _, key, _ in found}) == len(found)
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 80])
@pytest.mark.parametrize("skipped", [0, 1, 30])  # more than a piece of the text
@pytest.mark.parametrize("end", [b"", b"last"])
@pytest.mark.parametrize("packed", [False, True])
def test_each_line_is_in_one_share(tmp_path, count, skipped, end, packed):
    path, data = tmp_path / "a.txt", b"".join(LINES) + end
    path.write_bytes(gzip.compress(data) if packed else data)
    start = len(b"".join(LINES[:skipped]))
    found = read(path, start, packed, count)
    in_order = b"".join(text for _, _, text in sorted(found, key=lambda x: x[1]))
    assert in_order == data[start:] + (b"\n" if end else b"")
    assert all(text.endswith(b"\n") for _, _, text in found)
    assert all(len(text) <= 2 * reading.PIECE for _, _, text in found)
    if not packed:
        by_piece = [b"".join(t for p, _, t in found if p == piece) for piece in range(count)]
        assert max(map(len, by_piece)) <= (len(data) - start) / count + 20


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_too_long(tmp_path, packed):
    path, data = tmp_path / "a.txt", b"1 2\n" + b"1" * 400 + b"\n" + b"1 2\n" * 9
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(FileFormatError, match="a line that is longer than 50 bytes"):
        read(path, 0, packed, 1)


def test_a_packed_file_that_is_cut(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"".join(LINES) * 50)[:-40])
    with pytest.raises(FileFormatError, match="truncated or damaged"):
        read(path, 0, True, 2)


def test_a_file_that_becomes_shorter(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"".join(LINES))
    text = Text(path, 0, False, None)
    path.write_bytes(b"".join(LINES[:3]))
    with pytest.raises(FileFormatError, match="became shorter"):
        list(text.texts([0], 1))
