"""The experiments of the papers as data: their records, metrics, claims, and ``papers.toml``.

A row of ``graphs.csv`` is a `PaperGraph` of a group; `reported` is ``variant=figure; ...``, where a
figure may be a quotient.
"""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    rows and columns of the grid that holds it, such as ``2x2``.
    """

    name: str
    made: str | None = None
    why: str = ""
    quick: str | None = None
    kind: str = ""
    reported: Mapping[str, float] = field(default_factory=dict)
    size: tuple[float, float] | None = None
    pieces: str = ""


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
        "mean of the rates of all searches, each undirected edge counted in both directions",
        lambda found: fmean(found.teps) * (2 if found.symmetric else 1)),
    "HARMONIC_TEPS": Metric(
        "GTEPS (harmonic)", "harmonic mean of the rates of all searches, as Graph500",
        lambda found: harmonic_gteps(found.ms, found.edges)),
    "MEAN_MS": Metric("ms (mean)", "mean time", lambda found: fmean(found.ms), more=False),
    "SHARE": Metric(
        "% of the time", "share of this part in the time of all searches, by the times of a trace",
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


Claim = Mapping[str, Any]  # `says` is the kind of its sentence, the rest that kind's arguments


def sentence(claim: Claim, rows: Sequence[Row]) -> str:
    """Return a claim of a paper with our figures beside the paper's; empty without any."""
    given = {name: x for name, x in claim.items() if name != "says"}
    return _SENTENCES[claim["says"]](rows, **given)


def _is_proved(row: Row) -> bool:
    return row["value"] is not None and row["checked"]


def _merit(row: Row) -> float:
    return float(row["value"]) if row["more"] else -float(row["value"])


def _by_graph(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Return the rows that have a proved value, by graph and variant."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if _is_proved(row):
            found.setdefault(row["graph"], {})[row["variant"]] = row
    return found


def _of_variant(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the rows of a variant, the least value first."""
    found = [by_name[name] for by_name in _by_graph(rows).values() if name in by_name]
    return sorted(found, key=lambda row: float(row["value"]))


def _better(row: Row, other: Row) -> float:
    """Return how many times better a row's value is."""
    ratio = float(row["value"]) / float(other["value"])
    return ratio if row["more"] else 1 / ratio


def _some(count: int, kind: str) -> str:
    return f"{count} {f'{kind} ' if kind else ''}graph{'' if count == 1 else 's'}"


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the best of the paper's variants on one graph; None if there is none."""
    own = (row for row in rows if row["of_paper"] and _is_proved(row))
    return max(own, key=_merit, default=None)


def _ratio(rows: Sequence[Row], of: str, to: str, least: float, paper: str, kind: str = "") -> str:
    """Say how many times better one variant, maybe `BEST`, is than another."""
    values = []
    for by_name in _by_graph(rows).values():
        one = best_of([*by_name.values()]) if of == BEST else by_name.get(of)
        if one is not None and to in by_name and kind in ("", *one["kind"].split(", ")):
            values.append(_better(one, by_name[to]))
    if not values:
        return ""
    holds = sum(value >= least for value in values)
    ratio = f"{geometric_mean(values):.2f}x"
    if len(values) > 1:
        ratio = f"{min(values):.2f}x to {max(values):.2f}x, geometric mean {ratio}"
    return (
        f"{'The best variant' if of == BEST else of} over {to} on {_some(len(values), kind)}: "
        f"{ratio}. The paper: {paper}. {least:g}x or more here on {holds} of {len(values)}."
    )


def _best(rows: Sequence[Row], kind: str, expected: Sequence[str], paper: str) -> str:
    """Say whether some variants are the best on the graphs of a kind, or on all."""
    best = [best_of([*by_name.values()]) for by_name in _by_graph(rows).values()]
    mine = [row["variant"] for row in best if row and kind in ("", *row["kind"].split(", "))]
    if not mine:
        return ""
    counts = ", ".join(f"{name} on {n}" for name, n in Counter(mine).most_common())
    holds = sum(name in expected for name in mine)
    either = " or ".join(filter(None, (", ".join(expected[:-1]), expected[-1])))
    return (
        f"Best on {_some(len(mine), kind)}: {counts}. The paper: {paper}. "
        f"{either} is best here on {holds} of {len(mine)}."
    )


def _choice(rows: Sequence[Row], of: Sequence[str], paper: str) -> str:
    """Say which of several variants is the best, graph by graph."""
    found = []
    for graph, by_name in _by_graph(rows).items():
        mine = [by_name[name] for name in of if name in by_name]
        if len(mine) < 2:
            continue
        best = max(mine, key=_merit)
        worst = min(mine, key=_merit)
        times = f"{_better(best, worst):.2f}x {worst['variant']}"
        found.append(f"{graph}: {best['variant']}, {times}")
    return f"Best on {'; '.join(found)}. The paper: {paper}." if found else ""


def _peak(rows: Sequence[Row], of: str, least: float, paper: str) -> str:
    """Say whether a variant reaches a value somewhere."""
    mine = _of_variant(rows, of)
    if not mine:
        return ""
    best = mine[-1]
    reaches = "reaches" if best["value"] >= least else "does not reach"
    return (
        f"{of} has {best['value']:.4g} {best['unit']} at most, on {best['graph']}. "
        f"The paper: {paper}. It {reaches} {least:g} here."
    )


def _values(rows: Sequence[Row], of: str, paper: str) -> str:
    """Say the values of a variant, from the least to the greatest."""
    mine = _of_variant(rows, of)
    values = ", ".join(f"{row['graph']} {row['value']:.3g}" for row in mine)
    return f"{of}, {mine[0]['unit']}: {values}. The paper: {paper}." if mine else ""


_SENTENCES: dict[str, Callable[..., str]] = {
    "Ratio": _ratio, "BestOf": _best, "Choice": _choice, "Peak": _peak, "Values": _values
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


def _read_graphs(file: Path) -> dict[str, list[PaperGraph]]:
    """Return the graphs of each group."""
    found: dict[str, list[PaperGraph]] = {}
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        reported = {}
        for figure in filter(None, row["reported"].split("; ")):
            name, _, quotient = figure.rpartition("=")
            number, _, divisor = quotient.partition("/")
            reported[name] = float(number) / float(divisor or 1)
        size = (float(row["vertices"]), float(row["entries"])) if row["vertices"] else None
        texts = row["name"], row["made"] or None, row["why"], row["quick"] or None, row["kind"]
        graph = PaperGraph(*texts, reported, size, row["pieces"])
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
