"""A page of an algorithm has formula, code, pictures with words, and exercises that are right."""

import contextlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lagpu
from lagpu import algorithms, catalog, generators
from lagpu.draw.shapes import places
from lagpu.errors import LimitExceeded
from lagpu.observe.step import step

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
import algorithm_pages as pages

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = [{"options": "", "median_ms": None, "note": "over 10 s"}]


def page_of(name, folder):
    return pages.markdown(
        pages.rows()[name], folder, dict.fromkeys(("bfs_levels", "triangle_count"), MEASURED)
    )


def test_every_algorithm_has_a_page():
    assert set(algorithms.__all__) <= set(pages.rows())


def test_every_algorithm_is_listed_once():
    table = pages.with_questions((DOCS / "algorithms.md").read_text("utf-8"))
    listed = re.findall(r"\[`(\w+)`\]\(algorithms/\w+\.md\)", table)
    assert sorted(listed) == sorted(algorithms.__all__)
    assert "\n| question | function |" in table


@pytest.mark.parametrize("name", ["largest_component", "eigenvector_centrality", "triangles"])
def test_functions_of_a_formula_have_words(name, tmp_path):
    formula, said = page_of(name, tmp_path).split("```text\n")[1].split("## Code")[0].split("```")
    plain = {"plus", "min", "max", "minus", "times", "abs", "s"}  # as in Python
    for function in {*re.findall(r"(?<![\w.⟨])(\w+)\(", formula)} - plain:
        assert f"{function}(" in said, function


@pytest.mark.parametrize("name", ["bfs_levels", "triangle_count", "has_path", "sssp"])
def test_a_page_has_all_parts(name, tmp_path):
    page = page_of(name, tmp_path)
    heads = re.findall("^## (.*)", page, re.M)
    assert heads == ["Formula", "Code", "Steps", "Method and cost", "Speed", "Exercises"]
    code = re.search(r"```python\n(.*?)```", page, re.S)[1]
    assert re.match(rf"(_[A-Z]+ = \d.*\n)*\n?def {name}\(", code)
    assert ("_SHORT = " in code) == ("_SHORT:" in code)
    assert '"""' not in code
    drawn = re.findall(r":::\{figure\} (\S+)\n:alt: (.*)\n", page)
    assert 1 <= len(drawn) <= 4
    for file, said in drawn:
        svg = (tmp_path / file).read_text("utf-8")
        assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="')
        assert re.match(r"(The graph|Cells) of .*Step \d+: .* (<<|has)", said)
        assert not re.search("[0-9a-f]{20}", said)
    assert re.search(r"^\| grid:8x8 \| 64 \| 224 \| \d", page, re.M) or name == "sssp"
    assert "{{" not in (tmp_path / f"{name}-steps.html").read_text("utf-8")


@pytest.mark.parametrize("name", ["katz_centrality", "closeness_centrality"])
def test_a_page_shows_a_function_once(name, tmp_path):
    """Not again for a generator expression or a function inside."""
    code = re.search(r"```python\n(.*?)```", page_of(name, tmp_path), re.S)[1]
    assert re.search(rf"^def {name}\(", code, re.M)
    named = re.findall(r"def (\w+)", code)
    assert len(named) == len(set(named))


def test_a_page_names_only_columns_signs_and_digits_that_say_something(tmp_path):
    page = page_of("in_degree_centrality", tmp_path)
    assert "| graph | vertices n | entries m | statements |\n" in page
    assert "*Read*" not in page
    assert "s(v)" not in page
    assert "times(share, 1 / (A.nrows - 1))" in page
    assert "replace=True) << any_pair" in page_of("bfs_levels", tmp_path)


def test_a_weighted_page_gives_the_weights_and_draws_no_empty_product(tmp_path):
    page = page_of("sssp", tmp_path)
    assert "source 0; the edges have the weights `{(0, 1): 7, (0, 2): 2, " in page
    assert "weights `{" not in page_of("bfs_levels", tmp_path)
    assert "weights `{(0, 1): 7, (0, 2): 2, " in page_of("minimum_spanning_forest", tmp_path)
    drawn = re.findall(r"\{figure\} (\S+)\n", page)
    assert drawn
    for file in drawn:
        assert 'fill="#D55E00"' in (tmp_path / file).read_text("utf-8")


