"""003: Artiles and Saeed, TurboBFS. Its variants on its three tables of graphs."""

from __future__ import annotations

from lagpu.papers.claims import BestOf, Ratio
from lagpu.papers.experiment import BEST, Experiment, Paper, PaperGraph, Variant
from lagpu.papers.metrics import EDGES_BY_MEAN

__all__ = ["TURBOBFS"]

_GBLAS = "SuiteSparse:GraphBLAS"
_SEARCHED = "finds the column of an entry by search, instead of in a stored array"
_VARIANTS = (
    Variant("tdscCOOC", "paths", kernel="push_cooc"),
    Variant("tdscCOOC (searched)", "paths", kernel="push_edge", note=_SEARCHED, ours=True),
    Variant("tdscCSC", "paths", kernel="pull_scalar"),
    Variant("tdveCSC", "paths", kernel="pull_warp"),
    Variant("busc", kernel="pull_scalar"),
    Variant("buve", kernel="pull_warp"),
    Variant("tdbu (scalar)", policy="tdbu:scalar"),
    Variant("tdbu (vector)", policy="tdbu:vector"),
    Variant("lagpu", ours=True),
    Variant(_GBLAS, peer="python-graphblas"),
)
_TDBU = ("tdbu (scalar)", "tdbu (vector)")
_MACHINE = "one Titan Xp (12 GB)"
_ROOTS = 50
_NOTES = (
    "The paper averages 50 trials and does not name their root; here each of 50 roots is one, "
    "the median of up to 5 runs.",
    "td variants count shortest paths, bu and tdbu find levels, as in the paper.",
)

# What replaces a graph that is a file: made from, and how it differs.
_POINTS = "the triangulation of other random points"
_SEED = "the same generator's parameters with another seed"
_STAR = "a star of a tenth of the vertices: nearly all edges at one"
_GRID = "a grid without a fifth of its links, with about as many vertices"

