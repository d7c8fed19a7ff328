"""`Vector`: entries at some of the indices ``0 .. size-1``; a missing entry is not a zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from sys import _getframe
from typing import Any

import numpy as np

from lagpu import backends
from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import binary, semiring
from lagpu.backends.protocol import Backend
from lagpu.core import arguments
from lagpu.core.collection import Collection
from lagpu.core.expr import OUTPUTS, Call, Updater, assign, constant
from lagpu.core.hints import object_of
from lagpu.core.infix import inner_product, outer_product, require_vector, vector_product
from lagpu.core.recorder import current_observer, current_recorder
from lagpu.core.views import Gather, IndexExpr, SelectionMatrix, VectorIndex
from lagpu.dtypes import INT64, DType, as_array, cast
from lagpu.host import display
from lagpu.operations import Assign, AssignScalar, Descriptor, ExtractElement, Statement

_INDEX, _NUMBER = (int, np.integer), (int, float, np.generic)
_LARGE = 1 << 18  # entries: from here on it pays to have a device put them in their places


class Vector(Collection):
    """A sparse vector on one backend.

    Parameters
    ----------
    dtype : DType or anything `lagpu.dtypes.lookup` takes
        Type of the values.
    size : int
        Length; indices are ``0 .. size-1``.
    like : Vector or Matrix, optional
        Live on the backend of this object.
    backend : str or Backend, optional
        Live on this backend; without `like` and `backend`, on the default one.
    name : str, optional
        Name in formulas and messages.

    Notes
    -----
    Copies and pickles behave as those of a `Matrix`.
    """

    __slots__ = ()
    shape: tuple[int]
    ndim = 1
    _unnamed = display.Unnamed("v")
    _hint = "Use v.nvals, v.to_coo(), v.reduce(op) or v.isequal(u)."
    _truth = "Use {0}.nvals to ask for entries, {0}.isequal(u) to compare, {0}.get(i) for one."
    _items = "Use {0}.size, {0}.nvals, or {0}.to_coo() for indices and values; loop() repeats."
    _dense = "Use {0}.to_dense(fill_value), or {0}.to_coo() for indices and values."

    def __init__(
        self, dtype: Any, size: int = 0, *, like: Any = None,
        backend: str | Backend | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        kind = dtype if type(dtype) is DType else arguments.dtype_for(dtype, "Vector")
        n = arguments.as_size(size, "Vector")
        usual = backend is None and isinstance(like, Collection)
        place = like.backend if usual else backends.choose(like, backend)
        self.dtype, self.shape, self.backend = kind, (n,), place
        self.name = name or self._unnamed
        self.data = place.vector(kind, n)

    # -------------------------------------------------------------------------------- in and out
    @classmethod
    def from_coo(
        cls, indices: Any, values: Any = True, dtype: Any = None, *,
        size: int | None = None, dup_op: Any = None, like: Any = None,
        backend: str | Backend | None = None, name: str | None = None,
    ) -> Vector:  # fmt: skip
        """Return a vector of (index, value) pairs.

        Parameters
        ----------
        indices : array_like of int, (nvals,)
            Indices of the entries, in any order; arrays as in `Matrix.from_coo`.
        values : array_like, (nvals,), or scalar
            Values of the entries, or one value for all.
        dtype : DType, optional
            Type of the values; by default that of `values`.
        size : int, optional
            Length; by default the largest index plus one.
        dup_op : BinaryOp, optional
            Combines the values of an index given twice; one value of all entries needs none.
        like, backend, name
            As in `Vector`.

        Raises
        ------
        IndexOutOfBound, DimensionMismatch
            If an index is out of bounds, or `indices` and `values` differ in length.
        InvalidValue
            If an index is given twice, with values of an array, and there is no `dup_op`.
        """
        place = backends.choose(like, backend)
        indices, values = (arguments.array_of(x, place, "from_coo") for x in (indices, values))
        where = arguments.integer_array(indices, "from_coo").astype(np.int64, copy=False)
        arguments.require_size(where, size)
        length = arguments.extent(where, size, "from_coo: index")
        what, kind = arguments.as_values(values, dtype, len(where), "from_coo")
        dup_op = None if dup_op is None else arguments.binary_operator(dup_op)
        where, what = arguments.sorted_distinct(where, what, kind, dup_op)
        data = place.vector_from_coo(where, what, kind, length)
        return cls._of(data, kind, (length,), place, name)

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None,
        like: Any = None, backend: str | Backend | None = None, name: str | None = None,
    ) -> Vector:  # fmt: skip
        """Return a vector of a dense array, without entries where it equals `missing_value`.

        Arrays are accepted as in `Matrix.from_coo`. A missing value of pandas or pyarrow, or a
        masked one, raises `InvalidValue`; NaN is a value, unless it is `missing_value`.
        """
        place = backends.choose(like, backend)
        array = arguments.array_of(values, place, "from_dense")
        if not hasattr(array, "__cuda_array_interface__"):  # what has it stays on the device
            array = as_array(array)
        arguments.require_ndim(array, 1)
        size = int(array.size)
        if missing_value is not None:
            keep = arguments.is_present(array, missing_value).nonzero()[0]
            return cls.from_coo(keep, array[keep], dtype, size=size, backend=place, name=name)
        what, kind = arguments.as_values(array, dtype, size, "from_dense")
        return cls._of(place.vector_from_coo(None, what, kind, size), kind, (size,), place, name)

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[int, Any]], dtype: Any = None, **options: Any
    ) -> Vector:
        """Return a vector of (index, value) pairs.

        ``size``, ``dup_op``, ``like``, ``backend``, ``name`` and errors are as in `from_coo`.
        """
        indices, values = arguments.split(pairs, 2)
        return cls.from_coo(indices, values, dtype, **options)

    @classmethod
    def from_dict(cls, entries: Mapping[int, Any], dtype: Any = None, **options: Any) -> Vector:
        """Return a vector of a dict ``{index: value}``; options as in `from_pairs`."""
        known = {} if entries else {"size": 0}
        return cls.from_pairs(entries.items(), dtype, **{**known, **options})

    @classmethod
    def from_scalar(cls, value: Any, size: int, dtype: Any = None, **where: Any) -> Vector:
        """Return a full vector of one value, of type `dtype` or else of the type of `value`.

        ``like``, ``backend`` and ``name`` are as in `Vector`.
        """
        kind = arguments.scalar_dtype(value, INT64, "from_scalar") if dtype is None else dtype
        made = cls(kind, size, **where)
        made << value
        return made

    def to_coo(
        self, dtype: Any = None, *, indices: bool = True, values: bool = True, sort: bool = True
    ) -> tuple[Any, Any]:
        """Return (indices, INT64; values) as NumPy arrays of length `nvals`.

        Parameters
        ----------
        dtype : DType, optional
            Type of the values; by default that of the vector.
        indices, values : bool
            With False the result has None for this array.
        sort : bool
            Accepted as in python-graphblas; the indices always rise.
        """
        where, what = self._flushed().vector_to_coo(self.data)
        return where if indices else None, arguments.as_type(what, dtype) if values else None

    def to_dense(
        self, fill_value: Any = None, dtype: Any = None, *, on_device: bool = False
    ) -> np.ndarray[Any, Any]:
        """Return an array of length `size`, a copy, with `fill_value` where there is no entry.

        Parameters
        ----------
        fill_value : scalar, optional
            The value of missing entries.
        dtype : DType, optional
            Type of the array, to which values are cast as GraphBLAS casts; by default that of the
            vector, or the next that holds `fill_value` too.
        on_device : bool
            Return a CuPy array where the backend has a GPU, so that nothing goes through the host;
            elsewhere, and on a grid, it is a NumPy array all the same.

        Raises
        ------
        DomainMismatch
            If entries are missing and there is no `fill_value`, or if it does not fit the type.
        """
        place, nvals = self.backend, self.nvals
        kind = arguments.dense_type(self, fill_value, dtype)
        fill = None if fill_value is None else arguments.as_fill(fill_value, kind)
        if fill is None:
            arguments.require_full(self, nvals)
        if not on_device and (place.device is None or self.size < _LARGE):
            if nvals == self.size:
                return np.asarray(cast(place.vector_values(self.data), kind))
            indices, values = self.to_coo()
            dense = np.full(self.size, fill, kind.numpy)
            dense[indices] = cast(values, kind)
            return dense
        data = self.data
        if nvals < self.size:
            data = place.vector(kind, self.size)
            place.execute(Statement(data, Descriptor(), AssignScalar(fill), kind))
            place.execute(Statement(data, Descriptor(self.data), Assign(self.data), self.dtype))
        elif kind is not self.dtype:
            data = place.dup(data, kind)
        return place.vector_values(data, on_device)

    __dlpack__ = arguments.dlpack
    __dlpack_device__ = arguments.dlpack_device

    def to_dict(self) -> dict[int, Any]:
        """Return ``{index: value}`` with Python numbers, indices rising."""
        indices, values = self.to_coo()
        return dict(zip(indices.tolist(), values.tolist(), strict=True))

    def to(self, backend: str | Backend) -> Vector:
        """Return a copy on another backend: the only way data moves."""
        indices, values = self.to_coo()
        place = backends.get(backend)
        data = place.vector_from_coo(indices, values, self.dtype, self.size)
        return Vector._of(data, self.dtype, self.shape, place, self.name)

    # -------------------------------------------------------------------------------- properties
    @property
    def size(self) -> int:
        """Length; indices are ``0 .. size-1``."""
        return self.shape[0]

    __repr__ = display.vector_text
    _repr_html_ = display.vector_html

    # ---------------------------------------------------------------------------------- contents
    def get(self, index: Any, default: Any = None) -> Any:
        """Return the value at `index` as a Python number, or `default` if there is no entry."""
        i = arguments.single_index(index, self.size, self.name)
        found = self._flushed().evaluate(ExtractElement(self.data, (i,)))
        return default if found is None else found

    def __contains__(self, index: Any) -> bool:
        return self.get(index) is not None

    def __iter__(self) -> Iterator[int]:
        """Yield the indices of the entries, rising."""
        return iter(self.to_coo()[0].tolist())

    def clear(self) -> None:
        """Delete all entries."""
        self._flushed().vector_clear(self.data)

    def resize(self, size: int) -> None:
        """Change the size; entries at or beyond it are deleted."""
        n = arguments.as_size(size, "resize")
        data = self.reposition(0, size=n).new().data
        self._flushed()
        self.data, self.shape = data, (n,)  # no interrupt comes between two attributes

    def build(
        self, indices: Any, values: Any = True, *, dup_op: Any = None,
        clear: bool = False, size: int | None = None,
    ) -> None:  # fmt: skip
        """Fill an empty vector with (index, value) pairs, and resize it first; see `from_coo`."""
        self._require_empty(clear)
        if size is not None:
            self.resize(size)
        new = Vector.from_coo(indices, values, self.dtype, size=self.size, dup_op=dup_op, like=self)
        assign(Updater(self), new)

    def reposition(self, offset: int, *, size: int | None = None) -> Call:
        """Move the entries: ``w[i + offset] = u[i]``; an entry outside of `w` is left out.

        The result has `size` places, by default as many as this vector.
        """
        by = arguments.integer(offset, "reposition: offset")
        n = self.size if size is None else arguments.as_size(size, "reposition")
        first, last = max(0, -by), min(self.size, n - by)
        new = type(self)(self.dtype, n, like=self, name=self.name)
        if first < last:
            new[first + by : last + by] = self[first:last].new()
        return Call(Assign(new.data), (new,), new.dtype, new.shape, (new,), _getframe(1))

    # ------------------------------------------------------------------------- parts of a vector
    def __getitem__(self, indices: Any) -> VectorIndex:
        if isinstance(indices, Vector) and indices.dtype.numpy.kind in "iu":
            return Gather(self, indices)
        return VectorIndex(self, indices)

    def __setitem__(self, indices: Any, value: Any) -> None:
        if type(indices) is list and len(indices) == 1 and isinstance(value, _NUMBER):
            indices = indices[0] if type(indices[0]) is int else indices
        alone = isinstance(indices, _INDEX) and not isinstance(value, (Call, IndexExpr, Vector))
        if alone and current_recorder() is None:
            i = arguments.single_index(indices, self.shape[0], self.name)
            if type(value) is OUTPUTS[0] and value.is_empty:
                del self[i]
                return
            number = arguments.plain_number(value, self.dtype)
            if number is None:
                number = arguments.scalar_value(value, self.dtype, f"{self.name}[{i}]")
            place, observer = self._flushed(), current_observer()
            if observer is None:
                place.vector_set(self.data, i, number)
                return
            to = Updater(self, indices=i)
            to._mark_used()
            work = partial(place.vector_set, self.data, i, number)
            observer.statement(to, constant(number, self.dtype), work)
        else:
            assign(Updater(self, indices=indices), value)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice) or np.ndim(index):
            super().__delitem__(index)
            return
        i = arguments.single_index(index, self.size, self.name)
        self._flushed().vector_remove(self.data, i)

    # -------------------------------------------------------------------------------- operations
    def vxm(
        self, A: Any, op: Semiring | str = semiring.plus_times,
        *, kernel: str | None = None, policy: str | None = None,
    ) -> Call:  # fmt: skip
        """Multiply by a matrix, as ``op(u @ A)``: ``w[j] = ⊕_i u[i] ⊗ A[i, j]``.

        Parameters
        ----------
        A : Matrix or its transpose, (size, m)
            The matrix.
        op : Semiring
            The algebra.
        kernel, policy : str, optional
            The strategy, or the rule that chooses one, on a backend that offers them.
        """
        algebra = semiring.lookup(op)
        return vector_product(object_of(A), self, algebra, True, _getframe(1), kernel, policy)

    def inner(self, other: Any, op: Semiring | str = semiring.plus_times) -> Call:
        """Return the inner product, ``s = ⊕_i u[i] ⊗ v[i]``; empty if no index is in both."""
        v = require_vector("inner", self, other)
        return inner_product(self, v, semiring.lookup(op), _getframe(1))

    def outer(self, other: Any, op: Any = binary.times) -> Call:
        """Return the outer product, ``C[i, j] = u[i] ⊗ v[j]``."""
        v, found = require_vector("outer", self, other), arguments.binary_operator(op)
        return outer_product(self, v, found)._written_in(_getframe(1))

    def selection(self, nrows: int | None = None) -> SelectionMatrix:
        """Return a `SelectionMatrix`: a view with an entry (v[j], j) for each entry j.

        It has `nrows` rows, by default `size`; a value outside ``0 .. nrows-1`` selects nothing.
        """
        return SelectionMatrix(self, nrows)

    def diag(self, k: int = 0, dtype: Any = None, *, name: str | None = None) -> Any:
        """Return the square matrix with this vector on diagonal `k`, cast to `dtype`."""
        if dtype is not None:
            return self.dup(dtype).diag(k, name=name)
        k = arguments.integer(k, "diag: diagonal")
        n = arguments.as_size(self.size + abs(k), "diag")
        data = self._flushed().matrix_from_diagonal(self.data, k)
        return OUTPUTS[2]._of(data, self.dtype, (n, n), self.backend, name)


OUTPUTS[1] = Vector
