"""The papers' pages: reports are shown, names are those of the tree, commands are there."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest

from lagpu.backends.gpu.ops.planner import POLICIES
from lagpu.backends.gpu.ops.strategies import STRATEGIES
from lagpu.backends.grid.systems import SYSTEMS
from lagpu.generators import is_spec
from lagpu.papers.experiments import PAPERS, experiments_of, paper_of
from lagpu.papers.run import Request, run

ROOT = Path(__file__).parents[2]
GPU = ROOT / "lagpu" / "backends" / "gpu"
CITATION = (ROOT / "CITATION.cff").read_text("utf-8")
PAGES = {page.stem: page.read_text("utf-8") for page in (ROOT / "docs" / "papers").glob("*.md")}


@pytest.fixture(scope="module")
def reports():
    """The module that puts reports into pages."""
    spec = importlib.util.spec_from_file_location("reports", ROOT / "docs" / "_ext" / "reports.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def report():
    """A report with one experiment, as `lagpu paper` writes it."""
    paper = paper_of("002")
    request = Request("cpu", quick=True, roots=1)
    found, _ = run(paper, experiments_of(paper, table="4"), request)
    return found | {"quick": False}


def test_a_report_is_shown_and_what_lacks_one_says_so(reports, report, tmp_path):
    (tmp_path / "any-name.json").write_text(json.dumps(report), "utf-8")
    shown = reports.with_reports("before\n\n<!-- reports 002 -->\n\nafter", tmp_path)
    assert shown.startswith("before\n\n*graph* is ")
    assert shown.endswith("\nafter")
    table = shown[shown.index("### Table 4") : shown.index("### Figure 8")]
    rows = report["experiments"][0]["rows"]
    assert table.count("\n| ") == len(rows) + 2  # the headings, and the line below them
    assert f"| roadNet-PA: road:6:2\\* | {rows[0]['variant']} |" in table
    assert "Each result was checked." in table
    commit = f"commit {report['commit'][:7]}" if report["commit"] else "a commit that is gone"
    assert f"{report['date'][:10]}, {commit}; the paper on one P100; 1 root a graph inst" in table
    assert "A quick run" not in shown  # which one of several
    assert "`docs/benchmarks/papers/any-name.json`." in table
    assert table.count("\n- Undecided: MGBC over OPT-OFF") == 2
    assert "`--graph NAME=FILE` reads the paper's graph" in table
    assert "()" not in shown  # of a claim without a file
    assert "Not measured yet" not in table
    others = shown.replace(table, "").count("Not measured yet; `lagpu paper 002 --")
    assert others == len(paper_of("002").experiments) - 1


def test_what_holds_for_all_tables_stands_once_and_no_column_is_empty(reports, report, tmp_path):
    (experiment,) = report["experiments"]
    parts = [experiment, experiment | {"part": "figure 6"}]
    (tmp_path / "x.json").write_text(json.dumps(report | {"experiments": parts}), "utf-8")
    shown = "\n".join(reports.markdown("002", tmp_path))
    assert shown.count("Each result was checked.") == 1
    assert shown.index("Each result was checked.") < shown.index("### Figure 6")
    assert "kernel ms |" not in shown  # the cpu has none


@pytest.mark.parametrize("change", [{"quick": True}, {"paper": {"number": "003"}}])
def test_quick_reports_and_those_of_other_papers_are_not_shown(reports, report, tmp_path, change):
    (tmp_path / "x.json").write_text(json.dumps(report | change), "utf-8")
    assert "| roadNet-PA" not in "\n".join(reports.markdown("002", tmp_path))


def test_text_of_a_report_is_no_markup(reports, report, tmp_path):
    report = json.loads(json.dumps(report)) | {"commit": "0123456789"}  # a copy has none
    experiment = report["experiments"][0]
    experiment["missing"] = ["a*b|c by --only"]
    experiment["measured_on"] = ""
    experiment["rows"][0]["made_from"] = "some/folder/graph.mtx"
    (tmp_path / "x.json").write_text(json.dumps(report), "utf-8")
    shown = [*reports.markdown("002", tmp_path)]
    assert "- missing: a\\*b\\|c by `--only`" in shown
    assert reports._plain("% of x") == "\\% of x"
    assert any("commit 0123456; 1 root a graph instead" in line for line in shown)
    assert any("; `docs/benchmarks/papers/x.json`.\n" in line for line in shown)
    assert any(": graph.mtx" in line for line in shown)
    assert "folder" not in "".join(shown)


def test_a_note_stands_below_the_table_that_it_is_of(reports, report, tmp_path):
    for day in ("2026-01-01", "2026-01-02"):
        one = json.loads(json.dumps(report)) | {"date": day}
        for row in one["experiments"][0]["rows"]:
            row["stand_in"], row["variant"] = f"made on {day}", row["variant"] + day
        (tmp_path / f"{day}.json").write_text(json.dumps(one), "utf-8")
    shown = "\n".join(reports.markdown("002", tmp_path))
    first = shown.index("made on 2026-01-01")
    assert shown.index("2026-01-01.json") < first < shown.index("2026-01-02.json")
    assert shown.index("2026-01-02.json") < shown.index("made on 2026-01-02")
    assert shown.count("Roots are vertices") == 1  # of both


def test_graphs_that_lack_gpus_are_in_one_line(reports, report, tmp_path):
    one = json.loads(json.dumps(report))
    why = "gpu: there is no device 1; this process sees 1, numbered from 0. Take others, or fewer."
    one["experiments"][0]["missing"] = [
        f"R-MAT S2{k} EF16, 1x{k}: paper: needs a grid of 1x{k}: {why} With -b cpu it runs."
        for k in (2, 4)
    ]
    (tmp_path / "x.json").write_text(json.dumps(one), "utf-8")
    shown = [*reports.markdown("002", tmp_path)]
    grids = "R-MAT S22 EF16 on 1x2, R-MAT S24 EF16 on 1x4"
    assert f"- missing: more pieces than this machine has GPUs: {grids}" in shown


def test_a_verdict_on_many_graphs_is_a_list(reports):
    of_graphs = [f"G{k}: K=0.{k}, 1.51x over K=2" for k in range(4)]
    text = "Not held: Best on {}. The paper: K=8. Measured in 2 runs of 16 roots."
    short = "Not held: The paper: K=8. Measured in 2 runs of 16 roots."
    assert reports._by_graph(text.format("; ".join(of_graphs))) == [short, *of_graphs]
    some = text.replace(". The paper", ". Not measured: G9. The paper").format("; ".join(of_graphs))
    assert reports._by_graph(some)[1:] == of_graphs
    few = text.format("; ".join(of_graphs[:3]))
    assert reports._by_graph(few) == [few]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.number)
def test_every_paper_has_a_page_that_shows_its_reports(paper):
    (page,) = [text for text in PAGES.values() if text.startswith(f"# {paper.number}")]
    assert f"\n<!-- reports {paper.number} -->\n" in page
    doi = re.search(r"doi:(\S+)", paper.where)
    for text in (page, PAGES["index"], CITATION):
        assert paper.title in text
        assert doi is None or doi[1] in text


@pytest.mark.parametrize("page", PAGES)
def test_names_in_a_page_are_there(page):
    text = PAGES[page]
    for file, name in re.findall(r"`([a-z_0-9]+/[a-z_0-9/]+\.(?:py|cuh?))`(?: `(\w+)`)?", text):
        path = GPU / file if (GPU / file).exists() else ROOT / "lagpu" / file
        assert path.exists(), file
        assert re.search(rf"\b{name}\b", path.read_text("utf-8")), (file, name)
    for name, variant in re.findall(r"`((?:push|pull)_[a-z_]+)(:[a-z0-9]+)?`", text):
        assert name in STRATEGIES, name
        assert variant[1:] in ("", *STRATEGIES[name].variants) or name == "push_virtual", variant
    for name in re.findall(r"--policy ([a-z0-9]+)", text):
        assert name in {*POLICIES, *SYSTEMS}, name
    command = r"lagpu paper (\d{3}) --(table|figure|section) (\S+?)[`\s]"
    for number, kind, which in re.findall(command, text):
        assert experiments_of(paper_of(number), **{kind: which})


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_in_a_few_minutes(page):
    assert len(PAGES[page].encode()) <= 6000


def counts(number, part):
    """Return how many graphs of a part are the paper's, made with another seed, others, files."""
    found = [0] * 4
    for graph in experiments_of(paper_of(number), **{part.split()[0]: part.split()[1]})[0].graphs:
        seed = graph.why.startswith("the same generator's parameters with another seed")
        found[3 if graph.made is None else 0 if not graph.why else 1 if seed else 2] += 1
    return found


