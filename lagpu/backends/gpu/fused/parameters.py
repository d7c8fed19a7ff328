"""The parameters of a kernel that is written for one loop, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.protocol import Product
from lagpu.dtypes import DType

__all__ = ["Parameters"]


class Parameters:
    """Names in the text of a kernel, each with its argument.

    Parameters
    ----------
    written : sequence of VectorStore
        The vectors that the kernel writes; others are constant.

    Attributes
    ----------
    text : list of str
        ``"type name"`` of each parameter.
    functors : dict
        The texts of users' operators, each once.
    structs : list of str
        Those of the types of products.
    """

    def __init__(self, written: Sequence[VectorStore]) -> None:
        self._written = written
        self._vectors: dict[int, str] = {}
        self._args: list[Any] = []
        self.text: list[str] = []
        self.functors: dict[str, None] = {}
        self.structs: list[str] = []

    def add(self, ctype: str, value: Any) -> str:
        """Add a parameter; return its name.

        A `value` that is called with the number of blocks gives the argument once that is known.
        """
        name = f"p{len(self.text)}"
        self._append(f"{ctype} {name}", value)
        return name

    def size(self, size: int) -> str:
        """Add a number of indices."""
        return self.add("i64", np.int64(size))

    def vector(self, x: VectorStore) -> str:
        """Return the name of a vector: ``_words``, ``_values`` and ``_iso`` are behind it."""
        name = self._vectors.get(id(x))
        if name is None:
            name = self._vectors[id(x)] = f"v{len(self._vectors)}"
            words, values, number = x.readable()
            const = "" if any(x is y for y in self._written) else "const "
            for what, ctype, value in (
                ("words", f"{const}u32*", words),
                ("values", f"{const}{x.dtype.ctype}*", values),
                ("iso", x.dtype.ctype, number),
            ):
                self._append(f"{ctype} {name}_{what}", value)
        return name

    def functor(self, pair: tuple[str, str]) -> str:
        """Return the name of a functor, whose text stands before the kernel."""
        name, text = pair
        if text:
            self.functors[text] = None
        return name

    def product(self, how: Product, u: DType, a: DType, iso: bool = False, /, **more: str) -> str:
        """Add the struct of a product's types; return its name.

        `u` and `a` are those of the vector and of the matrix, `more` further ones by their names;
        `iso` says whether all sums have one value.
        """
        name = f"Product{len(self.structs)}"
        add = self.functor(monoid_functor(how.semiring.monoid))
        mul = self.functor(operator_functor(how.semiring.multiply))
        kinds = {
            "ADD": add, "MUL": mul, "U": u.ctype, "A": a.ctype, "T": how.domain.ctype,
            "Z": how.result.ctype, **more,
        }  # fmt: skip
        body = " ".join(f"typedef {kind} {what};" for what, kind in kinds.items())
        flags = f"flip = {str(how.flip).lower()}, iso = {str(iso).lower()}"
        self.structs.append(f"struct {name} {{ {body} static constexpr bool {flags}; }};")
        return name

    def arguments(self, blocks: int) -> list[Any]:
        """Return what the kernel is launched with, on so many blocks."""
        return [x(blocks) if callable(x) else x for x in self._args]

    def _append(self, text: str, value: Any) -> None:
        self.text.append(text)
        self._args.append(value)
