"""What every operation means, in plain loops over dictionaries; obviously right, not fast.

A vector is a `Plain`: a size, a type and ``{index: value}``; a matrix a `Grid` with
``{(row, column): value}``. Values are NumPy scalars. A result maps each index to the *list* of
values it may have: one, except where the `any` monoid leaves a choice.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, UnaryOp
from lagpu.dtypes import DType


@dataclass
class Plain:
    """A vector."""

    size: int
    dtype: DType
    entries: dict[int, Any] = field(default_factory=dict)

    @property
    def places(self):
        return range(self.size)


@dataclass
class Grid:
    """A matrix."""

    nrows: int
    ncols: int
    dtype: DType
    entries: dict[tuple[int, int], Any] = field(default_factory=dict)

    @property
    def places(self):
        return [(i, j) for i in range(self.nrows) for j in range(self.ncols)]

    @property
    def T(self):
        flipped = {(j, i): x for (i, j), x in self.entries.items()}
        return Grid(self.ncols, self.nrows, self.dtype, flipped)


@dataclass
class How:
    """How a result is written."""

    mask: Plain | None = None
    structure: bool = True
    complement: bool = False
    accum: BinaryOp | None = None
    replace: bool = False

    def keeps(self, i):
        """Whether the mask holds at index `i`."""
        if self.mask is None:
            return True
        held = i in self.mask.entries and (self.structure or self.mask.entries[i] != 0)
        return bool(held) != self.complement


# ---------------------------------------------------------------------------------- values


def cast(x, dtype):
    """Cast one value as GraphBLAS does."""
    x = np.asarray(x)[()]
    if dtype.is_bool:
        return np.bool_(x != 0)
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return dtype.numpy.type(x)
    info = np.iinfo(dtype.numpy)
    if isinstance(x, np.floating):
        if math.isnan(x):
            return dtype.numpy.type(0)
        if math.isinf(x):
            return dtype.numpy.type(info.max if x > 0 else info.min)
        return dtype.numpy.type(min(max(math.trunc(float(x)), info.min), info.max))
    wrapped = (int(x) - info.min) % (info.max - info.min + 1) + info.min
    return dtype.numpy.type(wrapped)


def evaluate(op, domain, *operands):
    """Apply an operator to values, cast to its domain first; the result has its result type."""
    with np.errstate(all="ignore"):
        value = op.numpy(*(cast(x, domain) for x in operands))
    return cast(value, op.result(domain))


def options(op, domain, x, y):
    """What a binary operator may give: `any` gives one of its operands."""
    if op.name == "any":
        return [cast(cast(z, domain), op.result(domain)) for z in (x, y)]
    return [evaluate(op, domain, x, y)]


def total(monoid, dtype, values):
    """Add values of `dtype`; the list of what the sum may be."""
    if monoid.name == "any":
        return list(values)
    result = values[0]
    for x in values[1:]:
        result = evaluate(monoid.op, dtype, result, x)
    if result != result and monoid.name in ("min", "max"):  # all are NaN
        return [result, monoid.identity(dtype)]  # whether a sum starts there is free
    return [result]


# --------------------------------------------------------------------------------- writing


def write(w, result, dtype, how):
    """``w<mask> (accum)= result``: the new entries of `w`, each a list of possible values."""
    merged = dict(result)
    if how.accum is not None:
        merged = {i: [x] for i, x in w.entries.items()}
        domain, _ = how.accum.types(w.dtype, dtype)
        for i, possible in result.items():
            merged[i] = possible
            if i in w.entries:
                merged[i] = [evaluate(how.accum, domain, w.entries[i], x) for x in possible]
    return _masked(w, merged, how)


def _masked(w, merged, how):
    new = {}
    for i in w.places:
        if how.keeps(i):
            if i in merged:
                new[i] = [cast(x, w.dtype) for x in merged[i]]
        elif i in w.entries and not how.replace:
            new[i] = [w.entries[i]]
    return new


def assign(w, u, indices, how):
    """``w<mask>(indices) (accum)= u``."""
    merged = {i: [x] for i, x in w.entries.items()}
    domain = None if how.accum is None else how.accum.types(w.dtype, u.dtype)[0]
    for k, i in enumerate(indices):
        if k in u.entries:
            x = u.entries[k]
            if domain is not None and i in w.entries:
                x = evaluate(how.accum, domain, w.entries[i], x)
            merged[i] = [x]
        elif how.accum is None:
            merged.pop(i, None)
    return _masked(w, merged, how)


def assign_scalar(w, value, indices, how):
    """``w<mask>(indices) (accum)= value``."""
    places = sorted(set(indices))
    u = Plain(len(places), w.dtype, dict.fromkeys(range(len(places)), cast(value, w.dtype)))
    return assign(w, u, places, how)


# ------------------------------------------------------------------------- results, unmasked


def extract(u, indices):
    """``u(indices)``."""
    return {k: [u.entries[i]] for k, i in enumerate(indices) if i in u.entries}


def ewise_add(u, v, op):
    """On the union; an entry of one side alone is cast to the result type."""
    domain, result = op.types(u.dtype, v.dtype)
    out = {}
    for i in u.entries.keys() | v.entries.keys():
        if i in u.entries and i in v.entries:
            out[i] = options(op, domain, u.entries[i], v.entries[i])
        else:
            out[i] = [cast(u.entries[i] if i in u.entries else v.entries[i], result)]
    return out


def ewise_mult(u, v, op):
    """On the intersection."""
    domain, _ = op.types(u.dtype, v.dtype)
    both = u.entries.keys() & v.entries.keys()
    return {i: options(op, domain, u.entries[i], v.entries[i]) for i in both}


def ewise_union(u, v, op, left, right):
    """On the union, with defaults."""
    domain, _ = op.types(u.dtype, v.dtype)
    both = u.entries.keys() | v.entries.keys()
    return {i: options(op, domain, u.entries.get(i, left), v.entries.get(i, right)) for i in both}


def apply(entries, op, how):
    """``f`` of every entry of a vector or a matrix; `how` is the front end's `BoundOperator`."""
    out = {}
    for where, x in entries.items():
        i, j = where if isinstance(where, tuple) else (where, 0)
        if isinstance(op, UnaryOp):
            out[where] = [evaluate(op, how.domain, x)]
        elif isinstance(op, IndexUnaryOp):
            out[where] = [_indexed(op, how.domain, x, i, j, how.right)]
        elif how.left is not None:
            out[where] = options(op, how.domain, how.left, x)
        else:
            out[where] = options(op, how.domain, x, how.right)
    return out


