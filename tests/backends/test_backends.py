"""The registry: names, lazy loading, defaults, a backend of one's own, and mixing refused."""

import pickle

import numpy as np
import pytest

import lagpu
from lagpu import BOOL, INT32, Matrix, Vector, backends, binary, semiring
from lagpu.backends.cpu import CpuBackend
from lagpu.errors import (
    BackendMismatch,
    BackendUnavailable,
    DomainMismatch,
    InvalidValue,
    UnusedCall,
)
from lagpu.host.job import Job


class Loopback(CpuBackend):
    """The cpu backend under another name: two backends in any process."""

    name = "loopback"


@pytest.fixture
def loopback(monkeypatch):
    monkeypatch.setattr(backends, "_loaded", dict(backends._loaded))
    place = Loopback()
    backends.register(place)
    return place


def test_names():
    assert set(backends.names()) >= {"cpu", "gpu", "sim"}
    assert backends.get("cpu").name == "cpu"
    assert backends.get("cpu") is backends.get("cpu")


def test_unknown_name_lists_the_names():
    with pytest.raises(InvalidValue, match=r"there is no 'gpuu'\. Use one of auto, cpu, gpu, sim"):
        backends.get("gpuu")


def test_auto_is_no_name_of_its_own(monkeypatch):
    """It is remembered as another name of the backend that it is."""
    monkeypatch.setattr(backends, "_loaded", {"cpu": backends.get("cpu"), "gpu": Loopback()})
    assert backends.get("auto") is backends.get("gpu")
    assert backends.names() == ("cpu", "gpu", "sim")
    assert "auto" not in backends.available()
    with pytest.raises(InvalidValue, match=r"Use one of auto, cpu, gpu, sim\.$"):
        backends.get("foo")


@pytest.mark.parametrize("bad", [3, Vector, [1]])
def test_neither_name_nor_backend(bad):
    with pytest.raises(DomainMismatch, match="neither a name nor a Backend"):
        Vector(INT32, 3, backend=bad)
    with pytest.raises(DomainMismatch, match="neither a name nor a Backend"):
        Vector(INT32, 3, backend=Matrix(BOOL, 1, 1, backend="cpu"))


def test_auto_is_cpu_where_no_device_answers(monkeypatch):
    def no_device():
        raise BackendUnavailable("gpu: no device. Install it with: pip install lagpu[gpu]")

    monkeypatch.setattr(backends, "_loaded", {"cpu": backends.get("cpu")})
    monkeypatch.setattr("lagpu.backends.gpu.make_gpu", no_device)
    assert Vector(INT32, 1).backend.name == "cpu"
    with pytest.raises(BackendUnavailable, match=r"pip install lagpu\[gpu\]"):
        Vector(INT32, 1, backend="gpu")
    assert isinstance(BackendUnavailable("x"), ImportError)


def test_auto_is_gpu_where_a_device_answers(monkeypatch):
    device = Loopback()
    monkeypatch.setattr(backends, "_loaded", {})
    monkeypatch.setattr("lagpu.backends.gpu.make_gpu", lambda: device)
    assert Vector(INT32, 1).backend is device


def test_available_says_what_is_missing(monkeypatch):
    def no_device():
        raise BackendUnavailable("gpu: no device. Install CuPy.")

    monkeypatch.setattr(backends, "_loaded", {})
    monkeypatch.setattr("lagpu.backends.gpu.make_gpu", no_device)
    found = backends.available()
    assert found["cpu"] == "yes"
    assert "Install CuPy" in found["gpu"]


def test_use_sets_the_default_inside_only(loopback):
    with lagpu.use("cpu"):
        assert Vector(INT32, 1).backend.name == "cpu"
        with lagpu.use("loopback") as place:
            assert place is loopback
            assert Vector(INT32, 1).backend is loopback
            assert Matrix(INT32, 1, 1).backend is loopback
            assert Vector(INT32, 1, backend="cpu").backend.name == "cpu"
        assert Vector(INT32, 1).backend.name == "cpu"


def test_a_grid_is_the_default_inside_only():
    with lagpu.grid(3, "cpu") as place:
        assert place is backends.get("grid:3:cpu")
        assert Vector(INT32, 1).backend is place
    with lagpu.grid("2x3", backend="cpu") as place:
        assert place.name == "grid:2x3:cpu"
    with lagpu.grid(backend="cpu") as place:  # a piece for the only device of the host
        assert place.name == "grid:1:cpu"
    with lagpu.grid(2, "cpu", order="degree") as place:
        assert place.name == "grid:2-degree:cpu"
    with lagpu.grid(backend="cpu", order="random") as place:
        assert place.name == "grid:1-random:cpu"
    with pytest.raises(InvalidValue, match="order 'size' is not one of random, degree, or None"):
        lagpu.grid(2, "cpu", order="size").__enter__()
    with pytest.raises(InvalidValue, match="there is no 'grid:0'"), lagpu.grid(0):
        pass


