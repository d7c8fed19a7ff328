"""004: Bisson, Bernaschi and Mastrostefano, the search on a cluster of Kepler GPUs."""

from __future__ import annotations

from lagpu.papers.claims import Ratio, Values
from lagpu.papers.experiment import Experiment, Paper, PaperGraph, Variant
from lagpu.papers.metrics import HARMONIC_TEPS, MEAN_MS, SHARE
from lagpu.papers.scaling import strong, weak

__all__ = ["KEPLER"]

_SEED = "the same generator's parameters with another seed, without repeated edges"
_K20X = "one Tesla K20X"
_DAINT = "Piz Daint, K20X"
_S21 = "R-MAT S21 EF16"
_LISTS = Variant("lists", "parents", policy="kepler:messages=list")
_BITMAPS = Variant("bitmaps", "parents", policy="kepler")
_PHASES = ("expand", "expansion", "fold", "update", "agree", "parents")
_EDGES = (1, 2, 4, 8)
_ONE = Variant("1 edge a thread", "parents", kernel="push_active")
_FOUR = Variant("4 edges a thread", "parents", kernel="push_active:4")


def _rmat(**reported: float) -> PaperGraph:
    return PaperGraph(_S21, "kron:21:16", _SEED, "kron:8:16", reported=reported)


def _phases(policy: str) -> tuple[Variant, ...]:
    return tuple(Variant(phase, "parents", policy=policy, part=phase) for phase in _PHASES)


KEPLER = Paper(
    "004",
    ("kepler",),
    "Parallel Distributed Breadth First Search on the Kepler Architecture",
    "M. Bisson, M. Bernaschi and E. Mastrostefano, IEEE TPDS 27(7) 2016, "
    "doi:10.48550/arXiv.1408.1605",
    (
        Experiment(
            "table 2", "one GPU", (_rmat(**{_FOUR.name: 1.13}),),
            (_FOUR, _ONE, Variant("lagpu", "parents", ours=True)),
            HARMONIC_TEPS, (), 64, _K20X,
            notes=("The paper has 0.48 GTEPS on a Tesla S2050 too.",),
        ),
        Experiment(
            "figure 3", "consecutive edges a thread", (_rmat(),),
            tuple(
                Variant(f"{k} edge{'s' * (k > 1)} a thread", "parents",
                        kernel="push_active" if k == 1 else f"push_active:{k}")
                for k in _EDGES
            ),
            MEAN_MS, (Ratio(_FOUR.name, _ONE.name, 1.4, "four are best, about 40 % faster"),),
            64, _K20X,
            notes=("The paper draws the time of the expansion kernel; here it is the search's.",),
        ),
        Experiment(
            "figure 9", "atomics and scatter/compact", (_rmat(),),
            (
                Variant("atomics", "parents", kernel="push_active:4"),
                Variant("atomics (1 edge a thread)", "parents", kernel="push_active"),
                Variant("scatter/compact", "parents", kernel="push_scatter"),
            ),
            MEAN_MS,
            (
                Ratio("atomics", "scatter/compact", 2.0, "2x, from 16 GPUs on"),
                Ratio("atomics (1 edge a thread)", "scatter/compact", 2.0, "2x, from 16 GPUs on"),
            ),
            64, _DAINT,
            notes=("The paper compares on 1 to 1024 GPUs the expansion alone; here it is a search "
                   "on one.",),
        ),
        weak("figure 4", "weak scaling, messages as lists", 21, (16,), (_LISTS,), HARMONIC_TEPS,
             {1: {_LISTS.name: 1.13}}, _DAINT,
             notes=("The paper has about 400 GTEPS on 4096 GPUs.",)),
        strong("figure 5", "strong scaling", 25, 16, (_LISTS, _BITMAPS), HARMONIC_TEPS, _DAINT),
        weak("figure 7", "the phases of a search, messages as lists", 21, (16,),
             _phases("kepler:messages=list"), SHARE, {}, _DAINT,
             (Values("update", "the update is less than 10 % of the time"),), kind="parts"),
        weak("figure 10", "weak scaling, lists and bitmaps", 21, (16,), (_LISTS, _BITMAPS),
             HARMONIC_TEPS, {1: {_LISTS.name: 1.13}}, _DAINT,
             (Ratio("bitmaps", "lists", 2.0, "a net 2x on 4096 GPUs"),),
             notes=("The paper has 830 GTEPS on 4096 GPUs with bitmaps.",)),
        weak("figure 11", "the phases of a search, messages as bitmaps", 21, (16,),
             _phases("kepler"), SHARE, {}, _DAINT, kind="parts"),
        Experiment(
            "table 3", "real graphs on several GPUs",
            (
                PaperGraph("com-LiveJournal", "kron:22:9", "a Kronecker graph of about its size",
                           "kron:7:8", reported={"bitmaps": 0.77}, pieces="1x2"),
                PaperGraph("soc-LiveJournal1", "kron:22:14", "a Kronecker graph of about its size",
                           reported={"bitmaps": 1.25}, pieces="1x2"),
                PaperGraph("com-Orkut", "kron:22:38", "a Kronecker graph of about its size",
                           reported={"bitmaps": 2.67}, pieces="2x2"),
                PaperGraph("com-Friendster", reported={"bitmaps": 15.68}, pieces="8x8"),
            ),
            (_LISTS, _BITMAPS), HARMONIC_TEPS, (), 64, _DAINT,
        ),
    ),
    {
        "table 1": "the grids of figure 4",
        "figure 1": "a drawing", "figure 2": "a drawing",
        "figure 6": "the times of figure 7, drawn as computation and transfer",
        "figure 8": "the authors' older program, with a partition in one dimension",
    },
)  # fmt: skip
