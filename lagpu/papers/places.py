"""Where the variants of an experiment run: a backend each, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from lagpu import algorithms
from lagpu.backends.override import overridden
from lagpu.backends.protocol import Backend
from lagpu.bench import peers
from lagpu.errors import BackendUnavailable, InvalidValue, NotSupported
from lagpu.generators import path
from lagpu.papers.experiment import Variant

__all__ = ["Runner", "runner_of"]


@dataclass(frozen=True)
class Runner:
    """A variant and where it runs.

    Attributes
    ----------
    variant : Variant
        The variant.
    place : Backend or None
        The backend, on which every product has its kernel or policy; None for a library.
    runs_as : str
        The kernel, the policy or the library.
    """

    variant: Variant
    place: Backend | None
    runs_as: str


def runner_of(variant: Variant, place: Backend) -> Runner | str:
    """Return where a variant runs, or a text that says what is missing.

    On a backend that has no kernels to choose from a kernel's direction stands for it, and the
    policy ``beamer`` for a policy.
    """
    if variant.peer is not None:
        try:
            peers.chosen([variant.peer])
        except BackendUnavailable as error:
            return f"{variant.name}: {str(error).removeprefix('--peers: ')}"
        return Runner(variant, None, variant.peer)
    kernel, policy = variant.kernel, variant.policy
    if kernel is None and policy is None:
        return Runner(variant, place, "lagpu by itself")
    offered = place.capabilities.kernels if kernel else place.capabilities.policies
    if not place.capabilities.kernels and str(policy).partition(":")[0] not in offered:
        policy = kernel.partition("_")[0] if kernel else "beamer"
        kernel, offered = None, place.capabilities.policies
    name = str(kernel or policy)
    what = "kernel" if kernel else "policy"
    if name.partition(":")[0] not in offered:
        return f"{variant.name}: the {place.name} backend has no {what} {name}"
    chosen = overridden(place, kernel, policy)
    try:  # an argument that the kernel or the policy does not take yet
        algorithms.bfs_levels(path(3, backend=chosen), 0)
    except InvalidValue:
        return f"{variant.name}: the {place.name} backend has no {what} {name}"
    except NotSupported as error:
        return f"{variant.name}: {error}"
    return Runner(variant, chosen, name)
