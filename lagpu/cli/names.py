"""The vertices of a graph as the user writes and reads them: numbers, or the ids of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Names:
    """Vertices by number, or by id if a graph was renumbered.

    Attributes
    ----------
    ids : ndarray, (n,), optional
        Id of each vertex.
    """

    ids: Array | None = None

    @cached_property
    def _place(self) -> dict[str, int]:
        assert self.ids is not None
        return {str(name): k for k, name in enumerate(self.ids.tolist())}

    def vertex(self, text: str, option: str) -> int:
        """Return the number of the vertex that an option names.

        Raises
        ------
        InvalidValue
            If the text is no number, or no id of the graph.
        """
        if self.ids is None:
            try:
                return int(text)
            except ValueError:
                raise InvalidValue(
                    f"{option}: {text!r} is no vertex. Give a number, or --renumber if the "
                    "vertices of the file have names."
                ) from None
        found = self._place.get(text)
        if found is None:
            some = ", ".join(map(str, self.ids[:5].tolist()))
            raise InvalidValue(
                f"{option}: no line of the graph names {text!r}. It has {len(self.ids)} vertices, "
                f"such as {some}."
            )
        return found

    def shown(self, vertices: Any) -> Any:
        """Return what stands for a vertex, or for each one in a list."""
        if isinstance(vertices, list):
            return [self.shown(vertex) for vertex in vertices]
        if self.ids is None or vertices is None:
            return vertices
        return self.ids[vertices : vertices + 1].tolist()[0]

    def of(self, vertices: Array) -> Array:
        """Return the ids of an array of vertices, (k,)."""
        return vertices if self.ids is None else self.ids[vertices]

    def places(self, ids: Sequence[Any], file: str) -> Array:
        """Return the vertices of the ids in a file, (k,).

        Raises
        ------
        FileFormatError
            If the graph does not have one of them.
        """
        found = [self._place.get(str(name), -1) for name in ids]
        if -1 in found:
            odd = ids[found.index(-1)]
            raise FileFormatError(
                f"read: {file}: the graph has no vertex {str(odd)[:60]!r}. Make the file from this "
                "graph, with --renumber."
            )
        return np.array(found, np.int64)
