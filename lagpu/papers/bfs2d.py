"""002: Bernaschi, Bisson, Mastrostefano and Vella, bfs2d and MGBC."""

from __future__ import annotations

from lagpu.papers.claims import Choice, Peak, Ratio
from lagpu.papers.experiment import Experiment, Paper, PaperGraph, Variant
from lagpu.papers.metrics import MEAN_MS, MEAN_TEPS, SHARE
from lagpu.papers.scaling import strong, weak

__all__ = ["BFS2D"]

_SEED = "the same generator's parameters with another seed, without repeated edges"
_MESH = "a triangulation, with as many vertices and a third of the levels"
_GRID = "a grid without a fifth of its links, with about as many vertices"
_TITAN = "one Titan X (Pascal)"
_VARIANTS = (
    Variant("td", "parents", kernel="push_active"),
    Variant("do", "parents", policy="bfs2d"),
    Variant("do (fused)", "parents", policy="bfs2d", fused=True, ours=True),
    Variant("lagpu", "parents", ours=True),
)
_SYSTEM = (Variant("bfs2d", "parents", policy="bfs2d"),)
_RATIOS = ("0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5")
_SWEEP = tuple(Variant(f"R_th={r}", "parents", policy=f"bfs2d:ratio={r}") for r in _RATIOS)

_REAL = (
    PaperGraph("hollywood-2009", size=(1.1e6, 112.8e6)),
    PaperGraph("indochina-2005", size=(7.4e6, 302e6)),
    PaperGraph("soc-LiveJournal1", size=(4.8e6, 85.7e6)),
    PaperGraph("soc-orkut", size=(3e6, 212.7e6)),
    PaperGraph("road-USA", "road:4888", _GRID, "road:10", "mesh", size=(23.9e6, 57.7e6)),
    PaperGraph("rgg-n-24", "delaunay:22", "another mesh, of a quarter of the vertices",
               "delaunay:7", "mesh", size=(16.8e6, 265.1e6)),
)  # fmt: skip


def _rmat(scale: int, factor: int, quick: str | None = None) -> PaperGraph:
    name, made = f"R-MAT S{scale} EF{factor}", f"kron:{scale}:{factor}"
    return PaperGraph(name, made, _SEED, quick, f"EF{factor}")


_FACTORS = (16, 32, 64, 128, 256)
_RMAT = (
    *(_rmat(19, f, {16: "kron:8:16", 256: "kron:7:64"}.get(f)) for f in _FACTORS),
    *(_rmat(22, f) for f in _FACTORS),
)

# Milliseconds a round on one P100, with the prefix sums kept and without.
_TABLE4 = (
    PaperGraph("com-amazon", reported={"MGBC": 5, "OPT-OFF": 7}),
    PaperGraph("web-Google", reported={"MGBC": 7, "OPT-OFF": 8}),
    PaperGraph("roadNet-PA", "delaunay:20", _MESH, "road:8", "long",
               reported={"MGBC": 65, "OPT-OFF": 85}),
    PaperGraph("com-youtube", reported={"MGBC": 6, "OPT-OFF": 7}),
    PaperGraph("soc-pokec", reported={"MGBC": 22, "OPT-OFF": 23}),
    PaperGraph("wiki-Talk", reported={"MGBC": 12, "OPT-OFF": 13}),
    PaperGraph("com-orkut", reported={"MGBC": 93, "OPT-OFF": 94}),
    PaperGraph("com-LiveJournal", reported={"MGBC": 37, "OPT-OFF": 38}),
    PaperGraph("R-MAT S23 EF32", "kron:23:32", _SEED, "kron:7:8", "short",
               reported={"MGBC": 291, "OPT-OFF": 303}),
)  # fmt: skip

BFS2D = Paper(
    "002",
    ("mgbc", "bfs2d"),
    "Multilevel Parallelism for the Exploration of Large-Scale Graphs",
    "M. Bernaschi, M. Bisson, E. Mastrostefano and F. Vella, IEEE TMSCS 4(3) 2018, "
    "doi:10.1109/TMSCS.2018.2797195",
    (
        Experiment(
            "figure 6", "top-down and direction-optimised on real graphs", _REAL, _VARIANTS,
            MEAN_TEPS, (Ratio("do", "td", 1.0, "on average 1.7x, and nothing on meshes"),),
            64, _TITAN,
            notes=(
                "The paper's figures are bars without numbers; beside gunrock 1.4x on average.",
                "gunrock and Enterprise are not measured here.",
            ),
        ),
        Experiment(
            "figure 7", "top-down and direction-optimised by edge factor", _RMAT, _VARIANTS,
            MEAN_TEPS,
            (
                Ratio("do", "td", 2.0, "2x at edge factor 16", "EF16"),
                Ratio("do", "td", 5.0, "5x at edge factor 256", "EF256"),
                Peak("do", 200.0, "more than 200 GTEPS on one GPU"),
            ),
            64, _TITAN,
        ),
        Experiment(
            "section 3.3", "the threshold R_th of frontier / unvisited", (*_RMAT[:5], *_REAL),
            _SWEEP, MEAN_TEPS,
            (Choice(tuple(v.name for v in _SWEEP), "it must be searched for each graph"),),
            16,
            notes=("The paper gives no threshold; lagpu's own is 0.05.",),
        ),
        Experiment(
            "table 4", "a round of betweenness with kept prefix sums and without", _TABLE4,
            (
                Variant("MGBC", "dependencies", policy="mgbc"),
                Variant("OPT-OFF", "dependencies", policy="active"),
                Variant("lagpu", "dependencies", ours=True),
            ),
            MEAN_MS,
            (
                Ratio("MGBC", "OPT-OFF", 1.0, "85 / 65 = 1.31x on roadNet-PA", "long"),
                Ratio("MGBC", "OPT-OFF", 1.0, "303 / 291 = 1.04x on R-MAT", "short"),
            ),
            1000, "one P100", kind="accumulations",
            notes=(
                "The paper prints seconds; OPT-OFF is slower in each row, so it is without them.",
                "Roots are vertices with an edge to another.",
            ),
        ),
        strong("figure 8", "strong scaling", 25, 16, _SYSTEM, MEAN_TEPS, "Piz Daint, P100"),
        weak("figure 9", "weak scaling", 19, (16, 256), _SYSTEM, MEAN_TEPS, {}, "Piz Daint, P100",
             notes=("The paper has 5.5 TeraTEPS on 1024 GPUs at edge factor 256.",)),
        weak("figure 10", "computation and communication", 19, (256,),
             tuple(Variant(phase, "parents", policy="bfs2d", part=phase)
                   for phase in ("expand", "share", "expansion", "fold", "update", "agree")),
             SHARE, {}, "Piz Daint, P100", kind="parts"),
    ),
    {
        "table 1": "the features of GPUs",
        "table 2": "the graphs of figure 6 and 7",
        "table 3": "the graphs of table 4",
        "figure 1": "a drawing", "figure 2": "a drawing", "figure 3": "a drawing",
        "figure 4": "a drawing", "figure 5": "a drawing",
        "figure 11": "betweenness on a grid, which lagpu bc --grid runs",
        "figure 12": "betweenness on a grid, which lagpu bc --grid runs",
        "figure 13": "Friendster in sub-clusters of a grid, which lagpu bc --grid runs",
    },
)  # fmt: skip
