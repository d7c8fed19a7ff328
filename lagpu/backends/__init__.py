"""The registry of backends, which are imported on first use."""

from __future__ import annotations

import copyreg
import importlib
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from lagpu import errors
from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable, DomainMismatch, InvalidValue, NotSupported
from lagpu.host.job import end_together, launched

# name -> (module, function that makes the backend)
_MAKERS: dict[str, tuple[str, str]] = {
    "cpu": ("lagpu.backends.cpu", "CpuBackend"),
    "gpu": ("lagpu.backends.gpu", "make_gpu"),
    "sim": ("lagpu.backends.gpu", "make_sim"),
}
_NUMBERED = ("gpu", "sim")  # with a backend for each device, as in "gpu:1"
_ORDERS = ("random", "degree")
# Rows and columns of pieces, one column if only a number is given; their order; the backend of each
# piece, and after one with numbered devices, such as "sim", the numbers of these.
_COUNT = "[1-9][0-9]{0,2}"
_GRID = re.compile(
    f"grid(?::(?P<rows>{_COUNT})(?:x(?P<columns>{_COUNT}))?)?(?:-(?P<order>{'|'.join(_ORDERS)}))?"
    "(?::(?P<kind>.+?)(?:(?<=:gpu|:sim):(?P<devices>[0-9]+(?:,[0-9]+)*))?)?"
)
_MOST_PIECES = _LAST_DEVICE = 999
_loaded: dict[str, Backend] = {}
_loading = threading.RLock()
_default: ContextVar[str | Backend] = ContextVar("lagpu_backend", default="auto")


def names() -> tuple[str, ...]:
    """Return the names that `get` accepts, besides ``"auto"``."""
    known = dict.fromkeys((*_MAKERS, *_loaded.copy()))
    return tuple(name for name in known if name != "auto" and not _is_one_of_many(name))


def _is_one_of_many(name: str) -> bool:
    """Whether a name is that of a numbered device, or of a grid."""
    kind, _, index = name.partition(":")
    return _is_index(kind, index) or _GRID.fullmatch(kind) is not None


def get(backend: str | Backend | None = None) -> Backend:
    """Return a backend.

    Parameters
    ----------
    backend : str or Backend, optional
        ``"cpu"``, ``"gpu"``, ``"sim"``, a registered name, or ``"auto"``: gpu if there is a device,
        else cpu. ``"gpu:1"`` is the second GPU, ``"sim:1"`` the second simulated device; each has a
        backend of its own. ``"grid:3:cpu"`` is a grid of three pieces, each on cpu, and
        ``"grid:2:gpu"`` one on the first two GPUs; ``"grid:2x3:cpu"`` cuts matrices into two rows
        and three columns of pieces; ``"grid:3-random:cpu"`` and ``"grid:3-degree:cpu"`` assign
        indices to pieces at random or by degree; ``"grid:2:gpu:3,1"`` has its pieces on these
        devices. ``"grid"``, ``"grid:cpu"`` and ``"grid-degree:cpu"`` have a piece for each process
        that mpirun or srun has started, else one for each GPU. None means the default that `use`
        sets, initially ``"auto"``. A `Backend` is returned as it is.

    Raises
    ------
    BackendUnavailable
        If the backend's package, device or compiler is missing; the message says what to install.
    InvalidValue
        If there is no backend of this name.
    """
    if backend is None:
        backend = _default.get()
    if not isinstance(backend, str):
        if not hasattr(backend, "plan_loop"):
            raise DomainMismatch(
                f"backend: {type(backend).__name__} is neither a name nor a Backend. "
                f"Use one of auto, {', '.join(names())}."
            )
        return backend
    if backend not in _loaded:
        with _loading:
            if backend not in _loaded:  # another thread may have loaded it meanwhile
                _add(backend, _made(backend))
    return _loaded[backend]


def choose(like: Any, backend: str | Backend | None) -> Backend:
    """Return the backend of `like`, or the named one; `InvalidValue` if they differ."""
    if like is None:
        return get(backend)
    place = getattr(like, "backend", None)
    if place is None:
        raise DomainMismatch(f"like: {type(like).__name__} is neither a Vector nor a Matrix.")
    if backend is not None and get(backend) is not place:
        raise InvalidValue(f"like: is on {place.name}, not on {backend}. Give one of the two.")
    return get(place)