def test_a_grid_on_chosen_devices():
    with lagpu.grid(devices=[2, 0], backend="sim") as place:
        assert place.name == "grid:2:sim:2,0"
        assert place is backends.get("grid:2:sim:2,0") is backends.get("grid:sim:2,0")
        assert [of.name for of in place.pieces.places] == ["sim:2", "sim"]
        A = lagpu.generators.kronecker(5)
        assert A.backend is place
        assert pickle.loads(pickle.dumps(A)).backend is place
        wanted = lagpu.algorithms.bfs_levels(A.to("cpu"), 1)
        assert lagpu.algorithms.bfs_levels(A, 1).to("cpu").isequal(wanted)
    with lagpu.grid(devices=range(2), backend="sim") as place:  # they are the first two
        assert place is backends.get("grid:2:sim")
    with lagpu.grid("2x1", "sim", order="degree", devices=np.array([1, 3])) as place:
        assert place.name == "grid:2x1-degree:sim:1,3"
        assert backends.get("grid-degree:sim:1,3").name == "grid:2-degree:sim:1,3"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"devices": []}, r"devices=\[\] names none\. Name one for each piece"),
        ({"devices": [1, 0, 1]}, r"device 1 is named twice\. Each piece has a device of its own"),
        ({"devices": [0, -1]}, r"device -1 is not a number from 0 to 999"),
        ({"devices": [0, 1000]}, r"device 1000 is not a number from 0 to 999"),
        ({"devices": [0, "sim:1"]}, r"device 'sim:1' is not a number from 0 to 999"),
        ({"devices": "0,1"}, r"devices='0,1' is no list of numbers, as in \[0, 1\]"),
        ({"devices": 2}, r"devices=2 is no list of numbers"),
        ({"pieces": 3, "devices": [0, 1]}, r"3 pieces are not 2 devices\. Name one for each"),
        ({"pieces": "2x2", "devices": [0, 1]}, r"4 pieces are not 2 devices"),
        ({"backend": "cpu", "devices": [0, 1]}, r"cpu has no devices with numbers"),
        ({"backend": "sim:1", "devices": [0, 1]}, r"sim:1 has no devices with numbers"),
    ],
)
def test_wrong_devices(given, said):
    given = {"backend": "sim"} | given
    with pytest.raises(InvalidValue, match=f"^grid: {said}"), lagpu.grid(**given):
        pass


def test_wrong_devices_in_a_name():
    for name, said in (
        ("grid:3:sim:0,1", "3 pieces are not 2 devices"),
        ("grid:2:sim:1,1", "device 1 is named twice"),
        ("grid:2:cpu:0,1", "there is no 'grid:2:cpu:0,1'"),
        ("grid:2:sim:0,", "there is no 'grid:2:sim:0,'"),
    ):
        with pytest.raises(InvalidValue, match=said):
            backends.get(name)


def test_devices_are_gpus(monkeypatch):
    """Never a cpu in their place; one that is not there is named."""

    def make_gpu(index=0):
        raise BackendUnavailable(f"gpu: there is no GPU {index}.")

    monkeypatch.setattr(backends, "_loaded", {"cpu": backends.get("cpu")})
    monkeypatch.setattr("lagpu.backends.gpu.make_gpu", make_gpu)
    with pytest.raises(BackendUnavailable, match="there is no GPU 7"), lagpu.grid(devices=[7, 1]):
        pass


def test_processes_of_a_job_take_devices_by_themselves(monkeypatch):
    monkeypatch.setattr(backends, "launched", lambda: Job(4, 0))
    monkeypatch.setattr(backends, "end_together", lambda: None)
    said = "^grid: devices are chosen in a program of one process, and this is one of 4"
    with pytest.raises(InvalidValue, match=said), lagpu.grid(devices=[7, 1]):
        pass
    with pytest.raises(InvalidValue, match=said):
        backends.get("grid:4:sim:0,1,2,5")


def test_use_without_with_warns(loopback, tmp_path):
    before = Vector(BOOL, 3).backend
    with pytest.warns(UnusedCall, match=r"Write with lagpu\.use\('loopback'\):") as caught:
        lagpu.use("loopback")
    assert caught[0].filename == __file__
    assert Vector(BOOL, 3).backend is before


