"""Pages and plots: what is on them, that they need nothing else, that they work in a browser."""

import html
import json
import re
import sys

import pytest
from browser import browse, cells, check_page, needs_browser, packed

import lagpu
from lagpu import INT32, Vector, algorithms, generators
from lagpu.cli import main
from lagpu.draw.look import data, fill, text
from lagpu.errors import BackendUnavailable
from lagpu.observe.trace import Row, Trace


@pytest.fixture(scope="module")
def traced():
    A = generators.path(6, backend="cpu")
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
    return t


def test_a_template_is_filled_once(monkeypatch, tmp_path):
    (tmp_path / "a.html").write_text("<p>{{x}} {{y}}</p>")
    monkeypatch.setattr("importlib.resources.files", lambda _name: tmp_path)
    assert fill("a.html", x="{{y}}", y="1") == "<p>{{y}} 1</p>"
    with pytest.raises(KeyError):
        fill("a.html", x="")


def test_text_and_data_are_escaped():
    bad = "</script><b>&\"'"
    assert text(bad) == "&lt;/script&gt;&lt;b&gt;&amp;&quot;&#x27;"
    for worse in (bad, "<!--<script>", "a << b </", "<"):
        made = data([worse])
        assert not re.search("</|<!", made)
        assert json.loads(made) == [worse]


def test_the_page_of_a_trace(traced):
    page = traced.to_html(title="A <title>", facts={"graph": "a & b"})
    check_page(page)
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "<dt>graph</dt><dd>a &amp; b</dd>" in page
    found = packed(page)
    assert found["statement"] == [row.formula for row in traced.rows]
    assert found["edges"] == [row.edges for row in traced.rows]
    assert found["level"] == [None, *(row.level for row in traced.rows[1:])]
    assert found["kernel ms"] == [round(row.kernel_ms, 4) for row in traced.rows]
    assert found["shapes"][:3] == ["6", "6 << 6", "6 << 6x6, 6"]


def test_its_summary_needs_no_script(traced):
    page = traced.to_html()
    static = page[: page.index("<h2>Statements</h2>")]
    assert "13 statements looked at 10 edges" in static
    assert "<td>mxv</td>" in static
    assert static.count("<rect ") == 12  # two kinds of statements in each of six levels
    assert "<noscript>" in page


def test_sums_of_what_is_not_known_are_no_zeros(backend):
    """Of a fused loop no statement has a time of the host; an assignment looks at no edges."""
    A = generators.path(70, backend=backend)
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
    lines = re.findall(r"<tr>(?!<th)(.*?)</tr>", t._repr_html_())
    sums = {found[0]: found[1:] for found in (re.findall(r"<td[^>]*>(.*?)</td>", s) for s in lines)}
    _, kernel, _, edges, _, host_ms, moved = sums["mxv"]
    assert edges == str(sum(row.edges for row in t.rows if row.method == "mxv"))
    assert (host_ms == "-") == (kernel == "fused") == backend.capabilities.fuses
    assert moved.endswith("kB")
    assert sums["assign_scalar"][3] == "-"
    assert (sums["assign_scalar"][6] != "-") == bool(backend.capabilities.kernels)
    *_, folded = (line for line in t.table().splitlines() if "more statements" in line)
    assert (
        " -  " in folded
    ) == backend.capabilities.fuses  # host ms: of no statement in the middle


def test_notebooks_get_the_summary(traced):
    made = traced._repr_html_()
    check_page(made)
    assert "13 statements" in made
    assert "<script" not in made
    assert made.count("<rect ") == 12


def test_a_trace_is_returned_or_written(traced, tmp_path):
    for show in (traced.to_html, traced.to_json):
        file = tmp_path / show.__name__
        assert show(file) is None
        assert show(str(file)) is None
        assert file.read_text("utf-8") == show()


def test_an_empty_trace_has_a_page():
    page = Trace().to_html()
    check_page(page)
    assert packed(page)["level"] == []
    assert "<svg" not in page