def _add(name: str, backend: Backend) -> None:
    _loaded[name] = backend
    copyreg.pickle(type(backend), lambda found: (found_again, (name_elsewhere(found),)))


def _made(name: str) -> Backend:
    if name == "auto":
        try:
            return get("gpu")
        except BackendUnavailable:
            return get("cpu")
    kind, _, index = name.partition(":")
    if kind.partition("-")[0] == "grid":
        return _of_grid(GridSpec.parse(name))
    if kind not in _MAKERS or (kind != name and not _is_index(kind, index)):
        raise InvalidValue(f"backend: there is no {name!r}. Use one of auto, {', '.join(names())}.")
    if kind != name and int(index) == 0:
        return get(kind)
    module, function = _MAKERS[kind]
    try:
        make = cast(Callable[..., Backend], getattr(importlib.import_module(module), function))
    except SystemError as error:  # of a library's import for which no memory is left
        fact = f"backend: {kind} cannot be loaded: out of memory ({error})."
        raise errors.OutOfMemory(fact) from error
    return make(int(index)) if index else make()


class GridSpec(NamedTuple):
    """The pieces of a grid, as in ``"grid:2x3-degree:gpu:3,1"``; None where the name says nothing.

    Without rows there is a piece for each process or device, without a kind each is on ``"auto"``,
    without devices they are the first ones.
    """

    rows: int | None = None
    columns: int | None = None
    order: str | None = None
    kind: str | None = None
    devices: Sequence[Any] | None = None

    @classmethod
    def parse(cls, name: str) -> GridSpec:
        """Return the grid of a name, or raise `InvalidValue`."""
        found = _GRID.fullmatch(name)
        if found is None:
            raise _no_grid(name)
        rows, columns = (int(x) if x else None for x in found.group("rows", "columns"))
        order, kind, devices = found.group("order", "kind", "devices")
        return cls(rows, columns, order, kind, devices and devices.split(",")).checked()

    @property
    def name(self) -> str:
        count = "" if self.rows is None else f":{self.rows}"
        across = "" if self.columns is None else f"x{self.columns}"
        order = "" if self.order is None else f"-{self.order}"
        devices = ",".join(map(str, self.devices or ()))
        return ":".join(filter(None, (f"grid{count}{across}{order}", self.kind, devices)))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of pieces; (0, 1) if they are not known yet."""
        return self.rows or 0, self.columns or 1

    def checked(self) -> GridSpec:
        """Return the grid itself, or raise `InvalidValue` if there is none such."""
        if math.prod(self.shape) > _MOST_PIECES or self.kind not in (None, *names()):
            raise _no_grid(self.name)
        return self

    def completed(self) -> GridSpec:
        """Return the grid with a number of pieces and a backend; first devices need no numbers."""
        kind, rows, devices = self.kind or get("auto").name, self.rows, None
        if self.devices is not None:
            devices = _checked_devices(self.devices, math.prod(self.shape) or None)
        if rows is None:
            job = launched()
            rows = len(devices) if devices else _devices(kind) if job is None else job.size
        if devices == list(range(len(devices or ()))):
            devices = None
        return self._replace(rows=rows, kind=kind, devices=devices)

    def make(self) -> Backend:
        """Return the grid, completed, on devices of its kind or all on the one backend."""
        job, pieces = launched(), math.prod(self.shape)
        grid = importlib.import_module("lagpu.backends.grid")

        def place_on(device: int) -> Backend:
            return get(f"{self.kind}:{device}" if self.kind in _NUMBERED else self.kind)

        if job is None:
            places = [place_on(device) for device in self.devices or range(pieces)]
            return cast(Backend, grid.make(self.name, places, self.shape, self.order))
        each, left = divmod(pieces, job.size)
        if left:
            raise InvalidValue(
                f"grid: {pieces} pieces cannot be divided among {job.size} processes. Start a "
                'number of processes that divides the pieces, or take "grid", which has a '
                "piece for each process."
            )
        made = grid.make_in_job(self.name, job, each, place_on, self.shape, self.order)
        return cast(Backend, made)


def _no_grid(name: str) -> InvalidValue:
    return InvalidValue(
        f"backend: there is no {name!r}. A grid is grid, grid:KIND, grid:P or grid:P:KIND, "
        f"with a number P of pieces from 1 to {_MOST_PIECES} or rows and columns as in "
        "grid:2x3, in another order as in grid:3-random or grid:3-degree, each piece on one of "
        f"{', '.join(names())}, or on numbered devices as in grid:2:gpu:3,1."
    )


def _of_grid(spec: GridSpec) -> Backend:
    """Return the one backend of a grid, made at its first use."""
    if launched() is not None:
        end_together()
    with _loading:
        grid = spec.completed()
        if grid.name not in _loaded:
            _add(grid.name, grid.make())
        return _loaded[grid.name]


def _checked_devices(devices: Any, pieces: int | None = None) -> list[int]:
    """Return the numbers of the devices of a grid's pieces, or raise what is wrong with them."""
    job = launched()
    if job is not None:
        raise InvalidValue(
            "grid: devices are chosen in a program of one process, and this is one of "
            f"{job.size}. Each process takes its own devices. Leave the numbers out, and have "
            "the launcher choose, as by CUDA_VISIBLE_DEVICES."
        )
    if isinstance(devices, str) or not hasattr(devices, "__iter__"):
        raise InvalidValue(f"grid: devices={devices!r} is no list of numbers, as in [0, 1].")
    found: list[int] = []
    for device in devices:
        if not re.fullmatch("[0-9]{1,9}", str(device)) or int(device) > _LAST_DEVICE:
            raise InvalidValue(f"grid: device {device!r} is not a number from 0 to {_LAST_DEVICE}.")
        if int(device) in found:
            fact = f"grid: device {device} is named twice. Each piece has a device of its own."
            raise InvalidValue(fact)
        found.append(int(device))
    if not found:
        raise InvalidValue("grid: devices=[] names none. Name one for each piece.")
    if pieces not in (None, len(found)):
        fact = f"grid: {pieces} pieces are not {len(found)} devices. Name one for each piece."
        raise InvalidValue(fact)
    return found


