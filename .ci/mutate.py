"""Break lines on purpose, one at a time, and count those that no test near them notices.

Usage: python .ci/mutate.py [--minutes 60] [--each 8] [--seed 0] [--jobs 2] [--json FILE] [PART ...]

Cosmic Ray breaks Python; the swaps below break CUDA C++, which the tests run on the simulated GPU.
Each job works in a copy of its own. A PART is a key of TARGETS; by default all take turns.
Coverage says once which tests of a part run a line; these try its mutants, the quickest first.
Needs the packages of the tests, cosmic-ray and coverage.
"""

import argparse
import ast
import contextlib
import difflib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage
import pytest
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent

# Part: the files that are broken, and the tests that must notice.
TARGETS = {
    "front end": (
        "lagpu/core/expr.py lagpu/core/matmul.py lagpu/core/recorder.py lagpu/core/arguments.py",
        "tests/core tests/loops --backend=sim",
    ),
    "loops": (
        "lagpu/loops/loop.py lagpu/loops/replay.py lagpu/loops/purity.py lagpu/loops/sweep.py",
        "tests/loops tests/observe/trace/test_trace.py --backend=sim",
    ),
    "planner": (
        "lagpu/backends/gpu/ops/planner.py lagpu/backends/gpu/ops/strategies.py "
        "lagpu/backends/gpu/ops/directions.py lagpu/backends/gpu/ops/spmv.py",
        "tests/backends/gpu/ops tests/core/test_matmul.py tests/observe/trace/test_trace.py "
        "--backend=sim",
    ),
    "fusing": (
        "lagpu/backends/gpu/fused/match.py lagpu/backends/gpu/fused/plan.py "
        "lagpu/backends/gpu/fused/policy.py lagpu/backends/gpu/fused/emit.py "
        "lagpu/backends/gpu/fused/program.py lagpu/backends/gpu/fused/scalars.py",
        "tests/backends/gpu/fused/test_program.py tests/backends/gpu/fused/test_plan.py "
        "tests/backends/gpu/fused/test_policy.py tests/backends/gpu/fused/test_program_bitmap.py "
        "tests/loops --backend=sim",
    ),
    "searches": (
        "lagpu/backends/gpu/fused/search_grid.py lagpu/backends/gpu/fused/search_bits.py "
        "lagpu/backends/gpu/fused/search_per_source.py lagpu/backends/gpu/fused/entries.py",
        "tests/backends/gpu/fused/test_search_grid_values.py "
        "tests/backends/gpu/fused/test_search_grid_hubs.py "
        "tests/backends/gpu/fused/test_search_grid_lists.py "
        "tests/backends/gpu/fused/test_search_bits.py "
        "tests/backends/gpu/fused/test_search_per_source.py "
        "tests/backends/gpu/fused/test_search_per_source_constant.py "
        "tests/backends/gpu/fused/test_plan.py tests/backends/gpu/fused/test_program.py "
        "tests/backends/gpu/fused/test_policy_depth.py tests/algorithms/test_batch.py "
        "--backend=sim",
    ),
    "storage": (
        "lagpu/backends/gpu/storage/vector.py lagpu/backends/gpu/storage/matrix.py "
        "lagpu/backends/gpu/storage/forms.py lagpu/backends/gpu/storage/bitmap.py",
        "tests/backends/gpu/storage tests/core/test_vector.py tests/core/test_matrix.py "
        "--backend=sim",
    ),
    "cpu": (
        "lagpu/backends/cpu/vectors.py lagpu/backends/cpu/matrices.py "
        "lagpu/backends/cpu/operators.py lagpu/backends/cpu/workarounds.py",
        "tests/backends/cpu tests/algebra/test_operators_logic.py tests/core/test_vector.py "
        "tests/core/test_matrix.py tests/core/test_matrix_empty.py tests/core/test_matmul.py "
        "tests/core/test_matmul_matrices.py --backend=cpu",
    ),
    "checkers": (
        "lagpu/check/levels.py lagpu/check/parents.py lagpu/check/paths.py "
        "lagpu/check/components.py lagpu/check/distances.py lagpu/check/sets.py",
        "tests/check",
    ),
    "readers": (
        "lagpu/io/edge_list.py lagpu/io/matrix_market.py lagpu/io/npz.py lagpu/io/csc.py",
        "tests/io tests/generators --backend=sim",
    ),
    "kernels of products": (
        "lagpu/backends/gpu/kernels/spmv/pull.cuh lagpu/backends/gpu/kernels/spmv/push.cuh "
        "lagpu/backends/gpu/kernels/common/entry.cuh",
        "tests/backends/gpu/ops/test_spmv.py tests/backends/gpu/ops/test_planner.py "
        "tests/core/test_vector.py tests/core/test_matmul.py --backend=sim",
    ),
    "kernels of searches": (
        "lagpu/backends/gpu/kernels/search/grid_pull.cuh "
        "lagpu/backends/gpu/kernels/search/grid_push.cuh "
        "lagpu/backends/gpu/kernels/search/bits_pull.cuh "
        "lagpu/backends/gpu/kernels/search/bits_push.cuh",
        "tests/backends/gpu/fused/test_search_grid_values.py "
        "tests/backends/gpu/fused/test_search_grid_hubs.py "
        "tests/backends/gpu/fused/test_search_grid_lists.py "
        "tests/backends/gpu/fused/test_search_bits.py tests/algorithms/test_batch.py "
        "tests/algorithms/test_bfs.py --backend=sim",
    ),
}

