"""The experiments of the papers as data: their records, metrics, claims, and ``papers.toml``.

A row of ``graphs.csv`` is a `PaperGraph` of a group; `reported` is ``variant=figure; ...``, where a
figure may be a quotient.
"""

from __future__ import annotations

import csv
import itertools
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any, NamedTuple

from lagpu.bench.harness import Row, harmonic_gteps
from lagpu.errors import InvalidValue

#: Instead of a variant's name: whichever variant was best, as a paper reports it.
BEST = "best"


@dataclass(frozen=True)
class Variant:
    """One of the programs that a paper compares.

    It runs by a kernel or a policy of lagpu, by a library (`lagpu.bench.peers`), or as lagpu does
    by itself; `note` is how it differs from the paper's program, and `ours` says that the paper
    does not have it. Where shares of the time are compared, `part` is ``push``, ``pull``, or a
    phase of a search by a grid's policy. If `fused`, its loop may run as one kernel, which pushes
    and pulls in ways of its own; else it runs product by product, as the paper's kernels do.
    """

    name: str
    output: str = "levels"
    kernel: str | None = None
    policy: str | None = None
    peer: str | None = None
    note: str = ""
    part: str = ""
    fused: bool = False
    ours: bool = False

    @property
    def of_paper(self) -> bool:
        """Whether the paper proposes it: neither a library nor ours."""
        return self.peer is None and not self.ours


@dataclass(frozen=True)
class PaperGraph:
    """A graph by the paper's name.

    `made` and `quick`, a small one for ``--quick``, are texts for `lagpu.generators`, None where
    only a file gives the graph; `why` is how the graph that is made differs from the paper's, if it
    does. `kind` has the paper's classes of it, with commas; `reported` the paper's figures in the
    metric, by variant or for `BEST`; `size` the paper's vertices and stored entries; `pieces` the
    rows and columns of the grid that holds it, such as ``2x2``; `file` its name in the SuiteSparse
    collection.
    """

    name: str
    made: str | None = None
    why: str = ""
    quick: str | None = None
    kind: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)
    size: tuple[float, float] | None = None
    pieces: str = ""
    file: str = ""

    @property
    def gpus(self) -> int:
        """The GPUs of its grid; 0 without a grid."""
        return math.prod(map(int, self.pieces.split("x"))) if self.pieces else 0


class Measured(NamedTuple):
    """A variant on a graph: of each search the time, the edges as Graph500 counts, and the part."""

    ms: tuple[float, ...]
    edges: tuple[int, ...]
    entries: int
    symmetric: bool
    joules: float | None = None
    parts: tuple[float, ...] = ()

    @property
    def teps(self) -> list[float]:
        """The rates of the searches in 10**9 edges a second, an undirected edge once."""
        return [m / t / 1e6 for m, t in zip(self.edges, self.ms, strict=True)]


class Metric(NamedTuple):
    """A metric, which may divide by the value of the variant `over`; `more` may be better."""

    unit: str
    definition: str
    of: Callable[[Measured], float | None]
    more: bool = True
    over: str = ""


METRICS = {
    "EDGES_BY_MEAN": Metric(
        "MTEPS", "stored entries / mean ms / 1000, whatever part of the graph was reached",
        lambda found: found.entries / fmean(found.ms) / 1e3),
    "MEDIAN_TEPS": Metric(
        "GTEPS (median)", "median of the rates of all searches", lambda found: median(found.teps)),
    "MEAN_TEPS": Metric(
        "GTEPS (mean)",
        "mean of the rates of all searches, here of edges in both directions, as in the paper",
        lambda found: fmean(found.teps) * (2 if found.symmetric else 1)),
    "HARMONIC_TEPS": Metric(
        "GTEPS (harmonic)", "harmonic mean of the rates of all searches, as Graph500",
        lambda found: harmonic_gteps(found.ms, found.edges)),
    "MEAN_MS": Metric("ms (mean)", "mean time", lambda found: fmean(found.ms), more=False),
    "SHARE": Metric(
        "% of the time", "share of this part in the time of all searches; these run under a trace",
        lambda found: 100 * sum(found.parts) / sum(found.ms)),
    "SPEEDUP": Metric(
        "speed-up", "mean time of {over} / mean time", lambda found: 1 / fmean(found.ms)),
    "ENERGY": Metric(
        "energy (relative)", "energy of a search / that of {over}, all power of the GPU",
        lambda found: found.joules, more=False),
    "ENERGY_DELAY": Metric(
        "EDP (relative)", "energy * mean time / that of {over}, all power of the GPU",
        lambda found: None if found.joules is None else found.joules * fmean(found.ms), more=False),
}  # fmt: skip


