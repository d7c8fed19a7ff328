"""The registry of backends, each of which is imported on first use."""

from __future__ import annotations

import copyreg
import dataclasses
import importlib
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar
from typing import Any, cast

from lagpu.backends.guard import overridden
from lagpu.backends.protocol import Backend
from lagpu.errors import (
    BackendUnavailable,
    DomainMismatch,
    InvalidValue,
    NotSupported,
    OutOfMemory,
    UnusedCall,
)
from lagpu.host.job import end_together, launched

__all__ = [
    "available",
    "bytes_on_gpu",
    "choose",
    "found_again",
    "get",
    "name_elsewhere",
    "names",
    "register",
    "use",
    "use_grid",
]

# name -> (module, function that makes the backend)
_MAKERS: dict[str, tuple[str, str]] = {
    "cpu": ("lagpu.backends.cpu", "make"),
    "gpu": ("lagpu.backends.gpu", "make_gpu"),
    "sim": ("lagpu.backends.gpu", "make_sim"),
}
_NUMBERED = ("gpu", "sim")  # with a backend for each device, as in "gpu:1"
_COUNT = "[1-9][0-9]{0,2}"
_ORDERS = ("random", "degree")
# backend of each piece; after one with numbered devices, such as "sim", the numbers of these
_ON = "(?::(?P<kind>.+?)(?:(?<=:gpu|:sim):(?P<devices>[0-9]+(?:,[0-9]+)*))?)?"
_SHAPE = f"(?P<rows>{_COUNT})(?:x(?P<columns>{_COUNT}))?"
_GRID = re.compile(f"grid(?::{_SHAPE})?(?:-(?P<order>{'|'.join(_ORDERS)}))?{_ON}")
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
    return _is_index(kind, index) or kind.partition("-")[0] == "grid"


def get(backend: str | Backend | None = None) -> Backend:
    """Return a backend.

    Parameters
    ----------
    backend : str or Backend, optional
        ``"cpu"``, ``"gpu"``, ``"sim"``, a registered name, or ``"auto"``: gpu if there is a device,
        else cpu. ``"gpu:1"`` is the second GPU, and ``"gpu:0"`` is ``"gpu"``; each has a backend of
        its own, and so have the simulated devices ``"sim:1"``, ``"sim:2"``, ... ``"grid:3:cpu"``
        is a grid of three pieces, each on cpu, and ``"grid:2:gpu"`` one on the first two GPUs;
        ``"grid:2"`` takes auto. ``"grid:2x3:cpu"`` has two rows and three columns of pieces, by
        which matrices are cut in both dimensions. ``"grid:3-random:cpu"`` deals indices to the
        pieces at random, ``"grid:3-degree:cpu"`` in the order of the vertices' degrees.
        ``"grid:2:gpu:3,1"`` has its pieces on the devices of these numbers. ``"grid"``,
        ``"grid:cpu"`` and ``"grid-degree:cpu"`` have a piece for each process that mpirun or srun
        has started, else one for each GPU. None means the default that `use` sets, initially
        ``"auto"``. A `Backend` is returned as it is.

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
    found = _loaded.get(backend)
    return found if found is not None else _load(backend)


def choose(like: Any, backend: str | Backend | None) -> Backend:
    """Return the backend of `like`, or the one that `backend` names.

    Raises
    ------
    InvalidValue
        If both are given and differ.
    """
    if like is None:
        return get(backend)
    place = getattr(like, "backend", None)
    if place is None:
        raise DomainMismatch(f"like: {type(like).__name__} is neither a Vector nor a Matrix.")
    if backend is not None and get(backend) is not place:
        raise InvalidValue(f"like: is on {place.name}, not on {backend}. Give one of the two.")
    return get(place)


def _load(name: str) -> Backend:
    with _loading:
        found = _loaded.get(name)  # another thread may have loaded it meanwhile
        if found is None:
            found = _made(name)
            _add(name, found)
        return found


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
        found = _GRID.fullmatch(name)
        if found is None:
            raise _no_grid(name)
        devices = None if found["devices"] is None else found["devices"].split(",")
        spec = GridSpec(*_numbers(found), found["order"], found["kind"], devices)
        return _grid(spec, name)
    if kind not in _MAKERS or (kind != name and not _is_index(kind, index)):
        raise InvalidValue(f"backend: there is no {name!r}. Use one of auto, {', '.join(names())}.")
    if kind != name and int(index) == 0:
        return get(kind)
    module, function = _MAKERS[kind]
    try:
        make = cast(Callable[..., Backend], getattr(importlib.import_module(module), function))
    except SystemError as error:  # of a library's import for which no memory is left
        raise OutOfMemory(f"backend: {kind} cannot be loaded: out of memory ({error}).") from error
    return make(int(index)) if index else make()


@dataclasses.dataclass(frozen=True)
class GridSpec:
    """A grid as it is requested."""

    rows: int | None  # of pieces; None: a piece for each process or device
    columns: int | None  # None: one
    order: str | None  # in which indices are distributed
    kind: str | None  # the backend of the pieces; None: auto
    devices: Iterable[Any] | None  # their numbers; None: the first ones, or those of each process

    @property
    def name(self) -> str:
        """The name by which `get` finds it."""
        columns = "" if self.columns is None else f"x{self.columns}"
        order = f"-{self.order}" if self.order else ""
        devices = ",".join(map(str, self.devices or ()))
        shape = "" if self.rows is None else f":{self.rows}{columns}"
        return ":".join(filter(None, (f"grid{shape}{order}", self.kind, devices)))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of pieces."""
        return self.rows or 1, self.columns or 1


