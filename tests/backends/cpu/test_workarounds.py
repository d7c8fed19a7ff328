"""The faults of SuiteSparse: each is there in python-graphblas alone, and not in lagpu."""

import functools
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lagpu import Matrix, Vector, semiring
from lagpu.backends.cpu import workarounds

PAGE = Path(__file__).parents[3] / "docs" / "design" / "suitesparse.md"
PROGRAMS = re.findall(
    r"^## ([^\n]*)\n\n```python\n# workaround: (\w+); right: ([^\n]*)\n(.*?)^```$",
    PAGE.read_text("utf-8"),
    re.M | re.S,
)

# A process for each program: one may end its process, or stay in C for ever until the alarm.
RUNNER = """
import json, os, signal, sys
import graphblas
graphblas.init()
printed = []
for program in json.load(sys.stdin):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(1)
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        exec(program, {})
        sys.stdout.flush()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        printed.append(pipe.read())
    os.waitpid(child, 0)
json.dump(printed, sys.stdout)
"""


@functools.cache
def printed():
    """What the programs of the page print."""
    programs = [program for *_, program in PROGRAMS]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps(programs), text=True,
        capture_output=True, check=True, timeout=300,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=[title for title, *_ in PROGRAMS])
def test_the_fault_is_still_there(number):
    _, workaround, right, _ = PROGRAMS[number]
    found = printed()[number].strip()
    assert found != right, f"the fault is gone: remove the workaround {workaround}, or its part"


def test_every_workaround_has_its_fault():
    parts = {"empty"}  # of `is_emptied_first`
    own = {
        name
        for name, x in vars(workarounds).items()
        if inspect.isfunction(x) and x.__module__ == workarounds.__name__ and name[0] != "_"
    }
    assert {name for _, name, *_ in PROGRAMS} == own - parts


RETURNS = """
import numpy as np
from lagpu import Matrix, Vector, semiring
n = 4000
hub = Matrix.from_coo(np.zeros(300, int), np.arange(300), True, nrows=n, ncols=n, backend="cpu")
for A in (hub, hub.T, hub.dup("INT64")):
    for source in (0, 7):
        f = Vector.from_coo([source], True, size=n, backend="cpu")
        m = Vector.from_coo(np.arange(0, n, 2), True, size=n, backend="cpu")
        full = Vector.from_dense(np.arange(n) % 2 == 0, backend="cpu")
        for product in (f @ A, A @ f, f @ A.T):
            made = semiring.plus_pair(product)
            counts = [made.new(mask=mask).nvals for mask in (m.S, m.V, full.V, full.S)]
            all_of_it = made.new()
            assert counts[3] == all_of_it.nvals
            assert counts[:3] == [int((all_of_it.to_coo()[0] % 2 == 0).sum())] * 3
rng = np.random.default_rng(0)
for k in (1, 31, 32):
    F = Matrix.from_coo(np.arange(k), np.zeros(k, int), True, nrows=k, ncols=n, backend="cpu")
    M = Matrix.from_coo(*np.nonzero(rng.random((k, n)) < 0.3), nrows=k, ncols=n, backend="cpu")
    X = Matrix("BOOL", k, n, backend="cpu")
    X(M.S, replace=True) << semiring.any_pair(F @ hub)
    assert X.nvals == M[:, :300].new().nvals
    assert semiring.any_pair(F @ hub).new(mask=M.V).nvals == X.nvals
degree = 5
i = np.repeat(np.arange(64), degree)
j = (i + np.tile(np.arange(degree), 64)) % 64
m = Matrix.from_coo(i, j, nrows=64, ncols=64, backend="cpu")
A, B = Matrix("INT64", 64, 0, backend="cpu"), Matrix("INT64", 0, 64, backend="cpu")
for left in (A, A.apply("ainv").new(), B.T, B.T.new(), A.dup()):
    for mask in (m.S, m.V, ~m.S):
        assert semiring.plus_times(left @ B).new(mask=mask).nvals == 0
print("returned")
"""


def test_products_under_a_mask_return():
    """In another process, so that a product without end fails and does not hang."""
    done = subprocess.run(
        [sys.executable, "-c", RETURNS], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "returned\n", done.stderr


def test_only_a_mask_that_needs_it_is_copied():
    """A frontier's mask is complemented, and a road network has no long row."""
    n = 4000
    hub = Matrix.from_coo(np.zeros(300, int), np.arange(300), True, nrows=n, ncols=n, backend="cpu")
    road = Matrix.from_coo(np.arange(n - 1), np.arange(1, n), True, nrows=n, ncols=n, backend="cpu")
    f = Vector.from_coo([0], True, size=n, backend="cpu")

    def copied(A, mask, complement=False):
        mask.data.mask_copy = None
        semiring.any_pair(f @ A).new(mask=~mask.S if complement else mask.S)
        return mask.data.mask_copy is not None

    bitmap = Vector.from_coo(np.arange(0, n, 2), True, size=n, backend="cpu")
    few = Vector.from_coo([3], True, size=n, backend="cpu")
    assert copied(hub, bitmap)
    assert not copied(hub, bitmap, complement=True)
    assert not copied(hub, few)
    assert not copied(road, bitmap)
    assert road.data.has_hub is False
    road << hub
    assert copied(road, bitmap)
