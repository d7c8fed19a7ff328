"""Random loops: fused, eager and on the oracle, on vectors, on k-row matrices and with scalars."""

from __future__ import annotations

import importlib.util
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from strategies import Draw, Failed

from lagpu import backends
from lagpu.algebra.tables import binary
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.core.recorder import flush
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP64, INT32, INT64, DType
from lagpu.errors import LagpuError
from lagpu.loops.loop import eager

# Of each loop, which costs a compilation; and those on which it runs eager too, launch by launch.
_DATA, _EAGER = 50, 10
_KINDS = ("vectors", "scalars", "passes", "two sizes", "batches", "matrices")
_WITH_KERNELS = ("searches", "searches", "search rows", "relaxations", "sweeps", "sweep rows")
#: The vectors, or k-row matrices, of a loop.
NAMES = {"x": INT64, "y": INT64, "z": INT32, "b": BOOL, "f": FP64}
#: The vectors of another size, in loops that have them.
OTHERS = {"p": INT64, "q": INT32, "c": BOOL, "g": FP64}
#: Of the vectors of a random loop: around a word of entries, which a warp may hold, and a block.
SIZES = (1, 2, 31, 32, 33, 70, 1023, 1025)


class _Space(NamedTuple):
    """The vectors of one size, by name."""

    names: tuple[str, ...]
    whole: tuple[str, ...]  # what is read: sums of floats depend on their order
    of_scalars: tuple[str, ...]  # what holds every value of r and s, or rounds it


_MANY = _Space(tuple(NAMES), ("x", "y", "z", "b"), ("x", "y", "f", "b"))
_OTHER = _Space(tuple(OTHERS), ("p", "q", "c"), ("p", "g", "c"))
_ARGUMENTS = "A, x, y, z, b, f, r, s"
_TIMES = (1, 2, 4, 0)
_SUMS = ("plus", "min", "max", "lor", "land")
_PRODUCTS = (
    "plus_times",
    "min_plus",
    "max_second",
    "any_pair",
    "plus_first",
    "lor_land",
    "min_first",
)
_POSITIONAL = ("min_secondi", "max_firstj", "plus_secondj")

_IMPORTS = "from lagpu import binary, indexunary, loop, semiring, sweep, unary\n"

# Matrices of either shape, views of vectors that a loop may write; made before the loop.
_SELECTIONS = {"P": "P = p.selection(x.size)", "X": "X = x.selection(p.size)"}


def run(draw: Draw, backend: Backend, _seed: int) -> int:
    """Draw a loop, run it on several data, fused and eager, and on cpu."""
    return _run(draw, backend, _KINDS)


def searches(draw: Draw, backend: Backend, _seed: int) -> int:
    """Do the same with a search, relaxation or sweep, or what is nearly one."""
    return _run(draw, backend, _WITH_KERNELS)


def _run(draw: Draw, backend: Backend, kinds: Sequence[str]) -> int:
    kind = draw(st.sampled_from(kinds), label="kind")
    k = size = 0
    if kind == "matrices" or kind.endswith("rows"):
        k = draw(st.sampled_from((1, 2, 31, 32, 33, 64, 65)), label="k")
    if kind == "matrices":
        source = draw(bitmap_loops(), label="loop")
    elif kind.startswith("search"):
        source = draw(search_loops(rows=k > 0), label="loop")
    elif kind == "relaxations":
        source = draw(relaxation_loops(), label="loop")
    elif kind.startswith("sweep"):
        source = draw(sweep_loops(), label="loop")
    elif kind in ("passes", "two sizes"):
        source = draw(pass_loops(two_sizes=kind == "two sizes"), label="loop")
        size = draw(st.sampled_from(SIZES), label="size") if kind == "two sizes" else 0
    elif kind == "batches":
        source = draw(batched_loops(), label="loop")
    else:
        source = draw(vector_loops(scalars=kind == "scalars"), label="loop")
    seed = draw(st.integers(0, 2**16), label="seed")
    n = draw(st.sampled_from(SIZES), label="n")
    if k:  # from twice as many vertices on rows are bitmaps
        n = min(n, 130) if kind == "matrices" else 2 * k + draw(st.sampled_from((0, 1, 33, 130)))
    with tempfile.TemporaryDirectory() as folder:
        function = load(source, Path(folder) / "body.py")
        for data in range(seed, seed + _DATA):
            try:
                compare(function, backend, n, k, data, size, data < seed + _EAGER)
            except Failed as failed:
                arguments = f"{n}, {k}, {data}" + (f", size={size}" if size else "")
                raise Failed(_test(source, backend, arguments, str(failed))) from None
    return _DATA


