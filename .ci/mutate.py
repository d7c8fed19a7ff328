"""Break lines on purpose, one at a time, and count those that no test near them notices.

Usage: python .ci/mutate.py [--minutes 60] [--each 8] [--seed 0] [--jobs 2] [--json FILE] [PART ...]

Cosmic Ray breaks Python; the swaps below break CUDA C++, which the tests run on the simulated GPU.
Each job works in a copy of its own. A PART is a key of TARGETS; by default all take turns.
Needs the packages of the tests, and cosmic-ray.
"""

import argparse
import difflib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent

# Part: the files that are broken, and the tests that must notice.
TARGETS = {
    "front end": (
        "lagpu/core/expr.py lagpu/core/matmul.py lagpu/core/recorder.py lagpu/core/arguments.py",
        "tests/core tests/loops/test_loop.py",
    ),
    "loops": (
        "lagpu/loops/loop.py lagpu/loops/replay.py lagpu/loops/purity.py lagpu/loops/sweep.py",
        "tests/loops",
    ),
    "planner": (
        "lagpu/backends/gpu/ops/planner.py lagpu/backends/gpu/ops/strategies.py "
        "lagpu/backends/gpu/ops/directions.py lagpu/backends/gpu/ops/spmv.py",
        "tests/backends/gpu/ops tests/core/test_matmul.py tests/observe",
    ),
    "fusing": (
        "lagpu/backends/gpu/fused/match.py lagpu/backends/gpu/fused/plan.py "
        "lagpu/backends/gpu/fused/policy.py lagpu/backends/gpu/fused/emit.py "
        "lagpu/backends/gpu/fused/program.py lagpu/backends/gpu/fused/scalars.py",
        "tests/backends/gpu/fused tests/loops",
    ),
    "searches": (
        "lagpu/backends/gpu/fused/search_grid.py lagpu/backends/gpu/fused/search_bits.py "
        "lagpu/backends/gpu/fused/search_per_source.py lagpu/backends/gpu/fused/entries.py",
        "tests/backends/gpu/fused tests/algorithms/test_bfs.py tests/algorithms/test_batch.py",
    ),
    "storage": (
        "lagpu/backends/gpu/storage/vector.py lagpu/backends/gpu/storage/matrix.py "
        "lagpu/backends/gpu/storage/forms.py lagpu/backends/gpu/storage/bitmap.py",
        "tests/backends/gpu/storage tests/core/test_vector.py tests/core/test_matrix.py",
    ),
    "cpu": (
        "lagpu/backends/cpu/vectors.py lagpu/backends/cpu/matrices.py "
        "lagpu/backends/cpu/operators.py lagpu/backends/cpu/workarounds.py",
        "tests/backends/cpu tests/core",
    ),
    "checkers": (
        "lagpu/check/levels.py lagpu/check/parents.py lagpu/check/paths.py "
        "lagpu/check/components.py lagpu/check/distances.py lagpu/check/sets.py",
        "tests/check tests/algorithms --backend cpu",
    ),
    "readers": (
        "lagpu/io/edge_list.py lagpu/io/matrix_market.py lagpu/io/npz.py lagpu/io/csc.py",
        "tests/io tests/generators --backend cpu",
    ),
    "kernels of products": (
        "lagpu/backends/gpu/kernels/spmv/pull.cuh lagpu/backends/gpu/kernels/spmv/push.cuh "
        "lagpu/backends/gpu/kernels/common/entry.cuh",
        "tests/core/test_matmul.py tests/backends/gpu/ops",
    ),
    "kernels of searches": (
        "lagpu/backends/gpu/kernels/search/grid_pull.cuh "
        "lagpu/backends/gpu/kernels/search/grid_push.cuh "
        "lagpu/backends/gpu/kernels/search/bits_pull.cuh "
        "lagpu/backends/gpu/kernels/search/bits_push.cuh",
        "tests/backends/gpu/fused tests/algorithms/test_bfs.py tests/algorithms/test_batch.py",
    ),
}

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


def only_messages(text, changed):
    """Whether a mutant differs in a line of a docstring, an annotation or a message alone."""
    lines = [x for x in difflib.ndiff(text.splitlines(), changed.splitlines()) if x[0] in "+-"]
    return all(re.match(r"[+-] +(f?\"|raise |@|def |class |#)", line) for line in lines)


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
        if len(sample) < each and not only_messages((ROOT / name).read_text("utf-8"), text):
            sample.append((name, text))
        if len(sample) == each:
            break
    return sample, len(found)


def tested(folder, tests, limit):
    """Run tests in a copy; return (whether they pass, seconds)."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    start = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = 1
    return code == 0, time.monotonic() - start


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
    rows, work = {}, []
    for part in parts:
        mutants, count = chosen(part, options.each, rng)
        rows[part] = {"mutants": count, "tried": 0, "killed": 0, "survivors": []}
        work += [(part, *mutant) for mutant in mutants]
    rng.shuffle(work)  # so that a bound on time leaves some of each part
    with tempfile.TemporaryDirectory() as scratch:
        folders = []
        for k in range(options.jobs):
            folders.append(Path(scratch) / str(k))
            shutil.copytree(
                ROOT, folders[-1], ignore=shutil.ignore_patterns(".git", ".v*", ".*cache")
            )

        def baseline(part):
            passes, seconds = tested(folders[0], TARGETS[part][1], 1800)
            if not passes:
                sys.exit(f"{part}: the tests fail unbroken")
            return 3 * seconds + 30

        limits = {part: baseline(part) for part in parts}

        def try_one(job):
            part, name, text = job
            if time.monotonic() > end:
                return
            folder = folders.pop()
            try:
                (folder / name).write_text(text, "utf-8")
                survived, _ = tested(folder, TARGETS[part][1], limits[part])
                (folder / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
            finally:
                folders.append(folder)
            row = rows[part]
            row["tried"] += 1
            row["killed"] += not survived
            if survived:
                row["survivors"].append({"file": name, "change": difference(name, text)})
            print(f"{'SURVIVED' if survived else 'killed'} {part}: {name}", flush=True)
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