# name, vertices / 1000, entries / 1000, MTEPS, speed-up over GraphBLAST, gunrock and GraphBLAS
_REGULAR = """\
g7jac100sc(D) 30 385 769 8.4 2.2 10.4
g7jac120sc(D) 36 475 792 7.0 2.0 8.3
g7jac140sc(D) 42 566 1132 9.0 2.4 15.6
g7jac160sc(D) 47 657 1094 8.0 2.5 13.3
g7jac180sc(D) 53 747 1068 7.4 2.3 13.4
g7jac200sc(D) 59 838 1047 6.2 2.4 10.6
cit-HepPh(D) 35 422 703 22.7 4.2 13.3
email-Enron(U) 37 368 613 4.5 1.7 6.3
delaunayn15(U) 33 197 109 9.0 3.1 8.5
delaunayn16(U) 66 393 164 8.9 3.4 11.7
delaunayn17(U) 131 786 161 7.6 2.2 15.9
delaunayn18(U) 262 1573 225 9.1 2.0 12.7
delaunayn19(U) 524 3146 115 3.6 1.0 9.2
astro-ph(U) 17 243 808 15.0 2.7 12.7
ri2010(U) 25 126 90 11.1 3.2 7.4
me2010(U) 70 336 112 9.4 2.5 8.3
az2010(U) 242 1196 150 4.1 1.3 9.4
nc2010(U) 289 1417 104 4.6 1.2 9.1
fl2010(U) 484 2346 165 3.8 0.9 10.6
ca2010(U) 710 3489 126 2.9 0.8 8.0
enron(D) 69 276 690 8.8 2.0 13.0
Wordnet3(D) 83 133 190 10.6 2.3 6.6
ASIC-100ks(D) 99 579 482 9.0 2.7 14.2
ASIC-320ks(D) 322 1828 870 7.6 1.8 17.1
ASIC-680ks(D) 683 2329 776 5.1 1.4 21.7
smallworld(U) 100 1000 2000 8.0 2.4 24.2
luxemb-osm(U) 115 239 20 16.8 6.7 3.5
netherl-osm(U) 2217 4883 26 2.5 0.8 1.9
internet(D) 125 207 345 8.3 3.2 29.2
amazon0302(D) 262 1235 363 6.8 2.1 11.8
amazon0312(D) 401 3200 593 3.5 0.9 9.1
amazon0601(D) 403 3387 847 3.9 1.0 12.0
amazon0505(D) 410 3357 839 3.9 1.0 13.3
amazon-2008(D) 735 5158 992 2.9 0.8 14.2
web-NtDame(D) 326 1497 454 9.5 1.6 8.5
roadNet-PA(U) 1091 3084 71 4.3 1.0 9.5
roadNet-TX(U) 1393 3843 62 4.0 0.9 8.8
roadNet-CA(U) 1971 5533 87 3.6 1.0 10.1"""
_IRREGULAR = """\
mycielski12(U) 3 407 2036 5.5 2.2 7.5
mycielski13(U) 6 1228 4092 3.9 1.8 12.5
mycielski14(U) 12 3696 6159 2.0 1.5 23.3
mycielski15(U) 24 11111 11111 1.3 1.7 30.9
mycielski16(U) 49 33383 16691 1.1 1.5 36.2
mycielski17(U) 98 100246 22277 0.8 1.5 42.2
mycielski18(U) 196.6 300934 31347 0.8 1.7 48.0
mycielski19(U) 393 903195 39778 OOM 1.8 57.3
EAT-SR(D) 23.2 326 1085 6.3 2.7 16.7
kron-logn16(U) 66 4913 4466 2.1 1.2 28.3
kron-logn17(U) 131.1 10229 4447 1.7 0.8 16.7
kron-logn18(U) 262 21166 5292 1.3 0.9 30.0
kron-logn19(U) 524 43563 5808 1.1 0.9 17.3
kron-logn20(U) 1049 89241 3984 1.1 1.1 24.6
kron-logn21(U) 2097 182084 2642 0.9 1.2 15.4
soc-Epinio1(D) 76 509 848 8.0 2.3 16.7
Linux-call(D) 324 1209 432 6.5 1.2 3.2
web-Stanf(D) 282 2313 160 6.8 0.8 3.3
com-LiveJ(D) 3998 69362 1286 0.9 0.8 9.6
com-Orkut(U) 3072 234370 1698 0.9 0.8 6.4
soc-LiveJour1(D) 4848 68994 940 1.3 0.9 7.5
mawi-12345(U) 18571 38040 1330 5.7 0.7 28.4
mawi-20000(U) 35991 74485 1357 5.2 0.7 29.1"""
_BIG = """\
kmer-P1a(U) 139e3 298e3 110 OOM OOM 10.0
kmer-A2a(U) 171e3 361e3 109 OOM OOM 11.5
kmer-V1r(U) 214e3 465e3 240 OOM OOM 19.1
it-2004(D) 41e3 1151e3 892 OOM OOM 3.3
twitter7(D) 42e3 1468e3 1537 OOM OOM 10.2
GAP-twitter(D) 62e3 1468e3 811 OOM OOM 8.3
GAP-web(D) 51e3 1930e3 1038 OOM OOM 4.0
sk-2005(D) 51e3 1949e3 1147 OOM OOM 4.6"""

# By the paper's name: made from, how that differs, and small for --quick.
_MADE: dict[str, tuple[str | None, str, str | None]] = {
    **{
        f"delaunayn{s}": (f"delaunay:{s}", _POINTS, "delaunay:7" if s == 15 else None)
        for s in range(15, 20)
    },
    "smallworld": ("urand:17:5", "a uniform random graph of about its degree", "urand:8:5"),
    "luxemb-osm": ("road:339", _GRID, None),
    "netherl-osm": ("road:1489", _GRID, None),
    "roadNet-PA": ("road:1044", _GRID, "road:10"),
    "roadNet-TX": ("road:1180", _GRID, None),
    "roadNet-CA": ("road:1404", _GRID, None),
    **{
        f"mycielski{k}": (f"mycielskian:{k}", "", "mycielskian:7" if k == 12 else None)
        for k in range(12, 20)
    },
    **{
        f"kron-logn{s}": (f"kron:{s}:48", _SEED, "kron:8:16" if s == 16 else None)
        for s in range(16, 22)
    },
    "mawi-12345": ("star:1857100", _STAR, "star:300"),
    "mawi-20000": ("star:3599100", _STAR, None),
    "kmer-P1a": ("urand:27:1", "a uniform random graph of about its size", None),
    "kmer-V1r": ("urand:28:1", "a uniform random graph, a quarter larger", "road:10"),
    "twitter7": ("kron:25:22", "a Kronecker graph of about its size", "kron:8:20"),
    "sk-2005": ("urand:26:14", "an undirected uniform random graph of its entries", None),
}
_STARS = ("mawi-12345", "mawi-20000")


