"""Statements on places, and on other handles again."""

import numpy as np

from lagpu import BOOL, INT32, semiring
from lagpu.operations import (
    AssignScalar,
    CounterRef,
    Descriptor,
    Multiply,
    Place,
    Product,
    Record,
    RecordedBody,
    Statement,
    once,
    operands_of,
)

PRODUCT = Product(semiring.any_pair, BOOL, BOOL, transpose=True, flip=True)


class Handle:
    """A backend's object; equal to all others, as handles are compared by identity only."""

    def __eq__(self, other):
        return True

    __hash__ = None


def search(levels, frontier, A):
    return [
        Statement(levels, Descriptor(frontier), AssignScalar(CounterRef(INT32), None), INT32),
        Statement(
            frontier,
            Descriptor(levels, complement=True, replace=True),
            Multiply(A, frontier, PRODUCT, False),
            BOOL,
        ),
    ]


def handles_in(statements):
    return [x for s in statements for x in (s.out, s.desc.mask, *operands_of(s.operation))]


def test_the_statements_serve_on_other_handles():
    first, second = ([Handle() for _ in range(3)] for _ in range(2))
    record = Record(search(*first), first, [(9,), (9,), (9, 9)])
    assert [p.shape for p in record.places] == [(9,), (9,), (9, 9)]
    assert all(type(x) is Place for x in handles_in(record.statements))
    body, right = RecordedBody(record, second), search(*second)
    assert len(body) == len(right)
    for x, y in zip(handles_in(body), handles_in(right), strict=True):
        assert x is y
    for s, expected in zip(body, right, strict=True):
        assert s.dtype is expected.dtype
        assert s.desc[1:] == expected.desc[1:]
        assert type(s.operation) is type(expected.operation)
    assert body[0].operation.value == CounterRef(INT32)
    assert body[1].operation.product is PRODUCT
    assert body[0] is next(iter(body)), "they are made once"


def test_a_statement_without_a_mask_has_none():
    w = Handle()
    record = Record(
        [Statement(w, Descriptor(), AssignScalar(np.int32(3), None), INT32)], [w], [(4,)]
    )
    (s,) = RecordedBody(record, [Handle()])
    assert s.desc.mask is None
    assert s.operation == AssignScalar(np.int32(3), None)


def test_handles_have_places():
    handles = [Handle() for _ in range(3)]
    record = Record(search(*handles), handles, [(9,), (9,), (9, 9)])
    body = RecordedBody(record, handles)
    assert [body.place_of(x).number for x in handles] == [0, 1, 2]
    assert body.place_of(Handle()) is None


def test_what_is_found_of_a_record_is_found_once():
    handles, asked = [Handle() for _ in range(3)], []

    def count(statements):
        asked.append(len(statements))
        return len(asked)

    def masks(statements):
        return [s.desc.mask is not None for s in statements]

    record = Record(search(*handles), handles, [(9,), (9,), (9, 9)])
    assert [once(RecordedBody(record, handles), count) for _ in range(3)] == [1, 1, 1]
    assert once(RecordedBody(record, handles), masks) == [True, True], "of another question"
    assert once(search(*handles), count) == 2
    assert once(RecordedBody(Record(search(*handles), handles, [(9,)] * 3), handles), count) == 3
    assert asked == [2, 2, 2]
