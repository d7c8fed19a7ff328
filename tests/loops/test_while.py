"""A plain ``while q.nvals:`` over lagpu statements runs as one kernel, as a `loop` does."""

import contextlib
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from batches import batches_at_once, launches, place  # noqa: F401
from hypothesis import strategies as st
from strategies import for_all
from test_purity import load

import lagpu
from lagpu import BOOL, INT32, INT64, Matrix, Scalar, Vector, semiring
from lagpu.backends.gpu.fused.loop import KernelLoop
from lagpu.backends.gpu.fused.program import batch as program_batch
from lagpu.core import recorder
from lagpu.errors import BackendMismatch, EmptyObject, OutOfMemory
from lagpu.generators import kronecker, path, road

SEARCH = "grid search: the body is a search from one frontier"
GENERATED = "generated loop: "
LEVELS = "levels(q.S) << depth"
NEXT = "q(~levels.S, replace=True) << semiring.any_pair(q @ A)"
WHILE = f"""\
depth = 0
while q.nvals:
    {LEVELS}
    {NEXT}
    depth += 1
"""
AROUND = textwrap.indent(WHILE, "    ")


def edited(*edits):
    """Return `WHILE` with some of its words replaced by others."""
    text = WHILE
    for before, after in zip(edits[::2], edits[1::2], strict=True):
        assert before in text
        text = text.replace(before, after)
    return text


