"""Random loops that Python runs, with lines between the statements, against cpu.

Statements wait and come again while names change their objects, entries are written, numbers are
read, errors are raised and generators are left; then two threads do all that at once.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from batches import batches_at_once
from drawn_loops import load, random_graph
from hypothesis import strategies as st
from strategies import Draw, Failed

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core import recorder
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP64, INT32, INT64, DType
from lagpu.errors import LagpuError

#: The vectors of a loop; those of one type are exchanged and replaced.
_NAMES: dict[str, DType] = dict.fromkeys("xyz", INT64) | dict.fromkeys("uv", INT32)
_NAMES |= dict.fromkeys("bc", BOOL) | dict.fromkeys("fg", FP64)
_WHOLE = "xyzuvbc"  # sums of floats depend on their order
_ARGUMENTS = f"A, {', '.join(_NAMES)}, r, s, n, log"
_IMPORTS = "import copy\nimport pickle\n\nfrom lagpu import INT64, Scalar, Vector\n"
_PRODUCTS = ("plus_times", "min_plus", "max_second", "any_pair", "plus_first", "lor_land")
_SIZES = (1, 2, 33, 70, 1025)
_NEVER = 10**9


def run(draw: Draw, backend: Backend, _seed: int) -> int:
    """Draw a loop, and run it with programs of batches at once, from the third on, or never."""
    source = draw(python_loops(), label="loop")
    after = draw(st.sampled_from((_NEVER, _NEVER, _NEVER, _NEVER, 0, 2)), label="after")
    n, seed = draw(st.sampled_from(_SIZES), label="n"), draw(st.integers(0, 2**16), label="seed")
    with tempfile.TemporaryDirectory() as folder:
        function = load(source, Path(folder) / "body.py")
        try:
            compare(function, backend, after, n, seed)
        except Failed as failed:
            comment = textwrap.indent(str(failed), "    # ")
            raise Failed(
                f"from lagpu import *\nfrom soak.python_loops import compare\n\n\n{source}\n\n"
                "def test_soak():\n"
                f"    compare(run, {backend.name!r}, {after}, {n}, {seed})\n{comment}"
            ) from None
    return 1


def compare(
    function: Callable[..., Any], place: Backend | str, after: int, n: int, seed: int
) -> None:
    """Run a loop three times on a backend, then in two threads; raise `Failed` unless as on cpu."""
    place = backends.get(place) if isinstance(place, str) else place
    right = outcome(function, "cpu", n, seed)
    kept = sys.getswitchinterval()
    with batches_at_once(after), ThreadPoolExecutor(2) as pool:
        found = [outcome(function, place, n, seed) for _ in range(3)]
        recorder.queue.forget()  # so that they wait in threads too
        sys.setswitchinterval(1e-5)
        threads = 0 if any(type(x) is str for x in right) else 2  # an error may come in both
        both = [pool.submit(outcome, function, place, n, seed) for _ in range(threads)]
        found += [x.result() for x in both]
    sys.setswitchinterval(kept)
    for turn, x in enumerate(found):
        if x != right:
            raise Failed(f"cpu: {right!r:.2000}\n{place.name}, run {turn}: {x!r:.2000}")


def outcome(function: Callable[..., Any], place: Backend | str, n: int, seed: int) -> list[Any]:
    """Return what a loop has logged, the values of its vectors and scalars, and its error."""
    rng, log = np.random.default_rng(seed), []
    vectors = [_vector(rng, n, dtype, place) for dtype in _NAMES.values()]
    scalars = [Scalar(INT64, 1, name="r"), Scalar(INT64, 2, name="s")]
    try:
        for left in function(random_graph(n, 3 * n, place, seed), *vectors, *scalars, n, log):
            log.append([values(x) for x in left])
        recorder.flush()
    except LagpuError as error:
        log.append(type(error).__name__)
    return [*log, *map(values, vectors), *map(values, scalars)]


def _vector(rng: np.random.Generator, n: int, dtype: DType, place: Backend | str) -> Vector:
    where = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.1, 0.4, 1.0]))
    given = rng.integers(0, 4, len(where)).astype(dtype.numpy)
    return Vector.from_coo(where, given, dtype, size=n, backend=place)


def values(x: Vector | Scalar) -> Any:
    """Return the entries of a vector, or the value of a scalar."""
    return x.value if isinstance(x, Scalar) else [part.tolist() for part in x.to_coo()]


# ------------------------------------------------------------------------------ text of loops


@st.composite
def python_loops(draw: Draw) -> str:
    """Draw the source of a generator ``run(A, x, ..., n, log)`` with a loop that Python runs."""
    body = draw(st.lists(st.one_of(_lines(), _lines(), _python()), min_size=2, max_size=9))
    head = f"for k in range({draw(st.sampled_from((3, 4, 6)))}):"
    kind = draw(st.integers(0, 5))
    if kind == 5:  # a loop within
        body += ["for j in range(2):", textwrap.indent(draw(_lines()), "    ")]
    elif kind == 4:  # a search, which `lagpu.loop` may run
        head = "k = 0\nwhile x.nvals:"
        body = [line for line in body if line[0] not in "xbA" and line.find(" = ") < 0]
        body += ["b(x.S) << True", "x(~b.S, replace=True) << semiring.plus_first(x @ A)", "k += 1"]
    lines = [head, textwrap.indent("\n".join(body), "    "), f"yield {', '.join(_NAMES)}, r, s"]
    inside = textwrap.indent("\n".join(lines), "    ")
    return f"{_IMPORTS}\n\ndef run({_ARGUMENTS}):\n{inside}\n"


@st.composite
def _ways_to_write(draw: Draw) -> str:
    m = draw(st.sampled_from(_WHOLE))
    mask = draw(st.sampled_from(("", "", f"{m}.S", f"~{m}.S", f"{m}.V", f"~{m}.V")))
    accum = draw(st.sampled_from(("", "", "accum=binary.min", "accum=binary.plus")))
    replace = "replace=True" if mask and draw(st.booleans()) else ""
    how = ", ".join(x for x in (mask, accum, replace) if x)
    return f"({how})" if how else ""


@st.composite
def _lines(draw: Draw) -> str:
    """Draw a statement that may wait."""
    w = draw(st.sampled_from(tuple(_NAMES)))
    p, q = (draw(st.sampled_from(_WHOLE)) for _ in range(2))
    op = draw(st.sampled_from(_PRODUCTS))
    s, other = draw(st.sampled_from(("rs", "sr")))
    calls = (
        f"semiring.{op}({p} @ A)",
        f"semiring.{op}(A @ {p})",
        f"semiring.{op}({p} @ A.T)",
        f"{p}.ewise_add({q}, binary.min)",
        f"{p}.ewise_mult({q}, binary.plus)",
        f"{p}.ewise_union({q}, binary.minus, left_default=k, right_default=2)",
        f"{p}.apply(unary.ainv)",
        f"{p}.apply(binary.minus, left=k)",
        f"{p}.apply(binary.plus, right={s})",
        f"{p}.select(indexunary.valuegt, k)",
        f"{p}.select('rowle', n // 2)",
        f"{p}.apply(indexunary.rowindex, k)",
        *(p, "2", "k", s, f"{p}[::-1]", f"{p}[0]"),
    )
    if draw(st.integers(0, 3)):
        return f"{w}{draw(_ways_to_write())} << {draw(st.sampled_from(calls))}"
    accum = draw(st.sampled_from(("", "(accum=binary.plus)", "(accum=binary.max)")))
    total = draw(st.sampled_from(("plus", "min", "max", "lor")))
    more = (
        f"{s}{accum} << {p}.reduce('{total}')",
        f"{s}{accum} << {other}",
        f"{s}{accum} << k",
        f"{s} << {p}[k % n]",
        f"{w}[k % n] = k",
        f"{w}[k % n] << {s}",
        f"{w}[[0]] << k",
        f"{w}[:n // 2] << 1",
        f"{w}[:] << {p}",
        f"{w}({p}.S)[:] << {q}",
        f"{w} << {p} | {q}",
        f"{w}({p}.S) << {q}.apply(binary.times, right=k)",
        f"{w} << A.reduce_rowwise('plus')",
        f"{w} << A[k % n, :]",
        f"{s} << A.reduce_scalar('max')",
        f"{s} << A[0, k % n]",
        f"A[k % n, :] << {p}",
        f"A << A.apply(binary.plus, right={s})",
        f"A << A.select(indexunary.valuegt, {s})",
        "A(A.S) << A.T.apply(binary.times, right=k)",
        f"A << {p}.diag()",
    )
    return str(draw(st.sampled_from(more)))


@st.composite
def _python(draw: Draw) -> str:
    """Draw lines that no batch has, perhaps with a statement among them."""
    p, q = draw(st.permutations(draw(st.sampled_from(("xyz", "uv", "bc", "fg")))))[:2]
    w, o = (draw(st.sampled_from(tuple(_NAMES))) for _ in range(2))
    s, line = draw(st.sampled_from("rs")), draw(_lines())
    caught = "except Exception as error:\n    log.append(type(error).__name__)"
    choices = (
        f"{p}, {q} = {q}, {p}",
        f"{p} = {q}",
        f"{p} = {q}.dup()",
        f"{p} = {q}.apply(unary.ainv).new()",
        f"{p} = pickle.loads(pickle.dumps({q}))",
        f"{p} = copy.copy({q})",
        f"{p} = copy.deepcopy({q})",
        f"{p} = Vector({q}.dtype, n, like={q})",
        f"{s} = Scalar(INT64)",
        f"{s} = {s}.dup()",
        f"{s}.clear()",
        f"{s}.value = k",
        "A = A.T.new()",
        "A[k % n, 0] = k",
        f"{w}.clear()",
        f"{w}.resize(n)",
        f"del {w}[k % n]",
        f"log.append({w}.nvals)",
        f"log.append({w}.to_coo()[0].tolist())",
        f"log.append({w}.get(k % n))",
        f"log.append({w}.isequal({o}))",
        f"log.append({s}.value)",
        f"log.append({w}.to('cpu').to_coo()[1].tolist())",
        f"{p} = {q}.to('cpu').to(A.backend)",
        "log.append(A.nvals)",
        f"B = A.dup()\n{line}\nlog.append(A.isequal(B))",
        f"yield {w}, {s}",
        f"if {w}.nvals > k:\n    {line}",
        f"if k % 2:\n    {line}",
        f"log.append({w}.nvals)\ntry:\n    log.append(int({s}))\n{caught}",  # no error waits
        f"log.append({w}.nvals)\ntry:\n    {w} << {o}[n]\n{caught}",
        f"t = {w}.S\n{line}\n{o}(t) << k",
        f"t = {o}(~{w}.S)\n{line}\nt << 3",
        f"t = {p}.apply(binary.plus, right=k)\n{line}\n{q} << t",
        f"t = {w}.dup()\n{line}\nlog.append(t.isequal({w}))",
        f"t = {p}\n{p}(accum=binary.plus) << {q}\nlog.append(t.nvals)",
    )
    return str(draw(st.sampled_from(choices)))
