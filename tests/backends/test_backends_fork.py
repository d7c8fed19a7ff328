"""A forked process: cpu goes on with one thread, devices refuse by the backend's name."""

import subprocess
import sys
import textwrap

import pytest

from lagpu import backends
from lagpu.errors import BackendUnavailable

FORK = """
    import os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import lagpu
    from lagpu import Matrix, Vector, generators, loop, semiring
    name = sys.argv[1]
    make, size = (generators.kronecker, 12) if name == "cpu" else (generators.path, 9)
    A = make(size, backend=name)
    C = semiring.plus_pair(A @ A).new(mask=A.S)  # by several threads, where there are some
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    try:
        again = semiring.plus_pair(A @ A).new(mask=A.S)
        print("same" if again.isequal(C) else "other", flush=True)
        os._exit(0)
    except lagpu.errors.BackendUnavailable as error:
        print(error, flush=True)
        os._exit(3)
"""


def forked(name):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORK), name],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_cpu_goes_on_with_one_thread():
    """OpenMP's threads stay behind in the parent: to wait for them would be for ever."""
    done = forked("cpu")
    assert (done.returncode, done.stdout) == (0, "same\n"), done.stderr


@pytest.mark.parametrize(
    "name", ["sim", "sim:1", "grid:2:sim", pytest.param("gpu", marks=pytest.mark.gpu)]
)
def test_a_device_refuses(name):
    try:
        backends.get(name)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    done = forked(name)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(f"{name}: this process was forked after")
    assert "get_context('spawn')" in done.stdout


def test_a_fork_waits_for_the_call_of_another_thread():
    """A lock that is held while a process forks would be held in it for ever."""
    code = """
        import os, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from lagpu import Vector
        u = Vector.from_dense([1, 2, 3], backend="cpu")
        over = threading.Event()

        def work():
            while not over.is_set():
                u.apply("ainv").new()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if not child:
                os._exit(0 if u.reduce("plus").new().value == 6 else 1)
            assert os.waitpid(child, 0)[1] == 0
        over.set()
        for thread in threads:
            thread.join()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