def metric(name: str, over: str = "") -> Metric:
    """Return a metric, relative to a variant or not."""
    found = METRICS[name]
    return found._replace(definition=found.definition.format(over=over), over=over)


# `says` is the kind of its sentence, `machine` what we have not, the rest that kind's arguments
Claim = Mapping[str, Any]
Range = tuple[float, float]  # the least and the greatest that a number may be
Said = tuple[str, str]  # whether a claim held, and the sentence about it, empty without any row

HELD, NOT_HELD, UNKNOWN = "Held", "Not held", "Undecided"
#: Two runs of one row, on two days, differed by this factor at most before rows were repeated.
ONE_RUN = 2.8
#: What two runs in one call do not show of another day, as a factor of a value.
ANOTHER_DAY = 1.02
#: The same of a library on the CPU: hosts of one kind of GPU differed by this factor.
ANOTHER_HOST = 1.3
#: One choice suits all graphs if it is nowhere worse than the best by more than this factor.
CLOSE = 1.1
_MEANS: dict[str, Any] = {"geometric mean": geometric_mean, "mean": fmean, "least": min}


def sentence(claim: Claim, rows: Sequence[Row], graphs: Sequence[PaperGraph] = ()) -> str:
    """Return whether a claim of a paper held, with our figures and the paper's; "" without any."""
    # It begins with `HELD`, `NOT_HELD` or `UNKNOWN`. Rows that do not run by what the paper
    # proposes, or on graphs that have only the size of the paper's, judge nothing; they are shown
    # where there are no others. A claim of another machine cannot be judged, nor one
    # about `graphs` if some of these have no rows.
    given = {name: x for name, x in claim.items() if name not in ("says", "paper", "machine")}
    proved = [row for row in rows if row["value"] is not None and row["checked"]]
    fit = [row for row in proved if row.get("own", True) and not row.get("size_only")]
    for some in (fit, proved):
        used = _compared(some, **given)
        word, text = _SENTENCES[claim["says"]](used, **given) if used else ("", "")
        if text:
            break
    else:
        return ""
    if some is proved:
        word = UNKNOWN
    if "machine" in claim:
        word, text = UNKNOWN, f"{text} The claim is of {claim['machine']}."
    there = {row["graph"] for row in rows}
    lacking = [
        g.name for g in graphs if g.name not in there and _is_of(g.kind, given.get("kind", ""))
    ]
    if lacking:
        word = HELD if (claim["says"], word) == ("Peak", HELD) else UNKNOWN  # others add nothing
        text = f"{text} Not measured: {', '.join(lacking)}."
    runs, roots = min(len(_runs(row)) for row in used), sorted(row["roots"] for row in used)
    of = f"{roots[0]} to {roots[-1]}" if roots[0] < roots[-1] else f"{roots[0]}"
    by = f"{runs} run{'s' * (runs > 1)} of {of} root{'s' * (roots[-1] > 1)}"
    if runs > 1:
        spread = max(map(spread_of, used))
        by += f", which differ by {f'up to {spread:.2f}x' if spread > 1.005 else 'less than 1 %'}"
    return f"{word}: {text} The paper: {claim['paper']}. Measured in {by}."


def _compared(
    rows: Sequence[Row], of: str | Sequence[str] = BEST, to: str = "", kind: str = "", **_: Any
) -> list[Row]:
    names = {to, *((of,) if isinstance(of, str) else of)}
    mine = [row for row in rows if _is_of(row["kind"], kind)]
    return [x for x in mine if x["variant"] in names or (BEST in names and x["of_paper"])]


