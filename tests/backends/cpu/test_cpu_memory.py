"""A vector that GraphBLAS could not write for want of memory, and left invalid: errors say so."""

import pytest

from lagpu import INT64, Matrix, Vector, binary, monoid, semiring
from lagpu.backends.cpu import statements
from lagpu.backends.cpu.handles import ffi
from lagpu.errors import OutOfMemory
from lagpu.operations import Apply

VALID, LEFT_INVALID = 0x72657473786F62, 0x7265745F786F62  # GB_MAGIC, GB_MAGIC2


def mark(v, word):
    """Write the first word of GraphBLAS' object, as it does when a call runs out of memory."""
    ffi.cast("int64_t*", v.data.handle)[0] = word


@pytest.fixture
def lost():
    v = Vector.from_coo([1, 3], [5, 7], size=4, backend="cpu")
    assert ffi.cast("int64_t*", v.data.handle)[0] == VALID
    mark(v, LEFT_INVALID)
    return v


USES = {
    "entries": lambda v, w, A: v.nvals,
    "values": lambda v, w, A: v.to_coo(),
    "value": lambda v, w, A: v.get(1),
    "sum": lambda v, w, A: v.reduce(monoid.plus).new(),
    "copy": lambda v, w, A: v.dup(),
    "comparison": lambda v, w, A: v.isequal(w),
    "operand": lambda v, w, A: w << v.apply("ainv"),
    "product": lambda v, w, A: w << semiring.plus_times(v @ A),
    "mask": lambda v, w, A: w(v.S) << 1,
    "output": lambda v, w, A: v << w.apply("ainv"),
    "written as a whole": lambda v, w, A: v << w.ewise_add(w, "plus"),
    "accumulated": lambda v, w, A: v(accum=binary.plus) << w,
    "element": lambda v, w, A: v.__setitem__(2, 1),
    "deletion": lambda v, w, A: v.__delitem__(1),
    "clear": lambda v, w, A: v.clear(),
    "size": lambda v, w, A: v.resize(9),
    "diagonal": lambda v, w, A: v.diag(),
    "wait": lambda v, w, A: v.wait(),
}


@pytest.mark.parametrize("use", USES)
def test_a_lost_vector_is_named_wherever_it_is_used(lost, use):
    w = Vector.from_coo([0], [1], INT64, size=4, backend="cpu")
    A = Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=4, ncols=4, backend="cpu")
    with pytest.raises(OutOfMemory, match=r"entries are lost\. Make .* again"):
        USES[use](lost, w, A)
    w << w.apply("plus", 1)
    assert w.nvals == 1


def test_the_statement_that_loses_its_output_says_so(monkeypatch):
    u, w = (Vector.from_coo([1], [5], size=4, backend="cpu") for _ in range(2))
    losing = True

    def run(out, _desc, _operation):
        mark(w, LEFT_INVALID if losing else VALID)
        raise OutOfMemory("apply: GraphBLAS ran out of memory.")

    monkeypatch.setitem(statements.RUN, Apply, run)
    with pytest.raises(OutOfMemory, match=r"^apply: .* The entries of the output are lost"):
        w << u.apply("ainv")
    losing = False
    with pytest.raises(OutOfMemory, match=r"^apply: GraphBLAS ran out of memory\.$"):
        w << u.apply("ainv")
