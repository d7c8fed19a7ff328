"""Where lagpu differs from python-graphblas on purpose: rows of docs/design/types.md, as rules.

A rule says of one operation whether its row covers it, by its operator and the types of its
operands; "int", "float" and "bool" are the types of Python's numbers.
"""

from typing import NamedTuple

TRUTHS = {"BOOL", "bool"}


class Typed(NamedTuple):
    """An operation with the types of its operands."""

    what: str
    op: str
    types: tuple

    @property
    def ops(self):
        """The operators: of a product there are two, and of an in-place product no sign."""
        if self.op == "@":
            return {"plus", "times"}
        return set(self.op.split("_"))


def _truths(s):
    """Whether two truths may meet, of the operands of a chain too, or the only operand is one."""
    return sum(t in TRUTHS for t in s.types) >= min(2, len(s.types))


def _any(s, *types):
    return not set(s.types).isdisjoint(types)


#: The first cell of a row -> whether it covers an operation. A result of another type makes all
#: that is computed with it differ as well.
RULES = {
    "`plus`, `times`, `ainv` of BOOL, element by element": lambda s: (
        s.what in ("infix", "joined", "inplace", "accum", "alone")
        and not s.ops.isdisjoint({"plus", "+", "times", "*", "floordiv", "//", "ainv"})
        and _truths(s)
    ),
    "`minus` of BOOL": lambda s: not s.ops.isdisjoint({"minus", "-", "rminus"}) and _truths(s),
    "`cdiv`, `pow` of BOOL": lambda s: not s.ops.isdisjoint({"cdiv", "pow", "**"}) and _truths(s),
    "sum of a BOOL vector": lambda s: (
        s.what == "sum" and s.op in ("plus", "times") and _any(s, "BOOL")
    ),
    "`plus_first`, `plus_times` of BOOL": lambda s: (
        not s.ops.isdisjoint({"plus", "times"}) and s.what in ("product", "inplace") and _truths(s)
    ),
    "`max_min`, `min_max` of BOOL": lambda s: (
        s.ops == {"max", "min"} and s.what == "product" and _truths(s)
    ),
    "`binary.min(u & A)` of a BOOL vector and matrix": lambda s: (
        s.what in ("infix", "joined") and s.op in ("min", "max", "iseq") and _truths(s)
    ),
    "`pair`, `plus_pair` of FP64": lambda s: "pair" in s.ops,
    "`minv` of the INT32 2": lambda s: s.op == "minv" and _any(s, "BOOL", "INT32", "INT64"),
    "`land`, `lnot` of INT32": lambda s: (
        not s.ops.isdisjoint({"land", "lor", "lxor", "lnot"}) and set(s.types) != {"BOOL"}
    ),
    "a function such as `sin` or `floor` of BOOL": lambda s: (
        s.op in ("sqrt", "floor", "signum") and _any(s, "BOOL")
    ),
    "`x // 0` by `floordiv`": lambda s: not s.ops.isdisjoint({"floordiv", "//"}),
    "INT32 vector plus the Python number 1": lambda s: (
        _any(s, "int", "float", "bool") and _any(s, "INT32", "BOOL")
    ),
    "assign 2**40 to an INT32 vector, 0.5 to an INT64 one": lambda s: (
        s.what == "write" and _any(s, "float")
    ),
    "an INT64 vector that accumulates FP64": lambda s: (
        s.what in ("accum", "inplace") and len(set(s.types)) > 1
    ),
    "a mask such as `m.V & n.S` where m has the value 0.5": lambda s: (
        s.what == "masks" and _any(s, "FP64", "FP32")
    ),
}


def rows(steps):
    """Return the rows that cover one of these operations."""
    return {row for row, covers in RULES.items() for step in steps if covers(step)}
