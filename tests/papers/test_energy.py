"""Energy through NVML: read where it can be, else one sentence that says what to take instead."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from lagpu import backends
from lagpu.errors import BackendUnavailable
from lagpu.papers.run import EnergyCounter


class NVMLError(Exception):
    pass


@pytest.fixture
def place():
    """A GPU that is not there."""
    xp = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: SimpleNamespace(pci_bus_id="0:1:2")))
    return SimpleNamespace(name="gpu", device=SimpleNamespace(xp=xp, synchronize=lambda: None))


@pytest.fixture
def nvml(monkeypatch):
    """NVML whose counter, in millijoules, is a list's last element."""
    module = ModuleType("pynvml")
    module.NVMLError = NVMLError
    module.counter = [5000]
    module.nvmlInit = lambda: None
    module.nvmlDeviceGetHandleByPciBusId = lambda bus: bus
    module.nvmlDeviceGetTotalEnergyConsumption = lambda handle: module.counter[-1]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_joules_of_a_search(place, nvml):
    counter = EnergyCounter(place)

    def run():
        nvml.counter.append(nvml.counter[-1] + 12_000)
        return 4

    assert counter.joules(run, seconds=0.0) == pytest.approx(3.0)


def test_the_counter_is_read_when_it_moves(place, nvml):
    """It moves now and then: what was used before its last move would count, and after it not."""
    counter, runs = EnergyCounter(place), []

    def run():
        runs.append(1)
        nvml.counter.append(5000 + len(runs) // 10 * 20_000)  # two joules a run, in steps of ten
        return 1

    assert counter.joules(run, seconds=0.0) == pytest.approx(2.0)
    assert len(runs) == 20


def test_a_counter_that_stands_still_ends(place, nvml, monkeypatch):
    monkeypatch.setattr("lagpu.papers.run._STILL", 0.0)
    assert EnergyCounter(place).joules(lambda: 1, seconds=0.0) == 0.0


def test_where_it_cannot_be_read(place, nvml, monkeypatch):
    with pytest.raises(BackendUnavailable, match=r"the cpu backend has no GPU\. Take a figure of"):
        EnergyCounter(backends.get("cpu"))

    def refuse(handle):
        raise NVMLError("Not Supported")

    nvml.nvmlDeviceGetTotalEnergyConsumption = refuse
    with pytest.raises(BackendUnavailable, match="NVML: Not Supported"):
        EnergyCounter(place)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(BackendUnavailable, match=r'missing: pip install "lagpu\[energy\]"'):
        EnergyCounter(place)


def test_the_command_says_so(refused):
    err = refused("paper", "001", "--figure", 5, "-b", "cpu")
    assert "energy cannot be read: the cpu backend has no GPU" in err
    assert "--figure 1" in err


def test_the_other_figures_of_the_paper_are_run(run):
    code, out, _ = run("paper", "001", "--quick", "-b", "cpu", "--only", "Graph0 dense")
    assert code == 0
    assert "\nfigure 4\n" in out
    assert "missing: paper: energy cannot be read: the cpu backend has no GPU" in out


def test_energies_are_relative(run, monkeypatch, tmp_path):
    class Counter:
        """Ten joules for a search, and one less each time."""

        left = 10.0

        def __init__(self, place):
            pass

        def joules(self, run):
            assert run() == 2
            self.left -= 1
            return self.left + 1

    monkeypatch.setattr("lagpu.papers.run.EnergyCounter", Counter)
    file = tmp_path / "p.json"
    code, _, _ = run(
        "paper", "001", "--figure", 4, "--quick", "-b", "cpu", "--only", "Graph0 dense",
        "--json", file,
    )  # fmt: skip
    assert code == 0
    base, _, ours = json.loads(file.read_text())["experiments"][0]["rows"]
    assert base["value"] == 1.0
    # The first two variants are one measurement on cpu.
    assert ours["value"] == pytest.approx((9 + 7) / (10 + 8))
    assert ours["runs"] == pytest.approx([9 / 10, 7 / 8])