def _devices(kind: str) -> int:
    """Return the number of devices of a kind that this process sees: one, but for GPUs."""
    found = 1
    with suppress(BackendUnavailable):
        while kind == "gpu" and get(f"gpu:{found}"):
            found += 1
    return found


def _is_index(kind: str, index: str) -> bool:
    return kind in _NUMBERED and re.fullmatch("0|[1-9][0-9]{0,2}", index) is not None


def register(backend: Backend) -> None:
    """Add a backend under its own name."""
    with _loading:
        name = backend.name
        if name in (*names(), "auto") or re.split("[:-]", name)[0] in (*_NUMBERED, "grid"):
            raise InvalidValue(f"backend: {name!r} is taken. Choose another name.")
        _add(name, backend)


def name_elsewhere(backend: Backend) -> str:
    """Return the name by which another process finds a backend like this, as a pickle needs it."""
    name = backend.name
    if launched() is not None and name.startswith("grid"):
        raise NotSupported(
            f"pickle: {name} has pieces in several processes, and another one has none of them. "
            "Pickle a copy that lies in each process: x.to('cpu')."
        )
    if _loaded.get(name) is not backend:
        fact = f"pickle: no other process finds the backend {name}. Pickle a copy: x.to('cpu')."
        raise NotSupported(fact)
    return name


def found_again(name: str) -> Backend:
    """Return the backend of an unpickled object: of this name, or else what `use` has set."""
    try:
        return get(name)
    except (BackendUnavailable, InvalidValue) as error:
        chosen = _default.get()
        if chosen != "auto":  # the program's own choice, by `use`
            return get(chosen)
        raise BackendUnavailable(
            f"unpickle: the object was on {name}, which is not here. {error} To have it elsewhere, "
            "read the pickle inside with lagpu.use('cpu'):."
        ) from error


