"""Errors of the library in the words of the command line: options instead of arguments."""

from __future__ import annotations

__all__ = ["as_options"]

# What messages of algorithms say, and what is written in a shell.
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
    """Return a message with arguments of Python as options of a command."""
    for argument, option in _OPTIONS.items():
        message = message.replace(argument, option)
    return message
