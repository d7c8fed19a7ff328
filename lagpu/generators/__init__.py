"""Generate graphs: random graphs from a seed, and simple shapes with known answers.

Every graph is simple (no self-loops, no parallel edges) and, except for `gnm` and for directed
paths and cycles, symmetric: each edge is two entries. Matrices are BOOL and store no values.
`from_spec` makes a graph from a text such as ``kron:16``.

Numbers are at least 1 unless a docstring says otherwise. The same `seed` gives the same graph, and
`backend` is where the matrix will live. `InvalidValue` is raised if a number is out of range, and
`OutOfMemory` if the graph does not fit, before anything is allocated.
"""

from lagpu.generators.graphs import (
    chains,
    complete,
    cycle,
    delaunay,
    gnm,
    grid2d,
    hubs,
    kronecker,
    mycielskian,
    path,
    road,
    star,
    uniform,
)
from lagpu.generators.load import from_spec, is_spec

__all__ = [
    "chains",
    "complete",
    "cycle",
    "delaunay",
    "from_spec",
    "gnm",
    "grid2d",
    "hubs",
    "is_spec",
    "kronecker",
    "mycielskian",
    "path",
    "road",
    "star",
    "uniform",
]
