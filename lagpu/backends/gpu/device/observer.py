"""Instrument a device while a trace is on: record launches, copies and bytes.

A device that nobody observes pays one comparison for each launch and copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import (
    CUDA_LIMITS,
    CheckedLaunch,
    Device,
    HostNotification,
    Timer,
    in_order,
    named_error,
)
from lagpu.backends.gpu.kernels import Kernel
from lagpu.backends.guard import refuse_after_fork
from lagpu.backends.profile import Measured
from lagpu.host.interrupt import listen

_NOTIFICATION = 24  # bytes: two numbers and a serial


class Observed:
    """The methods of a device that an observer sees; a device has each of them unobserved as well.

    A device defines `run` for `launch`, and ``_from_host``, ``_to_host``, ``_read`` and
    ``_wait_for``.

    Parameters
    ----------
    backend : str
        The backend whose device this is, for errors.

    Attributes
    ----------
    lock : context manager
        Held while statements or loops use the device, its counters and the forms of its matrices.
    observers : dict
        The observer of each thread that has one, by the thread's number.
    errors : tuple of type
        What the libraries under the device raise when it fails, besides MemoryError.
    began : bool
        Set by `run` when a launch cannot be taken back any more: an exception that comes after
        that, as an interrupt does, finds the kernel launched.
    enter : callable or None
        Called by a thread that has taken the lock, before it uses the device.
    """

    errors: tuple[type[Exception], ...] = ()
    enter: Callable[[], None] | None = None
    began = False
    limits = CUDA_LIMITS
    prepared_launch: type[CheckedLaunch] = CheckedLaunch  # what `prepare` returns

    def __init__(self, backend: str) -> None:
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self.observers: dict[int, Any] = {}
        refuse_after_fork(self, backend)
        listen()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock to use the device, where no method of the backend does."""
        try:
            with self.lock:
                if self.enter is not None:
                    self.enter()
                yield
        except Exception as error:
            named = named_error(self, error, "device")
            if named is None:
                raise
            raise named from error

    @property
    def observer(self) -> Any:
        """The observer of this thread, or None."""
        return self.observers.get(threading.get_ident()) if self.observers else None

    @observer.setter
    def observer(self, observer: Any) -> None:
        if observer is None:
            self.observers.pop(threading.get_ident(), None)
        else:
            self.observers[threading.get_ident()] = observer

    @contextmanager
    def launches_end(self, timer: Timer) -> Iterator[None]:
        """Have a timer end behind the last launch of this thread, or here if there is none.

        What the host does when a kernel has ended is not measured then.
        """
        seen = _TimerEnds(self, timer)
        seen.enter(Work())
        try:
            yield
        finally:
            seen.leave()
            with self.alone():
                if not seen.launched:
                    timer.__exit__(None, None, None)

    def launch(
        self,
        kernel: Kernel,
        threads: int,
        /,
        *args: Any,
        block: int = 256,
        cooperative: bool = False,
        shared: int = 0,
        **named: Any,
    ) -> None:
        """Run a kernel; see `Device.launch`."""
        if named:
            args = in_order(kernel, args, named)
        observer = self.observer
        if observer is None:
            self.run(kernel, threads, args, block, cooperative, shared)
        else:
            observer.launch(kernel, threads, args, block, cooperative, shared)

    def prepare(
        self,
        kernel: Kernel,
        threads: int,
        /,
        *,
        block: int = 256,
        cooperative: bool = False,
        shared: int = 0,
        **fixed: Any,
    ) -> CheckedLaunch:
        """Return a launch to be run often; see `Device.prepare`."""
        return self.prepared_launch(
            self, kernel, threads, fixed, block=block, cooperative=cooperative, shared=shared
        )

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a contiguous copy on the device."""
        observer = self.observer
        return (self._from_host if observer is None else observer.from_host)(array)

    def to_host(self, array: Any) -> np.ndarray[Any, Any]:
        """Return a copy on the host; waits for the work before it."""
        observer = self.observer
        copy = self._to_host if observer is None else observer.to_host
        found: np.ndarray[Any, Any] = copy(array)
        return found

    def read(self, array: Any) -> Any:
        """Return the one element of `array` as a Python scalar; waits for the work before it."""
        observer = self.observer
        return (self._read if observer is None else observer.read)(array)

    def wait_for(self, notification: HostNotification, counts: Any) -> tuple[int, int]:
        """Return the two numbers of a notification; see `Device.wait_for`."""
        observer = self.observer
        wait = self._wait_for if observer is None else observer.wait_for
        found: tuple[int, int] = wait(notification, counts)
        return found

    # ----------------------------------------------------------- what a device has to define
    def run(
        self,
        kernel: Kernel,
        threads: int,
        args: tuple[Any, ...],
        block: int,
        cooperative: bool,
        shared: int,
    ) -> None:
        """Run a kernel; no observer sees it."""
        raise NotImplementedError

    def prepared(self, launch: CheckedLaunch, new: dict[str, Any]) -> None:
        """Run a prepared launch; no observer sees it."""
        launch.run(new)

    def _from_host(self, array: np.ndarray[Any, Any]) -> Any:
        raise NotImplementedError

    def _to_host(self, array: Any) -> np.ndarray[Any, Any]:
        raise NotImplementedError

    def _read(self, array: Any) -> Any:
        raise NotImplementedError

    def _wait_for(self, notification: HostNotification, counts: Any) -> tuple[int, int]:
        raise NotImplementedError


class Work:
    """What was launched and copied since a moment; times are in events that nobody waits for."""

    __slots__ = ("bytes", "compile_ms", "copies", "copy_bytes", "each", "kernels")

    def __init__(self) -> None:
        self.kernels: list[Timer] = []
        self.copies: list[Timer] = []
        self.copy_bytes = self.bytes = 0
        self.compile_ms = 0.0
        self.each: list[tuple[str, float]] = []  # bytes for each edge, or entry

    def measured(self, host_ms: float, **counts: int) -> Measured:
        """Return the sums; waits for the work. `counts` are edges, in and out of a product."""
        return Measured(
            kernel_ms=sum((timer.elapsed_ms for timer in self.kernels), 0.0),
            host_ms=host_ms - self.compile_ms,
            compile_ms=self.compile_ms,
            copy_ms=sum((timer.elapsed_ms for timer in self.copies), 0.0),
            copy_bytes=self.copy_bytes,
            bytes=self.bytes + round(sum(counts.get(what, 0) * each for what, each in self.each)),
        )


class DeviceObserver:
    """Sees the launches and copies of one thread on a device, from `enter` to `leave`.

    Parameters
    ----------
    device : Device
        The device.
    traffic : mapping
        For each kernel that moves some arrays only in part: the arrays' names, with the count
        which the bytes are proportional to, and how many elements for each.

    Attributes
    ----------
    now : Work
        Where launches and copies are recorded.
    timed : bool
        Whether launches are timed and recorded.
    """

    def __init__(self, device: Device, traffic: Mapping[str, Any]) -> None:
        self.now = Work()
        self.timed = False
        self._device: Any = device
        self._outer: DeviceObserver | None = None
        self._traffic = traffic
        self._parts: dict[Kernel, tuple[list[int], list[tuple[int, str, float]]]] = {}

    def enter(self, now: Work) -> None:
        """Observe the device; an observer around this one goes on seeing everything."""
        self.now, self._outer = now, self._device.observer
        self._device.observer = self

    def leave(self) -> None:
        """Observe no more."""
        self.timed = False
        if self._device.observer is self:
            self._device.observer = self._outer
        self._outer = None

    def unseen(self, name: str) -> Callable[..., Any]:
        """Return a method of the device, such as ``"read"``, that this observer does not see."""
        outer, own = self._outer, "prepared" if name == "prepared" else f"_{name}"
        if outer is not None:
            found: Callable[..., Any] = getattr(outer, name)
        else:
            found = getattr(self._device, "run" if name == "launch" else own)
        return found

    def launch(self, kernel: Kernel, threads: int, args: tuple[Any, ...], *how: Any) -> None:
        """See a launch; `how` is block, cooperative, shared."""
        if not self.timed:
            self.unseen("launch")(kernel, threads, args, *how)
            return
        self._device.load(kernel)
        with self._device.timer() as timer:
            self.unseen("launch")(kernel, threads, args, *how)
        self.now.kernels.append(timer)
        self._add_traffic(kernel, args)

    def prepared(self, launch: CheckedLaunch, new: dict[str, Any]) -> None:
        """See a prepared launch."""
        if not self.timed:
            self.unseen("prepared")(launch, new)
            return
        self._device.load(launch.kernel)
        with self._device.timer() as timer:
            self.unseen("prepared")(launch, new)
        self.now.kernels.append(timer)
        self._add_traffic(launch.kernel, launch.all(new))

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        """See a copy to the device."""
        return self._copied("from_host", array)

    def to_host(self, array: Any) -> Any:
        """See a copy to the host."""
        return self._copied("to_host", array)

    def read(self, array: Any) -> Any:
        """See a number read."""
        return self._copied("read", array)

    def wait_for(self, notification: HostNotification, counts: Any) -> Any:
        """See a notification: it is not timed, as the host waits for the kernel, not for a copy."""
        self.now.copy_bytes += _NOTIFICATION
        return self.unseen("wait_for")(notification, counts)

    def _copied(self, name: str, *args: Any) -> Any:
        now = self.now
        with self._device.timer() as timer:
            made = self.unseen(name)(*args)
        now.copies.append(timer)
        now.copy_bytes += getattr(made, "nbytes", args[0].nbytes)
        return made

    def _add_traffic(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        """Add the bytes that a launch moves: each array once, or of some only a part."""
        now = self.now
        whole, partly = self._parts_of(kernel)
        for k in whole:
            if args[k] is not None:
                now.bytes += args[k].nbytes
        now.each += [(what, each) for k, what, each in partly if args[k] is not None]

    def _parts_of(self, kernel: Kernel) -> tuple[list[int], list[tuple[int, str, float]]]:
        """Return which arguments count whole, and which as bytes for each edge or entry."""
        found = self._parts.get(kernel)
        if found is None:
            partly = self._traffic.get(kernel.name, {})
            arrays = [(k, param) for k, param in enumerate(kernel.params) if param.pointer]
            found = self._parts[kernel] = (
                [k for k, param in arrays if param.name not in partly],
                [
                    (k, partly[param.name][0], partly[param.name][1] * param.dtype.itemsize)
                    for k, param in arrays
                    if param.name in partly
                ],
            )
        return found


class _TimerEnds(DeviceObserver):
    """Ends a timer behind each launch that was prepared; the last end counts."""

    def __init__(self, device: Any, timer: Timer) -> None:
        super().__init__(device, {})
        self._timer = timer
        self.launched = False

    def prepared(self, launch: CheckedLaunch, new: dict[str, Any]) -> None:
        """See a prepared launch."""
        super().prepared(launch, new)
        self.launched = True
        self._timer.__exit__(None, None, None)