def test_a_scalar_in_a_call_of_float_is_named(tmp_path):
    assert "\nfound = truediv(found, total)\n" in page_of("triangle_centrality", tmp_path)


def test_a_formula_names_what_its_source_names(tmp_path):
    """Values of the small graph say nothing, and an aggregator is several statements."""
    formulas = {
        "eigenvector_centrality": ["length = hypot(x)", "apart = valuege(apart, enough)"],
        "shortest_path": ["before[source] = source", "back[target] = target"],
        "k_core": ["peeled = valuele(left, degree)", "result = one(valuege(core, k))"],
        "diameter": ["upper = longest * A.nrows", "upper⟨s(upper)⟩ min= plus(backward, e)"],
        "floyd_warshall": ["D min= A", "column = D[:, k]", "row = D[k, :]"],
        "triangle_count": ["largest = max(degree)", "result = plus(around) // 6"],
        "similarity": ["D = diag(degree)", "own = D any.first C", "other = C any.second D"],
        "label_propagation": ["B = truediv(B, power)", "best = max(K)", "T = diag(best) any.eq K"],
        "laplacian_matrix": ["L = ainv(B)", "L plus= diag(sums)"],
        "maximal_matching": ["gone = found any.pair C", "left⟨¬s(gone), r⟩ = left"],
        "largest_component": ["largest = valueeq(sizes, max(sizes))", "least = min(t)"],
        "path_weight": ["lengths = first(A ⊗ taken)"],  # not the search for the path
        "radius": ["# bfs_levels", "# radius", "result = min(eccentricity)"],
        "closeness_centrality": ["# _reversed", "reversed = A'", "# bfs_levels"],
        "square_clustering": ["t = plus(P)", "walks = minus(t ⊗ degree)"],
        "modularity": ["out = plus(C)", "into = plus(C')"],
        "overall_reciprocity": ["E = offdiag(A)", "result = nvals(T) / nvals(A)"],
        "transitivity": ["result = plus(around) // 6", "result = 6 * _count(E) / pairs"],
        "maximal_independent_set": ["best = minus(scores ⊕ best, 0, -1)"],
        "pagerank": ["given = lost * sent", "given plus= jumps", "new plus= given"],
    }
    for name, expected in formulas.items():
        text = re.search(r"## Formula\n\n```text\n(.*?)```", page_of(name, tmp_path), re.S)[1]
        at = [text.split("\n")[:-1].index(line) for line in expected]
        assert at == sorted(at) or name == "maximal_matching", text
        assert not re.search(r"\(old\)|\(2\)|^s = min\(A\)|index\(column", text, re.M), text
    assert "`T` and `t` have no name" in page_of("square_clustering", tmp_path)
    matching = page_of("maximal_matching", tmp_path)  # a pair for each end of the edges
    assert matching.count("\nleft⟨¬s(gone), r⟩ = left\n") == 2


def test_a_formula_says_what_it_leaves_out_and_what_changes(tmp_path):
    assert "\nOnly the statements of the loop are listed.\n" in page_of("k_truss", tmp_path)
    page = page_of("is_bipartite", tmp_path)
    assert "\nOf `bfs_parents` and `bipartite_sides` only the statements of their loops" in page
    assert "statements of the loop are" not in page_of("modularity", tmp_path)
    page = page_of("minimum_spanning_forest", tmp_path)
    assert "; `S`, `P`, `G`, `H` and `L` change with their vectors.\n" in page
    assert "; `P` changes with its vector.\n" in page_of("connected_components", tmp_path)
    assert " with its vector" not in page_of("maximal_matching", tmp_path)


def test_a_page_says_itself_what_the_result_of_an_algorithm_is():
    rows = pages.rows()
    for name, other in (("out_degree_centrality", "in_degree_centrality"), ("bfs", "bfs_parents")):
        assert pages._returned(rows[other]).split("`: ")[1] in pages._returned(rows[name])
    assert not [name for name in rows if ": As [" in pages._returned(rows[name])]