def _runs(row: Row, name: str = "runs", one: str = "value") -> list[float]:
    """Return the value of each run; an old report has one."""
    return list(row.get(name, [row[one]]))


def spread_of(row: Row) -> float:
    """Return the greatest over the least value of a row's runs; 1 where that says nothing."""
    runs = _runs(row)
    return max(runs) / min(runs) if None not in runs and min(runs) > 0 else 1.0


def _range(row: Row, *names: str) -> Range:
    """Return what a row's value may be, or another number, by its runs."""
    runs = _runs(row, *names)
    later = ANOTHER_HOST if row.get("mode") == "peer" else ANOTHER_DAY
    by = later if len(runs) > 1 else math.sqrt(ONE_RUN)
    return min(runs) / by, max(runs) * by


def _merit(row: Row) -> Range:
    """Return the range of a number that is greater for a better row."""
    low, high = _range(row)
    return (low, high) if row["more"] else (-high, -low)


def _by_graph(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["graph"], {})[row["variant"]] = row
    return found


def _better(row: Row, other: Row) -> tuple[float, Range]:
    """Return how many times better a row's value is, and what that may be."""
    ratio = float(row["value"]) / float(other["value"])
    (low, high), (least, most) = _range(row), _range(other)
    bounds = low / most, high / least
    return (ratio, bounds) if row["more"] else (1 / ratio, (1 / bounds[1], 1 / bounds[0]))


def _judged(bounds: Range, least: float) -> str:
    """Return whether a number is `least` or more."""
    return HELD if bounds[0] >= least else NOT_HELD if bounds[1] < least else UNKNOWN


def _by_most(words: Sequence[str]) -> str:
    """Return the word that most graphs have."""
    return next((word for word in (HELD, NOT_HELD) if 2 * words.count(word) > len(words)), UNKNOWN)


def _some(count: int, kind: str) -> str:
    return f"{count} {f'{kind} ' if kind else ''}graph{'' if count == 1 else 's'}"


def _is_of(kinds: str, kind: str) -> bool:
    return kind in ("", *kinds.split(", "))


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the best of the paper's variants on one graph; None if there is none."""
    own = (row for row in rows if row["of_paper"] and row["value"] is not None and row["checked"])
    return max(own, key=lambda row: row["value"] if row["more"] else -row["value"], default=None)


def _equally_good(rows: Sequence[Row]) -> list[str]:
    """Return the variants that no other one is better than for certain."""
    most = max(_merit(row)[0] for row in rows)
    return [row["variant"] for row in rows if _merit(row)[1] >= most]


def _close(rows: Sequence[Row]) -> list[str]:
    """Return the variants that are for certain as good as the best, or nearly so."""
    return [
        row["variant"] for row in rows
        if all(_better(row, other)[1][0] * CLOSE >= 1 for other in rows if other is not row)
    ]  # fmt: skip


def _named(best: Sequence[str], rows: Sequence[Row]) -> str:
    return "no certain difference" if 1 < len(best) == len(rows) else " or ".join(best)


def _ratio(
    rows: Sequence[Row], of: str, to: str, least: float = 0.0, most: float = 0.0, kind: str = "",
    mean: str = "geometric mean",
) -> Said:  # fmt: skip
    """Say how many times better one variant, maybe `BEST`, is than another."""
    found = []
    for by_name in _by_graph(rows).values():
        one = best_of([*by_name.values()]) if of == BEST else by_name.get(of)
        if one is not None and to in by_name:
            found.append(_better(one, by_name[to]))
    if not found:
        return "", ""
    values, bounds = zip(*found, strict=True)
    low, high = (_MEANS[mean](ends) for ends in zip(*bounds, strict=True))
    ratio = f"{_MEANS[mean](values):.2f}x"
    if len(values) > 1:
        ratio = f"{min(values):.2f}x to {max(values):.2f}x, {mean} {ratio}"
    who = "The best variant" if of == BEST else of
    claim = f"{least:g}x or more" if least else f"{most:g}x or less"
    return _judged((low, high), least) if least else _judged((-high, -low), -most), (
        f"{who} over {to} on {_some(len(values), kind)}: {ratio} "
        f"(uncertainty: {low:.2f}x to {high:.2f}x); the claim is {claim}."
    )


