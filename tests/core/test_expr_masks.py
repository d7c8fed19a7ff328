"""What is true in a mask by value: whatever is not zero, and -0.0 is zero."""

import numpy as np
import pytest

from lagpu import INT64, Matrix, Vector, semiring


@pytest.mark.parametrize("dtype", ["FP32", "FP64"])
def test_signed_zeros_and_nan_in_masks_by_value(backend, dtype):
    values = np.array([0.0, -0.0, 1.0, np.nan, np.inf, 5e-324 if dtype == "FP64" else 1e-45])
    m = Vector.from_dense(values.astype(dtype.replace("FP", "float")), backend=backend)
    true = [2, 3, 4, 5]
    u = Vector.from_dense(np.arange(6), backend=backend)
    for call in (3, u, u.apply("plus", 1), u[[5, 4, 3, 2, 1, 0]]):
        w = Vector(INT64, 6, backend=backend)
        w(m.V) << call
        assert w.to_coo()[0].tolist() == true
        w(~m.V, replace=True) << call
        assert w.to_coo()[0].tolist() == [0, 1]
        w(m.V, accum="plus") << call
        assert w.nvals == 6
    zeros = Vector.from_dense(np.zeros(3, values.dtype), backend=backend).apply("ainv").new()
    w = Vector(INT64, 3, backend=backend)
    w(zeros.V) << 1  # every entry has this one value
    assert w.nvals == 0
    M, A = m.diag(), u.diag()
    for call in (3, A, A.T, A.apply("plus", 1), semiring.plus_times(A @ A)):
        C = Matrix(INT64, 6, 6, backend=backend)
        C(M.V) << call
        assert C.to_coo()[0].tolist() == true


def test_a_mask_complemented_twice_is_the_mask(backend):
    m = Vector.from_coo([0, 2], [1, 0], size=4, backend=backend)
    for mask, there in ((~~m.S, [0, 2]), (~~m.V, [0]), (~~~m.S, [1, 3]), (~~~m.V, [1, 2, 3])):
        w = Vector(INT64, 4, backend=backend)
        w(mask) << 1
        assert w.to_coo()[0].tolist() == there
