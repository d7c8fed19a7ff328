"""Nested expressions and statements, drawn as text that python-graphblas and lagpu both read."""

from typing import NamedTuple

from hypothesis import strategies as st

SIGNS = ("+", "-", "*", "/", "//", "**", "==", "!=", "<", "<=", ">", ">=")
BINARY = (
    *("plus", "minus", "times", "truediv", "min", "max", "first", "second", "pair"),
    *("eq", "ne", "lt", "ge", "iseq", "land", "lor", "lxor", "rminus", "cdiv", "pow"),
)
UNARY = ("ainv", "abs", "identity", "one", "minv", "lnot", "sqrt", "floor", "signum")
MONOIDS = ("plus", "times", "min", "max", "lor", "land", "lxor")
SEMIRINGS = (
    *("plus_times", "min_plus", "max_plus", "max_min", "min_max", "plus_first", "plus_second"),
    *("plus_pair", "any_pair", "lor_land", "max_times", "min_first", "plus_min", "plus_minus"),
    *("max_second", "plus_plus", "land_lor"),
)
VECTORS = ("x", "y", "i", "x", "y", "i", "k", "b", "c", "e")  # truths and INT32 less often
MATRICES = ("A", "B", "N", "A", "B", "N", "C")
NUMBERS = ("2", "1", "-3", "4", "0.5", "2.5", "-1", "0", "True")


class Step(NamedTuple):
    """One operation in an expression: what is done, by which operator, to which texts."""

    what: str
    op: str
    operands: tuple[str, ...]


class Drawn(NamedTuple):
    """An expression: its text, its number of dimensions, and the operations in it."""

    text: str
    ndim: int
    steps: tuple[Step, ...] = ()


def _made(text, ndim, step, *parts):
    return Drawn(text, ndim, (step, *(s for part in parts for s in part.steps)))


