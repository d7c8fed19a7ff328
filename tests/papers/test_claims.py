"""The sentences are those of the figures."""

from lagpu.papers.experiments import BEST, best_of, sentence


def says(what, rows, **given):
    return sentence({"says": what} | given, rows)


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
    assert says("Ratio", ROWS, of="bu", to="td", least=2.0, paper="twice") == (
        "bu over td on 2 graphs: 0.75x to 3.00x, geometric mean 1.50x. The paper: twice. "
        "2x or more here on 1 of 2."
    )
    assert says("Ratio", ROWS, of="bu", to="td", least=1.0, paper="-", kind="star") == (
        "bu over td on 1 star graph: 0.75x. The paper: -. 1x or more here on 0 of 1."
    )
    best = says("Ratio", ROWS, of=BEST, to="lagpu", least=1.0, paper="-")
    assert best.startswith("The best variant over lagpu on 2 graphs: 0.06x to 4.00x")


def test_less_time_is_better():
    rows = [one | {"more": False} for one in ROWS]
    assert "0.33x to 1.33x" in says("Ratio", rows, of="bu", to="td", least=1.0, paper="-")
    assert best_of(rows[:3])["variant"] == "td"


def test_the_best():
    assert best_of(ROWS[:3])["variant"] == "bu"
    assert best_of(ROWS[2:3]) is None
    assert says("BestOf", ROWS, kind="", expected=("td", "xx"), paper="td") == (
        "Best on 2 graphs: bu on 1, td on 1. The paper: td. td or xx is best here on 1 of 2."
    )
    said = says("BestOf", ROWS, kind="regular", expected=("td",), paper="-")
    assert said.endswith("td is best here on 0 of 1.")


def test_values():
    assert says("Peak", ROWS, of="bu", least=5.0, paper="more than 5") == (
        "bu has 6 GTEPS at most, on a. The paper: more than 5. It reaches 5 here."
    )
    assert says("Peak", ROWS, of="bu", least=7.0, paper="-").endswith("It does not reach 7 here.")
    assert says("Values", ROWS, of="bu", paper="less is better") == (
        "bu, GTEPS: b 3, a 6. The paper: less is better."
    )


def test_choices():
    assert says("Choice", ROWS, of=("td", "bu"), paper="either") == (
        "Best on a: bu, 3.00x td; b: td, 1.33x bu. The paper: either."
    )
    assert says("Choice", ROWS, of=("td", "xx"), paper="-") == ""


def test_what_is_not_proved_or_not_there_says_nothing():
    wrong = [one | {"checked": False} for one in ROWS]
    none = [one | {"value": None} for one in ROWS]
    for rows in (wrong, none, [], ROWS[:1]):
        assert says("Ratio", rows, of="bu", to="td", least=1.0, paper="-") == ""
    for rows in (wrong, none, []):
        assert says("Choice", rows, of=("td", "bu"), paper="-") == ""
        assert says("Peak", rows, of="bu", least=1.0, paper="-") == ""
        assert says("Values", rows, of="bu", paper="-") == ""
        assert says("BestOf", rows, kind="", expected=("td",), paper="-") == ""
    assert says("BestOf", ROWS, kind="mesh", expected=("td",), paper="-") == ""
