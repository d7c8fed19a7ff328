"""``pytest --lagpu-crosscheck=cpu,sim`` on small suites."""

from importlib.metadata import entry_points

import pytest
from faulty import with_loops

from lagpu import algorithms, backends, crosscheck, generators
from lagpu.core.recorder import current_observer

# An environment that was installed before the entry point was there needs the name.
INSTALLED = any(e.value == "_lagpu_pytest" for e in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "_lagpu_pytest")
BOTH = "--lagpu-crosscheck=cpu,sim"
RIGHT = """
    import lagpu
    from lagpu import INT64, Matrix, Vector, algorithms, binary, generators, loop, semiring

    A = generators.path(9)


    def test_a_loop():
        assert algorithms.bfs_levels(A, 2).nvals == 9
        assert A.backend.last_loop.startswith("grid search")


    def test_names_of_backends():
        v = Vector.from_coo([0], [1], size=9, backend="sim")
        with lagpu.use("cpu"):
            w = Vector(INT64, 9)
        w << semiring.plus_times(v @ A)
        assert w.to("cpu").nvals == 1
"""
WRONG = """
    from lagpu import FP64, INT64, Vector, binary, generators, loop, semiring

    A = generators.path(4)
    twice = binary.register("twice", lambda x, y: 2 * x, "x + x + 1")


    def test_wrong():
        v = Vector.from_dense([1, 2, 3, 4], dtype=INT64)
        for _ in loop(times=2):
            v << v.ewise_mult(v, binary.plus)
            v << v.ewise_mult(v, twice)  # the C++ text differs


    def test_caught():
        try:
            test_wrong()
        except AssertionError:
            pass


    def test_unrelated():
        pass
"""


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Import what statements import before `pytester` notes which modules there are."""
    crosscheck(algorithms.bfs_levels, generators.path(3), 0, backends=("cpu", "sim"))
    assert backends.get("auto")


@pytest.fixture
def suite(pytester):
    """Run pytest on a suite of one file, in this process."""

    def run(text, *options):
        pytester.makepyfile(test_of_author=text)
        before = current_observer(), dict(backends._loaded), backends.get()
        found = pytester.runpytest_inprocess(*PLUGIN, *options)
        assert (current_observer(), dict(backends._loaded), backends.get()) == before
        return found

    return run


def test_a_suite_that_agrees(suite):
    found = suite(RIGHT, BOTH)
    found.assert_outcomes(passed=2)
    found.stdout.fnmatch_lines(["compared on cpu and sim: statements ??, loops as one program 1"])


def test_the_first_statement_that_differs_is_named_though_the_test_catches_it(suite):
    found = suite(WRONG, BOTH)
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(
        [
            "E*crosscheck of test_wrong: statement 3 (test_of_author.py:11, iteration 0): "
            "ewise_mult: at 0 cpu has 4, sim 5 (first of 4).",
            "E*written   v << v.ewise_mult(v, twice)",
            "E*crosscheck of test_caught: statement 3 (test_of_author.py:11, iteration 0): *",
        ]
    )
    found.stdout.no_fnmatch_line("*lockstep.py*")


def test_a_fused_loop_is_compared(suite, monkeypatch):
    place = with_loops(lambda place, w: place.vector_set(w, 7, 99))
    monkeypatch.setitem(backends._loaded, "sim", place)
    for option in (BOTH, "--lagpu-crosscheck=sim"):
        found = suite(RIGHT, option, "-k", "a_loop")
        found.assert_outcomes(failed=1, deselected=1)
        found.stdout.fnmatch_lines(["*at the end of the loop *: grid search: at 7 *"])


def test_objects_of_conftest_files_and_of_fixtures(suite, pytester):
    pytester.makeconftest(
        """
        import pytest
        from lagpu import generators

        A = generators.path(4)

        @pytest.fixture(scope="session")
        def graph():
            return A
        """
    )
    text = """
        from lagpu import semiring, Vector

        def test_both(graph):
            v = Vector.from_coo([0], [1], size=4)
            assert semiring.plus_times(v @ graph).new().nvals == 1

        def test_none():
            pass
    """
    suite(text, BOTH).assert_outcomes(passed=2)


def test_traces_are_skipped_and_crosschecks_inside_use_the_named_backends(suite):
    text = """
        import lagpu, pytest
        from lagpu import algorithms, generators

        A = generators.path(9)

        def test_trace():
            with lagpu.trace():
                algorithms.bfs_levels(A, 2)

        def test_crosscheck():
            report = lagpu.crosscheck(algorithms.bfs_levels, A, 2, backends=("sim", "cpu"))
            assert report.backends == ("sim", "cpu")
            assert report.result.isequal(algorithms.bfs_levels(A, 2))
    """
    found = suite(text, BOTH, "-rs")
    found.assert_outcomes(passed=1, skipped=1)
    found.stdout.fnmatch_lines(["SKIPPED*a traced program is not crosschecked"])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("cpu", "*crosscheck: cpu runs every loop eagerly*Give two backends."),
        ("cpu,simm", "*backend: there is no 'simm'. Use one of *"),
        ("cpu,,sim", "*a name is empty. Give --lagpu-crosscheck=cpu,sim."),
        ("", "*a name is empty. Give --lagpu-crosscheck=cpu,sim."),
    ],
)
def test_wrong_values_give_one_line(suite, value, why):
    found = suite(RIGHT, f"--lagpu-crosscheck={value}")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in found.errlines if line] == found.errlines[:1]
    found.stderr.fnmatch_lines([f"ERROR: --lagpu-crosscheck={value}: {why.removeprefix('*')}"])


def test_without_the_option_lagpu_is_not_imported(pytester):
    pytester.makepyfile("import sys\n\ndef test_no_lagpu():\n    assert 'lagpu' not in sys.modules")
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.ci
def test_with_several_processes(pytester):
    pytester.makepyfile(test_right=RIGHT, test_wrong=WRONG)
    found = pytester.runpytest_subprocess(*PLUGIN, BOTH, "-n", "2")
    found.assert_outcomes(passed=3, failed=2)
    found.stdout.fnmatch_lines(["compared on cpu and sim: statements *, loops as one program 1"])
