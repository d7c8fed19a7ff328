"""The command line ``lagpu``; what a command needs is imported when it runs."""

from lagpu.cli.commands import app
from lagpu.cli.entry import main

__all__ = ["app", "main"]
