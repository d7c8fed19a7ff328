"""Which bodies may be recorded is read from the source; what is not proved runs eagerly."""

import ast
import functools
import importlib.util
import linecache
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from loop_names import GENERATED, is_fused

from lagpu import INT64, Matrix, Vector, binary, loop, semiring
from lagpu.core.recorder import current_recorder
from lagpu.loops import purity

HEAD = "import lagpu\nfrom lagpu import binary, loop, semiring\n\n\n"


def load(path, source):
    path.write_text(HEAD + source, "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    linecache.checkcache(str(path))
    return module


def start(place):
    A = Matrix.from_coo([0, 1, 2], [1, 2, 0], 2, INT64, nrows=3, ncols=3, backend=place)
    return A, Vector.from_coo([0], 1, size=3, backend=place)


def how(function, place, *more):
    A, x = start(place)
    result = function(A, x, *more)
    return place.last_loop, x.to_coo()[1].tolist(), result


BODIES = {
    "a counter that another loop assigns before it is read": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)\n"
        "for i in range(3):\n    x << x.apply(binary.plus, right=i)",
        GENERATED,
        [7],
    ),
    "a nested loop": (
        "for i in loop(times=2):\n    for j in loop(times=2):\n"
        "        x << semiring.plus_times(x @ A)",
        GENERATED,  # the inner one
        [16],
    ),
    "a comparison": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)\n"
        "    x << lagpu.select.value(x < 4)",
        GENERATED,
        [],
    ),
    "a line after one in place": (
        "seen = []\nfor i in loop(times=2):\n    x += x\n    seen.append(1)\nx << x * len(seen)",
        "is not a w << call statement",
        [8],
    ),
    "an else clause": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)\n"
        "else:\n    x << x.apply(binary.plus, right=1)",
        "has an else",
        [5],
    ),
    "a new vector": (
        "for i in loop(times=2):\n    y = semiring.plus_times(x @ A).new()\n    x << y",
        "line 7 is not a w << call statement; make objects before the loop",
        [4],
    ),
    "new inside a statement": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A).new()",
        GENERATED,
        [4],
    ),
    "a branch on a value": (
        "for i in loop(times=2):\n    if x.nvals:\n        x << semiring.plus_times(x @ A)",
        "an if tests x.nvals, which may change",
        [4],
    ),
    "a branch inside an expression": (
        "for i in loop(times=2):\n    x << semiring.plus_times((x if i else x) @ A)",
        "line 7 tests what may change",
        [4],
    ),
    "a choice that is always the same": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A if A.nrows > 5 else A @ x)",
        GENERATED,
        [4],
    ),
    "the size of an object": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A) * A.nrows",
        GENERATED,
        [36],
    ),
    "two targets": (
        "for i in loop(times=2):\n    x[1] = x[2] = 5",
        "line 7 is not a w << call statement",
        [1, 5, 5],
    ),
    "a break": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)\n"
        "    if (x + x).nvals:\n        break",
        "line 9 is not a w << call statement; with loop(until=s) a scalar ends the loop",
        [2],
    ),
    "the counter as an index": (
        "for i in loop(times=2):\n    x[i] << 5",
        "line 7 has the counter i as an index",
        [5, 5],
    ),
    "a walrus": (
        "for i in loop(times=2):\n    x << (y := semiring.plus_times(x @ A))",
        "an assignment expression",
        [4],
    ),
    "an early return": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)\n    return i",
        "is not a w << call statement",
        [2],
    ),
    "a continue": (
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)\n    continue",
        "is not a w << call statement",
        [4],
    ),
    "a wrapped loop": (
        "for i, k in enumerate(loop(times=2)):\n    x << semiring.plus_times(x @ A)",
        "",
        [4],
    ),
    "a comprehension": (
        "[x.update(semiring.plus_times(x @ A)) for i in loop(times=2)]",
        "not the iterable of exactly one for",
        [4],
    ),
    "two loops with one counter": (
        "for i in loop(times=2):\n    x << i\n    x << semiring.plus_times(x @ A)\n"
        "for i in loop(times=2):\n    x << semiring.plus_times(x @ A)",
        GENERATED,
        [8, 8, 8],
    ),
    "a counter read in a function of another loop": (
        "for i in range(2):\n    last = lambda: i\n"
        "for i in loop(times=3):\n    x << semiring.plus_times(x @ A)\n"
        "x << x.apply(binary.plus, right=last())",
        "reads the counter i",
        [10],
    ),
    "a counter read behind two loops": (
        "for i in range(2):\n    x << x.apply(binary.plus, right=i)\n"
        "for i in loop(times=3):\n    x << semiring.plus_times(x @ A)\n"
        "x << x.apply(binary.plus, right=i)",
        "reads the counter i",
        [18],
    ),
    "a counter whose name had a value before": (
        "i = 7\nfor i in loop(times=3):\n    x << x.apply(binary.plus, right=i)",
        GENERATED,
        [4],
    ),
    "a line that writes nothing": (
        "k = 1\nfor i in loop(times=2):\n    k << 2\n    x << semiring.plus_times(x @ A)",
        "a line of the body writes nothing",
        [4],
    ),
    "two statements in a line": (
        "for i in loop(times=2): x << semiring.plus_times(x @ A); x << x.apply(binary.plus, 1)",
        GENERATED,
        [7],
    ),
}


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", BODIES)
def test_bodies(place, tmp_path, name):
    body, why, values = BODIES[name]
    lines = "\n".join("    " + line for line in body.splitlines())
    module = load(tmp_path / "body.py", f"def run(A, x):\n{lines}\n")
    ran, found, _ = how(module.run, place)
    assert found == values
    assert ran.startswith(f"{GENERATED}: " if why == GENERATED else "eager: ")
    assert why in ran