def _best(rows: Sequence[Row], kind: str, expected: Sequence[str]) -> Said:
    """Say whether some variants are the best on most graphs of a kind, or of all."""
    rivals = [[*by_name.values()] for by_name in _by_graph(rows).values()]
    best = [_equally_good(some) for some in rivals]
    counts = Counter(map(_named, best, rivals))
    text = ", ".join(f"{names} on {n}" for names, n in counts.most_common())
    word = _by_most([_expected(names, expected) for names in best])
    return word, f"Best on {_some(len(best), kind)}: {text}."


def _expected(names: Sequence[str], expected: Sequence[str]) -> str:
    """Return whether the best variant, one of `names`, is an expected one."""
    hits = sum(name in expected for name in names)
    return HELD if hits == len(names) else UNKNOWN if hits else NOT_HELD


def _choice(rows: Sequence[Row], of: Sequence[str], expected: Sequence[str] = ()) -> Said:
    """Say which of several variants is the best: an expected one, or another on each graph."""
    by_graph = _by_graph(rows).items()
    several = {graph: [*names.values()] for graph, names in by_graph if len(names) > 1}
    if not several:
        return "", ""
    best = [_equally_good(some) for some in several.values()]
    texts = []
    for (graph, some), names in zip(several.items(), best, strict=True):
        first, last = max(some, key=_merit), min(some, key=_merit)
        ratio = _better(first, last)[0]
        texts.append(f"{graph}: {_named(names, some)}, {ratio:.2f}x over {last['variant']}")
    if expected:
        word = _by_most([_expected(names, expected) for names in best])
    elif len(best) == 1:
        word = UNKNOWN
    elif not set(of).intersection(*best):
        word = HELD
    else:
        word = NOT_HELD if set(of).intersection(*map(_close, several.values())) else UNKNOWN
    return word, f"Best on {'; '.join(texts)}."


def _peak(rows: Sequence[Row], of: str, least: float) -> Said:
    """Say whether a variant reaches a value somewhere."""
    best = max(rows, key=itemgetter("value"))
    return _judged(_range(best), least), (
        f"{of} reaches {best['value']:.4g} {best['unit']}, on {best['graph']}; "
        f"the claim is {least:g} or more."
    )


def _values(rows: Sequence[Row], of: str, most: float, **_: Any) -> Said:
    """Say the values of a variant, from the least to the greatest, which is `most` at most."""
    mine = sorted(rows, key=itemgetter("value"))
    words = [_judged((-high, -low), -most) for low, high in map(_range, mine)]
    word = HELD if {*words} == {HELD} else NOT_HELD if NOT_HELD in words else UNKNOWN
    values = ", ".join(f"{row['graph']} {row['value']:.3g}" for row in mine)
    return word, f"{of}, {mine[0]['unit']}: {values}; the claim is {most:g} or less."


def _falls(rows: Sequence[Row], of: str) -> Said:
    """Say whether searches are slower on graphs where the value of a variant is greater."""
    mine = sorted(rows, key=itemgetter("value"))
    words = []
    for row, more in itertools.combinations(mine, 2):
        rate, other = (_range(x, "rates", "gteps") for x in (row, more))
        differ = _range(row)[1] < _range(more)[0]
        words.append(_judged((rate[0] - other[1], rate[1] - other[0]), 0.0) if differ else UNKNOWN)
    values = ", ".join(f"{x['graph']} {x['value']:.3g} at {x['gteps']:.3g}" for x in mine)
    return _by_most(words), f"{of}, {mine[0]['unit']} at GTEPS: {values}."


