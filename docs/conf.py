"""How Sphinx builds these pages: ``sphinx-build -W docs docs/_build`` with the group ``docs``."""

import atexit
import html
import os
import pydoc
import re
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

import jupyter_client
import matplotlib
import nbformat
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import desc, desc_parameter, desc_sig_name, pending_xref
from sphinx.writers.html5 import HTML5Translator

import lagpu

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
import algorithm_pages
import alternatives
import figures
import notebooks
import reports
import slides
from alternatives import pictured

project = "lagpu"
author = "The lagpu authors"
copyright = "The lagpu authors"
version = release = lagpu.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_ext", "slides"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"lagpu {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
pygments_style = "default"

# Formulas are MathML, which browsers draw by themselves: no network, no script, no LaTeX.
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Every page runs, each time: a cache would not see that lagpu has changed.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_code_prompt_hide = "Hide"
nb_render_markdown_format = "myst"  # of what a cell shows: tables too

default_role = "py:obj"  # `x` of a docstring: a link if there is something of this name
suppress_warnings = ["ref.python"]  # where several have the name, any will do
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False

# Kernels draw SVG whose text is text, and leave nothing in the author's home.
_home = Path(tempfile.mkdtemp(prefix="lagpu-docs-"))
atexit.register(shutil.rmtree, _home, ignore_errors=True)
(_home / "profile_default").mkdir()
(_home / "profile_default" / "ipython_kernel_config.py").write_text(
    "c.InlineBackend.figure_formats = {'svg'}\n"
    "c.InlineBackend.rc = {'svg.fonttype': 'none', 'font.size': 10.5}\n"
    "c.HistoryManager.enabled = False\n"
    "c.Application.log_level = 40\n"
)
os.environ["IPYTHONDIR"] = str(_home)
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else the kernel's debugger warns


class _KernelByFiles(jupyter_client.AsyncKernelManager):
    """Its sockets are files: another process may take a port of TCP before the kernel binds it."""

    def _transport_default(self):
        return "ipc"

    def _ip_default(self):
        return str(_home / uuid.uuid4().hex[:8])


jupyter_client.AsyncKernelManager = _KernelByFiles  # nbclient takes it from there


_TELEPHONE, _COLUMN = 350, 736  # pixels for a table, on windows of 390 and 1280
_MANY = 24  # rows of numbers that are hidden until a click


def _mathml(tex, block=True):
    """Return a formula with the number of its signs, by which a telephone chooses their size."""
    made = tex2mathml(tex, as_block=block)
    signs = len(re.sub(r"<[^>]*>|\s", "", made))
    return made.replace("<math", f'<math style="--signs:{max(signs, 1)}"', 1)


def _formula(self, node):
    self.body.append(_mathml(node.astext(), isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


_PRE = re.compile(r"(<pre>(?:<span></span>)?)(.*?)\n?(</pre>)", re.S)


class Translator(HTML5Translator):
    """Let code break after a bracket, a slash or a longer name, and options in a table's cell."""

    option = re.compile(r"(?<=\w)[:,=](?=[A-Za-z])")  # as in push=merrill,pull=gather
    date = re.compile(r"\b\d{4}-\d\d-\d\d\b")
    words_and_spaces = re.compile(  # an entry, such as ``(0, 1): 2.5,`` or ``3: 1,``, is a word
        r"[{\[]*\(\d+, \d+\)(?:: [^ ,]+)?,?|[{\[]*\d+: [^ ,]+,?|"
        r"[^ \n]+?\w(?:\((?=[^)])|/(?=[A-Za-z_])|\.(?=[a-z_]{5}))|[^ \n]+| +|\n"
    )

    def visit_entry(self, node):
        begin = len(self.body)
        super().visit_entry(node)
        if "label" in node:
            label = html.escape(node["label"])
            self.body[begin] = self.body[begin].replace("<td", f'<td data-label="{label}"', 1)

    def visit_literal_block(self, node):
        try:
            super().visit_literal_block(node)
        except nodes.SkipNode:
            self.body[-1] = _PRE.sub(
                lambda found: found[1] + slides.lined(found[2]) + found[3], self.body[-1]
            )
            raise

    def visit_Text(self, node):
        begin = len(self.body)
        super().visit_Text(node)
        if self.protect_literal_text:
            made = "".join(self.body[begin:])
            self.body[begin:] = [made.replace("</span><span", "</span><wbr><span")]
        elif isinstance(node.parent.parent, nodes.entry):
            self.body[begin:] = [self.option.sub(r"\g<0><wbr>", x) for x in self.body[begin:]]
        if not self.protect_literal_text:
            whole = r'<span class="date">\g<0></span>'  # not broken at its hyphens
            self.body[begin:] = [self.date.sub(whole, x) for x in self.body[begin:]]


def _parameters(node):
    """Return the names of the parameters of the function or class whose docstring holds a node."""
    while node is not None and not isinstance(node, desc):
        node = node.parent
    signatures = () if node is None else node[:-1]
    found = [each for signature in signatures for each in signature.findall(desc_parameter)]
    return {name.astext() for each in found for name in each.findall(desc_sig_name)}


def _unlink_words(app, doctree):
    """Let ``(nvals,)`` in a parameter's type be a shape, and a parameter's name no attribute.

    A class has a capital letter. ``nrows`` in the docstring of a function with such a parameter is
    that parameter, whatever else has the name.
    """
    for link in list(doctree.findall(pending_xref)):
        kind, target = link.get("reftype"), link.get("reftarget")
        if (kind == "class" and target.islower()) or (
            kind == "obj" and target in _parameters(link)
        ):
            link.replace_self(link.children)


def _describe_pictures(app, doctree):
    """Let the picture of a cell have words for readers who do not see it, and name hidden cells."""
    page = Path(app.env.doc2path(app.env.docname)).read_text("utf-8")
    cells = [n for n in doctree.findall(nodes.container) if n.get("nb_element") == "cell_code"]
    for cell, said in zip(cells, alternatives.alternatives(page), strict=False):
        if "hide_mode" in cell:
            what = "solution" if cell["hide_mode"] == "all" else "code"
            cell["prompt_show"] = f"Show the {what}"
        for picture in cell.findall(nodes.image):
            picture["alt"] = said


def _mark_columns(app, doctree, page):
    """Give a table's columns of sentences or phrases a class, which keeps them wide.

    A table that is wider than a telephone is stacked there, each cell that says something with
    its column's heading.
    """
    for table in list(doctree.findall(nodes.table)):
        group = next(iter(table.findall(nodes.tgroup)))
        rows = [list(row.findall(nodes.entry)) for row in group.findall(nodes.row)]
        width = 0
        for column in zip(*rows, strict=False):
            texts = [entry.astext() for entry in column]
            longest = max(map(len, texts))
            for entry in column if longest > 20 else ():
                entry["classes"].append("sentences" if longest > 40 else "phrases")
            for entry, said in zip(column[1:], texts[1:], strict=True):
                if said not in ("", "-"):
                    entry["label"] = texts[0]
            word = max(len(word) for text in texts for word in [*text.split(), ""])
            width += max(8 * word + 20, 150 if longest > 40 else 130 if longest > 20 else 0)
        if width > _TELEPHONE:
            table["classes"].append("stack")
            texts = [entry.astext() for row in rows for entry in row[1:]]
            if all(len(text) < 40 or " " not in text for text in texts):
                table["classes"].append("numbers")
                _fold(table, len(rows) - 1)
        if width > _COLUMN:
            table["classes"].append("dense")


def _fold(table, rows):
    """Let many rows of numbers open on a click."""
    if rows > _MANY:
        before, at = table.parent, table.parent.index(table)
        begin = f"<details><summary>All {rows} rows</summary>"
        before.insert(at + 1, nodes.raw("", "</details>", format="html"))
        before.insert(at, nodes.raw("", begin, format="html"))


# ------------------------------------------- figures from data, the course as notebooks, slides


_INNER = ("row", "as_scalar", "refuse", "copying", "described", "evaluate", "merged", "fold_runs")


def _skip_operators(app, what, name, member, skip, options):
    """Leave the operators out of their tables: `operators.md` lists them with their meaning."""
    is_operator = type(member).__module__.startswith("lagpu.algebra.")
    is_rule = name in ("domain", "result") and callable(member)  # of an operator's types
    return True if is_operator or is_rule or name in _INNER else None


_described = {}  # the lines of each attribute, for `_restore_attribute`


def _describe_attribute(app, what, name, member, options, lines):
    """Describe an attribute as the slots of its class or of a base do."""
    owner, _, attribute = name.rpartition(".")
    if what == "attribute" and not any(lines):
        for base in pydoc.locate(owner).__mro__:
            slots = vars(base).get("__slots__")
            if isinstance(slots, dict) and attribute in slots:
                lines[:] = [slots[attribute]]
    _described[name] = [*lines]


def _restore_attribute(app, what, name, member, options, lines):
    """Undo what napoleon does to an attribute: words before a colon are not its type."""
    if what in ("attribute", "data", "property"):
        lines[:] = _described[name]


def _name_defaults(app, what, name, member, options, signature, returns):
    """Let a default that is a function have its name, and one that is made for each call dots."""
    plain = re.sub(r"<function (\w+)>", r"\1", signature or "").replace("<factory>", "...")
    return plain or None, returns


def _explain(app, what, name, member, options, lines):
    """Link to pages that a docstring names by their paths, and give the values of constants."""
    if what == "module" and name.startswith(("lagpu.algebra.", "lagpu.core.")):
        lines[:] = []  # the heading says it
    owner, _, last = name.rpartition(".")
    other = f"{owner}.{getattr(member, '__name__', last)}"
    if what in ("function", "method") and other != name and pydoc.locate(other) is not None:
        lines[:] = [f"The name of :py:obj:`{other}` in python-graphblas."]
        return
    places = (name, getattr(member, "__module__", None) or name)
    packages = tuple(".".join(place.split(".")[:2]) for place in places)
    modules = [vars(module) for key, module in sys.modules.items() if key.startswith(packages)]
    text = re.sub(r"docs/([\w/]+)\.md", r":doc:`/\1`", "\n".join(lines))
    for constant in dict.fromkeys(re.findall(r"`([A-Z]{4}[A-Z_]*)`", text)):
        value = next((found[constant] for found in modules if constant in found), None)
        if isinstance(value, tuple):
            numbered = any(rule[0].isdigit() for rule in value)  # by its own text
            rules = (f"{'-' if numbered else f'{k}.'} {rule}." for k, rule in enumerate(value, 1))
            rules = "\n".join(rules)
            text += f"\n\n``{constant}``:\n\n{rules}\n"
        elif isinstance(value, dict):
            each = ", ".join(f"{x:g} for {key}" for key, x in value.items())
            text = text.replace(f"`{constant}`", f"``{constant}`` ({each})")
        elif isinstance(value, int):
            text = text.replace(f"`{constant}`", f"``{constant}`` ({value:,})")
    lines[:] = text.split("\n")


def _join_parameters(app, doctree):
    """Let parameters with one description, which napoleon repeats for each, be one item."""
    for items in list(doctree.findall(nodes.bullet_list)):
        first, said = None, ""
        for item in list(items) if isinstance(items.parent, nodes.field_body) else ():
            name, text = item[0][0], item.astext()
            if first is not None and text == name.astext() + said:
                first += [nodes.Text(", "), name]
                items.remove(item)
            else:
                first, said = nodes.inline("", "", name.deepcopy()), text[len(name.astext()) :]
                item[0][0] = first


def _link_notebook(app, doctree, page):
    """Begin a page of the course with a link to its notebook."""
    if not page.startswith("course/"):
        return
    link = nodes.reference("", "notebook", refuri=f"{page.removeprefix('course/')}.ipynb")
    line = nodes.paragraph("", "", nodes.Text("This page as a "), link)
    line += nodes.Text(", to run where you like")
    for name, address in notebooks.runs_at(page, notebooks.source()).items():
        line += nodes.Text(", on ")
        line += nodes.reference("", name, refuri=address)
    line += nodes.Text(".")
    title = next(iter(doctree.findall(nodes.title)))
    title.parent.insert(title.parent.index(title) + 1, line)


def _link_pictures(app, doctree, page):
    """Let each picture of the gallery have links to its script and its notebook."""
    if page != "gallery":
        return
    text = Path(app.env.doc2path(page)).read_text("utf-8")
    cells = [n for n in doctree.findall(nodes.container) if n.get("nb_element") == "cell_code"]
    drawing = [c for c, (_, draws) in zip(cells, pictured(text), strict=True) if draws]
    for cell, (name, *_) in zip(drawing, notebooks.pictures(text), strict=True):
        script, notebook = (
            nodes.reference("", kind, refuri=f"gallery/{name}.{ending}")
            for kind, ending in (("script", "py"), ("notebook", "ipynb"))
        )
        cell += nodes.paragraph("", "", script, nodes.Text(", "), notebook)


def _write_pictures(app, error):
    """Write the scripts and notebooks of the gallery."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir, "gallery")
        folder.mkdir(exist_ok=True)
        text = Path(app.srcdir, "gallery.md").read_text("utf-8")
        for name, script, made in notebooks.pictures(text):
            (folder / f"{name}.py").write_text(script, "utf-8")
            nbformat.write(made, folder / f"{name}.ipynb")


NOTEBOOK = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"


def _make_notebook(app, page, source):
    """Begin a page that has code cells as myst-nb wants it, so that no page has to."""
    if "\n```{code-cell}\n" in source[0] and not source[0].startswith("---\n"):
        source[0] = NOTEBOOK + source[0]


# The symbols of a formula, on each page that has it: a folder, the last line before, the sentence.
SYMBOLS = (
    (
        "kernels/p",
        r"(?m)^    for .*\n|^    w⟨m⟩ = u .* every stored .*\n",
        "A is the matrix of the graph, u the vector multiplied (a search's frontier), m the mask, "
        "w the result; ⊕ adds and ⊗ multiplies as the [semiring](../design/words.md#algebra) says.",
    ),
    (
        "kernels/grid",
        r"(?m)^f is the frontier.*\n",
        "A is the matrix of the graph; s(v) is where v has entries, and r clears the rest; ⊕ adds "
        "and ⊗ multiplies as the [semiring](../design/words.md#algebra) says.",
    ),
    (
        "kernels/generated",
        r"(?m)^    until .*\n",
        "A is the matrix of the graph; the [semiring](../design/words.md#algebra) min.first "
        "multiplies by first and adds by min, and min= merges the result into label by min.",
    ),
)


# The signs of an operation's formula, and what they mean.
SIGNS = {
    r"\\langle\\mathbf\{[mM]": "⟨ ⟩ on the left holds the [mask](../course/03_masks.md)",
    "⊕.⊗": "⊕ adds and ⊗ multiplies as the [semiring](../operators.md) says",
    r"\\oplus": "⊕ is the operator",
    r"\\otimes": "⊗ is the operator",
    r"\\bigoplus": "⊕ is the monoid",
}


def _with_signs(table):
    said = "; ".join(words for sign, words in SIGNS.items() if re.search(sign, table[1]))
    return f"{table[0]}\n{said[0].upper()}{said[1:]}.\n" if said else table[0]


def _put_data(app, page, source):
    """Print the figures of data files in the pages."""
    source[0] = algorithm_pages.with_questions(figures.with_figures(source[0], page))
    for folder, before, symbols in SYMBOLS:
        if page.startswith(folder):
            source[0] = re.sub(before, rf"\g<0>\n{symbols}\n", source[0], count=1)
    if page.startswith("operations/"):
        table = r"(?m)^\| formula \|(.*)\n\| lagpu.*\n\| C API .*\n"
        source[0] = re.sub(table, _with_signs, source[0], count=1)
    if page.startswith("papers/"):
        source[0] = reports.with_reports(source[0])
    for file in figures.FOLDER.rglob("*.json"):
        app.env.note_dependency(str(file))


def _algorithms(app):
    return Path(app.srcdir, "algorithms")


def _write_algorithms(app):
    """Write the pages of the algorithms, which are there while Sphinx runs."""
    algorithm_pages.write(_algorithms(app))


def _move_steps(app, error):
    """Put the step pages beside the pages of the algorithms, and remove what was written."""
    if error is None and app.builder.format == "html":
        for file in _algorithms(app).glob("*.html"):
            shutil.copy(file, Path(app.outdir, "algorithms"))
    shutil.rmtree(_algorithms(app), ignore_errors=True)


def _write_notebooks(app, error):
    if error is None and app.builder.format == "html":
        for page in sorted(Path(app.srcdir, "course").glob("*.md")):
            notebooks.write(page, Path(app.outdir, "course", f"{page.stem}.ipynb"))


def _write_slides(app, error):
    if error is None and app.builder.format == "html":
        matplotlib.use("Agg")
        source = Path(app.srcdir, "slides", "bfs.md").read_text("utf-8")
        made = slides.slides(source, "Breadth-first search by linear algebra", _mathml)
        file = Path(app.outdir, "slides", "bfs.html")
        file.parent.mkdir(exist_ok=True)
        file.write_text(made, "utf-8")


def _write_play(app, error):
    """Write the page of course/03 whose reader chooses source, semiring and mask, by itself."""
    if error is None and app.builder.format == "html":
        page = Path(app.srcdir, "course", "03_masks.md").read_text("utf-8")
        world = slides.world_of(page, "03_masks.md")
        made = world["runs"].to_html(title="A search of your choice")
        back = '<h1><a href="course/03_masks.html">A search of your choice</a></h1>'
        made = re.sub("<h1>.*?</h1>", back, made, count=1)
        Path(app.outdir, "play.html").write_text(made, "utf-8")


def setup(app):
    """Let formulas be MathML, and write what stands beside the pages."""
    app.set_translator("html", Translator)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("autodoc-process-docstring", _describe_attribute, priority=400)
    app.connect("autodoc-process-docstring", _restore_attribute, priority=600)
    app.connect("autodoc-process-docstring", _explain, priority=700)
    app.connect("autodoc-process-signature", _name_defaults)
    app.connect("autodoc-skip-member", _skip_operators)
    app.connect("builder-inited", _write_algorithms)
    app.connect("source-read", _make_notebook)
    app.connect("source-read", _put_data)
    app.connect("doctree-read", _unlink_words)
    app.connect("doctree-read", _join_parameters)
    app.connect("doctree-read", _describe_pictures)
    app.connect("doctree-resolved", _link_notebook)
    app.connect("doctree-resolved", _link_pictures)
    app.connect("doctree-resolved", _mark_columns)
    app.connect("build-finished", _move_steps)
    app.connect("build-finished", _write_notebooks)
    app.connect("build-finished", _write_pictures)
    app.connect("build-finished", _write_slides)
    app.connect("build-finished", _write_play)