def test_a_stale_source_is_not_believed(place, tmp_path):
    """The file was changed after it was imported: what it says is not what runs."""
    body = "def run(A, x):\n    for i in loop(times=2):\n        x << semiring.{}(x @ A)\n"
    module = load(tmp_path / "stale.py", body.format("plus_times"))
    (tmp_path / "stale.py").write_text(HEAD + body.format("plus_first"), "utf-8")
    linecache.checkcache(str(tmp_path / "stale.py"))
    ran, found, _ = how(module.run, place)
    assert ran == "eager: its source differs from the code that runs, or cannot be read"
    assert found == [4]


def test_a_function_that_moved_in_its_file_is_not_read(place, tmp_path):
    """At its old lines stands another loop now."""
    body = "def {}(A, x):\n    for i in loop(times=2):\n        x << semiring.{}(x @ A)\n\n\n"
    module = load(tmp_path / "moved.py", body.format("run", "plus_times"))
    both = body.format("other", "plus_first") + body.format("run", "plus_times")
    (tmp_path / "moved.py").write_text(HEAD + both, "utf-8")
    linecache.checkcache(str(tmp_path / "moved.py"))
    ran, found, _ = how(module.run, place)
    assert ran == "eager: its source differs from the code that runs, or cannot be read"
    assert found == [4]


def test_a_cell_of_a_notebook(place, monkeypatch):
    """Each statement is compiled alone there, with other byte code where a name is imported."""
    source = (
        "from lagpu import loop, semiring\n\n\ndef run(A, x):\n"
        "    for i in loop(times=2):\n        x << semiring.plus_times(x @ A)\n"
    )
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "cell-7.py", (len(source), None, lines, "cell-7.py"))
    world = {}
    for statement in ast.parse(source).body:
        exec(compile(ast.Module([statement], []), "cell-7.py", "exec"), world)
    ran, found, _ = how(world["run"], place)
    assert is_fused(ran)
    assert found == [4]


def test_code_without_a_file(place):
    """As in a read-eval-print loop or exec."""
    space = {"loop": loop, "semiring": semiring}
    exec(
        "def run(A, x):\n    for i in loop(times=2):\n        x << semiring.plus_times(x @ A)\n",
        space,
    )
    ran, found, _ = how(space["run"], place)
    assert ran.startswith("eager: its source")
    assert found == [4]


