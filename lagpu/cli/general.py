"""``lagpu run``: any algorithm, with options by its signature, docstring and rows of the table."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from lagpu import algorithms
from lagpu.algorithms.betweenness import is_directed
from lagpu.catalog import ALGORITHMS, Algorithm
from lagpu.cli import commands
from lagpu.cli.check import read_result
from lagpu.cli.commands import REQUIRED, SHORTEST, TOP, Declared, Job, Options, groups, ranking
from lagpu.cli.console import SAVED
from lagpu.cli.graphs import Names
from lagpu.cli.run import Command
from lagpu.core import Matrix, Vector
from lagpu.errors import InvalidValue

# Kinds of arguments that are texts, by their words in the help; by facts and names of parameters.
_WORDS = {x: x.upper() for x in ("vertex", "vertices", "pairs")}
_WORDS |= {"weights": "VERTICES|FILE", "number": "NUMBER|FILE", "vector": "FILE"}
_FACTS = {"source": "vertex", "target": "vertex", "sources": "vertices", "few": "vertices"}
_NAMES = _FACTS | dict.fromkeys(("targets", "nodes", "nbunch", "u", "v", "path"), "vertices")
_KINDS = _NAMES | {"pairs": "pairs"}
_OF_GRAPH = ("directed", "undirected")  # set by options of the graph
# Right results are right with any of these.
_ANY = {
    *("seed", "nstart", "order", "method", "batch", "pieces", "one_degree", "delta"),
    *("max_level", "max_iter"),
}
_OF_VERTICES = (  # values of the results
    *("bfs_parents", "connected_components", "strongly_connected_components"),
    *("label_propagation", "louvain", "maximal_matching", "topological_order"),
)
_OF_LENGTHS = (  # beside those that the table calls weighted
    *("betweenness_centrality", "edge_betweenness_centrality", "ego_graph"),
    "minimum_spanning_forest",
)
_RANKED = ("edge_betweenness_centrality", "similarity")  # matrices whose largest entries matter
_TITLES = {"shortest_path": "path", "find_negative_cycle": "cycle"}


def described(doc: str, section: str) -> dict[str, str]:
    """Return the text of each name in a section of a docstring."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in doc.partition(f"{section}\n{'-' * len(section)}\n")[2].splitlines():
        if not line:
            break
        if line[0] != " ":
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            found |= dict.fromkeys(names, "")
        else:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found


def _kind(name: str, annotation: str, given: str) -> Any:
    """Return the type of an argument, or the kind of its text."""
    words = annotation.split(" | ")
    kind = _KINDS.get(name) or _FACTS.get(given)
    if kind is None and "Weights" in words:
        kind = "number" if words[0] == "float" else "weights"
    if kind is None and "Vector" in words:
        kind = "vector"
    return kind or {"bool": bool, "int": int, "float": float}.get(words[0], str)


class Call:
    """An algorithm as a command: its parameters after the matrix, and what is known of them."""

    def __init__(self, name: str) -> None:
        self.name, self.function = name, getattr(algorithms, name)
        signature = inspect.signature(self.function)
        self.doc = inspect.getdoc(self.function) or ""
        self.result = str(signature.return_annotation).removeprefix("tuple[")
        self.parameters = [*signature.parameters.values()][1:]
        self.rows = [row for row in ALGORITHMS if row.name == name]
        facts = self.rows[0].given if self.rows[0].call is None else ()
        given = [*facts, *[""] * len(self.parameters)]
        self.kinds = {
            x.name: _kind(x.name, x.annotation, fact)
            for x, fact in zip(self.parameters, given, strict=False)
            if x.name not in _OF_GRAPH
        }

    def options(self) -> dict[str, Declared]:
        """Return the options of the command."""
        said = described(self.doc, "Parameters")
        found: dict[str, Declared] = {}
        for parameter in self.parameters:
            name, default = parameter.name, parameter.default
            kind = self.kinds.get(name)
            help = said.get(name, "").replace("`", "")
            if kind is None:
                continue
            how: dict[str, Any] = {"metavar": _WORDS[kind]} if isinstance(kind, str) else {}
            if name == "seed":
                found[name] = commands.SEED
            elif kind is bool and not default:
                found[name] = commands.flag(f"--{name.replace('_', '-')}", help)
            elif default is None:
                found[name] = commands.option(str if how else kind, help, **how)
            else:
                default = REQUIRED if default is parameter.empty else default
                text = str(default) if how and default is not REQUIRED else default
                found[name] = commands.value(str if how else kind, text, help, **how)
        return found

    def job(self, **values: Any) -> Job:
        """Return the job for the values of the options."""
        texts = {f"--{x.replace('_', '-')}": values[x] for x in self.texts(values)}
        return Job(
            self.name, lambda found, *_: self.facts(found), values, texts,
            vector=lambda found: found[0] if isinstance(found, tuple) else found,
            of_vertices=self.name in _OF_VERTICES and values.get("colors") is None,
            dup_op=SHORTEST if self.has_lengths else None,
            seed_for="the algorithm" if "seed" in values else "",
        )  # fmt: skip

    @property
    def has_lengths(self) -> bool:
        """Whether weights are lengths, and the shortest counts; else they are summed."""
        return self.name in _OF_LENGTHS or any(row.graph == "weighted" for row in self.rows)

    def texts(self, values: dict[str, Any]) -> list[str]:
        """Return the arguments that are given as texts to be read."""
        return [x for x in values if isinstance(self.kinds[x], str) and values[x] is not None]

    def arguments(self, A: Matrix, values: dict[str, Any], read: tuple[Any, ...]) -> dict[str, Any]:
        """Return the arguments by name for the values of options; some of these are read."""
        found = values | dict(zip(self.texts(values), read, strict=True))
        for x, y in found.items():
            if isinstance(y, tuple):  # indices and values
                found[x] = Vector.from_coo(*y, size=A.nrows, like=A, name=x)
        if any(x.name == "directed" for x in self.parameters):
            found["directed"] = is_directed(A, bool(values.get("weight")))
        return found

    def checker(self, values: dict[str, Any]) -> Algorithm | None:
        """Return a row whose checker proves results with these values, or None."""
        defaults = {x.name: x.default for x in self.parameters}
        changed = {x for x, y in values.items() if y != defaults[x] and y != str(defaults[x])}
        for row in self.rows:
            if row.check is None or row.call is not None or "sampled" in row.given:
                continue
            first = {x.name for x in self.parameters[: len(row.given)]}
            own = inspect.signature(row.check).parameters
            more = [*own.values()][2 + len(row.given) :]
            if any(x.default is x.empty and values.get(x.name) is None for x in more):
                continue
            known = first | {*own} | _ANY
            same = {x for x, y in row.options.items() if values.get(x) == y}
            if (changed | {*row.options}) - {"directed"} <= known | same:
                return row
        return None

    def facts(self, found: Any) -> dict[str, Any]:
        """Return what to print of the result."""
        if not isinstance(found, tuple):
            return self._facts(self.name, found)
        said: dict[str, Any] = {}
        for name, part in zip(described(self.doc, "Returns"), found, strict=True):
            said |= self._facts(name, part)
        return said

    def _facts(self, name: str, found: Any) -> dict[str, Any]:
        if isinstance(found, Matrix):
            size: dict[str, Any] = {"rows": found.nrows, "entries": found.nvals}
            return size | ({name: ranking(found)} if self.name in _RANKED else {})
        if not isinstance(found, Vector):
            return {_TITLES.get(name, name): found}
        if found.dtype.name == "BOOL":
            return {"members": found.nvals, "first_members": found.to_coo()[0][:TOP].tolist()}
        if self.rows[0].topic in ("parts", "communities"):
            return groups(found)
        if name in (*_OF_VERTICES, "parents"):
            return {"entries": found.nvals}
        return {name: ranking(found)}