SECONDS = {True: 40, False: 90}  # for the tests of a mutant, of Python and of a kernel

OPERATORS = (
    "AddNot|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse"
    "|ReplaceFalseWithTrue|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ZeroIterationForLoop"
    "|ReplaceUnaryOperator_(Delete_Not|USub_UAdd|Delete_USub)"
    "|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_FloorDiv|FloorDiv_Mul|BitAnd_BitOr|BitOr_BitAnd)"
    "|ReplaceComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
)
SWAPS = (
    (r"(?<![<\w-])<(?![<=\w])", "<="),
    (r"<=", "<"),
    (r"(?<![->])>(?![>=])(?= )", ">="),
    (r">=", ">"),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"),
    (r"(?<= )&(?= )", "|"),
    (r"(?<= )\|(?= )", "&"),
    (r"!(?=[a-z(])", ""),
    (r"(?<![\w.])0(?![\w.])", "1"),
    (r"(?<![\w.])1(?![\w.])", "2"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\bbreak;", ";"),
    (r"\bcontinue;", ";"),
)


def places_in_python(text):
    """Yield the places that Cosmic Ray can break in a module: (operator, occurrence)."""
    nodes = list(ast_nodes(get_ast(text)))
    names = [n for n in sorted(plugins.operator_names()) if re.fullmatch(f"core/({OPERATORS})", n)]
    for name in names:
        operator = plugins.get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        yield from ((name, occurrence) for occurrence in range(count))


class Answers(ast.NodeTransformer):
    """Drop what decides no answer: docs, types, words of messages, estimates, tuned numbers.

    Estimates are what `require` asks for and functions named after bytes return; measured peaks
    test them. Tuned numbers are constants of a module, in capitals, without names in their value.
    """

    def visit_arg(self, node):
        """Drop the type of an argument."""
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node):
        """Drop the type of a variable."""
        value = node.value and self.visit(node.value)
        return ast.AnnAssign(node.target, ast.Constant(""), value, node.simple)

    def visit_FunctionDef(self, node):
        """Drop the type of a result, and an estimate."""
        self.generic_visit(node).returns = None
        if "bytes" in node.name:
            node.body = []
        return node

    def visit_Call(self, node):
        """Drop an estimate."""
        self.generic_visit(node)
        if getattr(node.func, "attr", getattr(node.func, "id", "")) == "require":
            node.args = []
        return node

    def visit_Assign(self, node):
        """Drop a tuned number."""
        named = [x.id for target in node.targets for x in ast.walk(target) if hasattr(x, "id")]
        number = all(
            isinstance(
                x, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Tuple | ast.Load
            )
            or (isinstance(x, ast.Constant) and type(x.value) in (int, float))
            for x in ast.walk(node.value)
        )
        if number and named and all(name.isupper() for name in named):
            node.value = ast.Constant(0)
        return self.generic_visit(node)

    def visit_Raise(self, node):
        """Drop what an error says."""
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node

    def visit_JoinedStr(self, node):
        """Drop a text with values in it."""
        return ast.Constant("")

    def visit_Expr(self, node):
        """Drop a docstring."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def same_answers(text, changed):
    """Whether a mutant differs in what `Answers` drops alone, or is no Python."""
    try:
        old, new = (ast.dump(Answers().visit(ast.parse(x))) for x in (text, changed))
    except SyntaxError:
        return True
    return old == new


def places_in_cuda(text):
    """Yield the places that a swap can break in a kernel file: (start, end, wrong text)."""
    for pattern, wrong in SWAPS:
        for found in re.finditer(pattern, text):
            start = text.rfind("\n", 0, found.start()) + 1
            line = text[start : text.find("\n", found.end())]
            is_code = not line.lstrip().startswith(("#", "//", "*", "template"))
            if is_code and "//" not in text[start : found.start()]:
                yield found.start(), found.end(), wrong


def mutant(name, place):
    """Return the text of a file that is broken at a place."""
    text = (ROOT / name).read_text("utf-8")
    if name.endswith(".py"):
        operator, occurrence = place
        return mutate_code(text, plugins.get_operator(operator)(), occurrence)
    start, end, wrong = place
    return text[:start] + wrong + text[end:]


def chosen(part, each, rng):
    """Return a sample of the mutants of a part, (file, text), and how many places there are."""
    found = []
    for name in TARGETS[part][0].split():
        places = places_in_python if name.endswith(".py") else places_in_cuda
        found += [(name, place) for place in places((ROOT / name).read_text("utf-8"))]
    rng.shuffle(found)
    sample = []
    for name, place in found:
        text = mutant(name, place)
        if not (name.endswith(".py") and same_answers((ROOT / name).read_text("utf-8"), text)):
            sample.append((name, text))
        if len(sample) == each:
            break
    return sample, len(found)


class Watched:
    """A plugin of pytest that notes the seconds of each test that passes, and the lines it runs."""

    def __init__(self, names):
        names = [name for name in names if name.endswith(".py")]
        self.coverage = coverage.Coverage(data_file=None, include=names) if names else None
        self.seconds, self.failed, self.skipped = {}, set(), set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Time a test, and tell coverage its name."""
        if self.coverage:
            self.coverage.switch_context(item.nodeid)
        start = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - start
        return result

    def pytest_runtest_logreport(self, report):
        """Note a test that is skipped, or fails."""
        if report.skipped:
            self.skipped.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)

    def tests(self, folder):
        """Return (test, seconds, the lines of each file that it runs or None) of what passes."""
        found = {test: {} for test in self.seconds if test not in self.failed | self.skipped}
        if self.coverage is None:
            return [(test, self.seconds[test], None) for test in found]
        data = self.coverage.get_data()
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for test in set(contexts) & set(found):
                    found[test].setdefault(os.path.relpath(file, folder), set()).add(line)
        return [(test, self.seconds[test], found[test]) for test in found]


