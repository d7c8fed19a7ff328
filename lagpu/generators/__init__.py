"""Generate graphs: random graphs from a seed, and simple shapes with known answers.

Every graph is simple (no self-loops, no parallel edges) and, except for `gnm` and for directed
paths and cycles, symmetric: each edge is two entries. Matrices are BOOL and store no values.
`from_spec` makes a graph from a text such as ``kron:16``.

Numbers are at least 1 unless a docstring says otherwise. The same `seed` gives the same graph, and
`backend` is where the matrix will live. `InvalidValue` is raised if a number is out of range, and
`OutOfMemory` if the graph does not fit, before anything is allocated.
"""

import inspect

from lagpu.generators.graphs import *
from lagpu.generators.load import *

__all__ = sorted(name for name, x in globals().items() if inspect.isfunction(x))
