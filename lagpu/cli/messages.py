"""Translate errors of the library for the command line: options instead of arguments."""

from __future__ import annotations

# Phrases in messages of algorithms, with the options of commands that replace them.
_OPTIONS = {
    "as A.ewise_add(A.T, 'max').new()": "with --undirected",
    "or leave directed= out": "or leave it out",
    "max_iter=": "--max-iter",
    "tol=": "--tol",
    "weight=False": "--no-weight",
    "or pseudo_diameter": "or --pseudo",
    "sources with k and seed": "sources with --sources and --seed",
}


def as_options(message: str) -> str:
    """Return a message in which options of a command replace arguments of Python."""
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message
