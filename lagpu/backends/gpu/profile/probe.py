"""State that operations share: device, counters, and the plan of the last product."""

from __future__ import annotations

import threading
from typing import Any

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.matrix import CscMatrix

__all__ = ["Runtime"]


class Runtime:
    """The device of a backend, and the plan and measurements of its last product.

    Parameters
    ----------
    device : Device
        Where operations run.

    Attributes
    ----------
    counters : Counters
        Zeroed numbers for kernels.
    plan : Plan or None
        Direction, kernel and reason of this thread's last product; None before the first one.
    edges : array or None
        While a product is measured, the counter of the matrix entries that it looks at.
    product : CscMatrix, BitmapMatrix or None
        While a product of matrices is measured, its result before it was written.
    """

    __slots__ = ("_plans", "counters", "device", "edges", "product")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.counters = Counters(device)
        self._plans = threading.local()
        self.edges: Any = None
        self.product: CscMatrix | BitmapMatrix | None = None

    @property
    def plan(self) -> Any:
        """The plan of this thread's last product, or None."""
        return getattr(self._plans, "last", None)

    @plan.setter
    def plan(self, plan: Any) -> None:
        self._plans.last = plan