def module_of(folder, body, arguments="A, q, levels"):
    """Return the module with ``run``, a function with these lines."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return load(folder / "body.py", f"def run({arguments}):\n{lines}\n")


def start(A, source=0, dtype=INT32):
    q, levels = Vector(BOOL, A.nrows, like=A), Vector(dtype, A.nrows, like=A)
    q[source] = True
    return q, levels


def same(run, place, n=40, source=0):
    """Run on a backend and on cpu; return how, after the results are found to be equal."""
    outcomes = []
    for of in (place, "cpu"):
        A = road(7, backend=of) if n == 49 else path(n, backend=of)
        q, levels = start(A, source)
        A.backend.last_loop = ""
        returned = run(A, q, levels)
        if isinstance(returned, Vector):
            returned = [x.tolist() for x in returned.to_coo()]
        outcomes.append((returned, *([x.tolist() for x in v.to_coo()] for v in (q, levels))))
        if of is place:
            how = A.backend.last_loop
    assert outcomes[0] == outcomes[1]
    return how


FIRST = (f"{NEXT}\n    depth += 1", NEXT, LEVELS, f"depth += 1\n    {LEVELS}")
FUSED = {
    "a search": (WHILE, SEARCH),
    "compared with 0": (edited("nvals", "nvals > 0"), SEARCH),
    "not 0": (edited("nvals", "nvals != 0"), SEARCH),
    "from -1": (edited("depth = 0", "depth = -1", *FIRST), SEARCH),
    "counted first": (edited(*FIRST), SEARCH),
    "from 5": (edited("depth = 0", "depth = 5"), SEARCH),
    "by 3, which may not fit": (edited("+= 1", "+= 3"), "eager: what it computes"),
    "down": (edited("depth = 0", "depth = 50", "+= 1", "-= 1"), GENERATED),
    "without a counter": (edited("depth = 0\n", "", "<< depth\n", "<< 1\n", "    depth += 1\n", ""),
                          GENERATED),
    "an unread counter": (edited("<< depth", "<< 1"), GENERATED),
    "twice, each with a counter of its own": (
        f"{WHILE}q[2] = True\nlevels.clear()\n{WHILE.replace('depth', 'd')}", SEARCH),
    "inside another loop": (
        f"for source in (3, 0, 7):\n    levels.clear()\n    q[source] = True\n{AROUND}", SEARCH),
    "a view, an if and a line in place": (
        edited("depth = 0", "n, T = 3, A.T", "<< depth", "<< 1\n    if n > 2: levels(q.S) << 4",
               "@ A", "@ T", "depth += 1", "levels += levels"), GENERATED),
    "inside a with": (
        f"import contextlib\nwith contextlib.nullcontext():\n{AROUND}    return levels", SEARCH),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_it_runs_as_a_loop_does(place, tmp_path, name):
    body, how = FUSED[name]
    run = module_of(tmp_path, body).run
    for n, source in ((40, 0), (40, 3), (9, 0), (49, 5), (49, 5)):
        found = same(run, place, n, source)
        assert found.startswith(how), (n, source)
    if how.startswith("eager"):
        return
    A = path(40, backend=place)
    run(A, *start(A))
    with launches(place) as names:
        run(A, *start(A))
    loops = sum(x in ("grid_search", "program") for x in names)
    assert loops == body.count("while") * (3 if "for source" in body else 1)
    assert len(names) < 12  # as a level has one or more


PLAIN = {
    "a break": f"{WHILE}    if depth == 3:\n        break",
    "a list": f"seen = []\n{WHILE}    seen.append(q.nvals)\nreturn seen",
    "a counter that is read later": f"{WHILE}return depth",
    "a counter that locals reads": f"{WHILE}return locals()['depth']",
    "a counter that another function reads": f"get = lambda: depth\n{WHILE}return get()",
    "a counter that an error shows": f"try:\n{AROUND}finally:\n    A.name = str(depth)",
    "a counter that goes on": (
        f"depth = 0\nfor source in (3, 0):\n    q[source] = True\n{AROUND}"
    ).replace("    depth = 0\n", ""),
    "a counter that is set now and then": (
        f"depth = 0\nfor source in (3, 0):\n    q[source] = True\n{AROUND}"
    ).replace("    depth = 0\n", "    if source == 3:\n        depth = 7\n"),
    "a counter of the module": f"global depth\n{WHILE}",
    "a counter that is given": f"def inner(depth):\n{AROUND}inner(4)".replace(
        "    depth = 0\n", ""
    ),
    "an else": f"{WHILE}else:\n    levels[1] = 99",
    "reads on both sides": f"{WHILE}    levels(q.S) << depth",
    "a float": edited("depth = 0", "depth = 0.0"),
    "two counters": f"more = 5\n{edited('<< depth', '<< depth + more')}    more += 2",
    "a counter advanced twice": f"{WHILE}    depth += 1",
    "a counter advanced under an if": f"n = 3\n{edited('    depth', '    if n > 2: depth')}",
    "a product of itself": edited("depth = 0", "depth = 1", "+= 1", "*= 2"),
    "a bound": edited("nvals", "nvals > 1 or depth < 4"),
    "another number": f"q[3] = True\n{edited('nvals', 'nvals > 1')}",
    "the other way round": f"q[3] = True\n{edited('q.nvals', '0 < q.nvals')}",
    "another condition": f"q[3] = True\n{edited('q.nvals', 'not q.nvals == 0')}",
    "two counts": (
        f"q[3] = True\nm = levels.dup()\nm[8] = 7\n{edited('nvals', 'nvals > m.nvals > 0')}"
    ),
    "a vector that is bound again": f"{WHILE}    q = q.dup()",
    "a text": f'seen = f"""\nwhile {{q.nvals}}"""\n{edited("q.nvals", "(q).nvals and seen")}',
    "a test of several lines": edited("q.nvals", "(\n    q.nvals)"),
    "a line that writes nothing": f"{WHILE}    q.dup()",
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_no_loop_is_left_to_python(place, tmp_path, name):
    """The results are those of Python, at whatever length the loop has."""
    run = module_of(tmp_path, PLAIN[name]).run
    for n, source in ((20, 0), (9, 1), (25, 0), (25, 0)):
        assert same(run, place, n, source) == "", (n, source)


def test_a_loop_whose_line_asks_for_a_count_is_none(place, tmp_path):
    """The record of a loop is not that of a ``while``, however often its line asks for `nvals`."""
    run = module_of(
        tmp_path, f"for depth in loop(until_empty=q, times=q.nvals):\n    {LEVELS}\n    {NEXT}"
    ).run
    A = path(9, backend=place)
    for _ in range(70):  # a line that was none is looked at again after 64 times
        q, levels = start(A)
        q[8] = True
        run(A, q, levels)
        assert levels.to_coo()[0].tolist() == [0, 1, 7, 8]


@pytest.mark.parametrize("hot", [1, 3, 7])
def test_it_runs_on_from_where_python_is(place, tmp_path, monkeypatch, hot):
    monkeypatch.setattr(recorder, "HOT", hot)
    run = module_of(tmp_path, WHILE).run
    for k, n in enumerate((20, 20, 30, 5, hot, 20)):
        how = same(run, place, n)
        assert how.startswith((SEARCH, GENERATED)) or (k > 0 and n <= hot), (n, how)


def test_a_body_is_read_from_its_record(place, tmp_path, monkeypatch):
    """Only where its objects are alike, and the counter begins with the same number."""
    opened, inner = [], recorder.Recorder.open
    monkeypatch.setattr(recorder.Recorder, "open", lambda self: (opened.append(1), inner(self))[1])
    run = module_of(tmp_path, edited("depth = 0", "depth = begin"), "A, q, levels, begin").run
    for dtype, begin, came in ((INT32, 0, 1), (INT32, 0, 1), (INT64, 0, 2), (INT64, 3, 3)):
        A = path(40, backend=place)
        q, levels = start(A, dtype=dtype)
        run(A, q, levels, begin)
        assert levels.to_dense().tolist() == [begin + k for k in range(40)]
        assert len(opened) == came


def test_a_variable_without_a_value_is_an_error_as_ever(place, tmp_path):
    """Not even where a module has one of its name."""
    text = f"if bound:\n    marks = levels\n{edited('levels', 'marks')}"
    module = module_of(tmp_path, text, "A, q, levels, bound")
    A = path(10, backend=place)
    module.marks = start(A)[1]
    for bound in (False, True, False):
        q, levels = start(A)
        with contextlib.nullcontext() if bound else pytest.raises(UnboundLocalError):
            module.run(A, q, levels, bound)
        assert (levels.nvals, module.marks.nvals) == (10 * bound, 0)


def test_who_looks_on_sees_each_statement(place, tmp_path):
    run = module_of(tmp_path, WHILE).run
    A = path(12, backend=place)
    run(A, *start(A))
    with lagpu.trace() as t:
        run(A, *start(A))
    assert len([row for row in t.rows if "any.pair" in str(row) or "any_pair" in str(row)]) == 12
    looks = []
    for look in (lagpu.eager, lagpu.fused, traced):
        place.last_loop = ""
        with look():
            run(A, *start(A))
        looks.append(place.last_loop)
    assert looks == ["", "", ""]
    run(A, *start(A))
    assert place.last_loop == SEARCH


@contextlib.contextmanager
def traced():
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        yield
    finally:
        sys.settrace(before)


def test_a_loop_inside_a_recorded_body_is_none(place):
    """Its condition ends the recording, and then Python runs it."""
    A = path(9, backend=place)
    q, levels = start(A)
    for _ in lagpu.loop(times=1):
        levels(q.S) << 3
        while q.nvals:
            q(~levels.S, replace=True) << semiring.any_pair(q @ A)
            levels(q.S) << 4
    assert levels.to_dense().tolist() == [3] + [4] * 8


@pytest.mark.parametrize("again", [False, True])
def test_without_memory_for_the_kernel_python_goes_on(place, tmp_path, monkeypatch, again):
    run = module_of(tmp_path, FUSED["down"][0]).run
    if again:
        assert same(run, place).startswith(GENERATED)
    real, ran = KernelLoop.run, []

    def full(self, log=None):
        ran.append(self.name)
        if self.name == "generated loop":
            raise OutOfMemory("a kernel: no room. Free some.")
        return real(self, log)

    monkeypatch.setattr(KernelLoop, "run", full)
    assert same(run, place) == ""
    assert ran[0] == "generated loop"
    assert ran.count("generated loop") == 2  # of 40 times, at the top and at the bottom
    A, place.last_loop = path(9, backend=place), "of another loop"
    recorder.queue.forget()
    run(A, *start(A))
    assert (place.last_loop, ran.count("generated loop")) == ("of another loop", 4)


def test_a_kernel_is_compiled_in_the_background(place, tmp_path, monkeypatch):
    """Until it is there Python runs the loop; of a kernel that is there nothing is compiled."""
    other = module_of(tmp_path, FUSED["down"][0]).run
    assert same(other, place).startswith(GENERATED)  # all kernels but one are there
    run = module_of(tmp_path, edited("<< depth", "<< 7 - depth")).run
    monkeypatch.setattr(recorder, "HOT", 10**9)
    assert same(run, place) == ""
    for name, value in (("AFTER", 10**9), ("WAITS", False)):
        monkeypatch.setattr(program_batch, name, value)
    monkeypatch.setattr(recorder, "HOT", 0)
    monkeypatch.setenv("LAGPU_CACHE_DIR", str(tmp_path))
    begun, compile_beside = [], place.device.compile_beside

    def noted(kernel):
        begun.append(kernel.name)
        return compile_beside(kernel)

    monkeypatch.setattr(place.device, "compile_beside", noted)
    assert same(run, place) == ""
    assert begun == ["program"]
    while not same(run, place).startswith(GENERATED):
        time.sleep(0.01)
    assert begun == ["program"]
    assert sum(path.suffix in (".so", ".cubin") for path in tmp_path.iterdir()) == 1


def test_an_error_of_the_body_leaves_what_python_would(place, tmp_path):
    body = (
        "while q.nvals:\n    levels(q.S) << 2\n    q(~levels.S, replace=True) << other.apply('abs')"
    )
    run = module_of(tmp_path, body, "A, q, levels, other").run
    A = path(9, backend=place)
    q, levels = start(A)
    with pytest.raises(BackendMismatch):
        run(A, q, levels, Vector(BOOL, 9, backend="cpu"))
    assert (levels.to_coo()[1].tolist(), q.nvals) == ([2], 1)


def test_an_empty_scalar_is_an_error(place, tmp_path):
    body = edited(
        "<< depth", "<< s", "depth += 1", "s << levels.select('valuegt', 5).reduce('max')"
    )
    run = module_of(tmp_path, body, "A, q, levels, s").run
    A = path(9, backend=place)
    q, levels = start(A)
    s = Scalar(INT32)
    s.value = 4
    with pytest.raises(EmptyObject):
        run(A, q, levels, s)
    assert levels.to_coo()[1].tolist() == [4]


def test_rows_of_a_matrix(place, tmp_path):
    run = module_of(tmp_path, WHILE).run
    found = []
    for of in (place, "cpu"):
        A = kronecker(5, backend=of)
        q = Matrix.from_coo([0, 1, 2], [1, 4, 9], True, nrows=3, ncols=32, backend=of)
        levels = Matrix(INT32, 3, 32, backend=of)
        run(A, q, levels)
        found.append([x.tolist() for x in levels.to_coo()])
    assert found[0] == found[1]
    assert "search" in place.last_loop


@pytest.mark.parametrize(
    "case", ["vertex", "vertices", "truth", "wide", "far", "after", "times", "two"]
)
def test_levels_that_do_not_begin_with_0(place, tmp_path, case):
    """A grid search adds the number, from one vertex on; else a loop is generated."""
    text = "for k in loop(until_empty=q, times=TIMES):\n    levels(q.S) << k + ADDED\n    " + NEXT
    if case == "after":
        text = text.replace("    levels(q.S) << k + ADDED\n", "") + "\n    levels(q.S) << k + ADDED"
    if case == "two":
        text = text.replace("    q(~", "    more(q.S) << k\n    q(~")
    added = 2**31 - 60 if case == "far" else 3
    text = text.replace("ADDED", str(added)).replace("TIMES", "4" if case == "times" else "None")
    run = module_of(tmp_path, text, "A, q, levels, more").run
    dtype = {"truth": BOOL, "wide": INT64}.get(case, INT32)
    for make, source in ((path, 0), (path, 5), (road, 3), (road, 3), (kronecker, 1)):
        outcomes = []
        for of in (place, "cpu"):
            A = (
                make(5, backend=of)
                if make is kronecker
                else make(49 if make is path else 7, backend=of)
            )
            q, levels = start(A, source, dtype)
            if case == "vertices":
                q[2] = True
            if make is road:  # is left as it is, and keeps the search away
                levels[30] = 1
            more = Vector(INT32, A.nrows, like=A)
            run(A, q, levels, more)
            outcomes.append([[x.tolist() for x in v.to_coo()] for v in (q, levels, more)])
        assert outcomes[0] == outcomes[1], (make, source)
        hows = {"vertices": GENERATED, "after": GENERATED, "two": GENERATED, "truth": "eager: "}
        assert place.last_loop.startswith(hows.get(case, "grid search: "))


@for_all(cpu=1, compiled=24)
def test_drawn_bodies(backend, draw):
    """Loops with and without lines that end them early, read a value, or write another vector."""
    if backend.capabilities.batches is None:
        pytest.skip("only devices run loops of Python as one kernel")
    lines = [
        *(
            "levels(q.S) << depth",
            "levels(q.S) << depth * 2 + 1",
            "total(accum=binary.plus) << depth",
        ),
        *("total << total.ewise_add(levels, binary.plus)", "seen.append(total.nvals)"),
        *("seen.append(depth)", "if depth == 2:\n    break", "if len(seen) > 3:\n    q.clear()"),
        *("p = q.dup()", "total(~q.S) << 3", "s << total.reduce('plus')", "depth += 1"),
    ]
    before = draw(st.lists(st.sampled_from(lines), max_size=4), label="before")
    after = draw(st.lists(st.sampled_from(lines[:9]), max_size=2), label="after")
    hot = draw(st.integers(0, 3), label="hot")
    tail = draw(st.sampled_from(("return seen", "return seen, depth")), label="tail")
    body = textwrap.indent(
        "\n".join((*before, "levels(q.S) << depth", NEXT, *after, "depth += 1")), "    "
    )
    seeds = draw(st.lists(st.integers(0, 48), min_size=1, max_size=3), label="sources")
    with tempfile.TemporaryDirectory() as folder, batches_at_once():
        recorder.HOT = hot
        text = f"seen, depth = [], 0\nwhile q.nvals:\n{body}\n{tail}"
        run = module_of(Path(folder), text, "A, q, levels, total, s").run
        for source in seeds:
            outcomes = []
            for of in (backend, "cpu"):
                A = road(7, backend=of)
                q, levels = start(A, source)
                total = Vector.from_dense(np.arange(49), dtype=INT64, backend=of)
                s = Scalar(INT64)
                returned = run(A, q, levels, total, s)
                left = [[x.tolist() for x in v.to_coo()] for v in (q, levels, total)]
                outcomes.append((returned, s.get(), *left))
            assert outcomes[0] == outcomes[1]