def add(name: str, to: Any) -> None:
    """Add the command of an algorithm."""
    call = Call(name)
    save = call.result.startswith(("Vector", "Matrix"))
    help = call.doc.partition("\n")[0].replace("`", "")
    commands.add_job(name, help, call.options(), call.job, save=save, to=to, body="general.run")


def run(options: Options, job: Job, check: bool, as_json: bool, **files: Path | None) -> None:
    """Run the command of an algorithm."""
    General(options, job, check).run(check=check, as_json=as_json, **files)


class General(Command):
    """A command that runs any algorithm."""

    def __init__(self, options: Options, job: Job, check: bool) -> None:
        super().__init__(options, job)
        self.of = Call(job.algorithm)
        self.row = self.of.checker(job.more)
        if check and self.row is None:
            raise InvalidValue(
                f"--check: there is no checker of {job.algorithm} with these options. "
                "Leave it out, or the options."
            )

    def require(self, save: Path | None, step_file: Path | None) -> None:
        """Raise for options that do not fit together."""
        if self.of.result.startswith("Matrix"):
            self.saved_as = (".npz", ".mtx")
            if self.options.renumber and save is not None:
                raise InvalidValue("--save: a matrix has no place for names. Leave --renumber out.")

    def start(self, names: Names) -> tuple[Any, ...]:
        """Return the vertices and the vectors that are given as texts."""
        kinds = [self.of.kinds[x] for x in self.of.texts(self.job.more)]
        texts = self.job.vertices.items()
        return tuple(_read(names, *option, kind) for option, kind in zip(texts, kinds, strict=True))

    def call(self, A: Matrix, *read: Any) -> Any:
        """Return the result of the algorithm."""
        return self.of.function(A, **self.of.arguments(A, self.job.more, read))

    def prove(self, A: Matrix, *read: Any) -> None:
        """Raise `CheckFailed` if the result, the last of `read`, is wrong."""
        *texts, result = read
        given = self.of.arguments(A, self.job.more, tuple(texts))
        assert self.row is not None and self.row.check is not None  # noqa: PT018
        first = [given.pop(x.name) for x in self.of.parameters[: len(self.row.given)]]
        own = inspect.signature(self.row.check).parameters
        more = {x: y for x, y in given.items() if x in own and y is not None}
        self.row.check(A, *first, result, **more)


def _read(names: Names, option: str, text: str, kind: str) -> Any:
    """Return what an option gives: vertices, or the indices and values of a vector."""
    if kind == "vertex":
        return names.vertex(text, option)
    if kind == "vertices":
        return names.vertices(text, option)
    if kind == "pairs":
        pairs = [names.vertices(pair.replace(":", ","), option) for pair in text.split(",")]
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidValue(f"{option}: {text!r} is not a list of pairs. Write 0:5,3:4.")
        return pairs
    if kind != "vector" and Path(text).suffix not in SAVED:
        if kind == "weights":
            return dict.fromkeys(names.vertices(text, option), 1.0)
        try:
            return float(text)
        except ValueError:
            raise InvalidValue(f"{option}: {text!r} is no number and no file.") from None
    return read_result(Path(text), False, names, option == "--labels")
