"""Kernel sources: read, specialised by macros, and their signatures, constants and functors."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lagpu.algebra.arithmetic import IN_CUDA
from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.dtypes import FP64, INT64, UINT64, DType
from lagpu.errors import DomainMismatch, InvalidValue, NotSupported
from lagpu.operations import Product

FOLDER = Path(__file__).parent
FILE = "common/constants.cuh"
_CONSTANT = re.compile(r"constexpr [iu](?:32|64) (k[A-Z]\w*) = (\d+|0x[0-9a-f]+);")
_OTHER = re.compile(r"(?://.*|#(?:ifndef|ifdef|define|endif)\b.*)?")


def read(text: str) -> dict[str, int]:
    """Return the constants of a header by name; `ValueError` for a line of any other form."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        if _OTHER.fullmatch(line):
            continue
        one = _CONSTANT.fullmatch(line)
        if one is None or one[1] in found:
            raise ValueError(f"{FILE}: not a new constant of a known form: {line!r}")
        found[one[1]] = int(one[2], 0)
    return found


@functools.cache
def _read(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")


_CONSTANTS = read(_read(FILE))


def constant(name: str) -> int:
    return _CONSTANTS[name]


#: Words of a ``GridBarrier``, which kernels take as a zeroed uint32 array of this size.
GRID_BARRIER = constant("kBarrierWords")

_CODES = {"bool": "?", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "f32": "f4", "f64": "f8"}
_DTYPES: dict[str, np.dtype[np.generic]] = {name: np.dtype(of) for name, of in _CODES.items()}
_ARRAYS_ONLY = {"GridBarrier": np.dtype(np.uint32)}
_END = "// end of {}"  #: The line after a header that is pasted in.
# A prelude knows the deepest of these that the file includes.
_PRELUDE_AFTER = ("common/algebra.cuh", "common/prims.cuh")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([\w./]+\.cuh)"[ \t]*$', re.MULTILINE)
_DEFAULT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(LG_\w+)[ \t]+(\w+)[ \t]*(?://.*)?$", re.MULTILINE
)
_ALIAS = re.compile(r"^[ \t]*using[ \t]+(\w+)[ \t]*=[ \t]*(\w+)[ \t]*;", re.MULTILINE)
_MACRO = re.compile(r"LG_\w+")  # a text to begin with: three times as fast as a \b
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUND = r"(?:(?:__launch_bounds__\s*\([^)]*\)|LG_CLUSTER_BLOCKS)\s*)"
_BOUNDS = f"{_BOUND}*"
_HEAD = re.compile(rf'extern "C" __global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(')
_PARAM = re.compile(r"(?P<type>\w+)(?:\s*(?P<star>\*)\s*|\s+)(?P<name>\w+)")


@dataclass(frozen=True)
class Param:
    """One parameter of a kernel."""

    name: str  #: Its name in the source.
    #: Its type once macros are resolved: one of ``bool i32 u32 i64 u64 f32 f64``, or
    #: ``GridBarrier`` as a pointer's target.
    ctype: str
    pointer: bool  #: Whether it takes a device array.
    const: bool  #: Whether the kernel only reads it.

    @functools.cached_property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype that an array or scalar passed here must have."""
        return _DTYPES.get(self.ctype) or _ARRAYS_ONLY[self.ctype]

    def __str__(self) -> str:
        return f"{'const ' * self.const}{self.ctype}{'*' * self.pointer} {self.name}"


@dataclass(frozen=True, eq=False)
class Kernel:
    """One specialised kernel: everything a device needs to compile and call it."""

    #: Where it is written and its ``extern "C"`` name.
    file: str
    name: str
    #: tuple of (str, str): what it is specialised by, sorted, names with their ``LG_``.
    macros: tuple[tuple[str, str], ...]
    source: str  #: The text with headers and prelude pasted in.
    params: tuple[Param, ...]

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(param.name for param in self.params)

    @functools.cached_property
    def slots(self) -> tuple[tuple[Param, bool, np.dtype[np.generic]], ...]:
        """Each parameter with whether it takes an array, and the dtype: ready for a launch."""
        return tuple((param, param.pointer, param.dtype) for param in self.params)

    @functools.cached_property
    def alone(self) -> str:
        """The text with its file's other kernels as functions never called, which takes no time."""

        def quiet(head: re.Match[str]) -> str:
            if head[1] == self.name:
                return head[0]
            plain = head[0].replace('extern "C" __global__', "static __device__")
            return re.sub(_BOUND, lambda bounds: "\n" * bounds[0].count("\n"), plain)

        return _HEAD.sub(quiet, self.source)

    @property
    def cluster(self) -> int:
        return int(dict(self.macros).get("LG_CLUSTER", 1))

    @property
    def flags(self) -> tuple[str, ...]:
        return ("-std=c++17", *(f"-D{name}={value}" for name, value in self.macros))

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name[3:]}={value}" for name, value in self.macros)
        return f"{self.file}:{self.name}({chosen})"


