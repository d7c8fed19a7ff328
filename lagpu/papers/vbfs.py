"""001: Wen and Zhang, VBFS. A vertex cut into groups of at most K edges, beside a thread a vertex.

The slides number no figure: those of the results are counted in their order.
"""

from __future__ import annotations

from lagpu.papers.claims import Choice, Ratio
from lagpu.papers.experiment import Experiment, Paper, PaperGraph, Variant
from lagpu.papers.metrics import energy, energy_delay, speedup

__all__ = ["VBFS"]

_BASE = "baseline"
_MACHINE = "GPGPU-Sim, 15 multiprocessors at 700 MHz"
_DRAWN = "edges drawn with equal chance, since the slides say nothing of the graph but its size"
_BASELINE = Variant(_BASE, kernel="push_vertex")
_VARIANTS = (_BASELINE, Variant("VBFS", kernel="push_virtual:32"), Variant("lagpu", ours=True))
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
_SWEEP = (
    _BASELINE,
    *(Variant(f"K={size}", kernel=f"push_virtual:{size}") for size in _SIZES),
)
_NUMBERS = "The slides number no figure: those of the results are counted in their order."
_NO_FIGURES = "The slides have no number but in bars; the simulator's cycles are replaced by times."
_GROUP = "The slides do not say which K these bars have; here it is 32."
_WHOLE = "The slides estimate the energy of a kernel; NVML counts that of the whole GPU, idle too."

# Vertices, edges of the dense version and of the sparse one.
_GRAPHS = (
    (128, 7750, 2874),
    (256, 29586, 10538),
    (512, 125120, 26650),
    (1024, 517990, 54410),
    (2048, 2028368, 167440),
    (4096, 5315733, 371420),
)


def _graphs(kind: str, most: int = len(_GRAPHS)) -> tuple[PaperGraph, ...]:
    found = []
    for number, (n, *edges) in enumerate(_GRAPHS[:most]):
        m = edges[kind == "sparse"]
        quick = f"gnm:{n}:{m}" if number == 0 else None
        name = f"Graph{number} {kind}"
        found.append(PaperGraph(name, f"gnm:{n}:{m}", _DRAWN, quick, kind, size=(n, m)))
    return tuple(found)


def _speedups(part: str, kind: str) -> Experiment:
    paper = f"VBFS is faster than a thread a vertex on {kind} graphs"
    return Experiment(
        part, f"a thread a vertex and VBFS on {kind} graphs", _graphs(kind), _VARIANTS,
        speedup(_BASE), (Ratio("VBFS", _BASE, 1.0, paper),), 16, _MACHINE,
        notes=(_NUMBERS, _NO_FIGURES, _GROUP),
    )  # fmt: skip


VBFS = Paper(
    "001",
    ("vbfs",),
    "Improving Parallelism of Breadth First Search (BFS) Algorithm for Accelerated Performance "
    "on GPUs",
    "H. Wen and W. Zhang, IEEE HPEC 2019",
    (
        _speedups("figure 1", "dense"),
        _speedups("figure 2", "sparse"),
        Experiment(
            "figure 3", "the group size K on dense and sparse graphs",
            (*_graphs("dense"), *_graphs("sparse")), _SWEEP, speedup(_BASE),
            (Choice(tuple(v.name for v in _SWEEP[1:]), "the best size is another on each graph"),),
            16, _MACHINE, notes=(_NUMBERS, _NO_FIGURES),
        ),
        Experiment(
            "figure 4", "energy of a search", (*_graphs("dense"), *_graphs("sparse")), _VARIANTS,
            energy(_BASE), (Ratio("VBFS", _BASE, 1.0, "VBFS takes less energy"),), 16, _MACHINE,
            energy=True, notes=(_NUMBERS, _WHOLE, _GROUP),
        ),
        Experiment(
            "figure 5", "energy-delay product", (*_graphs("dense"), *_graphs("sparse")), _VARIANTS,
            energy_delay(_BASE), (Ratio("VBFS", _BASE, 1.0, "VBFS has the smaller product"),), 16,
            _MACHINE, energy=True, notes=(_NUMBERS, _WHOLE, _GROUP),
        ),
    ),
    {"table 1": "the simulator's configuration", "table 2": "the graphs of figures 1 and 2"},
)  # fmt: skip
