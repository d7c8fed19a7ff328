"""What all kinds of random programs share: how one is run, and the error of a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from lagpu.backends.protocol import Backend

Draw: TypeAlias = Callable[..., Any]
"""``data.draw`` of Hypothesis."""

Run: TypeAlias = Callable[[Draw, Backend, int], int]
"""Draws a program and runs it on a backend; raises `Failed` at the first wrong answer.

The number chooses the operators and types on a backend that compiles. The result is the number of
statements, loops or searches that ran.
"""


class Failed(Exception):
    """A program gave a wrong answer; the message is a test to paste."""