def select(entries, op, domain, thunk):
    """The entries for which `op` holds."""
    out = {}
    for where, x in entries.items():
        i, j = where if isinstance(where, tuple) else (where, 0)
        if _indexed(op, domain, x, i, j, thunk):
            out[where] = [x]
    return out


def _indexed(op, domain, x, i, j, thunk):
    with np.errstate(all="ignore"):
        value = op.numpy(cast(x, domain), np.int64(i), np.int64(j), cast(thunk, domain))
    return cast(value, op.result(domain))


def product(A, u, semiring, *, flip):
    """``A (+.x) u``, or ``u (+.x) A`` if `flip`."""
    left, right = (u.dtype, A.dtype) if flip else (A.dtype, u.dtype)
    domain, result = semiring.types(left, right)
    multiply = semiring.multiply
    terms = {}
    for (i, j), a in sorted(A.entries.items(), key=lambda entry: entry[0]):
        out, k = (j, i) if flip else (i, j)
        if k not in u.entries:
            continue
        x, y = (u.entries[k], a) if flip else (a, u.entries[k])
        if multiply.positional:  # C[i, j] = x[i, k] * y[k, j]: a vector is one row or one column
            value = {"i": 0 if flip else out, "k": k, "j": out if flip else 0}[multiply.positional]
        else:
            value = evaluate(multiply, domain, x, y)
        terms.setdefault(out, []).append(cast(value, result))
    return {i: total(semiring.monoid, result, values) for i, values in terms.items()}


