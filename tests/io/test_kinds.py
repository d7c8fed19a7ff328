"""A wrong kind of file is named as what it is, whatever its suffix; so are wrong arguments."""

import io
import pickle
import sys
import tarfile

import numpy as np
import pytest
from readback import edges, read_cpu

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io import read


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return out.getvalue()


def npy():
    out = io.BytesIO()
    np.save(out, np.arange(3))
    return out.getvalue()


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["graph", "a.txt", "a.csv", "a.graph", "a.npz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"%PDF-1.7\n", "is a PDF document"),
        (b"\x89PNG\r\n\x1a\n", "is a picture. Give the graph"),
        (b"BZh91AY&SY", "is truncated or damaged"),
        (b"\xfd7zXZ\x00\x00", "is truncated or damaged"),
        (b"\x28\xb5\x2f\xfd\x00", "is packed by zstd"),
        (tar(), r"\(a\) is empty"),
        (npy(), r"is one NumPy array \(\.npy\)"),
        (pickle.dumps([1], 4), "is a Python pickle, which is not read"),
        (pickle.dumps([1], 5), "is a Python pickle, which is not read"),
        (b"SQLite format 3\x00", "is an SQLite database"),
    ],
)
def test_first_bytes(save, name, content, message):
    with pytest.raises(FileFormatError, match=rf"read: {name} {message}"):
        read_cpu(save(content, name))


@pytest.mark.parametrize("name", ["graph", "a.txt", "a.csv"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<!DOCTYPE html>\n<html>0 1</html>\n", "is a web page. Download the file"),
        ('<?xml version="1.0"?>\n<gexf xmlns="x">\n', "is GEXF. Read it by NetworkX"),
        ('<?xml version="1.0"?>\n<svg>\n', "is XML, but no GraphML"),
        ("digraph G {\n a -> b\n}\n", "is a DOT file of Graphviz"),
        ("strict graph {\n a -- b\n}\n", "is a DOT file of Graphviz"),
        ("*Vertices 3\n*Arcs\n1 2\n", "is a Pajek file"),
        ('{"nodes": [], "links": []}\n', "is JSON. Use lagpu.io.from_edgelist"),
        ("[[0, 1], [1, 2]]\n", "is JSON"),
    ],
)
def test_first_words(save, name, content, message):
    with pytest.raises(FileFormatError, match=rf"read: {name} {message}"):
        read_cpu(save(content, name))


def test_long_texts_are_recognised_in_no_time(save):
    for text in (b" " * 70000 + b"0", b"<!-- -->" * 9000 + b"0", b"# \n" * 30000, b"c\n" * 30000):
        with pytest.raises(FileFormatError):
            read_cpu(save(text))


def test_standard_input(monkeypatch, tmp_path):
    (tmp_path / "piped").write_bytes(b"0 1\n1 2\n")
    with (tmp_path / "piped").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert edges(read_cpu("-")) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt", "a.el", "a.graph", "a.gr"])
def test_a_text_with_control_characters_is_no_graph(save, name):
    for text in (b"0,1\n\x01,2\n", b"p sp 2 1\na 1 2 \x01\n", b"0\t1\n\x01\t2\n"):
        with pytest.raises(FileFormatError, match=r"is binary\. Give one of"):
            read_cpu(save(text, name))


def test_what_is_no_path(tmp_path):
    with pytest.raises(InvalidValue, match=r"https://a/b.mtx is an address. Download it with"):
        read("https://a/b.mtx")
    with pytest.raises(InvalidValue, match=r"read: int is no path"):
        read(5)
