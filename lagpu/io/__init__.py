"""Read, write and convert graphs: files, SciPy, cupyx, NetworkX, NumPy, and arrays on a device.

``read`` and ``write`` handle Matrix Market, edge lists (both also gzipped) and ``.npz``.
"""

from lagpu.io.arrays import from_arrays, from_scipy, to_scipy
from lagpu.io.cupyx_matrices import from_cupyx, to_cupyx
from lagpu.io.files import read, write, write_vector
from lagpu.io.networkx_graphs import from_networkx, to_networkx

__all__ = [
    "from_arrays",
    "from_cupyx",
    "from_networkx",
    "from_scipy",
    "read",
    "to_cupyx",
    "to_networkx",
    "to_scipy",
    "write",
    "write_vector",
]
