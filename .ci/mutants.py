"""What `mutate.py` may break: the places of each file, and those that decide no answer.

Cosmic Ray breaks Python; the swaps below break CUDA C++.
`mutants.toml` names functions and tables that are about speed or estimates alone, which are not
broken, and the survivors that were proved to change no answer, which are counted apart.
"""

import ast
import difflib
import functools
import re
import sys
import tomllib
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

ROOT = Path(__file__).resolve().parent.parent
JUDGED = tomllib.loads((ROOT / ".ci/mutants.toml").read_text("utf-8"))

OPERATORS = (
    "AddNot|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse"
    "|ReplaceFalseWithTrue|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ZeroIterationForLoop"
    "|ReplaceUnaryOperator_(Delete_Not|USub_UAdd|Delete_USub)"
    "|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_FloorDiv|FloorDiv_Mul|BitAnd_BitOr|BitOr_BitAnd)"
    "|ReplaceComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is)"
)
SWAPS = (
    (r"(?<![<\w-])<(?![<=\w])", "<="),
    (r"<=", "<"),
    (r"(?<![->])>(?![>=])(?= )", ">="),
    (r">=", ">"),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"),
    (r"(?<= )&(?= )", "|"),
    (r"(?<= )\|(?= )", "&"),
    (r"!(?=[a-z(])", ""),
    (r"(?<![\w.])0(?![\w.])", "1"),
    (r"(?<![\w.])1(?![\w.])", "2"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\bbreak;", ";"),
    (r"\bcontinue;", ";"),
)


@functools.cache
def text_of(name):
    """Return the text of a file as it was when this run first read it."""
    return (ROOT / name).read_text("utf-8")


@functools.cache
def left_out(name):
    """Return the numbers of the lines of a file that mutants.toml leaves out by their names."""
    lines, text = set(), text_of(name)
    names = [entry["name"] for entry in JUDGED["left_out"] if entry["file"] == name]
    for node in ast.walk(ast.parse(text if name.endswith(".py") else "")):
        own = [getattr(node, "name", "")]
        if isinstance(node, ast.Assign):
            own = [getattr(target, "id", "") for target in node.targets]
        if set(own) & set(names):
            names.remove(own[0])
            lines |= set(range(node.lineno, node.end_lineno + 1))
    for function in () if name.endswith(".py") else list(names):
        body = rf"^( *)[^;\n]*\b{function}\([^;{{]*{{$(.|\n)*?\n\1}}"
        if found := re.search(body, text, re.MULTILINE):
            names.remove(function)
            first = text.count("\n", 0, found.start()) + 1
            lines |= set(range(first, first + found[0].count("\n") + 1))
    if names:
        sys.exit(f"mutants.toml: {name} has no {names[0]}. Take it out.")
    return lines


def equivalent(name, text):
    """Return why a mutant changes no answer, as mutants.toml says, or None."""
    was, now = changed_lines(name, text)
    for entry in JUDGED["equivalent"]:
        if (entry["file"], entry["was"], entry["now"]) == (name, was, now):
            return entry["why"]
    return None


def changed_lines(name, text):
    """Return the lines that a mutant changes, as they are and as they become, without indents."""
    old, new = text_of(name).splitlines(), text.splitlines()
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    return tuple("\n".join(x[1:].strip() for x in lines if x[0] == sign) for sign in "-+")


def places_in_python(text):
    """Yield the places that Cosmic Ray can break in a module: (operator, occurrence)."""
    nodes = list(ast_nodes(get_ast(text)))
    names = [n for n in sorted(plugins.operator_names()) if re.fullmatch(f"core/({OPERATORS})", n)]
    for name in names:
        operator = plugins.get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        yield from ((name, occurrence) for occurrence in range(count))


class Answers(ast.NodeTransformer):
    """Drop what decides no answer: docs, types, asserts, messages, estimates, tuned numbers.

    Estimates are what `require` asks for and what is named after bytes; measured peaks test them.
    Tuned numbers are constants of a module, in capitals, without names in their value.
    """

    def visit_arg(self, node):
        """Drop the type of an argument."""
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node):
        """Drop the type of a variable, and an estimate."""
        value = node.value and self.visit(node.value)
        if self.is_estimate(node.target):
            value = ast.Constant(0)
        return ast.AnnAssign(node.target, ast.Constant(""), value, node.simple)

    def visit_AugAssign(self, node):
        """Drop an estimate."""
        return None if self.is_estimate(node.target) else self.generic_visit(node)

    @staticmethod
    def is_estimate(target):
        """Whether a variable or an attribute is named after bytes."""
        return "bytes" in getattr(target, "attr", getattr(target, "id", ""))

    def visit_FunctionDef(self, node):
        """Drop the type of a result, how many results are kept, and an estimate."""
        self.generic_visit(node).returns = None
        node.decorator_list = [x for x in node.decorator_list if "lru_cache" not in ast.dump(x)]
        if "bytes" in node.name:
            node.body = []
        return node

    def visit_Call(self, node):
        """Drop an estimate."""
        self.generic_visit(node)
        if getattr(node.func, "attr", getattr(node.func, "id", "")) == "require":
            node.args = []
        return node

    def visit_Assign(self, node):
        """Drop a tuned number, and an estimate."""
        named = [x.id for target in node.targets for x in ast.walk(target) if hasattr(x, "id")]
        number = all(
            isinstance(
                x, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Tuple | ast.Load
            )
            or (isinstance(x, ast.Constant) and type(x.value) in (int, float))
            for x in ast.walk(node.value)
        )
        tuned = number and named and all(name.isupper() for name in named)
        if tuned or any(map(self.is_estimate, node.targets)):
            node.value = ast.Constant(0)
        return self.generic_visit(node)

    def visit_Assert(self, node):
        """Drop what tells the checker of types."""
        return None

    def visit_Raise(self, node):
        """Drop what an error says."""
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node

    def visit_JoinedStr(self, node):
        """Drop a text with values in it."""
        return ast.Constant("")

    def visit_Expr(self, node):
        """Drop a docstring."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def same_answers(text, changed):
    """Whether a mutant differs in what `Answers` drops alone, or is no Python."""
    try:
        old, new = (ast.dump(Answers().visit(ast.parse(x))) for x in (text, changed))
    except SyntaxError:
        return True
    return old == new


def places_in_cuda(text):
    """Yield the places that a swap can break in a kernel file: (start, end, wrong text)."""
    for pattern, wrong in SWAPS:
        for found in re.finditer(pattern, text):
            start = text.rfind("\n", 0, found.start()) + 1
            line = text[start : text.find("\n", found.end())]
            is_code = not line.lstrip().startswith(("#", "//", "*", "template"))
            if is_code and "//" not in text[start : found.start()]:
                yield found.start(), found.end(), wrong


def mutant(name, place):
    """Return the text of a file that is broken at a place."""
    text = text_of(name)
    if name.endswith(".py"):
        operator, occurrence = place
        return mutate_code(text, plugins.get_operator(operator)(), occurrence)
    start, end, wrong = place
    return text[:start] + wrong + text[end:]


def decides(name, text):
    """Whether a mutant may change an answer, by the rules of `Answers` and `left_out`."""
    if name.endswith(".py") and same_answers(text_of(name), text):
        return False
    return not changed_numbers(name, text) <= left_out(name)


def changed_numbers(name, text):
    """Return the numbers of the lines, as they are, that a mutant changes."""
    old, new = text_of(name).splitlines(), text.splitlines()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return {k + 1 for kind, a, b, *_ in changes if kind != "equal" for k in range(a, max(b, a + 1))}


def difference(name, text):
    """Return the lines that a mutant changes, with their numbers."""
    old, new = text_of(name).splitlines(), text.splitlines()
    return "\n".join(list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:])