def twice(function):
    @functools.wraps(function)
    def wrapper(A, x):
        function(A, x)
        function(A, x)

    return wrapper


@twice
def decorated(A, x):
    for _ in loop(times=2):
        x << semiring.plus_times(x @ A)


def test_a_decorated_function_is_fused(place):
    ran, found, _ = how(decorated, place)
    assert is_fused(ran)
    assert found == [16]


def rebound(A, x, plus):
    for _ in loop(times=2):
        x << x.apply(plus, right=1)


def test_names_are_looked_up_each_time(place):
    """The same site, fused first; then a name means something else."""
    for plus, value in ((binary.plus, 3), (binary.times, 1)):
        ran, found, _ = how(rebound, place, plus)
        assert ran.startswith(f"{GENERATED}: ")
        assert found == [value]
    assert how(rebound, place, "minus")[0] == "eager: plus is neither a lagpu object nor a number"


def test_loops_in_a_class_and_a_closure(place, tmp_path):
    module = load(
        tmp_path / "inside.py",
        "class Search:\n"
        "    def run(self, A, x):\n"
        "        def inner():\n"
        "            for i in loop(times=2):\n"
        "                x << semiring.plus_times(x @ A)\n"
        "        inner()\n",
    )
    ran, found, _ = how(module.Search().run, place)
    assert is_fused(ran)
    assert found == [4]


