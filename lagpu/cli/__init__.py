"""The command line ``lagpu``; each command imports its modules when it runs."""

from lagpu.cli.commands import app
from lagpu.cli.entry import main

__all__ = ["app", "main"]
