"""Prepared launches of the CUDA device while a meter is on, on a device that only takes notes."""

import ctypes
import gc
import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from lagpu.backends.gpu.device import protocol
from lagpu.backends.gpu.device.cuda import CudaDevice, CudaLaunch, Events, EventTimer
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.profile import GpuMeter
from lagpu.operations import Apply


class Event:
    """As CuPy's: it ends itself when it is collected."""

    made = 0
    is_there = True

    def __init__(self):
        Event.made += 1

    def __del__(self):
        self.is_there = False

    def record(self):
        assert self.is_there

    def synchronize(self):
        pass


class Array(SimpleNamespace):
    """An address and a length."""

    def __init__(self, ptr, nbytes):
        super().__init__(data=SimpleNamespace(ptr=ptr), nbytes=nbytes)


class Device(protocol.Device):
    """What a `CudaLaunch` and a `GpuMeter` ask of a device; tells how each launch came."""

    compile_ms = 0.0
    prepared_launch = CudaLaunch

    def __init__(self):
        super().__init__("fake")
        self.came = []
        self.launching = threading.Lock()
        driver = SimpleNamespace(
            CUDADriverError=RuntimeError, launchKernel=lambda *how: self.came.append("quick")
        )
        stream = SimpleNamespace(ptr=0)
        cuda = SimpleNamespace(
            driver=driver,
            get_current_stream=lambda: stream,
            Event=Event,
            get_elapsed_time=lambda begin, end: 0.25,
        )
        self.xp = SimpleNamespace(cuda=cuda)
        self.events = Events(cuda)

    def run(self, kernel, threads, args, how):
        self.came.append("checked")

    def ready(self, kernel, how):
        return SimpleNamespace(function=1, most=100)

    def timer(self):
        return EventTimer(self.events)

    def load(self, kernel):
        return False

    def no(self, *args):
        raise AssertionError("not asked for")

    max_cooperative_blocks = _from_host = _to_host = _read = _wait_for = no


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def prepared(device):
    """words -> total, with the number of words standing."""
    return device.prepare(kernel("elementwise/bitmap.cu", "count_bits"), 64, nwords=2)


WORDS, TOTAL = Array(4096, 8), Array(8192, 16)
NEW = {"words": WORDS, "total": TOTAL}


def metered(device):
    return GpuMeter(SimpleNamespace(device=device, observers=[]), {})


def run(meter, work):
    return meter.run(work, None, Apply(None, None))


def test_the_first_launch_is_checked_and_the_next_are_quick(device, prepared):
    for _ in range(3):
        prepared(NEW)
    assert device.came == ["checked", "quick", "quick"]
    buffer = np.asarray(prepared.packed.buffer)
    assert buffer.tolist() == [4096, 8192, 2]


@pytest.mark.parametrize("varying", [0, 1, 5, 50])
def test_each_argument_is_where_the_driver_finds_it(device, varying):
    """The address of each parameter leads to its argument, fixed or given by a call."""
    search = kernel("search/grid.cu", "grid_search")
    drawn = np.random.default_rng(varying)
    given = {p.name: k + 1 if p.dtype.kind != "b" else True for k, p in enumerate(search.params)}
    args = {p.name: Array(given[p.name], 8) if p.pointer else given[p.name] for p in search.params}
    names = set(drawn.permutation(search.names)[:varying].tolist())
    launch = device.prepare(search, 64, **{k: x for k, x in args.items() if k not in names})
    for _ in range(2):
        launch({name: args[name] for name in names})
    assert set(launch.varying) == names
    assert device.came == ["checked", "quick"]
    for param, place in zip(search.params, launch.packed.places.tolist(), strict=True):
        kind = np.dtype(np.uint64) if param.pointer else param.dtype
        words = ctypes.string_at(place, kind.itemsize)
        assert np.frombuffer(words, kind)[0] == given[param.name], param


def test_a_meter_times_quick_launches_and_counts_their_bytes(device, prepared):
    prepared(NEW)
    meter = metered(device)
    measured = run(meter, lambda: prepared(NEW))
    assert device.came == ["checked", "quick"]
    assert (measured().kernel_ms, measured().bytes) == (0.25, 24)
    meter.stop()
    assert device.observer is None
    prepared(NEW | {"total": None})
    assert device.came[-1] == "quick"


def test_a_first_launch_under_a_meter_is_checked_and_measured(device, prepared):
    meter = metered(device)
    measured = run(meter, lambda: prepared(NEW))
    again = run(meter, lambda: prepared(NEW))
    meter.stop()
    assert device.came == ["checked", "quick"]
    assert measured()._replace(host_ms=0) == again()._replace(host_ms=0)


def test_a_timed_launch_waits_for_python(device, prepared):
    """Else the time between the timer's first event and the kernel would be the host's."""
    order = device.came

    def hold(cycles):
        order.append(f"held {cycles}")
        return lambda: order.append("let go")

    device.hold = hold
    timer = device.timer
    device.timer = lambda: order.append("timer") or timer()
    prepared(NEW)
    meter = metered(device)
    run(meter, lambda: prepared(NEW))
    meter.stop()
    prepared(NEW)
    timed = [f"held {protocol._LAUNCH_CYCLES}", "timer", "quick", "let go"]
    assert order == ["checked", *timed, "quick"]


def test_a_gpu_is_held_by_a_kernel_of_one_thread_until_it_is_let_go():
    launches, host = [], memoryview(np.zeros(1, np.uint64))
    wait = lambda *how: launches.append(how)  # noqa: E731
    device = SimpleNamespace(_holds=(wait, "memory", host, itertools.count(1)))
    first, second = (CudaDevice.hold(device, 7) for _ in range(2))
    assert launches == [((1,), (1,), (7, "memory", number)) for number in (1, 2)]
    assert [x.dtype for x in launches[0][2][::2]] == [np.int64, np.uint64]
    assert host[0] == 0
    first()
    assert host[0] == 1
    second()
    assert host[0] == 2


def test_another_observer_sees_launches(device, prepared):
    prepared(NEW)
    seen = []
    device.observer = SimpleNamespace(run_prepared=lambda launch, new: seen.append((launch, new)))
    prepared(NEW)
    assert seen == [(prepared, NEW)]
    assert (prepared.kernel.name, prepared.threads) == ("count_bits", 64)
    assert prepared.all(NEW) == (WORDS, 2, TOTAL)
    assert device.came == ["checked"]


def test_events_are_used_again(device):
    Event.made = 0
    for _ in range(5):
        with device.timer() as timer:
            pass
        assert timer.elapsed_ms == 0.25
        del timer
    assert Event.made == 2
    both = device.timer(), device.timer()
    assert Event.made == 4
    assert both[0]._pair is not both[1]._pair


def test_events_of_a_timer_in_a_cycle_are_used_again_too(device):
    """An exception that is raised while something is traced makes one, by its frames."""
    timer = device.timer()
    timer.itself = timer
    del timer
    gc.collect()
    Event.made = 0
    with device.timer() as timer:
        pass
    assert (Event.made, timer.elapsed_ms) == (0, 0.25)
