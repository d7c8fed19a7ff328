"""Slides as one HTML file without any other: from Markdown whose code runs when they are made.

A line ``---`` begins a slide. What a code cell prints stands below its code, and what it draws on
the right; ``:tags: [hide]`` shows no code.
"""

import ast
import contextlib
import html
import io
import linecache
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from alternatives import words
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

_CELL = re.compile(r"(?::tags: \[(.*?)\]\n)?(.*)", re.S)
_STYLE = {"svg.fonttype": "none", "font.size": 10.5}
_WIDE = 42  # characters of a line of code that fits beside a picture


def slides(text, title, formula):
    """Return the page.

    Parameters
    ----------
    text : str
        The source.
    title : str
        Of the page.
    formula : callable
        Returns the HTML of a formula in TeX.
    """
    world = {"__name__": "slides"}
    sections = []
    with mpl.rc_context(_STYLE):
        for number, slide in enumerate(re.split(r"^---\n", text, flags=re.M), 1):
            sections.append(_section(number, slide, world, formula))
    page = (Path(__file__).parent / "slides.html").read_text("utf-8")
    code = HtmlFormatter(style="default").get_style_defs("pre")
    for name, made in (
        ("title", html.escape(title)),
        ("code", code),
        ("slides", "".join(sections)),
    ):
        page = page.replace(f"{{{{{name}}}}}", made)
    return page


def _section(number, slide, world, formula):
    drawn, above = [], []
    md = MarkdownIt("commonmark", {"highlight": _coloured}).enable("table")
    fence = md.renderer.rules["fence"]

    def block(tokens, k, options, env):
        token = tokens[k]
        if token.info == "{math}":
            return f'<div class="formula">{formula(token.content.strip())}</div>'
        if token.info != "{code-cell}":
            return fence(tokens, k, options, env)
        tags, code = _CELL.fullmatch(token.content).groups()
        printed, pictures = _ran(code, world, f"slide {number}")
        drawn.extend(pictures)
        read = "" if tags == "hide" else _without_picture(code)
        shown = f"<pre>{_coloured(read)}</pre>" if read else ""
        if max(map(len, read.splitlines()), default=0) > _WIDE and pictures:
            above.append(shown)
            shown = ""
        said = f'<pre class="said">{html.escape(printed)}</pre>' if printed else ""
        return shown + said

    md.renderer.rules["fence"] = block
    body = md.render(slide)
    heading, _, rest = body.partition("</h1>")
    sort = " exercise" if "<h1>Exercise" in heading else ""
    sort += " solution" if "<h1>Solution" in heading else ""
    words = f'<div class="words">{rest}</div>' if rest.strip() else ""
    pictures = f'<div class="pictures">{"".join(drawn)}</div>' if drawn else ""
    return (
        f'<section id="s{number}" class="slide{sort}">{heading}</h1>'
        f'{"".join(above)}<div class="body">{words}{pictures}</div></section>\n'
    )


def world_of(page, file):
    """Run the cells of a page of the course; return what they define."""
    world = {"__name__": "page"}
    for k, code in enumerate(re.findall(r"^```\{code-cell\}\n(.*?)^```$", page, re.M | re.S)):
        _ran(_CELL.fullmatch(code)[2], world, f"{file}, cell {k + 1}")
    return world


def lined(code):
    """Return highlighted code with an element for each line, which knows its indentation.

    A line may break after a bracket or before the dot of a method, rather than in a name or in an
    arrow or an option of a command.
    """
    made = ""
    for line in code.split("\n"):
        bare = html.unescape(re.sub(r"<[^>]*>", "", line)).rstrip()
        indent = len(bare) - len(bare.lstrip())
        line = re.sub(r'\)</span>(?=<span class="o">\.</span>)', r"\g<0><wbr>", line)
        line = re.sub(r"[(\[]</span>(?=<)", r"\g<0><wbr>", line)
        line = line.replace('<span class="o">-&gt;', '<span class="o whole">-&gt;')
        line = re.sub(
            r"(?<![\w-])--?[a-z][\w-]*(?:=[\w-]+)?(?![^<]*>)",
            r'<span class="whole">\g<0></span>',
            line,
        )
        line = re.sub(r'(?<=\S)(\s*<span class="c1)"', r'\1 after"', line)
        made += f'<span class="line" style="--in:{indent}">{line}\n</span>'
    return made


def _coloured(code, *_):
    return lined(highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n"))


def _without_picture(code):
    """Return code without the statement that draws, which needs no reader."""
    return re.sub(r"\n*^(?:viz\.|graph\().*\n\Z", "", code, flags=re.M)


def _ran(code, world, file):
    """Run a cell; return what it printed, and the HTML of what it drew or shows at its end."""
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)  # lagpu reads its loops
    body = ast.parse(code).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed, pictures = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), file, "exec"), world)
        shown = None
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), file, "eval"), world)
    for number in plt.get_fignums():
        stream = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": f"{file}-{number}"}):  # ids that no other slide has
            plt.figure(number).savefig(
                stream, format="svg", bbox_inches="tight", pad_inches=0.05, metadata={"Date": None}
            )
        svg = stream.getvalue()
        said = html.escape(words(code) or "Picture")
        pictures.append(f'<svg role="img" aria-label="{said}"' + svg[svg.index("<svg") + 4 :])
        plt.close(number)
    if hasattr(shown, "_repr_html_") and not pictures:
        pictures.append(shown._repr_html_())
    return printed.getvalue().rstrip("\n"), pictures
