"""Compare what two runs of the papers say of each claim: held, not held, or undecided.

Usage: python docs/benchmarks/words.py RUN RUN

A run is a report of ``lagpu paper --json``, or a folder of such reports. The verdicts are those of
the rows that both runs have, by today's rules. The exit code is 1 if fewer than 95 % of the claims
have the same word in both.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lagpu.bench.harness import Report
from lagpu.papers.experiments import PAPERS

sys.path.insert(0, str(Path(__file__).parents[1] / "_ext"))
from reports import Verdict, verdicts

GOAL = 0.95


def reports_in(run: Path) -> dict[str, Report]:
    """Return the reports of a run by the names of their files."""
    files = sorted(run.glob("*.json")) if run.is_dir() else [run]
    found = {file.name: json.loads(file.read_text("utf-8")) for file in files}
    return {name: report for name, report in found.items() if "paper" in report}


def names_of(report: Report, part: Report) -> list[tuple[str, ...]]:
    """Return the names of the rows of an experiment."""
    number = report["paper"]["number"]
    keys = ("graph", "made_from", "variant")
    return [(number, part["part"], *(row[key] for key in keys)) for row in part["rows"]]


def rows_of(run: dict[str, Report]) -> set[tuple[str, ...]]:
    """Return the names of all rows of a run."""
    parts = ((report, part) for report in run.values() for part in report["experiments"])
    return {name for report, part in parts for name in names_of(report, part)}


def only(run: dict[str, Report], names: set[tuple[str, ...]]) -> dict[str, Report]:
    """Return a run with some of its rows."""
    found = {}
    for file, report in run.items():
        parts = []
        for part in report["experiments"]:
            named = zip(names_of(report, part), part["rows"], strict=True)
            parts.append({**part, "rows": [row for name, row in named if name in names]})
        found[file] = {**report, "experiments": parts}
    return found


def compared(one: dict[str, Report], other: dict[str, Report]) -> list[tuple[Verdict, Verdict]]:
    """Return the verdicts on each claim that both runs have rows for."""
    both = rows_of(one) & rows_of(other)
    pairs = []
    for paper in PAPERS:
        found = (verdicts(paper.number, only(run, both), partial=True) for run in (one, other))
        pairs += [pair for pair in zip(*found, strict=True) if pair[0].files and pair[1].files]
    return pairs


def main(one: str, other: str) -> int:
    """Print the claims with two words, and how many have one."""
    pairs = compared(reports_in(Path(one)), reports_in(Path(other)))
    differ = [pair for pair in pairs if pair[0].word != pair[1].word]
    for first, second in differ:
        print(f"{first.part}\n  {first.text}\n  {second.text}")
    same = len(pairs) - len(differ)
    print(f"{same} of {len(pairs)} claims have the same word ({same / max(len(pairs), 1):.0%})")
    return int(not pairs or same < GOAL * len(pairs))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
