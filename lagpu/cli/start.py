"""The sources of a search: ``--source``, or ``--sources`` with or without ``--each``."""

from __future__ import annotations

from typing import NamedTuple

from lagpu.cli.names import Names
from lagpu.errors import InvalidValue


class Begin(NamedTuple):
    """The three options as given."""

    source: str | None = None
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

    def start(self, command: str, names: Names = Names()) -> int | list[int]:  # noqa: B008
        """Return the vertex, or the vertices, to search from.

        Parameters
        ----------
        command : str
            Its name in messages.
        names : Names
            The vertices of the graph.

        Raises
        ------
        InvalidValue
            If `require_one` raises it, `sources` is not a list, or there is no such vertex.
        """
        self.require_one(command)
        if self.source is not None:
            return names.vertex(self.source, "--source")
        words = (self.sources or "").split(",")
        if names.ids is not None:
            return [names.vertex(word, "--sources") for word in words]
        try:
            return [int(word) for word in words]
        except ValueError:
            raise InvalidValue(
                f"--sources: {self.sources!r} is not a list of vertices. Write 0,5,9."
            ) from None

    def require_one(self, command: str) -> None:
        """Check that the options say where to begin.

        Raises
        ------
        InvalidValue
            If not exactly one of `source` and `sources` is given, or `each` without the latter.
        """
        if (self.source is None) is (self.sources is None):
            raise InvalidValue(f"{command}: give one of --source 0 and --sources 0,5,9.")
        if self.each and self.sources is None:
            raise InvalidValue("--each: needs --sources. Give --sources 0,5,9.")