def test_what_a_page_says_of_graphs_is_so():
    tables = [counts("003", f"table {k}") for k in (1, 2, 3)]
    same, seed, others, files = map(sum, zip(*tables, strict=True))
    made = same + seed + others
    assert f"- {made + files} graphs: {made} are made ({same} exactly, {seed} with another seed, {others} as stand-ins); {files} are files." in PAGES["turbobfs"]  # fmt: skip # noqa: E501
    assert counts("000", "figure 4a") == [0, 1, 2, 6]
    assert (
        "Nine graphs (table 1): one is made alike, two have stand-ins, six are files."
        in (PAGES["hiragushi"])
    )
    assert (counts("002", "figure 6"), counts("002", "table 4")) == ([0, 0, 2, 4], [0, 1, 1, 7])
    assert "Figure 6: four graphs of six are files." in PAGES["bfs2d"]
    assert "Table 4: seven graphs of nine are files." in PAGES["bfs2d"]
    assert counts("004", "table 3") == [0, 0, 3, 1]
    assert (
        "Table 3: three stand-ins, Orkut's on four GPUs; Friendster needs a file."
        in PAGES["kepler"]
    )


def test_reports_are_of_the_experiments_of_today():
    """A report names variants, graphs and units as its paper's experiments do."""
    for file in (ROOT / "docs" / "benchmarks" / "papers").glob("*.json"):
        report = json.loads(file.read_text("utf-8"))
        of_part = {one.part: one for one in paper_of(report["paper"]["number"]).experiments}
        for part in report["experiments"]:
            experiment = of_part[part["part"]]
            assert part["metric"] == experiment.metric.unit, file
            names = {x.name for x in experiment.variants}, {x.name for x in experiment.graphs}
            rows = {(row["variant"], row["graph"]) for row in part["rows"]}
            assert all(x in names[0] and y in names[1] for x, y in rows), (file, rows)
            why = {graph.name: graph.why for graph in experiment.graphs}
            for row in part["rows"]:  # not on a stand-in that is another one today
                known = (why[row["graph"]], "size only") if is_spec(row["made_from"]) else ""
                assert row["stand_in"].startswith(known), (file, row["graph"])