def _graphs(table: str, kind_of: dict[str, str], kind: str) -> tuple[PaperGraph, ...]:
    """Return the graphs of a table; figures of libraries are the paper's, from its speed-ups."""
    found = []
    for line in table.splitlines():
        name, vertices, entries, mteps, *over = line.split()
        name = name[: name.index("(")]
        made, why, quick = _MADE.get(name, (None, "", None))
        best = float(mteps)
        libraries = zip(("GraphBLAST", "gunrock", _GBLAS), over, strict=True)
        others = {library: best / float(x) for library, x in libraries if x != "OOM"}
        size = (float(vertices) * 1e3, float(entries) * 1e3)
        kinds = kind_of.get(name, kind)
        found.append(PaperGraph(name, made, why, quick, kinds, {BEST: best, **others}, size))
    return tuple(found)


def _experiment(
    part: str, title: str, graphs: tuple[PaperGraph, ...], *claims: BestOf | Ratio
) -> Experiment:
    return Experiment(
        part, title, graphs, _VARIANTS, EDGES_BY_MEAN, claims, _ROOTS, _MACHINE, notes=_NOTES
    )


_BIG_REGULAR = dict.fromkeys(("kmer-P1a", "kmer-A2a", "kmer-V1r"), "regular")

TURBOBFS = Paper(
    "003",
    ("turbobfs",),
    "TurboBFS: GPU Based Breadth-First Search (BFS) Algorithms in the Language of Linear Algebra",
    "O. Artiles and F. Saeed, IPDPS Workshops 2021, doi:10.1109/IPDPSW52791.2021.00084",
    (
        _experiment(
            "table 1",
            "the variants on regular graphs",
            _graphs(_REGULAR, {}, "regular"),
            BestOf("regular", ("tdscCSC", "busc"), "tdscCSC on 55 %, busc on 40 %"),
            Ratio("tdscCSC", "tdveCSC", 1.0, "a thread a vertex suits regular graphs"),
            Ratio(BEST, _GBLAS, 11.7, "on average 11.7x"),
        ),
        _experiment(
            "table 2",
            "the variants on irregular graphs",
            _graphs(_IRREGULAR, dict.fromkeys(_STARS, "irregular, most irregular"), "irregular"),
            BestOf(
                "irregular",
                ("tdveCSC", "buve", *_TDBU, "tdscCOOC"),
                "tdveCSC on 30 %, tdbu on 26.1 %, buve and tdscCOOC on 21.7 % each",
            ),
            Ratio("tdveCSC", "tdscCSC", 1.0, "a warp a vertex suits irregular graphs"),
            Ratio("tdscCOOC", "tdveCSC", 1.0, "COOC is best on the most irregular graphs",
                  "most irregular"),
            Ratio(BEST, _GBLAS, 22.4, "on average 22.4x"),
        ),
        _experiment(
            "table 3",
            "the variants on big graphs",
            _graphs(_BIG, _BIG_REGULAR, "irregular"),
            BestOf("regular", ("busc",), "busc on all three"),
            BestOf("irregular", _TDBU, "tdbu on all five"),
            Ratio(BEST, _GBLAS, 3.3, "3.3x to 19.1x"),
        ),
    ),
    {
        "figure 1": "an example of the two formats",
        "figure 2": "degrees of two graphs, which lagpu info describes",
        "figure 3": "an example, which lagpu bfs --step shows",
        "figure 4": "the speed-ups of table 3, drawn",
        "figure 5": "the MTEPS of table 3, drawn",
    },
)  # fmt: skip
