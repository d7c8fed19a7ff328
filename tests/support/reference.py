"""What every operation means, in plain loops over dictionaries; obviously right, not fast.

A vector is a `PlainVector`: a size, a type and ``{index: value}``; a matrix a `PlainMatrix` with
``{(row, column): value}``. Values are NumPy scalars. A result maps each index to the *list* of
values it may have: one, except where the `any` monoid leaves a choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import DType
from lagpu.operations import BoundOperator

Entries: TypeAlias = dict[Any, Any]
Options: TypeAlias = dict[Any, list[Any]]


@dataclass
class PlainVector:
    """A vector."""

    size: int
    dtype: DType
    entries: Entries = field(default_factory=dict)

    @property
    def places(self) -> Sequence[int]:
        """All indices."""
        return range(self.size)


@dataclass
class PlainMatrix:
    """A matrix."""

    nrows: int
    ncols: int
    dtype: DType
    entries: Entries = field(default_factory=dict)

    @property
    def places(self) -> Sequence[tuple[int, int]]:
        """All indices, by rows."""
        return [(i, j) for i in range(self.nrows) for j in range(self.ncols)]

    @property
    def T(self) -> PlainMatrix:
        """The transposed matrix."""
        flipped = {(j, i): x for (i, j), x in self.entries.items()}
        return PlainMatrix(self.ncols, self.nrows, self.dtype, flipped)


Container: TypeAlias = PlainVector | PlainMatrix


@dataclass
class How:
    """How a result is written."""

    mask: Container | None = None
    structure: bool = True
    complement: bool = False
    accum: BinaryOp | None = None
    replace: bool = False

    def keeps(self, i: Any) -> bool:
        """Whether the mask holds at index `i`."""
        if self.mask is None:
            return True
        held = i in self.mask.entries and (self.structure or self.mask.entries[i] != 0)
        return bool(held) != self.complement


# ---------------------------------------------------------------------------------- values


def cast(x: Any, dtype: DType) -> Any:
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


def evaluate(op: BinaryOp | UnaryOp, domain: DType, *operands: Any) -> Any:
    """Apply an operator to values, cast to its domain first; the result has its result type."""
    with np.errstate(all="ignore"):
        value = op.numpy(*(cast(x, domain) for x in operands))
    return cast(value, op.result(domain))


def options(op: BinaryOp, domain: DType, x: Any, y: Any) -> list[Any]:
    """Return the possible results of a binary operator: `any` gives one of its operands."""
    if op.name == "any":
        return [cast(cast(z, domain), op.result(domain)) for z in (x, y)]
    return [evaluate(op, domain, x, y)]


def total(monoid: Monoid, dtype: DType, values: list[Any]) -> list[Any]:
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


def write(w: Container, result: Options, dtype: DType, how: How) -> Options:
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


def _masked(w: Container, merged: Options, how: How) -> Options:
    new = {}
    for i in sorted(merged.keys() | w.entries.keys()):
        if how.keeps(i):
            if i in merged:
                new[i] = [cast(x, w.dtype) for x in merged[i]]
        elif i in w.entries and not how.replace:
            new[i] = [w.entries[i]]
    return new


def assign(w: PlainVector, u: PlainVector, indices: Sequence[int], how: How) -> Options:
    """``w<mask>(indices) (accum)= u``."""
    merged = {i: [x] for i, x in w.entries.items()}
    for k, i in enumerate(indices):
        if k in u.entries:
            x = u.entries[k]
            if how.accum is not None and i in w.entries:
                x = evaluate(how.accum, how.accum.types(w.dtype, u.dtype)[0], w.entries[i], x)
            merged[i] = [x]
        elif how.accum is None:
            merged.pop(i, None)
    return _masked(w, merged, how)


def assign_scalar(w: PlainVector, value: Any, indices: Sequence[int], how: How) -> Options:
    """``w<mask>(indices) (accum)= value``."""
    places = sorted(set(indices))
    u = PlainVector(len(places), w.dtype, dict.fromkeys(range(len(places)), cast(value, w.dtype)))
    return assign(w, u, places, how)


# ------------------------------------------------------------------------- results, unmasked


def extract(u: PlainVector, indices: Sequence[int]) -> Options:
    """``u(indices)``."""
    return {k: [u.entries[i]] for k, i in enumerate(indices) if i in u.entries}


def ewise_add(u: Container, v: Container, op: BinaryOp) -> Options:
    """On the union; an entry of one side alone is cast to the result type."""
    domain, result = op.types(u.dtype, v.dtype)
    out = {}
    for i in u.entries.keys() | v.entries.keys():
        if i in u.entries and i in v.entries:
            out[i] = options(op, domain, u.entries[i], v.entries[i])
        else:
            out[i] = [cast(u.entries[i] if i in u.entries else v.entries[i], result)]
    return out


def ewise_mult(u: Container, v: Container, op: BinaryOp) -> Options:
    """On the intersection."""
    domain, _ = op.types(u.dtype, v.dtype)
    both = u.entries.keys() & v.entries.keys()
    return {i: options(op, domain, u.entries[i], v.entries[i]) for i in both}


def ewise_union(u: Container, v: Container, op: BinaryOp, left: Any, right: Any) -> Options:
    """On the union, with defaults."""
    domain, _ = op.types(u.dtype, v.dtype)
    both = u.entries.keys() | v.entries.keys()
    return {i: options(op, domain, u.entries.get(i, left), v.entries.get(i, right)) for i in both}


def apply(entries: Entries, op: Any, how: BoundOperator) -> Options:
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


def select(entries: Entries, op: IndexUnaryOp, domain: DType, thunk: Any) -> Options:
    """Return the entries for which `op` holds."""
    out = {}
    for where, x in entries.items():
        i, j = where if isinstance(where, tuple) else (where, 0)
        if _indexed(op, domain, x, i, j, thunk):
            out[where] = [x]
    return out


def _indexed(op: IndexUnaryOp, domain: DType, x: Any, i: int, j: int, thunk: Any) -> Any:
    with np.errstate(all="ignore"):
        value = op.numpy(cast(x, domain), np.int64(i), np.int64(j), cast(thunk, domain))
    return cast(value, op.result(domain))


def product(A: PlainMatrix, u: PlainVector, semiring: Semiring, *, flip: bool) -> Options:
    """Compute ``A (+.x) u``, or ``u (+.x) A`` if `flip`."""
    left, right = (u.dtype, A.dtype) if flip else (A.dtype, u.dtype)
    domain, result = semiring.types(left, right)
    multiply = semiring.multiply
    terms: Options = {}
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


def mxm(A: PlainMatrix, B: PlainMatrix, semiring: Semiring) -> Options:
    """Compute ``A (+.x) B``."""
    domain, result = semiring.types(A.dtype, B.dtype)
    multiply = semiring.multiply
    terms: Options = {}
    rows: dict[int, list[Any]] = {}
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


def kronecker(A: PlainMatrix, B: PlainMatrix, op: BinaryOp) -> Options:
    """Compute a matrix with a block for each entry of `A`."""
    domain, _ = op.types(A.dtype, B.dtype)
    return {
        (i * B.nrows + k, j * B.ncols + m): options(op, domain, x, y)
        for (i, j), x in A.entries.items()
        for (k, m), y in B.entries.items()
    }


def submatrix(A: PlainMatrix, rows: Sequence[int], cols: Sequence[int]) -> Options:
    """``A(rows, cols)``."""
    return {
        (k, m): [A.entries[i, j]]
        for k, i in enumerate(rows)
        for m, j in enumerate(cols)
        if (i, j) in A.entries
    }


def assign_submatrix(
    C: PlainMatrix, A: PlainMatrix, rows: Sequence[int], cols: Sequence[int], how: How
) -> Options:
    """``C<mask>(rows, cols) (accum)= A``."""
    merged = {at: [x] for at, x in C.entries.items()}
    for k, i in enumerate(rows):
        for m, j in enumerate(cols):
            if (k, m) in A.entries:
                x = A.entries[k, m]
                if how.accum is not None and (i, j) in C.entries:
                    domain, _ = how.accum.types(C.dtype, A.dtype)
                    x = evaluate(how.accum, domain, C.entries[i, j], x)
                merged[i, j] = [x]
            elif how.accum is None:
                merged.pop((i, j), None)
    return _masked(C, merged, how)


def reduce(values: Sequence[Any], dtype: DType, monoid: Monoid) -> list[Any]:
    """Return the possible sums of all entries; an empty list if there are none."""
    domain, _ = monoid.types(dtype)
    return total(monoid, domain, [cast(x, domain) for x in values]) if len(values) else []


def reduce_rows(A: PlainMatrix, monoid: Monoid) -> Options:
    """``w[i] = (+)_j A[i, j]``."""
    rows: dict[int, list[Any]] = {}
    for (i, _), x in sorted(A.entries.items(), key=lambda entry: entry[0]):
        rows.setdefault(i, []).append(x)
    return {i: reduce(values, A.dtype, monoid) for i, values in rows.items()}


# ------------------------------------------------------------------------------ comparison


def close(x: Any, y: Any, dtype: DType, computed: DType) -> bool:
    """Whether two values of `dtype` agree that were computed in type `computed`."""
    if not (dtype.is_float or computed.is_float):
        return bool(x == y)
    x, y = float(x), float(y)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    fp32 = "FP32" in (dtype.name, computed.name)
    tolerance = 5e-4 if fp32 else 1e-11  # two thousand terms may be added in any order
    return math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)


def difference(actual: Vector | Matrix, expected: Options, computed: DType | None = None) -> str:
    """Compare a vector or a matrix of lagpu with the possible entries of a result.

    Parameters
    ----------
    actual : Vector or Matrix
        The object on any backend.
    expected : dict
        The possible values at each index, or at each (row, column).
    computed : DType, optional
        The type in which the values were computed, if it is another than that of `actual`.

    Returns
    -------
    str
        The first difference, or an empty string.
    """
    *where, values = actual.to_coo()
    places: list[Any] = where[0].tolist()
    if len(where) == 2:
        places = list(zip(places, where[1].tolist(), strict=True))
    elif places != sorted(places):
        return f"indices {places} do not rise"
    if values.dtype != actual.dtype.numpy:
        return f"values are {values.dtype}, not {actual.dtype}"
    got = dict(zip(places, values.tolist(), strict=True))
    if not len(got) == len(values) == actual.nvals:
        return f"nvals is {actual.nvals}, and there are {len(values)} entries at {len(got)} places"
    if got.keys() != expected.keys():
        return f"entries at {sorted(got.keys() ^ expected.keys())} are too many or missing"
    for place, choices in expected.items():
        possible = [np.asarray(x).item() for x in choices]
        if not any(close(got[place], x, actual.dtype, computed or actual.dtype) for x in possible):
            return f"entry {place} is {got[place]}, must be one of {possible}"
    return ""
