"""Wrong input ends in one named error that says fact and remedy, and changes nothing."""

import gc

import numpy as np
import pytest
from builtin_names import BUILT_IN

from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Matrix,
    Scalar,
    Vector,
    backends,
    binary,
    indexunary,
    monoid,
    semiring,
    unary,
)
from lagpu.core.arguments import as_size, check_compressed, scalar_dtype, scalar_value
from lagpu.errors import (
    DimensionMismatch,
    DomainMismatch,
    EmptyObject,
    IndexOutOfBound,
    InvalidValue,
    LagpuError,
    NotSupported,
    UnknownOperator,
    UnknownType,
)
from lagpu.operations import Counter

pytestmark = pytest.mark.usefixtures("own_garbage")


def make(**arrays):
    return lambda o: Vector.from_coo(**arrays, backend=o.backend)


def put(left, right):
    """``left << right`` as an expression."""
    left << right


CASES = {
    # sizes
    "ewise of two sizes": (
        lambda o: o.u.ewise_add(o.short, "plus"),
        DimensionMismatch,
        r"ewise_add: u.size 3 != 2 of short",
    ),
    "product of wrong size": (
        lambda o: semiring.any_pair(o.short @ o.A),
        DimensionMismatch,
        r"vxm: short.size 2 != A.nrows 3",
    ),
    "product meant the transpose": (
        lambda o: semiring.any_pair(o.A @ o.u),
        DimensionMismatch,
        r"mxv: u.size 3 != A.ncols 4. Did you mean A.T @ u or u @ A\?",
    ),
    "output of wrong size": (
        lambda o: put(o.w, o.short.apply("ainv")),
        DimensionMismatch,
        r"apply: left has shape \(3,\) != \(2,\)",
    ),
    "product into wrong size": (
        lambda o: put(o.w, semiring.any_pair(o.u @ o.A)),
        DimensionMismatch,
        r"vxm: left has shape \(3,\) != \(4,\) of u any_pair A",
    ),
    "assignment of wrong size": (
        lambda o: put(o.w, o.short),
        DimensionMismatch,
        r"assign: left has shape \(3,\) != \(2,\) of right",
    ),
    "mask of wrong size": (
        lambda o: put(o.w(o.short.S), o.u),
        DimensionMismatch,
        r"the mask short.S has shape \(2,\) != \(3,\) of w",
    ),
    "values and indices": (
        make(indices=[0, 1], values=[1, 2, 3]),
        DimensionMismatch,
        r"2 indices != values of shape \(3,\)",
    ),
    "assignment to too many indices": (
        lambda o: put(o.w[[0, 1, 2]], o.short),
        DimensionMismatch,
        r"short.size 2 != 3 indices",
    ),
    "negative size": (lambda o: Vector(INT32, -1), DimensionMismatch, r"size -1 < 0"),
    "size no backend holds": (lambda o: Vector(INT32, 2**61), DimensionMismatch, r"> 2\*\*60"),
    "resize to a negative size": (lambda o: o.w.resize(-2), DimensionMismatch, r"size -2 < 0"),
    "2-D indices": (make(indices=[[0, 1]], values=1), DimensionMismatch, r"2-D, not 1-D"),
    "ragged indices": (make(indices=[[0, 1], [2]], values=1), DimensionMismatch, r"not 1-D"),
    "dense of a number": (
        lambda o: Vector.from_dense(3, backend=o.backend),
        DomainMismatch,
        r"one number is no array. Write from_scalar",
    ),
    "rows and columns": (
        lambda o: Matrix.from_coo([0, 1], [0], backend=o.backend),
        DimensionMismatch,
        r"2 rows != 1 columns",
    ),
    "pointer of wrong length": (
        lambda o: Matrix.from_csc([0, 1], [0], nrows=1, ncols=2, backend=o.backend),
        DimensionMismatch,
        r"2 elements != 2 \+ 1",
    ),
    "one index for a matrix": (lambda o: o.A[0].new(), DimensionMismatch, r"two indices"),
    "a vector into a matrix": (
        lambda o: put(o.S, o.u.apply("ainv")),
        DomainMismatch,
        r"\(3,\) ",
    ),
    # indices
    "index too large": (
        make(indices=[3], values=1, size=3),
        IndexOutOfBound,
        r"3 is outside 0 .. 2",
    ),
    "index negative": (make(indices=[-1], values=1, size=3), IndexOutOfBound, r"-1 is outside"),
    "get outside": (lambda o: o.u.get(3), IndexOutOfBound, r"u: index 3 is outside 0 .. 2"),
    "get of nothing": (
        lambda o: Vector(INT32, 0, backend=o.backend, name="none").get(0),
        IndexOutOfBound,
        r"none: index 0 is outside: a size of 0 has no index",
    ),
    "entry of nothing": (
        make(indices=[5], values=1, size=0),
        IndexOutOfBound,
        r"from_coo: index 5 is outside: a size of 0 has no index",
    ),
    "get before the first": (lambda o: o.u.get(-4), IndexOutOfBound, r"index -4 is outside"),
    "set outside": (lambda o: o.w.__setitem__(3, 1), IndexOutOfBound, r"index 3 is outside"),
    "delete outside": (lambda o: o.w.__delitem__(3), IndexOutOfBound, r"index 3 is outside"),
    "extract outside": (lambda o: o.u[[0, 3]].new(), IndexOutOfBound, r"3 is outside"),
    "extract before": (lambda o: o.u[[0, -4]].new(), IndexOutOfBound, r"index -4 is outside"),
    "assign outside": (lambda o: put(o.w[[0, 3]], 1), IndexOutOfBound, r"3 is outside"),
    "matrix row outside": (lambda o: o.A[3, :].new(), IndexOutOfBound, r"A row: index 3"),
    "matrix entry outside": (lambda o: o.A.get(0, 4), IndexOutOfBound, r"A column: index 4"),
    "matrix built outside": (
        lambda o: Matrix.from_coo([0, 5], [0, 0], nrows=2, ncols=2, backend=o.backend),
        IndexOutOfBound,
        r"row 5 is outside 0 .. 1",
    ),
    "csc row outside": (
        lambda o: Matrix.from_csc([0, 1], [4], nrows=2, backend=o.backend),
        IndexOutOfBound,
        r"index 4 is outside 0 .. 1",
    ),
    "diagonal outside": (lambda o: o.S.setdiag(1, 9), IndexOutOfBound, r"diagonal 9 lies outside"),
    # types
    "type unknown": (lambda o: Vector("INT7", 3), UnknownType, r"'INT7' is not a lagpu type"),
    "complex values": (
        make(indices=[0], values=[1j]),
        UnknownType,
        r"complex128.* is not a lagpu",
    ),
    "text values": (make(indices=[0], values=["x"]), UnknownType, r"is not a lagpu type"),
    "float indices": (make(indices=[0.5], values=1), DomainMismatch, r"float64, not integers"),
    "bool index": (lambda o: o.u.get(True), DomainMismatch, r"index True is not an integer"),
    "text index": (lambda o: o.u.get("0"), DomainMismatch, r"index '0' is not an integer"),
    "float index": (lambda o: o.u[1.0].new(), DomainMismatch, r"index 1.0 is not an integer"),
    "slice of floats": (lambda o: o.u[0.5:].new(), DomainMismatch, r"not a slice of integers"),
    "float size": (lambda o: Vector(INT32, 2.0), DomainMismatch, r"size 2.0 is not an integer"),
    "diagonal not an integer": (lambda o: o.u.diag(0.5), DomainMismatch, r"0.5 is not an integer"),
    "number too large": (
        lambda o: Vector(INT32, 1, backend=o.backend).__setitem__(0, 2**31),
        DomainMismatch,
        r"2147483648 does not fit INT32. Use a wider type",
    ),
    "number too small": (
        lambda o: put(Vector(UINT32, 1, backend=o.backend), -1),
        DomainMismatch,
        r"-1 does not fit UINT32. Use a signed type",
    ),
    "array too large": (
        make(indices=[0, 1], values=[1, 2**31], dtype=INT32),
        DomainMismatch,
        r"2147483648 does not fit INT32",
    ),
    "number beyond FP64": (
        lambda o: put(Vector(FP64, 1, backend=o.backend), 10**400),
        DomainMismatch,
        r"does not fit FP64",
    ),
    "text into a vector": (lambda o: put(o.w, "x"), DomainMismatch, r"str is not a number"),
    "list into a vector": (lambda o: put(o.w, [1, 2]), DimensionMismatch, r"\(3,\) != \(2,\)"),
    "array into a vector": (lambda o: put(o.w, np.eye(3)), DomainMismatch, r"Matrix: is neither"),
    "matrix into a vector": (lambda o: put(o.w, o.S), DomainMismatch, r"Matrix"),
    "vector into a matrix": (
        lambda o: put(o.S, o.u),
        DomainMismatch,
        r"\[i, :\] << v for a row",
    ),
    "mask as a result": (lambda o: put(o.w, o.u.S), DomainMismatch, r"w\(mask\) << call"),
    "product with an array": (lambda o: o.u @ np.eye(3), DomainMismatch, r"ndarray is neither"),
    "vxm with a vector": (
        lambda o: o.u.vxm(o.w, "any_pair"),
        DomainMismatch,
        r"takes a Matrix and",
    ),
    "mxv with an array": (
        lambda o: o.S.mxv(np.ones(3), "any_pair"),
        DomainMismatch,
        r"takes a Matr",
    ),
    "semiring of a vector": (
        lambda o: semiring.any_pair(o.u),
        DomainMismatch,
        r"any_pair\(q @ A\)",
    ),
    "monoid as semiring": (
        lambda o: o.u.vxm(o.S, monoid.plus),
        DomainMismatch,
        r"monoid.plus is not a Semiring",
    ),
    "binary as monoid": (lambda o: o.u.reduce(binary.minus), DomainMismatch, r"is not a Monoid"),
    "positional outside a product": (
        lambda o: o.u.ewise_add(o.w, binary.firsti),
        DomainMismatch,
        r"reads the indices of a product. Use it in a semiring",
    ),
    "selecting without truth": (
        lambda o: o.u.select(indexunary.rowindex),
        DomainMismatch,
        r"has no BOOL result. Use apply",
    ),
    "ewise with a number": (lambda o: o.u.ewise_mult(3, "plus"), DomainMismatch, r"int is not a V"),
    "union with a number": (
        lambda o: o.u.ewise_union(3, "plus", 0, 0),
        DomainMismatch,
        r"int is not a Vector",
    ),
    "isequal with a list": (lambda o: o.u.isequal([1]), DomainMismatch, r"list is not a Vector"),
    "matrix isequal with a vector": (lambda o: o.A.isequal(o.u), DomainMismatch, r"not a Matrix"),
    "function as operator": (lambda o: o.u.apply(len), DomainMismatch, r"is not a UnaryOp"),
    "vector as mask": (
        lambda o: put(o.w(o.u), 1),
        DomainMismatch,
        r"Vector is not a mask. Write u.S for where u has entries, u.V for where they are not zero",
    ),
    "semiring as mask": (
        lambda o: put(o.w(semiring.plus_times), o.u),
        DomainMismatch,
        r"is no mask",
    ),
    "positional accumulator": (
        lambda o: put(o.w(accum=binary.firsti), 1),
        DomainMismatch,
        r"reads",
    ),
    "fill value that does not fit": (
        lambda o: Vector(UINT32, 2, backend=o.backend).to_dense(-1, UINT32),
        DomainMismatch,
        r"-1 does not fit UINT32. Use a signed type",
    ),
    # values
    "index twice": (make(indices=[1, 1], values=[1, 2]), InvalidValue, r"index 1 .* Give dup_op="),
    "assignment twice": (
        lambda o: put(o.w[[0, 0]], o.short),
        InvalidValue,
        r"an index is given twice",
    ),
    "build of a filled vector": (lambda o: o.w.build([0], [1]), InvalidValue, r"clear=True"),
    "dense with holes": (
        lambda o: o.u.to_dense(),
        DomainMismatch,
        r"2 of 3 entries. Give fill_value=",
    ),
    "bound operand missing": (
        lambda o: o.u.apply("plus"),
        DomainMismatch,
        r"one of left= and right=",
    ),
    "bound on both sides": (
        lambda o: o.u.apply("plus", 1, left=2),
        DomainMismatch,
        r"one of left= and right=",
    ),
    "operand too many": (lambda o: o.u.apply(unary.abs, 1), DomainMismatch, r"takes one operand"),
    "thunk on the left": (lambda o: o.u.apply("index", left=1), DomainMismatch, r"no left="),
    "pointer falls": (
        lambda o: Matrix.from_csc([0, 2, 1], [0, 1], nrows=2, backend=o.backend),
        InvalidValue,
        r"must rise from 0 to 2",
    ),
    "pointer falls on the way": (
        lambda o: Matrix.from_csc([0, 2, 1, 2], [0, 1], nrows=2, backend=o.backend),
        InvalidValue,
        r"must rise from 0 to 2",
    ),
    "pointer too short": (
        lambda o: Matrix.from_csr([0, 1], [0, 1], ncols=2, backend=o.backend),
        InvalidValue,
        r"must rise from 0 to 2",
    ),
    "indices fall": (
        lambda o: Matrix.from_csc([0, 2], [1, 0], nrows=2, backend=o.backend),
        InvalidValue,
        r"must rise within each",
    ),
    "entry twice in csc": (
        lambda o: Matrix.from_csc([0, 2], [1, 1], nrows=2, backend=o.backend),
        InvalidValue,
        r"must rise within each",
    ),
    "assigning an empty scalar": (
        lambda o: put(o.w, Scalar(INT32, name="nothing")),
        EmptyObject,
        r"nothing has no value. Check is_empty first",
    ),
    "assigning an empty sum": (lambda o: put(o.w, o.empty.reduce()), EmptyObject, r"has no value"),
    # names
    "semiring unknown": (
        lambda o: semiring.any_pear(o.u @ o.S),
        UnknownOperator,
        r"there is no 'any_pear'. The nearest names are any_pair",
    ),
    "operator unknown": (
        lambda o: o.u.apply("absolut"),
        UnknownOperator,
        r"nearest names are .*abs",
    ),
    "monoid unknown": (lambda o: o.u.reduce("total"), UnknownOperator, r"there is no 'total'"),
    # what is not there yet
    "inner product": (lambda o: o.u.inner(o.short), DimensionMismatch, r"u.size 3 != short.size 2"),
    "part of a row": (lambda o: o.A[0, [0, 9]].new(), IndexOutOfBound, r"A column: index 9"),
    "matrix row assigned": (
        lambda o: put(o.A[0, :], o.u),
        DomainMismatch,
        r"\(1, 3\) != \(1, 4\)",
    ),
    "matrices of shapes": (
        lambda o: o.A.mxm(o.A, "plus_times"),
        DimensionMismatch,
        r"Did you mean A.T",
    ),
    "sums of shapes": (lambda o: o.A.ewise_add(o.A.T, "plus"), DimensionMismatch, r"you mean A\?"),
    "kronecker of a vector": (
        lambda o: o.A.kronecker(o.u, "times"),
        DomainMismatch,
        r"no.* Matrix",
    ),
    "mxm by a strategy": (
        lambda o: semiring.plus_times(o.S @ o.S, policy="x"),
        InvalidValue,
        r"takes no policy",
    ),
    "submatrix of another shape": (
        lambda o: put(o.S[[0], [0]], o.S),
        DimensionMismatch,
        r"of the indices",
    ),
    "submatrix twice": (lambda o: put(o.S[[0, 0], [0]], o.S[[0, 1], [0]]), InvalidValue, r"twice"),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_input(world, case):
    wrong, error, message = CASES[case]
    with pytest.raises(error, match=message) as caught:
        wrong(world)
    assert type(caught.value) is error
    assert isinstance(caught.value, LagpuError)
    assert isinstance(caught.value, BUILT_IN[error.__name__])
    text = str(caught.value)
    assert ": " in text or "{" in text, "a message names the operation first"
    assert text.endswith((".", "?")), "a message is a sentence"
    assert world.contents() == world.before, "an error changes nothing"
    assert world.w.size == 3
    gc.collect()  # a call left over would warn, and a warning fails


@pytest.mark.parametrize("dtype", [BOOL, INT32, UINT64, FP64])
def test_a_number_that_was_seen_has_the_type_and_the_name_of_each_time(dtype):
    """1, True and a counter are one number of each type; -1 of two vectors is refused for both."""
    for number in (1, True, Counter(np.int64(1)), 1.0, np.int64(1)):
        found = scalar_value(number, dtype, "w")
        assert found == 1
        assert found.dtype == dtype.numpy
    for name in ("u", "w"):
        if dtype is UINT64:
            with pytest.raises(DomainMismatch, match=f"^{name}: -1 does not fit UINT64"):
                scalar_value(-1, dtype, name)


def test_a_size_may_be_a_number_of_numpy_also_zero():
    for size in (np.int64(0), np.uint8(0), np.int64(3)):
        assert Vector(INT32, size, backend="cpu").size == size


def test_a_python_number_has_the_type_beside_it_or_the_next_that_holds_it():
    for number, like, dtype in (
        *((2**31 - 1, INT32, INT32), (-(2**31), INT32, INT32), (2**31, INT32, INT64)),
        *((2**63 - 1, INT32, INT64), (2**63, INT32, UINT64), (2**63, INT64, UINT64)),
        *((5, BOOL, INT64), (-1, UINT32, INT64), (True, INT32, BOOL), (2**63, FP64, FP64)),
        (1.5, INT32, FP64),
    ):
        assert scalar_dtype(number, like, "apply") is dtype, (number, like)


@pytest.mark.parametrize("number", [int, np.int64, np.uint64])
def test_the_largest_size(number):
    assert as_size(number(2**60), "Vector") == 2**60
    with pytest.raises(DimensionMismatch, match=r"size 1152921504606846977 > 2\*\*60"):
        as_size(number(2**60 + 1), "Vector")


def test_where_a_statement_writes_is_shown():
    v = Vector(INT64, 3, backend="cpu", name="v")
    A = Matrix(INT64, 3, 3, backend="cpu", name="A")
    shown = [repr(x) for x in (v(v.S)[2], v(v.S)[:], A(A.S)[[0, 1], [1]])]
    assert shown == ["v(v.S)[2]", "v(v.S)[I]", "A(A.S)[I, J]"]


def test_a_python_function_is_an_operator_on_cpu(backend):
    def halved(x):
        return x / 2

    u = Vector.from_coo([1], [4.0], size=3, backend=backend)
    statements = (
        (lambda: u.apply(halved), 2.0),
        (lambda: u.apply(lambda x, y: x - 3 * y, right=1), 1.0),
        (lambda: u.ewise_add(u, lambda x, y: x * y + 1), 17.0),
        (lambda: u.select(lambda x, i, j, t: x > t, 3), 4.0),
    )
    for statement, value in statements:
        if backend.name == "cpu":
            assert statement().new()[1].value == value
        else:
            with pytest.raises(NotSupported, match="Register it with its C\\+\\+ text"):
                statement().new()
    for wrong in (lambda: u.apply(halved, right=1), lambda: u.select(halved)):
        with pytest.raises(DomainMismatch, match="halved: has no result"):
            wrong()


class OnDevice(np.ndarray):
    """Host memory that says it is a device's, as that of the simulated one is."""

    __cuda_array_interface__ = {}  # noqa: RUF012


CSC = {
    "right": ([0, 2, 2, 3], [0, 7, 1], 8),
    "empty": ([0, 0], [], 3),
    "no columns": ([0], [], 3),
    "size from the indices": ([0, 2, 2, 3], [0, 7, 1], None),
    "long column": ([0, 70, 70, 71], [*range(70), 4], 70),
    "no pointer": ([], [], 2),
    "begins late": ([1, 2], [0, 1], 2),
    "ends early": ([0, 1], [0, 1], 2),
    "falls": ([0, 2, 1, 2], [0, 1], 2),
    "beyond the end": ([0, 9, 2], [0, 1], 2),
    "negative": ([0, -1, 2], [0, 1], 2),
    "index below 0": ([0, 2], [-3, 1], 2),
    "least number": ([0, 2], [-(2**31), 1], 2),
    "index too large": ([0, 2], [0, 2], 2),
    "twice": ([0, 70], [*range(40), 39, *range(41, 70)], 80),
    "falls in a column": ([0, 1, 3], [5, 4, 3], 8),
    "falls between columns": ([0, 1, 3], [5, 3, 4], 8),
}


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("case", CSC)
def test_a_device_finds_in_compressed_arrays_what_the_host_finds(case, kind):
    ptr, idx, size = CSC[case]
    device, outcomes = backends.get("sim").device, []
    for array in (np.ndarray, OnDevice):
        given = [np.array(x, kind).view(array) for x in (ptr, idx)]
        try:
            outcomes.append(check_compressed(*given, None, size, "from_csc", device)[0])
        except LagpuError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