@functools.cache
def kernel(file: str, name: str, *, prelude: str = "", **macros: str) -> Kernel:
    """Return kernel `name` of one of the package's files, specialised by `macros`.

    `prelude` is C++ text set after ``common/algebra.cuh``, or after ``common/prims.cuh`` where that
    is not included, and before the file's own code: the bodies of user-registered functors. Macros
    are one word each; ``X="f64"`` becomes ``-DLG_X=f64``. What is left out keeps the default that
    the file sets by ``#ifndef LG_X``. `InvalidValue` if the file or the kernel does not exist, does
    not use a macro, or has a parameter of a type that no array has.
    """
    if not (FOLDER / file).is_file():
        raise InvalidValue(f"kernel: no file {file} among the kernels. Look for a misspelling.")
    text = f'#line 1 "{file}"\n' + _read(file)
    return from_source(text, name, file=file, prelude=prelude, **macros)


@functools.cache
def from_source(
    text: str, name: str, *, file: str = "generated.cu", prelude: str = "", **macros: str
) -> Kernel:
    """Return kernel `name` of a text that is not one of the package's files; see `kernel`.

    The text, a generated program or a test's kernel, may include headers; messages call it `file`.
    """
    source, bare, known, aliases, defaults = _pasted(text, file)
    chosen = {f"LG_{macro}": value for macro, value in macros.items()}
    words = aliases | defaults | chosen
    if prelude:
        source = _insert_prelude(source, prelude, file)
        known |= set(_MACRO.findall(prelude))
        words = aliases | dict(_ALIAS.findall(prelude)) | defaults | chosen
    for macro, value in chosen.items():
        if macro not in known:
            raise InvalidValue(f"kernel: {file} does not use {macro}. Look for a misspelling.")
        if not re.fullmatch(r"\w+", value):  # nvcc splits the values of -D at commas
            raise InvalidValue(f"kernel: {macro}={value!r} is not one word. Name it by a typedef.")
    params = _parse_params(bare, name, file, words)
    return Kernel(file, name, tuple(sorted(chosen.items())), source, params)


@functools.lru_cache(maxsize=64)
def _pasted(
    text: str, file: str
) -> tuple[str, str, frozenset[str], dict[str, str], dict[str, str]]:
    """Return a text with headers, alone without comments, its macros, aliases and defaults."""
    source = _paste_headers(text, file)
    found = dict(_ALIAS.findall(source)), dict(_DEFAULT.findall(source))
    return source, _COMMENT.sub(" ", text), frozenset(_MACRO.findall(source)), *found


