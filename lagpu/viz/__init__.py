"""Pictures of matrices, vectors, masks, products and searches, for lectures and notebooks.

Each function takes lagpu objects of any backend and returns Matplotlib `Axes` (or a `Figure` with
several panels); ``ax=`` draws into given axes. The extra ``viz`` is required
(``pip install "lagpu[viz]"``). No entry and an explicit zero never look the same, and the colours
can be told apart by colour-blind readers (Okabe and Ito 2008).
"""

from lagpu.viz.graphs import graph
from lagpu.viz.matrices import matrix
from lagpu.viz.products import product
from lagpu.viz.searches import frontier, frontiers, level_histogram
from lagpu.viz.style import save
from lagpu.viz.vectors import mask, vector

draw = graph  # the name in python-graphblas

__all__ = [
    "draw",
    "frontier",
    "frontiers",
    "graph",
    "level_histogram",
    "mask",
    "matrix",
    "product",
    "save",
    "vector",
]
