"""What python-graphblas' notebooks do runs on lagpu with the imports changed alone."""

import warnings

import matplotlib.pyplot as plt
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from line_by_line import measured
    from their_notebooks import notebooks

# Its line `f(binary.min)[I] << mngp` gives indices twice, which GraphBLAS leaves undefined:
# docs/notation.md has the line to write instead.
NOT_WHOLE = {"Connected Components -- FastSV": ["parent(binary.min)[where] << least"]}


@pytest.fixture(params=["cpu", pytest.param("sim", marks=pytest.mark.exhaustive)])
def found(request, monkeypatch):
    """What each notebook's programs have shown."""
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))  # of gb.viz.draw
    yield {
        name: measured(
            [("their_notebooks", program.__name__, [], given, {}) for program, *given in programs],
            {},
            request.param,
        )
        for name, programs in notebooks().items()
    }
    plt.close("all")


def test_the_notebooks_of_python_graphblas_run_unchanged(found):
    for name, one in found.items():
        print(f"{name}: {one.lines_whole} of {one.lines}")
    lines, whole = (
        sum(getattr(one, n) for one in found.values()) for n in ("lines", "lines_whole")
    )
    print(f"{whole} of {lines} statements run with the same values as python-graphblas;", end=" ")
    print(f"{sum(not one.failed for one in found.values())} of {len(found)} notebooks whole")
    failed = {name: [line.text for line in one.failed] for name, one in found.items() if one.failed}
    assert failed == NOT_WHOLE
    assert (whole, lines, len(found)) == (220, 221, 6), "the programs themselves"
