"""Two runs of the papers are compared claim by claim, on the rows that both have."""

import copy
import importlib.util
import json
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "docs" / "benchmarks" / "words.py"


@pytest.fixture(scope="module")
def words():
    spec = importlib.util.spec_from_file_location("words", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(graph, variant, ms):
    return {
        "graph": graph, "made_from": "kron:21:16", "variant": variant, "value": ms, "kind": "",
        "runs": [ms, ms], "more": False, "of_paper": True, "checked": True, "unit": "ms",
        "roots": 64, "gteps": 1.0,
    }  # fmt: skip


@pytest.fixture
def report():
    """A run of 004, figure 3: four edges per thread take half the time of one."""
    rows = [row("a", "4 edges per thread", 1.0), row("a", "1 edge per thread", 2.0)]
    return {
        "paper": {"number": "004"}, "date": "2026-01-01", "commit": None, "quick": False,
        "experiments": [{"part": "figure 3", "rows": rows}],
    }  # fmt: skip


def written(folder, **reports):
    folder.mkdir()
    for name, report in reports.items():
        (folder / f"{name}.json").write_text(json.dumps(report))
    return str(folder)


def test_the_same_words(words, report, tmp_path, capsys):
    one, slower = written(tmp_path / "one", x=report), copy.deepcopy(report)
    for its in slower["experiments"][0]["rows"]:
        its["runs"] = [3 * value for value in its["runs"]]
        its["value"] *= 3
    other = written(tmp_path / "other", y=slower)
    assert words.main(one, other) == 0
    assert capsys.readouterr().out == "1 of 1 claims have the same word (100%)\n"


@pytest.mark.parametrize(("ms", "word"), [(1.9, "Not held"), (1.43, "Undecided")])
def test_another_word(words, report, tmp_path, capsys, ms, word):
    other = copy.deepcopy(report)
    other["experiments"][0]["rows"][0] |= {"value": ms, "runs": [ms, ms]}
    assert words.main(written(tmp_path / "one", x=report), written(tmp_path / "other", x=other))
    part, first, second, total = capsys.readouterr().out.splitlines()
    assert (part, total) == ("figure 3", "0 of 1 claims have the same word (0%)")
    assert first.startswith("  Held: 4 edges per thread over 1 edge per thread on 1 graph: 2.00x")
    assert second.startswith(f"  {word}: 4 edges")


def test_rows_of_one_run_alone_do_not_count(words, report, tmp_path, capsys):
    """The graph b turns the first run's word; the second run does not have it."""
    more = copy.deepcopy(report)
    more["experiments"][0]["rows"] += [
        row("b", "4 edges per thread", 9.0), row("b", "1 edge per thread", 1.0)
    ]  # fmt: skip
    (verdict,) = [
        one for one in words.verdicts("004", {"x": more}, partial=True) if one.part == "figure 3"
    ]
    assert verdict.word == "Not held"
    assert words.main(written(tmp_path / "one", x=more), written(tmp_path / "other", x=report)) == 0


def test_runs_without_a_claim_in_common(words, report, tmp_path, capsys):
    lost = copy.deepcopy(report)
    del lost["experiments"][0]["rows"][0]
    assert words.main(written(tmp_path / "one", x=report), written(tmp_path / "other", x=lost))
    assert "0 of 0 claims" in capsys.readouterr().out


def test_the_newest_row_of_several_files_counts(words, report):
    newer = copy.deepcopy(report) | {"date": "2026-01-02"}
    newer["experiments"][0]["rows"] = [row("a", "4 edges per thread", 4.0)]
    found = {
        one.part: one for one in words.verdicts("004", {"new": newer, "old": report}, partial=True)
    }
    assert found["figure 3"].word == "Not held"
    assert {*found["figure 3"].files} == {"new", "old"}
    assert found["figure 10"].text.startswith(
        "Undecided: not measured on several GPUs. The paper: a net 2x"
    )
    assert found["figure 10"].files == ()
