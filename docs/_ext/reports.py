"""Reports of ``lagpu paper NNN --json`` in the page of the paper.

A line ``<!-- reports 003 -->`` of a page becomes the paper's experiments, each with the rows that
were measured, by the tables that `lagpu paper` prints, and what they say of its claims; an
experiment without any says so. What holds for several experiments is said once, above them.
"""

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from lagpu.papers.experiments import UNKNOWN, paper_of, sentence
from lagpu.papers.run import lines_of, table_of

FOLDER = Path(__file__).parents[1] / "benchmarks" / "papers"

_COLUMNS = (
    "*graph* is the paper's and, after a colon, ours; S20 EF16, or kron:20:16, is scale 20 and "
    "edge factor 16: 2²⁰ vertices, 16 edges for each; gnm:128:7750 has 128 vertices and 7,750 "
    "random edges. An empty cell repeats the one above. "
    "*variant* is the paper's, *runs as* a kernel or policy of lagpu. A root is the source of a "
    "search. "
    "*Spread* is the greatest over the least value of a row's runs. "
    "GTEPS are 10⁹ edges a second, an undirected edge counted once. They and times are those of "
    "the kernels (*kernel ms*), or of the whole search if the host cannot time its kernels. "
    "*median ms* is the median of whole searches; where kernels are timed too, these searches are "
    "others, from fewer roots, so it may be less than *kernel ms*. "
    "A claim about several graphs is judged by the mean that it names."
)
_PROVED = "Each result was checked."

# What a page has no room for; the origin of a graph stands beside its name.
_QUICK = "A quick run: "
_LEFT_OUT = {"made from", "mode", "entries", "degrees", "checked"}
#: How large a graph is beside the paper's, which is not so for one of another size.
_SIZE = re.compile(r"(?:, (?:of|with) [^,;]*vertices)?; of another size, by --graph")
#: What is missing on a machine with fewer GPUs than pieces.
_PIECES = re.compile(r"missing: (.+), (\w+): paper: needs a grid of .* there is no device .*")
_NO_GPUS = "missing: more pieces than this machine has GPUs: "
_LINE = re.compile(r"^<!-- reports (\d{3}) -->$", re.M)
_OPTION = re.compile(
    r"--[a-z]+(?: NAME=FILE)?|-b [a-z]+"
)  # as code, else two hyphens become a dash
_SPECIAL = re.compile(r"([\\`*|<\[%])")  # % at the start of a line is a comment to MyST


class Verdict(NamedTuple):
    """What the rows of some reports say of a claim, and whose; without rows there are no files."""

    part: str
    claim: dict
    text: str
    files: tuple

    @property
    def word(self):
        """Return `HELD`, `NOT_HELD` or `UNKNOWN`."""
        return self.text.partition(":")[0]


def verdicts(number, reports, partial=False):
    """Yield a verdict on each claim of a paper, by today's rules and the newest rows.

    Unless tables may be `partial`, a claim of graphs without rows is undecided.
    """
    for experiment in paper_of(number).experiments:
        newest = _newest(number, reports, experiment.part)
        rows = [row for _, row in newest.values()]
        most = _gpus(experiment, rows)
        made = [graph for graph in experiment.graphs if graph.made and graph.gpus <= most]
        files = tuple(dict.fromkeys(file for file, _ in newest.values()))
        for claim in experiment.claims:
            text = sentence(claim, rows, () if partial else made)
            where = "on several GPUs" if claim.get("kind") == "distributed" else "here"
            none = f"{UNKNOWN}: not measured {where}. The paper: {claim['paper']}."
            yield Verdict(experiment.part, claim, text or none, files if text else ())


def _newest(number, reports, part):
    """Return the newest row of each graph and variant in a part of a paper, and its file."""
    return {
        (row["graph"], row["variant"]): (file, row)
        for file, report in sorted(reports.items(), key=lambda item: item[1]["date"])
        if report["paper"]["number"] == number
        for one in report["experiments"]
        if one["part"] == part
        for row in one["rows"]
    }


def _gpus(experiment, rows):
    """Return the most GPUs that rows are of; 0 without a grid."""
    names = {row["graph"] for row in rows}
    return max((graph.gpus for graph in experiment.graphs if graph.name in names), default=0)


def with_reports(page, folder=FOLDER):
    """Return the text of a page with the reports that it asks for."""
    return _LINE.sub(lambda found: "\n".join(markdown(found[1], folder)), page)


