"""The sources of a search: ``--source``, or ``--sources`` with or without ``--each``."""

from __future__ import annotations

from typing import NamedTuple

from lagpu.errors import InvalidValue

__all__ = ["Begin"]


class Begin(NamedTuple):
    """The three options as given."""

    source: int | None = None
    sources: str | None = None
    each: bool = False

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return self != Begin()

    @property
    def kind(self) -> str:
        """An empty string for one source; "jointly" or "of each" for several."""
        if self.sources is None:
            return ""
        return "of each" if self.each else "jointly"

    def start(self, command: str) -> int | list[int]:
        """Return the vertex, or the vertices, to search from.

        Raises
        ------
        InvalidValue
            If not exactly one of `source` and `sources` is given, or `sources` is not a list.
        """
        if (self.source is None) is (self.sources is None):
            raise InvalidValue(f"{command}: give one of --source 0 and --sources 0,5,9.")
        if self.each and self.sources is None:
            raise InvalidValue("--each: needs --sources. Give --sources 0,5,9.")
        if self.source is not None:
            return self.source
        try:
            return [int(word) for word in (self.sources or "").split(",")]
        except ValueError:
            raise InvalidValue(
                f"--sources: {self.sources!r} is not a list of vertices. Write 0,5,9."
            ) from None
