"""Break lines on purpose, one at a time, and count those that no test near them notices.

Usage: python .ci/mutate.py [--minutes 60] [--each 25] [--seed 0] [--jobs 2] [--json FILE]
                            [--keep FOLDER] [--again FILE] [PART ...]

`mutants.py` says what is broken; tests run broken CUDA C++ on the simulated GPU.
Each job works in a copy of its own. A PART is a key of TARGETS; by default all take turns.
Coverage says once which tests of a part run a line; these try its mutants, the quickest first.
Needs the packages of the tests, cosmic-ray and coverage.
"""

import argparse
import ast
import compileall
import contextlib
import hashlib
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage
import pytest
from mutants import (
    JUDGED,
    ROOT,
    changed_numbers,
    decides,
    difference,
    equivalent,
    mutant,
    places_in_cuda,
    places_in_python,
    text_of,
)

# Part: the files that are broken, and the tests that must notice.
TARGETS = {
    "front end": (
        "lagpu/core/expr.py lagpu/core/infix.py lagpu/core/recorder.py lagpu/core/arguments.py",
        "tests/core tests/loops tests/host/test_display.py --backend=cpu,sim",
    ),
    "loops": (
        "lagpu/loops/loop.py lagpu/loops/purity.py",
        "tests/loops tests/observe/trace/test_trace.py --backend=cpu,sim",
    ),
    "planner": (
        "lagpu/backends/gpu/ops/planner.py lagpu/backends/gpu/ops/strategies.py "
        "lagpu/backends/gpu/ops/spmv.py",
        "tests/backends/gpu/ops tests/core/test_matmul.py tests/observe/trace/test_trace.py "
        "--backend=sim",
    ),
    "fusing": (
        "lagpu/backends/match.py lagpu/backends/gpu/fused/plan.py "
        "lagpu/backends/gpu/fused/search_many.py lagpu/backends/gpu/fused/emit.py "
        "lagpu/backends/gpu/fused/program/run.py lagpu/backends/gpu/fused/program/text.py",
        "tests/backends/gpu/fused/program/test_program.py tests/backends/gpu/fused/test_plan.py "
        "tests/backends/gpu/fused/program/test_program_bitmap.py "
        "tests/backends/gpu/fused/program/test_program_kept.py "
        "tests/backends/gpu/fused/test_policy.py "
        "tests/backends/gpu/fused/test_sweep_vector.py "
        "tests/backends/gpu/fused/test_policy_depth.py tests/backends/test_match.py "
        "tests/backends/gpu/fused/test_search_grid_values.py "
        "tests/backends/gpu/profile/test_log_rows.py tests/core/test_views.py "
        "tests/loops --backend=sim",
    ),
    "searches": (
        "lagpu/backends/gpu/fused/search_grid.py lagpu/backends/gpu/fused/loop.py "
        "lagpu/backends/gpu/fused/search_many.py lagpu/backends/gpu/fused/program/run.py",
        "tests/backends/gpu/fused/test_search_grid_values.py "
        "tests/backends/gpu/fused/test_search_grid_hubs.py "
        "tests/backends/gpu/fused/test_search_grid_lists.py "
        "tests/backends/gpu/fused/test_search_bits.py "
        "tests/backends/gpu/fused/test_search_per_source.py "
        "tests/backends/gpu/fused/test_search_per_source_constant.py "
        "tests/backends/gpu/fused/test_plan.py tests/backends/gpu/fused/program/test_program.py "
        "tests/backends/gpu/fused/test_policy_depth.py tests/algorithms/test_batch.py "
        "tests/backends/gpu/fused/program/test_program_bitmap.py "
        "tests/backends/gpu/fused/test_sweep_per_source.py "
        "tests/backends/gpu/profile/test_log_rows_bitmap.py --backend=sim",
    ),
    "storage": (
        "lagpu/backends/gpu/storage/stores.py "
        "lagpu/backends/gpu/storage/forms.py lagpu/backends/gpu/storage/bitmap.py",
        "tests/backends/gpu/storage tests/core/test_vector.py tests/core/test_vector_arrays.py "
        "tests/core/test_matrix.py tests/backends/gpu/ops/test_spmv.py --backend=sim",
    ),
    "cpu": (
        "lagpu/backends/cpu/statements.py lagpu/backends/cpu/csgraph.py lagpu/host/ordered.py "
        "lagpu/backends/cpu/handles.py lagpu/backends/cpu/workarounds.py",
        "tests/backends/cpu tests/algebra/test_operators_logic.py "
        "tests/algebra/test_operators_table.py tests/core/test_vector.py "
        "tests/core/test_matrix.py tests/core/test_matrix_empty.py tests/core/test_matmul.py "
        "tests/core/test_matmul_matrices.py tests/core/test_views.py --backend=cpu",
    ),
    "checkers": (
        "lagpu/check/searches.py lagpu/check/structure.py lagpu/check/centrality.py "
        "lagpu/check/graph.py",
        "tests/check",
    ),
    "readers": (
        "lagpu/io/edge_list.py lagpu/io/matrix_market.py lagpu/io/npz.py lagpu/io/csc.py "
        "lagpu/io/reading.py lagpu/io/suites.py "
        "lagpu/io/slices.py lagpu/io/formats.py",
        "tests/io tests/generators --backend=cpu,sim",
    ),
    "grid": (
        "lagpu/backends/grid/backend.py lagpu/backends/grid/statements.py "
        "lagpu/backends/grid/pieces.py lagpu/backends/grid/search.py "
        "lagpu/backends/grid/partition.py lagpu/backends/grid/exchange.py "
        "lagpu/backends/grid/systems.py "
        "lagpu/backends/grid/comm.py lagpu/backends/grid/processes.py",
        "tests/backends/grid tests/algorithms/test_clusters.py",
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

SECONDS = {True: 60, False: 90}  # for the tests of a mutant, of Python and of a kernel
# Of broken kernels: an index beyond a thread's own array ends the process.
BOUNDS = "-fsanitize=bounds -fsanitize-undefined-trap-on-error"


def chosen(part, each, seed):
    """Return a sample of the mutants of a part, (file, text), and how many places there are."""
    found = []
    for name in TARGETS[part][0].split():
        places = places_in_python if name.endswith(".py") else places_in_cuda
        found += [(name, place) for place in places(text_of(name))]
    random.Random(f"{seed} {part}").shuffle(found)
    mutants = ((name, mutant(name, place)) for name, place in found)
    return list(itertools.islice((m for m in mutants if decides(*m)), each)), len(found)


def is_python(part):
    """Whether the files of a part are Python; else they are CUDA C++."""
    return all(name.endswith(".py") for name in TARGETS[part][0].split())


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


def measured(folder, part, keep):
    """Return the tests of a part that pass unbroken, the quickest first, as `Watched.tests`.

    Those of kernels keep their order: each takes as long as its kernels take to compile.
    What was measured is kept by test file, until that file or a file of the part changes.
    """
    names, tests = (text.split() for text in TARGETS[part])
    options = [x for x in tests if x.startswith("-")]
    paths = [ROOT / x for x in tests if not x.startswith("-")]
    files = [x for path in paths for x in (sorted(path.rglob("test_*.py")) or [path])]
    kept = {}
    for file in dict.fromkeys(files):
        texts = [*map(text_of, names), file.read_text("utf-8"), *options]
        digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
        kept[str(file.relative_to(ROOT))] = keep / f"{digest}.json"
    missing = [file for file, place in kept.items() if not place.exists()]
    if missing:
        python = is_python(part)
        failed, found = tested(folder, [*missing, *options], Watched(names), 1800, python)
        if failed:  # some do so only while coverage looks on
            found += tested(folder, [*failed, *options], Watched([]), 1800, python)[1]
        for file in missing:
            own = [
                (test, seconds, files and {name: sorted(x) for name, x in files.items()})
                for test, seconds, files in found
                if test.partition("::")[0] == file
            ]
            kept[file].write_text(json.dumps(own), "utf-8")
    found = [test for place in kept.values() for test in json.loads(place.read_text("utf-8"))]
    if not found:
        sys.exit(f"{part}: no test passes unbroken")
    return sorted(found, key=lambda test: test[1]) if is_python(part) else found


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


def run_pytest(folder, arguments, plugin, python, pipe):
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
        "LAGPU_SIM_FLAGS": "-O0" if python else BOUNDS,
    }
    sys.path[:0] = [str(folder)]
    watched = isinstance(plugin, Watched)
    # Bytecode of what is not broken saves time; of two mutants of a second one might be read twice.
    sys.dont_write_bytecode = not watched
    if watched and plugin.coverage:
        plugin.coverage.start()
    options = ["-q", "-p", "no:cacheprovider"]  # no mark: what a plain run has
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *arguments], plugins=[plugin])
    if watched and plugin.coverage:
        plugin.coverage.stop()
    failed = sorted(plugin.failed) if watched else int(code)
    pipe.send((failed, plugin.tests(folder) if watched else []))
    pipe.close()
    os._exit(0)


