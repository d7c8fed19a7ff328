"""The sentences are those of the figures."""

from lagpu.papers.experiments import BEST, BestOf, Choice, Peak, Ratio, Values, best_of


def row(graph, variant, value, kind="regular", more=True, of_paper=True, checked=True):
    return {
        "graph": graph, "variant": variant, "value": value, "kind": kind, "more": more,
        "of_paper": of_paper, "checked": checked, "unit": "GTEPS",
    }  # fmt: skip


ROWS = [
    row("a", "td", 2.0),
    row("a", "bu", 6.0),
    row("a", "lagpu", 99.0, of_paper=False),
    row("b", "td", 4.0, "irregular, star"),
    row("b", "bu", 3.0, "irregular, star"),
    row("b", "lagpu", 1.0, "irregular, star", of_paper=False),
]


def test_ratios():
    assert Ratio("bu", "td", 2.0, "twice").says(ROWS) == (
        "bu over td on 2 graphs: 0.75x to 3.00x, geometric mean 1.50x. The paper: twice. "
        "2x or more here on 1 of 2."
    )
    assert Ratio("bu", "td", 1.0, "-", "star").says(ROWS) == (
        "bu over td on 1 star graph: 0.75x. The paper: -. 1x or more here on 0 of 1."
    )
    best = Ratio(BEST, "lagpu", 1.0, "-").says(ROWS)
    assert best.startswith("The best variant over lagpu on 2 graphs: 0.06x to 4.00x")


def test_less_time_is_better():
    rows = [one | {"more": False} for one in ROWS]
    assert "0.33x to 1.33x" in Ratio("bu", "td", 1.0, "-").says(rows)
    assert best_of(rows[:3])["variant"] == "td"


def test_the_best():
    assert best_of(ROWS[:3])["variant"] == "bu"
    assert best_of(ROWS[2:3]) is None
    assert BestOf("", ("td", "xx"), "td").says(ROWS) == (
        "Best on 2 graphs: bu on 1, td on 1. The paper: td. td or xx is best here on 1 of 2."
    )
    assert BestOf("regular", ("td",), "-").says(ROWS).endswith("td is best here on 0 of 1.")


def test_values():
    assert Peak("bu", 5.0, "more than 5").says(ROWS) == (
        "bu has 6 GTEPS at most, on a. The paper: more than 5. It reaches 5 here."
    )
    assert Peak("bu", 7.0, "-").says(ROWS).endswith("It does not reach 7 here.")
    assert Values("bu", "less is better").says(ROWS) == (
        "bu, GTEPS: b 3, a 6. The paper: less is better."
    )


def test_choices():
    assert Choice(("td", "bu"), "either").says(ROWS) == (
        "Best on a: bu, 3.00x td; b: td, 1.33x bu. The paper: either."
    )
    assert Choice(("td", "xx"), "-").says(ROWS) == ""


def test_what_is_not_proved_or_not_there_says_nothing():
    wrong = [one | {"checked": False} for one in ROWS]
    none = [one | {"value": None} for one in ROWS]
    for rows in (wrong, none, [], ROWS[:1]):
        assert Ratio("bu", "td", 1.0, "-").says(rows) == ""
    for rows in (wrong, none, []):
        assert Choice(("td", "bu"), "-").says(rows) == ""
        assert Peak("bu", 1.0, "-").says(rows) == Values("bu", "-").says(rows) == ""
        assert BestOf("", ("td",), "-").says(rows) == ""
    assert BestOf("mesh", ("td",), "-").says(ROWS) == ""
