"""000: Hiragushi and Takahashi, hybrid BFS. Against Merrill's search, and on many GPUs."""

from __future__ import annotations

from lagpu.papers.claims import Choice, Ratio, Values
from lagpu.papers.experiment import Experiment, Paper, PaperGraph, Variant
from lagpu.papers.metrics import HARMONIC_TEPS, MEDIAN_TEPS, SHARE
from lagpu.papers.scaling import weak

__all__ = ["HIRAGUSHI"]

_POLICY = "hiragushi"
_SEED = "the same generator's parameters with another seed"
_GRAPHS = (
    PaperGraph("packing-500x100x100-b050"),
    PaperGraph("wikipedia-20070206"),
    PaperGraph("com-YouTube"),
    PaperGraph("com-LiveJournal"),
    PaperGraph("soc-Pokec"),
    PaperGraph("wiki-Talk"),
    PaperGraph(
        "random.1Mv.64Me", "urand:20:64", "undirected and without repeated edges", "urand:8:16",
        "random",
    ),
    PaperGraph(
        "rmat.1Mv.64Me", "kron:20:64", "undirected, with the chances of Graph500, not of GTgraph",
        "kron:8:16", "scale-free",
    ),
    PaperGraph("kron_g500-logn20", "kron:20:48", _SEED, "kron:7:24", "scale-free"),
)  # fmt: skip
_VARIANTS = (
    Variant("hybrid", "parents", policy=_POLICY),
    Variant("hybrid (fused)", "parents", policy=_POLICY, fused=True, ours=True),
    Variant("Merrill", "parents", kernel="push_merrill"),
    Variant(
        "Merrill (one kernel)", "parents", kernel="push_queue", ours=True,
        note="expands and contracts in one kernel, with exact claims",
    ),
    Variant("bottom-up (gathering)", "parents", kernel="pull_gather", ours=True),
    Variant("bottom-up (a ballot a word)", "parents", kernel="pull_bitmap", ours=True),
    Variant("lagpu", "parents", ours=True),
)  # fmt: skip
_ALPHAS = (3, 12, 24, 48, 96)
_MACHINE = "one Tesla M2050"
_PACS = "HA-PACS, four Tesla M2090 a node"

HIRAGUSHI = Paper(
    "000",
    ("hiragushi",),
    "Efficient Hybrid Breadth-First Search on GPUs",
    "T. Hiragushi and D. Takahashi, ICA3PP 2013, LNCS 8286",
    (
        Experiment(
            "figure 4a", "hybrid search and Merrill's", _GRAPHS, _VARIANTS, MEDIAN_TEPS,
            (
                Ratio("hybrid", "Merrill", 1.0, "up to 29x, and less than 1x on some graphs"),
                Ratio("hybrid", "Merrill (one kernel)", 1.0,
                      "up to 29x over Merrill's program"),
                Ratio("bottom-up (a ballot a word)", "bottom-up (gathering)", 1.0,
                      "gathers the unvisited vertices, so that no lane is idle on visited ones"),
            ),
            64, _MACHINE,
            notes=("The paper's figures are bars without numbers, but for the 29x.",),
        ),
        Experiment(
            "figure 4b", "time of top-down and bottom-up", _GRAPHS,
            (
                Variant("top-down", "parents", policy=_POLICY, part="push"),
                Variant("bottom-up", "parents", policy=_POLICY, part="pull"),
            ),
            SHARE,
            (Values("top-down", "where top-down takes more of the time, the search is slower"),),
            64, _MACHINE, kind="parts",
        ),
        Experiment(
            "section 3.5", "the tuning parameter alpha", _GRAPHS,
            tuple(
                Variant(f"alpha={alpha}", "parents", policy=f"hiragushi:alpha={alpha},beta=20")
                for alpha in _ALPHAS
            ),
            MEDIAN_TEPS,
            (Choice(tuple(f"alpha={alpha}" for alpha in _ALPHAS), "alpha 48, beta 20"),),
            16, _MACHINE,
        ),
        weak(
            "figure 5a", "weak scaling of the hybrid search", 21, (16,),
            (
                Variant("hybrid", "parents", policy=_POLICY),
                Variant("top-down", "parents", policy="kepler", ours=True),
            ),
            HARMONIC_TEPS, {}, _PACS, notes=("The paper has 117.546 GTEPS on 1024 GPUs.",),
        ),
        weak(
            "figure 5b", "computation and communication of the hybrid search", 21, (16,),
            tuple(
                Variant(phase, "parents", policy=_POLICY, part=phase)
                for phase in ("expand", "share", "expansion", "fold", "update", "agree")
            ),
            SHARE, {}, _PACS, kind="parts",
        ),
    ),
    {"table 1": "the graphs of figure 4a", "table 2": "the machine of figure 5",
     "figure 1": "an algorithm", "figure 2": "an algorithm", "figure 3": "an algorithm"},
)  # fmt: skip
