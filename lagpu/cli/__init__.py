"""The command line ``lagpu``."""

from lagpu.cli.commands import app
from lagpu.cli.entry import main

__all__ = ["app", "main"]
