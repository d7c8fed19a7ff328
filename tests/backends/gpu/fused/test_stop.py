"""Loops that an interrupt ends: what they leave, and that the backend goes on working."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import stopped_loops as loops
from faulty import with_kernels
from late import late
from limits import set_limits
from pieces_of_search import gpu_grid, gpus_for, sims
from samples import picked

from lagpu import Vector
from lagpu.backends.gpu.device import protocol
from lagpu.backends.gpu.fused import loop as fused_loop
from lagpu.backends.gpu.fused.program.run import GeneratedLoop
from lagpu.backends.grid import search as fused

AT = "const u32 kStopEvery = 1,"  # of sim, in common/stop.cuh
PATIENCE = 300
TURNS = 700  # of a loop that is stopped here, at most
KINDS = loops.ENDLESS | loops.SEARCHES | loops.TAKEN_BACK


@pytest.fixture
def stopped(monkeypatch):
    """Each loop finds its word set, so it ends when it first looks there; any search looks."""

    @contextlib.contextmanager
    def already(*words):
        for word in words:
            word[0] = 1
        yield
        raise KeyboardInterrupt

    set_limits(monkeypatch, lasts=0)

    def run(work):
        with monkeypatch.context() as patch:
            patch.setattr(fused_loop, "heard", already)
            patch.setattr(fused, "heard", already)
            patch.setattr(GeneratedLoop, "may_run_on", False)
            with pytest.raises(KeyboardInterrupt):
                work()

    return run


def place_of(backend, look):
    """Return the backend, on sim one whose loops look each so many turns."""
    if look == 1:
        return backend
    if backend.name != "sim":
        pytest.skip("a GPU looks when it looks")
    return with_kernels(AT, f"const u32 kStopEvery = {look},")[0]


def turns_of(make, A, wanted):
    """Return after how many iterations of an eager loop all objects are what they are here."""
    cpu = A.to("cpu")
    for times in range(TURNS):
        run, objects = make(cpu, times=times)
        run()
        if loops.state(objects) == wanted:
            return times
    raise AssertionError("no iteration leaves this")


@pytest.mark.parametrize("look", [1, 5])
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_it_is_as_after_a_whole_iteration(place, make, look, stopped):
    A = loops.path(place_of(place, look), 600)
    run, objects = make(A)
    before = loops.state(objects)
    run, objects = make(A)
    stopped(run)
    assert loops.state(objects)[1:] == before[1:] or make not in loops.TAKEN_BACK
    turns = turns_of(make, A, loops.state(objects))
    if make in loops.TAKEN_BACK:
        assert turns == 0
    elif place.name == "sim" and make is not loops.never_unchanged:
        first_alone = make in (loops.without_products, loops.held)
        # At the top of an iteration that looks, or behind one; a search alone looks less often.
        assert turns in ({16 * look - 1} if first_alone else {look - 1, look, 16 * look})
    else:
        assert turns > 0
    if make in loops.ENDLESS:
        return
    run()  # it goes on where it stood
    assert place.last_loop.startswith(KINDS[make]) or look > 1
    if make not in loops.TAKEN_BACK:
        return
    run, objects = make(A.to("cpu"))
    run()


@pytest.mark.parametrize("make", loops.SEARCHES, ids=lambda make: make.__name__)
def test_a_wide_search_too(place, make, stopped):
    """By pushes and pulls of the whole grid."""
    if place.name != "sim":
        pytest.skip("a GPU looks each 16th turn")
    A = loops.random(place, 400)
    run, objects = make(A)
    stopped(run)
    assert turns_of(make, A, loops.state(objects)) == 1
    again, whole_search = make(A)
    again()
    right, wanted = make(A.to("cpu"))
    right()
    assert loops.state(whole_search) == loops.state(wanted)


def test_bits_too(place, stopped):
    if place.name != "sim":
        pytest.skip("a GPU lets dense graphs end by themselves, in milliseconds")
    A = loops.cliques(place, 40)
    run, objects = loops.rows_of_levels(A)
    stopped(run)
    assert turns_of(loops.rows_of_levels, A, loops.state(objects)) == 1
    run()
    assert place.last_loop.startswith("bit-parallel search")


@pytest.mark.parametrize("kind", [loops.search, loops.parents, loops.paths])
def test_pieces_end_together(kind, request, stopped):
    asked = request.config.getoption("--backend")
    grid = gpu_grid(2) if "gpu" in asked else sims(2)
    A = loops.path(grid, 600)
    run, objects = kind(A)
    before = loops.state(objects)
    stopped(run)
    assert loops.state(objects) == before
    run()
    right, wanted = kind(A.to("cpu"))
    right()
    assert loops.state(objects) == loops.state(wanted)


def signalled(*case):
    """Run a case in a process of its own, which is killed if it hangs."""
    done = subprocess.run(
        [sys.executable, loops.__file__, *case],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
        cwd=Path(loops.__file__).parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_bounded_loop_goes_on(place):
    """It ends soon by itself, and the word may be set for a loop of another thread."""
    x = Vector.from_dense([1, 2], backend=place)
    place.device.stop[1][0] = 1
    try:
        loops.counted_to_200(x)
    finally:
        place.device.stop[1][0] = 0
    assert place.last_loop.startswith("generated loop")
    assert x.to_coo()[1].tolist() == [201, 202]


@pytest.mark.parametrize(
    "make", picked(loops.ENDLESS, loops.mask_forgotten), ids=lambda make: make.__name__
)
def test_a_signal_ends_an_endless_loop(place, make):
    (raised, how, seconds, right), *more = signalled(place.name, make.__name__, "main")
    assert (raised, right) == (["KeyboardInterrupt"], True)
    assert how == "after" or make is loops.never_unchanged  # a cycle comes back to its beginning
    assert seconds < 30
    for turns, at in more:
        assert turns[0] > 3
        assert turns == [turns[0]] * 21
        assert at == [turns[0] % 21]


@pytest.mark.parametrize("make", ["mask_forgotten", "never_unchanged", "rows_without_mask"])
def test_a_signal_ends_a_loop_that_the_host_has_left(make):
    (raised, how, seconds, right), *_ = signalled("late", make, "main")
    assert (raised, right) == (["KeyboardInterrupt"], True)
    assert how == "after" or make == "never_unchanged"
    assert seconds < 60


@pytest.fixture
def left():
    """A backend on which the host goes on while a loop runs, and a vector."""
    backend = late()
    return backend, Vector.from_dense([1 << 40, 5, 7], backend=backend)


def test_the_host_goes_on(left):
    backend, x = left
    loops.halved(x)
    assert backend.device.lasting
    assert x.to_coo()[1].tolist() == [0, 0, 0]
    assert not backend.device.lasting


@pytest.mark.parametrize(
    "wait",
    [lambda x: x.nvals, lambda x: x.to_coo(), lambda x: x.get(0), lambda x: x.wait(),
     lambda x: x.reduce().new().value],
)  # fmt: skip
def test_every_wait_ends_it(left, wait, monkeypatch):
    backend, x = left
    loops.halved(x)
    seen = []

    @contextlib.contextmanager
    def interrupted(word):
        seen.append(word is backend.device.stop[1])
        yield
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(protocol, "heard", interrupted)
        wait(x)
        seen.append("not raised")
    assert seen == [True]
    assert x.to_coo()[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_word_left_set_does_not_stop_the_next_loop(left, goes_on):
    backend, x = left
    type(backend.device).returns_early = goes_on
    try:
        for _ in range(2):
            backend.device.stop[1][0] = 1
            loops.halved(x)
            assert backend.device.lasting is goes_on
            assert x.to_coo()[1].tolist() == [0, 0, 0]
            x << (1 << 40)
    finally:
        type(backend.device).returns_early = True


def test_a_handler_of_the_program_waits(left):
    """It may go on where Python would raise; so may what is run in another thread."""
    backend, x = left
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        loops.halved(x)
        assert not backend.device.lasting
    finally:
        signal.signal(signal.SIGINT, before)
    thread = threading.Thread(target=loops.halved, args=(x,))
    thread.start()
    thread.join()
    assert backend.last_loop.startswith("generated loop")
    assert not backend.device.lasting


def test_the_next_loop_waits_for_both(left, monkeypatch):
    """What an interrupt sets in its block is not lost by what it reads there."""
    backend, x = left
    loops.halved(x)
    monkeypatch.setattr(GeneratedLoop, "may_run_on", False)
    loops.halved(x)
    assert not backend.device.lasting


def test_a_signal_ends_a_loop_of_another_thread(place):
    (raised, how, seconds, right), _ = signalled(place.name, "mask_forgotten", "thread")
    assert (raised, how, right) == (["KeyboardInterrupt"] * 2, "after", True)
    assert seconds < 30


@pytest.mark.parametrize("make", picked(["search", "rows_of_paths", "relaxation"], "relaxation"))
def test_a_signal_ends_a_long_search(place, make):
    ((raised, _, seconds, right),) = signalled(place.name, make, "main")
    assert (raised, right) == (["KeyboardInterrupt"], True)
    assert seconds < 60


@pytest.mark.ci
def test_a_signal_ends_a_search_of_pieces(request):
    on = "gpu" if "gpu" in request.config.getoption("--backend") else "sim"
    if on == "gpu" and len({device.number for device in gpus_for(2)}) < 2:
        pytest.skip("one GPU")
    ((raised, how, seconds, right),) = signalled(f"grid:2:{on}", "search", "main")
    assert (raised, how, right) == (["KeyboardInterrupt"], "before", True)
    assert seconds < 60