class Author:
    """Writes expressions over the names of `VECTORS` and `MATRICES`, by a random generator."""

    def __init__(self, chance):
        self.chance = chance
        self.one = chance.choice

    def part(self, ndim, depth):
        """Return an expression of so many dimensions; one in brackets unless it is a name."""
        if depth <= 0 or self.chance.random() < 0.2:
            return self.name(ndim)
        found = self.one(self.ways(ndim))(ndim, depth - 1)
        ending = ".new()" if self.chance.random() < 0.2 else ""
        return found._replace(text=f"({found.text}){ending}")

    def name(self, ndim):
        if ndim == 0:
            return Drawn(self.one(("s", "t")), 0)
        if ndim == 1:
            return Drawn(self.one(VECTORS), 1)
        return Drawn(self.one(MATRICES) + self.one(("", "", ".T")), 2)

    def ways(self, ndim):
        if ndim == 0:
            return (self.sum, self.entry, self.product, self.method)
        many = (self.infix, self.joined, self.joined, self.product, self.product, self.number)
        each = (self.alone, self.selected, self.ewise, self.method, self.piece, self.called)
        return (*many, *each, self.sum) if ndim == 1 else (*many, *each)

    def infix(self, ndim, depth):
        sign = self.one(SIGNS)
        x, y = self.sides(ndim, depth)
        step = Step("infix", sign, (x.text, y.text))
        return _made(f"{x.text} {sign} {y.text}", ndim, step, x, y)

    def sides(self, ndim, depth):
        """Return two operands; of two dimensions one may be a vector."""
        dims = self.one(((2, 2), (2, 2), (2, 2), (1, 2), (2, 1))) if ndim == 2 else (ndim, ndim)
        return [self.part(d, depth) for d in dims]

    def number(self, ndim, depth):
        sign, number = self.one(SIGNS), self.one((*NUMBERS, "s", "t"))
        x = self.part(ndim, depth)
        sides = (x.text, number) if self.chance.random() < 0.6 else (number, x.text)
        return _made(f" {sign} ".join(sides), ndim, Step("infix", sign, sides), x)

    def called(self, ndim, depth):
        """An operator that is called with an object and a number, or applied to them."""
        op, x, number = self.one(BINARY), self.part(ndim, depth), self.one(NUMBERS)
        sides = (x.text, number) if self.chance.random() < 0.6 else (number, x.text)
        side = "right" if sides[1] == number else "left"
        text = self.one(
            (f"binary.{op}({', '.join(sides)})", f"{x.text}.apply(binary.{op}, {side}={number})")
        )
        return _made(text, ndim, Step("infix", op, sides), x)

    def alone(self, ndim, depth):
        op, x = self.one(UNARY), self.part(ndim, depth)
        text, op = self.one(
            ((f"unary.{op}({x.text})", op), (f"{x.text}.apply(unary.{op})", op),
             (f"-{x.text}", "ainv"), (f"abs({x.text})", "abs"), (f"~{x.text}", "lnot"))
        )  # fmt: skip
        return _made(text, ndim, Step("alone", op, (x.text,)), x)

    def joined(self, ndim, depth):
        """``op(x | y)``, ``op(x & y | z)``, with defaults, or without an operator."""
        sign = self.one("|&")
        parts = self.sides(ndim, depth)
        if self.chance.random() < 0.4:
            parts.append(self.part(parts[-1].ndim, depth))
        texts = [part.text for part in parts]
        text = f" {sign} ".join(texts)
        if len(parts) == 3 and self.chance.random() < 0.4:
            text = f"{texts[0]} {sign} ({texts[1]} {sign} {texts[2]})"
        op = self.one((*(f"binary.{op}" for op in BINARY), *(f"monoid.{op}" for op in MONOIDS), ""))
        defaults = ""
        if op and sign == "|" and self.chance.random() < 0.3:
            numbers = self.one(NUMBERS), self.one(NUMBERS)
            defaults = ", left_default={}, right_default={}".format(*numbers)
            texts += numbers
        step = Step("joined", op.partition(".")[2] or "l" + {"|": "or", "&": "and"}[sign],
                    tuple(texts))  # fmt: skip
        return _made(f"{op}({text}{defaults})" if op else text, ndim, step, *parts)

    def ewise(self, ndim, depth):
        way, op = self.one(("ewise_add", "ewise_mult", "ewise_union")), self.one(BINARY)
        x, y = self.sides(ndim, depth)
        numbers = (self.one(NUMBERS), self.one(NUMBERS)) if way == "ewise_union" else ()
        given = ", ".join((y.text, f"binary.{op}", *numbers))
        step = Step("joined", op, (x.text, y.text, *numbers))
        return _made(f"{x.text}.{way}({given})", ndim, step, x, y)

    def product(self, ndim, depth):
        """Two to four factors in any brackets; a semiring around all, around some, or none."""
        dims = {0: [1, 1], 1: self.one(([1, 2], [2, 1])), 2: [2, 2]}[ndim]
        more = [2] * self.one((0, 0, 1, 1, 2))
        if ndim == 0 and more:  # python-graphblas too has no product of a number
            more = []
        dims = [dims[0], *more, dims[1]]
        parts = [self.part(d, depth if d == 2 else depth - 1) for d in dims]
        text = self.bracketed([part.text for part in parts])
        op = self.one((*SEMIRINGS, ""))
        step = Step("product", op or "plus_times", tuple(part.text for part in parts))
        return _made(f"semiring.{op}({text})" if op else text, ndim, step, *parts)

    def bracketed(self, texts):
        while len(texts) > 2:
            at = self.chance.randrange(len(texts) - 1)
            pair = f"({texts[at]} @ {texts[at + 1]})"
            texts = [*texts[:at], pair, *texts[at + 2 :]]
        return " @ ".join(texts)

    def sum(self, ndim, depth):
        op = self.one((*MONOIDS, ""))
        given = f"monoid.{op}" if op else ""
        if ndim == 1:
            x, way = self.part(2, depth), self.one(("reduce_rowwise", "reduce_columnwise"))
        else:
            x = self.part(self.one((1, 2)), depth)
            way = "reduce" if x.ndim == 1 else "reduce_scalar"
            given += (", " * bool(given) + "allow_empty=False") * self.one((0, 0, 1))
        return _made(f"{x.text}.{way}({given})", ndim, Step("sum", op or "plus", (x.text,)), x)

    def entry(self, ndim, depth):
        x = self.part(self.one((1, 2)), depth)
        where = self.one("0123") if x.ndim == 1 else f"{self.one('0123')}, {self.one('0123')}"
        return _made(f"{x.text}[{where}]", 0, Step("part", "", (x.text,)), x)

    def method(self, ndim, depth):
        op = self.one(SEMIRINGS)
        if ndim == 0:
            x, y = self.part(1, depth), self.part(1, depth)
            text = f"{x.text}.inner({y.text}, semiring.{op})"
        elif ndim == 1:
            x, y = self.one(((1, 2), (2, 1)))
            x, y = self.part(x, depth), self.part(y, depth)
            way = "vxm" if x.ndim == 1 else "mxv"
            text = f"{x.text}.{way}({y.text}, semiring.{op})"
        elif self.chance.random() < 0.3:
            op = self.one(BINARY)
            x, y = self.part(1, depth), self.part(1, depth)
            step = Step("joined", op, (x.text, y.text))
            return _made(f"{x.text}.outer({y.text}, binary.{op})", 2, step, x, y)
        else:
            x, y = self.part(2, depth), self.part(2, depth)
            text = f"{x.text}.mxm({y.text}, semiring.{op})"
        return _made(text, ndim, Step("product", op, (x.text, y.text)), x, y)

    def selected(self, ndim, depth):
        x, mask = self.part(ndim, depth), self.mask(ndim, 0)
        sign, number = self.one((">", "<=", "==", "!=")), self.one(("1", "2", "0", "-1"))
        text, op = self.one(
            ((f"select.value({x.text} {sign} {number})", sign),
             (f"{x.text}.select('{sign}', {number})", sign),
             (f"{x.text}.select({mask.text})", ""),
             (f"select.{self.one(('tril', 'triu', 'diag', 'offdiag'))}({x.text}, {number})"
              if ndim == 2 else f"select.index({x.text} {self.one('<>')} 2)", ""))
        )  # fmt: skip
        return _made(text, ndim, Step("select", op, (x.text, number)), x, mask)

    def piece(self, ndim, depth):
        x = self.part(2 if ndim == 2 else self.one((1, 2)), depth)
        lists = ("[2, 0, 3, 1]", ":", "::-1", "[3, 2, 1, 0]")
        if ndim == 2:
            where = f"{self.one(lists)}, {self.one(lists)}"
        elif x.ndim == 1:
            where = self.one(lists)
        else:
            where = self.one((f"{self.one('0123')}, :", f":, {self.one('0123')}"))
        return _made(f"{x.text}[{where}]", ndim, Step("part", "", (x.text,)), x)

    def mask(self, ndim, depth):
        """Return a mask of objects, or of an expression; python-graphblas has none of ``A.T``."""
        named = VECTORS if ndim == 1 else MATRICES
        x = self.part(ndim, depth)
        first = f"{self.one(('', '~'))}{x.text.removesuffix('.T')}.{self.one('SV')}"
        if self.chance.random() < 0.2:
            y = self.one(named)
            second = f"{self.one(('', '~'))}{y}.{self.one('SV')}"
            both = f"({first} {self.one('&|')} {second})"
            return _made(both, ndim, Step("masks", "", (x.text, y)), x)
        return x._replace(text=first)

    def line(self):
        """Return a line: an expression that is computed, or a statement that writes."""
        ndim = self.one((0, 1, 1, 1, 2, 2))
        depth = self.one((1, 1, 2, 2, 3))
        if self.chance.random() < 0.5:
            x = self.one(self.ways(ndim))(ndim, depth - 1)
            return x._replace(text=f"z = ({x.text}).new()")
        ndim = ndim or 1
        out = self.one(VECTORS if ndim == 1 else MATRICES)
        value = self.part(ndim, depth)
        if self.chance.random() < 0.15:
            number = self.one(NUMBERS)
            value = Drawn(number, ndim, (Step("write", "", (out, number)),))
        way = self.one(("mask", "mask", "inplace", "plain", "piece"))
        write = Step("write", "", (out, value.text))
        if way == "inplace":
            sign = self.one(("+", "-", "*", "/", "//", "@", "&", "|", "**"))
            if sign == "@":
                value = self.part(2, depth)
            step = Step("inplace", sign, (out, value.text))
            return _made(f"{out} {sign}= {value.text}", ndim, step, value)
        accum = self.one(("binary.plus", "binary.min", "binary.second", "monoid.max", "'+'"))
        given, mask = [], Drawn("", ndim)
        if way == "mask":
            mask = self.mask(ndim, self.one((0, 0, 1)))
            given.append(mask.text)
            given += [accum] * self.one((0, 1)) + ["replace"] * self.one((0, 1))
            self.chance.shuffle(given)
        elif self.chance.random() < 0.5:
            given.append(accum)
        where = ""
        if way == "piece":
            where = "[[2, 0, 3, 1]]" if ndim == 1 else "[[2, 0, 3, 1], :]"
        to = f"{out}({', '.join(given)})" if given else out
        steps = [write]
        if accum in given:
            name = {"'+'": "plus"}.get(accum, accum.partition(".")[2])
            steps.append(Step("accum", name, (out, value.text)))
        text = f"{to}{where} << {value.text}"
        return Drawn(text, ndim, (*steps, *mask.steps, *value.steps))


@st.composite
def lines(draw):
    """Draw one line, with its operations."""
    return Author(draw(st.randoms(use_true_random=True))).line()
