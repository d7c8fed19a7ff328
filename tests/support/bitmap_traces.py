"""A traced loop over bitmap matrices, beside the statements one by one."""

from bit_searches import FUSED, direction, frontier_of, of_bits, random_graph  # noqa: F401
from loop_names import loop_name

import lagpu


def both(run, place, why=FUSED):
    """Trace a program as it runs and statement by statement."""
    with lagpu.trace() as fused:
        found = run()
    assert loop_name(place) == why
    with lagpu.trace(fuse=False) as eager:
        expected = run()
    assert all(x.isequal(y, check_dtype=True) for x, y in zip(found, expected, strict=True))
    assert {row.mode for row in eager.rows} == {"eager"}
    return fused, eager
