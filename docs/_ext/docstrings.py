"""Entries of docstrings whose description follows the type on its line, as Napoleon reads them."""

import re

_TYPE = re.compile(r"((?:``.*?``|\([^)]*\)|[^.\n]|\.(?![ \n]))*)\.[ \n] *(.+)", re.S)
_ERRORS = re.compile(r"([\w, ]+): +(.+)", re.S)
_BEGINS = dict.fromkeys(("Parameters", "Returns", "Yields", "Attributes"), _TYPE)
_BEGINS["Raises"] = _ERRORS


def split(lines):
    """Return the lines of a docstring with each description below its name and type."""
    blocks = re.split(r"\n(?=\S|\n|$)", "\n".join(lines))  # a line, and those indented below it
    section, found = "", []
    for block, below in zip(blocks, [*blocks[1:], ""], strict=True):
        section = block if re.fullmatch("-{4,}", below) else section
        parts = _BEGINS[section].fullmatch(block) if section in _BEGINS else None
        found.append(block if parts is None else f"{parts[1]}\n    {parts[2].strip()}")
    return "\n".join(found).split("\n")


def process(app, what, name, obj, options, lines):
    """Split the entries of a docstring before Napoleon reads it."""
    lines[:] = split(lines)