def tested(folder, arguments, plugin, limit, python):
    """Return (what fails, what was watched) of a run; one that hangs past a limit has failed."""
    processes = multiprocessing.get_context("forkserver")
    here, there = processes.Pipe(duplex=False)
    process = processes.Process(target=run_pytest, args=(folder, arguments, plugin, python, there))
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
    lines = changed_numbers(name, text)
    for node in ast.walk(ast.parse(text_of(name) if name.endswith(".py") else "")):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            own = set(range(node.lineno, body[0].lineno if body else node.end_lineno + 1))
            if own & lines:
                lines |= own
    return lines


def near(tests, name, text):
    """Return the tests that run a line that a mutant changes; else of its file, else all.

    For a kernel all: first those that name what its file does (grid, bits, push or pull), and of
    these the first case of each test, then the second of each.
    """
    if not name.endswith(".py"):
        word, cases, turn = Path(name).stem.partition("_")[0], Counter(), {}
        for test, *_ in tests:
            turn[test] = cases[test.partition("[")[0]]
            cases[test.partition("[")[0]] += 1
        return sorted(turn, key=lambda test: (word not in test, turn[test]))
    lines = lines_of(name, text)
    exact = {test for test, _, files in tests if lines & set((files or {}).get(name, ()))}
    exact = exact or {test for test, _, files in tests if name in (files or {})}
    return [test for test, _, files in tests if not exact or test in exact or files is None]


