"""What papers conclude, said again with our figures: sentences computed from rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from lagpu.papers.experiment import BEST, Row

__all__ = ["BestOf", "Choice", "Peak", "Ratio", "Values", "best_of", "by_graph"]


def by_graph(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Return the rows that have a value, by graph and variant."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["value"] is not None and row["checked"]:
            found.setdefault(row["graph"], {})[row["variant"]] = row
    return found


def _better(row: Row, other: Row) -> float:
    """Return how many times better a row's value is."""
    ratio = float(row["value"]) / float(other["value"])
    return ratio if row["more"] else 1 / ratio


def _is_of(row: Row, kind: str) -> bool:
    return not kind or kind in row["kind"].split(", ")


def _some(count: int, kind: str) -> str:
    return f"{count} {kind}graph{'' if count == 1 else 's'}"


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the best of the paper's variants on one graph; None if there is none."""
    found: Row | None = None
    for row in rows:
        own = row["of_paper"] and row["value"] is not None and row["checked"]
        if own and (found is None or _better(row, found) > 1):
            found = row
    return found


@dataclass(frozen=True)
class Ratio:
    """One variant is so many times better than another.

    Attributes
    ----------
    of, to : str
        The variants; `of` may be `BEST`.
    least : float
        From which ratio on the claim holds.
    paper : str
        What the paper says.
    kind : str
        The graphs of which it says so; by default all.
    """

    of: str
    to: str
    least: float
    paper: str
    kind: str = ""

    def says(self, rows: Sequence[Row]) -> str:
        """See `Claim`."""
        ratios: dict[str, float] = {}
        for graph, by_name in by_graph(rows).items():
            here = [*by_name.values()]
            one = best_of(here) if self.of == BEST else by_name.get(self.of)
            if one is None or self.to not in by_name or not _is_of(one, self.kind):
                continue
            ratios[graph] = _better(one, by_name[self.to])
        if not ratios:
            return ""
        values = [*ratios.values()]
        of = "The best variant" if self.of == BEST else self.of
        kind = f"{self.kind} " if self.kind else ""
        holds = sum(value >= self.least for value in values)
        mean = geometric_mean(values)
        one_or_more = f"{mean:.2f}x"
        if len(values) > 1:
            one_or_more = f"{min(values):.2f}x to {max(values):.2f}x, geometric mean {one_or_more}"
        return (
            f"{of} over {self.to} on {_some(len(values), kind)}: {one_or_more}. "
            f"The paper: {self.paper}. {self.least:g}x or more here on {holds} of {len(values)}."
        )


@dataclass(frozen=True)
class BestOf:
    """Some variants are the best on the graphs of a kind.

    Attributes
    ----------
    kind : str
        The graphs; all if empty.
    expected : tuple of str
        The variants that the paper names.
    paper : str
        What the paper says.
    """

    kind: str
    expected: tuple[str, ...]
    paper: str

    def says(self, rows: Sequence[Row]) -> str:
        """See `Claim`."""
        best = [best_of([*by_name.values()]) for by_name in by_graph(rows).values()]
        mine = [row["variant"] for row in best if row and _is_of(row, self.kind)]
        if not mine:
            return ""
        counts = ", ".join(f"{name} on {n}" for name, n in Counter(mine).most_common())
        holds = sum(name in self.expected for name in mine)
        kind = f"{self.kind} " if self.kind else ""
        return (
            f"Best on {_some(len(mine), kind)}: {counts}. The paper: {self.paper}. "
            f"{_either(self.expected)} is best here on {holds} of {len(mine)}."
        )


@dataclass(frozen=True)
class Choice:
    """One of several variants must be chosen, graph by graph.

    Attributes
    ----------
    of : tuple of str
        The variants.
    paper : str
        What the paper says.
    """

    of: tuple[str, ...]
    paper: str

    def says(self, rows: Sequence[Row]) -> str:
        """See `Claim`."""
        found = []
        for graph, by_name in by_graph(rows).items():
            mine = [by_name[name] for name in self.of if name in by_name]
            if len(mine) < 2:
                continue
            best = max(mine, key=lambda row: _better(row, mine[0]))
            worst = min(mine, key=lambda row: _better(row, mine[0]))
            times = f"{_better(best, worst):.2f}x {worst['variant']}"
            found.append(f"{graph}: {best['variant']}, {times}")
        return f"Best on {'; '.join(found)}. The paper: {self.paper}." if found else ""


@dataclass(frozen=True)
class Peak:
    """A variant reaches a value somewhere.

    Attributes
    ----------
    of : str
        The variant.
    least : float
        The value.
    paper : str
        What the paper says.
    """

    of: str
    least: float
    paper: str

    def says(self, rows: Sequence[Row]) -> str:
        """See `Claim`."""
        mine = [by_name[self.of] for by_name in by_graph(rows).values() if self.of in by_name]
        if not mine:
            return ""
        best = max(mine, key=lambda row: float(row["value"]))
        reaches = "reaches" if best["value"] >= self.least else "does not reach"
        return (
            f"{self.of} has {best['value']:.4g} {best['unit']} at most, on {best['graph']}. "
            f"The paper: {self.paper}. It {reaches} {self.least:g} here."
        )


@dataclass(frozen=True)
class Values:
    """The values of a variant, from the least to the greatest, beside a sentence of the paper.

    Attributes
    ----------
    of : str
        The variant.
    paper : str
        What the paper says.
    """

    of: str
    paper: str

    def says(self, rows: Sequence[Row]) -> str:
        """See `Claim`."""
        mine = [by_name[self.of] for by_name in by_graph(rows).values() if self.of in by_name]
        if not mine:
            return ""
        mine.sort(key=lambda row: float(row["value"]))
        values = ", ".join(f"{row['graph']} {row['value']:.3g}" for row in mine)
        return f"{self.of}, {mine[0]['unit']}: {values}. The paper: {self.paper}."
