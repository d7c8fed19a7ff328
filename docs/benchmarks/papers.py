"""Put the reports of a run into ``docs/benchmarks/papers``, one file a paper, in place of others.

Usage: python docs/benchmarks/papers.py RUN

RUN is a folder of reports of ``lagpu paper --json``; several may share the graphs of a paper,
measured by one commit on one kind of machine. Those of several GPUs stay apart. Pages are made of
these files, so nothing else has to be changed.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from lagpu.bench.harness import Report
from lagpu.papers.experiments import experiments_of, paper_of

FOLDER = Path(__file__).parent / "papers"


def name_of(report: Report) -> str:
    """Return the name of a report's file, such as ``h200x2-004.json``."""
    rows = [row for part in report["experiments"] for row in part["rows"]]
    pieces = [row["backend"].split(":")[1] for row in rows if row["backend"].startswith("grid:")]
    gpus = max((math.prod(map(int, text.split("x"))) for text in pieces), default=1)
    device = report["machine"]["device"].split()[1].casefold()
    return f"{device}{f'x{gpus}' * (gpus > 1)}-{report['paper']['number']}.json"


def joined(reports: list[Report]) -> Report:
    """Return one report with the rows of several, the newest of each, in the paper's order."""
    reports = sorted(reports, key=lambda report: report["date"])
    commits = {report["commit"] for report in reports}
    if len(commits) > 1:
        raise SystemExit(f"reports of several commits: {', '.join(map(str, commits))}")
    found = []
    for experiment in experiments_of(paper_of(reports[0]["paper"]["number"])):
        parts = [x for one in reports for x in one["experiments"] if x["part"] == experiment.part]
        order = {graph.name: k for k, graph in enumerate(experiment.graphs)}
        rows = {(row["graph"], row["variant"]): row for part in parts for row in part["rows"]}
        missing = dict.fromkeys(text for part in parts for text in part["missing"])
        lists = {
            "missing": [text for text in missing if not text.startswith("not run: ")],
            "rows": sorted(rows.values(), key=lambda row: order[row["graph"]]),
            "says": [],  # pages judge all rows
        }
        found += [parts[-1] | lists] if rows else []
    return reports[-1] | {"experiments": found}


def main(run: str) -> None:
    """Write the files, and delete those that have no row which these lack."""
    by_name: dict[str, list[Report]] = {}
    for file in sorted(Path(run).glob("*.json")):
        report = json.loads(file.read_text("utf-8"))
        if "paper" in report and any(part["rows"] for part in report["experiments"]):
            by_name.setdefault(name_of(report), []).append(report)
    known = set()
    for name, reports in by_name.items():
        report = joined(reports)
        (FOLDER / name).write_text(json.dumps(report, indent=1) + "\n", "utf-8")
        known |= rows_of(report)
        print(f"{name}: {sum(len(part['rows']) for part in report['experiments'])} rows")
    for file in sorted(FOLDER.glob("*.json")):
        if file.name not in by_name and rows_of(json.loads(file.read_text("utf-8"))) <= known:
            print(f"{file.name}: all of its rows were measured again")
            file.unlink()


def rows_of(report: Report) -> set[tuple[str, ...]]:
    """Return the paper, part, graph and variant of each row."""
    number = report["paper"]["number"]
    parts = [(part["part"], row) for part in report["experiments"] for row in part["rows"]]
    return {(number, part, row["graph"], row["variant"]) for part, row in parts}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