def percent(row):
    """Return the share of a part's mutants that is noticed, of those that change an answer."""
    changing = row["tried"] - row["equivalent"]
    return f"{100 * row['killed'] / changing:.0f} %" if changing else "-"


def main():
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--each", type=int, default=25, help="mutants of a part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder that keeps what coverage measured")
    parser.add_argument("--again", type=Path, help="try the survivors of an earlier run's --json")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    rows, work, known = {}, [], {}
    earlier = json.loads(options.again.read_text("utf-8")) if options.again else {}
    for part in options.parts or earlier or TARGETS:
        mutants, count = chosen(part, options.each, options.seed)
        if earlier:
            mutants = [(x["file"], x["text"]) for x in earlier[part]["survivors"]]
        rows[part] = {"places": count, "tried": 0, "killed": 0, "equivalent": 0, "survivors": []}
        work += [(part, *mutant) for mutant in mutants]
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["__main__", "scipy.sparse", "numba", "hypothesis", "networkx"]
    )
    random.Random(options.seed).shuffle(work)  # a bound on time leaves some of each part
    with tempfile.TemporaryDirectory() as scratch:
        keep = options.keep or Path(scratch) / "measured"
        keep.mkdir(parents=True, exist_ok=True)
        folders = []
        for k in range(options.jobs):
            folders.append(Path(scratch) / str(k))
            shutil.copytree(
                ROOT, folders[-1], ignore=shutil.ignore_patterns(".git", ".v*", ".*cache")
            )
            compileall.compile_dir(folders[-1] / "lagpu", quiet=1)

        for part in rows:
            known[part] = measured(folders[0], part, keep)

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
                limit, python = 2 * seconds + 30, name.endswith(".py")
                survived = not tested(folder, arguments, plugin, limit, python)[0]
                (folder / name).write_text(text_of(name), "utf-8")
            finally:
                folders.append(folder)
            row, change = rows[part], difference(name, text)
            row["tried"] += 1
            row["killed"] += not survived
            why = equivalent(name, text) if survived else None
            row["equivalent"] += why is not None
            if survived:
                found = {"file": name, "change": change, "equivalent": why, "text": text}
                row["survivors"].append(found)
            verdict = "noticed" if not survived else "SURVIVED" if why is None else "equivalent"
            report = f"{verdict} {part}: {name} ({len(chosen_tests)} tests)"
            print(f"{report}\n{change}" if survived else report, flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(try_one, work))
    print("\nNot broken, as mutants.toml says:")
    for entry in JUDGED["left_out"]:
        print(f"{entry['file']}: {entry['name']}: {entry['why']}")
    print("\n| part | places | tried | noticed | equivalent | score |\n|---|---|---|---|---|---|")
    for part, row in rows.items():
        counts = f"{row['places']:,} | {row['tried']} | {row['killed']} | {row['equivalent']}"
        print(f"| {part} | {counts} | {percent(row)} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
