"""Cases of which a plain run takes some, and the exhaustive run the others."""

import pytest


def sampled(cases, every):
    """Parameters of a test: the first and every so many-th after it are in a plain run.

    Cases of a product are sampled so that each value of each factor is there, where `every` is
    prime to the last factors.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.exhaustive] * (k % every > 0),
        )
        for k, case in enumerate(cases)
    ]
