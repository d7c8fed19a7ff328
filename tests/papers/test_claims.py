"""The sentences are those of the figures, and judge no more than the runs show."""

import pytest

from lagpu.papers.experiments import (
    ANOTHER_DAY,
    ANOTHER_HOST,
    BEST,
    ONE_RUN,
    PaperGraph,
    best_of,
    sentence,
)


def says(what, rows, **given):
    return sentence({"says": what, "paper": "-"} | given, rows)


def row(graph, variant, value, kind="regular", **more):
    return {
        "graph": graph, "variant": variant, "value": value, "runs": [value, value], "kind": kind,
        "more": True, "of_paper": True, "checked": True, "unit": "GTEPS", "roots": 50,
    } | more  # fmt: skip


ROWS = [
    row("a", "td", 2.0),
    row("a", "bu", 6.0),
    row("a", "lagpu", 99.0, of_paper=False),
    row("b", "td", 4.0, "irregular, star"),
    row("b", "bu", 3.0, "irregular, star"),
    row("b", "lagpu", 1.0, "irregular, star", of_paper=False),
]


def with_runs(rows, by):
    """Return rows of two runs, the greater one `by` times the other."""
    return [one | {"runs": [one["value"] / by**0.5, one["value"] * by**0.5]} for one in rows]


def test_ratios():
    assert says("Ratio", ROWS, of="bu", to="td", least=2.0, paper="twice") == (
        "Not held: bu over td on 2 graphs: 0.75x to 3.00x, geometric mean 1.50x (uncertainty: "
        "1.44x to 1.56x); the claim is 2x or more. The paper: twice. "
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    assert says("Ratio", ROWS, of="bu", to="td", least=1.0, kind="star") == (
        "Not held: bu over td on 1 star graph: 0.75x (uncertainty: 0.72x to 0.78x); "
        "the claim is 1x or more. The paper: -. "
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    best = says("Ratio", ROWS, of=BEST, to="lagpu", least=1.0)
    assert best.startswith("Not held: The best variant over lagpu on 2 graphs: 0.06x to 4.00x")


@pytest.mark.parametrize(
    ("mean", "value", "word"),
    [
        ("geometric mean", "1.50x", "Not held"),
        ("mean", "1.88x", "Held"),  # of 0.75 and 3
        ("least", "0.75x", "Not held"),
    ],
)
def test_means_are_of_the_papers_kind(mean, value, word):
    said = says("Ratio", ROWS, of="bu", to="td", least=1.7, mean=mean)
    assert said.startswith(f"{word}: bu over td on 2 graphs: 0.75x to 3.00x, {mean} {value}")


@pytest.mark.parametrize(
    ("spread", "word"), [(1.0, "Held"), (1.17, "Held"), (1.22, "Undecided"), (9, "Undecided")]
)
def test_nothing_is_judged_below_the_spread(spread, word):
    rows = with_runs(ROWS[3:5], spread)  # 4 / 3, of two rows that spread
    by = spread * ANOTHER_DAY**2
    assert (4 / 3 / by >= 1.09) is (word == "Held")
    assert says("Ratio", rows, of="td", to="bu", least=1.09).startswith(f"{word}")


def test_a_library_on_the_cpu_has_the_margin_of_another_host():
    mine, other = with_runs(ROWS[3:5], 1.0)
    for mode, by, word in (("eager", ANOTHER_DAY, "Held"), ("peer", ANOTHER_HOST, "Undecided")):
        rows = [mine | {"mode": mode}, other]
        assert (4 / 3 / by / ANOTHER_DAY >= 1.09) is (word == "Held")
        assert says("Ratio", rows, of="td", to="bu", least=1.09).startswith(word)


def test_one_run_judges_by_the_spread_that_was_seen():
    single = [{k: x for k, x in one.items() if k != "runs"} for one in ROWS[:2]]
    said = says("Ratio", single, of="bu", to="td", least=1.0)
    assert 3 / ONE_RUN > 1
    assert said.startswith("Held: bu over td")
    assert said.endswith("Measured in 1 run of 50 roots.")
    assert says("Ratio", single, of="bu", to="td", least=1.2).startswith("Undecided")
    assert says("Ratio", single, of="bu", to="td", least=9.0).startswith("Not held")


@pytest.mark.parametrize("of", [{"own": False}, {"size_only": True}])
def test_rows_that_are_not_the_papers_judge_nothing(of):
    rows = [ROWS[0], ROWS[1] | of, *ROWS[3:5]]
    assert says("Ratio", rows, of="bu", to="td", least=0.5).startswith(
        "Held: bu over td on 1 graph: 0.75x"
    )
    said = says("Ratio", rows[:2], of="bu", to="td", least=0.5)
    assert said.startswith("Undecided: bu over td on 1 graph: 3.00x")
    assert says("Values", [ROWS[1] | of], of="bu", most=9).startswith("Undecided: bu, GTEPS: a 6;")


def test_a_claim_may_have_an_upper_bound():
    for most, word in ((1.6, "Held"), (1.5, "Undecided"), (1.4, "Not held")):
        said = says("Ratio", ROWS, of="bu", to="td", most=most)
        assert said.startswith(f"{word}: bu over td on 2 graphs")
        assert f"the claim is {most:g}x or less" in said


def test_a_claim_of_another_machine_is_undecided():
    said = says("Ratio", ROWS, of="bu", to="td", least=0.5, machine="99 GPUs")
    assert said.startswith("Undecided: bu over td on 2 graphs: 0.75x to 3.00x")
    assert "The claim is of 99 GPUs." in said


def test_the_spread_and_the_roots_are_those_of_the_rows_compared():
    rows = [*ROWS, row("a", "library", 1.0, of_paper=False, roots=3, runs=[0.5, 1.5])]
    assert says("Ratio", rows, of="bu", to="td", least=2.0).endswith(
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    assert says("Ratio", rows, of=BEST, to="library", least=2.0).endswith(
        "Measured in 2 runs of 3 to 50 roots, which differ by up to 3.00x."
    )


def test_searches_that_fall():
    """The greater the share, the slower: so for two pairs of three, since b and c are alike."""
    rows = [
        row("a", "down", 10.0, gteps=8.0, rates=[8.0, 8.0]),
        row("b", "down", 30.0, gteps=4.0, rates=[4.0, 4.0]),
        row("c", "down", 30.1, gteps=2.0, rates=[2.0, 2.0]),
    ]
    said = says("Falls", rows, of="down", paper="slower")
    assert said.startswith("Held: down, GTEPS at GTEPS: a 10 at 8, b 30 at 4, c 30.1 at 2.")
    assert says("Falls", rows[1:], of="down").startswith("Undecided: ")
    assert says("Falls", rows[:1], of="down").startswith("Undecided: ")
    faster = [rows[0], rows[1] | {"gteps": 9.0, "rates": [9.0, 9.0]}]
    assert says("Falls", faster, of="down").startswith("Not held: ")
    once = [rows[0], {k: x for k, x in rows[1].items() if k != "rates"} | {"gteps": 6.0}]
    assert says("Falls", once, of="down").startswith("Undecided: ")


def test_less_time_is_better():
    rows = [one | {"more": False} for one in ROWS]
    assert "0.33x to 1.33x" in says("Ratio", rows, of="bu", to="td", least=1.0)
    assert best_of(rows[:3])["variant"] == "td"
    assert "Best on 1 graph: td on 1." in says("BestOf", rows[:2], kind="", expected=["td"])


def test_the_best():
    assert best_of(ROWS[:3])["variant"] == "bu"
    assert best_of(ROWS[2:3]) is None
    assert says("BestOf", ROWS, kind="", expected=("td", "xx"), paper="td") == (
        "Undecided: Best on 2 graphs: bu on 1, td on 1. The paper: td. "
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    assert says("BestOf", ROWS, kind="regular", expected=("td",)).startswith("Not held: ")
    assert says("BestOf", ROWS, kind="star", expected=("td", "bu")).startswith("Held: ")


def test_the_best_of_equals():
    rows = with_runs(ROWS[3:5], 1.3)
    said = says("BestOf", rows, kind="", expected=("td",))
    assert said.startswith("Undecided: Best on 1 graph: no certain difference on 1.")
    assert says("BestOf", rows, kind="", expected=("td", "bu")).startswith("Held: ")
    assert says("BestOf", rows, kind="", expected=("xx",)).startswith("Not held: ")


def test_values():
    assert says("Peak", ROWS, of="bu", least=5.0, paper="more than 5") == (
        "Held: bu reaches 6 GTEPS, on a; the claim is 5 or more. The paper: more than 5. "
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    assert says("Peak", ROWS, of="bu", least=7.0).startswith("Not held: ")
    assert says("Peak", ROWS, of="bu", least=6.1).startswith("Undecided: ")
    assert says("Values", ROWS, of="bu", most=7.0, paper="seven at most") == (
        "Held: bu, GTEPS: b 3, a 6; the claim is 7 or less. The paper: seven at most. "
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    assert "a 6" not in says("Values", ROWS, of="bu", most=7.0, kind="star")
    for most, word in ((7, "Held"), (6.05, "Undecided"), (4, "Not held")):
        assert says("Values", ROWS, of="bu", most=most).startswith(f"{word}: bu, GTEPS: b 3")


def test_choices():
    chosen = {"of": ["td", "bu"]}
    assert says("Choice", ROWS, **chosen, paper="either") == (
        "Held: Best on a: bu, 3.00x over td; b: td, 1.33x over bu. The paper: either. "
        "Measured in 2 runs of 50 roots, which differ by less than 1 %."
    )
    assert says("Choice", with_runs(ROWS, 1.3), **chosen).startswith(
        "Undecided: Best on a: bu, 3.00x over td; b: no certain difference, 1.33x over bu."
    )
    close = [*ROWS[:2], row("b", "td", 4.0), row("b", "bu", 3.95)]
    assert says("Choice", close, **chosen).startswith("Not held: Best on a: bu")
    single = [one | {"runs": one["runs"][:1]} for one in close]  # as close, but who knows
    assert says("Choice", single, **chosen).startswith("Undecided: ")
    assert says("Choice", ROWS[:2], **chosen).startswith("Undecided: ")  # one graph alone
    assert says("Choice", ROWS[:2], **chosen, expected=["bu"]).startswith("Held: ")
    assert says("Choice", ROWS[:2], **chosen, expected=["td"]).startswith("Not held: ")
    assert says("Choice", ROWS, of=("td", "xx")) == ""


def test_what_is_not_proved_or_not_there_says_nothing():
    wrong = [one | {"checked": False} for one in ROWS]
    none = [one | {"value": None} for one in ROWS]
    for rows in (wrong, none, [], ROWS[:1]):
        assert says("Ratio", rows, of="bu", to="td", least=1.0) == ""
    for rows in (wrong, none, []):
        assert says("Choice", rows, of=("td", "bu")) == ""
        assert says("Peak", rows, of="bu", least=1.0) == ""
        assert says("Values", rows, of="bu", most=1.0) == ""
        assert says("Falls", rows, of="bu") == ""
        assert says("BestOf", rows, kind="", expected=("td",)) == ""
    assert says("BestOf", ROWS, kind="mesh", expected=("td",)) == ""


def test_a_partial_table_gives_no_verdict():
    """Its rows are shown, and what lacks is named, of the graphs that the claim is about."""
    claim = {"says": "Ratio", "of": "a", "to": "b", "least": 2.0, "paper": "-", "kind": "web"}
    rows = [row("G", "a", 9.0, "web"), row("G", "b", 3.0, "web")]
    graphs = [PaperGraph(name, kind=kind) for name, kind in (("G", "web"), ("m", "mesh"))]
    assert sentence(claim, rows, graphs).startswith("Held: a over b on 1 web graph: 3.00x")
    text = sentence(claim, rows, [*graphs, PaperGraph("H", kind="big, web")])
    assert text.startswith("Undecided: a over b on 1 web graph: 3.00x")
    assert " Not measured: H." in text


@pytest.mark.parametrize(("least", "word"), [(5.0, "Held"), (7.0, "Undecided")])
def test_a_value_that_is_reached_somewhere_needs_no_other_graph(least, word):
    claim = {"says": "Peak", "of": "bu", "least": least, "paper": "-"}
    text = sentence(claim, ROWS, [PaperGraph("H")])
    assert text.startswith(word)
    assert " Not measured: H." in text
