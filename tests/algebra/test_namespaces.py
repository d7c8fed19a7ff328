"""Names of python-graphblas beside the tables: op, select, ss, texts, register_new; messages."""

import subprocess
import sys

import pytest

import lagpu
from lagpu import Vector, agg, binary, indexunary, monoid, op, select, semiring, unary
from lagpu.errors import InvalidValue, NotSupported, UnknownOperator

gb = pytest.importorskip("graphblas")  # a dependency of the cpu backend


def names_of(module):
    return {n for n in dir(module) if not n.startswith("_")} - NOT_OPERATORS


NOT_OPERATORS = {
    *("register_new", "register_anonymous", "from_string", "numpy", "ss", "get_semiring"),
    *("Aggregator", "TypedAggregator", "namedtuple", "Scalar", "dtypes"),
}
# As they are before any test: some register more.
NAMES = {
    kind: names_of(getattr(gb, kind))
    for kind in ("unary", "binary", "monoid", "semiring", "indexunary", "select", "agg", "op")
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_of_python_graphblas_is_there_or_says_what_to_write(kind):
    table = getattr(lagpu, kind)
    for name in NAMES[kind]:
        if name in table or (kind in ("binary", "op") and name == "isclose"):
            continue
        with pytest.raises((UnknownOperator, NotSupported)) as caught:
            getattr(table, name)
        assert (
            "rite" in str(caught.value)
            or "ake it without" in str(caught.value)
            or ("omplex" in str(caught.value))
        ), name


def test_a_table_is_imported_as_a_module_is():
    """In a new process: `lagpu.op` must be there without an attribute that was asked for before."""
    line = (
        "import lagpu.agg, lagpu.op, lagpu.select; from lagpu.agg import mean; "
        "from lagpu.op import min_plus; from lagpu.select import tril, value; "
        "print(lagpu.agg.mean is mean, lagpu.op.min_plus is min_plus, tril, value)"
    )
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "True True select.tril select.value\n"


def test_op_finds_all_kinds():
    assert (op.plus, op.abs, op.min_plus) == (binary.plus, unary.abs, semiring.min_plus)
    assert op["any_pair"] is semiring.any_pair
    assert "min_plus" in op
    assert {"floor", "floordiv", "plus_times"} <= set(dir(op))
    assert dir(op.numpy).count("add") == 1  # a binary operator and a monoid
    assert op.ss.any_secondi is semiring.any_secondi
    with pytest.raises(UnknownOperator, match="op: there is no 'min_pluss'"):
        op.min_pluss  # noqa: B018


def test_select_keeps_entries(backend):
    u = Vector.from_coo([0, 1, 3], [1, 5, 2], size=4, backend=backend)
    assert select.valuegt(u, 1).new().to_coo()[0].tolist() == [1, 3]
    assert u.select(select.valuegt, 1).new().isequal(u.select("valuegt", 1).new())
    A = u.diag(1)
    assert select.tril(A, 1).new().nvals == 3
    assert repr(select.tril) == "select.tril"
    assert indexunary.lookup(select.tril) is indexunary.tril
    with pytest.raises(UnknownOperator, match=r"Write A\.apply\(indexunary\.rowindex\)"):
        select.rowindex  # noqa: B018


def test_close_numbers_are_equal(backend):
    u = Vector.from_dense([1.0, 2.0, float("inf")], backend=backend)
    v = Vector.from_dense([1.0 + 1e-9, 2.1, float("inf")], backend=backend)
    assert u.ewise_mult(v, binary.isclose()).new().to_coo()[1].tolist() == [True, False, True]
    assert u.ewise_mult(v, binary.isclose(0.5)).new().reduce(monoid.land).new().value
    assert binary.isclose(0.5) is binary.isclose(0.5)
    assert binary.isclose(0.5).cuda != binary.isclose(0.25).cuda


def test_monoids_and_semirings_register_by_both_names():
    made = monoid.register_new("test_new_least", binary.min, 2**31)
    assert monoid.test_new_least is made
    assert semiring.register_anonymous(monoid.min, binary.plus) is semiring.min_plus
    new = semiring.register_new("test_new_shorter", made, binary.plus)
    assert semiring.test_new_shorter is new
    assert new.name == "test_new_least_plus"
    with pytest.raises(InvalidValue, match="taken"):
        semiring.register_new("min_plus", made, binary.plus)


@pytest.mark.parametrize(
    ("table", "text", "found"),
    [
        (binary, "+", binary.plus),
        (binary, "+[FP64]", binary.plus["FP64"]),
        (binary, " floordiv ", binary.floordiv),
        (unary, "~", unary.lnot),
        (unary, "abs[INT32]", unary.abs["INT32"]),
        (monoid, "|", monoid.lor),
        (semiring, "min.+", semiring.min_plus),
        (semiring, "min_plus[INT64]", semiring.min_plus["INT64"]),
        (op, "min_plus", semiring.min_plus),
        (agg, "mean", agg.mean),
        (agg, "+[INT64]", agg.sum["INT64"]),
        (unary, "-", unary.ainv),
    ],
)
def test_an_operator_of_a_text(table, text, found):
    assert table.from_string(text) is found


def test_a_text_stands_for_an_operator_in_a_call(backend):
    """As in python-graphblas: a sign of a sum, and two of a product."""
    v = lagpu.Vector.from_coo([0, 1], [1.0, 2.0], size=2, backend=backend)
    A = v.diag()
    assert (v.reduce("+").new().value, v.reduce("*").new().value) == (3.0, 2.0)
    assert A.reduce_rowwise("+").new().isequal(v)
    assert v.vxm(A, "min.+").new().to_dict() == {0: 2.0, 1: 4.0}
    with pytest.raises(UnknownOperator, match=r"monoid: there is no 'pluss'. The nearest"):
        v.reduce("pluss")


def test_a_percent_sign_has_the_sign_of_the_divisor(backend):
    """As in Python: -5 % 3 is 1; of IEEE's `remainder` 5 % 3 would be -1."""
    assert binary.from_string("%") is binary.mod
    for x, y in ((5, 3), (-5, 3), (5, -3), (-5, -3), (5.5, -2.0), (-4.0, 2.0)):
        u = Vector.from_coo([0], [x], size=1, backend=backend)
        assert (u % y).new()[0].value == x % y
        assert (x % Vector.from_coo([0], [y], size=1, backend=backend)).new()[0].value == x % y
    assert (u.dup("INT64") % 0).new()[0].value == 0


def test_a_message_has_at_most_five_names():
    for table in (unary, binary, monoid, semiring, indexunary, agg):
        for wrong in ("any_piar", "zzz", "pluss", "q"):
            with pytest.raises(UnknownOperator) as caught:
                table[wrong]
            assert str(caught.value).count(",") < 5


def test_names_of_the_package():
    """Tab shows the public names alone, and a name of python-graphblas says what to write."""
    more = ("backends", "check", "generators", "io", "viz")
    assert set(more) < set(dir(lagpu))
    assert set(dir(lagpu)) - set(lagpu.__all__) <= {
        *(*more, "__version__", "__doc__", "__file__", "__name__")
    }
    assert lagpu.exceptions.DomainMismatch is lagpu.errors.DomainMismatch
    assert lagpu.io.read is not None
    for name in ("Recorder", "init", "config", "backend", "ss", "MAX_SIZE", "dtypes", "last_loop"):
        if name not in vars(lagpu):  # an import of the module sets some
            with pytest.raises(AttributeError, match=rf"there is no '{name}'\. \w"):
                getattr(lagpu, name)
    with pytest.raises(AttributeError, match="there is no 'nothing'"):
        lagpu.nothing  # noqa: B018
