"""The records that the front end hands to a backend: complete tables, and scalars read in time."""

import typing

import numpy as np
import pytest

from lagpu import FP64, INT32, Matrix, Scalar, Vector, binary, operations
from lagpu.backends.cpu import statements as on_cpu
from lagpu.backends.gpu.ops import statements as on_gpu
from lagpu.backends.grid import statements as on_grid
from lagpu.core.expr import Call
from lagpu.core.recorder import Recorder
from lagpu.operations import (
    Apply,
    AssignScalar,
    BoundOperator,
    Constant,
    CounterRef,
    Ewise,
    ExtractElement,
    Multiply,
    Operation,
    Reduce,
    ScalarRef,
    SelectionToMatrix,
    method_of,
    operands_of,
    resolved,
)

RECORDS = typing.get_args(Operation)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
def test_each_operation_says_what_it_is(record):
    """What it reads are fields that it has, and it has a name for messages."""
    assert set(record.reads) <= set(record._fields)
    assert record is Ewise or any(record.names)


#: The operations that each backend has a function for, by where its table is.
TABLES = {
    "RUN of cpu": on_cpu.RUN.keys() | {SelectionToMatrix},
    "ON_VECTORS and _MAKE of gpu": on_gpu.ON_VECTORS.keys() | on_gpu._MAKE.keys(),
    "LOCALIZED of grid": on_grid.LOCALIZED.keys(),
}


@pytest.mark.parametrize("table", TABLES)
def test_each_backend_has_a_function_for_each_operation(table):
    assert TABLES[table] == {*RECORDS} - {Constant, ExtractElement, Reduce}


def test_pure_methods_are_there():
    for method in operations.PURE:
        assert hasattr(Vector, method) or hasattr(Matrix, method)
        assert hasattr(Call, method)  # which takes it from its result


def recorded(backend, *statements_):
    """Return the records of statements that a loop's recorder takes."""
    recorder = Recorder(backend)
    recorder.open()
    try:
        for write in statements_:
            write()
        return list(recorder.statements)
    finally:
        recorder.close()


def test_a_record_holds_handles_and_cannot_be_changed(backend):
    u, w = (Vector(FP64, 3, like=None, backend=backend) for _ in "uw")
    (s,) = recorded(backend, lambda: w.__lshift__(u.ewise_add(u, binary.plus)))
    assert s.out is w.data
    assert operands_of(s.operation) == (u.data, u.data)
    assert method_of(s.operation, 1) == "ewise_add"
    assert method_of(s.operation, 2) == "matrix_ewise_add"
    with pytest.raises(AttributeError):
        s.operation.left = None


def test_a_scalar_is_read_when_the_statement_runs(backend):
    u, w = (Vector.from_dense([1.0, 2.0], backend=backend) for _ in "uw")
    s = Scalar(FP64, 3.0)
    (taken,) = recorded(backend, lambda: w.__lshift__(u.apply(binary.plus, right=s)))
    assert type(taken.operation) is Apply
    s << 5.0
    now = resolved(taken.operation)
    assert isinstance(now.function, BoundOperator)
    assert 5.0 in now.function
    assert any(type(part) is ScalarRef for part in taken.operation.function)


def test_a_counter_is_cast_to_the_type_of_its_output():
    operation = AssignScalar(CounterRef(INT32), None)
    assert resolved(operation, 7) == AssignScalar(np.int32(7), None)
    assert type(resolved(operation, 7).value) is np.int32


@pytest.mark.parametrize("record", [r for r in RECORDS if not r.refers])
def test_what_is_not_looked_into_holds_no_number(record):
    """Numbers stand in values, defaults and operators with a bound operand alone."""
    numbers = {"value", "defaults", "function"}
    assert not numbers & set(record._fields)


def test_an_operation_without_scalars_is_returned_as_it_is():
    operation = Multiply(object(), object(), product=None)
    assert resolved(operation, 3) is operation