def compare(
    function: Callable[..., None],
    place: Backend | str,
    n: int,
    k: int,
    seed: int,
    size: int = 0,
    runs_eager: bool = True,
) -> Any:
    """Run a loop fused, eager and on cpu; raise `Failed` if the outcomes differ.

    A loop that an error ends leaves what the statements before have done.

    Parameters
    ----------
    function : callable
        Takes what `start` returns.
    place : Backend or str
        The backend.
    n, k : int
        Vertices; rows of the matrices, or 0 for vectors.
    seed : int
        Of the data.
    size : int, optional
        Of the vectors `OTHERS`; a loop without them has none.
    runs_eager : bool
        Whether the loop runs eager too.

    Returns
    -------
    list or str
        The values of all arguments after the run, or the error's text.

    Raises
    ------
    Failed
        With the outcome of each run.
    """
    place = backends.get(place) if isinstance(place, str) else place
    found = {"cpu": _outcome(function, start("cpu", n, k, seed, size))}
    if runs_eager:
        found[f"{place.name} eager"] = _eager(function, start(place, n, k, seed, size))
    found[f"{place.name} fused"] = _outcome(function, start(place, n, k, seed, size))
    first = next(iter(found.values()))
    if any(x != first for x in found.values()):
        raise Failed("\n".join(f"{name}: {x!r}"[:2000] for name, x in found.items()))
    values, error = first
    return error or values


def start(place: Backend | str, n: int, k: int, seed: int, size: int = 0) -> list[Any]:
    """Return the arguments of a loop: a matrix, vectors or k-row matrices `NAMES`, two scalars.

    And the vectors `OTHERS` of a size, if one is given.
    """
    rng = np.random.default_rng(seed)
    deep = seed % 5 > 2
    A = random_graph(n, (1, 2, 9)[seed % 3] * n, place, seed, seed % 2 == 0, deep)
    made: list[Any] = [A]
    for dtype in NAMES.values():
        *where, values = _entries(rng, (k, n) if k else (n,), dtype)
        if k:
            i, j = where
            made.append(Matrix.from_coo(i, j, values, dtype, nrows=k, ncols=n, backend=place))
        else:
            made.append(Vector.from_coo(where[0], values, dtype, size=n, backend=place))
    made += [Scalar(INT64, name="r"), Scalar(INT64, 2, name="s")]
    for dtype in OTHERS.values() if size else ():
        i, values = _entries(rng, (size,), dtype)
        made.append(Vector.from_coo(i, values, dtype, size=size, backend=place))
    return made