def markdown(number, folder=FOLDER):
    """Yield the lines of a paper's experiments, from the reports in `folder`, the oldest first."""
    reports = [
        json.loads(file.read_text("utf-8")) | {"file": file.name}
        for file in sorted(folder.glob("*.json"))
    ]
    of_paper = [one for one in reports if one["paper"]["number"] == number and not one["quick"]]
    of_paper.sort(key=lambda report: report["date"])
    by_file = {report["file"]: report for report in of_paper}
    said = [*verdicts(number, by_file)]
    found = []
    for experiment in paper_of(number).experiments:
        newest = _newest(number, by_file, experiment.part)
        measured = [
            (report, {"roots": experiment.roots, **_shown(part, report["file"], newest)})
            for report in of_paper
            for part in report["experiments"]
            if part["part"] == experiment.part
        ]
        measured = [(report, part) for report, part in measured if part["rows"]]
        measured.sort(key=lambda one: _gpus(experiment, one[1]["rows"]))
        notes = [
            _together(
                _note(x)
                for x in [*lines_of(part | {"says": [], "notes": experiment.notes}), _proved(part)]
                if not x.startswith(_QUICK)
            )
            for _, part in measured
        ]
        found.append((experiment, measured, notes))
    counted = Counter(x for *_, notes in found for x in dict.fromkeys(itertools.chain(*notes)))
    tables = sum(bool(measured) for _, measured, _ in found)
    # What the heading of a column means.
    of_column = re.compile(r"(?:\* all graphs|[GM]TEPS|ms|%|speed-up|energy|EDP)[^:]*: ")
    of_all = [x for x, k in counted.items() if k > 1 and (k == tables or of_column.match(x))]
    if of_paper:
        yield f"{_COLUMNS} Notes on several tables:\n" if of_all else f"{_COLUMNS}\n"
        yield from (f"- {_plain(line.replace('* all graphs', '*'))}" for line in of_all)
        yield ""
    for experiment, measured, notes in found:
        command = f"`lagpu paper {number} --{experiment.part}`"
        yield f"### {experiment.part.capitalize()}: {experiment.title}\n"
        of_each = [x for x in notes[0] if all(x in lines for lines in notes)] if measured else []
        for (report, part), lines in zip(measured, notes, strict=True):
            yield from _part(report, part, command, _gpus(experiment, part["rows"]))
            yield from (f"- {_plain(x)}" for x in lines if x not in (*of_all, *of_each))
            yield ""
        if measured:
            yield from (f"- {_plain(line)}" for line in of_each if line not in of_all)
            for verdict in (one for one in said if one.part == experiment.part):
                files = ", ".join(f"`{file}`" for file in verdict.files)
                text, *by_graph = _by_graph(verdict.text)
                each = " Best on each graph:" * bool(by_graph)
                yield f"- {_plain(text)}{f' ({files})' * bool(files)}{each}"
                yield from (f"  - {_plain(one)}" for one in by_graph)
            yield ""
        else:
            yield f"Not measured yet; {command} measures it.\n"


def _shown(part, file, newest):
    """Return a part of a file with its `newest` rows, and what is missing in other files too."""
    graphs = {graph for graph, _ in newest}
    return part | {
        "rows": [x for x in part["rows"] if newest[x["graph"], x["variant"]][0] == file],
        "missing": [x for x in part["missing"] if x.partition(": ")[0] not in graphs],
    }


def _note(line):
    """Return a line below a table in words that are right on this page."""
    line = _PIECES.sub(rf"{_NO_GPUS}\1 on \2", line)
    return _SIZE.sub("; here in another size", line).replace(".. ", ". ")


def _by_graph(text):
    """Return a verdict, and after it what it says of each graph if these are many."""
    found = re.fullmatch(
        r"(\w[\w ]*: )Best on ((?:.+?; ){3,}.+?)\. ((?:Not measured|The paper): .+)", text
    )
    return [found[1] + found[3], *found[2].split("; ")] if found else [text]


def _together(lines):
    """Return each line once, with all the graphs or variants that it holds for."""
    found = {}
    for line in lines:
        several = re.fullmatch(rf"({_NO_GPUS}|missing: [^,]+, |\* )([^:]+)((?:: .*)?)", line)
        before, names, why = several.groups() if several else ("", "", line)
        found.setdefault((before, why), {}).update(dict.fromkeys(names.split(", ")))
    return [f"{before}{', '.join(names)}{why}" for (before, why), names in found.items()]


def _part(report, experiment, command, gpus):
    """Yield the rows of an experiment on some GPUs, and what is to be read below them."""
    device = report["machine"].get("device", report["machine"]["cpu"])
    device = f"{gpus} {device}" if gpus > 1 else device
    # The history lacks the trees that were squashed after they were measured.
    commit = f"commit {report['commit'][:7]}" if report["commit"] else "a commit that is gone"
    when = f"{report['date'][:10]}, {commit}"
    theirs = f"; the paper on {experiment['measured_on']}" if experiment["measured_on"] else ""
    file = f"docs/benchmarks/papers/{report['file']}"
    lines = lines_of(experiment | {"says": [], "notes": []})
    roots = "".join(x.replace(_QUICK, "; ")[:-1] for x in lines if x.startswith(_QUICK))
    yield f"{command} on {_plain(device)}, {when}{theirs}{roots}; `{file}`.\n"
    columns = {str(column.header): column for column in table_of(experiment).columns}
    same = any(name.startswith("GTEPS (") for name in columns)
    left_out = {*_LEFT_OUT, "GTEPS"} if same else _LEFT_OUT
    shown = [
        column
        for name, column in columns.items()
        if name not in left_out and {*map(str, column.cells)} != {"-"}
    ]
    yield _row(column.header for column in shown)
    yield _row("---:" if column.justify == "right" else "---" for column in shown)
    made, before = map(str, columns["made from"].cells), None
    for origin, (graph, *cells) in zip(
        made, zip(*(column.cells for column in shown), strict=True), strict=True
    ):
        named = "" if graph == before else _plain(f"{graph}: {Path(origin).name}")
        yield _row([named, *(_plain(str(cell)) for cell in cells)])
        before = graph
    yield ""


def _proved(experiment):
    wrong = [f"{x['graph']}, {x['variant']}" for x in experiment["rows"] if x["checked"] is False]
    return f"Not proved: {'; '.join(wrong)}." if wrong else _PROVED


def _row(cells):
    return f"| {' | '.join(cells)} |"


def _plain(text):
    """Return text that Markdown shows as it is."""
    return _OPTION.sub(r"`\g<0>`", _SPECIAL.sub(r"\\\1", text))
