"""Which entries a per-source sweep permutes into level order, and the memory it asks for.

That the answers are those of the eager sweep, whatever n, k, levels and entries are, is
tests/test_rowsweep.py's.
"""

import sys

import pytest
from loop_names import loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from per_source_sweeps import FUSED, compare, deleting, fuses, of_any_degree, operands  # noqa: F401
from sweeps import brandes, graph, many

from lagpu import BOOL, FP64, INT64, Matrix, algorithms
from lagpu.backends.gpu.fused import loop
from lagpu.backends.gpu.kernels import kernel


def of_one_value(made):
    """The same entries; those of `paths` and `delta` are stored as one value."""
    stored = []
    for v, value in zip(made[:2], (3, 2), strict=True):
        i, j, _ = v.to_coo()
        stored.append(
            Matrix.from_coo(
                i, j, value, v.dtype, nrows=v.nrows, ncols=v.ncols, backend=v.backend, name=v.name
            )
        )
    return [*stored, *made[2:]]


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize(("body", "dtype"), [(brandes, FP64), (many, INT64), (deleting, BOOL)])
def test_entries_of_one_value(backend, body, dtype):
    A = graph(100, backend, 3, True)
    levels = algorithms.bfs_levels_multi(A, list(range(35)))
    ran = compare(body, A, levels, of_one_value(operands(35, 100, dtype, backend, 5)))
    assert not fuses(backend) or ran == FUSED


def noting(real, made):
    """What makes an array, and notes it if lagpu asks; CuPy's own functions ask for some, too."""

    def make(*args, **how):
        array = real(*args, **how)
        if sys._getframe(1).f_globals["__name__"].startswith("lagpu."):
            made.append(array)
        return array

    return make


def test_what_is_asked_for_is_all_that_is_made(backend, monkeypatch):
    """Arrays of the ordering, of what is in order, and of the blocks that are not there yet."""
    if not fuses(backend):
        pytest.skip("cpu has no workspaces of ours")
    A, made, asked = graph(200, backend, 3, True), [], []
    levels = algorithms.bfs_levels_multi(A, list(range(40)))
    for kept_as in (list, of_one_value):
        given = kept_as(operands(40, 200, FP64, backend, 5))
        xp = backend.device.xp
        with monkeypatch.context() as patched:
            for name in ("empty", "full"):
                patched.setattr(xp, name, noting(getattr(xp, name), made))
            recorded = lambda device, nbytes: asked.append(nbytes) or made.clear() or True  # noqa: E731
            patched.setattr(loop, "has_free", recorded)
            brandes(A, levels, *given)
        assert loop_name(backend) == FUSED
        assert sum(x.nbytes for x in made) <= asked[-1] <= 1.3 * sum(x.nbytes for x in made)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("ctype", ["bool", "i32", "u64"])
def test_nvrtc_compiles_the_ways_into_order_and_back(ctype, arch):
    assert nvrtc_compile(kernel("sweep/permute.cu", "to_level_order", U=ctype), arch)
