"""Self-contained HTML pages: templates beside this file, filled with text that is escaped."""

from __future__ import annotations

import html
import json
import re
from importlib import resources
from typing import Any

__all__ = ["data", "fill", "text"]

_MARKUP = re.compile("<(?=[/!])")
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def fill(template: str, **slots: str) -> str:
    """Return a template of this package with each ``{{name}}`` replaced.

    Parameters
    ----------
    template : str
        A file of this package, such as ``"trace.html"``.
    **slots : str
        HTML for each name: the result of `text` or `data`, or markup made of these.
    """
    page = resources.files(__name__).joinpath(template).read_text(encoding="utf-8")
    return _SLOT.sub(lambda slot: slots[slot[1]], page)  # one pass: filled text stays


def text(content: object) -> str:
    """Return content as HTML text, also valid inside a quoted attribute."""
    return html.escape(str(content))


def data(content: Any) -> str:
    """Return content as JSON that cannot end the ``<script>`` around it."""
    made = json.dumps(content, separators=(",", ":"))
    return _MARKUP.sub("\\\\u003c", made)  # only </script and <!-- mean anything in a script