def test_a_page_draws_the_loops_that_its_code_shows(tmp_path):
    page = page_of("betweenness_centrality", tmp_path)
    assert "any.pair" not in page
    assert "any_pair(" not in page.split("## Steps")[1]
    assert re.search(r"Step \d+, level \d: `pulled\(above.S", page)
    assert "orange arrows" in (tmp_path / "betweenness_centrality-5.svg").read_text("utf-8")
    page = page_of("strongly_connected_components", tmp_path)
    assert "frontier⟨s(rest), r⟩ = frontier min.first A\n" in page
    page = page_of("k_hop_sizes", tmp_path)  # not the search that decides how many at once
    assert "level 2: `levels" in page
    assert "level 3" not in page
    assert "| grid:16x16 (NotConverged) |" in page_of("eigenvector_centrality", tmp_path)


@pytest.mark.parametrize("kind", ["pattern", "undirected", "acyclic", "mutual"])
def test_no_edge_of_a_small_graph_passes_a_vertex(kind):
    A = pages.small(kind)
    at = places(*A.to_coo()[:2], A.nrows)
    for tail, head in zip(*A.to_coo()[:2], strict=True):
        way, out = at[head] - at[tail], at - at[tail]
        along = np.clip(out @ way / (way @ way), 0, 1)
        beside = np.hypot(*(out - along[:, None] * way).T)
        assert np.sort(beside)[2] > 0.08 * np.ptp(at, axis=0).max()


def test_exercises_have_an_answer_and_a_graph_is_that_of_its_products(tmp_path):
    page = page_of("bipartite_sides", tmp_path)
    before, after = re.search(r"Before: (.*?)\. Then: (.*?)\.</p>", page).groups()
    assert sorted(before) != sorted(after)  # another cycle, not the same from the other end
    for name in ("bipartite_sides", "bfs_levels", "core_number"):
        assert " is {}.</p>" not in page_of(name, tmp_path)
    for name in ("core_number", "sssp_parents"):  # a product with another matrix, of its edges
        drawn = re.findall(r"\{figure\} (\S+)\n", page_of(name, tmp_path))
        assert all("orange arrows" in (tmp_path / file).read_text("utf-8") for file in drawn)
    assert "the graph of A" not in "".join(
        (tmp_path / file).read_text("utf-8")
        for file in re.findall(r"\{figure\} (\S+)\n", page_of("modularity", tmp_path))
    )


def test_a_step_page_is_whole_and_names_what_its_code_names(tmp_path):
    page = page_of("harmonic_centrality", tmp_path)
    assert "Step through all 75 statements." in page
    steps = (tmp_path / "harmonic_centrality-steps.html").read_text("utf-8")
    assert "\n# harmonic_centrality returns {0:\u00a01, 1:\u00a03.833, " in steps
    assert "back: 7 x 7" not in steps  # of the caller, whose code is not beside the step
    page_of("is_bipartite", tmp_path)
    steps = (tmp_path / "is_bipartite-steps.html").read_text("utf-8")
    assert ">of bipartite_sides</text>" in steps
    assert "\u2026" not in steps
    page_of("contraction", tmp_path)
    steps = (tmp_path / "contraction-steps.html").read_text("utf-8")
    assert ">P</text>" in steps  # the matrix that a statement reads is drawn


def test_the_table_has_the_semirings_of_the_loops():
    for topic, (_, said) in pages.TOPICS.items():
        names = {row.name for row in catalog.ALGORITHMS if row.topic == topic}
        found = set()
        for name in names - {"betweenness_centrality"}:  # its search for a size is no loop of it
            row = pages.rows()[name]
            if row.call is not None:  # its argument is the result of another one
                continue
            with contextlib.suppress(LimitExceeded), lagpu.steps(limit=200) as steps:
                pages.run(row, pages.small(pages.kind_of(row)))
            looped = [one.formula for one in steps if one.level >= 0]
            found |= set(re.findall(r" ([a-z]+_[a-z]+) (?!min |max )", " ".join(looped)))
        listed = {*re.findall(r"`(\w+)`", said), *["any_pair"] * ("bfs_levels" in said)}
        if topic == "sides":  # beside those of `connected_components`
            found -= {"min_first", "min_second"}
        assert found & {*dir(lagpu.semiring)} <= listed, (topic, found, listed)


