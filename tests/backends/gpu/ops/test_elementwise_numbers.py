"""A vector that a number is assigned to whole stores no value for each entry, and acts as any."""

import numpy as np
import pytest
from drawn_loops import random_graph

from lagpu import BOOL, FP64, INT64, Vector, binary, semiring


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1025])
@pytest.mark.parametrize("dtype", [BOOL, INT64, FP64], ids=str)
def test_a_number_at_every_index(backend, dtype, n):
    v = Vector.from_coo(range(0, n, 2), range(0, n, 2), dtype, size=n, backend=backend)
    v << 1
    if backend.name != "cpu" and n:
        assert v.data.is_number
    assert v.nvals == n
    assert v.to_dense().tolist() == [dtype.numpy.type(1)] * n
    w = v.dup()
    w(accum=binary.plus) << v
    assert w.reduce("max").new().value == (
        None if not n else dtype.numpy.type(True) + (dtype is not BOOL)
    )
    assert v.to_dense().tolist() == [dtype.numpy.type(1)] * n


@pytest.mark.parametrize("n", [33, 4096, 4097, 9001])
def test_a_sum_of_entries_that_were_not_counted(backend, n):
    u = Vector.from_coo([0, n - 1], [2.0, -0.5], size=n, backend=backend)
    assert u.select("valuegt", 7).new().reduce("any").new().is_empty
    assert u.select("valuelt", 0).new().reduce("min").new().value == -0.5
    assert u.apply("ainv").new().reduce("plus").new().value == -1.5
    every = Vector(INT64, n, backend=backend)
    every << 3
    assert every.apply("rowindex").new().reduce("max").new().value == n - 1


def test_part_of_it_may_be_written_again(backend):
    v = Vector.from_coo([3, 40], [5, 6], INT64, size=70, backend=backend)
    m = v.dup()
    v << 2
    v(m.S) << m
    expected = np.full(70, 2)
    expected[[3, 40]] = 5, 6
    assert v.to_dense().tolist() == expected.tolist()
    v << 4
    v(~m.S, replace=True) << 7
    assert v.nvals == 68
    assert set(v.to_coo()[1].tolist()) == {7}
    v << 1
    v[5] = 9
    del v[6]
    assert (v.nvals, v[5].new().value) == (69, 9)
    v << v.select("valuegt", 1)
    assert v.to_coo()[0].tolist() == [5]


def test_it_is_multiplied(backend):
    A = random_graph(70, 200, backend)
    v = Vector(INT64, 70, like=A)
    v << 3
    expected = semiring.plus_times(A.to("cpu") @ v.to("cpu")).new()
    assert semiring.plus_times(A @ v).new().to("cpu").isequal(expected)


def test_a_mask_or_an_accumulator_writes_entries(backend):
    v = Vector.from_coo([3, 40], [5, 6], INT64, size=70, backend=backend)
    v(accum=binary.plus) << 2
    assert v.to_dense()[[2, 3, 40]].tolist() == [2, 7, 8]
    v(v.S) << 1
    assert v.nvals == 70