def sources_hash() -> str:
    """Return the SHA-256 of every C++ source of the gpu backend, which reports carry."""
    digest, root = hashlib.sha256(), FOLDER.parent
    found = [path for path in root.rglob("*") if path.suffix in (".cu", ".cuh", ".hpp", ".cpp")]
    for name in sorted(path.relative_to(root).as_posix() for path in found):
        content = (root / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _paste_headers(text: str, file: str, seen: set[str] | None = None) -> str:
    """Replace each include of a project header by its text, and the second one by nothing."""
    seen = set() if seen is None else seen

    def paste(include: re.Match[str]) -> str:
        header = include[1]
        if header in seen:
            return ""
        seen.add(header)
        if not (FOLDER / header).is_file():
            raise InvalidValue(f"kernel: {file} includes {header}, which is not among the headers.")
        # The line after an include is one further; compilers then name file and line as written.
        line = include.string.count("\n", 0, include.start()) + 2
        line -= include.string.startswith("#line")
        body = _paste_headers(_read(header), header, seen)
        return f'#line 1 "{header}"\n{body}\n{_END.format(header)}\n#line {line} "{file}"'

    return _INCLUDE.sub(paste, text)


def _insert_prelude(source: str, prelude: str, file: str) -> str:
    mark = next((mark for mark in map(_END.format, _PRELUDE_AFTER) if mark in source), None)
    if mark is None:
        raise InvalidValue(f"kernel: {file} has a prelude but includes none of {_PRELUDE_AFTER}.")
    before, after = source.split(mark, 1)
    return f'{before}#line 1 "prelude"\n{prelude}\n{mark}{after}'


def _parse_params(text: str, name: str, file: str, words: dict[str, str]) -> tuple[Param, ...]:
    """Read the parameter list of ``extern "C" __global__ void name(...)``."""
    head = rf"__global__\s+{_BOUNDS}void\s+{_BOUNDS}{re.escape(name)}\s*\(([^)]*)\)"
    found = re.search(head, text)
    if found is None:
        raise InvalidValue(f'kernel: {file} has no extern "C" __global__ void {name}(...).')
    declarations = [part.strip() for part in found[1].split(",") if part.strip()]
    return tuple(_parse_param(part, f"{file}:{name}", words) for part in declarations)


def _parse_param(declaration: str, where: str, words: dict[str, str]) -> Param:
    found = _PARAM.fullmatch(re.sub(r"\b(const|__restrict__)\b", " ", declaration).strip())
    if found is None:
        raise InvalidValue(f"kernel: {where} has a parameter that is not plain: {declaration!r}.")
    pointer = found["star"] == "*"
    # In `const T* p` the data is constant; in `T* const p` or `const T x` nothing outside is.
    const = pointer and re.search(r"\bconst\b", declaration.split("*")[0]) is not None
    ctype = _resolve(found["type"], words)
    if ctype not in _DTYPES and not (pointer and ctype in _ARRAYS_ONLY):
        known = ", ".join(_DTYPES)
        raise InvalidValue(f"kernel: {where}: {ctype} in {declaration!r} is none of {known}.")
    return Param(found["name"], ctype, pointer, const)


def _resolve(word: str, words: dict[str, str]) -> str:
    for _ in range(len(words)):  # a macro may name another; a cycle ends here all the same
        if word not in words:
            break
        word = words[word]
    return word


_STRUCT = """struct {name} {{
  static constexpr bool reads_x = {reads_x}, reads_y = {reads_y};
  template <class Z, class T>
  LG_DEVICE static Z call(T x, T y, i64 i, i64 k, i64 j) {{ {code} }}
{more}}};
"""
_MONOID = """  template <class Z>
  LG_DEVICE static Z identity() {{ return Z({identity}); }}
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {{ return {terminal}; }}
"""
_FLOATS = {"INFINITY": "(1e300 * 1e300)", "NAN": "(1e300 * 1e300 * 0.0)"}
# Functions that CUDA has without an include, for the functors that name them.
_ONE_ARGUMENT = (
    "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp2 expm1 lgamma log10 log1p log2 "
    "rint round sin sinh tan tanh tgamma trunc"
)
_TWO_ARGUMENTS = "atan2 copysign fmod hypot remainder"
_SIM_MATH = """#if defined(LAGPU_SIM) && !defined(LG_FUNCTOR_MATH)
#define LG_FUNCTOR_MATH
#define LG_ONE(name) extern "C" double name(double) noexcept; \\
  inline float name(float x) {{ return __builtin_##name##f(x); }}
#define LG_TWO(name) extern "C" double name(double, double) noexcept; \\
  inline float name(float x, float y) {{ return __builtin_##name##f(x, y); }}
{ones}
{twos}
#undef LG_ONE
#undef LG_TWO
inline double frexp(double x, int* e) {{ return __builtin_frexp(x, e); }}
inline double ldexp(double x, int e) {{ return __builtin_ldexp(x, e); }}
#endif
""".format(
    ones=" ".join(f"LG_ONE({name})" for name in _ONE_ARGUMENT.split()),
    twos=" ".join(f"LG_TWO({name})" for name in _TWO_ARGUMENTS.split()),
)


class Prelude:
    """The functor texts of users' operators in one kernel, each once, in the order of first use."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def functor(self, op: Operator | Monoid) -> str:
        """Return the name of an operator's functor; a user's is added to the prelude."""
        name, text = _functor(op)
        self._texts[text] = None  # "" for one of lagpu's own
        return name

    @property
    def text(self) -> str:
        """The texts, to be pasted before the kernel; an empty string if there are none."""
        texts = "".join(self._texts)
        rare = "".join(f"LG_TWO({name})\n" for name in ("fmax", "fmin") if name in texts)
        return _SIM_MATH.replace("#undef", f"{rare}#undef", 1) + texts if texts else ""


def macros_of(
    product: Product, u: DType, a: DType, prelude: Prelude | None = None
) -> tuple[dict[str, str], str]:
    """Return the macros that specialise a kernel of a product, and its prelude."""
    prelude = prelude or Prelude()
    macros = {
        "ADD": prelude.functor(product.semiring.monoid),
        "MUL": prelude.functor(product.semiring.multiply),
        "U": u.ctype, "A": a.ctype, "T": product.domain.ctype, "Z": product.result.ctype,
        "FLIP": str(int(product.flip)), "ISO": "0",
    }  # fmt: skip
    return macros, prelude.text


def accumulator(
    accum: BinaryOp | None, w: DType, z: DType, prelude: Prelude
) -> tuple[str, str, str]:
    """Return functor, domain and result of ``Accum`` in common/entry.cuh."""
    if accum is None:
        return "NoAccum", "bool", "bool"
    domain, result = accum.types(w, z)
    return prelude.functor(accum), domain.ctype, result.ctype


@functools.cache
def _functor(op: Operator | Monoid) -> tuple[str, str]:
    """Return the functor's name, and its C++ text unless it is in ``common/algebra.cuh``."""
    own = op.op if isinstance(op, Monoid) else op
    if own.of_numbers and not own.body:
        raise NotSupported(
            f"{own!r}: is a Python function, which only the cpu backend runs. Register it with its "
            "C++ text, as in cuda='x + 1'."
        )
    if not isinstance(op, Monoid):
        return op.cuda, _struct(op.cuda, op, op.body) if op.body else ""
    if not (op.registered or op.op.body):
        return op.op.cuda, ""
    body = op.op.body or f"{op.op.cuda}::call<Z, T>(x, y, i, k, j)"
    end = f"z == Z({_number(op.terminal)})" if op.terminal else "false"
    more = _MONOID.format(identity=_number(op.identity), terminal=end)
    # Others may have its name, which may have a point.
    digest = hashlib.sha256(_struct("", op.op, body, more).encode()).hexdigest()[:16]
    name = f"User_monoid_{digest}"
    return name, _struct(name, op.op, body, more)


def _struct(name: str, op: Operator, body: str, more: str = "") -> str:
    x, y = (str(read).lower() for read in getattr(op, "reads", (True, True)))
    code = body if body.endswith(";") else f"return {'cast<Z>' if op.of_numbers else 'Z'}({body});"
    text = _STRUCT.format(name=name, reads_x=x, reads_y=y, code=code, more=more)
    return re.sub(r"\b(INFINITY|NAN)\b", lambda word: _FLOATS[word[1]], text)


def _number(value: Callable[[DType], Any]) -> str:
    """Return the number of each type in C++; a whole number has all its 64 bits."""
    if value in IN_CUDA:
        return IN_CUDA[value]
    for dtype, suffix in (INT64, "ll"), (UINT64, "ull"):
        with suppress(DomainMismatch, ValueError):
            if whole := int(value(dtype)):  # 0 may be -0.0
                return f"({whole + 1}ll - 1)" if whole < 0 else f"{whole}{suffix}"
    return repr(float(value(FP64))).replace("inf", "INFINITY").replace("nan", "NAN")