def test_a_graph_that_is_drawn_reversed_is_said_to_be(tmp_path):
    page = page_of("harmonic_centrality", tmp_path)
    assert page.count(", `A` is the reversed graph: `") == page.count("\nStep ")
    assert re.search(r"Before step .*}`; `A` is the reversed graph\. What does", page)
    assert "reversed graph" not in page_of("bfs_levels", tmp_path)
    assert "reversed graph" not in page_of("betweenness_centrality", tmp_path)


def test_a_page_has_the_cost_and_its_function_s_names(tmp_path):
    for name in pages.rows():
        _, said = pages.sections(getattr(algorithms, name))
        assert ("Notes" in said) != (name in pages._AS), name
    page = page_of("neighborhood", tmp_path)
    assert "As [`bfs_levels`](bfs_levels.md#method-and-cost)." in page
    assert "vertices, source 0, `k=2`; the edges are `{(0, 1), (0, 2), " in page
    assert "vertices, sources 0 and 4, `k=2`; the edges are" in page_of("k_hop", tmp_path)


def test_options_that_all_rows_share_stand_above_the_table(tmp_path):
    row = pages.rows()["neighborhood"]
    measured = [{"options": "within 2 edges", "median_ms": 1.5, "note": ""}]
    page = pages.markdown(row, tmp_path, {"neighborhood": measured})
    assert (
        "Median milliseconds of wall time, within 2 edges, each result verified; [graphs and "
        in page
    )
    assert " index=graph columns=" in page


def test_cells_without_a_number_are_explained_and_no_other_algorithm_is_in_a_table(tmp_path):
    assert "*over 10 s*: stopped after 10 s." in page_of("bfs_levels", tmp_path)
    page = page_of("reciprocity", tmp_path)
    assert "; the nearest that it measures: [`triangle_count`](triangle_count.md#speed)." in page
    assert "pivot" not in page


def test_every_algorithm_has_its_speed(tmp_path):
    measured = pages.recorded()
    assert measured.keys() == pages.rows().keys()
    assert all(len({one["graph"] for one in rows}) >= 3 for rows in measured.values())
    page = pages.markdown(pages.rows()["reciprocity"], tmp_path, measured)
    assert "milliseconds of processor time on `cpu`, one thread, each result verified:" in page
    assert "<!-- pivot cpu-algorithms.json index=graph columns=system value=median_ms " in page


@pytest.mark.parametrize(
    ("name", "how"),
    [("hits", "generated loop* ("), ("sssp", "relaxation* ("), ("k_core", "")],
)
def test_a_page_says_how_its_loop_runs(tmp_path, name, how):
    words = f"on [`sim`](../backends.md), on the small graph: *{how}"
    assert f"[How its loop runs](../design/gpu.md#the-ways-to-run-a-loop) {words}" in page_of(
        name, tmp_path
    )
    for no_loop in ("triangle_count", "path_weight"):
        assert "How its loop runs" not in page_of(no_loop, tmp_path)


def test_a_caption_has_the_statement_as_a_program_has_it(tmp_path):
    page = page_of("path_weight", tmp_path)
    assert '`lengths << A.ewise_mult(taken, "first")`' in page
    assert "# path_weight returns 7</p>" in (tmp_path / "path_weight-steps.html").read_text("utf-8")
    page = page_of("triangle_count", tmp_path)
    assert '`degree << A.reduce_rowwise("plus")`' in page
    assert "`s << " not in page  # a number is no picture
    assert '`truss(C.S, replace=True) << A.select("offdiag")`' in page_of("k_truss", tmp_path)
    assert "`P << place.selection()`" in page_of("contraction", tmp_path)


