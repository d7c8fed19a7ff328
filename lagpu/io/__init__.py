"""Read, write and convert graphs: files, SciPy, cupyx, NetworkX, NumPy, and arrays on a device.

``read`` and ``write`` handle the formats of :doc:`/files`.
"""

from lagpu.io.arrays import (
    from_arrays,
    from_cupyx,
    from_edgelist,
    from_graphblas,
    from_igraph,
    from_pandas_edgelist,
    from_scipy,
    to_cupyx,
    to_graphblas,
    to_igraph,
    to_scipy,
    to_scipy_sparse,
)
from lagpu.io.fetch import fetch
from lagpu.io.files import read, write, write_vector
from lagpu.io.networkx_graphs import from_networkx, to_networkx

from_scipy_sparse = from_scipy  # the name in python-graphblas

__all__ = [
    "fetch",
    "from_arrays",
    "from_cupyx",
    "from_edgelist",
    "from_graphblas",
    "from_igraph",
    "from_networkx",
    "from_pandas_edgelist",
    "from_scipy",
    "from_scipy_sparse",
    "read",
    "to_cupyx",
    "to_graphblas",
    "to_igraph",
    "to_networkx",
    "to_scipy",
    "to_scipy_sparse",
    "write",
    "write_vector",
]