def _entries(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> list[Any]:
    """Return the indices and, last, the values of entries at none, some or all of the places."""
    density = rng.choice([0.0, 0.1, 0.4, 1.0])
    where = np.nonzero(rng.random(shape) < density)
    return [*where, rng.integers(0, 4, len(where[0])).astype(dtype.numpy)]


def random_graph(
    n: int, m: int, place: Backend | str, seed: int = 1, directed: bool = True, deep: bool = False
) -> Matrix:
    """Return a graph with self-loops and a hub; values are 1 .. 7, or 3 for every fourth seed.

    A deep one has edges between near vertices instead of the hub, so its searches have many levels.
    """
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, m), rng.integers(0, n, m)
    if deep:
        rows = np.arange(m) % n
        cols = np.minimum(rows + 1 + cols % 2, n - 1)
    else:
        rows[: m // 4] = n // 2
    if not directed:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    values: Any = np.arange(len(rows)) % 7 + 1 if seed % 4 else 3
    return Matrix.from_coo(
        rows, cols, values, INT64, nrows=n, ncols=n, dup_op=binary.first, backend=place
    )


def load(source: str, path: Path) -> Callable[..., None]:
    """Return the function ``run`` of a source file, which must stay while loops are fused."""
    path.write_text(f"{_IMPORTS}\n\n{source}", "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., None] = module.run
    return function


def _eager(function: Callable[..., None], args: list[Any]) -> tuple[list[Any], str]:
    with eager():
        return _outcome(function, args)


def _outcome(function: Callable[..., None], args: list[Any]) -> tuple[list[Any], str]:
    """Return all values after a run, and the text of the error that ended it."""
    error = ""
    try:
        function(*args)
        flush()
    except LagpuError as found:
        error = f"{type(found).__name__}: {found}"
    return [_values(x) for x in args[1:]], error


def _values(x: Any) -> Any:
    if isinstance(x, Scalar):
        return x.value
    return [part.tolist() for part in x.to_coo()]


def _test(source: str, place: Backend, arguments: str, found: str) -> str:
    """Return a test with the loop, and the outcomes as a comment."""
    call = f"compare(run, {place.name!r}, {arguments})"
    comment = "".join(f"    # {line}\n" for line in found.splitlines())
    return (
        f"{_IMPORTS}from drawn_loops import compare\n\n\n{source}\n\n"
        f"def test_soak():\n    {call}\n{comment}"
    )


# ------------------------------------------------------------------------------ text of loops


@st.composite
def vector_loops(draw: Draw, scalars: bool = False) -> str:
    """Draw the source of a function ``run(A, x, y, z, b, f, r, s)`` with a loop over vectors."""
    body = draw(st.lists(_vector_statements(), min_size=1, max_size=5))
    if scalars:
        more = draw(st.lists(_scalar_statements(_MANY), min_size=1, max_size=5))
        body = draw(st.permutations(body + more))
    return _function(draw, body)


@st.composite
def pass_loops(draw: Draw, two_sizes: bool = False) -> str:
    """Draw the same of many statements that may share a pass: element-wise ones and scalars.

    With two sizes the function is ``run(A, x, y, z, b, f, r, s, p, q, c, g)``: statements of either
    size alternate, scalars go from one to the other, and so do products in some bodies.
    """
    filled = draw(st.booleans())  # else many reads of a scalar ask whether it has a value
    spaces = (_MANY, _OTHER) if two_sizes else (_MANY,)
    kinds = [_element_wise(space) for space in spaces] * (1 if two_sizes else 3)
    kinds += [_scalar_statements(space, filled) for space in spaces]
    if two_sizes and draw(st.integers(0, 3)) == 3:  # a size with products is held by no warp
        kinds += [_vector_statements(), _products_of_two_sizes()]
    body = draw(st.lists(st.one_of(*kinds), min_size=2, max_size=12))
    if two_sizes:  # for what takes a pass of either size, and a third one
        body += draw(st.lists(st.one_of(*kinds), max_size=12))
    return _function(draw, body, two_sizes, ["r << 7"] if filled else [])


@st.composite
def batched_loops(draw: Draw) -> str:
    """Draw one of these that Python runs, so that its statements wait for each other."""
    source = str(draw(st.one_of(vector_loops(scalars=True), pass_loops())))
    return f"{source}        pass\n"


@st.composite
def bitmap_loops(draw: Draw) -> str:
    """Draw the source of a function ``run(A, x, y, z, b, f, r, s)`` over k-row matrices."""
    return _function(draw, draw(st.lists(_bitmap_statements(), min_size=1, max_size=5)))


# The searches of integers or marks, and those of FP64 that no rounding shows.
_SEARCHES = (
    "any_pair",
    "any_pair",
    "any_pair",
    "min_first",
    "max_plus",
    "min_plus",
    "min_secondi",
    "plus_second",
)
_SEARCHES_OF_SUMS = ("plus_first", "plus_pair", "plus_times", "max_second")


@st.composite
def search_loops(draw: Draw, rows: bool = False) -> str:
    """Draw the source of a function ``run(A, x, y, z, b, f, r, s)`` with a search, or nearly one.

    The outputs have entries before it, or not, as `start` makes them; so has the mask. With `rows`
    they are k-row matrices.
    """
    f = draw(st.sampled_from(tuple(NAMES)))
    others = draw(st.permutations([name for name in NAMES if name != f]))
    targets = others[: draw(st.sampled_from((1, 2, 2, 3, 3, 4)))]
    how = draw(st.sampled_from(("",) * 12 + (", accum=binary.plus", ", replace=True")))
    given = ("depth", "depth", "depth", f, f, "2")
    writes = [f"{x}({f}.S{how}) << {draw(st.sampled_from(given))}" for x in targets]
    op = draw(st.sampled_from(_SEARCHES + _SEARCHES_OF_SUMS))
    calls = (f"{f} @ A", f"{f} @ A.T", f"A @ {f}")
    call = draw(st.sampled_from(calls[:2] if rows else calls))
    mask = draw(st.sampled_from(targets))
    product = f"{f}(~{mask}.S, replace=True) << semiring.{op}({call})"
    times = draw(st.sampled_from((*_TIMES, 100, 3 if "replace" in how else None)))
    if f == "f" and op.startswith("plus"):  # so that every sum is exact, and fits INT32
        op, times = "plus_first", draw(st.sampled_from((1, 2)))
    body = [product, *writes] if draw(st.integers(0, 4)) == 4 else [*writes, product]
    return _text(f"for depth in loop(until_empty={f}, times={times}):", body)


@st.composite
def relaxation_loops(draw: Draw) -> str:
    """Draw the same with a relaxation from one vertex, which may begin with no other entries."""
    of_min = draw(st.booleans())
    worse, op = ("ge", ("min_plus", "min_max")) if of_min else ("le", ("max_min", "max_plus"))
    call = draw(st.sampled_from(("x @ A", "x @ A.T", "A @ x")))
    body = [
        "x(~b.V, replace=True) << x",
        "y(x.S) << x",
        f"x << semiring.{draw(st.sampled_from(op))}({call})",
        f"b << x.ewise_mult(y, binary.{worse})",
    ]
    cleared = draw(st.sampled_from(("xyb", "xyb", "xb", "xy", "")))
    before = [f"{name}.clear()" for name in cleared] + ["x[A.nrows // 2] = 1"]
    times = draw(st.sampled_from(("A.nrows + 1", "A.nrows + 1", *_TIMES)))
    return _text(f"for _ in loop(until_empty=x, times={times}):", body, before)


@st.composite
def sweep_loops(draw: Draw) -> str:
    """Draw the same with a sweep by the levels ``x``, or nearly one."""
    op = draw(st.sampled_from(("plus_first", "max_first", "min_plus", "any_pair", "plus_pair")))
    made = draw(st.sampled_from(("z", "y.apply('plus', right=1)", "y.ewise_mult(z, 'plus')", "y")))
    A = draw(st.sampled_from(("A", "A.T")))
    share, pulled = draw(st.sampled_from((("f", "y"), ("f", "z"), ("z", "y"))))
    body = [
        f"{share}(here.S, replace=True) << {made}",
        f"{share}(here.S) << {share}.apply('minus', right=1)",
        f"{pulled}(above.S, replace=True) << semiring.{op}({share} @ {A})",
    ]
    more = (
        f"b(above.S) << {pulled}",
        f"y(accum=binary.max) << {pulled}",
        f"y(above.S) << {pulled}.ewise_add(y, 'min')",
    )
    body += draw(st.lists(st.sampled_from(more), max_size=2))
    if draw(st.booleans()):
        del body[1]
    return _text("for here, above in sweep(x):", body)


def _function(
    draw: Draw, body: list[str], two_sizes: bool = False, before: Sequence[str] = ()
) -> str:
    """Return the source of a function with statements in a loop, and some before it."""
    ends = ["", "until_unchanged=x, ", "until_empty=y, ", "until_empty=b, "]
    names = _ARGUMENTS
    if two_sizes:
        ends += ["until_empty=p, ", "until_empty=c, ", "until_unchanged=p, "]
        names += "".join(f", {name}" for name in OTHERS)
    until = draw(st.sampled_from(ends))
    times = draw(st.sampled_from(_TIMES))
    before = [*before, *(line for name, line in _SELECTIONS.items() if name in "".join(body))]
    return _text(f"for depth in loop({until}times={times}):", body, before, names)


def _text(
    head: str, body: Sequence[str], before: Sequence[str] = (), names: str = _ARGUMENTS
) -> str:
    """Return the source of a function with a loop, and some statements before it."""
    outside = "".join(f"    {line}\n" for line in (*before, head))
    inside = textwrap.indent("\n".join(body), " " * 8)
    return f"def run({names}):\n{outside}{inside}\n"


@st.composite
def _ways_to_write(draw: Draw, m: str) -> str:
    """Draw how an output is written: an empty string, or a mask of `m`, an accumulator, replace."""
    mask = draw(st.sampled_from(("", f"{m}.S", f"~{m}.S", f"{m}.V", f"~{m}.V")))
    accum = draw(st.sampled_from(("", "accum=binary.min", "accum=binary.plus", "accum=binary.max")))
    replace = "replace=True" if mask and draw(st.booleans()) else ""
    return ", ".join(x for x in (mask, accum, replace) if x)


def _statement(
    draw: Draw, choices: Callable[[str, str], tuple[str, ...]], space: _Space = _MANY
) -> str:
    w = draw(st.sampled_from(space.names))
    u, v, m = (draw(st.sampled_from(space.whole)) for _ in range(3))
    options = draw(_ways_to_write(m))
    call = draw(st.sampled_from(choices(u, v)))
    return f"{w}({options}) << {call}" if options else f"{w} << {call}"


@st.composite
def _vector_statements(draw: Draw) -> str:
    op = draw(st.sampled_from(_PRODUCTS))
    return _statement(
        draw,
        lambda u, v: (
            f"semiring.{op}({u} @ A)",
            f"semiring.{op}(A @ {u})",
            f"semiring.{op}({u} @ A.T)",
            f"semiring.{op}({u} @ {v if v in 'xyz' else 'x'}.selection())",
            f"semiring.{op}({v if v in 'xyz' else 'z'}.selection() @ {u})",
            *_by_index(u, v),
        ),
    )


@st.composite
def _products_of_two_sizes(draw: Draw) -> str:
    """Draw a product with a selection, of vectors of one size, that has the other size."""
    op = draw(st.sampled_from(_PRODUCTS))
    many = (f"semiring.{op}(P @ p)", f"semiring.{op}(q @ X)")
    other = (f"semiring.{op}(x @ P)", f"semiring.{op}(X @ y)")
    calls, space = draw(st.sampled_from(((many, _MANY), (other, _OTHER))))
    return _statement(draw, lambda u, v: calls, space)


@st.composite
def _element_wise(draw: Draw, space: _Space) -> str:
    return _statement(draw, _by_index, space)


def _by_index(u: str, v: str) -> tuple[str, ...]:
    """Return calls that read the entries of one index for each result."""
    return (
        f"{u}.ewise_add({v}, binary.min)",
        f"{u}.ewise_mult({v}, binary.plus)",
        f"{u}.ewise_union({v}, binary.minus, left_default=1, right_default=2)",
        f"{u}.apply(unary.ainv)",
        f"{u}.apply(binary.minus, left=3)",
        f"{u}.apply(indexunary.rowindex, 2)",
        f"{u}.select(indexunary.valuegt, 1)",
        f"{u}.select('rowle', 20)",
        u,
        "2",
        "depth",
    )


@st.composite
def _bitmap_statements(draw: Draw) -> str:
    op = draw(st.sampled_from((*_PRODUCTS, *_POSITIONAL)))
    return _statement(
        draw,
        lambda u, v: (
            f"semiring.{op}({u} @ A)",
            f"semiring.{op}({u} @ A.T)",
            f"{u}.ewise_add({v}, binary.min)",
            f"{u}.ewise_mult({v}, binary.plus)",
            f"{u}.ewise_union({v}, binary.minus, left_default=1, right_default=2)",
            f"{u}.apply(unary.ainv)",
            f"{u}.apply(binary.minus, left=3)",
            f"{u}.select(indexunary.valuegt, 1)",
            u,
            "2",
            "depth",
        ),
    )


@st.composite
def _scalar_statements(draw: Draw, space: _Space, filled: bool = False) -> str:
    """Draw a statement that writes a scalar, r or s, or reads one; no sum empties a filled one.

    Or two: a scalar that is added to a sum has to keep its value until the sum is there.
    """
    s, other = draw(st.sampled_from(("rs", "sr")))
    w, u = (draw(st.sampled_from(names)) for names in (space.of_scalars, space.whole))
    x, y, *_ = space.whole
    accum = draw(st.sampled_from(("", "(accum=binary.max)", "(accum=binary.minus)")))
    total = draw(st.sampled_from(_SUMS))
    added = accum or ("(accum=binary.plus)" if filled else "")
    sums = f"{s}{added} << {u}.reduce('{total}')", f"{s}(accum=binary.plus) << {other}"
    writes = tuple(f"{s}{accum} << {number}" for number in ("3", "depth", "r", "s"))
    reads = (
        f"{w} << {s}",
        f"{w}({u}.S{accum.replace('(', ', ').rstrip(')')}) << {s}",
        f"{w}(~{u}.V) << {u}.apply('plus', right={s})",
        f"{w} << {u}.apply('minus', left={s})",
        f"{w} << {u}.select('valuele', {s})",
        f"{w} << {x}.ewise_union({y}, 'min', left_default={s}, right_default=r)",
    )
    choices = draw(st.sampled_from(((sums[0], "\n".join(sums)), writes, reads)))
    return str(draw(st.sampled_from(choices)))
