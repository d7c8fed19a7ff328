"""Names on a terminal: as they are, without markup, and with control characters written out."""

from __future__ import annotations

import html
import io
import os
import sys
from pathlib import Path

import pytest
import rich.console
from rich.console import Console
from rich.table import Table

from lagpu import Vector, algorithms, errors
from lagpu.algorithms import bfs_levels
from lagpu.cli.console import busy, console, print_written

EVIL = "\x1b[31m\x1b]0;title\x07\x9b2J\r[bold]:smile:[/x]"
SHOWN = r"\x1b[31m\x1b]0;title\x07\x9b2J\r[bold]:smile:[/x]"
FILE, SHOWN_FILE = EVIL.replace("/", ""), SHOWN.replace("/", "")
STEERS = [*map(chr, range(9)), *map(chr, range(11, 32)), *map(chr, range(127, 160))]


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """The name of a graph's file that would clear a terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text("0 1\n1 0\n1 2\n2 1\n")
    return FILE


def is_plain(text):
    return not any(c in text for c in STEERS) and text.encode()


def test_plain_text_stays():
    assert errors.plain("a\tb\nç → 漢 \N{GRINNING FACE}") == "a\tb\nç → 漢 \N{GRINNING FACE}"
    assert errors.plain(EVIL) == SHOWN
    assert is_plain(errors.plain("".join(STEERS) + os.fsdecode(b"\xff")))


def test_errors_are_plain():
    assert str(errors.FileMissing(f"read: {EVIL}")) == f"read: {SHOWN}"
    assert str(errors.CycleFound(f"order: {EVIL}", [1])) == f"order: {SHOWN}"


ARGS = {
    "info": ["info"],
    "bfs": ["bfs", "-s", 0, "-b", "cpu"],
    "pagerank": ["pagerank", "-b", "cpu"],
    "crosscheck": ["crosscheck", "bfs", "--backends", "cpu,sim"],
    "bench": ["bench", "-b", "cpu", "--roots", 1],
}


@pytest.mark.parametrize("name", ARGS)
def test_a_file_s_name(run, evil, name):
    code, out, err = run(*ARGS[name], evil)
    assert (code, err) == (0, "")
    assert is_plain(out)
    if name in ("info", "bfs", "pagerank"):
        assert SHOWN_FILE in out
    if name == "bench":  # in a cell, where it is wrapped
        assert r"\x1b" in out


@pytest.mark.parametrize("name", [EVIL, os.fsdecode(b"\xff.txt")])
def test_a_file_s_name_in_an_error(refused, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_plain(refused("info", name))
    assert is_plain(refused("check", "path:3", "-s", 0, "--levels", name))
    assert is_plain(refused("generate", "path:3", name + ".bmp"))
    assert is_plain(refused(name))
    assert is_plain(refused("info", "path:3", "--" + name))


def test_a_name_that_is_not_utf_8(run, tmp_path):
    file = tmp_path / os.fsdecode(b"\xff.txt")
    try:
        file.write_text("0 1\n1 0\n")
    except OSError:
        pytest.skip("file names are UTF-8 here")
    code, out, err = run("info", file)
    assert (code, err) == (0, "")
    assert r"\udcff.txt" in out


def test_a_table_has_no_markup(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    table = Table("[red]head", title=EVIL)
    table.add_row(EVIL)
    console().print(table)
    assert is_plain(out.getvalue())
    assert "[red]head" in out.getvalue()
    assert "[/x]" in out.getvalue()


def test_progress_on_a_terminal(monkeypatch):
    """All that it writes but for its own sequences, which move the cursor and colour."""
    out = io.StringIO()

    def terminal(**_):
        return Console(file=out, force_terminal=True, width=200)

    monkeypatch.setattr(rich.console, "Console", terminal)
    with busy(f"reading {EVIL}"):
        pass
    assert "\x1b]0;title" not in out.getvalue()
    assert SHOWN in out.getvalue()


def test_the_crosscheck_of_a_function_with_such_a_name(run, monkeypatch):
    def named(A, source):
        return bfs_levels(A, source)

    named.__name__ = EVIL
    monkeypatch.setattr(algorithms, "bfs_levels", named)
    code, out, _ = run("crosscheck", "bfs", "path:3", "--backends", "cpu,sim")
    assert code == 0
    assert SHOWN in out.replace("\n", "")
    assert is_plain(out)


def test_a_vector_s_name_in_an_error():
    u, v = Vector(int, 3, backend="cpu", name=EVIL), Vector(int, 4, backend="cpu")
    with pytest.raises(errors.DimensionMismatch) as error:
        u << v
    assert is_plain(str(error.value))


# ------------------------------------------------------------------------------------- pages

MARKUP = "<img src=x onerror=alert(1)>&quot;'.txt"


def test_a_file_s_name_is_no_markup_on_a_page(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / MARKUP).write_text("0 1\n1 0\n")
    args = ["-s", 0, "-b", "cpu", "--trace", "trace.html", "--step", "step.html"]
    assert run("bfs", MARKUP, *args)[0] == 0
    for page in ("trace.html", "step.html"):
        text = (tmp_path / page).read_text("utf-8")
        assert "<img" not in text
        assert html.escape(MARKUP) in text


@pytest.mark.parametrize("size", ["", "1", "3"])
def test_a_process_of_a_job_has_no_terminal(monkeypatch, size):
    """Open MPI gives it one, and what it prints there goes to a pipe or a file."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", size)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    found = console()
    assert found.is_terminal is (size != "3")
    assert (found.width == 140) is (size == "3")


@pytest.mark.parametrize("rank", [0, 2])
def test_the_first_process_of_a_job_says_what_was_written(monkeypatch, capsys, rank):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(rank))
    for as_json in (False, True):
        print_written({"--trace": Path("trace.html"), "--step": None}, as_json=as_json)
    said = "--trace: wrote trace.html\n"
    assert capsys.readouterr() == (("", "") if rank else (said, f"lagpu: {said}"))