LOOP = "for c in loop(until_empty=x, times=2):\n    x << semiring.plus_times(x @ A)"
AROUND = {  # text with LOOP, and whether the counter is read
    "a variable of the outer function": (
        "def inner():\n    LOOP\ninner()\nc = 1\nreturn c",
        None,
    ),
    "an argument of a function inside": ("g = lambda c: c + 1\nLOOP\nreturn g(1)", None),
    "a variable of a function inside": (
        "def g():\n    c = 1\n    return c\nLOOP\nreturn g()",
        None,
    ),
    "locals of the outer function": ("def inner():\n    LOOP\ninner()\nreturn locals()", None),
    "a closure": ("g = lambda: c\nLOOP\nreturn g()", "reads the counter c"),
    "a default": ("LOOP\ng = lambda x=c: x\nreturn g()", "reads the counter c"),
    "a comprehension": ("LOOP\nreturn [x for x in range(c)]", "reads the counter c"),
    "the variable of a comprehension": ("LOOP\nreturn {c: 1 for c in range(3) if c}", None),
    "the range of a comprehension": ("LOOP\nreturn [c for c in range(c)]", "reads the counter c"),
    "a closure of the inner function": (
        "def inner():\n    LOOP\n    return lambda: c\nreturn inner()()",
        "reads the counter c",
    ),
    "a variable that is not local": (
        "c = 7\ndef inner():\n    nonlocal c\n    LOOP\ninner()\nreturn c",
        "the counter c is not local",
    ),
    "one that a closure assigns": (
        "def g():\n    nonlocal c\n    c = 5\nLOOP\ng()",
        "the counter c is not local",
    ),
    "a class": (
        "class Holder:\n    LOOP\nreturn Holder.c",
        "it is in the body of a class, where any code may read its counter",
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_the_scope_of_the_counter_decides(place, tmp_path, name):
    text, why = AROUND[name]
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += [indent + part for part in line.strip().replace("LOOP", LOOP).splitlines()]
    module = load(tmp_path / "scope.py", "def run(A, x):\n    " + "\n    ".join(lines) + "\n")
    ran, found, _ = how(module.run, place)
    assert found == [4]
    assert is_fused(ran) if why is None else why in ran, ran


def test_an_error_while_recording_runs_what_came_before(place, tmp_path):
    module = load(
        tmp_path / "raises.py",
        "def run(A, x, y):\n"
        "    for i in loop(times=2):\n"
        "        x << semiring.plus_times(x @ A)\n"
        "        x << y\n",
    )
    A, x = start(place)
    with pytest.raises(Exception, match="shape"):
        module.run(A, x, Vector(INT64, 5, backend=place))
    assert x.to_coo()[1].tolist() == [2]
    assert current_recorder() is None
    assert place.last_loop == "eager: the body raised an error"


class Held:
    def __init__(self, x):
        self.depth = x


def of_an_attribute(held, one):
    for depth in loop(times=2):
        held.depth(one.S) << depth


def test_an_attribute_of_the_counters_name_is_not_the_counter(place):
    x, one = Vector(INT64, 3, backend=place), Vector.from_coo([1], True, size=3, backend=place)
    of_an_attribute(Held(x), one)
    assert is_fused(place.last_loop)
    assert x.to_coo()[1].tolist() == [1]


class Shadowed:
    """A property goes before what the instance has under its name."""

    asked = 0

    def __init__(self, x):
        vars(self)["x"] = x

    @property
    def x(self):
        self.asked += 1
        return vars(self)["x"]


def of_a_property(held, one):
    for _ in loop(times=3):
        held.x(one.S) << 1


def test_a_property_that_hides_an_attribute_runs_each_time(place):
    held = Shadowed(Vector(INT64, 3, backend=place))
    of_a_property(held, Vector.from_coo([1], True, size=3, backend=place))
    assert held.asked == 3
    assert place.last_loop == "eager: held.x is neither a lagpu object nor a number"


class Changing:
    """Each look at an attribute finds the other one of two vectors."""

    def __init__(self, *both):
        object.__setattr__(self, "both", list(both))
        self.x = both[0]

    def __getattribute__(self, name):
        both = object.__getattribute__(self, "both")
        both.reverse()
        return both[0] if name == "x" else object.__getattribute__(self, name)


def test_an_attribute_that_an_author_computes_is_read_each_time(place):
    both = [Vector(INT64, 3, backend=place) for _ in range(2)]
    of_a_property(Changing(*both), Vector.from_coo([1], True, size=3, backend=place))
    assert [x.nvals for x in both] == [1, 1]
    assert place.last_loop == "eager: held.x is neither a lagpu object nor a number"


def under_a_property(held, one):
    for _ in loop(times=3):
        if held.flips:
            one << one + 1
        one << one + 10


class Flipping:
    asked = 0

    @property
    def flips(self):
        self.asked += 1
        return self.asked == 2


def test_a_property_that_an_if_tests_is_read_once_an_iteration(place):
    held, one = Flipping(), Vector.from_coo([1], 0, INT64, size=3, backend=place)
    under_a_property(held, one)
    assert (held.asked, one.get(1)) == (3, 31)
    assert place.last_loop == "eager: an if tests held.flips, which may change"


class Counting(Vector):
    calls = 0

    def __call__(self, *args, **named):
        type(self).calls += 1
        return super().__call__(*args, **named)


def written_by_a_class(x, one):
    for _ in loop(times=3):
        x(one.S) << 1


def test_an_object_of_an_authors_own_class_may_do_anything(place):
    x, one = Counting(INT64, 3, backend=place), Vector.from_coo([1], True, size=3, backend=place)
    Counting.calls = 0
    written_by_a_class(x, one)
    assert Counting.calls == 3
    assert place.last_loop == "eager: x is neither a lagpu object nor a number"


least = 5
more = lambda x: x + 1 if least > 2 else more(x)  # noqa: E731


def by_more(x):
    for _ in loop(times=3):
        x << more(x)


def test_a_function_that_may_call_itself(place):
    x = Vector.from_scalar(1, 3, INT64, backend=place)
    by_more(x)
    assert x.get(1) == 4
    assert place.last_loop == "eager: more may call itself"


def test_threads_make_syntax_trees_one_at_a_time(monkeypatch):
    """Python 3.11 raises SystemError where two do so at the same time."""
    inside, most, parse = [], [], ast.parse

    def watched(*args, **kwargs):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        try:
            return parse(*args, **kwargs)
        finally:
            inside.pop()

    monkeypatch.setattr(ast, "parse", watched)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda k: purity._parsed(f"four = {k}", "a file"), range(4)))
    assert most == [1] * 4
