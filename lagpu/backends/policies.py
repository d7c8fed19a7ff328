"""Policies and batch sizes that a caller may ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from lagpu.errors import InvalidValue


class Argument(NamedTuple):
    """A policy's argument: a word, a whole number from 1 to `most`, or a number of 0 or more."""

    default: Any
    valid: str
    words: tuple[str, ...] = ()
    most: int | None = None

    def read(self, text: str) -> Any:
        """Return the value that a text gives, or None if it is not valid."""
        if self.words:
            return text if text in self.words else None
        if self.most is not None:
            whole = text.isascii() and text.isdigit() and len(text) <= len(str(self.most))
            return int(text) if whole and 1 <= int(text) <= self.most else None
        try:
            value = float(text)
        except ValueError:
            return None
        return value if value >= 0 else None


def number(default: float) -> Argument:
    return Argument(default, "a number of 0 or more")


def count(default: int, most: int) -> Argument:
    return Argument(default, f"a whole number from 1 to {most}", most=most)


def choice(default: str, *words: str) -> Argument:
    return Argument(default, f"one of {', '.join(words)}", words)


class Policy(NamedTuple):
    """A rule that chooses how a product runs; the argument `first` may be without its name."""

    rule: Callable[..., Any]
    arguments: Mapping[str, Argument] = MappingProxyType({})
    first: str = ""


def find_policy(policies: Mapping[str, Policy], text: str) -> tuple[str, dict[str, Any]]:
    """Return (name, arguments) of the policy that a text names."""
    require_policy(tuple(policies), text)
    name, _, given = text.partition(":")
    policy = policies[name]
    return name, read_arguments(name, given, policy.arguments, policy.first)


def require_policy(names: Sequence[str], text: str) -> None:
    """Raise `InvalidValue` unless a text names one of these policies."""
    name, colon, given = text.partition(":")
    if name not in names or (colon and not given):
        fact = f"policy: there is no {text!r} here. Use {one_of(names)}, or another backend."
        raise InvalidValue(fact)


def one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def read_arguments(
    name: str, text: str, known: Mapping[str, Argument], first: str = ""
) -> dict[str, Any]:
    """Return the values of all arguments of a policy by their names.

    `text` follows the policy's colon, as in ``alpha=48,beta=20``. What is not given has its
    default; the argument `first` may be given without its name, as in ``vbfs:64``.
    """
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if first and not equals:
            key, value = first, part
        if key not in known or not (equals or first):
            usable = ", ".join(f"{key}=" for key in known) or f"{name} alone"
            raise InvalidValue(f"policy: {name} has no argument {part!r}. Use {usable}.")
        if key in given:
            raise InvalidValue(f"policy: {name} has {key}= twice. Give it once.")
        given[key] = known[key].read(value)
        if given[key] is None:
            raise InvalidValue(f"policy: {key}={value} is not {known[key].valid}.")
    return {key: argument.default for key, argument in known.items()} | given


# ---- The number of searches at once for backends whose k x n matrices cost memory by the entry.
_ENTRY_BYTES = 96  # of an entry of a product while it is sorted, and of a vertex in all matrices
_TOUCHED = 2**24  # most entries that a batch touches; larger batches are not faster


def sparse_batch_size(free_bytes: int, n: int, nvals: int, sources: int, levels: int) -> int:
    """Return `sources`, or the largest power of two that fits; see `Backend.batch_size`.

    The batch must fit half of the free memory even if in the widest level every edge is on a
    shortest path from each source, and must touch at most 2**24 entries, in the widest product and
    in writing each level to its matrix.
    """
    fit = free_bytes // 2 // (_ENTRY_BYTES * (nvals + n))
    room = min(fit, _TOUCHED // (nvals + n + levels * n))
    return sources if room >= sources else 1 << max(0, room.bit_length() - 1)