def test_a_page_shows_what_its_function_calls_and_names_what_it_draws(tmp_path):
    assert "_hook_and_shortcut" not in page_of("bipartite_sides", tmp_path)
    page = page_of("betweenness_estimate", tmp_path)
    assert "def _sums(" in page
    assert "vertices, 3 sampled sources, `seed=1`, " in page
    assert "def _reach_all(" in page_of("eccentricity", tmp_path)
    page = page_of("modularity", tmp_path)
    assert "\nresult = within / total - resolution * expected / total / total\n" in page
    page = page_of("minimum_spanning_forest", tmp_path)
    assert "\nL = selection(least)\ngrand = roots min.first P\ndeep = ne(grand" in page
    assert "    R, C, S = begin.selection(nrows=n)" in page
    page = page_of("contraction", tmp_path)
    assert "P = selection(place)\nrows = P plus.second values\n" in page
    assert "\nrows = D any.second A\nego = rows any.first D\n" in page_of("ego_graph", tmp_path)
    assert "The result: `[1, 3, 5]`." in page_of("find_negative_cycle", tmp_path)
    page_of("largest_component", tmp_path)
    steps = (tmp_path / "largest_component-steps.html").read_text("utf-8")
    assert "The graph of A; " in steps
    assert "The graph of P; " not in steps
    page = page_of("closeness_centrality", tmp_path)
    assert "noqa" not in page
    found = re.findall(r":alt: .*Step (\d+): (.*)", page)
    assert len(found) == len({words for _, words in found}) > 1
    assert found == sorted(found, key=lambda one: int(one[0]))
    assert ", `k=4`; the edges, in both directions, are" in page_of("k_truss", tmp_path)
    page_of("shortest_path", tmp_path)
    assert "target 5" in (tmp_path / "shortest_path-steps.html").read_text("utf-8")
    assert "\nshare plus= plus(ones')\n" in page_of("degree_centrality", tmp_path)
    assert "\nD min= plus outer(column, row)\n" in page_of("floyd_warshall", tmp_path)
    page = page_of("triangle_centrality", tmp_path)
    assert '<div class="legend"><svg ' in page
    steps = (tmp_path / "triangle_centrality-steps.html").read_text("utf-8")
    assert " of run" not in page + steps
    assert '<h1><a href="triangle_centrality.html">Triangle centrality</a></h1>' in steps
    assert "neighbours.&quot;&quot;&quot;</code>" in steps


def test_an_exercise_with_several_right_answers_says_so(tmp_path):
    page = page_of("bfs_parents", tmp_path).replace("\u00a0", " ")
    assert "{3: 2, 4: 2}. As any keeps one of several, 3: 1 is right, too.</p>" in page
    assert "A vertex may have another one of its possible parents.</p>" in page
    assert "is right, too" not in page_of("bfs_levels", tmp_path)
    assert "Another odd cycle is right, too.</p>" in page_of("bipartite_sides", tmp_path)


def test_a_solution_of_many_entries_has_those_that_differ(tmp_path):
    page = page_of("floyd_warshall", tmp_path)
    assert "Before: (0, 1): 7, (6, 1): 12. Then: (0, 1): 8, (6, 1): 13. The other" in page.replace(
        "\u00a0", " "
    )
    assert " more}" not in page
    assert pages._compared("{(0, 0): 1}", "{}") == "Before: {(0, 0): 1}. Then: {}."


def test_a_formula_names_the_levels_of_a_sweep(tmp_path):
    page = page_of("edge_betweenness_centrality", tmp_path)
    assert "`here` and `above` are the vertices of a level and of the one before it" in page
    assert "arguments: `here`, `above`, `P`, " in page  # though `above` is a vector of another f
    assert page.count("How its last loop runs") == 1


def levels(edges, source):
    """Return the levels of a search, by sets."""
    found, front, depth = {}, {source}, 0
    while front:
        found |= dict.fromkeys(front, depth)
        front = {v for u, v in edges if u in front} - set(found)
        depth += 1
    return found


def test_the_exercises_of_bfs_levels_are_right(tmp_path):
    page = page_of("bfs_levels", tmp_path)
    edges = list(zip(*(part.tolist() for part in pages.small("pattern").to_coo()[:2]), strict=True))
    i, j = map(int, re.search(r"the edge from (\d) to (\d)", page).groups())
    before, after = (
        {int(v): int(d) for v, d in re.findall(r"(\d):\s(\d)", words)}
        for words in re.search(r"Before: (\{.*?\})\. Then: (\{.*?\})\.", page).groups()
    )
    assert before == levels(edges, 0)
    assert after == levels([edge for edge in edges if edge != (i, j)], 0) != before
    frontier, found = re.search(
        r"`frontier` is `\{(.*?)\}`.*?frontier is \{(.*?)\}", page, re.S
    ).groups()
    depths = [{levels(edges, 0)[int(v)] for v in re.findall(r"\d", x)} for x in (frontier, found)]
    assert [len(some) for some in depths] == [1, 1]
    assert min(depths[1]) == min(depths[0]) + 1


