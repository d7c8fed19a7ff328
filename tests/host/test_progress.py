"""Progress: silent at first and without a terminal, then a line a task; a fake clock."""

import io
import re
import sys
import types

import pytest
import rich.console

from lagpu.algorithms import (
    betweenness_centrality,
    closeness_centrality,
    eccentricity,
    edge_betweenness_centrality,
)
from lagpu.generators import path
from lagpu.host import progress


@pytest.fixture
def seconds(monkeypatch):
    """A clock that a test turns."""
    now = [100.0]
    monkeypatch.setattr(progress, "clock", lambda: now[0])
    yield now
    assert progress._shown == []


@pytest.fixture
def terminal(monkeypatch):
    """A terminal: its text."""
    out = io.StringIO()
    console = rich.console.Console

    def made(**how):
        return console(file=out, force_terminal=True, width=100, height=25, color_system=None)

    monkeypatch.setattr(rich.console, "Console", made)
    return out


@pytest.fixture
def notebook(monkeypatch):
    """A notebook: the texts below a cell, in their order."""
    texts = []

    class Handle:
        def update(self, data, raw):
            texts.append(data["text/plain"])

    module = types.ModuleType("IPython.display")
    module.display = lambda data, raw, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(rich.console.Console, "is_jupyter", True, raising=False)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    return texts


def test_nothing_is_shown_in_the_first_seconds(seconds, terminal):
    with progress.bar("counting", 10) as done:
        for k in range(10):
            done(k)
            seconds[0] += 0.19
    assert terminal.getvalue() == ""


def test_the_share_done_and_the_time_left(seconds, terminal):
    with progress.bar("counting [red]", 10) as done:
        for k in range(10):
            done(k)
            seconds[0] += 1
        progress._shown[0]._bars.refresh()
    text = terminal.getvalue()
    assert "counting [red]" in text
    assert "90%" in text
    assert "0:00:01 0:00:10" in text  # one step is left, of one second each
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor


@pytest.mark.parametrize("where", ["terminal", "notebook"])
def test_the_times_of_a_long_description_are_not_cut(seconds, where, request):
    shown = request.getfixturevalue(where)
    with progress.bar("products: push_edge plus_times INT32, 64-bit indices" * 2, 5000) as done:
        for k in range(10):
            done(k)
            seconds[0] += 1
        progress._shown[0]._bars.refresh()
    text = shown.getvalue() if where == "terminal" else shown[-2]
    assert "products: push_edge plus" in text
    assert re.search(r"0% \d:\d\d:\d\d 0:00:", text)


def test_a_notebook_has_a_text_that_is_replaced(seconds, notebook):
    with progress.bar("counting", 10) as done:
        for k in range(10):
            done(k)
            seconds[0] += 1
    assert "counting" in notebook[0]
    assert "90%" in notebook[-2]
    assert notebook[-1] == ""
    assert all(len(text.splitlines()) <= 1 for text in notebook)


@pytest.mark.parametrize("why", ["no terminal", "variable", "another process", "a job"])
def test_it_is_silent(seconds, monkeypatch, request, why, capsys):
    if why != "no terminal":
        out = request.getfixturevalue("terminal")
    if why == "variable":
        monkeypatch.setenv("LAGPU_PROGRESS", "0")
    if why == "another process":
        monkeypatch.setattr(progress, "parent_process", lambda: object())
    if why == "a job":
        monkeypatch.setattr(progress, "launched", lambda: object())
    with progress.bar("counting", 10) as done, progress.bar("more", after=0):
        seconds[0] += 5
        done(3)
        done(4)
    assert (out.getvalue() if why != "no terminal" else "") == ""
    assert capsys.readouterr() == ("", "")


def test_tasks_in_tasks_have_a_line_each(seconds, terminal):
    with progress.bar("outer", after=0) as outer:
        seconds[0] += 1
        for k in range(2):
            with progress.bar(f"inner {k}", 4) as done:
                seconds[0] += 3
                done(2)
                assert len(progress._shown[0]._bars.tasks) == 2
                progress._shown[0]._bars.refresh()
        outer(what="renamed")
        progress._shown[0]._bars.refresh()
    text = terminal.getvalue()
    for shown in ("outer", "inner 0", "inner 1", "50%", "renamed"):
        assert shown in text


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_leaves_a_clean_terminal(seconds, terminal, error):
    with pytest.raises(error), progress.bar("counting", 4) as done:  # noqa: PT012
        seconds[0] += 3
        done(1)
        raise error
    assert progress._shown == []
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K") or "\x1b[?25h" in terminal.getvalue()
    with progress.bar("again", 4) as done:
        seconds[0] += 3
        done(2)
        progress._shown[0]._bars.refresh()
    assert "again" in terminal.getvalue()


# ------------------------------------------------------------------------------ who reports it
@pytest.fixture
def steps(monkeypatch):
    """What work notes: its texts, totals and steps."""
    noted = []

    class Noted:
        def __init__(self, what, total, after):
            self.what, self.total = what, total

        def __call__(self, done=None, *, what=None):
            noted.append((self.what, self.total, done))

        def close(self):
            noted.append((self.what, "closed"))

    monkeypatch.setattr(progress, "Task", Noted)
    return noted


def test_searches_from_many_sources(steps, backend):
    A = path(4, backend=backend)
    closeness_centrality(A)
    assert steps == [*(("closeness_centrality", 4, k) for k in range(1, 5)),
                     ("closeness_centrality", "closed")]  # fmt: skip
    steps.clear()
    betweenness_centrality(A, batch=3)
    found = [step for step in steps if step[0] == "betweenness" and step[1] != "closed"]
    assert found == [("betweenness", 4, 3), ("betweenness", 4, 4)] or backend.startswith("grid")


@pytest.mark.parametrize(
    ("search", "of"),
    [
        (closeness_centrality, "centrality.bfs_levels"),
        (eccentricity, "centrality.bfs_levels"),
        (edge_betweenness_centrality, "betweenness.count_paths"),
    ],
)
def test_the_line_is_removed_while_a_notebook_holds_the_traceback(steps, monkeypatch, search, of):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"lagpu.algorithms.{of}", interrupted)
    with pytest.raises(KeyboardInterrupt) as held:
        search(path(4, backend="cpu"))
    assert held.tb is not None
    assert steps[-1][1] == "closed"


def test_reading_a_file_and_an_interrupt_in_it(steps, save, monkeypatch):
    from lagpu.io import read, reading

    monkeypatch.setattr(reading, "PIECE", 20)
    text = "".join(f"{k} {k + 1}\n" for k in range(10))
    read(save(text, "a.txt"), backend="cpu")
    found = [step for step in steps if step[:2] == ("reading a.txt", len(text))]
    assert [done for *_, done in found] == sorted({done for *_, done in found})
    assert len(found) > 1
    assert found[-1][2] == len(text)

    def interrupted(*_):
        raise KeyboardInterrupt

    steps.clear()
    monkeypatch.setattr(reading, "table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(save(text, "a.txt"), backend="cpu")
    assert steps[-1] == ("reading a.txt", "closed")