def _numbers(found: re.Match[str] | None) -> tuple[int | None, int | None]:
    """Return the rows and columns of pieces that a pattern has found."""
    rows, columns = (None, None) if found is None else found.group("rows", "columns")
    return None if rows is None else int(rows), None if columns is None else int(columns)


def _no_grid(name: str) -> InvalidValue:
    return InvalidValue(
        f"backend: there is no {name!r}. A grid is grid, grid:KIND, grid:P or grid:P:KIND, "
        f"with a number P of pieces from 1 to {_MOST_PIECES} or rows and columns as in "
        "grid:2x3, in another order as in grid:3-random or grid:3-degree, each piece on one of "
        f"{', '.join(names())}, or on numbered devices as in grid:2:gpu:3,1."
    )


def _grid(spec: GridSpec, name: str) -> Backend:
    """Return the grid of a specification, which may leave pieces and kind open; `name` as given."""
    if spec.kind not in (None, *names()) or math.prod(spec.shape) > _MOST_PIECES:
        raise _no_grid(name)
    job = launched()
    if job is not None:
        end_together()
    devices = None if spec.devices is None else tuple(_checked_devices(spec.devices))
    kind, rows = spec.kind or get("auto").name, spec.rows
    if rows is None:
        rows = len(devices) if devices else _devices(kind) if job is None else job.size
    pieces = rows * spec.shape[1]
    if devices and len(devices) != pieces:
        raise InvalidValue(
            f"grid: {pieces} pieces are not {len(devices)} devices. Name one for each piece."
        )
    if devices == tuple(range(pieces)):
        devices = None  # they are the first ones
    known = dataclasses.replace(spec, rows=rows, kind=kind, devices=devices)
    if known.name not in _loaded:
        _add(known.name, _made_grid(known))
    return _loaded[known.name]


def _checked_devices(devices: Any) -> list[int]:
    """Return the numbers of the devices of a grid's pieces, or raise what is wrong with them."""
    job = launched()
    if job is not None:
        raise InvalidValue(
            "grid: devices are chosen in a program of one process, and this is one of "
            f"{job.size}, each of which takes devices of its own. Leave the numbers out, and have "
            "the launcher choose, as by CUDA_VISIBLE_DEVICES."
        )
    if isinstance(devices, str) or not hasattr(devices, "__iter__"):
        raise InvalidValue(f"grid: devices={devices!r} is no list of numbers, as in [0, 1].")
    found: list[int] = []
    for device in devices:
        if not re.fullmatch("[0-9]{1,9}", str(device)) or int(device) > _LAST_DEVICE:
            raise InvalidValue(f"grid: device {device!r} is not a number from 0 to {_LAST_DEVICE}.")
        if int(device) in found:
            raise InvalidValue(
                f"grid: device {device} is named twice. Each piece has a device of its own."
            )
        found.append(int(device))
    if not found:
        raise InvalidValue("grid: devices=[] names none. Name one for each piece.")
    return found


def _made_grid(spec: GridSpec) -> Backend:
    """Return a new grid on some devices of a kind, or with all pieces on its one backend."""
    (rows, columns), job = spec.shape, launched()
    grid = importlib.import_module("lagpu.backends.grid")

    def place_on(device: int) -> Backend:
        return get(f"{spec.kind}:{device}" if spec.kind in _NUMBERED else spec.kind)

    if job is None:
        places = [place_on(device) for device in spec.devices or range(rows * columns)]
        return cast(Backend, grid.make(spec.name, places, spec.shape, spec.order))
    each, left = divmod(rows * columns, job.size)
    if left:
        raise InvalidValue(
            f"grid: {rows * columns} pieces cannot be dealt to {job.size} processes. Start a "
            'number of processes that divides the pieces, or take "grid", which has a piece for '
            "each process."
        )
    made = grid.make_in_job(spec.name, job, each, place_on, spec.shape, spec.order)
    return cast(Backend, made)


def _devices(kind: str) -> int:
    """Return the number of devices of a kind that this process sees: one, but for GPUs."""
    if kind != "gpu":
        return 1
    found = 1
    with suppress(BackendUnavailable):
        while get(f"gpu:{found}"):
            found += 1
    return found