def test_ten_thousand_rows_stay_below_two_megabytes():
    t = Trace()
    for k in range(10_000):
        t._rows.append(
            Row(
                level=k // 2,
                method="mxv",
                formula=f"frontier(~levels.S, replace) << frontier any_secondi A{k}",
                where="an_algorithm.py:137",
                shapes=((16777216,), (16777216, 16777216), (16777216,)),
                nvals_in=7_654_321 + k,
                nvals_out=1_234_567 + k,
                direction="pull",
                kernel="pull_scalar",
                reason=f"density {k / 100:.2f}% >= 10%; column length 15.7 < 16",
                edges=268_435_456 - k,
                bytes=2_147_483_648 - k,
                kernel_ms=1.0 + k / 7,
                host_ms=1.0 + k / 3,
                compile_ms=0.0,
                copy_ms=0.0123,
                copy_bytes=8,
            )
        )
    page = t.to_html()
    assert len(packed(page)["level"]) == 10_000
    assert len(page.encode()) < 2_000_000


@needs_browser
def test_rows_are_listed_sorted_and_filtered(traced, tmp_path):
    page = traced.to_html()
    listed = cells(browse(page, tmp_path))
    assert [row[1] for row in listed] == [row.formula for row in traced.rows]
    assert listed[0][0] == "-"
    out = "document.querySelectorAll('#rows th')[5].firstChild"
    falling = cells(browse(page, tmp_path, f"{out}.click(); {out}.click();"))
    assert [int(row[5]) for row in falling] == sorted(
        (r.nvals_out for r in traced.rows), reverse=True
    )
    search = (
        "const f = document.getElementById('filter'); f.value = 'ANY_PAIR';"
        "f.dispatchEvent(new Event('input'));"
    )
    assert len(cells(browse(page, tmp_path, search))) == 6


@pytest.mark.ci
@needs_browser
@pytest.mark.parametrize("fuse", [True, False])
def test_a_list_fits_a_screen_with_its_reasons(tmp_path, fuse):
    """Each below its statement; columns in which no row has anything are left out."""
    A = generators.kronecker(8, backend="sim")
    algorithms.bfs_levels(A, 1)
    with lagpu.trace(fuse=fuse) as t:
        algorithms.bfs_levels(A, 1)
    page = t.to_html()
    lacks = {"compile ms": "compile_ms", "copy ms": "copy_ms", "copied": "copy_bytes"}
    for name, field in lacks.items():
        assert (name in packed(page)) == any(getattr(row, field) for row in t.rows)
    reported = (
        "document.title = [innerWidth, document.querySelector('#rows').scrollWidth].join(' ');"
    )
    dom = browse(page, tmp_path, reported, "--window-size=1400,900")
    window, table = map(int, re.search("<title>(.*?)</title>", dom)[1].split())
    assert window == 1400
    assert table < window
    reasons = re.findall(r'</code><div class="soft">(.*?)</div>', dom)
    assert [html.unescape(reason) for reason in reasons] == [row.reason for row in t.rows]
    why = "document.querySelector('#rows th button + button')"
    found = cells(browse(page, tmp_path, f"{why}.click(); {why}.click();"))
    assert found[0][1] == max(t.rows, key=lambda row: row.reason).formula


@pytest.mark.ci
@needs_browser
def test_long_lists_have_pages(tmp_path):
    v = Vector(INT32, 1, backend="cpu", name="v")
    with lagpu.trace() as t:
        for k in range(450):
            v << k
    listed = cells(browse(t.to_html(), tmp_path, "document.getElementById('on').click();"))
    assert [row[1] for row in listed] == [f"v << {k}" for k in range(200, 400)]


@needs_browser
def test_names_are_no_markup(tmp_path):
    v = Vector(INT32, 1, backend="cpu", name="<img src=x onerror=\"document.title='bad'\">")
    with lagpu.trace() as t:
        [v][0] << 1
        formula_of_a_temporary = [Vector(INT32, 1, backend="cpu", name="</script>")]
        formula_of_a_temporary[0] << 2
    page = t.to_html()
    check_page(page)
    dom = browse(page, tmp_path)
    assert "<title>Trace</title>" in dom
    assert cells(dom)[1][1] == "</script> << 2"