_SENTENCES: dict[str, Callable[..., Said]] = {
    "Ratio": _ratio, "BestOf": _best, "Choice": _choice, "Peak": _peak, "Values": _values,
    "Falls": _falls,
}  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """A table, figure or section of a paper: every variant runs on every graph, from some roots.

    `machine` is where the paper measured, `kind` one of `lagpu.papers.run.WAYS`; `energy` says that
    the metric needs the energy of a search.
    """

    part: str
    title: str
    graphs: tuple[PaperGraph, ...]
    variants: tuple[Variant, ...]
    metric: Metric
    claims: Sequence[Claim] = ()
    roots: int = 64
    machine: str = ""
    kind: str = "searches"
    energy: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Paper:
    """A paper; `names` are its systems, `left_out` the parts that cannot be run, and why."""

    number: str
    names: Sequence[str]
    title: str
    where: str
    experiments: tuple[Experiment, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def on_gpus(experiments: Sequence[Experiment], gpus: int) -> list[Experiment]:
    """Return the experiments on several GPUs, with their graphs on up to so many."""
    fit = [tuple(graph for graph in one.graphs if 0 < graph.gpus <= gpus) for one in experiments]
    found = [replace(one, graphs=of) for one, of in zip(experiments, fit, strict=True) if of]
    if not found:
        raise InvalidValue(f"--gpus: no graph here is on a grid of at most {gpus}. Leave it out.")
    return found


def _read_graphs(file: Path) -> dict[str, list[PaperGraph]]:
    found: dict[str, list[PaperGraph]] = {}
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        reported = {}
        for figure in filter(None, row["reported"].split("; ")):
            name, _, quotient = figure.rpartition("=")
            number, _, divisor = quotient.partition("/")
            reported[name] = float(number) / float(divisor or 1)
        size = (float(row["vertices"]), float(row["entries"])) if row["vertices"] else None
        texts = row["name"], row["made"] or None, row["why"], row["quick"] or None, row["kind"]
        graph = PaperGraph(*texts, reported, size, row["pieces"], row["file"] or row["name"])
        found.setdefault(row["group"], []).append(graph)
    return found


def _read_papers(folder: Path) -> Iterator[Paper]:
    groups = _read_graphs(folder / "graphs.csv")
    for paper in tomllib.loads((folder / "papers.toml").read_text("utf-8"))["paper"]:
        lists = {
            name: tuple(Variant(**one) for one in variants)
            for name, variants in paper.pop("variants").items()
        }
        experiments = []
        for given in paper.pop("experiments"):
            given["graphs"] = tuple(graph for name in given["graphs"] for graph in groups[name])
            given["variants"] = lists[given["variants"]]
            given["metric"] = metric(given["metric"], given.pop("over", ""))
            experiments.append(Experiment(**given))
        yield Paper(experiments=tuple(experiments), **paper)


PAPERS = tuple(_read_papers(Path(__file__).parent))


def paper_of(name: str) -> Paper:
    """Return the paper of a number or a system's name."""
    for paper in PAPERS:
        if name.lower() in (paper.number, *paper.names):
            return paper
    known = ", ".join(f"{paper.number} ({' or '.join(paper.names)})" for paper in PAPERS)
    raise InvalidValue(f"paper: there is no {name!r}. Use {known}.")


def experiments_of(paper: Paper, **given: str | None) -> Sequence[Experiment]:
    """Return the experiments of a table, a figure or a section; without one all of the paper."""
    asked = [f"{kind} {number}" for kind, number in given.items() if number is not None]
    if not asked:
        return paper.experiments
    if len(asked) > 1:
        raise InvalidValue(f"--{asked[1]}: --{asked[0]} names the experiment. Give one of them.")
    (part,) = asked
    found = [one for one in paper.experiments if one.part == part]
    if found:
        return found
    can = ", ".join(f"--{one.part}" for one in paper.experiments)
    why = paper.left_out.get(part)
    fact = f"{part} is left out: {why}" if why else f"there is no {part} to run"
    raise InvalidValue(f"paper {paper.number}: {fact}. Use {can}.")