def _is_index(kind: str, index: str) -> bool:
    """Whether a device of this kind may have the number `index`."""
    return kind in _NUMBERED and re.fullmatch("0|[1-9][0-9]{0,2}", index) is not None


def register(backend: Backend) -> None:
    """Add a backend under its own name.

    Raises
    ------
    InvalidValue
        If the name is taken, or that of a numbered device or of a grid.
    """
    with _loading:
        name = backend.name
        if name in (*names(), "auto") or re.split("[:-]", name)[0] in (*_NUMBERED, "grid"):
            raise InvalidValue(f"backend: {name!r} is taken. Choose another name.")
        _add(name, backend)


def name_elsewhere(backend: Backend) -> str:
    """Return the name by which another process finds a backend like this, as a pickle needs it.

    Raises
    ------
    NotSupported
        If there is none: the backend is not registered, or its pieces are in several processes.
    """
    name = backend.name
    if launched() is not None and name.startswith("grid"):
        raise NotSupported(
            f"pickle: {name} has pieces in several processes, and another one has none of them. "
            "Pickle a copy that lies in each process: x.to('cpu')."
        )
    if _loaded.get(name) is not backend:
        raise NotSupported(
            f"pickle: no other process finds the backend {name}. Pickle a copy: x.to('cpu')."
        )
    return name


def found_again(name: str) -> Backend:
    """Return the backend of this name for an object that is unpickled.

    Where there is none, that is the one that the program has chosen with `use`.

    Raises
    ------
    BackendUnavailable
        If there is no backend of this name, and `use` has not chosen one.
    """
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

    Parameters
    ----------
    out_degree : array of int, (n,)
        Entries of each row.
    symmetric : bool
        Whether the rows equal the columns; else a search reads both.
    one_form : bool
        Whether a search reads the columns alone, as with ``A.orientation = "csc"``.
    """
    estimate = importlib.import_module("lagpu.backends.gpu.fused.search_space").estimated_bytes
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
        """Return one for each call of a function that is decorated."""
        self._used = True
        return _Use(self._place)

    def __exit__(self, *error: object) -> None:
        _default.reset(self._tokens.pop())

    def __del__(self) -> None:
        if not self._used:
            warnings.warn(
                f"use: the default backend is still the one before. Write with "
                f"lagpu.use({self._place.name!r}): and what is made there inside.",
                UnusedCall,
                stacklevel=2,
            )


def use(backend: str | Backend) -> _Use:
    """Set the default backend of new objects, inside ``with lagpu.use("gpu"): ...``.

    Without ``with`` it does nothing, and warns (`UnusedCall`).
    """
    return _Use(get(backend))


def use_grid(
    pieces: int | str = "all",
    backend: str = "auto",
    policy: str | None = None,
    order: str | None = None,
    devices: Iterable[int] | None = None,
) -> _Use:
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
        How indices are dealt to the pieces, which nobody sees from outside: ``"random"``, or by
        ``"degree"``, vertices with most edges first and isolated ones last. By default as they are,
        in runs.
    devices : iterable of int, optional
        The numbers of the GPUs, or with `backend` ``"sim"`` of the simulated devices, that have a
        piece each, in this order: ``lagpu.grid(devices=[3, 1])``. By default the first ones. In a
        job of several processes each takes devices of its own, and none can be chosen here.

    Returns
    -------
    context manager
        It gives the grid, which `get` names ``"grid:2"``, ``"grid:2x3-degree:cpu"``,
        ``"grid:2:gpu:3,1"`` and so on.

    Raises
    ------
    BackendUnavailable
        If there are fewer devices than pieces, or not those that `devices` names.
    InvalidValue
        If there is no such grid, if `devices` names one twice or not one for each piece, or in a
        job of several processes.
    """
    if order not in (None, *_ORDERS):
        raise InvalidValue(f"grid: order {order!r} is not one of {', '.join(_ORDERS)}, or None.")
    kind, _, numbers = backend.partition(":")
    chosen: Any = devices
    if devices is not None:
        kind, chosen = _kind_of_devices(backend), _checked_devices(devices)
    elif kind in _NUMBERED and numbers:
        chosen = numbers.split(",")
    else:
        kind = backend
    size = re.fullmatch(_SHAPE, str(pieces))
    spec = GridSpec(*_numbers(size), order, None if kind == "auto" else kind, chosen)
    name = spec.name
    if pieces != "all" and size is None:
        raise _no_grid(name.replace("grid", f"grid:{pieces}", 1))
    with _loading:
        place = _grid(spec, name)
    return use(overridden(place, None, policy))


def _kind_of_devices(backend: str) -> str:
    """Return the kind of the devices of a grid that are named by numbers."""
    kind = "gpu" if backend == "auto" else backend
    if kind not in _NUMBERED:
        raise InvalidValue(
            f"grid: {backend} has no devices with numbers. Leave devices out, or take one of "
            f"{', '.join(_NUMBERED)}."
        )
    return kind
