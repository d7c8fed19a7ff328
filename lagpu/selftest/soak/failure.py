"""The error of a program that gave a wrong answer."""

__all__ = ["Failed"]


class Failed(Exception):
    """A program gave a wrong answer; the message is a test to paste."""
