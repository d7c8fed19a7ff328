"""Two GPUs in one process, and streams of the threads' own."""

import contextlib
import threading

import numpy as np
import pytest
from scalar_loops import added
from threads import MODES, NUMBERS, PROGRAMS, RUNS, answers, switching, together

from lagpu import FP64, Scalar, Vector, backends, semiring
from lagpu.errors import BackendUnavailable, LagpuError

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpus():
    try:
        return backends.get("gpu"), backends.get("gpu:1")
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def gpu():
    try:
        return backends.get("gpu")
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_gpus_take_turns(gpus, name, mode):
    program, make = PROGRAMS[name]
    graphs = [make(seed, place) for seed, place in enumerate(gpus)]
    right = answers(name, [make(seed, "cpu") for seed in range(2)], mode)
    with mode():
        for s in range(NUMBERS):
            for seed, A in enumerate(graphs):
                assert program(A, s) == right[seed, s]
    assert [A.data.store.col_ptr.device.id for A in graphs] == [0, 1]


@pytest.mark.parametrize("mode", MODES)
def test_threads_on_two_gpus(gpus, mode):
    program, make = PROGRAMS["levels"]
    right = answers("levels", [make(seed, "cpu") for seed in range(2)], mode)
    graphs = [make(seed, place) for seed, place in enumerate(gpus)]

    def check(k, s):
        with mode():
            found = program(graphs[k], s)
        return None if found == right[k, s] else f"gpu:{k}, {s}: {found}"

    tasks = [lambda k=k, s=s // 2 % NUMBERS: check(k, s) for s in range(RUNS) for k in (0, 1)]
    with switching():
        assert together(tasks, 8) == []


def test_operands_on_two_gpus_are_refused(gpus):
    _, make = PROGRAMS["levels"]
    A, B = (make(0, place) for place in gpus)
    with pytest.raises(LagpuError, match="gpu:1"):
        semiring.plus_times(A @ B).new()


def test_a_scalar_that_one_gpu_has_is_read_by_a_loop_on_the_other(gpus):
    s = Scalar(FP64, 0.0)
    for gpu in (*gpus, gpus[0]):
        w = Vector(FP64, 40, backend=gpu)
        added(Vector.from_dense(np.ones(40), backend=gpu), w, s)
        assert gpu.last_loop.startswith("generated loop")
    assert (s.value, w.to_dense().tolist()) == (120, [120] * 40)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_thread_has_a_stream(gpu, name, mode):
    """Workspaces and counters are shared: what one stream does, the next one waits for."""
    program, make = PROGRAMS[name]
    right = answers(name, [make(0, gpu)], mode)
    A, own = make(0, gpu), threading.local()
    streams = gpu.device.xp.cuda.Stream

    def check(s):
        if not hasattr(own, "stream"):
            own.stream = streams(non_blocking=True)
        with own.stream, mode():
            found = program(A, s)
        return None if found == right[0, s] else f"{s}: {found} != {right[0, s]}"

    with switching():
        assert together([lambda s=k % NUMBERS: check(s) for k in range(RUNS)], 4) == []


def test_a_thread_that_chose_another_gpu(gpus):
    """As other libraries do; lagpu works on its own, and the user's choice is not what it needs."""
    program, make = PROGRAMS["levels"]
    A = make(0, gpus[0])
    right = answers("levels", [make(0, "cpu")], contextlib.nullcontext)
    gpus[0].device.xp.cuda.Device(1).use()
    assert program(A, 1) == right[0, 1]