def test_a_statement_in_the_notation_of_the_docs():
    A = generators.path(3, backend="cpu")
    found = [pages.formula(one) for one in step(algorithms.bfs_levels, A, 0)]
    assert found[:3] == [
        "frontier[source] = True",
        "levels⟨s(frontier)⟩ = depth",
        "frontier⟨¬s(levels), r⟩ = frontier any.pair A",
    ]
    ranks = [pages.formula(one) for one in step(algorithms.connected_components, A)]
    assert "parents min= P min.second least" in ranks


def test_docstrings_as_markdown():
    assert pages.plain("see docs/design/bitmap.md.") == "see [bitmap](../design/bitmap.md)."
    assert pages.plain("``x`` of `bfs` and `A`") == "`x` of [`bfs`](bfs.md) and `A`"
    assert [pages.title(name) for name in ("bfs_levels", "pagerank")] == ["BFS levels", "PageRank"]
    summary, said = pages.sections(algorithms.bfs_levels)
    assert summary.startswith("Return each vertex's distance")
    assert {"Parameters", "Returns", "Notes", "Examples"} <= set(said)
    assert (
        pages.value(algorithms.bfs_levels(generators.path(2, backend="cpu"), 0)) == "{0: 0, 1: 1}"
    )
    assert pages.entries(dict.fromkeys(range(51), 0.5)).endswith("48: 0.5, ... 2 more}")


def test_a_page_says_what_a_reader_needs_to_follow_it(tmp_path):
    """Names without a statement, parts of a result, arguments that are made for it, marks."""
    page = page_of("betweenness_centrality", tmp_path)
    assert "From the code or its arguments: `here` and `above`.\n" in page
    assert "plus_first(share @ A.T)`" in page
    page = page_of("floyd_warshall", tmp_path)
    assert "From the code or its arguments: `k`." in page
    assert "no name in the code" not in page  # not listed: another statement has used it
    assert all(
        "entries of row (2)" not in file.read_text("utf-8") for file in tmp_path.glob("f*-2*.svg")
    )
    assert '`D << column.outer(row, "plus")`' in page.replace("(accum=binary.min)", "")
    assert "The result: `length = 4; begin = 6; end = 5`." in page_of("pseudo_diameter", tmp_path)
    assert "The result: `{3, 4}`." in page_of("center", tmp_path)
    page = page_of("path_weight", tmp_path)
    assert ", for a path of least length from 0 to 5; the edges have" in page
    assert "Step through the statement." in page
    assert "| grid:8x8 | 64 | 224 | 1 |" in page
    page = page_of("contraction", tmp_path)
    assert "with the label v % 5 for vertex v" in page
    assert ":alt: Cells of selection(place), labels, place, names and P. Step 1: " in page
    assert "written by the step" in page
    assert "T` has no name in the code." in page_of("in_degree_centrality", tmp_path)
    assert "limit = min(waiting)\nlimit plus= delta\n" in page_of("delta_stepping", tmp_path)
    assert "\nlost = 0\nlost plus= plus(left)\n" in page_of("pagerank", tmp_path)
    assert "`(2)` is a second result." in page_of("label_propagation", tmp_path)
    page = page_of("k_hop_sizes", tmp_path)
    assert "`sizes[some] << count`" in page
    assert "`T` has no name in the code." in page
    assert "other entry of a matrix" in page
    for name, has in (("k_hop_sizes", False), ("floyd_warshall", True)):
        steps = (tmp_path / f"{name}-steps.html").read_text("utf-8")
        assert ("(2), (old): another" in steps) == has
    assert "`ge(x ⊗ y)` is whether x is >= y" in page_of("bellman_ford", tmp_path)
    page = page_of("maximal_matching", tmp_path)
    assert "`eq(x ⊗ y)` is whether x is equal to y" in page
    assert "Only the statements of the loop and its selections are listed." in page
    assert "The result: `sides = None; odd_cycle" in page_of("bipartite_sides", tmp_path)
    assert "*-*: the system has the other method." in pages.markdown(
        pages.rows()["connected_components"],
        tmp_path,
        {"connected_components": [one | {"options": x} for x in "ab" for one in MEASURED]},
    )