def test_the_commits_of_reports_are_in_the_history():
    """A report of a tree that is gone says so."""
    history = subprocess.run(
        ["git", "rev-list", "--all"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if len(history) < 100:
        pytest.skip("a copy without the history")
    for file in [*(ROOT / "docs").rglob("*.json")]:
        report = json.loads(file.read_text("utf-8"))
        commit = report.get("commit") if isinstance(report, dict) else None
        assert commit is None or any(one.startswith(commit) for one in history), file


def test_a_claim_without_rows_is_not_measured(reports):
    shown = "\n".join(reports.markdown("000"))
    assert "- Undecided: not measured here. The paper: up to 29x over Merrill's" in shown or (
        "Held" in shown
    )


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.number)
def test_a_page_says_of_each_experiment_what_its_files_have(reports, paper):
    """Each row once, the newest, in a table for each file; "Not measured yet" without any."""
    files = sorted((ROOT / "docs" / "benchmarks" / "papers").glob("*.json"))
    known = {file.name: json.loads(file.read_text("utf-8")) for file in files}
    mine = {name: one for name, one in known.items() if one["paper"]["number"] == paper.number}
    shown = "\n".join(reports.markdown(paper.number)).split("\n### ")[1:]
    assert len(shown) == len(paper.experiments)
    for experiment, text in zip(paper.experiments, shown, strict=True):
        newest = {
            (row["graph"], row["variant"]): (name, row)
            for name, one in sorted(mine.items(), key=lambda item: item[1]["date"])
            for part in one["experiments"] if part["part"] == experiment.part
            for row in part["rows"]
        }  # fmt: skip
        rows = {name: [row for of, row in newest.values() if of == name] for name in mine}
        having = {name for name, of in rows.items() if of}
        assert {*re.findall(r"`docs/benchmarks/papers/(\S+)`\.\n", text)} == having
        assert ("Not measured yet" in text) == (not having)
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        assert len(lines) == sum(len(of) + 2 for of in rows.values() if of)
        verdicts = [line for line in text.splitlines() if re.match("- (Held|Not held|Und)", line)]
        assert len(verdicts) == (len(experiment.claims) if having else 0)
        graphs = {graph for graph, _ in newest}
        missing = re.findall(r"^- missing: more pieces .*", text, re.M)
        assert not any(x.replace(", ", " on ") in "".join(missing) for x in graphs)
        wrong = [row for of in rows.values() for row in of if not row["checked"]]
        assert ("Not proved" in text) == bool(wrong)


def test_tables_of_several_gpus_say_so_and_are_the_last(reports):
    shown = "\n".join(reports.markdown("004"))
    figure = shown[shown.index("### Figure 4:") : shown.index("### Figure 5:")]
    one, two = figure.index(" on NVIDIA H200, "), figure.index(" on 2 NVIDIA H200, ")
    assert one < figure.index("EF16, 1x1") < two < figure.index("EF16, 1x2")


def test_a_note_names_no_size_that_is_not_so(reports):
    line = "* mesh: another mesh, of a quarter of the vertices; of another size, by --graph; x"
    assert reports._note(line) == "* mesh: another mesh; here in another size; x"
    assert reports._note("* all graphs: y.. Free it.") == "* all graphs: y. Free it."


def test_a_claim_about_several_gpus_is_not_called_unmeasured(reports):
    found = {one.claim["paper"]: one.text for one in reports.verdicts("004", {})}
    text = found["the update is less than 10 % of the time"]
    assert text.startswith("Undecided: not measured on several GPUs. The paper: ")
    assert "Undecided: not measured here." in " ".join(found.values())