def test_use_decorates_a_function(loopback):
    @lagpu.use("loopback")
    def place(deeper=False):
        return place() if deeper else Vector(BOOL, 3).backend

    assert place() is loopback
    assert place(deeper=True) is loopback
    assert Vector(BOOL, 3).backend is not loopback


def test_use_ends_with_an_error(loopback):
    with lagpu.use("cpu"):
        with pytest.raises(RuntimeError, match="stop"), lagpu.use("loopback"):
            raise RuntimeError("stop")
        assert Vector(INT32, 1).backend.name == "cpu"


def test_use_takes_a_backend_that_is_not_registered():
    place = Loopback()
    with lagpu.use(place):
        assert Vector(INT32, 1).backend is place
    with pytest.raises(InvalidValue, match="there is no 'nowhere'"), lagpu.use("nowhere"):
        pass


def test_register(loopback):
    assert "loopback" in backends.names()
    assert backends.get("loopback") is loopback
    with pytest.raises(InvalidValue, match="'loopback' is taken"):
        backends.register(Loopback())
    for name in ("cpu", "auto", "grid", "grid:3:cpu", "grid:2x3:sim", "grid:new", "sim:1", "gpu:x"):
        place = Loopback()
        place.name = name
        with pytest.raises(InvalidValue, match="is taken"):
            backends.register(place)


def test_a_registered_backend_runs_algorithms(loopback):
    A = Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3, backend="loopback")
    levels = lagpu.algorithms.bfs_levels(A, 0)
    assert levels.backend is loopback
    assert levels.to_dense().tolist() == [0, 1, 2]


def test_like(loopback):
    u = Vector(INT32, 3, backend="loopback")
    assert Vector(INT32, 1, like=u).backend is loopback
    assert Matrix(INT32, 1, 1, like=u).backend is loopback
    assert Vector.from_coo([0], like=u).backend is loopback
    assert Vector.from_dense([0], like=u).backend is loopback
    assert Vector(INT32, 1, like=u, backend="loopback").backend is loopback
    with pytest.raises(InvalidValue, match="is on loopback, not on cpu"):
        Vector(INT32, 1, like=u, backend="cpu")
    with pytest.raises(DomainMismatch, match="int is neither"):
        Vector(INT32, 1, like=3)


def test_only_to_moves_data(loopback):
    u = Vector.from_coo([0, 2], [5, 7], size=3, backend="cpu", name="u")
    A = Matrix.from_coo([0, 2], [1, 0], [2, 3], nrows=3, ncols=3, backend="cpu", name="A")
    v, B = u.to("loopback"), A.to("loopback")
    assert v.backend is B.backend is loopback
    assert v.name == "u"
    assert v.to("cpu").isequal(u)
    assert B.to("cpu").isequal(A)


MIXING = {
    "ewise": lambda u, v, A: u.ewise_add(v, binary.plus),
    "product": lambda u, v, A: semiring.any_pair(v @ A),
    "mxv": lambda u, v, A: A.mxv(v, semiring.any_pair),
    "assign": lambda u, v, A: u << v,
    "assign to indices": lambda u, v, A: u.__setitem__([0, 1, 2], v),
    "output": lambda u, v, A: u << v.apply("ainv"),
    "product into another": lambda u, v, A: v << semiring.plus_first(u @ A),
    "mask": lambda u, v, A: u(v.S) << u,
    "isequal": lambda u, v, A: u.isequal(v),
    "isclose": lambda u, v, A: u.isclose(v),
    "matrix isequal": lambda u, v, A: A.isequal(A.to("loopback")),
    "matrix output": lambda u, v, A: A.to("loopback") << A.T,
    "extract": lambda u, v, A: v << A[0, :],
}


@pytest.mark.parametrize("mix", MIXING)
def test_mixing_is_refused_and_changes_nothing(loopback, mix):
    u = Vector.from_dense([1, 2, 3], backend="cpu", name="u")
    v = Vector.from_dense([4, 5, 6], backend="loopback", name="v")
    A = Matrix.from_coo([0, 1], [1, 2], [1, 1], nrows=3, ncols=3, backend="cpu", name="A")
    with pytest.raises(BackendMismatch, match=r"is on .*Move one with \.to"):
        MIXING[mix](u, v, A)
    assert issubclass(BackendMismatch, TypeError)
    assert u.to_dense().tolist() == [1, 2, 3]
    assert v.to_dense().tolist() == [4, 5, 6]


def test_cross_type_scalars_may_come_from_any_backend(loopback):
    """A scalar lives on the host."""
    u = Vector.from_dense([1, 2, 3], backend="cpu")
    v = Vector(INT32, 2, backend="loopback")
    v << u.reduce("plus")
    assert v.to_dense().tolist() == [6, 6]