def mxm(A, B, semiring):
    """``A (+.x) B``."""
    domain, result = semiring.types(A.dtype, B.dtype)
    multiply, terms = semiring.multiply, {}
    rows = {}
    for (k, j), y in B.entries.items():
        rows.setdefault(k, []).append((j, y))
    for (i, k), x in sorted(A.entries.items(), key=lambda entry: entry[0]):
        for j, y in rows.get(k, ()):
            if multiply.positional:
                value = {"i": i, "k": k, "j": j}[multiply.positional]
            else:
                value = evaluate(multiply, domain, x, y)
            terms.setdefault((i, j), []).append(cast(value, result))
    return {at: total(semiring.monoid, result, values) for at, values in terms.items()}


def kronecker(A, B, op):
    """A block for each entry of `A`."""
    domain, _ = op.types(A.dtype, B.dtype)
    return {
        (i * B.nrows + k, j * B.ncols + m): options(op, domain, x, y)
        for (i, j), x in A.entries.items()
        for (k, m), y in B.entries.items()
    }


def submatrix(A, rows, cols):
    """``A(rows, cols)``."""
    return {
        (k, m): [A.entries[i, j]]
        for k, i in enumerate(rows)
        for m, j in enumerate(cols)
        if (i, j) in A.entries
    }


def assign_submatrix(C, A, rows, cols, how):
    """``C<mask>(rows, cols) (accum)= A``."""
    merged = {at: [x] for at, x in C.entries.items()}
    domain = None if how.accum is None else how.accum.types(C.dtype, A.dtype)[0]
    for k, i in enumerate(rows):
        for m, j in enumerate(cols):
            if (k, m) in A.entries:
                x = A.entries[k, m]
                if domain is not None and (i, j) in C.entries:
                    x = evaluate(how.accum, domain, C.entries[i, j], x)
                merged[i, j] = [x]
            elif how.accum is None:
                merged.pop((i, j), None)
    return _masked(C, merged, how)


def reduce(values, dtype, monoid):
    """The possible sums of all entries; empty if there are none."""
    domain, _ = monoid.types(dtype)
    return total(monoid, domain, [cast(x, domain) for x in values]) if len(values) else []


def reduce_rows(A, monoid):
    """``w[i] = (+)_j A[i, j]``."""
    rows = {}
    for (i, _), x in sorted(A.entries.items(), key=lambda entry: entry[0]):
        rows.setdefault(i, []).append(x)
    return {i: reduce(values, A.dtype, monoid) for i, values in rows.items()}


# ------------------------------------------------------------------------------ comparison


def close(x, y, dtype, computed):
    """Whether two values of `dtype` agree that were computed in type `computed`."""
    if not (dtype.is_float or computed.is_float):
        return x == y
    x, y = float(x), float(y)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    fp32 = "FP32" in (dtype.name, computed.name)
    tolerance = 5e-4 if fp32 else 1e-11  # two thousand terms may be added in any order
    return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)


def assert_matches(actual, expected, computed=None):
    """Compare a lagpu vector with the possible entries of the reference."""
    indices, values = actual.to_coo()
    got = dict(zip(indices.tolist(), values.tolist(), strict=True))
    assert list(got) == sorted(got), "indices must rise"
    assert values.dtype == actual.dtype.numpy
    assert actual.nvals == len(got)
    assert got.keys() == expected.keys(), f"entries {sorted(got.keys() ^ expected.keys())} differ"
    kind = computed or actual.dtype
    for i, values in expected.items():
        possible = [x.item() for x in values]
        assert any(close(got[i], x, actual.dtype, kind) for x in possible), (
            f"entry {i} is {got[i]}, must be one of {possible}"
        )


def assert_matrix_matches(actual, expected, computed=None):
    """Compare a lagpu matrix with the possible entries of the reference."""
    rows, cols, values = actual.to_coo()
    got = dict(zip(zip(rows.tolist(), cols.tolist(), strict=True), values.tolist(), strict=True))
    assert len(got) == len(values) == actual.nvals
    assert values.dtype == actual.dtype.numpy
    assert got.keys() == expected.keys()
    kind = computed or actual.dtype
    for where, values in expected.items():
        assert any(close(got[where], x.item(), actual.dtype, kind) for x in values), where