def available() -> dict[str, str]:
    """Return each backend's name with ``"yes"``, or with the reason why it is unavailable."""
    found = {}
    for name in names():
        try:
            get(name)
            found[name] = "yes"
        except BackendUnavailable as error:
            found[name] = str(error)
    return found


def bytes_on_gpu(out_degree: Any, symmetric: bool, one_form: bool = False) -> tuple[int, int]:
    """Estimate, without a GPU, a graph's bytes on a GPU: (the graph, the graph and a search).

    It has `out_degree` entries in each row. A search reads rows and columns unless they are equal,
    `symmetric`, or it reads the columns alone, `one_form`, as with ``A.orientation = "csc"``.
    """
    estimate = importlib.import_module("lagpu.backends.gpu.fused.search_grid").estimated_bytes
    return cast(tuple[int, int], estimate(out_degree, symmetric, one_form))


class _Use(ContextDecorator):
    """What `use` returns; it warns if it is dropped without a ``with``, since it did nothing."""

    def __init__(self, place: Backend) -> None:
        self._place, self._used = place, False
        self._tokens: list[Any] = []  # one may be entered again inside

    def __enter__(self) -> Backend:
        self._used = True
        self._tokens.append(_default.set(self._place))
        return self._place

    def _recreate_cm(self) -> _Use:
        """Return a context manager for each call of a decorated function."""
        self._used = True
        return _Use(self._place)

    def __exit__(self, *error: object) -> None:
        _default.reset(self._tokens.pop())

    def __del__(self) -> None:
        if not self._used:
            warnings.warn(
                f"use: the default backend is still the one before. Write with "
                f"lagpu.use({self._place.name!r}): and what is made there inside.",
                errors.UnusedCall,
                stacklevel=2,
            )


def use(backend: str | Backend) -> _Use:
    """Set the default backend of new objects, inside ``with lagpu.use("gpu"): ...``.

    Without ``with`` it does nothing, and warns (`UnusedCall`).
    """
    return _Use(get(backend))


def use_grid(
    pieces: int | str = "all", backend: str = "auto", policy: str | None = None,
    order: str | None = None, devices: Iterable[int] | None = None,
) -> _Use:  # fmt: skip
    """Set a grid as the default backend of new objects, inside ``with lagpu.grid(2): ...``.

    Parameters
    ----------
    pieces : int or str
        The number of pieces, or ``"2x3"`` rows and columns of them; ``"all"``: one for each process
        that mpirun or srun has started, else one for each GPU.
    backend : str
        The backend of the pieces, such as ``"cpu"``; ``"auto"``: gpu if there is a device.
    policy : str, optional
        How searches run: a paper's system, such as ``"bfs2d:ratio=0.1"`` (docs/design/grid.md). It
        belongs to the objects that are made inside.
    order : str, optional
        How indices are assigned to the pieces: ``"random"``, or by ``"degree"``, vertices with most
        edges first and isolated ones last. By default in runs.
    devices : iterable of int, optional
        The numbers of the GPUs, or with `backend` ``"sim"`` of the simulated devices, that have a
        piece each, in this order: ``lagpu.grid(devices=[3, 1])``. By default the first ones. In a
        job of several processes each takes devices of its own, and none can be chosen here.

    Returns
    -------
    context manager
        Its value is the grid, the backend that also has a name such as ``"grid:2x3-degree:cpu"``
        or ``"grid:2:gpu:3,1"``.

    Raises
    ------
    BackendUnavailable, InvalidValue
        If there are too few devices, or no such grid or devices.
    """
    if order not in (None, *_ORDERS):
        raise InvalidValue(f"grid: order {order!r} is not one of {', '.join(_ORDERS)}, or None.")
    spec = GridSpec() if pieces == "all" else GridSpec.parse(f"grid:{pieces}")
    spec = spec._replace(order=order, kind=None if backend == "auto" else backend)
    if devices is not None:
        kind = spec.kind or "gpu"
        if kind not in _NUMBERED:
            raise InvalidValue(
                f"grid: {backend} has no devices with numbers. Leave devices out, or take one of "
                f"{', '.join(_NUMBERED)}."
            )
        spec = spec._replace(kind=kind, devices=_checked_devices(devices))
    return use(overridden(_of_grid(spec.checked()), None, policy))
