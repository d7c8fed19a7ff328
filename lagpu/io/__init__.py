"""Read, write and convert graphs: files, SciPy, cupyx, NetworkX, NumPy, and arrays on a device.

``read`` and ``write`` handle the formats of :doc:`/files`.
"""

import inspect

from lagpu.io.arrays import *
from lagpu.io.fetch import *
from lagpu.io.files import *
from lagpu.io.networkx_graphs import *

__all__ = sorted(name for name, x in globals().items() if inspect.isfunction(x))