def measured(folder, part):
    """Return the tests of a part that pass unbroken, the quickest first, as `Watched.tests`.

    Those of kernels keep their order: each takes as long as its kernels take to compile.
    """
    names, tests = (text.split() for text in TARGETS[part])
    plugin = Watched(names)
    failed, found = tested(folder, tests, plugin, 1800)
    if failed:  # some do so only while coverage looks on
        options = [x for x in tests if x.startswith("-")]
        found += tested(folder, [*failed, *options], Watched([]), 1800)[1]
    if not found:
        sys.exit(f"{part}: no test passes unbroken")
    return sorted(found, key=lambda test: test[1]) if plugin.coverage else found


class Chosen:
    """A plugin of pytest that runs the named tests in their order, until the time is over."""

    def __init__(self, names, seconds):
        self.place = {name: k for k, name in enumerate(names)}
        self.end = time.monotonic() + seconds

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Keep the named tests."""
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logstart(self):
        """End the run if its time is over."""
        if time.monotonic() > self.end:
            pytest.exit("no test noticed in time", 0)


def run_pytest(folder, arguments, plugin, pipe):
    """Run tests of a copy in a fresh process, which sends (those that fail, what it watched)."""
    os.setsid()
    os.chdir(folder)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.environ |= {
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",  # of processes that tests start
        "HYPOTHESIS_PROFILE": "ci",
    }
    sys.dont_write_bytecode = True  # a mutant of the same second and size would not be read
    sys.path[:0] = [str(folder)]
    watched = isinstance(plugin, Watched)
    if watched and plugin.coverage:
        plugin.coverage.start()
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *arguments], plugins=[plugin])
    if watched and plugin.coverage:
        plugin.coverage.stop()
    failed = sorted(plugin.failed) if watched else int(code)
    pipe.send((failed, plugin.tests(folder) if watched else []))
    pipe.close()
    os._exit(0)


def tested(folder, arguments, plugin, limit):
    """Return (what fails, what was watched) of a run; one that hangs past a limit has failed."""
    processes = multiprocessing.get_context("forkserver")
    here, there = processes.Pipe(duplex=False)
    process = processes.Process(target=run_pytest, args=(folder, arguments, plugin, there))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else (1, [])
    except EOFError:  # the process has crashed
        return 1, []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


def lines_of(name, text):
    """Return the numbers of the lines, as they are, of the statements that a mutant changes."""
    whole = (ROOT / name).read_text("utf-8")
    old, new = whole.splitlines(), text.splitlines()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    lines = {
        k + 1 for kind, a, b, *_ in changes if kind != "equal" for k in range(a, max(b, a + 1))
    }
    for node in ast.walk(ast.parse(whole if name.endswith(".py") else "")):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            own = set(range(node.lineno, body[0].lineno if body else node.end_lineno + 1))
            if own & lines:
                lines |= own
    return lines


def near(tests, name, text):
    """Return the tests that run a line that a mutant changes; else of its file, else all."""
    lines = lines_of(name, text)
    exact = {test for test, _, files in tests if lines & (files or {}).get(name, set())}
    exact = exact or {test for test, _, files in tests if name in (files or {})}
    return [test for test, _, files in tests if not exact or test in exact or files is None]


def difference(name, text):
    """Return the lines that a mutant changes."""
    old, new = (ROOT / name).read_text("utf-8").splitlines(), text.splitlines()
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    return "\n".join(lines)


def main():
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--each", type=int, default=8, help="mutants of a part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    rng = random.Random(options.seed)
    parts = options.parts or list(TARGETS)
    rows, work, known = {}, [], {}
    for part in parts:
        mutants, count = chosen(part, options.each, rng)
        rows[part] = {"mutants": count, "tried": 0, "killed": 0, "survivors": []}
        work += [(part, *mutant) for mutant in mutants]
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["__main__", "scipy.sparse", "numba", "hypothesis", "networkx"]
    )
    rng.shuffle(work)  # so that a bound on time leaves some of each part
    with tempfile.TemporaryDirectory() as scratch:
        folders = []
        for k in range(options.jobs):
            folders.append(Path(scratch) / str(k))
            shutil.copytree(
                ROOT, folders[-1], ignore=shutil.ignore_patterns(".git", ".v*", ".*cache")
            )

        for part in parts:
            known[part] = measured(folders[0], part)

        def try_one(job):
            part, name, text = job
            if time.monotonic() > end:
                return
            chosen_tests = near(known[part], name, text)
            files = sorted({test.split("::")[0] for test in chosen_tests})
            marked = [x for x in TARGETS[part][1].split() if x.startswith("-")]
            seconds = SECONDS[name.endswith(".py")]
            folder = folders.pop()
            try:
                (folder / name).write_text(text, "utf-8")
                plugin = Chosen(chosen_tests, seconds)
                arguments = ["-x", *files, *marked]
                code = tested(folder, arguments, plugin, 2 * seconds + 30)[0] if files else 0
                survived = code == 0
                (folder / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
            finally:
                folders.append(folder)
            row = rows[part]
            row["tried"] += 1
            row["killed"] += not survived
            if survived:
                row["survivors"].append({"file": name, "change": difference(name, text)})
            verdict = "SURVIVED" if survived else "killed"
            print(f"{verdict} {part}: {name} ({len(chosen_tests)} tests)", flush=True)
            if survived:
                print(difference(name, text), flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(try_one, work))
    print("\n| part | mutants | tried | killed |\n|---|---|---|---|")
    for part, row in rows.items():
        print(f"| {part} | {row['mutants']:,} | {row['tried']} | {row['killed']} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
