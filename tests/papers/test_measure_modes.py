"""Variants of a paper run in one mode, so that none is compared with a faster one."""

from types import SimpleNamespace

import pytest

from lagpu.backends.protocol import Capabilities
from lagpu.papers.experiments import Variant
from lagpu.papers.run import Runner


@pytest.mark.parametrize(
    ("variant", "can", "mode"),
    [
        (Variant("kernel", kernel="push_edge"), {"fuses": True}, "eager"),
        (Variant("policy", policy="bfs2d"), {"fuses": True}, "eager"),
        (Variant("fused", policy="bfs2d", fused=True), {"fuses": True}, "fused"),
        (Variant("fused", policy="bfs2d", fused=True), {}, "eager"),
        (Variant("system", policy="kepler"), {"searches": True}, "fused"),
        (Variant("lagpu", ours=True), {"fuses": True}, "fused"),
        (Variant("lagpu", ours=True), {}, "eager"),
    ],
)
def test_modes(variant, can, mode):
    place = SimpleNamespace(capabilities=Capabilities(**can))
    assert Runner(variant, place, "").mode == mode