@needs_browser
def test_the_bars_of_many_levels_keep_their_labels_on_a_telephone(tmp_path):
    with lagpu.trace() as t:
        algorithms.bfs_levels(generators.path(60, backend="cpu"), 0)
    script = (
        "const svg = document.querySelector('figure svg'), all = document.documentElement;"
        "document.title = [svg.getBoundingClientRect().width / svg.viewBox.baseVal.width,"
        " all.scrollWidth <= innerWidth].join(' ');"
    )
    dom = browse(t.to_html(), tmp_path, script, "--window-size=500,900")
    scale, fits = re.search(r"<title>(.*)</title>", dom)[1].split()
    assert (round(float(scale), 2), fits) == (0.6, "true")


# ----------------------------------------------------------------------------------- plots


def test_a_plot_has_time_and_entries(traced):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = traced.plot()
    heights = [patch.get_height() for patch in ax.patches]
    inside = [row.kernel_ms for row in traced.rows if row.level >= 0]
    assert sum(heights) == pytest.approx(sum(inside))
    (line,) = ax.figure.axes[1].lines
    assert list(line.get_ydata()) == [1] * 6
    assert traced.plot(ax) is ax
    assert Trace().plot() is not ax
    matplotlib.pyplot.close("all")


def test_a_plot_has_whole_levels():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    with lagpu.trace() as t:
        algorithms.bfs_levels(generators.path(3, backend="cpu"), 0)
    ticks = t.plot().get_xticks()
    assert all(tick == int(tick) for tick in ticks)
    matplotlib.pyplot.close("all")


def test_a_plot_without_matplotlib_is_one_error(traced, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BackendUnavailable, match=r"lagpu\[viz\]"):
        traced.plot()


# ------------------------------------------------------------------------- the command line


def test_bfs_writes_its_trace(tmp_path, capsys):
    file, other = tmp_path / "t.html", tmp_path / "t.json"
    args = ["bfs", "path:5", "-s", "0", "-b", "cpu", "--json"]
    assert main([*args, "--trace", str(file)]) == 0
    page = file.read_text("utf-8")
    check_page(page)
    assert "levels from vertex 0, 5 reached" in page
    assert len(packed(page)["level"]) == 11
    assert main([*args, "--trace", str(other)]) == 0
    assert json.loads(other.read_text("utf-8"))["totals"]["statements"] == 11
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "fact"),
    [("t.txt", "does not end in .html or .json"), ("no/t.html", "there is no folder")],
)
def test_a_trace_must_be_writable_as_what_it_says(tmp_path, capsys, name, fact):
    args = ["bfs", "path:5", "-s", "0", "-b", "cpu", "--trace", str(tmp_path / name)]
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert fact in err


def test_a_trace_onto_a_folder_is_one_error(tmp_path, capsys):
    (tmp_path / "t.html").mkdir()
    assert main(["bfs", "path:3", "-s", "0", "-b", "cpu", "--trace", str(tmp_path / "t.html")]) == 2
    assert "t.html" in capsys.readouterr().err


def test_the_chart_has_axes_with_units(backend):
    A = generators.path(30, backend=backend)
    with lagpu.trace(fuse=False) as t:
        algorithms.bfs_levels(A, 0)
    chart = re.search(r"<figure>.*?</figure>", t.to_html(), re.DOTALL)[0]
    words = re.findall(r">([^<>]*)</text>", chart)
    assert {"kernel ms", "level", "0"} <= set(words)
    assert "Kernel time in milliseconds by level" in chart
    levels = [int(word) for word in words[words.index("kernel ms") + 1 : -1]]
    assert levels[0] == 0
    assert 20 < levels[-1] < 30
    assert set(re.findall(r'font-size="(\d+)"', chart)) == {"14"}
